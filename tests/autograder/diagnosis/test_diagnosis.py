"""Which known mistakes are named, on hand-made answers: three tests about rows, a ValueError and
half precision.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from autograder.basics.errors import StudentError, StudentMissing
from autograder.basics.stored_json import decode_stored, encode_line
from autograder.course import Limits
from autograder.diagnosis.asking import Asker
from autograder.diagnosis.diagnostician import Diagnostician, NamedMistakes
from autograder.diagnosis.known_sitting import KnownSitting, list_departures
from autograder.diagnosis.mistake_fit import StudentAnswer, explains
from autograder.sitting.agreement import answers_agree, distance, find_departures
from autograder.sitting.pricing import points_lost
from autograder.sitting.sitting import TestRun
from autograder.sitting.verdict import Cause, Verdict
from autograder.suite.calls import Call, Cost
from autograder.suite.collection import SuiteQuestion, SuiteTest
from autograder.suite.known_answers import KnownAnswer, combine_answers

RIGHT, INVERTED, SHIFTED = (
    torch.tensor(row, dtype=torch.float64)
    for row in ([1.25, 2.5], [2.5, 1.25], [1.75, 3.0])
)
POINTS = {"rows": 4.0, "refused": 1.0, "half": 2.0, "cost": 2.0}
QUESTION = SuiteQuestion(
    "f", tuple(SuiteTest(test, points, "") for test, points in POINTS.items()), (), ()
)
Answers = dict[str, Tensor | str | Call]
"""What an answer gives to each test; a text is the type of the error that it raises."""


class NothingKept:
    def load(self, *_: str) -> None:
        return None

    def save_and_reload(self, _: str, runs: Sequence[TestRun]) -> Sequence[TestRun]:
        return runs


def run(test: str, answer: Tensor | str | Call, *, passed: bool) -> TestRun:
    call = answer if isinstance(answer, Call) else Call("f", (), {})
    if isinstance(answer, str):
        call.fault = StudentError(answer, "")
    elif isinstance(answer, Tensor):
        call.result = answer
    return TestRun(test, Verdict("passed" if passed else "failed"), (call,))


KEY: Answers = {
    "rows": RIGHT,
    "refused": "ValueError",
    "half": RIGHT.half(),
    "cost": RIGHT,
}


KEY_CELL = "def f(x):\n    return scaled(turned(x))\n"
CHANGES = {
    "inverted": (("turned", "kept"),),
    "unscaled": (("scaled", "left"),),
    "unturned": (("turned", ""),),
}
"""What mistakes change of the answer key's cell, where they are written so."""


def runs_of(answers: Answers) -> dict[str, TestRun]:
    """All tests on answers that are the key's but for these."""
    return {
        test: run(test, answers.get(test, KEY[test]), passed=test not in answers)
        for test in KEY
    }


def name(
    student: Answers,
    mistakes: dict[str, Answers],
    refusing: str = "",
    causes: Mapping[str, Cause] = MappingProxyType({}),
) -> NamedMistakes:
    def ran(
        _: SuiteQuestion, answer: KnownAnswer | None, tests: Sequence[str]
    ) -> dict[str, TestRun]:
        runs = (
            runs_of(mistakes[answer.name])
            if answer
            else {test: run(test, KEY[test], passed=True) for test in KEY}
        )
        return {test: runs[test] for test in tests}

    known = [
        KnownAnswer(
            "f",
            mistake,
            HINTS.get(mistake, f"about {mistake}"),
            "f",
            keeps=0.0 if mistake == "hollow" else 0.5,
            changes=CHANGES.get(mistake, ()),
        )
        for mistake in mistakes
        if " and " not in mistake
    ]
    runs = runs_of(student)
    if refusing:
        runs[refusing] = dataclasses.replace(runs[refusing], refusing=frozenset("f"))
    for test, cause in causes.items():
        verdict = Verdict("failed", cause=cause)
        runs[test] = dataclasses.replace(runs[test], verdict=verdict)
    nothing: Any = None
    kept: Any = NothingKept()
    sitting: Any = KnownSitting(nothing, nothing, nothing, kept)
    sitting.run = ran
    asker = Asker(None, {"f": lambda x: x}, Limits())
    return Diagnostician(sitting, known, {"f": KEY_CELL}).name_mistakes(
        QUESTION, runs, asker
    )


MISTAKES: dict[str, Answers] = {
    "inverted": {"rows": INVERTED, "half": INVERTED.half(), "cost": INVERTED},
    "shifted": {"rows": SHIFTED, "half": SHIFTED.half(), "cost": SHIFTED},
    "no_checks": {"refused": RIGHT},
}


HINTS = {
    "says_right": "Right numbers, but one by one.",
    "one_part": "Nothing is shared.",
    "other_part": "Nothing is shared.",
}
"""Hints of mistakes that are not told by their name."""


def named(student: Answers) -> tuple[str, list[str]]:
    found = name(student, MISTAKES)
    return (found.first.mistake if found.first else ""), [
        slip.mistake for slip in found.slips
    ]


def test_a_mistake_alone_is_named_with_the_tests_that_it_explains() -> None:
    found = name(MISTAKES["inverted"], MISTAKES)
    assert found.first is not None
    assert (found.first.mistake, found.first.hint) == ("inverted", "about inverted")
    assert found.first.tests == ("rows", "half", "cost")
    assert found.slips == ()


def test_of_two_that_answer_alike_the_dearer_one_is_named() -> None:
    """`vague` keeps half of the question, and `hollow` nothing: the same answers, and one price."""
    known = dict.fromkeys(("vague", "hollow"), MISTAKES["inverted"])
    found = name(known["vague"], known)
    assert found.first is not None
    assert (found.first.mistake, found.first.keeps) == ("hollow", 0.0)


def test_a_second_fault_does_not_hide_the_first_and_is_named_after_it() -> None:
    assert named({**MISTAKES["inverted"], "refused": RIGHT}) == (
        "inverted",
        ["no_checks"],
    )


def test_a_small_fault_of_many_points_lost_is_no_place_to_look_first() -> None:
    elsewhere = torch.tensor([7.0, 7.0], dtype=torch.float64)
    assert named({"rows": elsewhere, "half": elsewhere.half(), "refused": RIGHT}) == (
        "",
        ["no_checks"],
    )


@pytest.mark.parametrize(
    ("answer", "expected"),
    [(torch.zeros(3), "no_checks"), ("TypeError", "lacks_a_check")],
    ids=["answer", "error"],
)
def test_any_answer_to_a_call_that_is_refused_lacks_the_check(
    answer: Tensor | str, expected: str
) -> None:
    """`no_checks` answers [1.25, 2.5] there, and which numbers come is chance. Where an error ends
    the call, another check may be missing, or only be wrong.
    """
    assert named({"refused": answer}) == (expected, [])


def test_an_error_that_ends_right_calls_too_says_nothing_of_checks() -> None:
    assert named({"rows": "TypeError", "refused": "TypeError"}) == ("", [])
    assert named({"rows": "KeyError", "refused": "TypeError"}) == (
        "",
        ["lacks_a_check"],
    )


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ("cell f, line 3, in f: return table[ids]", "breaks"),
        ('cell f, line 2, in f: raise IndexError(f"id: {i}")', "lacks_a_check"),
        ("cell f, line 2, in <lambda>: assert ids.max() < 3", "lacks_a_check"),
    ],
    ids=["torch's", "its own", "assert"],
)
def test_an_error_of_its_own_shows_that_a_check_is_there(
    frame: str, expected: str
) -> None:
    """The mistake looks at nothing, and the error comes out of torch."""
    error = Call("f", (), {}, fault=StudentError("IndexError", "id: 9", (frame,)))
    found = name({"refused": error}, {"breaks": {"refused": "IndexError"}}).first
    assert found is not None
    assert found.mistake == expected


def test_a_missing_check_has_a_general_name_where_two_mistakes_may_be_meant() -> None:
    known: dict[str, Answers] = {"lets_all_through": {"refused": SHIFTED}, **MISTAKES}
    found = name({"refused": "TypeError"}, known).first
    assert found is not None
    assert found.mistake == "lacks_a_check"
    assert "your function ends in another error" in found.hint


def test_which_error_comes_where_a_check_is_missing_is_chance() -> None:
    """A shape that torch refuses in other words; a ValueError is what was asked for."""
    known: dict[str, Answers] = {"breaks": {"refused": "RuntimeError"}}
    for error, expected in (("IndexError", "breaks"), ("ValueError", "")):
        found = name({"refused": error}, known).first
        assert (found.mistake if found else "") == expected


def test_a_function_that_always_raises_an_error_lacks_no_check() -> None:
    raises: Answers = dict.fromkeys(KEY, "NotImplementedError")
    found = name(raises, MISTAKES)
    assert (found.first, found.slips) == (None, ())


def test_a_check_that_no_mistake_leaves_out_is_missed_beside_another_one() -> None:
    """No known mistake fails "refused"; one fails "rows", the dearest test, or nobody knows it."""
    known = {"inverted": MISTAKES["inverted"]}
    found = name({**MISTAKES["inverted"], "refused": RIGHT}, known)
    assert found.first is not None
    assert found.first.mistake == "inverted"
    (slip,) = found.slips
    assert (slip.mistake, slip.tests) == ("lacks_a_check", ("refused",))
    assert "your function answers it" in slip.hint
    # without a price of its own: half of 9 points, and the point of the test
    assert points_lost(["rows", "half", "cost", "refused"], POINTS, found.prices) == 5.5
    nameless = name({"half": SHIFTED.half(), "refused": RIGHT}, known)
    assert nameless.first is None
    assert [slip.mistake for slip in nameless.slips] == ["lacks_a_check"]
    assert nameless.evidence == (
        "In 1 of the 2 tests that fail, your function answers, and the answer is not the right "
        "one: the message says more."
    )


def test_of_two_missing_checks_the_one_that_answers_alike_is_named() -> None:
    known: dict[str, Answers] = {"cut": {"refused": SHIFTED}, **MISTAKES}
    for answer, expected in ((SHIFTED, "cut"), (RIGHT, "no_checks")):
        first = name({"refused": answer}, known).first
        assert first is not None
        assert first.mistake == expected


def test_another_answer_to_one_test_does_not_rule_a_mistake_out() -> None:
    without_upcast = torch.tensor([2.5, 1.25], dtype=torch.float16)
    assert named({**MISTAKES["inverted"], "half": without_upcast}) == ("inverted", [])


def test_a_mistake_that_fails_what_the_student_passes_loses_to_one_that_does_not() -> (
    None
):
    milder: dict[str, Answers] = {"milder": {"rows": INVERTED}, **MISTAKES}
    found = name({"rows": INVERTED}, milder)
    assert found.first is not None
    assert found.first.mistake == "milder"


def three_times(answers: Answers) -> Answers:
    return {
        test: 3 * answer
        for test, answer in answers.items()
        if isinstance(answer, Tensor)
    }


UNSCALED: Answers = three_times(KEY)
PAIRS: dict[str, Answers] = {
    **MISTAKES,
    "unscaled": UNSCALED,
    "unturned": {"rows": SHIFTED},
    "inverted and unscaled": three_times(MISTAKES["inverted"]),
    "unscaled and unturned": {"rows": torch.tensor([8.0, 8.0], dtype=torch.float64)},
}
"""With two that can be made at once with `unscaled`; the two of them touch the same place."""


def test_two_mistakes_in_one_call_are_named_where_neither_explains_it() -> None:
    found = name(PAIRS["inverted and unscaled"], PAIRS)
    assert found.first is not None
    assert (found.first.mistake, [slip.mistake for slip in found.slips]) == (
        "inverted",
        ["unscaled"],
    )
    assert found.first.tests == ("rows", "half", "cost")
    # rows, half and cost are 8 of 9 points, and each of the two keeps half of 9: together they cost
    # 8, and not 4.5
    assert [price.points for price in found.prices] == [4.5, 4.5]
    assert points_lost(["rows", "half", "cost"], POINTS, found.prices) == 8.0


def test_each_of_two_mistakes_is_told_beside_the_tests_that_it_fails_by_itself() -> (
    None
):
    """Only `unscaled` fails "cost": the hint of `inverted` would be false there."""
    known: dict[str, Answers] = {
        "inverted": {"rows": INVERTED, "half": INVERTED.half()},
        "unscaled": UNSCALED,
    }
    both = {**three_times(known["inverted"]), "cost": UNSCALED["cost"]}
    found = name(both, {**known, "inverted and unscaled": both})
    assert found.first is not None
    diagnoses = (found.first, *found.slips)
    assert {diagnosis.mistake: diagnosis.tests for diagnosis in diagnoses} == {
        "inverted": ("rows", "half"),
        "unscaled": ("rows", "half", "cost"),
    }


def test_a_test_that_only_two_mistakes_together_fail_is_charged_beside_their_prices() -> (
    None
):
    """By themselves they lose 4.5 (half of 9) and 2 points; together 8, and not 6.5."""
    known: dict[str, Answers] = {
        "inverted": {"rows": INVERTED, "half": INVERTED.half()},
        "unscaled": {"half": UNSCALED["half"]},
    }
    both = three_times(MISTAKES["inverted"])
    found = name(both, {**known, "inverted and unscaled": both})
    assert found.first is not None
    assert {found.first.mistake, *[slip.mistake for slip in found.slips]} == set(known)
    assert [price.points for price in found.prices] == [4.5, 2.0]
    assert points_lost(["rows", "half", "cost"], POINTS, found.prices) == 8.0


def test_two_mistakes_without_a_test_in_common_are_named_where_they_fail_all_that_failed() -> (
    None
):
    """As where a NaN of one becomes 0 by the other: no answer is that of either."""
    known: dict[str, Answers] = {
        "inverted": {"rows": INVERTED, "half": INVERTED.half()},
        "unscaled": {"cost": UNSCALED["cost"]},
    }
    zeros = torch.zeros(2, dtype=torch.float64)
    both: Answers = {"rows": zeros, "half": zeros.half(), "cost": zeros}
    found = name(both, {**known, "inverted and unscaled": both})
    assert found.first is not None
    diagnoses = (found.first, *found.slips)
    assert {diagnosis.mistake: diagnosis.tests for diagnosis in diagnoses} == {
        "inverted": ("rows", "half"),
        "unscaled": ("cost",),
    }
    # "refused" fails besides, of which neither says anything: a pair would be a KeyError
    nameless = name({**both, "refused": RIGHT}, known)
    assert nameless.first is None
    assert [slip.mistake for slip in nameless.slips] == ["lacks_a_check"]


def test_a_changed_argument_does_not_explain_gradients_that_are_wrong() -> None:
    changed = Call("f", (), {}, result=RIGHT, changed=("x",))
    both = dataclasses.replace(changed, gradients=[SHIFTED])
    known: dict[str, Answers] = {"writes": {"rows": changed, "cost": changed}}
    found = name({"rows": changed, "cost": both}, known)
    assert found.first is not None
    assert (found.first.mistake, found.first.tests) == ("writes", ("rows",))


def test_a_mistake_about_one_argument_says_nothing_of_another() -> None:
    changes = {
        argument: Call("f", (), {}, result=RIGHT, changed=(argument,))
        for argument in ("mask", "scores")
    }
    known: dict[str, Answers] = {"writes_into_scores": {"rows": changes["scores"]}}
    assert name({"rows": changes["mask"]}, known).first is None
    first = name({"rows": changes["scores"]}, known).first
    assert first is not None
    assert first.mistake == "writes_into_scores"


def test_a_mistake_about_a_dtype_says_nothing_of_another_dtype(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = torch.tensor([3.0, 4.0], dtype=torch.float64)
    monkeypatch.setitem(KEY, "rows", right)
    known: dict[str, Answers] = {"whole": {"rows": right.to(torch.int64)}}
    for dtype, expected in ((torch.int64, "whole"), (torch.float32, "")):
        first = name({"rows": right.to(dtype)}, known).first
        assert (first.mistake if first else "") == expected


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [([0.0, 1.0], ""), ([7.0, 0.25], "fills_with_a_number")],
    ids=["many causes", "its own numbers"],
)
def test_a_few_numbers_that_many_mistakes_have_name_none(
    numbers: list[float], expected: str
) -> None:
    """The mistake explains two of nine points, and nobody knows what else is wrong."""
    cost = torch.tensor([*numbers, 1.5 * numbers[0]], dtype=torch.float64)
    nothing = torch.full((3,), 5.5, dtype=torch.float64)
    student: Answers = {"rows": nothing, "half": nothing.half(), "cost": cost}
    found = name(student, {"fills_with_a_number": {"cost": cost}})
    assert [slip.mistake for slip in found.slips] == [expected][: bool(expected)]
    # it has a price either way
    assert points_lost(["rows", "half", "cost"], POINTS, found.prices) == 8.0


def test_several_mistakes_that_explain_all_are_named_whatever_their_numbers() -> None:
    """`zeros` would fail `cost` with other numbers; that it fails as `ones` does explains it."""
    zeros, ones = (
        torch.zeros(2, dtype=torch.float64),
        torch.ones(2, dtype=torch.float64),
    )
    known: dict[str, Answers] = {
        "zeros": {"rows": zeros, "cost": zeros},
        "ones": {"cost": ones},
    }
    found = name({"rows": zeros, "cost": ones}, known)
    assert found.first is not None
    assert found.first.mistake == "zeros"
    assert [slip.mistake for slip in found.slips] == ["ones"]
    alone = name({"rows": zeros, "cost": 2 * RIGHT}, known)
    assert (alone.first, alone.slips) == (None, ())


def test_what_a_changed_argument_shows_in_every_test_weighs_as_one_test() -> None:
    """Nine points fail and five are charged, three of them for what the mistake does: more than
    half, so it is the place to look first.
    """
    rows = Call("f", (), {}, result=RIGHT, changed=("x",))
    half = Call("f", (), {}, result=RIGHT.half(), changed=("x",))
    found = name(
        {"rows": rows, "half": half, "cost": SHIFTED, "refused": RIGHT},
        {"shifted": {"cost": SHIFTED, "refused": RIGHT}},
        causes={"rows": "changed argument", "half": "changed argument, asked for"},
    )
    assert found.first is not None
    assert (found.first.mistake, found.first.tests) == ("shifted", ("refused", "cost"))


def test_pairs_do_not_run_where_one_mistake_explains_half() -> None:
    without = {
        mistake: answers for mistake, answers in PAIRS.items() if " and " not in mistake
    }
    assert (
        name(UNSCALED, without).first is not None
    )  # running a pair would be a KeyError


def test_a_mistake_about_cost_is_no_part_of_a_pair_where_the_numbers_are_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(KEY, "cost", costing(10, 1, 1, 1, 1))
    known: dict[str, Answers] = {
        "inverted": MISTAKES["inverted"],
        "unscaled": {"cost": costing(900, 1, 1, 1, 1)},
    }
    other = torch.tensor([7.0, 7.0], dtype=torch.float64)
    # a pair would be a KeyError
    answer = name({"rows": other, "half": other.half(), "cost": other}, known)
    assert dataclasses.replace(answer, evidence="") == NamedMistakes()


def test_two_changes_of_one_place_are_no_pair() -> None:
    inverted, unscaled, unturned = (
        KnownAnswer("f", n, "", "", changes=c) for n, c in CHANGES.items()
    )
    assert combine_answers([inverted, unturned], KEY_CELL) is None
    made = combine_answers([inverted, unscaled], KEY_CELL)
    assert made is not None
    assert (made.name, made.cell) == (
        "inverted and unscaled",
        "def f(x):\n    return left(kept(x))\n",
    )
    assert (
        combine_answers([inverted, KnownAnswer("f", "own", "", "")], KEY_CELL) is None
    )


def lost(student: Answers, mistakes: dict[str, Answers]) -> float:
    """The points of nine that an answer loses which fails the tests it has an answer for."""
    return points_lost(list(student), POINTS, name(student, mistakes).prices)


def test_a_slip_costs_half_and_a_missing_check_beside_it_what_it_costs_by_itself() -> (
    None
):
    assert lost(MISTAKES["inverted"], MISTAKES) == 4.5
    assert lost(MISTAKES["no_checks"], MISTAKES) == 1.0
    assert lost({**MISTAKES["inverted"], "refused": RIGHT}, MISTAKES) == 5.5
    # an answer there is none, so that there is nothing to compare
    hung = Call("f", (), {}, fault=StudentMissing("f"))
    assert lost({**MISTAKES["inverted"], "refused": hung}, MISTAKES) == 5.5


def test_a_refusal_that_is_withheld_costs_nothing_beside_wrong_values_and_its_points_beside_errors() -> (
    None
):
    """f refuses what it should, which counts once it answers rightly elsewhere. Wrong values are
    the slip's doing; a function that raises everywhere has shown no answer.
    """
    wrong = name(MISTAKES["inverted"], MISTAKES, refusing="refused")
    assert points_lost(["rows", "half", "cost", "refused"], POINTS, wrong.prices) == 4.5
    raises: Answers = dict.fromkeys(["rows", "half", "cost"], "TypeError")
    errors = name(raises, {"breaks": {"half": "TypeError"}}, refusing="refused")
    assert errors.slips == ()  # a TypeError has many causes
    assert (
        points_lost(["rows", "half", "cost", "refused"], POINTS, errors.prices) == 9.0
    )


def test_a_slip_is_priced_where_a_second_fault_changes_most_of_its_answers() -> None:
    """cost (2 of 9 points) alone shows it; what half precision and rows give is another's doing,
    and it fails both.
    """
    other = torch.tensor([4.5, 3.25], dtype=torch.float64)
    assert (
        lost({"rows": INVERTED, "cost": other, "half": other.half()}, MISTAKES) == 4.5
    )
    assert lost({"rows": other, "cost": other, "half": other.half()}, MISTAKES) == 8.0


@pytest.mark.parametrize(
    ("numbers", "expected"), [(SHIFTED, "shifts"), (RIGHT * math.nan, "")]
)
def test_nan_in_one_part_of_an_answer_says_nothing(
    numbers: Tensor, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The student's count is wrong as well, the mistake's is right."""

    def answer(count: int, rows: Tensor) -> Call:
        return Call("f", (), {}, result=(count, rows))

    monkeypatch.setitem(KEY, "rows", answer(1, RIGHT))
    known: dict[str, Answers] = {"shifts": {"rows": answer(1, numbers)}}
    first = name({"rows": answer(0, numbers)}, known).first
    assert (first.mistake if first else "") == expected


def test_what_nobody_knows_has_no_name() -> None:
    assert named({"rows": torch.tensor([5.0, 5.0], dtype=torch.float64)}) == ("", [])


def test_a_mistake_about_cost_is_not_named_where_the_numbers_are_wrong() -> None:
    loops: dict[str, Answers] = {
        "loops": {"cost": Call("f", (), {}, result=RIGHT, cost=Cost(900, 1, 1, 1, 1))},
        **MISTAKES,
    }
    answer = name({"cost": SHIFTED, "rows": torch.zeros(2).double()}, loops)
    assert dataclasses.replace(answer, evidence="") == NamedMistakes()


@pytest.mark.parametrize("mistake", ["loops", "says_right"])
def test_wrong_numbers_elsewhere_withhold_a_hint_that_says_that_they_are_right(
    monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    monkeypatch.setitem(KEY, "cost", costing(10, 1, 1, 1, 1))
    slow = costing(900, 1, 1, 1, 1)
    student: Answers = {"cost": slow, "half": SHIFTED.half()}
    found = name(student, {mistake: {"cost": slow}})
    named_mistakes = [each.mistake for each in (found.first, *found.slips) if each]
    assert named_mistakes == (["loops"] if mistake == "loops" else [])


def test_two_mistakes_with_one_hint_are_told_once() -> None:
    known: dict[str, Answers] = {
        "one_part": {"rows": INVERTED},
        "other_part": {"half": INVERTED.half()},
    }
    found = name({**known["one_part"], **known["other_part"]}, known)
    assert found.first is not None
    assert (found.first.tests, found.slips) == (("rows", "half"), ())
    # each of the two keeps half of 9 points, and fails fewer by itself
    assert [price.points for price in found.prices] == [4.0, 2.0]


def costing(*figures: int) -> Call:
    return Call("f", (), {}, result=RIGHT, cost=Cost(*figures))


def test_what_an_answer_leaves_behind_is_no_number_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The suite's own code sees other dice than it should: that makes no number of the student's
    wrong.
    """
    monkeypatch.setitem(KEY, "cost", costing(10, 1, 1, 1, 1))
    loops = costing(900, 100, 1, 1, 1)
    student: Answers = {
        "cost": loops,
        "half": Call("f", (), {}, result=SHIFTED, of_suite=True),
    }
    found = name(student, {"loops": {"cost": loops}})
    assert found.first is not None
    assert (found.first.mistake, found.first.tests) == ("loops", ("cost",))


@pytest.mark.parametrize("is_refused", [False, True])
def test_what_a_refused_call_leaves_behind_is_no_number_either(
    is_refused: bool,
) -> None:
    """Two free blocks where three are right, behind a call that was refused or answered."""
    error = StudentError("ValueError", "no") if is_refused else None
    before = Call("f", (), {}, fault=error)
    runs = {
        answerer: TestRun(
            "refused", Verdict("failed"), (before, Call("free", (), {}, result=blocks))
        )
        for answerer, blocks in (("student", 2), ("key", 3))
    }
    departures = (frozenset[str](), frozenset({"value"}))
    answer = StudentAnswer(
        failed={"refused": runs["student"]},
        key_runs={"refused": runs["key"]},
        departures={"refused": departures},
        passed=frozenset(),
    )
    assert answer.has_wrong_values is not is_refused


def test_a_way_of_costing_too_much_is_named_by_what_is_larger_and_not_by_checks_that_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Memory grew in both known ways, in one of them what was moved too; the student's has fewer
    operations.
    """
    monkeypatch.setitem(KEY, "cost", costing(10, 100, 10, 10, 10))
    known: dict[str, Answers] = {
        "kept": {"cost": costing(10, 100, 10, 50, 10)},
        "matrix": {"cost": costing(20, 100, 50, 50, 50)},
    }
    found = name({"cost": costing(6, 100, 50, 50, 50)}, known)
    assert found.first is not None
    assert found.first.mistake == "matrix"
    nameless = name({"cost": costing(90, 100, 10, 10, 10)}, known)
    assert (nameless.first, nameless.slips, nameless.prices) == (None, (), ())
    assert nameless.evidence == (
        "In the test that fails, your answers are right, and the work that your function does "
        "for them is not as asked: the message says more."
    )


def test_a_mistake_does_not_explain_what_comes_behind_the_end_of_its_run() -> None:
    """The mistake answers the first call in float32, which ends its test. The student's answer has
    the same numbers in float64, and the test goes on to a call that should be refused.
    """
    refused = Call("f", (), {}, fault=StudentError("ValueError", "no"))
    unrefused = Call("f", (), {}, fault=StudentError("IndexError", "0"))
    key_run = TestRun(
        "test", Verdict("passed"), (Call("f", (), {}, result=RIGHT), refused)
    )
    wrong = Call("f", (), {}, result=SHIFTED)
    mistake_run = TestRun(
        "test", Verdict("failed"), (Call("f", (), {}, result=SHIFTED.float()),)
    )
    record: Any = SimpleNamespace(
        run=lambda _: mistake_run,
        departures=lambda _, key: list_departures(mistake_run, key),
    )
    for calls, is_explained in (((wrong, unrefused), False), ((wrong,), True)):
        run = TestRun("test", Verdict("failed"), calls)
        answer = StudentAnswer(
            failed={"test": run},
            key_runs={"test": key_run},
            departures={"test": list_departures(run, key_run)},
            passed=frozenset(),
        )
        assert explains(record, "test", answer) is is_explained


@pytest.mark.parametrize("operations", [800, 1000])
def test_a_mistake_about_cost_is_named_by_what_costs_more(operations: int) -> None:
    key = {**KEY, "cost": Call("f", (), {}, result=RIGHT, cost=Cost(10, 1, 1, 1, 1))}
    mine = Call("f", (), {}, result=RIGHT, cost=Cost(operations, 1, 1, 1, 1))
    assert find_departures(mine, key["cost"]) == {"cost of operations"}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("dtype", "off", "expected"),
    [
        (torch.float64, 2e-7, True),
        (torch.float64, 2e-5, False),
        (torch.float32, 2e-5, True),
        (torch.float32, 2e-3, False),
        (torch.float16, 2e-3, True),
        (torch.float16, 4e-2, False),
    ],
)
def test_rounding_depends_on_the_dtype(
    dtype: torch.dtype, off: float, expected: bool
) -> None:
    one = torch.ones(3, dtype=torch.float64)
    # against the key's zeros both are far off, so that the share of a second fault does not decide:
    # 2 % of 1/rounding
    mine, theirs = (
        Call("f", (), {}, result=(one + off).to(dtype)),
        Call("f", (), {}, result=one.to(dtype)),
    )
    right = Call("f", (), {}, result=(one + 8 * off).to(dtype))
    assert answers_agree(mine, theirs, right) is expected


@pytest.mark.parametrize(("factor", "expected"), [(1.004, "coarse"), (0.996, "")])
def test_below_rounding_a_mistake_is_named_that_is_nearer_than_the_answer_key(
    factor: float, expected: str
) -> None:
    """A test that allows less than half precision's rounding, 1 %, has failed both."""
    student: Answers = {"half": (1.003 * RIGHT).half()}
    mistakes: dict[str, Answers] = {"coarse": {"half": (factor * RIGHT).half()}}
    first = name(student, mistakes).first
    assert (first.mistake if first else "") == expected


def test_distance_is_measured_in_roundings_of_the_coarser_dtype() -> None:
    assert distance(
        torch.tensor([1.0 + 2e-4]).double(), torch.tensor([1.0])
    ) == pytest.approx(2.0, rel=1e-3)
    assert distance(torch.tensor([1.0]), torch.tensor([[1.0]])) == math.inf
    assert (
        distance(torch.tensor([True, False]), torch.tensor([1, 0], dtype=torch.uint8))
        == 0
    )
    assert distance(torch.tensor([True, False]), torch.tensor([1, 1])) == math.inf
    assert distance([1, "a"], (1, "a")) == 0
    assert distance(True, 1) == math.inf
    assert distance(torch.tensor([math.inf, 1.0]), torch.tensor([1.0, 1.0])) == math.inf


def test_errors_that_mean_a_hundred_things_agree_by_their_words() -> None:
    def raising(kind: str, message: str) -> Call:
        return Call("f", (), {}, fault=StudentError(kind, message))

    assert answers_agree(
        raising("RuntimeError", "size 4 must match 5"),
        raising("RuntimeError", "size 4 must match 5"),
        None,
    )
    assert not answers_agree(
        raising("RuntimeError", "size 4 must match 5"),
        raising("RuntimeError", "size 7 must match 3"),
        None,
    )
    assert not answers_agree(
        raising("RuntimeError", "size 4 must match 5"),
        raising("RuntimeError", "expected half"),
        None,
    )
    assert answers_agree(
        raising("ValueError", "mine"), raising("ValueError", "theirs"), None
    )
    assert not answers_agree(raising("ValueError", ""), raising("TypeError", ""), None)
    load = raising(
        "MemoryFault", "program 1 reads k[5, 0], and k has 5 rows (its shape is [5, 4])"
    )
    same_load = raising("MemoryFault", "program 0 reads k[7, 2], and k has 7 rows")
    other_load = raising("MemoryFault", "program 0 reads q[7, 0], and q has 7 rows")
    store = raising("MemoryFault", "program 1 writes out[5, 0], and out has 5 rows")
    other_store = raising("MemoryFault", "program 2 writes y[9, 1], and y has 9 rows")
    stride = raising("MemoryFault", "program 1 reads memory between the elements of k")
    assert answers_agree(load, same_load, None)
    assert not answers_agree(load, other_load, None)  # its hint would name k
    assert answers_agree(store, other_store, None)  # the wrapper's tensor has any name
    assert not answers_agree(load, store, None)
    assert not answers_agree(load, stride, None)


def test_values_stand_for_every_row_by_itself() -> None:
    """A row of large numbers does not hide a wrong row of small ones."""
    small_row_wrong = torch.tensor([[1000.0, 2000.0], [0.001, 0.003]])
    assert (
        distance(small_row_wrong, torch.tensor([[1000.0, 2000.0], [0.001, 0.002]]))
        > 1000
    )


def test_records_are_kept_with_what_a_call_cost_and_brought_back() -> None:
    from autograder.diagnosis.known_runs import _restore_call, _store_call, _StoredCall
    from autograder.wire.frames import pack, unpack
    from autograder.wire.values import Decoder, Encoder

    call = Call(
        "f",
        (),
        {},
        result=RIGHT,
        cost=Cost(1, 2, 3, 4, 5),
        gradients=[[INVERTED, None]],
    )
    encoder = Encoder(lambda _: None)
    stored = decode_stored(
        encode_line(_store_call(call, encoder)).decode(), _StoredCall
    )
    back = _restore_call(stored, Decoder(unpack(pack(encoder.tensors))))
    assert back.cost == call.cost
    assert back.gradients[0][0].tolist() == [2.5, 1.25]
    assert back.gradients[0][1] is None

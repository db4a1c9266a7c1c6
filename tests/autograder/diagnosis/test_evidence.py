"""Mistakes that show by evidence or in part, and repairs, on answers worked out by hand."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from autograder.course import Limits
from autograder.diagnosis.asking import Asker
from autograder.diagnosis.diagnostician import Diagnostician, NamedMistakes
from autograder.diagnosis.evidence import fit_by_evidence
from autograder.diagnosis.known_sitting import AnswerRecord, KnownSitting
from autograder.diagnosis.mistake_fit import StudentAnswer
from autograder.diagnosis.smallest_repair import find_evidence
from autograder.sitting.pricing import points_lost
from autograder.sitting.sitting import TestRun
from autograder.sitting.verdict import Verdict
from autograder.suite.calls import Call
from autograder.suite.collection import SuiteQuestion, SuiteTest
from autograder.suite.known_answers import KnownAnswer
from autograder.suite.sight import Sight, Unseen

Function = Callable[[torch.Tensor], Any]
POINTS = {"first": 3.0, "second": 5.0, "third": 2.0}
QUESTION = SuiteQuestion(
    "f", tuple(SuiteTest(name, p, "") for name, p in POINTS.items()), (), ()
)
INPUTS = {
    "first": torch.tensor([[1.0, 2.0], [3.0, 5.0]]).double(),
    "second": torch.tensor(
        [[0.0, 1.0, 4.0], [2.0, 2.5, 1.0], [7.0, 0.5, 3.0]]
    ).double(),
    "third": torch.tensor([[2.0, -1.0], [0.5, 1.5], [1.0, 0.25]]).double(),
}


def key(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=-1)


def over_columns(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=-2)


def doubled(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(2 * x, dim=-1)


class NothingKept:
    def load(self, *_: str) -> None:
        return None

    def save_and_reload(self, _: str, runs: Sequence[TestRun]) -> Sequence[TestRun]:
        return runs


def run_all(function: Function) -> dict[str, TestRun]:
    runs = {}
    for test, x in INPUTS.items():
        answer = function(x)
        passed = isinstance(answer, torch.Tensor) and torch.equal(answer, key(x))
        verdict = Verdict("passed" if passed else "failed")
        runs[test] = TestRun(
            test, verdict, (Call("f", (x,), {}, result=answer),), distances=(9.0,)
        )
    return runs


class Submission:
    """Stands for a worker: the student's function, called again."""

    def __init__(self, function: Function) -> None:
        self.f = function
        self.opened = 0

    def open(self) -> Any:
        self.opened += 1
        return self


def known_sitting(functions: Sequence[Function]) -> KnownSitting:
    """A sitting of functions that stand for known mistakes of the same name, and of the key."""
    by_name = {function.__name__: function for function in functions}

    def run_known(_: Any, answer: KnownAnswer | None, tests: Any) -> dict[str, TestRun]:
        runs = run_all(by_name[answer.name] if answer else key)
        return {test: runs[test] for test in tests}

    nothing: Any = None
    kept: Any = NothingKept()
    sitting: Any = KnownSitting(nothing, nothing, nothing, kept)
    sitting.run = run_known
    checked: KnownSitting = sitting
    return checked


def name(student: Function, *mistakes: tuple[Function, str]) -> NamedMistakes:
    functions = [function for function, _ in mistakes]
    known = [
        KnownAnswer(
            "f", function.__name__, f"about {function.__name__}", "", 0.5, shows=shows
        )
        for function, shows in mistakes
    ]
    sitting = known_sitting(functions)
    asker = Asker(Submission(student).open, {"f": lambda x: key(x)}, Limits())
    return Diagnostician(sitting, known, {"f": ""}).name_mistakes(
        QUESTION, run_all(student), asker
    )


COLUMNS = (over_columns, "sums_to_one(-2)")
DOUBLED = (doubled, "scores_off_by()")


def test_a_mistake_shows_beside_a_fault_that_nobody_knows() -> None:
    """The scores are tripled as well: no known mistake gives these numbers."""
    named = name(lambda x: torch.softmax(3 * x, dim=-2), COLUMNS)
    assert named.first is not None
    assert (named.first.mistake, named.first.tests) == ("over_columns", tuple(POINTS))
    assert points_lost(list(POINTS), POINTS, named.prices) == 5.0


def test_two_mistakes_show_in_the_same_answers() -> None:
    named = name(lambda x: torch.softmax(2 * x, dim=-2), COLUMNS, DOUBLED)
    assert named.first is not None
    assert named.first.mistake == "over_columns"


def test_mistakes_that_show_alike_are_told_by_what_they_show() -> None:
    """Which of the two it is nobody knows, and either hint may be false."""
    named = name(
        lambda x: torch.softmax(3 * x, dim=-2), COLUMNS, (doubled, "sums_to_one(-2)")
    )
    assert named.first is not None
    assert named.first.mistake == "over_columns"
    assert (
        named.first.hint
        == "In the calls that are wrong, your answer sums to 1 along axis -2."
    )


def test_of_many_right_answers_the_last_call_of_a_test_shows_the_mistake() -> None:
    """Two answers with rows that sum to 1, other ones than the key's, and then one that is wrong:
    all three differ from the key's, and the test goes on after right ones.
    """
    x = INPUTS["second"]
    calls = [
        Call("f", (x,), {}, result=answer)
        for answer in (doubled(x), doubled(x), torch.softmax(3 * x, dim=-2))
    ]
    key_calls = [Call("f", (x,), {}, result=key(x))] * 3
    runs = {"second": TestRun("second", Verdict("failed"), tuple(calls))}
    key_runs = {"second": TestRun("second", Verdict("passed"), tuple(key_calls))}
    for is_free, places in ((False, [0, 1]), (True, [2])):
        asker = Asker(None, {"f": lambda x: key(x)}, Limits(), is_free=is_free)
        sights = asker.sights(runs, key_runs)["second"]
        assert [place for place, _ in sights] == places


def answered_before(run: TestRun) -> TestRun:
    """The run of a student who answered one more call, in another right way than the key."""
    (call,) = run.calls
    earlier = Call("f", call.arguments, {}, result=doubled(call.arguments[0]))
    return dataclasses.replace(run, calls=(earlier, call))


def test_of_many_right_answers_a_mistake_may_be_wrong_in_an_earlier_call() -> None:
    """`over_columns` ends each test with its first call, the student with the second."""
    asker = Asker(None, {"f": lambda x: key(x)}, Limits(), is_free=True)
    runs = run_all(lambda x: torch.softmax(3 * x, dim=-2))
    failed = {test: answered_before(run) for test, run in runs.items()}
    key_runs = {test: answered_before(run) for test, run in run_all(key).items()}
    both_wrong = (frozenset({"value"}), frozenset({"value"}))
    departures = dict.fromkeys(failed, both_wrong)
    answer = StudentAnswer(failed, key_runs, departures, passed=frozenset())
    mistake = KnownAnswer("f", "over_columns", "", "", 0.5, shows="sums_to_one(-2)")
    record = AnswerRecord(mistake, QUESTION, known_sitting([over_columns]))
    sights = asker.sights(failed, key_runs)
    assert fit_by_evidence(record, answer, sights) is None
    fit = fit_by_evidence(record, answer, sights, is_free=True)
    assert fit is not None
    assert fit.explained == set(POINTS)


def test_exact_agreement_comes_before_evidence() -> None:
    named = name(doubled, (over_columns, "scores_off_by()"), DOUBLED)
    assert named.first is not None
    assert named.first.mistake == "doubled"
    assert named.slips == ()


def test_an_answer_that_shows_the_contrary_is_not_named() -> None:
    named = name(
        lambda x: torch.softmax(x + x.mT if len(x) == len(x[0]) else x, -1), COLUMNS
    )
    assert named.first is None


def test_most_of_the_numbers_are_those_of_a_mistake() -> None:
    """A second fault spoils the last row alone; the mistake has no predicate."""

    def spoiled(x: torch.Tensor) -> torch.Tensor:
        answer = doubled(x)
        return torch.cat([answer[:-1], 7 + answer[-1:]]) if len(x) > 2 else answer

    named = name(spoiled, (doubled, ""))
    assert named.first is not None
    assert named.first.mistake == "doubled"


def test_numbers_that_are_right_speak_against_a_mistake() -> None:
    """Half of the rows are right: not the doing of a mistake that spoils all of them."""

    def half_right(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([doubled(x)[:2], key(x)[2:]])

    named = name(half_right, (doubled, ""))
    assert "second" not in (named.first.tests if named.first else ())


def as_an_array(x: torch.Tensor) -> Any:
    return key(x).numpy()


def test_a_type_shows_beside_wrong_numbers_that_are_known() -> None:
    """The numbers are doubled's in two tests. The third calls another function of the student's, as
    a test of gradients would, of which the type alone is known: 5 points for each mistake.
    """

    def student(x: torch.Tensor) -> Any:
        is_third = x[0, 0] == 2.0
        return (7 + x).numpy() if is_third else doubled(x).numpy()

    named = name(student, (doubled, ""), (as_an_array, ""))
    assert named.first is not None
    assert (named.first.mistake, named.first.tests) == ("doubled", ("first", "second"))
    assert [(slip.mistake, slip.tests) for slip in named.slips] == [
        ("as_an_array", ("third",))
    ]
    assert points_lost(list(POINTS), POINTS, named.prices) == 10.0


def test_a_type_says_nothing_of_numbers_that_nobody_knows() -> None:
    """Or any numbers at all would cost no more than the type."""
    named = name(lambda x: (x * x).numpy(), (as_an_array, ""))
    assert (named.first, named.slips, named.prices) == (None, (), ())


WRONG = "In the calls that are wrong, your answer"


@pytest.mark.parametrize(
    ("student", "text"),
    [
        (lambda x: 3 * key(x), "is right up to one factor everywhere, 3."),
        (
            lambda x: key(x) / x.shape[-2],
            "is right up to one factor, one over the size of axis -2 of `x`.",
        ),
        (lambda x: key(x).mT, "has axes -2 and -1 exchanged."),
        (lambda x: x + 0.5, "is right after a softmax along axis -1."),
        (
            lambda x: key(x).float(),
            "has the right numbers as float32 in place of float64.",
        ),
        (lambda x: key(x).unsqueeze(0), "has an axis of length one too many."),
        (lambda x: key(x).log(), "is log of the right one."),
    ],
)
def test_a_repair_is_diagnosis_and_price(student: Function, text: str) -> None:
    """Ten points in all: one repair costs 35 % of them."""
    named = name(student, (doubled, "same_along(0)"))
    assert named.first is None
    assert named.evidence == f"{WRONG} {text}"
    assert points_lost(list(POINTS), POINTS, named.prices) == pytest.approx(3.5)


def test_the_right_shape_with_wrong_numbers_is_no_repair() -> None:
    """An axis too many is taken away, and the numbers are still wrong."""
    named = name(lambda x: over_columns(x).unsqueeze(0), (doubled, "same_along(0)"))
    assert "axis" not in named.evidence
    assert points_lost(list(POINTS), POINTS, named.prices) == 10.0


@pytest.mark.parametrize(
    "student",
    [
        torch.zeros_like,
        torch.ones_like,
        lambda x: x,
        lambda x: torch.full_like(x, torch.nan),
    ],
)
def test_an_answer_without_an_idea_is_not_repaired(student: Function) -> None:
    named = name(student, COLUMNS)
    assert points_lost(list(POINTS), POINTS, named.prices) == 10.0
    assert named.evidence


@pytest.mark.parametrize(
    ("student", "text"),
    [
        (
            lambda x: torch.arange(x.numel()).view(x.shape).double(),
            "is the same whatever `x` is",
        ),
        (lambda x: x - x.mean(0), "has rows that change with later rows of `x`"),
        (torch.zeros_like, "is 0 everywhere"),
        (
            lambda x: torch.where(x == x.max(), 9.0, key(x)),
            "16 of the 19 numbers in your wrong answers are right.",
        ),
        (
            # the last entry of both batches is wrong alone, too
            lambda x: torch.where(x.amax(-1, keepdim=True) > 4, 0.0, key(x)),
            "8 of the 13 numbers in your wrong answers are right.",
        ),
    ],
)
def test_what_is_true_of_an_answer_that_nothing_repairs(
    student: Function, text: str
) -> None:
    named = name(student, COLUMNS)
    assert text in named.evidence
    assert points_lost(list(POINTS), POINTS, named.prices) == 10.0


def test_no_wrong_answers_show_nothing() -> None:
    assert find_evidence({"first": []}, ["first"], ["first"]) is None


def sight_of(answer: Any, right: Any) -> dict[str, list[tuple[int, Sight]]]:
    def ask_again(*_: object) -> Sight:
        raise Unseen("nothing can be asked")

    return {"first": [(0, Sight({}, answer, right, ask_again))]}


ONE_RIGHT = (torch.tensor([1.0, 7.0]), torch.tensor(9.0))
RIGHT = (torch.tensor([1.0, 2.0]), torch.tensor(3.0))


def test_the_parts_of_an_answer_that_are_right_are_told() -> None:
    """A count would mix the parts: two numbers here, one there."""
    answer = (torch.tensor([1.0, 2.0]), torch.tensor(9.0))
    evidence = find_evidence(sight_of(answer, RIGHT), ["first"], ["first"])
    assert evidence is not None
    assert evidence.text == (
        "In the calls that are wrong, `[0]` of your answer is right, and `[1]` not."
    )


def test_numbers_of_several_parts_are_not_counted_together() -> None:
    """Two tensors are no other form than two tensors, and one number of three is right."""
    evidence = find_evidence(sight_of(ONE_RIGHT, RIGHT), ["first"], ["first"])
    assert evidence is not None
    assert (
        evidence.text == "In the calls that are wrong, no part of your answer is right."
    )


def test_the_entries_of_a_dict_are_told_by_name() -> None:
    counts, right = {"norms": 14, "mlp": [5, 6]}, {"norms": 0, "mlp": [5, 6]}
    evidence = find_evidence(sight_of(counts, right), ["first"], ["first"])
    assert evidence is not None
    assert evidence.text == (
        "In the calls that are wrong, `['mlp']` of your answer is right, and `['norms']` not."
    )


def test_objects_are_compared_by_their_attributes() -> None:
    """Two tensors are not equal or unequal as a whole."""
    right = SimpleNamespace(weights=torch.tensor([1.0, 2.0]))
    evidence = find_evidence(sight_of(right, right), ["first"], ["first"])
    assert evidence is not None
    assert evidence.text.startswith("All numbers in your answers are right")


def test_of_whole_numbers_the_wrong_ones_are_counted() -> None:
    """Three of five are right, by chance maybe."""
    answer, right = torch.tensor([0, 1, 1, 0, 1]), torch.tensor([0, 1, 0, 1, 1])
    evidence = find_evidence(sight_of(answer, right), ["first"], ["first"])
    assert evidence is not None
    assert evidence.text == "2 of the 5 entries in your wrong answers are wrong."


def test_a_part_that_is_never_right_is_named_beside_one_that_sometimes_is() -> None:
    calls = (
        ({"rate": 12.0, "limit": "peak"}, {"rate": 3.0, "limit": "peak"}),
        ({"rate": 8.0, "limit": "peak"}, {"rate": 2.0, "limit": "memory"}),
    )
    placed = [
        (place, sight)
        for place, (answer, right) in enumerate(calls)
        for _, sight in sight_of(answer, right)["first"]
    ]
    evidence = find_evidence({"first": placed}, ["first"], ["first"])
    assert evidence is not None
    assert evidence.text == (
        "In the calls that are wrong, `['rate']` of your answer is never right."
    )


def test_pairs_of_texts_are_of_the_right_kind() -> None:
    """Merges of characters: as many as there are, each a pair of texts."""
    answer, right = [("a", "b")], [("b", "c"), ("a", "bc")]
    assert find_evidence(sight_of(answer, right), ["first"], ["first"]) is None


def test_a_single_number_is_right_after_a_repair_by_chance() -> None:
    """2 is the square root of 4, and 4 is twice 2."""
    assert find_evidence(sight_of(2.0, 4.0), ["first"], []) is None
    repaired = find_evidence(
        sight_of(torch.tensor([2.0, 3.0, 5.0]), torch.tensor([4.0, 9.0, 25.0])),
        ["first"],
        [],
    )
    assert repaired is not None
    assert repaired.text == f"{WRONG} is root of the right one."


def test_of_many_right_answers_only_the_kind_is_told() -> None:
    """A factor of 3 lies between two numbers that may both be right."""
    tripled = sight_of(3 * RIGHT[0], RIGHT[0])
    assert find_evidence(tripled, ["first"], ["first"], is_free=True) is None
    evidence = find_evidence(sight_of(None, RIGHT), ["first"], ["first"], is_free=True)
    assert evidence is not None
    assert "should be a tuple" in evidence.text


def count_before_the_first_zero(kept: torch.Tensor) -> Any:
    return int(kept.long().cumprod(0).sum())


def batch_sight(function: Function, student: Function, x: torch.Tensor) -> Sight:
    def ask_again(_: str, changes: Any) -> Sight:
        return batch_sight(function, student, changes.get("x", x))

    return Sight({"x": x}, student(x), function(x), ask_again)


def test_rows_that_belong_together_are_no_batch() -> None:
    """Places of a draft: each alone gets the right answer, and none of them is an entry."""
    kept = torch.tensor([True, True, False, True])
    sight = batch_sight(count_before_the_first_zero, lambda x: int(x.sum()), kept)
    evidence = find_evidence({"first": [(0, sight)]}, ["first"], ["first"])
    assert evidence is not None
    assert evidence.text == "None of the numbers in your wrong answers is right."


def test_the_entries_of_a_batch_that_are_right_alone_are_told() -> None:
    """Row b is multiplied by b + 1, and a row alone by 1."""
    x = torch.tensor([[1.0, 2.0], [5.0, 7.0]])
    sight = batch_sight(
        lambda x: x, lambda x: x * torch.arange(1, len(x) + 1)[:, None], x
    )
    evidence = find_evidence({"first": [(0, sight)]}, ["first"], ["first"])
    assert evidence is not None
    assert evidence.text == (
        "In the calls that are wrong, your answer is right for each entry of the batch alone, and "
        "wrong for all together."
    )


def test_an_answer_that_changes_from_call_to_call_is_told() -> None:
    """That entries of the batch move is no sign that they are mixed."""
    x = torch.tensor([[1.0, 2.0], [5.0, 7.0]])
    answers = itertools.cycle(
        [
            torch.tensor([[3.0, -1.0], [0.5, 11.0]]),
            torch.tensor([[-6.0, 0.25], [4.0, 9.0]]),
            torch.tensor([[8.0, 13.0], [-2.0, 6.0]]),
        ]
    )
    sight = batch_sight(lambda x: x, lambda x: next(answers), x)
    evidence = find_evidence({"first": [(0, sight)]}, ["first"], ["first"])
    assert evidence is not None
    assert evidence.text == (
        "In the calls that are wrong, your answer is another one when the same call is made again: "
        "something is kept from earlier calls, or drawn anew."
    )


def test_numbers_that_are_all_right_are_not_called_wrong() -> None:
    """What fails is another claim: the answer changed its arguments."""
    evidence = find_evidence(sight_of(RIGHT, RIGHT), ["first"], ["first"])
    assert evidence is not None
    assert evidence.text.startswith("All numbers in your answers are right")


def test_numbers_that_may_be_others_are_not_counted() -> None:
    """Where no test compares numbers, the answer key's are one right answer of many."""
    assert find_evidence(sight_of(ONE_RIGHT, RIGHT), ["first"], []) is None


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, "should be a tuple, and is None (is a `return` missing?)."),
        (torch.ones(3), "should be a tuple, and is a tensor of shape [3]."),
        ((torch.ones(2),), "has 1 entry; it should have 2."),
        ((torch.ones(2),) * 2, "is of another kind than the right one."),
    ],
)
def test_another_kind_is_told(answer: Any, text: str) -> None:
    evidence = find_evidence(sight_of(answer, RIGHT), ["first"], [])
    assert evidence is not None
    assert evidence.text == f"{WRONG} {text}"


def test_a_predicate_asks_once_for_each_exchange() -> None:
    calls = []

    def student(x: torch.Tensor) -> torch.Tensor:
        calls.append(x)
        return doubled(x)

    submission = Submission(student)
    asker = Asker(submission.open, {"f": lambda x: key(x)}, Limits())
    x = INPUTS["first"]
    sight = asker.make_sight(Call("f", (x,), {}, result=doubled(x)), key(x))
    first = sight.ask_again("other", {"x": x + 1})
    assert isinstance(first, Sight)
    assert sight.ask_again("other", {"x": x + 1}) is first
    assert torch.allclose(first.right, key(x + 1))
    assert (len(calls), submission.opened) == (1, 1)

"""Which known mistakes are named, on hand-made answers: three tests about rows, a ValueError and half precision."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from autograder.errors import StudentError
from autograder.grading.agreement import agree, apart, departures
from autograder.grading.diagnosis import Diagnostician, Named
from autograder.grading.outcomes import Verdict
from autograder.grading.sitting import TestRun
from autograder.suite.calls import Call, Cost
from autograder.suite.known import KnownAnswer

RIGHT, INVERTED, SHIFTED = (torch.tensor(row, dtype=torch.float64) for row in ([1.0, 2.0], [2.0, 1.0], [1.5, 2.5]))
POINTS = {"rows": 4.0, "refused": 1.0, "half": 2.0, "cost": 2.0}
Answers = dict[str, Tensor | str | Call]
"""What an answer gives to each test; a text is the type of the error that it raises."""


class NothingKept:
    def load(self, *_: str) -> None:
        return None

    def save(self, *_: object) -> None:
        pass


def run(test: str, answer: Tensor | str | Call, *, passed: bool) -> TestRun:
    call = answer if isinstance(answer, Call) else Call("f", (), {})
    if isinstance(answer, str):
        call.fault = StudentError(answer, "")
    elif isinstance(answer, Tensor):
        call.result = answer
    return TestRun(test, Verdict("passed" if passed else "failed"), (call,))


KEY: Answers = {"rows": RIGHT, "refused": "ValueError", "half": RIGHT.half(), "cost": RIGHT}


def runs_of(answers: Answers) -> dict[str, TestRun]:
    """All tests on answers that are the key's but for these."""
    return {test: run(test, answers.get(test, KEY[test]), passed=test not in answers) for test in KEY}


def name(student: Answers, mistakes: dict[str, Answers]) -> Named:
    def ran(_: str, answer: KnownAnswer | None, tests: Sequence[str]) -> dict[str, TestRun]:
        runs = runs_of(mistakes[answer.name]) if answer else {test: run(test, KEY[test], passed=True) for test in KEY}
        return {test: runs[test] for test in tests}

    known = [KnownAnswer("f", mistake, f"about {mistake}", "f") for mistake in mistakes]
    return Diagnostician(known, ran, NothingKept()).name("f", runs_of(student), POINTS)  # type: ignore[arg-type]


MISTAKES: dict[str, Answers] = {
    "inverted": {"rows": INVERTED, "half": INVERTED.half(), "cost": INVERTED},
    "shifted": {"rows": SHIFTED, "half": SHIFTED.half(), "cost": SHIFTED},
    "no_checks": {"refused": RIGHT},
}


def named(student: Answers) -> tuple[str, list[str]]:
    found = name(student, MISTAKES)
    return (found.first.mistake if found.first else ""), [slip.mistake for slip in found.slips]


def test_a_mistake_alone_is_named_with_the_tests_that_it_explains() -> None:
    found = name(MISTAKES["inverted"], MISTAKES)
    assert found.first is not None
    assert (found.first.mistake, found.first.hint) == ("inverted", "about inverted")
    assert found.first.tests == ("rows", "half", "cost")
    assert found.slips == ()


def test_a_second_fault_does_not_hide_the_first_and_is_named_after_it() -> None:
    assert named({**MISTAKES["inverted"], "refused": RIGHT}) == ("inverted", ["no_checks"])


def test_a_small_fault_of_many_points_lost_is_no_place_to_look_first() -> None:
    elsewhere = torch.tensor([7.0, 7.0], dtype=torch.float64)
    assert named({"rows": elsewhere, "half": elsewhere.half(), "refused": RIGHT}) == ("", ["no_checks"])


def test_another_answer_to_one_test_does_not_rule_a_mistake_out() -> None:
    without_upcast = torch.tensor([2.5, 1.25], dtype=torch.float16)
    assert named({**MISTAKES["inverted"], "half": without_upcast}) == ("inverted", [])


def test_a_mistake_that_fails_what_the_student_passes_loses_to_one_that_does_not() -> None:
    milder = {"milder": {"rows": INVERTED}, **MISTAKES}
    found = name({"rows": INVERTED}, milder)
    assert found.first is not None
    assert found.first.mistake == "milder"


def test_what_nobody_knows_has_no_name() -> None:
    assert named({"rows": torch.tensor([5.0, 5.0], dtype=torch.float64)}) == ("", [])


def test_a_mistake_about_cost_is_not_named_where_the_numbers_are_wrong() -> None:
    loops = {"loops": {"cost": Call("f", (), {}, result=RIGHT, cost=Cost(900, 1, 1, 1, 1))}, **MISTAKES}
    assert name({"cost": SHIFTED, "rows": torch.zeros(2).double()}, loops) == Named()


@pytest.mark.parametrize("operations", [800, 1000])
def test_a_mistake_about_cost_is_named_by_what_costs_more(operations: int) -> None:
    key = {**KEY, "cost": Call("f", (), {}, result=RIGHT, cost=Cost(10, 1, 1, 1, 1))}
    mine = Call("f", (), {}, result=RIGHT, cost=Cost(operations, 1, 1, 1, 1))
    assert departures(mine, key["cost"]) == {"cost of operations"}  # type: ignore[arg-type]


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
def test_rounding_depends_on_the_dtype(dtype: torch.dtype, off: float, expected: bool) -> None:
    one = torch.ones(3, dtype=torch.float64)
    # against the key's zeros both are far off, so that the share of a second fault does not decide: 2 % of 1/rounding
    mine, theirs = Call("f", (), {}, result=(one + off).to(dtype)), Call("f", (), {}, result=one.to(dtype))
    right = Call("f", (), {}, result=(one + 8 * off).to(dtype))
    assert agree(mine, theirs, right) is expected


def test_distance_is_measured_in_roundings_of_the_coarser_dtype() -> None:
    assert apart(torch.tensor([1.0 + 2e-4]).double(), torch.tensor([1.0])) == pytest.approx(2.0, rel=1e-3)
    assert apart(torch.tensor([1.0]), torch.tensor([[1.0]])) == math.inf
    assert apart([1, "a"], (1, "a")) == 0
    assert apart(True, 1) == math.inf
    assert apart(torch.tensor([math.inf, 1.0]), torch.tensor([1.0, 1.0])) == math.inf


def test_errors_that_mean_a_hundred_things_agree_by_their_words() -> None:
    def raising(kind: str, message: str) -> Call:
        return Call("f", (), {}, fault=StudentError(kind, message))

    assert agree(raising("RuntimeError", "size 4 must match 5"), raising("RuntimeError", "size 7 must match 3"), None)
    assert not agree(raising("RuntimeError", "size 4 must match 5"), raising("RuntimeError", "expected half"), None)
    assert agree(raising("ValueError", "mine"), raising("ValueError", "theirs"), None)
    assert not agree(raising("ValueError", ""), raising("TypeError", ""), None)


def test_values_stand_for_every_row_by_itself() -> None:
    """A row of large numbers does not hide a wrong row of small ones."""
    small_row_wrong = torch.tensor([[1000.0, 2000.0], [0.001, 0.003]])
    assert apart(small_row_wrong, torch.tensor([[1000.0, 2000.0], [0.001, 0.002]])) > 1000


def test_records_are_kept_with_what_a_call_cost_and_brought_back(tmp_path: Path) -> None:
    from autograder.grading.known_runs import _call_from, _call_to
    from autograder.wire.values import Decoder, Encoder

    call = Call("f", (), {}, result=RIGHT, cost=Cost(1, 2, 3, 4, 5), gradients=[[INVERTED, None]])
    encoder = Encoder(lambda _: None)
    back = _call_from(_call_to(call, encoder), Decoder(encoder.tensors))
    assert back.cost == call.cost
    assert back.gradients[0][0].tolist() == [2.0, 1.0]
    assert back.gradients[0][1] is None

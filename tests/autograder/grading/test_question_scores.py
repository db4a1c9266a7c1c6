"""The points of a question, and the time of a function on a device, by values worked out by
hand.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from autograder.basics.errors import HostFailed, StudentError
from autograder.course.course import Grading
from autograder.diagnosis.diagnostician import NamedMistakes
from autograder.grading.carried_points import SettledQuestion
from autograder.grading.grader import AssignmentGrader
from autograder.grading.speed_meter import (
    SpeedMeter,
    _explain_difference,
    _time_call,
)
from autograder.records.model import Diagnosis, QuestionResult, Speed, TwoAnswers
from autograder.sitting.pricing import Price
from autograder.sitting.sitting import TestRun
from autograder.sitting.verdict import Verdict
from autograder.suite.calls import Call
from autograder.suite.collection import SuiteQuestion, SuiteTest
from autograder.suite.timed_functions import SpeedCase

POINTS = {"test_a": 1.0, "test_b": 2.0, "test_c": 3.0}
QUESTION = SuiteQuestion(
    "double", tuple(SuiteTest(name, n, "") for name, n in POINTS.items()), (), ()
)
MEMORY_FAULT = Call(
    "double",
    (),
    {},
    fault=StudentError("MemoryFault", "it reads memory", (), ("MemoryFault",)),
)
TWO_ANSWERS = (TwoAnswers("test_a", "double(1)", ("one", "other"), ("2", "3")),)


def score(
    failed: Collection[str] = (),
    *,
    carried: Collection[str] = (),
    prices: tuple[Price, ...] = (),
    credit: float = 1.0,
    calls: tuple[Call, ...] = (),
    names: Mapping[str, str] | None = None,
    mistakes: NamedMistakes | None = None,
) -> QuestionResult:
    """The result of `QUESTION` where these tests fail."""
    grader = object.__new__(AssignmentGrader)
    course: Any = SimpleNamespace(grading=Grading(carry_credit=credit))
    grader.course = course
    grader._names_of_checks = dict(names or {})
    runs = {}
    for name in POINTS:
        verdict = Verdict("passed")
        if name in failed:
            verdict = Verdict("failed", "NameError: name 'n' is not defined")
        runs[name] = TestRun(name, verdict, calls if name in failed else ())
    settled = SettledQuestion(runs, {}, frozenset(carried))
    mistakes = mistakes or NamedMistakes(prices=prices)
    return grader._question_result(QUESTION, settled, mistakes, TWO_ANSWERS)


def parts(result: QuestionResult) -> tuple[float, float, float, float]:
    return result.score, result.carried, result.kept, result.capped


def test_points_are_those_of_passed_tests() -> None:
    result = score()
    assert (result.name, result.max_score) == ("double", 6.0)
    assert parts(result) == (6.0, 0.0, 0.0, 0.0)
    assert [test.points for test in result.tests] == [1.0, 2.0, 3.0]
    assert result.two_answers == TWO_ANSWERS
    result = score(["test_b"])
    assert parts(result) == (4.0, 0.0, 0.0, 0.0)
    assert [(t.outcome, t.points, t.max_points) for t in result.tests] == [
        ("passed", 1.0, 1.0),
        ("failed", 0.0, 2.0),
        ("passed", 3.0, 3.0),
    ]


def test_carried_points_have_the_credit_of_the_course() -> None:
    """Tests b and c fail, and b passes with stand-ins: 1 for a, and half of 2."""
    failed = ["test_b", "test_c"]
    assert parts(score(failed, carried=["test_b"], credit=0.5)) == (2.0, 1.0, 0.0, 0.0)
    assert parts(score(failed, carried=["test_b"])) == (3.0, 2.0, 0.0, 0.0)
    assert parts(score(failed, carried=failed, credit=0.0)) == (1.0, 0.0, 0.0, 0.0)


def test_a_known_mistake_costs_its_price() -> None:
    """It fails b and c, which are 5 points, and costs 1.5: 3.5 are kept."""
    failed = frozenset(["test_b", "test_c"])
    result = score(failed, prices=(Price(1.5, failed),))
    assert parts(result) == (4.5, 0.0, 3.5, 0.0)
    # what a mistake costs is never more than its tests
    assert parts(score(["test_b"], prices=(Price(9.0, failed),)))[0] == 4.0


def test_a_fault_of_memory_costs_half_of_the_question() -> None:
    """Test a alone is lost, which is 1 point of 6: 2 more are taken."""
    result = score(["test_a"], calls=(MEMORY_FAULT,))
    assert parts(result) == (3.0, 0.0, 0.0, 2.0)
    assert parts(score(["test_b", "test_c"], calls=(MEMORY_FAULT,))) == (1.0, 0, 0, 0)
    # of a test that is carried the prerequisite is at fault
    carried = score(["test_a"], carried=["test_a"], calls=(MEMORY_FAULT,))
    assert parts(carried) == (6.0, 1.0, 0.0, 0.0)


def test_what_diagnosis_says_is_part_of_the_result() -> None:
    first, slip = Diagnosis("half", "half of it"), Diagnosis("sign", "the sign")
    named = NamedMistakes(first, (slip,), (), "right up to a sign")
    result = score(["test_a"], mistakes=named)
    assert (result.diagnosis, result.slips) == (first, (slip,))
    assert (result.evidence, result.example) == ("right up to a sign", None)


def test_a_name_of_a_check_is_explained() -> None:
    message = score(["test_a"], names={"n": "the check"}).tests[0].message
    assert "Only the check defines n." in message
    assert score(["test_a"]).tests[0].message == "NameError: name 'n' is not defined"


# times


class TimedStudent:
    """A function that takes `each` seconds beside `once` for a request."""

    def __init__(self, each: float, once: float = 1.0) -> None:
        self.each = each
        self.once = once
        self.requests: list[tuple[int, bool, bool]] = []

    def repeat(
        self, name: str, times: int, arguments: Any = None, *, give: bool = False
    ) -> tuple[Any, float]:
        assert name == "double"
        self.requests.append((times, arguments is not None, give))
        return (7 if give else None), self.once + self.each * times


CASE = SpeedCase("small", (1,), {"x": 2})


def timed(student: TimedStudent) -> tuple[Any, float]:
    any_student: Any = student
    return _time_call(any_student, "double", CASE)


def test_a_slow_call_is_timed_by_two_and_by_one() -> None:
    student = TimedStudent(each=0.5, once=0.0)
    assert timed(student) == (7, 0.5)
    warm, *others = student.requests
    assert warm == (1, True, False)
    expected = [(1, False, False), *[(2, False, False)] * 3, *[(1, False, False)] * 3]
    assert others == [*expected, (2, False, True)]


@pytest.mark.parametrize(
    ("each", "times"),
    [
        # 0.2 s are long enough for one call
        (0.2, 2),
        (0.05, 4),
        (0.0125, 16),
        (0.0124, 64),
        (2.0**-20, 4096),
    ],
)
def test_a_fast_call_is_repeated_until_its_time_can_be_told(
    each: float, times: int
) -> None:
    student = TimedStudent(each, once=0.0)
    result, seconds = timed(student)
    assert result == 7
    assert seconds == pytest.approx(each)
    assert student.requests[-1] == (times, False, True)


def test_a_request_that_takes_long_by_itself_tells_no_time_of_a_call() -> None:
    assert timed(TimedStudent(each=0.01, once=1.0))[1] == pytest.approx(0.01)
    with pytest.raises(ValueError, match=r"^more calls take no longer than one$"):
        timed(TimedStudent(each=0.0, once=1.0))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (torch.tensor([1.0, 2.0]), ""),
        (torch.tensor([1.0, 2.5]), ""),
        (torch.tensor([1.0, 2.75]), "its result differs from the baseline's by 0.75"),
        (torch.tensor([1.0, 1.25]), "its result differs from the baseline's by 0.75"),
        (
            torch.tensor([1.0, float("nan")]),
            "its result differs from the baseline's by nan",
        ),
        (torch.tensor([[1.0, 2.0]]), "its result is not of the baseline's shape"),
        ([1.0, 2.0], "its result is not of the baseline's shape"),
    ],
)
def test_an_answer_of_another_value_has_no_speed(answer: Any, words: str) -> None:
    problem = _explain_difference(answer, torch.tensor([1.0, 2.0]), 0.5)
    assert problem == (f"it has no speed here: {words}" if words else "")


def meter(fault: HostFailed | None = None) -> SpeedMeter:
    device: Any = SimpleNamespace(
        client=SimpleNamespace(fault=fault), limits=SimpleNamespace()
    )
    test: Any = SimpleNamespace(question="double", function="double")
    return SpeedMeter(device, test)


def measured(meter: SpeedMeter, outcome: str) -> tuple[Speed, ...]:
    nothing: Any = None
    tests = [SimpleNamespace(outcome="passed"), SimpleNamespace(outcome=outcome)]
    questions = [
        SimpleNamespace(name="other", tests=[SimpleNamespace(outcome="failed")]),
        SimpleNamespace(name="double", tests=tests),
    ]
    result: Any = SimpleNamespace(questions=questions)
    return meter.measure_submission(nothing, nothing, result)


def test_only_a_right_function_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> None:
        raise AssertionError("no worker")

    monkeypatch.setattr("autograder.grading.speed_meter.Sitting", refuse)
    assert measured(meter(), "failed") == ()
    (speed,) = measured(meter(), "passed")
    assert speed == Speed("double", 0.0, 0.0, "it has no speed here: no worker")
    with pytest.raises(HostFailed, match=r"^gone$"):
        measured(meter(HostFailed("gone")), "passed")

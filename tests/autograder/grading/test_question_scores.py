"""The points of a question, by values worked out by hand."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import SimpleNamespace
from typing import Any

from autograder.basics.errors import StudentError
from autograder.course.course import Grading
from autograder.diagnosis.diagnostician import NamedMistakes
from autograder.grading.carried_points import SettledQuestion
from autograder.grading.grader import AssignmentGrader
from autograder.records.model import Diagnosis, QuestionResult, TwoAnswers
from autograder.sitting.pricing import Price
from autograder.sitting.sitting import TestRun
from autograder.sitting.verdict import Verdict
from autograder.suite.calls import Call
from autograder.suite.collection import SuiteQuestion, SuiteTest

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

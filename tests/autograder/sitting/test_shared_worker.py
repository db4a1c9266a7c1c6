"""Which questions share a worker, and what is kept of an attempt there, with a played workplace."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.course import Limits
from autograder.records.submission import Cell, Submission
from autograder.sitting.hedges import QuestionAttempt
from autograder.sitting.sitting import ATTEMPT_SECONDS, Sitting, TestRun, find_uses
from autograder.sitting.verdict import Verdict
from autograder.suite.calls import Call
from autograder.suite.collection import SuiteQuestion, SuiteTest

TESTS = tuple(SuiteTest(f"test_{name}", 1.0, "") for name in "abc")
QUESTION = SuiteQuestion("f", TESTS, (), ())
FORBIDDING = SuiteQuestion("f", TESTS, (), ("torch.softmax",))


class PlayedWorkplace:
    """A workplace that writes down what it is asked to do, in `done`."""

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.spent = "spent before"
        self.may_attempt = True
        self.is_open = True
        self.submission = submission_of({"f": "def f(): pass"})
        self.worker = object()
        self.explain_missing = object()

    def switch_question(self, forbidden: tuple[str, ...]) -> bool:
        self.done.append(("switch", forbidden))
        return self.is_open

    def prepare(
        self, forbidden: tuple[str, ...], stand_ins: tuple[str, ...] = ()
    ) -> None:
        self.done.append(("prepare", forbidden, stand_ins))

    def close(self) -> None:
        self.done.append("close")

    def refund_since(self, since: Any) -> None:
        self.done.append(("refund", since))


def submission_of(sources: dict[str, str]) -> Submission:
    cells = [Cell(name, "question", source) for name, source in sources.items()]
    return Submission("ada", "small", Path("small.ipynb"), "", tuple(cells))


def call_of(test: str) -> Call:
    return Call("f", (), {}, result=test)


@pytest.fixture
def sitting(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A sitting whose tests have the outcomes of `outcomes`, by name; they pass without one.
    `students` has the limits of a call that were asked for, `tried` the tests that ran.
    """
    sitting: Any = object.__new__(Sitting)
    sitting.workplace = PlayedWorkplace()
    sitting._limits = Limits()
    sitting._given_up = set()
    sitting.two_answers = {}
    sitting._suite = SimpleNamespace(fixtures=SimpleNamespace(reference={}))
    sitting.outcomes, sitting.students, sitting.tried = {}, [], []
    sitting.kept = []

    def open_student(sources: dict[str, str], call_seconds: float = 0.0) -> object:
        sitting.students.append((sources, call_seconds))
        return object()

    def run_tests(question: Any, tests: Any, student: Any, **options: Any) -> Any:
        sitting.kept.append(options["keep_calls"])
        for test in tests:
            sitting.tried.append(test.name)
            outcome = sitting.outcomes.get(test.name, "passed")
            yield TestRun(test.name, Verdict(outcome), (call_of(test.name),))

    monkeypatch.setattr(sitting, "_open_student", open_student)
    monkeypatch.setattr(sitting, "_run_tests", run_tests)
    return sitting


def test_a_question_that_passes_stays_in_the_open_worker(sitting: Any) -> None:
    attempt = QuestionAttempt()
    runs = sitting._run_in_open_worker(FORBIDDING, attempt)
    assert [(name, run.passed, run.calls) for name, run in runs.items()] == [
        ("test_a", True, ()),
        ("test_b", True, ()),
        ("test_c", True, ()),
    ]
    assert sitting.workplace.done == [
        ("switch", ("torch.softmax",)),
        ("prepare", ("torch.softmax",), ()),
    ]
    assert sitting.students == [({"f": "def f(): pass"}, ATTEMPT_SECONDS)]
    assert sitting.kept == [True]
    results = {name: calls[0].result for name, calls in attempt.answers.items()}
    assert results == {"test_a": "test_a", "test_b": "test_b", "test_c": "test_c"}


def test_an_attempt_ends_at_the_first_test_that_does_not_pass(sitting: Any) -> None:
    sitting.outcomes["test_b"] = "failed"
    attempt = QuestionAttempt()
    assert sitting._run_in_open_worker(QUESTION, attempt) == {}
    assert sitting.tried == ["test_a", "test_b"]
    assert list(attempt.answers) == ["test_a", "test_b"]
    assert sitting.workplace.done[2:] == ["close", ("refund", "spent before")]


def test_a_call_has_no_more_time_in_an_attempt_than_the_course_gives(
    sitting: Any,
) -> None:
    sitting._limits = Limits(call_seconds=0.2)
    sitting._run_in_open_worker(QUESTION, QuestionAttempt())
    assert [seconds for _, seconds in sitting.students] == [0.2]


@pytest.mark.parametrize("missing", ["time", "worker"])
def test_without_time_or_an_open_worker_there_is_no_attempt(
    sitting: Any, missing: str
) -> None:
    sitting.workplace.may_attempt = missing != "time"
    sitting.workplace.is_open = missing != "worker"
    attempt = QuestionAttempt()
    assert sitting._run_in_open_worker(QUESTION, attempt) == {}
    assert (sitting.tried, attempt.answers) == ([], {})
    assert sitting.workplace.done[-2:] == ["close", ("refund", "spent before")]


def test_what_forbids_a_function_outside_torch_never_goes_on(sitting: Any) -> None:
    for forbidden in (("numpy.dot",), ("torch.softmax", "numpy.dot")):
        question = SuiteQuestion("f", TESTS, (), forbidden)
        assert not sitting._continue_worker(question)
    assert sitting.workplace.done == []
    assert sitting._continue_worker(FORBIDDING)


def test_the_fresh_run_has_the_whole_limit_and_keeps_its_worker(sitting: Any) -> None:
    sitting.outcomes["test_b"] = "failed"
    runs = sitting._run_in_fresh_worker(QUESTION, QuestionAttempt())
    assert [seconds for _, seconds in sitting.students] == [0.0]
    assert "close" not in sitting.workplace.done
    assert sitting.kept == [False]
    assert [len(run.calls) for run in runs.values()] == [0, 1, 0]
    assert sitting.two_answers == {}


def test_two_runs_that_answer_otherwise_are_shown_by_the_first_difference(
    sitting: Any,
) -> None:
    attempt = QuestionAttempt()
    attempt.add("test_a", [call_of("test_a")])
    attempt.add("test_b", [call_of("another")])
    sitting._run_in_fresh_worker(QUESTION, attempt)
    assert sitting.kept == [True]
    (two,) = sitting.two_answers["f"]
    assert (two.test, two.answers) == ("test_b", ("'another'", "'test_b'"))


def test_only_what_does_not_pass_in_the_open_worker_runs_again(sitting: Any) -> None:
    """`f` fails in both workers, `g` passes in the one that is open then."""
    sitting.outcomes["test_b"] = "failed"
    passing = SuiteQuestion("g", TESTS[:1], (), ())
    runs = sitting.run_all([QUESTION, passing])
    assert sitting.tried == ["test_a", "test_b", "test_a", "test_b", "test_c", "test_a"]
    assert {name: len(of_question) for name, of_question in runs.items()} == {
        "f": 3,
        "g": 1,
    }
    assert sitting.workplace.done[-1] == "close"
    assert sitting._given_up == set()


@pytest.mark.parametrize(
    ("outcomes", "is_given_up"),
    [
        (("timeout", "timeout", "failed"), True),
        (("timeout", "failed", "failed"), False),
        (("timeout", "timeout", "passed"), False),
    ],
)
def test_a_question_that_hangs_twice_and_never_passes_is_given_up(
    sitting: Any, outcomes: tuple[str, ...], is_given_up: bool
) -> None:
    names = [test.name for test in TESTS]
    sitting.outcomes |= dict(zip(names, outcomes, strict=True))
    sitting.run_all([QUESTION])
    assert sitting._given_up == ({"f"} if is_given_up else set())


def test_named_tests_run_alone_with_their_stand_ins_and_close_the_worker(
    sitting: Any,
) -> None:
    runs = sitting.run(QUESTION, ("test_c", "test_a"), ("g",))
    assert [(name, run.stand_ins) for name, run in runs.items()] == [
        ("test_a", ("g",)),
        ("test_c", ("g",)),
    ]
    assert sitting.workplace.done == [("prepare", (), ("g",)), "close"]
    assert sitting.run(QUESTION, ("test_a",))["test_a"].stand_ins == ()


def test_functions_for_further_calls_are_those_of_a_fresh_worker(sitting: Any) -> None:
    sitting.open_functions(FORBIDDING, ("g",))
    assert sitting.workplace.done == [
        "close",
        ("prepare", ("torch.softmax",), ("g",)),
    ]
    assert sitting.students == [({"f": "def f(): pass"}, 0.0)]


# what a question builds on


def question_of(name: str, *uses: str) -> SuiteQuestion:
    return SuiteQuestion(name, TESTS, uses, ())


def test_a_question_uses_what_is_declared_and_what_its_cell_names() -> None:
    submission = submission_of(
        {
            "scale": "def scale(x): return x",
            "mask": "def mask(x): return later(x)",
            "attend": "def attend(x): return mask(scale(x))",
            "later": "def later(x): return attend_all(x) + scale2(x)",
        }
    )
    questions = [
        question_of("scale"),
        question_of("mask"),
        question_of("attend", "mask"),
        question_of("later"),
        question_of("unwritten", "scale"),
    ]
    assert find_uses(submission, questions) == {
        "scale": (),
        "mask": (),
        "attend": ("mask", "scale"),
        "later": (),
        "unwritten": ("scale",),
    }

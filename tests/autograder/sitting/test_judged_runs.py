"""What becomes of one test's exception and calls, with a suite and a worker that the test plays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from autograder.basics.errors import (
    KitError,
    StudentError,
    StudentMissing,
    StudentTimeout,
    SuiteFault,
)
from autograder.sitting import loaded_suite
from autograder.sitting import sitting as sitting_module
from autograder.sitting.loaded_suite import LoadedSuite
from autograder.sitting.sitting import Sitting, TestRun
from autograder.suite.calls import Call, CallLog, size_in_bytes, start_log
from autograder.suite.collection import SuiteQuestion, SuiteTest

TEST = SuiteTest("test_it", 1.0, "")


@pytest.fixture
def sitting() -> Sitting:
    played = object.__new__(Sitting)
    played._suite = SimpleNamespace(  # type: ignore[assignment]
        released={"f": "", "g": ""}, make_fault=lambda test, raised: f"{test}: {raised}"
    )
    played.workplace = SimpleNamespace(submission=None)  # type: ignore[assignment]
    return played


def judged(
    sitting: Sitting,
    raised: BaseException | None,
    *calls: Call,
    keep_calls: bool = False,
) -> TestRun:
    return sitting._judge_run("f", TEST, raised, CallLog({}, list(calls)), keep_calls)


def call(name: str = "f", **fields: Any) -> Call:
    return Call(name, (), {}, **fields)


def test_a_wrong_answer_is_no_fault_of_the_suite(sitting: Sitting) -> None:
    run = judged(sitting, AssertionError("it differs"), call(result=1))
    assert (run.verdict.outcome, run.suite_fault) == ("failed", None)
    assert judged(sitting, None, call(result=1)).suite_fault is None


def test_an_answer_that_a_test_cannot_work_with_has_the_suites_fault_ready(
    sitting: Sitting,
) -> None:
    run = judged(sitting, AttributeError("no shape"), call(result=1))
    assert run.verdict.cause == "unfit"
    assert str(run.suite_fault) == "test_it: no shape"


def test_calls_are_kept_of_what_fails_or_is_compared(sitting: Sitting) -> None:
    answered = call(result=1)
    assert judged(sitting, AssertionError("x"), answered).calls == (answered,)
    assert judged(sitting, None, answered).calls == ()
    assert judged(sitting, None, answered, keep_calls=True).calls == (answered,)


def test_only_large_answers_are_dropped(
    sitting: Sitting, monkeypatch: pytest.MonkeyPatch
) -> None:
    ten = torch.zeros(10, dtype=torch.uint8)
    monkeypatch.setattr(sitting_module, "LARGEST_KEPT", size_in_bytes([ten, []]))
    small, large = call(result=ten), call(result=torch.zeros(11, dtype=torch.uint8))
    large.gradients = [ten]
    run = judged(sitting, AssertionError("x"), small, large)
    assert [kept.was_dropped for kept in run.calls] == [False, True]
    assert run.calls[0].result is ten
    assert (run.calls[1].result, run.calls[1].gradients) == (None, [])


@pytest.mark.parametrize(
    ("name", "fault", "unanswered"),
    [
        ("f", StudentMissing("no f"), True),
        ("helper", StudentMissing("no helper"), True),
        ("g", StudentMissing("no g"), False),
        ("g.append", StudentMissing("no append"), False),
        ("f", StudentError("KeyError", "x"), False),
    ],
)
def test_a_question_is_unanswered_where_its_own_function_is_missing(
    sitting: Sitting, name: str, fault: Any, unanswered: bool
) -> None:
    assert judged(sitting, fault, call(name, fault=fault)).unanswered is unanswered


def test_functions_that_refused_and_that_answered_are_told_apart(
    sitting: Sitting,
) -> None:
    refusal = StudentError("ValueError", "no")
    run = judged(
        sitting,
        None,
        call("Cache.append", fault=refusal, refused=True),
        call("Mine.reset", result=1),
        call("driver", result=1, of_suite=True),
        call("f", fault=refusal),
    )
    assert (set(run.refusing), set(run.answering)) == ({"append"}, {"reset"})


def test_after_the_second_hang_no_test_of_the_question_runs(
    sitting: Sitting, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised = iter([StudentTimeout("slow"), None, StudentTimeout("slow"), None])
    tests = tuple(SuiteTest(f"test_{number}", 1.0, "") for number in range(4))
    monkeypatch.setattr(
        sitting, "_run_test", lambda *_: (next(raised), CallLog({}, []))
    )
    question = SuiteQuestion("f", tests, (), ())
    student: Any = None
    runs = list(sitting._run_tests(question, tests, student, keep_calls=False))
    assert [run.verdict.outcome for run in runs] == [
        "timeout",
        "passed",
        "timeout",
        "timeout",
    ]
    assert runs[3].verdict.message == "Not run: two tests of this question hung."
    assert next(raised, "all tried") is None  # the fourth never ran


def test_after_a_prerequisite_that_hung_one_hang_is_enough(
    sitting: Sitting, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised = iter([None, StudentTimeout("slow"), None])
    tests = tuple(SuiteTest(f"test_{number}", 1.0, "") for number in range(3))
    monkeypatch.setattr(
        sitting, "_run_test", lambda *_: (next(raised), CallLog({}, []))
    )
    question = SuiteQuestion("f", tests, (), ())
    student: Any = None
    tested = sitting._run_tests(question, tests, student, keep_calls=False, hung="g")
    runs = list(tested)
    assert [run.verdict.outcome for run in runs] == ["passed", "timeout", "timeout"]
    assert runs[2].verdict.message == (
        "Not run: a test of this question hung, and so did `g`."
    )


# a suite's test that raises by itself


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., BaseException | None]:
    def play(
        raised: BaseException | None, *, used: bool = False
    ) -> BaseException | None:
        suite = object.__new__(LoadedSuite)
        suite._plain = {("f", "test_it"): object()}  # type: ignore[dict-item]
        suite.assignment = SimpleNamespace(suite=Path("/suite"))  # type: ignore[assignment]
        suite.fixtures = None  # type: ignore[assignment]
        start_log({}).used_submission = used
        monkeypatch.setattr(loaded_suite, "call_plainly", lambda item, fixtures: raised)
        return suite.run("f", "test_it")

    return play


def test_a_test_that_asks_nothing_and_passes_is_no_fault(
    run: Callable[..., BaseException | None],
) -> None:
    assert run(None) is None
    assert run(None, used=True) is None


def test_what_raises_before_the_submission_was_asked_is_the_suites_fault(
    run: Callable[..., BaseException | None],
) -> None:
    with pytest.raises(SuiteFault):
        run(AssertionError("never right"))
    error = AssertionError("it differs")
    assert run(error, used=True) is error
    with pytest.raises(KitError, match="the machine"):
        run(KitError("the machine"), used=True)

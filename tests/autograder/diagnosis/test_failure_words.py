"""What failed tests say where nothing else is known of an answer, on runs written by hand."""

from __future__ import annotations

from typing import Any

import torch

from autograder.basics.errors import StudentError, StudentFault, StudentTimeout
from autograder.diagnosis.failure_words import describe_failures
from autograder.diagnosis.known_sitting import list_departures
from autograder.diagnosis.mistake_fit import StudentAnswer
from autograder.records.model import Outcome
from autograder.sitting.sitting import TestRun
from autograder.sitting.verdict import Verdict
from autograder.suite.calls import Call, Cost

RIGHT = torch.tensor([1.0, 2.0, 3.0])
WRONG = torch.tensor([1.0, 2.0, 4.0])
SIXTH_LINE = "cell attend, line 6, in attend: raise ValueError("
EIGHTH_LINE = "cell attend, line 8, in attend: raise ValueError("


def call(result: Any = RIGHT, fault: StudentFault | None = None, **more: Any) -> Call:
    return Call("attend", (), {}, result=result, fault=fault, **more)


def raised(name: str, frame: str) -> Call:
    return call(None, StudentError(name, "3 and 4", (frame,)))


def cost(operations: int) -> Cost:
    return Cost(operations=operations, flops=0, largest=0, peak=0, moved=0)


def describe(
    *calls: Call,
    outcome: Outcome = "failed",
    key: Call | None = None,
    further: int = 0,
    is_free: bool = False,
) -> str:
    """The words for tests of one call each, and for `further` tests of which nothing is known."""
    failed = {}
    key_runs = {}
    for number, student_call in enumerate(calls):
        name = f"test_{number}"
        failed[name] = TestRun(name, Verdict(outcome), (student_call,))
        key_runs[name] = TestRun(name, Verdict("passed"), (key or call(),))
    departures = {
        name: list_departures(run, key_runs[name]) for name, run in failed.items()
    }
    answer = StudentAnswer(failed, key_runs, departures, frozenset())
    charged = [*failed, *[f"withheld_{number}" for number in range(further)]]
    return describe_failures(answer, charged, is_free=is_free)


def test_an_error_at_one_place_is_told_with_the_place() -> None:
    errors = [raised("ValueError", SIXTH_LINE), raised("ValueError", SIXTH_LINE)]
    assert describe(*errors, outcome="error", further=1) == (
        "In 2 of the 3 tests that fail, your code raises ValueError, each time in cell attend, "
        "line 6, in attend: the message says more."
    )
    assert describe(errors[0], outcome="error") == (
        "In the test that fails, your code raises ValueError in cell attend, line 6, in attend: "
        "the message says more."
    )


def test_errors_at_several_places_or_of_several_kinds_are_told_without() -> None:
    first = raised("ValueError", SIXTH_LINE)
    elsewhere = raised("ValueError", EIGHTH_LINE)
    assert describe(first, elsewhere, outcome="error") == (
        "In both tests that fail, your code raises ValueError: the message says more."
    )
    other = raised("TypeError", EIGHTH_LINE)
    assert describe(first, other, outcome="error") == (
        "In both tests that fail, your code raises an error: the message says more."
    )


def test_what_most_tests_show_is_told() -> None:
    assert describe(call(WRONG), call(WRONG), call(WRONG)).startswith(
        "In all 3 tests that fail, your function answers"
    )
    assert describe(call(WRONG), call(WRONG), call()) == (
        "In 2 of the 3 tests that fail, your function answers, and the answer is not the right "
        "one: the message says more."
    )


def test_of_several_right_answers_none_is_called_the_right_one() -> None:
    assert describe(call(WRONG), is_free=True) == (
        "In the test that fails, your function answers, and the answer lacks what the test asks "
        "of it: the message says more."
    )


def test_right_answers_are_called_right() -> None:
    counted = describe(call(cost=cost(11)), key=call(cost=cost(10)))
    assert "your answers are right, and the work that your function does" in counted
    gradients = describe(call(gradients=[WRONG]), key=call(gradients=[RIGHT]))
    assert "your answers are right, and the gradients" in gradients
    assert "changes what it was given" in describe(call(changed=("x",)))
    assert "something else that is looked at is not" in describe(call())


def test_errors_that_are_asked_for() -> None:
    refusal = call(None, StudentError("ValueError", "3 and 4"), refused=True)
    assert "answers a call that it should refuse" in describe(call(), key=refusal)
    without_sizes = call(None, StudentError("ValueError", "no"), refused=True)
    assert "its message lacks something" in describe(without_sizes, key=refusal)
    of_torch = call(None, StudentError("RuntimeError", "3 and 4"))
    assert "ends in an error where it should refuse" in describe(of_torch, key=refusal)


def test_calls_without_an_answer() -> None:
    slow = call(None, StudentTimeout("no answer within 10 seconds"))
    assert describe(slow, outcome="timeout") == (
        "In the test that fails, your function gives no answer in time: the message says more."
    )
    assert describe(further=2) == ""

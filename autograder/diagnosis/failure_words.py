"""What the failed tests of a question show, in a sentence, where nothing else is known of the
answer.

The sentence says what most of these tests have in common: an error, a wrong answer, wrong
gradients, costs. It holds whatever made the answer wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Literal

from autograder.basics.errors import StudentError
from autograder.basics.safe_text import one_line
from autograder.diagnosis.mistake_fit import StudentAnswer, is_refusal
from autograder.sitting.sitting import TestRun
from autograder.sitting.verdict import FUNCTION_RAISED

FailureKind = Literal[
    "error",
    "timeout",
    "crashed",
    "forbidden",
    "missing",
    "accepts",
    "another error",
    "message",
    "value",
    "gradient",
    "changed",
    "cost",
    "something else",
]
_WORDS: dict[FailureKind, str] = {
    "timeout": "your function gives no answer in time",
    "crashed": "the process ends before your function answers",
    "forbidden": "your code uses a function that this question rules out",
    "accepts": "your function answers a call that it should refuse",
    "another error": "your function ends in an error where it should refuse a call by another one",
    "message": "your function raises the error that is asked for, and its message lacks something",
    "value": "your function answers, and the answer is not the right one",
    "gradient": "your answers are right, and the gradients that flow through them are not",
    "changed": "your answers are right, and your function changes what it was given",
    "cost": "your answers are right, and the work that your function does for them is not as asked",
    "something else": "your answers are right, and something else that is looked at is not",
}
_FREE_VALUE = "your function answers, and the answer lacks what the test asks of it"
"""Of questions with many right answers: that an answer is not the answer key's says nothing."""


def describe_failures(
    answer: StudentAnswer,
    charged: Collection[str],
    *,
    is_free: bool,
) -> str:
    """How most of the failed tests fail; "" where nothing can be said of them.

    Args:
        charged: all tests that count as failed; of those that are not in `answer.failed` nothing
            is known.
        is_free: whether other answers than the answer key's are right too.
    """
    kinds = {
        test: _kind_of_failure(answer, test)
        for test in answer.failed
        if test in charged
    }
    if not kinds:
        return ""
    ((kind, count),) = Counter(kinds.values()).most_common(1)
    if kind == "error":
        runs = [answer.failed[test] for test, each in kinds.items() if each == kind]
        words = _describe_errors(runs)
    elif kind == "value" and is_free:
        words = _FREE_VALUE
    else:
        words = _WORDS.get(kind, "")
    if not words:
        return ""
    # the name of an error is the student's
    return f"In {_count_tests(count, len(charged))}, {one_line(words)}: the message says more."


def _kind_of_failure(answer: StudentAnswer, test: str) -> FailureKind:
    """What is wrong first of all in a failed test."""
    run, key_run = answer.failed[test], answer.key_runs[test]
    outcome = run.verdict.outcome
    if outcome != "passed" and outcome != "failed":
        return outcome
    ways = answer.ways(test)
    if ways & {"value", "dtype"}:
        return "value"
    pairs = zip(run.calls, key_run.calls, strict=False)
    if any(call.fault is None and key.fault is not None for call, key in pairs):
        return "accepts"
    last_call = run.calls[-1]
    if last_call.fault is not None:
        return "message" if is_refusal(last_call) else "another error"
    if "gradient" in ways:
        return "gradient"
    if "changed" in ways:
        return "changed"
    counted = [(call.cost, call.lines, call.launch) for call in run.calls]
    if any(figure is not None for figures in counted for figure in figures):
        return "cost"
    return "something else"


def _describe_errors(runs: Collection[TestRun]) -> str:
    """The errors that ended these tests, and their place in the notebook where that is one."""
    faults = [run.calls[-1].fault for run in runs]
    errors = [fault for fault in faults if isinstance(fault, StudentError)]
    names = {error.type_name for error in errors}
    name = "an error"
    if len(names) == 1 and FUNCTION_RAISED not in names:
        (name,) = names
    # a frame is "cell softmax, line 3, in softmax: <source line>"
    places = {
        error.frames[-1].partition(": ")[0] if error.frames else "" for error in errors
    }
    words = f"your code raises {name}"
    if len(places) == 1 and len(errors) == len(runs):
        (place,) = places
        if place:
            words += f", each time in {place}" if len(runs) > 1 else f" in {place}"
    return words


def _count_tests(count: int, failed: int) -> str:
    if failed == 1:
        return "the test that fails"
    if count == failed:
        return (
            "both tests that fail" if failed == 2 else f"all {failed} tests that fail"
        )
    return f"{count} of the {failed} tests that fail"

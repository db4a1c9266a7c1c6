"""From what a test raised to an outcome and a message that the student can act on."""

from __future__ import annotations

from dataclasses import dataclass

from autograder.errors import StudentError, StudentFault
from autograder.model import Outcome
from autograder.outputs.text import claim
from autograder.sandbox.text import plain
from autograder.suite.calls import CallLog
from autograder.suite.collect import SuiteTest

MAX_MESSAGE = 1500


@dataclass(frozen=True, slots=True)
class Verdict:
    """One run of one test."""

    outcome: Outcome
    message: str = ""


def judge(raised: BaseException | None, log: CallLog, test: SuiteTest) -> Verdict:
    """The verdict on a test that ended with `raised` (None: it passed)."""
    if raised is None:
        return Verdict("passed")
    if isinstance(raised, StudentError) and raised.type_name == "NotImplementedError":
        return Verdict("error", f"{_called(log)} is not written yet.")
    if isinstance(raised, StudentError):
        return Verdict("error", _with_hint(_error_message(raised, log), test))
    if isinstance(raised, StudentFault):
        return Verdict(raised.outcome, plain(str(raised), MAX_MESSAGE))  # type: ignore[arg-type]
    if isinstance(raised, AssertionError):
        said = str(raised) or f"It does not hold that {claim(test.name.partition('[')[0])}."
        return Verdict("failed", _with_hint(said, test))
    called = log.describe(log.calls[-1]) if log.calls else "the submission"
    kind = type(log.calls[-1].result).__name__ if log.calls else "nothing"
    said = f"What `{called}` returned (of type {kind}) is not what the check can work with: {type(raised).__name__}."
    return Verdict("failed", _with_hint(said, test))


def on_the_device(verdict: Verdict) -> Verdict:
    """The verdict on a test that passed in the interpreter and then ran on a GPU."""
    if verdict.outcome == "passed":
        return verdict
    return Verdict(verdict.outcome, plain(f"On the GPU (in the interpreter it passes): {verdict.message}", MAX_MESSAGE))


def _error_message(error: StudentError, log: CallLog) -> str:
    return "\n".join([f"{_called(log)} raised {error}", *(f"  {frame}" for frame in error.frames)])


def _called(log: CallLog) -> str:
    return f"`{log.describe(log.calls[-1])}`" if log.calls else "The call"


def _with_hint(said: str, test: SuiteTest) -> str:
    text = f"{said}\n{test.hint}" if test.hint else said
    return plain(text, MAX_MESSAGE)

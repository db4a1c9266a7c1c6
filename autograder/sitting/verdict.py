"""Verdicts: the outcome of a test and a message that the student can act on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from autograder.basics.errors import StudentError, StudentFault
from autograder.basics.safe_text import clean, describe_test
from autograder.records.model import Outcome
from autograder.sitting.unwritten import Stub
from autograder.suite.calls import Call, CallLog
from autograder.suite.collection import SuiteTest
from autograder.suite.compare import WrongValue
from autograder.suite.kinds import describe_other_kind

MAX_MESSAGE = 1500
FUNCTION_RAISED = "FunctionRaised"
"""The name of the worker's error where a function of the test's own raised."""
_UNDEFINED = re.compile(r"NameError: name '(\w+)' is not defined")

Cause = Literal[
    "",
    "wrong value",
    "raised",
    "changed argument",
    "changed argument, asked for",
    "unfit",
]
"""Why a test failed, where all tests of the question decide what that costs (`charges.py`).

"unfit": the test could not work with an answer, and the message is still to be made.
"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one run of one test, and why.

    Attributes:
        hint: the test's own hint, for a student who fails the test.
    """

    outcome: Outcome
    message: str = ""
    hint: str = ""
    cause: Cause = ""

    @property
    def text(self) -> str:
        """Message and hint, as the student reads them."""
        lines = [part for part in (self.message, self.hint) if part]
        return clean("\n".join(lines), MAX_MESSAGE)


def judge(
    raised: BaseException | None,
    log: CallLog,
    test: SuiteTest,
    stub: Stub | None = None,
    called_question: str = "",
) -> Verdict:
    """The verdict on a test.

    Args:
        raised: what ended the test early, if anything did.
        stub: the unwritten question that ended the test's last call, if one did.
        called_question: the question whose function that last call was of.
    """
    if raised is None:
        return _judge_arguments(log)
    if stub is not None:
        return Verdict(
            "error", stub.describe(_describe_last_call(log), called_question)
        )
    if isinstance(raised, StudentError):
        lines = [f"{_describe_last_call(log)} {_describe_error(raised)}"]
        lines += [f"  {frame}" for frame in raised.frames]
        return Verdict("error", "\n".join(lines), test.hint, "raised")
    if isinstance(raised, StudentFault):
        return Verdict(raised.outcome, str(raised))
    if isinstance(raised, AssertionError):
        message = (
            str(raised)
            or f"It does not hold that {describe_test(test.name.partition('[')[0])}."
        )
        cause: Cause = "wrong value" if isinstance(raised, WrongValue) else ""
        return Verdict("failed", message, test.hint, cause)
    return Verdict("failed", f"{type(raised).__name__}: {raised}", test.hint, "unfit")


def _judge_arguments(log: CallLog) -> Verdict:
    """The verdict on a test that came to its end: passed, unless a call changed its arguments."""
    for call in log.calls:
        if call.changed and not call.of_suite:
            message = (
                f"`{log.describe(call)}` changed its argument {', '.join(call.changed)} in place: "
                "it is another one for the caller too. Work on a copy, or make a new one "
                "(`x = x / s`, not `x /= s`)."
            )
            if log.about_arguments:
                return Verdict("failed", message, cause="changed argument, asked for")
            return Verdict("failed", message, cause="changed argument")
    return Verdict("passed")


def explain_unfit(
    verdict: Verdict,
    log: CallLog,
    key_calls: Sequence[Call],
) -> Verdict:
    """The verdict on answers that a test could not work with: says in which way they are unfit.

    Args:
        key_calls: the calls of the same test on the answer key, which passes.
    """
    for call, key_call in zip(log.calls, key_calls, strict=False):
        if (
            call.name != key_call.name
            or call.fault is not None
            or key_call.fault is not None
        ):
            break
        if call.of_suite or call.was_dropped:
            continue
        difference = describe_other_kind(call.result, key_call.result)
        if difference:
            subject = f"`{log.describe(call)}`"
            if difference.startswith(
                "["
            ):  # a part of the answer, as in "[1] is a list"
                subject = f"What {subject} gives"
            return Verdict(verdict.outcome, f"{subject} {difference}", verdict.hint)
    message = (
        f"What {_describe_last_call(log)} gives is of the right kind, but the check cannot work "
        f"with it: {verdict.message}"
    )
    return Verdict(verdict.outcome, message, verdict.hint)


def explain_name(message: str, names: Mapping[str, str]) -> str:
    """The message, with a line where it is the NameError of a name that only a check or a demo
    defines: the answer works in the notebook, where these cells run, and not in grading.

    Args:
        names: each such name → its cell, in words.
    """
    undefined = _UNDEFINED.search(message)
    if undefined is None or undefined[1] not in names:
        return message
    name = undefined[1]
    return (
        f"{message}\nOnly {names[name]} defines {name}. Checks and demos do not run in grading: "
        f"define {name} in your answer's cell, or in a cell of your own."
    )


def _describe_error(error: StudentError) -> str:
    """What a student's function raised. An error of a function that the test had passed to it is
    told as such: the student has not written that function.
    """
    if error.type_name == FUNCTION_RAISED:
        return f"called the function that it was given, and that one raised {error.message}"
    return f"raised {error}"


def _describe_last_call(log: CallLog) -> str:
    calls = [call for call in log.calls if not call.of_suite] or log.calls
    return f"`{log.describe(calls[-1])}`" if calls else "the call"

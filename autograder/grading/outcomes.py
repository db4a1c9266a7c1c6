"""From what a test raised to an outcome and a message that the student can act on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from autograder.errors import StudentError, StudentFault
from autograder.grading.unwritten import Stub
from autograder.model import Outcome
from autograder.suite.calls import Call, CallLog
from autograder.suite.collect import SuiteTest
from autograder.suite.compare import WrongValue
from autograder.suite.kinds import unlike
from autograder.text import claim, clean

MAX_MESSAGE = 1500
_UNDEFINED = re.compile(r"NameError: name '(\w+)' is not defined")

Cause = Literal["", "wrong value", "raised", "changed argument", "changed argument, asked for", "unfit"]
"""What is charged by the question and not by the test (`charges.py`), or is not judged yet: an answer that the test
could not work with."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One run of one test.

    Attributes:
        hint: the test's own, for a student who fails it.
    """

    outcome: Outcome
    message: str = ""
    hint: str = ""
    cause: Cause = ""

    @property
    def said(self) -> str:
        """Message and hint, as the student reads them."""
        return clean("\n".join(part for part in (self.message, self.hint) if part), MAX_MESSAGE)


def judge(
    raised: BaseException | None, log: CallLog, test: SuiteTest, stub: Stub | None = None, called: str = ""
) -> Verdict:
    """The verdict on a test that ended with `raised` (None: it came to its end).

    Args:
        stub: the unwritten question that ended the test's last call, if one did.
        called: the question whose function that call was of.
    """
    if raised is None:
        changed = next((call for call in log.calls if call.changed and not call.of_suite), None)
        if changed is None:
            return Verdict("passed")
        cause: Cause = "changed argument, asked for" if log.about_arguments else "changed argument"
        return Verdict("failed", _how_changed(f"`{log.describe(changed)}`", changed.changed), "", cause)
    if stub is not None:
        return Verdict("error", stub.described(_called(log), called))
    if isinstance(raised, StudentError):
        return Verdict("error", _error_message(raised, log), test.hint, "raised")
    if isinstance(raised, StudentFault):
        return Verdict(raised.outcome, str(raised))
    if isinstance(raised, AssertionError):
        said = str(raised) or f"It does not hold that {claim(test.name.partition('[')[0])}."
        return Verdict("failed", said, test.hint, "wrong value" if isinstance(raised, WrongValue) else "")
    return Verdict("failed", f"{type(raised).__name__}: {raised}", test.hint, "unfit")


def unfit(verdict: Verdict, log: CallLog, right: Sequence[Call]) -> Verdict:
    """The verdict on answers that a test could not work with, in words.

    Args:
        right: the calls that the answer key gets of the same test; it passes it.
    """
    said = ""
    for mine, theirs in zip(log.calls, right, strict=False):
        if mine.name != theirs.name or mine.fault is not None or theirs.fault is not None:
            break
        if not (mine.of_suite or mine.let_go) and (said := unlike(mine.result, theirs.result)):
            said = f"`{log.describe(mine)}` {said}" if said[0] != "[" else f"What `{log.describe(mine)}` gives {said}"
            break
    if not said:
        said = f"What {_called(log)} gives is of the right kind, but the check cannot work with it: {verdict.message}"
    return Verdict(verdict.outcome, said, verdict.hint)


def explain_name(message: str, names: Mapping[str, str]) -> str:
    """The message, with a line where it is the NameError of a name that only a check or a demo defines: the answer
    works in the notebook, where these cells run, and not in grading.

    Args:
        names: each such name → its cell, in words.
    """
    undefined = _UNDEFINED.search(message)
    if undefined is None or undefined[1] not in names:
        return message
    name = undefined[1]
    return (
        f"{message}\nOnly {names[name]} defines {name}. Checks and demos do not run in grading: define {name} in your "
        "answer's cell, or in a cell of your own."
    )


def _how_changed(called: str, changed: tuple[str, ...]) -> str:
    return (
        f"{called} changed its argument {', '.join(changed)} in place: the caller's is different afterwards. "
        "Make a new one instead (`x = x / s`, not `x /= s`)."
    )


def _error_message(error: StudentError, log: CallLog) -> str:
    return "\n".join([f"{_called(log)} raised {error}", *(f"  {frame}" for frame in error.frames)])


def _called(log: CallLog) -> str:
    calls = [call for call in log.calls if not call.of_suite] or log.calls
    return f"`{log.describe(calls[-1])}`" if calls else "the call"

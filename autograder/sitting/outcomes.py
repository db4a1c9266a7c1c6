"""From what a test raised to an outcome and a message that the student can act on.

The release leaves `raise NotImplementedError` where an answer goes. A call that ends there says
which question is not written, which need not be the question whose test made the call. torch raises
NotImplementedError too (softmax of integers); that is an error of the code that asked for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from autograder.basics.errors import StudentError, StudentFault
from autograder.basics.safe_text import clean, describe_test
from autograder.intake.cell_matching import find_answer_cell
from autograder.records.model import Outcome, Submission
from autograder.suite.calls import Call, CallLog
from autograder.suite.collection import SuiteTest
from autograder.suite.compare import WrongValue
from autograder.suite.kinds import unlike

MAX_MESSAGE = 1500
_UNDEFINED = re.compile(r"NameError: name '(\w+)' is not defined")
_FRAME = re.compile(r"cell (?P<cell>.+), line (?P<line>\d+), in ", re.DOTALL)
_STUB = re.compile(r"\s*raise\s+NotImplementedError\b")
_QUOTES = re.compile(r'"""|\'\'\'')

Cause = Literal[
    "", "wrong value", "raised", "changed argument", "changed argument, asked for", "unfit"
]
"""What is charged by the question and not by the test (`charges.py`), or is not judged yet: an
answer that the test could not work with.
"""


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
    raised: BaseException | None,
    log: CallLog,
    test: SuiteTest,
    stub: Stub | None = None,
    called: str = "",
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
        return Verdict(
            "failed", _how_changed(f"`{log.describe(changed)}`", changed.changed), "", cause
        )
    if stub is not None:
        return Verdict("error", stub.described(_called(log), called))
    if isinstance(raised, StudentError):
        return Verdict("error", _error_message(raised, log), test.hint, "raised")
    if isinstance(raised, StudentFault):
        return Verdict(raised.outcome, str(raised))
    if isinstance(raised, AssertionError):
        said = str(raised) or f"It does not hold that {describe_test(test.name.partition('[')[0])}."
        return Verdict(
            "failed", said, test.hint, "wrong value" if isinstance(raised, WrongValue) else ""
        )
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
            said = (
                f"`{log.describe(mine)}` {said}"
                if said[0] != "["
                else f"What `{log.describe(mine)}` gives {said}"
            )
            break
    if not said:
        said = (
            f"What {_called(log)} gives is of the right kind, but the check cannot work with it: "
            f"{verdict.message}"
        )
    return Verdict(verdict.outcome, said, verdict.hint)


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
        f"define {name} in your "
        "answer's cell, or in a cell of your own."
    )


def _how_changed(called: str, changed: tuple[str, ...]) -> str:
    return (
        f"{called} changed its argument {', '.join(changed)} in place: the caller's is different "
        "afterwards. "
        "Make a new one instead (`x = x / s`, not `x /= s`)."
    )


def _error_message(error: StudentError, log: CallLog) -> str:
    return "\n".join([f"{_called(log)} raised {error}", *(f"  {frame}" for frame in error.frames)])


def _called(log: CallLog) -> str:
    calls = [call for call in log.calls if not call.of_suite] or log.calls
    return f"`{log.describe(calls[-1])}`" if calls else "the call"


@dataclass(frozen=True, slots=True)
class Stub:
    """The `raise NotImplementedError` of a question cell that ended a call.

    Attributes:
        question: whose cell it stands in.
        line: its number in that cell, from 1.
        code_above, code_below: whether the student's own code stands in the same block, before or
            after it.
    """

    question: str
    line: int
    code_above: bool = False
    code_below: bool = False

    def described(self, call: str, called: str) -> str:
        """What is wrong, in words for the student.

        Args:
            call: the call that the test made, as text.
            called: the question whose function that was.
        """
        unfinished = self.code_above or self.code_below
        state = "is not finished" if unfinished else "is not written yet"
        said = (
            f"{call} {state}"
            if called == self.question
            else f"{call} needs `{self.question}`, which {state}"
        )
        if not unfinished:
            return f"{said}."
        place = "below your code" if self.code_above else "above your code, which is never reached"
        line = f"line {self.line} of cell {self.question}"
        return (
            f"{said}: `raise NotImplementedError` still stands in {line}, {place}. "
            "Delete that line."
        )


def stub_of(
    fault: StudentFault | None, submission: Submission, released: Mapping[str, str]
) -> Stub | None:
    """The stub that a fault comes from, or None where it comes from anything else.

    Args:
        released: the release's text of each question cell; lines that stand there are not the
            student's.
    """
    if (
        not isinstance(fault, StudentError)
        or fault.type_name != "NotImplementedError"
        or not fault.frames
    ):
        return None
    frame = _FRAME.match(fault.frames[-1])
    if frame is None:
        return None
    question = (
        frame["cell"]
        if frame["cell"] in released
        else _answered_in(frame["cell"], submission, released)
    )
    cell = next((cell for cell in submission.cells if cell.id == frame["cell"]), None)
    if question is None or cell is None:
        return None
    number, lines = int(frame["line"]), cell.source.splitlines()
    if not 1 <= number <= len(lines) or not _STUB.match(lines[number - 1]):
        return None
    ours = {line.strip() for line in released[question].splitlines()}
    above, below = _block(lines, number - 1)
    return Stub(question, number, _has_code(above, ours), _has_code(below, ours))


def _answered_in(cell_id: str, submission: Submission, questions: Iterable[str]) -> str | None:
    """The question that a cell of the student's own answers, if it answers one."""
    answers = ((name, find_answer_cell(submission, name)) for name in questions)
    return next((name for name, cell in answers if cell is not None and cell.id == cell_id), None)


def _block(lines: list[str], at: int) -> tuple[list[str], list[str]]:
    """The lines before and after `lines[at]` that are indented as far as it or farther, up to the
    next that is not.
    """
    depth = _indentation(lines[at])

    def inside(line: str) -> bool:
        return not line.strip() or _indentation(line) >= depth

    first = at
    while first > 0 and inside(lines[first - 1]):
        first -= 1
    last = at
    while last + 1 < len(lines) and inside(lines[last + 1]):
        last += 1
    return lines[first:at], lines[at + 1 : last + 1]


def _indentation(line: str) -> int:
    expanded = line.expandtabs()
    return len(expanded) - len(expanded.lstrip())


def _has_code(lines: list[str], ours: set[str]) -> bool:
    """Whether a line is code of the student's: none of the release's, no comment, no part of a
    docstring.
    """
    in_docstring = False
    for line in lines:
        text = line.strip()
        quotes = len(_QUOTES.findall(text))
        if in_docstring or quotes:
            in_docstring ^= quotes % 2 == 1
        elif (
            text
            and not text.startswith("#")
            and text not in ours
            and not _STUB.match(text)
            and text != "pass"
        ):
            return True
    return False

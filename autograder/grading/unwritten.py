"""Tells a question that is not written yet from an error: whose `raise NotImplementedError` ended a call.

The release leaves `raise NotImplementedError` where an answer goes. A call that ends there says which question is not
written, which need not be the question whose test made the call. torch raises NotImplementedError too (softmax of
integers); that is an error of the code that asked for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from autograder.errors import StudentError, StudentFault
from autograder.intake.matching import cell_of
from autograder.model import Submission

_FRAME = re.compile(r"cell (?P<cell>.+), line (?P<line>\d+), in ", re.DOTALL)
_STUB = re.compile(r"\s*raise\s+NotImplementedError\b")
_QUOTES = re.compile(r'"""|\'\'\'')


@dataclass(frozen=True, slots=True)
class Stub:
    """The `raise NotImplementedError` of a question cell that ended a call.

    Attributes:
        question: whose cell it stands in.
        line: its number in that cell, from 1.
        code_above, code_below: whether the student's own code stands in the same block, before or after it.
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
        said = f"{call} {state}" if called == self.question else f"{call} needs `{self.question}`, which {state}"
        if not unfinished:
            return f"{said}."
        place = "below your code" if self.code_above else "above your code, which is never reached"
        line = f"line {self.line} of cell {self.question}"
        return f"{said}: `raise NotImplementedError` still stands in {line}, {place}. Delete that line."


def stub_of(fault: StudentFault | None, submission: Submission, released: Mapping[str, str]) -> Stub | None:
    """The stub that a fault comes from, or None where it comes from anything else.

    Args:
        released: the release's text of each question cell; lines that stand there are not the student's.
    """
    if not isinstance(fault, StudentError) or fault.type_name != "NotImplementedError" or not fault.frames:
        return None
    frame = _FRAME.match(fault.frames[-1])
    if frame is None:
        return None
    question = frame["cell"] if frame["cell"] in released else _answered_in(frame["cell"], submission, released)
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
    answers = ((name, cell_of(submission, name)) for name in questions)
    return next((name for name, cell in answers if cell is not None and cell.id == cell_id), None)


def _block(lines: list[str], at: int) -> tuple[list[str], list[str]]:
    """The lines before and after `lines[at]` that are indented as far as it or farther, up to the next that is not."""
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
    """Whether a line is code of the student's: none of the release's, no comment, no part of a docstring."""
    in_docstring = False
    for line in lines:
        text = line.strip()
        quotes = len(_QUOTES.findall(text))
        if in_docstring or quotes:
            in_docstring ^= quotes % 2 == 1
        elif text and not text.startswith("#") and text not in ours and not _STUB.match(text) and text != "pass":
            return True
    return False

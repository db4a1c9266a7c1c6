"""Answers that are not written yet: calls that end at the release's `raise NotImplementedError`.

The question that is not written need not be the one whose test made the call. torch raises
NotImplementedError too (softmax of integers); that is an error of the code that called torch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autograder.basics.errors import StudentError, StudentFault
from autograder.intake.cell_matching import find_answer_cell
from autograder.records.submission import Submission

_FRAME = re.compile(r"cell (?P<cell>.+), line (?P<line>\d+), in ", re.DOTALL)
_STUB = re.compile(r"\s*raise\s+NotImplementedError\b")
_QUOTES = re.compile(r'"""|\'\'\'')


@dataclass(frozen=True, slots=True)
class Stub:
    """The `raise NotImplementedError` of a question cell that ended a call.

    Attributes:
        question: the question in whose cell the stub stands.
        line: its number in that cell, from 1.
        code_above, code_below: whether the student's own code stands in the same block, before or
            after it.
    """

    question: str
    line: int
    code_above: bool = False
    code_below: bool = False

    def describe(
        self,
        call: str,
        called_question: str,
    ) -> str:
        """The message for the student.

        Args:
            call: the call that the test made, as text.
            called_question: the question whose function was called.
        """
        is_unfinished = self.code_above or self.code_below
        state = "is not finished" if is_unfinished else "is not written yet"
        if called_question == self.question:
            message = f"{call} {state}"
        else:
            message = f"{call} needs `{self.question}`, which {state}"
        if not is_unfinished:
            return f"{message}."
        place = (
            "below your code"
            if self.code_above
            else "above your code, which is never reached"
        )
        return (
            f"{message}: `raise NotImplementedError` still stands in line {self.line} of "
            f"cell {self.question}, {place}. Delete that line."
        )


def find_stub(
    fault: StudentFault | None,
    submission: Submission,
    released: Mapping[str, str],
) -> Stub | None:
    """The stub that raised a fault; None where the fault has another origin.

    Args:
        released: the release's text of each question cell, whose lines are not the student's.
    """
    if not isinstance(fault, StudentError) or fault.type_name != "NotImplementedError":
        return None
    frame = _FRAME.match(fault.frames[-1]) if fault.frames else None
    if frame is None:
        return None
    cell = next((cell for cell in submission.cells if cell.id == frame["cell"]), None)
    if cell is None:
        return None
    question = (
        cell.id
        if cell.id in released
        else _find_question(cell.id, submission, released)
    )
    lines = cell.source.splitlines()
    index = int(frame["line"]) - 1
    if question is None or not 0 <= index < len(lines) or not _STUB.match(lines[index]):
        return None
    released_lines = {line.strip() for line in released[question].splitlines()}
    above, below = _split_block(lines, index)
    return Stub(
        question,
        index + 1,
        _has_code(above, released_lines),
        _has_code(below, released_lines),
    )


def _find_question(
    cell_id: str,
    submission: Submission,
    released: Mapping[str, str],
) -> str | None:
    """The question that is answered in a cell which the student added, if any."""
    for question in released:
        answer = find_answer_cell(submission, question)
        if answer is not None and answer.id == cell_id:
            return question
    return None


def _split_block(lines: list[str], index: int) -> tuple[Sequence[str], Sequence[str]]:
    """The lines of a stub's block before and after the stub, which is `lines[index]`.

    A block ends at the first line that is indented less.
    """
    depth = _indentation(lines[index])

    def is_inside(line: str) -> bool:
        return not line.strip() or _indentation(line) >= depth

    first = index
    while first > 0 and is_inside(lines[first - 1]):
        first -= 1
    end = index + 1
    while end < len(lines) and is_inside(lines[end]):
        end += 1
    return lines[first:index], lines[index + 1 : end]


def _indentation(line: str) -> int:
    expanded = line.expandtabs()
    return len(expanded) - len(expanded.lstrip())


def _has_code(lines: Sequence[str], released_lines: set[str]) -> bool:
    """Whether a line is the student's code: not the release's, no comment, no docstring."""
    in_docstring = False
    for line in lines:
        text = line.strip()
        quotes = len(_QUOTES.findall(text))
        if in_docstring or quotes:
            in_docstring ^= quotes % 2 == 1
            continue
        is_blank = text in ("", "pass") or text.startswith("#")
        if not is_blank and text not in released_lines and not _STUB.match(text):
            return True
    return False

"""The records of `intake/`: one notebook as it was handed in, read and matched to the release.

`check.py` carries this module to students, with the modules of `intake/`, so all of them need the
standard library alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

CellState = Literal[
    "ok", "error", "timeout", "crashed", "missing", "restored", "skipped"
]
Role = Literal["given", "question", "check", "demo", "written", "text", "extra"]
"""The purpose of a cell: given code, a question's solution, a visible check (locked), a demo (not
run when grading), a written answer, plain text, or a cell that the student added.
"""


@dataclass(frozen=True, slots=True)
class Cell:
    """One code cell of a submission, in the order in which it runs.

    Attributes:
        id: the grade_id it was matched to, or "extra-<n>" for a cell of the student's own.
        role: the cell's purpose.
        source: Python, magics already made harmless.
        note: the reader's change to the cell, for the student ("restored from the release"), or "".
        place: the cell's number in the file, from 0. A cell that was restored, or cut out of a
            locked cell, lies between two numbers.
    """

    id: str
    role: Role
    source: str
    note: str = ""
    place: float = dataclasses.field(default=-1.0, compare=False)


@dataclass(frozen=True, slots=True)
class HandedInCell:
    """One cell of a notebook as it was handed in.

    Attributes:
        kind: "code", "markdown" or "raw".
        source: its text.
        id: the id of the matching released cell; "" for a cell of the student's own. Several cells
            may hold parts of one written answer.
        attachments: pictures inside a text cell: file name → media type → base64.
    """

    kind: str
    source: str
    id: str = ""
    attachments: Mapping[str, Mapping[str, str]] = dataclasses.field(
        default_factory=dict
    )


@dataclass(frozen=True, slots=True)
class Answer:
    """A written answer as it was handed in, for a person to read.

    Attributes:
        id: the answer's grade_id.
        text: the prompt with the answer, and the student's own cells below the prompt.
        blank: whether nothing was written, so that no person need look.
        elsewhere: cells of the file, from 0, in which the answer may stand, nearest first, where
            the cell of the prompt was left as released.
    """

    id: str
    text: str
    blank: bool = False
    elsewhere: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Submission:
    """One notebook as handed in, read and matched to the release."""

    student: str
    assignment: str
    path: Path
    sha256: str
    cells: tuple[Cell, ...]
    written: tuple[Answer, ...] = ()
    """The written answers, in the order of the release. An answer whose cell was deleted is not
    here, unless the notebook has text of the student's own in which the answer may stand.
    """
    handed_in: tuple[HandedInCell, ...] = ()
    """Every cell of the file, in the file's order."""
    notices: tuple[CellOutcome, ...] = ()
    """Messages about cells that are not in `cells`: missing, duplicated, not run."""
    companions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """The release's Python files beside the notebook, which given cells import: path → text."""


@dataclass(frozen=True, slots=True)
class FoundSubmission:
    """A notebook that waits to be read: its student and its path.

    Attributes:
        below: the folder below which no part of the path may be a link, since students may have
            made the link. Without a folder the rule holds for the notebook and, in nbgrader's
            layout, for the two folders above the notebook.
    """

    student: str
    path: Path
    below: Path | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class CellOutcome:
    """The outcome of one cell's run, in words that a student understands."""

    id: str
    outcome: CellState
    message: str = ""

"""One notebook as it was handed in, read and matched to the release: the records of `intake/`.

`check.py` carries them to students, as it carries the modules that fill them: they need the
standard library alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

CellState = Literal["ok", "error", "timeout", "crashed", "missing", "restored", "skipped"]
Role = Literal["given", "question", "check", "demo", "written", "text", "extra"]
"""What a cell is for: given code, a question's solution, a visible check (locked), a demo (not run
when grading), a written answer, plain text, or a cell that the student added.
"""


@dataclass(frozen=True, slots=True)
class Cell:
    """One code cell of a submission, in the order in which it runs.

    Attributes:
        id: the grade_id it was matched to, or "extra-<n>" for a cell of the student's own.
        role: what the cell is for.
        source: Python, magics already made harmless.
        note: what the reader did to it, for the student ("restored from the release"), or "".
        place: which cell of the file it is, from 0. A cell that was restored, or cut out of a
            locked one, lies between two of them.
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
        id: the released cell that it was recognised as; "" for a cell of the student's own. Several
            cells may hold parts of one written answer.
        attachments: pictures inside a text cell: file name → media type → base64.
    """

    kind: str
    source: str
    id: str = ""
    attachments: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """A written answer as it was handed in, for a person to read.

    Attributes:
        id: its grade_id.
        text: the prompt with the answer, and what stands in cells of the student's own below it.
        blank: nothing was written: a person need not look.
        elsewhere: cells of the file, from 0, in which the answer may stand, nearest first: the
            place for it was left as released.
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
    """The written answers, in the order of the release; one whose cell was deleted is not in it,
    unless the notebook has text of the student's own in which it may stand.
    """
    handed_in: tuple[HandedInCell, ...] = ()
    """Every cell of the file, in its order."""
    notices: tuple[CellOutcome, ...] = ()
    """What the reader has to say about cells that are not in `cells`: missing, duplicated, not
    run.
    """


@dataclass(frozen=True, slots=True)
class FoundSubmission:
    """A notebook that waits to be read: whose it is and where it lies.

    Attributes:
        below: the folder from which on no part of the path may be a link, since students may have
            made it; without it, those are the notebook and, in nbgrader's layout, the two folders
            above it.
    """

    student: str
    path: Path
    below: Path | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class CellOutcome:
    """What happened to one cell when it ran, in words that a student understands."""

    id: str
    outcome: CellState
    message: str = ""

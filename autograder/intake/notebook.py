"""Read one handed-in notebook and match it to the release, for the grader."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.basics.errors import UnreadableSubmission
from autograder.basics.handed_in import first_link, printable_name
from autograder.intake.cell_matching import LOST, match_cells
from autograder.intake.magics import strip_magics
from autograder.intake.reading import Notebook, read_notebook
from autograder.intake.released_notebook import Release
from autograder.records.submission import Cell, CellOutcome, FoundSubmission, Submission

if TYPE_CHECKING:  # `check.py` carries this module, and not the course's settings
    from autograder.course import Limits

_MANY_LOST = 3
"""So many cells recognised by their content alone get one remark together."""

_NOTEBOOK = "notebook"
"""The id of notices about the file as a whole."""

_OWN_COURSE = re.compile(r"^[ \t]*(?:from|import)[ \t]+my_course\b", re.MULTILINE)
"""The module of a student's own earlier answers, which is not handed in."""


def read_submission(
    submission: FoundSubmission,
    release: Release,
    limits: Limits,
) -> Submission:
    """Read a found notebook and match it to the release.

    Raises:
        UnreadableSubmission: it cannot be graded; a line names the file and says what to do.
    """
    check_is_file(submission, release.assignment)
    notebook = read_notebook(submission.path, limits.notebook_mb)
    remarks = _name_remarks(submission, release.assignment)
    return match_notebook(
        notebook,
        release,
        submission.student,
        submission.path,
        remarks,
    )


def match_notebook(
    notebook: Notebook,
    release: Release,
    student: str,
    path: Path,
    remarks: Sequence[str] = (),
) -> Submission:
    """Match a notebook to the release and make its code plain Python.

    Args:
        path: where the notebook was read from.
        remarks: remarks about the file, besides those of the notebook's reader.

    Raises:
        UnreadableSubmission: it is a notebook of something else.
    """
    try:
        matched = match_cells(notebook.cells, release)
    except UnreadableSubmission as problem:
        raise UnreadableSubmission(
            f"{printable_name(path.name)}: {problem}; hand in the notebook of {release.assignment}"
        ) from None
    about_file = [*notebook.remarks, *remarks]
    cells = matched.cells
    lost = sum(LOST in cell.note for cell in cells)
    if lost >= _MANY_LOST:
        # An editor dropped all metadata: one remark about the file instead of one on every cell.
        cells = tuple(map(_without_lost, cells))
        about_file.append(
            f"an editor dropped the labels of its cells: {lost} cells were recognised by their "
            "content, which costs nothing"
        )
    file_notices = [CellOutcome(_NOTEBOOK, "ok", remark) for remark in about_file]
    return Submission(
        student=student,
        assignment=release.assignment,
        path=path,
        sha256=notebook.sha256,
        cells=tuple(map(_as_plain_python, cells)),
        written=matched.written,
        handed_in=matched.handed_in,
        notices=(*file_notices, *matched.notices),
        companions=release.companions,
    )


def _without_lost(cell: Cell) -> Cell:
    parts = [part for part in cell.note.split("; ") if part != LOST]
    return dataclasses.replace(cell, note="; ".join(parts))


def _as_plain_python(cell: Cell) -> Cell:
    source, left_out = strip_magics(cell.source)
    notes = [cell.note, left_out]
    if _OWN_COURSE.search(source):
        notes.append("graded with the staff's code in place of my_course")
    return dataclasses.replace(
        cell,
        source=source,
        note="; ".join(filter(None, notes)),
    )


def is_in_layout(
    path: Path,
    student: str,
    assignment: str,
) -> bool:
    """Whether the notebook lies in nbgrader's `<student>/<assignment>/`."""
    return path.parent.name == assignment and path.parent.parent.name == student


def check_is_file(submission: FoundSubmission, assignment: str) -> None:
    """Refuse a submission that is no file, before the file is opened.

    Raises:
        UnreadableSubmission: it is a link, or lies behind one, or does not exist.
    """
    folder = submission.path.parent
    above = folder.parent.parent if folder.name == assignment else folder
    if link := first_link(submission.path, submission.below or above):
        raise UnreadableSubmission(
            f"{printable_name(link.name)}: is a link, not a file; hand in the notebook itself, or "
            "name the place where it lies"
        )
    if not os.path.lexists(submission.path):
        name = printable_name(submission.path.name)
        files = _describe_files(folder)
        instead = f"there is {files}: " if files else ""
        raise UnreadableSubmission(
            f"{name}: there is no such file; {instead}a notebook must be handed in"
        )


def _describe_files(folder: Path) -> str:
    """The first files in a folder where a notebook should be; "" for none."""
    try:
        names = sorted(
            path.name for path in folder.iterdir() if not path.name.startswith(".")
        )
    except OSError:
        return ""
    shown = [printable_name(name) for name in names[:3]]
    return ", ".join([*shown, "…"] if len(names) > 3 else shown)


def _name_remarks(submission: FoundSubmission, assignment: str) -> list[str]:
    """Remarks on a file that is not named like the assignment, or is not the only notebook."""
    path = submission.path
    expected = f"{assignment}.ipynb"
    if not is_in_layout(path, submission.student, assignment):
        return []
    name = printable_name(path.name)
    remarks = []
    if path.name != expected:
        remarks.append(
            f"the notebook is called {name}, not {expected}; it was graded all the same"
        )
    names = sorted(entry.name for entry in path.parent.iterdir())
    ungraded = [name for name in names if name.endswith(".ipynb") and name != path.name]
    if ungraded:
        first = printable_name(ungraded[0])
        remarks.append(f"there are several notebooks; {name} was graded, not {first}")
    return remarks

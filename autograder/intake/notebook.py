"""One handed-in notebook, read and matched: what the grader takes in."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.basics.errors import UnreadableSubmission
from autograder.basics.handed_in import first_link, printable_name
from autograder.intake.cell_matching import LOST, MatchedCells, match_cells
from autograder.intake.magics import strip_magics
from autograder.intake.reading import Notebook, read_notebook
from autograder.intake.released_notebook import Release
from autograder.records.submission import Cell, CellOutcome, FoundSubmission, Submission

if TYPE_CHECKING:  # `check.py` carries this module, and not the course's settings
    from autograder.course import Limits

MANY = 3
"""So many cells recognised by their content alone are said in one remark."""

NOTEBOOK = "notebook"
"""The id of notices about the file as a whole."""

_OWN_COURSE = re.compile(r"^[ \t]*(?:from|import)[ \t]+my_course\b", re.MULTILINE)
"""The module of a student's own earlier answers, which is not handed in."""


def read_submission(found: FoundSubmission, release: Release, limits: Limits) -> Submission:
    """Read a found notebook and match it to the release.

    Raises:
        UnreadableSubmission: it cannot be graded; one line that names the file and says what to do.
    """
    path = found.path
    check_is_file(found, release.assignment)
    notebook = read_notebook(path, limits.notebook_mb)
    return match_notebook(notebook, release, found.student, path, _name_remarks(found, release))


def match_notebook(
    notebook: Notebook, release: Release, student: str, path: Path, remarks: Sequence[str] = ()
) -> Submission:
    """Match a notebook to the release and make its code plain Python.

    Args:
        path: where the notebook was read from.
        remarks: what is to be said of the file, besides what its reader says.

    Raises:
        UnreadableSubmission: it is a notebook of something else.
    """
    try:
        matched = match_cells(notebook.cells, release)
    except UnreadableSubmission as problem:
        raise UnreadableSubmission(
            f"{printable_name(path.name)}: {problem}; hand in the notebook of {release.assignment}"
        ) from None
    matched = _said_once(matched)
    about_file = [CellOutcome(NOTEBOOK, "ok", remark) for remark in (*notebook.remarks, *remarks)]
    return Submission(
        student=student,
        assignment=release.assignment,
        path=path,
        sha256=notebook.sha256,
        cells=tuple(_plain_python(cell) for cell in matched.cells),
        written=matched.written,
        handed_in=matched.handed_in,
        notices=(*about_file, *matched.notices),
    )


def _said_once(matched: MatchedCells) -> MatchedCells:
    """Where an editor dropped all metadata, one remark about the file instead of one on every
    cell.
    """
    lost = sum(LOST in cell.note for cell in matched.cells)
    if lost < MANY:
        return matched
    cells = tuple(
        dataclasses.replace(
            cell, note="; ".join(part for part in cell.note.split("; ") if part != LOST)
        )
        for cell in matched.cells
    )
    remark = (
        f"its nbgrader metadata is gone: {lost} cells were recognised by their content, which "
        "costs nothing"
    )
    return dataclasses.replace(
        matched, cells=cells, notices=(CellOutcome(NOTEBOOK, "ok", remark), *matched.notices)
    )


def _plain_python(cell: Cell) -> Cell:
    source, left_out = strip_magics(cell.source)
    exchanged = (
        "graded with the staff's code in place of my_course" if _OWN_COURSE.search(source) else ""
    )
    note = "; ".join(part for part in (cell.note, left_out, exchanged) if part)
    return dataclasses.replace(cell, source=source, note=note)


def is_in_layout(path: Path, student: str, assignment: str) -> bool:
    """The notebook lies in nbgrader's `<student>/<assignment>/`."""
    return path.parent.name == assignment and path.parent.parent.name == student


def check_is_file(found: FoundSubmission, assignment: str) -> None:
    """What can be said of a submission before it is opened.

    Raises:
        UnreadableSubmission: it is a link, or lies behind one, or is not there.
    """
    path = found.path
    above = path.parent.parent.parent if path.parent.name == assignment else path.parent
    if link := first_link(path, found.below or above):
        raise UnreadableSubmission(
            f"{printable_name(link.name)}: is a link, not a file; hand in the notebook itself, "
            "or name "
            "the place where it lies"
        )
    if not os.path.lexists(path):
        raise UnreadableSubmission(
            f"{printable_name(path.name)}: there is no such file{_instead(path.parent)}"
        )


def _instead(folder: Path) -> str:
    """What lies in the folder where a notebook should; and what to do."""
    try:
        there = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    except OSError:
        there = []
    named = ", ".join(printable_name(name) for name in there[:3]) + (
        ", …" if len(there) > 3 else ""
    )
    return (
        f"; there is {named}: a notebook must be handed in"
        if there
        else "; a notebook must be handed in"
    )


def _name_remarks(found: FoundSubmission, release: Release) -> list[str]:
    """What to say where the file is not called like the assignment, or is not the only one."""
    expected = f"{release.assignment}.ipynb"
    if not is_in_layout(found.path, found.student, release.assignment):
        return []
    remarks = []
    if found.path.name != expected:
        remarks.append(
            f"the notebook is called {printable_name(found.path.name)}, not {expected}; it was "
            "graded "
            "all the same"
        )
    with os.scandir(found.path.parent) as entries:
        others = sorted(
            e.name for e in entries if e.name.endswith(".ipynb") and e.name != found.path.name
        )
    if others:
        remarks.append(
            f"there are several notebooks; {printable_name(found.path.name)} was graded, not "
            f"{printable_name(others[0])}"
        )
    return remarks

"""Assignments in nbgrader's database: their notebooks and cells, as the release has them.

nbgrader refuses to change the cells of an assignment that has submissions. Tests get corrected and
questions get added during a course, so here the cells follow the release, and submissions that are
there get the new rows. Nothing is committed: the caller ends the transaction.
"""

from __future__ import annotations

import logging
from typing import Any

from nbgrader.api import (
    Assignment,
    BaseCell,
    Comment,
    Grade,
    GradeCell,
    Notebook,
    SolutionCell,
    SourceCell,
    SubmittedNotebook,
    TaskCell,
)
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from autograder.nbgrader.released_cells import Release, ReleaseCell

log = logging.getLogger(__name__)

GRADED = ("GradeCell", "TaskCell")
COMMENTED = ("SolutionCell", "TaskCell")

_Row = tuple[type[Any], dict[str, Any]]
"""A row of the database: its table, and its values."""


def register_release(
    db: Session, course_id: str, assignment_name: str, release: Release
) -> Notebook:
    """Make the database's assignment, notebook and cells what the release has."""
    assignment = db.scalars(select(Assignment).filter_by(name=assignment_name)).one_or_none()
    if assignment is None:
        assignment = Assignment(name=assignment_name, course_id=course_id)
        db.add(assignment)
        db.flush()
    found = select(Notebook).filter_by(name=release.notebook, assignment_id=assignment.id)
    notebook = db.scalars(found).one_or_none()
    if notebook is None:
        notebook = Notebook(name=release.notebook, assignment_id=assignment.id)
        db.add(notebook)
    notebook.kernelspec = release.kernelspec
    db.flush()
    _register_cells(db, notebook, release.cells)
    _register_sources(db, notebook, release.cells)
    db.flush()
    _complete_submissions(db, notebook)
    return notebook


def cell_ids(db: Session, notebook: Notebook) -> dict[tuple[str, str], str]:
    """(name, kind) → database id of the notebook's cells."""
    rows = db.execute(
        select(BaseCell.name, BaseCell.type, BaseCell.id).filter_by(notebook_id=notebook.id)
    )
    return {(name, kind): key for name, kind, key in rows}


def _register_cells(db: Session, notebook: Notebook, cells: tuple[ReleaseCell, ...]) -> None:
    wanted: dict[Any, _Row] = {}
    for cell in cells:
        scored = {"max_score": cell.points, "cell_type": cell.cell_type}
        for kind, is_wanted, values in (
            (GradeCell, cell.grade, scored),
            (SolutionCell, cell.solution, {}),
            (TaskCell, cell.task, scored),
        ):
            if is_wanted:
                wanted[cell.grade_id, kind.__name__] = (kind, {"name": cell.grade_id, **values})
    stored = {
        (cell.name, cell.type): cell
        for cell in db.scalars(select(BaseCell).filter_by(notebook_id=notebook.id))
    }
    for gone in _follow(db, notebook, stored, wanted):
        log.warning("cell %r is no longer in the release; its scores are removed", gone.name)
        db.execute(delete(Grade).where(Grade.cell_id == gone.id))
        db.execute(delete(Comment).where(Comment.cell_id == gone.id))
        db.delete(gone)


def _register_sources(db: Session, notebook: Notebook, cells: tuple[ReleaseCell, ...]) -> None:
    wanted: dict[Any, _Row] = {}
    for cell in cells:
        values = {"cell_type": cell.cell_type, "locked": cell.locked, "source": cell.source}
        wanted[cell.grade_id] = (
            SourceCell,
            {"name": cell.grade_id, "checksum": cell.checksum or None, **values},
        )
    stored = {
        cell.name: cell
        for cell in db.scalars(select(SourceCell).filter_by(notebook_id=notebook.id))
    }
    for gone in _follow(db, notebook, stored, wanted):
        db.delete(gone)


def _follow(
    db: Session, notebook: Notebook, stored: dict[Any, Any], wanted: dict[Any, _Row]
) -> list[Any]:
    """Make rows of the notebook what is wanted; returns the rows that nobody wants."""
    for key, (kind, values) in wanted.items():
        row = stored.pop(key, None)
        if row is None:
            db.add(kind(notebook_id=notebook.id, **values))
        else:
            for attribute, value in values.items():
                setattr(row, attribute, value)
    return list(stored.values())


def _complete_submissions(db: Session, notebook: Notebook) -> None:
    """Give the submissions that are there a row for each cell that is new."""
    submitted = set(db.scalars(select(SubmittedNotebook.id).filter_by(notebook_id=notebook.id)))
    if not submitted:
        return
    ids = cell_ids(db, notebook)
    for row, kinds in ((Grade, GRADED), (Comment, COMMENTED)):
        wanted = {key for (_, kind), key in ids.items() if kind in kinds}
        there = {
            tuple(key)
            for key in db.execute(
                select(row.notebook_id, row.cell_id).where(row.cell_id.in_(wanted))
            )
        }
        for notebook_id in submitted:
            db.add_all(
                row(notebook_id=notebook_id, cell_id=key)
                for key in wanted
                if (notebook_id, key) not in there
            )

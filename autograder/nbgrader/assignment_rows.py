"""Writes the notebooks and cells of an assignment into nbgrader's database.

nbgrader refuses to change the cells of an assignment that has submissions. Tests get corrected and
questions get added during a course, so here the database follows the release, and submissions that
are already there get the new rows. Nothing is committed: the caller ends the transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
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

from autograder.nbgrader.released_cells import NbgraderCell, NbgraderNotebook

log = logging.getLogger(__name__)

GRADED = ("GradeCell", "TaskCell")
COMMENTED = ("SolutionCell", "TaskCell")

_CellRows = dict[tuple[str, type[Any]], dict[str, Any]]
"""(name of a cell, table) → values of a row."""


def register_release(
    db: Session, course_id: str, assignment_name: str, release: NbgraderNotebook
) -> Notebook:
    """Make the assignment, notebook and cells in the database equal to those of the release."""
    same_name = select(Assignment).filter_by(name=assignment_name)
    assignment = db.scalars(same_name).one_or_none()
    if assignment is None:
        assignment = Assignment(name=assignment_name, course_id=course_id)
        db.add(assignment)
        db.flush()
    same_notebook = select(Notebook).filter_by(
        name=release.name, assignment_id=assignment.id
    )
    notebook = db.scalars(same_notebook).one_or_none()
    if notebook is None:
        notebook = Notebook(name=release.name, assignment_id=assignment.id)
        db.add(notebook)
    notebook.kernelspec = release.kernelspec
    db.flush()
    _register_cells(db, notebook, release.cells)
    _complete_submissions(db, notebook)
    return notebook


def cell_ids(db: Session, notebook: Notebook) -> dict[tuple[str, str], str]:
    """(name, kind) → database id of the notebook's cells."""
    columns = select(BaseCell.name, BaseCell.type, BaseCell.id)
    rows = db.execute(columns.filter_by(notebook_id=notebook.id))
    return {(name, kind): id_ for name, kind, id_ in rows}


def _register_cells(
    db: Session,
    notebook: Notebook,
    cells: Sequence[NbgraderCell],
) -> None:
    """Add, update and remove rows of cells, so that they are those of the release."""
    tables: list[type[Any]] = [BaseCell, SourceCell]
    stored = [
        row
        for table in tables
        for row in db.scalars(select(table).filter_by(notebook_id=notebook.id))
    ]
    released = _rows_of_cells(cells)
    for row in stored:
        values = released.pop((row.name, type(row)), None)
        if values is not None:
            for column, value in values.items():
                setattr(row, column, value)
            continue
        if not isinstance(row, SourceCell):
            log.warning(
                "cell %r is no longer in the release; its scores are removed", row.name
            )
            db.execute(delete(Grade).where(Grade.cell_id == row.id))
            db.execute(delete(Comment).where(Comment.cell_id == row.id))
        db.delete(row)
    for (name, kind), values in released.items():
        db.add(kind(notebook_id=notebook.id, name=name, **values))


def _rows_of_cells(cells: Sequence[NbgraderCell]) -> _CellRows:
    """The rows that the database should have for these cells."""
    rows: _CellRows = {}
    for cell in cells:
        scored = {"max_score": cell.points, "cell_type": cell.cell_type}
        if cell.grade:
            rows[cell.grade_id, GradeCell] = scored
        if cell.solution:
            rows[cell.grade_id, SolutionCell] = {}
        if cell.task:
            rows[cell.grade_id, TaskCell] = scored
        rows[cell.grade_id, SourceCell] = {
            "cell_type": cell.cell_type,
            "locked": cell.locked,
            "source": cell.source,
            "checksum": cell.checksum or None,
        }
    return rows


def _complete_submissions(db: Session, notebook: Notebook) -> None:
    """Give stored submissions a row for each cell that is new."""
    query = select(SubmittedNotebook.id).filter_by(notebook_id=notebook.id)
    submitted = db.scalars(query).all()
    if not submitted:
        return
    ids = cell_ids(db, notebook)
    for table, kinds in ((Grade, GRADED), (Comment, COMMENTED)):
        cells = {id_ for (_, kind), id_ in ids.items() if kind in kinds}
        stored = select(table.notebook_id, table.cell_id).where(
            table.cell_id.in_(cells)
        )
        present = {tuple(key) for key in db.execute(stored)}
        for notebook_id in submitted:
            for cell_id in cells:
                if (notebook_id, cell_id) not in present:
                    db.add(table(notebook_id=notebook_id, cell_id=cell_id))

"""A gradebook of nbgrader's in a database in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from nbgrader.api import Assignment as AssignmentRow
from nbgrader.api import (
    Base,
    GradeCell,
    Notebook,
    SolutionCell,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
)
from sqlalchemy import create_engine
from sqlalchemy.orm import Session


@pytest.fixture
def db() -> Iterator[Session]:
    engine = create_engine("sqlite://")
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        yield session
    engine.dispose()


@pytest.fixture
def notebook(db: Session) -> Notebook:
    """m1 with a check, a written answer and a question; handed in by ada and ben."""
    assignment = AssignmentRow(name="m1", course_id="course")
    notebook = Notebook(name="m1", assignment=assignment)
    rows = [
        GradeCell(
            name="check_double", notebook=notebook, max_score=2, cell_type="code"
        ),
        GradeCell(
            name="written_why", notebook=notebook, max_score=5, cell_type="markdown"
        ),
        SolutionCell(name="written_why", notebook=notebook),
        SolutionCell(name="double", notebook=notebook),
    ]
    for name in ("ada", "ben"):
        handed_in = SubmittedAssignment(assignment=assignment, student=Student(id=name))
        rows.append(SubmittedNotebook(notebook=notebook, assignment=handed_in))
    db.add_all([assignment, notebook, *rows])
    db.flush()
    return notebook

"""Late penalties in nbgrader's gradebook, by the same lateness as in reports and exports."""

from __future__ import annotations

from typing import Any

from nbgrader.api import (
    Assignment,
    Grade,
    Notebook,
    SubmittedAssignment,
    SubmittedNotebook,
)
from sqlalchemy import Integer, Row, cast, func, select, update
from sqlalchemy.orm import Session

from autograder.basics.points import total
from autograder.course import Course
from autograder.ledger import read_ledger
from autograder.marks.late_policy import apply_late, class_lateness
from autograder.nbgrader.gradebook_times import read_times


def scored_notebooks(db: Session, *conditions: Any) -> list[Row[Any]]:
    """A row for each submitted notebook: student, hand-in time, score, penalty, waiting cells.

    Args:
        conditions: which notebooks, as conditions of SQLAlchemy; all where there is none.
    """
    query = (
        select(
            SubmittedNotebook.id,
            SubmittedNotebook.notebook_id,
            SubmittedNotebook.late_submission_penalty.label("penalty"),
            SubmittedAssignment.student_id,
            SubmittedAssignment.timestamp,
            Assignment.name.label("assignment"),
            func.coalesce(func.sum(Grade.score), 0.0).label("score"),
            func.sum(cast(Grade.needs_manual_grade, Integer)).label("waiting"),
        )
        .join(
            SubmittedAssignment,
            SubmittedNotebook.assignment_id == SubmittedAssignment.id,
        )
        .join(Assignment, SubmittedAssignment.assignment_id == Assignment.id)
        .outerjoin(Grade, Grade.notebook_id == SubmittedNotebook.id)
        .where(*conditions)
        .group_by(SubmittedNotebook.id, SubmittedAssignment.id, Assignment.id)
    )
    return list(db.execute(query))


def refresh_penalties(db: Session, course: Course, *conditions: Any) -> None:
    """Bring stored penalties up to date: due dates, extensions or scores may have changed.

    Commits nothing.

    Args:
        conditions: as for `scored_notebooks`.
    """
    if course.late.policy == "none":  # only penalties of an earlier policy can change
        conditions = (
            *conditions,
            SubmittedNotebook.late_submission_penalty.is_not(None),
        )
    rows = scored_notebooks(db, *conditions)
    if not rows:
        return
    notebooks = db.execute(select(Notebook.id, Notebook.max_score))
    full_points = {notebook.id: notebook.max_score for notebook in notebooks}
    ledger = read_ledger(course)
    students = {row.student_id: ledger.student_in(row.student_id) for row in rows}
    assignments = {row.assignment for row in rows}
    lateness = class_lateness(course, assignments, students.values(), read_times(db))
    changed = []
    for row in rows:
        by_student = lateness.get(row.assignment, {})
        late = by_student.get(students[row.student_id])
        penalty = None
        if late is not None and late.minutes:
            max_score = full_points[row.notebook_id]
            score_after = apply_late(row.score, max_score, late.minutes, course.late)
            penalty = total((row.score, -score_after)) or None
        if penalty != row.penalty:
            changed.append({"id": row.id, "late_submission_penalty": penalty})
    if changed:
        db.execute(update(SubmittedNotebook), changed)

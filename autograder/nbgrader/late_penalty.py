"""What handing in late costs, as `[late]` in course.toml says, in nbgrader's gradebook."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from nbgrader.api import Assignment, Grade, Notebook, SubmittedAssignment, SubmittedNotebook
from sqlalchemy import Integer, Result, cast, func, or_, select, update
from sqlalchemy.orm import Session

from autograder.basics.points import total
from autograder.course import Late
from autograder.marks.late_policy import apply_late


def late_penalty(late: Late, score: float, max_score: float, seconds_late: float) -> float:
    """Points taken off by the course's policy, never more than the score."""
    return total((score, -apply_late(score, max_score, seconds_late / 60, late)))


def scored_notebooks(db: Session, *conditions: Any) -> Result[Any]:
    """Submitted notebooks with their submissions and due times, what their cells score, and how
    many wait for a person.

    Args:
        conditions: which of them, as SQLAlchemy says it; without any, all.
    """
    waiting = func.sum(cast(Grade.needs_manual_grade, Integer))
    return db.execute(
        select(
            SubmittedNotebook,
            SubmittedAssignment,
            Assignment.duedate,
            func.sum(Grade.score),
            waiting,
        )
        .join(SubmittedAssignment, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .join(Assignment, SubmittedAssignment.assignment_id == Assignment.id)
        .outerjoin(Grade, Grade.notebook_id == SubmittedNotebook.id)
        .where(*conditions)
        .group_by(SubmittedNotebook.id, SubmittedAssignment.id, Assignment.id)
    )


def refresh_penalties(db: Session, late: Late, *conditions: Any) -> None:
    """Bring stored penalties up to date: the due date, an extension or a score may have changed.
    Commits nothing.

    Args:
        conditions: as for `scored_notebooks`.
    """
    most = {row.id: row.max_score for row in db.execute(select(Notebook.id, Notebook.max_score))}
    may_change = or_(
        SubmittedNotebook.late_submission_penalty.is_not(None),
        # an extension makes fewer late, and no more
        SubmittedAssignment.timestamp > Assignment.duedate,
    )
    changed = []
    for notebook, submission, due, score, _ in scored_notebooks(db, may_change, *conditions):
        seconds_late = 0.0
        if due is not None and submission.timestamp is not None:
            seconds_late = (
                submission.timestamp - due - (submission.extension or timedelta())
            ).total_seconds()
        penalty = (
            late_penalty(late, score or 0.0, most[notebook.notebook_id], max(0.0, seconds_late))
            or None
        )
        if penalty != notebook.late_submission_penalty:
            changed.append({"id": notebook.id, "late_submission_penalty": penalty})
    if changed:
        db.execute(update(SubmittedNotebook), changed)

"""Extensions in nbgrader's gradebook: those that a person granted, told from those that course.toml brought.

nbgrader has one place for an extension and no memory of who wrote it. A table of our own remembers what the kit wrote,
so that an extension which a person granted in nbgrader is never taken for ours and erased, and one that was taken out
of course.toml does not live on.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from nbgrader.api import Assignment, SubmittedAssignment
from sqlalchemy import Column, Float, MetaData, String, Table, delete, insert, inspect, select
from sqlalchemy.orm import Session

_WRITTEN = Table(
    "attention_kit_extension",
    MetaData(),
    Column("submission_id", String(32), primary_key=True),
    Column("seconds", Float, nullable=False),
)


def granted_extensions(db: Session, assignment: Assignment) -> dict[str, timedelta]:
    """Student → extension that a person granted in nbgrader, without the extensions of course.toml."""
    written = _written(db)
    return {
        submission.student_id: submission.extension
        for submission in assignment.submissions
        if submission.extension and not _is_ours(submission, written)
    }


def write_extensions(db: Session, assignment: Assignment, extensions: Mapping[str, timedelta]) -> None:
    """Put course.toml's extensions into the gradebook, and take out those that it does not have any more.

    An extension that a person granted stays where course.toml has none for that student. Commits nothing.

    Args:
        extensions: student → how much longer course.toml gives them.
    """
    _WRITTEN.create(db.connection(), checkfirst=True)
    written = _written(db)
    now = []
    for submission in assignment.submissions:
        span = extensions.get(submission.student_id)
        if span is not None:
            submission.extension = span
            now.append({"submission_id": submission.id, "seconds": span.total_seconds()})
        elif _is_ours(submission, written):
            submission.extension = None
    ids = select(SubmittedAssignment.id).where(SubmittedAssignment.assignment_id == assignment.id)
    db.execute(delete(_WRITTEN).where(_WRITTEN.c.submission_id.in_(ids)))
    if now:
        db.execute(insert(_WRITTEN), now)


def _written(db: Session) -> dict[str, float]:
    """Submission → the seconds that the kit wrote there last."""
    if not inspect(db.connection()).has_table(_WRITTEN.name):
        return {}
    return {row.submission_id: row.seconds for row in db.execute(select(_WRITTEN))}


def _is_ours(submission: SubmittedAssignment, written: Mapping[str, float]) -> bool:
    return submission.extension is not None and written.get(submission.id) == submission.extension.total_seconds()

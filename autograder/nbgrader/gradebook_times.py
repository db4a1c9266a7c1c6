"""Due times, hand-in times and extensions in nbgrader's gradebook.

nbgrader has one place for an extension and no memory of who wrote it. A table of the kit's own
remembers what the kit wrote, so that an extension which a person granted in nbgrader is never
erased as the kit's, and one that was taken out of course.toml does not live on.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from nbgrader.api import Assignment, SubmittedAssignment
from sqlalchemy import (
    Column,
    Float,
    MetaData,
    String,
    Table,
    delete,
    insert,
    inspect,
    select,
)
from sqlalchemy.orm import Session

from autograder.marks.late_policy import GradebookTimes

_WRITTEN = Table(
    "attention_kit_extension",
    MetaData(),
    Column("submission_id", String(32), primary_key=True),
    Column("seconds", Float, nullable=False),
)


def read_times(db: Session) -> dict[str, GradebookTimes]:
    """The times of each assignment in the gradebook."""
    times = {}
    for name, due in db.execute(select(Assignment.name, Assignment.duedate)):
        times[name] = GradebookTimes(_in_utc(due))
    written = _written_seconds(db)
    submissions = select(
        Assignment.name,
        SubmittedAssignment.id,
        SubmittedAssignment.student_id,
        SubmittedAssignment.timestamp,
        SubmittedAssignment.extension,
    ).join(Assignment, SubmittedAssignment.assignment_id == Assignment.id)
    for row in db.execute(submissions):
        if handed_in := _in_utc(row.timestamp):
            times[row.name].handed_in[row.student_id] = handed_in
        if row.extension and row.extension.total_seconds() != written.get(row.id):
            times[row.name].granted[row.student_id] = row.extension
    return times


def write_extensions(
    db: Session, assignment: Assignment, extensions: Mapping[str, timedelta]
) -> None:
    """Put course.toml's extensions into the gradebook, and remove those that left course.toml.

    An extension that a person granted stays where course.toml has none for that student. Commits
    nothing.

    Args:
        extensions: student's folder → how much longer course.toml gives the student.
    """
    _WRITTEN.create(db.connection(), checkfirst=True)
    written = _written_seconds(db)
    rows = []
    for submission in assignment.submissions:
        span = extensions.get(submission.student_id)
        old = submission.extension
        if span is not None:
            submission.extension = span
            rows.append(
                {"submission_id": submission.id, "seconds": span.total_seconds()}
            )
        elif old is not None and old.total_seconds() == written.get(submission.id):
            submission.extension = None
    same_assignment = SubmittedAssignment.assignment_id == assignment.id
    ids = select(SubmittedAssignment.id).where(same_assignment)
    db.execute(delete(_WRITTEN).where(_WRITTEN.c.submission_id.in_(ids)))
    if rows:
        db.execute(insert(_WRITTEN), rows)


def _written_seconds(db: Session) -> dict[str, float]:
    """Submission → the extension, in seconds, that the kit wrote there last."""
    if not inspect(db.connection()).has_table(_WRITTEN.name):
        return {}
    return {row.submission_id: row.seconds for row in db.execute(select(_WRITTEN))}


def _in_utc(moment: datetime | None) -> datetime | None:
    """A time of the gradebook, which keeps UTC without a zone."""
    return moment.replace(tzinfo=UTC) if moment else None

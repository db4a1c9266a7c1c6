"""What course.toml and the class list say, told to nbgrader's gradebook: people, due times,
extensions.

nbgrader has one place for an extension and no memory of who wrote it. A table of our own remembers
what the kit wrote, so that an extension which a person granted in nbgrader is never taken for ours
and erased, and one that was taken out of course.toml does not live on.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, timedelta

from nbgrader.api import Assignment as AssignmentRow
from nbgrader.api import Student, SubmittedAssignment
from sqlalchemy import Column, Float, MetaData, String, Table, delete, insert, inspect, select
from sqlalchemy.orm import Session

from autograder.course import Assignment, Course
from autograder.course.due import as_span
from autograder.course.roster import Person
from autograder.marks.late_policy import InGradebook, listed_extension
from autograder.nbgrader.gradebook import open_gradebook
from autograder.nbgrader.late_penalty import refresh_penalties


def tell_gradebook(
    course: Course, assignment: Assignment, people: Mapping[str, Person], db_url: str
) -> None:
    """Names and addresses of the students, and when the assignment is due; nothing that a person
    scored changes.

    Args:
        people: by what the student is called here; whoever handed in nothing is in the gradebook
            then too.
    """
    with open_gradebook(course, db_url) as gradebook:
        known = {student.id: student for student in gradebook.students} if people else {}
        for name, person in people.items():
            student = known.get(name) or Student(id=name)
            first, _, last = person.name.rpartition(" ")
            student.first_name, student.last_name = (
                first or student.first_name,
                last or student.last_name,
            )
            student.email = person.email or student.email
            gradebook.db.add(student)
        row = gradebook.find_assignment(assignment.name)
        if due := course.due.due.get(assignment.name):
            row.duedate = due.replace(tzinfo=None)
        if row.duedate is not None:
            write_extensions(gradebook.db, row, _spans(course, row, people))
        gradebook.db.flush()
        refresh_penalties(gradebook.db, course.late)
        gradebook.db.commit()


def _spans(
    course: Course, row: AssignmentRow, people: Mapping[str, Person]
) -> dict[str, timedelta]:
    """Student → how much longer course.toml gives them; nbgrader keeps no time until when."""
    due = row.duedate.replace(tzinfo=UTC)
    spans = {}
    for submission in row.submissions:
        student = submission.student_id
        longer = listed_extension(course, row.name, student, people.get(student))
        if longer is not None:
            spans[student] = as_span(longer, due)
    return spans


def due_in_gradebook(course: Course, db_url: str = "") -> dict[str, InGradebook]:
    """By assignment, when it is due and who was given longer there. nbgrader keeps times in UTC and
    without a zone.
    """
    with open_gradebook(course, db_url) as gradebook:
        return {
            assignment.name: InGradebook(
                assignment.duedate.replace(tzinfo=UTC) if assignment.duedate else None,
                granted_extensions(gradebook.db, assignment),
            )
            for assignment in gradebook.assignments
        }


_WRITTEN = Table(
    "attention_kit_extension",
    MetaData(),
    Column("submission_id", String(32), primary_key=True),
    Column("seconds", Float, nullable=False),
)


def granted_extensions(db: Session, assignment: AssignmentRow) -> dict[str, timedelta]:
    """Student → extension that a person granted in nbgrader, without the extensions of
    course.toml.
    """
    written = _written(db)
    return {
        submission.student_id: submission.extension
        for submission in assignment.submissions
        if submission.extension and not _is_ours(submission, written)
    }


def write_extensions(
    db: Session, assignment: AssignmentRow, extensions: Mapping[str, timedelta]
) -> None:
    """Put course.toml's extensions into the gradebook, and take out those that it does not have any
    more.

    An extension that a person granted stays where course.toml has none for that student. Commits
    nothing.

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
    return (
        submission.extension is not None
        and written.get(submission.id) == submission.extension.total_seconds()
    )

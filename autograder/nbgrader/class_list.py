"""What course.toml and the class list say, told to nbgrader's gradebook: people, due times, extensions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from nbgrader.api import Student

from autograder.course import Assignment, Course
from autograder.nbgrader.gradebook import open_gradebook
from autograder.nbgrader.late import refresh_all_penalties
from autograder.outputs.lateness import Deadline
from autograder.roster import Person


def tell_gradebook(course: Course, assignment: Assignment, people: Mapping[str, Person], db_url: str) -> None:
    """Names and addresses of the students, and when the assignment is due; nothing that a person scored changes.

    Args:
        people: by what the student is called here; whoever handed in nothing is in the gradebook then too.
    """
    with open_gradebook(course, db_url) as gradebook:
        known = {student.id: student for student in gradebook.students} if people else {}
        for name, person in people.items():
            student = known.get(name) or Student(id=name)
            first, _, last = person.name.rpartition(" ")
            student.first_name, student.last_name = first or student.first_name, last or student.last_name
            student.email = person.email or student.email
            gradebook.db.add(student)
        if due := course.due.due.get(assignment.name):
            row = gradebook.find_assignment(assignment.name)
            row.duedate = due.replace(tzinfo=None)
            for submission in row.submissions:
                listed = people.get(submission.student_id)
                longer = course.due.extension(assignment.name, submission.student_id)
                if longer is None and listed is not None:
                    longer = course.due.extension(assignment.name, listed.id)
                submission.extension = _as_span(longer, due)
        gradebook.db.commit()
        refresh_all_penalties(gradebook, course.late)


def _as_span(longer: timedelta | datetime | None, due: datetime) -> timedelta | None:
    """nbgrader keeps how much longer somebody has."""
    return max(longer - due, timedelta()) if isinstance(longer, datetime) else longer


def due_in_gradebook(course: Course) -> dict[str, Deadline]:
    """By assignment, when it is due and whose time is longer. nbgrader keeps times in UTC and without a zone."""
    with open_gradebook(course) as gradebook:
        return {
            assignment.name: Deadline(
                assignment.duedate.replace(tzinfo=UTC),
                {one.student_id: one.extension for one in assignment.submissions if one.extension},
            )
            for assignment in gradebook.assignments
            if assignment.duedate is not None
        }

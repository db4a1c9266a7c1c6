"""What course.toml and the class list say, told to nbgrader's gradebook: people, due times, extensions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, timedelta

from nbgrader.api import Assignment as AssignmentRow
from nbgrader.api import Student

from autograder.course import Assignment, Course
from autograder.due import as_span
from autograder.nbgrader.extensions import granted_extensions, write_extensions
from autograder.nbgrader.gradebook import open_gradebook
from autograder.nbgrader.late import refresh_all_penalties
from autograder.outputs.lateness import InGradebook, listed_extension
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
        row = gradebook.find_assignment(assignment.name)
        if due := course.due.due.get(assignment.name):
            row.duedate = due.replace(tzinfo=None)
        if row.duedate is not None:
            write_extensions(gradebook.db, row, _spans(course, row, people))
        gradebook.db.commit()
        refresh_all_penalties(gradebook, course.late)


def _spans(course: Course, row: AssignmentRow, people: Mapping[str, Person]) -> dict[str, timedelta]:
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
    """By assignment, when it is due and who was given longer there. nbgrader keeps times in UTC and without a zone."""
    with open_gradebook(course, db_url) as gradebook:
        return {
            assignment.name: InGradebook(
                assignment.duedate.replace(tzinfo=UTC) if assignment.duedate else None,
                granted_extensions(gradebook.db, assignment),
            )
            for assignment in gradebook.assignments
        }

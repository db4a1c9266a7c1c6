"""Copies people, due times and extensions of course.toml and the class list to the gradebook."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, timedelta

from nbgrader.api import Assignment as AssignmentRow
from nbgrader.api import Student

from autograder.course import Assignment, Course
from autograder.course.due import extension_length
from autograder.course.roster import Person
from autograder.marks.late_policy import GradebookTimes, listed_extension
from autograder.nbgrader.gradebook import open_gradebook
from autograder.nbgrader.gradebook_times import read_times, write_extensions
from autograder.nbgrader.late_penalty import refresh_penalties


def write_class_list(
    course: Course, assignment: Assignment, people: Mapping[str, Person], db_url: str
) -> None:
    """Write names and addresses of the students, and when the assignment is due, to the gradebook.

    Scores by hand do not change.

    Args:
        people: student's folder → person. Students without a submission are added too.
    """
    with open_gradebook(course, db_url) as gradebook:
        students = (
            {student.id: student for student in gradebook.students} if people else {}
        )
        for folder, person in people.items():
            student = students.get(folder) or Student(id=folder)
            first, _, last = person.name.rpartition(" ")
            student.first_name = first or student.first_name
            student.last_name = last or student.last_name
            student.email = person.email or student.email
            gradebook.db.add(student)
        row = gradebook.find_assignment(assignment.name)
        if due := course.due.get(assignment.name):
            row.duedate = due.replace(tzinfo=None)
        if row.duedate is not None:
            write_extensions(gradebook.db, row, _listed_spans(course, row, people))
        gradebook.db.flush()
        refresh_penalties(gradebook.db, course)
        gradebook.db.commit()


def _listed_spans(
    course: Course, row: AssignmentRow, people: Mapping[str, Person]
) -> dict[str, timedelta]:
    """Student's folder → how much longer course.toml gives. nbgrader stores no time until when."""
    due = row.duedate.replace(tzinfo=UTC)
    spans = {}
    for submission in row.submissions:
        folder = submission.student_id
        extension = listed_extension(course, row.name, folder, people.get(folder))
        if extension is not None:
            spans[folder] = extension_length(extension, due)
    return spans


def read_gradebook_times(
    course: Course,
    db_url: str = "",
) -> dict[str, GradebookTimes]:
    """The times of each assignment in the course's gradebook."""
    with open_gradebook(course, db_url) as gradebook:
        return read_times(gradebook.db)

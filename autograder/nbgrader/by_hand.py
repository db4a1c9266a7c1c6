"""What people did in the formgrader: points and comments of written answers, scores changed, who still waits."""

from __future__ import annotations

from nbgrader.api import (
    Assignment as AssignmentRow,
)
from nbgrader.api import (
    BaseCell,
    Comment,
    Grade,
    Notebook,
    SubmittedAssignment,
    SubmittedNotebook,
)
from sqlalchemy import select
from sqlalchemy.orm import Session

from autograder.course import Assignment, Course
from autograder.nbgrader.gradebook import open_gradebook
from autograder.nbgrader.release import ReleaseCell, read_release
from autograder.outputs.marks import ByHand, WrittenAnswer
from autograder.points import total


def by_hand(course: Course, assignment: Assignment) -> dict[str, ByHand]:
    """Student → what a person did to their submission. Empty where the gradebook does not know the assignment.

    Raises:
        StaleBuild: the assignment has no release.
    """
    cells = {cell.grade_id: cell for cell in read_release(assignment.release).cells}
    with open_gradebook(course) as gradebook:
        grades, comments = _rows(gradebook.db, assignment.name)
    return {student: _of_student(cells, rows, comments.get(student, {})) for student, rows in grades.items()}


_Grades = dict[str, tuple[float | None, float | None, float, bool]]
"""grade_id → automatic score, manual score, extra credit, whether a person is to look."""


def _rows(db: Session, assignment: str) -> tuple[dict[str, _Grades], dict[str, dict[str, str]]]:
    """Two queries for the whole class."""
    grades: dict[str, _Grades] = {}
    comments: dict[str, dict[str, str]] = {}
    columns = (Grade.auto_score, Grade.manual_score, Grade.extra_credit, Grade.needs_manual_grade)
    for table, wanted in ((Grade, columns), (Comment, (Comment.manual_comment,))):
        query = (
            select(SubmittedAssignment.student_id, BaseCell.name, *wanted)
            .join(SubmittedNotebook, SubmittedNotebook.id == table.notebook_id)
            .join(SubmittedAssignment, SubmittedAssignment.id == SubmittedNotebook.assignment_id)
            .join(BaseCell, BaseCell.id == table.cell_id)
            .join(Notebook, Notebook.id == SubmittedNotebook.notebook_id)
            .join(AssignmentRow, AssignmentRow.id == Notebook.assignment_id)
            .where(AssignmentRow.name == assignment)
        )
        for student, cell, *values in db.execute(query):
            if table is Grade:
                auto, manual, extra, waits = values
                grades.setdefault(student, {})[cell] = (auto, manual, float(extra or 0.0), bool(waits))
            else:
                comments.setdefault(student, {})[cell] = values[0] or ""
    return grades, comments


def _of_student(cells: dict[str, ReleaseCell], grades: _Grades, comments: dict[str, str]) -> ByHand:
    written, overrides, scores, extra, waiting = [], {}, {}, [], []
    for grade_id, cell in cells.items():
        if grade_id not in grades:
            continue
        auto, manual, credit, waits = grades[grade_id]
        extra.append(credit)
        if waits:
            waiting.append(cell.question or grade_id)
        if cell.manual:
            points = auto if manual is None else manual
            written.append(WrittenAnswer(grade_id, points, cell.points, comments.get(grade_id, "")))
        elif cell.question:
            scores[cell.question] = float(auto or 0.0)
            if manual is not None:
                overrides[cell.question] = float(manual)
    return ByHand(tuple(written), overrides, total(extra), tuple(waiting), scores)

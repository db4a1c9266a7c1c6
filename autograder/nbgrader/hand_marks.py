"""Marks by hand as the gradebook holds them: every question and written answer of every student, read and written.

The formgrader's own rows are changed, so that a mark from a table and one from the formgrader are the same thing: the
score that a person gave, extra credit, the comment, and whether somebody has yet to look.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from nbgrader.api import Assignment as AssignmentRow
from nbgrader.api import BaseCell, Comment, Grade, SubmittedAssignment, SubmittedNotebook
from sqlalchemy import inspect, select, text, update
from sqlalchemy.orm import Session

from autograder.course import Assignment, Course
from autograder.errors import KitError
from autograder.ledger import read_ledger
from autograder.nbgrader.gradebook import open_gradebook
from autograder.nbgrader.registry import COMMENTED, GRADED
from autograder.nbgrader.release import ReleaseCell, read_release

Key = tuple[str, str]
"""(student, name of the question or of the written answer)."""


@dataclass(frozen=True, slots=True)
class HandMark:
    """What the gradebook has of one student's answer to one question.

    Attributes:
        max_points: what it is worth.
        written: a person gives its points; else `points` stand in place of what the tests gave.
        tests: what the tests gave; None for a written answer that was not left blank.
        points: what a person gave; None where nobody has.
        extra_credit: points on top.
        comment: the person's own words.
        waits: a person has yet to look, at it or again.
        answer: hash of the answer that the gradebook was last filled with; "" where that is not known.
    """

    student: str
    question: str
    max_points: float
    written: bool
    tests: float | None = None
    points: float | None = None
    extra_credit: float = 0.0
    comment: str = ""
    waits: bool = False
    answer: str = ""


def read_hand_marks(course: Course, assignment: Assignment) -> dict[Key, HandMark]:
    """Everybody who has a submission in the gradebook, with every question, in the order of names and of the release.

    Raises:
        KitError: there is no gradebook, or it knows nothing of the assignment.
    """
    if not course.has_gradebook:
        raise KitError(f"there is no gradebook yet: run `autograder export {assignment.name} --format gradebook`")
    cells = {cell.grade_id: cell for cell in read_release(assignment.release).cells if cell.grade or cell.task}
    with open_gradebook(course) as gradebook:
        marks = _marks(gradebook.db, assignment.name, cells)
    if not marks:
        raise KitError(
            f"nobody's {assignment.name} is in the gradebook: run `autograder export {assignment.name} "
            "--format gradebook` first"
        )
    ledger = read_ledger(course)  # nbgrader knows students by their folders
    students = {student: ledger.student_in(student) for student, _ in marks}
    marks = {(students[s], question): replace(mark, student=students[s]) for (s, question), mark in marks.items()}
    order = {question_name(cell): number for number, cell in enumerate(cells.values())}
    return {key: marks[key] for key in sorted(marks, key=lambda key: (key[0], order[key[1]]))}


def write_hand_marks(course: Course, assignment: Assignment, marks: Iterable[HandMark]) -> None:
    """Store what a person gave. Whoever has points does not wait any more."""
    ledger = read_ledger(course)
    cells = {cell.grade_id: cell for cell in read_release(assignment.release).cells if cell.grade or cell.task}
    with open_gradebook(course) as gradebook:
        db = gradebook.db
        grades, comments = _row_ids(db, assignment.name, cells)
        for mark in marks:
            key = (ledger.folder(mark.student), mark.question)
            values = {"manual_score": mark.points, "extra_credit": mark.extra_credit, "needs_manual_grade": mark.waits}
            db.execute(update(Grade).where(Grade.id == grades[key]).values(**values))
            db.execute(update(Comment).where(Comment.id == comments[key]).values(manual_comment=mark.comment or None))
        db.commit()


def question_name(cell: ReleaseCell) -> str:
    """What people call the cell's question: without nbgrader's "written_" and "check_"."""
    return cell.question or cell.grade_id.removeprefix("written_")


def _submitted(assignment: str) -> list[object]:
    """Conditions that join a submitted notebook to the student's submission of the assignment."""
    return [
        SubmittedNotebook.assignment_id == SubmittedAssignment.id,
        SubmittedAssignment.assignment_id == AssignmentRow.id,
        AssignmentRow.name == assignment,
    ]


def _marks(db: Session, assignment: str, cells: Mapping[str, ReleaseCell]) -> dict[Key, HandMark]:
    columns = (Grade.auto_score, Grade.manual_score, Grade.extra_credit, Grade.needs_manual_grade, Grade.cell_id)
    query = select(SubmittedAssignment.student_id, SubmittedNotebook.id, BaseCell.name, *columns).where(
        Grade.notebook_id == SubmittedNotebook.id, Grade.cell_id == BaseCell.id, BaseCell.type.in_(GRADED),
        *_submitted(assignment),
    )  # fmt: skip
    hashes = _hashes(db)
    comments = _comments(db, assignment)
    marks = {}
    for student, notebook, name, auto, manual, extra, waits, cell_id in db.execute(query):
        if (cell := cells.get(name)) is None:
            continue
        mark = HandMark(
            student, question_name(cell), cell.points, cell.manual, auto, manual, extra or 0.0,
            comments.get((student, cell.question or name), ""), bool(waits), hashes.get((notebook, cell_id), ""),
        )  # fmt: skip
        marks[student, mark.question] = mark
    return marks


def _comments(db: Session, assignment: str) -> dict[Key, str]:
    """What a person wrote, by student and the name of the commented cell."""
    query = select(SubmittedAssignment.student_id, BaseCell.name, Comment.manual_comment).where(
        Comment.notebook_id == SubmittedNotebook.id, Comment.cell_id == BaseCell.id, BaseCell.type.in_(COMMENTED),
        *_submitted(assignment),
    )  # fmt: skip
    return {(student, name): comment or "" for student, name, comment in db.execute(query)}


def _row_ids(db: Session, assignment: str, cells: Mapping[str, ReleaseCell]) -> tuple[dict[Key, str], dict[Key, str]]:
    """The ids of the rows of grades and of comments."""
    found: list[dict[Key, str]] = []
    names = {cell.grade_id: question_name(cell) for cell in cells.values()}
    commented = {cell.question or cell.grade_id: question_name(cell) for cell in cells.values()}
    for row, kinds, named in ((Grade, GRADED, names), (Comment, COMMENTED, commented)):
        query = select(SubmittedAssignment.student_id, BaseCell.name, row.id).where(
            row.notebook_id == SubmittedNotebook.id, row.cell_id == BaseCell.id, BaseCell.type.in_(kinds),
            *_submitted(assignment),
        )  # fmt: skip
        found.append({(student, named[name]): id_ for student, name, id_ in db.execute(query) if name in named})
    return found[0], found[1]


def _hashes(db: Session) -> dict[tuple[str, str], str]:
    """(submitted notebook, cell) → hash of the answer, as `answers.py` has stored them."""
    if not inspect(db.connection()).has_table("attention_kit_answer"):
        return {}
    rows = db.execute(text("SELECT notebook_id, cell_id, sha256 FROM attention_kit_answer"))
    return {(notebook, cell): sha256 for notebook, cell, sha256 in rows}

"""Reads marks by hand from nbgrader's gradebook, and stores those of a table.

Reading takes one query and no import of nbgrader, which would cost every report seconds. Marks of a
table are stored in the formgrader's own rows, so the formgrader shows and changes them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.basics.errors import KitError
from autograder.course import Assignment, Course
from autograder.ledger import read_ledger
from autograder.nbgrader.course_name import shown_gradebook
from autograder.nbgrader.released_cells import read_release
from autograder.records.model import ManualGrades, ManualScore

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_SCORES = """
SELECT submission.student_id AS student, cell.name AS cell,
       grade.auto_score AS tests, grade.manual_score AS points,
       COALESCE(grade.extra_credit, 0) AS extra_credit, grade.needs_manual_grade AS waits,
       COALESCE(graded.max_score, task.max_score, 0) AS max_points,
       cell.type = 'TaskCell' OR answer.id IS NOT NULL AS written,
       COALESCE(commented.name, '') AS commented, COALESCE(comment.manual_comment, '') AS comment,
       COALESCE(comment.auto_comment, '') AS automatic_comment,
       COALESCE({answer_sha256}, '') AS answer, COALESCE({submission_sha256}, '') AS submission
FROM assignment
JOIN submitted_assignment AS submission ON submission.assignment_id = assignment.id
JOIN submitted_notebook AS notebook ON notebook.assignment_id = submission.id
JOIN grade ON grade.notebook_id = notebook.id
JOIN base_cell AS cell ON cell.id = grade.cell_id
LEFT JOIN grade_cells AS graded ON graded.id = cell.id
LEFT JOIN task_cells AS task ON task.id = cell.id
LEFT JOIN base_cell AS answer
  ON answer.notebook_id = cell.notebook_id AND answer.name = cell.name
  AND answer.type = 'SolutionCell'
LEFT JOIN base_cell AS commented
  ON commented.notebook_id = cell.notebook_id AND commented.type IN ('SolutionCell', 'TaskCell')
  AND commented.name = CASE WHEN cell.name LIKE 'check!_%' ESCAPE '!'
    THEN SUBSTR(cell.name, LENGTH('check_') + 1) ELSE cell.name END
LEFT JOIN comment ON comment.notebook_id = notebook.id AND comment.cell_id = commented.id
WHERE assignment.name = :assignment
ORDER BY student, cell
"""
_ANSWER = (
    "(SELECT sha256 FROM attention_kit_answer WHERE notebook_id = notebook.id AND "
    "cell_id = cell.id)"
)
_SUBMISSION = (
    "(SELECT sha256 FROM attention_kit_submission WHERE notebook_id = notebook.id)"
)
_SQLITE = "sqlite:///"

Key = tuple[str, str]
"""(student, name of the question or of the written answer)."""


@dataclass(frozen=True, slots=True)
class HandMark:
    """The gradebook's mark of one student's answer.

    Attributes:
        question: name of the question, without nbgrader's "written_" and "check_".
        max_points: the full points of the question.
        written: whether a person gives the points; else `points` replace those of the tests.
        tests: points of the tests; None for a written answer that was not left blank.
        points: points by hand; None where there are none.
        extra_credit: points on top.
        comment: the comment by hand.
        waits: whether a person has yet to look, or to look again.
        answer: hash of the answer when the gradebook was last filled; "" where not known.
        submission: hash of the notebook when the gradebook was last filled; "" where not known.
        automatic_comment: a comment of grading, like "No response.".
        cell: nbgrader's name of the cell with the grade.
        commented: nbgrader's name of the cell with the comment.
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
    submission: str = ""
    automatic_comment: str = ""
    cell: str = ""
    commented: str = ""


def read_manual_grades(db_url: str, assignment: str) -> dict[str, ManualGrades]:
    """Read the marks by hand of one assignment, by student.

    Args:
        db_url: the database, which need not exist.

    Returns:
        The marks of all students with a submission in the gradebook.

    Raises:
        KitError: the file is no gradebook, another program locks it, or no server answers.
    """
    by_student: dict[str, list[HandMark]] = {}
    for mark in _stored_marks(db_url, assignment):
        by_student.setdefault(mark.student, []).append(mark)
    return {
        student: _manual_grades(student, marks) for student, marks in by_student.items()
    }


def read_hand_marks(course: Course, assignment: Assignment) -> dict[Key, HandMark]:
    """Read the marks of all students and questions, in the order of names and of the release.

    Raises:
        KitError: there is no gradebook, or it has no submission for the assignment.
    """
    if not course.has_gradebook:
        raise KitError(
            f"there is no gradebook yet: run `autograder export {assignment.name} "
            "--format gradebook`"
        )
    cells = read_release(assignment.release).cells
    order = {cell.grade_id: number for number, cell in enumerate(cells)}
    stored = _stored_marks(course.db_url, assignment.name)
    stored = [mark for mark in stored if mark.cell in order]
    if not stored:
        raise KitError(
            f"nobody's {assignment.name} is in the gradebook: run `autograder export "
            f"{assignment.name} --format gradebook` first"
        )
    ledger = read_ledger(course)  # nbgrader knows students by their folders
    marks = [replace(mark, student=ledger.student_in(mark.student)) for mark in stored]
    marks.sort(key=lambda mark: (mark.student, order[mark.cell]))
    return {(mark.student, mark.question): mark for mark in marks}


def write_hand_marks(
    course: Course,
    assignment: Assignment,
    marks: Iterable[HandMark],
) -> None:
    """Store marks of a table in the formgrader's rows."""
    from autograder.nbgrader.gradebook import open_gradebook

    ledger = read_ledger(course)
    with open_gradebook(course) as gradebook:
        for mark in marks:
            notebook = (assignment.name, assignment.name, ledger.folder(mark.student))
            grade = gradebook.find_grade(mark.cell, *notebook)
            grade.manual_score = mark.points
            grade.extra_credit = mark.extra_credit
            grade.needs_manual_grade = mark.waits
            comment = gradebook.find_comment(mark.commented, *notebook)
            comment.manual_comment = mark.comment or None
        gradebook.db.commit()


def _stored_marks(db_url: str, assignment: str) -> list[HandMark]:
    """Read the marks of all students, under nbgrader's ids, in the order of the ids.

    Raises:
        KitError: as `read_manual_grades`.
    """
    from sqlalchemy.exc import SQLAlchemyError

    file = Path(db_url.removeprefix(_SQLITE)) if db_url.startswith(_SQLITE) else None
    if file is not None and not file.is_file():
        return []
    try:
        engine = _engine(file or db_url)
        try:
            with engine.connect() as connection:
                return _query(connection, assignment, may_be_empty=file is None)
        finally:
            engine.dispose()
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).split("\n")[0]
        place = file or shown_gradebook(db_url)
        raise KitError(
            f"{place}: people's scores cannot be read from it ({reason})"
        ) from error


def _engine(place: Path | str) -> Engine:
    """An engine for the database at an address, or, read-only, for that in a file."""
    from sqlalchemy import NullPool, create_engine

    if isinstance(place, str):
        return create_engine(place)
    uri = f"{place.resolve().as_uri()}?mode=ro"
    return create_engine(
        "sqlite://", creator=lambda: sqlite3.connect(uri, uri=True), poolclass=NullPool
    )


def _query(
    connection: Connection,
    assignment: str,
    *,
    may_be_empty: bool,
) -> list[HandMark]:
    from sqlalchemy import inspect, text

    tables = inspect(connection).get_table_names()
    if may_be_empty and "submitted_assignment" not in tables:
        return []  # nothing was exported to it yet
    # a gradebook that nbgrader alone has made lacks the kit's tables (`answers.py`)
    query = _SCORES.format(
        answer_sha256=_ANSWER if "attention_kit_answer" in tables else "NULL",
        submission_sha256=_SUBMISSION
        if "attention_kit_submission" in tables
        else "NULL",
    )
    rows = connection.execute(text(query), {"assignment": assignment}).mappings().all()
    marks = []
    for row in rows:
        question = row["cell"].removeprefix("written_").removeprefix("check_")
        truths = {
            name: bool(row[name]) for name in ("written", "waits")
        }  # SQLite has 0 and 1
        marks.append(HandMark(question=question, **{**row, **truths}))
    return marks


def _manual_grades(student: str, marks: Sequence[HandMark]) -> ManualGrades:
    """A student's marks for reports and exports; of questions only those with marks by hand."""
    questions = [mark for mark in marks if not mark.written]
    return ManualGrades(
        student,
        written=tuple(_score(mark) for mark in marks if mark.written),
        questions=tuple(_score(mark) for mark in questions if _is_by_hand(mark)),
        automatic={mark.question: mark.tests or 0.0 for mark in questions},
        submission=marks[0].submission,
    )


def _is_by_hand(mark: HandMark) -> bool:
    return bool(
        mark.points is not None or mark.extra_credit or mark.comment or mark.waits
    )


def _score(mark: HandMark) -> ManualScore:
    points, comment = mark.points, mark.comment
    if mark.written:  # the automatic comment on a question is in its result already
        points = mark.tests if points is None else points
        comment = comment or mark.automatic_comment
    return ManualScore(
        name=mark.question,
        max_points=mark.max_points,
        points=points,
        extra_credit=mark.extra_credit,
        comment=comment,
        waits=mark.waits,
        earlier=mark.waits and mark.points is not None,
        answer=mark.answer,
    )

"""Marks by hand in nbgrader's gradebook: read for reports, exports and tables of marks; stored from
a table.

Reading takes one query and no import of nbgrader, which takes seconds that every report would pay.
The formgrader's own rows are read and changed, so that a mark from a table and one from the
formgrader are the same thing.
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
_SUBMISSION = "(SELECT sha256 FROM attention_kit_submission WHERE notebook_id = notebook.id)"
_SQLITE = "sqlite:///"

Key = tuple[str, str]
"""(student, name of the question or of the written answer)."""


@dataclass(frozen=True, slots=True)
class HandMark:
    """What the gradebook has of one student's answer to one question.

    Attributes:
        question: what people call it: without nbgrader's "written_" and "check_".
        max_points: what it is worth.
        written: a person gives its points; else `points` stand in place of what the tests gave.
        tests: what the tests gave; None for a written answer that was not left blank.
        points: what a person gave; None where nobody has.
        extra_credit: points on top.
        comment: the person's own words.
        waits: a person has yet to look, at it or again.
        answer: hash of the answer that the gradebook was last filled with; "" where that is not
            known.
        submission: hash of the notebook that the gradebook was last filled from; "" where that is
            not known.
        automatic_comment: what grading wrote in place of a person, like "No response.".
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
    """What people gave for one assignment, by student.

    Args:
        db_url: the database; where there is none, nobody has graded anything.
        assignment: its name.

    Returns:
        Everybody who has a submission in the gradebook. Who has none is not in it: their written
        answers wait.

    Raises:
        KitError: what lies there is no gradebook, another program holds it, or no server answers.
    """
    by_student: dict[str, list[HandMark]] = {}
    for mark in _stored_marks(db_url, assignment):
        by_student.setdefault(mark.student, []).append(mark)
    return {student: _manual_grades(student, marks) for student, marks in by_student.items()}


def read_hand_marks(course: Course, assignment: Assignment) -> dict[Key, HandMark]:
    """Everybody who has a submission in the gradebook, with every question, in the order of names
    and of the release.

    Raises:
        KitError: there is no gradebook, or it knows nothing of the assignment.
    """
    if not course.has_gradebook:
        raise KitError(
            f"there is no gradebook yet: run `autograder export {assignment.name} "
            "--format gradebook`"
        )
    order = {
        cell.grade_id: number for number, cell in enumerate(read_release(assignment.release).cells)
    }
    stored = [mark for mark in _stored_marks(course.db_url, assignment.name) if mark.cell in order]
    if not stored:
        raise KitError(
            f"nobody's {assignment.name} is in the gradebook: run `autograder export "
            f"{assignment.name} "
            "--format gradebook` first"
        )
    ledger = read_ledger(course)  # nbgrader knows students by their folders
    marks = [replace(mark, student=ledger.student_in(mark.student)) for mark in stored]
    marks.sort(key=lambda mark: (mark.student, order[mark.cell]))
    return {(mark.student, mark.question): mark for mark in marks}


def write_hand_marks(course: Course, assignment: Assignment, marks: Iterable[HandMark]) -> None:
    """Store what a person gave. Whoever has points does not wait any more."""
    from autograder.nbgrader.gradebook import open_gradebook

    ledger = read_ledger(course)
    with open_gradebook(course) as gradebook:
        for mark in marks:
            where = (assignment.name, assignment.name, ledger.folder(mark.student))
            grade = gradebook.find_grade(mark.cell, *where)
            grade.manual_score, grade.extra_credit = mark.points, mark.extra_credit
            grade.needs_manual_grade = mark.waits
            gradebook.find_comment(mark.commented, *where).manual_comment = mark.comment or None
        gradebook.db.commit()


def _stored_marks(db_url: str, assignment: str) -> list[HandMark]:
    """The gradebook's marks of everybody, by nbgrader's id of the student, in the order of names.

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
        raise KitError(f"{place}: people's scores cannot be read from it ({reason})") from error


def _engine(place: Path | str) -> Engine:
    """The database in a file, which is opened without the right to change it, or that at an
    address.
    """
    from sqlalchemy import NullPool, create_engine

    if isinstance(place, str):
        return create_engine(place)
    uri = f"{place.resolve().as_uri()}?mode=ro"
    return create_engine(
        "sqlite://", creator=lambda: sqlite3.connect(uri, uri=True), poolclass=NullPool
    )


def _query(connection: Connection, assignment: str, *, may_be_empty: bool) -> list[HandMark]:
    from sqlalchemy import inspect, text

    tables = inspect(connection).get_table_names()
    if may_be_empty and "submitted_assignment" not in tables:
        return []  # nothing was exported to it yet
    # the kit's own tables (`answers.py`) are not in a gradebook of an older version
    query = _SCORES.format(
        answer_sha256=_ANSWER if "attention_kit_answer" in tables else "NULL",
        submission_sha256=_SUBMISSION if "attention_kit_submission" in tables else "NULL",
    )
    rows = connection.execute(text(query), {"assignment": assignment}).mappings().all()
    marks = []
    for row in rows:
        question = row["cell"].removeprefix("written_").removeprefix("check_")
        truths = {name: bool(row[name]) for name in ("written", "waits")}  # SQLite has 0 and 1
        marks.append(HandMark(question=question, **{**row, **truths}))
    return marks


def _manual_grades(student: str, marks: Sequence[HandMark]) -> ManualGrades:
    """A student's marks as reports and exports want them: of questions only those that a person had
    to do with.
    """
    questions = [mark for mark in marks if not mark.written]
    return ManualGrades(
        student,
        written=tuple(_score(mark) for mark in marks if mark.written),
        questions=tuple(_score(mark) for mark in questions if _is_by_hand(mark)),
        automatic={mark.question: mark.tests or 0.0 for mark in questions},
        submission=marks[0].submission,
    )


def _is_by_hand(mark: HandMark) -> bool:
    return bool(mark.points is not None or mark.extra_credit or mark.comment or mark.waits)


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

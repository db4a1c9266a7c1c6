"""Writes scores into nbgrader's gradebook, for `autograder export` and for nbgrader's commands.

Manual scores are never changed. Where the automatic score below a manual score changes, or another
answer was handed in, the cell is marked for a second look.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from nbgrader.api import (
    Comment,
    Grade,
    Gradebook,
    Notebook,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
)
from nbgrader.utils import parse_utc
from sqlalchemy import insert, select, text, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from autograder.course import Assignment, Course
from autograder.ledger import read_ledger
from autograder.nbgrader.answers import read_answers, store_answers
from autograder.nbgrader.assignment_rows import (
    COMMENTED,
    GRADED,
    cell_ids,
    register_release,
)
from autograder.nbgrader.course_name import (
    course_id,
    put_alembic_on_path,
    shown_gradebook,
)
from autograder.nbgrader.late_penalty import refresh_penalties
from autograder.nbgrader.released_cells import NbgraderNotebook, read_release
from autograder.nbgrader.student_texts import problem_comment, question_comment
from autograder.records.model import Result
from autograder.records.submission import Submission

BATCH = 500
"""Submissions that are written at once. Their rows are in memory, and databases limit a query's
parameters.
"""

Timestamp = datetime.datetime | str
"""When something was handed in: a time with a zone, or as nbgrader writes it into timestamp.txt."""

NO_RESPONSE = "No response."
"""The comment under a written answer that was left blank."""


_RowValues = dict[str, Any]
"""A row of the database: column → value."""


@dataclass(frozen=True, slots=True)
class GradebookEntry:
    """Scores and comments of one submission for the gradebook.

    Attributes:
        student: nbgrader's id of the student, which is the folder's name.
        scores: grade_id → automatic score. Cells for a person have none, unless left blank.
        comments: grade_id of a solution cell → automatic comment.
        problem: why the submission could not be graded; all scores become 0 and wait for a person.
        timestamp: the hand-in time, where it is known.
        answers: grade_id → the student's answer as text. A person looks again at a changed answer.
        submission_sha256: hash of the notebook with these answers; "" where there are none.
    """

    student: str
    scores: Mapping[str, float] = field(default_factory=dict)
    comments: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    timestamp: datetime.datetime | None = None
    answers: Mapping[str, str] = field(default_factory=dict)
    submission_sha256: str = ""


def fill_gradebook(
    course: Course,
    assignment: Assignment,
    graded: Iterable[tuple[Result, Submission | None]],
    timestamps: Mapping[str, Timestamp] | None = None,
    problems: Mapping[str, str] | None = None,
    *,
    db_url: str = "",
    version: int = 0,
) -> None:
    """Write the results of one assignment into the gradebook; the same results change nothing.

    Args:
        graded: results with their submissions, read one by one. Without the submission, all of the
            student's written answers wait.
        timestamps: student → hand-in time, where it is known.
        problems: student → why the submission could not be graded.
        version: the `user_version` of an SQLite database after the commit; 0 leaves it.

    Raises:
        StaleBuild: the assignment has no release.
    """
    release = read_release(assignment.release)
    times = {}
    for student, time in (timestamps or {}).items():
        times[student] = parse_utc(time)
    ledger = read_ledger(course)

    def entries() -> Iterator[GradebookEntry]:
        for result, submission in graded:
            entry = make_entry(release, result, submission, times.get(result.student))
            yield replace(entry, student=ledger.folder(result.student))
        for student, problem in (problems or {}).items():
            time = times.get(student)
            yield GradebookEntry(
                ledger.folder(student), problem=problem, timestamp=time
            )

    write_gradebook(
        course, assignment.name, release, entries(), db_url=db_url, version=version
    )


def write_gradebook(
    course: Course,
    assignment: str,
    release: NbgraderNotebook,
    entries: Iterable[GradebookEntry],
    *,
    db_url: str = "",
    version: int = 0,
    has_suite: bool = True,
) -> None:
    """Write scores, comments and late penalties of submissions, all in one transaction.

    Args:
        version: as for `fill_gradebook`.
        has_suite: whether a hidden suite grades the notebook. The gradebook's cells follow the
            release then. Without a suite the gradebook has tests that the release lacks.
    """
    with open_gradebook(course, db_url) as gradebook:
        db = gradebook.db
        if has_suite:
            notebook = register_release(db, gradebook.course_id, assignment, release)
        else:
            notebook = gradebook.find_notebook(release.name, assignment)
        remaining = iter(entries)
        while batch := list(itertools.islice(remaining, BATCH)):
            _write_batch(db, course, notebook, release, batch)
        if version:
            db.execute(text(f"PRAGMA user_version = {version}"))
        db.commit()


def make_entry(
    release: NbgraderNotebook,
    result: Result,
    submission: Submission | None = None,
    timestamp: datetime.datetime | None = None,
) -> GradebookEntry:
    """The gradebook's entry for a result: a score and a comment for each cell of the release.

    Args:
        submission: the graded submission, whose blank written answers get 0 points.
    """
    questions = {question.name: question for question in result.questions}
    scores: dict[str, float] = {}
    comments: dict[str, str] = {}
    if submission:
        answered = {answer.id for answer in submission.written if not answer.blank}
        written = {
            cell.grade_id for cell in release.cells if cell.manual and not cell.task
        }
        blank = written.union(answer.id for answer in submission.written) - answered
        scores = dict.fromkeys(blank, 0.0)
        comments = dict.fromkeys(blank, NO_RESPONSE)
    for cell in release.cells:
        if cell.question in questions:
            scores[cell.grade_id] = questions[cell.question].score
        if cell.solution and cell.grade_id not in comments:
            question = questions.get(cell.grade_id)
            comments[cell.grade_id] = question_comment(question) if question else ""
    return GradebookEntry(
        result.student,
        scores,
        comments,
        timestamp=timestamp,
        answers=read_answers(submission) if submission else {},
        submission_sha256=result.submission_sha256 if submission else "",
    )


@contextlib.contextmanager
def open_gradebook(course: Course, db_url: str = "") -> Iterator[Gradebook]:
    """Open the course's gradebook, or create it."""
    url = db_url or course.db_url
    put_alembic_on_path()
    try:
        with Gradebook(url, course_id(course.about.name)) as gradebook:
            yield gradebook
    except SQLAlchemyError as error:
        error.add_note(
            shown_gradebook(url)
        )  # the error itself does not say which file it is about
        raise


def _write_batch(
    db: Session,
    course: Course,
    notebook: Notebook,
    release: NbgraderNotebook,
    entries: Sequence[GradebookEntry],
) -> None:
    """Write scores, comments and late penalties of these submissions. Commits nothing."""
    notebooks, moved = _add_submissions(db, notebook, entries)
    ids = cell_ids(db, notebook)
    graded: dict[str, str] = {}
    commented: dict[str, str] = {}
    for (name, kind), id_ in ids.items():
        if kind in GRADED:
            graded[id_] = name
        if kind in COMMENTED:
            commented[id_] = name
    keys = list(notebooks.values())
    grades, comments = _read_rows(db, Grade, keys), _read_rows(db, Comment, keys)
    manual = {cell.grade_id for cell in release.cells if cell.manual}

    answers = {
        (notebooks[entry.student], cell): entry.answers[name]
        for entry in entries
        for cell, name in graded.items()
        if name in entry.answers
    }
    hashes = {notebooks[entry.student]: entry.submission_sha256 for entry in entries}
    new_answers = store_answers(db, answers, hashes)

    new_grades, new_comments = [], []
    for entry in entries:
        notebook_id = notebooks[entry.student]
        for cell, name in graded.items():
            key = (notebook_id, cell)
            # without a known answer, another hand-in time stands for another answer
            is_new = key in new_answers if key in answers else entry.student in moved
            new_grades.append(
                _update_grade(grades[key], entry, name, name in manual, is_new)
            )
        for cell, name in commented.items():
            comment = entry.comments.get(name)
            if entry.problem:
                comment = problem_comment(entry.problem)
            row = comments[notebook_id, cell]
            new_comments.append({**row, "auto_comment": comment or None})
    _save_rows(db, Grade, new_grades)
    _save_rows(db, Comment, new_comments)
    refresh_penalties(db, course, SubmittedNotebook.id.in_(keys))


def _update_grade(
    row: _RowValues, entry: GradebookEntry, name: str, is_manual: bool, is_new: bool
) -> _RowValues:
    """A row of the grade table with its new automatic score.

    Args:
        is_manual: whether a person grades the cell.
        is_new: whether the answer is another than before.
    """
    score = entry.scores.get(name, None if is_manual else 0.0)
    waits = name not in entry.scores
    if entry.problem:
        score, waits = 0.0, True
    elif row.get("manual_score") is not None:
        waits = bool(row["needs_manual_grade"]) or is_new or row["auto_score"] != score
    return {**row, "auto_score": score, "needs_manual_grade": waits}


def _add_submissions(
    db: Session, notebook: Notebook, entries: Sequence[GradebookEntry]
) -> tuple[dict[str, str], set[str]]:
    """Add missing students and submissions, and bring hand-in times up to date.

    Returns:
        Student → id of the submitted notebook, and the students with another hand-in time.
    """
    students = list(dict.fromkeys(entry.student for entry in entries))
    query = select(Student.id).where(Student.id.in_(students))
    present = set(db.scalars(query))
    missing = [student for student in students if student not in present]
    _insert(db, Student, [{"id": student} for student in missing])
    submissions = (
        select(SubmittedAssignment.__table__, SubmittedNotebook.id.label("notebook"))
        .outerjoin(
            SubmittedNotebook,
            (SubmittedNotebook.assignment_id == SubmittedAssignment.id)
            & (SubmittedNotebook.notebook_id == notebook.id),
        )
        .where(SubmittedAssignment.assignment_id == notebook.assignment_id)
        .where(SubmittedAssignment.student_id.in_(students))
    )
    stored = {row.student_id: row for row in db.execute(submissions)}
    notebooks: dict[str, str] = {}
    new_submissions: list[_RowValues] = []
    new_notebooks: list[_RowValues] = []
    moved: dict[str, _RowValues] = {}
    for entry in entries:
        row = stored.get(entry.student)
        submission_id = row.id if row else uuid4().hex
        times = {"id": submission_id, "timestamp": entry.timestamp}
        if row is None:
            owner = {
                "assignment_id": notebook.assignment_id,
                "student_id": entry.student,
            }
            new_submissions.append({**times, **owner})
        elif entry.timestamp not in (None, row.timestamp):
            moved[entry.student] = times
        if row and row.notebook:
            notebooks[entry.student] = row.notebook
        else:
            notebooks[entry.student] = uuid4().hex
            new_notebooks.append(
                {
                    "id": notebooks[entry.student],
                    "assignment_id": submission_id,
                    "notebook_id": notebook.id,
                }
            )
    if moved:
        db.execute(update(SubmittedAssignment), list(moved.values()))
    _insert(db, SubmittedAssignment, new_submissions)
    _insert(db, SubmittedNotebook, new_notebooks)
    return notebooks, set(moved)


class _Rows(dict[tuple[str, str], _RowValues]):
    """(submitted notebook, cell) → row; a new row where there is none."""

    def __missing__(self, key: tuple[str, str]) -> _RowValues:
        return {"notebook_id": key[0], "cell_id": key[1]}


def _read_rows(db: Session, table: type[Any], notebooks: Sequence[str]) -> _Rows:
    query = select(table.__table__).where(table.notebook_id.in_(notebooks))
    rows = _Rows()
    for row in db.execute(query):
        rows[row.notebook_id, row.cell_id] = row._asdict()
    return rows


def _save_rows(db: Session, table: type[Any], rows: Sequence[_RowValues]) -> None:
    if stored := [row for row in rows if "id" in row]:
        db.execute(update(table), stored)
    new = [{"id": uuid4().hex, **row} for row in rows if "id" not in row]
    _insert(db, table, new)


def _insert(db: Session, table: type[Any], rows: Sequence[_RowValues]) -> None:
    if rows:
        db.execute(insert(table), rows)

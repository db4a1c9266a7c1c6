"""Scores into nbgrader's `gradebook.db`, a whole batch in one transaction: for `autograder export`
and nbgrader alike.

A person's manual scores are never touched. Where an automatic score changes under one, or another
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
from autograder.nbgrader.answers import answers_of, remember_answers
from autograder.nbgrader.assignment_rows import COMMENTED, GRADED, cell_ids, register_release
from autograder.nbgrader.course_name import course_id, put_alembic_on_path, shown_gradebook
from autograder.nbgrader.late_penalty import refresh_penalties
from autograder.nbgrader.released_cells import Release, read_release
from autograder.nbgrader.student_texts import problem_comment, question_comment
from autograder.records.model import Result, Submission

BATCH = 500
"""How many submissions are written at once: their rows are in memory then, and databases limit a
query's parameters.
"""

Timestamp = datetime.datetime | str
"""When something was handed in: a time with a zone, or as nbgrader writes it into timestamp.txt."""

NO_RESPONSE = "No response."
"""The comment under a written answer that was left blank."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What the gradebook is told about one submission.

    Attributes:
        scores: grade_id → automatic score. A cell that a person grades has none, unless it was left
            blank.
        comments: grade_id of a solution cell → automatic comment, where there is something to say.
        problem: why it could not be graded; every score becomes 0 and waits for a person.
        answers: grade_id → what was answered there, as text: a person looks again where it is
            another than before.
        submission_sha256: hash of the notebook that `answers` are from; "" where there are none.
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
    """Write the results of one assignment into the gradebook; again with the same results, nothing
    changes.

    Args:
        graded: each result with what it was made from; where that is not known, all written answers
            wait. Taken up bit by bit, in one transaction.
        timestamps: student → when the submission was handed in, where that is known.
        problems: student → why the submission could not be graded.
        version: the `user_version` of an SQLite database once this is committed; 0 leaves it.

    Raises:
        StaleBuild: the assignment has no release.
    """
    release = read_release(assignment.release)
    times = {student: parse_utc(time) for student, time in (timestamps or {}).items()}
    ledger = read_ledger(course)  # nbgrader's id of a student is the folder
    entries = (
        replace(
            entry_of(release, result, read, times.get(result.student)),
            student=ledger.folder(result.student),
        )
        for result, read in graded
    )
    failed = (
        Entry(ledger.folder(student), problem=problem, timestamp=times.get(student))
        for student, problem in (problems or {}).items()
    )
    write_gradebook(
        course,
        assignment.name,
        release,
        itertools.chain(entries, failed),
        db_url=db_url,
        version=version,
    )


def write_gradebook(
    course: Course,
    assignment: str,
    release: Release,
    entries: Iterable[Entry],
    *,
    db_url: str = "",
    version: int = 0,
    has_suite: bool = True,
) -> None:
    """Write scores, comments and late penalties of submissions, all in one transaction.

    Args:
        entries: by nbgrader's ids of the students.
        version: as for `fill_gradebook`.
        has_suite: whether a hidden suite grades the notebook. The cells in the database follow its
            release then; else they have tests that the release is without.
    """
    with open_gradebook(course, db_url) as gradebook:
        db = gradebook.db
        if has_suite:
            notebook = register_release(db, gradebook.course_id, assignment, release)
        else:
            notebook = gradebook.find_notebook(release.notebook, assignment)
        waiting = iter(entries)
        while batch := list(itertools.islice(waiting, BATCH)):
            _write_batch(db, course, notebook, release, batch)
        if version:
            db.execute(text(f"PRAGMA user_version = {version}"))
        db.commit()


def entry_of(
    release: Release,
    result: Result,
    submission: Submission | None = None,
    timestamp: datetime.datetime | None = None,
) -> Entry:
    """What a result means for each cell of the release, and the written answers of the submission
    beside it.
    """
    blank = [answer.id for answer in submission.written if answer.blank] if submission else []
    found = {answer.id for answer in submission.written} if submission else set()
    if submission:
        blank += [
            cell.grade_id
            for cell in release.cells
            if cell.manual and not cell.task and cell.grade_id not in found
        ]
    questions = {question.name: question for question in result.questions}
    scores: dict[str, float] = dict.fromkeys(blank, 0.0)
    comments: dict[str, str] = dict.fromkeys(blank, NO_RESPONSE)
    for cell in release.cells:
        if cell.question in questions:
            scores[cell.grade_id] = questions[cell.question].score
        if cell.solution and cell.grade_id not in comments:
            question = questions.get(cell.grade_id)
            comments[cell.grade_id] = question_comment(question) if question else ""
    answers = answers_of(submission) if submission else {}
    sha256 = result.submission_sha256 if submission else ""
    return Entry(result.student, scores, comments, "", timestamp, answers, sha256)


@contextlib.contextmanager
def open_gradebook(course: Course, db_url: str = "") -> Iterator[Gradebook]:
    """The course's gradebook; made where there is none."""
    url = db_url or course.db_url
    put_alembic_on_path()
    try:
        with Gradebook(url, course_id(course.about.name)) as gradebook:
            yield gradebook
    except SQLAlchemyError as error:
        error.add_note(shown_gradebook(url))  # the error itself does not say which file it is about
        raise


def _write_batch(
    db: Session, course: Course, notebook: Notebook, release: Release, entries: Sequence[Entry]
) -> None:
    """Write scores, comments and late penalties of these submissions. Commits nothing."""
    notebooks, other_times = _submitted_notebooks(db, notebook, entries)
    ids = cell_ids(db, notebook)
    graded = {key: name for (name, kind), key in ids.items() if kind in GRADED}
    commented = {key: name for (name, kind), key in ids.items() if kind in COMMENTED}
    keys = list(notebooks.values())
    grades, comments = _rows(db, Grade, keys), _rows(db, Comment, keys)
    manual = {cell.grade_id for cell in release.cells if cell.manual}

    answers = {
        (notebooks[entry.student], cell): entry.answers[name]
        for entry in entries
        for cell, name in graded.items()
        if name in entry.answers
    }
    hashes = {notebooks[entry.student]: entry.submission_sha256 for entry in entries}
    new_answers = remember_answers(db, answers, hashes)

    new_grades, new_comments = [], []
    for entry in entries:
        for cell, name in graded.items():
            key = (notebooks[entry.student], cell)
            again = key in new_answers if key in answers else entry.student in other_times
            new_grades.append(
                _graded(grades.get(key) or _new_row(key), entry, name, name in manual, again)
            )
        for cell, name in commented.items():
            key = (notebooks[entry.student], cell)
            new_comments.append(
                {**(comments.get(key) or _new_row(key)), "auto_comment": _comment(entry, name)}
            )
    _save(db, Grade, new_grades)
    _save(db, Comment, new_comments)
    refresh_penalties(db, course, SubmittedNotebook.id.in_(keys))


def _graded(
    row: dict[str, Any], entry: Entry, name: str, manual: bool, again: bool
) -> dict[str, Any]:
    """One row of the grade table with its new automatic score. `again`: the answer is another than
    before.
    """
    score = 0.0 if entry.problem else entry.scores.get(name, None if manual else 0.0)
    by_hand = row.get("manual_score") is not None
    if by_hand and not entry.problem:
        look = bool(row.get("needs_manual_grade")) or again or (row.get("auto_score") != score)
    else:
        look = bool(entry.problem) or name not in entry.scores
    return {**row, "auto_score": score, "needs_manual_grade": look}


def _comment(entry: Entry, name: str) -> str | None:
    comment = problem_comment(entry.problem) if entry.problem else entry.comments.get(name, "")
    return comment or None


def _submitted_notebooks(
    db: Session, notebook: Notebook, entries: Sequence[Entry]
) -> tuple[dict[str, str], set[str]]:
    """Make what is missing of students and their submissions.

    Returns:
        The id of each student's submitted notebook, and who handed in at another time than what was
        there before.
    """
    students = list(dict.fromkeys(entry.student for entry in entries))
    known = set(db.scalars(select(Student.id).where(Student.id.in_(students))))
    _insert(db, Student, [{"id": student} for student in students if student not in known])
    query = (
        select(SubmittedAssignment.__table__, SubmittedNotebook.id.label("notebook"))
        .outerjoin(
            SubmittedNotebook,
            (SubmittedNotebook.assignment_id == SubmittedAssignment.id)
            & (SubmittedNotebook.notebook_id == notebook.id),
        )
        .where(SubmittedAssignment.assignment_id == notebook.assignment_id)
        .where(SubmittedAssignment.student_id.in_(students))
    )
    stored = {row.student_id: row._asdict() for row in db.execute(query)}
    notebooks: dict[str, str] = {}
    new_submissions, new_notebooks, moved = [], [], {}
    for entry in entries:
        row = stored.get(entry.student)
        if row is None:
            row = {"id": uuid4().hex, "timestamp": entry.timestamp, "notebook": None}
            new_submissions.append(
                {
                    "id": row["id"],
                    "assignment_id": notebook.assignment_id,
                    "student_id": entry.student,
                    "timestamp": entry.timestamp,
                }
            )
        elif entry.timestamp not in (None, row["timestamp"]):
            moved[entry.student] = {"id": row["id"], "timestamp": entry.timestamp}
        notebooks[entry.student] = row["notebook"] or uuid4().hex
        if row["notebook"] is None:
            new_notebooks.append(
                {
                    "id": notebooks[entry.student],
                    "assignment_id": row["id"],
                    "notebook_id": notebook.id,
                }
            )
    if moved:
        db.execute(update(SubmittedAssignment), list(moved.values()))
    _insert(db, SubmittedAssignment, new_submissions)
    _insert(db, SubmittedNotebook, new_notebooks)
    return notebooks, set(moved)


def _rows(
    db: Session, table: type[Any], notebooks: Sequence[str]
) -> dict[tuple[str, str], dict[str, Any]]:
    """(submitted notebook, cell) → row."""
    rows = db.execute(select(table.__table__).where(table.notebook_id.in_(notebooks)))
    return {(row.notebook_id, row.cell_id): row._asdict() for row in rows}


def _new_row(key: tuple[str, str]) -> dict[str, Any]:
    return {"notebook_id": key[0], "cell_id": key[1]}


def _save(db: Session, table: type[Any], rows: Sequence[dict[str, Any]]) -> None:
    if old := [row for row in rows if "id" in row]:
        db.execute(update(table), old)
    _insert(db, table, [{"id": uuid4().hex, **row} for row in rows if "id" not in row])


def _insert(db: Session, table: type[Any], rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        db.execute(insert(table), rows)

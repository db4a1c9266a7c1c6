"""Scores into nbgrader's `gradebook.db`, a whole batch in one transaction.

A person's manual scores are never touched. Where an automatic score changes under one, or another answer was handed
in, the cell is marked for a second look.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from nbgrader.api import (
    Assignment as AssignmentRow,
)
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
from sqlalchemy import insert, make_url, select, text, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from autograder.course import Assignment, Course
from autograder.ledger import read_ledger
from autograder.model import Result, Submission
from autograder.nbgrader.answers import MANY, remember_answers, remember_submissions
from autograder.nbgrader.earlier_answers import answers_of
from autograder.nbgrader.late import late_penalty
from autograder.nbgrader.names import course_id
from autograder.nbgrader.registry import COMMENTED, GRADED, cell_ids, register_release
from autograder.nbgrader.release import Release, read_release
from autograder.nbgrader.texts import as_literal, question_comment

Timestamp = datetime.datetime | str
"""When something was handed in: a time with a zone, or as nbgrader writes it into timestamp.txt."""

NO_RESPONSE = "No response."
"""The comment under a written answer that was left blank."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What the gradebook is told about one submission.

    Attributes:
        scores: grade_id → automatic score. A cell that a person grades has none, unless it was left blank.
        comments: grade_id of a solution cell → automatic comment, where there is something to say.
        problem: why it could not be graded; every score becomes 0 and waits for a person.
        answers: grade_id → what was answered there, as text: a person looks again where it is another than before.
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
    """Write the results of one assignment into the gradebook; again with the same results, nothing changes.

    Args:
        graded: each result with what it was made from; where that is not known, all written answers wait. Taken up bit
            by bit, in one transaction.
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
        replace(entry_of(release, result, read, times.get(result.student)), student=ledger.folder(result.student))
        for result, read in graded
    )
    failed = (
        Entry(ledger.folder(student), problem=problem, timestamp=times.get(student))
        for student, problem in (problems or {}).items()
    )
    with open_gradebook(course, db_url) as gradebook:
        notebook = register_release(gradebook.db, gradebook.course_id, assignment.name, release)
        waiting = itertools.chain(entries, failed)
        while some := list(itertools.islice(waiting, MANY)):
            write_entries(gradebook.db, course, notebook, release, some)
        if version:
            gradebook.db.execute(text(f"PRAGMA user_version = {version}"))
        gradebook.db.commit()


def entry_of(
    release: Release,
    result: Result,
    submission: Submission | None = None,
    timestamp: datetime.datetime | None = None,
) -> Entry:
    """What a result means for each cell of the release, and the written answers of the submission beside it."""
    blank = [answer.id for answer in submission.written if answer.blank] if submission else []
    found = {answer.id for answer in submission.written} if submission else set()
    if submission:
        blank += [
            cell.grade_id for cell in release.cells if cell.manual and not cell.task and cell.grade_id not in found
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


def record_problem(course: Course, release: Path, assignment: str, student: str, problem: str, db_url: str) -> None:
    """Put 0 in place of whatever score a submission had, to wait for a person."""
    cells = read_release(release)
    with open_gradebook(course, db_url) as gradebook:
        notebook = register_release(gradebook.db, gradebook.course_id, assignment, cells)
        write_entries(gradebook.db, course, notebook, cells, [Entry(student, problem=problem)])
        gradebook.db.commit()


@contextlib.contextmanager
def open_gradebook(course: Course, db_url: str = "") -> Iterator[Gradebook]:
    """The course's gradebook; made where there is none."""
    url = db_url or course.db_url
    try:
        with alembic_on_path():
            gradebook = Gradebook(url, course_id(course.about.name))
        try:
            yield gradebook
        finally:
            gradebook.close()
    except SQLAlchemyError as error:
        error.add_note(shown_gradebook(url))  # the error itself does not say which file it is about
        raise


def shown_gradebook(db_url: str) -> str:
    """The database of that address for people: a file's path, or a server's without the password."""
    return str(make_url(db_url).render_as_string(hide_password=True)).removeprefix("sqlite:///")


@contextlib.contextmanager
def alembic_on_path() -> Iterator[None]:
    """nbgrader runs `alembic` by name when it makes a database; without an activated environment nobody finds it."""
    before = os.environ.get("PATH", "")
    if shutil.which("alembic") is None:
        os.environ["PATH"] = f"{before}{os.pathsep}{Path(sys.executable).parent}"
    try:
        yield
    finally:
        os.environ["PATH"] = before


def write_entries(db: Session, course: Course, notebook: Notebook, release: Release, entries: Sequence[Entry]) -> None:
    """Write scores, comments and late penalties of these submissions. Commits nothing."""
    if not entries:
        return
    students = [entry.student for entry in entries]
    changed, late = _write_submissions(db, notebook, entries)
    submitted = _submitted_notebooks(db, notebook, students)
    ids = cell_ids(db, notebook)
    graded = {key: name for (name, kind), key in ids.items() if kind in GRADED}
    commented = {key: name for (name, kind), key in ids.items() if kind in COMMENTED}
    grades = _rows(db, Grade, submitted)
    comments = _rows(db, Comment, submitted)
    manual = {cell.grade_id for cell in release.cells if cell.manual}
    max_score = sum(cell.points for cell in release.cells if cell.grade or cell.task)

    told = {
        (submitted[entry.student], cell): entry.answers[name]
        for entry in entries
        for cell, name in graded.items()
        if name in entry.answers
    }
    new_answers = remember_answers(db, told)
    remember_submissions(db, {submitted[entry.student]: entry.submission_sha256 for entry in entries})

    new_grades, new_comments, notebooks = [], [], []
    for entry in entries:
        key = submitted[entry.student]
        total = 0.0
        for cell, name in graded.items():
            row = grades.pop((key, cell), {"notebook_id": key, "cell_id": cell})
            again = (key, cell) in new_answers if (key, cell) in told else entry.student in changed
            new_grades.append(_graded(row, entry, name, name in manual, again))
            total += _counted(new_grades[-1])
        for cell, name in commented.items():
            row = comments.pop((key, cell), {"notebook_id": key, "cell_id": cell})
            new_comments.append(_commented(row, entry, name))
        penalty = late_penalty(course.late, total, max_score, late.get(entry.student, 0.0))
        notebooks.append({"id": key, "late_submission_penalty": penalty or None})
    _save(db, Grade, new_grades)
    _save(db, Comment, new_comments)
    db.execute(update(SubmittedNotebook), notebooks)


def _graded(row: dict[str, Any], entry: Entry, name: str, manual: bool, again: bool) -> dict[str, Any]:
    """One row of the grade table with its new automatic score. `again`: the answer is another than before."""
    score = 0.0 if entry.problem else entry.scores.get(name, None if manual else 0.0)
    by_hand = row.get("manual_score") is not None
    if by_hand and not entry.problem:
        look = bool(row.get("needs_manual_grade")) or again or (row.get("auto_score") != score)
    else:
        look = bool(entry.problem) or name not in entry.scores
    return {**row, "auto_score": score, "needs_manual_grade": look}


def _counted(row: Mapping[str, Any]) -> float:
    """What a grade counts, as nbgrader adds it up."""
    score = row.get("manual_score")
    if score is None:
        score = row["auto_score"]
    return 0.0 if score is None else float(score) + float(row.get("extra_credit") or 0.0)


def _commented(row: dict[str, Any], entry: Entry, name: str) -> dict[str, Any]:
    if entry.problem:
        text = as_literal(f"This submission could not be graded: {entry.problem}")
    else:
        text = entry.comments.get(name, "")
    return {**row, "auto_comment": text or None}


def _write_submissions(db: Session, notebook: Notebook, entries: Sequence[Entry]) -> tuple[set[str], dict[str, float]]:
    """Students and submissions that are missing, and new timestamps.

    Returns:
        Who handed in something new since the last time, and how many seconds late each one is.
    """
    students = [entry.student for entry in entries]
    known = set(db.scalars(_of(select(Student.id), Student.id, students)))
    if new := [{"id": student} for student in dict.fromkeys(students) if student not in known]:
        db.execute(insert(Student), new)
    columns = ("id", "student_id", "timestamp", "extension")
    where = select(*(getattr(SubmittedAssignment, c) for c in columns))
    where = where.where(SubmittedAssignment.assignment_id == notebook.assignment_id)
    there = {row.student_id: row._asdict() for row in db.execute(_of(where, SubmittedAssignment.student_id, students))}
    due = db.scalars(select(AssignmentRow.duedate).where(AssignmentRow.id == notebook.assignment_id)).one()

    changed, late = set(), {}
    added, moved = [], []
    for entry in entries:
        row = there.get(entry.student)
        timestamp = entry.timestamp or (row["timestamp"] if row else None)
        if row is None:
            added.append(
                {"id": uuid4().hex, "assignment_id": notebook.assignment_id, "student_id": entry.student,
                 "timestamp": timestamp}
            )  # fmt: skip
        elif timestamp != row["timestamp"]:
            moved.append({"id": row["id"], "timestamp": timestamp})
            changed.add(entry.student)
        if due is not None and timestamp is not None:
            extension = (row and row["extension"]) or datetime.timedelta()
            late[entry.student] = max(0.0, (timestamp - due - extension).total_seconds())
    if added:
        db.execute(insert(SubmittedAssignment), added)
    if moved:
        db.execute(update(SubmittedAssignment), moved)
    return changed, late


def _submitted_notebooks(db: Session, notebook: Notebook, students: Sequence[str]) -> dict[str, str]:
    """Student → id of the submitted notebook, made where there is none."""
    where = select(SubmittedAssignment.student_id, SubmittedAssignment.id, SubmittedNotebook.id)
    where = where.outerjoin(
        SubmittedNotebook,
        (SubmittedNotebook.assignment_id == SubmittedAssignment.id) & (SubmittedNotebook.notebook_id == notebook.id),
    ).where(SubmittedAssignment.assignment_id == notebook.assignment_id)
    found, added = {}, []
    for student, submission, submitted in db.execute(_of(where, SubmittedAssignment.student_id, students)):
        found[student] = submitted or uuid4().hex
        if submitted is None:
            added.append({"id": found[student], "assignment_id": submission, "notebook_id": notebook.id})
    if added:
        db.execute(insert(SubmittedNotebook), added)
    return found


def _rows(db: Session, table: type[Any], submitted: Mapping[str, str]) -> dict[tuple[str, str], dict[str, Any]]:
    """(submitted notebook, cell) → row."""
    names = ["id", "notebook_id", "cell_id"]
    names += (
        ["auto_score", "manual_score", "extra_credit", "needs_manual_grade"] if table is Grade else ["auto_comment"]
    )
    query = select(*(getattr(table, name) for name in names))
    keys, found = list(submitted.values()), {}
    for start in range(0, len(keys), MANY):
        for row in db.execute(query.where(table.notebook_id.in_(keys[start : start + MANY]))):
            found[row.notebook_id, row.cell_id] = row._asdict()
    return found


def _of(query: Any, column: Any, values: Sequence[str]) -> Any:
    """The query for these values only; for many, the whole assignment is as quick."""
    return query.where(column.in_(values)) if len(values) <= MANY else query


def _save(db: Session, table: type[Any], rows: Sequence[dict[str, Any]]) -> None:
    if old := [row for row in rows if "id" in row]:
        db.execute(update(table), old)
    if new := [{"id": uuid4().hex, **row} for row in rows if "id" not in row]:
        db.execute(insert(table), new)

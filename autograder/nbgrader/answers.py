"""Recognizes changed answers by their hashes: points by hand for an older answer wait.

Timestamps do not tell: platforms drop them, and a second upload of the same file has a new one.
The kit has two tables of its own in nbgrader's database: a hash of each answer, and the hash of the
notebook with the answers. nbgrader leaves these tables alone, and they change in one transaction
with the scores. Without them, other words with the same result would keep the points that a person
gave for the first words, until the gradebook is filled again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence

from sqlalchemy import Column, MetaData, String, Table, delete, insert, select
from sqlalchemy.orm import Session

from autograder.basics.errors import BadSource, StaleBuild
from autograder.course import Assignment, Course
from autograder.records.model import ManualGrades, ManualScore, Result
from autograder.records.submission import Submission

Key = tuple[str, str]
"""Ids of a submitted notebook and a cell in the database."""

_METADATA = MetaData()
_ANSWERS = Table(
    "attention_kit_answer",
    _METADATA,
    Column("notebook_id", String(32), primary_key=True),
    Column("cell_id", String(32), primary_key=True),
    Column("sha256", String(64), nullable=False),
)
_SUBMISSIONS = Table(
    "attention_kit_submission",
    _METADATA,
    Column("notebook_id", String(32), primary_key=True),
    Column("sha256", String(64), nullable=False),
)


def store_answers(
    db: Session, answers: Mapping[Key, str], submissions: Mapping[str, str]
) -> set[Key]:
    """Store the hashes of answers and notebooks, for one batch of submissions. Commits nothing.

    Args:
        answers: the text of each answer.
        submissions: submitted notebook → hash of the file with its answers; "" where not known.

    Returns:
        The answers that are new or other than before.
    """
    _METADATA.create_all(db.connection())
    query = select(_ANSWERS).where(_ANSWERS.c.notebook_id.in_(submissions))
    stored = {(row.notebook_id, row.cell_id): row.sha256 for row in db.execute(query)}
    hashes = {key: answer_sha256(answer) for key, answer in answers.items()}
    changed = {key for key, sha256 in hashes.items() if stored.get(key) != sha256}
    if changed:
        new_rows = []
        for (notebook, cell), sha256 in {**stored, **hashes}.items():
            new_rows.append(
                {"notebook_id": notebook, "cell_id": cell, "sha256": sha256}
            )
        db.execute(delete(_ANSWERS).where(_ANSWERS.c.notebook_id.in_(submissions)))
        db.execute(insert(_ANSWERS), new_rows)
    db.execute(delete(_SUBMISSIONS).where(_SUBMISSIONS.c.notebook_id.in_(submissions)))
    files = [
        {"notebook_id": key, "sha256": sha256}
        for key, sha256 in submissions.items()
        if sha256
    ]
    if files:
        db.execute(insert(_SUBMISSIONS), files)
    return changed


def read_answers(submission: Submission) -> dict[str, str]:
    """grade_id → answer: the text of a written answer, or the code of the question of a check."""
    answers = {answer.id: answer.text for answer in submission.written}
    for cell in submission.handed_in:
        if cell.kind in ("markdown", "raw") and cell.id in answers and cell.attachments:
            answers[cell.id] += json.dumps(cell.attachments, sort_keys=True)
    for question in submission.cells:
        if question.role == "question":
            answers[f"check_{question.id}"] = question.source
    return answers


def answer_sha256(answer: str) -> str:
    """The hash of an answer, without spaces and line breaks, which editors change."""
    words = " ".join(answer.split())
    return hashlib.sha256(words.encode()).hexdigest()


def mark_earlier_answers(
    course: Course,
    assignment: Assignment,
    results: Sequence[Result],
    by_hand: Mapping[str, ManualGrades],
) -> dict[str, ManualGrades]:
    """Let points by hand wait that were given for another answer than the graded one.

    Only submissions that are other files than the gradebook was filled from are read.
    """
    changed = []
    for result in results:
        grades = by_hand.get(result.student)
        if grades and _may_have_changed(grades, result.submission_sha256):
            changed.append(result)
    marked = dict(by_hand)
    for result, submission in _read_submissions(course, assignment, changed):
        grades = by_hand[result.student]
        hashes: dict[str, str] = {}
        if submission is not None:
            answers = read_answers(submission)
            hashes = {
                grade_id: answer_sha256(answer) for grade_id, answer in answers.items()
            }
        written = [
            _check(score, hashes.get(f"written_{score.name}"))
            for score in grades.written
        ]
        questions = [
            _check(score, hashes.get(f"check_{score.name}"))
            for score in grades.questions
        ]
        marked[result.student] = dataclasses.replace(
            grades, written=tuple(written), questions=tuple(questions)
        )
    return marked


def _may_have_changed(grades: ManualGrades, submission_sha256: str) -> bool:
    scores = (*grades.written, *grades.questions)
    has_hashes = bool(grades.submission) or any(score.answer for score in scores)
    return has_hashes and grades.submission != submission_sha256


def _read_submissions(
    course: Course, assignment: Assignment, results: Sequence[Result]
) -> Iterator[tuple[Result, Submission | None]]:
    """Results with their submissions; None where the submission changed, or nothing is built."""
    from autograder.nbgrader.for_graders import graded_submissions

    if not results:
        return
    try:
        yield from graded_submissions(course, assignment, results)
    except (BadSource, StaleBuild):  # raised before the first one
        yield from ((result, None) for result in results)


def _check(score: ManualScore, answer: str | None) -> ManualScore:
    """The score, which waits where the answer's hash differs or is not known."""
    if answer and answer == score.answer:
        return score
    return dataclasses.replace(score, waits=True, earlier=score.points is not None)

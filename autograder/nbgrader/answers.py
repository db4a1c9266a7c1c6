"""Tells a new answer from one that the gradebook was filled with: points by hand for an old answer
wait for a person.

Timestamps do not tell: platforms drop them, and a second upload of the same file has a new one. Two
tables of our own stand beside nbgrader's, which nbgrader leaves alone, so that scores and what they
were given for change together: the hash of each answer, and that of the notebook that the answers
stood in. A student who hands in other words may have a new result with the same points from the
tests, and the gradebook knows nothing of it until it is filled again: without the hash, the points
for the old words would stand as the mark for the new ones.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence

from sqlalchemy import Column, MetaData, String, Table, bindparam, delete, insert, select
from sqlalchemy.orm import Session

from autograder.basics.errors import BadSource, StaleBuild
from autograder.course import Assignment, Course
from autograder.records.model import ManualGrades, ManualScore, Result, Submission

Key = tuple[str, str]
"""(submitted notebook, cell), as the database names them."""

_OURS = MetaData()
_ANSWERS = Table(
    "attention_kit_answer",
    _OURS,
    Column("notebook_id", String(32), primary_key=True),
    Column("cell_id", String(32), primary_key=True),
    Column("sha256", String(64), nullable=False),
)
_SUBMISSIONS = Table(
    "attention_kit_submission",
    _OURS,
    Column("notebook_id", String(32), primary_key=True),
    Column("sha256", String(64), nullable=False),
)


def remember_answers(
    db: Session, answers: Mapping[Key, str], submissions: Mapping[str, str]
) -> set[Key]:
    """Note what was handed in, for one batch of submissions. Commits nothing.

    Args:
        answers: what was answered in each cell.
        submissions: submitted notebook → hash of the file that its rows are filled from; "" where
            that is not known.

    Returns:
        The answers that are other than before, or that nothing was known of.
    """
    _OURS.create_all(db.connection())
    rows = db.execute(select(_ANSWERS).where(_ANSWERS.c.notebook_id.in_(submissions)))
    known = {(row.notebook_id, row.cell_id): row.sha256 for row in rows}
    new = {key: answer_sha256(answer) for key, answer in answers.items()}
    changed = {key for key, digest in new.items() if known.get(key) != digest}
    if changed:
        this_answer = (
            _ANSWERS.c.notebook_id == bindparam("notebook"),
            _ANSWERS.c.cell_id == bindparam("cell"),
        )
        db.execute(
            delete(_ANSWERS).where(*this_answer),
            [{"notebook": key[0], "cell": key[1]} for key in changed],
        )
        columns = [
            {"notebook_id": key[0], "cell_id": key[1], "sha256": new[key]}
            for key in sorted(changed)
        ]
        db.execute(insert(_ANSWERS), columns)
    db.execute(delete(_SUBMISSIONS).where(_SUBMISSIONS.c.notebook_id.in_(submissions)))
    if hashes := [
        {"notebook_id": key, "sha256": sha256} for key, sha256 in submissions.items() if sha256
    ]:
        db.execute(insert(_SUBMISSIONS), hashes)
    return changed


def answers_of(submission: Submission) -> dict[str, str]:
    """grade_id → what was answered there: the text of a written answer, and the code of the
    question of a check.
    """
    texts = {answer.id: answer.text for answer in submission.written}
    for cell in submission.handed_in:
        for kind in ("markdown", "raw"):
            if cell.kind == kind and cell.id in texts and cell.attachments:
                texts[cell.id] += json.dumps(cell.attachments, sort_keys=True)
    return texts | {
        f"check_{cell.id}": cell.source for cell in submission.cells if cell.role == "question"
    }


def answer_sha256(answer: str) -> str:
    """Hash of an answer; spaces and line breaks, which editors change, do not count."""
    return hashlib.sha256(" ".join(answer.split()).encode()).hexdigest()


def with_earlier_answers(
    course: Course,
    assignment: Assignment,
    results: Sequence[Result],
    by_hand: Mapping[str, ManualGrades],
) -> dict[str, ManualGrades]:
    """What people gave, where points for another answer than the graded one wait for a person.

    Only the submissions that are other files than the gradebook was filled from are read.
    """
    changed = [
        result
        for result in results
        if (hand := by_hand.get(result.student)) and _may_be_earlier(hand, result.submission_sha256)
    ]
    corrected = dict(by_hand)
    for result, submission in _submissions(course, assignment, changed):
        hand = by_hand[result.student]
        hashes = (
            {name: answer_sha256(text) for name, text in answers_of(submission).items()}
            if submission
            else None
        )
        corrected[result.student] = dataclasses.replace(
            hand,
            written=tuple(
                _compared(score, f"written_{score.name}", hashes) for score in hand.written
            ),
            questions=tuple(
                _compared(score, f"check_{score.name}", hashes) for score in hand.questions
            ),
        )
    return corrected


def _may_be_earlier(hand: ManualGrades, submission_sha256: str) -> bool:
    has_hashes = hand.submission or any(score.answer for score in (*hand.written, *hand.questions))
    return bool(has_hashes) and hand.submission != submission_sha256


def _submissions(
    course: Course, assignment: Assignment, results: Sequence[Result]
) -> Iterator[tuple[Result, Submission | None]]:
    """Results with their submissions; None where the submission has changed since, or the release
    is not built.
    """
    from autograder.nbgrader.for_graders import graded_submissions

    if not results:
        return
    try:
        yield from graded_submissions(course, assignment, results)
    except (BadSource, StaleBuild):  # raised before the first one
        yield from ((result, None) for result in results)


def _compared(score: ManualScore, grade_id: str, hashes: Mapping[str, str] | None) -> ManualScore:
    """The score, which waits if the answer has changed; `hashes` are those of the new answers, None
    if unreadable.
    """
    same = hashes is not None and score.answer != "" and hashes.get(grade_id) == score.answer
    if same:
        return score
    return dataclasses.replace(score, waits=True, earlier=score.points is not None)

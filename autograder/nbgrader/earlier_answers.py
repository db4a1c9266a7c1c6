"""Points by hand for an answer that the student has replaced: a person must look at the new answer first.

The gradebook holds the hash of each answer that it was last filled with (`answers.py`). A student who hands in other
words has a new result with the same points from the tests, and the gradebook knows nothing of it until it is filled
again: without the hash, the points for the old words would stand as the mark for the new ones.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence

from autograder.course import Assignment, Course
from autograder.errors import BadSource, StaleBuild
from autograder.model import ManualGrades, ManualScore, Result, Submission


def answers_of(submission: Submission) -> dict[str, str]:
    """grade_id → what was answered there: the text of a written answer, and the code of the question of a check."""
    texts = {answer.id: answer.text for answer in submission.written}
    for cell in submission.handed_in:
        for kind in ("markdown", "raw"):
            if cell.kind == kind and cell.id in texts and cell.attachments:
                texts[cell.id] += json.dumps(cell.attachments, sort_keys=True)
    return texts | {f"check_{cell.id}": cell.source for cell in submission.cells if cell.role == "question"}


def answer_sha256(answer: str) -> str:
    """Hash of an answer; spaces and line breaks, which editors change, do not count."""
    return hashlib.sha256(" ".join(answer.split()).encode()).hexdigest()


def with_earlier_answers(
    course: Course, assignment: Assignment, results: Sequence[Result], by_hand: Mapping[str, ManualGrades]
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
        hashes = {name: answer_sha256(text) for name, text in answers_of(submission).items()} if submission else None
        corrected[result.student] = dataclasses.replace(
            hand,
            written=tuple(_compared(score, f"written_{score.name}", hashes) for score in hand.written),
            questions=tuple(_compared(score, f"check_{score.name}", hashes) for score in hand.questions),
        )
    return corrected


def _may_be_earlier(hand: ManualGrades, submission_sha256: str) -> bool:
    has_hashes = hand.submission or any(score.answer for score in (*hand.written, *hand.questions))
    return bool(has_hashes) and hand.submission != submission_sha256


def _submissions(
    course: Course, assignment: Assignment, results: Sequence[Result]
) -> Iterator[tuple[Result, Submission | None]]:
    """Results with their submissions; None where the submission has changed since, or the release is not built."""
    from autograder.nbgrader.for_graders import graded_submissions

    if not results:
        return
    try:
        yield from graded_submissions(course, assignment, results)
    except (BadSource, StaleBuild):  # raised before the first one
        yield from ((result, None) for result in results)


def _compared(score: ManualScore, grade_id: str, hashes: Mapping[str, str] | None) -> ManualScore:
    """The score, which waits if the answer has changed; `hashes` are those of the new answers, None if unreadable."""
    same = hashes is not None and score.answer != "" and hashes.get(grade_id) == score.answer
    if same:
        return score
    return dataclasses.replace(score, waits=True, earlier=score.points is not None)

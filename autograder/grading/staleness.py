"""Whether a stored result still says what grading would say now: what must be graded, and what is
told of the rest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence

from autograder.basics.errors import KitError, UnreadableSubmission
from autograder.basics.handed_in import read_handed_in
from autograder.course import Assignment, Course, Limits
from autograder.grading.request import GradeRequest, Watcher
from autograder.intake.find import find_submissions
from autograder.intake.released_notebook import points_of_questions
from autograder.records.model import FoundSubmission, Result
from autograder.records.results import course_sha256, load_timing, read_result
from autograder.records.sums import misvaluation
from autograder.sandbox.tiers import STRICT, TIERS

HANDED_IN = "another notebook has been handed in since"
OTHER_SUITE = "the suite, the answer key or the limits have changed since"
OTHER_WALLS = "it was graded behind other walls"


def why_stale(
    result: Result,
    submission: str | None = None,
    suite: str | None = None,
    isolations: Collection[str] | None = None,
) -> str:
    """Why grading now might give another result; "" where the result holds.

    Args:
        submission: hash of the notebook that would be graded; None where it is not known.
        suite: `course_sha256` now; None where the assignment is not built.
        isolations: what the result may name as its walls; None for any.
    """
    if submission is not None and submission != result.submission_sha256:
        return HANDED_IN
    if suite is not None and suite != result.suite_sha256:
        return OTHER_SUITE
    return OTHER_WALLS if isolations is not None and result.isolation not in isolations else ""


def to_grade(
    request: GradeRequest, found: Sequence[FoundSubmission], watcher: Watcher = Watcher()
) -> tuple[list[FoundSubmission], list[Result]]:
    """What must be graded, and the headlines of the results that the others have."""
    if request.force:
        return list(found), []
    suite, walls = course_sha256(request.course, request.assignment), _isolations(request)
    # Results look current and are not where a forced run did not come to them any more, or where a
    # run was killed before it noted that the submission has no problem now.
    try:
        timing = load_timing(request.results, request.assignment.name)
        older = {entry.student for entry in timing if entry.older or entry.problem}
    except ValueError as error:
        watcher.warn(f"{error}; which results are older ones is not known, so all are graded again")
        return list(found), []
    todo, current = [], []
    for submission in found:
        result = read_result(request.results, request.assignment.name, submission.student)
        if (
            result is not None
            and submission.student not in older
            # what cannot be read is graded too: the grader says why
            and not why_stale(
                result, _sha256(submission, request.course.limits) or "", suite, walls
            )
        ):
            current.append(result.headline())
        else:
            todo.append(submission)
    return todo, current


def stale(
    course: Course, assignment: Assignment, results: Sequence[Result], *, own_submissions: bool
) -> dict[str, str]:
    """Student → why the result is stale. Walls are not looked at: nobody asked for any.

    Args:
        own_submissions: whether the results are of what lies in the course's `submitted/`.
    """
    handed_in: dict[str, str | None] = {}
    if own_submissions:
        try:
            found = find_submissions(course, assignment, [])
            handed_in = {
                submission.student: _sha256(submission, course.limits) for submission in found
            }
        except KitError:
            pass  # nothing is there to compare with
    is_built = assignment.release.is_file() and assignment.solution.is_file()
    suite = course_sha256(course, assignment) if is_built else None
    reasons = {
        result.student: why_stale(result, handed_in.get(result.student), suite)
        for result in results
    }
    return {student: reason for student, reason in reasons.items() if reason}


def misvalued(course: Course, assignment: Assignment, results: Sequence[Result]) -> dict[str, str]:
    """Student → what is wrong with a result whose questions are not worth what they are in the
    suite that it names.

    Only results of the suite as it is now can be looked at; the others are stale.
    """
    worth = points_of_questions(assignment)
    if not worth or not assignment.solution.is_file():
        return {}
    suite = course_sha256(course, assignment)
    problems = {
        result.student: misvaluation(result, worth)
        for result in results
        if not why_stale(result, suite=suite)
    }
    return {student: problem for student, problem in problems.items() if problem}


def _sha256(submission: FoundSubmission, limits: Limits) -> str | None:
    """Hash of the notebook; None where it cannot be read."""
    try:
        return hashlib.sha256(read_handed_in(submission.path, limits.notebook_mb << 20)).hexdigest()
    except UnreadableSubmission:
        return None


def _isolations(request: GradeRequest) -> frozenset[str]:
    """What a result may say that it was graded behind, so that it still holds."""
    known = {"none": ("none",), "strict": ("strict",), "auto": ("strict", *TIERS)}
    asked = known.get(
        request.isolation, ("strict",) if request.isolation in STRICT else (request.isolation,)
    )
    device = "" if request.device == "cpu" else f"+{request.device}"
    return frozenset(isolation + device for isolation in asked)

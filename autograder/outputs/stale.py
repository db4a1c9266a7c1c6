"""Which results no longer say what grading would say now."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from autograder.course import Assignment, Course
from autograder.errors import KitError, UnreadableSubmission
from autograder.handed_in import read_handed_in
from autograder.intake.find import find_submissions
from autograder.intake.release import points_of_questions
from autograder.model import Result
from autograder.results import course_sha256
from autograder.sums import check_worth

OTHER_SUITE = "the suite, the answer key or the limits have changed since"
HANDED_IN = "another notebook has been handed in since"


def stale(
    course: Course, assignment: Assignment, results: Sequence[Result], *, own_submissions: bool
) -> dict[str, str]:
    """Student → why the result is stale. Where the assignment is not built, nothing can be said of the suite.

    Args:
        own_submissions: whether the results are of what lies in the course's `submitted/`.
    """
    reasons = {}
    handed_in = _handed_in(course, assignment) if own_submissions else {}
    if assignment.release.is_file() and assignment.solution.is_file():
        now = course_sha256(course, assignment)
        reasons = {result.student: OTHER_SUITE for result in results if result.suite_sha256 != now}
    for result in results:
        if handed_in.get(result.student, result.submission_sha256) != result.submission_sha256:
            reasons[result.student] = HANDED_IN
    return reasons


def misvalued(course: Course, assignment: Assignment, results: Sequence[Result]) -> dict[str, str]:
    """Student → what is wrong with a result whose questions are not worth what they are in the suite that it names.

    Only results of the suite as it is now can be looked at; the others are stale.
    """
    worth = points_of_questions(assignment)
    if not worth or not assignment.solution.is_file():
        return {}
    now = course_sha256(course, assignment)
    problems = {}
    for result in results:
        if result.suite_sha256 == now:
            try:
                check_worth(result, worth)
            except ValueError as error:
                problems[result.student] = str(error)
    return problems


def _handed_in(course: Course, assignment: Assignment) -> dict[str, str]:
    """Student → hash of what lies in `submitted/`; those that cannot be read are left out: grading names them."""
    try:
        found = find_submissions(course, assignment, [])
    except KitError:
        return {}
    hashes = {}
    for one in found:
        try:
            hashes[one.student] = hashlib.sha256(read_handed_in(one.path, course.limits.notebook_mb << 20)).hexdigest()
        except UnreadableSubmission:
            continue
    return hashes

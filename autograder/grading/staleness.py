"""Whether grading now would give another result than the stored one: finds the submissions that
must be graded, and tells about the results of the others.
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
from autograder.records.model import Result
from autograder.records.results import Tell, course_sha256, load_timing, read_result
from autograder.records.submission import FoundSubmission
from autograder.records.sums import describe_misvaluation
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
    """Why grading now might give another result; "" where the result is current.

    Args:
        submission: hash of the notebook that would be graded; None where that is not known.
        suite: `course_sha256` now; None where the assignment is not built.
        isolations: the walls that the result may name; None for any.
    """
    if submission is not None and submission != result.submission_sha256:
        return HANDED_IN
    if suite is not None and suite != result.suite_sha256:
        return OTHER_SUITE
    if isolations is not None and result.isolation not in isolations:
        return OTHER_WALLS
    return ""


def keep_current(
    results: Sequence[Result], suite: str, assignment: str, tell: Tell
) -> list[Result]:
    """The results that hold for the suite as it is; tells how many others are left out beside them.

    Args:
        suite: `course_sha256` now.
    """
    current = [result for result in results if not why_stale(result, suite=suite)]
    older = len(results) - len(current)
    if current and older:
        tell(
            f"{older} results are older than the suite and left out; "
            f"`autograder grade {assignment}`"
        )
    return current


def select_submissions(
    request: GradeRequest,
    submissions: Sequence[FoundSubmission],
    watcher: Watcher = Watcher(),
) -> tuple[list[FoundSubmission], list[Result]]:
    """The submissions that must be graded, and the headlines of the others' current results."""
    if request.force:
        return list(submissions), []
    folder = request.results
    name = request.assignment.name
    # Results look current and are not where a forced run ended before it came to them, or where a
    # run was killed before it noted that the submission has no problem now.
    try:
        timing = load_timing(folder, name)
    except ValueError as error:
        watcher.warn(
            f"{error}; which results are older ones is not known, so all are graded again"
        )
        return list(submissions), []
    outdated = {entry.student for entry in timing if entry.older or entry.problem}
    suite = course_sha256(request.course, request.assignment)
    isolations = _accepted_isolations(request)
    selected = []
    current = []
    for submission in submissions:
        result = read_result(folder, name, submission.student)
        if result is None or submission.student in outdated:
            selected.append(submission)
            continue
        # a notebook that cannot be read is graded too: the grader reports why
        sha256 = _sha256(submission, request.course.limits) or ""
        if why_stale(result, sha256, suite, isolations):
            selected.append(submission)
        else:
            current.append(result.headline())
    return selected, current


def find_stale(
    course: Course,
    assignment: Assignment,
    results: Sequence[Result],
    *,
    own_submissions: bool,
) -> dict[str, str]:
    """Student → why the result is stale. Walls are not compared: nobody asked for any.

    Args:
        own_submissions: whether the results are of the course's own `submitted/`.
    """
    handed_in: dict[str, str | None] = {}
    if own_submissions:
        try:
            for submission in find_submissions(course, assignment, []):
                handed_in[submission.student] = _sha256(submission, course.limits)
        except KitError:
            pass  # there is nothing to compare with
    is_built = assignment.release.is_file() and assignment.solution.is_file()
    suite = course_sha256(course, assignment) if is_built else None
    reasons = {}
    for result in results:
        reason = why_stale(result, handed_in.get(result.student), suite)
        if reason:
            reasons[result.student] = reason
    return reasons


def find_misvalued(
    course: Course,
    assignment: Assignment,
    results: Sequence[Result],
) -> dict[str, str]:
    """Student → the problem of a result whose questions have other points than in the suite that
    the result names.

    Only results of the suite as it is now can be compared; the others are stale.
    """
    points = points_of_questions(assignment)
    if not points or not assignment.solution.is_file():
        return {}
    suite = course_sha256(course, assignment)
    problems = {}
    for result in results:
        if not why_stale(result, suite=suite):
            problem = describe_misvaluation(result, points)
            if problem:
                problems[result.student] = problem
    return problems


def _sha256(submission: FoundSubmission, limits: Limits) -> str | None:
    """Hash of the notebook; None where it cannot be read."""
    try:
        return hashlib.sha256(
            read_handed_in(submission.path, limits.notebook_mb << 20)
        ).hexdigest()
    except UnreadableSubmission:
        return None


def _accepted_isolations(request: GradeRequest) -> frozenset[str]:
    """The walls with which a result is current."""
    isolation = request.isolation
    if isolation == "auto":
        names: tuple[str, ...] = ("strict", *TIERS)
    elif isolation in STRICT:
        names = ("strict",)
    else:
        names = (isolation,)
    device = "" if request.device == "cpu" else f"+{request.device}"
    return frozenset([name + device for name in names])

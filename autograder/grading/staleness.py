"""Which submissions must be graded: those without a result that was made from what would be graded now."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence

from autograder.errors import UnreadableSubmission
from autograder.grading.progress import Watcher
from autograder.grading.request import GradeRequest
from autograder.handed_in import read_handed_in
from autograder.model import FoundSubmission, Result, Scored
from autograder.results import course_sha256, load_timing, read_result
from autograder.sandbox.tiers import STRICT, TIERS


def to_grade(
    request: GradeRequest, found: Sequence[FoundSubmission], watcher: Watcher = Watcher()
) -> tuple[list[FoundSubmission], list[Scored]]:
    """What must be graded, and what the others have."""
    if request.force:
        return list(found), []
    suite, walls = course_sha256(request.course, request.assignment), _isolations(request)
    # those that a forced run did not come to any more look current, and are not
    try:
        older = {entry.student for entry in load_timing(request.results, request.assignment.name) if entry.older}
    except ValueError as error:
        watcher.warn(f"{error}; which results are older ones is not known, so all are graded again")
        return list(found), []
    todo, current = [], []
    for one in found:
        result = read_result(request.results, request.assignment.name, one.student)
        if result is not None and one.student not in older and holds(result, _sha256(request, one), suite, walls):
            current.append(Scored.of(result))
        else:
            todo.append(one)
    return todo, current


def holds(result: Result, submission_sha256: str, suite_sha256: str, isolations: Collection[str]) -> bool:
    """Whether a result was made from exactly this submission, with this suite, answer key and limits, and behind walls
    that were asked for."""
    made_from = (result.submission_sha256, result.suite_sha256)
    return made_from == (submission_sha256, suite_sha256) and result.isolation in isolations


def _sha256(request: GradeRequest, found: FoundSubmission) -> str:
    """ "" where it cannot be read: the grader will say so."""
    try:
        return hashlib.sha256(read_handed_in(found.path, request.course.limits.notebook_mb << 20)).hexdigest()
    except UnreadableSubmission:
        return ""


def _isolations(request: GradeRequest) -> frozenset[str]:
    """What a result may say that it was graded behind, so that it still holds."""
    known = {"none": ("none",), "strict": ("strict",), "auto": ("strict", *TIERS)}
    asked = known.get(request.isolation, ("strict",) if request.isolation in STRICT else (request.isolation,))
    device = "" if request.device == "cpu" else f"+{request.device}"
    return frozenset(isolation + device for isolation in asked)

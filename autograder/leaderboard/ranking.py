"""Measures a class: each submission with full marks in what a measure needs, behind walls."""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

from autograder.basics.errors import (
    KitError,
    NothingToGrade,
    StudentFault,
    UnreadableSubmission,
)
from autograder.basics.points import is_full
from autograder.basics.safe_text import clean, one_line
from autograder.course import Assignment, Course
from autograder.grading.bench import Bench, start_class_bench
from autograder.grading.staleness import keep_current
from autograder.intake.find import find_submissions
from autograder.intake.handed_in_weights import (
    HandedInWeights,
    hash_weights,
    read_weights,
    weights_limit,
    weights_path,
)
from autograder.intake.notebook import read_submission
from autograder.leaderboard.measures import Entrant, Measure, NotRanked, load_measures
from autograder.leaderboard.standings import (
    RankedClass,
    RankedSubmission,
    read_standings,
    write_standings,
)
from autograder.proof.trials import examine_jobs
from autograder.records.model import Result
from autograder.records.results import Tell, course_sha256, read_results
from autograder.records.submission import FoundSubmission, Submission
from autograder.sandbox.host_process import HostClient
from autograder.sandbox.student import Student
from autograder.sitting.sitting import Sitting
from autograder.suite.calls import start_log

_LONGEST_REASON = 300


@dataclass(frozen=True, slots=True)
class LeaderboardRequest:
    """The options of `autograder leaderboard`.

    Attributes:
        results: the folder of results.
        workers: how many processes; None for one a core.
    """

    course: Course
    assignment: Assignment
    results: Path
    workers: int | None = None


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A submission that is to be measured.

    Attributes:
        weights_sha256: as `hash_weights` gives it.
        measures: the names of the measures that it may enter.
        reasons: by measure, why it may not.
    """

    file: FoundSubmission
    submission_sha256: str
    weights: Path
    weights_sha256: str
    measures: tuple[str, ...]
    reasons: dict[str, str]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The measures of an assignment, and the numbers of its class.

    Attributes:
        files: the submissions that were found, by student.
    """

    measures: tuple[Measure, ...]
    standings: RankedClass
    files: dict[str, FoundSubmission]


def rank_class(request: LeaderboardRequest, tell: Tell) -> Ranking:
    """Measure the class of an assignment, and store the numbers.

    Raises:
        KitError: the suite has no measures, nobody was graded, or this machine cannot grade.
    """
    course, assignment = request.course, request.assignment
    measures = load_measures(assignment)
    if not measures:
        raise KitError(
            f"{assignment.name} has no leaderboard: docs/authoring.md says how a suite gets one"
        )
    takes_weights = any(measure.takes_weights for measure in measures)
    if takes_weights and not weights_limit(course, assignment.name):
        tell(
            f"weights lie beside a notebook only where somebody put them there: with "
            f'[leaderboard] weights = "{assignment.name}" in course.toml they are handed in'
        )
    suite = course_sha256(course, assignment)
    results = _current_results(request, suite, tell)
    stored = read_standings(request.results, assignment.name, suite)
    known = {standing.student: standing for standing in stored.standings}
    files = {found.student: found for found in find_submissions(course, assignment, ())}
    candidates = [
        _candidate(course, assignment, measures, result, files[result.student])
        for result in results
        if result.student in files
    ]
    fresh = [job for job in candidates if not _is_measured(known, job)]
    measured = _measure_all(request, measures, fresh, tell) if fresh else {}
    found = [{**known, **measured}[job.file.student] for job in candidates]
    standings = [standing for standing in found if standing is not None]
    whole = RankedClass(suite, tuple(standings))
    write_standings(request.results, assignment.name, whole)
    return Ranking(measures, whole, files)


def _current_results(
    request: LeaderboardRequest, suite: str, tell: Tell
) -> list[Result]:
    name = request.assignment.name
    results = read_results(request.results, name, tell)
    current = keep_current(results, suite, name, tell)
    if not current:
        raise NothingToGrade(
            f"no current results of {name}: run `autograder grade {name}` first"
        )
    return current


def _candidate(
    course: Course,
    assignment: Assignment,
    measures: Sequence[Measure],
    result: Result,
    file: FoundSubmission,
) -> _Candidate:
    full = {
        question.name
        for question in result.questions
        if is_full(question.score, question.max_score)
    }
    reasons = {}
    for measure in measures:
        if missing := [name for name in measure.needs if name not in full]:
            reasons[measure.name] = f"`{missing[0]}` has not all of its points"
    names = [measure.name for measure in measures if measure.name not in reasons]
    weights = weights_path(file.path, assignment.name)
    return _Candidate(
        file,
        result.submission_sha256,
        weights,
        hash_weights(weights, course.leaderboard.weights_mb),
        tuple(names),
        reasons,
    )


def _is_measured(known: Mapping[str, RankedSubmission], job: _Candidate) -> bool:
    standing = known.get(job.file.student)
    if standing is None or standing.submission_sha256 != job.submission_sha256:
        return False
    return standing.weights_sha256 == job.weights_sha256


def _measure_all(
    request: LeaderboardRequest,
    measures: Sequence[Measure],
    jobs: Sequence[_Candidate],
    tell: Tell,
) -> dict[str, RankedSubmission | None]:
    """The standings of some submissions, measured on every core; None where that failed."""
    files = [job.file for job in jobs]
    with start_class_bench(
        request.course, request.assignment, files, request.workers
    ) as bench:

        def examine(client: HostClient, job: _Candidate) -> RankedSubmission:
            return _measure(bench, client, measures, job)

        examined = examine_jobs(bench, jobs, examine, RankedSubmission)
    for job, standing, problem in examined:
        if standing is None:
            tell(one_line(f"{job.file.student} cannot be measured: {problem}"))
    return {job.file.student: standing for job, standing, _ in examined}


def _measure(
    bench: Bench, client: HostClient, measures: Sequence[Measure], job: _Candidate
) -> RankedSubmission:
    """One submission's numbers; runs in a grader's process."""
    submission = read_submission(job.file, bench.grader.release, bench.course.limits)
    if submission.sha256 != job.submission_sha256:
        raise KitError("another notebook has been handed in since; grade it first")
    standing = RankedSubmission(
        job.file.student,
        job.submission_sha256,
        job.weights_sha256,
        {},
        dict(job.reasons),
    )
    for measure in measures:
        if measure.name not in job.measures:
            continue
        try:
            weights = _weights(bench.course, job) if measure.takes_weights else None
            number = _work_out(bench, client, submission, measure, weights)
        except (NotRanked, StudentFault, UnreadableSubmission) as reason:
            standing.reasons[measure.name] = clean(str(reason), _LONGEST_REASON)
        except KitError:
            raise
        # an answer may be of another form than the measure works with
        except Exception as error:
            text = f"the answers cannot be measured: {type(error).__name__}: {error}"
            standing.reasons[measure.name] = clean(text, _LONGEST_REASON)
        else:
            standing.numbers[measure.name] = round(number, measure.decimals)
    return standing


def _weights(course: Course, job: _Candidate) -> HandedInWeights:
    if not job.weights.exists():
        raise NotRanked(f"{job.weights.name} does not lie beside the notebook")
    return read_weights(job.weights, course.leaderboard.weights_mb)


def _work_out(
    bench: Bench,
    client: HostClient,
    submission: Submission,
    measure: Measure,
    weights: HandedInWeights | None,
) -> float:
    """The number of a measure.

    Raises:
        NotRanked, StudentFault: there is none, by the submission's doing.
    """
    grader = bench.grader
    with contextlib.ExitStack() as open_sittings:

        def start() -> Student:
            sitting = Sitting(client, bench.course.limits, grader.suite, submission)
            open_sittings.callback(sitting.close)
            return sitting.functions()

        start_log(grader.reference)
        parts = (
            measure.name,
            submission.sha256,
            weights.sha256 if weights else "",
            grader.sha256,
        )
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        seed = int(digest[:12], 16)
        reference = SimpleNamespace(**grader.reference)
        entrant = Entrant(start(), reference, start, seed, weights)
        number = float(measure.work_out(entrant))
    if not math.isfinite(number):
        raise NotRanked(f"the number is {number}")
    return number

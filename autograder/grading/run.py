"""Implements `autograder grade`: finds submissions, grades changed ones, stores results."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Sequence

from autograder.basics.errors import DeviceUnavailable, KitError
from autograder.grading.request import GradeRequest, GradeSummary, Watcher
from autograder.grading.staleness import select_submissions
from autograder.intake.find import find_submissions
from autograder.intake.overlooked import find_overlooked
from autograder.records.model import Graded, Result
from autograder.records.results import (
    TimingFile,
    lock_results,
    read_result,
    read_timing,
    result_path,
    store_result,
)
from autograder.records.submission import FoundSubmission
from autograder.sandbox.device import device_tier, find_device


def grade_command(request: GradeRequest, watcher: Watcher = Watcher()) -> GradeSummary:
    """Grade what changed, write each result as soon as it is there, and summarize all of them.

    Raises:
        KitError: nothing to grade, or this course or machine cannot grade, or another run grades
            the same.
    """
    started = time.monotonic()
    course = request.course
    assignment = request.assignment
    folder = request.results
    whole_class = find_submissions(course, assignment, request.paths)
    share = request.share
    submissions = share.select(whole_class) if share else whole_class
    share_name = share.name if share else ""
    for notebook in (assignment.release, assignment.solution):
        if not notebook.exists():
            raise KitError(
                f"{notebook} is not built; run `autograder build {assignment.name}`"
            )
    if request.device != "cpu":
        _check_device_fits(request, watcher)
    students = {submission.student for submission in submissions}
    with lock_results(course.kept / "locks", folder, assignment.name, share_name):
        selected, current = select_submissions(request, submissions, watcher)
        timing = TimingFile(folder, assignment.name, share_name, students)
        records = _grade(request, selected, timing, watcher) if selected else []
        results, lost = _check_results(request, current, records)
    problems = [graded for graded in records if graded.result is None] + lost
    speeds: list[Graded] = []
    if request.device != "cpu":
        times = read_timing(folder, assignment.name)
        speeds = [
            entry for entry in times if entry.student in students and entry.speeds
        ]
    overlooked: Sequence[str] = ()
    if share is None or share.number == 1:  # the first share reports for all
        overlooked = find_overlooked(course, assignment, request.paths, whole_class)
    refused: list[str] = []
    if request.other_machines is not None:
        reasons = request.other_machines.refused
        refused = [f"{machine}: {reason}" for machine, reason in reasons.items()]
    graded_now = {graded.student for graded in records if graded.result}
    return GradeSummary(
        results=tuple(sorted(results, key=lambda result: result.student)),
        problems=tuple(sorted(problems, key=lambda graded: graded.student)),
        graded=sum([result.student in graded_now for result in results]),
        seconds=time.monotonic() - started,
        speeds=tuple(speeds),
        overlooked=tuple(overlooked),
        refused=tuple(refused),
    )


def _check_results(
    request: GradeRequest,
    current: Sequence[Result],
    records: Sequence[Graded],
) -> tuple[list[Result], list[Graded]]:
    """Headlines of the results that are on disk, and records of those that have disappeared: the
    folder may have been emptied during the run.
    """
    folder = request.results
    name = request.assignment.name
    expected = list(current)
    results = list[Result]()
    lost = list[Graded]()
    for graded in records:
        if graded.result is not None:
            expected.append(graded.result)
        elif older := read_result(folder, name, graded.student):
            results.append(older.headline())
    for result in expected:
        if result_path(folder, name, result.student).exists():
            results.append(result)
        else:
            problem = (
                f"its result has disappeared from {folder / name} while this ran; "
                "`autograder grade` again makes it anew"
            )
            lost.append(Graded(result.student, problem=problem, untried=True))
    return results, lost


def _check_device_fits(request: GradeRequest, watcher: Watcher) -> None:
    """Check that a device can be used, before anything is loaded.

    Raises:
        DeviceUnavailable: nothing in the suite runs on a GPU, or the walls asked for do not go with
            one.
    """
    tests = request.assignment.suite.rglob("*.py")
    if not any(".launch(" in path.read_text(encoding="utf-8") for path in tests):
        raise DeviceUnavailable(
            f"no test of {request.assignment.name} launches a kernel, so there is nothing for a "
            "GPU to run: grade it without `--device`"
        )
    device_tier(request.isolation)
    if request.workers not in (None, 1):
        watcher.warn(
            "on a GPU one submission is graded at a time; --workers has no effect"
        )


def _grade(
    request: GradeRequest,
    submissions: Sequence[FoundSubmission],
    timing: TimingFile,
    watcher: Watcher,
) -> list[Graded]:
    """Grade submissions, and write each result and its times as they come."""
    folder = request.results
    name = request.assignment.name
    records: list[Graded] = []
    timing.mark_older([submission.student for submission in submissions])
    watcher.begin(name, len(submissions))
    batch = _start_batch(request, submissions, watcher)
    try:
        with contextlib.closing(batch), watcher:
            for graded, content in batch:
                if not graded.untried:
                    store_result(
                        folder, name, graded.student, content if graded.result else None
                    )
                timing.note([graded], more=True)
                records.append(graded)
                watcher.step(graded)
    finally:
        if records:
            timing.note(records)
        walls = [graded.result.walls for graded in records if graded.result]
        weaker_walls = [name for name in walls if name != "strict"]
        if weaker_walls:
            watcher.warn(
                "WARNING: the strict walls do not stand here; isolation was "
                f"{weaker_walls[-1]!r}, and every result says so. `autograder doctor` tells why "
                "and what to do; `--isolation strict` refuses instead."
            )
    return records


def _start_batch(
    request: GradeRequest,
    submissions: Sequence[FoundSubmission],
    watcher: Watcher,
) -> Generator[tuple[Graded, bytes], None, None]:
    course = request.course
    assignment = request.assignment
    isolation = request.isolation
    if request.other_machines is not None:
        return request.other_machines.grade(
            course, assignment, submissions, isolation, watcher.warn
        )
    # torch and pytest come in with this: not before there is something to grade
    from autograder.grading.batch import grade_batch

    device = find_device(request.device) if request.device != "cpu" else None
    return grade_batch(
        course,
        assignment,
        submissions,
        workers=request.workers,
        isolation=isolation,
        device=device,
    )

"""What `autograder grade` does: finds submissions, grades those that changed, keeps results
safe.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Sequence

from autograder.basics.errors import DeviceUnavailable, KitError
from autograder.grading.request import GradeRequest, GradeSummary, Watcher
from autograder.grading.staleness import to_grade
from autograder.intake.find import find_submissions
from autograder.intake.overlooked import find_overlooked
from autograder.records.model import FoundSubmission, Graded, Result
from autograder.records.results import (
    TimingFile,
    lock_results,
    read_result,
    read_timing,
    result_path,
    store_result,
)
from autograder.sandbox.device import device_tier, find_device


def grade_command(request: GradeRequest, watcher: Watcher = Watcher()) -> GradeSummary:
    """Grade what changed, write each result as soon as it is there, and say what all of them are.

    Raises:
        KitError: nothing to grade, or this course or machine cannot grade, or another run grades
            the same.
    """
    started = time.monotonic()
    course, assignment, folder = request.course, request.assignment, request.results
    everybody = find_submissions(course, assignment, request.paths)
    found = request.share.of(everybody) if request.share else everybody
    share = request.share.name if request.share else ""
    for notebook in (assignment.release, assignment.solution):
        if not notebook.exists():
            raise KitError(f"{notebook} is not built; run `autograder build {assignment.name}`")
    if request.device != "cpu":
        _fit_for_a_device(request, watcher)
    with lock_results(course.kept / "locks", folder, assignment.name, share):
        todo, current = to_grade(request, found, watcher)
        timing = TimingFile(
            folder, assignment.name, share, {submission.student for submission in found}
        )
        done = _grade(request, todo, timing, watcher) if todo else []
        results, lost = _on_disk(request, current, done)
    problems = sorted(
        (*(graded for graded in done if graded.result is None), *lost),
        key=lambda graded: graded.student,
    )
    timed = read_timing(folder, assignment.name) if request.device != "cpu" else []
    students = {one.student for one in found}
    graded_now = {graded.student for graded in done if graded.result}
    return GradeSummary(
        results,
        tuple(problems),
        graded=sum(result.student in graded_now for result in results),
        seconds=time.monotonic() - started,
        speeds=tuple(entry for entry in timed if entry.student in students and entry.speeds),
        overlooked=()
        if request.share and request.share.number > 1  # the first share tells for all
        else tuple(find_overlooked(course, assignment, request.paths, everybody)),
        refused=tuple(f"{machine}: {why}" for machine, why in request.elsewhere.refused.items())
        if request.elsewhere
        else (),
    )


def _on_disk(
    request: GradeRequest, current: Sequence[Result], done: Sequence[Graded]
) -> tuple[tuple[Result, ...], list[Graded]]:
    """Headlines of the results that stand on disk, and records of those that stood there and have
    disappeared since.

    The folder may have been emptied while this ran.
    """
    folder, name = request.results, request.assignment.name
    results, lost = list[Result](), []
    for graded in done:
        if (
            graded.result is None
            and (older := read_result(folder, name, graded.student)) is not None
        ):
            results.append(older.headline())
    for result in [*current, *(graded.result for graded in done if graded.result)]:
        if result_path(folder, name, result.student).exists():
            results.append(result)
        else:
            why = f"its result has disappeared from {folder / name} while this ran; "
            lost.append(
                Graded(
                    result.student,
                    problem=f"{why}`autograder grade` again makes it anew",
                    untried=True,
                )
            )
    return tuple(sorted(results, key=lambda result: result.student)), lost


def _fit_for_a_device(request: GradeRequest, watcher: Watcher) -> None:
    """Before anything is loaded.

    Raises:
        DeviceUnavailable: nothing in the suite runs on a GPU, or the walls asked for do not go with
            one.
    """
    tests = request.assignment.suite.rglob("*.py")
    if not any(".launch(" in path.read_text(encoding="utf-8") for path in tests):
        raise DeviceUnavailable(
            f"no test of {request.assignment.name} launches a kernel, so there is nothing for a "
            "GPU to run: "
            "grade it without `--device`"
        )
    device_tier(request.isolation)
    if request.workers not in (None, 1):
        watcher.warn("on a GPU one submission is graded at a time; --workers has no effect")


def _grade(
    request: GradeRequest, todo: Sequence[FoundSubmission], timing: TimingFile, watcher: Watcher
) -> list[Graded]:
    """Grade, and write what comes as it comes."""
    folder, name = request.results, request.assignment.name
    done: list[Graded] = []
    timing.expect([submission.student for submission in todo])
    watcher.begin(name, len(todo))
    batch = _batch(request, todo, watcher)
    try:
        with contextlib.closing(batch), watcher:
            for graded, content in batch:
                if not graded.untried:
                    store_result(folder, name, graded.student, content if graded.result else None)
                timing.note([graded], more=True)
                done.append(graded)
                watcher.step(graded)
    finally:
        if done:
            timing.note(done)
        walls = [graded.result.walls for graded in done if graded.result]
        if weaker := [name for name in walls if name != "strict"]:
            watcher.warn(
                f"WARNING: the strict walls do not stand here; isolation was {weaker[-1]!r}, and "
                "every result "
                "says so. `autograder doctor` tells why and what to do; `--isolation strict` "
                "refuses instead."
            )
    return done


def _batch(
    request: GradeRequest, todo: Sequence[FoundSubmission], watcher: Watcher
) -> Generator[tuple[Graded, bytes], None, None]:
    course, assignment, isolation = request.course, request.assignment, request.isolation
    if request.elsewhere is not None:
        return request.elsewhere.grade(course, assignment, todo, isolation, watcher.warn)
    # torch and pytest come in with this: not before there is something to grade
    from autograder.grading.batch import grade_batch

    device = find_device(request.device) if request.device != "cpu" else None
    return grade_batch(
        course, assignment, todo, workers=request.workers, isolation=isolation, device=device
    )

"""What `autograder grade` does: finds submissions, grades those that changed, keeps results safe, tells the person."""

from __future__ import annotations

import contextlib
import hashlib
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.course import Assignment, Course
from autograder.errors import DeviceUnavailable, KitError, UnreadableSubmission
from autograder.fingerprint import suite_sha256
from autograder.handed_in import read_handed_in
from autograder.intake.find import find_submissions
from autograder.intake.overlooked import overlooked
from autograder.model import FoundSubmission, Graded, Result
from autograder.results import (
    Timed,
    TimingFile,
    forget_result,
    inputs_sha256,
    is_current,
    only_writer,
    read_results,
    read_timing,
    write_result,
)
from autograder.sandbox.device import device_tier, find_device
from autograder.sandbox.tiers import STRICT, TIERS


@dataclass(frozen=True, slots=True)
class GradeRequest:
    """What was asked for on the command line."""

    course: Course
    assignment: Assignment
    paths: tuple[Path, ...] = ()
    results: Path = Path("results")
    workers: int | None = None
    isolation: str = "auto"
    force: bool = False
    device: str = "cpu"


@dataclass(frozen=True, slots=True)
class GradeSummary:
    """What came of it: the results of every submission found, and those that have none of this run or before.

    Attributes:
        graded: how many results are this run's.
    """

    results: tuple[Result, ...]
    problems: tuple[Graded, ...]
    graded: int
    seconds: float
    speeds: tuple[Timed, ...] = ()
    """Those of submissions that were graded on a device, and whose function the suite times."""
    overlooked: tuple[str, ...] = ()
    """What lies among the submissions and was not taken for one, and why."""


class Progress:
    """Tells the person how far grading is; silent where nobody looks."""

    def __init__(self, total: int, *, shown: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        # no refresh thread: grader processes are forked from this one
        columns = (TextColumn("grading"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        who = TextColumn("{task.fields[who]}")
        console = Console(stderr=True)
        self._bar = Bar(*columns, who, console=console, auto_refresh=False, disable=not shown, transient=True)
        self._task = self._bar.add_task("grading", total=total, who="")

    def __enter__(self) -> Progress:
        self._bar.start()
        self._bar.refresh()
        return self

    def step(self, graded: Graded) -> None:
        """Count one submission and show whose it was."""

        from rich.markup import escape

        score = f"{graded.result.score:g}" if graded.result else "not graded"
        self._bar.update(self._task, advance=1, who=escape(f"{graded.student[:40]}: {score}"))
        self._bar.refresh()

    def __exit__(self, *_: object) -> None:
        self._bar.stop()


def grade_command(request: GradeRequest, *, quiet: bool = False) -> GradeSummary:
    """Grade what changed, write each result as soon as it is there, and return all of them.

    Raises:
        KitError: nothing to grade, or this course or machine cannot grade, or another run grades the same.
    """
    started = time.monotonic()
    assignment, folder = request.assignment, request.results
    found = find_submissions(request.course, assignment, request.paths)
    for notebook in (assignment.release, assignment.solution):
        if not notebook.exists():
            raise KitError(f"{notebook} is not built; run `autograder build {assignment.name}`")
    if request.device != "cpu":
        _fit_for_a_device(request)
    suite = course_sha256(request.course, assignment)
    with only_writer(request.course.kept / "locks", folder, assignment.name):
        # those that a forced run did not come to any more look current, and are not
        due = {entry.student for entry in read_timing(folder, assignment.name) if entry.older}
        todo = [one for one in found if request.force or one.student in due or not _is_current(request, suite, one)]
        done = _grade(request, todo, quiet=quiet) if todo else []
        results, lost = _on_disk(request, found, done)
    problems = sorted((*(one for one in done if one.result is None), *lost), key=lambda one: one.student)
    students = {one.student for one in found}
    timed = read_timing(folder, assignment.name) if request.device != "cpu" else []
    speeds = tuple(entry for entry in timed if entry.student in students and entry.speeds)
    missed = tuple(overlooked(request.course, assignment, request.paths, found))
    count = sum(one.result is not None for one in done)
    return GradeSummary(results, tuple(problems), count, time.monotonic() - started, speeds, missed)


def _on_disk(
    request: GradeRequest, found: Sequence[FoundSubmission], done: Sequence[Graded]
) -> tuple[tuple[Result, ...], list[Graded]]:
    """The results of what was found as they stand on disk, and what stood there and has disappeared since.

    The folder may have been emptied while this ran. What this run graded is written again.
    """
    folder, name = request.results, request.assignment.name
    results = {result.student: result for result in read_results(folder, name)}
    for one in done:
        if one.result is not None and one.student not in results:
            write_result(folder, one.result)
            results[one.student] = one.result
    without = {one.student for one in done if one.result is None} | results.keys()
    why = f"its result has disappeared from {folder / name} while this ran; `autograder grade` again makes it anew"
    lost = [Graded(one.student, one.path, None, why, untried=True) for one in found if one.student not in without]
    students = {one.student for one in found}
    return tuple(results[student] for student in sorted(students & results.keys())), lost


def _fit_for_a_device(request: GradeRequest) -> None:
    """Before anything is loaded.

    Raises:
        DeviceUnavailable: nothing in the suite runs on a GPU, or the walls asked for do not go with one.
    """
    tests = request.assignment.suite.rglob("*.py")
    if not any(".launch(" in path.read_text(encoding="utf-8") for path in tests):
        raise DeviceUnavailable(
            f"no test of {request.assignment.name} launches a kernel, so there is nothing for a GPU to run: "
            "grade it without `--device`"
        )
    device_tier(request.isolation)
    if request.workers not in (None, 1):
        print("autograder: on a GPU one submission is graded at a time; --workers has no effect", file=sys.stderr)


def _grade(request: GradeRequest, todo: Sequence[FoundSubmission], *, quiet: bool) -> list[Graded]:
    """Grade, and write what comes as it comes; all of it."""
    # torch and pytest come in with this: not before there is something to grade
    from autograder.grading.batch import grade_batch

    device = find_device(request.device) if request.device != "cpu" else None
    done: list[Graded] = []
    weaker = ""
    timing = TimingFile(request.results, request.assignment.name)
    timing.expect(one.student for one in todo)
    if not quiet and not sys.stderr.isatty():
        what = "submission" if len(todo) == 1 else "submissions"
        print(f"grading {len(todo)} {what} of {request.assignment.name}", file=sys.stderr)
    batch = grade_batch(
        request.course,
        request.assignment,
        todo,
        workers=request.workers,
        isolation=request.isolation,
        device=device,
    )
    try:
        with contextlib.closing(batch), Progress(len(todo), shown=not quiet and sys.stderr.isatty()) as progress:
            for graded in batch:
                timing.note([graded], settled=graded.result is None, more=True)
                if graded.result is not None:
                    write_result(request.results, graded.result, graded.text)
                    weaker = graded.result.walls if graded.result.walls != "strict" else weaker
                elif not graded.untried:
                    forget_result(request.results, request.assignment.name, graded.student)
                done.append(graded)
                progress.step(graded)
    finally:
        if done:
            timing.note(done)
        if weaker:
            print(
                f"autograder: WARNING: the strict walls do not stand here; isolation was {weaker!r}, and every result "
                "says so. `autograder doctor` tells why and what to do; `--isolation strict` refuses instead.",
                file=sys.stderr,
            )
    return done


def _is_current(request: GradeRequest, suite: str, found: FoundSubmission) -> bool:
    """Whether the stored result still holds: same submission, same suite, answer key and limits, walls as asked for."""
    try:
        notebook = read_handed_in(found.path, request.course.limits.notebook_mb << 20)
    except UnreadableSubmission:
        return False
    submission = hashlib.sha256(notebook).hexdigest()
    walls = {"none": ("none",), "strict": ("strict",), "auto": ("strict", *TIERS)}
    asked = walls.get(request.isolation, ("strict",) if request.isolation in STRICT else (request.isolation,))
    device = "" if request.device == "cpu" else f"+{request.device}"
    return any(
        is_current(request.results, request.assignment.name, found.student, submission, suite, isolation + device)
        for isolation in asked
    )


def course_sha256(course: Course, assignment: Assignment) -> str:
    """What a result's `suite_sha256` is made of: a change of any of it makes the result stale."""
    return inputs_sha256(suite_sha256(assignment.suite), assignment, course.limits, course.grading)

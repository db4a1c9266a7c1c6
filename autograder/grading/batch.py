"""A class of submissions: work goes to every core, bytes come back.

A result is made into its file's bytes where it was graded, and here they are only passed on: what is kept of each is
what a summary needs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import time
from collections.abc import Generator, Sequence

from autograder.course import Assignment, Course, Limits
from autograder.errors import SuiteFault
from autograder.grading.bench import Bench
from autograder.grading.extras import extras_for
from autograder.grading.gpu_bench import GpuBench
from autograder.grading.pool import Ended, Pool
from autograder.model import FoundSubmission, Graded, Scored, Speed
from autograder.results import result_bytes
from autograder.sandbox.host import Device, HostClient


def grade_batch(
    course: Course,
    assignment: Assignment,
    submissions: Sequence[FoundSubmission],
    *,
    workers: int | None = None,
    isolation: str = "auto",
    device: Device | None = None,
) -> Generator[tuple[Scored, bytes], None, None]:
    """Grade submissions on `workers` processes (default: one a core); yields each as soon as it is done, with the
    content of its result's file (nothing where it has no result).

    With a `device`, one submission at a time.

    What is not done within the course's `run_minutes` is yielded without a result; so is what a fault of the machine's
    kept from being graded twice.

    Raises:
        KitError: the suite, the answer key or this machine cannot grade; nothing was graded.
    """
    until = time.monotonic() + 60 * course.limits.run_minutes
    extras = extras_for(assignment, submissions, course.limits)
    if device is None:
        started = Bench(course, assignment, isolation, processes_for(len(submissions), workers), extras)
    else:
        started = GpuBench(course, assignment, isolation, extras=extras, device=device)
    with started as bench:

        def work(client: HostClient, found: FoundSubmission) -> bytes:
            return graded_bytes(bench, client, found)

        with contextlib.closing(Pool(bench, submissions, work, until).run()) as done:
            for ended in done:
                yield taken(ended, course.limits)


def processes_for(jobs: int, asked: int | None) -> int:
    """How many processes: as asked, or one a core; never more than there are jobs."""
    return max(1, min(asked or os.cpu_count() or 1, jobs))


def graded_bytes(bench: Bench, client: HostClient, found: FoundSubmission) -> bytes:
    """Grade a submission where a bench stands. What comes of it as bytes, for `taken`: a line with what stands beside
    the result, and the content of the result's file.

    Raises:
        HostFailed: the machine failed.
    """
    try:
        graded = bench.grader.grade(client, found)
    except SuiteFault as fault:
        graded = Graded(found.student, found.path, None, f"{found.path.name}: {fault}", untried=True)
    return packed(graded)


def packed(graded: Graded) -> bytes:
    """What `taken` reads."""
    scored = Scored.of(graded.result) if graded.result else Scored(graded.student)
    beside = dataclasses.replace(
        scored, problem=graded.problem, seconds=graded.seconds, untried=graded.untried, speeds=graded.speeds
    )
    content = result_bytes(graded.result) if graded.result else b""
    return json.dumps(dataclasses.asdict(beside)).encode() + b"\n" + content


def taken(ended: Ended[FoundSubmission], limits: Limits) -> tuple[Scored, bytes]:
    """What came of a submission, and the content of its result's file."""
    if ended.answer is None:
        reason = ended.fault or (
            f"the time of this run ([limits] run_minutes = {limits.run_minutes:g}) was up first; "
            "`autograder grade` again goes on with what is left"
        )
        return Scored(ended.job.student, problem=f"{ended.job.path.name}: {reason}", untried=True), b""
    beside, _, content = ended.answer.partition(b"\n")
    fields = json.loads(beside)
    speeds = tuple(Speed(**speed) for speed in fields["speeds"])
    return Scored(**fields | {"speeds": speeds, "flagged": tuple(fields["flagged"])}), content

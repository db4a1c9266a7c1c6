"""Grades a class of submissions on every core."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Generator, Sequence

from autograder.course import Assignment, Course, Limits
from autograder.grading.bench import Bench
from autograder.grading.extras import find_extras
from autograder.grading.graded_bytes import unpack_graded
from autograder.grading.pool import FinishedJob, Pool
from autograder.records.model import Graded
from autograder.records.submission import FoundSubmission
from autograder.sandbox.host_process import Device


def grade_batch(
    course: Course,
    assignment: Assignment,
    submissions: Sequence[FoundSubmission],
    *,
    workers: int | None = None,
    isolation: str = "auto",
    device: Device | None = None,
) -> Generator[tuple[Graded, bytes], None, None]:
    """Grade submissions on `workers` processes (default: one a core); yields each as soon as it is
    done, with the content of its result's file (nothing where it has no result).

    With a `device`, one submission at a time.

    Submissions that are not done within the course's `run_minutes` are yielded without a result; so
    are those that a fault of the machine's kept from being graded twice.

    Raises:
        KitError: the suite, the answer key or this machine cannot grade; nothing was graded.
    """
    until = time.monotonic() + 60 * course.limits.run_minutes
    extras = find_extras(assignment, submissions, course.limits)
    graders = 1
    if device is None:
        graders = max(1, min(workers or os.cpu_count() or 1, len(submissions)))
    with (
        Bench(course, assignment, isolation, graders, extras, device) as bench,
        contextlib.closing(
            Pool(bench, submissions, bench.grader.grade_to_bytes, until).run()
        ) as finished_jobs,
    ):
        for finished_job in finished_jobs:
            yield read_finished_job(finished_job, course.limits)


def read_finished_job(
    finished_job: FinishedJob[FoundSubmission], limits: Limits
) -> tuple[Graded, bytes]:
    """The record of a submission, and the content of its result's file."""
    if finished_job.answer is not None:
        return unpack_graded(finished_job.answer)
    submission = finished_job.job
    reason = finished_job.fault or (
        f"the time of this run ([limits] run_minutes = {limits.run_minutes:g}) was up first; "
        "`autograder grade` again goes on with what is left"
    )
    problem = f"{submission.path.name}: {reason}"
    return Graded(submission.student, problem=problem, untried=True), b""

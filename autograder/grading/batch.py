"""Grades a class of submissions with a grader for each core."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Sequence

from autograder.course import Assignment, Course, Limits
from autograder.grading.bench import Bench, count_graders
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
    """Grade submissions; yields each as soon as it is done, with the bytes of its result's file.

    A submission without a result is yielded with b"": where the course's `run_minutes` were over,
    or where a fault of the machine ended its grading two times.

    Args:
        workers: how many graders work at once; None for one for each core. With a `device` there is
            one, since a GPU has memory for one submission.

    Raises:
        KitError: the suite, the answer key or this machine cannot grade. It is raised before the
            first submission.
    """
    deadline = time.monotonic() + 60 * course.limits.run_minutes
    extras = find_extras(assignment, submissions, course.limits)
    grader_count = 1
    if device is None:
        grader_count = count_graders(workers, len(submissions))
    # closing: whoever stops asking for submissions ends the graders before their hosts
    with (
        Bench(course, assignment, isolation, grader_count, extras, device) as bench,
        contextlib.closing(
            Pool(bench, submissions, bench.grader.grade_to_bytes, deadline).run()
        ) as finished_jobs,
    ):
        for finished_job in finished_jobs:
            yield read_finished_job(finished_job, course.limits)


def read_finished_job(
    finished_job: FinishedJob[FoundSubmission], limits: Limits
) -> tuple[Graded, bytes]:
    """The line of a submission for the summary, and the bytes of its result's file.

    A job with neither an answer nor a fault was not begun before the deadline.
    """
    if finished_job.answer is not None:
        return unpack_graded(finished_job.answer)
    submission = finished_job.job
    reason = finished_job.fault or (
        f"the time of this run ([limits] run_minutes = {limits.run_minutes:g}) was over before; "
        "`autograder grade` again goes on with what is left"
    )
    problem = f"{submission.path.name}: {reason}"
    return Graded(submission.student, problem=problem, untried=True), b""

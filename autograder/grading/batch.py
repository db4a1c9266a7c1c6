"""Grades a class of submissions on every core.

A result is made into its file's bytes in the process that graded it; the driver passes the bytes
on, and keeps of each submission what a summary needs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Generator, Sequence

from autograder.basics.errors import SuiteFault
from autograder.basics.stored_json import decode_line, encode_line
from autograder.course import Assignment, Course, Limits
from autograder.grading.bench import Bench
from autograder.grading.extras import find_extras
from autograder.grading.pool import FinishedJob, Pool
from autograder.records.model import FoundSubmission, Graded
from autograder.records.results import result_bytes
from autograder.sandbox.host_process import Device, HostClient


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
    with Bench(course, assignment, isolation, graders, extras, device) as bench:

        def work(client: HostClient, found: FoundSubmission) -> bytes:
            return grade_to_bytes(bench, client, found)

        with contextlib.closing(Pool(bench, submissions, work, until).run()) as finished_jobs:
            for finished_job in finished_jobs:
                yield unpack_graded(finished_job, course.limits)


def grade_to_bytes(bench: Bench, client: HostClient, found: FoundSubmission) -> bytes:
    """Grade a submission, and pack its record for `unpack_graded`.

    Raises:
        HostFailed: the machine failed.
    """
    try:
        return pack_graded(bench.grader.grade(client, found))
    except SuiteFault as fault:
        problem = f"{found.path.name}: {fault}"
        return pack_graded(Graded(found.student, problem=problem, untried=True))


def pack_graded(graded: Graded) -> bytes:
    """One line with the record, of whose result only the headline, and then the result file's
    content.
    """
    if graded.result is None:
        return encode_line(graded) + b"\n"
    headline = dataclasses.replace(graded, result=graded.result.headline())
    return encode_line(headline) + b"\n" + result_bytes(graded.result)


def unpack_graded(
    finished_job: FinishedJob[FoundSubmission], limits: Limits
) -> tuple[Graded, bytes]:
    """The record of a submission, and the content of its result's file."""
    if finished_job.answer is not None:
        line, _, content = finished_job.answer.partition(b"\n")
        return decode_line(line, Graded), content
    submission = finished_job.job
    reason = finished_job.fault or (
        f"the time of this run ([limits] run_minutes = {limits.run_minutes:g}) was up first; "
        "`autograder grade` again goes on with what is left"
    )
    problem = f"{submission.path.name}: {reason}"
    return Graded(submission.student, problem=problem, untried=True), b""

"""A class of submissions: work goes to every core, bytes come back.

A result is made into its file's bytes where it was graded, and here they are only passed on: what
is kept of each is what a summary needs.
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
from autograder.grading.extras import extras_for
from autograder.grading.pool import Ended, Pool
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

    What is not done within the course's `run_minutes` is yielded without a result; so is what a
    fault of the machine's kept from being graded twice.

    Raises:
        KitError: the suite, the answer key or this machine cannot grade; nothing was graded.
    """
    until = time.monotonic() + 60 * course.limits.run_minutes
    extras = extras_for(assignment, submissions, course.limits)
    graders = processes_for(len(submissions), workers) if device is None else 1
    with Bench(course, assignment, isolation, graders, extras, device) as bench:

        def work(client: HostClient, found: FoundSubmission) -> bytes:
            return graded_bytes(bench, client, found)

        with contextlib.closing(Pool(bench, submissions, work, until).run()) as done:
            for ended in done:
                yield unpack(ended, course.limits)


def processes_for(jobs: int, asked: int | None) -> int:
    """How many processes: as asked, or one a core; never more than there are jobs."""
    return max(1, min(asked or os.cpu_count() or 1, jobs))


def graded_bytes(bench: Bench, client: HostClient, found: FoundSubmission) -> bytes:
    """Grade a submission where a bench stands, and pack what came of it for `unpack`.

    Raises:
        HostFailed: the machine failed.
    """
    try:
        return pack(bench.grader.grade(client, found))
    except SuiteFault as fault:
        return pack(Graded(found.student, problem=f"{found.path.name}: {fault}", untried=True))


def pack(graded: Graded) -> bytes:
    """One line with the record, of whose result only the headline, and then the result file's
    content.
    """
    if graded.result is None:
        return encode_line(graded) + b"\n"
    headline = dataclasses.replace(graded, result=graded.result.headline())
    return encode_line(headline) + b"\n" + result_bytes(graded.result)


def unpack(ended: Ended[FoundSubmission], limits: Limits) -> tuple[Graded, bytes]:
    """The record of a submission, and the content of its result's file."""
    if ended.answer is None:
        reason = ended.fault or (
            f"the time of this run ([limits] run_minutes = {limits.run_minutes:g}) was up first; "
            "`autograder grade` again goes on with what is left"
        )
        return Graded(
            ended.job.student, problem=f"{ended.job.path.name}: {reason}", untried=True
        ), b""
    line, _, content = ended.answer.partition(b"\n")
    return decode_line(line, Graded), content

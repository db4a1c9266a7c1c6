"""Runs a program of the kit's own in a worker: the probes of walls and devices."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from autograder.course import Limits
from autograder.sandbox.host_process import HostClient
from autograder.sandbox.reply_parts import read_error
from autograder.sandbox.student import Student
from autograder.sandbox.worker_process import Worker


@contextlib.contextmanager
def run_program(
    program: Path,
    client: HostClient,
    limits: Limits,
    seconds: float,
) -> Iterator[Student]:
    """Load a program of the kit's own in a worker; its functions are called like a student's.

    Args:
        seconds: the limit of loading the program, and of each call.

    Raises:
        StudentFault: the program does not run, or does not answer.
    """
    worker = Worker(client, limits)
    try:
        cell = (program.stem, program.read_text(encoding="utf-8"))
        header = next(worker.load([cell], seconds, program.stem)).header
        if header.get("ok") is not True:
            raise read_error(header, program.stem)
        yield Student.in_worker(worker, seconds)
    finally:
        worker.kill()

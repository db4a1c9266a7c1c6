"""Finds limits of this process that are too low to grade, and a full temporary folder.

A shell's `ulimit`, a batch system or a container sets such limits. Under a low limit walls fail to
stand, with messages that do not tell of the limit; so limits are checked first.
"""

from __future__ import annotations

import os
import resource
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from autograder.course import Limits

_LIBRARIES = 1 << 30
"""Bytes of addresses that Python and torch take before grading begins."""
_DESCRIPTORS, _DESCRIPTORS_EACH = 256, 8
"""Open files of a host, which numbers its own from 200 on, and of a grader with its worker."""
_PROCESSES_EACH = 8
_CPU_SECONDS = 60
"""CPU time of a process besides that of a worker."""
_SMALLEST_DISK = 1 << 20

Limit = Callable[[int], tuple[int, int]]
"""A function like `resource.getrlimit`: the limit, and how far the limit can be raised."""


def machine_problems(limits: Limits, graders: int) -> Iterator[str]:
    """A line for each reason why this process cannot grade: a limit that is too low, no disk space.

    Args:
        limits: the course's limits of a worker.
        graders: the number of graders at once.
    """
    yield from limit_problems(limits, graders)
    if problem := temporary_problem():
        yield problem


def limit_problems(
    limits: Limits,
    graders: int,
    limit: Limit = resource.getrlimit,
) -> Iterator[str]:
    """A line for each limit of this process that is too low: its name, and what to do.

    Args:
        limits: the course's limits of a worker.
        graders: the number of graders at once.
        limit: reads a limit of this process.
    """
    needed = (
        (
            "ulimit -n",
            resource.RLIMIT_NOFILE,
            _DESCRIPTORS + _DESCRIPTORS_EACH * graders,
            1,
            "open files",
        ),
        (
            "ulimit -v",
            resource.RLIMIT_AS,
            (limits.memory_mb << 20) + _LIBRARIES,
            1 << 10,
            "kB of addresses",
        ),
        (
            "ulimit -t",
            resource.RLIMIT_CPU,
            limits.cpu_seconds + _CPU_SECONDS,
            1,
            "seconds of CPU time",
        ),
        (
            "ulimit -f",
            resource.RLIMIT_FSIZE,
            limits.file_mb << 20,
            1 << 10,
            "kB in a file",
        ),
    )
    for name, kind, least, unit, noun in needed:
        allowed = limit(kind)[0]
        if allowed != resource.RLIM_INFINITY and allowed < least:
            yield (
                f"`{name}` allows {allowed // unit} {noun} here, and grading needs "
                f"{-(-least // unit)}: raise it"
            )
    if os.geteuid() != 0:  # root is not counted
        yield from _too_few_processes(graders, limit(resource.RLIMIT_NPROC)[0])


def _too_few_processes(graders: int, allowed: int) -> Iterator[str]:
    if allowed == resource.RLIM_INFINITY:
        return
    running = _own_tasks()
    if allowed < running + _PROCESSES_EACH * graders:
        yield (
            f"`ulimit -u` allows {allowed} processes and threads here, of which {running} "
            "run: raise it, end others, or use fewer --workers"
        )


def _own_tasks() -> int:
    """The number of this user's processes and threads in /proc."""
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.stat().st_uid == os.geteuid():
                count += len(list((process / "task").iterdir()))
        except OSError:
            continue  # the process has ended
    return count


def temporary_problem() -> str:
    """Why the temporary folder cannot be written to; "" where it can."""
    try:
        folder = tempfile.gettempdir()
    except FileNotFoundError:
        return (
            "no temporary folder can be written to: free some space in /tmp, or set TMPDIR to a "
            "folder elsewhere"
        )
    disk = os.statvfs(folder)
    free = disk.f_frsize * (disk.f_bfree if os.geteuid() == 0 else disk.f_bavail)
    if free < _SMALLEST_DISK or (disk.f_files and not disk.f_favail):
        return f"{folder} has no space left: free some there, or set TMPDIR to a folder elsewhere"
    return ""


def raise_open_files() -> None:
    """Raise the limit on open files as far as allowed: many systems begin with a low one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 4096 if hard == resource.RLIM_INFINITY else min(hard, 4096)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))

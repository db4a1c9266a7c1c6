"""Limits that whoever started the command lives under, and a full temporary folder: each called by
its name.

A shell's `ulimit`, a batch system or a container sets them. Below what grading needs, walls fail to
stand one after the other, with reasons that nobody would look for there; so they are looked at
first.
"""

from __future__ import annotations

import os
import resource
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from autograder.course import Limits

_LIBRARIES = 1 << 30
"""Bytes of addresses that Python and torch take before anything is graded."""
_DESCRIPTORS, _DESCRIPTORS_EACH = 256, 8
"""Open files of a host, which keeps its own above number 200, and of one grader and its worker."""
_PROCESSES_EACH = 8
_CPU_SECONDS = 60
"""CPU time of a process besides what one worker may use."""
_SMALLEST_DISK = 1 << 20

Limit = Callable[[int], tuple[int, int]]
"""What `resource.getrlimit` says: the limit that holds, and how far it can be raised."""


def limit_problems(
    limits: Limits,
    graders: int,
    limit: Limit = resource.getrlimit,
) -> Iterator[str]:
    """A line for each limit of this process under which nothing can be graded: its name, and what
    to do.

    Args:
        limits: the course's own, for a worker.
        graders: how many will work at once.
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
        ("ulimit -f", resource.RLIMIT_FSIZE, limits.file_mb << 20, 1 << 10, "kB in a file"),
    )
    for name, what, least, unit, noun in needed:
        allowed = limit(what)[0]
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
            "run: raise it, "
            "end others, or use fewer --workers"
        )


def _own_tasks() -> int:
    """Processes and threads of this user, by what /proc shows."""
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.stat().st_uid == os.geteuid():
                count += len(list((process / "task").iterdir()))
        except OSError:
            continue  # it has ended
    return count


def temporary_problem() -> str:
    """Why nothing can be put into the temporary folder; "" where something can."""
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
    """Open files up to what this process may allow itself: many systems begin with far fewer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 4096 if hard == resource.RLIM_INFINITY else min(hard, 4096)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))

"""A process and those below it: which live, the CPU time that they used, the most memory that they
held at once.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import psutil


def family(root: int) -> dict[int, int]:
    """The process and every descendant by number, each with its parent's number; 0 for the process
    itself.
    """
    parents = {root: 0}
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in psutil.Process(root).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                parents[child.pid] = child.ppid()
    return parents


def alive(pids: Iterable[int]) -> list[int]:
    """The processes that still run; one that has ended and waits for its parent to look does
    not.
    """
    living = []
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() not in (
                psutil.STATUS_ZOMBIE,
                psutil.STATUS_DEAD,
            ):
                living.append(pid)
    return living


def cpu_of(root: int = 0) -> float:
    """Seconds of CPU time that a process (0: this one) and those below it used; ended ones count
    once they are waited for.
    """
    seconds = 0.0
    for pid in family(root or os.getpid()):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = psutil.Process(pid).cpu_times()
            seconds += (
                times.user + times.system + times.children_user + times.children_system
            )
    return seconds


@dataclass(slots=True)
class Peak:
    """The most memory that the processes held at once."""

    mb: float = 0.0


@contextlib.contextmanager
def watching_memory(every: float = 0.5) -> Iterator[Peak]:
    """Inside, the memory of this process and those below it is read every so many seconds; shared
    pages count once.
    """
    peak, done = Peak(), threading.Event()

    def watch() -> None:
        while not done.wait(every):
            total = 0
            for pid in family(os.getpid()):
                with contextlib.suppress(psutil.Error):
                    total += psutil.Process(pid).memory_full_info().pss
            peak.mb = max(peak.mb, total / (1 << 20))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()

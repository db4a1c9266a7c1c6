"""Measures a worker's time so that a crowded, paused or suspended machine does not change it.

Wall time would punish a student for the machine's other work. So a limit of N seconds means N
seconds of processor time, as the kernel counts them for the worker's process. A worker that
computes nothing (it sleeps, waits for a lock, does not read its messages) has a limit on sleep too:
time in which its grader waited for the worker, while the worker neither had a processor nor stood
in line for one. The grader waits in short ticks. A tick that took much longer than planned was a
pause of the grader itself, and does not count.

All clocks are read on the trusted side. A worker can neither stop nor restart one.
"""

from __future__ import annotations

import contextlib
import functools
import os
import select
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

TICK_SECONDS = 0.1
"""The longest wait of one look for an answer."""
PAUSE_SECONDS = 1.0
"""A tick that ends so much too late was a pause: the grader was stopped, or had no processor."""
SHORT_SECONDS = 0.005
"""For shorter waits the kernel is not asked how long the worker stood in line."""
ASLEEP_TIMES = 2
"""A worker may sleep so many times its limit of processor time."""
IN_ALL_TIMES, IN_ALL_MORE = 6, 60.0
"""The longest wait in all: so many times the limit of processor time, and so many seconds. After a
longer wait, the machine has no processor for the worker.
"""
STOPPED_SECONDS = 5.0
"""How long a worker may be stopped (SIGSTOP) before it is given up. A worker cannot stop itself."""

Clock = Literal["", "processor", "asleep", "in all"]


@dataclass(slots=True)
class WorkerTime:
    """An amount of a worker's time. Immutable by convention; a frozen class would be slower to
    make, and each request makes several.

    Attributes:
        processor: seconds of processor time of all threads.
        asleep: seconds of waiting in which the worker had no processor and did not stand in line
            for one.
        in_all: seconds in which the grader waited for the worker.
    """

    processor: float = 0.0
    asleep: float = 0.0
    in_all: float = 0.0

    def __add__(self, other: WorkerTime) -> WorkerTime:
        return WorkerTime(
            self.processor + other.processor,
            self.asleep + other.asleep,
            self.in_all + other.in_all,
        )

    def __sub__(self, other: WorkerTime) -> WorkerTime:
        return WorkerTime(
            self.processor - other.processor,
            self.asleep - other.asleep,
            self.in_all - other.in_all,
        )

    def exceeds(self, limit: WorkerTime, *, judge_sleep: bool = True) -> Clock:
        """The clock that shows more than in `limit`; "" where none does.

        Args:
            judge_sleep: whether too much sleep counts before the wait in all is too long.
        """
        if self.processor > limit.processor:
            return "processor"
        is_late = self.in_all > limit.in_all
        if self.asleep > limit.asleep and (judge_sleep or is_late):
            return "asleep"
        return "in all" if is_late else ""


@functools.lru_cache(maxsize=64)
def limit_for(seconds: float) -> WorkerTime:
    """The limit of each clock that goes with a limit on processor time."""
    return WorkerTime(
        seconds, ASLEEP_TIMES * seconds, IN_ALL_TIMES * seconds + IN_ALL_MORE
    )


class Account:
    """The time that all workers of one submission may take together.

    Args:
        limit: the limit of each clock.
        purpose: the purpose of the time, in words for a student.

    Attributes:
        spent: the time that was charged so far.
    """

    def __init__(self, limit: WorkerTime, purpose: str) -> None:
        self._limit, self._purpose = limit, purpose
        self.spent = WorkerTime()

    def exceeded(self, *, judge_sleep: bool = True) -> Clock:
        """The clock that has passed its limit; see `WorkerTime.exceeds`."""
        return self.spent.exceeds(self._limit, judge_sleep=judge_sleep)

    @property
    def remaining(self) -> float:
        """Seconds of processor time that can still be spent."""
        return max(0.0, self._limit.processor - self.spent.processor)

    def describe(self, clock: Clock) -> str:
        """The message for a student whose time is used up."""
        if clock == "asleep":
            most = f"{self._limit.asleep:g} s"
            return f"{self._purpose} slept or waited for {most}, the most that it may."
        most = f"{self._limit.processor:g} s of processor time"
        return f"the time for {self._purpose} ({most}) is used up."

    def charge(self, spent: WorkerTime) -> None:
        """Take time from the account."""
        self.spent = self.spent + spent


def pid_here(pidfd: int) -> int:
    """The process number of a pidfd, as seen here; -1 where the kernel does not tell."""
    with contextlib.suppress(OSError):
        for line in (
            Path(f"/proc/self/fdinfo/{pidfd}").read_text(encoding="ascii").splitlines()
        ):
            if line.startswith("Pid:"):
                return int(line.split()[1])
    return -1


class WorkerClocks:
    """The clocks of one worker's process, since the start of the process.

    Attributes:
        time: the worker's time so far.
        stopped: seconds for which the worker has been stopped (SIGSTOP) without a break.
        in_line: whether the worker was ready to run after the last tick without an answer.
        process_seconds: seconds of processor time of the process since the fork; -1 where the
            kernel does not tell.
    """

    def __init__(self, pidfd: int) -> None:
        pid = pid_here(pidfd)
        # the clock of a process with all its threads, as clock_getcpuclockid(3) computes it
        self._clock = (~pid << 3) | 2 if pid > 0 else 0
        self._schedule = _open_proc_file(pid, "schedstat")
        self._stat = _open_proc_file(pid, "stat")
        self.time = WorkerTime()
        self.stopped = 0.0
        self.in_line = False
        self.process_seconds = self._processor_time()
        self._queued = self._queue_time()
        self._waited = 0.0

    def wait(self, answers: select.poll) -> bool:
        """Wait for one tick at most; whether an answer is there. `count` counts the time."""
        began = time.monotonic()
        ready = bool(answers.poll(TICK_SECONDS * 1000))
        elapsed = time.monotonic() - began
        # this process was stopped, or had no processor itself
        if elapsed > TICK_SECONDS + PAUSE_SECONDS:
            elapsed = 0.0
        self._waited += elapsed
        return ready

    def count(self, *, ready: bool = True) -> WorkerTime:
        """Add the worker's time since the last count to `time`, and return it.

        Args:
            ready: whether an answer was there; if not, the kernel is asked whether the worker is
                stopped or in line.
        """
        elapsed, self._waited = self._waited, 0.0
        earlier, self.process_seconds = self.process_seconds, self._processor_time()
        processor = self.process_seconds - earlier
        state = "" if ready else self._state()
        self.stopped = self.stopped + elapsed if state in ("T", "t") else 0.0
        self.in_line = state == "R"
        if (
            earlier < 0 or self.process_seconds < 0
        ):  # unknown: waiting counts as computing
            spent = WorkerTime(elapsed, 0.0, elapsed)
        elif self.stopped:
            spent = WorkerTime(processor)
        else:
            asleep = elapsed - processor
            if elapsed > SHORT_SECONDS:
                asleep -= self._newly_queued(asleep)
            # below 0 where an earlier count took a wait in line, which is now over, for sleep
            spent = WorkerTime(processor, max(asleep, -self.time.asleep), elapsed)
        self.time = self.time + spent
        return spent

    def _newly_queued(self, unaccounted: float) -> float:
        """Seconds in line for a processor since the last call.

        Where the kernel does not tell, a worker that is in line now was there all the time that is
        `unaccounted` for.
        """
        earlier, self._queued = self._queued, self._queue_time()
        if earlier < 0 or self._queued < 0:
            return unaccounted if self.in_line else 0.0
        return self._queued - earlier

    def _processor_time(self) -> float:
        """Seconds of processor time of the process; -1 where the process is gone, or the kernel has
        no such clock.
        """
        if self._clock:
            with contextlib.suppress(OSError):
                return time.clock_gettime(self._clock)
        return -1.0

    def _queue_time(self) -> float:
        """Seconds that the main thread was ready to run and had no processor; -1 where the kernel
        does not tell.
        """
        try:
            return int(os.pread(self._schedule, 100, 0).split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            return -1.0

    def _state(self) -> str:
        """The main thread's state as in proc(5); "" where the kernel does not tell."""
        try:
            line = os.pread(self._stat, 1000, 0)
            after_name = line.rpartition(b")")[2]
            return after_name.split()[0].decode()
        except (OSError, IndexError):
            return ""

    def ends_within(self, seconds: float, pidfd: int) -> bool:
        """Whether the process ends before it has been asleep for `seconds`."""
        poller = select.poll()
        poller.register(pidfd, select.POLLIN)
        asleep = 0.0
        for _ in range(round(IN_ALL_MORE / TICK_SECONDS)):
            if poller.poll(TICK_SECONDS * 1000):
                return True
            asleep += 0.0 if self._state() in ("R", "T") else TICK_SECONDS
            if asleep >= seconds:
                break
        return False

    def close(self) -> None:
        """Close the kernel's files."""
        for descriptor in (self._schedule, self._stat):
            if descriptor >= 0:
                os.close(descriptor)
        self._schedule = self._stat = -1


def _open_proc_file(pid: int, name: str) -> int:
    """The descriptor of a file of /proc about a process; -1 where there is none."""
    try:
        return os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1

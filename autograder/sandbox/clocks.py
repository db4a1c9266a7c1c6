"""What a worker takes of time, in amounts that a crowded, paused or suspended machine does not
change.

Wall time would punish a student for what else the machine does. So a limit of N seconds means N
seconds of processor time, as the kernel counts them for the worker's process. A worker that
computes nothing (it sleeps, waits for a lock, does not read what it is sent) has a limit on that
too: time in which its grader waited for it, and in which it neither had a processor nor stood in
line for one. The grader's waiting is made of short ticks; a tick that took much longer than it was
to take was a pause of the grader itself, and does not count.

All clocks are read on the trusted side. A worker can neither stop nor restart one.
"""

from __future__ import annotations

import functools
import os
import select
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

TICK_SECONDS = 0.1
"""How long one look for an answer waits."""
PAUSE_SECONDS = 1.0
"""A tick that ends so much too late was a pause: the grader was stopped, or had no processor."""
SHORT_SECONDS = 0.005
"""How long a wait is of which it is not asked how much the worker stood in line."""
ASLEEP_TIMES = 2
"""How many times a limit of processor time a worker may be asleep beside it."""
IN_ALL_TIMES, IN_ALL_MORE = 6, 60.0
"""How long is waited in all for a limit of processor time, so many times it and so many seconds:
past it, the machine has no processor for the worker.
"""
STOPPED_SECONDS = 5.0
"""How long a worker may be stopped (SIGSTOP) until it is given up. It cannot stop itself."""

Clock = Literal["", "processor", "asleep", "in all"]


@dataclass(slots=True)
class WorkerTime:
    """An amount of a worker's time. Nobody changes one: it is not frozen because each request makes
    several.

    Attributes:
        processor: seconds of processor time, of all its threads.
        asleep: seconds in which it was waited for, without a processor and without standing in line
            for one.
        in_all: seconds in which it was waited for.
    """

    processor: float = 0.0
    asleep: float = 0.0
    in_all: float = 0.0

    def __add__(self, other: WorkerTime) -> WorkerTime:
        return WorkerTime(
            self.processor + other.processor, self.asleep + other.asleep, self.in_all + other.in_all
        )

    def __sub__(self, other: WorkerTime) -> WorkerTime:
        return WorkerTime(
            self.processor - other.processor, self.asleep - other.asleep, self.in_all - other.in_all
        )

    def past(self, most: WorkerTime, *, asleep_too: bool = True) -> Clock:
        """Which of the three is more than in `most`; "" where none is.

        Args:
            asleep_too: whether it is looked at who is asleep for too long, as long as that is all.
        """
        if self.processor > most.processor:
            return "processor"
        late = self.in_all > most.in_all
        if self.asleep > most.asleep and (asleep_too or late):
            return "asleep"
        return "in all" if late else ""


@functools.lru_cache(maxsize=64)
def most_for(seconds: float) -> WorkerTime:
    """What a limit of so many seconds of processor time allows of each clock."""
    return WorkerTime(seconds, ASLEEP_TIMES * seconds, IN_ALL_TIMES * seconds + IN_ALL_MORE)


class Account:
    """A sum of time that workers of one submission may take, however many of them there are.

    Args:
        most: the limits of it.
        purpose: what the time is for, in words for a student.

    Attributes:
        spent: what was taken of it.
    """

    def __init__(self, most: WorkerTime, purpose: str) -> None:
        self._most, self._purpose = most, purpose
        self.spent = WorkerTime()

    def past(self, *, asleep_too: bool = True) -> Clock:
        """Which clock has passed its limit, as `WorkerTime.past` says it."""
        return self.spent.past(self._most, asleep_too=asleep_too)

    @property
    def left(self) -> float:
        """Seconds of processor time that are left."""
        return max(0.0, self._most.processor - self.spent.processor)

    def describe(self, clock: Clock) -> str:
        """What is used up, in words for a student."""
        if clock == "asleep":
            return (
                f"{self._purpose} slept or waited for {self._most.asleep:g} s, the most "
                "that it may."
            )
        return (
            f"the time for {self._purpose} ({self._most.processor:g} s of processor "
            "time) is used up."
        )

    def charge(self, spent: WorkerTime) -> None:
        """Take time from the account."""
        self.spent = self.spent + spent


def pid_here(pidfd: int) -> int:
    """The number, in this process's namespace, of the process that a pidfd names; -1 where the
    kernel does not say.
    """
    try:
        for line in Path(f"/proc/self/fdinfo/{pidfd}").read_text(encoding="ascii").splitlines():
            if line.startswith("Pid:"):
                return int(line.split()[1])
    except OSError:
        pass
    return -1


class WorkerClocks:
    """The clocks of one worker's process, from its start on.

    Attributes:
        time: what it has taken so far.
        stopped: seconds for which it has been stopped (SIGSTOP) without a break.
        in_line: whether it was ready to run when it was last looked at after a tick without an
            answer.
        of_process: seconds of processor time of the process since it was forked; -1 where the
            kernel does not say.
    """

    def __init__(self, pidfd: int) -> None:
        pid = pid_here(pidfd)
        # as clock_getcpuclockid(3) makes it, for all threads together
        self._clock = (~pid << 3) | 2 if pid > 0 else 0
        self._schedule, self._stat = _opened(pid, "schedstat"), _opened(pid, "stat")
        self.time = WorkerTime()
        self.stopped, self.in_line = 0.0, False
        self.of_process, self._queued = self._processor_time(), self._queue_time()
        self._waited = 0.0

    def wait(self, answers: select.poll) -> bool:
        """Wait for one tick at most, for `count` to count: whether there is something."""
        began = time.monotonic()
        ready = bool(answers.poll(TICK_SECONDS * 1000))
        elapsed = time.monotonic() - began
        # this process was stopped, or had no processor itself
        if elapsed > TICK_SECONDS + PAUSE_SECONDS:
            elapsed = 0.0
        self._waited += elapsed
        return ready

    def count(self, *, ready: bool = True) -> WorkerTime:
        """Add to `time` what the worker has taken since it was last counted, and give that.

        Args:
            ready: whether there was something; where there was not, it is seen whether it is
                stopped or in line.
        """
        elapsed, self._waited = self._waited, 0.0
        before, self.of_process = self.of_process, self._processor_time()
        state = "" if ready else self._state()
        self.stopped = self.stopped + elapsed if state in ("T", "t") else 0.0
        self.in_line = state == "R"
        if before < 0 or self.of_process < 0:
            spent = WorkerTime(elapsed, 0.0, elapsed)  # nothing is known but that it was waited for
        elif self.stopped:
            spent = WorkerTime(self.of_process - before)
        else:
            processor = self.of_process - before
            asleep = elapsed - processor
            if elapsed > SHORT_SECONDS:
                asleep -= self._newly_queued(asleep)
            # below 0 where a wait in line that is now over was counted as sleep
            spent = WorkerTime(processor, max(asleep, -self.time.asleep), elapsed)
        self.time = self.time + spent
        return spent

    def _newly_queued(self, otherwise: float) -> float:
        """Seconds in line for a processor since this was last asked; `otherwise` where the kernel
        does not say, and the worker is in line now.
        """
        before, self._queued = self._queued, self._queue_time()
        if before < 0 or self._queued < 0:
            return otherwise if self.in_line else 0.0
        return self._queued - before

    def _processor_time(self) -> float:
        if self._clock:
            try:
                return time.clock_gettime(self._clock)
            except OSError:  # the process is gone, or the kernel has no such clock
                pass
        return -1.0

    def _queue_time(self) -> float:
        """Seconds that the main thread was ready to run and had no processor; -1 where the kernel
        does not say.
        """
        try:
            return int(os.pread(self._schedule, 100, 0).split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            return -1.0

    def _state(self) -> str:
        """The main thread's state, as proc(5) has it; "" where the kernel does not say."""
        try:
            return os.pread(self._stat, 1000, 0).rpartition(b")")[2].split()[0].decode()
        except (OSError, IndexError):
            return ""

    def ends_within(self, seconds: float, pidfd: int) -> bool:
        """Whether the process ends, without being asleep for longer than `seconds` before it
        does.
        """
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
        """Let go of the kernel's files."""
        for descriptor in (self._schedule, self._stat):
            if descriptor >= 0:
                os.close(descriptor)
        self._schedule = self._stat = -1


def _opened(pid: int, name: str) -> int:
    """A file in which the kernel tells of a process; -1 where there is none."""
    try:
        return os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1

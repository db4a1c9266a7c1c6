"""Grades on every core: processes that are forked from the driver after suite and answer key are
loaded, each with a client of a host.

A process that dies loses one job; a host that dies, one job of each process. A new process or host
is started, and the job is done once more from its start. A job that fails again is reported. Past a
deadline no job begins, and processes that are still at work are ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import multiprocessing
import os
import signal
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Any, Generic, Protocol, TypeVar

from autograder.basics.errors import HostFailed, KitError, WorkerKilled
from autograder.grading.bench import Bench, delay_interrupts
from autograder.sandbox.host_process import HostClient

Job = TypeVar("Job")
ArrivingJob = TypeVar("ArrivingJob", covariant=True)

MOST_TRIES = 2
LONGEST_WAIT = 3600.0
"""Seconds; the kernel takes no timeout of months."""
_DONE = b"+"
_FAILED = b"-"
_HOST_FAILED = b"h"
"""The first byte of a process's message; then the job's answer, or why there is none."""
_END_WITH_PARENT = 1  # PR_SET_PDEATHSIG


@dataclass(frozen=True, slots=True)
class FinishedJob(Generic[Job]):
    """A job with its answer; or with a `fault` that is not the job's; or with neither, where the
    time was up.
    """

    job: Job
    answer: bytes | None = None
    fault: str = ""


class Arrivals(Protocol[ArrivingJob]):
    """Jobs that come from elsewhere while others are done."""

    def fileno(self) -> int:
        """A descriptor that becomes readable when a job has come."""

    def receive(self) -> ArrivingJob:
        """The job that has come. An exception from here ends the pool."""


@dataclass(frozen=True, slots=True, eq=False)
class _Grader:
    """A forked process that does jobs.

    Attributes:
        slot: the number of the process and of its client.
        renewals: how often the bench's hosts had been renewed when the process began.
    """

    slot: int
    pipe: Connection
    process: ForkProcess
    renewals: int

    def end(self) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.join()


class Pool(Generic[Job]):
    """Processes, each of which does `work(client, job)` for job after job.

    Args:
        bench: has a client for each process, and renews its hosts where one has failed.
        jobs: processes know these from the fork, so only their numbers are sent.
        work: does one job in a process and returns bytes. Raises HostFailed where the machine is at
            fault.
        until: when all must be over (`time.monotonic()`).
        arrivals: a source of more jobs, which are pickled: the pool then goes on until it is
            closed, or no host can be had.
    """

    def __init__(
        self,
        bench: Bench,
        jobs: Sequence[Job],
        work: Callable[[HostClient, Job], bytes],
        until: float = math.inf,
        arrivals: Arrivals[Job] | None = None,
    ) -> None:
        self._bench = bench
        self._jobs = list(jobs)
        self._work = work
        self._until = until
        self._arrivals = arrivals
        self._forked_jobs = len(jobs)
        self._context = multiprocessing.get_context("fork")
        self._free_slots = list(range(len(bench.clients)))
        self._waiting = deque(range(len(jobs)))
        self._graders: dict[int, _Grader] = {}
        self._at_work: dict[Connection, tuple[_Grader, int]] = {}
        self._failures: Counter[int] = Counter()
        self._renewals = 0
        self._no_host = ""

    def run(self) -> Generator[FinishedJob[Job], None, None]:
        """Each job as soon as it is done. Closing the generator ends every process."""
        try:
            while self._waiting or self._at_work or self._arrivals:
                while self._waiting and self._free_slots and not self._is_over():
                    self._hand_out(self._free_slots.pop(), self._waiting.popleft())
                yield from self._receive()
                if self._is_over():
                    yield from self._give_up()
        finally:
            self._kill_all()
            for grader in self._graders.values():
                grader.pipe.close()

    def _receive(self) -> Iterator[FinishedJob[Job]]:
        """Wait for answers and arriving jobs, and yield the jobs that are finished."""
        sources: list[Any] = [*self._at_work]
        if self._arrivals:
            sources.append(self._arrivals)
        timeout = None
        if not math.isinf(self._until):
            timeout = min(LONGEST_WAIT, max(0.0, self._until - time.monotonic()))
        for source in wait(sources, timeout):
            if isinstance(source, Connection):
                yield from self._read_answer(source)
            else:
                assert self._arrivals is not None  # it is the only other source
                self._waiting.append(len(self._jobs))
                self._jobs.append(self._arrivals.receive())

    def _is_over(self) -> bool:
        return time.monotonic() >= self._until or bool(self._no_host)

    def _give_up(self) -> Iterator[FinishedJob[Job]]:
        """End every process, and yield all jobs that are not done."""
        self._kill_all()
        for pipe in list(self._at_work):
            yield from self._read_answer(pipe)
        for number in self._waiting:
            yield FinishedJob(self._jobs[number], fault=self._no_host)
        self._waiting.clear()
        self._arrivals = None

    def _kill_all(self) -> None:
        for grader in self._graders.values():
            grader.process.kill()
        for grader in self._graders.values():
            grader.process.join()

    def _hand_out(
        self,
        slot: int,
        number: int,
    ) -> None:
        """Give a job to the process of a slot, a new one where it has none with a living host."""
        grader = self._graders.get(slot)
        if grader is not None and grader.renewals != self._renewals:
            self._graders.pop(slot).end()
            grader = None
        if grader is None:
            grader = self._graders[slot] = self._start(slot)
        self._at_work[grader.pipe] = grader, number
        # the process may have died while it was idle; `_read_answer` sees that
        with contextlib.suppress(BrokenPipeError):
            grader.pipe.send(
                number if number < self._forked_jobs else self._jobs[number]
            )

    def _read_answer(self, pipe: Connection) -> Iterator[FinishedJob[Job]]:
        """Yield the job that a process has done; nothing where the job will be done once more."""
        grader, number = self._at_work.pop(pipe)
        self._free_slots.append(grader.slot)
        job = self._jobs[number]
        try:
            message = pipe.recv_bytes()
        except (EOFError, OSError):
            message = (
                _FAILED + b"the grader process ended while it graded this submission"
            )
        kind = message[:1]
        text = message[1:]
        if kind == _DONE:
            yield FinishedJob(job, text)
            return
        self._graders.pop(grader.slot).end()
        if self._is_over():
            yield FinishedJob(job, fault=self._no_host)
            return
        is_first_to_see = grader.renewals == self._renewals
        # where another process has met the same death of the host before, this is not the job's
        # second failure
        if kind != _HOST_FAILED or is_first_to_see:
            self._failures[number] += 1
        if is_first_to_see:
            self._restore_host(grader.slot, host_failed=kind == _HOST_FAILED)
        if self._no_host:
            yield FinishedJob(job, fault=self._no_host)
        elif self._failures[number] >= MOST_TRIES:
            reason = f"{text.decode()}, and so it was when it was tried once more"
            yield FinishedJob(job, fault=reason)
        else:
            self._waiting.append(number)

    def _restore_host(
        self,
        slot: int,
        *,
        host_failed: bool,
    ) -> None:
        """End the workers of a process that is gone, or renew the hosts where its host failed."""
        if not host_failed:
            try:
                self._bench.clients[slot].end_workers()
                return
            except HostFailed:
                pass  # the host died too
        self._renewals += 1
        try:
            self._bench.renew_hosts()
        except KitError as error:
            self._no_host = f"the sandbox host failed, and no other can be had: {error}"

    def _start(self, slot: int) -> _Grader:
        pipe, child_pipe = self._context.Pipe()
        inherited = [pipe, *[grader.pipe for grader in self._graders.values()]]
        arguments = (self._bench.clients[slot], child_pipe, inherited, os.getpid())
        process = self._context.Process(target=self._serve, args=arguments, daemon=True)
        # Ctrl-C is for the process that the person sees; from the first moment on, so that no other
        # shows a traceback
        with delay_interrupts():
            process.start()
        child_pipe.close()
        return _Grader(slot, pipe, process, self._renewals)

    def _serve(
        self,
        client: HostClient,
        pipe: Connection,
        inherited: list[Connection],
        parent: int,
    ) -> None:
        """Do jobs in a forked process until the pipe is closed."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _end_with(parent)
        for parent_pipe in inherited:
            parent_pipe.close()
        # what a suite prints is for nobody: standard output may be carrying results
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        while True:
            try:
                job = pipe.recv()
            except EOFError:
                return
            pipe.send_bytes(
                self._do(client, self._jobs[job] if isinstance(job, int) else job)
            )

    def _do(
        self,
        client: HostClient,
        job: Job,
    ) -> bytes:
        try:
            return _DONE + self._work(client, job)
        except WorkerKilled as error:
            return _FAILED + str(error).encode()
        except HostFailed as error:
            return _HOST_FAILED + str(error).encode()
        except Exception as error:
            if os.environ.get("AUTOGRADER_DEBUG") is not None:
                traceback.print_exc()
            message = f"the grader failed with {type(error).__name__}: {error}"
            return _FAILED + message.encode(errors="replace")


def _end_with(parent: int) -> None:
    """Make this process end when its parent does, however the parent ends."""
    ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)

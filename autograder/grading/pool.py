"""Jobs on every core: forked processes that share what was loaded before, each with its own line to
a host.

What goes over a line is between the work and the host. A process that dies takes one job with it;
so does a host, a job for each process. Another takes its place, and the job is done once more from
its start. What fails again is named. Past a deadline nothing more is begun, and what is still at
work is ended.
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

Job = TypeVar("Job")
Arriving = TypeVar("Arriving", covariant=True)

MOST_TRIES = 2
_DONE, _FAILED, _HOST_FAILED = b"+", b"-", b"h"
"""How a process's answer begins: with what the job came to, or why there is nothing."""
_END_WITH_PARENT = 1  # PR_SET_PDEATHSIG


class Client(Protocol):
    """A process's line to a host: its work knows what else can be asked of it."""

    def end_workers(self) -> None:
        """End what a process that is gone has left at work.

        Raises:
            HostFailed: nobody answers.
        """


ClientT = TypeVar("ClientT", bound=Client)
ClientT_co = TypeVar("ClientT_co", bound=Client, covariant=True)


class Hosts(Protocol[ClientT_co]):
    """Where the lines to a host come from, and a fresh host where one has failed."""

    @property
    def clients(self) -> Sequence[ClientT_co]:
        """One for each process."""

    def renew(self) -> None:
        """Exchange the host for a fresh one.

        Raises:
            KitError: none can be had.
        """


@dataclass(frozen=True, slots=True)
class Ended(Generic[Job]):
    """What came of a job: an answer; or none and a `fault` that is not the job's; or neither, where
    the time was up.
    """

    job: Job
    answer: bytes | None = None
    fault: str = ""


class Arrivals(Protocol[Arriving]):
    """Jobs that come from elsewhere while others are done."""

    def fileno(self) -> int:
        """What becomes readable when one has come."""

    def take(self) -> Arriving:
        """The one that has come. What it raises ends the pool."""


class Pool(Generic[ClientT, Job]):
    """Processes that do `work(client, job)` for one job after the other.

    Args:
        hosts: says how many processes, and gives each its client.
        jobs: those that are known; processes know them from the fork, so only numbers are sent.
        work: does one job in a process and returns bytes. HostFailed is what it raises where the
            machine is at fault.
        until: when it must all be over (`time.monotonic()`).
        arrivals: where more jobs come from, which are pickled: the pool then goes on until it is
            closed, or hopeless.
    """

    def __init__(
        self,
        hosts: Hosts[ClientT],
        jobs: Sequence[Job],
        work: Callable[[ClientT, Job], bytes],
        until: float = math.inf,
        arrivals: Arrivals[Job] | None = None,
    ) -> None:
        self._hosts, self._jobs, self._work, self._until = hosts, list(jobs), work, until
        self._arrivals, self._known = arrivals, len(jobs)
        self._context = multiprocessing.get_context("fork")
        self._free = list(range(len(hosts.clients)))
        self._waiting = deque(range(len(jobs)))
        self._at_work: dict[Connection, tuple[int, int]] = {}
        self._pipes: dict[int, Connection] = {}
        self._processes: dict[int, ForkProcess] = {}
        self._faults: Counter[int] = Counter()
        self._renewed = 0
        self._host_of: dict[int, int] = {}
        self._hopeless = ""

    def run(self) -> Generator[Ended[Job], None, None]:
        """Each job with what came of it, as soon as it is done. Closing it ends every process."""
        try:
            while self._waiting or self._at_work or self._arrivals:
                while self._waiting and self._free and not self._is_over():
                    self._give(self._free.pop(), self._waiting.popleft())
                awaited: list[Any] = [*self._at_work, *([self._arrivals] if self._arrivals else [])]
                for ready in wait(awaited, self._left()):
                    if isinstance(ready, Connection):
                        yield from self._take(ready)
                    elif self._arrivals:
                        self._waiting.append(len(self._jobs))
                        self._jobs.append(self._arrivals.take())
                if self._is_over():
                    self._end_all()
                    for pipe in list(self._at_work):
                        yield from self._take(pipe)
                    yield from (
                        Ended(self._jobs[number], fault=self._hopeless) for number in self._waiting
                    )
                    self._waiting.clear()
                    self._arrivals = None
        finally:
            self._end_all()
            for pipe in self._pipes.values():
                pipe.close()

    def _is_over(self) -> bool:
        return time.monotonic() >= self._until or bool(self._hopeless)

    def _left(self) -> float | None:
        """Seconds to wait for; at most an hour, since the kernel takes no timeout of months."""
        return (
            None
            if math.isinf(self._until)
            else min(3600.0, max(0.0, self._until - time.monotonic()))
        )

    def _end_all(self) -> None:
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.join()

    # what processes answer

    def _give(self, slot: int, number: int) -> None:
        if slot in self._pipes and self._host_of[slot] != self._renewed:
            self._end(slot)
        if slot not in self._pipes:
            self._pipes[slot] = self._start(slot)
        pipe = self._pipes[slot]
        self._at_work[pipe] = (slot, number)
        # it has died while it waited, which `_take` will see
        with contextlib.suppress(BrokenPipeError):
            pipe.send(number if number < self._known else self._jobs[number])

    def _take(self, pipe: Connection) -> Iterator[Ended[Job]]:
        """What a process has to say; nothing where its job will be done once more."""
        slot, number = self._at_work.pop(pipe)
        self._free.append(slot)
        job = self._jobs[number]
        try:
            said = pipe.recv_bytes()
        except (EOFError, OSError):
            said = _FAILED + b"the grader process ended while it graded this submission"
        kind, text = said[:1], said[1:]
        if kind == _DONE:
            yield Ended(job, text)
            return
        self._end(slot)
        if self._is_over():
            yield Ended(job, fault=self._hopeless)
            return
        # where another process has met the same death of the host before, it is not this job's
        # second time
        if kind != _HOST_FAILED or self._host_of[slot] == self._renewed:
            self._faults[number] += 1
        self._mend(slot, host_failed=kind == _HOST_FAILED)
        if self._hopeless or self._faults[number] >= MOST_TRIES:
            yield Ended(
                job,
                fault=self._hopeless
                or f"{text.decode()}, and so it was when it was tried once more",
            )
        else:
            self._waiting.append(number)

    def _mend(self, slot: int, *, host_failed: bool) -> None:
        """See to it that the next job finds a host, and no worker of a process that is gone."""
        if self._host_of[slot] != self._renewed:
            return
        if not host_failed:
            try:
                self._hosts.clients[slot].end_workers()
                return
            except HostFailed:
                pass  # it died too
        self._renewed += 1
        try:
            self._hosts.renew()
        except KitError as error:
            self._hopeless = f"the sandbox host failed, and no other can be had: {error}"

    # processes

    def _end(self, slot: int) -> None:
        self._pipes.pop(slot).close()
        self._processes[slot].kill()
        self._processes[slot].join()

    def _start(self, slot: int) -> Connection:
        ours, theirs = self._context.Pipe()
        arguments = (self._hosts.clients[slot], theirs, [*self._pipes.values(), ours], os.getpid())
        process = self._context.Process(target=self._serve, args=arguments, daemon=True)
        # Ctrl-C is for the process that the person sees; from the first moment on, so that no other
        # shows a traceback
        with interrupts_put_off():
            process.start()
        self._processes[slot], self._host_of[slot] = process, self._renewed
        theirs.close()
        return ours

    def _serve(
        self, client: ClientT, pipe: Connection, inherited: list[Connection], parent: int
    ) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _end_with(parent)
        for other in inherited:
            other.close()
        # what a suite prints is for nobody: standard output may be carrying results
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        while True:
            try:
                sent = pipe.recv()
            except EOFError:
                return
            pipe.send_bytes(self._done(client, self._jobs[sent] if isinstance(sent, int) else sent))

    def _done(self, client: ClientT, job: Job) -> bytes:
        try:
            return _DONE + self._work(client, job)
        except WorkerKilled as error:
            return _FAILED + str(error).encode()
        except HostFailed as error:
            return _HOST_FAILED + str(error).encode()
        except Exception as error:
            if os.environ.get("AUTOGRADER_DEBUG") is not None:
                traceback.print_exc()
            return _FAILED + f"the grader failed with {type(error).__name__}: {error}".encode(
                errors="replace"
            )


@contextlib.contextmanager
def interrupts_put_off() -> Iterator[None]:
    """Ctrl-C takes effect when this ends."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with(parent: int) -> None:
    """This process ends when its parent does, however that ends."""
    ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)

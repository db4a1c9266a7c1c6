"""Jobs on every core: forked processes that share what was loaded before, each with its own line to the host.

A process that dies takes one job with it, which is named; another takes its place. Past a deadline nothing more is
begun, and what is still at work is ended.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Generic, TypeVar

from autograder.sandbox.host import HostClient

Job = TypeVar("Job")


class Pool(Generic[Job]):
    """Processes that do `work(client, job)` for one job after the other.

    Args:
        clients: one for each process.
        jobs: all of them; processes know them from the fork, so only numbers are sent.
        work: does one job in a process and returns bytes.
        until: when it must all be over (`time.monotonic()`).
    """

    def __init__(
        self,
        clients: Sequence[HostClient],
        jobs: Sequence[Job],
        work: Callable[[HostClient, Job], bytes],
        until: float = math.inf,
    ) -> None:
        self._clients, self._jobs, self._work, self._until = clients, jobs, work, until
        self._context = multiprocessing.get_context("fork")
        self._free = list(range(len(clients)))
        self._at_work: dict[Connection, tuple[int, int]] = {}
        self._pipes: dict[int, Connection] = {}
        self._processes: dict[int, ForkProcess] = {}

    def run(self) -> Iterator[tuple[Job, bytes | None]]:
        """Each job with what came of it, as soon as it is done; None where its process died, or the time was up."""
        waiting = deque(range(len(self._jobs)))
        try:
            while waiting or self._at_work:
                while waiting and self._free and time.monotonic() < self._until:
                    self._give(self._free.pop(), waiting.popleft())
                for pipe in wait(list(self._at_work), self._left()):
                    assert isinstance(pipe, Connection)
                    yield self._take(pipe)
                if time.monotonic() >= self._until:
                    self._end_all()
                    for pipe in list(self._at_work):
                        yield self._take(pipe)
                    yield from ((self._jobs[number], None) for number in waiting)
                    waiting.clear()
        finally:
            for pipe in self._pipes.values():
                pipe.close()

    def _left(self) -> float | None:
        """Seconds to wait for; at most an hour, since the kernel takes no timeout of months."""
        return None if math.isinf(self._until) else min(3600.0, max(0.0, self._until - time.monotonic()))

    def _end_all(self) -> None:
        for process in self._processes.values():
            process.kill()

    def _give(self, slot: int, number: int) -> None:
        if slot not in self._pipes:
            self._pipes[slot] = self._start(slot)
        pipe = self._pipes[slot]
        self._at_work[pipe] = (slot, number)
        pipe.send(number)

    def _take(self, pipe: Connection) -> tuple[Job, bytes | None]:
        slot, number = self._at_work.pop(pipe)
        self._free.append(slot)
        try:
            return self._jobs[number], pipe.recv_bytes()
        except (EOFError, OSError):
            pipe.close()
            del self._pipes[slot]
            return self._jobs[number], None

    def _start(self, slot: int) -> Connection:
        ours, theirs = self._context.Pipe()
        inherited = [*self._pipes.values(), ours]
        process = self._context.Process(target=self._serve, args=(self._clients[slot], theirs, inherited), daemon=True)
        process.start()
        self._processes[slot] = process
        theirs.close()
        return ours

    def _serve(self, client: HostClient, pipe: Connection, inherited: list[Connection]) -> None:
        for other in inherited:
            other.close()
        # what a suite prints is for nobody: standard output may be carrying results
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        while True:
            try:
                number = pipe.recv()
            except EOFError:
                return
            pipe.send_bytes(self._work(client, self._jobs[number]))

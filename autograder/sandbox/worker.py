"""One worker, as the trusted side holds it: requests with a deadline, and a kill that cannot miss."""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from autograder.course import Limits
from autograder.errors import StudentCrashed, StudentTimeout, WorkerKilled
from autograder.sandbox.host import HostClient
from autograder.sandbox.stand_ins import StandIns
from autograder.wire.frames import Frame, WireClosed, WireError, WireTimeout, receive_frame, send_frame

_READY_SECONDS = 20.0
_KILL_SECONDS = 10.0
_END_SECONDS = 2.0
"""How long after its socket a process may end and still have closed it by ending."""

MOST_PATIENCE = 4.0
"""How many times its limit a call may wait for a core, at most, before it is called a hang all the same."""


def _pid_here(pidfd: int) -> int:
    """The process's number in this namespace: the host knows it by another."""
    for line in Path(f"/proc/self/fdinfo/{pidfd}").read_text(encoding="ascii").splitlines():
        if line.startswith("Pid:"):
            return int(line.split()[1])
    return -1


def _open_schedule(pid: int) -> int:
    """Where the kernel counts how long the process waits for a core; -1 where it does not."""
    try:
        return os.open(f"/proc/{pid}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1


class Worker:
    """A walled process that has loaded, or will load, one submission.

    Args:
        until: when the whole submission must be done (`time.monotonic()`); no request is waited for longer.

    Raises:
        HostFailed: no worker can be had. So does every request where the machine, and not the student, is why there is
            no answer.
    """

    def __init__(self, client: HostClient, limits: Limits, until: float = math.inf) -> None:
        self.until = until
        self._client, self._limits = client, limits
        grant = client.fork_worker(limits)
        self._number, self._sock, self._pidfd = grant.pid, grant.sock, grant.pidfd
        self._schedule = _open_schedule(_pid_here(grant.pidfd))
        self._answers = select.poll()
        self._answers.register(self._sock, select.POLLIN)
        self._max_body = limits.reply_mb << 20
        self._requests = 0
        self.alive = True
        self.stand_ins = StandIns({}, limits)
        try:
            word = receive_frame(self._sock, 0, time.monotonic() + _READY_SECONDS).header
        except WireClosed:
            self._let_end()
            raise client.failed("a worker ended before its walls stood") from None
        except (WireError, WireTimeout) as error:
            self.kill()
            raise client.failed(f"the walls of a worker did not stand in {_READY_SECONDS:g} s") from error
        if word.get("ok") is not True:
            self.kill()
            raise client.failed(f"a wall did not stand: {word.get('refused')}")

    def request(self, header: dict[str, Any], tensors: dict[str, Tensor], seconds: float, what: str) -> Frame:
        """Ask and wait for the answer.

        Args:
            seconds: how long the answer may take.
            what: the call in words, for the message where it does not come.

        Raises:
            StudentTimeout: no answer in time; the worker is dead.
            StudentCrashed: the worker ended, or sent what is no answer; it is dead.
            HostFailed: the host is dead, or the worker was killed from outside.
        """
        return next(self.stream(header, tensors, seconds, what))

    def stream(self, header: dict[str, Any], tensors: dict[str, Tensor], seconds: float, what: str) -> Iterator[Frame]:
        """Ask once and yield answers, each within `seconds` of the one before, as long as they are wanted."""
        if not self.alive:
            raise StudentCrashed(f"{what} could not be called: the process had ended before")
        self._requests += 1
        number = self._requests
        try:
            send_frame(self._sock, Frame({"id": number, **header}, tensors), time.monotonic() + self._left(seconds))
            while True:
                yield self._answer(number, self._left(seconds))
        except WireTimeout:
            self.kill()
            if time.monotonic() > self.until:
                raise StudentTimeout(f"{what} did not end: the time for the whole submission is used up.") from None
            raise StudentTimeout(f"{what} did not end within {seconds:g} s, the limit for it.") from None
        except WireClosed:
            self._let_end()
            raise StudentCrashed(
                f"{what} ended the whole process (did it call exit, or run out of memory or CPU time?)."
            ) from None
        except WireError as error:
            self.kill()
            raise StudentCrashed(f"{what} gave an answer that cannot be taken: {error}.") from None

    def load(
        self,
        cells: Iterable[tuple[str, str]],
        seconds: float,
        what: str,
        forbidden: Sequence[str] = (),
        functions: Sequence[str] = (),
    ) -> Iterator[Frame]:
        """Run cells, (id, source) each, in the worker's namespace; yields one answer a cell, as `stream` does.

        Args:
            forbidden: functions of libraries that calls may not lean on from now on.
            functions: names of the cells' functions that may be stood in for.
        """
        texts = [list(cell) for cell in cells]
        header = {"op": "load", "cells": texts, "forbid": list(forbidden), "functions": list(functions)}
        return self.stream(header, {}, seconds, what)

    def turn_to(self, forbidden: Sequence[str]) -> bool:
        """Go on with another question of the same submission. False where the worker is dead, or does not answer."""
        if not self.alive:
            return False
        self.stand_ins = StandIns({}, self._limits)
        header = {"op": "turn", "forbid": list(forbidden)}
        try:
            return self.request(header, {}, self._limits.call_seconds, "the next question").header.get("ok") is True
        except (StudentTimeout, StudentCrashed):
            return False

    def _left(self, seconds: float) -> float:
        """The time for one answer: its own limit, or what is left of the submission's."""
        return min(seconds, max(self.until - time.monotonic(), 0.05))

    def _answer(self, number: int, seconds: float) -> Frame:
        """The next answer, whose time is the worker's own: waiting for a core, or for a stand-in, is not."""
        started, waited = time.monotonic(), self._waited()
        while True:
            self._wait(started + seconds, waited, longest=MOST_PATIENCE * seconds)
            frame = receive_frame(self._sock, self._max_body, time.monotonic() + seconds)
            if frame.header.get("id") != number:
                raise WireError("an answer to another question")
            if "stand_in" not in frame.header:
                return frame
            asked = time.monotonic()
            answer = self.stand_ins.answer(
                frame, lambda header, tensors: self.request(header, tensors, seconds, "an object of yours")
            )
            send_frame(self._sock, answer, asked + seconds)
            started += time.monotonic() - asked

    def _wait(self, deadline: float, waited: float, longest: float) -> None:
        """Wait until there is something to read. On a crowded machine the time spent in the run queue is given back."""
        until = deadline
        while not self._answers.poll(max(0.0, until - time.monotonic()) * 1000):
            until = deadline + min(self._waited() - waited, longest)
            if until <= time.monotonic():
                raise WireTimeout

    def _waited(self) -> float:
        """Seconds that the worker's main thread was ready to run and got no core (0 where the kernel does not say)."""
        try:
            return int(os.pread(self._schedule, 100, 0).split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            return 0.0

    def _let_end(self) -> None:
        """The other end of the socket is closed: end what is left, and see whether the process was killed.

        It is not killed by its own doing: the one limit that kills is that on CPU time. One above its memory gets no
        more, and what the machine's memory is short of the machine takes.

        Raises:
            WorkerKilled: something else than this process, or a limit of its own, killed it.
            HostFailed: the host is dead, and its workers with it.
        """
        ended = self._ends_within(_END_SECONDS)
        self.kill()
        if not ended:
            return  # it closed the socket and lived on
        end = self._client.end_of(self._number)
        if end.signal == signal.SIGKILL and end.cpu_seconds < self._limits.cpu_seconds:
            raise self._client.failed("a worker was killed: did the machine run out of memory?", WorkerKilled)

    def kill(self) -> None:
        """End the process and everything in it, and wait until it is gone.

        Raises:
            HostFailed: it does not end.
        """
        if not self.alive:
            return
        self.alive = False
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        gone = self._ends_within(_KILL_SECONDS)
        os.close(self._pidfd)
        if self._schedule >= 0:
            os.close(self._schedule)
        self._sock.close()
        if not gone:
            raise self._client.failed("a worker did not end when it was killed")

    def _ends_within(self, seconds: float) -> bool:
        poller = select.poll()
        poller.register(self._pidfd, select.POLLIN)
        return bool(poller.poll(seconds * 1000))

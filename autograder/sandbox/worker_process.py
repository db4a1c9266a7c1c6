"""The trusted side of one worker: requests with limits on time, and a kill that cannot miss."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from autograder.basics.errors import (
    StudentCrashed,
    StudentTimeout,
    SubmissionOver,
    WorkerKilled,
)
from autograder.course import Limits
from autograder.sandbox.clocks import (
    ASLEEP_TIMES,
    STOPPED_SECONDS,
    TICK_SECONDS,
    Account,
    Clock,
    WorkerClocks,
    WorkerTime,
    limit_for,
)
from autograder.sandbox.host_process import HostClient
from autograder.sandbox.stand_in_answers import StandIns
from autograder.wire.frames import (
    Block,
    Frame,
    WireClosed,
    WireError,
    receive_frame,
    send_frame,
)

_READY_SECONDS = 20.0
_KILL_SECONDS = 10.0
_END_SECONDS = 2.0
"""A process that ends so soon after its socket closed has closed the socket by ending."""


@dataclass(slots=True)
class Bound:
    """The limit on one answer.

    Attributes:
        call: the call in words, for messages.
        seconds: the limit on processor time.
        until: what the worker's clocks show when the limit is reached.
    """

    call: str
    seconds: float
    until: WorkerTime

    def describe(self, clock: Clock) -> str:
        """The message for a student whose answer did not come in time."""
        if clock == "asleep":
            most = f"{ASLEEP_TIMES * self.seconds:g} s"
            return f"{self.call} did not end: it slept or waited for {most}, the most that it may."
        most = f"{self.seconds:g} s of processor time"
        return f"{self.call} did not end within {most}, the limit for it."


class Worker:
    """A walled process for one submission.

    Args:
        account: is charged for the worker's time, beside each request's own limit.

    Raises:
        HostFailed: no worker can be had. Every request raises it too, where the machine and not the
            student is the reason for a missing answer.
    """

    def __init__(
        self,
        client: HostClient,
        limits: Limits,
        account: Account | None = None,
    ) -> None:
        self.account: Account | None = None  # the submission does not pay for the fork
        self._client, self._limits = client, limits
        grant = client.fork_worker(limits)
        self._number, self._sock, self._pidfd = grant.pid, grant.sock, grant.pidfd
        self._clocks = WorkerClocks(grant.pidfd)
        self._bounds: list[Bound] = []
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(self._sock, select.POLLIN)
        self._writable.register(self._sock, select.POLLOUT)
        self._max_body = limits.reply_mb << 20
        self._requests = 0
        self.alive = True
        self.stand_ins = StandIns({}, limits)
        self._bounds.append(
            Bound("a worker", _READY_SECONDS, limit_for(_READY_SECONDS))
        )
        try:
            greeting = receive_frame(self._sock, 0, self).header
        except WireClosed:
            self._await_end()
            raise client.failed("a worker ended before its walls stood") from None
        except (WireError, StudentTimeout, StudentCrashed) as error:
            self.kill()
            raise client.failed(
                f"the walls of a worker did not stand in {_READY_SECONDS:g} s"
            ) from error
        if greeting.get("ok") is not True:
            self.kill()
            raise client.failed(f"a wall did not stand: {greeting.get('refused')}")
        self._bounds.pop()
        self.account = account

    def request(
        self,
        header: dict[str, Any],
        tensors: dict[str, Block],
        seconds: float,
        call: str,
    ) -> Frame:
        """Send a request and wait for the reply.

        Args:
            seconds: the limit on processor time; `clocks.py` has the other limits that follow.
            call: the call in words, for messages.

        Raises:
            StudentTimeout: no reply in time; the worker is dead.
            StudentCrashed: the worker ended, or sent no valid reply; the worker is dead.
            HostFailed: the host is dead, or the worker was killed or stopped from outside, or has
                no processor.
        """
        frame = self._number_request(header, tensors, call)
        return self._exchange(frame, self._requests, seconds, call)

    def _number_request(
        self,
        header: dict[str, Any],
        tensors: dict[str, Block],
        call: str,
    ) -> Frame:
        """The frame of a request, with the next number.

        Raises:
            StudentCrashed: the worker is dead.
        """
        if not self.alive:
            raise StudentCrashed(
                f"{call} could not be called: the process had ended before"
            )
        self._requests += 1
        return Frame({"id": self._requests, **header}, tensors)

    def _exchange(
        self,
        frame: Frame | None,
        number: int,
        seconds: float,
        call: str,
    ) -> Frame:
        """Send a request, if there is one to be sent, and wait for the next reply to that number.

        The worker is killed on every exception: it could take the next request for the last one.
        """
        # a request inside of a request has the limits of both
        self._bounds.append(
            Bound(call, seconds, self._clocks.time + limit_for(seconds))
        )
        try:
            if frame is not None:
                send_frame(self._sock, frame, self)
            return self._receive_reply(number)
        except WireClosed:
            self._await_end()
            raise StudentCrashed(
                f"{call} ended the whole process (did it call exit, or run out of memory "
                "or CPU time?)."
            ) from None
        except WireError as error:
            self.kill()
            raise StudentCrashed(
                f"{call} gave an answer that cannot be taken: {error}."
            ) from None
        # a limit was passed; or the trusted side's own time was up while it waited
        except BaseException:
            self.kill()
            raise
        finally:
            self._bounds.pop()

    def load(
        self,
        cells: Sequence[tuple[str, str]],
        seconds: float | Sequence[float],
        call: str,
        forbidden: Sequence[str] = (),
        functions: Sequence[str] = (),
        companions: Mapping[str, str] | None = None,
    ) -> Iterator[Frame]:
        """Run cells, (id, source) each, in the worker's namespace; yields a reply for each cell.

        Args:
            companions: the modules that the cells import, path → text.
            seconds: one limit for each cell, or a sequence of limits.
            forbidden: library functions that calls may not use from now on.
            functions: names of the cells' functions for which stand-ins may be called.
        """
        header = {
            "op": "load",
            "cells": [list(cell) for cell in cells],
            "forbid": list(forbidden),
            "functions": list(functions),
            "companions": dict(companions or {}),
        }
        frame: Frame | None = self._number_request(header, {}, call)
        number = self._requests
        if isinstance(seconds, (int, float)):
            seconds = [seconds] * len(cells)
        for limit in seconds:
            yield self._exchange(frame, number, limit, call)
            frame = None

    def switch_question(self, forbidden: Sequence[str]) -> bool:
        """Prepare the worker for another question of the same submission. False where the worker is
        dead, or does not reply.
        """
        if not self.alive:
            return False
        self.stand_ins = StandIns({}, self._limits)
        header = {"op": "turn", "forbid": list(forbidden)}
        try:
            reply = self.request(
                header, {}, self._limits.call_seconds, "the next question"
            )
        except (StudentTimeout, StudentCrashed):
            return False
        return reply.header.get("ok") is True

    def _receive_reply(self, number: int) -> Frame:
        """The next reply to a request, after answers to the worker's own questions to stand-ins."""
        while True:
            frame = receive_frame(self._sock, self._max_body, self)
            self.look()
            if frame.header.get("id") != number:
                raise WireError("an answer to another question")
            if "stand_in" not in frame.header:
                return frame
            answer = self.stand_ins.answer(frame, self._ask_about_object)
            # the stand-in's time was up while it waited for an object in the worker
            if not self.alive:
                raise StudentCrashed(
                    f"{self._bounds[-1].call} did not answer about an object of yours."
                )
            send_frame(self._sock, answer, self)

    def _ask_about_object(
        self,
        header: dict[str, Any],
        tensors: dict[str, Block],
    ) -> Frame:
        """Request something of an object in the worker, which waits for a stand-in's answer."""
        return self.request(
            header, tensors, self._bounds[-1].seconds, "an object of yours"
        )

    # the methods of `Patience`, which sending and receiving call

    def wait(self, *, write: bool) -> None:
        """Wait until there is something to read, or room to write.

        Raises:
            StudentTimeout, StudentCrashed: the worker has used up its time, and is dead.
            WorkerKilled: the worker was stopped from outside, or this machine has no processor for
                the worker. The worker is dead.
        """
        poller = self._writable if write else self._readable
        while not self._clocks.wait(poller):
            self._charge(self._clocks.count(ready=False))

    def look(self) -> None:
        """Charge the worker's time since the last look. Raises as `wait`."""
        self._charge(self._clocks.count())

    def _charge(self, spent: WorkerTime) -> None:
        """Charge the worker's time, and end the worker where a limit is passed.

        The kernel counts a wait in line for a processor when the wait is over. So a worker that is
        in line now is not judged for sleep.
        """
        clocks = self._clocks
        judge_sleep = not clocks.in_line
        if self.account is not None:
            self.account.charge(spent)
        if clocks.stopped > STOPPED_SECONDS:
            self.kill()
            raise self._client.failed(
                "a worker was stopped from outside (SIGSTOP), and not woken again",
                WorkerKilled,
            )
        for bound in self._bounds:
            if clock := clocks.time.exceeds(bound.until, judge_sleep=judge_sleep):
                self._refund_beyond(bound)
                self._end_for(clock, StudentTimeout(bound.describe(clock)))
        call = self._bounds[-1].call
        if self.account is not None and (
            clock := self.account.exceeded(judge_sleep=judge_sleep)
        ):
            fault = SubmissionOver(
                f"{call} did not end: {self.account.describe(clock)}"
            )
            self._end_for(clock, fault)
        if clocks.process_seconds > self._limits.cpu_seconds:
            self.kill()
            raise StudentCrashed(
                f"{call} used up the CPU time of its process ({self._limits.cpu_seconds} s)."
            )

    def _refund_beyond(self, bound: Bound) -> None:
        """Charge at most a tick beyond a limit: a worker that computed for longer was not ended in
        time, since its grader was stopped.
        """
        beyond = self._clocks.time.processor - bound.until.processor - TICK_SECONDS
        if self.account is not None and beyond > 0:
            self.account.charge(WorkerTime(-beyond))

    def _end_for(self, clock: Clock, fault: StudentTimeout) -> NoReturn:
        """End a worker whose time is up, and raise the fault.

        Raises:
            WorkerKilled: this machine has no processor for the worker.
        """
        self.kill()
        if clock == "in all":
            raise self._client.failed(
                "this machine is too busy: a worker was waited for without having had the "
                "processor time that is allowed (use fewer --workers)",
                WorkerKilled,
            )
        raise fault

    def _await_end(self) -> None:
        """Let a worker end that closed its socket, and see whether the machine killed it.

        SIGKILL with CPU time left comes from the machine (out of memory) or from a person: a worker
        cannot send the signal to itself, allocations above `memory_mb` only fail, and the kernel's
        limit on CPU time lies far above the allowed time.

        Raises:
            WorkerKilled: the machine or a person killed the worker.
            HostFailed: the host is dead, and its workers with it.
        """
        ended = self._clocks.ends_within(_END_SECONDS, self._pidfd)
        self.kill()
        if not ended:
            return  # the worker closed the socket and lived on
        ending_signal, cpu_seconds = self._client.worker_end(self._number)
        if ending_signal == signal.SIGKILL and cpu_seconds < self._limits.cpu_seconds:
            raise self._client.failed(
                "a worker was killed: did the machine run out of memory?", WorkerKilled
            )

    def kill(self) -> None:
        """End the process, and wait until it is gone.

        Raises:
            HostFailed: the process does not end.
        """
        if not self.alive:
            return
        self.alive = False
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        gone = self._clocks.ends_within(_KILL_SECONDS, self._pidfd)
        os.close(self._pidfd)
        self._clocks.close()
        self._sock.close()
        if not gone:
            raise self._client.failed("a worker did not end when it was killed")

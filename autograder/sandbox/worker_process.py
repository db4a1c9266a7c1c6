"""One worker, as the trusted side holds it: requests with limits of time, and a kill that cannot
miss.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from autograder.basics.errors import StudentCrashed, StudentTimeout, SubmissionOver, WorkerKilled
from autograder.course import Limits
from autograder.sandbox.clocks import (
    ASLEEP_TIMES,
    STOPPED_SECONDS,
    TICK_SECONDS,
    Account,
    Clock,
    WorkerClocks,
    WorkerTime,
    most_for,
)
from autograder.sandbox.host_process import HostClient
from autograder.sandbox.stand_in_answers import StandIns
from autograder.wire.frames import Block, Frame, WireClosed, WireError, receive_frame, send_frame

_READY_SECONDS = 20.0
_KILL_SECONDS = 10.0
_END_SECONDS = 2.0
"""How long after its socket a process may end and still have closed it by ending."""


@dataclass(slots=True)
class Bound:
    """The limit of one answer.

    Attributes:
        what: the call in words, for the message where the answer does not come.
        seconds: the limit, of processor time.
        until: what the worker's clocks show when it is used up.
    """

    what: str
    seconds: float
    until: WorkerTime

    def describe(self, clock: Clock) -> str:
        """That the answer did not come in time, in words for a student."""
        if clock == "asleep":
            most = ASLEEP_TIMES * self.seconds
            return (
                f"{self.what} did not end: it slept or waited for {most:g} s, the most that it may."
            )
        return (
            f"{self.what} did not end within {self.seconds:g} s of processor time, the "
            "limit for it."
        )


class Worker:
    """A walled process that has loaded, or will load, one submission.

    Args:
        account: what the worker's time is taken from beside each request's own limit.

    Raises:
        HostFailed: no worker can be had. So does every request where the machine, and not the
            student, is why there is no answer.
    """

    def __init__(self, client: HostClient, limits: Limits, account: Account | None = None) -> None:
        self.account: Account | None = None  # to fork it is no time of the submission's
        self._client, self._limits = client, limits
        grant = client.fork_worker(limits)
        self._number, self._sock, self._pidfd = grant.pid, grant.sock, grant.pidfd
        self._clocks = WorkerClocks(grant.pidfd)
        self._bounds: list[Bound] = []
        self._answers, self._room = select.poll(), select.poll()
        self._answers.register(self._sock, select.POLLIN)
        self._room.register(self._sock, select.POLLOUT)
        self._max_body = limits.reply_mb << 20
        self._requests = 0
        self.alive = True
        self.stand_ins = StandIns({}, limits)
        self._bounds.append(Bound("a worker", _READY_SECONDS, most_for(_READY_SECONDS)))
        try:
            word = receive_frame(self._sock, 0, self).header
        except WireClosed:
            self._let_end()
            raise client.failed("a worker ended before its walls stood") from None
        except (WireError, StudentTimeout, StudentCrashed) as error:
            self.kill()
            raise client.failed(
                f"the walls of a worker did not stand in {_READY_SECONDS:g} s"
            ) from error
        if word.get("ok") is not True:
            self.kill()
            raise client.failed(f"a wall did not stand: {word.get('refused')}")
        self._bounds.pop()
        self.account = account

    def request(
        self, header: dict[str, Any], tensors: dict[str, Block], seconds: float, what: str
    ) -> Frame:
        """Ask and wait for the answer.

        Args:
            seconds: how much processor time the answer may take; `clocks.py` says what else that
                bounds.
            what: the call in words, for the message where it does not come.

        Raises:
            StudentTimeout: no answer in time; the worker is dead.
            StudentCrashed: the worker ended, or sent what is no answer; it is dead.
            HostFailed: the host is dead, or the worker was killed or stopped from outside, or has
                no processor.
        """
        question = self._question(header, tensors, what)
        return self._exchange(question, self._requests, seconds, what)

    def _question(self, header: dict[str, Any], tensors: dict[str, Block], what: str) -> Frame:
        """A question with the next number.

        Raises:
            StudentCrashed: there is nobody to ask.
        """
        if not self.alive:
            raise StudentCrashed(f"{what} could not be called: the process had ended before")
        self._requests += 1
        return Frame({"id": self._requests, **header}, tensors)

    def _exchange(self, question: Frame | None, number: int, seconds: float, what: str) -> Frame:
        """Send a question, where there is one to be sent, and wait for the next answer to that
        number.

        Whatever else than an answer comes of it, the worker is dead afterwards: it could take the
        next question for the last one.
        """
        # a question inside of a question has the limits of both
        self._bounds.append(Bound(what, seconds, self._clocks.time + most_for(seconds)))
        try:
            if question is not None:
                send_frame(self._sock, question, self)
            return self._answer(number)
        except WireClosed:
            self._let_end()
            raise StudentCrashed(
                f"{what} ended the whole process (did it call exit, or run out of memory "
                "or CPU time?)."
            ) from None
        except WireError as error:
            self.kill()
            raise StudentCrashed(f"{what} gave an answer that cannot be taken: {error}.") from None
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
        what: str,
        forbidden: Sequence[str] = (),
        functions: Sequence[str] = (),
    ) -> Iterator[Frame]:
        """Run cells, (id, source) each, in the worker's namespace; yields an answer a cell, as long
        as they are wanted.

        Args:
            seconds: the limit of each cell, or of every one.
            forbidden: functions of libraries that calls may not lean on from now on.
            functions: names of the cells' functions that may be stood in for.
        """
        texts = [list(cell) for cell in cells]
        header = {
            "op": "load",
            "cells": texts,
            "forbid": list(forbidden),
            "functions": list(functions),
        }
        question: Frame | None = self._question(header, {}, what)
        number = self._requests
        for limit in [seconds] * len(cells) if isinstance(seconds, (int, float)) else seconds:
            yield self._exchange(question, number, limit, what)
            question = None

    def turn_to(self, forbidden: Sequence[str]) -> bool:
        """Go on with another question of the same submission. False where the worker is dead, or
        does not answer.
        """
        if not self.alive:
            return False
        self.stand_ins = StandIns({}, self._limits)
        header = {"op": "turn", "forbid": list(forbidden)}
        try:
            return (
                self.request(header, {}, self._limits.call_seconds, "the next question").header.get(
                    "ok"
                )
                is True
            )
        except (StudentTimeout, StudentCrashed):
            return False

    def _answer(self, number: int) -> Frame:
        """The next answer to a question, after those to the worker's own questions to stand-ins."""
        while True:
            frame = receive_frame(self._sock, self._max_body, self)
            self.look()
            if frame.header.get("id") != number:
                raise WireError("an answer to another question")
            if "stand_in" not in frame.header:
                return frame
            answer = self.stand_ins.answer(frame, self._ask_about_an_object)
            # the time of the stand-in was up while it waited for an object of the worker's
            if not self.alive:
                raise StudentCrashed(
                    f"{self._bounds[-1].what} did not answer about an object of yours."
                )
            send_frame(self._sock, answer, self)

    def _ask_about_an_object(self, header: dict[str, Any], tensors: dict[str, Block]) -> Frame:
        """Ask the worker about an object of its own, while it waits for the answer of a
        stand-in.
        """
        return self.request(header, tensors, self._bounds[-1].seconds, "an object of yours")

    # time: what frames ask for while they are sent and received

    def wait(self, *, write: bool) -> None:
        """Wait until there is something to read, or room to write.

        Raises:
            StudentTimeout, StudentCrashed: the worker has used up its time. It is dead.
            WorkerKilled: it was stopped from outside, or this machine has no processor for it. It
                is dead.
        """
        poller = self._room if write else self._answers
        while not self._clocks.wait(poller):
            self._take(self._clocks.count(ready=False))

    def look(self) -> None:
        """Count what the worker has taken since it was last looked at. Raises as `wait`."""
        self._take(self._clocks.count())

    def _take(self, spent: WorkerTime) -> None:
        """Charge the worker's time, and end it where a limit is passed.

        A worker in line for a processor may have been there for longer than the kernel has told
        yet: it is not judged for having slept then.
        """
        clocks = self._clocks
        judge_sleep = not clocks.in_line
        if self.account is not None:
            self.account.charge(spent)
        if clocks.stopped > STOPPED_SECONDS:
            self.kill()
            raise self._client.failed(
                "a worker was stopped from outside (SIGSTOP), and not woken again", WorkerKilled
            )
        for bound in self._bounds:
            if clock := clocks.time.past(bound.until, asleep_too=judge_sleep):
                self._give_back_beyond(bound)
                self._end_for(clock, StudentTimeout(bound.describe(clock)))
        if self.account is not None and (clock := self.account.past(asleep_too=judge_sleep)):
            self._end_for(
                clock,
                SubmissionOver(
                    f"{self._bounds[-1].what} did not end: {self.account.describe(clock)}"
                ),
            )
        if clocks.of_process > self._limits.cpu_seconds:
            self.kill()
            raise StudentCrashed(
                f"{self._bounds[-1].what} used up the CPU time of its process "
                f"({self._limits.cpu_seconds} s)."
            )

    def _give_back_beyond(self, bound: Bound) -> None:
        """Charge no more than a tick beyond a limit: who computed on for longer had a grader that
        was stopped, and did not end it.
        """
        beyond = self._clocks.time.processor - bound.until.processor - TICK_SECONDS
        if self.account is not None and beyond > 0:
            self.account.charge(WorkerTime(-beyond))

    def _end_for(self, clock: Clock, fault: StudentTimeout) -> NoReturn:
        """End the worker, whose time is up: by its own fault, or because this machine has no
        processor for it.
        """
        self.kill()
        if clock == "in all":
            raise self._client.failed(
                "this machine is too busy: a worker was waited for without having had the "
                "processor time that is "
                "allowed (use fewer --workers)",
                WorkerKilled,
            )
        raise fault

    def _let_end(self) -> None:
        """The other end of the socket is closed: end what is left, and see whether the process was
        killed.

        It is not killed by its own doing: it can send no such signal to itself, and the one limit
        of the kernel's that kills, on CPU time, lies far above what is allowed. One above its
        memory gets no more, and what the machine's memory is short of the machine takes.

        Raises:
            WorkerKilled: something else than this process, or a limit of its own, killed it.
            HostFailed: the host is dead, and its workers with it.
        """
        ended = self._clocks.ends_within(_END_SECONDS, self._pidfd)
        self.kill()
        if not ended:
            return  # it closed the socket and lived on
        end = self._client.end_of(self._number)
        if end.signal == signal.SIGKILL and end.cpu_seconds < self._limits.cpu_seconds:
            raise self._client.failed(
                "a worker was killed: did the machine run out of memory?", WorkerKilled
            )

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
        gone = self._clocks.ends_within(_KILL_SECONDS, self._pidfd)
        os.close(self._pidfd)
        self._clocks.close()
        self._sock.close()
        if not gone:
            raise self._client.failed("a worker did not end when it was killed")

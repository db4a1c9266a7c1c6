"""A worker whose other end is played by the test: greetings, sizes of replies, ends and limits."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from autograder.basics.errors import (
    HostFailed,
    StudentCrashed,
    StudentTimeout,
    SubmissionOver,
    WorkerKilled,
)
from autograder.course import Limits
from autograder.sandbox.clocks import Account, WorkerClocks, WorkerTime, limit_for
from autograder.sandbox.host_process import HostClient, WorkerGrant
from autograder.sandbox.worker_process import Bound, Worker
from autograder.wire.frames import Block, Frame, receive_frame, send_frame

LIMITS = Limits(reply_mb=1, cpu_seconds=60, call_seconds=5.0)
GREETING = {"ok": True}


class PlayedClient(HostClient):
    """Forks a process that waits, and leaves the worker's end of the socket to the test."""

    def __init__(self, *headers: dict[str, Any], speaks: bool = True) -> None:
        self.fault: HostFailed | None = None
        self.end = signal.SIGKILL.value, 1.0
        self.child = os.fork()
        if not self.child:
            with contextlib.suppress(BaseException):
                signal.pause()
            os._exit(0)
        self.sock, self.worker_sock = socket.socketpair()
        for header in headers:
            send_frame(self.worker_sock, Frame(header, {}))
        if not speaks:
            self.worker_sock.shutdown(socket.SHUT_WR)

    def fork_worker(self, limits: Limits) -> WorkerGrant:
        self.sock.setblocking(False)
        return WorkerGrant(self.child, os.pidfd_open(self.child), self.sock)

    def worker_end(self, pid: int) -> tuple[int, float]:
        assert pid == self.child
        return self.end

    def clear(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.child, 0)
        self.worker_sock.close()
        self.sock.close()


Play = Callable[..., tuple[PlayedClient, Worker]]


@pytest.fixture
def clients() -> Iterator[Callable[..., PlayedClient]]:
    with contextlib.ExitStack() as stack:

        def make(*headers: dict[str, Any], speaks: bool = True) -> PlayedClient:
            client = PlayedClient(*headers, speaks=speaks)
            stack.callback(client.clear)
            return client

        yield make


@pytest.fixture
def play(clients: Callable[..., PlayedClient]) -> Play:
    """A worker that has greeted, with replies that wait in its socket."""

    def make(
        *headers: dict[str, Any], account: Account | None = None
    ) -> tuple[PlayedClient, Worker]:
        client = clients(GREETING, *headers)
        return client, Worker(client, LIMITS, account)

    return make


def is_gone(client: PlayedClient) -> bool:
    """Whether the worker's process has been killed."""
    _, status = os.waitpid(client.child, 0)
    return os.waitstatus_to_exitcode(status) == -signal.SIGKILL


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


# the greeting


def test_a_worker_that_names_a_fallen_wall_is_ended(
    clients: Callable[..., PlayedClient],
) -> None:
    client = clients({"ok": False, "refused": "no namespace"})
    with pytest.raises(HostFailed, match=r"^a wall did not stand: no namespace$"):
        Worker(client, LIMITS)
    assert client.fault is not None
    assert is_gone(client)


def test_a_worker_that_greets_with_anything_else_has_no_walls(
    clients: Callable[..., PlayedClient],
) -> None:
    for ok in (1, "yes", None):
        with pytest.raises(HostFailed, match=r"^a wall did not stand: None$"):
            Worker(clients({"ok": ok}), LIMITS)


def test_a_worker_that_says_no_word_ended_before_its_walls_stood(
    clients: Callable[..., PlayedClient],
) -> None:
    client = clients(speaks=False)
    client.end = 0, 1.0
    os.kill(client.child, signal.SIGTERM)
    with pytest.raises(HostFailed, match=r"^a worker ended before its walls stood$"):
        Worker(client, LIMITS)


def test_a_worker_that_was_killed_before_it_greeted_is_told_so(
    clients: Callable[..., PlayedClient],
) -> None:
    client = clients(speaks=False)
    os.kill(client.child, signal.SIGKILL)
    with pytest.raises(WorkerKilled, match=r"^a worker was killed: did the machine"):
        Worker(client, LIMITS)


def test_a_greeting_with_tensors_is_none(clients: Callable[..., PlayedClient]) -> None:
    client = clients()
    client.worker_sock.send(struct.pack("<IQ", 2, 1) + b"{}x")
    with pytest.raises(
        HostFailed, match=r"^the walls of a worker did not stand in 20 s$"
    ):
        Worker(client, LIMITS)
    assert is_gone(client)


def test_the_fork_is_not_charged(play: Play) -> None:
    account = Account(limit_for(5.0), "the whole submission")
    _, worker = play(account=account)
    assert account.spent == WorkerTime()
    assert worker.account is account
    assert worker._bounds == []
    worker.kill()


# replies


def test_requests_are_numbered_from_1_on(play: Play) -> None:
    client, worker = play({"id": 1, "a": 1}, {"id": 2, "a": 2})
    for number in (1, 2):
        reply = worker.request({"op": "call"}, {}, 5.0, "f")
        assert reply.header == {"id": number, "a": number}
        request = receive_frame(client.worker_sock, 0)
        assert request.header == {"id": number, "op": "call"}
    worker.kill()


@pytest.mark.parametrize(
    ("size", "reason"),
    [
        (1 << 20, "a block of tensors with too long a list of names"),
        ((1 << 20) + 1, "an answer of 1 MB; at most 1 MB may come"),
    ],
)
def test_a_reply_may_have_a_megabyte_and_no_byte_more(
    play: Play, monkeypatch: pytest.MonkeyPatch, size: int, reason: str
) -> None:
    """A megabyte is read, and then is no block of tensors."""
    client, worker = play()
    client.worker_sock.setblocking(False)
    header = b'{"id": 1}'
    waiting = bytearray(struct.pack("<IQ", len(header), size) + header)
    waiting += b"\xff" * size
    wait = worker._clocks.wait

    def send_and_wait(answers: select.poll) -> bool:
        with contextlib.suppress(BlockingIOError):
            while waiting:
                del waiting[: client.worker_sock.send(waiting)]
        return wait(answers)

    monkeypatch.setattr(worker._clocks, "wait", send_and_wait)
    with pytest.raises(
        StudentCrashed, match=f"^f gave an answer that cannot be taken: {reason}"
    ):
        worker.request({"op": "call"}, {}, 5.0, "f")
    assert is_gone(client)


def test_a_large_request_waits_for_room_to_write(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four megabytes do not fit into a socket at once: the worker reads while the grader waits."""
    client, worker = play({"id": 1})
    client.worker_sock.setblocking(False)
    received = bytearray()
    wait = worker._clocks.wait

    def read_and_wait(answers: select.poll) -> bool:
        with contextlib.suppress(BlockingIOError):
            while data := client.worker_sock.recv(1 << 20):
                received.extend(data)
        return wait(answers)

    monkeypatch.setattr(worker._clocks, "wait", read_and_wait)
    block = Block("U8", (4 << 20,), bytes(4 << 20))
    reply = worker.request({"op": "call"}, {"x": block}, 0.5, "f")
    assert reply.header == {"id": 1}
    assert len(received) > 3 << 20
    worker.kill()


def test_a_reply_to_another_request_is_none(play: Play) -> None:
    client, worker = play({"id": 2})
    with pytest.raises(StudentCrashed, match="an answer to another question"):
        worker.request({"op": "call"}, {}, 5.0, "f")
    assert not worker.alive
    assert is_gone(client)
    with pytest.raises(
        StudentCrashed,
        match=r"^f could not be called: the process had ended before$",
    ):
        worker.request({"op": "call"}, {}, 5.0, "f")


def test_a_stand_in_whose_worker_is_gone_answers_nobody(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time was up while it waited for an object in the worker."""
    client, worker = play({"id": 1, "stand_in": {"name": "f"}})

    def answer(frame: Frame, ask: object) -> Frame:
        worker.kill()
        return Frame({"id": 1}, {})

    monkeypatch.setattr(worker.stand_ins, "answer", answer)
    with pytest.raises(
        StudentCrashed, match=r"^f did not answer about an object of yours\.$"
    ):
        worker.request({"op": "call"}, {}, 5.0, "f")
    assert is_gone(client)


def test_each_cell_has_its_reply_to_one_request(play: Play) -> None:
    client, worker = play({"id": 1, "cell": 1}, {"id": 1, "cell": 2})
    bounds: list[float] = []
    exchange = worker._exchange

    def noted(frame: Any, number: int, seconds: float, call: str) -> Frame:
        bounds.append(seconds)
        return exchange(frame, number, seconds, call)

    worker._exchange = noted  # type: ignore[method-assign]
    cells = [("a", "x = 1"), ("b", "y = 2")]
    replies = worker.load(cells, 3, "the cell", ("torch.softmax",), ("a",), {"p": "t"})
    assert [reply.header["cell"] for reply in replies] == [1, 2]
    assert bounds == [3, 3]
    request = receive_frame(client.worker_sock, 0)
    assert request.header == {
        "id": 1,
        "op": "load",
        "cells": [["a", "x = 1"], ["b", "y = 2"]],
        "forbid": ["torch.softmax"],
        "functions": ["a"],
        "companions": {"p": "t"},
    }
    client.worker_sock.setblocking(False)
    with pytest.raises(BlockingIOError):
        client.worker_sock.recv(1)
    worker.kill()


def test_each_cell_may_have_a_limit_of_its_own(play: Play) -> None:
    _, worker = play()
    bounds: list[float] = []

    def noted(frame: Any, number: int, seconds: float, call: str) -> Frame:
        bounds.append(seconds)
        return Frame({}, {})

    worker._exchange = noted  # type: ignore[method-assign]
    cells = [("a", ""), ("b", "")]
    assert len(list(worker.load(cells, [1.0, 2.0], "the cell"))) == 2
    assert bounds == [1.0, 2.0]
    worker.kill()


# the next question


def test_a_worker_is_ready_for_the_next_question_where_it_says_so(play: Play) -> None:
    client, worker = play({"id": 1, "ok": True}, {"id": 2, "ok": 1})
    stand_ins = worker.stand_ins
    assert worker.switch_question(["torch.softmax"])
    assert worker.stand_ins is not stand_ins
    request = receive_frame(client.worker_sock, 0)
    assert request.header == {"id": 1, "op": "turn", "forbid": ["torch.softmax"]}
    assert not worker.switch_question([])
    worker.kill()
    assert not worker.switch_question([])


def test_a_worker_that_answers_wrongly_is_not_ready(play: Play) -> None:
    client, worker = play({"id": 7})
    assert not worker.switch_question([])
    assert is_gone(client)


# ends


@pytest.mark.parametrize(
    ("end", "fault"),
    [
        ((signal.SIGKILL.value, 59.9), WorkerKilled),
        # the kernel's own limit on processor time
        ((signal.SIGKILL.value, 60.0), StudentCrashed),
        ((signal.SIGSEGV.value, 1.0), StudentCrashed),
        ((0, 1.0), StudentCrashed),
    ],
)
def test_who_killed_a_worker_is_told_by_signal_and_time(
    play: Play, end: tuple[int, float], fault: type[Exception]
) -> None:
    client, worker = play()
    client.end = end
    os.kill(client.child, signal.SIGKILL)
    client.worker_sock.close()
    words = {
        WorkerKilled: r"^a worker was killed: did the machine run out of memory\?$",
        StudentCrashed: r"^f ended the whole process \(did it call exit, or run",
    }
    with pytest.raises(fault, match=words[fault]):
        worker.request({"op": "call"}, {}, 5.0, "f")
    assert (client.fault is None) == (fault is StudentCrashed)


def test_a_worker_that_closes_its_socket_and_lives_on_is_ended(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autograder.sandbox.worker_process._END_SECONDS", 0.05)
    client, worker = play()
    client.worker_sock.close()
    with pytest.raises(StudentCrashed, match=r"^f ended the whole process"):
        worker.request({"op": "call"}, {}, 5.0, "f")
    assert client.fault is None
    assert is_gone(client)


def test_a_worker_that_is_killed_leaves_no_descriptor(
    clients: Callable[..., PlayedClient],
) -> None:
    client = clients(GREETING)
    before = open_descriptors()
    worker = Worker(client, LIMITS)
    assert open_descriptors() == before + 3  # a pidfd and two files of /proc
    worker.kill()
    assert open_descriptors() == before - 1  # the socket too
    assert is_gone(client)
    worker.kill()


def test_a_process_has_two_seconds_to_end_and_ten_once_it_is_killed(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, worker = play()
    patience: list[float] = []
    ends_within = WorkerClocks.ends_within

    def wait(clocks: WorkerClocks, seconds: float, pidfd: int) -> bool:
        patience.append(seconds)
        return ends_within(clocks, 0.05, pidfd)

    monkeypatch.setattr(WorkerClocks, "ends_within", wait)
    client.worker_sock.close()
    with pytest.raises(StudentCrashed):
        worker.request({"op": "call"}, {}, 5.0, "f")
    assert patience == [2.0, 10.0]
    assert is_gone(client)


def test_a_worker_that_does_not_end_is_a_fault_of_the_machine(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, worker = play()
    monkeypatch.setattr(
        WorkerClocks, "ends_within", lambda clocks, seconds, pidfd: False
    )
    with pytest.raises(HostFailed, match=r"^a worker did not end when it was killed$"):
        worker.kill()
    assert not worker.alive
    assert is_gone(client)


# limits


class SetClocks:
    """Clocks that show what the test sets."""

    def __init__(self, time: WorkerTime) -> None:
        self.time = time
        self.stopped = 0.0
        self.in_line = False
        self.process_seconds = 0.0

    def ends_within(self, seconds: float, pidfd: int) -> bool:
        return True

    def close(self) -> None: ...


def charged(
    play: Play,
    clocks: SetClocks,
    bounds: Sequence[Bound],
    account: Account | None = None,
    spent: WorkerTime = WorkerTime(),
) -> PlayedClient:
    """Charge a worker, which has these clocks and bounds."""
    client, worker = play()
    worker._clocks.close()
    worker._clocks = clocks  # type: ignore[assignment]
    worker._bounds = list(bounds)
    worker.account = account
    try:
        worker._charge(spent)
    finally:
        worker.kill()
    return client


CALL = Bound("f", 1.0, WorkerTime(1.0, 2.0, 66.0))


def test_a_worker_at_its_limits_goes_on(play: Play) -> None:
    clocks = SetClocks(WorkerTime(1.0, 2.0, 66.0))
    clocks.stopped = 5.0
    clocks.process_seconds = 60.0
    account = Account(WorkerTime(1.0, 2.0, 66.0), "the whole submission")
    charged(play, clocks, [CALL], account, WorkerTime(1.0, 2.0, 66.0))
    assert account.spent == WorkerTime(1.0, 2.0, 66.0)


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (WorkerTime(1.01), "within 1 s of processor time, the limit for it.$"),
        (WorkerTime(0.0, 2.01), "slept or waited for 2 s, the most that it may.$"),
    ],
)
def test_a_worker_beyond_a_limit_is_ended(
    play: Play, time: WorkerTime, words: str
) -> None:
    with pytest.raises(StudentTimeout, match=words):
        charged(play, SetClocks(time), [CALL])


def test_the_outer_limit_ends_the_inner_call(play: Play) -> None:
    inner = Bound("g", 5.0, WorkerTime(5.0, 10.0, 90.0))
    with pytest.raises(StudentTimeout, match=r"^f did not end within 1 s"):
        charged(play, SetClocks(WorkerTime(2.0)), [CALL, inner])


def test_sleep_of_a_worker_in_line_is_judged_later(play: Play) -> None:
    clocks = SetClocks(WorkerTime(0.0, 2.5, 3.0))
    clocks.in_line = True
    account = Account(WorkerTime(9.0, 2.0, 66.0), "the whole submission")
    charged(play, clocks, [CALL], account, WorkerTime(0.0, 2.5, 3.0))
    clocks.in_line = False
    with pytest.raises(StudentTimeout):
        charged(play, clocks, [CALL])


def test_a_worker_that_waited_too_long_for_a_processor_is_the_machines_fault(
    play: Play,
) -> None:
    with pytest.raises(WorkerKilled, match=r"^this machine is too busy"):
        charged(play, SetClocks(WorkerTime(0.5, 0.0, 66.5)), [CALL])


def test_a_stopped_worker_is_the_machines_fault(play: Play) -> None:
    clocks = SetClocks(WorkerTime())
    clocks.stopped = 5.01
    with pytest.raises(WorkerKilled, match=r"^a worker was stopped from outside"):
        charged(play, clocks, [CALL])


def test_the_account_of_a_submission_ends_a_call(play: Play) -> None:
    account = Account(WorkerTime(1.0, 2.0, 66.0), "the whole submission")
    account.charge(WorkerTime(0.75))
    words = r"^f did not end: the time for the whole submission \(1 s of processor"
    with pytest.raises(SubmissionOver, match=words):
        charged(play, SetClocks(WorkerTime(0.5)), [CALL], account, WorkerTime(0.5))
    assert account.spent == WorkerTime(1.25)


def test_a_process_has_a_limit_in_all(play: Play) -> None:
    clocks = SetClocks(WorkerTime())
    clocks.process_seconds = 60.01
    words = r"^f used up the CPU time of its process \(60 s\)\.$"
    with pytest.raises(StudentCrashed, match=words):
        charged(play, clocks, [CALL])


def test_at_most_a_tick_beyond_a_limit_is_charged(play: Play) -> None:
    """A worker computed for 3 s in one look, where 1 s was allowed: 1.1 s are charged."""
    account = Account(WorkerTime(9.0, 9.0, 99.0), "the whole submission")
    with pytest.raises(StudentTimeout):
        charged(play, SetClocks(WorkerTime(3.0)), [CALL], account, WorkerTime(3.0))
    assert account.spent.processor == pytest.approx(1.1)
    within = Account(WorkerTime(9.0, 9.0, 99.0), "the whole submission")
    with pytest.raises(StudentTimeout):
        charged(play, SetClocks(WorkerTime(1.05)), [CALL], within, WorkerTime(1.05))
    assert within.spent.processor == 1.05

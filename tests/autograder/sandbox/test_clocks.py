"""Limits of time: what a worker computes and sleeps counts, what the machine does meanwhile does
not.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from autograder.basics.errors import (
    HostFailed,
    StudentCrashed,
    StudentTimeout,
    SubmissionOver,
    WorkerKilled,
)
from autograder.grading.bench import Bench
from autograder.sandbox import clocks as clocks_module
from autograder.sandbox import worker_process as worker_module
from autograder.sandbox.bounds import OutOfTime, time_bound
from autograder.sandbox.clocks import (
    Account,
    WorkerClocks,
    WorkerTime,
    limit_for,
    pid_here,
)
from autograder.sandbox.student import Student
from autograder.sandbox.worker_process import Worker
from autograder.suite.calls import start_log
from autograder.wire.values import Encoder

CELL = """
import time

def computes(seconds=1e9):
    ends = time.process_time() + seconds
    while time.process_time() < ends:
        pass
    return 1

def sleeps(seconds=1e9):
    time.sleep(seconds)
    return 1

def computes_and_sleeps():
    while True:
        computes(0.01)
        time.sleep(0.01)

def asks_and_does_not_read(lent):
    import gc
    from autograder.wire.frames import Frame, receive_frame, send_frame
    loop = next(found for found in gc.get_objects() if type(found).__name__ == "Loop")
    while True:
        send_frame(loop._sock, Frame({"id": loop._request, "stand_in": {"function": -1}, "value": [[], {}]}, {}))
        time.sleep(0.15)
        receive_frame(loop._sock, 1 << 30)

def asks_without_end(lent):
    while True:
        lent()
        computes(0.01)
"""


# the amounts


def test_a_limit_has_three_clocks() -> None:
    assert limit_for(5.0) == WorkerTime(processor=5.0, asleep=10.0, in_all=90.0)
    most = WorkerTime(1.0, 2.0, 3.0)
    assert WorkerTime(1.0, 2.0, 3.0).exceeds(most) == ""
    assert WorkerTime(1.1, 2.1, 3.1).exceeds(most) == "processor"
    assert WorkerTime(0.0, 2.1, 3.0).exceeds(most) == "asleep"
    assert WorkerTime(0.0, 2.0, 3.1).exceeds(most) == "in all"


def test_who_stands_in_line_is_judged_for_sleep_only_when_all_is_over() -> None:
    most = WorkerTime(1.0, 2.0, 3.0)
    assert WorkerTime(0.0, 2.1, 2.9).exceeds(most, judge_sleep=False) == ""
    assert WorkerTime(0.0, 2.1, 3.1).exceeds(most, judge_sleep=False) == "asleep"


def test_an_account_sums_up_what_many_workers_take() -> None:
    account = Account(WorkerTime(1.0, 3.0, 9.0), "the whole submission")
    account.charge(WorkerTime(0.75, 1.0, 2.0))
    assert (account.exceeded(), account.remaining) == ("", 0.25)
    account.charge(WorkerTime(0.0, 2.5, 2.5))
    assert account.exceeded() == "asleep"
    assert (
        account.describe("asleep")
        == "the whole submission slept or waited for 3 s, the most that it may."
    )
    account.charge(WorkerTime(0.75))
    assert (account.exceeded(), account.remaining) == ("processor", 0.0)
    assert (
        account.describe("processor")
        == "the time for the whole submission (1 s of processor time) is used up."
    )


class ToldClocks(WorkerClocks):
    """Clocks of a process of which the test says what the kernel would tell."""

    def __init__(self, processor: float = 0.0, queue: float = 0.0) -> None:
        self.told = processor, queue, "S"
        handle = os.pidfd_open(os.getpid())
        super().__init__(handle)
        os.close(handle)

    def counted(self, seconds: float) -> WorkerTime:
        """What is counted after so long a wait without an answer."""
        self._waited = seconds
        return self.count(ready=False)

    def _processor_time(self) -> float:
        return self.told[0]

    def _queue_time(self) -> float:
        return self.told[1]

    def _state(self) -> str:
        return self.told[2]


def test_what_is_neither_on_a_processor_nor_in_line_is_asleep() -> None:
    clocks = ToldClocks(processor=10.0, queue=20.0)
    clocks.told = 10.25, 20.5, "S"
    assert clocks.counted(1.0) == WorkerTime(processor=0.25, asleep=0.25, in_all=1.0)
    clocks.close()


def test_the_kernel_is_asked_for_the_line_after_more_than_five_milliseconds() -> None:
    clocks = ToldClocks()
    clocks.told = 0.0, 0.25, "S"
    assert clocks.counted(0.005) == WorkerTime(0.0, 0.005, 0.005)
    # the 0.25 s in line are taken off the next longer wait
    assert clocks.counted(1.0) == WorkerTime(0.0, 0.75, 1.0)
    clocks.told = 0.0, 0.25 + 0.004, "S"
    assert clocks.counted(0.006).asleep == pytest.approx(0.002)
    clocks.close()


def test_a_wait_in_line_that_is_told_late_was_no_sleep() -> None:
    clocks = ToldClocks()
    clocks.told = 0.0, 0.0, "R"
    clocks.counted(1.0)
    assert (clocks.time.asleep, clocks.in_line) == (1.0, True)
    clocks.told = 0.0, 1.5, "S"  # the kernel counts a wait when it is over
    clocks.counted(0.5)
    assert (clocks.time, clocks.in_line) == (WorkerTime(0.0, 0.0, 1.5), False)
    clocks.close()


def test_where_the_kernel_tells_of_no_line_who_is_ready_to_run_is_not_asleep() -> None:
    clocks = ToldClocks(queue=-1.0)
    clocks.told = 0.25, -1.0, "R"
    assert clocks.counted(1.0) == WorkerTime(0.25, 0.0, 1.0)
    clocks.told = 0.25, -1.0, "S"
    assert clocks.counted(1.0) == WorkerTime(0.0, 1.0, 1.0)
    clocks.close()


@pytest.mark.parametrize(("earlier", "now"), [(-1.0, 5.0), (5.0, -1.0)])
def test_a_line_that_the_kernel_tells_of_once_has_no_length(
    earlier: float, now: float
) -> None:
    clocks = ToldClocks(queue=earlier)
    clocks.told = 0.25, now, "S"
    assert clocks.counted(1.0) == WorkerTime(0.25, 0.75, 1.0)
    clocks.close()


def test_where_the_kernel_tells_nothing_waiting_is_computing() -> None:
    clocks = ToldClocks(processor=-1.0)
    assert clocks.counted(0.5) == WorkerTime(0.5, 0.0, 0.5)
    clocks.close()


def test_a_pause_of_the_grader_is_nobodys_sleep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A tick of a tenth of a second that takes 1.1 s is just none."""
    clocks, ticks = ToldClocks(), iter([0.0, 0.25, 10.0, 200.0, 0.0, 1.1, 0.0, 1.11])

    class Nothing:
        def poll(self, milliseconds: float) -> list[Any]:
            return []

    monkeypatch.setattr(time, "monotonic", lambda: next(ticks))
    clocks.told = 3.0, 0.0, "S"
    for _ in range(2):
        assert not clocks.wait(Nothing())  # type: ignore[arg-type]
    assert clocks.count() == WorkerTime(processor=3.0, asleep=0.0, in_all=0.25)
    for in_all in (1.1, 0.0):
        assert not clocks.wait(Nothing())  # type: ignore[arg-type]
        assert clocks.count().in_all == in_all
    clocks.close()
    clocks.close()  # what is closed already may be another's descriptor by now


def test_a_clocks_files_are_closed_whatever_their_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clocks: Any = object.__new__(WorkerClocks)
    closed: list[int] = []
    monkeypatch.setattr(os, "close", closed.append)
    clocks._schedule, clocks._stat = -1, 0
    clocks.close()
    monkeypatch.undo()
    assert closed == [0]


def test_a_worker_that_is_stopped_does_not_sleep() -> None:
    clocks = ToldClocks()
    clocks.told = 0.0, 0.0, "T"
    for _ in range(3):
        assert clocks.counted(0.25) == WorkerTime()
    assert clocks.stopped == 0.75
    clocks.told = 0.0, 0.0, "S"
    assert clocks.counted(0.25) == WorkerTime(0.0, 0.25, 0.25)
    assert clocks.stopped == 0.0
    # where its answer is there, nobody asks the kernel whether it is stopped
    clocks.told, clocks._waited = (0.0, 0.0, "T"), 0.25
    assert clocks.count() == WorkerTime(0.0, 0.25, 0.25)
    assert clocks.stopped == 0.0
    clocks.close()


def test_the_clock_of_another_process_is_the_kernels() -> None:
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            sum(range(3_000_000))
            os.write(writer, b"x")
            select.select([], [], [])
        os._exit(0)
    handle = os.pidfd_open(child)
    assert pid_here(handle) == child
    os.read(reader, 1)
    clocks = WorkerClocks(handle)
    assert 0.001 < clocks.process_seconds < 30.0
    os.kill(child, signal.SIGKILL)
    assert clocks.ends_within(1.0, handle)
    os.waitpid(child, 0)
    clocks.count()
    assert clocks.process_seconds == -1.0
    clocks.close()
    for descriptor in (handle, reader, writer):
        os.close(descriptor)


# a worker


@pytest.fixture
def opened(bench: Bench) -> Iterator[Callable[..., Worker]]:
    """Opens workers that have run CELL."""
    with contextlib.ExitStack() as stack:

        def make(account: Account | None = None) -> Worker:
            made = Worker(bench.clients[0], bench.course.limits, account)
            stack.callback(made.kill)
            assert next(made.load([("a", CELL)], 5.0, "the cell")).header["ok"] is True
            return made

        yield make
    bench.clients[0].fault = None


def call(worker: Worker, name: str, *arguments: Any, seconds: float = 0.1) -> Any:
    header = {
        "op": "call",
        "name": name,
        "value": Encoder(lambda _: None).encode([list(arguments), {}]),
    }
    return worker.request(header, {}, seconds, name).header["value"]


def test_who_computes_on_ends_by_processor_time_and_is_told_so(
    opened: Callable[..., Worker],
) -> None:
    with pytest.raises(
        StudentTimeout,
        match=r"^computes did not end within 0.1 s of processor time, the limit for it\.$",
    ):
        call(opened(), "computes")


def test_who_sleeps_on_ends_too_and_is_told_so(opened: Callable[..., Worker]) -> None:
    said = r"^sleeps did not end: it slept or waited for 0.2 s, the most that it may\.$"
    with pytest.raises(StudentTimeout, match=said):
        call(opened(), "sleeps")


def test_who_sleeps_and_computes_in_turns_ends(opened: Callable[..., Worker]) -> None:
    with pytest.raises(StudentTimeout):
        call(opened(), "computes_and_sleeps")


def test_sleep_is_not_processor_time(opened: Callable[..., Worker]) -> None:
    assert call(opened(), "sleeps", 0.3, seconds=0.2) == 1


def test_an_answer_that_took_too_much_is_none_though_it_came_before_anybody_looked(
    opened: Callable[..., Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clocks_module, "TICK_SECONDS", 60.0)
    with pytest.raises(StudentTimeout):
        call(opened(), "computes", 0.3, seconds=0.1)


def test_what_a_submission_may_take_counts_over_many_calls(
    opened: Callable[..., Worker],
) -> None:
    account = Account(limit_for(0.5), "the whole submission")
    worker = opened(account)
    for _ in range(2):
        call(worker, "computes", 0.2, seconds=5.0)
    assert 0.4 <= account.spent.processor < 0.5
    with pytest.raises(
        SubmissionOver,
        match=r"^computes did not end: the time for the whole submission \(0.5 s of proc",
    ):
        call(worker, "computes", 0.2, seconds=5.0)
    assert not worker.alive


def test_a_reader_that_does_not_read_spends_its_own_time(
    opened: Callable[..., Worker],
) -> None:
    """Each answer of a lent function is larger than the socket's buffer, so that the grader waits
    to send it.
    """
    start_log({})
    worker = opened()
    student = Student.in_worker(worker, 0.2)
    with pytest.raises(StudentTimeout, match=r"it slept or waited for 0\.4 s"):
        student.asks_and_does_not_read(lambda: torch.zeros(1 << 19))


def test_questions_to_the_grader_do_not_make_a_call_longer(
    opened: Callable[..., Worker],
) -> None:
    """On a crowded machine its waits for answers may reach their limit first."""
    start_log({})
    worker = opened()
    student = Student.in_worker(worker, 0.2)
    with pytest.raises(StudentTimeout, match=r"^asks_without_end did not end"):
        student.asks_without_end(lambda: 1)


def test_a_grader_that_was_stopped_charges_what_its_worker_would_have_been_allowed(
    opened: Callable[..., Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    account = Account(limit_for(10.0), "the whole submission")
    worker = opened(account)
    before = account.spent.processor
    # it computed while nobody looked
    monkeypatch.setattr(worker._clocks, "_processor_time", lambda: 50.0)
    with pytest.raises(StudentTimeout, match=r"within 0\.1 s of processor time"):
        call(worker, "sleeps", 0.0)
    assert account.spent.processor - before == pytest.approx(
        0.1 + clocks_module.TICK_SECONDS
    )


# the machine


def test_a_worker_that_is_stopped_from_outside_is_a_fault_of_the_machines(
    opened: Callable[..., Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "STOPPED_SECONDS", 0.15)
    worker = opened()
    os.kill(pid_here(worker._pidfd), signal.SIGSTOP)
    with pytest.raises(WorkerKilled, match="stopped from outside"):
        call(worker, "sleeps", 0.0)


def test_a_worker_that_is_stopped_and_woken_has_its_answer_counted(
    opened: Callable[..., Worker],
) -> None:
    worker = opened()
    process = pid_here(worker._pidfd)
    os.kill(process, signal.SIGSTOP)
    waker = os.fork()
    if not waker:
        select.select([], [], [], 0.5)
        os.kill(process, signal.SIGCONT)
        os._exit(0)
    assert (
        call(worker, "sleeps", 0.0, seconds=0.1) == 1
    )  # a limit of 0.1, and of 0.2 asleep
    os.waitpid(waker, 0)


def test_a_machine_without_a_processor_for_a_worker_is_at_fault(
    opened: Callable[..., Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = opened()
    had = worker._clocks.process_seconds
    monkeypatch.setattr(worker._clocks, "_processor_time", lambda: had)
    monkeypatch.setattr(worker._clocks, "_state", lambda: "R")
    in_line = itertools.count(1)
    monkeypatch.setattr(
        worker._clocks,
        "_queue_time",
        lambda: 2 * next(in_line) * clocks_module.TICK_SECONDS,
    )
    monkeypatch.setattr(clocks_module, "IN_ALL_MORE", 0.3)
    with pytest.raises(WorkerKilled, match="this machine is too busy"):
        # no other limit of this length is asked for: they are remembered
        call(worker, "sleeps", seconds=0.0101)


def test_the_line_to_a_worker_is_never_out_of_step(
    opened: Callable[..., Worker],
) -> None:
    """The trusted side's own time is up while it waits: the answer that is still to come is for
    nobody else.
    """
    worker = opened()

    def time_is_up(*_: object, **__: object) -> None:
        raise OutOfTime("the time for checking what came back is used up.")

    worker._charge = time_is_up  # type: ignore[method-assign]
    with pytest.raises(OutOfTime):
        call(worker, "sleeps", 0.0)
    del worker._charge
    with pytest.raises(StudentCrashed, match="the process had ended before"):
        call(worker, "sleeps", 0.0)


def test_a_grader_that_is_stopped_uses_none_of_its_own_time() -> None:
    stopper = os.fork()
    if not stopper:
        os.kill(os.getppid(), signal.SIGSTOP)
        select.select([], [], [], 0.3)
        os.kill(os.getppid(), signal.SIGCONT)
        os._exit(0)
    with time_bound(0.1):
        os.waitpid(stopper, 0)


def test_a_bound_inside_of_a_bound_does_not_stop_its_clock() -> None:
    def computes() -> None:
        while True:
            pass

    def computes_within_and_without() -> None:
        with contextlib.suppress(OutOfTime), time_bound(0.3):
            computes()
        computes()

    began = time.process_time()
    with pytest.raises(OutOfTime), time_bound(0.4):
        computes_within_and_without()
    assert time.process_time() - began < 0.6


def test_a_fault_of_the_machines_is_no_students() -> None:
    assert issubclass(WorkerKilled, HostFailed)
    assert not issubclass(WorkerKilled, StudentTimeout)


# what the kernel may not tell


def test_without_a_process_the_kernel_tells_nothing() -> None:
    """A pidfd that is none: no clock, no line, no state, and closing twice does nothing."""
    reader, writer = os.pipe()
    clocks = WorkerClocks(reader)
    assert pid_here(reader) == pid_here(999_999) == -1
    assert (clocks.process_seconds, clocks._queue_time(), clocks._state()) == (
        -1.0,
        -1.0,
        "",
    )
    assert clocks_module._open_proc_file(-1, "stat") == -1
    clocks.close()
    clocks.close()
    for descriptor in (reader, writer):
        os.close(descriptor)


@pytest.mark.parametrize(
    ("states", "asleep", "looks"),
    [("S", 0.3, 3), ("D", 0.2, 2), ("RRSRS", 0.2, 5), ("TTTSS", 0.2, 5)],
)
def test_an_end_is_waited_for_until_the_process_has_slept_so_long(
    monkeypatch: pytest.MonkeyPatch, states: str, asleep: float, looks: int
) -> None:
    """A tick is 0.1 s. A process that runs, or is stopped, does not sleep."""
    clocks = ToldClocks()
    told = itertools.cycle(states)
    asked = []

    class Living:
        def register(self, descriptor: int, events: int) -> None: ...

        def poll(self, milliseconds: float) -> list[Any]:
            asked.append(milliseconds)
            clocks.told = 0.0, 0.0, next(told)
            return []

    monkeypatch.setattr(select, "poll", Living)
    assert not clocks.ends_within(asleep - 0.05, 0)
    assert asked == [100.0] * looks
    clocks.close()


def test_an_end_is_not_waited_for_longer_than_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clocks = ToldClocks()
    clocks.told = 0.0, 0.0, "R"
    asked = []

    class Running:
        def register(self, descriptor: int, events: int) -> None: ...

        def poll(self, milliseconds: float) -> list[Any]:
            asked.append(milliseconds)
            return []

    monkeypatch.setattr(select, "poll", Running)
    assert not clocks.ends_within(1.0, 0)
    assert len(asked) == 600
    clocks.close()


def test_times_are_added_and_subtracted_clock_by_clock() -> None:
    one, other = WorkerTime(8.0, 16.0, 32.0), WorkerTime(1.0, 2.0, 4.0)
    assert one + other == WorkerTime(9.0, 18.0, 36.0)
    assert one - other == WorkerTime(7.0, 14.0, 28.0)


@pytest.mark.parametrize(
    ("line", "state", "queued"),
    [
        # the name in brackets may be anything; state stands behind it
        ("17 (a) R (b) S 1 17", "S", -1.0),
        ("5000000000 1500000000 3", "5000000000", 1.5),
        ("17 (a)", "", -1.0),
        ("17", "17", -1.0),
        ("", "", -1.0),
    ],
)
def test_lines_of_proc_are_read(
    tmp_path: Path, line: str, state: str, queued: float
) -> None:
    path = tmp_path / "line"
    path.write_text(line, encoding="ascii")
    clocks = object.__new__(WorkerClocks)
    clocks._stat = clocks._schedule = os.open(path, os.O_RDONLY)
    assert (clocks._state(), clocks._queue_time()) == (state, queued)
    os.close(clocks._stat)

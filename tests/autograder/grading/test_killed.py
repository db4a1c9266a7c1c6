"""What the machine does wrong becomes nobody's grade: the submission is graded once more, or named
and left alone.
"""

from __future__ import annotations

import dataclasses
import os
import select
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from courses import handed_in
from small_course import ANSWERS

from autograder.basics.errors import HostFailed, StudentCrashed, WorkerKilled
from autograder.course import Course
from autograder.grading.batch import read_finished_job
from autograder.grading.bench import Bench
from autograder.grading.pool import FinishedJob, Pool
from autograder.records.model import Graded
from autograder.records.submission import FoundSubmission
from autograder.sandbox.clocks import pid_here
from autograder.sandbox.host_process import HostClient
from autograder.sandbox.worker_process import Worker
from autograder.sitting.loaded_suite import LoadedSuite
from autograder.worker import fork_server
from autograder.worker.fork_server import ForkServer

WRONG = "def softmax(z, dim=-1):\n    return z.exp() / z.exp().sum(dim=0)\n"
STUDENTS = {"student-001": ANSWERS, "student-002": {**ANSWERS, "softmax": WRONG}}


def pid_of(worker: Worker) -> int:
    return pid_here(worker._pidfd)


def parent_of(process: int) -> int:
    return int(
        Path(f"/proc/{process}/stat")
        .read_text(encoding="ascii")
        .rpartition(")")[2]
        .split()[1]
    )


VICTIMS: dict[str, Callable[[Worker], int]] = {
    "worker": pid_of,
    "host": lambda worker: parent_of(pid_of(worker)),
    "grader": lambda worker: os.getpid(),
}


@pytest.fixture(scope="module")
def bench(course: Course) -> Iterator[Bench]:
    """One of this module's own: it loses hosts."""
    with Bench(course, course.assignment("small")) as started:
        yield started


@pytest.fixture
def class_of_two(tmp_path: Path) -> list[FoundSubmission]:
    found = [
        FoundSubmission(student, tmp_path / f"{student}.ipynb") for student in STUDENTS
    ]
    for one in found:
        one.path.write_text(handed_in(STUDENTS[one.student]), encoding="utf-8")
    return found


def graded(
    bench: Bench, found: Sequence[FoundSubmission]
) -> dict[str, tuple[Graded, bytes]]:
    """As `grade_batch`, on a bench that stands."""
    return {
        ended.job.student: read_finished_job(ended, bench.course.limits)
        for ended in Pool(bench, found, bench.grader.grade_to_bytes).run()
    }


@pytest.fixture
def strike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Arrange for a victim to be killed in the middle of a call, so many times."""

    def arrange(victim: str, times: int) -> None:
        honest = Worker.request

        def request(self: Worker, header: dict[str, Any], *rest: Any) -> Any:
            struck = list(tmp_path.glob("struck-*"))
            if header.get("name") == "attention" and len(struck) < times:
                (tmp_path / f"struck-{len(struck)}").touch()
                handle = os.pidfd_open(VICTIMS[victim](self))
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                select.select([handle], [], [])  # until it is dead
                os.close(handle)
            return honest(self, header, *rest)

        monkeypatch.setattr(Worker, "request", request)

    return arrange


@pytest.mark.parametrize("victim", VICTIMS)
def test_who_is_killed_once_changes_no_result(
    bench: Bench,
    class_of_two: list[FoundSubmission],
    strike: Callable[..., None],
    tmp_path: Path,
    victim: str,
) -> None:
    undisturbed = graded(bench, class_of_two)
    strike(victim, times=1)
    assert results(graded(bench, class_of_two)) == results(undisturbed)
    assert len(list(tmp_path.glob("struck-*"))) == 1


def test_where_there_are_several_hosts_the_death_of_one_changes_no_result_either(
    bench: Bench,
    class_of_two: list[FoundSubmission],
    strike: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    undisturbed = graded(bench, class_of_two)
    monkeypatch.setattr("autograder.grading.bench.GRADERS_A_HOST", 1)
    with Bench(bench.course, bench.assignment, clients=2) as two:
        assert [len(host.clients) for host in two.hosts] == [1, 1]
        strike("host", times=1)
        assert results(graded(two, class_of_two)) == results(undisturbed)


@pytest.mark.parametrize(
    ("victim", "said"),
    [
        ("worker", "a worker was killed"),
        ("host", "the sandbox host does not answer"),
        ("grader", "the grader process ended"),
    ],
)
def test_who_is_killed_twice_is_named_and_the_others_go_on(
    bench: Bench,
    class_of_two: list[FoundSubmission],
    strike: Callable[..., None],
    victim: str,
    said: str,
) -> None:
    first, second = class_of_two
    strike(victim, times=2)
    lost, content = graded(bench, [first])[first.student]
    assert (lost.result, lost.untried, content) == (None, True, b"")
    assert said in lost.problem
    assert "once more" in lost.problem
    assert graded(bench, [second])[second.student][0].result is not None


def results(done: dict[str, tuple[Graded, bytes]]) -> dict[str, bytes | str]:
    return {
        student: content or scored.problem
        for student, (scored, content) in done.items()
    }


STOPPED: dict[str, Callable[[Worker], list[int]]] = {
    "worker": lambda worker: [pid_of(worker)],
    "jail": lambda worker: [pid_of(worker), parent_of(pid_of(worker))],
    "grader": lambda worker: [os.getpid()],
    "all": lambda worker: [os.getpid(), parent_of(pid_of(worker)), pid_of(worker)],
}


@pytest.mark.parametrize("whom", STOPPED)
def test_who_is_stopped_for_longer_than_any_limit_and_woken_changes_no_result(
    bench: Bench,
    class_of_two: list[FoundSubmission],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    whom: str,
) -> None:
    """As Ctrl-Z, a container that is paused, or a suspended laptop do it: a call may be asleep for
    0.4 s here.
    """
    limits = dataclasses.replace(
        bench.course.limits, call_seconds=0.2, submission_seconds=1.0
    )
    monkeypatch.setattr(
        bench.grader, "course", dataclasses.replace(bench.course, limits=limits)
    )
    for one in class_of_two:
        sleeps = {**STUDENTS[one.student], "attention": "import time\n" + SLEEPS}
        one.path.write_text(handed_in(sleeps), encoding="utf-8")
    undisturbed = graded(bench, class_of_two)
    honest = Worker.request

    def request(self: Worker, header: dict[str, Any], *rest: Any) -> Any:
        if header.get("name") == "attention" and not (tmp_path / "stopped").exists():
            (tmp_path / "stopped").touch()
            stop_for_a_while(STOPPED[whom](self))
        return honest(self, header, *rest)

    monkeypatch.setattr(Worker, "request", request)
    assert results(graded(bench, class_of_two)) == results(undisturbed)
    assert (tmp_path / "stopped").exists()


SLEEPS = ANSWERS["attention"].replace("    return", "    time.sleep(0.1)\n    return")
"""Still at work when it is stopped."""


def stop_for_a_while(processes: Sequence[int]) -> None:
    """Have processes stopped in a moment, and woken 1.2 seconds later, longer than a submission may
    take here.
    """
    if os.fork():
        return
    try:
        for number, seconds in ((signal.SIGSTOP, 0.05), (signal.SIGCONT, 1.2)):
            select.select([], [], [], seconds)
            for process in processes:
                os.kill(process, number)
    finally:
        os._exit(0)


def test_a_worker_that_is_killed_while_stand_ins_answer_costs_no_carried_point(
    bench: Bench,
    class_of_two: list[FoundSubmission],
    strike: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    undisturbed = graded(bench, class_of_two[1:])
    honest = Worker.request

    def request(self: Worker, header: dict[str, Any], *rest: Any) -> Any:
        answer = honest(self, header, *rest)
        if header["op"] == "stand_in":
            strike("worker", times=1)  # from here on: the first call with stand-ins
        return answer

    monkeypatch.setattr(Worker, "request", request)
    assert results(graded(bench, class_of_two[1:])) == results(undisturbed)
    assert len(list(tmp_path.glob("struck-*"))) == 1


def test_a_suite_that_catches_everything_does_not_hide_a_fault(
    bench: Bench, class_of_two: list[FoundSubmission], monkeypatch: pytest.MonkeyPatch
) -> None:
    def swallows(self: LoadedSuite, question: str, test: str) -> None:
        bench.clients[0].failed("the sandbox host does not answer")

    with monkeypatch.context() as patched:
        patched.setattr(LoadedSuite, "run", swallows)
        with pytest.raises(HostFailed):
            bench.grader.grade(bench.clients[0], class_of_two[0])
    bench.clients[0].fault = None


def test_the_one_grader_of_a_batch_of_nbgraders_tries_once_more_too(
    bench: Bench, class_of_two: list[FoundSubmission], strike: Callable[..., None]
) -> None:
    strike("host", times=1)
    result = bench.grade(class_of_two[0]).result
    assert result is not None
    assert result.score == result.max_score


# the pool


class Lines:
    """Lines to a host that can be counted."""

    def __init__(self, processes: int) -> None:
        self.clients: list[Any] = [
            SimpleNamespace(end_workers=lambda: None) for _ in range(processes)
        ]
        self.renewed = 0

    def renew_hosts(self) -> None:
        self.renewed += 1


def test_one_death_of_a_host_is_one_fault_however_many_met_it(tmp_path: Path) -> None:
    lines = Lines(processes=3)

    def work(_: HostClient, job: str) -> bytes:
        mark = tmp_path / f"tried-{job}"
        if not mark.exists():
            mark.touch()
            raise HostFailed("it has ended")
        return job.encode()

    done = list(Pool(cast("Any", lines), ["a", "b", "c"], work).run())
    assert sorted(ended.answer or b"" for ended in done) == [b"a", b"b", b"c"]
    assert lines.renewed == 1


def test_where_no_fresh_host_can_be_had_the_rest_is_named_at_once() -> None:
    class Broken(Lines):
        def renew_hosts(self) -> None:
            raise HostFailed("no memory")

    def work(_: HostClient, job: str) -> bytes:
        raise HostFailed("it has ended")

    done = list(Pool(cast("Any", Broken(processes=1)), ["a", "b"], work).run())
    assert done == [
        FinishedJob(
            job, fault="the sandbox host failed, and no other can be had: no memory"
        )
        for job in ("a", "b")
    ]


# the line to the host


CALL = {"op": "call", "name": "f", "value": None}


def test_an_answer_for_a_grader_that_died_is_nobody_elses(bench: Bench) -> None:
    client, limits = bench.clients[0], bench.course.limits
    child = os.fork()
    if not child:
        # dies between the request and the answer
        socket.recv_fds = lambda *_: os._exit(0)
        Worker(client, limits)
    os.waitpid(child, 0)
    first, second = Worker(client, limits), Worker(client, limits)
    first.kill()
    assert second.request(CALL, {}, 5.0, "f").header["missing"]
    second.kill()


def test_the_workers_of_a_grader_that_died_end(bench: Bench) -> None:
    client = HostClient(bench.clients[0]._control, bench.host.tier)
    worker = Worker(client, bench.course.limits)
    client.end_workers()
    with pytest.raises(WorkerKilled):
        worker.request(CALL, {}, 5.0, "f")


def test_a_process_that_used_up_its_cpu_time_was_not_killed_by_the_machine(
    bench: Bench,
) -> None:
    worker = Worker(
        bench.clients[0], dataclasses.replace(bench.course.limits, cpu_seconds=1)
    )
    cell = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True:\n    pass"
    with pytest.raises(StudentCrashed):
        next(worker.load([("spins", cell)], 60.0, "the cell"))
    assert bench.clients[0].fault is None


def test_a_fork_that_fails_leaves_the_host_in_its_own_namespace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[tuple[Any, ...]] = []
    server = ForkServer.__new__(ForkServer)
    server._tier, server._pid_namespace = "namespaces", 7
    kernel = SimpleNamespace(
        NEW_PID=1,
        unshare=lambda *arguments: calls.append(("unshare", *arguments)),
        setns=lambda *arguments: calls.append(("setns", *arguments)),
    )
    monkeypatch.setattr(fork_server, "system_calls", kernel)

    def fails() -> int:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(os, "fork", fails)
    with pytest.raises(BlockingIOError):
        server._fork_apart()
    assert calls == [("unshare", 1), ("setns", 7, 1)]

"""The pool's processes with work that the test makes up, on a bench without hosts."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from played_pool import PlayedBench, PlayedClient, first_time, run

from autograder.basics.errors import HostFailed, WorkerKilled
from autograder.grading import pool as pool_module
from autograder.grading.pool import FinishedJob, Pool

ONCE_MORE = ", and so it was when it was tried once more"


def test_each_job_has_its_answer() -> None:
    bench = PlayedBench(2)
    jobs = ["a", "b", "c", "d", "e"]
    finished = run(bench, jobs, lambda client, job: job.upper().encode())
    assert finished == {job: FinishedJob(job, job.upper().encode()) for job in jobs}
    assert bench.renewals == 0
    assert [client.ended for client in bench.clients] == [0, 0]


def test_a_pool_closes_the_pipes_of_its_processes() -> None:
    pool: Any = Pool(PlayedBench(2), ["a", "b"], lambda client, job: b"fine")  # type: ignore[arg-type]
    assert len(list(pool.run())) == 2
    graders = list(pool._graders.values())
    assert [grader.pipe.closed for grader in graders] == [True, True]
    # the pool has waited for each: no process is left to become a zombie
    assert [grader.process._popen.returncode for grader in graders] == [-9, -9]


def test_a_process_that_is_ended_is_gone(tmp_path: Path) -> None:
    pool: Any = Pool(PlayedBench(1), [], lambda client, job: b"fine")  # type: ignore[arg-type]
    grader = pool._start(0)
    grader.end()
    assert grader.pipe.closed
    assert grader.process._popen.returncode == -signal.SIGKILL


def test_without_jobs_nothing_is_started() -> None:
    def refuse(client: PlayedClient, job: str) -> bytes:
        raise AssertionError(job)

    assert run(PlayedBench(1), [], refuse) == {}


def test_every_client_has_a_process_of_its_own(tmp_path: Path) -> None:
    def work(client: PlayedClient, job: str) -> bytes:
        (tmp_path / job).touch()
        while len(list(tmp_path.iterdir())) < 2:  # both are at work at once
            time.sleep(0.005)
        return f"{client.slot} {os.getpid()}".encode()

    finished = run(PlayedBench(2), ["a", "b"], work)
    answers = [(job.answer or b"").split() for job in finished.values()]
    assert {slot for slot, _ in answers} == {b"0", b"1"}
    assert len({process for _, process in answers}) == 2


def test_a_process_does_one_job_after_the_other() -> None:
    def work(client: PlayedClient, job: str) -> bytes:
        return str(os.getpid()).encode()

    finished = run(PlayedBench(1), ["a", "b", "c"], work)
    processes = {job.answer for job in finished.values()}
    assert len(processes) == 1
    assert processes != {str(os.getpid()).encode()}


def test_an_error_is_tried_once_more_and_then_told() -> None:
    def work(client: PlayedClient, job: str) -> bytes:
        if job == "bad":
            raise ValueError("a number \udcff")
        return b"fine"

    bench = PlayedBench(1)
    finished = run(bench, ["bad", "good"], work)
    words = f"the grader failed with ValueError: a number ?{ONCE_MORE}"
    assert finished["bad"] == FinishedJob("bad", fault=words)
    assert finished["good"] == FinishedJob("good", b"fine")
    assert (bench.clients[0].ended, bench.renewals) == (2, 0)


def test_a_job_that_failed_once_has_its_answer(tmp_path: Path) -> None:
    def work(client: PlayedClient, job: str) -> bytes:
        if first_time(tmp_path / job):
            raise WorkerKilled("a worker was killed")
        return b"fine"

    bench = PlayedBench(1)
    assert run(bench, ["a"], work) == {"a": FinishedJob("a", b"fine")}
    assert (bench.clients[0].ended, bench.renewals) == (1, 0)


def test_a_worker_that_is_killed_is_told_in_its_own_words() -> None:
    def work(client: PlayedClient, job: str) -> bytes:
        raise WorkerKilled("a worker was killed")

    bench = PlayedBench(1)
    (job,) = run(bench, ["a"], work).values()
    assert job == FinishedJob("a", fault=f"a worker was killed{ONCE_MORE}")
    assert bench.renewals == 0


def test_a_process_that_ends_loses_one_job_and_no_other(tmp_path: Path) -> None:
    def work(client: PlayedClient, job: str) -> bytes:
        if job == "bad":
            os.kill(os.getpid(), signal.SIGKILL)
        return b"fine"

    bench = PlayedBench(1)
    finished = run(bench, ["a", "bad", "c"], work)
    words = f"the grader process ended while it graded this submission{ONCE_MORE}"
    assert finished["bad"] == FinishedJob("bad", fault=words)
    assert finished["a"].answer == finished["c"].answer == b"fine"
    assert bench.clients[0].ended == 2


def test_ctrl_c_is_for_the_driver_alone() -> None:
    def work(client: PlayedClient, job: str) -> bytes:
        os.kill(os.getpid(), signal.SIGINT)
        return b"fine"

    bench = PlayedBench(1)
    assert run(bench, ["a"], work) == {"a": FinishedJob("a", b"fine")}
    assert bench.clients[0].ended == 0


def test_a_host_that_failed_is_renewed(tmp_path: Path) -> None:
    def work(client: PlayedClient, job: str) -> bytes:
        if first_time(tmp_path / job):
            raise HostFailed("the host is gone")
        return b"fine"

    bench = PlayedBench(1)
    assert run(bench, ["a"], work) == {"a": FinishedJob("a", b"fine")}
    assert (bench.clients[0].ended, bench.renewals) == (0, 1)


def test_a_host_that_fails_twice_is_told() -> None:
    def work(client: PlayedClient, job: str) -> bytes:
        raise HostFailed("the host is gone")

    bench = PlayedBench(1)
    (job,) = run(bench, ["a"], work).values()
    assert job == FinishedJob("a", fault=f"the host is gone{ONCE_MORE}")
    assert bench.renewals == 2


def test_one_death_of_a_host_counts_once_for_all_processes(tmp_path: Path) -> None:
    """Both processes meet the first death, and job b fails once more by itself: its second failure
    is its first own one.
    """

    def work(client: PlayedClient, job: str) -> bytes:
        if first_time(tmp_path / job):
            while len(list(tmp_path.iterdir())) < 2:
                time.sleep(0.005)
            if job == "b":
                time.sleep(0.1)  # it is the second to tell
            raise HostFailed("the host is gone")
        if job == "b" and first_time(tmp_path / "b again"):
            raise ValueError("own")
        return b"fine"

    bench = PlayedBench(2)
    finished = run(bench, ["a", "b"], work)
    assert finished == {job: FinishedJob(job, b"fine") for job in ("a", "b")}
    assert bench.renewals == 1


def test_a_process_of_an_old_host_does_no_more_jobs(tmp_path: Path) -> None:
    """Job a fails while c is at work in the process that did b; then a is done in a new one."""

    def work(client: PlayedClient, job: str) -> bytes:
        if job == "a" and first_time(tmp_path / "a"):
            while not (tmp_path / "c").exists():
                time.sleep(0.005)
            raise HostFailed("the host is gone")
        if job == "c":
            (tmp_path / "c").touch()
            time.sleep(0.2)  # until the driver has renewed the hosts
        return str(os.getpid()).encode()

    bench = PlayedBench(2)
    finished = run(bench, ["a", "b", "c", "d"], work)
    answers = {job: done.answer for job, done in finished.items()}
    assert answers["b"] == answers["c"] != answers["a"]
    assert bench.renewals == 1


def test_a_process_that_was_busy_while_hosts_were_renewed_is_replaced(
    tmp_path: Path,
) -> None:
    """While a is at work b fails with its host; c is the first job with the new one, and then d
    comes to the process that did a.
    """

    def await_job(job: str) -> None:
        while not (tmp_path / job).exists():
            time.sleep(0.005)

    def work(client: PlayedClient, job: str) -> bytes:
        is_first = first_time(tmp_path / job)
        if job == "b" and is_first:
            raise HostFailed("the host is gone")
        if job == "a":
            await_job("c")
        if job == "c":
            await_job("d")
        return f"{client.slot} {os.getpid()}".encode()

    bench = PlayedBench(2)
    finished = run(bench, ["a", "b", "c", "d"], work)
    answers = {job: (done.answer or b"").split() for job, done in finished.items()}
    assert answers["a"][0] == answers["d"][0] != answers["c"][0]
    assert answers["a"][1] != answers["d"][1]
    assert bench.renewals == 1


def test_where_the_host_died_with_a_process_it_is_renewed(tmp_path: Path) -> None:
    def work(client: PlayedClient, job: str) -> bytes:
        if first_time(tmp_path / job):
            os._exit(0)
        return b"fine"

    bench = PlayedBench(1)
    bench.clients[0].fault = HostFailed("gone")
    assert run(bench, ["a"], work) == {"a": FinishedJob("a", b"fine")}
    assert bench.renewals == 1


def test_without_another_host_all_jobs_end_and_say_why() -> None:
    def work(client: PlayedClient, job: str) -> bytes:
        if job == "a":
            raise HostFailed("the host is gone")
        return b"fine"

    bench = PlayedBench(1)
    bench.refusal = "no walls stand"
    finished = run(bench, ["a", "b", "c"], work)
    words = "the sandbox host failed, and no other can be had: no walls stand"
    assert finished == {job: FinishedJob(job, fault=words) for job in ("a", "b", "c")}
    assert bench.renewals == 1


def test_past_the_time_no_job_begins() -> None:
    def work(client: PlayedClient, job: str) -> bytes:
        return b"fine"

    pool: Any = Pool(PlayedBench(1), ["a", "b"], work, until=time.monotonic())  # type: ignore[arg-type]
    assert sorted(pool.run(), key=lambda finished: finished.job) == [
        FinishedJob(job) for job in ("a", "b")
    ]
    assert pool._graders == {}  # no process was started


def test_what_is_at_work_when_the_time_is_up_is_ended(tmp_path: Path) -> None:
    def work(client: PlayedClient, job: str) -> bytes:
        (tmp_path / job).write_text(str(os.getpid()))
        time.sleep(60.0)
        return b"late"

    finished = run(PlayedBench(1), ["a", "b"], work, until=time.monotonic() + 0.3)
    assert finished == {job: FinishedJob(job) for job in ("a", "b")}
    process = int((tmp_path / "a").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_whoever_stops_listening_ends_the_processes(tmp_path: Path) -> None:
    def work(client: PlayedClient, job: str) -> bytes:
        if job == "a":
            return b"fine"
        (tmp_path / job).write_text(str(os.getpid()))
        time.sleep(60.0)
        return b"late"

    pool: Any = Pool(PlayedBench(2), ["a", "b"], work)  # type: ignore[arg-type]
    running = pool.run()
    assert next(running) == FinishedJob("a", b"fine")
    while not (tmp_path / "b").exists() or not (tmp_path / "b").read_text():
        time.sleep(0.005)
    running.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "b").read_text()), 0)


def test_what_a_suite_prints_is_for_nobody(capfd: pytest.CaptureFixture[str]) -> None:
    def work(client: PlayedClient, job: str) -> bytes:
        os.write(1, b"printed")
        return b"fine"

    run(PlayedBench(1), ["a"], work)
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("debug", [True, False])
def test_who_debugs_sees_where_a_grader_failed(
    debug: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def work(client: PlayedClient, job: str) -> bytes:
        raise ValueError(job)

    monkeypatch.delenv("AUTOGRADER_DEBUG", raising=False)
    if debug:
        monkeypatch.setenv("AUTOGRADER_DEBUG", "1")
    pool: Any = Pool(PlayedBench(1), ["a"], work)  # type: ignore[arg-type]
    assert pool._do(PlayedClient(0), "a") == b"-the grader failed with ValueError: a"
    assert ("Traceback" in capsys.readouterr().err) == debug


@pytest.mark.parametrize(("parent", "ends"), [(7, []), (8, [1])])
def test_a_process_ends_with_its_parent(
    monkeypatch: pytest.MonkeyPatch, parent: int, ends: list[int]
) -> None:
    """The kernel kills it later. A parent that ended before the kernel was asked is seen here."""
    asked: list[tuple[int, ...]] = []
    ended: list[int] = []
    library = SimpleNamespace(prctl=lambda *options: asked.append(options))
    monkeypatch.setattr(pool_module, "ctypes", SimpleNamespace(CDLL=lambda _: library))
    played_os = SimpleNamespace(getppid=lambda: 7, _exit=ended.append)
    monkeypatch.setattr(pool_module, "os", played_os)
    pool_module._end_with(parent)
    assert asked == [(1, signal.SIGKILL)]  # PR_SET_PDEATHSIG
    assert ended == ends

"""What a pool's driver waits for: answers until the time is up, and jobs that come later."""

from __future__ import annotations

import math
from multiprocessing import Pipe
from typing import Any

import pytest
from played_pool import PlayedBench, PlayedClient, run

from autograder.basics.errors import HostFailed
from autograder.grading import pool as pool_module
from autograder.grading.pool import FinishedJob, Pool


@pytest.mark.parametrize(
    ("until", "timeout"),
    [(math.inf, None), (1e9, 3600.0), (110.0, 10.0), (100.0, 0.0), (50.0, 0.0)],
)
def test_the_driver_waits_for_answers_until_the_time_is_up(
    monkeypatch: pytest.MonkeyPatch, until: float, timeout: float | None
) -> None:
    """At 100 s of the clock; at most an hour at once, since the kernel takes no months."""
    waits: list[Any] = []

    def wait(sources: list[Any], seconds: float | None) -> list[Any]:
        waits.append(seconds)
        return []

    monkeypatch.setattr(pool_module, "wait", wait)
    monkeypatch.setattr("time.monotonic", lambda: 100.0)
    pool: Any = Pool(PlayedBench(1), [], bytes, until=until)  # type: ignore[arg-type]
    assert list(pool._receive()) == []
    assert waits == [timeout]


class Arriving:
    """Jobs that come over a pipe."""

    def __init__(self) -> None:
        self.receiver, self.sender = Pipe(duplex=False)

    def fileno(self) -> int:
        return self.receiver.fileno()

    def receive(self) -> str:
        job: str = self.receiver.recv()
        return job


def test_jobs_that_come_later_are_done_too() -> None:
    arriving = Arriving()

    def work(client: PlayedClient, job: str) -> bytes:
        return job.upper().encode()

    bench = PlayedBench(1)
    pool: Any = Pool(bench, ["a"], work, arrivals=arriving)  # type: ignore[arg-type]
    running = pool.run()
    assert next(running) == FinishedJob("a", b"A")
    for job in ("b", "c"):
        arriving.sender.send(job)
        assert next(running) == FinishedJob(job, job.upper().encode())
    running.close()
    assert bench.clients[0].ended == 0  # the process of the first job did all


def test_without_another_host_no_more_jobs_are_taken() -> None:
    arriving = Arriving()

    def work(client: PlayedClient, job: str) -> bytes:
        raise HostFailed("the host is gone")

    bench = PlayedBench(1)
    bench.refusal = "no walls stand"
    arriving.sender.send("a")
    finished = run(bench, [], work, arrivals=arriving)
    words = "the sandbox host failed, and no other can be had: no walls stand"
    assert finished == {"a": FinishedJob("a", fault=words)}

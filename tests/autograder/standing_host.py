"""One host for many benches: to start one costs some twenty times what it costs to grade a small
submission.

For tests of what is done with a class. Those of hosts, of their walls and of their deaths start
their own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from autograder.course import Course
from autograder.grading.bench import Bench
from autograder.sandbox.host_process import HostClient, HostProcess, ReleasedCode
from autograder.sandbox.tiers import launch_host, prove_host


class LentHost:
    """As a `HostProcess`: connections to one that goes on when this is closed, without what was
    left in it.
    """

    def __init__(self, bench: Bench, clients: int, extras: tuple[str, ...]) -> None:
        self.tier, self.extras = bench.host.tier, extras
        # on a machine of many cores, fewer than asked for
        self.clients: Sequence[HostClient] = bench.clients[:clients]

    def close(self) -> str:
        for client in self.clients:
            client.end_workers()
        return ""


@contextlib.contextmanager
def lent(bench: Bench) -> Iterator[None]:
    """Inside, every other bench of this process that asks for no walls by name works on the host of
    this one.
    """

    def launch(
        course: Course,
        isolation: str,
        clients: int,
        extras: tuple[str, ...],
        code: ReleasedCode,
    ) -> LentHost | HostProcess:
        if isolation in ("auto", bench.host.tier):
            return LentHost(bench, clients, extras)
        return launch_host(course, isolation, clients, extras, code)

    def prove(course: Course, isolation: str, host: Any) -> Any:
        return (
            host if isinstance(host, LentHost) else prove_host(course, isolation, host)
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "autograder.grading.bench.GRADERS_A_HOST", 1 << 20
        )  # there is one host
        patch.setattr("autograder.grading.bench.launch_host", launch)
        patch.setattr("autograder.grading.bench.prove_host", prove)
        yield

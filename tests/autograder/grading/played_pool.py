"""A pool's processes with work that a test makes up, on a bench without hosts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from autograder.basics.errors import HostFailed, KitError
from autograder.grading.pool import FinishedJob, Pool


class PlayedClient:
    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.ended = 0
        self.fault: HostFailed | None = None

    def end_workers(self) -> None:
        self.ended += 1
        if self.fault is not None:
            raise self.fault


class PlayedBench:
    """So many clients; `renewals` counts the new hosts, and `refusal` says why there is none."""

    def __init__(self, clients: int) -> None:
        self.clients = [PlayedClient(slot) for slot in range(clients)]
        self.renewals = 0
        self.refusal = ""

    def renew_hosts(self) -> None:
        self.renewals += 1
        if self.refusal:
            raise KitError(self.refusal)
        for client in self.clients:
            client.fault = None


Work = Callable[[PlayedClient, str], bytes]


def run(
    bench: PlayedBench, jobs: list[str], work: Work, **options: Any
) -> dict[str, FinishedJob[str]]:
    """The finished jobs by job; each comes once."""
    pool: Any = Pool(bench, jobs, work, **options)  # type: ignore[arg-type]
    finished = list(pool.run())
    assert len(finished) == len({job.job for job in finished})
    return {job.job: job for job in finished}


def first_time(path: Path) -> bool:
    """Whether nobody was here before; processes share the answer by a file."""
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True

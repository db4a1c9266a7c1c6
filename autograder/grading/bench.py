"""Starts what grading needs, once for a class: proven hosts, and an assignment's grader, which is
loaded while the hosts load.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import signal
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self

from autograder.basics.errors import HostFailed
from autograder.course import Assignment, Course
from autograder.grading.extras import find_extras, needs_torch
from autograder.intake.released_notebook import load_release
from autograder.records.model import Graded
from autograder.records.submission import FoundSubmission
from autograder.sandbox.device import DeviceHost, open_device
from autograder.sandbox.host_process import (
    Device,
    HostClient,
    HostProcess,
    ReleasedCode,
)
from autograder.sandbox.tiers import launch_host, prove_host

GRADERS_A_HOST = 8
"""A host forks one worker after the other, and can do so for this many graders without letting them
wait for each other.
"""


class Bench:
    """Proven hosts and an assignment's grader. A context manager.

    Args:
        clients: how many processes will ask for workers.
        extras: libraries that hosts load beside torch (`extras.py`).
        device: where kernels run too; then one submission is graded at a time.

    Raises:
        KitError: the suite, the answer key or this machine cannot grade.
        DeviceUnavailable: the walls do not stand with the device, or the device does not work
            behind them.
    """

    def __init__(
        self,
        course: Course,
        assignment: Assignment,
        isolation: str = "auto",
        clients: int = 1,
        extras: tuple[str, ...] = (),
        device: Device | None = None,
    ) -> None:
        self.course = course
        self.assignment = assignment
        self._device_host: DeviceHost | None = None
        with_torch = needs_torch(assignment)
        if with_torch:
            extras = (*extras, "torch")
        self.hosts = self._launch_hosts(isolation, clients, extras)
        try:
            # torch swallows an interrupt while it loads
            with _collect_nothing(), delay_interrupts():
                if with_torch:
                    import torch

                from autograder.grading.grader import AssignmentGrader

                self.grader = AssignmentGrader(course, assignment)
            if with_torch:
                torch.set_num_threads(1)  # where somebody loaded torch before us
            gc.freeze()
            self._prove_hosts(isolation)
            if device is not None:
                self._open_device(isolation, device)
        except BaseException:
            self._close_hosts()
            raise

    @property
    def host(self) -> HostProcess:
        """The first host; all have the same walls."""
        return self.hosts[0]

    @property
    def isolation(self) -> str:
        """The walls and the device, as results name them."""
        return self.grader.isolation(self.clients[0])

    @property
    def clients(self) -> Sequence[HostClient]:
        """The clients of the hosts, one for each grader."""
        return [client for host in self.hosts for client in host.clients]

    @property
    def device(self) -> DeviceHost:
        """The host of the device that the bench was started with."""
        assert self._device_host is not None
        return self._device_host

    def _open_device(
        self,
        isolation: str,
        device: Device,
    ) -> None:
        self._device_host = open_device(self.course, isolation, device)
        self.grader.use_device(self._device_host)

    def _launch_hosts(
        self,
        isolation: str,
        clients: int,
        extras: tuple[str, ...],
    ) -> list[HostProcess]:
        release = load_release(self.assignment)
        given_cells = {
            cell.id: cell.source for cell in release.cells if cell.role == "given"
        }
        code = ReleasedCode(given_cells, release.companions)
        count = math.ceil(clients / GRADERS_A_HOST)
        hosts = []
        for number in range(count):
            share = clients // count + (number < clients % count)
            hosts.append(launch_host(self.course, isolation, share, extras, code))
        return hosts

    def _prove_hosts(self, isolation: str) -> None:
        """Prove the walls: the first host takes the best that stand, and the others the same."""
        self.hosts[0] = prove_host(self.course, isolation, self.host)
        for number, host in enumerate(self.hosts[1:], start=1):
            if host.tier != self.host.tier:
                host.close()
            self.hosts[number] = prove_host(self.course, self.host.tier, host)

    def grade(self, submission: FoundSubmission) -> Graded:
        """Grade one submission in this process; where the machine fails, once more from its start,
        with fresh hosts.

        Raises:
            HostFailed: the machine failed again; no submission is to blame.
        """
        try:
            return self.grader.grade(self.clients[0], submission)
        except HostFailed:
            self.renew_hosts()
            return self.grader.grade(self.clients[0], submission)

    def renew_hosts(self) -> None:
        """Start the hosts anew behind the same walls, after one has failed.

        Raises:
            KitError: no host can be had; nothing can be graded any more.
        """
        self._close_hosts()
        tier = self.host.tier
        extras = self.host.extras
        self.hosts = self._launch_hosts(tier, len(self.clients), extras)
        self._prove_hosts(tier)
        if self._device_host is not None:
            self._open_device(tier, self._device_host.device)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close_hosts()

    def _close_hosts(self) -> None:
        for host in self.hosts:
            host.close()
        if self._device_host is not None:
            self._device_host.host.close()


def start_bench(course: Course, assignment: Assignment) -> Bench:
    """A bench for submissions that are not known yet: ready for plots and optimizers.

    Raises:
        KitError: the suite, the answer key or this machine cannot grade.
    """
    return Bench(course, assignment, extras=extras_for_any(course, assignment))


def start_class_bench(
    course: Course,
    assignment: Assignment,
    files: Sequence[FoundSubmission],
    workers: int | None,
) -> Bench:
    """A bench for these submissions, with the libraries that they load.

    Args:
        workers: how many graders there are at most; None for one for each core.

    Raises:
        KitError: the suite, the answer key or this machine cannot grade.
    """
    graders = count_graders(workers, len(files))
    extras = find_extras(assignment, files, course.limits)
    return Bench(course, assignment, "auto", graders, extras)


def count_graders(workers: int | None, submissions: int) -> int:
    """How many graders so many submissions keep busy.

    Args:
        workers: the most; None for one for each core.
    """
    most = workers or os.cpu_count() or 1
    return max(1, min(most, submissions))


def extras_for_any(course: Course, assignment: Assignment) -> tuple[str, ...]:
    """The libraries that hosts load for submissions that are not known yet."""
    extras = {*find_extras(assignment, (), course.limits), "matplotlib"}
    if "torch" in extras:
        extras.add("dynamo")
    return tuple(sorted(extras))


@contextlib.contextmanager
def _collect_nothing() -> Iterator[None]:
    """Python looks for no garbage until this ends: nothing that is imported is ever freed."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextlib.contextmanager
def delay_interrupts() -> Iterator[None]:
    """Ctrl-C takes effect when this ends."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

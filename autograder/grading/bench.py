"""What grading needs, started once: proven hosts, and an assignment's grader, loaded while the
hosts load.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from autograder.basics.errors import HostFailed
from autograder.course import Assignment, Course
from autograder.grading.extras import extras_for, needs_torch
from autograder.grading.pool import interrupts_put_off
from autograder.intake.released_notebook import load_release
from autograder.records.model import FoundSubmission, Graded
from autograder.sandbox.device import DeviceHost, open_device
from autograder.sandbox.host_process import Device, HostClient, HostProcess
from autograder.sandbox.tiers import launch_host, prove_host

GRADERS_A_HOST = 8
"""A host forks one worker after the other; so many graders it serves without letting them wait for
each other.
"""


class Bench:
    """Proven hosts and an assignment's grader.

    A context manager.

    Args:
        clients: how many processes will ask for workers.
        device: where kernels run too; then one submission is graded at a time.

    Raises:
        KitError: the suite, the answer key or this machine cannot grade.
        DeviceUnavailable: the walls do not stand with the device, or it does not work behind them.
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
        self.course, self.assignment = course, assignment
        self._device_host: DeviceHost | None = None
        with_torch = needs_torch(assignment)
        self.hosts = self._launch(isolation, clients, (*extras, "torch") if with_torch else extras)
        try:
            gc.disable()  # nothing that is imported is ever freed
            with interrupts_put_off():  # torch swallows one while it loads
                if with_torch:
                    import torch

                from autograder.grading.grader import AssignmentGrader

                self.grader = AssignmentGrader(course, assignment)
            if with_torch:
                torch.set_num_threads(1)  # where somebody loaded torch before us
            gc.enable()
            gc.freeze()
            self._prove(isolation)
            if device is not None:
                self._open_device(isolation, device)
        except BaseException:
            self._close_hosts()
            raise

    @property
    def host(self) -> HostProcess:
        """The first of them: what is true of its walls is true of all."""
        return self.hosts[0]

    @property
    def isolation(self) -> str:
        """How results name what was graded behind."""
        return self.grader.behind(self.clients[0])

    @property
    def clients(self) -> Sequence[HostClient]:
        """The connections to the hosts, one for each grader."""
        return [client for host in self.hosts for client in host.clients]

    @property
    def device(self) -> DeviceHost:
        """The host of the device that the bench was started with."""
        assert self._device_host is not None
        return self._device_host

    def _open_device(self, isolation: str, device: Device) -> None:
        self._device_host = open_device(self.course, isolation, device)
        self.grader.use(self._device_host)

    def _launch(self, isolation: str, clients: int, extras: tuple[str, ...]) -> list[HostProcess]:
        count = math.ceil(clients / GRADERS_A_HOST)
        shares = [clients // count + (number < clients % count) for number in range(count)]
        given = {
            cell.id: cell.source
            for cell in load_release(self.assignment).cells
            if cell.role == "given"
        }
        return [launch_host(self.course, isolation, share, extras, given) for share in shares]

    def _prove(self, isolation: str) -> None:
        """The first host takes the best walls that stand, and the others take the same."""
        for number, host in enumerate(self.hosts):
            asked = self.host.tier if number else isolation
            if number and host.tier != asked:
                host.close()
            self.hosts[number] = prove_host(self.course, asked, host)

    def grade(self, found: FoundSubmission) -> Graded:
        """Grade one submission in this process; where the machine fails, once more from its start,
        with fresh hosts.

        Raises:
            HostFailed: it failed again; no submission is to blame.
        """
        try:
            return self.grader.grade(self.clients[0], found)
        except HostFailed:
            self.renew()
            return self.grader.grade(self.clients[0], found)

    def renew(self) -> None:
        """Start the hosts anew behind the same walls: one has failed.

        Raises:
            KitError: that cannot be done; nothing can be graded any more.
        """
        self._close_hosts()
        tier, extras = self.host.tier, self.host.extras
        self.hosts = self._launch(tier, len(self.clients), extras)
        self._prove(tier)
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


def bench_for_any(course: Course, assignment: Assignment) -> Bench:
    """A bench for submissions that are not known yet: it is ready for plots and optimizers.

    Raises:
        KitError: the suite, the answer key or this machine cannot grade.
    """
    extras = {*extras_for(assignment, (), course.limits), "matplotlib"}
    if "torch" in extras:
        extras.add("dynamo")
    return Bench(course, assignment, extras=tuple(sorted(extras)))

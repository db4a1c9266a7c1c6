"""A bench with a GPU: a host of its own, whose workers may use it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autograder.course import Assignment, Course
from autograder.grading.bench import Bench
from autograder.sandbox.device import open_device
from autograder.sandbox.host import Device

if TYPE_CHECKING:
    from autograder.grading.gpu import GpuGrader


class GpuBench(Bench):
    """A bench for one submission at a time, whose kernels run on the device too.

    Raises:
        DeviceUnavailable: the walls do not stand with the device, or it does not work behind them.
    """

    grader: GpuGrader

    def __init__(
        self,
        course: Course,
        assignment: Assignment,
        isolation: str = "auto",
        *,
        device: Device,
        extras: tuple[str, ...] = (),
    ) -> None:
        super().__init__(course, assignment, isolation, extras=extras)
        try:
            self.device = open_device(course, isolation, device)
            self.grader.use(self.device)
        except BaseException:
            self._close_hosts()
            raise

    def _load(self) -> GpuGrader:
        from autograder.grading.gpu import GpuGrader

        return GpuGrader(self.course, self.assignment)

    def renew(self) -> None:
        """Start the hosts anew, that of the device too."""
        super().renew()
        self.device = open_device(self.course, self.host.tier, self.device.device)
        self.grader.use(self.device)

    def _close_hosts(self) -> None:
        super()._close_hosts()
        if hasattr(self, "device"):
            self.device.host.close()

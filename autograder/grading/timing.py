"""How fast a function is on the device, beside a baseline on the same device: both behind walls,
the clock outside.

A call is too short for a clock on this side of a socket. So a request repeats it: the time of one
that repeats it many times, less that of one that makes it once, over the calls between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from autograder.records.model import Speed
from autograder.sandbox.device import DeviceHost
from autograder.sandbox.student import Student
from autograder.sandbox.worker_process import Worker
from autograder.suite.timed_functions import BASELINE, SpeedCase, SpeedTest
from autograder.wire.libraries import is_tensor

if TYPE_CHECKING:
    from torch import Tensor

LONG_ENOUGH, MOST_REPEATS, ROUNDS = 0.2, 4096, 3
"""Seconds that a timed request should take; calls in one at most; how often each is timed (the
fastest counts).
"""


class SpeedMeter:
    """Times a submission's function against the baseline. The baseline is timed once, by the first
    submission.
    """

    def __init__(self, device: DeviceHost, test: SpeedTest) -> None:
        self._device, self.test = device, test
        self._baseline: list[tuple[SpeedCase, Tensor, float]] = []

    def measure(self, worker: Worker) -> tuple[Speed, ...]:
        """The speed of each case in a worker that has run the submission's cells."""
        try:
            cases = self._cases()
        except Exception as error:  # of the suite's speed.py: nobody's result is lost for it
            return (Speed(BASELINE, 0.0, 0.0, f"the baseline itself has no speed here: {error}"),)
        student = self._student(worker)
        speeds = []
        for case, expected, baseline in cases:
            problem, seconds = "", 0.0
            try:
                result, seconds = _timed(student, self.test.function, case)
                problem = _difference(self.test.answer(result), expected, self.test.tolerance)
            # of the student's, or of what the suite's `answer` makes of a strange result
            except Exception as error:
                problem = f"it has no speed here: {error}"
            speeds.append(Speed(case.name, 0.0 if problem else seconds, baseline, problem))
        return tuple(speeds)

    def _student(self, worker: Worker) -> Student:
        return Student(lambda: worker, self._device.limits.call_seconds)

    def _cases(self) -> list[tuple[SpeedCase, Tensor, float]]:
        if not self._baseline:
            worker = Worker(self._device.client, self._device.limits)
            try:
                next(
                    worker.load(
                        [(BASELINE, self.test.baseline)],
                        self._device.limits.cell_seconds,
                        "the baseline",
                    )
                )
                student = self._student(worker)
                baseline = [(case, *_timed(student, BASELINE, case)) for case in self.test.cases()]
                if not all(is_tensor(result) and result.numel() for _, result, _ in baseline):
                    raise ValueError("it must give one tensor")
                self._baseline = baseline
            finally:
                worker.kill()
        return self._baseline


def _timed(student: Student, name: str, case: SpeedCase) -> tuple[Tensor, float]:
    """The last result, and the seconds of one call.

    Raises:
        StudentFault: the call fails.
        ValueError: no time can be told.
    """
    student.repeat(name, 1, (case.arguments, case.keywords))  # compiles, and warms what is cold
    _, seconds = student.repeat(name, 1)
    times = 2 if seconds >= LONG_ENOUGH else 1
    while seconds < LONG_ENOUGH and times < MOST_REPEATS:
        times *= 4
        _, seconds = student.repeat(name, times)
    many = min(student.repeat(name, times)[1] for _ in range(ROUNDS))
    once = min(student.repeat(name, 1)[1] for _ in range(ROUNDS))
    result, _ = student.repeat(name, times, give=True)
    if many <= once:
        raise ValueError("more calls take no longer than one")
    return result, (many - once) / (times - 1)


def _difference(answer: object, expected: Tensor, tolerance: float) -> str:
    """Why an answer is none, in words; "" where it is one."""
    if not is_tensor(answer) or answer.shape != expected.shape:
        return "it has no speed here: its result is not of the baseline's shape"
    off = float((answer.double() - expected.double()).abs().max())
    if not off <= tolerance:
        return f"it has no speed here: its result differs from the baseline's by {off:.2g}"
    return ""

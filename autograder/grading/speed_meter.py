"""Measures how fast a function is on the device, beside a baseline on the same device: both behind
walls, the clock outside.

A call is too short for a clock on this side of a socket. So a request repeats the call: the time of
a request with many calls, less the time of a request with one, over the number of calls between.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from autograder.records.model import Result, Speed
from autograder.records.submission import Submission
from autograder.sandbox.device import DeviceHost
from autograder.sandbox.student import Student
from autograder.sandbox.worker_process import Worker
from autograder.sitting.loaded_suite import LoadedSuite
from autograder.sitting.sitting import Sitting
from autograder.suite.timed_functions import BASELINE, SpeedCase, SpeedTest
from autograder.wire.libraries import is_tensor

if TYPE_CHECKING:
    from torch import Tensor

LONG_ENOUGH = 0.2
"""Seconds that a timed request should take."""
MOST_REPEATS = 4096
ROUNDS = 3
"""How often each request is timed; the fastest counts."""


class SpeedMeter:
    """Times a submission's function against the baseline. The baseline is timed once, by the first
    submission.
    """

    def __init__(
        self,
        device: DeviceHost,
        test: SpeedTest,
    ) -> None:
        self._device = device
        self.test = test
        self._baseline: list[tuple[SpeedCase, Tensor, float]] = []

    def measure_submission(
        self,
        suite: LoadedSuite,
        submission: Submission,
        result: Result,
    ) -> tuple[Speed, ...]:
        """The speeds of a submission; nothing where a test of the timed question did not pass.

        Raises:
            HostFailed: the device's host failed; without its speed a submission could lose a bonus.
        """
        question = next(q for q in result.questions if q.name == self.test.question)
        if any(test.outcome != "passed" for test in question.tests):
            return ()
        client = self._device.client
        limits = self._device.limits
        try:
            with contextlib.closing(
                Sitting(client, limits, suite, submission)
            ) as sitting:
                speeds = self.measure(sitting.workplace.worker())
        # whatever the error is, the result is there already, and is not lost for a time
        except Exception as error:
            problem = f"it has no speed here: {str(error) or repr(error)}"
            speeds = (Speed(self.test.function, 0.0, 0.0, problem),)
        if client.fault is not None:
            raise client.fault
        return speeds

    def measure(self, worker: Worker) -> tuple[Speed, ...]:
        """The speed of each case in a worker that has run the submission's cells."""
        try:
            baselines = self._time_baseline()
        # an error of the suite's speed.py: nobody's result is lost for it
        except Exception as error:
            return (
                Speed(
                    BASELINE,
                    0.0,
                    0.0,
                    f"the baseline itself has no speed here: {error}",
                ),
            )
        student = self._student(worker)
        speeds = []
        for case, expected, baseline_seconds in baselines:
            problem = ""
            seconds = 0.0
            try:
                answer, measured = _time_call(student, self.test.function, case)
                problem = _explain_difference(
                    self.test.answer(answer), expected, self.test.tolerance
                )
                if not problem:
                    seconds = measured
            # the student's, or that of the suite's `answer` on a strange result
            except Exception as error:
                problem = f"it has no speed here: {error}"
            speeds.append(Speed(case.name, seconds, baseline_seconds, problem))
        return tuple(speeds)

    def _student(self, worker: Worker) -> Student:
        return Student.in_worker(worker, self._device.limits.call_seconds)

    def _time_baseline(self) -> list[tuple[SpeedCase, Tensor, float]]:
        """Each case with the baseline's result and time."""
        if self._baseline:
            return self._baseline
        limits = self._device.limits
        worker = Worker(self._device.client, limits)
        try:
            cell = (BASELINE, self.test.baseline)
            next(worker.load([cell], limits.cell_seconds, "the baseline"))
            student = self._student(worker)
            baseline = [
                (case, *_time_call(student, BASELINE, case))
                for case in self.test.cases()
            ]
        finally:
            worker.kill()
        if not all(is_tensor(result) and result.numel() for _, result, _ in baseline):
            raise ValueError("it must give one tensor")
        self._baseline = baseline
        return baseline


def _time_call(
    student: Student,
    name: str,
    case: SpeedCase,
) -> tuple[Tensor, float]:
    """The last result, and the seconds of one call.

    Raises:
        StudentFault: the call fails.
        ValueError: no time can be told.
    """
    student.repeat(
        name, 1, (case.arguments, case.keywords)
    )  # compiles, and warms what is cold
    _, seconds = student.repeat(name, 1)
    times = 2 if seconds >= LONG_ENOUGH else 1
    while seconds < LONG_ENOUGH and times < MOST_REPEATS:
        times *= 4
        _, seconds = student.repeat(name, times)
    many = min([student.repeat(name, times)[1] for _ in range(ROUNDS)])
    once = min([student.repeat(name, 1)[1] for _ in range(ROUNDS)])
    result, _ = student.repeat(name, times, give=True)
    if many <= once:
        raise ValueError("more calls take no longer than one")
    return result, (many - once) / (times - 1)


def _explain_difference(
    answer: object,
    expected: Tensor,
    tolerance: float,
) -> str:
    """Why an answer is wrong, in words; "" where the answer is right."""
    if not is_tensor(answer) or answer.shape != expected.shape:
        return "it has no speed here: its result is not of the baseline's shape"
    difference = float((answer.double() - expected.double()).abs().max())
    if not difference <= tolerance:  # NaN too
        return f"it has no speed here: its result differs from the baseline's by {difference:.2g}"
    return ""

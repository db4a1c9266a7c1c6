"""A sitting on a GPU beside the interpreter: passed tests run on the GPU once more.

Tests that launch no kernel, or fail in the interpreter, never run on the GPU.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from autograder.basics.errors import HostFailed, StudentFault, StudentTimeout
from autograder.course import Limits
from autograder.records.submission import Submission
from autograder.sandbox.device import DeviceHost
from autograder.sandbox.host_process import HostClient
from autograder.sandbox.student import Student
from autograder.sitting.loaded_suite import LoadedSuite
from autograder.sitting.sitting import HANGS_BEFORE_GIVING_UP, Sitting, TestRun
from autograder.sitting.verdict import Verdict
from autograder.suite.calls import Launch, last_call
from autograder.suite.collection import SuiteQuestion, SuiteTest


class GpuSitting(Sitting):
    """A sitting in which a test that launched kernels and passed runs once more, in workers of its
    own on the device.

    Each question has workers of its own in the interpreter too: a worker keeps what a kernel did to
    it.
    """

    def __init__(
        self,
        client: HostClient,
        limits: Limits,
        suite: LoadedSuite,
        submission: Submission,
        device: DeviceHost,
    ) -> None:
        super().__init__(client, limits, suite, submission)
        self._on_device = Sitting(
            device.client, device.limits, suite, submission, self.watch
        )

    def run(
        self,
        question: SuiteQuestion,
        tests: tuple[str, ...] | None = None,
        stand_ins: tuple[str, ...] = (),
        *,
        keep_worker: bool = False,
        keep_calls: bool = False,
    ) -> dict[str, TestRun]:
        """Run a question's tests in the interpreter and then on the device."""
        runs = super().run(
            question, tests, stand_ins, keep_worker=True, keep_calls=True
        )
        hangs = 0
        for test in question.tests:
            run = runs.get(test.name)
            if run is None or not run.passed:
                continue
            launches = [call.launch for call in run.calls if call.launch is not None]
            if launches and hangs >= HANGS_BEFORE_GIVING_UP:
                message = "Not run on the GPU: two tests of this question hung there."
                run = TestRun(test.name, Verdict("timeout", message), ())
            elif launches:
                run, raised = self._run_on_device(
                    question, test, stand_ins, launches, run
                )
                hangs += isinstance(raised, StudentTimeout)
            if not keep_calls and run.passed:
                run = dataclasses.replace(run, calls=())
            runs[test.name] = run
        if not keep_worker:
            self.close()
        return runs

    def _run_on_device(
        self,
        question: SuiteQuestion,
        test: SuiteTest,
        stand_ins: tuple[str, ...],
        launches: Sequence[Launch],
        passed_run: TestRun,
    ) -> tuple[TestRun, BaseException | None]:
        """Run a test on the device: the run, with the calls that the test made in the interpreter,
        where it passed; and the exception that the test raised.
        """
        student = OnDevice(
            self._prepare_student(question, stand_ins),
            self._on_device._prepare_student(question, stand_ins),
            launches,
        )
        raised, log = self._run_test(question, test, student)
        if isinstance(raised, StudentFault):
            self._on_device.close()  # after a fault of a kernel no other runs in that process
        run = self._judge_run(question.name, test, raised, log, keep_calls=False)
        verdict = run.verdict
        if verdict.outcome != "passed":
            message = f"On the GPU (in the interpreter it passes): {verdict.message}"
            verdict = dataclasses.replace(verdict, message=message)
        return dataclasses.replace(run, verdict=verdict, calls=passed_run.calls), raised

    def _continue_worker(self, question: SuiteQuestion) -> bool:
        return False

    @property
    def _machine_fault(self) -> HostFailed | None:
        return super()._machine_fault or self._on_device._machine_fault

    def close(self) -> None:
        """End the workers, if there are any."""
        self._on_device.close()
        super().close()


class OnDevice:
    """Replaces `student` in a test that passed in the interpreter: the results of kernels come from
    the device, all others from the interpreter's worker again.

    Args:
        student: the submission in the interpreter's worker.
        device_student: the submission in a worker with a device.
        launches: the counts of the kernels in the interpreter, call by call: a device does not
            count.
    """

    def __init__(
        self,
        student: Student,
        device_student: Student,
        launches: Sequence[Launch],
    ) -> None:
        self._student = student
        self._device_student = device_student
        self._launches: Iterator[Launch] = iter(launches)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._student, name)

    def launch(
        self, name: str, /, *arguments: Any, **keywords: Any
    ) -> tuple[Any, Launch]:
        """As `Student.launch`, with the device's result."""
        result = getattr(self._device_student, name)(*arguments, **keywords)
        launch = next(self._launches, None)
        if launch is None:  # the test launches more than it did in the interpreter
            raise AssertionError(f"{name} answers differently than in the interpreter.")
        call = last_call()
        assert call is not None  # the device's
        call.launch = launch
        return result, launch

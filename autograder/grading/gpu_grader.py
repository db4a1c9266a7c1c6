"""A sitting on a GPU beside the interpreter: passed tests run there once more.

What launches no kernel, or fails in the interpreter, never comes here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from autograder.basics.errors import HostFailed, StudentFault, StudentTimeout
from autograder.course import Limits
from autograder.records.model import Submission
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

    Each question has workers of its own in the interpreter too: they keep what a kernel did to
    them.
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
        self._there = Sitting(device.client, device.limits, suite, submission, self.watch)

    def run(
        self,
        question: SuiteQuestion,
        tests: tuple[str, ...] | None = None,
        stand_ins: tuple[str, ...] = (),
        *,
        keep_worker: bool = False,
        keep_calls: bool = False,
    ) -> dict[str, TestRun]:
        """Run a question's tests, in the interpreter and then there."""
        runs = super().run(question, tests, stand_ins, keep_worker=True, keep_calls=True)
        hangs = 0
        for test in question.tests:
            if test.name not in runs or runs[test.name].verdict.outcome != "passed":
                continue
            run = runs[test.name]
            if launches := [call.launch for call in run.calls if call.launch is not None]:
                if hangs < HANGS_BEFORE_GIVING_UP:
                    run, raised = self._run_there(question, test, stand_ins, launches, run)
                    hangs += isinstance(raised, StudentTimeout)
                else:
                    said = "Not run on the GPU: two tests of this question hung there."
                    run = TestRun(test.name, Verdict("timeout", said), ())
            kept = keep_calls or run.verdict.outcome != "passed"
            runs[test.name] = run if kept else dataclasses.replace(run, calls=())
        if not keep_worker:
            self.close()
        return runs

    def _run_there(
        self,
        question: SuiteQuestion,
        test: SuiteTest,
        stand_ins: tuple[str, ...],
        launches: Sequence[Launch],
        passed: TestRun,
    ) -> tuple[TestRun, BaseException | None]:
        """The run of a test that `passed` in the interpreter, with the calls that it made there;
        and what it raised.
        """
        here, there = (
            self._prepare_student(question, stand_ins),
            self._there._prepare_student(question, stand_ins),
        )
        raised, log = self._run_test(question, test, OnDevice(here, there, launches))
        if isinstance(raised, StudentFault):
            self._there.close()  # after a fault of a kernel no other runs in that process
        run = self._judge_run(question.name, test, raised, log, keep_calls=False)
        verdict = run.verdict
        if verdict.outcome != "passed":
            said = f"On the GPU (in the interpreter it passes): {verdict.message}"
            verdict = dataclasses.replace(verdict, message=said)
        return dataclasses.replace(run, verdict=verdict, calls=passed.calls), raised

    def _continue_worker(self, question: SuiteQuestion) -> bool:
        return False

    @property
    def _machine_fault(self) -> HostFailed | None:
        return super()._machine_fault or self._there._machine_fault

    def close(self) -> None:
        """End the workers, if there are any."""
        self._there.close()
        super().close()


class OnDevice:
    """Stands for `student` in a test that passed in the interpreter: the answers of kernels come
    from the device, all else from where it came before.

    Args:
        student: the submission in the interpreter's worker.
        device: the submission in a worker with a device.
        launches: what the kernels of the test did in the interpreter, call by call: a device does
            not count.
    """

    def __init__(self, student: Student, device: Student, launches: Sequence[Launch]) -> None:
        self._student, self._device = student, device
        self._launches: Iterator[Launch] = iter(launches)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._student, name)

    def launch(self, name: str, /, *arguments: Any, **keywords: Any) -> tuple[Any, Launch]:
        """As `Student.launch`, with the device's result."""
        result = getattr(self._device, name)(*arguments, **keywords)
        launch = next(self._launches, None)
        if launch is None:  # the test asks for more than it did in the interpreter
            raise AssertionError(f"{name} answers differently than in the interpreter.")
        call = last_call()
        if call is not None:
            call.launch = launch
        return result, launch

"""`student` in the second run of a test: the answers of kernels come from the device, all else from where it came
before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from autograder.sandbox.student import Student
from autograder.suite.calls import Launch, last_call


class OnDevice:
    """Stands for `student` in a test that passed in the interpreter.

    Args:
        student: the submission in the interpreter's worker.
        device: the submission in a worker with a device.
        launches: what the kernels of the test did in the interpreter, call by call: a device does not count.
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

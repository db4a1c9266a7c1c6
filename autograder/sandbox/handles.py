"""Objects and functions of the submission, as a test holds them: names of what stays in the worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from autograder.errors import StudentCrashed, StudentFault
from autograder.sandbox.worker import Worker
from autograder.suite.calls import Call, current_log
from autograder.suite.objects import DATA_NAMES, NotData
from autograder.text import clean
from autograder.wire.values import HandleReference

if TYPE_CHECKING:
    from autograder.sandbox.student import Student


class StudentFunction(NotData):
    """A function or a class of the submission, by its name."""

    def __init__(self, student: Student, name: str) -> None:
        self._student, self.name = student, name

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._student._call(self.name, {"name": self.name}, arguments, keywords)[0]

    def described(self) -> str:
        return "a function"

    def as_data(self, *_: Any) -> NoReturn:
        raise AssertionError(f"`{self.name}` is a function, where data is expected.")


class Method(NotData):
    """A method of an object that stays in the worker."""

    def __init__(self, owner: Handle, attribute: str) -> None:
        self._owner, self._attribute = owner, attribute
        self.name = f"{owner.name}.{attribute}"

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._owner.call(self.name, {"attribute": self._attribute}, arguments, keywords)

    def described(self) -> str:
        return "a method (is a `@property` missing?)"

    def as_data(self, *_: Any) -> NoReturn:
        raise AssertionError(f"`{self.name}` is {self.described()}, where data is expected.")


class Handle(NotData):
    """An object that stays in the worker. Attributes that are data come as data; methods are called there.

    Attributes:
        reference: its number there, and what its class is called there.
        asked_for: whether the test asked for an object here. On another one no name that data has is looked up:
            `answer.sum()` means a tensor.
        of_suite: whether it is of the suite's own making, and not the student's.
    """

    def __init__(self, student: Student, worker: Worker, reference: HandleReference, origin: Call) -> None:
        self._student, self._at, self._origin = student, worker, origin
        self.reference = reference
        self.asked_for = self.of_suite = False
        self.name = clean(reference.kind, 80)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self.call(self.name, {}, arguments, keywords)

    def call(self, shown: str, target: dict[str, Any], arguments: Sequence[Any], keywords: dict[str, Any]) -> Any:
        """Call the object, or the attribute of it that `target` names."""
        self._still_there()
        target = {"handle": self.reference.number, **target}
        return self._student._call(shown, target, arguments, keywords, self.of_suite)[0]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if not self.asked_for and name in DATA_NAMES:
            self.as_data()
        self._still_there()
        call = Call(f"{self.name}.{name}", (), {}, of_suite=self.of_suite, is_attribute=True)
        header = {"op": "get", "handle": self.reference.number, "attribute": name}
        frame = self._at.request(header, {}, self._student._call_seconds, call.name)
        if frame.header.get("method") is True:
            return Method(self, name)
        current_log().note(call)
        try:
            call.result = self._student._value(frame, call, self._at, [])[0]
        except StudentFault as fault:
            call.fault = fault
            raise
        return call.result

    def described(self) -> str:
        return f"an object of class {self.name}"

    def as_data(self, *_: Any) -> NoReturn:
        raise AssertionError(
            f"`{current_log().describe(self._origin)}` gives {self.described()}, where data is expected "
            "(a tensor, a number, a list)."
        )

    def _still_there(self) -> None:
        if not self._at.alive:
            raise StudentCrashed(f"{self.name} is gone with the process that it lived in")

"""The trusted side of stand-ins: answers a worker's questions to prerequisites with the answer
key's.

Functions of a test's own, which it gives the student's code to call, are answered here too: so
there is nothing of them to read over there.

A stand-in is asked with data and answers with data. Objects of the answer key's classes (a cache)
stay here, and the worker holds their numbers. A hostile worker may ask for anything, as often as it
likes: what was not stood in for is refused, and so is what is too large, or too much, or takes too
long.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from autograder.basics.errors import HostFailed, StudentFault
from autograder.course import Limits
from autograder.sandbox.bounds import (
    OutOfTime,
    interruptible_gradients,
    memory_bound,
    pages_in_use,
    time_bound,
)
from autograder.suite.calls import size_in_bytes
from autograder.wire.frames import Block, Frame, WireError
from autograder.wire.signatures import signature_digest
from autograder.wire.values import Decoder, Encoder, HandleReference

if TYPE_CHECKING:
    from torch import Tensor

Ask = Callable[[dict[str, Any], dict[str, Block]], Frame]
"""Asks the worker: a header and tensors, and its answer."""

MOST_QUESTIONS = 1000
"""Questions that one worker may ask: each is kept, for its gradients."""
LARGEST_QUESTION = 16 << 20
"""Bytes of the arguments of one question. One operation of the answer key on them cannot be
interrupted: with so many numbers, and the memory that a worker has, it ends within seconds.
"""


class WorkerObject:
    """An object of the worker's among the arguments of a stand-in: the answer key's function asks
    it over there.
    """

    def __init__(self, number: int, ask: Ask) -> None:
        self._number, self._ask = number, ask

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        frame = self._ask({"op": "get", "handle": self._number, "attribute": name}, {})
        if frame.header.get("ok") is not True:
            raise AttributeError(name)  # a function may ask whether there is one
        if frame.header.get("method") is not True:
            return self._value(frame)
        return lambda *arguments, **keywords: self._call({"attribute": name}, arguments, keywords)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._call({}, arguments, keywords)

    def _call(
        self, target: dict[str, Any], arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Any:
        encoder = Encoder(
            lambda value: (
                HandleReference(value._number) if isinstance(value, WorkerObject) else None
            )
        )
        value = encoder.encode([list(arguments), keywords])
        header = {"op": "call", "handle": self._number, **target, "value": value}
        return self._value(self._ask(header, encoder.tensors))

    def _value(self, frame: Frame) -> Any:
        """What came back. Raises: ValueError where the object raised something."""
        if frame.header.get("ok") is not True:
            error = frame.header.get("error")
            raise ValueError(str(error.get("message", "")) if isinstance(error, dict) else "")
        return Decoder(
            frame.tensors, lambda reference: WorkerObject(reference.number, self._ask)
        ).decode(frame.header.get("value"))


class StandIns:
    """Answers the questions of one worker, gradients included.

    Args:
        names: functions and classes of the answer key that are stood in for.
        limits: all answers together take as much processor time as four calls may, and as much
            memory as a worker.
    """

    def __init__(self, names: Mapping[str, Any], limits: Limits) -> None:
        self._names, self._memory_mb = names, limits.memory_mb
        self._pages = pages_in_use()
        self._seconds = 4 * limits.call_seconds
        self._classes = {name: value for name, value in names.items() if isinstance(value, type)}
        self._objects: list[Any] = []
        self._lent: list[Callable[..., Any]] = []
        self._links: list[tuple[list[Tensor], list[Tensor]]] = []

    def request(self) -> dict[str, Any]:
        """What the worker is told: the names of functions with a digest of their signatures, and
        those of classes with their methods.
        """
        functions = {
            name: signature_digest(value)
            for name, value in self._names.items()
            if name not in self._classes
        }
        classes = {name: _methods(value) for name, value in self._classes.items()}
        return {"op": "stand_in", "functions": functions, "classes": classes}

    def lend(self, function: Callable[..., Any]) -> int:
        """The number, below 0, under which the worker may call a function of a test's own from now
        on.
        """
        if function not in self._lent:
            self._lent.append(function)
        return -1 - self._lent.index(function)

    def answer(self, frame: Frame, ask: Ask) -> Frame:
        """The answer to one question, or a refusal: the student's function gave its prerequisite
        wrong arguments.

        Args:
            ask: asks the worker while it waits, about an object of its own among the arguments.

        Raises:
            StudentFault, HostFailed: the worker did not survive that.
        """
        began = time.process_time()
        try:
            with memory_bound(self._memory_mb, self._pages), time_bound(max(self._seconds, 0.01)):
                return self._answer(frame, ask)
        except Exception as error:
            if isinstance(error, (StudentFault, HostFailed)) and not isinstance(error, OutOfTime):
                raise
            asked = frame.header["stand_in"]
            if isinstance(asked, dict) and "function" in asked:
                # a function of the test's own, on the student's arguments: its words help, and hide
                # nothing
                said = {"raised": f"{type(error).__name__}: {error}"[:300]}
            else:
                said = {"refused": _refusal(error)}
            return Frame({"id": frame.header["id"], **said}, {})
        finally:
            self._seconds -= time.process_time() - began

    def _answer(self, frame: Frame, ask: Ask) -> Frame:
        def resolve(reference: HandleReference) -> Any:
            number = reference.number
            return self._objects[number] if number >= 0 else WorkerObject(-1 - number, ask)

        decoder = Decoder(frame.tensors, resolve)
        value = decoder.decode(frame.header.get("value"))
        if len(self._links) >= MOST_QUESTIONS or size_in_bytes(value) > LARGEST_QUESTION:
            raise WireError("too many questions to stand-ins, or too large a one")
        question = frame.header["stand_in"]
        encoder = Encoder(self._reference)
        counter = None
        if question.get("cost"):
            from autograder.wire.cost_counter import CostCounter

            counter = CostCounter()
        if "backward" in question:
            from autograder.wire.gradients import pull

            inputs, outputs = self._links[question["backward"]]
            # a pass back costs what it costs the answer key
            with counter or contextlib.nullcontext():
                answer = pull(outputs, inputs, value)
        else:
            with counter or contextlib.nullcontext(), interruptible_gradients():
                answer = self._ask(question, *value)
        encoded = encoder.encode(answer)
        if "function" not in question or (decoder.grad_tensors and encoder.grad_tensors):
            self._links.append((decoder.grad_tensors, encoder.grad_tensors))
        header = {"id": frame.header["id"], "value": encoded, "number": len(self._links) - 1}
        return Frame(header | ({"cost": counter.figures()} if counter else {}), encoder.tensors)

    def _ask(
        self, question: Mapping[str, Any], arguments: list[Any], keywords: dict[str, Any]
    ) -> Any:
        """What a function, a class or a method returns, or what an attribute holds."""
        if "function" in question:
            return self._lent[-1 - int(question["function"])](*arguments, **keywords)
        if "name" in question:
            return self._names[question["name"]](*arguments, **keywords)
        owner = self._objects[question["object"]]
        if "method" in question:
            if question["method"] not in (_methods(type(owner)) or ()):
                raise AttributeError(question["method"])
            return getattr(owner, question["method"])(*arguments, **keywords)
        if question["attribute"].startswith("_"):
            raise AttributeError(question["attribute"])
        return getattr(owner, question["attribute"])

    def _reference(self, value: Any) -> HandleReference | None:
        """The number of an object of a class that is stood in for; nothing else stays here."""
        kind = next((name for name, its in self._classes.items() if isinstance(value, its)), None)
        if kind is None:
            return None
        number = next(
            (number for number, known in enumerate(self._objects) if known is value),
            len(self._objects),
        )
        if number == len(self._objects):
            self._objects.append(value)
        return HandleReference(number, kind)


def _methods(value: Any) -> list[str] | None:
    """The methods of a class of the answer key, those of Python's protocols too; None for a
    function.
    """
    if not isinstance(value, type):
        return None
    own = (vars(base) for base in value.__mro__ if base is not object)
    names = {
        name for members in own for name, member in members.items() if inspect.isfunction(member)
    }
    public = {name for name in names if not name.startswith("_") or name.endswith("__")}
    return sorted(
        public - {"__init__", "__new__", "__getattr__", "__setattr__", "__getattribute__"}
    )


def _refusal(error: Exception) -> str:
    """What a student may read: the sizes that the answer key's refusal names, and nothing else of
    it.
    """
    sizes = ", ".join(re.findall(r"\d+", str(error))[:12]) if type(error) is ValueError else ""
    return f"these arguments cannot be right{f' ({sizes})' if sizes else ''}"

"""The trusted side of stand-ins: calls the answer key's functions for a worker.

A worker also calls functions of the test's own here, which a test passes to the student's code: so
the worker has no text of theirs to read.

Arguments and answers are data. Objects of the answer key's classes (a cache) stay here, and the
worker has their numbers. A hostile worker may ask for anything, as often as it likes: the trusted
side refuses functions that are not stood in for, questions that are too large or too many, and
answers that take too long.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
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
"""Sends a header and tensors to the worker, and returns the reply."""

MOST_QUESTIONS = 10_000
"""Questions that one worker may ask: each is kept, for its gradients. A scheduler asks its cache
for thousands of things, and limits on processor time and memory stand besides.
"""
LARGEST_QUESTION = 16 << 20
"""Bytes of the arguments of one question. An operation of the answer key cannot be interrupted: on
so few numbers, and with the memory of a worker, it ends within seconds.
"""


class WorkerObject:
    """An object in the worker that is an argument of a stand-in. The answer key's function uses the
    object by requests to the worker.
    """

    def __init__(self, number: int, ask: Ask) -> None:
        self._number, self._ask = number, ask

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        frame = self._ask({"op": "get", "handle": self._number, "attribute": name}, {})
        if frame.header.get("ok") is not True:
            raise AttributeError(name)  # so that hasattr works
        if frame.header.get("method") is not True:
            return self._read_value(frame)
        return lambda *arguments, **keywords: self._call(
            {"attribute": name}, arguments, keywords
        )

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._call({}, arguments, keywords)

    def _call(
        self,
        target: dict[str, Any],
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> Any:
        encoder = Encoder(_worker_reference)
        value = encoder.encode([list(arguments), keywords])
        header = {"op": "call", "handle": self._number, **target, "value": value}
        frame = self._ask(header, encoder.tensors)
        answer = self._read_value(frame)
        if not encoder.grad_tensors:
            return answer
        from autograder.wire.gradients import linked

        fetch = partial(
            self._fetch_gradients, frame.header.get("id"), encoder.grad_tensors
        )
        return linked(answer, encoder.grad_tensors, fetch)

    def _fetch_gradients(
        self,
        call: Any,
        inputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor | None],
    ) -> list[Tensor | None]:
        """The gradients of a call's inputs: a stand-in differentiates through the object.

        Raises:
            ValueError: the object raised an exception.
            WireError: the worker has not a gradient for each input, or one of another shape.
        """
        encoder = Encoder(_worker_reference)
        value = encoder.encode(list(output_gradients))
        header = {"op": "backward", "call": call, "value": value}
        gradients = self._read_value(self._ask(header, encoder.tensors))
        from autograder.wire.gradients import match_gradients

        forms = [(tensor.shape, tensor.dtype) for tensor in inputs]
        return match_gradients(gradients, forms)

    def _read_value(self, frame: Frame) -> Any:
        """The value of a reply.

        Raises:
            ValueError: the object raised an exception.
        """
        if frame.header.get("ok") is not True:
            error = frame.header.get("error")
            raise ValueError(
                str(error.get("message", "")) if isinstance(error, dict) else ""
            )
        decoder = Decoder(frame.tensors, self._same_worker_object)
        return decoder.decode(frame.header.get("value"))

    def _same_worker_object(self, reference: HandleReference) -> WorkerObject:
        return WorkerObject(reference.number, self._ask)


def _worker_reference(value: Any) -> HandleReference | None:
    return HandleReference(value._number) if isinstance(value, WorkerObject) else None


class StandIns:
    """Answers the questions of one worker, gradients included.

    Args:
        names: functions and classes of the answer key for which stand-ins are called.
        limits: all answers together may take the processor time of four calls, and the memory of a
            worker.
    """

    def __init__(self, names: Mapping[str, Any], limits: Limits) -> None:
        self._names, self._memory_mb = names, limits.memory_mb
        self._pages = pages_in_use()
        self._seconds = 4 * limits.call_seconds
        self.has_answered = False  # whether the worker has had an answer
        self._classes = {
            name: value for name, value in names.items() if isinstance(value, type)
        }
        self._objects: list[Any] = []
        self._lent: list[Callable[..., Any]] = []
        self._links: list[tuple[list[Tensor], list[Tensor]]] = []

    def request(self) -> dict[str, Any]:
        """The request that sets stand-ins up in the worker: functions with digests of their
        signatures, and classes with their methods.
        """
        functions = {}
        classes = {}
        for name, value in self._names.items():
            if name in self._classes:
                classes[name] = _methods(value)
            else:
                functions[name] = signature_digest(value)
        return {"op": "stand_in", "functions": functions, "classes": classes}

    def lend(self, function: Callable[..., Any]) -> int:
        """Let the worker call a function of the test's own, by the returned number below 0."""
        if function not in self._lent:
            self._lent.append(function)
        return -1 - self._lent.index(function)

    def answer(self, frame: Frame, ask: Ask) -> Frame:
        """The reply to one question: an answer, or a refusal of the arguments.

        Args:
            ask: sends requests to the waiting worker, about objects among the arguments.

        Raises:
            StudentFault, HostFailed: the worker died of such a request.
        """
        began = time.process_time()
        self.has_answered = True
        try:
            with memory_bound(self._memory_mb, self._pages), time_bound(self._seconds):
                return self._answer(frame, ask)
        except Exception as error:
            if isinstance(error, (StudentFault, HostFailed)) and not isinstance(
                error, OutOfTime
            ):
                raise
            header = {"id": frame.header["id"]}
            question = frame.header["stand_in"]
            if isinstance(question, dict) and "function" in question:
                # the test's own function with the student's arguments: its message hides nothing
                header["raised"] = f"{type(error).__name__}: {error}"[:300]
            else:
                header["refused"] = _refusal(error)
            return Frame(header, {})
        finally:
            self._seconds -= time.process_time() - began

    def _answer(self, frame: Frame, ask: Ask) -> Frame:
        decoder = Decoder(frame.tensors, partial(self._find_object, ask))
        value = decoder.decode(frame.header.get("value"))
        if (
            len(self._links) >= MOST_QUESTIONS
            or size_in_bytes(value) > LARGEST_QUESTION
        ):
            raise WireError("too many questions to stand-ins, or too large a one")
        question = frame.header["stand_in"]
        counter = None
        if question.get("cost"):
            from autograder.wire.cost_counter import CostCounter

            counter = CostCounter()
        # the worker is charged what the answer key computes, backward passes too
        with counter or contextlib.nullcontext():
            if "backward" in question:
                from autograder.wire.gradients import pull

                inputs, outputs = self._links[question["backward"]]
                answer = pull(outputs, inputs, value)
            else:
                with interruptible_gradients():
                    answer = self._call(question, *value)
        encoder = Encoder(self._refer_to)
        header = {"id": frame.header["id"], "value": encoder.encode(answer)}
        if "function" not in question or (
            decoder.grad_tensors and encoder.grad_tensors
        ):
            self._links.append((decoder.grad_tensors, encoder.grad_tensors))
        header["number"] = len(self._links) - 1
        if counter:
            header["cost"] = counter.figures()
        return Frame(header, encoder.tensors)

    def _call(
        self,
        question: Mapping[str, Any],
        arguments: list[Any],
        keywords: dict[str, Any],
    ) -> Any:
        """The result of a function, class or method, or the value of an attribute."""
        if "function" in question:
            return self._lent[-1 - int(question["function"])](*arguments, **keywords)
        if "name" in question:
            return self._names[question["name"]](*arguments, **keywords)
        owner = self._objects[question["object"]]
        if "method" in question:
            method = question["method"]
            if method not in _methods(type(owner)):
                raise AttributeError(method)
            return getattr(owner, method)(*arguments, **keywords)
        attribute = question["attribute"]
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        return getattr(owner, attribute)

    def _find_object(self, ask: Ask, reference: HandleReference) -> Any:
        """The object of a number: the answer key's from 0 on, the worker's below."""
        if reference.number >= 0:
            return self._objects[reference.number]
        return WorkerObject(-1 - reference.number, ask)

    def _refer_to(self, value: Any) -> HandleReference | None:
        """The number of an object of the answer key's classes; None for any other object, which may
        not cross.
        """
        kinds = [
            name for name, kind in self._classes.items() if isinstance(value, kind)
        ]
        if not kinds:
            return None
        for number, stored in enumerate(self._objects):
            if stored is value:
                return HandleReference(number, kinds[0])
        self._objects.append(value)
        return HandleReference(len(self._objects) - 1, kinds[0])


def _methods(kind: type) -> list[str]:
    """The methods of a class of the answer key, those of Python's protocols too."""
    names: set[str] = set()
    for base in kind.__mro__:
        if base is not object:
            names |= {
                name
                for name, member in vars(base).items()
                if inspect.isfunction(member)
            }
    public = {name for name in names if not name.startswith("_") or name.endswith("__")}
    return sorted(
        public
        - {"__init__", "__new__", "__getattr__", "__setattr__", "__getattribute__"}
    )


def _refusal(error: Exception) -> str:
    """The message that a student may read: sizes that the answer key's refusal names, and nothing
    else of it.
    """
    text = "these arguments cannot be right"
    sizes = re.findall(r"\d+", str(error))[:12] if type(error) is ValueError else []
    return f"{text} ({', '.join(sizes)})" if sizes else text

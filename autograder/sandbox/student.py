"""`student`: what a test calls. Every call crosses to the worker and comes back as data, a handle or a StudentFault."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor
from torch.autograd import Function
from torch.utils._pytree import tree_flatten, tree_unflatten

from autograder.errors import StudentCrashed, StudentError, StudentFault, StudentForbidden, StudentMissing
from autograder.sandbox.text import plain
from autograder.sandbox.worker import Worker
from autograder.suite.calls import Call, Cost, Launch, current_log, last_call
from autograder.wire.frames import Frame, WireError
from autograder.wire.values import Decoder, Encoder, HandleReference


class Student:
    """The submission in one worker.

    Args:
        worker: gives the worker (made when it is first needed, and anew after a kill).
        call_seconds: limit of one call.
        sources: text of the cell that answers each question.
        why_missing: what to tell a student whose function is not there.
    """

    def __init__(
        self,
        worker: Callable[[], Worker],
        call_seconds: float,
        sources: dict[str, str],
        why_missing: Callable[[str], str],
    ) -> None:
        self._worker = worker
        self._call_seconds = call_seconds
        self._sources = sources
        self._why_missing = why_missing
        self._of_suite: set[tuple[int, int]] = set()

    def __getattr__(self, name: str) -> StudentFunction:
        if name.startswith("__"):
            raise AttributeError(name)
        return StudentFunction(self, name, {"name": name})

    def cost(self, name: str, /, *arguments: Any, **keywords: Any) -> Cost:
        """Call `name` and return what it cost, as the worker counted it."""
        _, cost = self._call(name, {"name": name, "cost": True}, arguments, keywords)
        if cost is None:
            raise StudentCrashed(f"{name} came back without its cost")
        return cost

    def launch(self, name: str, /, *arguments: Any, **keywords: Any) -> tuple[Any, Launch]:
        """Call `name`, which launches Triton kernels; its result, and what the kernels did."""
        result, _ = self._call(name, {"name": name, "launch": True}, arguments, keywords)
        call = last_call()
        if call is None or call.launch is None:
            raise StudentCrashed(f"{name} came back without the record of its kernels")
        return result, call.launch

    def repeat(
        self, name: str, times: int, given: tuple[Any, Any] | None = None, *, give: bool = False
    ) -> tuple[Any, float]:
        """Call `name` so many times in one request; the last result (None unless `give`), and the seconds it took.

        Arguments `given` (positional, keywords) are kept in the worker for the next time. A worker could call less
        often than it was asked to: this is for times, and no test.
        """
        header: dict[str, Any] = {"op": "repeat", "name": name, "times": times, "give": give}
        encoder = Encoder(_reference, keep_strides=True)
        if given is not None:
            header["value"] = encoder.encode([list(given[0]), dict(given[1])])
        worker = self._worker()
        started = time.perf_counter()
        frame = worker.request(header, encoder.tensors, self._call_seconds, name)
        seconds = time.perf_counter() - started
        return self._value(frame, name, worker, [])[0], seconds

    def define(self, source: str, name: str) -> Handle:
        """Define a function of the suite's own in the worker; it can be passed to the student's functions."""
        header = {"op": "define", "source": source, "name": name}
        frame = self._worker().request(header, {}, self._call_seconds, name)
        value = self._value(frame, name, self._worker(), [])[0]
        if not isinstance(value, Handle):
            raise StudentCrashed(f"{name} could not be defined")
        self._note_of_suite(value)
        return value

    def _note_of_suite(self, value: Any) -> None:
        """Objects that the suite's own code made: a message about the student's answer does not name them."""
        for leaf in tree_flatten(value)[0]:
            if isinstance(leaf, Handle):
                self._of_suite.add((id(leaf._at), leaf._reference.number))

    def source(self, name: str) -> str:
        """Text of the cell that answers a question; "" where there is none."""
        return self._sources.get(name, "")

    def _call(
        self, shown: str, target: dict[str, Any], arguments: Sequence[Any], keywords: dict[str, Any]
    ) -> tuple[Any, Cost | None]:
        call = Call(shown, tuple(arguments), dict(keywords))
        current_log().calls.append(call)
        try:
            worker = self._worker()
            call.of_suite = (id(worker), target.get("handle")) in self._of_suite
            encoder = Encoder(_reference, keep_strides=True)
            value = encoder.encode([list(arguments), dict(keywords)])
            header = {"op": "call", **target, "value": value}
            frame = worker.request(header, encoder.tensors, self._call_seconds, shown)
            call.changed = tuple(plain(str(name), 80) for name in _items(frame.header.get("changed", [])))
            call.result, call.cost = self._value(frame, shown, worker, encoder.grad_tensors, call)
            if call.of_suite:
                self._note_of_suite(call.result)
            call.launch = _launch(frame.header["launch"], shown) if "launch" in frame.header else None
        except StudentFault as fault:
            call.fault = fault
            raise
        return call.result, call.cost

    def _value(
        self, frame: Frame, shown: str, worker: Worker, inputs: list[Tensor], call: Call | None = None
    ) -> tuple[Any, Cost | None]:
        """The value of an answer, checked, or the fault that it tells of."""
        header = frame.header
        if header.get("missing") is True:
            raise StudentMissing(self._why_missing(shown))
        if forbidden := header.get("forbidden"):
            raise StudentForbidden(
                f"`{shown}` calls {plain(str(forbidden), 120)}, which this question is about: write it out instead."
            )
        if header.get("ok") is not True:
            raise _error(header, shown)
        try:
            decoder = Decoder(frame.tensors, lambda reference: Handle(self, worker, reference))
            value = decoder.decode(header.get("value"))
            cost = _cost(header["cost"]) if "cost" in header else None
        except WireError as error:
            worker.kill()
            raise StudentCrashed(f"{shown} gave an answer that cannot be taken: {error}.") from None
        if inputs and decoder.grad_tensors:
            note = call.gradients if call is not None else []
            value = _link(value, inputs, _Pull(self, worker, header["id"], shown, note))
        return value, cost


class StudentFunction:
    """A function or a class of the submission, by name."""

    def __init__(self, student: Student, name: str, target: dict[str, Any]) -> None:
        self._student = student
        self._target = target
        self.name = name

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._student._call(self.name, self._target, arguments, keywords)[0]


class Handle:
    """An object that stays in the worker. Attributes that are data come as data; methods are called there."""

    def __init__(self, student: Student, worker: Worker, reference: HandleReference) -> None:
        self._student, self._at, self._reference = student, worker, reference
        self.name = plain(reference.kind, 80)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        self._still_there()
        return self._student._call(self.name, {"handle": self._reference.number}, arguments, keywords)[0]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        self._still_there()
        shown = f"{self.name}.{name}"
        header = {"op": "get", "handle": self._reference.number, "attribute": name}
        frame = self._at.request(header, {}, self._student._call_seconds, shown)
        if frame.header.get("method") is True:
            return StudentFunction(self._student, shown, {"handle": self._reference.number, "attribute": name})
        call = Call(shown, (), {})
        current_log().calls.append(call)
        try:
            call.result = self._student._value(frame, shown, self._at, [])[0]
        except StudentFault as fault:
            call.fault = fault
            raise
        return call.result

    def _still_there(self) -> None:
        if not self._at.alive:
            raise StudentCrashed(f"{self.name} is gone with the process that it lived in")


class _Pull:
    """Fetches gradients from the worker that made a result, and notes them."""

    def __init__(self, student: Student, worker: Worker, call: int, shown: str, note: list[Any]) -> None:
        self._student, self._worker, self._call, self._shown = student, worker, call, shown
        self._note = note

    def __call__(self, inputs: Sequence[Tensor], gradients: Sequence[Tensor | None]) -> list[Tensor | None]:
        encoder = Encoder(_reference)
        value = encoder.encode(list(gradients))
        shown = f"the backward pass of {self._shown}"
        header = {"op": "backward", "call": self._call, "value": value}
        frame = self._worker.request(header, encoder.tensors, self._student._call_seconds, shown)
        answer = self._student._value(frame, shown, self._worker, [])[0]
        if not isinstance(answer, list) or len(answer) != len(inputs):
            raise StudentCrashed(f"{shown} gave an answer that cannot be taken.")
        for gradient, tensor in zip(answer, inputs, strict=True):
            if gradient is not None and (not isinstance(gradient, Tensor) or gradient.shape != tensor.shape):
                raise StudentCrashed(f"{shown} gave a gradient of another shape than its input.")
        crossed = [None if g is None else g.to(t.dtype) for g, t in zip(answer, inputs, strict=True)]
        self._note.append(crossed)
        return crossed


class _Crossing(Function):
    """Makes a result of the worker a function of the arguments, so that `backward` crosses too."""

    @staticmethod
    def forward(ctx: Any, pull: _Pull, outputs: list[Tensor], *inputs: Tensor) -> Any:
        ctx.pull = pull
        ctx.save_for_backward(*inputs)
        return tuple(output.detach() for output in outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return (None, None, *ctx.pull(ctx.saved_tensors, gradients))


def _link(value: Any, inputs: list[Tensor], pull: _Pull) -> Any:
    leaves, structure = tree_flatten(value)
    linked = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor) and leaf.requires_grad]
    outputs = _Crossing.apply(pull, [leaves[i] for i in linked], *inputs)  # type: ignore[no-untyped-call]
    for i, output in zip(linked, outputs, strict=True):
        leaves[i] = output
    return tree_unflatten(leaves, structure)


def _reference(value: Any) -> HandleReference | None:
    return value._reference if isinstance(value, Handle) else None


def _error(header: dict[str, Any], shown: str) -> StudentFault:
    raw = header.get("error")
    error = raw if isinstance(raw, dict) else {}
    message = plain(str(error.get("message", "")), 600)
    if header.get("uncrossable") is True:
        return StudentCrashed(f"{shown} returned what cannot be taken as an answer: {message}.")
    frames = tuple(plain(str(frame), 300) for frame in _items(error.get("frames", [])))[-4:]
    kinds = tuple(plain(str(kind), 100) for kind in _items(error.get("kinds", [])))[:12]
    return StudentError(plain(str(error.get("type", "Exception")), 100), message, frames, kinds)


def _cost(raw: Any) -> Cost:
    if not isinstance(raw, list) or len(raw) != 5 or not all(type(n) is int and 0 <= n < 2**62 for n in raw):
        raise WireError("a cost that is none")
    return Cost(*raw)


def _launch(raw: Any, shown: str) -> Launch:
    fields: dict[Any, Any] = raw if isinstance(raw, dict) else {}
    numbers = {name: fields.get(name) for name in ("kernels", "programs", "dots", "largest")}
    counts = {name: dict(_items(list(_pairs(fields.get(name))))) for name in ("loads", "stores")}
    known = [*numbers.values(), *(n for count in counts.values() for n in count.values())]
    if not all(type(n) is int and 0 <= n < 2**62 for n in known):
        raise StudentCrashed(f"{shown} came back with a record of its kernels that is none")
    named = {name: {plain(str(tensor), 40): n for tensor, n in count.items()} for name, count in counts.items()}
    said = {name: tuple(plain(str(x), 80) for x in _items(fields.get(name))) for name in ("unfilled", "computed")}
    return Launch(**numbers, **named, **said)  # type: ignore[arg-type]  # checked above


def _pairs(raw: Any) -> Any:
    return raw.items() if isinstance(raw, dict) else ()


def _items(raw: Any) -> list[Any]:
    return raw[:64] if isinstance(raw, list) else []

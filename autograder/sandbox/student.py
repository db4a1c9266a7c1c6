"""`student`: what a test calls. Every call crosses to the worker and comes back as data, as a
handle to an object that stays there, or as a StudentFault.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from inspect import isclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from autograder.basics.errors import (
    StudentCrashed,
    StudentError,
    StudentFault,
    StudentForbidden,
    StudentMissing,
)
from autograder.basics.safe_text import clean
from autograder.course import Limits
from autograder.sandbox.host_process import HostClient
from autograder.sandbox.worker_process import Worker
from autograder.suite.calls import Call, Cost, Launch, current_log, last_call
from autograder.suite.objects import NotData, is_data_name
from autograder.wire.frames import Frame, WireError
from autograder.wire.libraries import is_tensor, loaded_torch
from autograder.wire.values import Decoder, Encoder, HandleReference

if TYPE_CHECKING:
    from torch import Tensor

    from autograder.sandbox.workplace import Workplace


class OneWorker:
    """As a `Workplace`: a worker that is there already."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def worker(self) -> Worker:
        """It, alive or not."""
        return self._worker

    def why_missing(self, name: str) -> str:
        """Nothing is known of why."""
        return f"`{name}` is not defined"


class Student:
    """The submission in one worker.

    Args:
        place: gives the worker.
        call_seconds: limit of one call.
        sources: text of the cell that answers each question.
    """

    def __init__(
        self, place: Workplace | OneWorker, call_seconds: float, sources: Mapping[str, str]
    ) -> None:
        self._place, self._call_seconds, self._sources = place, call_seconds, sources
        self._defined: dict[tuple[str, str], Handle] = {}

    def __getattr__(self, name: str) -> StudentFunction:
        if name.startswith("__"):
            raise AttributeError(name)
        return StudentFunction(self, name)

    def cost(self, name: str, /, *arguments: Any, **keywords: Any) -> Cost:
        """Call `name` and return what it cost, as the worker counted it."""
        return self.counted(name, *arguments, **keywords)[1]

    def counted(self, name: str, /, *arguments: Any, **keywords: Any) -> tuple[Any, Cost]:
        """Call `name`; its result, and what that cost.

        Raises:
            ImportError: torch, whose operations are counted, is not there.
        """
        if loaded_torch() is None:
            raise ImportError(
                "what a call costs is counted in operations of torch, which is not there"
            )
        result, cost = self._call(name, {"name": name, "cost": True}, arguments, keywords)
        if cost is None:
            raise StudentCrashed(f"{name} came back without its cost")
        return result, cost

    def launch(self, name: str, /, *arguments: Any, **keywords: Any) -> tuple[Any, Launch]:
        """Call `name`, which launches Triton kernels; its result, and what the kernels did.

        Tensors have the names of the answer key's parameters in it, whatever the student calls
        them.
        """
        names = current_log().parameter_names(name)
        result, _ = self._call(name, {"name": name, "launch": names}, arguments, keywords)
        call = last_call()
        if call is None or call.launch is None:
            raise StudentCrashed(f"{name} came back without the record of its kernels")
        return result, call.launch

    def repeat(
        self, name: str, times: int, given: tuple[Any, Any] | None = None, *, give: bool = False
    ) -> tuple[Any, float]:
        """Call `name` so many times in one request; the last result (None unless `give`), and the
        seconds it took.

        Arguments `given` (positional, keywords) are kept in the worker for the next time. A worker
        could call less often than it was asked to: this is for times, and no test.
        """
        header: dict[str, Any] = {"op": "repeat", "name": name, "times": times, "give": give}
        worker = self._place.worker()
        encoder = Encoder(_naming(worker), keep_strides=True)
        if given is not None:
            header["value"] = encoder.encode([list(given[0]), dict(given[1])])
        started = time.perf_counter()
        frame = worker.request(header, encoder.tensors, self._call_seconds, name)
        seconds = time.perf_counter() - started
        return self._value(frame, Call(name, (), {}), worker, [])[0], seconds

    def define(self, source: str, name: str) -> Handle:
        """Define a function of the suite's own in the worker, for what must happen there: to drive
        an object of the student's, or to make one for it. A function that the student's code is
        only to call is passed as it is. The same text is defined once in a worker.

        Raises:
            SyntaxError: it is not Python. Whatever else goes wrong over there is the submission's
                doing.
        """
        _assert_python(source)
        header = {"op": "define", "source": source, "name": name}
        worker, call = self._place.worker(), Call(name, (), {}, of_suite=True)
        known = self._defined.get((source, name))
        if known is not None and known._at is worker:
            return known
        value = self._value(worker.request(header, {}, self._call_seconds, name), call, worker, [])[
            0
        ]
        if not isinstance(value, Handle):
            raise StudentCrashed(f"{name} could not be defined")
        value.of_suite = True
        self._defined[source, name] = value
        return value

    def source(self, name: str) -> str:
        """Text of the cell that answers a question; "" where there is none."""
        current_log().used_submission = True
        return self._sources.get(name, "")

    def _call(
        self,
        shown: str,
        target: dict[str, Any],
        arguments: Sequence[Any],
        keywords: dict[str, Any],
        of_suite: bool = False,
    ) -> tuple[Any, Cost | None]:
        log = current_log()
        call = Call(shown, tuple(arguments), dict(keywords), of_suite=of_suite)
        log.note(call)
        try:
            worker = self._place.worker()
            encoder = Encoder(_naming(worker), keep_strides=True)
            value = encoder.encode([list(arguments), dict(keywords)])
            header = {"op": "call", **target, "value": value}
            frame = worker.request(header, encoder.tensors, self._call_seconds, shown)
            call.changed = tuple(
                clean(str(name), 80) for name in _items(frame.header.get("changed", []))
            )
            call.result, call.cost = self._value(frame, call, worker, encoder.grad_tensors)
            if isinstance(call.result, Handle):
                call.result.of_suite = of_suite
                # only here does a test ask for an object: where it calls a class, or a function of
                # the suite's own
                call.result.asked_for = of_suite or isclass(
                    log.signatures.get(target.get("name", ""))
                )
            call.launch = (
                _launch(frame.header["launch"], shown) if "launch" in frame.header else None
            )
        except StudentFault as fault:
            call.fault = fault
            raise
        return call.result, call.cost

    def _value(
        self, frame: Frame, call: Call, worker: Worker, inputs: list[Tensor]
    ) -> tuple[Any, Cost | None]:
        """The value of an answer, checked, or the fault that it tells of."""
        header, shown = frame.header, call.name
        if header.get("missing") is True:
            raise StudentMissing(self._place.why_missing(shown))
        if forbidden := header.get("forbidden"):
            raise StudentForbidden(
                f"`{shown}` calls {clean(str(forbidden), 120)}, which this question is about: "
                "write it out instead."
            )
        if header.get("ok") is not True:
            raise _error(header, shown)
        try:
            decoder = Decoder(
                frame.tensors, lambda reference: Handle(self, worker, reference, call)
            )
            value = decoder.decode(header.get("value"))
            cost = _cost(header["cost"]) if "cost" in header else None
        except WireError as error:
            worker.kill()
            raise StudentCrashed(f"{shown} gave an answer that cannot be taken: {error}.") from None
        if inputs and decoder.grad_tensors:
            from autograder.wire.gradients import linked

            forms = [(tensor.shape, tensor.dtype) for tensor in inputs]
            value = linked(
                value, inputs, partial(self._gradients, worker, header["id"], call, forms)
            )
        return value, cost

    def _gradients(
        self,
        worker: Worker,
        number: int,
        call: Call,
        forms: list[tuple[Any, Any]],
        given: Sequence[Tensor | None],
    ) -> list[Tensor | None]:
        """The gradients of a call's tensors, which have these shapes and dtypes, from the worker
        that answered it.
        """
        encoder, shown = Encoder(lambda _: None), f"the backward pass of {call.name}"
        header = {"op": "backward", "call": number, "value": encoder.encode(list(given))}
        frame = worker.request(header, encoder.tensors, self._call_seconds, shown)
        answer = self._value(frame, Call(shown, (), {}), worker, [])[0]
        if not isinstance(answer, list) or len(answer) != len(forms):
            raise StudentCrashed(f"{shown} gave an answer that cannot be taken.")
        for gradient, (shape, _) in zip(answer, forms, strict=True):
            if gradient is not None and (not is_tensor(gradient) or gradient.shape != shape):
                raise StudentCrashed(f"{shown} gave a gradient of another shape than its input.")
        crossed = [
            None if g is None else g.to(dtype) for g, (_, dtype) in zip(answer, forms, strict=True)
        ]
        call.gradients.append(crossed)
        return crossed


@contextlib.contextmanager
def running(program: Path, client: HostClient, limits: Limits, seconds: float) -> Iterator[Student]:
    """A program of the kit's own in a worker, before any student's; its functions are called as a
    student's are.

    Args:
        seconds: the limit of loading it and of each call.

    Raises:
        StudentFault: it does not run, or does not answer.
    """
    worker = Worker(client, limits)
    try:
        cell = (program.stem, program.read_text(encoding="utf-8"))
        header = next(worker.load([cell], seconds, program.stem)).header
        if header.get("ok") is not True:
            raise _error(header, program.stem)
        yield Student(OneWorker(worker), seconds, {})
    finally:
        worker.kill()


@lru_cache(maxsize=256)
def _assert_python(source: str) -> None:
    """Raises: SyntaxError. A suite defines the same few texts in each of its tests, for every
    submission.
    """
    compile(source, "<suite>", "exec", dont_inherit=True)


class StudentFunction(NotData):
    """A function or a class of the submission, by its name."""

    def __init__(self, student: Student, name: str) -> None:
        self._student, self.name = student, name

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._student._call(self.name, {"name": self.name}, arguments, keywords)[0]

    def described(self) -> str:
        return "a function"


class Method(NotData):
    """A method of an object that stays in the worker."""

    def __init__(self, owner: Handle, attribute: str) -> None:
        self._owner, self._attribute = owner, attribute
        self.name = f"{owner.name}.{attribute}"

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._owner.call(self.name, {"attribute": self._attribute}, arguments, keywords)

    def described(self) -> str:
        return "a method (is a `@property` missing?)"


class Handle(NotData):
    """An object that stays in the worker. Attributes that are data come as data; methods are called
    there.

    Attributes:
        reference: its number there, and what its class is called there.
        asked_for: whether the test asked for an object here. On another one no name that data has
            is looked up: `answer.sum()` means a tensor.
        of_suite: whether it is of the suite's own making, and not the student's.
    """

    def __init__(
        self, student: Student, worker: Worker, reference: HandleReference, origin: Call
    ) -> None:
        self._student, self._at, self._origin = student, worker, origin
        self.reference = reference
        self.asked_for = self.of_suite = False
        self.name = clean(reference.kind, 80)
        self._methods: set[str] = set()

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self.call(self.name, {}, arguments, keywords)

    def call(
        self, shown: str, target: dict[str, Any], arguments: Sequence[Any], keywords: dict[str, Any]
    ) -> Any:
        """Call the object, or the attribute of it that `target` names."""
        self._still_there()
        target = {"handle": self.reference.number, **target}
        return self._student._call(shown, target, arguments, keywords, self.of_suite)[0]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if not self.asked_for and is_data_name(name):
            self.as_data()
        self._still_there()
        if name in self._methods:  # was one when it was first asked for
            return Method(self, name)
        call = Call(f"{self.name}.{name}", (), {}, of_suite=self.of_suite, is_attribute=True)
        header = {"op": "get", "handle": self.reference.number, "attribute": name}
        frame = self._at.request(header, {}, self._student._call_seconds, call.name)
        if frame.header.get("method") is True:
            self._methods.add(name)
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
            f"`{current_log().describe(self._origin)}` gives {self.described()}, where data "
            "is expected "
            "(a tensor, a number, a list)."
        )

    def _still_there(self) -> None:
        if not self._at.alive:
            raise StudentCrashed(f"{self.name} is gone with the process that it lived in")


def _naming(worker: Worker) -> Callable[[Any], HandleReference | None]:
    """How an argument that is no data goes to this worker: by the name of an object there, or of a
    function here.
    """

    def name(value: Any) -> HandleReference | None:
        if isinstance(value, Handle):
            return value.reference
        lent = callable(value) and not isinstance(value, NotData)
        return HandleReference(worker.stand_ins.lend(value)) if lent else None

    return name


def _error(header: dict[str, Any], shown: str) -> StudentFault:
    raw = header.get("error")
    error = raw if isinstance(raw, dict) else {}
    message = clean(str(error.get("message", "")), 600)
    if header.get("uncrossable") is True:
        return StudentCrashed(f"{shown} returned what cannot be taken as an answer: {message}.")
    frames = tuple(clean(str(frame), 300) for frame in _items(error.get("frames", [])))[-4:]
    kinds = tuple(clean(str(kind), 100) for kind in _items(error.get("kinds", [])))[:12]
    return StudentError(clean(str(error.get("type", "Exception")), 100), message, frames, kinds)


def _cost(raw: Any) -> Cost:
    if (
        not isinstance(raw, list)
        or len(raw) != 5
        or not all(type(n) is int and 0 <= n < 2**62 for n in raw)
    ):
        raise WireError("a cost that is none")
    return Cost(*raw)


def _launch(raw: Any, shown: str) -> Launch:
    fields: dict[Any, Any] = raw if isinstance(raw, dict) else {}
    numbers = {name: fields.get(name) for name in ("kernels", "programs", "dots", "largest")}
    counts = {name: dict(_items(list(_pairs(fields.get(name))))) for name in ("loads", "stores")}
    known = [*numbers.values(), *(n for count in counts.values() for n in count.values())]
    if not all(type(n) is int and 0 <= n < 2**62 for n in known):
        raise StudentCrashed(f"{shown} came back with a record of its kernels that is none")
    named = {
        name: {clean(str(tensor), 40): n for tensor, n in count.items()}
        for name, count in counts.items()
    }
    said = {
        name: tuple(clean(str(x), 80) for x in _items(fields.get(name)))
        for name in ("unfilled", "computed")
    }
    return Launch(**numbers, **named, **said)  # type: ignore[arg-type]  # checked above


def _pairs(raw: Any) -> Any:
    return raw.items() if isinstance(raw, dict) else ()


def _items(raw: Any) -> list[Any]:
    return raw[:64] if isinstance(raw, list) else []

"""`student`: the proxy of a submission in a test.

Every call crosses to the worker. The answer is data, a handle to an object that stays in the
worker, or a StudentFault.
"""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from inspect import isclass
from typing import TYPE_CHECKING, Any, NoReturn

from autograder.basics.errors import (
    StudentCrashed,
    StudentFault,
    StudentForbidden,
    StudentMissing,
)
from autograder.basics.safe_text import clean
from autograder.sandbox.reply_parts import (
    read_cost,
    read_error,
    read_launch,
    read_lines,
    read_texts,
)
from autograder.sandbox.worker_process import Worker
from autograder.suite.calls import Call, Cost, Launch, current_log
from autograder.suite.objects import NotData, is_data_name
from autograder.suite.scripts import Made
from autograder.wire.bundles import ANSWER_OF_STEP
from autograder.wire.frames import Frame, WireError
from autograder.wire.libraries import loaded_torch
from autograder.wire.values import Decoder, Encoder, HandleReference

if TYPE_CHECKING:
    from torch import Tensor


class Student:
    """The functions of a submission.

    Args:
        get_worker: opens the worker, or returns the open one.
        call_seconds: limit of one call.
        sources: text of the cell that answers each question.
        explain_missing: the message about a function that is not defined.
    """

    def __init__(
        self,
        get_worker: Callable[[], Worker],
        call_seconds: float,
        sources: Mapping[str, str] | None = None,
        explain_missing: Callable[[str], str] = "`{}` is not defined".format,
    ) -> None:
        self._get_worker = get_worker
        self._call_seconds = call_seconds
        self._sources = sources or {}
        self._explain_missing = explain_missing
        self._defined: dict[tuple[str, str], Handle] = {}
        self._methods: defaultdict[tuple[Worker, str, str], set[str]] = defaultdict(set)

    @classmethod
    def in_worker(
        cls,
        worker: Worker,
        call_seconds: float,
        sources: Mapping[str, str] | None = None,
    ) -> Student:
        """The functions in a worker that is open already."""
        return cls(lambda: worker, call_seconds, sources)

    def __getattr__(self, name: str) -> RemoteFunction:
        if name.startswith("__"):
            raise AttributeError(name)
        call = partial(self._call_function, name)
        return RemoteFunction(name, "a function", call)

    def _call_function(
        self,
        name: str,
        arguments: Sequence[Any],
        keywords: dict[str, Any],
    ) -> Any:
        return self._call(name, {"name": name}, arguments, keywords).result

    def cost(
        self,
        name: str,
        /,
        *arguments: Any,
        **keywords: Any,
    ) -> Cost:
        """Call `name` and return the cost of the call, as counted by the worker."""
        return self.counted(name, *arguments, **keywords)[1]

    def counted(
        self,
        name: str,
        /,
        *arguments: Any,
        **keywords: Any,
    ) -> tuple[Any, Cost]:
        """Call `name`, and return the result and the cost of the call.

        Raises:
            ImportError: torch, whose operations are counted, is not loaded.
        """
        if loaded_torch() is None:
            raise ImportError(
                "what a call costs is counted in operations of torch, which is not there"
            )
        call = self._call(name, {"name": name, "cost": True}, arguments, keywords)
        if call.cost is None:
            raise StudentCrashed(f"{name} came back without its cost")
        return call.result, call.cost

    def counted_lines(
        self,
        name: str,
        /,
        *arguments: Any,
        **keywords: Any,
    ) -> tuple[Any, int]:
        """Call `name`, and return the result and how many lines of the notebook's Python ran.

        A line counts each time that it runs, a turn of a comprehension as one. For plain Python,
        where there are no operations of torch to count.
        """
        call = self._call(name, {"name": name, "lines": True}, arguments, keywords)
        if call.lines is None:
            raise StudentCrashed(f"{name} came back without the count of its lines")
        return call.result, call.lines

    def launch(
        self,
        name: str,
        /,
        *arguments: Any,
        **keywords: Any,
    ) -> tuple[Any, Launch]:
        """Call `name`, which launches Triton kernels, and return the result and the record of the
        kernels.

        The record names tensors by the answer key's parameters, not by the student's.
        """
        names = current_log().parameter_names(name)
        call = self._call(name, {"name": name, "launch": names}, arguments, keywords)
        if call.launch is None:
            raise StudentCrashed(f"{name} came back without the record of its kernels")
        return call.result, call.launch

    def repeat(
        self,
        name: str,
        times: int,
        arguments: tuple[Any, Any] | None = None,
        *,
        give: bool = False,
    ) -> tuple[Any, float]:
        """Call `name` several times in one request, and return the last result (None unless `give`)
        and the seconds of the request.

        This measures times and serves no test: a worker could call less often than requested.

        Args:
            arguments: positional arguments and keywords. The worker stores them for further
                requests, which leave them out.
        """
        header: dict[str, Any] = {
            "op": "repeat",
            "name": name,
            "times": times,
            "give": give,
        }
        worker = self._get_worker()
        encoder = argument_encoder(worker)
        if arguments is not None:
            positional, keywords = arguments
            header["value"] = encoder.encode([list(positional), dict(keywords)])
        started = time.perf_counter()
        frame = worker.request(header, encoder.tensors, self._call_seconds, name)
        seconds = time.perf_counter() - started
        return self._read_value(frame, Call(name, (), {}), worker), seconds

    def define(
        self,
        source: str,
        name: str,
        *,
        sees_notebook: bool = False,
    ) -> Handle:
        """Define a function of the suite's own in the worker.

        For code that must run there: to drive an object of the student's, or to make an object for
        the student's code. A function that the student's code only calls is passed as an argument.
        A worker defines the same text once.

        Args:
            sees_notebook: whether the source may use the notebook's names.

        Raises:
            SyntaxError: the source is no Python. Any other failure is the submission's doing.
        """
        _check_syntax(source)
        worker = self._get_worker()
        defined = self._defined.get((source, name))
        if defined is not None and defined._worker is worker:
            return defined
        header = {
            "op": "define",
            "source": source,
            "name": name,
            "sees_notebook": sees_notebook,
        }
        frame = worker.request(header, {}, self._call_seconds, name)
        handle = self._read_value(frame, Call(name, (), {}), worker)
        if not isinstance(handle, Handle):
            raise StudentCrashed(f"{name} could not be defined")
        handle.of_suite = True
        self._defined[source, name] = handle
        return handle

    def methods_of(self, worker: Worker, origin: str, kind: str) -> set[str]:
        """The names that were methods of earlier objects of the same class and origin, which need
        not be looked up again.

        Args:
            origin: the name of the call that returned the object.
            kind: the name of the object's class.
        """
        return self._methods[worker, origin, kind]

    def source(self, name: str) -> str:
        """Text of the cell that answers a question; "" where there is none."""
        current_log().used_submission = True
        return self._sources.get(name, "")

    def _call(
        self,
        name: str,
        target: dict[str, Any],
        arguments: Sequence[Any],
        keywords: dict[str, Any],
        of_suite: bool = False,
    ) -> Call:
        """Make a call, and note it in the test's log.

        Args:
            name: the call's name in messages.
            target: the part of the request that says what is called.
            of_suite: whether the called code is the suite's.
        """
        log = current_log()
        call = Call(name, tuple(arguments), dict(keywords), of_suite=of_suite)
        log.note(call)
        with _faults_noted(call):
            worker = self._get_worker()
            encoder = argument_encoder(worker)
            value = encoder.encode([list(arguments), dict(keywords)])
            header = {"op": "call", **target, "value": value}
            frame = worker.request(header, encoder.tensors, self._call_seconds, name)
            call.changed = read_texts(frame.header.get("changed"), 80)
            call.result = self._read_value(frame, call, worker, encoder.grad_tensors)
            if isinstance(call.result, Handle):
                call.result.of_suite = of_suite
                # a test expects an object from a class, or from a function of the suite's own
                is_class = isclass(log.signatures.get(target.get("name", "")))
                call.result.is_expected = of_suite or is_class
            if "launch" in frame.header:
                call.launch = read_launch(frame.header["launch"], name)
                # loads numpy's arithmetic for kernels, which few suites need
                from autograder.sandbox.launch_replay import replay_call

                replay_call(
                    call, frame.header.get("tape"), worker.stand_ins.has_answered
                )
        return call

    def _read_value(
        self,
        frame: Frame,
        call: Call,
        worker: Worker,
        inputs: Sequence[Tensor] = (),
    ) -> Any:
        """The checked value of a reply, with links to the inputs that require gradients.

        Raises:
            StudentFault: the reply has no valid value.
        """
        header = frame.header
        if header.get("missing") is True:
            raise StudentMissing(self._explain_missing(call.name))
        if forbidden := header.get("forbidden"):
            raise StudentForbidden(
                f"`{call.name}` calls {clean(str(forbidden), 120)}, which this question is about: "
                "write it out instead."
            )
        if header.get("ok") is not True:
            raise read_error(header, call.name)
        try:
            decoder = Decoder(frame.tensors, partial(Handle, self, worker, call))
            value = decoder.decode(header.get("value"))
            if "cost" in header:
                call.cost = read_cost(header["cost"])
            if "lines" in header:
                call.lines = read_lines(header["lines"])
        except WireError as error:
            worker.kill()
            raise StudentCrashed(
                f"{call.name} gave an answer that cannot be taken: {error}."
            ) from None
        if inputs and decoder.grad_tensors:
            from autograder.wire.gradients import linked

            forms = [(tensor.shape, tensor.dtype) for tensor in inputs]
            fetch = partial(self._fetch_gradients, worker, header["id"], call, forms)
            value = linked(value, inputs, fetch)
        return value

    def _fetch_gradients(
        self,
        worker: Worker,
        number: int,
        call: Call,
        forms: list[tuple[Any, Any]],
        output_gradients: Sequence[Tensor | None],
    ) -> list[Tensor | None]:
        """The gradients of a call's inputs, from the worker that answered the call.

        Args:
            number: of the request that the worker answered.
            forms: shape and dtype of each input.
        """
        name = f"the backward pass of {call.name}"
        encoder = Encoder(lambda _: None)
        value = encoder.encode(list(output_gradients))
        header = {"op": "backward", "call": number, "value": value}
        frame = worker.request(header, encoder.tensors, self._call_seconds, name)
        answer = self._read_value(frame, Call(name, (), {}), worker)
        from autograder.wire.gradients import match_gradients

        try:
            gradients = match_gradients(answer, forms)
        except WireError as error:
            raise StudentCrashed(f"{name} gave {error}.") from None
        call.gradients.append(gradients)
        return gradients


@contextlib.contextmanager
def _faults_noted(call: Call) -> Iterator[None]:
    """Note a fault that is raised inside in the log's call."""
    try:
        yield
    except StudentFault as fault:
        call.fault = fault
        raise


@lru_cache(maxsize=256)
def _check_syntax(source: str) -> None:
    """Raise SyntaxError where a text is no Python.

    Cached: a suite defines the same few texts in each of its tests, for every submission.
    """
    compile(source, "<suite>", "exec", dont_inherit=True)


class RemoteFunction(NotData):
    """A function, a class or a method in the worker.

    Args:
        name: the name in messages.
        kind: the kind in messages, as "a function".
        call: makes the call, from positional arguments and keywords.
    """

    def __init__(
        self,
        name: str,
        kind: str,
        call: Callable[[Sequence[Any], dict[str, Any]], Any],
    ) -> None:
        self.name = name
        self._kind = kind
        self._call = call

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._call(arguments, keywords)

    def describe_kind(self) -> str:
        return self._kind


class Handle(NotData):
    """An object that stays in the worker. Its methods are called there; other attributes are data.

    Attributes:
        reference: the object's number in the worker, and the name of its class.
        is_expected: whether the test expects an object here, and no data. Where it expects data,
            names of data are not looked up: `answer.sum()` means a tensor.
        of_suite: whether the suite made the object, and not the student.
    """

    def __init__(
        self,
        student: Student,
        worker: Worker,
        origin: Call,
        reference: HandleReference,
    ) -> None:
        self._student = student
        self._worker = worker
        self._origin = origin
        self.reference = reference
        self.is_expected = False
        self.of_suite = False
        self.name = clean(reference.kind, 80)
        self._methods = student.methods_of(worker, origin.name, reference.kind)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._call(self.name, {}, arguments, keywords)

    def _call(
        self,
        name: str,
        target: dict[str, Any],
        arguments: Sequence[Any],
        keywords: dict[str, Any],
    ) -> Any:
        """Call the object, or the attribute that `target` names."""
        self._check_worker()
        target = {"handle": self.reference.number, **target}
        return self._student._call(
            name, target, arguments, keywords, self.of_suite
        ).result

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if not self.is_expected and is_data_name(name):
            self.as_data()
        self._check_worker()
        full_name = f"{self.name}.{name}"
        if name not in self._methods:
            header = {"op": "get", "handle": self.reference.number, "attribute": name}
            frame = self._worker.request(
                header, {}, self._student._call_seconds, full_name
            )
            if frame.header.get("method") is not True:
                return self._read_attribute(full_name, frame)
            self._methods.add(name)
        call = partial(self._call, full_name, {"attribute": name})
        return RemoteFunction(full_name, "a method (is a `@property` missing?)", call)

    def _read_attribute(self, name: str, frame: Frame) -> Any:
        """The value of an attribute that is no method, noted in the test's log."""
        call = Call(name, (), {}, of_suite=self.of_suite, is_attribute=True)
        current_log().note(call)
        with _faults_noted(call):
            call.result = self._student._read_value(frame, call, self._worker)
        return call.result

    def describe_kind(self) -> str:
        return f"an object of class {self.name}"

    def as_data(self, *_: Any) -> NoReturn:
        raise AssertionError(
            f"`{current_log().describe(self._origin)}` gives {self.describe_kind()}, where data "
            "is expected (a tensor, a number, a list)."
        )

    def _check_worker(self) -> None:
        if not self._worker.alive:
            raise StudentCrashed(
                f"{self.name} is gone with the process that it lived in"
            )


def argument_encoder(worker: Worker) -> Encoder:
    """An encoder of arguments for a worker.

    Arguments that are no data cross as numbers: of an object in the worker, of an earlier step of
    the same script, or of a function of the test's own that the worker may ask for.
    """

    def handle_for(value: Any) -> HandleReference | None:
        if isinstance(value, Handle):
            return value.reference
        if isinstance(value, Made):
            return HandleReference(value.step, ANSWER_OF_STEP)
        if callable(value) and not isinstance(value, NotData):
            return HandleReference(worker.stand_ins.lend(value))
        return None

    return Encoder(handle_for, keep_strides=True)

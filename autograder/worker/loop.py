"""The loop inside the walls: runs cells and answers calls. The trusted side believes no reply
without a check.
"""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from autograder.wire.bundles import ANSWER_OF_STEP, bundle, unbundle
from autograder.wire.frames import (
    Block,
    Frame,
    WireClosed,
    WireError,
    receive_frame,
    send_frame,
)
from autograder.wire.libraries import is_tensor, loaded_torch
from autograder.wire.signatures import signature_digest
from autograder.wire.values import Decoder, Encoder, HandleReference
from autograder.worker.arguments import changed_arguments, copy_data
from autograder.worker.cells import describe_error, run_cell
from autograder.worker.companion_modules import CompanionModules
from autograder.worker.forbidden import Ban
from autograder.worker.line_counter import LineCounter
from autograder.worker.notebook_world import (
    fresh_seeds,
    install_colab,
    install_my_course,
    new_namespace,
    run_eagerly,
)
from autograder.worker.stand_in_hooks import StandInHooks
from autograder.worker.stand_ins import (
    FunctionRaised,
    StandInObject,
    StandInRefused,
    StandInReply,
    as_data,
    make_stand_in,
    make_stand_in_class,
    remote_function,
)

if TYPE_CHECKING:
    from torch import Tensor

    from autograder.wire.cost_counter import CostCounter

_MAX_REQUEST = 1 << 30


@dataclass(slots=True)
class _Row:
    """Requests that are answered in a row.

    Attributes:
        answers: what each was answered, as the object that it is here.
        replies: what the trusted side is told of each.
    """

    answers: list[Any] = field(default_factory=list)
    replies: list[Frame] = field(default_factory=list)


class Loop:
    """Runs one submission in one process: has its namespace, and its objects that are handles on
    the trusted side.

    Each method `_do_*` handles one kind of request.

    Args:
        device: where the tensors of requests are put before the student's code sees them.
    """

    def __init__(self, sock: socket.socket, device: str = "cpu") -> None:
        self._sock = sock
        self._device = device
        self._repeated_arguments: Any = None
        self._repeated_result: Any = None
        self._names = new_namespace()
        self._objects: list[Any] = []
        self._companions = CompanionModules({})
        self._stand_ins: dict[str, type[StandInObject]] = {}
        self._links: dict[int, tuple[list[Tensor], list[Tensor]]] = {}
        self._hooks = StandInHooks()
        self._ban: Ban | None = None
        self._counter: CostCounter | None = None
        self._launch: Any = (
            None  # the record of the kernels of the call that is being answered
        )
        self._request = 0
        self._row: _Row | None = None

    def serve(self) -> None:
        """Answer until the trusted side goes away."""
        install_colab()
        install_my_course(self._names)
        run_eagerly()
        fresh_seeds()
        while True:
            try:
                frame = receive_frame(self._sock, _MAX_REQUEST)
            except WireClosed:
                return
            self._handle(frame)

    def _handle(self, frame: Frame) -> None:
        self._request = frame.header["id"]
        handler = getattr(self, f"_do_{frame.header['op']}")
        handler(frame)

    # requests

    def _do_load(self, frame: Frame) -> None:
        """Run the cells in order, with one reply a cell: so the trusted side knows the cell that
        hangs.
        """
        if frame.header["forbid"]:
            self._ban = Ban(frame.header["forbid"])
        functions = frame.header.get("functions", ())
        texts = frame.header.get("companions", {})
        if self._companions.texts != texts:
            self._companions = CompanionModules(texts)
        for cell_id, source in frame.header["cells"]:
            self._companions.restore()  # the cell before may have put something in their place
            error = run_cell(cell_id, source, self._names, functions)
            self._reply({"ok": error is None, "error": error})
        fresh_seeds()

    def _do_turn(self, frame: Frame) -> None:
        """Turn to another question: release the objects of the last one, and exchange the ban."""
        if self._ban is not None:
            self._ban.lift()
        forbidden = frame.header["forbid"]
        self._ban = Ban(forbidden) if forbidden else None
        self._objects.clear()
        self._links.clear()
        fresh_seeds()
        self._reply({"ok": True})

    def _do_stand_in(self, frame: Frame) -> None:
        for name, methods in frame.header["classes"].items():
            replaced = self._names.get(name)
            stand_in_class = make_stand_in_class(name, methods, self._ask, replaced)
            self._names[name] = self._stand_ins[name] = stand_in_class
        for name, signature in frame.header["functions"].items():
            function = self._names.get(name)
            stand_in = make_stand_in(name, self._ask, function)
            # a function of another signature would refuse what the answer key takes
            has_signature = (
                bool(signature)
                and callable(function)
                and signature_digest(function) == signature
            )
            if not (has_signature and self._hooks.stand_in(function, stand_in)):
                self._names[name] = stand_in
        self._reply({"ok": True})

    def _do_define(self, frame: Frame) -> None:
        """Define a function of the suite's own, apart from the submission's names, or with them, as
        if it were pasted below the notebook. Its text is kept nowhere.
        """
        names: dict[str, Any] = {}
        if frame.header.get("sees_notebook"):
            names.update(self._names)
        names["__name__"] = "suite"
        if torch := loaded_torch():
            names["torch"] = torch
        with self._reply_on_error():
            code = compile(frame.header["source"], "<suite>", "exec", dont_inherit=True)
            exec(code, names)
            self._answer(names[frame.header["name"]], [])

    def _do_call(self, frame: Frame) -> None:
        target = self._target(frame.header)
        if target is None:
            return
        decoder = Decoder(
            frame.tensors, self._object, keep_strides=True, device=self._device
        )
        args, kwargs = decoder.decode(frame.header["value"])
        copies = copy_data(args), copy_data(kwargs)
        self._counter = None
        if frame.header.get("cost"):
            # loaded by the host, with torch, before the walls
            from autograder.wire.cost_counter import CostCounter

            self._counter = CostCounter()
        counter = self._counter
        if self._ban is not None:
            self._ban.called = None
        launch = None
        lines = LineCounter() if frame.header.get("lines") else None
        try:
            with contextlib.ExitStack() as watchers:
                if self._ban is not None:
                    watchers.enter_context(self._ban.watching())
                if counter is not None:
                    watchers.enter_context(counter)
                if (names := frame.header.get("launch")) is not None:
                    launch = watchers.enter_context(_watch(target, args, kwargs, names))
                self._launch = launch
                if (
                    lines is not None
                ):  # the last to watch: the others' own code is not counted
                    watchers.enter_context(lines)
                result = target(*args, **kwargs)
            self._synchronize()
        except BaseException as error:
            changed = changed_arguments(target, copies, (args, kwargs))
            failure = {"ok": False, "error": describe_error(error), "changed": changed}
            self._reply(failure | self._forbidden_call())
            return
        notes = self._forbidden_call()
        notes["changed"] = changed_arguments(target, copies, (args, kwargs))
        if counter is not None:
            notes["cost"] = counter.figures()
        if lines is not None:
            notes["lines"] = lines.count
        if launch is not None:
            notes["launch"] = launch.figures()
            notes["tape"] = launch.tape.finish(result)
        self._answer(result, decoder.grad_tensors, **notes)

    def _do_script(self, frame: Frame) -> None:
        """Answer requests in a row, up to the first that fails, with one reply to all of them. They
        may name the answers of earlier ones.
        """
        self._row = row = _Row()
        try:
            for request in unbundle(frame.header["requests"], frame.tensors):
                row.answers.append(None)
                getattr(self, f"_do_{request.header['op']}")(request)
                if row.replies[-1].header["ok"] is not True:
                    break
        finally:
            self._row = None
        headers, tensors = bundle(row.replies)
        try:
            self._reply({"replies": headers}, tensors)
        except WireError as error:
            failure = {"ok": False, "error": describe_error(error), "uncrossable": True}
            self._reply({"replies": [failure]})

    def _do_repeat(self, frame: Frame) -> None:
        """Make one call many times over, for a clock on the trusted side; a request without
        arguments has those of the last one.
        """
        target = self._target(frame.header)
        if target is None:
            return
        if "value" in frame.header:
            decoder = Decoder(frame.tensors, keep_strides=True, device=self._device)
            self._repeated_arguments = decoder.decode(frame.header["value"])
        args, kwargs = self._repeated_arguments
        with self._reply_on_error():
            for _ in range(frame.header["times"]):
                self._repeated_result = target(*args, **kwargs)
            self._synchronize()
            answer = self._repeated_result if frame.header.get("give") else None
            self._answer(answer, [])

    def _do_get(self, frame: Frame) -> None:
        """Answer with the value of an object's attribute, or say that it is a method."""
        with self._reply_on_error():
            value = getattr(self._owner(frame.header), frame.header["attribute"])
            # in a row of requests, a method is an object like others
            if callable(value) and not is_tensor(value) and self._row is None:
                self._reply({"ok": True, "method": True})
            else:
                self._answer(value, [])

    def _do_backward(self, frame: Frame) -> None:
        from autograder.wire.gradients import pull

        inputs, outputs = self._links[frame.header["call"]]
        decoder = Decoder(frame.tensors, device=self._device)
        gradients = decoder.decode(frame.header["value"])
        with self._reply_on_error():
            self._answer(pull(outputs, inputs, gradients), [])

    def _target(self, header: dict[str, Any]) -> Any:
        """The function or method of a call; where there is none, this method replies, and returns
        None.
        """
        if "handle" in header or "answer" in header:
            owner = self._owner(header)
            attribute = header.get("attribute")
            if attribute is None:
                return owner
            with self._reply_on_error():
                return getattr(owner, attribute)
            return None
        target = self._names.get(header["name"])
        if target is None:
            self._reply({"ok": False, "missing": True})
        return target

    def _owner(self, header: dict[str, Any]) -> Any:
        """The object that a request is about."""
        if self._row is not None and "answer" in header:
            return self._row.answers[header["answer"]]
        return self._objects[header["handle"]]

    # replies

    def _answer(self, value: Any, inputs: list[Tensor], **notes: Any) -> None:
        if self._row is not None:
            self._row.answers[-1] = value
        encoder = Encoder(self._reference)
        try:
            encoded = encoder.encode(value)
            if inputs and encoder.grad_tensors:
                self._links[self._request] = (inputs, encoder.grad_tensors)
            self._reply({"ok": True, "value": encoded, **notes}, encoder.tensors)
        except WireError as error:
            self._reply(
                {"ok": False, "error": describe_error(error), "uncrossable": True}
            )

    @contextlib.contextmanager
    def _reply_on_error(self) -> Iterator[None]:
        """Reply with the exception that the student's code raises in the block."""
        try:
            yield
        except BaseException as error:
            self._reply({"ok": False, "error": describe_error(error)})

    def _reply(
        self, header: dict[str, Any], tensors: dict[str, Block] | None = None
    ) -> None:
        if self._row is not None:
            self._row.replies.append(Frame(header, tensors or {}))
            return
        numbered = {"id": self._request, **header}
        send_frame(self._sock, Frame(numbered, tensors or {}))

    def _synchronize(self) -> None:
        """Wait for the device: errors there belong to this request."""
        if self._device != "cpu":
            loaded_torch().cuda.synchronize()

    def _forbidden_call(self) -> dict[str, Any]:
        if self._ban is not None and self._ban.called:
            return {"forbidden": self._ban.called}
        return {}

    # questions to the trusted side

    def _ask(self, question: dict[str, Any], value: Any) -> StandInReply:
        """Ask the trusted side in the middle of a request (a stand-in's answer).

        Where costs are counted, the answer costs what it cost there, and the way there and back
        nothing.
        """
        counter = self._counter
        if counter is None:
            return self._exchange(question, value)
        counter.paused = True
        try:
            return self._exchange({**question, "cost": True}, value)
        finally:
            counter.paused = False

    def _exchange(self, question: dict[str, Any], value: Any) -> StandInReply:
        """Send a question and wait for the reply. Until that comes, handle requests about objects
        of this process.
        """
        encoder = Encoder(self._lent_reference, keep_strides=True)
        header = {
            "id": self._request,
            "stand_in": question,
            "value": encoder.encode(as_data(value)),
        }
        send_frame(self._sock, Frame(header, encoder.tensors))
        while "op" in (frame := receive_frame(self._sock, _MAX_REQUEST)).header:
            interrupted = (self._request, self._counter, self._ban, self._launch)
            row, self._row = self._row, None
            self._ban = None
            try:
                self._handle(frame)
            finally:
                self._request, self._counter, self._ban, self._launch = interrupted
                self._row = row
        if "refused" in frame.header:
            raise StandInRefused(frame.header["refused"])
        if "raised" in frame.header:
            raise FunctionRaised(frame.header["raised"])
        if self._counter is not None:
            self._counter.add(frame.header["cost"])
        decoder = Decoder(frame.tensors, self._stand_in_object, device=self._device)
        answer = decoder.decode(frame.header["value"])
        if self._launch is not None:
            self._launch.tape.adopt_answer()
        return StandInReply(answer, frame.header["number"])

    # handles

    def _reference(self, value: Any) -> HandleReference:
        """The number by which the trusted side knows an object of this process."""
        kind = type(value).__name__
        for number, known_object in enumerate(self._objects):
            if known_object is value:
                return HandleReference(number, kind)
        self._objects.append(value)
        return HandleReference(len(self._objects) - 1, kind)

    def _lent_reference(self, value: Any) -> HandleReference:
        """The number, below 0, by which a stand-in's answer may use an object of this process."""
        reference = self._reference(value)
        return HandleReference(-1 - reference.number, reference.kind)

    def _object(self, reference: HandleReference) -> Any:
        """The object of a number; a number below 0 names a function of a test's own, and gives a
        function that calls it.
        """
        if self._row is not None and reference.kind == ANSWER_OF_STEP:
            return self._row.answers[reference.number]
        if reference.number < 0:
            return remote_function({"function": reference.number}, self._ask)
        return self._objects[reference.number]

    def _stand_in_object(self, reference: HandleReference) -> StandInObject:
        """An object that stands for one on the trusted side."""
        stand_in_class = self._stand_ins[reference.kind]
        stand_in = stand_in_class.__new__(stand_in_class)
        stand_in._stand_in = reference.number
        return stand_in


def _watch(
    target: Any, args: Any, kwargs: Any, names: list[str]
) -> contextlib.AbstractContextManager[Any]:
    """Watch the kernels of a call; `names` are those of its positional arguments."""
    # loaded by the host, with triton, before the walls
    launches = sys.modules.get("autograder.worker.launches")
    if launches is None:
        raise RuntimeError(
            "no Triton here that the strict interpreter knows (3.6 to 3.9): install triton 3.7.1"
        )
    return launches.watch_launches(target, args, kwargs, names)  # type: ignore[no-any-return]

"""The loop inside the walls: runs cells, answers calls. Nothing that it says is believed without a
check.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from autograder.wire.frames import Block, Frame, WireClosed, WireError, receive_frame, send_frame
from autograder.wire.libraries import is_tensor, loaded_torch
from autograder.wire.signatures import signature_digest
from autograder.wire.values import Decoder, Encoder, HandleReference
from autograder.worker.arguments import changed_arguments, picture
from autograder.worker.asking import Asked
from autograder.worker.cells import describe_error, run_cell
from autograder.worker.forbidden import Ban
from autograder.worker.notebook_world import (
    fresh_seeds,
    install_colab,
    install_my_course,
    new_namespace,
    run_eagerly,
)
from autograder.worker.stand_ins import (
    Answered,
    FunctionRaised,
    StandInObject,
    StandInRefused,
    crossing,
    make_function,
    make_stand_in,
    make_stand_in_class,
)

if TYPE_CHECKING:
    from torch import Tensor

    from autograder.wire.cost_counter import CostCounter

_MAX_REQUEST = 1 << 30


class Loop:
    """One submission in one process: its namespace, and the objects that stay here as handles.

    `device` is where the tensors of requests are put before the student's code sees them.
    """

    def __init__(self, sock: socket.socket, device: str = "cpu") -> None:
        self._sock, self._device = sock, device
        self._repeated: Any = None
        self._last: Any = None
        self._names = new_namespace()
        self._objects: list[Any] = []
        self._stand_ins: dict[str, type[StandInObject]] = {}
        self._links: dict[int, tuple[list[Tensor], list[Tensor]]] = {}
        self._asking = Asked()
        self._ban: Ban | None = None
        self._counter: CostCounter | None = None
        self._launch: Any = None  # the record of the kernels of the call that is being answered
        self._request = 0

    def serve(self) -> None:
        """Answer until the other side goes away."""
        install_colab()
        install_my_course(self._names)
        run_eagerly()
        fresh_seeds()
        while True:
            try:
                frame = receive_frame(self._sock, _MAX_REQUEST)
            except WireClosed:
                return
            self._request = frame.header["id"]
            handler = getattr(self, f"_do_{frame.header['op']}")
            handler(frame)

    # requests

    def _do_load(self, frame: Frame) -> None:
        """Run the cells in order; one reply a cell, so that the other side knows where a hang
        is.
        """
        if frame.header["forbid"]:
            self._ban = Ban(frame.header["forbid"])
        for cell_id, source in frame.header["cells"]:
            error = run_cell(cell_id, source, self._names, frame.header.get("functions", ()))
            self._reply({"ok": error is None, "error": error})
        fresh_seeds()

    def _do_turn(self, frame: Frame) -> None:
        """Turn to another question: no object of the one before is held, and what it forbade is
        allowed again.
        """
        if self._ban is not None:
            self._ban.lift()
        self._ban = Ban(frame.header["forbid"]) if frame.header["forbid"] else None
        self._objects.clear()
        self._links.clear()
        fresh_seeds()
        self._reply({"ok": True})

    def _do_stand_in(self, frame: Frame) -> None:
        for name, methods in frame.header["classes"].items():
            own = self._names.get(name)
            self._names[name] = self._stand_ins[name] = make_stand_in_class(
                name, methods, self._ask, own
            )
        for name, signature in frame.header["functions"].items():
            own = self._names.get(name)
            stand_in = make_stand_in(name, self._ask, own)
            # another signature would refuse what the answer key takes
            same = bool(signature) and callable(own) and signature_digest(own) == signature
            if not (same and self._asking.stand_in(own, stand_in)):
                self._names[name] = stand_in
        self._reply({"ok": True})

    def _do_define(self, frame: Frame) -> None:
        """Define a function of the suite's own, apart from the submission's names. Its text is kept
        nowhere.
        """
        names: dict[str, Any] = {"__name__": "suite"}
        if torch := loaded_torch():
            names["torch"] = torch
        with self._errors_told():
            exec(compile(frame.header["source"], "<suite>", "exec", dont_inherit=True), names)
            self._answer(names[frame.header["name"]], [])

    def _do_call(self, frame: Frame) -> None:
        target = self._target(frame.header)
        if target is None:
            return
        decoder = Decoder(frame.tensors, self._object, keep_strides=True, device=self._device)
        args, kwargs = decoder.decode(frame.header["value"])
        before = picture(args), picture(kwargs)
        counter = self._counter = _cost_counter() if frame.header.get("cost") else None
        if self._ban is not None:
            self._ban.called = None
        try:
            names = frame.header.get("launch")
            watched = (
                contextlib.nullcontext() if names is None else _watch(target, args, kwargs, names)
            )
            banned = self._ban.watching() if self._ban else contextlib.nullcontext()
            with banned, counter or contextlib.nullcontext(), watched as launch:
                self._launch = launch
                result = target(*args, **kwargs)
            self._settle()
            if launch is not None:
                result = launch.settled(result)
        except BaseException as error:
            changed = changed_arguments(target, before, (args, kwargs))
            self._reply(
                {
                    "ok": False,
                    "error": describe_error(error),
                    "changed": changed,
                    **self._notes(None),
                }
            )
            return
        changed = changed_arguments(target, before, (args, kwargs))
        notes = self._notes(counter) | ({"launch": launch.figures()} if launch is not None else {})
        self._answer(result, decoder.grad_tensors, changed=changed, **notes)

    def _do_repeat(self, frame: Frame) -> None:
        """Make one call many times over, for a clock on the other side; arguments are kept from the
        time before.
        """
        target = self._target(frame.header)
        if target is None:
            return
        if "value" in frame.header:
            decoder = Decoder(frame.tensors, keep_strides=True, device=self._device)
            self._repeated = decoder.decode(frame.header["value"])
        args, kwargs = self._repeated
        with self._errors_told():
            for _ in range(frame.header["times"]):
                self._last = target(*args, **kwargs)
            self._settle()
            self._answer(self._last if frame.header.get("give") else None, [])

    def _do_get(self, frame: Frame) -> None:
        """An attribute of an object here: its value, or the word that it is a method."""
        with self._errors_told():
            value = getattr(self._objects[frame.header["handle"]], frame.header["attribute"])
            if callable(value) and not is_tensor(value):
                self._reply({"ok": True, "method": True})
            else:
                self._answer(value, [])

    def _do_backward(self, frame: Frame) -> None:
        from autograder.wire.gradients import pull

        inputs, outputs = self._links[frame.header["call"]]
        given = Decoder(frame.tensors, device=self._device).decode(frame.header["value"])
        with self._errors_told():
            self._answer(pull(outputs, inputs, given), [])

    # answers

    def _answer(self, value: Any, inputs: list[Tensor], **notes: Any) -> None:
        encoder = Encoder(self._handle)
        try:
            encoded = encoder.encode(value)
            if inputs and encoder.grad_tensors:
                self._links[self._request] = (inputs, encoder.grad_tensors)
            self._reply({"ok": True, "value": encoded, **notes}, encoder.tensors)
        except WireError as error:
            self._reply({"ok": False, "error": describe_error(error), "uncrossable": True})

    @contextlib.contextmanager
    def _errors_told(self) -> Iterator[None]:
        """What the student's code raises inside is the reply."""
        try:
            yield
        except BaseException as error:
            self._reply({"ok": False, "error": describe_error(error)})

    def _reply(self, header: dict[str, Any], tensors: dict[str, Block] | None = None) -> None:
        send_frame(self._sock, Frame({"id": self._request, **header}, tensors or {}))

    def _settle(self) -> None:
        """Wait for the device, so that what went wrong there belongs to this request."""
        if self._device != "cpu":
            loaded_torch().cuda.synchronize()

    def _notes(self, counter: CostCounter | None) -> dict[str, Any]:
        notes: dict[str, Any] = {}
        if counter is not None:
            notes["cost"] = counter.figures()
        if self._ban is not None and self._ban.called:
            notes["forbidden"] = self._ban.called
        return notes

    def _ask(self, question: dict[str, Any], value: Any) -> Answered:
        """Ask the trusted side in the middle of a request (a stand-in's answer).

        Where costs are counted, the answer costs what it cost there, and the way there and back
        nothing.
        """
        if self._counter is None:
            return self._asked(question, value)
        self._counter.paused = True
        try:
            return self._asked({**question, "cost": True}, value)
        finally:
            self._counter.paused = False

    def _asked(self, question: dict[str, Any], value: Any) -> Answered:
        encoder = Encoder(self._lent, keep_strides=True)
        header = {
            "id": self._request,
            "stand_in": question,
            "value": encoder.encode(crossing(value)),
        }
        send_frame(self._sock, Frame(header, encoder.tensors))
        while "op" in (frame := receive_frame(self._sock, _MAX_REQUEST)).header:
            self._serve_meanwhile(frame)
        if "refused" in frame.header:
            raise StandInRefused(frame.header["refused"])
        if "raised" in frame.header:
            raise FunctionRaised(frame.header["raised"])
        if self._counter is not None:
            self._counter.add(frame.header["cost"])
        value = Decoder(frame.tensors, self._stood_in, device=self._device).decode(
            frame.header["value"]
        )
        if self._launch is not None:
            self._launch.take(value)
        return Answered(value, frame.header["number"])

    def _serve_meanwhile(self, frame: Frame) -> None:
        """Answer a question about an object here, while we wait for the answer to one of ours."""
        outer = self._request, self._counter, self._ban, self._launch
        self._request, self._ban = frame.header["id"], None
        try:
            getattr(self, f"_do_{frame.header['op']}")(frame)
        finally:
            self._request, self._counter, self._ban, self._launch = outer

    def _lent(self, value: Any) -> HandleReference:
        """The number, below 0, by which the trusted side may ask an object here."""
        reference = self._handle(value)
        return HandleReference(-1 - reference.number, reference.kind)

    def _stood_in(self, reference: HandleReference) -> StandInObject:
        """The object here that stands for one of the trusted side's."""
        known = self._stand_ins[reference.kind]
        stands_for = known.__new__(known)
        stands_for._stand_in = reference.number
        return stands_for

    def _target(self, header: dict[str, Any]) -> Any:
        """What a call is for; None where a reply has already said that it is not there."""
        if "handle" in header:
            owner = self._objects[header["handle"]]
            attribute = header.get("attribute")
            if attribute is None:
                return owner
            with self._errors_told():
                return getattr(owner, attribute)
            return None
        target = self._names.get(header["name"])
        if target is None:
            self._reply({"ok": False, "missing": True})
        return target

    # objects that stay here

    def _handle(self, value: Any) -> HandleReference:
        for number, known in enumerate(self._objects):
            if known is value:
                return HandleReference(number, type(value).__name__)
        self._objects.append(value)
        return HandleReference(len(self._objects) - 1, type(value).__name__)

    def _object(self, reference: HandleReference) -> Any:
        """An object here, or what stands for a function of a test's own: those have the numbers
        below 0.
        """
        if reference.number < 0:
            return make_function(reference.number, self._ask)
        return self._objects[reference.number]


def _cost_counter() -> CostCounter:
    """Counts what torch does; loaded by the host, with torch, before the walls."""
    from autograder.wire.cost_counter import CostCounter

    return CostCounter()


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


def run(sock: socket.socket, device: str = "cpu") -> None:
    """Serve on the worker's socket, then end without a trace of what the student left behind."""
    Loop(sock, device).serve()
    os._exit(0)

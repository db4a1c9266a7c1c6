"""Records the operations of a launch's first program on a tape, and plays the tape for the other
programs.

The interpreter runs a kernel as Python for every program: it compares types and shapes and converts
constants, which takes ten times as long as the arithmetic. The tape holds the operations of the
first program. Results that depend on constants only are kept; the other operations are played for
each program, without the Python around them. Where Python asks for a value (`if`, `while`,
`range`), the tape has one stretch for each answer. A program with a new answer runs as Python, gets
the results of the operations that were already played, and goes on from there; so does a program
whose operation fails, so that the fault is raised in the student's line.
"""

import enum
import functools
import inspect
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import triton
from triton.runtime import interpreter

_TOUCHES = re.compile("load|store|atomic|descriptor|program_id|print|assert|assume|barrier")
"""Operations that each program makes, also where all arguments are constant."""
_MOST_STEPS = 20_000
_MOST_BYTES = 64 << 20  # of one program's tiles, which a tape keeps until the program ends
_SLOT = "attention_kit_slot"
_TYPE = "attention_kit_type"
HANDLES = tuple(
    kind
    for name in ("TensorHandle", "BlockPointerHandle", "TensorDescHandle")
    if (kind := getattr(interpreter, name, None)) is not None
)


def makes_handles(name: str) -> bool:
    """Whether a member of the builder is an operation on tiles."""
    return name.startswith("create_") or (name.startswith("get_") and not name.endswith("_ty"))


class _Mode(enum.Enum):
    AWAY = enum.auto()  # operations run, and are not recorded
    RECORDING = enum.auto()  # operations run and are recorded
    FEEDING = enum.auto()  # operations have been played: calls return those results


class _Stretch:
    """Operations up to where Python asks for a value.

    Attributes:
        calls: the slots of all operations, in the order in which Python calls them.
        steps: operations that each program makes: a function, the slots of the arguments, and the
            slot of the result.
        asked: a function that reads the value, and the slot of the tile; None at the end of the
            program.
        ways: the next stretch, for each value.
    """

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.steps: list[tuple[Callable[..., Any], tuple[int, ...], int]] = []
        self.asked: tuple[Callable[[Any], Any], int] | None = None
        self.ways: dict[Any, _Stretch] = {}


class _Tape:
    """The operations of one launch. A slot holds a constant, or None for a value that differs by
    program.
    """

    def __init__(self) -> None:
        self.slots: list[Any] = []
        self.constant: list[bool] = []
        self.start: _Stretch | None = None
        self.torn = False  # not to be played: an operation cannot be followed
        self.steps = self.bytes = 0

    def add(self, value: Any, *, constant: bool) -> int:
        self.slots.append(value if constant else None)
        self.constant.append(constant)
        return len(self.slots) - 1

    def label(self, result: Any, slot: int) -> None:
        """Mark handles with their slots; handles of a tuple have the slots after the tuple's."""
        if isinstance(result, tuple):
            for number, part in enumerate(result, slot + 1):
                self.label(part, number)
        elif isinstance(result, HANDLES):
            setattr(result, _SLOT, (self, slot))

    def slot_of(self, argument: Any, stretch: _Stretch) -> int:
        """The slot of an argument. A handle that no operation has made tears the tape."""
        if isinstance(argument, HANDLES):
            tape, slot = getattr(argument, _SLOT, (None, 0))
            if tape is not self:
                self.torn = True
            return int(slot)
        if isinstance(argument, list | tuple) and any(
            isinstance(part, HANDLES) for part in argument
        ):
            parts = tuple(self.slot_of(part, stretch) for part in argument)
            constant = all(self.constant[part] for part in parts)
            slot = self.add(argument, constant=constant)
            if not constant:
                stretch.steps.append((lambda *values: list(values), parts, slot))
            return slot
        return self.add(argument, constant=True)


class Recorder:
    """Records and plays builder calls: stands between Triton's semantics and the builder of this
    process.
    """

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        self._mode = _Mode.AWAY
        self._tape = _Tape()
        self._stretch = _Stretch()
        self._values: list[Any] = []  # by slot, of the program that is played
        self._feed: list[int] = []
        self._fed = self._answers = 0
        self._fault: Exception | None = None
        self._as_compiled = False  # no tile is asked for its value, as no compiler asks
        # how often code has read the elements of a tile without the builder
        self.looks = 0

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._builder, name)
        if not makes_handles(name) or not callable(member):
            return member
        pure = _TOUCHES.search(name) is None
        operation = functools.partial(self._operation, member, pure)
        setattr(self, name, operation)
        return operation

    # a launch

    def clear(self) -> None:
        """Forget the tape: a launch begins, or ends."""
        self._tape, self._mode = _Tape(), _Mode.AWAY
        self._values, self._feed, self._fault = [], [], None

    def know(self, argument: Any) -> None:
        """Enter an argument of the launch as a constant: all programs get it."""
        if isinstance(argument, tuple | triton.language.tuple):
            for part in argument:
                self.know(part)
        elif isinstance(handle := getattr(argument, "handle", None), HANDLES):
            self._tape.label(handle, self._tape.add(handle, constant=True))
            for sizes in ("shape", "strides"):  # of a descriptor
                self.know(getattr(argument, sizes, None))

    def over(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a kernel: programs are played from the tape where there is one."""

        @functools.wraps(kernel)
        def program(**arguments: Any) -> None:
            self._program(functools.partial(kernel, **arguments))

        program.__signature__ = inspect.signature(kernel)  # type: ignore[attr-defined]  # the interpreter asks for it
        return program

    def _program(self, run: Callable[[], Any]) -> None:
        tape = self._tape
        try:
            if tape.torn or self._builder.grid_dim == (1, 1, 1):
                run()
            elif tape.start is None:
                tape.start = self._stretch = _Stretch()
                self._mode = _Mode.RECORDING
                run()
            elif not self._play(tape, tape.start):
                self._mode = _Mode.FEEDING
                run()
        finally:
            self._mode = _Mode.AWAY

    def _play(self, tape: _Tape, stretch: _Stretch) -> bool:
        """Play a program's operations; False where Python has to take over."""
        values = self._values = tape.slots.copy()
        self._feed, self._fed, self._answers, self._fault = [], 0, 0, None
        while True:
            for function, arguments, slot in stretch.steps:
                try:
                    values[slot] = function(*[values[place] for place in arguments])
                except Exception as fault:
                    self._feed += stretch.calls[: stretch.calls.index(slot)]
                    self._fault = fault
                    return False
            self._feed += stretch.calls
            self._stretch = stretch
            if stretch.asked is None:
                return True
            read, place = stretch.asked
            self._answers += 1
            following = stretch.ways.get(read(values[place]))
            if following is None:
                return False
            stretch = following

    # what the semantics ask of the builder

    def _operation(
        self, function: Callable[..., Any], pure: bool, /, *arguments: Any, **named: Any
    ) -> Any:
        if self._mode is _Mode.AWAY:
            return function(*arguments, **named)
        if self._mode is _Mode.FEEDING:
            return self._handed_out()
        if named:
            function = functools.partial(_by_name, function, tuple(named))
            arguments = (*named.values(), *arguments)
        self._mode = _Mode.AWAY  # calls that the operation makes in turn are not recorded
        result = function(*arguments)
        tape, stretch = self._tape, self._stretch
        places = tuple(tape.slot_of(argument, stretch) for argument in arguments)
        constant = pure and all(tape.constant[place] for place in places)
        slot = tape.add(result, constant=constant)
        stretch.calls.append(slot)
        if not constant:
            stretch.steps.append((function, places, slot))
        for number, part in enumerate(result if isinstance(result, tuple) else ()):
            part_slot = tape.add(part, constant=constant)
            if not constant:
                stretch.steps.append((functools.partial(_part, number), (slot,), part_slot))
        tape.label(result, slot)
        tape.steps += 1
        tape.bytes += 0 if constant else _bytes(result)
        tape.torn = tape.torn or tape.steps > _MOST_STEPS or tape.bytes > _MOST_BYTES
        self._mode = _Mode.AWAY if tape.torn else _Mode.RECORDING
        return result

    def _handed_out(self) -> Any:
        if self._fed == len(self._feed):
            assert self._fault is not None, "Python has called what the tape does not know"
            raise self._fault.with_traceback(None)
        slot = self._feed[self._fed]
        self._fed += 1
        result = self._values[slot]
        self._tape.label(result, slot)
        return result

    # functions that read elements without the builder

    def followed(self, owner: Any, name: str, value: Any) -> Any:
        """The replacement of a member of Triton's language that reads elements, so that the tape
        records it.
        """
        if owner is triton.language.tensor:
            if name == "__bool__":
                return lambda tensor: self._answer(value, tensor)
            # Triton 3.6 asks numpy for an int in a way that numpy has given up
            if name == "__index__":
                return lambda tensor: self._answer(
                    lambda tile: int(tile.handle.data.item()), tensor
                )
            if name in ("__repr__", "__str__"):
                return lambda tensor: self._shown(value, tensor)
            if name == "T":
                return property(
                    lambda tensor: interpreter.interpreter_semantic.permute(tensor, (1, 0))
                )
        if name in ("reduce", "associative_scan"):
            return functools.partial(self._over_an_axis, value)
        return value

    def unasked(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function of Triton's language that tests whether it was passed a tile: a tile of 0
        must count as true.
        """

        def called(*arguments: Any, **named: Any) -> Any:
            outer, self._as_compiled = self._as_compiled, True
            try:
                return function(*arguments, **named)
            finally:
                self._as_compiled = outer

        return called

    def _answer(self, read: Callable[[Any], Any], tensor: Any) -> Any:
        """The value of a tile that Python asks for. A tile of several elements is true, with any
        values.
        """
        if self._as_compiled:
            return True
        value, mode = read(tensor), self._mode
        if tensor.handle.data.size > 1:
            return value
        self.looks += 1
        if mode is _Mode.AWAY:
            return value
        slot = self._tape.slot_of(tensor.handle, self._stretch)
        if self._tape.torn:
            self._mode = _Mode.AWAY
            return value
        if self._tape.constant[slot]:
            return value
        if mode is _Mode.FEEDING:
            self._answers -= 1
            if self._answers or self._fault is not None:
                return value
            self._mode = _Mode.RECORDING  # the answer that was new
        else:
            self._stretch.asked = (lambda handle: read(SimpleNamespace(handle=handle)), slot)
        following = self._stretch.ways[value] = _Stretch()
        self._stretch = following
        return value

    def _shown(self, show: Callable[[Any], str], tensor: Any) -> str:
        self.looks += 1
        if self._mode is not _Mode.AWAY:
            self._tape.torn = True
        return show(tensor)

    def _over_an_axis(
        self, function: Callable[..., Any], values: Any, *arguments: Any, **named: Any
    ) -> Any:
        """Record a reduction or a scan, which the interpreter computes on the elements."""
        several = isinstance(values, tuple)
        tensors = values if several else (values,)
        types = [tensor.type for tensor in tensors]

        def compute(*handles: Any) -> Any:
            tiles = tuple(
                triton.language.tensor(*pair) for pair in zip(handles, types, strict=True)
            )
            results = function(tiles if several else tiles[0], *arguments, **named)
            for tile in results if several else (results,):
                tile.handle.set_attr(_TYPE, tile.type)
            return tuple(tile.handle for tile in results) if several else results.handle

        builder = interpreter.interpreter_semantic.builder
        results = builder.create_over_an_axis(compute, *(tensor.handle for tensor in tensors))
        tiles = tuple(
            triton.language.tensor(handle, handle.attr[_TYPE])
            for handle in (results if several else (results,))
        )
        return tiles if several else tiles[0]

    def create_over_an_axis(self, compute: Callable[..., Any], *handles: Any) -> Any:
        """A reduction or a scan as an operation of the builder, which has none."""
        return self._operation(compute, True, *handles)


def _by_name(function: Callable[..., Any], names: tuple[str, ...], *values: Any) -> Any:
    return function(*values[len(names) :], **dict(zip(names, values, strict=False)))


def _part(number: int, whole: tuple[Any, ...]) -> Any:
    return whole[number]


def _bytes(result: Any) -> int:
    parts = result if isinstance(result, tuple) else (result,)
    return sum(part.data.nbytes for part in parts if isinstance(part, interpreter.TensorHandle))

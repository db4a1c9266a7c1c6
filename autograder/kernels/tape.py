"""The programs of a launch run one text. What is the same for all of them is done once, and the
rest is played back.

The interpreter runs a kernel as Python for every program: it looks at types, converts constants and
compares shapes, which takes ten times as long as the arithmetic. Here the first program's
operations are written down. Those that depend on constants only are done; for the other programs
the rest is done again, without the Python around it. Where Python asks for a value (`if`, `while`,
`range`), the tape parts in one stretch for each answer. A program that answers what none has yet
runs as Python, is given what was already done, and goes on from there; so does one whose operation
fails, so that the fault comes out of the student's own line.
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
"""Operations that are done for each program, also where all they are given is constant."""
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
    """Whether a member of the builder is an operation: one that makes tiles, or does something to
    them.
    """
    return name.startswith("create_") or (name.startswith("get_") and not name.endswith("_ty"))


class _Mode(enum.Enum):
    AWAY = enum.auto()  # operations are done, and nobody looks
    RECORDING = enum.auto()  # they are done and written down
    FEEDING = enum.auto()  # they have been done: their results are handed out


class _Stretch:
    """Operations up to where Python asks for a value.

    Attributes:
        calls: the slots of all operations, in the order in which Python calls them.
        steps: those that each program does: a function, the slots of its arguments, and the slot of
            its result.
        asked: how to read the value, and the slot of what it is read from; None at the end of the
            program.
        ways: what follows, for each value.
    """

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.steps: list[tuple[Callable[..., Any], tuple[int, ...], int]] = []
        self.asked: tuple[Callable[[Any], Any], int] | None = None
        self.ways: dict[Any, _Stretch] = {}


class _Tape:
    """The operations of one launch. A slot holds a constant, or None for what each program has its
    own of.
    """

    def __init__(self) -> None:
        self.slots: list[Any] = []
        self.constant: list[bool] = []
        self.start: _Stretch | None = None
        self.torn = False  # not to be played: something in it cannot be followed
        self.steps = self.bytes = 0

    def add(self, value: Any, *, constant: bool) -> int:
        self.slots.append(value if constant else None)
        self.constant.append(constant)
        return len(self.slots) - 1

    def label(self, result: Any, slot: int) -> None:
        """Mark handles with their slot; those of a tuple stand in the slots after its own."""
        if isinstance(result, tuple):
            for number, part in enumerate(result, slot + 1):
                self.label(part, number)
        elif isinstance(result, HANDLES):
            setattr(result, _SLOT, (self, slot))

    def slot_of(self, argument: Any, stretch: _Stretch) -> int:
        """Where an argument stands. A handle that no operation has made tears the tape."""
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
                stretch.steps.append((lambda *given: list(given), parts, slot))
            return slot
        return self.add(argument, constant=True)


class Recorder:
    """Stands between Triton's semantics and the interpreter's builder. One for a process."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        self._mode = _Mode.AWAY
        self._tape = _Tape()
        self._stretch = _Stretch()
        self._values: list[Any] = []  # of the program that is played, by slot
        self._feed: list[int] = []
        self._fed = self._answers = 0
        self._fault: Exception | None = None
        self._as_compiled = False  # no tile is asked for its value, as no compiler asks
        # how often somebody has looked at the elements of a tile behind the builder's back
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
        """Forget what was written down: a launch begins, or ends."""
        self._tape, self._mode = _Tape(), _Mode.AWAY
        self._values, self._feed, self._fault = [], [], None

    def know(self, argument: Any) -> None:
        """An argument of the launch, as the kernel sees it: the same for all programs."""
        if isinstance(argument, tuple | triton.language.tuple):
            for part in argument:
                self.know(part)
        elif isinstance(handle := getattr(argument, "handle", None), HANDLES):
            self._tape.label(handle, self._tape.add(handle, constant=True))
            for sizes in ("shape", "strides"):  # of a descriptor
                self.know(getattr(argument, sizes, None))

    def over(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """The kernel, run from the tape where one is."""

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
        """Do a program's operations; False where Python has to take over."""
        values = self._values = tape.slots.copy()
        self._feed, self._fed, self._answers, self._fault = [], 0, 0, None
        while True:
            for function, given, slot in stretch.steps:
                try:
                    values[slot] = function(*[values[place] for place in given])
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
        self, function: Callable[..., Any], pure: bool, /, *given: Any, **named: Any
    ) -> Any:
        if self._mode is _Mode.AWAY:
            return function(*given, **named)
        if self._mode is _Mode.FEEDING:
            return self._handed_out()
        if named:
            function = functools.partial(_by_name, function, tuple(named))
            given = (*named.values(), *given)
        self._mode = _Mode.AWAY  # what it does in turn is its own affair
        result = function(*given)
        tape, stretch = self._tape, self._stretch
        places = tuple(tape.slot_of(argument, stretch) for argument in given)
        constant = pure and all(tape.constant[place] for place in places)
        slot = tape.add(result, constant=constant)
        stretch.calls.append(slot)
        if not constant:
            stretch.steps.append((function, places, slot))
        for number, part in enumerate(result if isinstance(result, tuple) else ()):
            own = tape.add(part, constant=constant)
            if not constant:
                stretch.steps.append((functools.partial(_part, number), (slot,), own))
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

    # what looks at elements behind the builder's back

    def followed(self, owner: Any, name: str, value: Any) -> Any:
        """What a launch puts in the place of `name` of Triton's language, so that the tape sees
        what it does.
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
        """A function of Triton's language that asks whether it was given a tile, and takes a 0 for
        none.
        """

        def called(*given: Any, **named: Any) -> Any:
            before, self._as_compiled = self._as_compiled, True
            try:
                return function(*given, **named)
            finally:
                self._as_compiled = before

        return called

    def _answer(self, read: Callable[[Any], Any], tensor: Any) -> Any:
        """Python asks for the value of a tile. If it has more elements than one, it is true
        whatever they are.
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
        self, function: Callable[..., Any], given: Any, *rest: Any, **named: Any
    ) -> Any:
        """A reduction or a scan: the interpreter does them itself, on the elements."""
        several = isinstance(given, tuple)
        tensors = given if several else (given,)
        types = [tensor.type for tensor in tensors]

        def compute(*handles: Any) -> Any:
            tiles = tuple(
                triton.language.tensor(*pair) for pair in zip(handles, types, strict=True)
            )
            made = function(tiles if several else tiles[0], *rest, **named)
            for tile in made if several else (made,):
                tile.handle.set_attr(_TYPE, tile.type)
            return tuple(tile.handle for tile in made) if several else made.handle

        builder = interpreter.interpreter_semantic.builder
        made = builder.create_over_an_axis(compute, *(tensor.handle for tensor in tensors))
        tiles = tuple(
            triton.language.tensor(handle, handle.attr[_TYPE])
            for handle in (made if several else (made,))
        )
        return tiles if several else tiles[0]

    def create_over_an_axis(self, compute: Callable[..., Any], *handles: Any) -> Any:
        """A reduction or a scan as an operation of the builder, which has none."""
        return self._operation(compute, True, *handles)


def _by_name(function: Callable[..., Any], names: tuple[str, ...], *given: Any) -> Any:
    return function(*given[len(names) :], **dict(zip(names, given, strict=False)))


def _part(number: int, whole: tuple[Any, ...]) -> Any:
    return whole[number]


def _bytes(result: Any) -> int:
    parts = result if isinstance(result, tuple) else (result,)
    return sum(part.data.nbytes for part in parts if isinstance(part, interpreter.TensorHandle))

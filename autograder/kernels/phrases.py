"""What a function of Triton's language asks of the interpreter's builder follows from types and
constants alone.

Before it asks for any arithmetic, it compares types and shapes and converts constants, which takes
several times as long as the arithmetic of a tile. A kernel's loop calls the same functions with the
same types again and again. Here what one of them asked is noted, once for each combination of types
and constants, and asked again with other tiles.
"""

import functools
from collections.abc import Callable
from typing import Any

import triton
from triton.runtime import interpreter

from autograder.kernels.tape import HANDLES, Recorder, makes_handles

_MOST_PHRASES = 4096
_tensor = triton.language.tensor
_PLAIN = frozenset((int, bool, str, type(None)))


class _Unknown(Exception):
    """A value that may be more than its type and its constants say."""


def _kind(value: Any) -> Any:
    """All that what is asked for depends on: the type of a tile; of anything else all of it."""
    kind = type(value)
    if kind is _tensor:
        return value.type.name
    if kind in _PLAIN:
        return kind, value
    if kind is float:
        return kind, value.hex()  # 0.0 is not -0.0
    if kind is triton.language.dtype:
        return kind, value.name
    if kind is triton.language.constexpr:
        return kind, _kind(value.value)
    if kind is slice:
        return kind, _kind(value.start), _kind(value.stop), _kind(value.step)
    if kind is tuple or kind is list:
        return kind, *map(_kind, value)
    raise _Unknown


class _Phrase:
    """What a function asked of the builder.

    Attributes:
        steps: an operation, what it was given, and which of that was a tile: its place, and where
            it came from.
        result: where the tile that it gave came from, and all else that makes a tensor of it; None
            for no tensor.
    """

    def __init__(self) -> None:
        self.steps: list[tuple[Callable[..., Any], list[Any], list[tuple[int, int]]]] = []
        self.result: tuple[int, dict[str, Any]] | None = None

    def again(self, handles: list[Any]) -> Any:
        for operation, template, tiles in self.steps:
            given = template.copy()
            for place, source in tiles:
                given[place] = handles[source]
            handles.append(operation(*given))
        if self.result is None:
            return None
        source, parts = self.result
        made = _tensor.__new__(_tensor)
        made.__dict__.update(parts)
        made.handle = handles[source]
        return made


class _Notes:
    """Stands before the builder while a function is called for the first time."""

    def __init__(self, builder: Any, handles: list[Any]) -> None:
        self._builder, self._handles = builder, handles
        # whole: nothing has been asked that a phrase cannot say
        self.phrase, self.whole = _Phrase(), True

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._builder, name)
        return (
            functools.partial(self._ask, member)
            if makes_handles(name) and callable(member)
            else member
        )

    def _ask(self, operation: Callable[..., Any], *given: Any, **named: Any) -> Any:
        # what it does in turn is its own affair
        interpreter.interpreter_semantic.builder = self._builder
        result = operation(*given, **named)
        interpreter.interpreter_semantic.builder = self
        tiles = [
            (place, self.source(value))
            for place, value in enumerate(given)
            if isinstance(value, HANDLES)
        ]
        self.phrase.steps.append((operation, list(given), tiles))
        nested = [
            *named.values(),
            *(part for value in given if isinstance(value, list | tuple) for part in value),
        ]
        if named or isinstance(result, tuple) or any(isinstance(part, HANDLES) for part in nested):
            self.whole = False
        self._handles.append(result)
        return result

    def source(self, handle: Any) -> int:
        """Which of the tiles before it this is."""
        for place, known in enumerate(self._handles):
            if known is handle:
                return place
        self.whole = False
        return 0

    def end(self, result: Any) -> _Phrase | None:
        """The phrase; None if it leaves out something."""
        if type(result) is _tensor:
            self.phrase.result = self.source(result.handle), {**vars(result), "handle": None}
        elif result is not None:
            self.whole = False
        for _, given, tiles in self.phrase.steps:
            for place, _source in tiles:
                given[place] = None  # tiles are kept no longer than they live
        return self.phrase if self.whole else None


class Phrases:
    """All phrases that are known. One for a process."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._known: dict[Any, _Phrase | None] = {}
        self._listening = False

    def of(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of Triton's language that does the same, sooner."""

        def spoken(*given: Any, **named: Any) -> Any:
            if self._listening:
                return function(*given, **named)
            try:
                key = (
                    function,
                    *map(_kind, given),
                    *[(name, _kind(value)) for name, value in named.items()],
                )
                phrase = self._known[key]
            except _Unknown:
                return function(*given, **named)
            except KeyError:
                return self._listen(key, function, given, named)
            if phrase is None:
                return function(*given, **named)
            return phrase.again([v.handle for v in (*given, *named.values()) if type(v) is _tensor])

        return spoken

    def _listen(self, key: Any, function: Callable[..., Any], given: Any, named: Any) -> Any:
        semantic, looks = interpreter.interpreter_semantic, self._recorder.looks
        handles = [value.handle for value in (*given, *named.values()) if type(value) is _tensor]
        if len(set(map(id, handles))) < len(handles):  # of x * x nobody could say which x is which
            return function(*given, **named)
        notes = semantic.builder = _Notes(self._recorder, handles)
        self._listening = True
        try:
            result = function(*given, **named)
        finally:
            self._listening = False
            semantic.builder = self._recorder
        if len(self._known) >= _MOST_PHRASES:
            self._known.clear()
        phrase = notes.end(result)
        self._known[key] = phrase if looks == self._recorder.looks else None
        return result

"""Memoizes Triton's front end: equal types and constants give the same builder calls, so the second
call of a function replays those of the first with other tiles.

A function of Triton's language compares types and shapes and converts constants before any
arithmetic, which takes several times as long as the arithmetic of a tile. A kernel's loop calls the
same functions with the same types again and again. A phrase holds the builder calls of one
function, for one combination of types and constants.
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
    """A value that types and constants do not describe."""


def _kind(value: Any) -> Any:
    """The key of a value: of a tile the type, of anything else type and value."""
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
    """The builder calls of a function.

    Attributes:
        steps: operations, each with its arguments and, for every tile among them, the place and the
            number of the handle.
        result: the number of the result's handle, and the tensor's attributes; None for a function
            without result.
    """

    def __init__(self) -> None:
        self.steps: list[tuple[Callable[..., Any], list[Any], list[tuple[int, int]]]] = []
        self.result: tuple[int, dict[str, Any]] | None = None

    def again(self, handles: list[Any]) -> Any:
        for operation, template, tiles in self.steps:
            arguments = template.copy()
            for place, source in tiles:
                arguments[place] = handles[source]
            handles.append(operation(*arguments))
        if self.result is None:
            return None
        source, parts = self.result
        tensor = _tensor.__new__(_tensor)
        tensor.__dict__.update(parts)
        tensor.handle = handles[source]
        return tensor


class _Notes:
    """Stands in for the builder while a function is called for the first time."""

    def __init__(self, builder: Any, handles: list[Any]) -> None:
        self._builder, self._handles = builder, handles
        # whole: a phrase can hold all builder calls so far
        self.phrase, self.whole = _Phrase(), True

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._builder, name)
        return (
            functools.partial(self._ask, member)
            if makes_handles(name) and callable(member)
            else member
        )

    def _ask(self, operation: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        # calls that the operation makes in turn are not noted
        interpreter.interpreter_semantic.builder = self._builder
        result = operation(*arguments, **named)
        interpreter.interpreter_semantic.builder = self
        tiles = [
            (place, self.source(value))
            for place, value in enumerate(arguments)
            if isinstance(value, HANDLES)
        ]
        self.phrase.steps.append((operation, list(arguments), tiles))
        nested = [
            *named.values(),
            *(part for value in arguments if isinstance(value, list | tuple) for part in value),
        ]
        if named or isinstance(result, tuple) or any(isinstance(part, HANDLES) for part in nested):
            self.whole = False
        self._handles.append(result)
        return result

    def source(self, handle: Any) -> int:
        """The number of a handle, in the order in which handles were made."""
        for place, earlier in enumerate(self._handles):
            if earlier is handle:
                return place
        self.whole = False
        return 0

    def end(self, result: Any) -> _Phrase | None:
        """The phrase; None where a phrase cannot hold all builder calls."""
        if type(result) is _tensor:
            self.phrase.result = self.source(result.handle), {**vars(result), "handle": None}
        elif result is not None:
            self.whole = False
        for _, arguments, tiles in self.phrase.steps:
            for place, _source in tiles:
                arguments[place] = None  # keeps no tile alive
        return self.phrase if self.whole else None


class Phrases:
    """All phrases of a process."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._known: dict[Any, _Phrase | None] = {}
        self._listening = False

    def of(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of Triton's language that does the same, sooner."""

        def spoken(*arguments: Any, **named: Any) -> Any:
            if self._listening:
                return function(*arguments, **named)
            try:
                key = (
                    function,
                    *map(_kind, arguments),
                    *[(name, _kind(value)) for name, value in named.items()],
                )
                phrase = self._known[key]
            except _Unknown:
                return function(*arguments, **named)
            except KeyError:
                return self._listen(key, function, arguments, named)
            if phrase is None:
                return function(*arguments, **named)
            return phrase.again(
                [v.handle for v in (*arguments, *named.values()) if type(v) is _tensor]
            )

        return spoken

    def _listen(self, key: Any, function: Callable[..., Any], arguments: Any, named: Any) -> Any:
        semantic, looks = interpreter.interpreter_semantic, self._recorder.looks
        handles = [
            value.handle for value in (*arguments, *named.values()) if type(value) is _tensor
        ]
        if len(set(map(id, handles))) < len(handles):  # of x * x nobody could say which x is which
            return function(*arguments, **named)
        notes = semantic.builder = _Notes(self._recorder, handles)
        self._listening = True
        try:
            result = function(*arguments, **named)
        finally:
            self._listening = False
            semantic.builder = self._recorder
        if len(self._known) >= _MOST_PHRASES:
            self._known.clear()
        phrase = notes.end(result)
        self._known[key] = phrase if looks == self._recorder.looks else None
        return result

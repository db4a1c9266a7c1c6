"""Kinds of arguments that a contract names: `tensor("B", "T")`, `mask(…)`, `choice(1, 2)`.

Each function makes a kind that draws values. docs/authoring.md shows a contract for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch

from autograder.suite.contract_draws import Parameter, Scope
from autograder.suite.contract_numbers import (
    FLOATS,
    MASKS,
    WHOLE,
    draw_floats,
    draw_mask,
    draw_whole,
    shuffle_layout,
)

LEFT_OUT = object()
"""The value of an argument that a call leaves out, so that the default counts."""
_LAYOUTS = ("contiguous", "contiguous", "transposed", "every second")


@dataclass(frozen=True, slots=True)
class Drawn:
    """A kind of argument, made of a function.

    Attributes:
        function: draws a value for the argument of a name.
        can_change: whether a second call may have another value where all else stays.
        by_keyword: whether a call gives the argument by its name.
        axes: of a tensor, as the contract names them; () for other kinds.
    """

    function: Callable[[Scope, str], Any]
    can_change: bool = True
    by_keyword: bool = False
    axes: tuple[str | int, ...] = ()

    def draw(self, scope: Scope, name: str) -> Any:
        """A value for the argument `name`."""
        return self.function(scope, name)


def tensor(
    *axes: str | int,
    values: Sequence[str] = FLOATS,
    dtype: str = "",
    may_have: Sequence[str] = (),
) -> Drawn:
    """A tensor of floats.

    Args:
        axes: names of sizes, expressions of them ("H*d"), numbers, or "..." for leading axes that
            all arguments of the call share.
        values: styles of numbers, as in `contract_numbers.py`.
        dtype: the dtype; "" for the one that is drawn for the call.
        may_have: "-inf", "inf" or "nan", which some elements may be.
    """

    def draw(scope: Scope, name: str) -> Any:
        chosen_dtype = getattr(torch, dtype) if dtype else scope.dtype
        shape = scope.shape(axes)
        is_usual = "normal" in values and (scope.is_tame or scope.happens(35))
        style = "normal" if is_usual else scope.choose(f"{name}: values", values)
        generator = scope.generator()
        numbers = draw_floats(style, shape, chosen_dtype, generator)
        special = (
            scope.choose(f"{name}: some are", ("usual", *may_have))
            if may_have
            else "usual"
        )
        if special != "usual" and not scope.is_tame:
            numbers[torch.rand(shape, generator=generator) < 0.4] = float(special)
        numbers = shuffle_layout(numbers, scope.choose(f"{name}: layout", _LAYOUTS))
        if "whole" in values:
            scope.free.append(numbers)
        return numbers

    return Drawn(draw, axes=axes)


def tokens(*axes: str | int, below: str | int, low: int = 0) -> Drawn:
    """Whole numbers in [low, below), int64; `below` is an expression of sizes ("V")."""

    def draw(scope: Scope, name: str) -> Any:
        shape = scope.shape(axes)
        high = scope.size(below)
        style = scope.choose(f"{name}: values", WHOLE)
        return draw_whole(style, shape, low, high, scope.generator())

    return Drawn(draw, axes=axes)


def mask(
    *axes: str | int,
    styles: Sequence[str] = MASKS,
    broadcasts: bool = False,
) -> Drawn:
    """A boolean mask.

    Args:
        styles: as in `contract_numbers.py`.
        broadcasts: whether any axis but the last may have size 1, and leading axes may be missing.
    """

    def draw(scope: Scope, name: str) -> Any:
        shape = scope.shape(axes)
        allowed = draw_mask(
            scope.choose(f"{name}: values", styles), shape, scope.generator()
        )
        if not broadcasts:
            return allowed
        kind = scope.choose(f"{name}: axes", ("all", "all", "some of size 1", "fewer"))
        if kind == "some of size 1":
            for axis in range(allowed.ndim - 1):
                if scope.happens(50):
                    allowed = allowed.narrow(axis, 0, 1)
        elif kind == "fewer":
            while allowed.ndim > 2:
                allowed = allowed[0]
        return allowed.clone()

    return Drawn(draw, axes=axes)


def permutation(axis: str) -> Drawn:
    """A permutation of 0 … size − 1, int64."""

    def draw(scope: Scope, name: str) -> Any:
        return torch.randperm(scope.size(axis), generator=scope.generator())

    return Drawn(draw)


def size(expression: str) -> Drawn:
    """The value of a named size, or of an expression of named sizes, as an int."""
    return Drawn(lambda scope, name: scope.size(expression), can_change=False)


def whole(low: int | str, high: int | str) -> Drawn:
    """An int from low to high, both included; a bound may be an expression of sizes."""
    return Drawn(lambda scope, name: scope.whole(scope.size(low), scope.size(high)))


def number(low: float, high: float) -> Drawn:
    """A float from low to high, both included."""
    return Drawn(lambda scope, name: scope.number(low, high))


def choice(*values: Any) -> Drawn:
    """One of these values: every pair with a value of another choice is tried."""
    return Drawn(lambda scope, name: scope.choose(name, values))


def flag() -> Drawn:
    """True or False."""
    return choice(False, True)


def maybe(parameter: Parameter) -> Drawn:
    """An argument by keyword that is left out in half of the calls."""

    def draw(scope: Scope, name: str) -> Any:
        is_there = scope.choose(f"{name} is", ("left out", "there")) == "there"
        return parameter.draw(scope, name) if is_there else LEFT_OUT

    return Drawn(draw, by_keyword=True, axes=getattr(parameter, "axes", ()))


def list_of(
    parameter: Parameter,
    low: int = 0,
    high: int = 4,
    *,
    forget: Sequence[str] = (),
) -> Drawn:
    """A list of low to high values of a kind; sizes of the names in `forget` differ in it."""

    def draw(scope: Scope, name: str) -> Any:
        values = []
        for _ in range(scope.whole(low, high)):
            scope.forget(*forget)
            values.append(parameter.draw(scope, name))
        return values

    return Drawn(draw)


def dict_of(**parameters: Parameter) -> Drawn:
    """A dict with these keys."""
    return Drawn(lambda scope, name: _draw_named(scope, parameters))


def config_of(**parameters: Parameter) -> Drawn:
    """A plain object with these attributes."""
    return Drawn(
        lambda scope, name: SimpleNamespace(**_draw_named(scope, parameters)),
        can_change=False,
    )


def _draw_named(scope: Scope, parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    return {name: parameter.draw(scope, name) for name, parameter in parameters.items()}


def counted_words(alphabet: str, most_words: int = 6, most_letters: int = 6) -> Drawn:
    """A dict from word to a count from 1 to 4."""

    def draw(scope: Scope, name: str) -> Any:
        words = {}
        for _ in range(scope.whole(0, most_words)):
            words[_draw_text(scope, alphabet, 1, most_letters)] = scope.whole(1, 4)
        return words

    return Drawn(draw)


def text(alphabet: str, low: int = 0, high: int = 8) -> Drawn:
    """A text of low to high letters of the alphabet; texts of few letters repeat themselves."""
    return Drawn(lambda scope, name: _draw_text(scope, alphabet, low, high))


def _draw_text(scope: Scope, alphabet: str, low: int, high: int) -> str:
    return "".join(
        alphabet[scope.whole(0, len(alphabet) - 1)]
        for _ in range(scope.whole(low, high))
    )


def computed(function: Callable[[Scope], Any]) -> Drawn:
    """A value that follows from what was drawn before: `computed(lambda call:
    call.arguments["x"].shape[0])`; `call` draws further values too, `call.whole(0, 3)`.
    """
    return Drawn(lambda scope, name: function(scope))

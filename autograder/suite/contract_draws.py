"""Draws one call after the other within a contract: sizes with names, settings, arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import torch

FEW = (1, 5)
"""Smallest and largest size where a contract names no other; now and then a large one is drawn."""
LARGE_SIZES = (9, 17, 33, 66)
MOST_LEADING = 3
_LARGEST_TENSOR = 60_000
WholeNumbers = Callable[[int, int], int]
"""A source of whole numbers, from a lowest to a highest one: hypothesis, or random ones."""


class CallRejected(Exception):  # no error: another call is drawn
    """What was drawn so far makes no call that is allowed."""


class Parameter(Protocol):
    """A kind of argument, which draws values of its kind."""

    def draw(self, scope: Scope, name: str) -> Any:
        """A value for the argument `name`."""


class _SizesByName(Mapping[str, int]):
    """Sizes for an expression such as "H*d"; a size is drawn when it is first looked up."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __getitem__(self, name: str) -> int:
        return self._scope.named_size(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._scope.sizes)

    def __len__(self) -> int:
        return len(self._scope.sizes)


class Scope:
    """What was drawn so far for a script.

    Args:
        draw: the source of all that is chosen.
        ranges: smallest and largest size, by name; `FEW` for the others.
        dtypes: dtypes of the float tensors; one is drawn for the script.

    Attributes:
        sizes: by name.
        arguments: of the call that is being drawn, by name.
        settings: what was chosen, for messages and to cover pairs.
        is_tame: whether all floats are of the style "normal"; gradients at others say little.
        free: the tensors that may have any other floats in their place.
    """

    def __init__(
        self,
        draw: WholeNumbers,
        ranges: Mapping[str, tuple[int, int]],
        dtypes: Sequence[str],
    ) -> None:
        self._draw = draw
        self._ranges = ranges
        self._has_large_size = False
        self._leading: tuple[int, ...] | None = None
        self.sizes: dict[str, int] = {}
        self.arguments: dict[str, Any] = {}
        self.settings: dict[str, str] = {}
        self.is_tame = False
        self.free: list[torch.Tensor] = []
        self.dtype: torch.dtype = getattr(torch, self.choose("dtype", dtypes))

    def __call__(self, parameter: Parameter, name: str = "") -> Any:
        """A value of this kind."""
        return parameter.draw(self, name)

    def choose(self, name: str, options: Sequence[Any]) -> Any:
        """One of the options, remembered as the setting `name`."""
        number = self.whole(0, len(options) - 1)
        chosen = options[number]
        self.settings[name] = chosen if isinstance(chosen, str) else str(number)
        return chosen

    def whole(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        if low > high:
            raise CallRejected
        return self._draw(low, high)

    def number(self, low: float, high: float) -> float:
        """A float from low to high, of few digits."""
        return low + (high - low) * self.whole(0, 64) / 64

    def happens(self, percent: int) -> bool:
        """True in about so many of a hundred draws."""
        return self.whole(0, 99) >= 100 - percent

    def generator(self) -> torch.Generator:
        """A source of random numbers."""
        return torch.Generator().manual_seed(self.whole(0, 2**31 - 1))

    def named_size(self, name: str) -> int:
        """The size of this name: drawn once, equal wherever the name stands."""
        if name not in self.sizes:
            self.sizes[name] = self._new_size(name)
        return self.sizes[name]

    def _new_size(self, name: str) -> int:
        low, high = self._ranges.get(name, FEW)
        earlier = [size for size in self.sizes.values() if low <= size <= high]
        kind = self.whole(0, 99)
        if (
            kind >= 75 and earlier
        ):  # sizes that coincide hide exchanged axes, or show them
            return earlier[self.whole(0, len(earlier) - 1)]
        if kind >= 68 and name not in self._ranges and not self._has_large_size:
            self._has_large_size = True
            return LARGE_SIZES[self.whole(0, len(LARGE_SIZES) - 1)]
        return self.whole(low, high)

    def size(self, expression: str | int) -> int:
        """The value of an expression of named sizes, such as "H*d" or "N - 1"."""
        if isinstance(expression, int):
            return expression
        if expression.isidentifier():
            return self.named_size(expression)
        # the text stands in the course's own suite; only the names in it are looked up
        return int(eval(expression, {"__builtins__": {}}, _SizesByName(self)))

    def forget(self, *names: str) -> None:
        """Draw these sizes anew when they are next asked for."""
        for name in names:
            self.sizes.pop(name, None)

    def shape(self, axes: Sequence[str | int]) -> tuple[int, ...]:
        """The sizes of the axes; "..." stands for the leading axes, which all arguments share."""
        sizes: list[int] = []
        for axis in axes:
            if axis == "...":
                sizes += self.leading()
            else:
                sizes.append(self.size(axis))
        count = 1
        for size in sizes:
            count *= size
        if count > _LARGEST_TENSOR:
            raise CallRejected
        return tuple(sizes)

    def leading(self) -> tuple[int, ...]:
        """The leading axes: none, or up to three."""
        if self._leading is None:
            count = (1, 0, 2, MOST_LEADING)[self.whole(0, MOST_LEADING)]
            self.settings["leading axes"] = str(count)
            self._leading = tuple(self.whole(1, 3) for _ in range(count))
        return self._leading

"""What `harder(…)` tries: you need not read it.

Made by `autograder build`; the notebook a10_experiments.ipynb imports it.
"""


from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(eq=False, repr=False)  # every worker runs this text: few methods to make
class CheckDifference:
    """How an answer differs from the expected one.

    Attributes:
        sentence: the difference in one sentence.
        actual: the array or value that differs, a part of the answer; None where a sentence says
            all.
        expected: what it should be.
        places: indices of the elements that differ, the first one first.
    """

    sentence: str
    actual: Any = None
    expected: Any = None
    places: tuple[tuple[int, ...], ...] = ()


def compare_answers(actual: Any, expected: Any, atol: float) -> CheckDifference | None:
    """The difference between an answer and the expected one; None where there is none.

    A tuple is as good as a list, a number of numpy's as one of Python's. Of tensors and arrays
    shape and dtype count too.
    """
    if isinstance(expected, (list, tuple)) and any(map(_array_kind, expected)):
        if not isinstance(actual, (list, tuple)) or len(actual) != len(expected):
            count = len(expected)
            return CheckDifference(
                f"It should be {count} values, and is {_short(actual)}."
            )
        pairs = enumerate(zip(actual, expected, strict=True), start=1)
        return _first_difference(((f"value {n}", a, e) for n, (a, e) in pairs), atol)
    if isinstance(expected, dict) and any(map(_array_kind, expected.values())):
        if not isinstance(actual, dict) or actual.keys() != expected.keys():
            found = (
                f"has the keys {list(actual)}"
                if isinstance(actual, dict)
                else _is(actual)
            )
            return CheckDifference(
                f"It should have the keys {list(expected)}, and {found}."
            )
        parts = ((f"the entry {key!r}", actual[key], expected[key]) for key in expected)
        return _first_difference(parts, atol)
    if kind := _array_kind(expected):
        if not _array_kind(actual):
            shape = list(expected.shape)
            return CheckDifference(
                f"It should be {kind} of shape {shape}, and {_is(actual)}."
            )
        return _compare_arrays(actual, expected, atol)
    return _compare_values(actual, expected, atol)


def _first_difference(
    parts: Iterator[tuple[str, Any, Any]], atol: float
) -> CheckDifference | None:
    """The first difference among the parts of an answer, which have names."""
    for name, actual, expected in parts:
        if difference := compare_answers(actual, expected, atol):
            sentence = (
                f"In {name}: {difference.sentence[0].lower()}{difference.sentence[1:]}"
            )
            return CheckDifference(
                sentence, difference.actual, difference.expected, difference.places
            )
    return None


def _compare_arrays(actual: Any, expected: Any, atol: float) -> CheckDifference | None:
    shape, expected_shape = list(actual.shape), list(expected.shape)
    if shape != expected_shape:
        sentence = f"The shape should be {expected_shape}, and is {shape}."
        return CheckDifference(sentence, actual, expected)
    values, expected_values = actual.tolist(), expected.tolist()
    places = tuple(_differing_places(values, expected_values, atol))
    if places:
        first = places[0]
        mine, right = _element(values, first), _element(expected_values, first)
        count = math.prod(shape)
        how_many = (
            f"{len(places)} of {count} elements differ" if count > 1 else "It differs"
        )
        where = f", first at {list(first)}" if count > 1 else ""
        sentence = f"{how_many}{where}: yours is {show(mine)}, expected {show(right)}."
        return CheckDifference(sentence, actual, expected, places)
    dtype, expected_dtype = str(actual.dtype), str(expected.dtype)
    if dtype.removeprefix("torch.") != expected_dtype.removeprefix("torch."):
        return CheckDifference(
            f"The numbers are right; their dtype should be {expected_dtype}, not {dtype}."
        )
    return None


def _compare_values(actual: Any, expected: Any, atol: float) -> CheckDifference | None:
    mine, right = _plain(actual), _plain(expected)
    if isinstance(right, float):
        is_right = isinstance(mine, (int, float)) and _are_near(mine, right, atol)
    else:
        is_right = not _array_kind(actual) and mine == right
    if is_right:
        return None
    return CheckDifference(f"It should be {_short(expected)}, and {_is(actual)}.")


def _array_kind(value: Any) -> str:
    """The words for a tensor or an array; "" for anything else."""
    classes = {base.__name__ for base in type(value).__mro__}
    if "Tensor" in classes:
        return "a tensor"
    return "an array" if "ndarray" in classes else ""


def _plain(value: Any) -> Any:
    """The value with tuples for lists, and Python's numbers for numpy's."""
    if isinstance(value, (list, tuple)):
        return tuple(map(_plain, value))
    is_numpy_number = "generic" in {base.__name__ for base in type(value).__mro__}
    return value.item() if is_numpy_number else value


def _differing_places(
    actual: Any, expected: Any, atol: float, index: tuple[int, ...] = ()
) -> Iterator[tuple[int, ...]]:
    """Indices of the elements of nested lists that differ by more than `atol`."""
    if isinstance(expected, list):
        for number, (mine, right) in enumerate(zip(actual, expected, strict=True)):
            yield from _differing_places(mine, right, atol, (*index, number))
    elif not _are_near(actual, expected, atol):
        yield index


def _are_near(actual: Any, expected: Any, atol: float) -> bool:
    if actual == expected:
        return True
    if str in (type(actual), type(expected)):
        return False
    if actual != actual and expected != expected:  # NaN is not equal to itself
        return True
    return bool(abs(actual - expected) <= atol)


def _element(values: Any, index: Sequence[int]) -> Any:
    for number in index:
        values = values[number]
    return values


def show(value: Any) -> str:
    """A value in a few characters: numbers with four digits after the point at most."""
    if not isinstance(value, float):
        return repr(value)
    if not math.isfinite(value) or value == 0:
        return f"{value:g}".replace("inf", "∞").replace("nan", "NaN")
    if 1e-3 <= abs(value) < 1e5:
        return f"{value:.4f}".rstrip("0").rstrip(".")
    return f"{value:.3g}"


def _is(value: Any) -> str:
    """The words for what an answer is."""
    if kind := _array_kind(value):
        shape = list(value.shape)
        return f"is {kind} of shape {shape}" if shape else f"is {kind}, {_short(value)}"
    return f"is {_short(value)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:197]}..."


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


from collections.abc import Sequence

import torch
from torch import Tensor

FLOATS = (
    "normal",
    "whole",
    "far apart",
    "equal rows",
    "large",
    "small",
    "zeros",
    "offset",
)
"""Styles of floats: any that a docstring without further words allows."""
EDGES = (*FLOATS, "tiny", "edge")
"""Floats whose squares just fit the dtype too, where the docstring says "of any size"."""
_ROW_STEP = {torch.float16: 60.0, torch.bfloat16: 60.0}
_LARGE = {torch.float16: 100.0, torch.bfloat16: 100.0}


def draw_floats(
    style: str,
    shape: Sequence[int],
    dtype: torch.dtype,
    generator: torch.Generator,
) -> Tensor:
    """Floats `[*shape]` of one style.

    "far apart": the rows lie some hundreds apart. "offset": all numbers lie around one that is not
    0. "edge": close to the largest and the smallest number of the dtype.

    Raises:
        ValueError: there is no such style.
    """
    sizes = tuple(shape)
    normal = torch.randn(sizes, dtype=torch.float64, generator=generator)
    if style == "normal":
        numbers = normal
    elif style == "whole":
        numbers = (1.5 * normal).round().clamp(-3, 3)
    elif style == "zeros":
        numbers = torch.zeros_like(normal)
    elif style == "far apart":
        numbers = normal + _ROW_STEP.get(dtype, 500.0) * _row_numbers(sizes)
    elif style == "equal rows":
        numbers = normal[..., :1, :].expand(sizes).clone() if len(sizes) > 1 else normal
    elif style == "large":
        numbers = _LARGE.get(dtype, 1e4) * normal
    elif style == "small":
        numbers = 1e-3 * normal
    elif style == "tiny":
        numbers = (1e-3 if dtype == torch.float16 else 1e-12) * normal
    elif style == "offset":
        numbers = normal + 30
    elif style == "edge":
        numbers = _edges(normal, dtype)
    elif style == "positive":
        numbers = normal.abs() + 0.1
    elif style == "shares":
        numbers = torch.rand(sizes, dtype=torch.float64, generator=generator)
    elif style == "distributions":
        numbers = torch.softmax(2 * normal, dim=-1)
    else:
        raise ValueError(f"there is no style of floats {style!r}")
    return numbers.to(dtype)


def _row_numbers(shape: Sequence[int]) -> Tensor:
    """0, 1, −1, 2, −2 … for the rows, to be added to the numbers of each row."""
    if len(shape) < 2:
        return torch.ones(tuple(shape), dtype=torch.float64)
    rows = torch.arange(shape[-2], dtype=torch.float64)
    signs = torch.where(rows % 2 == 1, 1.0, -1.0)
    return (signs * torch.ceil(rows / 2)).unsqueeze(-1)


def _edges(normal: Tensor, dtype: torch.dtype) -> Tensor:
    """Numbers near the square root of the largest and of the smallest one, so that a sum of squares
    just fits the dtype; in float64 those of float32, in which an answer may compute.
    """
    limits = torch.finfo(torch.float32 if dtype == torch.float64 else dtype)
    large = torch.tensor((limits.max / 1e3) ** 0.5, dtype=torch.float64)
    small = torch.tensor((limits.smallest_normal * 1e3) ** 0.5, dtype=torch.float64)
    return torch.where(normal > 0, large, small) * normal.clamp(-1, 1)


def draw_whole(
    style: str,
    shape: Sequence[int],
    low: int,
    high: int,
    generator: torch.Generator,
) -> Tensor:
    """Whole numbers in [low, high), int64; of the style "random", "equal", "ends" or "rising"."""
    sizes = tuple(shape)
    if low >= high:
        return torch.zeros(sizes, dtype=torch.int64)
    if style == "equal":
        return torch.full(sizes, int(torch.randint(low, high, (), generator=generator)))
    if style == "ends":
        is_high = torch.rand(sizes, generator=generator) < 0.5
        return torch.where(is_high, high - 1, low)
    if style == "rising":
        count = int(torch.tensor(sizes).prod()) if sizes else 1
        return (low + torch.arange(count) % (high - low)).reshape(sizes)
    return torch.randint(low, high, sizes, generator=generator)


WHOLE = ("random", "equal", "ends", "rising")


def draw_mask(style: str, shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """A boolean mask of the style "random", "all", "causal", "padding", "one each" or "some rows
    empty".
    """
    sizes = tuple(shape)
    allowed = torch.rand(sizes, generator=generator) < 0.6
    if style == "all" or not allowed.numel() or not sizes:
        return torch.ones_like(allowed)
    width = sizes[-1]
    a_row = (*sizes[:-1], 1)
    columns = torch.arange(width)
    if style == "causal" and len(sizes) > 1:
        height = sizes[-2]
        rows = torch.arange(height).unsqueeze(-1)
        last_seen = rows + width - height
        return (columns <= last_seen).expand(sizes).clone()
    if style == "padding":
        lengths = torch.randint(1, width + 1, a_row, generator=generator)
        return columns < lengths
    if style == "one each":
        return columns == torch.randint(0, width, a_row, generator=generator)
    if style == "random":  # no row is empty
        first = torch.randint(0, width, a_row, generator=generator)
        return allowed | (columns == first)
    kept_rows = torch.rand(a_row, generator=generator) < 0.6
    return allowed & kept_rows


MASKS = ("random", "all", "causal", "padding", "one each", "some rows empty")
"""Styles of masks; take "some rows empty" out where the docstring promises nothing for a query
without a key.
"""


def shuffle_layout(numbers: Tensor, style: str) -> Tensor:
    """Equal numbers laid out otherwise in memory: "contiguous", "transposed", or "every second" of
    a larger tensor.
    """
    if style == "transposed" and numbers.ndim > 1:
        return numbers.transpose(0, -1).contiguous().transpose(0, -1)
    if style == "every second" and numbers.ndim:
        wide = numbers.repeat_interleave(2, dim=-1)
        return wide[..., ::2]
    return numbers


from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch


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


import sys
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from torch import Tensor


def loaded_torch() -> Any:
    """The library torch; None where nothing in this process has imported it."""
    return sys.modules.get("torch")


def is_tensor(value: Any) -> TypeGuard[Tensor]:
    """Whether the value is a tensor of torch's."""
    torch = loaded_torch()
    return torch is not None and isinstance(value, torch.Tensor)


def dtype_name(dtype: Any) -> str:
    """The name of a dtype of torch's or numpy's: "float64" rather than "torch.float64"."""
    return str(dtype).removeprefix("torch.")


import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Literal


Settings = Mapping[str, str]
"""What was drawn for a script, by the name of the choice: `{"dtype": "float32"}`."""


@dataclass(frozen=True, slots=True)
class Made:
    """The answer of an earlier step of a script, where it is an object: a cache, a model.

    Attributes:
        step: the index of the step.
    """

    step: int


@dataclass(frozen=True, slots=True)
class ScriptStep:
    """One call of a script, or one look at an attribute.

    Attributes:
        name: of a function, a class, a method of `on`, or an attribute of `on`.
        keywords: the arguments that are given by name.
        on: the object whose method or attribute it is; None for a function of the notebook.
        kind: "call"; "read" for an attribute; "helper" for a function of the script's `helpers`.
    """

    name: str
    arguments: tuple[Any, ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)
    on: Made | None = None
    kind: Literal["call", "read", "helper"] = "call"


@dataclass(frozen=True, slots=True)
class Script:
    """Calls in a row.

    Attributes:
        steps: at least one.
        settings: what was drawn for the script; empty for a script that nobody drew.
        helpers: Python text with functions of the suite's own that steps of the kind "helper" call.
        gradients: whether gradients of the float arguments are part of the answer.
    """

    steps: tuple[ScriptStep, ...]
    settings: Settings = field(default_factory=dict)
    helpers: str = ""
    gradients: bool = False

    def map_arguments(self, function: Callable[[Any], Any]) -> Script:
        """The script with the function applied to every leaf of every argument."""
        steps = []
        for step in self.steps:
            arguments = tuple(map_leaves(function, part) for part in step.arguments)
            keywords = {
                name: map_leaves(function, part) for name, part in step.keywords.items()
            }
            steps.append(
                dataclasses.replace(step, arguments=arguments, keywords=keywords)
            )
        return dataclasses.replace(self, steps=tuple(steps))

    def leaves(self) -> list[Any]:
        """The leaves of all arguments, in order."""
        collected: list[Any] = []
        for step in self.steps:
            for part in (*step.arguments, *step.keywords.values()):
                _collect_leaves(part, collected)
        return collected


def map_leaves(function: Callable[[Any], Any], value: Any) -> Any:
    """The same lists, tuples, dicts and plain objects, with the function applied to each leaf."""
    if isinstance(value, (list, tuple)):
        parts = [map_leaves(function, part) for part in value]
        is_named = hasattr(value, "_fields")
        return type(value)(*parts) if is_named else type(value)(parts)
    if isinstance(value, dict):
        return {key: map_leaves(function, part) for key, part in value.items()}
    if type(value) is SimpleNamespace:
        return SimpleNamespace(**map_leaves(function, vars(value)))
    return function(value)


def _collect_leaves(value: Any, collected: list[Any]) -> None:
    """Append what `map_leaves` applies its function to, in the same order."""
    if type(value) is SimpleNamespace:
        value = vars(value)
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (list, tuple)):
        collected.append(value)
        return
    for part in value:
        _collect_leaves(part, collected)


def is_float_tensor(value: Any) -> bool:
    """Whether the value is a tensor of floats."""
    return is_tensor(value) and value.is_floating_point()


def float_dtypes(script: Script) -> set[str]:
    """The dtypes of float tensors among the arguments."""
    return {dtype_name(leaf.dtype) for leaf in script.leaves() if is_float_tensor(leaf)}


from collections.abc import Callable, Mapping
from typing import Any


FULL = ("float64", "float32")
HALF = (*FULL, "float16")
"""Dtypes of a docstring that promises something for half precision too; add "bfloat16" where it
names that.
"""
_CALLS_TWICE = 25
"""Percent of scripts with a second call, which differs from the first in one argument."""


class Play:
    """Writes a script down, call by call.

    Attributes:
        steps: the calls so far.
        helpers: Python text with functions of the suite's own, for `helper`.
    """

    def __init__(self) -> None:
        self.steps: list[ScriptStep] = []
        self.helpers = ""

    def call(
        self,
        name: str,
        /,
        *arguments: Any,
        on: Made | None = None,
        **keywords: Any,
    ) -> Made:
        """Call a function or a class of the notebook, or a method of an object that was made."""
        return self._add(ScriptStep(name, arguments, keywords, on))

    def read(self, name: str, on: Made) -> None:
        """Look at an attribute of an object that was made."""
        self._add(ScriptStep(name, on=on, kind="read"))

    def helper(self, name: str, /, *arguments: Any) -> Made:
        """Call a function of the helpers; it runs beside the student's code."""
        return self._add(ScriptStep(name, arguments, kind="helper"))

    def _add(self, step: ScriptStep) -> Made:
        self.steps.append(step)
        return Made(len(self.steps) - 1)


Form = Callable[[Scope, Play, str], None]
"""Draws the calls of a script: (draws, script, name of the question's function)."""


def allows_all(
    accepts: Callable[..., bool] | None, function: str, script: Script
) -> bool:
    """Whether all calls of a function in a script are allowed, as far as `accepts` says."""
    if accepts is None:
        return True
    steps = [step for step in script.steps if step.name == function]
    return all(accepts(*step.arguments, **step.keywords) for step in steps)


def calls(**parameters: Parameter) -> Form:
    """One call with these arguments, in the order of the signature; now and then a second call that
    differs in one of them.

    Arguments in `maybe(…)` are given by keyword, the others by position.
    """

    def draw_call(scope: Scope, play: Play, name: str) -> None:
        for key, parameter in parameters.items():
            scope.arguments[key] = parameter.draw(scope, key)
        _write_call(play, name, parameters, scope.arguments)
        changeable = [
            key for key in parameters if getattr(parameters[key], "can_change", False)
        ]
        if not changeable or not scope.happens(_CALLS_TWICE):
            return
        key = changeable[scope.whole(0, len(changeable) - 1)]
        second = {**scope.arguments, key: parameters[key].draw(scope, key)}
        scope.settings["second call differs in"] = key
        _write_call(play, name, parameters, second)

    draw_call.parameters = parameters
    return draw_call


def _write_call(
    play: Play,
    name: str,
    parameters: Mapping[str, Parameter],
    values: Mapping[str, Any],
) -> None:
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for key, value in values.items():
        if value is LEFT_OUT:
            continue
        if getattr(parameters[key], "by_keyword", False):
            keywords[key] = value
        else:
            positional.append(value)
    play.call(name, *positional, **keywords)


import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor


_TAME = 40
"""Percent of calls with numbers of the style "normal" alone, for gradients."""
MOST_SMALLER = 400
"""Calls that are tried to make one smaller."""
_FEW_NUMBERS = 12
"""Tensors of at most so many numbers are made simpler number by number."""


class ChosenNumbers:
    """A source of whole numbers: first those of a list, as far as they fit, and then random or
    lowest ones.

    Attributes:
        made: all numbers so far.
    """

    def __init__(
        self,
        first: Sequence[int] = (),
        further: random.Random | None = None,
    ) -> None:
        self.made: list[int] = []
        self._first = first
        self._further = further

    def __call__(
        self,
        low: int,
        high: int,
    ) -> int:
        """A whole number from low to high, both included."""
        place = len(self.made)
        if place < len(self._first):
            number = min(max(self._first[place], low), high)
        elif self._further is not None:
            number = self._further.randint(low, high)
        else:
            number = low
        self.made.append(number)
        return number


@dataclass(eq=False, repr=False)
class AllowedCalls:
    """What a question allows: a contract, as the notebook needs it.

    Attributes:
        form: draws the calls of one script.
        sizes: smallest and largest size, by name.
        gradients: whether gradients are part of the answer.
        has_choices: whether an answer may choose among equal numbers, so that rounding decides.
        allowed_if: says of the arguments of a call whether it is allowed.
    """

    question: str
    function: str
    form: Form
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    dtypes: Sequence[str] = FULL
    gradients: bool = False
    has_choices: bool = False
    allowed_if: Callable[..., bool] | None = None

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The kinds of the arguments, by name; none where a function draws the calls."""
        parameters: Mapping[str, Any] = getattr(
            self.form,
            "parameters",
            {},
        )
        return parameters

    def draw(self, numbers: WholeNumbers) -> DrawnCalls:
        """Draw a script. Raises: CallRejected."""
        scope = Scope(
            numbers,
            self.sizes,
            self.dtypes,
        )
        scope.is_tame = scope.happens(_TAME)
        play = Play()
        self.form(
            scope,
            play,
            self.function,
        )
        script = Script(
            tuple(play.steps),
            dict(scope.settings),
            play.helpers,
        )
        drawn = DrawnCalls(
            self,
            script,
            scope.free,
            is_tame=scope.is_tame,
        )
        if not drawn.is_allowed():
            raise CallRejected
        return drawn


@dataclass(eq=False, repr=False)
class DrawnCalls:
    """A script that was drawn.

    Attributes:
        free: the tensors of its arguments that may have any floats.
        is_tame: whether all floats are of the style "normal".
    """

    allowed: AllowedCalls
    script: Script
    free: Sequence[Tensor]
    is_tame: bool

    def is_allowed(self) -> bool:
        """Whether `allowed_if` takes all calls of the question's function."""
        return allows_all(self.allowed.allowed_if, self.allowed.function, self.script)

    def with_tensor(
        self,
        old: Tensor,
        new: Tensor,
    ) -> DrawnCalls:
        """The same calls with another tensor in one's place."""
        script = self.script.map_arguments(lambda leaf: new if leaf is old else leaf)
        free = [new if tensor is old else tensor for tensor in self.free]
        return DrawnCalls(
            self.allowed,
            script,
            free,
            self.is_tame,
        )


StillFails = Callable[[DrawnCalls], bool]
"""Whether smaller calls show the same."""


class SmallerCalls:
    """Looks for the smallest calls that still fail.

    Args:
        drawn: calls that fail.
        numbers: the whole numbers that they were drawn with.
        fails: says of other calls whether they fail in the same way.
        has_time: whether there is time for another try.
    """

    def __init__(
        self,
        drawn: DrawnCalls,
        numbers: Sequence[int],
        fails: StillFails,
        has_time: Callable[[], bool],
    ) -> None:
        self.drawn = drawn
        self._numbers = list(numbers)
        self._fails = fails
        self._has_time = has_time
        self._tries = 0

    def find(self) -> DrawnCalls:
        """The smallest calls that were found."""
        while self._shrink_numbers():
            pass
        self._simplify_tensors()
        return self.drawn

    def _shrink_numbers(self) -> bool:
        """Go once through all numbers; returns whether any became smaller."""
        has_moved = False
        place = 0
        while place < len(self._numbers):
            for smaller in _smaller_numbers(self._numbers[place]):
                if self._try_numbers(
                    [*self._numbers[:place], smaller, *self._numbers[place + 1 :]]
                ):
                    has_moved = True
                    break
            place += 1
        return has_moved

    def _try_numbers(self, numbers: Sequence[int]) -> bool:
        if self._tries >= MOST_SMALLER or not self._has_time():
            return False
        source = ChosenNumbers(numbers)
        try:
            drawn = self.drawn.allowed.draw(source)
        except CallRejected:
            return False
        is_smaller = (len(source.made), source.made) < (
            len(self._numbers),
            self._numbers,
        )
        if is_smaller and self._try(drawn):
            self._numbers = source.made
            return True
        return False

    def _try(self, drawn: DrawnCalls) -> bool:
        """Keep calls that are allowed and fail."""
        if self._tries >= MOST_SMALLER or not self._has_time():
            return False
        self._tries += 1
        if not drawn.is_allowed() or not self._fails(drawn):
            return False
        self.drawn = drawn
        return True

    def _simplify_tensors(self) -> None:
        """Plain layouts; then zeros, ones or whole numbers for each tensor, and for its numbers."""
        for place in range(len(self.drawn.free)):
            tensor = self.drawn.free[place]
            if not tensor.is_contiguous():
                self._try(self.drawn.with_tensor(tensor, tensor.contiguous()))
            for simplify in _SIMPLER:
                tensor = self.drawn.free[place]
                simple = simplify(tensor)
                if bool((simple == tensor).all()):
                    break
                if self._try(self.drawn.with_tensor(tensor, simple)):
                    break
            self._simplify_elements(place)

    def _simplify_elements(self, place: int) -> None:
        count = self.drawn.free[place].numel()
        for element in range(count if 1 < count <= _FEW_NUMBERS else 0):
            tensor = self.drawn.free[place]
            simple = tensor.clone()
            if simple.flatten()[element] != 0 and simple.is_contiguous():
                simple.view(-1)[element] = 0
                self._try(self.drawn.with_tensor(tensor, simple))


def _smaller_numbers(number: int) -> Iterator[int]:
    """0 first, then numbers that come near."""
    yield from dict.fromkeys(
        n for n in (0, 1, number // 2, number - 1) if 0 <= n < number
    )


_SIMPLER: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda tensor: tensor * 0,
    lambda tensor: tensor * 0 + 1,
    lambda tensor: tensor.round().clamp(-2, 2),
    lambda tensor: tensor.round(),
    lambda tensor: (10 * tensor).round() / 10,
)


def float_arguments(script: Script) -> list[Tensor]:
    """The float tensors among the arguments."""
    return [leaf for leaf in script.leaves() if is_float_tensor(leaf)]


from collections.abc import Callable
from typing import Any


def leaves(value: Any) -> list[Any]:
    """The leaves of nested lists, tuples and dicts, in order; a dict's keys are no leaves."""
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (list, tuple)):
        return [value]
    collected = []
    for part in value:
        collected += leaves(part)
    return collected


def mapped(
    function: Callable[[Any], Any],
    value: Any,
) -> Any:
    """The same lists, tuples (named ones too) and dicts, with the function applied to each leaf."""
    if isinstance(value, dict):
        return {key: mapped(function, part) for key, part in value.items()}
    if not isinstance(value, (list, tuple)):
        return function(value)
    parts = [mapped(function, part) for part in value]
    if isinstance(value, list):
        return parts
    if hasattr(value, "_fields"):
        return type(value)(*parts)
    return tuple(parts)


import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor


_OBJECT = "an object"
"""Stands for an answer that is an object: two objects are compared by what they answer later."""


@dataclass(slots=True)
class StepAnswer:
    """The answer of one step.

    Attributes:
        value: data, or the word for an object.
        fault: the exception in its place: a StudentFault of a submission, any of the answer key.
        changed: places in the arguments that the call changed.
        gradients: of the float tensors among the arguments, where the script asks for them; None
            for a tensor that no gradient reaches.
    """

    value: Any = None
    fault: Exception | None = None
    changed: tuple[str, ...] = ()
    gradients: list[Tensor | None] = field(default_factory=list)


FindFunction = Callable[[ScriptStep], Any]
"""The function of a step that is called on no object: a question's, or a helper of the script."""


def play_step(
    step: ScriptStep,
    made: Sequence[Any],
    find: FindFunction,
    *,
    with_gradients: bool = False,
) -> tuple[StepAnswer, Any]:
    """The answer of a step, and the object that it made, for later steps."""
    inputs: list[Tensor] = []

    def fill_in(leaf: Any) -> Any:
        if isinstance(leaf, Made):
            return made[leaf.step]
        if isinstance(leaf, Tensor):
            fresh = _fresh(leaf)
            if with_gradients and is_float_tensor(leaf):
                inputs.append(fresh.requires_grad_())
            return fresh
        return leaf

    arguments = tuple(map_leaves(fill_in, part) for part in step.arguments)
    keywords = {name: map_leaves(fill_in, part) for name, part in step.keywords.items()}
    answer = StepAnswer()
    result = _call(step, made, find, arguments, keywords)
    if inputs:
        answer.gradients = _gradients(result, inputs)
    answer.value = as_step_value(result)
    return answer, result


def as_step_value(result: Any) -> Any:
    """What is compared of a step's result: its data, and the word for each object in it."""
    return map_leaves(_as_data, result)


def _call(
    step: ScriptStep,
    made: Sequence[Any],
    find: FindFunction,
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
) -> Any:
    if step.on is not None:
        target = getattr(made[step.on.step], step.name)
        return target if step.kind == "read" else target(*arguments, **keywords)
    if step.kind == "helper":
        return find(step)(*arguments)
    return find(step)(*arguments, **keywords)


def _fresh(tensor: Tensor) -> Tensor:
    """A copy of a tensor with the same layout in memory."""
    if tensor.is_contiguous():
        return tensor.detach().clone()
    return copy.deepcopy(tensor.detach())


def _gradients(result: Any, inputs: Sequence[Tensor]) -> list[Tensor | None]:
    """Gradients of a weighted sum of the result's floats."""
    total = weighted_sum(result, with_gradient=True)
    if total is None:
        return [None for _ in inputs]
    total.backward()
    return [
        None if tensor.grad is None else tensor.grad.detach().clone()
        for tensor in inputs
    ]


def weighted_sum(answer: Any, *, with_gradient: bool = False) -> Tensor | None:
    """The sum of all floats of an answer, each with its own weight; None where there are none.

    Args:
        with_gradient: only of tensors that a gradient passes through.
    """
    total: Tensor | None = None
    for place, leaf in enumerate(leaves(answer)):
        if not is_float_tensor(leaf) or (with_gradient and not leaf.requires_grad):
            continue
        weights = torch.cos(torch.arange(leaf.numel(), dtype=torch.float64) + place)
        part = (leaf.double() * weights.view(leaf.shape)).sum()
        total = part if total is None else total + part
    return total


def _as_data(leaf: Any) -> Any:
    if isinstance(leaf, Tensor):
        return leaf.detach()
    is_data = leaf is None or isinstance(
        leaf, (bool, int, float, complex, str, bytes, torch.dtype)
    )
    if is_data or type(leaf).__module__ == "numpy":
        return leaf
    return _OBJECT if not isinstance(leaf, (set, frozenset)) else leaf


import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor


SHARE = 1e-5
"""The difference in float64 that is no mistake, as a share of the largest number: an answer may
compute in float32 inside.
"""
_SHARE_OF_KERNELS = 1e-4
"""The same in float32, the widest numbers of kernels."""


class ClaimBroken(AssertionError):
    """A claim that does not hold of a call.

    Attributes:
        difference: what differs; None where the sentence says all.
    """

    def __init__(
        self,
        sentence: str,
        difference: CheckDifference | None = None,
    ) -> None:
        super().__init__(sentence)
        self.difference = difference


@dataclass(eq=False, repr=False)
class HarderTrial:
    """Calls of a student's function, about which claims are made.

    Attributes:
        names: the names of the notebook.
        refuses: arguments and axes that must fit: "w_x.0".
        is_kernel: whether the function launches kernels: these have no float64, and their tensors
            are on the notebook's `device`.
    """

    drawn: DrawnCalls
    names: Mapping[str, Any]
    refuses: Sequence[str] = ()
    is_kernel: bool = False
    _answers: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def script(self) -> Script:
        """The calls."""
        return self.drawn.script

    def play(self, script: Script) -> list[Any]:
        """The answers to other calls; raises what the student's code raises."""
        made: list[Any] = []
        answers = []
        helpers: dict[str, Any] = {}
        if script.helpers:
            helpers["torch"] = torch
            exec(
                compile(
                    script.helpers,
                    "<helpers>",
                    "exec",
                ),
                helpers,
            )

        def find(step: ScriptStep) -> Any:
            if step.kind == "helper":
                return helpers[step.name]
            return self.find_function(step)

        for step in script.steps:
            answer, made_object = play_step(
                step,
                made,
                find,
            )
            answers.append(answer.value)
            made.append(made_object)
        return answers

    @property
    def answers(self) -> list[Any]:
        """The answers to the calls as they were drawn."""
        if "drawn" not in self._answers:
            self._answers["drawn"] = self.play(self.script)
        return self._answers["drawn"]

    @property
    def wide_answers(self) -> list[Any]:
        """The answers to the calls in the widest numbers."""
        if "wide" not in self._answers:
            self._answers["wide"] = self.play(self.script.map_arguments(self.widen))
        return self._answers["wide"]

    def widen(self, leaf: Any) -> Any:
        """A float tensor, or a float dtype, in float64, or in float32 for a kernel."""
        return _in_dtype(leaf, torch.float32 if self.is_kernel else torch.float64)

    @property
    def share(self) -> float:
        """The difference in the widest numbers that is no mistake, as a share of the largest."""
        return _SHARE_OF_KERNELS if self.is_kernel else SHARE

    @property
    def dtype(self) -> torch.dtype | None:
        """The one dtype of all float arguments; None where there are none, or several."""
        dtypes = {tensor.dtype for tensor in float_arguments(self.script)}
        dtypes |= {
            leaf for leaf in self.script.leaves() if isinstance(leaf, torch.dtype)
        }
        return dtypes.pop() if len(dtypes) == 1 else None

    @property
    def floor(self) -> float:
        """The largest float among the arguments, at most 1."""
        sizes = [largest_number(tensor) for tensor in float_arguments(self.script)]
        return min(1.0, max(sizes, default=1.0))

    def find_function(self, step: ScriptStep) -> Any:
        """The notebook's function of a step; a kernel's takes and gives tensors of the CPU."""
        function = self.names[step.name]
        device = self.names.get("device", "cpu") if self.is_kernel else "cpu"
        if device == "cpu":
            return function
        return functools.partial(_call_on, device, function)

    def first_call(self) -> ScriptStep | None:
        """The first call of the question's function; None where there is none."""
        for step in self.script.steps:
            is_call = step.kind == "call" and step.on is None
            if is_call and step.name == self.drawn.allowed.function:
                return step
        return None

    def the_call(self) -> ScriptStep | None:
        """The one call of the question's function; None where the calls are several."""
        return self.first_call() if len(self.script.steps) == 1 else None

    def bound_arguments(self, step: ScriptStep) -> dict[str, Any]:
        """The arguments of a call by name."""
        signature = inspect.signature(self.names[step.name])
        return dict(signature.bind(*step.arguments, **step.keywords).arguments)


Claim = Callable[[HarderTrial], None]
"""Raises ClaimBroken where the claim does not hold."""


def _in_dtype(leaf: Any, wide: torch.dtype) -> Any:
    """A float tensor, or a float dtype, in another one; anything else as it is."""
    if isinstance(leaf, torch.dtype):
        return wide if leaf.is_floating_point else leaf
    return leaf.to(wide) if is_float_tensor(leaf) else leaf


def _call_on(
    device: str,
    function: Callable[..., Any],
    *arguments: Any,
    **keywords: Any,
) -> Any:
    """Call a function with its tensors on a device; the answer comes back to the CPU."""

    def there(leaf: Any) -> Any:
        return leaf.to(device) if isinstance(leaf, Tensor) else leaf

    def here(leaf: Any) -> Any:
        return leaf.cpu() if isinstance(leaf, Tensor) else leaf

    moved = map_leaves(there, list(arguments))
    answer = function(*moved, **map_leaves(there, keywords))
    return map_leaves(here, answer)


def largest_number(value: Any) -> float:
    """The largest finite number in an answer, without its sign; 0 where there is none."""
    largest = 0.0
    for leaf in leaves(value):
        if isinstance(leaf, Tensor) and leaf.numel() and leaf.dtype != torch.bool:
            finite = leaf.detach().double().abs()
            finite = finite[finite.isfinite()]
            largest = max(largest, float(finite.max()) if finite.numel() else 0.0)
        elif isinstance(leaf, float) and math.isfinite(leaf):
            largest = max(largest, abs(leaf))
    return largest


def find_difference(
    actual: Any, expected: Any, share: float = SHARE, floor: float = 0.0
) -> CheckDifference | None:
    """How two answers differ by more than a share of the largest number; None where they do not."""
    both_lists = all(isinstance(value, (list, tuple)) for value in (actual, expected))
    if both_lists and len(actual) == len(expected):
        for mine, other in zip(
            actual,
            expected,
            strict=True,
        ):
            if difference := find_difference(
                mine,
                other,
                share,
                floor,
            ):
                return difference
        return None
    if (
        isinstance(actual, dict)
        and isinstance(expected, dict)
        and actual.keys() == expected.keys()
    ):
        return find_difference(
            [actual[key] for key in expected], list(expected.values()), share, floor
        )
    is_exact = isinstance(expected, Tensor) and not is_float_tensor(expected)
    largest = 0.0 if is_exact else max(largest_number(expected), floor)
    return compare_answers(
        _detached(actual),
        _detached(expected),
        share * largest,
    )


def _detached(value: Any) -> Any:
    return value.detach() if isinstance(value, Tensor) else value


def claim_same(
    sentence: str,
    actual: Any,
    expected: Any,
    share: float,
    floor: float,
) -> None:
    """Claim that two answers are the same. Raises: ClaimBroken."""
    difference = find_difference(
        actual,
        expected,
        share,
        floor,
    )
    if difference is not None:
        raise ClaimBroken(sentence, difference)


def with_arguments(
    trial: HarderTrial,
    step: ScriptStep,
    arguments: Mapping[str, Any],
) -> Script:
    """The one call of a trial with other arguments, by name where that is possible."""
    parameters = inspect.signature(trial.names[step.name]).parameters
    by_place = [
        name
        for name, parameter in parameters.items()
        if name in arguments and parameter.kind is not inspect.Parameter.KEYWORD_ONLY
    ]
    keywords = {name: arguments[name] for name in arguments if name in step.keywords}
    placed = tuple(arguments[name] for name in by_place if name not in keywords)
    return Script(
        (
            ScriptStep(
                step.name,
                placed,
                keywords,
            ),
        ),
        {},
        trial.script.helpers,
    )


def replacing(tensors: Mapping[int, Tensor]) -> Callable[[Any], Any]:
    """Puts tensors in the places of those with these ids."""

    def replace(leaf: Any) -> Any:
        return tensors.get(id(leaf), leaf)

    return replace


def short_dtype(dtype: torch.dtype) -> str:
    """A dtype without the name of its library: float32."""
    return str(dtype).removeprefix("torch.")


from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor


_SHARES = {torch.float32: 5e-4, torch.float16: 3e-2, torch.bfloat16: 8e-2}
_LAST_DIGIT = {
    torch.float32: 2.0**-22,
    torch.float16: 2.0**-10,
    torch.bfloat16: 2.0**-7,
}
_MOVED_TRIES = 6
_MOVES = 10.0
"""How many times as far as an answer moves by the last digits of its inputs it may be off."""


def precision_is_kept(trial: HarderTrial) -> None:
    """The answer in float32 or float16 is near the answer in float64."""
    dtype = trial.dtype
    if dtype not in _SHARES or trial.drawn.allowed.has_choices:
        return
    wide, narrow = leaves(trial.wide_answers), leaves(trial.answers)
    if len(wide) != len(narrow):
        return
    moved: list[list[Any]] = []
    for place, (expected, actual) in enumerate(zip(wide, narrow, strict=True)):
        if not is_float_tensor(expected) or not isinstance(actual, Tensor):
            continue
        if find_difference(
            actual.double(),
            expected.double(),
            _SHARES[dtype],
            trial.floor,
        ):
            moved = moved or [
                leaves(answers) for answers in _moved_answers(trial, dtype)
            ]
            variants = [parts[place] for parts in moved if len(parts) == len(wide)]
            _claim_near(
                actual.double(),
                expected,
                variants,
                dtype,
                trial.floor,
            )


def _moved_answers(trial: HarderTrial, dtype: torch.dtype) -> Iterator[list[Any]]:
    """Answers in wide numbers to arguments that differ in the last digit of the narrow dtype."""
    for number in range(_MOVED_TRIES):
        generator = torch.Generator().manual_seed(number)

        def move(leaf: Any, generator: torch.Generator = generator) -> Any:
            if not is_float_tensor(leaf):
                return leaf
            wide = trial.widen(leaf)
            shares = (
                2
                * torch.rand(
                    leaf.shape,
                    generator=generator,
                    dtype=torch.float64,
                )
                - 1
            )
            moved = wide * (1 + _LAST_DIGIT[dtype] * shares)
            return moved.to(wide.dtype)

        yield trial.play(trial.script.map_arguments(move))


def _claim_near(
    actual: Tensor,
    expected: Tensor,
    variants: Sequence[Any],
    dtype: torch.dtype,
    floor: float,
) -> None:
    largest = max(largest_number(expected), floor)
    if actual.shape != expected.shape or largest > torch.finfo(dtype).max / 4:
        return
    moves = 0.0
    for variant in variants:
        if not torch.equal(variant.isfinite(), expected.isfinite()):
            return
        moves = max(moves, largest_number(variant - expected))
    allowed = _SHARES[dtype] * largest + _MOVES * moves
    difference = compare_answers(
        actual,
        expected.double(),
        allowed,
    )
    if difference is not None:
        name = short_dtype(dtype)
        raise ClaimBroken(
            f"In {name} it is another answer than in float64.", difference
        )


from collections.abc import Sequence

import torch
from torch import Tensor


_STEP = 1e-3
_GRADIENT_SHARE = 5e-3


def gradient_is_the_slope(trial: HarderTrial) -> None:
    """The gradient is the slope: it tells how the answer changes where the arguments do."""
    if not (trial.drawn.allowed.gradients and trial.drawn.is_tame):
        return
    step = trial.the_call()
    if step is None or trial.dtype not in (torch.float64, torch.float32):
        return
    script = trial.script.map_arguments(trial.widen)
    inputs = float_arguments(script)
    generator = torch.Generator().manual_seed(1)
    ways = [
        torch.randn(
            x.shape,
            generator=generator,
            dtype=torch.float64,
        )
        for x in inputs
    ]
    answer, _ = play_step(
        script.steps[0],
        [],
        trial.find_function,
        with_gradients=True,
    )
    if all(gradient is None for gradient in answer.gradients):
        raise ClaimBroken("No gradient arrives at the arguments.")
    slope = sum(
        float((gradient * way).sum())
        for gradient, way in zip(
            answer.gradients,
            ways,
            strict=True,
        )
        if gradient is not None
    )
    measured = [
        _measure_slope(
            trial,
            script,
            inputs,
            ways,
            step,
        )
        for step in (_STEP, _STEP / 2)
    ]
    scale = max(
        1.0,
        abs(measured[1]),
        abs(slope),
    )
    is_smooth = abs(measured[0] - measured[1]) < _GRADIENT_SHARE * scale / 5
    if is_smooth and not abs(slope - measured[1]) <= _GRADIENT_SHARE * scale:
        raise ClaimBroken(
            "The arguments are moved a little in one direction: by the gradient the answer "
            f"should change at the rate {slope:.4g}, and it changes at the rate {measured[1]:.4g}."
        )


def _measure_slope(
    trial: HarderTrial,
    script: Script,
    inputs: Sequence[Tensor],
    ways: Sequence[Tensor],
    step: float,
) -> float:
    """The difference quotient of the weighted sum of all floats, along a direction."""
    totals = []
    for sign in (1, -1):
        moved = {
            id(x): x + sign * step * way for x, way in zip(inputs, ways, strict=True)
        }
        answer = trial.play(script.map_arguments(replacing(moved)))
        total = weighted_sum(answer[0])
        totals.append(0.0 if total is None else float(total))
    return (totals[0] - totals[1]) / (2 * step)


import copy
import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor


_MOST_ROWS = 3


def answers_every_call(trial: HarderTrial) -> None:
    """Every call that the question allows gets an answer."""
    assert trial.answers is not None


def arguments_stay(trial: HarderTrial) -> None:
    """No argument is changed."""
    step = trial.the_call()
    if step is None:
        return
    before = [*step.arguments, *step.keywords.values()]
    after = map_leaves(copy.deepcopy, before)
    count = len(step.arguments)
    keywords = dict(zip(step.keywords, after[count:], strict=True))
    trial.find_function(step)(*after[:count], **keywords)
    sentence = "An argument is another one after the call."
    for old, new in zip(before, after, strict=True):
        claim_same(sentence, _plain(new), _plain(old), 0, 0)


def _plain(value: Any) -> Any:
    return vars(value) if type(value) is SimpleNamespace else value


def dtype_is_kept(trial: HarderTrial) -> None:
    """Floats of the answer have the dtype of the arguments."""
    if trial.dtype is None or not float_arguments(trial.script):
        return
    for leaf in leaves(trial.answers):
        if is_float_tensor(leaf) and leaf.dtype != trial.dtype:
            expected = short_dtype(trial.dtype)
            actual = short_dtype(leaf.dtype)
            raise ClaimBroken(
                f"The arguments are {expected}, and the answer is {actual}."
            )


def answer_is_finite(trial: HarderTrial) -> None:
    """Finite numbers give finite numbers."""
    if not all(
        bool(tensor.isfinite().all()) for tensor in float_arguments(trial.script)
    ):
        return
    if trial.dtype not in (torch.float64, torch.float32, None):
        return  # half precision overflows in sums of large numbers
    for leaf in leaves(trial.answers):
        if is_float_tensor(leaf) and not bool(leaf.isfinite().all()):
            where = (~leaf.isfinite()).nonzero()[0].tolist()
            shown = f" at {where}" if where else ""
            raise ClaimBroken(f"The answer has NaN or ∞{shown}.")
        if isinstance(leaf, float) and not math.isfinite(leaf):
            raise ClaimBroken(f"The answer is {leaf}.")


def answer_comes_again(trial: HarderTrial) -> None:
    """The same call gets the same answer a second time."""
    claim_same(
        "The second answer differs.",
        trial.play(trial.script),
        trial.answers,
        1e-9,
        0,
    )


def layout_is_nothing(trial: HarderTrial) -> None:
    """A view of a tensor gets the answer of a contiguous tensor with the same numbers."""
    tensors = [leaf for leaf in trial.script.leaves() if isinstance(leaf, Tensor)]
    if trial.drawn.allowed.has_choices or all(
        tensor.is_contiguous() for tensor in tensors
    ):
        return
    plain = trial.script.map_arguments(trial.widen).map_arguments(_contiguous)
    sentence = "A view of a tensor gets another answer than a contiguous copy."
    claim_same(
        sentence,
        trial.wide_answers,
        trial.play(plain),
        trial.share,
        trial.floor,
    )


def _contiguous(leaf: Any) -> Any:
    return leaf.contiguous() if isinstance(leaf, Tensor) else leaf


def batch_is_nothing(trial: HarderTrial) -> None:
    """Each element of a batch alone gets its part of the answer."""
    step = trial.the_call()
    parameters = trial.drawn.allowed.parameters
    if step is None or not parameters or trial.drawn.allowed.has_choices:
        return
    arguments = trial.bound_arguments(step)
    batched = {
        name: value
        for name, value in arguments.items()
        if isinstance(value, Tensor)
        and _is_batched(
            parameters.get(name),
            value,
            parameters,
        )
    }
    sizes = {tensor.shape[0] for tensor in batched.values()}
    if len(sizes) != 1 or (count := sizes.pop()) == 1:
        return
    whole = leaves(trial.wide_answers)
    for row in range(min(count, _MOST_ROWS)):
        part = {name: tensor.narrow(0, row, 1) for name, tensor in batched.items()}
        script = with_arguments(
            trial,
            step,
            {**arguments, **part},
        )
        alone = leaves(trial.play(script.map_arguments(trial.widen)))
        for mine, single in zip(whole, alone, strict=False):
            if not (isinstance(mine, Tensor) and isinstance(single, Tensor)):
                continue
            if mine.ndim and mine.shape[0] == count and single.shape[:1] == (1,):
                sentence = f"Element {row} of the batch alone gets another answer."
                claim_same(
                    sentence,
                    mine[row],
                    single[0],
                    trial.share,
                    trial.floor,
                )


def _is_batched(
    parameter: Any,
    value: Tensor,
    parameters: Mapping[str, Any],
) -> bool:
    """Whether the first axis of an argument is the batch."""
    axes = getattr(
        parameter,
        "axes",
        (),
    )
    if not axes or axes[0] not in ("...", "B"):
        return False
    return axes[0] == "B" or value.ndim >= len(axes)


def sizes_are_checked(trial: HarderTrial) -> None:
    """Sizes that do not fit are refused with ValueError."""
    step = trial.the_call()
    if step is None:
        return
    for place in trial.refuses:
        *path, axis = place.split(".")
        arguments = trial.bound_arguments(step)
        tensor = _at_path(arguments, path)
        if (
            not isinstance(tensor, Tensor)
            or not -tensor.ndim <= int(axis) < tensor.ndim
        ):
            continue
        longer = _one_longer(tensor, int(axis) % tensor.ndim)
        changed = map_leaves(replacing({id(tensor): longer}), arguments)
        name = "".join([path[0], *(f'["{key}"]' for key in path[1:])])
        meant = f"{name} of shape {list(longer.shape)} in place of {list(tensor.shape)}"
        try:
            trial.play(
                with_arguments(
                    trial,
                    step,
                    changed,
                )
            )
        except ValueError:
            continue
        except Exception as error:
            raise ClaimBroken(
                f"With {meant} the call should raise ValueError, and raises "
                f"{type(error).__name__}: {error}"
            ) from error
        raise ClaimBroken(
            f"With {meant} the call should raise ValueError, and answers."
        )


def _at_path(arguments: Mapping[str, Any], path: Sequence[str]) -> Any:
    value: Any = arguments
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return value


def _one_longer(tensor: Tensor, axis: int) -> Tensor:
    """The tensor with its last part once more along an axis."""
    length = tensor.shape[axis]
    if length == 0:
        return torch.zeros(
            [size + (number == axis) for number, size in enumerate(tensor.shape)],
            dtype=tensor.dtype,
        )
    return torch.cat(
        [
            tensor,
            tensor.narrow(axis, length - 1, 1),
        ],
        dim=axis,
    )


GENERAL: Mapping[str, Claim] = {
    "answers": answers_every_call,
    "unchanged": arguments_stay,
    "dtype": dtype_is_kept,
    "finite": answer_is_finite,
    "again": answer_comes_again,
    "layout": layout_is_nothing,
    "precision": precision_is_kept,
    "batch": batch_is_nothing,
    "sizes": sizes_are_checked,
    "gradient": gradient_is_the_slope,
}
"""Claims about every question, by the word with which `about` leaves one out."""


import contextlib
import importlib
import importlib.util
from collections.abc import Callable
from typing import Any


_MOST_EXAMPLES = 60


class _FailsAlike(Exception):  # tells hypothesis that a call fails
    """A smaller call fails in the same way."""


class _TimeIsUp(KeyboardInterrupt):
    """Ends hypothesis's search, which lets no other exception through."""


def shrink_with_hypothesis(
    drawn: DrawnCalls,
    seed: int,
    fails: Callable[[DrawnCalls], bool],
    is_over: Callable[[], bool],
) -> tuple[DrawnCalls, list[int]] | None:
    """Smaller calls that fail alike, found by hypothesis; None where it is not installed, or finds
    none in time.
    """
    if importlib.util.find_spec("hypothesis") is None:
        return None
    hypothesis: Any = importlib.import_module("hypothesis")
    whole = importlib.import_module("hypothesis.strategies")
    smallest: list[tuple[DrawnCalls, list[int]]] = []

    def search(data: Any) -> None:
        if is_over():
            raise _TimeIsUp
        made: list[int] = []

        def draw(low: int, high: int) -> int:
            made.append(data.draw(whole.integers(low, high)))
            return made[-1]

        try:
            smaller = drawn.allowed.draw(draw)
        except CallRejected:
            hypothesis.reject()
        if fails(smaller):
            smallest.append((smaller, made))
            raise _FailsAlike

    settings = hypothesis.settings(
        database=None,
        deadline=None,
        max_examples=_MOST_EXAMPLES,
        phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink],
        report_multiple_bugs=False,
        suppress_health_check=list(hypothesis.HealthCheck),
        verbosity=hypothesis.Verbosity.quiet,
    )
    run = hypothesis.seed(seed)(settings(hypothesis.given(whole.data())(search)))
    with contextlib.suppress(
        _FailsAlike,
        _TimeIsUp,
        hypothesis.errors.HypothesisException,
    ):
        run()
    return smallest[-1] if smallest else None


import inspect
import math
from types import SimpleNamespace
from typing import Any

import numpy as np


_UNSAID_DTYPES = ("float32", "int64", "bool")
"""Dtypes that `torch.tensor` chooses by itself."""
_MOST_NUMBERS = 400
"""Numbers of a tensor that are written out; beyond, its shape."""


def script_lines(script: Script) -> list[str]:
    """The script as lines of Python, one a step."""
    texts = [script.helpers] if script.helpers else []
    texts += dict.fromkeys(
        inspect.getsource(leaf) for leaf in script.leaves() if _is_own(leaf)
    )
    lines = [line for text in texts for line in [*text.strip("\n").split("\n"), ""]]
    users = {
        part.step
        for step in script.steps
        for part in (step.on, *_made_parts(step))
        if part
    }
    for number, step in enumerate(script.steps):
        text = _step_text(step, value_text)
        lines.append(f"made_{number} = {text}" if number in users else text)
    return lines


def can_be_run(script: Script) -> bool:
    """Whether the lines of a script can be run: of a large tensor they give the shape alone."""
    tensors = filter(is_tensor, script.leaves())
    return all(tensor.numel() <= _MOST_NUMBERS for tensor in tensors)


def script_title(script: Script) -> str:
    """The script in one line, tensors as shapes: `attend(scores [2, 3], states [2, 3, 4])`."""
    return "; ".join(_step_text(step, _short_text) for step in script.steps)


def _is_own(value: Any) -> bool:
    """Whether a value is a function that a contract defines, and whose text can be shown."""
    return inspect.isfunction(value)


def _made_parts(step: ScriptStep) -> list[Made]:
    parts = [*step.arguments, *step.keywords.values()]
    return [part for part in parts if isinstance(part, Made)]


def _step_text(step: ScriptStep, write: Any) -> str:
    name = f"made_{step.on.step}.{step.name}" if step.on else step.name
    if step.kind == "read":
        return name
    arguments = [write(part) for part in step.arguments]
    arguments += [f"{key}={write(part)}" for key, part in step.keywords.items()]
    return f"{name}({', '.join(arguments)})"


def value_text(value: Any) -> str:
    """A value as Python writes it, with torch imported."""
    torch = loaded_torch()
    if is_tensor(value):
        return _tensor_text(value)
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()!r}, dtype={value.dtype.name!r})"
    if torch is not None and isinstance(value, torch.dtype):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    if isinstance(value, Made):
        return f"made_{value.step}"
    return _container_text(value, value_text)


def _tensor_text(value: Any) -> str:
    dtype = dtype_name(value.dtype)
    if value.numel() > _MOST_NUMBERS:
        return f"<{dtype} {list(value.shape)}>"
    suffix = "" if dtype in _UNSAID_DTYPES else f", dtype=torch.{dtype}"
    if not value.numel():
        dtype_part = "" if dtype == "float32" else f", dtype=torch.{dtype}"
        return f"torch.zeros({', '.join(map(str, value.shape))}{dtype_part})"
    numbers = value.tolist()
    if dtype == "float32":  # as few digits as float32 needs
        numbers = map_leaves(lambda number: float(str(np.float32(number))), numbers)
    text = f"torch.tensor({_numbers_text(numbers)}{suffix})"
    if value.ndim > 1 and not value.is_contiguous():
        order = sorted(range(value.ndim), key=lambda axis: -value.stride(axis))
        back = sorted(range(value.ndim), key=lambda place: order[place])
        text += f".permute({order}).contiguous().permute({back})"
    return text


def _numbers_text(numbers: Any) -> str:
    """Nested lists of numbers, as short as they stay equal: `[1., -0.5, math.inf]`."""
    if isinstance(numbers, list):
        return f"[{', '.join(_numbers_text(part) for part in numbers)}]"
    if isinstance(numbers, float):
        if not math.isfinite(numbers):
            return f"float({str(numbers)!r})"
        if numbers == int(numbers) and abs(numbers) < 1e6:
            return f"{int(numbers)}."
    return repr(numbers)


def _short_text(value: Any) -> str:
    if is_tensor(value) or isinstance(value, np.ndarray):
        dtype = dtype_name(value.dtype)
        layout = "" if not is_tensor(value) or value.is_contiguous() else " view"
        return f"{dtype}{list(value.shape)}{layout}"
    text = (
        _container_text(value, _short_text)
        if not isinstance(value, Made)
        else value_text(value)
    )
    return text if len(text) <= 60 else f"{text[:57]}…"


def _container_text(value: Any, write: Any) -> str:
    if type(value) is list:
        return f"[{', '.join(map(write, value))}]"
    if type(value) is tuple:
        comma = "," if len(value) == 1 else ""
        return f"({', '.join(map(write, value))}{comma})"
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{key!r}: {write(part)}" for key, part in value.items())
            + "}"
        )
    if type(value) is SimpleNamespace:
        parts = [f"{name}={write(part)}" for name, part in vars(value).items()]
        return f"types.SimpleNamespace({', '.join(parts)})"
    if inspect.isroutine(value) or inspect.isclass(value):
        return value.__name__
    return repr(value)


import contextlib
import functools
import inspect
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch


MOST_CALLS = 60
_MOST_REJECTED = 600
_SHRINKING = 0.5
"""The share of the time that is kept for making a failing call smaller."""

Property = Callable[..., Any]
"""Takes the student's function and the arguments of a call, and the names of the notebook if it has
a parameter `notebook`. Returns whether something holds, or what was answered and what it should be;
None where the call is no case of it.
"""


@dataclass(eq=False, repr=False)
class OwnClaim:
    """A claim about one question, by its author.

    Attributes:
        sentence: what holds.
        share: the difference that is no mistake, as a share of the largest number.
    """

    sentence: str
    property: Property
    share: float

    def __call__(self, trial: HarderTrial) -> None:
        step = trial.first_call()
        if step is None:
            return

        def fresh(leaf: Any) -> Any:
            wide = trial.widen(leaf)
            return wide.clone() if isinstance(wide, torch.Tensor) else wide

        arguments = map_leaves(fresh, list(step.arguments))
        keywords = map_leaves(fresh, dict(step.keywords))
        if "notebook" in inspect.signature(self.property).parameters:
            keywords["notebook"] = trial.names
        outcome = self.property(trial.find_function(step), *arguments, **keywords)
        if outcome is None or outcome is True:
            return
        if isinstance(outcome, tuple):
            actual, expected = outcome
            sentence = "It does not hold here."
            share = max(self.share, trial.share)
            claim_same(sentence, actual, expected, share, trial.floor)
        elif not bool(outcome):
            raise ClaimBroken("It does not hold here.")


@dataclass(eq=False, repr=False)
class HarderQuestion:
    """What harder inputs know of one question.

    Attributes:
        allowed: the calls that the question allows, in one form or several.
        claims: by author; general ones are not among them.
        except_for: words of general claims that do not hold here.
        refuses: arguments and axes that must fit: "w_x.0".
        is_kernel: whether the question's function launches kernels.
    """

    allowed: list[AllowedCalls] = field(default_factory=list)
    claims: list[OwnClaim] = field(default_factory=list)
    except_for: Sequence[str] = ()
    refuses: Sequence[str] = ()
    is_kernel: bool = False

    def all_claims(self) -> list[Claim]:
        """General claims and the author's, which come after the first general one: without an
        answer none makes sense.
        """
        general = [
            claim for word, claim in GENERAL.items() if word not in self.except_for
        ]
        return [*general[:1], *self.claims, *general[1:]]


def _sentence(claim: Claim) -> str:
    """What a claim says."""
    if isinstance(claim, OwnClaim):
        return claim.sentence
    return (claim.__doc__ or "").strip()


QUESTIONS: dict[str, HarderQuestion] = {}


def contract(
    question: str,
    form: Form,
    *,
    function: str = "",
    sizes: Mapping[str, tuple[int, int]] | None = None,
    dtypes: Sequence[str] = FULL,
    gradients: bool = False,
    equals: str = "ordered",
    allowed_if: Callable[..., bool] | None = None,
) -> None:
    """Register calls that a question allows, as `contracts.py` of the suite does."""
    allowed = AllowedCalls(
        question,
        function or question,
        form,
        sizes or {},
        dtypes,
        gradients,
        equals == "free",
        allowed_if,
    )
    QUESTIONS.setdefault(question, HarderQuestion()).allowed.append(allowed)


def about(
    question: str,
    *,
    refuses: str = "",
    except_for: str = "",
    is_kernel: bool = False,
) -> None:
    """Say of a question what general claims cannot know.

    Args:
        refuses: arguments and axes, "w_x.0 w_h.1": one more along this axis, and the call must
            raise ValueError. An entry of a dict is "params.w_y.0".
        except_for: words of `GENERAL` for claims that do not hold. Without "answers" a call may
            be refused with ValueError: then nothing else is claimed of it.
        is_kernel: the function launches kernels of Triton. They have no float64: claims get
            float32, and differences may be ten times as large.
    """
    entry = QUESTIONS.setdefault(question, HarderQuestion())
    entry.is_kernel = is_kernel
    entry.refuses = refuses.split()
    entry.except_for = except_for.split()


def holds(
    question: str,
    sentence: str,
    share: float = SHARE,
) -> Callable[[Property], Property]:
    """Register a claim about a question: a function of the answer's function and a call's
    arguments, whose floats are in float64 (float32 for a kernel).
    """

    def register(check: Property) -> Property:
        entry = QUESTIONS.setdefault(question, HarderQuestion())
        entry.claims.append(
            OwnClaim(
                sentence,
                check,
                share,
            )
        )
        return check

    return register


def refused(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> bool:
    """Whether a call raises ValueError."""
    try:
        function(*arguments, **keywords)
    except ValueError:
        return True
    return False


# the search


@dataclass(eq=False, repr=False)
class HarderFailure:
    """A call of which a claim does not hold.

    Attributes:
        sentence: what should hold.
        problem: in what it fails.
        title: the call in one line, with shapes.
        lines: the call as Python.
    """

    sentence: str
    problem: str
    title: str
    lines: Sequence[str]
    difference: CheckDifference | None = None
    error: Exception | None = None


@dataclass(eq=False, repr=False)
class HarderResult:
    """What became of the harder inputs of a question.

    Attributes:
        calls: how many were tried.
        sentences: what was claimed of each.
        failure: the smallest call that fails; None where all is well.
    """

    calls: int
    sentences: Sequence[str]
    failure: HarderFailure | None = None


@dataclass(eq=False, repr=False)
class _BrokenClaim:
    """A claim that does not hold of some calls, and what it raised."""

    claim: Claim
    problem: Exception


class HarderSearch:
    """Searches the calls that a question allows for one of which a claim does not hold.

    Args:
        names: the names of the notebook.
        seed: the same calls for the same seed.
        seconds: for all; a part of them for making a failing call smaller.
    """

    def __init__(
        self,
        question: str,
        names: Mapping[str, Any],
        seed: int,
        seconds: float = 2.0,
        most_calls: int = MOST_CALLS,
    ) -> None:
        self._entry = QUESTIONS[question]
        self._claims = self._entry.all_claims()
        self._names = names
        self._seed = seed
        self._end = time.monotonic() + seconds
        self._seconds = seconds
        self._most_calls = most_calls
        self.calls = 0

    def run(self, *, makes_smaller: bool = True) -> HarderResult:
        """Draw calls until one fails, or calls or time are used up."""
        sentences = [_sentence(claim) for claim in self._claims]
        for drawn, numbers in self._draw():
            self.calls += 1
            broken = self._first_broken(drawn)
            if broken is not None:
                if makes_smaller:
                    drawn = self._smallest(
                        drawn,
                        numbers,
                        broken,
                    )
                return HarderResult(
                    self.calls,
                    sentences,
                    self._describe(drawn, broken),
                )
            if self._is_over(self._seconds * _SHRINKING):
                break
        return HarderResult(self.calls, sentences)

    def _is_over(self, kept: float = 0.0) -> bool:
        return time.monotonic() > self._end - kept

    def _draw(self) -> Iterator[tuple[DrawnCalls, list[int]]]:
        forms = self._entry.allowed
        count = 0
        for number in range(_MOST_REJECTED):
            allowed = forms[number % len(forms)]
            source = ChosenNumbers(further=random.Random(f"{self._seed} {number}"))
            with contextlib.suppress(CallRejected):
                yield allowed.draw(source), source.made
                count += 1
            if count >= self._most_calls:
                return

    def _first_broken(self, drawn: DrawnCalls) -> _BrokenClaim | None:
        """The first claim that does not hold."""
        trial = self._trial(drawn)
        if "answers" in self._entry.except_for and _is_refused(trial):
            return None
        for claim in self._claims:
            problem = _problem(claim, trial)
            if problem is not None:
                return _BrokenClaim(claim, problem)
        return None

    def _trial(self, drawn: DrawnCalls) -> HarderTrial:
        return HarderTrial(
            drawn,
            self._names,
            self._entry.refuses,
            self._entry.is_kernel,
        )

    def _smallest(
        self,
        drawn: DrawnCalls,
        numbers: Sequence[int],
        broken: _BrokenClaim,
    ) -> DrawnCalls:
        """The smallest calls of which the claim fails in the same way."""

        def fails(smaller: DrawnCalls) -> bool:
            problem = _problem(broken.claim, self._trial(smaller))
            return type(problem) is type(broken.problem)

        is_half_over = functools.partial(self._is_over, self._seconds * _SHRINKING / 2)
        if smaller := shrink_with_hypothesis(
            drawn,
            self._seed,
            fails,
            is_half_over,
        ):
            drawn, numbers = smaller
        return SmallerCalls(
            drawn,
            numbers,
            fails,
            lambda: not self._is_over(),
        ).find()

    def _describe(
        self,
        drawn: DrawnCalls,
        broken: _BrokenClaim,
    ) -> HarderFailure:
        sentence = _sentence(broken.claim)
        # an answer that remembers earlier calls may be right this time
        problem = _problem(broken.claim, self._trial(drawn)) or broken.problem
        title, lines = script_title(drawn.script), script_lines(drawn.script)
        if isinstance(problem, ClaimBroken):
            return HarderFailure(
                sentence,
                str(problem),
                title,
                lines,
                problem.difference,
            )
        text = f"Your code raised {type(problem).__name__}: {problem}"
        return HarderFailure(
            sentence,
            text,
            title,
            lines,
            error=problem,
        )


def _is_refused(trial: HarderTrial) -> bool:
    """Whether a call is answered with ValueError."""
    return isinstance(_problem(answers_every_call, trial), ValueError)


def _problem(claim: Claim, trial: HarderTrial) -> Exception | None:
    """What a claim raises; None where it holds."""
    try:
        with torch.enable_grad():
            claim(trial)
    except Exception as error:  # a student's code may raise anything
        return error
    return None


import math
from collections.abc import Sequence


def dot_product(left: Sequence[float], right: Sequence[float]) -> float:
    """The sum of products of two lists of numbers."""
    return math.fsum(
        a * b
        for a, b in zip(
            left,
            right,
            strict=True,
        )
    )


def shares_of(scores: Sequence[float]) -> list[float]:
    """Scores as shares of 1; no shares where every score is −inf."""
    top = max(scores, default=-math.inf)
    if top == -math.inf:
        return [0.0 for _ in scores]
    powers = [math.exp(score - top) for score in scores]
    return [power / math.fsum(powers) for power in powers]


def mixed_number(
    query: Sequence[float],
    keys: Sequence[Sequence[float]],
    column: Sequence[float],
    allowed: Sequence[bool] = (),
    scale: float = 0.0,
) -> float:
    """One number of attention: a column of the values, mixed for one query.

    Args:
        allowed: which keys the query may see; all where it is empty.
        scale: what the products are divided by; the root of the width where it is 0.
    """
    root = scale or math.sqrt(len(query))
    scores = [dot_product(query, key) / root for key in keys]
    if len(allowed):
        pairs = zip(
            scores,
            allowed,
            strict=True,
        )
        scores = [score if is_allowed else -math.inf for score, is_allowed in pairs]
    return dot_product(shares_of(scores), column)


# the questions

import torch


TAME = ("normal", "whole")


CHOICES = {
    "positions": ("none", "learned", "rotary"),
    "norm": ("pre", "post", "rms"),
    "activation": ("relu", "gelu", "swiglu"),
    "tied": (True, False),
}


SMALL = {"B": (1, 3), "N": (1, 5), "V": (2, 6), "F": (1, 5)}


def _setup(draw, context=6):
    """A setup of any kind; a head has an even width, which rotary positions need."""
    kv_heads, group = draw.whole(1, 2), draw.whole(1, 2)
    setup = {name: draw.choose(name, options) for name, options in CHOICES.items()}
    return setup | {
        "vocab_size": draw.size("V"),
        "d_model": kv_heads * group * 2 * draw.whole(1, 2),
        "num_layers": draw.whole(1, 2),
        "num_heads": kv_heads * group,
        "num_kv_heads": kv_heads,
        "d_ff": draw.size("F"),
        "context_length": context,
        "dropout": 0.0,
        "smoothing": draw.choose("smoothing", (0.0, 0.25)),
        "rate": draw.choose("rate", (0.01, 0.1)),
        "batch": draw.whole(1, 4),
        "parts": 1,
    }


def _params(draw, setup):
    """Parameters for a setup."""
    d, f, v = (setup[name] for name in ("d_model", "d_ff", "vocab_size"))
    d_kv = d // setup["num_heads"] * setup["num_kv_heads"]

    def normal(*shape):
        return draw(tensor(*shape, values=TAME))

    def block():
        weights = {"norm1": normal(d), "norm2": normal(d), "w_q": normal(d, d)}
        weights |= {"w_k": normal(d, d_kv), "w_v": normal(d, d_kv), "w_o": normal(d, d)}
        if setup["activation"] == "swiglu":
            return weights | {
                "w1": normal(d, f),
                "w2": normal(d, f),
                "w3": normal(f, d),
            }
        return weights | {"w1": normal(d, f), "w2": normal(f, d)}

    params = {"embed": normal(v, d)}
    if setup["positions"] == "learned":
        params["positions"] = normal(setup["context_length"], d)
    params["blocks"] = [block() for _ in range(setup["num_layers"])]
    if setup["norm"] != "post":
        params["norm_f"] = normal(d)
    if not setup["tied"]:
        params["unembed"] = normal(d, v)
    return params


def texts_through_a_model(draw, play, name):
    """Any setup, with its parameters."""
    setup = _setup(draw)
    play.call(
        name, draw(tokens("B", "N", below="V"), "ids"), _params(draw, setup), setup
    )


def changes_of_a_setup(draw, play, name):
    """One entry with another value."""
    setup = _setup(draw)
    options = {
        **CHOICES,
        "batch": (1, 5, 64),
        "dropout": (0.1, 0.5),
        "rate": (0.01, 1.0),
    }
    field = draw.choose("field", tuple(options))
    left = [value for value in options[field] if value != setup[field]]
    play.call(name, setup, field, draw.choose(f"value of {field}", tuple(left)))


def _targets(draw):
    """Targets of which some do not count."""
    targets = draw(tokens("B", "N", below="V"), "targets").clone()
    for place in range(targets.numel()):
        if draw.happens(25):
            targets.view(-1)[place] = -100
    return targets


def losses_of_tokens(draw, play, name):
    """With smoothing and without."""
    settings = {}
    if draw.choose("smoothing is", ("left out", "there")) == "there":
        settings["smoothing"] = draw.choose("smoothing", (0.0, 0.1, 0.75))
    play.call(name, draw(tensor("B", "N", "V"), "logits"), _targets(draw), **settings)


def batches_in_parts(draw, play, name):
    """Batches that are cut into some parts."""
    setup = _setup(draw)
    inputs = draw(tokens("B", "N", below="V"), "inputs")
    setup["parts"] = draw.whole(1, len(inputs))
    play.call(name, _params(draw, setup), setup, inputs, _targets(draw))


def _can_be_cut(params, setup, inputs, targets):
    return 1 <= setup["parts"] <= len(inputs) and inputs.shape == targets.shape


def tables_of_runs(draw, play, name):
    """A field with two or three of its values; a run whose loss tells how it was asked."""
    setup = _setup(draw)
    field = draw.choose("field", ("norm", "activation", "positions"))
    values = list(CHOICES[field][: draw.whole(1, 3)])
    seeds = list(range(draw.whole(0, 4), 5))
    play.call(
        name, setup, field, values, draw.whole(1, 9) * 10**6, seeds, _pretended_loss
    )


def _pretended_loss(setup, steps, seed):
    return 100.0 * seed + steps + setup["d_ff"] / 64


def _blocks(draw):
    """Blocks with two matrices and a vector."""
    shapes = {"w": ("n", "m"), "v": ("m", "n"), "gain": ("n",)}
    blocks = [
        {name: draw(tensor(*axes, values=TAME), name) for name, axes in shapes.items()}
        for _ in range(draw.whole(1, 3))
    ]
    return {"embed": draw(tensor("V", "n", values=TAME), "embed"), "blocks": blocks}


def new_adapters(draw, play, name):
    """Adapters of one matrix or two."""
    params = _blocks(draw)
    names = list(draw.choose("names", (("w",), ("v",), ("w", "v"))))
    rank = draw.whole(1, min(params["blocks"][0]["w"].shape))
    play.call(
        name,
        params,
        names,
        rank,
        **({"seed": draw.whole(0, 9)} if draw.happens(50) else {}),
    )


def merged_blocks(draw, play, name):
    """Adapters of different names and ranks."""
    params = _blocks(draw)
    adapters = []
    for block in params["blocks"]:
        own = {}
        for key in ("w", "v"):
            if draw.happens(60):
                draw.forget("r")
                n, m = block[key].shape
                a, b = (
                    draw(tensor(n, "r", values=TAME)),
                    draw(tensor("r", m, values=TAME)),
                )
                own[key] = {"a": a, "b": b}
        adapters.append(own)
    play.call(name, params, adapters, draw.choose("alpha", (0.5, 1.0, 8.0)))


def costs_of_tuning(draw, play, name):
    """The three ways."""
    params, method = _blocks(draw), draw.choose("method", ("full", "last", "lora"))
    if method == "lora":
        names = list(draw.choose("names", (("w",), ("v",), ("w", "v"))))
        play.call(name, params, method, names, draw.whole(1, 4))
    else:
        play.call(name, params, method)


def _lengths(call):
    rows, t = call.arguments["targets"].shape
    return torch.tensor([1 + (7 * row + t) % t for row in range(rows)])


contract(
    "decoder",
    texts_through_a_model,
    sizes=SMALL,
)


contract(
    "training_flops",
    calls(setup=computed(_setup)),
)


contract(
    "one_change",
    changes_of_a_setup,
    allowed_if=lambda base, field, value: field in base and base[field] != value,
)


contract(
    "smoothed_loss",
    losses_of_tokens,
    sizes={'V': (2, 6)},
    gradients=True,
)


contract(
    "accumulated_gradients",
    batches_in_parts,
    sizes=SMALL,
    dtypes=('float64',),
    allowed_if=_can_be_cut,
)


contract(
    "compare",
    tables_of_runs,
    allowed_if=lambda base, field, values, budget, seeds, run: bool(values) and len(set(seeds)) == len(seeds) and (base['d_ff'] > 1),
)


contract(
    "lora_adapters",
    new_adapters,
)


contract(
    "merge_lora",
    merged_blocks,
    sizes={'r': (1, 3)},
    allowed_if=lambda params, adapters, alpha: len(adapters) == len(params['blocks']),
)


contract(
    "tuning_costs",
    costs_of_tuning,
)


contract(
    "distinct_ngrams",
    calls(ids=tokens('B', 'N', below=3), n=whole(1, 'N')),
    sizes={'N': (1, 9)},
    allowed_if=lambda ids, n: 1 <= n <= ids.shape[1],
)


contract(
    "accuracy_by_length",
    calls(predicted=tokens('B', 'T', below=3), targets=tokens('B', 'T', below=3), lengths=computed(_lengths)),
    sizes={'B': (1, 6), 'T': (1, 6)},
    allowed_if=lambda predicted, targets, lengths: predicted.shape == targets.shape and len(lengths) == len(targets) and (int(lengths.max()) <= targets.shape[1]),
)


contract(
    "six_n_counterexample",
    calls(factor=number(1, 50)),
)


import math


import torch


about("decoder")


about("training_flops")


about("one_change")


about("smoothed_loss", except_for="batch")  # its mean is over the whole batch


about("accumulated_gradients")


about("training_curve")


about("compare")


about("paired_verdict")


about("power_law_forecast")


about("lora_adapters", except_for="precision")  # each dtype has random numbers of its own


about("merge_lora")


about("tuning_costs")


about("distinct_ngrams")


about("accuracy_by_length", except_for="batch")  # its shares are over the whole batch


about("six_n_counterexample")


def runs_of_some_steps(draw, play, name):
    """A small model, whose steps a budget of 30 000 FLOPs always pays for."""
    setup = _setup(draw, context=3) | {"batch": 2}
    setup["d_model"] = 2 * setup["num_heads"]
    setup["dropout"] = draw.choose("dropout", (0.0, 0.25))
    texts = [draw(tokens("N_text", below="V"), part) for part in ("training", "held_out")]
    budget = 1000 * draw.whole(30, 40)
    play.call(name, _params(draw, setup), setup, *texts, budget, draw.whole(1, 3), draw.whole(0, 5))


def losses_of_seeds(draw, play, name):
    """Losses in quarters, of two to six seeds."""
    n = draw.whole(2, 6)
    first, second = ([draw.whole(0, 12) / 4 for _ in range(n)] for _ in range(2))
    settings = {"factor": draw.choose("factor", (0.5, 3.3))} if draw.happens(50) else {}
    play.call(name, first, second, **settings)


def losses_of_sizes(draw, play, name):
    """Sizes that are at least a factor of two apart: others make exponents without bounds."""
    sizes = [draw.whole(1, 9)]
    for _ in range(draw.whole(1, 4)):
        sizes.append(sizes[-1] * draw.whole(2, 6))
    losses = [draw.whole(2, 34) / 4 for _ in sizes]
    settings = {"floor": draw.choose("floor", (0.0, 0.25, -1.0))} if draw.happens(50) else {}
    play.call(name, sizes, losses, draw.whole(1, 2000), **settings)


contract("training_curve", runs_of_some_steps, sizes={**SMALL, "N_text": (5, 9)}, dtypes=("float64",))


contract("paired_verdict", losses_of_seeds)


contract("power_law_forecast", losses_of_sizes)


@holds("decoder", "A later token changes nothing in the logits before it.")
def no_look_ahead(decoder, ids, params, setup):
    changed = ids.clone()
    changed[:, -1] = (ids[:, -1] + 1) % len(params["embed"])
    return decoder(changed, params, setup)[:, :-1], decoder(ids, params, setup)[:, :-1]


@holds("decoder", "A text alone has the logits that it has in a batch.")
def texts_alone(decoder, ids, params, setup):
    return decoder(ids[-1:], params, setup), decoder(ids, params, setup)[-1:]


@holds("decoder", "drop gets [B, N, D]: once the embeddings, and once what each sublayer adds.")
def drop_is_asked(decoder, ids, params, setup):
    shapes = []

    def drop(x):
        shapes.append(list(x.shape))
        return x

    answer = decoder(ids, params, setup, drop)
    shape = [*ids.shape, params["embed"].shape[1]]
    is_asked = shapes == [shape] * (1 + 2 * len(params["blocks"]))
    return [answer, is_asked], [decoder(ids, params, setup), True]


@holds("decoder", "Where drop leaves nothing, all logits are 0.")
def all_is_dropped(decoder, ids, params, setup):
    answer = decoder(ids, params, setup, lambda x: 0 * x)
    return answer, torch.zeros_like(answer)


def _with_blocks(params, **changes):
    """The parameters with changed matrices: the name of each, and a function of it."""
    blocks = [
        block | {name: change(block[name]) for name, change in changes.items()}
        for block in params["blocks"]
    ]
    return params | {"blocks": blocks}


@holds("decoder", "Sublayers whose last matrix is zero add nothing, and drop sees that.")
def nothing_to_add(decoder, ids, params, setup):
    last = "w3" if setup["activation"] == "swiglu" else "w2"
    silent = _with_blocks(params, **dict.fromkeys(("w_o", last), torch.zeros_like))
    sizes = []

    def drop(x):
        sizes.append(float(x.abs().max()))
        return x

    decoder(ids, silent, setup, drop)
    return sum(sizes[1:]) == 0


@holds(
    "decoder",
    "Before the head the features of a token have mean 0 (not with rms) and mean square 1, times a gain.",
    share=1e-3,
)
def normalized_before_the_head(decoder, ids, params, setup):
    width = params["embed"].shape[1]
    if width < 4:
        return None  # two features are nearly equal too often
    dice = torch.Generator().manual_seed(0)
    shown = _with_blocks(params, norm1=torch.ones_like, norm2=torch.ones_like)
    shown["embed"] = 10 * torch.randn(params["embed"].shape, generator=dice).double()
    shown["unembed"] = torch.eye(width).double()
    gain = torch.arange(1, width + 1).double()
    if setup["norm"] == "post":
        shown["blocks"][-1]["norm2"] = gain
    else:
        shown["norm_f"] = gain
    features = decoder(ids, shown, setup | {"tied": False}) / gain
    square = features.pow(2).mean(dim=-1)
    if setup["norm"] == "rms":
        return square, torch.ones_like(square)
    return [features.mean(dim=-1), square], [torch.zeros_like(square), torch.ones_like(square)]


@holds("decoder", "Without a table of positions a word that is repeated has the same logits each time.")
def repeated_word(decoder, ids, params, setup):
    if setup["positions"] == "learned":
        return None
    answer = decoder(ids[:, :1].repeat(1, 4), params, setup)
    return answer, answer[:, :1].repeat(1, 4, 1)


@holds("decoder", "Heads may change places, if their parts of all matrices do.")
def heads_change_places(decoder, ids, params, setup):
    groups = setup["num_kv_heads"]

    def flip(columns):
        return columns.unflatten(1, (groups, -1)).flip(1).flatten(1)

    flipped = _with_blocks(params, w_q=flip, w_k=flip, w_v=flip, w_o=lambda rows: flip(rows.T).T)
    return decoder(ids, flipped, setup), decoder(ids, params, setup)


@holds("decoder", "With rotary positions it matters how far back a word stands.")
def distance_matters(decoder, ids, params, setup, notebook):
    if setup["positions"] != "rotary":
        return None
    sizes = {"d_model": 4, "num_heads": 1, "num_kv_heads": 1, "num_layers": 1, "vocab_size": 2}
    own = setup | sizes | {"tied": True}
    shown = notebook["random_params"](own, seed=3)
    # two words with the same queries and keys, and other values
    shown["embed"] = torch.tensor([[1.0, 1.0, 1.0, -1.0], [1.0, 1.0, -1.0, 1.0]])
    seen = torch.tensor([[3.0], [3.0], [0.0], [0.0]])
    shown = _with_blocks(shown, w_q=lambda w: w * seen, w_k=lambda w: w * seen)
    answer = decoder(torch.tensor([[1, 0, 0], [0, 1, 0]]), shown, own)[:, -1]
    return float((answer[0] - answer[1]).abs().max()) > 1e-4


@holds("decoder", "Of the matrices around an activation some may be twice and half as large.")
def twice_and_half(decoder, ids, params, setup):
    if setup["activation"] == "gelu":
        return None
    first, second = {"relu": ("w1", "w2"), "swiglu": ("w2", "w3")}[setup["activation"]]
    other = _with_blocks(params, **{first: lambda w: 2 * w, second: lambda w: w / 2})
    return decoder(ids, other, setup), decoder(ids, params, setup)


@holds("decoder", "An MLP whose w1 is zero adds nothing.")
def silent_activation(decoder, ids, params, setup):
    last = "w3" if setup["activation"] == "swiglu" else "w2"
    answers = [
        decoder(ids, _with_blocks(params, **{name: torch.zeros_like}), setup) for name in ("w1", last)
    ]
    return answers[0], answers[1]


@holds("decoder", "A head of its own is used: a column of zeros gives a logit of 0, the others stay.")
def own_head(decoder, ids, params, setup):
    if setup["tied"]:
        return None
    head = params["unembed"].clone()
    head[:, -1] = 0
    expected = decoder(ids, params, setup).clone()
    expected[..., -1] = 0
    return decoder(ids, params | {"unembed": head}, setup), expected


@holds("decoder", "A misspelt setting, and more tokens than a table has positions, are refused.")
def strange_setups(decoder, ids, params, setup):
    words = ("positions", "norm", "activation")
    is_refused = all(refused(decoder, ids, params, setup | {word: "linear"}) for word in words)
    if setup["positions"] != "learned":
        return is_refused
    long = ids[:, :1].repeat(1, len(params["positions"]) + 1)
    return is_refused and refused(decoder, long, params, setup)


@holds("training_flops", "A Python int, as many times as large as the batch; parts and ties do not matter.")
def batches_and_parts(training_flops, setup):
    cost = training_flops(setup)
    others = ({"batch": 3 * setup["batch"]}, {"parts": 2}, {"tied": not setup["tied"]})
    costs = [training_flops(setup | change) for change in others]
    return type(cost) is int and costs == [3 * cost, cost, cost]


@holds("training_flops", "One more layer, word or unit of the MLP costs as much as any other.")
def each_costs_as_much(training_flops, setup):
    for name in ("num_layers", "vocab_size", "d_ff"):
        costs = [training_flops(setup | {name: setup[name] + more}) for more in range(3)]
        if not 0 < costs[1] - costs[0] == costs[2] - costs[1]:
            return False
    return True


@holds("training_flops", "A SwiGLU costs as much as two matrices that are half as wide again.")
def three_matrices(training_flops, setup):
    gated = training_flops(setup | {"activation": "swiglu", "d_ff": 2 * setup["d_ff"]})
    return gated == training_flops(setup | {"activation": "relu", "d_ff": 3 * setup["d_ff"]})


@holds("training_flops", "With shared keys a token costs less, and each further token of context as much.")
def shared_keys(training_flops, setup):
    def per_token(kv_heads, context):
        sizes = {"d_model": 8, "num_heads": 4, "num_kv_heads": kv_heads}
        cost = training_flops(setup | sizes | {"context_length": context})
        return cost / (setup["batch"] * context)

    one, two, all_heads = (per_token(kv_heads, 8) for kv_heads in (1, 2, 4))
    growth = [per_token(kv_heads, 16) - per_token(kv_heads, 8) for kv_heads in (1, 4)]
    return 0 < 2 * (two - one) == all_heads - two and 0 < growth[0] == growth[1]


@holds("training_flops", "Heads that do not divide are refused.")
def heads_that_do_not_divide(training_flops, setup):
    sizes = ({"d_model": 8, "num_heads": 3}, {"d_model": 12, "num_heads": 4, "num_kv_heads": 3})
    return all(refused(training_flops, setup | size) for size in sizes)


@holds("one_change", "The entry has the new value; no other changes but the width of an MLP.")
def one_entry_changes(one_change, base, field, value):
    setup = one_change(base, field, value)
    changed = {name for name in base if setup[name] != base[name]}
    may_change = {field, "d_ff"} if field == "activation" else {field}
    return setup.keys() == base.keys() and setup[field] == value and changed <= may_change


@holds("one_change", "To or from a SwiGLU the MLP keeps its parameters, up to less than a unit.")
def as_many_parameters(one_change, base, field, value):
    wide = base | {"activation": "relu", "d_ff": 10 + base["d_ff"]}
    gated = one_change(wide, "activation", "swiglu")
    lost = 2 * wide["d_ff"] - 3 * gated["d_ff"]
    back = one_change(gated, "activation", "gelu")
    lost_again = 3 * gated["d_ff"] - 2 * back["d_ff"]
    same = one_change(wide, "activation", "gelu")
    return 0 <= lost < 3 and 0 <= lost_again < 2 and same["d_ff"] == wide["d_ff"]


@holds("one_change", "A SwiGLU keeps its width where something else changes; False and 0 are values.")
def other_entries(one_change, base, field, value):
    gated = base | {"activation": "swiglu", "tied": True, "dropout": 0.5, "norm": "pre"}
    changes = {"norm": "post", "tied": False, "dropout": 0.0}
    return all(one_change(gated, name, new) == gated | {name: new} for name, new in changes.items())


@holds("one_change", "An entry that there is not, and the value that there is, are refused.")
def changes_of_nothing(one_change, base, field, value):
    return refused(one_change, base, f"{field}s", value) and refused(one_change, base, field, base[field])


def _mild(logits):
    """Logits of at most 20, so that no share is a matter of rounding."""
    return logits / (1 + logits.abs() / 20)


@holds("smoothed_loss", "The same number added to all logits of a token changes nothing.")
def shifts_do_not_matter(smoothed_loss, logits, targets, smoothing=0.0):
    mild = _mild(logits)
    return smoothed_loss(mild + 3, targets, smoothing), smoothed_loss(mild, targets, smoothing)


@holds("smoothed_loss", "A smoothing of 1/4 lies half way between none and one of 1/2.")
def smoothing_mixes(smoothed_loss, logits, targets, smoothing=0.0):
    mild = _mild(logits)
    none, half = smoothed_loss(mild, targets, 0.0), smoothed_loss(mild, targets, 0.5)
    return smoothed_loss(mild, targets, 0.25), (none + half) / 2


@holds("smoothed_loss", "Equal logits have a loss of log V, however much is smoothed.")
def equal_logits(smoothed_loss, logits, targets, smoothing=0.0):
    if not bool((targets != -100).any()):
        return None
    expected = math.log(logits.shape[-1])
    return float(smoothed_loss(torch.zeros_like(logits), targets, smoothing)), expected


@holds("smoothed_loss", "A smoothing of s leaves 1 − s of what one target is better than another.")
def targets_compared(smoothed_loss, logits, targets, smoothing=0.0):
    mild = _mild(logits[:1, :1])

    def advantage(s):
        losses = [smoothed_loss(mild, torch.tensor([[token]]), s) for token in (0, 1)]
        return losses[0] - losses[1]

    return advantage(0.4), 0.6 * advantage(0.0)


@holds("smoothed_loss", "Without smoothing, the loss of one token is that of its share.")
def loss_of_a_share(smoothed_loss, logits, targets, smoothing=0.0):
    mild = _mild(logits[-1:, -1:])
    share = shares_of(mild.flatten().tolist())[-1]
    answer = smoothed_loss(mild, torch.tensor([[logits.shape[-1] - 1]]), 0.0)
    return math.exp(-float(answer)), share


@holds("smoothed_loss", "Places that do not count may have any logits, and -100 may be another number.")
def places_that_do_not_count(smoothed_loss, logits, targets, smoothing=0.0):
    mild, ignored = _mild(logits), targets == -100
    other = mild.masked_fill(ignored[..., None], 7.0)
    other[..., 0] += ignored
    renamed = targets.masked_fill(ignored, -7)
    expected = smoothed_loss(mild, targets, smoothing)
    answers = [
        smoothed_loss(other, targets, smoothing),
        smoothed_loss(mild, renamed, smoothing, ignore_index=-7),
    ]
    return answers, [expected, expected]


@holds("smoothed_loss", "The loss is the mean of the rows' losses, each as often as it has targets.")
def rows_alone(smoothed_loss, logits, targets, smoothing=0.0):
    mild = _mild(logits)
    counts = (targets != -100).sum(dim=1).tolist()
    rows = range(len(counts))
    losses = [smoothed_loss(mild[i : i + 1], targets[i : i + 1], smoothing) for i in rows]
    total = sum(count * float(loss) for count, loss in zip(counts, losses))
    return float(smoothed_loss(mild, targets, smoothing)), total / max(1, sum(counts))


@holds("smoothed_loss", "Without a target that counts the loss is 0, and has a gradient.")
def no_targets(smoothed_loss, logits, targets, smoothing=0.0):
    leaf = logits.clone().requires_grad_()
    answer = smoothed_loss(leaf, torch.full_like(targets, -100), smoothing)
    return bool(answer == 0) and answer.requires_grad


@holds("smoothed_loss", "A smoothing below 0, and one of 1, are refused.")
def strange_smoothing(smoothed_loss, logits, targets, smoothing=0.0):
    return all(refused(smoothed_loss, logits, targets, s) for s in (-0.1, 1.0))


@holds("accumulated_gradients", "In one part, and in a part for each row, loss and gradients are the same.")
def parts_add_up(accumulated_gradients, params, setup, inputs, targets):
    whole, rows = (
        accumulated_gradients(params, setup | {"parts": parts}, inputs, targets)
        for parts in (1, len(inputs))
    )
    return [rows[0], *rows[1]], [whole[0], *whole[1]]


@holds("accumulated_gradients", "The loss is a Python float: the smoothed loss of what the decoder says.")
def loss_of_the_batch(accumulated_gradients, params, setup, inputs, targets, notebook):
    loss = accumulated_gradients(params, setup, inputs, targets)[0]
    logits = notebook["decoder"](inputs, params, setup)
    expected = float(notebook["smoothed_loss"](logits, targets, setup["smoothing"]))
    return [loss, type(loss) is float], [expected, True]


@holds("accumulated_gradients", "Every row goes through the decoder once, no more at once than a part has.")
def rows_at_once(accumulated_gradients, params, setup, inputs, targets):
    for parts in {1, setup["parts"], len(inputs)}:
        rows = []

        def drop(x, rows=rows):
            rows.append(len(x))
            return x

        cut = {**setup, "parts": parts}
        accumulated_gradients(params, cut, inputs, targets, drop=drop)
        most = math.ceil(len(inputs) / parts)
        if sum(rows) != len(inputs) * (1 + 2 * setup["num_layers"]) or max(rows) > most:
            return False
    return True


@holds("accumulated_gradients", "Gradients tell how the loss changes where the parameters do.", share=1e-3)
def slopes(accumulated_gradients, params, setup, inputs, targets, notebook):
    smooth = setup | {"activation": "gelu"}  # a ReLU has edges
    nesting = notebook["random_params"](smooth)
    dice = torch.Generator().manual_seed(2)
    shapes = [t.shape for t in notebook["list_tensors"](nesting)] * 2
    draws = [torch.randn(shape, generator=dice).double() for shape in shapes]
    tensors, ways = draws[: len(draws) // 2], draws[len(draws) // 2 :]

    def batch(step):
        moved = [t + step * way for t, way in zip(tensors, ways)]
        weights = notebook["with_tensors"](nesting, moved)
        return accumulated_gradients(weights, smooth, inputs, targets)

    quotients = [(batch(s)[0] - batch(-s)[0]) / (2 * s) for s in (2e-5, 1e-5)]
    if abs(quotients[0] - quotients[1]) > 1e-4 * max(1.0, abs(quotients[1])):
        return None  # too curved here
    slope = sum(float((g * way).sum()) for g, way in zip(batch(0.0)[1], ways))
    return slope, quotients[1]


@holds("accumulated_gradients", "No part, and more parts than rows, are refused.")
def strange_parts(accumulated_gradients, params, setup, inputs, targets):
    numbers = (0, len(inputs) + 1)
    setups = [setup | {"parts": parts} for parts in numbers]
    return all(refused(accumulated_gradients, params, own, inputs, targets) for own in setups)


def _spent(notebook, setup, steps):
    return steps * notebook["training_flops"](setup)


def _same_tensors(notebook, left, right):
    pairs = zip(notebook["list_tensors"](left), notebook["list_tensors"](right))
    return all(torch.equal(a, b) for a, b in pairs)


def _small_run(setup, notebook, **changes):
    """A setup of 4 steps with new parameters, and a text of its own for training."""
    own = setup | {"d_model": 4, "num_heads": 2, "num_kv_heads": 1, "vocab_size": 5}
    own |= {"d_ff": 3, "num_layers": 1, "dropout": 0.0, **changes}
    dice = torch.Generator().manual_seed(4)
    text = torch.randint(0, own["vocab_size"], (40,), generator=dice)
    return own, notebook["random_params"](own), text


@holds("training_curve", "Points come before the first step, after each `every`, and after the last that is paid for.")
def places_of_points(training_curve, params, setup, training, held_out, budget, every, seed, notebook):
    cost = notebook["training_flops"](setup)
    _, curve = training_curve(params, setup, training, held_out, budget, every, seed)
    steps = [flops / cost for flops, _ in curve]
    gaps = [after - before for before, after in zip(steps, steps[1:])]
    is_even = all(gap == every for gap in gaps[:-1]) and 1 <= gaps[-1] <= every
    is_spent = curve[-1][0] <= budget < curve[-1][0] + cost
    return steps[0] == 0 and steps[-1] % 1 == 0 and is_even and is_spent


@holds("training_curve", "Points are pairs of an int and a float; a point after every step changes none of them.")
def points_in_between(training_curve, params, setup, training, held_out, budget, every, seed):
    arguments = (params, setup, training, held_out, budget)
    few, all_points = (training_curve(*arguments, n, seed)[1] for n in (every, 1))
    kinds = {(type(flops), type(loss)) for flops, loss in few}
    losses = dict(all_points)
    expected = [losses[flops] for flops, _ in few]
    return [[loss for _, loss in few], kinds == {(int, float)}], [expected, True]


@holds("training_curve", "The last point is the loss of the parameters that come back, without dropout.")
def ends_of_the_curve(training_curve, params, setup, training, held_out, budget, every, seed, notebook):
    own = setup | {"dropout": 0.25}
    after, curve = training_curve(params, own, training, held_out, budget, every, seed)

    def measured(weights):
        def model(ids):
            return notebook["decoder"](ids, weights, own)

        return notebook["held_out_loss"](model, held_out, own["context_length"])

    return [curve[0][1], curve[-1][1]], [measured(params), measured(after)]


@holds("training_curve", "The held-out text changes no parameter, and dropout does.")
def what_changes_parameters(training_curve, params, setup, training, held_out, budget, every, seed, notebook):
    own, start, text = _small_run(setup, notebook)
    spent = _spent(notebook, own, 4)
    after, dropped = (
        training_curve(start, own | {"dropout": rate}, text, held_out % 5, spent, 2, seed)[0]
        for rate in (0.0, 0.5)
    )
    other = training_curve(start, own, text, (held_out + 1) % 5, spent, 2, seed)[0]
    return _same_tensors(notebook, after, other) and not _same_tensors(notebook, after, dropped)


@holds("training_curve", "Tokens in the batches of the steps matter, each of them, and no others do.")
def batches_of_the_steps(training_curve, params, setup, training, held_out, budget, every, seed, notebook):
    own, start, text = _small_run(setup, notebook)
    places = torch.arange(len(text))
    batches = [notebook["training_batch"](places, own, seed, step) for step in range(4)]
    seen = [set(torch.cat([part.flatten() for part in batch]).tolist()) for batch in batches]

    def run(changed):
        other = text.clone()
        for place in changed:
            other[place] = (other[place] + 1) % 5
        spent = _spent(notebook, own, 4)
        return training_curve(start, own, other, held_out % 5, spent, 4, seed)[0]

    after = run(())
    unseen = set(range(len(text))).difference(*seen)
    if not _same_tensors(notebook, after, run(unseen)):
        return False
    for step, members in enumerate(seen):
        alone = members.difference(*seen[:step], *seen[step + 1 :])
        if alone and _same_tensors(notebook, after, run(alone)):
            return False
    return True


@holds("training_curve", "With a single word nothing is to be learned: matrices decay as the rates of the steps say.")
def decay_of_a_single_word(training_curve, params, setup, training, held_out, budget, every, seed, notebook):
    own, start, _ = _small_run(setup, notebook, vocab_size=1)
    steps, words = 12, torch.zeros(9, dtype=torch.int64)
    after, _ = training_curve(start, own, words, words, _spent(notebook, own, steps), steps, seed)
    left = 1.0
    for step in range(steps):
        left *= 1 - 0.1 * notebook["rate_at"](step, steps, own["rate"])
    return after["embed"], left * start["embed"]


@holds("training_curve", "Two steps are not twice a first step: the optimizer remembers.")
def optimizer_remembers(training_curve, params, setup, training, held_out, budget, every, seed, notebook):
    own, start, text = _small_run(setup, notebook, rate=0.1)
    window = text[: own["context_length"] + 1]  # the only batch, in every step
    one, two = (_spent(notebook, own, steps) for steps in (1, 2))
    together = training_curve(start, own, window, window, two, 1, seed)[0]
    first = training_curve(start, own, window, window, one, 1, seed)[0]
    apart = training_curve(first, own, window, window, one, 1, seed)[0]
    return not _same_tensors(notebook, together, apart)


@holds("training_curve", "A budget below one step, and no point at all, are refused.")
def strange_budgets(training_curve, params, setup, training, held_out, budget, every, seed, notebook):
    small = _spent(notebook, setup, 1) - 1
    arguments = (params, setup, training, held_out)
    return refused(training_curve, *arguments, small, every, seed) and refused(
        training_curve, *arguments, budget, 0, seed
    )


def _recorder(asked):
    """A run that is not made: it notes what was asked for, and its loss tells seed and steps."""

    def run(setup, steps, seed):
        asked.append((dict(setup), steps, seed))
        return seed + steps / 8

    return run


@holds("compare", "A row for each value in their order, with a loss for each seed in theirs, each run once.")
def rows_and_seeds(compare, base, field, values, budget, seeds, run):
    asked = []
    table = compare(base, field, values, budget, seeds, _recorder(asked))
    names = [value for value, _, _ in table]
    losses = [list(own) for _, _, own in table]
    expected = [[seed + steps / 8 for seed in seeds] for _, steps, _ in table]
    return names == list(values) and losses == expected and len(asked) == len(values) * len(seeds)


@holds("compare", "The setups are those of one_change, and the base itself for the value that it has.")
def setups_asked_for(compare, base, field, values, budget, seeds, run, notebook):
    asked = []
    compare(base, field, values, budget, seeds, _recorder(asked))
    for setup, _, _ in asked:
        value = setup[field]
        is_base = value == base[field]
        if setup != (base if is_base else notebook["one_change"](base, field, value)):
            return False
    return {setup[field] for setup, _, _ in asked} == set(values)


@holds("compare", "Each run gets all steps that the budget pays for.")
def steps_paid_for(compare, base, field, values, budget, seeds, run, notebook):
    asked = []
    table = compare(base, field, values, budget, seeds, _recorder(asked))
    for setup, steps, _ in asked:
        cost = notebook["training_flops"](setup)
        if not steps * cost <= budget < (steps + 1) * cost:
            return False
    return all(type(steps) is int for _, steps, _ in table)


@holds("compare", "A row is the same whatever rows come before it.")
def other_rows(compare, base, field, values, budget, seeds, run):
    def rows(own):
        table = compare(base, field, own, budget, seeds, _recorder([]))
        return [(value, steps, list(losses)) for value, steps, losses in table]

    return rows(values[::-1]) == rows(values)[::-1]


@holds("compare", "A seed or value twice, and a budget below a step, are refused before anything is run.")
def unfair_tables(compare, base, field, values, budget, seeds, run):
    asked = []
    own = _recorder(asked)
    is_refused = (
        refused(compare, base, field, values, budget, [*seeds, seeds[0]], own)
        and refused(compare, base, field, [*values, values[0]], budget, seeds, own)
        and refused(compare, base, field, values, 1, seeds, own)
    )
    return is_refused and not asked


@holds("paired_verdict", "In exchanged places the other one wins, and the mean has the other sign.")
def exchanged(paired_verdict, first, second, factor=2.0):
    winner, mean, error = paired_verdict(first, second, factor)
    other = {"first": "second", "second": "first"}.get(winner, winner)
    return list(paired_verdict(second, first, factor)), [other, -mean, error]


@holds("paired_verdict", "What a seed brings to both does not matter, nor does the order of the seeds.")
def luck_of_the_seeds(paired_verdict, first, second, factor=2.0):
    luck = range(len(first))
    lucky = paired_verdict(
        [a + i for a, i in zip(first, luck)], [b + i for b, i in zip(second, luck)], factor
    )
    verdict = list(paired_verdict(first, second, factor))
    return [*lucky, *paired_verdict(first[::-1], second[::-1], factor)], [*verdict, *verdict]


@holds("paired_verdict", "Losses four times as large have four times the mean and the error; one more in all of one moves the mean by one.")
def other_units(paired_verdict, first, second, factor=2.0):
    _, mean, error = paired_verdict(first, second, factor)
    large = paired_verdict([4 * a for a in first], [4 * b for b in second], factor)[1:]
    moved = paired_verdict([a + 1 for a in first], second, factor)[1:]
    return [*large, *moved], [4 * mean, 4 * error, mean + 1, error]


@holds("paired_verdict", "Of two pairs the error is half of how far their differences are apart.")
def two_pairs(paired_verdict, first, second, factor=2.0):
    differences = [a - b for a, b in zip(first[:2], second[:2])]
    _, mean, error = paired_verdict(first[:2], second[:2], factor)
    apart = abs(differences[0] - differences[1]) / 2
    return [mean, error], [sum(differences) / 2, apart]


@holds("paired_verdict", "Every pair twice: the mean stays, and the error shrinks with the number of pairs.")
def twice_as_many(paired_verdict, first, second, factor=2.0):
    n = len(first)
    _, mean, error = paired_verdict(first, second, factor)
    shrunk = error * math.sqrt((n - 1) / (2 * n - 1))
    return list(paired_verdict(first * 2, second * 2, factor)[1:]), [mean, shrunk]


@holds("paired_verdict", "A factor that asks for half of the mean finds the lower one, one for twice the mean nobody.")
def factors(paired_verdict, first, second, factor=2.0):
    _, mean, error = paired_verdict(first, second, factor)
    if mean == 0 or error == 0:
        return None
    ratio = abs(mean) / error
    lower = "first" if sum(first) < sum(second) else "second"
    winners = [paired_verdict(first, second, share * ratio)[0] for share in (0.5, 2.0)]
    return winners == [lower, "undecided"]


@holds("paired_verdict", "Who has a run without a finite loss loses to who has none; mean and error are None.")
def diverged(paired_verdict, first, second, factor=2.0):
    for bad in (math.inf, math.nan):
        lost = [*first[:-1], bad]
        verdicts = [
            paired_verdict(lost, second, factor),
            paired_verdict(first, [bad, *second[1:]], factor),
            paired_verdict(lost, [bad, *second[1:]], factor),
        ]
        if list(map(tuple, verdicts)) != [(w, None, None) for w in ("second", "first", "undecided")]:
            return False
    return True


@holds("paired_verdict", "Lists of different lengths, and single losses, are refused.")
def no_pairs(paired_verdict, first, second, factor=2.0):
    return refused(paired_verdict, first, second[1:]) and refused(paired_verdict, first[:1], second[:1])


@holds("power_law_forecast", "In another unit of size the exponent and the forecast are the same.")
def units_do_not_matter(power_law_forecast, sizes, losses, new_size, floor=0.0):
    thousands = power_law_forecast([1000 * n for n in sizes], losses, 1000 * new_size, floor)
    return list(thousands), list(power_law_forecast(sizes, losses, new_size, floor))


@holds("power_law_forecast", "The order of the points does not matter, nor that each of them is there twice.")
def order_of_points(power_law_forecast, sizes, losses, new_size, floor=0.0):
    turned = power_law_forecast(sizes[1:] + sizes[:1], losses[1:] + losses[:1], new_size, floor)
    twice = power_law_forecast(sizes * 2, losses * 2, new_size, floor)
    expected = list(power_law_forecast(sizes, losses, new_size, floor))
    return [*turned, *twice], [*expected, *expected]


@holds("power_law_forecast", "Two more in all losses and the floor are two more in the forecast.")
def higher_floor(power_law_forecast, sizes, losses, new_size, floor=0.0):
    alpha, forecast = power_law_forecast(sizes, losses, new_size, floor)
    raised = power_law_forecast(sizes, [loss + 2 for loss in losses], new_size, floor + 2)
    return list(raised), [alpha, forecast + 2]


@holds("power_law_forecast", "Losses three times as far above the floor have a forecast three times as far.")
def farther_above(power_law_forecast, sizes, losses, new_size, floor=0.0):
    alpha, forecast = power_law_forecast(sizes, losses, new_size, floor)
    above = [floor + 3 * (loss - floor) for loss in losses]
    expected = [alpha, floor + 3 * (forecast - floor)]
    return list(power_law_forecast(sizes, above, new_size, floor)), expected


@holds("power_law_forecast", "Points on the fitted line have that line.")
def line_of_its_own(power_law_forecast, sizes, losses, new_size, floor=0.0):
    on_line = [power_law_forecast(sizes, losses, size, floor)[1] for size in sizes]
    if min(on_line) - floor < 1e-6:
        return None
    expected = list(power_law_forecast(sizes, losses, new_size, floor))
    return list(power_law_forecast(sizes, on_line, new_size, floor)), expected


@holds("power_law_forecast", "Losses that are a power of the size have that power, and go on as it does.")
def true_power(power_law_forecast, sizes, losses, new_size, floor=0.0):
    exact = [floor + 3 / math.sqrt(size) for size in sizes]
    answer = power_law_forecast(sizes, exact, new_size, floor)
    return list(answer), [0.5, floor + 3 / math.sqrt(new_size)]


@holds("power_law_forecast", "Lists that do not fit, one size, a size of 0 and a loss at the floor are refused.")
def no_line(power_law_forecast, sizes, losses, new_size, floor=0.0):
    same, zero = [sizes[0]] * len(sizes), [0, *sizes[1:]]
    return (
        refused(power_law_forecast, sizes, losses[1:], new_size, floor)
        and refused(power_law_forecast, same, losses, new_size, floor)
        and refused(power_law_forecast, zero, losses, new_size, floor)
        and refused(power_law_forecast, sizes, [floor, *losses[1:]], new_size, floor)
    )


@holds("lora_adapters", "For each block and name a of [n, r] with numbers, and b of [r, m] that is zero.")
def shapes_of_adapters(lora_adapters, params, names, rank, seed=0):
    adapters = lora_adapters(params, names, rank, seed)
    if len(adapters) != len(params["blocks"]):
        return False
    for block, own in zip(params["blocks"], adapters):
        for name in names:
            n, m = block[name].shape
            a, b = own[name]["a"], own[name]["b"]
            if a.shape != (n, rank) or b.shape != (rank, m) or not a.any() or b.any():
                return False
    return all(set(own) == set(names) for own in adapters)


@holds("lora_adapters", "Numbers come from the seed: other seeds give others, and torch's own dice stay.")
def seeds_of_adapters(lora_adapters, params, names, rank, seed=0):
    states, answers = [torch.get_rng_state()], []
    for own_seed in (seed, seed + 1, seed):
        answers.append(lora_adapters(params, names, rank, own_seed)[0][names[0]]["a"])
        states.append(torch.get_rng_state())
    is_same = torch.equal(answers[0], answers[2]) and not torch.equal(answers[0], answers[1])
    return is_same and all(torch.equal(states[0], state) for state in states)


@holds("lora_adapters", "Numbers of a are normal with a deviation of 1/√n, and no two matrices share them.")
def normal_numbers(lora_adapters, params, names, rank, seed=0):
    large = {"w": torch.zeros(400, 60).double(), "v": torch.zeros(400, 30).double()}
    adapters = lora_adapters({"blocks": [large, large]}, ["w", "v"], 20, seed)
    parts = [own[name]["a"] * 20.0 for own in adapters for name in ("w", "v")]
    numbers = torch.stack(parts).flatten(1)  # four times 8 000, of deviation 1
    moments = [float(numbers.mean()), float(numbers.pow(2).mean()), float(numbers.pow(4).mean())]
    is_normal = abs(moments[0]) < 0.05 and abs(moments[1] - 1) < 0.05 and abs(moments[2] - 3) < 0.4
    alike = numbers @ numbers.T / numbers.shape[1] - torch.eye(4).double()
    return is_normal and float(alike.abs().max()) < 0.15


@holds("lora_adapters", "A rank of 0, one above a side, and a name that no block has, are refused.")
def strange_ranks(lora_adapters, params, names, rank, seed=0):
    largest = min(params["blocks"][0][names[0]].shape)
    calls = ((names, 0), (names, largest + 1), (["no such matrix"], 1))
    return all(refused(lora_adapters, params, own, number) for own, number in calls)


@holds("merge_lora", "Everything without an adapter stays, and all of it with an alpha of 0.")
def what_stays(merge_lora, params, adapters, alpha):
    merged, nothing = (merge_lora(params, adapters, a) for a in (alpha, 0.0))
    got, expected = [merged["embed"], nothing["embed"]], [params["embed"]] * 2
    for place, (block, own) in enumerate(zip(params["blocks"], adapters)):
        for name, matrix in block.items():
            got.append(nothing["blocks"][place][name])
            expected.append(matrix)
            if name not in own:
                got.append(merged["blocks"][place][name])
                expected.append(matrix)
    return got, expected


@holds("merge_lora", "An adapter whose columns and rows are there twice, of twice the rank, adds as much.")
def rank_divides(merge_lora, params, adapters, alpha):
    twice = [
        {
            name: {"a": torch.cat([part["a"]] * 2, dim=1), "b": torch.cat([part["b"]] * 2)}
            for name, part in own.items()
        }
        for own in adapters
    ]
    merged, wide = (merge_lora(params, own, alpha)["blocks"] for own in (adapters, twice))
    return [list(block.values()) for block in wide], [[block[k] for k in wide[0]] for block in merged]


@holds("merge_lora", "With a single number in a, one row moves: by alpha / r times it and a row of b.")
def one_row(merge_lora, params, adapters, alpha):
    matrix = params["blocks"][-1]["w"]
    a = torch.zeros(len(matrix), 2).double()
    a[-1, 1] = 3.0
    b = torch.arange(2 * matrix.shape[1]).double().view(2, -1)
    own = [{} for _ in params["blocks"][:-1]] + [{"w": {"a": a, "b": b}}]
    moved = merge_lora(params, own, 4.0)["blocks"][-1]["w"] - matrix
    expected = torch.zeros_like(matrix)
    expected[-1] = 6 * b[1]
    return moved, expected


@holds("merge_lora", "A gradient reaches every a and b, and the parameters.")
def gradients_reach(merge_lora, params, adapters, alpha):
    leaves = []

    def leaf(tensor):
        leaves.append(tensor.clone().requires_grad_())
        return leaves[-1]

    blocks = [block | {"w": leaf(block["w"])} for block in params["blocks"]]
    own = [
        {"w": {"a": leaf(torch.ones(len(block["w"]), 1).double()), "b": leaf(block["w"][:1] * 0 + 1)}}
        for block in params["blocks"]
    ]
    merged = merge_lora(params | {"blocks": blocks}, own, 1.0)
    sum(block["w"].sum() for block in merged["blocks"]).backward()
    return all(tensor.grad is not None and bool(tensor.grad.any()) for tensor in leaves)


@holds("merge_lora", "Adapters of another number of blocks are refused.")
def other_blocks(merge_lora, params, adapters, alpha):
    return refused(merge_lora, params, [*adapters, {}], alpha) and refused(merge_lora, params, [], alpha)


@holds("tuning_costs", "Python ints; all numbers are trained with full, those of one block with last.")
def trained_numbers(tuning_costs, params, method, names=(), rank=0):
    larger = params["blocks"][-1] | {"one more": params["embed"]}
    params = params | {"blocks": [*params["blocks"], larger]}
    blocks = [sum(t.numel() for t in block.values()) for block in params["blocks"]]
    full, last = (tuning_costs(params, way) for way in ("full", "last"))
    is_all = full["trained"] == params["embed"].numel() + sum(blocks)
    is_last = last["trained"] == blocks[-1]
    kinds = {type(number) for number in [*full.values(), *last.values()]}
    return is_all and is_last and kinds == {int}


@holds("tuning_costs", "Weights and gradients have the dtype of the weights, the averages eight bytes a number.")
def bytes_of_numbers(tuning_costs, params, method, names=(), rank=0):
    half = params | {
        "embed": params["embed"].half(),
        "blocks": [{key: t.half() for key, t in block.items()} for block in params["blocks"]],
    }
    wide, narrow = (tuning_costs(own, method, names, rank) for own in (params, half))
    return wide["optimizer"] == narrow["optimizer"] == 8 * wide["trained"] and all(
        wide[name] == 4 * narrow[name] for name in ("weights", "gradients")
    )


@holds("tuning_costs", "Only adapters come to the weights; gradients are of what is trained.")
def weights_and_gradients(tuning_costs, params, method, names=(), rank=0):
    full, last = tuning_costs(params, "full"), tuning_costs(params, "last")
    lora = tuning_costs(params, "lora", ["w"], 3)
    return (
        full["gradients"] == full["weights"] == last["weights"]
        and last["gradients"] * full["trained"] == full["gradients"] * last["trained"]
        and lora["weights"] - full["weights"] == lora["gradients"]
        and lora["gradients"] * full["trained"] == full["gradients"] * lora["trained"]
    )


@holds("tuning_costs", "Adapters grow with the rank, and by the rank for each row or column more.")
def numbers_of_adapters(tuning_costs, params, method, names=(), rank=0):
    def trained(rows, columns, own_rank):
        block = {"w": torch.zeros(rows, columns), "v": torch.zeros(2, 2)}
        small = {"embed": torch.zeros(3, 2), "blocks": [block] * len(params["blocks"])}
        return tuning_costs(small, "lora", ["w"], own_rank)["trained"]

    blocks = len(params["blocks"])
    one, more = trained(4, 5, 1), [trained(5, 5, 3), trained(4, 6, 3)]
    return trained(4, 5, 3) == 3 * one and more == [3 * one + 3 * blocks] * 2


@holds("tuning_costs", "Adapters of two matrices are those of each.")
def names_add_up(tuning_costs, params, method, names=(), rank=0):
    numbers = [tuning_costs(params, "lora", own, 2)["trained"] for own in (["w", "v"], ["w"], ["v"])]
    return numbers[0] == numbers[1] + numbers[2]


@holds("tuning_costs", "Another method is refused.")
def strange_methods(tuning_costs, params, method, names=(), rank=0):
    return refused(tuning_costs, params, "first") and refused(tuning_costs, params, "", names, rank)


@holds("distinct_ngrams", "Other names for the tokens change nothing, nor does the other direction.")
def names_do_not_matter(distinct_ngrams, ids, n):
    expected = distinct_ngrams(ids, n)
    names = torch.tensor([111, 1, 11])  # one behind the other they look alike
    return [distinct_ngrams(names[ids], n), distinct_ngrams(ids.flip(1), n)], [expected, expected]


@holds("distinct_ngrams", "Where all tokens differ the share is 1, and so it is for runs as long as the text.")
def nothing_repeats(distinct_ngrams, ids, n):
    rows, length = ids.shape
    counting = torch.arange(rows * length).view(rows, length)
    ones = torch.ones(rows).double()
    return [distinct_ngrams(counting, n), distinct_ngrams(ids, length)], [ones, ones]


@holds("distinct_ngrams", "A text of p words in turn has p different runs among all.")
def words_in_turn(distinct_ngrams, ids, n):
    answers = [float(distinct_ngrams((torch.arange(20) % p)[None], n)[0]) for p in (1, 2, 3)]
    return answers, [p / (21 - n) for p in (1, 2, 3)]


@holds("distinct_ngrams", "Runs of no token, and of more than the text has, are refused.")
def strange_runs(distinct_ngrams, ids, n):
    return all(refused(distinct_ngrams, ids, number) for number in (0, ids.shape[1] + 1))


@holds("accuracy_by_length", "Lengths that occur, shortest first: ints, with floats of 1 for the targets themselves.")
def targets_are_right(accuracy_by_length, predicted, targets, lengths):
    table = accuracy_by_length(targets, targets, lengths)
    kinds = {(type(length), type(share)) for length, share in table}
    is_right = all(share == 1 for _, share in table)
    return kinds == {(int, float)} and is_right and [n for n, _ in table] == sorted(set(lengths.tolist()))


@holds("accuracy_by_length", "What stands behind the end of a sentence does not count.")
def behind_the_end(accuracy_by_length, predicted, targets, lengths):
    behind = torch.arange(targets.shape[1]) >= lengths[:, None]
    expected = accuracy_by_length(predicted, targets, lengths)
    answers = [
        accuracy_by_length(predicted.masked_fill(behind, 9), targets, lengths),
        accuracy_by_length(predicted.masked_fill(behind, 9), targets.masked_fill(behind, 9), lengths),
    ]
    return [list(map(list, table)) for table in answers], [list(map(list, expected))] * 2


@holds("accuracy_by_length", "The order of the sentences does not matter, nor that each is there twice.")
def other_order(accuracy_by_length, predicted, targets, lengths):
    expected = [list(row) for row in accuracy_by_length(predicted, targets, lengths)]
    answers = []
    for rows in (torch.arange(len(lengths)).flip(0), torch.arange(len(lengths)).repeat(2)):
        table = accuracy_by_length(predicted[rows], targets[rows], lengths[rows])
        answers.append([list(row) for row in table])
    return answers, [expected, expected]


@holds("accuracy_by_length", "One wrong word costs its part of all words of that length.")
def one_wrong_word(accuracy_by_length, predicted, targets, lengths):
    wrong = targets.clone()
    wrong[-1, 0] += 1
    length = int(lengths[-1])
    words = length * int((lengths == length).sum())
    table = dict(accuracy_by_length(wrong, targets, lengths))
    expected = {n: 1 - 1 / words if n == length else 1.0 for n in table}
    return [table[n] for n in table], [expected[n] for n in table]


@holds("accuracy_by_length", "Other shapes, missing lengths, and lengths of 0 or above T, are refused.")
def strange_lengths(accuracy_by_length, predicted, targets, lengths):
    wide = torch.cat([predicted, predicted[:, :1]], dim=1)
    short, long = lengths.clone(), lengths.clone()
    short[0], long[-1] = 0, targets.shape[1] + 1
    calls = (
        (wide, targets, lengths),
        (predicted, targets, lengths[1:]),
        (predicted, targets, short),
        (predicted, targets, long),
    )
    return all(refused(accuracy_by_length, *arguments) for arguments in calls)


@holds("six_n_counterexample", "A whole setup: tied, no learned positions, sizes from 1 to 10¹².")
def whole_setup(six_n_counterexample, factor, notebook):
    setup = six_n_counterexample(factor)
    sizes = ("vocab_size", "d_model", "num_layers", "num_heads", "num_kv_heads", "d_ff")
    numbers = [setup[name] for name in (*sizes, "context_length", "batch")]
    are_sizes = all(type(n) is int and 1 <= n <= 10**12 for n in numbers)
    is_allowed = setup["tied"] is True and setup["positions"] in ("none", "rotary")
    return are_sizes and is_allowed and set(setup) == set(notebook["SMALL"])


@holds("six_n_counterexample", "A step costs at least factor times what the rule says, for larger factors too.")
def costs_enough(six_n_counterexample, factor, notebook):
    for asked in (factor, 10 * factor):
        setup = six_n_counterexample(asked)
        d, d_ff = setup["d_model"], setup["d_ff"]
        narrow = d // setup["num_heads"] * setup["num_kv_heads"]
        matrices = [(d, d), (d, narrow), (d, narrow), (d, d), (d, d_ff), (d_ff, d)]
        if setup["activation"] == "swiglu":
            matrices.append((d, d_ff))
        numbers = setup["num_layers"] * sum(n * m for n, m in matrices)
        tokens_a_step = setup["batch"] * setup["context_length"]
        rule = 6 * (numbers + setup["vocab_size"] * d) * tokens_a_step
        if notebook["training_flops"](setup) < asked * rule:
            return False
    return True

"""What `harder(…)` tries: you need not read it.

Made by `autograder build`; the notebook a5_transformer_block.ipynb imports it.
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

WEIGHTS = ("normal", "whole", "small", "zeros")


EPS = maybe(choice(1e-5, 1e-2, 0.5))


def norms_of_batches(draw, play, name):
    """In training the statistics are those of the batch; they are kept in float32 or float64."""
    dtype = draw.choose("dtype of the statistics", ("float32", "float64"))
    play.call(
        name,
        draw(tensor("...", "N", "D"), "x"),
        draw(tensor("D"), "gamma"),
        draw(tensor("D"), "beta"),
        draw(
            tensor("D", dtype=dtype, values=("normal", "whole", "offset")),
            "running_mean",
        ),
        draw(tensor("D", dtype=dtype, values=("positive", "shares")), "running_var"),
        draw.choose("training", (False, True)),
        **_settings(draw),
    )


def _settings(draw):
    """Each keyword is left out or there."""
    settings = {}
    if draw.choose("momentum is", ("left out", "there")) == "there":
        settings["momentum"] = draw.choose("momentum", (0.0, 0.25, 1.0))
    if draw.choose("eps is", ("left out", "there")) == "there":
        settings["eps"] = draw.choose("eps", (1e-5, 1e-2, 0.5))
    return settings


ROTATED = ("normal", "whole", "large", "small", "equal rows")


def blocks_with_masks(draw, play, name):
    """A mask for all sentences, one for each, or of keys alone."""
    inner = draw.size("H*d")
    params = {
        "w_q": draw(tensor("D", inner, values=WEIGHTS), "w_q"),
        "w_k": draw(tensor("D", inner, values=WEIGHTS), "w_k"),
        "w_v": draw(tensor("D", inner, values=WEIGHTS), "w_v"),
        "w_o": draw(tensor(inner, "D", values=WEIGHTS), "w_o"),
        "w1": draw(tensor("D", "F", values=WEIGHTS), "w1"),
        "b1": draw(tensor("F", values=WEIGHTS), "b1"),
        "w2": draw(tensor("F", "D", values=WEIGHTS), "w2"),
        "b2": draw(tensor("D", values=WEIGHTS), "b2"),
    }
    for norm in ("ln1", "ln2"):
        params[f"{norm}_gamma"] = draw(tensor("D", values=WEIGHTS), f"{norm}_gamma")
        params[f"{norm}_beta"] = draw(tensor("D", values=WEIGHTS), f"{norm}_beta")
    x = draw(tensor("B", "N", "D"), "x")
    axes = draw.choose(
        "axes of the mask", ((), ("N", "N"), ("B", "N", "N"), ("B", 1, "N"))
    )
    if axes:
        play.call(name, x, params, draw.size("H"), mask=draw(mask(*axes), "mask"))
    else:
        play.call(name, x, params, draw.size("H"))


HEADS = {"H": (1, 3), "d": (1, 3), "N": (1, 5), "D": (1, 6), "F": (1, 6)}


contract(
    "layer_norm",
    calls(x=tensor('...', 'D', values=EDGES), gamma=tensor('D'), beta=tensor('D'), eps=EPS),
    dtypes=HALF,
    gradients=True,
)


contract(
    "layer_norm_backward",
    calls(dy=tensor('...', 'D', values=('normal', 'equal rows', 'small', 'zeros', 'offset')), x=tensor('...', 'D'), gamma=tensor('D'), eps=EPS),
    dtypes=HALF,
)


contract(
    "rms_norm",
    calls(x=tensor('...', 'D', values=EDGES), gamma=tensor('D'), eps=maybe(choice(1e-06, 0.01, 0.5))),
    dtypes=HALF,
    gradients=True,
)


contract(
    "batch_norm",
    norms_of_batches,
    dtypes=HALF,
)


contract(
    "mlp",
    calls(x=tensor('...', 'D'), w1=tensor('D', 'F', values=WEIGHTS), b1=tensor('F'), w2=tensor('F', 'D', values=WEIGHTS), b2=tensor('D'), activation=maybe(choice('relu', 'gelu'))),
    gradients=True,
)


contract(
    "swiglu",
    calls(x=tensor('...', 'D'), w1=tensor('D', 'F', values=WEIGHTS), w2=tensor('D', 'F', values=WEIGHTS), w3=tensor('F', 'D', values=WEIGHTS)),
    gradients=True,
)


contract(
    "swiglu_hidden",
    calls(d_model=whole(1, 20000), multiple_of=maybe(choice(1, 2, 3, 7, 64, 256))),
)


contract(
    "rotary_positions",
    calls(x=tensor('...', 'N', '2*pairs', values=ROTATED), positions=tokens('N', below=1000), theta=maybe(choice(10000.0, 100.0, 2.0))),
    dtypes=HALF,
)


contract(
    "rotary_positions",
    calls(x=tensor('B', 'H', 'N', '2*pairs', values=ROTATED), positions=tokens('B', 'N', below=1000), theta=maybe(choice(10000.0, 100.0, 2.0))),
    dtypes=HALF,
)


contract(
    "post_norm_block",
    blocks_with_masks,
    sizes=HEADS,
)


contract(
    "pre_norm_block",
    blocks_with_masks,
    sizes=HEADS,
)


contract(
    "moe_layer",
    calls(x=tensor('B', 'N', 'D', values=tuple((style for style in FLOATS if style != 'zeros'))), w_gate=tensor('D', 'E', values=('normal', 'large')), w1=tensor('E', 'D', 'F', values=WEIGHTS), w2=tensor('E', 'F', 'D', values=WEIGHTS), num_active=whole(1, 'E')),
    sizes={'E': (1, 6), 'D': (2, 6)},
    equals='free',
)


contract(
    "rounding_counterexample",
    calls(decimals=whole(1, 5), units=whole(1, 25)),
)


import math


import torch


about("layer_norm", refuses="gamma.0 beta.0")


about("layer_norm_backward", refuses="dy.-1 x.-1 gamma.0")


about("rms_norm", refuses="gamma.0")


about("batch_norm", refuses="gamma.0 beta.0 running_mean.0 running_var.0", except_for="dtype")


about("mlp", refuses="w1.0 w1.1 b1.0 w2.0 b2.0")


about("swiglu", refuses="w1.0 w1.1 w2.0 w2.1 w3.0")


about("swiglu_hidden")


about("rotary_positions", refuses="positions.-1 x.-1")


about("post_norm_block")


about("pre_norm_block")


about("moe_layer", refuses="x.2 w_gate.0 w_gate.1 w1.0 w1.1 w1.2 w2.0 w2.1 w2.2")


def _mean(numbers):
    return math.fsum(numbers) / len(numbers)


@holds("layer_norm", "One number of the last row, by loops over single numbers.", share=1e-4)
def one_normalized(layer_norm, x, gamma, beta, eps=1e-5):
    row = x.reshape(-1, x.shape[-1])[-1].tolist()
    middle = _mean(row)
    variance = _mean([(number - middle) ** 2 for number in row])
    right = (row[-1] - middle) / math.sqrt(variance + eps) * float(gamma[-1]) + float(beta[-1])
    return float(layer_norm(x, gamma, beta, eps=eps).reshape(-1)[-1]), right


@holds("layer_norm", "A number added to a whole row changes nothing.", share=1e-3)
def shifted_rows(layer_norm, x, gamma, beta, eps=1e-5):
    tame = x / max(float(x.abs().max()), 1.0)
    return layer_norm(tame + 3.0, gamma, beta, eps=eps), layer_norm(tame, gamma, beta, eps=eps)


@holds("layer_norm", "The default eps is 1e-5: rows as small as its root show it.")
def default_eps(layer_norm, x, gamma, beta, eps=1e-5):
    small = 3e-3 * x / max(float(x.abs().max()), 1.0)
    return layer_norm(small, gamma, beta), layer_norm(small, gamma, beta, eps=1e-5)


def _slopes(norm, dy, inputs):
    """Difference quotients of the sum of dy times the answer, for the first number of each input."""
    slopes = []
    for place in range(len(inputs)):
        totals = []
        for step in (1e-4, -1e-4):
            moved = [x.clone() for x in inputs]
            moved[place].reshape(-1)[0] += step
            totals.append(float((dy * norm(*moved)).sum()))
        slopes.append((totals[0] - totals[1]) / 2e-4)
    return slopes


@holds("layer_norm_backward", "dbeta sums dy over all tokens, and a row of dx sums to 0 and is perpendicular to x.", share=1e-3)
def laws_of_the_gradient(layer_norm_backward, dy, x, gamma, eps=1e-5):
    x = x / max(float(x.abs().max()), 1e-3)
    dx, _, dbeta = layer_norm_backward(dy, x, gamma, eps=1e-9)
    sums = [math.fsum(column) for column in dy.reshape(-1, x.shape[-1]).T.tolist()]
    largest = float(dx.abs().max()) + 1.0
    return [dbeta, dx.sum(dim=-1) / largest], [torch.tensor(sums).double(), torch.zeros(dx.shape[:-1]).double()]


@holds("layer_norm_backward", "One number of each gradient is the slope of the norm, measured by small steps.", share=1e-3)
def slopes_of_the_norm(layer_norm_backward, dy, x, gamma, eps=1e-5):
    x, dy = torch.tanh(x), torch.tanh(dy)
    if float(x.std(dim=-1, unbiased=False).min()) < 0.1 and eps < 1e-3:
        return None

    def normalized(x, gamma, beta):
        rows = []
        for row in x.reshape(-1, x.shape[-1]).tolist():
            middle = _mean(row)
            root = math.sqrt(_mean([(number - middle) ** 2 for number in row]) + eps)
            rows.append([(number - middle) / root for number in row])
        return torch.tensor(rows).double().reshape(x.shape) * gamma + beta

    answer = layer_norm_backward(dy, x, gamma, eps=eps)
    measured = _slopes(normalized, dy, [x.contiguous(), gamma.contiguous(), torch.zeros_like(gamma).contiguous()])
    return [float(part.reshape(-1)[0]) for part in answer], measured


@holds("layer_norm_backward", "dgamma and dbeta of all tokens are the sums over the tokens alone.", share=1e-4)
def tokens_add_up(layer_norm_backward, dy, x, gamma, eps=1e-5):
    rows = zip(dy.reshape(-1, x.shape[-1]), x.reshape(-1, x.shape[-1]))
    alone = [layer_norm_backward(d, row, gamma, eps=eps) for d, row in rows]
    answer = layer_norm_backward(dy, x, gamma, eps=eps)
    return list(answer[1:]), [torch.stack([part[i] for part in alone]).sum(dim=0) for i in (1, 2)]


@holds("rms_norm", "One number of the last row, by loops over single numbers.", share=1e-4)
def one_divided(rms_norm, x, gamma, eps=1e-6):
    row = x.reshape(-1, x.shape[-1])[-1].tolist()
    right = row[-1] / math.sqrt(_mean([number**2 for number in row]) + eps) * float(gamma[-1])
    return float(rms_norm(x, gamma, eps=eps).reshape(-1)[-1]), right


@holds("rms_norm", "The default eps is 1e-6: rows as small as its root show it.")
def default_eps_of_rms(rms_norm, x, gamma, eps=1e-6):
    small = 1e-3 * x / max(float(x.abs().max()), 1.0)
    return rms_norm(small, gamma), rms_norm(small, gamma, eps=1e-6)


@holds("batch_norm", "In evaluation one number, by loops; the running statistics come back as they were.", share=1e-4)
def evaluated(batch_norm, x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5):
    y, mean, var = batch_norm(x, gamma, beta, running_mean, running_var, False, momentum=momentum, eps=eps)
    number = float(x.reshape(-1, x.shape[-1])[-1, -1]) - float(running_mean[-1])
    right = number / math.sqrt(float(running_var[-1]) + eps) * float(gamma[-1]) + float(beta[-1])
    return [float(y.reshape(-1)[-1]), mean, var], [right, running_mean, running_var]


@holds("batch_norm", "In training one number of each part, by loops.", share=1e-4)
def trained(batch_norm, x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5):
    column = x.reshape(-1, x.shape[-1])[:, -1].tolist()
    if len(column) < 2:
        return refused(batch_norm, x, gamma, beta, running_mean, running_var, True)
    y, mean, var = batch_norm(x, gamma, beta, running_mean, running_var, True, momentum=momentum, eps=eps)
    middle = _mean(column)
    squares = math.fsum((number - middle) ** 2 for number in column)
    root = math.sqrt(squares / len(column) + eps)
    right = [
        (column[-1] - middle) / root * float(gamma[-1]) + float(beta[-1]),
        (1 - momentum) * float(running_mean[-1]) + momentum * middle,
        (1 - momentum) * float(running_var[-1]) + momentum * squares / (len(column) - 1),
    ]
    return [float(y.reshape(-1)[-1]), float(mean[-1]), float(var[-1])], right


@holds("batch_norm", "The new statistics are detached, and keep the dtype of the old ones; y has that of x.")
def statistics_are_apart(batch_norm, x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5):
    x = x.float().requires_grad_()
    if x.numel() // x.shape[-1] < 2:
        return None
    y, mean, var = batch_norm(x, gamma.float(), beta.float(), running_mean, running_var, training)
    kept = mean.dtype == var.dtype == running_mean.dtype and y.dtype == x.dtype
    return kept and not mean.requires_grad and not var.requires_grad


@holds("batch_norm", "The default momentum is 0.1 and the default eps 1e-5.", share=1e-6)
def defaults_of_batch_norm(batch_norm, x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5):
    if x.numel() // x.shape[-1] < 2:
        return None
    statistics = (gamma, beta, running_mean, running_var, True)
    small = 3e-3 * torch.tanh(x)
    return batch_norm(small, *statistics), batch_norm(small, *statistics, momentum=0.1, eps=1e-5)


@holds("mlp", "One number of the last token, by loops over single numbers.", share=1e-4)
def one_number_of_the_mlp(mlp, x, w1, b1, w2, b2, activation="relu"):
    row, number = x.reshape(-1, x.shape[-1])[-1].tolist(), float(b2[-1])
    for column in range(w1.shape[1]):
        z = dot_product(row, w1[:, column].tolist()) + float(b1[column])
        share = 0.5 * math.erfc(-z / math.sqrt(2)) if activation == "gelu" else float(z > 0)
        number += z * share * float(w2[column, -1])
    return float(mlp(x, w1, b1, w2, b2, activation=activation).reshape(-1)[-1]), number


@holds("mlp", "Without a word about it the activation is ReLU; another word is refused.")
def words_of_the_mlp(mlp, x, w1, b1, w2, b2, activation="relu"):
    if not refused(mlp, x, w1, b1, w2, b2, activation="tanh"):
        return False
    return mlp(x, w1, b1, w2, b2), mlp(x, w1, b1, w2, b2, activation="relu")


@holds("swiglu", "One number of the last token, by loops over single numbers.", share=1e-4)
def one_gated_number(swiglu, x, w1, w2, w3):
    row, number = x.reshape(-1, x.shape[-1])[-1].tolist(), 0.0
    for column in range(w1.shape[1]):
        z = dot_product(row, w1[:, column].tolist())
        gate = z / (1 + math.exp(-z)) if z > -700 else 0.0
        number += gate * dot_product(row, w2[:, column].tolist()) * float(w3[column, -1])
    return float(swiglu(x, w1, w2, w3).reshape(-1)[-1]), number


@holds("swiglu_hidden", "A Python int, a multiple, at least 8/3 of the width, and the one before is too small.")
def smallest_multiple(swiglu_hidden, d_model, multiple_of=1):
    width = swiglu_hidden(d_model, multiple_of=multiple_of)
    is_right = width % multiple_of == 0 and 3 * width >= 8 * d_model > 3 * (width - multiple_of)
    refuses = refused(swiglu_hidden, 0) and refused(swiglu_hidden, d_model, 0)
    return type(width) is int and is_right and refuses and swiglu_hidden(d_model) == swiglu_hidden(d_model, 1)


@holds("rotary_positions", "Every pair keeps its length.", share=1e-4)
def lengths_stay(rotary_positions, x, positions, theta=10000.0):
    def lengths(y):
        return y.reshape(*y.shape[:-1], -1, 2).square().sum(dim=-1)

    return lengths(rotary_positions(x, positions, theta=theta)), lengths(x)


@holds("rotary_positions", "The pair at the end of the last token is turned by its own angle.", share=3e-4)
def one_turn(rotary_positions, x, positions, theta=10000.0):
    a, b = x.reshape(-1, x.shape[-1])[-1, -2:].tolist()
    angle = int(positions.reshape(-1)[-1]) * theta ** (-(x.shape[-1] - 2) / x.shape[-1])
    right = [a * math.cos(angle) - b * math.sin(angle), a * math.sin(angle) + b * math.cos(angle)]
    return rotary_positions(x, positions, theta=theta).reshape(-1, x.shape[-1])[-1, -2:].tolist(), right


@holds("rotary_positions", "Turned to a position and then by as much again is turned to twice the position.", share=3e-4)
def turned_twice(rotary_positions, x, positions, theta=10000.0):
    once = rotary_positions(x, positions, theta=theta)
    return rotary_positions(once, positions, theta=theta), rotary_positions(x, 2 * positions, theta=theta)


@holds("rotary_positions", "Without a word about it theta is 10000; position 0 turns nothing.", share=3e-4)
def default_base(rotary_positions, x, positions, theta=10000.0):
    answers = [rotary_positions(x, positions), rotary_positions(x, 0 * positions, theta=theta)]
    return answers, [rotary_positions(x, positions, theta=10000.0), x]


def _without(params, *names):
    """The same weights, with 0 in the named ones."""
    return {name: 0 * part if name in names else part for name, part in params.items()}


def _normalized(x, gamma, beta):
    rows = []
    for row in x.reshape(-1, x.shape[-1]).tolist():
        middle = _mean(row)
        root = math.sqrt(_mean([(number - middle) ** 2 for number in row]) + 1e-5)
        rows.append([(number - middle) / root for number in row])
    return torch.tensor(rows).double().reshape(x.shape) * gamma + beta


@holds("post_norm_block", "With both sublayers silent it is x, normalized twice.", share=1e-3)
def norms_alone(post_norm_block, x, params, num_heads, mask=None):
    silent = _without(params, "w_o", "w2", "b2")
    once = _normalized(x, params["ln1_gamma"], params["ln1_beta"])
    right = _normalized(once, params["ln2_gamma"], params["ln2_beta"])
    return post_norm_block(x, silent, num_heads, mask=mask), right


@holds("post_norm_block", "Without attention the MLP reads the first norm's answer, and is added to it.", share=1e-3)
def mlp_after_the_norm(post_norm_block, x, params, num_heads, mask=None):
    silent = _without(params, "w_o", "w2")
    once = _normalized(x, params["ln1_gamma"], params["ln1_beta"]) + params["b2"]
    right = _normalized(once, params["ln2_gamma"], params["ln2_beta"])
    return post_norm_block(x, silent, num_heads, mask=mask), right


@holds("pre_norm_block", "With both sublayers silent x comes out as it is, plus the bias.", share=1e-4)
def stream_alone(pre_norm_block, x, params, num_heads, mask=None):
    silent = _without(params, "w_o", "w2")
    return pre_norm_block(x, silent, num_heads, mask=mask), x + params["b2"]


@holds("pre_norm_block", "A number added to a whole token goes through: both sublayers look at what is normalized.", share=1e-3)
def shifted_tokens(pre_norm_block, x, params, num_heads, mask=None):
    x = torch.tanh(x)
    answer = pre_norm_block(x, params, num_heads, mask=mask)
    return pre_norm_block(x + 2.0, params, num_heads, mask=mask), answer + 2.0


def _one_mlp_number(row, params):
    """The last number of what the MLP adds to a normalized token."""
    number = float(params["b2"][-1])
    for column in range(params["w1"].shape[1]):
        z = dot_product(row, params["w1"][:, column].tolist()) + float(params["b1"][column])
        number += max(z, 0.0) * float(params["w2"][column, -1])
    return number


@holds("pre_norm_block", "Without attention, one number by loops: x, plus the MLP of the second norm.", share=1e-3)
def mlp_of_the_second_norm(pre_norm_block, x, params, num_heads, mask=None):
    row = _normalized(x, params["ln2_gamma"], params["ln2_beta"])[-1, -1].tolist()
    right = float(x[-1, -1, -1]) + _one_mlp_number(row, params)
    answer = pre_norm_block(x, _without(params, "w_o"), num_heads, mask=mask)
    return float(answer[-1, -1, -1]), right


def _mask_of_own(x):
    """Each token sees itself alone."""
    return torch.eye(x.shape[1]).bool()


def _own_values(row, params):
    """What attention adds to a token that sees itself alone: its own values through w_o."""
    values = [dot_product(row, column.tolist()) for column in params["w_v"].T]
    return [dot_product(values, column.tolist()) for column in params["w_o"].T]


@holds("pre_norm_block", "Where each token sees itself alone, attention adds its own values, of the first norm.", share=1e-3)
def own_values_first(pre_norm_block, x, params, num_heads, mask=None):
    row = _normalized(x, params["ln1_gamma"], params["ln1_beta"])[-1, -1].tolist()
    added = torch.tensor(_own_values(row, params)).double()
    answer = pre_norm_block(x, _without(params, "w2", "b2"), num_heads, mask=_mask_of_own(x))
    return answer[-1, -1], x[-1, -1] + added


@holds("post_norm_block", "Where each token sees itself alone, its values are added to x, and then normalized.", share=1e-3)
def own_values_then_norms(post_norm_block, x, params, num_heads, mask=None):
    added = torch.tensor(_own_values(x[-1, -1].tolist(), params)).double()
    once = _normalized(x[-1, -1] + added, params["ln1_gamma"], params["ln1_beta"])
    right = _normalized(once, params["ln2_gamma"], params["ln2_beta"])
    answer = post_norm_block(x, _without(params, "w2", "b2"), num_heads, mask=_mask_of_own(x))
    return answer[-1, -1], right


@holds("post_norm_block", "What a token may not see changes nothing for it.", share=1e-4)
def unseen_tokens(post_norm_block, x, params, num_heads, mask=None):
    other = x.clone()
    other[:, 1:] += 1
    own = _mask_of_own(x)
    answers = [post_norm_block(y, params, num_heads, mask=own)[:, 0] for y in (x, other)]
    return answers[0], answers[1]


@holds("pre_norm_block", "What a token may not see changes nothing for it.", share=1e-4)
def unseen_tokens_before(pre_norm_block, x, params, num_heads, mask=None):
    other = x.clone()
    other[:, 1:] += 1
    own = _mask_of_own(x)
    answers = [pre_norm_block(y, params, num_heads, mask=own)[:, 0] for y in (x, other)]
    return answers[0], answers[1]


@holds("moe_layer", "The loads are int64, sum to tokens times active experts, and are at most the tokens each.")
def loads_add_up(moe_layer, x, w_gate, w1, w2, num_active):
    load = moe_layer(x, w_gate, w1, w2, num_active)[1]
    tokens = x.shape[0] * x.shape[1]
    is_form = load.dtype == torch.int64 and load.shape == (w_gate.shape[1],)
    return is_form and int(load.sum()) == tokens * num_active and int(load.max()) <= tokens


@holds("moe_layer", "Experts that are all alike answer as one does, whatever the gate says.", share=1e-4)
def equal_experts(moe_layer, x, w_gate, w1, w2, num_active):
    alike = [w[:1].expand_as(w) for w in (w1, w2)]
    row, number = x[-1, -1].tolist(), 0.0
    for column in range(w1.shape[2]):
        number += max(dot_product(row, w1[0, :, column].tolist()), 0.0) * float(w2[0, column, -1])
    return float(moe_layer(x, w_gate, *alike, num_active)[0][-1, -1, -1]), number


@holds("moe_layer", "Experts in another order, with the gate's columns, change the loads' order alone.", share=1e-4)
def order_of_experts(moe_layer, x, w_gate, w1, w2, num_active):
    scores = (x @ w_gate).sort(dim=-1).values
    if scores.shape[-1] > 1 and float((scores[..., 1:] - scores[..., :-1]).min()) < 1e-6:
        return None
    y, load = moe_layer(x, w_gate, w1, w2, num_active)
    return moe_layer(x, w_gate.flip(1), w1.flip(0), w2.flip(0), num_active), (y, load.flip(0))


@holds("moe_layer", "With all experts active, a number added to all scores changes nothing, and weights sum to 1.", share=1e-4)
def all_experts(moe_layer, x, w_gate, w1, w2, num_active):
    many = w_gate.shape[1]
    shifted = w_gate + 0.5 * w_gate[:, :1]
    y = moe_layer(x, shifted, w1, w2, many)[0]
    return y, moe_layer(x, shifted - 0.5 * w_gate[:, :1], w1, w2, many)[0]


@holds("moe_layer", "With one active expert the answer is that expert's own.", share=1e-4)
def one_expert(moe_layer, x, w_gate, w1, w2, num_active):
    token = x[-1:, -1:]
    y, load = moe_layer(token, w_gate, w1, w2, 1)
    chosen = int(load.argmax())
    number = 0.0
    for column in range(w1.shape[2]):
        inside = dot_product(token[0, 0].tolist(), w1[chosen, :, column].tolist())
        number += max(inside, 0.0) * float(w2[chosen, column, -1])
    scores = [dot_product(token[0, 0].tolist(), column.tolist()) for column in w_gate.T]
    return [float(y[0, 0, -1]), scores[chosen]], [number, max(scores)]


@holds("moe_layer", "No active expert, and more than there are, are refused.")
def impossible_numbers(moe_layer, x, w_gate, w1, w2, num_active):
    return refused(moe_layer, x, w_gate, w1, w2, 0) and refused(moe_layer, x, w_gate, w1, w2, len(w1) + 1)


@holds("rounding_counterexample", "The token slips by as much as is asked for when sigma is rounded first.")
def slips(rounding_counterexample, decimals, units):
    token = rounding_counterexample(decimals, units)
    if token.dtype != torch.float64 or token.ndim != 1 or not 2 <= len(token) <= 100_000:
        return False
    centred = token - token.mean()
    sigma = math.sqrt(float(centred.square().mean()))
    early = (centred / round(sigma, decimals)).round(decimals=decimals)
    late = (centred / sigma).round(decimals=decimals)
    slip = round(float((early - late).abs().max()) * 10**decimals)
    return sigma >= 1 - 1e-9 and slip >= units


@holds("rounding_counterexample", "No decimals, and no units, are refused.")
def nothing_asked(rounding_counterexample, decimals, units):
    return refused(rounding_counterexample, 0, units) and refused(rounding_counterexample, decimals, 0)

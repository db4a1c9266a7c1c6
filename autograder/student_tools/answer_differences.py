"""Compares an answer with the expected one: what visible checks are made of.

It imports neither torch nor numpy: a notebook may use neither. `build` ships it to students in the
companion `<assignment>_tools.py`.
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

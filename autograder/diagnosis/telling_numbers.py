"""Which wrong numbers tell by what mistake they were made.

Zeros, ones, NaN, truth values and texts have many causes: a mask that is turned round and one that
is filled with a number too large both answer 0 where 1 is right. So have small whole numbers, which
are indices and ids of tokens, and numbers that stand in the arguments: where a variance is far too
large, all that is left of a normalized token is the shift that was passed in. Who answers 0.3127,
1.844 and 2.09 as a mistake does has hardly made another one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from autograder.suite.calls import Call
from autograder.suite.kinds import is_array, numbers_in
from autograder.wire.trees import leaves

FEWEST_TELLING = 3
"""From how many wrong numbers on, each of another value, chance is ruled out."""
_COMMON = np.array([-1.0, 0.0, 1.0])
"""Numbers that many mistakes answer."""
_SMALL = 100
"""Whole numbers below this tell nothing."""
_SHARE = 1e-4
"""How far two numbers may lie apart and be the same here: a share of them, ..."""
_AT_MOST = 1e-6
"""... and for numbers near 0 an amount."""


def find_telling(wrong: Any, right: Any) -> np.ndarray[Any, Any]:
    """Where in an array the wrong numbers tell something, as truth values of its shape.

    Args:
        wrong, right: arrays or tensors of one shape.
    """
    numbers, right_numbers = numbers_in(wrong), numbers_in(right)
    if numbers.dtype.kind not in "iuf" or right_numbers.dtype.kind not in "biuf":
        return np.zeros(numbers.shape, dtype=bool)
    if numbers.dtype.kind == "f":
        is_common = are_close(numbers[..., None], _COMMON).any(axis=-1)
    else:
        is_common = np.abs(numbers) < _SMALL
    departs = ~are_close(numbers, right_numbers)
    telling: np.ndarray[Any, Any] = departs & np.isfinite(numbers) & ~is_common
    return telling


def are_close(first: Any, second: Any) -> np.ndarray[Any, Any]:
    """Which numbers of two arrays are the same up to rounding."""
    with np.errstate(invalid="ignore"):
        close: np.ndarray[Any, Any] = np.isclose(
            first, second, rtol=_SHARE, atol=_AT_MOST
        )
    return close


def count_telling(calls: Iterable[tuple[Call, Call, Call]]) -> int:
    """How many telling values are in a mistake's answers to some calls, each counted once in a
    call.

    Args:
        calls: the student's, which have the arguments, a mistake's, and the answer key's.
    """
    count = 0
    for student_call, call, key_call in calls:
        if call.fault is None and key_call.fault is None:
            values = _telling_values(call.result, key_call.result)
            if values:
                given = student_call.arguments, student_call.keywords
                count += len(values - _values_in(given))
    return count


def _values_in(arguments: Any) -> set[float]:
    """The numbers in the arguments of a call."""
    found = set[float]()
    for leaf in leaves(arguments):
        numbers = _as_array(leaf)
        if numbers is not None and numbers.dtype.kind in "iuf":
            found |= _rounded(numbers.ravel())
    return found


def _rounded(numbers: np.ndarray[Any, Any]) -> set[float]:
    """Some numbers with four digits, 0 and what is not finite left out: rounding makes no further
    value of a number.
    """
    wide = numbers.astype(np.float64)
    # below 1e-300 there are not four digits
    wide = wide[np.isfinite(wide) & (np.abs(wide) > 1e-300)]
    digit = 10.0 ** (np.floor(np.log10(np.abs(wide))) - 3)
    return set(np.unique(np.round(wide / digit) * digit).tolist())


def _telling_values(wrong: Any, right: Any) -> set[float]:
    """The values of a wrong answer that tell something. Of an answer in another form than the
    right one all values may.
    """
    wrong_leaves, right_leaves = leaves(wrong), leaves(right)
    if len(wrong_leaves) != len(right_leaves):
        right_leaves = [None] * len(wrong_leaves)
    values = set[float]()
    for leaf, right_leaf in zip(wrong_leaves, right_leaves, strict=True):
        numbers, right_numbers = _as_array(leaf), _as_array(right_leaf)
        if numbers is None:
            continue
        if right_numbers is None or right_numbers.shape != numbers.shape:
            right_numbers = np.full(numbers.shape, np.nan)  # near no number
        values |= _rounded(numbers[find_telling(numbers, right_numbers)])
    return values


def _as_array(leaf: Any) -> np.ndarray[Any, Any] | None:
    """The numbers of a leaf; None where it is none."""
    if is_array(leaf):
        return numbers_in(leaf)
    if isinstance(leaf, (int, float)) and not isinstance(leaf, bool):
        return np.array(leaf)
    return None

"""Compares the numbers of two arrays of one shape, and describes how they differ."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.suite.kinds import numbers_in

ATOL = 2e-6
"""Allowed error. An eps in the wrong place moves float64 values by 1.6e-5 and more; float32
arithmetic inside a function moves them by 5e-7.
"""
RTOL = 2e-6
Numbers = np.ndarray[Any, Any]
inf_and_nan_are_numbers = np.errstate(invalid="ignore", over="ignore")
"""Silences numpy's warnings about infinities and NaN, which are valid values here."""


def as_float64(values: Any) -> Numbers:
    """The numbers of a tensor or an array in double precision; complex ones as they are."""
    numbers = numbers_in(values)
    return (
        numbers if numbers.dtype.kind == "c" else numbers.astype(np.float64, copy=False)
    )


@inf_and_nan_are_numbers
def close_elements(
    actual: Numbers,
    expected: Numbers,
    atol: float,
    rtol: float,
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which elements are within `atol + rtol * |expected|`. Infinities and NaN equal themselves."""
    apart = abs(actual - expected)
    close = np.isfinite(apart) & (apart <= atol + rtol * abs(expected))
    both_nan = np.isnan(actual) & np.isnan(expected)
    return np.asarray((actual == expected) | close | both_nan)


@inf_and_nan_are_numbers
def largest_distance(
    actual: Numbers,
    expected: Numbers,
    atol: float,
    rtol: float,
) -> list[float]:
    """The largest difference as a multiple of the allowed one.

    Empty where nothing is allowed, or no element is finite.
    """
    allowed = np.asarray(atol + rtol * abs(expected))
    compared = np.isfinite(actual) & np.isfinite(expected) & (allowed > 0)
    if not compared.any():
        return []
    multiples = abs(actual - expected)[compared] / allowed[compared]
    return [float(multiples.max())]


def describe_difference(
    actual: Numbers,
    expected: Numbers,
    close: Numbers,
    *,
    are_bool: bool,
) -> str:
    """How two arrays of one shape differ, as the end of a sentence."""
    first = tuple(np.argwhere(~close)[0].tolist())
    where = f" at {list(first)}" if first else ""
    count = (
        f" {(~close).sum()} of {close.size} elements differ." if close.size > 1 else ""
    )
    value = actual[first].item()
    right = expected[first].item()
    if are_bool:
        return f"is {bool(value)}{where}, where {not value} is expected.{count}"
    if not _is_finite(value) and _is_finite(right):
        return f"is {value}{where}, where a finite number is expected.{count}"
    if _is_finite(value) and not _is_finite(right):
        return f"is {value:.6g}{where}, where {right} is expected.{count}"
    place = f" first{where}" if first else ""
    text = f"differs from the expected value{place}: yours is {value:.6g}"
    factor = _common_factor(actual, expected)
    if factor is not None:
        return f"{text}, {factor:.4g} times the expected value, and so everywhere."
    is_square = actual.ndim >= 2 and actual.shape[-1] == actual.shape[-2]
    if (
        is_square
        and close_elements(actual.swapaxes(-1, -2), expected, ATOL, RTOL).all()
    ):
        return f"{text}. It is the expected matrix transposed."
    size = "too large" if value > right else "too small"
    return f"{text}, {size} by {abs(value - right):.3g}.{count}"


@inf_and_nan_are_numbers
def _common_factor(actual: Numbers, expected: Numbers) -> float | None:
    """The factor between every expected element and the student's; None where there is none, or one
    close to 0 or 1.
    """
    nonzero = abs(expected) > ATOL
    ratios = actual[nonzero] / expected[nonzero]
    if (
        ratios.size < 2
        or not np.isfinite(ratios).all()
        or (abs(actual[~nonzero]) > ATOL).any()
    ):
        return None
    factor = float(ratios[0])
    is_common = close_elements(ratios, ratios[:1], 1e-6, 1e-4).all()
    is_worth_telling = abs(factor) > 1e-3 and abs(factor - 1) > 1e-3
    return factor if is_common and is_worth_telling else None


def _is_finite(value: Any) -> bool:
    return bool(value == value and abs(value) != math.inf)

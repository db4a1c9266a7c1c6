"""Predicates on the factor, or the number, that lies between an answer and the right one.

Each is Unseen where the right answer has the property too.
"""

from __future__ import annotations

import numpy as np

from autograder.suite.answer_predicates import Numbers, floats_of_one_shape
from autograder.suite.sight import Predicate, Sight, Unseen, make_predicate, read_factor

_FACTOR_ROUNDING = 1e-3
"""How far a factor may lie from 1, and one element's from another's, and still be the same: coarse
enough for single precision, and finer than any factor that a formula misses.
"""


def off_by_a_factor(factor: str = "") -> Predicate:
    """One factor lies between the answer and the right one, and it is not 1.

    Args:
        factor: the factor in sizes of arguments, "q[-1]**0.5 * num_heads**-0.5"; any where it is
            left out.
    """

    def holds(sight: Sight) -> bool:
        answer, right = floats_of_one_shape(sight)
        return _is_factor(measure_factor(answer, right), factor, sight)

    return make_predicate(f"is off by the factor {factor or 'of all numbers'}", holds)


def measure_factor(answer: Numbers, right: Numbers) -> float | None:
    """The factor that lies between all numbers of two arrays; None where there is none, and Unseen
    where there are too few numbers to tell.
    """
    large = abs(right) > 1e-2 * abs(right).max(initial=0)
    if large.sum() < 2 or np.ptp(right) == 0:
        raise Unseen("too few numbers")
    if not np.isfinite(right).all():
        raise Unseen("too few numbers")
    if not np.isfinite(answer).all():
        return None
    factor = float(np.median(answer[large] / right[large]))
    size = abs(factor) * abs(right).max()
    is_same = bool((abs(answer - factor * right) <= _FACTOR_ROUNDING * size).all())
    return factor if is_same and factor else None


def _is_factor(measured: float | None, factor: str, sight: Sight) -> bool:
    """Whether a measured factor is the one that a text names, or any but 1 where it names none."""
    if factor:
        expected = read_factor(factor, sight)
        if abs(expected - 1) < _FACTOR_ROUNDING:
            raise Unseen("a factor of 1")
        return measured is not None and _is_near(measured, expected)
    return measured is not None and not _is_near(measured, 1)


def _is_near(first: float, second: float) -> bool:
    return abs(first - second) <= 2 * _FACTOR_ROUNDING * abs(second)


def off_by_a_constant() -> Predicate:
    """The same number lies between the answer and the right one everywhere."""

    def holds(sight: Sight) -> bool:
        answer, right = floats_of_one_shape(sight)
        if answer.size < 2 or np.ptp(right) == 0:
            raise Unseen("too few numbers")
        if not np.isfinite(answer).all():
            raise Unseen("too few numbers")
        difference = answer - right
        return bool(
            np.ptp(difference) <= 1e-4 * np.ptp(right) and abs(difference).max() > 1e-6
        )

    return make_predicate("is off by the same number everywhere", holds)


def scores_off_by(factor: str = "") -> Predicate:
    """The logarithms of weights differ by a factor, whichever axis they are normalized along: rows
    and columns are centered first. Of masked weights, rows alone.

    Args:
        factor: as in `off_by_a_factor`; any where it is left out.
    """

    def holds(sight: Sight) -> bool:
        answer, right = floats_of_one_shape(sight)
        visible = (answer > 1e-30) & (right > 1e-30)
        is_matrix = answer.ndim >= 2 and min(answer.shape[-2:]) >= 2
        if not is_matrix or not visible.any():
            raise Unseen("no weights")
        logs = [np.log(np.where(visible, weights, 1.0)) for weights in (answer, right)]
        measured = measure_factor(*[_centered(array, visible) for array in logs])
        return _is_factor(measured, factor, sight)

    return make_predicate(
        f"has scores off by the factor {factor or 'of all scores'}", holds
    )


def _centered(array: Numbers, visible: Numbers) -> Numbers:
    """The array without the means of its rows, and of its columns where all of it is visible."""
    counts = np.maximum(visible.sum(-1, keepdims=True), 1)
    means = (array * visible).sum(-1, keepdims=True) / counts
    centered: Numbers = np.where(visible, array - means, 0.0)
    if visible.all():
        centered = centered - centered.mean(-2, keepdims=True)
    return centered

"""Slow definitions, a single number at a time, in plain Python: what harder inputs compare one
number of an answer with. They know neither tensors nor gradients, so they are no answer.
"""

from __future__ import annotations

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

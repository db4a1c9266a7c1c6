"""Add and format points: no total ever shows 4.000000001."""

from __future__ import annotations

import math
from collections.abc import Collection


def total(points: Collection[float]) -> float:
    """The exact sum, rounded to six digits after the point.

    Takes no generator: this module would call back into the caller's code.
    """
    return round(math.fsum(points), 6) + 0.0  # + 0.0 turns -0.0 into 0.0


def format_points(points: float, digits: int = 2) -> str:
    """Points as text without trailing zeros: "4", "17.5", "3.33"."""
    text = f"{round(points, 6) + 0.0:.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def is_full(score: float, max_score: float) -> bool:
    """Whether a score is the maximum, up to the rounding of sums in another order."""
    return score >= max_score - 1e-6

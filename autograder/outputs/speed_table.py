"""Measured speeds in words and as bonus points; neither is ever part of a score."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from autograder.course import Grading
from autograder.records.model import Speed


def speed_bonus(speeds: Sequence[Speed], grading: Grading) -> float:
    """Bonus points for speed, by the geometric mean of the cases.

    The baseline's speed gives no points, `speed_bonus_at` times its speed gives all.
    """
    ratios = [speed.ratio for speed in speeds]
    if not ratios or not all(ratios):
        return 0.0
    gain = statistics.geometric_mean(ratios) - 1
    share = gain / (grading.speed_bonus_at - 1)
    return round(grading.speed_bonus * min(1.0, max(0.0, share)), 2)


def describe_speeds(speeds: Sequence[Speed]) -> str:
    """Describe speeds as the terminal and the pages show them."""
    descriptions = []
    for speed in speeds:
        measured = speed.problem or f"{speed.ratio:.2f} times"
        descriptions.append(f"{speed.case}: {measured}")
    return "; ".join(descriptions)

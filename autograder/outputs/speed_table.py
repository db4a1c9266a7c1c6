"""Speeds for people: in words, and as bonus points. Neither is ever part of a score."""

from __future__ import annotations

import math
from collections.abc import Sequence

from autograder.course import Grading
from autograder.records.model import Speed


def speed_bonus(speeds: Sequence[Speed], grading: Grading) -> float:
    """Points for speed: none at the baseline's, all at `speed_bonus_at` times that, by the mean
    ratio of all cases.
    """
    ratios = [speed.ratio for speed in speeds]
    if not ratios or not all(ratios):
        return 0.0
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return round(
        grading.speed_bonus * min(1.0, max(0.0, (mean - 1) / (grading.speed_bonus_at - 1))), 2
    )


def describe_speeds(speeds: Sequence[Speed]) -> str:
    """As the terminal and the pages show it."""
    return "; ".join(f"{s.case}: {s.problem or f'{s.ratio:.2f} times'}" for s in speeds)

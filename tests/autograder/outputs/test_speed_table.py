"""Measured speeds as bonus points and in words, by values worked out by hand."""

from __future__ import annotations

import pytest

from autograder.course import Grading
from autograder.outputs.speed_table import describe_speeds, speed_bonus
from autograder.records.model import Speed

GRADING = Grading(speed_bonus=3.0, speed_bonus_at=5.0)
"""All 3 points for five times the baseline's speed: 0.75 points for each multiple above one."""


def at_ratios(*ratios: float) -> list[Speed]:
    return [Speed(f"case {ratio:g}", 1.0, ratio) for ratio in ratios]


@pytest.mark.parametrize(
    ("ratios", "points"),
    [
        ((3.0,), 1.5),
        # the geometric mean of 2 and 8 is 4
        ((2.0, 8.0), 2.25),
        ((5.0,), 3.0),
        ((50.0,), 3.0),
        ((1.0,), 0.0),
        ((0.5,), 0.0),
        # in hundredths: 0.75 · 0.1 is 0.075
        ((1.1,), 0.08),
        ((), 0.0),
    ],
)
def test_points_are_in_proportion_to_what_is_gained(
    ratios: tuple[float, ...], points: float
) -> None:
    assert speed_bonus(at_ratios(*ratios), GRADING) == points


def test_a_case_without_a_speed_leaves_no_bonus() -> None:
    speeds = [*at_ratios(5.0), Speed("wrong", 0.0, 1.0, "it differs")]
    assert speed_bonus(speeds, GRADING) == 0.0


def test_speeds_in_words() -> None:
    speeds = [*at_ratios(2.0), Speed("wrong", 0.0, 1.0, "it differs")]
    assert describe_speeds(speeds) == "case 2: 2.00 times; wrong: it differs"
    assert describe_speeds([]) == ""

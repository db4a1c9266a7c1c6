"""The time of a call is told from many calls, by a clock that the test plays."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from autograder.grading.speed_meter import _explain_difference, _time_call
from autograder.suite.timed_functions import SpeedCase


class PlayedStudent:
    """Each request takes `overhead` seconds and `each` for a call; notes the counts of calls."""

    def __init__(self, overhead: float, each: float) -> None:
        self.overhead = overhead
        self.each = each
        self.counts: list[int] = []

    def repeat(
        self, name: str, times: int, arguments: Any = None, *, give: bool = False
    ) -> tuple[str, float]:
        assert name == "attention"
        self.counts.append(times)
        return f"answer {give}", self.overhead + times * self.each


def timed(student: Any) -> tuple[Any, float]:
    return _time_call(student, "attention", SpeedCase("small", (1,), {}))


@pytest.mark.parametrize(
    ("overhead", "each", "rounds"),
    [
        # 0.05 s and 1024 times 0.2 ms are 0.25 s, and with 256 times 0.1 s
        (0.05, 2e-4, [4, 16, 64, 256, 1024]),
        # never 0.2 s: 4096 calls are the most
        (0.0, 1e-6, [4, 16, 64, 256, 1024, 4096]),
        (0.0, 0.01, [4, 16, 64]),
        (0.0, 0.05, [4]),
        (0.0, 0.2, [2]),
    ],
)
def test_calls_are_added_until_they_take_a_fifth_of_a_second(
    overhead: float, each: float, rounds: list[int]
) -> None:
    student = PlayedStudent(overhead, each)
    answer, seconds = timed(student)
    assert answer == "answer True"
    assert seconds == pytest.approx(each)
    most = rounds[-1]
    tried = [] if most == 2 else rounds
    assert student.counts == [1, 1, *tried, *[most] * 3, *[1] * 3, most]


def test_calls_that_take_no_time_have_none() -> None:
    with pytest.raises(ValueError, match="more calls take no longer than one"):
        timed(PlayedStudent(0.1, 0.0))


def test_an_answer_differs_by_more_than_the_tolerance() -> None:
    ones = torch.ones(2)
    assert _explain_difference(ones + 0.25, ones, 0.25) == ""
    message = "it has no speed here: its result differs from the baseline's by "
    assert _explain_difference(ones + 0.5, ones, 0.25) == message + "0.5"
    assert _explain_difference(ones * torch.nan, ones, 0.25) == message + "nan"
    shape = "it has no speed here: its result is not of the baseline's shape"
    assert _explain_difference(torch.ones(3), ones, 0.25) == shape
    assert _explain_difference([1.0, 1.0], ones, 0.25) == shape

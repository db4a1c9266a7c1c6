"""Calls in a row that differ in one argument: an answer kept for a part of the arguments shows."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch

from autograder.suite import assert_close_in_turn, far_apart


def scaled(
    x: torch.Tensor, times: int, params: dict[str, torch.Tensor]
) -> torch.Tensor:
    return x * times + params["b"]


def keeping(*names: int) -> Callable[..., torch.Tensor]:
    """`scaled`, with an answer kept for each value of the arguments at these places."""
    answers: dict[str, torch.Tensor] = {}

    def answer(*arguments: Any) -> torch.Tensor:
        key = str([arguments[place] for place in names])
        return answers.setdefault(key, scaled(*arguments))

    return answer


ARGUMENTS = torch.tensor([1.0, -2.0]), 3, {"b": torch.tensor([5.0, 7.0])}
in_turn = functools.partial(assert_close_in_turn, others=(None, 4))


def test_an_answer_from_all_arguments_passes() -> None:
    in_turn(scaled, scaled, *ARGUMENTS)
    in_turn(keeping(0, 1, 2), scaled, *ARGUMENTS)


@pytest.mark.parametrize("places", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), ()])
def test_an_answer_from_a_part_of_them_fails(places: tuple[int, ...]) -> None:
    with pytest.raises(AssertionError, match="gives the answer of the call before"):
        in_turn(keeping(*places), scaled, *ARGUMENTS)


def test_a_wrong_answer_fails_at_the_first_call() -> None:
    with pytest.raises(AssertionError, match="differs from the expected value"):
        in_turn(lambda x, times, params: x * times, scaled, *ARGUMENTS)


def test_floats_are_exchanged_with_their_signs() -> None:
    seen: list[torch.Tensor] = []

    def noting(x: torch.Tensor) -> torch.Tensor:
        seen.append(x)
        return x

    assert_close_in_turn(noting, noting, torch.tensor([4.0, -4.0, 0.0]).half())
    first, right_first, second, right_second = seen
    assert first.tolist() == right_first.tolist() == [4.0, -4.0, 0.0]
    assert second.dtype == torch.float16
    assert 2 <= second[0] <= 6
    assert -6 <= second[1] <= -2
    assert second[2] == 0
    assert torch.equal(second, right_second)


def test_scores_that_lie_far_apart_are_exact_in_half_precision() -> None:
    queries, keys = far_apart(torch.float16)
    scores = queries.double() @ keys.double().T / 2
    assert scores.tolist() == [
        [2000.0, 1968.75, 0.0, 0.0, 0.0, 0.0],
        [-2040.0, -2008.75, -40.0, -40.0, -40.0, -40.0],
    ]

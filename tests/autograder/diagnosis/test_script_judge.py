"""Which differences count, and which are rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from autograder.diagnosis.script_judge import AnswerDifference, ScriptJudge
from autograder.diagnosis.script_play import KeyPlayer
from autograder.suite.scripts import Script, ScriptStep


def difference(
    right: Callable[..., Any],
    answer: Callable[..., Any],
    *arguments: Any,
    gradients: bool = False,
    **options: Any,
) -> AnswerDifference | None:
    judge = ScriptJudge(KeyPlayer({"f": right}), **options)
    script = Script((ScriptStep("f", arguments),), gradients=gradients)
    right_answers = judge.right_answers(script)
    assert right_answers is not None
    return judge.difference(
        script, KeyPlayer({"f": answer}).play(script), right_answers
    )


def kind(*arguments: Any, **options: Any) -> str:
    found = difference(*arguments, **options)
    return found.kind if found else ""


def test_equal_answers() -> None:
    assert kind(torch.exp, torch.exp, torch.randn(3)) == ""


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_another_order_of_the_same_sum_is_rounding(dtype: torch.dtype) -> None:
    x = torch.randn(50).to(dtype)
    assert kind(lambda x: x.sum(), lambda x: x.flip(0).cumsum(0)[-1], x) == ""


def test_a_part_in_a_thousand_is_none() -> None:
    assert (
        kind(lambda x: x, lambda x: 1.001 * x, torch.ones(3, dtype=torch.float64))
        == "value"
    )
    assert kind(lambda x: x, lambda x: 1.001 * x, torch.ones(3)) == "value"


def test_cancellation_is_forgiven_as_far_as_the_answer_key_has_it() -> None:
    """x - mean loses digits around 10^6, in whatever order; a wrong divisor is something else."""
    x = 1e6 + torch.randn(4, 8)
    right = lambda x: x - x.mean(-1, keepdim=True)  # noqa: E731
    assert kind(right, lambda x: x - x.flip(-1).sum(-1, keepdim=True) / 8, x) == ""
    assert kind(right, lambda x: x - x.sum(-1, keepdim=True) / 7, x) == "value"


def test_a_small_row_beside_a_large_one_counts() -> None:
    x = torch.tensor([[1e6, 2e6], [1.0, 2.0]])
    wrong = torch.tensor([[1e6, 2e6], [1.0, 2.1]])
    assert kind(lambda x: x, lambda x: wrong, x) == "value"


def test_either_of_two_equal_ones_where_the_docstring_leaves_it_free() -> None:
    x = torch.tensor([1.0, 3.0, 3.0])
    first, last = (lambda x: int(x.argmax())), (lambda x: 2 - int(x.flip(0).argmax()))
    assert kind(first, last, x, equals_are_free=True) == ""
    assert (
        kind(first, lambda x: 0, x, equals_are_free=True) == ""
    )  # the key itself wavers
    assert (
        kind(first, lambda x: 0, torch.tensor([1.0, 3.0, 2.0]), equals_are_free=True)
        == "value"
    )


def test_whole_floats_are_equal_to_whole_numbers_as_in_comparisons() -> None:
    x = torch.zeros(2)
    right = lambda x: [(97, 98), (256, 99)]  # noqa: E731
    assert kind(right, lambda x: [(97.0, 98.0), (256.0, 99.0)], x) == ""
    assert kind(right, lambda x: [(97.0, 98.5), (256.0, 99.0)], x) == "form"
    assert kind(right, lambda x: [(97, 98)], x) == "form"
    assert kind(lambda x: 1, lambda x: True, x) == "form"


def test_not_finite_form_and_error_are_kinds_of_their_own() -> None:
    x = torch.zeros(2)
    assert kind(lambda x: x, lambda x: x / x, x) == "not finite"
    assert kind(lambda x: x, lambda x: x[None], x) == "form"
    assert kind(lambda x: x, lambda x: x.double(), x) == "form"
    assert kind(lambda x: x, lambda x: [0, 0], x) == "form"
    assert (
        kind(lambda x: x, lambda x: x[5], x) == "fault"
    )  # no StudentError in this process


def test_keys_of_a_dict_may_come_in_any_order() -> None:
    assert kind(lambda n: {"a": n, "b": 2}, lambda n: {"b": 2, "a": n}, 1) == ""
    assert kind(lambda n: {"a": n, "b": 2}, lambda n: {"b": 2, "a": 3}, 1) == "value"


def test_gradients() -> None:
    x = torch.randn(3, dtype=torch.float64)
    square: Callable[[Tensor], Tensor] = lambda x: x * x  # noqa: E731
    assert kind(square, lambda x: x**2, x, gradients=True) == ""
    assert kind(square, lambda x: x * x.detach(), x, gradients=True) == "gradient"
    assert kind(square, lambda x: x.detach() ** 2, x, gradients=True) == "gradient"
    assert kind(square, lambda x: x * x.detach(), x) == ""


def test_a_call_that_the_answer_key_refuses_or_answers_with_nan_is_not_allowed() -> (
    None
):
    def refuses(x: Tensor) -> Tensor:
        raise ValueError

    judge = ScriptJudge(KeyPlayer({"refuses": refuses, "nan": lambda x: x * torch.nan}))
    x = torch.ones(2)
    assert judge.right_answers(Script((ScriptStep("refuses", (x,)),))) is None
    assert judge.right_answers(Script((ScriptStep("nan", (x,)),))) is None
    assert (
        judge.right_answers(Script((ScriptStep("nan", (x * torch.nan,)),))) is not None
    )


def test_any_answer_of_a_kind_is_right() -> None:
    def is_root(answer: Any, right: Any, arguments: Any) -> bool:
        return bool(answer**2 == arguments[0])

    assert kind(lambda n: 3, lambda n: -3, 9, right_if=is_root) == ""
    assert kind(lambda n: 3, lambda n: 4, 9, right_if=is_root) == "value"


def test_a_judge_with_another_tolerance_asks_the_answer_key_nothing_again() -> None:
    """A hundredth is no rounding, and within a fiftieth. 16 tries, one in float64, and the call."""
    asked = []

    def right(x: Tensor) -> Tensor:
        asked.append(x)
        return x

    judge = ScriptJudge(KeyPlayer({"f": right}), equals_are_free=True)
    script = Script((ScriptStep("f", (torch.ones(3),)),))
    wrong = KeyPlayer({"f": lambda x: 1.01 * x}).play(script)
    for other, expected in (
        (judge, True),
        (judge.with_tolerance({"float32": 0.005}), True),
        (judge.with_tolerance({"float32": 0.02}), False),
    ):
        right_answers = other.right_answers(script)
        assert right_answers is not None
        assert (other.difference(script, wrong, right_answers) is not None) == expected
    assert len(asked) == 18
    same = Script(script.steps)  # equal is not the same: its arguments may have changed
    assert judge.right_answers(same) is not None
    assert len(asked) == 19

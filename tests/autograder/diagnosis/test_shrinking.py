"""Shrinking: the smallest call that shows a difference, worked out by hand for wrong answers that
people give.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from autograder.diagnosis.script_judge import AnswerDifference, ScriptJudge
from autograder.diagnosis.script_play import KeyPlayer
from autograder.diagnosis.shrinking import Shrunk, shrink
from autograder.suite.script_steps import StepAnswer
from autograder.suite.script_text import script_lines
from autograder.suite.scripts import Made, Script, ScriptStep

torch.manual_seed(0)


def shrunk(
    right: Callable[..., Any],
    wrong: Callable[..., Any],
    *arguments: Any,
    most: int = 400,
    **keywords: Any,
) -> Shrunk:
    """The smallest call of `right` in which `wrong` differs in the same way as in this one."""
    judge = ScriptJudge(KeyPlayer({"f": right}))
    player = KeyPlayer({"f": wrong})

    def examine(script: Script) -> AnswerDifference | None:
        answers = judge.right_answers(script)
        if answers is None:
            return None
        return judge.difference(script, player.play(script), answers)

    smallest = shrink(Script((ScriptStep("f", arguments, keywords),)), examine, most)
    assert smallest is not None
    return smallest


def call_of(smallest: Shrunk) -> str:
    return "; ".join(script_lines(smallest.script))


def attention_weights(q: Tensor, k: Tensor) -> Tensor:
    if q.shape[-1] != k.shape[-1]:
        raise ValueError
    return torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)


def test_softmax_over_the_queries() -> None:
    """Two queries of 0, one key: right are 1 and 1, and over the queries 1/2 and 1/2."""

    def wrong(q: Tensor, k: Tensor) -> Tensor:
        return torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-2)

    smallest = shrunk(attention_weights, wrong, torch.randn(3, 5), torch.randn(4, 5))
    assert call_of(smallest) == "f(torch.tensor([[0.], [0.]]), torch.tensor([[0.]]))"
    assert smallest.difference.right.tolist() == [[1.0], [1.0]]
    assert smallest.difference.answer.tolist() == [[0.5], [0.5]]


def test_a_size_that_coincides_with_another() -> None:
    """Three queries, three keys, width 3: the queries shrink to two, the rest to one."""

    def wrong(q: Tensor, k: Tensor) -> Tensor:
        return torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-2)

    smallest = shrunk(attention_weights, wrong, torch.randn(3, 3), torch.randn(3, 3))
    assert smallest.script.steps[0].arguments[0].numel() <= 4
    assert smallest.script.steps[0].arguments[1].numel() <= 4


def test_a_wrong_number_stays_a_number() -> None:
    """The sample variance divides by 0 for one number: that is another mistake. Two numbers are the
    smallest: mean of squares 1/4, and 1/2.
    """

    def variance(x: Tensor) -> Tensor:
        return (x - x.mean()).square().mean()

    smallest = shrunk(variance, lambda x: x.var(), torch.randn(6))
    assert smallest.difference.kind == "value"
    numbers = smallest.script.steps[0].arguments[0].tolist()
    assert len(numbers) == 2
    assert all(number == round(number) for number in numbers)


def test_an_error_stays_that_error() -> None:
    def wrong(x: Tensor) -> Tensor:
        if x.shape[0] > 2:
            raise KeyError("too long")
        raise IndexError("too short")

    judge = ScriptJudge(KeyPlayer({"f": lambda x: x}))

    def examine(script: Script) -> AnswerDifference | None:
        answers = judge.right_answers(script)
        assert answers is not None
        try:
            wrong(*script.steps[0].arguments)
        except (KeyError, IndexError) as error:
            return judge.difference(script, [StepAnswer(fault=error)], answers)
        raise AssertionError

    smallest = shrink(Script((ScriptStep("f", (torch.randn(7),)),)), examine)
    assert smallest is not None
    assert smallest.script.steps[0].arguments[0].shape == (3,)


def test_a_number_of_heads_shrinks_with_the_columns() -> None:
    """Heads as the last axis of each column block: with one column a head nothing would differ."""

    def split(x: Tensor, heads: int) -> Tensor:
        return x.view(x.shape[0], heads, -1).transpose(0, 1)

    def wrong(x: Tensor, heads: int) -> Tensor:
        return x.view(x.shape[0], -1, heads).permute(2, 0, 1)

    smallest = shrunk(split, wrong, torch.randn(3, 12), 3)
    x, heads = smallest.script.steps[0].arguments
    assert (tuple(x.shape), heads) == ((1, 4), 2)


def test_settings_and_steps_that_do_not_matter_go() -> None:
    def right(x: Tensor, scale: float = 1.0, causal: bool = False) -> Tensor:
        return x.cumsum(0) * scale

    def wrong(x: Tensor, scale: float = 1.0, causal: bool = False) -> Tensor:
        return x * scale

    smallest = shrunk(right, wrong, torch.randn(5), causal=True, scale=0.3)
    assert call_of(smallest) in (
        "f(torch.tensor([1., 0.]))",
        "f(torch.tensor([1., 1.]))",
    )


def test_a_setting_that_matters_stays() -> None:
    def right(x: Tensor, scale: float = 1.0, causal: bool = False) -> Tensor:
        return x.cumsum(0) if causal else x

    smallest = shrunk(
        right, lambda x, scale=1.0, causal=False: x, torch.randn(5), causal=True
    )
    assert smallest.script.steps[0].keywords == {"causal": True}


def test_a_memory_between_calls_needs_both() -> None:
    def shrink_calls() -> Shrunk | None:
        judge = ScriptJudge(KeyPlayer({"f": lambda n: n}))

        def examine(script: Script) -> AnswerDifference | None:
            answers = judge.right_answers(script)
            assert answers is not None
            remembered: list[int] = []

            def wrong(n: int) -> int:
                remembered.append(n)
                return remembered[0]

            return judge.difference(
                script, KeyPlayer({"f": wrong}).play(script), answers
            )

        steps = tuple(ScriptStep("f", (number,)) for number in (7, 7, 9, 4))
        return shrink(Script(steps), examine)

    smallest = shrink_calls()
    assert smallest is not None
    assert call_of(smallest) in ("f(0); f(1)", "f(1); f(0)")
    assert smallest.candidates <= 40


def test_few_candidates_give_a_smaller_call_at_least() -> None:
    """The feedback page has 50 ms; sizes come first."""

    def wrong(q: Tensor, k: Tensor) -> Tensor:
        return torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-2)

    smallest = shrunk(
        attention_weights, wrong, torch.randn(7, 5), torch.randn(6, 5), most=20
    )
    assert smallest.candidates <= 20
    assert smallest.script.steps[0].arguments[0].numel() < 35


def test_the_same_call_shrinks_to_the_same_bytes() -> None:
    q, k = torch.randn(3, 5), torch.randn(4, 5)
    texts = {
        call_of(
            shrunk(attention_weights, lambda q, k: torch.softmax(q @ k.mT, -1), q, k)
        )
        for _ in range(3)
    }
    assert len(texts) == 1


def test_no_difference_no_script() -> None:
    judge = ScriptJudge(KeyPlayer({"f": abs}))

    def examine(script: Script) -> AnswerDifference | None:
        answers = judge.right_answers(script)
        assert answers is not None
        return judge.difference(script, KeyPlayer({"f": abs}).play(script), answers)

    assert shrink(Script((ScriptStep("f", (-3,)),)), examine) is None


class Counter:
    """Adds numbers up."""

    def __init__(self) -> None:
        self.total = 0

    def add(self, number: int) -> int:
        self.total += number
        return self.total


class CountsTwice(Counter):
    """Adds a number twice where the total is above 4."""

    def add(self, number: int) -> int:
        return super().add(2 * number if self.total > 4 else number)


def test_steps_of_an_object_that_the_difference_does_not_need() -> None:
    """5 and then 1 are 6, and 7 where 1 counts twice; what comes before and after is left out. The
    text of helpers goes with the last step that calls one.
    """
    numbers = (0, 0, 0, 5, 0, 1, 3, 3)
    made = Made(0)
    steps = [ScriptStep("Counter"), ScriptStep("helped", kind="helper")]
    steps += [ScriptStep("add", (number,), on=made) for number in numbers]
    script = Script(tuple(steps), helpers="def helped():\n    return 1\n")
    judge = ScriptJudge(KeyPlayer({"Counter": Counter}))
    player = KeyPlayer({"Counter": CountsTwice})

    def examine(script: Script) -> AnswerDifference | None:
        answers = judge.right_answers(script)
        assert answers is not None
        return judge.difference(script, player.play(script), answers)

    smallest = shrink(script, examine)
    assert smallest is not None
    assert script_lines(smallest.script) == [
        "made_0 = Counter()",
        "made_0.add(5)",
        "made_0.add(1)",
    ]
    assert (smallest.difference.answer, smallest.difference.right) == (7, 6)

"""A claim of harder inputs: an answer in float32 or half precision is near the one in float64."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from autograder.student_tools.answer_differences import compare_answers
from autograder.student_tools.harder_trial import (
    ClaimBroken,
    HarderTrial,
    find_difference,
    largest_number,
    short_dtype,
)
from autograder.suite.scripts import is_float_tensor
from autograder.wire.trees import leaves

_SHARES = {torch.float32: 5e-4, torch.float16: 3e-2, torch.bfloat16: 8e-2}
_LAST_DIGIT = {
    torch.float32: 2.0**-22,
    torch.float16: 2.0**-10,
    torch.bfloat16: 2.0**-7,
}
_MOVED_TRIES = 6
_MOVES = 10.0
"""How many times as far as an answer moves by the last digits of its inputs it may be off."""


def precision_is_kept(trial: HarderTrial) -> None:
    """The answer in float32 or float16 is near the answer in float64."""
    dtype = trial.dtype
    if dtype not in _SHARES or trial.drawn.allowed.has_choices:
        return
    wide, narrow = leaves(trial.wide_answers), leaves(trial.answers)
    if len(wide) != len(narrow):
        return
    moved: list[list[Any]] = []
    for place, (expected, actual) in enumerate(zip(wide, narrow, strict=True)):
        if not is_float_tensor(expected) or not isinstance(actual, Tensor):
            continue
        if find_difference(
            actual.double(),
            expected.double(),
            _SHARES[dtype],
            trial.floor,
        ):
            moved = moved or [
                leaves(answers) for answers in _moved_answers(trial, dtype)
            ]
            variants = [parts[place] for parts in moved if len(parts) == len(wide)]
            _claim_near(
                actual.double(),
                expected,
                variants,
                dtype,
                trial.floor,
            )


def _moved_answers(trial: HarderTrial, dtype: torch.dtype) -> Iterator[list[Any]]:
    """Answers in wide numbers to arguments that differ in the last digit of the narrow dtype."""
    for number in range(_MOVED_TRIES):
        generator = torch.Generator().manual_seed(number)

        def move(leaf: Any, generator: torch.Generator = generator) -> Any:
            if not is_float_tensor(leaf):
                return leaf
            wide = trial.widen(leaf)
            shares = (
                2
                * torch.rand(
                    leaf.shape,
                    generator=generator,
                    dtype=torch.float64,
                )
                - 1
            )
            moved = wide * (1 + _LAST_DIGIT[dtype] * shares)
            return moved.to(wide.dtype)

        yield trial.play(trial.script.map_arguments(move))


def _claim_near(
    actual: Tensor,
    expected: Tensor,
    variants: Sequence[Any],
    dtype: torch.dtype,
    floor: float,
) -> None:
    largest = max(largest_number(expected), floor)
    if actual.shape != expected.shape or largest > torch.finfo(dtype).max / 4:
        return
    moves = 0.0
    for variant in variants:
        if not torch.equal(variant.isfinite(), expected.isfinite()):
            return
        moves = max(moves, largest_number(variant - expected))
    allowed = _SHARES[dtype] * largest + _MOVES * moves
    difference = compare_answers(
        actual,
        expected.double(),
        allowed,
    )
    if difference is not None:
        name = short_dtype(dtype)
        raise ClaimBroken(
            f"In {name} it is another answer than in float64.", difference
        )

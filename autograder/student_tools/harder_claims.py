"""What holds of every answer, whatever the question: claims that harder inputs examine.

A claim compares a student's answer with other answers of the same function, never with an answer
key: the same call again, with other layouts, in another precision, for one element of the batch.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from autograder.student_tools.answer_differences import compare_answers
from autograder.student_tools.harder_draws import float_arguments
from autograder.student_tools.harder_trial import (
    Claim,
    ClaimBroken,
    HarderTrial,
    claim_same,
    find_difference,
    largest_number,
    with_arguments,
)
from autograder.suite.script_steps import play_step, weighted_sum
from autograder.suite.scripts import Script, is_float_tensor, map_leaves
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
_STEP = 1e-3
_GRADIENT_SHARE = 5e-3
_MOST_ROWS = 3


def answers_every_call(trial: HarderTrial) -> None:
    """Every call that the question allows gets an answer."""
    assert trial.answers is not None


def arguments_stay(trial: HarderTrial) -> None:
    """No argument is changed."""
    step = trial.the_call()
    if step is None:
        return
    before = [*step.arguments, *step.keywords.values()]
    after = map_leaves(copy.deepcopy, before)
    count = len(step.arguments)
    keywords = dict(zip(step.keywords, after[count:], strict=True))
    trial.find_function(step)(*after[:count], **keywords)
    sentence = "An argument is another one after the call."
    for old, new in zip(before, after, strict=True):
        claim_same(sentence, _plain(new), _plain(old), 0, 0)


def _plain(value: Any) -> Any:
    return vars(value) if type(value) is SimpleNamespace else value


def dtype_is_kept(trial: HarderTrial) -> None:
    """Floats of the answer have the dtype of the arguments."""
    if trial.dtype is None or not float_arguments(trial.script):
        return
    for leaf in leaves(trial.answers):
        if is_float_tensor(leaf) and leaf.dtype != trial.dtype:
            raise ClaimBroken(
                f"The arguments are {_dtype(trial.dtype)}, and the answer is {_dtype(leaf.dtype)}."
            )


def _dtype(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def answer_is_finite(trial: HarderTrial) -> None:
    """Finite numbers give finite numbers."""
    if not all(
        bool(tensor.isfinite().all()) for tensor in float_arguments(trial.script)
    ):
        return
    if trial.dtype not in (torch.float64, torch.float32, None):
        return  # half precision overflows in sums of large numbers
    for leaf in leaves(trial.answers):
        if is_float_tensor(leaf) and not bool(leaf.isfinite().all()):
            where = (~leaf.isfinite()).nonzero()[0].tolist()
            shown = f" at {where}" if where else ""
            raise ClaimBroken(f"The answer has NaN or ∞{shown}.")
        if isinstance(leaf, float) and not math.isfinite(leaf):
            raise ClaimBroken(f"The answer is {leaf}.")


def answer_comes_again(trial: HarderTrial) -> None:
    """The same call gets the same answer a second time."""
    claim_same(
        "The second answer differs.",
        trial.play(trial.script),
        trial.answers,
        1e-9,
        0,
    )


def layout_is_nothing(trial: HarderTrial) -> None:
    """A view of a tensor gets the answer of a contiguous tensor with the same numbers."""
    tensors = [leaf for leaf in trial.script.leaves() if isinstance(leaf, Tensor)]
    if trial.drawn.allowed.has_choices or all(
        tensor.is_contiguous() for tensor in tensors
    ):
        return
    plain = trial.script.map_arguments(trial.widen).map_arguments(_contiguous)
    sentence = "A view of a tensor gets another answer than a contiguous copy."
    claim_same(
        sentence,
        trial.wide_answers,
        trial.play(plain),
        trial.share,
        trial.floor,
    )


def _contiguous(leaf: Any) -> Any:
    return leaf.contiguous() if isinstance(leaf, Tensor) else leaf


def precision_is_kept(trial: HarderTrial) -> None:
    """The answer in float32 or float16 is near the answer in float64."""
    dtype = trial.dtype
    if dtype not in _SHARES or trial.drawn.allowed.has_choices:
        return
    wide, narrow = leaves(trial.wide_answers), leaves(trial.answers)
    if len(wide) != len(narrow):
        return
    moved: list[list[Any]] = []
    for place, (expected, actual) in enumerate(
        zip(
            wide,
            narrow,
            strict=True,
        )
    ):
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
        name = _dtype(dtype)
        raise ClaimBroken(
            f"In {name} it is another answer than in float64.", difference
        )


def batch_is_nothing(trial: HarderTrial) -> None:
    """Each element of a batch alone gets its part of the answer."""
    step = trial.the_call()
    parameters = trial.drawn.allowed.parameters
    if step is None or not parameters or trial.drawn.allowed.has_choices:
        return
    arguments = trial.bound_arguments(step)
    batched = {
        name: value
        for name, value in arguments.items()
        if isinstance(value, Tensor)
        and _is_batched(
            parameters.get(name),
            value,
            parameters,
        )
    }
    sizes = {tensor.shape[0] for tensor in batched.values()}
    if len(sizes) != 1 or (count := sizes.pop()) == 1:
        return
    whole = leaves(trial.wide_answers)
    for row in range(min(count, _MOST_ROWS)):
        part = {
            name: tensor.narrow(
                0,
                row,
                1,
            )
            for name, tensor in batched.items()
        }
        script = with_arguments(
            trial,
            step,
            {**arguments, **part},
        )
        alone = leaves(trial.play(script.map_arguments(trial.widen)))
        for mine, single in zip(
            whole,
            alone,
            strict=False,
        ):
            if not (isinstance(mine, Tensor) and isinstance(single, Tensor)):
                continue
            if mine.ndim and mine.shape[0] == count and single.shape[:1] == (1,):
                sentence = f"Element {row} of the batch alone gets another answer."
                claim_same(
                    sentence,
                    mine[row],
                    single[0],
                    trial.share,
                    trial.floor,
                )


def _is_batched(
    parameter: Any,
    value: Tensor,
    parameters: Mapping[str, Any],
) -> bool:
    """Whether the first axis of an argument is the batch."""
    axes = getattr(
        parameter,
        "axes",
        (),
    )
    if not axes or axes[0] not in ("...", "B"):
        return False
    return axes[0] == "B" or value.ndim >= len(axes)


def sizes_are_checked(trial: HarderTrial) -> None:
    """Sizes that do not fit are refused with ValueError."""
    step = trial.the_call()
    if step is None:
        return
    for place in trial.refuses:
        *path, axis = place.split(".")
        arguments = trial.bound_arguments(step)
        tensor = _at_path(arguments, path)
        if (
            not isinstance(tensor, Tensor)
            or not -tensor.ndim <= int(axis) < tensor.ndim
        ):
            continue
        longer = _one_longer(tensor, int(axis) % tensor.ndim)
        changed = map_leaves(_replacing({id(tensor): longer}), arguments)
        name = "".join([path[0], *(f'["{key}"]' for key in path[1:])])
        meant = f"{name} of shape {list(longer.shape)} in place of {list(tensor.shape)}"
        try:
            trial.play(
                with_arguments(
                    trial,
                    step,
                    changed,
                )
            )
        except ValueError:
            continue
        except Exception as error:
            raise ClaimBroken(
                f"With {meant} the call should raise ValueError, and raises "
                f"{type(error).__name__}: {error}"
            ) from error
        raise ClaimBroken(
            f"With {meant} the call should raise ValueError, and answers."
        )


def _replacing(tensors: Mapping[int, Tensor]) -> Callable[[Any], Any]:
    """Puts tensors in the places of those with these ids."""

    def replace(leaf: Any) -> Any:
        return tensors.get(id(leaf), leaf)

    return replace


def _at_path(arguments: Mapping[str, Any], path: Sequence[str]) -> Any:
    value: Any = arguments
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return value


def _one_longer(tensor: Tensor, axis: int) -> Tensor:
    """The tensor with its last part once more along an axis."""
    length = tensor.shape[axis]
    if length == 0:
        return torch.zeros(
            [size + (number == axis) for number, size in enumerate(tensor.shape)],
            dtype=tensor.dtype,
        )
    return torch.cat(
        [
            tensor,
            tensor.narrow(
                axis,
                length - 1,
                1,
            ),
        ],
        dim=axis,
    )


def gradient_is_the_slope(trial: HarderTrial) -> None:
    """The gradient is the slope: it tells how the answer changes where the arguments do."""
    if not (trial.drawn.allowed.gradients and trial.drawn.is_tame):
        return
    step = trial.the_call()
    if step is None or trial.dtype not in (torch.float64, torch.float32):
        return
    script = trial.script.map_arguments(trial.widen)
    inputs = float_arguments(script)
    generator = torch.Generator().manual_seed(1)
    ways = [
        torch.randn(
            x.shape,
            generator=generator,
            dtype=torch.float64,
        )
        for x in inputs
    ]
    answer, _ = play_step(
        script.steps[0],
        [],
        trial.find_function,
        with_gradients=True,
    )
    if all(gradient is None for gradient in answer.gradients):
        raise ClaimBroken("No gradient arrives at the arguments.")
    slope = sum(
        float((gradient * way).sum())
        for gradient, way in zip(
            answer.gradients,
            ways,
            strict=True,
        )
        if gradient is not None
    )
    measured = [
        _measure_slope(
            trial,
            script,
            inputs,
            ways,
            step,
        )
        for step in (_STEP, _STEP / 2)
    ]
    scale = max(
        1.0,
        abs(measured[1]),
        abs(slope),
    )
    is_smooth = abs(measured[0] - measured[1]) < _GRADIENT_SHARE * scale / 5
    if is_smooth and not abs(slope - measured[1]) <= _GRADIENT_SHARE * scale:
        raise ClaimBroken(
            "The arguments are moved a little in one direction: by the gradient the answer "
            f"should change at the rate {slope:.4g}, and it changes at the rate {measured[1]:.4g}."
        )


def _measure_slope(
    trial: HarderTrial,
    script: Script,
    inputs: Sequence[Tensor],
    ways: Sequence[Tensor],
    step: float,
) -> float:
    """The difference quotient of the weighted sum of all floats, along a direction."""
    totals = []
    for sign in (1, -1):
        moved = {
            id(x): x + sign * step * way
            for x, way in zip(
                inputs,
                ways,
                strict=True,
            )
        }
        answer = trial.play(script.map_arguments(_replacing(moved)))
        total = weighted_sum(answer[0])
        totals.append(0.0 if total is None else float(total))
    return (totals[0] - totals[1]) / (2 * step)


GENERAL: Mapping[str, Claim] = {
    "answers": answers_every_call,
    "unchanged": arguments_stay,
    "dtype": dtype_is_kept,
    "finite": answer_is_finite,
    "again": answer_comes_again,
    "layout": layout_is_nothing,
    "precision": precision_is_kept,
    "batch": batch_is_nothing,
    "sizes": sizes_are_checked,
    "gradient": gradient_is_the_slope,
}
"""Claims about every question, by the word with which `about` leaves one out."""

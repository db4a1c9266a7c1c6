"""What holds of every answer, whatever the question: claims that harder inputs examine.

A claim compares a student's answer with other answers of the same function, never with an answer
key: the same call again, with other layouts, in another precision, for one element of the batch.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from autograder.student_tools.harder_draws import float_arguments
from autograder.student_tools.harder_precision import precision_is_kept
from autograder.student_tools.harder_slope import gradient_is_the_slope
from autograder.student_tools.harder_trial import (
    Claim,
    ClaimBroken,
    HarderTrial,
    claim_same,
    replacing,
    short_dtype,
    with_arguments,
)
from autograder.suite.scripts import is_float_tensor, map_leaves
from autograder.wire.trees import leaves

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
            expected = short_dtype(trial.dtype)
            actual = short_dtype(leaf.dtype)
            raise ClaimBroken(
                f"The arguments are {expected}, and the answer is {actual}."
            )


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
        part = {name: tensor.narrow(0, row, 1) for name, tensor in batched.items()}
        script = with_arguments(
            trial,
            step,
            {**arguments, **part},
        )
        alone = leaves(trial.play(script.map_arguments(trial.widen)))
        for mine, single in zip(whole, alone, strict=False):
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
        changed = map_leaves(replacing({id(tensor): longer}), arguments)
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
            tensor.narrow(axis, length - 1, 1),
        ],
        dim=axis,
    )


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

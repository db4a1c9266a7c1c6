"""Makes the call of one step of a script, with fresh copies of its arguments."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from autograder.suite.scripts import Made, ScriptStep, is_float_tensor, map_leaves
from autograder.wire.trees import leaves

_OBJECT = "an object"
"""Stands for an answer that is an object: two objects are compared by what they answer later."""


@dataclass(slots=True)
class StepAnswer:
    """The answer of one step.

    Attributes:
        value: data, or the word for an object.
        fault: the exception in its place: a StudentFault of a submission, any of the answer key.
        changed: places in the arguments that the call changed.
        gradients: of the float tensors among the arguments, where the script asks for them; None
            for a tensor that no gradient reaches.
    """

    value: Any = None
    fault: Exception | None = None
    changed: tuple[str, ...] = ()
    gradients: list[Tensor | None] = field(default_factory=list)


FindFunction = Callable[[ScriptStep], Any]
"""The function of a step that is called on no object: a question's, or a helper of the script."""


def play_step(
    step: ScriptStep,
    made: Sequence[Any],
    find: FindFunction,
    *,
    with_gradients: bool = False,
) -> tuple[StepAnswer, Any]:
    """The answer of a step, and the object that it made, for later steps."""
    inputs: list[Tensor] = []

    def fill_in(leaf: Any) -> Any:
        if isinstance(leaf, Made):
            return made[leaf.step]
        if isinstance(leaf, Tensor):
            fresh = _fresh(leaf)
            if with_gradients and is_float_tensor(leaf):
                inputs.append(fresh.requires_grad_())
            return fresh
        return leaf

    arguments = tuple(map_leaves(fill_in, part) for part in step.arguments)
    keywords = {name: map_leaves(fill_in, part) for name, part in step.keywords.items()}
    answer = StepAnswer()
    result = _call(step, made, find, arguments, keywords)
    if inputs:
        answer.gradients = _gradients(result, inputs)
    answer.value = as_step_value(result)
    return answer, result


def as_step_value(result: Any) -> Any:
    """What is compared of a step's result: its data, and the word for each object in it."""
    return map_leaves(_as_data, result)


def _call(
    step: ScriptStep,
    made: Sequence[Any],
    find: FindFunction,
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
) -> Any:
    if step.on is not None:
        target = getattr(made[step.on.step], step.name)
        return target if step.kind == "read" else target(*arguments, **keywords)
    if step.kind == "helper":
        return find(step)(*arguments)
    return find(step)(*arguments, **keywords)


def _fresh(tensor: Tensor) -> Tensor:
    """A copy of a tensor with the same layout in memory."""
    if tensor.is_contiguous():
        return tensor.detach().clone()
    return copy.deepcopy(tensor.detach())


def _gradients(result: Any, inputs: Sequence[Tensor]) -> list[Tensor | None]:
    """Gradients of a weighted sum of the result's floats."""
    total = weighted_sum(result, with_gradient=True)
    if total is None:
        return [None for _ in inputs]
    total.backward()
    return [
        None if tensor.grad is None else tensor.grad.detach().clone()
        for tensor in inputs
    ]


def weighted_sum(answer: Any, *, with_gradient: bool = False) -> Tensor | None:
    """The sum of all floats of an answer, each with its own weight; None where there are none.

    Args:
        with_gradient: only of tensors that a gradient passes through.
    """
    total: Tensor | None = None
    for place, leaf in enumerate(leaves(answer)):
        if not is_float_tensor(leaf) or (with_gradient and not leaf.requires_grad):
            continue
        weights = torch.cos(torch.arange(leaf.numel(), dtype=torch.float64) + place)
        part = (leaf.double() * weights.view(leaf.shape)).sum()
        total = part if total is None else total + part
    return total


def _as_data(leaf: Any) -> Any:
    if isinstance(leaf, Tensor):
        return leaf.detach()
    is_data = leaf is None or isinstance(
        leaf, (bool, int, float, complex, str, bytes, torch.dtype)
    )
    if is_data or type(leaf).__module__ == "numpy":
        return leaf
    return _OBJECT if not isinstance(leaf, (set, frozenset)) else leaf

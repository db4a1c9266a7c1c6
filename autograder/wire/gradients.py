"""Gradients of what crossed, asked for by either side. Imported where a tensor asks for one, and
torch is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.utils._pytree import tree_flatten, tree_unflatten


def pull(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], given: Sequence[Tensor | None]
) -> list[Tensor | None]:
    """Gradients of the inputs, where `given` are those of the outputs (None: not used).

    Written as the gradient of Σ output · gradient: `torch.autograd.grad` with explicit gradients
    imports a symbolic algebra system first, which costs every new worker a second.
    """
    used = [
        (output, gradient)
        for output, gradient in zip(outputs, given, strict=True)
        if gradient is not None
    ]
    if not used:
        return [None] * len(inputs)
    with torch.enable_grad():
        total = torch.stack(
            [(output * gradient).sum().to(torch.float64) for output, gradient in used]
        ).sum()
    return list(torch.autograd.grad(total, list(inputs), retain_graph=True, allow_unused=True))


Fetch = Callable[[tuple[Any, ...]], Sequence[Any]]
"""Asks the other side for the gradients of what went over, given those of what came back."""


class _Crossing(Function):
    """Links what came back to the tensors that it was made from, so that `backward` crosses too."""

    @staticmethod
    def forward(ctx: Any, fetch: Fetch, outputs: list[Tensor], *inputs: Tensor) -> Any:
        ctx.fetch = fetch
        return tuple(output.detach() for output in outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return (None, None, *ctx.fetch(gradients))


def linked(value: Any, inputs: Sequence[Tensor], fetch: Fetch) -> Any:
    """What came back, where its tensors ask for gradients as functions of the `inputs`."""
    leaves, structure = tree_flatten(value)
    places = [
        place
        for place, leaf in enumerate(leaves)
        if isinstance(leaf, Tensor) and leaf.requires_grad
    ]
    if not inputs or not places:
        return value
    outputs = _Crossing.apply(fetch, [leaves[place] for place in places], *inputs)  # type: ignore[no-untyped-call]
    for place, output in zip(places, outputs, strict=True):
        leaves[place] = output
    return tree_unflatten(leaves, structure)

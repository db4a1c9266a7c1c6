"""Gradients of tensors that crossed the wire, for both sides. Imported only where a tensor requires
a
gradient: this module needs torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.utils._pytree import tree_flatten, tree_unflatten

from autograder.wire.frames import WireError


def pull(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    gradients: Sequence[Tensor | None],
) -> list[Tensor | None]:
    """Gradients of the inputs from the gradients of the outputs (None: an unused output).

    Written as the gradient of Σ output · gradient: `torch.autograd.grad` with explicit gradients
    imports a symbolic algebra system first, which costs every new worker a second.
    """
    terms = []
    with torch.enable_grad():
        for output, gradient in zip(outputs, gradients, strict=True):
            if gradient is not None:
                product = (output * gradient).sum()
                terms.append(product.to(torch.float64))
        if not terms:
            return [None] * len(inputs)
        total = torch.stack(terms).sum()
    return list(
        torch.autograd.grad(total, list(inputs), retain_graph=True, allow_unused=True)
    )


Fetch = Callable[[tuple[Any, ...]], Sequence[Any]]
"""Asks the other side for gradients of the inputs, from gradients of the outputs."""


class _Crossing(Function):
    """Links outputs that came back to the inputs that were sent, so that `backward` crosses too."""

    @staticmethod
    def forward(
        ctx: Any,
        fetch: Fetch,
        outputs: list[Tensor],
        *inputs: Tensor,
    ) -> Any:
        ctx.fetch = fetch
        return tuple(output.detach() for output in outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return (None, None, *ctx.fetch(gradients))


def match_gradients(
    answer: Any, forms: Sequence[tuple[Any, Any]]
) -> list[Tensor | None]:
    """Gradients from the other side, one for each input, in the dtypes of the inputs.

    Args:
        forms: shape and dtype of each input.

    Raises:
        WireError: there are more or fewer, or one has another shape than its input.
    """
    if not isinstance(answer, list) or len(answer) != len(forms):
        raise WireError("an answer that cannot be taken")
    gradients: list[Tensor | None] = []
    for gradient, (shape, dtype) in zip(answer, forms, strict=True):
        if gradient is None:
            gradients.append(None)
        elif isinstance(gradient, Tensor) and gradient.shape == shape:
            gradients.append(gradient.to(dtype))
        else:
            raise WireError("a gradient of another shape than its input")
    return gradients


def linked(
    value: Any,
    inputs: Sequence[Tensor],
    fetch: Fetch,
) -> Any:
    """The value, with its tensors that require gradients as functions of the `inputs`."""
    leaves, structure = tree_flatten(value)
    outputs = {}
    for place, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor) and leaf.requires_grad:
            outputs[place] = leaf
    if not inputs or not outputs:
        return value
    unlinked = list(outputs.values())
    results = _Crossing.apply(fetch, unlinked, *inputs)  # type: ignore[no-untyped-call]
    for place, output in zip(outputs, results, strict=True):
        leaves[place] = output
    return tree_unflatten(leaves, structure)

"""Gradients of what crossed, asked for by either side."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def pull(outputs: Sequence[Tensor], inputs: Sequence[Tensor], given: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Gradients of the inputs, where `given` are those of the outputs (None: not used).

    Written as the gradient of Σ output · gradient: `torch.autograd.grad` with explicit gradients imports a symbolic
    algebra system first, which costs every new worker a second.
    """
    used = [(output, gradient) for output, gradient in zip(outputs, given, strict=True) if gradient is not None]
    if not used:
        return [None] * len(inputs)
    with torch.enable_grad():
        total = torch.stack([(output * gradient).sum().to(torch.float64) for output, gradient in used]).sum()
    return list(torch.autograd.grad(total, list(inputs), retain_graph=True, allow_unused=True))

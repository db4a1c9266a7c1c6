"""Inputs for tests: float64 unless said otherwise, seeded per test by the plugin, so that every run
draws the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def randn(*shape: int, grad: bool = False, dtype: torch.dtype = torch.float64) -> Tensor:
    """Standard normal numbers, float64 `[*shape]`; with `grad` a leaf whose gradient crosses the
    boundary.
    """
    return torch.randn(*shape, dtype=torch.float64).to(dtype).requires_grad_(grad)


def moved(tensors: Sequence[Tensor], by: float) -> list[Tensor]:
    """The tensors in float64, each number moved by `by` times a standard normal one, so that none
    is where it began.

    One draw serves all of them: a model has many small ones.
    """
    moves = (by * randn(sum(t.numel() for t in tensors))).split([t.numel() for t in tensors])
    return [t.double() + move.view(t.shape) for t, move in zip(tensors, moves, strict=True)]


def rand(*shape: int, grad: bool = False, dtype: torch.dtype = torch.float64) -> Tensor:
    """Uniform numbers in [0, 1), float64 `[*shape]`."""
    return torch.rand(*shape, dtype=torch.float64).to(dtype).requires_grad_(grad)


def randint(low: int, high: int, shape: Sequence[int]) -> Tensor:
    """Whole numbers in [low, high), int64."""
    return torch.randint(low, high, tuple(shape))


def randperm(n: int) -> Tensor:
    """A random order of 0 … n-1, int64 `[n]`."""
    return torch.randperm(n)


def zeros(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """[*shape], float64 where no dtype is named."""
    return torch.zeros(*shape, dtype=dtype)


def ones(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """[*shape], float64 where no dtype is named."""
    return torch.ones(*shape, dtype=dtype)


def full(shape: Sequence[int], value: float, dtype: torch.dtype = torch.float64) -> Tensor:
    """[*shape], every element `value`; float64 where no dtype is named."""
    return torch.full(tuple(shape), value, dtype=dtype)


def eye(n: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """[n, n], ones on the diagonal; float64 where no dtype is named."""
    return torch.eye(n, dtype=dtype)


def arange(*bounds: float, dtype: torch.dtype = torch.float64) -> Tensor:
    """As `torch.arange`; float64 where no dtype is named."""
    return torch.arange(*bounds, dtype=dtype)


def tensor(values: Any, grad: bool = False, dtype: torch.dtype | None = None) -> Tensor:
    """The values as a tensor: float64 where they are floats, else what torch makes of them."""
    made = torch.tensor(values, dtype=dtype)
    if dtype is None and made.is_floating_point():
        made = torch.tensor(values, dtype=torch.float64)
    return made.requires_grad_(grad)

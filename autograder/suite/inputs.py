"""Inputs for tests: float64 by default, and seeded for each test by the plugin, so that every run
draws the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def randn(
    *shape: int,
    grad: bool = False,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """Standard normal numbers, float64 `[*shape]`; with `grad` a leaf whose gradient crosses the
    boundary.
    """
    numbers = torch.randn(*shape, dtype=torch.float64)
    return numbers.to(dtype).requires_grad_(grad)


def moved(tensors: Sequence[Tensor], by: float) -> list[Tensor]:
    """The tensors in float64, each number moved by `by` times a standard normal number.

    One draw serves all tensors: a model has many small ones.
    """
    sizes = [tensor.numel() for tensor in tensors]
    moves = (by * randn(sum(sizes))).split(sizes)
    results = []
    for tensor, move in zip(tensors, moves, strict=True):
        results.append(tensor.double() + move.view(tensor.shape))
    return results


def far_apart(dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Queries [2, 4] and keys [6, 4] with scaled scores of 2000, 1968.75, 0, 0, 0, 0 in one row,
    and -2040, -2008.75, -40, -40, -40, -40 in the other.

    Their softmax by another shift than each row's maximum overflows, or divides 0 by 0; clamped
    scores lose their difference. Rounding of queries and keys to half precision changes no weight.
    """
    queries = torch.tensor([[4000.0, 0.0, 0.0, 0.0], [-4000.0, -80.0, 0.0, 0.0]])
    keys = torch.zeros(6, 4)
    keys[:, 1] = 1.0
    keys[0, 0], keys[1, 0] = 1.0, 1.0 - 2.0**-6
    return queries.to(dtype), keys.to(dtype)


def rand(
    *shape: int,
    grad: bool = False,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """Uniform numbers in [0, 1), float64 `[*shape]`."""
    numbers = torch.rand(*shape, dtype=torch.float64)
    return numbers.to(dtype).requires_grad_(grad)


def randint(low: int, high: int, shape: Sequence[int]) -> Tensor:
    """Whole numbers in [low, high), int64."""
    return torch.randint(low, high, tuple(shape))


def randperm(n: int) -> Tensor:
    """A random order of 0 … n-1, int64 `[n]`."""
    return torch.randperm(n)


def zeros(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Zeros `[*shape]`, float64 by default."""
    return torch.zeros(*shape, dtype=dtype)


def ones(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Ones `[*shape]`, float64 by default."""
    return torch.ones(*shape, dtype=dtype)


def full(
    shape: Sequence[int],
    value: float,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """A tensor `[*shape]` whose elements are all `value`; float64 by default."""
    return torch.full(tuple(shape), value, dtype=dtype)


def eye(n: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """The identity matrix `[n, n]`; float64 by default."""
    return torch.eye(n, dtype=dtype)


def arange(*bounds: float, dtype: torch.dtype = torch.float64) -> Tensor:
    """Evenly spaced numbers, as by `torch.arange`; float64 by default."""
    return torch.arange(*bounds, dtype=dtype)


def tensor(
    values: Any,
    grad: bool = False,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """The values as a tensor: float64 for floats, else the dtype that torch chooses."""
    result = torch.tensor(values, dtype=dtype)
    if dtype is None and result.is_floating_point():
        result = torch.tensor(values, dtype=torch.float64)
    return result.requires_grad_(grad)

"""Kernels whose needs on a GPU are known from their text."""

# ruff: noqa: N803  (kernels name sizes as the formulas do)
from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit
def scaled(x, factor):
    return x * factor


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, SIZE: tl.constexpr, PRECISION: tl.constexpr):
    rows = tl.arange(0, SIZE)[:, None] * SIZE
    columns = tl.arange(0, SIZE)[None, :]
    a = tl.load(a_ptr + rows + columns)
    b = tl.load(b_ptr + rows + columns)
    c = scaled(tl.dot(a, b, input_precision=PRECISION), 2.0)
    tl.store(c_ptr + rows + columns, c + c.max(1)[:, None])


def product(
    a: torch.Tensor, b: torch.Tensor, precision: str = "ieee", **options: Any
) -> Any:
    """One program for the whole product, so both operands lie in shared memory."""
    c = torch.empty(a.shape, dtype=torch.float32, device=a.device)
    product_kernel[(1,)](a, b, c, SIZE=len(a), PRECISION=precision, **options)
    return c


@triton.jit
def centered_kernel(x_ptr, y_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    x = tl.load(x_ptr + at)
    tl.store(y_ptr + at, x * tl.sum(x, 0))


def centered(x: torch.Tensor, **options: Any) -> torch.Tensor:
    """One program keeps all of x while it sums x up."""
    y = torch.empty_like(x)
    centered_kernel[(1,)](x, y, SIZE=len(x), **options)
    return y


@triton.autotune(
    configs=[triton.Config({"SIZE": size}, num_warps=size // 32) for size in (64, 128)],
    key=["n"],
)
@triton.jit
def filled_kernel(x_ptr, n, SIZE: tl.constexpr):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(x_ptr + at, 1.0, mask=at < n)


def filled(x: torch.Tensor) -> None:
    filled_kernel[lambda meta: (triton.cdiv(len(x), meta["SIZE"]),)](x, len(x))

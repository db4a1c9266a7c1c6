"""Small kernels, of which some are wrong in the way that they are told to be, and functions that
launch them.
"""

# ruff: noqa: N803  (kernels name sizes as the formulas do)
from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(
    x_ptr, y_ptr, M, N, stride_m, stride_n, BLOCK: tl.constexpr, WRONG: tl.constexpr
):
    """Twice x, one row a program; y is contiguous."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    x_at = x_ptr + row * stride_m + columns * stride_n
    if WRONG == "load":
        x = tl.load(x_at)
    elif WRONG == "other":
        x = tl.load(x_at, mask=columns < N)
        x = x + 0 * tl.sum(x, 0)
    elif WRONG == "before":
        x = tl.load(x_at - 1, mask=columns < N, other=0.0)
    else:
        x = tl.load(x_at, mask=columns < N, other=0.0)
    if WRONG == "store":
        tl.store(y_ptr + row * N + columns, 2 * x)
    elif WRONG == "race":
        tl.store(y_ptr + columns, 2 * x, mask=columns < N)
    elif WRONG == "half":
        tl.store(y_ptr + row * N + columns, 2 * x, mask=columns < N // 2)
    else:
        tl.store(y_ptr + row * N + columns, 2 * x, mask=columns < N)


def twice(
    x: torch.Tensor, wrong: str = "", strides: tuple[int, int] | None = None
) -> torch.Tensor:
    y = torch.empty(x.shape, dtype=x.dtype)
    block = triton.next_power_of_2(x.shape[1])
    scale_kernel[(x.shape[0],)](
        x, y, *x.shape, *(strides or x.stride()), BLOCK=block, WRONG=wrong
    )
    return y


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, N: tl.constexpr):
    """c = a b for N × N, in one program."""
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    c = tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at), input_precision="ieee")
    tl.store(c_ptr + at, c)


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    c = torch.empty(a.shape)
    product_kernel[(1,)](a, b, c, N=a.shape[0])
    return c


@triton.jit
def sums_kernel(x_ptr, y_ptr, kernel: tl.constexpr):
    """Element i of y is the sum of `kernel` elements of x, from i on."""
    i = tl.program_id(0)
    tl.store(y_ptr + i, tl.sum(tl.load(x_ptr + i + tl.arange(0, kernel)), 0))


@triton.jit
def chain_kernel(x_ptr, N):
    """Program i reads what program i - 1 has written."""
    i = tl.program_id(0)
    tl.store(x_ptr + i, tl.load(x_ptr + i - 1, mask=i > 0, other=0.0) + 1)


@triton.jit
def count_kernel(x_ptr):
    tl.atomic_add(x_ptr + tl.arange(0, 4), tl.full([4], 1.0, tl.float32))


@triton.jit
def parting_kernel(x_ptr, y_ptr, limit):
    row = tl.program_id(0)
    total = 0.0
    for at in range(0, row + 1):
        total += tl.load(x_ptr + at)
    if row % 2 == 1:
        total = -total
    if row < limit:
        tl.store(y_ptr + row, total)


def parted(count: int, limit: int) -> torch.Tensor:
    x, y = torch.arange(1.0, count + 1), torch.zeros(count)
    parting_kernel[(count,)](x[:4], y, limit)
    return y


@triton.jit
def far_kernel(x_ptr):
    at = tl.program_id(0) * 2 + tl.arange(0, 2)
    tl.store(x_ptr + at, 1.0)

"""Kernels that Triton's interpreter runs, and that no GPU would run, or only by luck."""

# ruff: noqa: N803  (kernels name sizes as the formulas do)
from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

FACTOR = 2.0


@triton.jit
def block_kernel(x_ptr, y_ptr, M, N, CHECK: tl.constexpr):
    x = tl.make_block_ptr(
        x_ptr, (M, N), (N, 1), (tl.program_id(0) * 4, 0), (4, 8), (1, 0)
    )
    y = tl.make_block_ptr(y_ptr, (M,), (1,), (tl.program_id(0) * 4,), (4,), (0,))
    if CHECK == "none":
        tile = tl.load(x)
    elif CHECK == "columns":
        tile = tl.load(x, boundary_check=(1,), padding_option="zero")
    elif CHECK == "unpadded":
        tile = tl.load(x, boundary_check=(0, 1))
    else:
        tile = tl.load(x, boundary_check=(0, 1), padding_option="nan")
    tl.store(y, tl.sum(tile, 1), boundary_check=(0,))


@triton.jit
def lanes_kernel(x_ptr, y_ptr, HOW: tl.constexpr):
    at = tl.arange(0, 8)
    x = tl.load(x_ptr + at)
    if HOW == "turned":
        tl.store(y_ptr + at, x)
        x = tl.load(y_ptr + (at + 1) % 8)
    elif HOW == "as a tile":
        tl.store(y_ptr + at, x)
        tile = tl.load(y_ptr + tl.arange(0, 2)[:, None] + 2 * tl.arange(0, 4)[None, :])
        x = x + tl.sum(tile)
    elif HOW == "one place":
        tl.store(y_ptr + at // 8, x)
    elif HOW == "one place, one value":
        tl.store(y_ptr + at // 8, 0 * x + 1)
    elif HOW == "stored twice":
        tl.store(y_ptr + at, x)
        tl.store(y_ptr + 7 - at, 2 * x)
    elif HOW == "reversed":
        tl.store(y_ptr + 7 - at, x)
    elif HOW == "reversed in place":
        tl.store(x_ptr + 7 - at, x)
    elif HOW == "reversed behind a barrier":
        tl.debug_barrier()
        tl.store(x_ptr + 7 - at, x)
    elif HOW == "a column":
        tl.store(y_ptr + at, x)
        x = tl.sum(tl.load(y_ptr + at[:, None]), 1)
    if HOW != "one place, one value":
        tl.store(y_ptr + 8 + at, x)


@triton.jit
def zeroed_kernel(y_ptr):
    """Program 0 puts a zero where the others add."""
    if tl.program_id(0) == 0:
        tl.store(y_ptr, 0.0)
    else:
        tl.atomic_add(y_ptr, 1.0)


@triton.jit
def printing_kernel(x_ptr):
    x = tl.load(x_ptr)
    print("x is", x)


@triton.jit
def _helper_with_numpy(x):
    return np.exp(x)


@triton.jit
def numpy_kernel(x_ptr, y_ptr):
    tl.store(y_ptr, _helper_with_numpy(tl.load(x_ptr)))


@triton.jit
def breaking_kernel(x_ptr, n):
    for i in range(n):
        if i == 2:
            break
        tl.store(x_ptr + i, 1.0)


@triton.jit
def continuing_kernel(x_ptr, n):
    for i in range(n):
        if i == 2:
            continue
        tl.store(x_ptr + i, 1.0)


@triton.jit
def global_kernel(x_ptr):
    tl.store(x_ptr, FACTOR * tl.load(x_ptr))


@triton.jit
def unknown_kernel(x_ptr):
    tl.store(x_ptr, no_such_thing)  # type: ignore[name-defined]  # noqa: F821


def plain_function(x):
    return x + 1


@triton.jit
def plain_kernel(x_ptr):
    tl.store(x_ptr, plain_function(tl.load(x_ptr)))


@triton.jit
def torch_kernel(x_ptr):
    tl.store(x_ptr, torch.relu(tl.load(x_ptr)))


@triton.jit
def item_kernel(x_ptr):
    tl.store(x_ptr, float(tl.load(x_ptr)) + 1)


@triton.jit
def dictionary_kernel(x_ptr):
    known = {"one": 1}
    tl.store(x_ptr, known["one"])


@triton.jit
def comprehension_kernel(x_ptr, n):
    tl.store(x_ptr, sum([i * i for i in range(n)]))


@triton.jit
def small_dot_kernel(x_ptr):
    at = tl.arange(0, 4)[:, None] * 4 + tl.arange(0, 4)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(x_ptr + at, tl.dot(x, x))


@triton.jit
def chained_kernel(x_ptr, n):
    at = tl.arange(0, 8)
    tl.store(x_ptr + at, 1.0, mask=0 <= at < n)


@triton.jit
def changing_kernel(x_ptr, n):
    """The sum begins as a number and goes on as a tile."""
    total = tl.sum(tl.load(x_ptr + tl.arange(0, 8)))
    for _ in range(n):
        total = total + tl.load(x_ptr + tl.arange(0, 8))
    tl.store(x_ptr + tl.arange(0, 8), total)


@triton.jit
def looping_kernel(x_ptr, n, HOW: tl.constexpr):
    """What a loop hands on keeps its type: in a loop in a loop, too, and where there was nothing
    before.
    """
    at = tl.arange(0, 8)
    x = tl.load(x_ptr + at)
    total = 0.0
    nothing = None
    for i in range(n):
        if HOW == "inner":
            for _ in range(i):
                total = total + x
        elif HOW == "nothing":
            nothing = x  # noqa: F841
        elif HOW == "number":
            total = i
        elif HOW == "two":
            total = x
            x = x + no_such_thing  # type: ignore[name-defined]  # noqa: F821
        else:
            total, x = total + 1.0, x * 1.0
    tl.store(x_ptr + at, x + total)


@triton.autotune(
    [triton.Config({"BLOCK": 8, "EXTRA": 0}), triton.Config({"BLOCK": 16, "EXTRA": 1})],
    key=["n"],
)
@triton.jit
def tuned_kernel(
    x_ptr, y_ptr, n, HOW: tl.constexpr, BLOCK: tl.constexpr, EXTRA: tl.constexpr
):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if HOW == "ragged":
        tl.store(y_ptr + at, tl.load(x_ptr + at))
    elif HOW == "off":
        tl.store(y_ptr + at, tl.load(x_ptr + at, at < n) + EXTRA, at < n)
    elif HOW == "asserted":
        tl.static_assert(EXTRA == 0)
        tl.store(y_ptr + at, tl.load(x_ptr + at, at < n), at < n)
    else:
        tl.store(y_ptr + at, tl.load(y_ptr + at, at < n) + 1, at < n)


@triton.autotune([triton.Config({"BLOCK": b}) for b in (8, 16, 32)], key=["n"])
@triton.jit
def outvoted_kernel(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, 1.0 if BLOCK == 8 else 2.0, mask=at < n)


@triton.autotune([triton.Config({"BLOCK": 2**b}) for b in range(1, 8)], key=["n"])
@triton.jit
def many_kernel(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, 2.0 if BLOCK == 128 else 1.0, mask=at < n)


@triton.jit
def meeting_kernel(x_ptr, y_ptr, HOW: tl.constexpr):
    """Two programs meet at one element."""
    program = tl.program_id(0)
    if HOW == "same value":
        tl.store(y_ptr, 7.0)
    elif HOW == "reader first":
        x = tl.load(x_ptr + 1 - program)  # program 0 reads what program 1 writes
        tl.store(y_ptr + program, x)
        if program == 1:
            tl.store(x_ptr + program, x)
    elif HOW == "unfilled":
        tl.store(y_ptr + program, tl.load(x_ptr + program).to(tl.float32))

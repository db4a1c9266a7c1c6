"""The probe of a device: one kernel, compiled and launched behind the walls.

The trusted side sends this file's text as the cell of a worker, before any student's. So the file
imports nothing of the kit.
"""

import torch
import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def _twice(x_ptr, y_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(y_ptr + at, 2 * x, mask=at < n)


def twice_the_sum(device: str) -> float:
    """2 · (0 + 1 + … + 99), by a kernel of two programs."""
    x = torch.arange(100, dtype=torch.float32, device=device)
    y = torch.zeros_like(x)
    _twice[(2,)](x, y, 100, BLOCK=64)
    return float(y.sum())

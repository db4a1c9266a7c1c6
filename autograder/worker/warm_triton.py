"""Launches one small kernel on import, so that no worker pays for the first launch of a process:
that imports modules for a second or two, and rewrites every library function in its way.
"""

import torch
import triton
import triton.language as tl

from autograder.worker.launches import watch_launches


@triton.jit  # type: ignore[untyped-decorator]
def _kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    """Uses what kernels of attention use: loads and stores with masks, reductions, dots."""
    rows = tl.arange(0, BLOCK)
    at = rows[:, None] * BLOCK + rows[None, :]
    inside = (rows < n)[:, None]
    x = tl.load(x_ptr + at, mask=inside, other=0.0)
    acc = (
        tl.zeros([BLOCK, BLOCK], tl.float32)
        + tl.full([BLOCK], 1.0, tl.float32)[:, None]
    )
    for start in range(0, tl.cdiv(n, BLOCK)):
        s = tl.where(
            rows[None, :] + start < n,
            tl.dot(x, tl.trans(x), input_precision="ieee"),
            float("-inf"),
        )
        m = tl.maximum(tl.max(s, 1), tl.min(s, 1))
        p = tl.exp(s - m[:, None]) + tl.exp2(s - m[:, None])
        acc = tl.dot(
            p.to(x.dtype), x, acc / tl.sum(p, 1)[:, None], input_precision="ieee"
        )
    out = acc + tl.log(tl.abs(acc) + 1.0) + tl.softmax(acc)
    tl.store(y_ptr + at, out.to(y_ptr.dtype.element_ty), mask=inside)


def _launch(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    _kernel[(1,)](x, y, 15, BLOCK=16)
    return y


for _dtype in (torch.float32, torch.float16):
    with watch_launches(_launch, (torch.ones(16, 16, dtype=_dtype),), {}):
        _launch(torch.ones(16, 16, dtype=_dtype))

"""The fast kernels: attention forward and backward for a GPU, beside the teaching kernel of the
answer key.

What they add to it: scores in powers of two (one `exp2` instead of an `exp`; its factor is folded
into the scale, which is multiplied in float32 where the maximum is subtracted), the loop split into
tiles that need no mask and the few that do, tiles above the diagonal never visited, block shapes
and pipeline depth chosen by measurement, and for whole tiles on Hopper loads by tensor descriptors.
The backward pass is two kernels, one that owns key tiles (dK, dV) and one that owns query tiles
(dQ), so that nothing is added atomically.

q, k and v are [B, H, N, d], contiguous, d a power of two from 16 on; causal is bottom-right
aligned; the log-sum-exp is that of the natural scores.
"""

# ruff: noqa: N803  (kernels name sizes as the formulas do)
from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

LOG2_E = 1.4426950408889634


@dataclass(frozen=True)
class Config:
    """How a kernel is cut: rows of a query tile and of a key tile, warps, pipeline stages, loads by
    descriptors.
    """

    block_q: int
    block_k: int
    warps: int
    stages: int
    descriptors: bool = False
    specialize: bool = False


FORWARD = {
    64: (
        Config(128, 64, 4, 3),
        Config(128, 128, 8, 3),
        Config(128, 64, 8, 4),
        Config(128, 64, 4, 3, descriptors=True),
        Config(128, 128, 8, 3, descriptors=True),
        Config(128, 128, 8, 2, descriptors=True, specialize=True),
    ),
    128: (
        Config(128, 64, 8, 3),
        Config(128, 128, 8, 2),
        Config(64, 64, 4, 3),
        Config(128, 128, 8, 2, descriptors=True),
        Config(128, 64, 8, 3, descriptors=True),
        Config(128, 64, 8, 3, descriptors=True, specialize=True),
    ),
}
BACKWARD = {
    64: (Config(64, 128, 8, 2), Config(64, 64, 4, 3), Config(128, 64, 8, 2)),
    128: (Config(64, 64, 8, 2), Config(64, 128, 8, 2), Config(32, 128, 8, 2)),
}


@triton.jit
def _step(
    acc,
    total,
    m,
    q,
    k,
    v,
    rows,
    columns,
    N_k,
    shift,
    scale,
    MASKED: tl.constexpr,
    CAUSAL: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """One key tile: k is [D, BLOCK_K]. m and p are of scores times `scale`, which is above 0."""
    s = tl.dot(q, k, input_precision=PRECISION)
    if MASKED:
        seen = columns[None, :] < N_k
        if CAUSAL:
            seen = seen & (columns[None, :] <= rows[:, None] + shift)
        s = tl.where(seen, s, float("-inf"))
    m_new = tl.maximum(m, tl.max(s, 1) * scale)
    safe = m_new
    if MASKED:
        safe = tl.where(m_new == float("-inf"), 0.0, m_new)
    p = tl.math.exp2(s * scale - safe[:, None])
    shrink = tl.math.exp2(m - safe)
    total = total * shrink + tl.sum(p, 1)
    acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision=PRECISION)
    return acc, total, m_new


@triton.jit
def _finish(acc, total, m, o_ptr, lse_ptr, start, rows, dims, N_q, D: tl.constexpr):
    o = acc / tl.where(total == 0.0, 1.0, total)[:, None]
    at = start + rows
    tl.store(
        o_ptr + at[:, None] * D + dims[None, :],
        o.to(o_ptr.dtype.element_ty),
        mask=rows[:, None] < N_q,
    )
    tl.store(
        lse_ptr + at, (m + tl.math.log2(total)) * 0.6931471805599453, mask=rows < N_q
    )


@triton.jit
def forward_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    lse_ptr,
    N_q,
    N_k,
    scale,
    D: tl.constexpr,
    BLOCK_Q: tl.constexpr,
    BLOCK_K: tl.constexpr,
    CAUSAL: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """One query tile of one head, loads by plain pointers. The longest causal tiles start first."""
    tile = tl.num_programs(0) - 1 - tl.program_id(0) if CAUSAL else tl.program_id(0)
    pair = tl.program_id(1).to(tl.int64)
    rows = tile * BLOCK_Q + tl.arange(0, BLOCK_Q)
    dims = tl.arange(0, D)
    shift = N_k - N_q
    k_ptr += pair * N_k * D
    v_ptr += pair * N_k * D
    q = tl.load(
        q_ptr + (pair * N_q + rows)[:, None] * D + dims[None, :],
        mask=rows[:, None] < N_q,
        other=0.0,
    )
    m = tl.full([BLOCK_Q], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_Q], tl.float32)
    acc = tl.zeros([BLOCK_Q, D], tl.float32)
    last = N_k
    whole = N_k // BLOCK_K * BLOCK_K
    if CAUSAL:
        last = tl.minimum(N_k, tl.maximum((tile + 1) * BLOCK_Q + shift, 0))
        whole = tl.minimum(
            whole, tl.maximum((tile * BLOCK_Q + shift + 1) // BLOCK_K * BLOCK_K, 0)
        )
    for start in tl.range(0, whole, BLOCK_K):
        columns = start + tl.arange(0, BLOCK_K)
        k = tl.load(k_ptr + columns[None, :] * D + dims[:, None])
        v = tl.load(v_ptr + columns[:, None] * D + dims[None, :])
        acc, total, m = _step(
            acc,
            total,
            m,
            q,
            k,
            v,
            rows,
            columns,
            N_k,
            shift,
            scale,
            False,
            CAUSAL,
            PRECISION,
        )
    for start in tl.range(whole, last, BLOCK_K):
        columns = start + tl.arange(0, BLOCK_K)
        k = tl.load(
            k_ptr + columns[None, :] * D + dims[:, None],
            mask=columns[None, :] < N_k,
            other=0.0,
        )
        v = tl.load(
            v_ptr + columns[:, None] * D + dims[None, :],
            mask=columns[:, None] < N_k,
            other=0.0,
        )
        acc, total, m = _step(
            acc,
            total,
            m,
            q,
            k,
            v,
            rows,
            columns,
            N_k,
            shift,
            scale,
            True,
            CAUSAL,
            PRECISION,
        )
    _finish(acc, total, m, o_ptr, lse_ptr, pair * N_q, rows, dims, N_q, D)


@triton.jit
def forward_descriptor_kernel(
    q_rows,
    k_rows,
    v_rows,
    o_ptr,
    lse_ptr,
    N_q,
    N_k,
    scale,
    D: tl.constexpr,
    BLOCK_Q: tl.constexpr,
    BLOCK_K: tl.constexpr,
    CAUSAL: tl.constexpr,
    PRECISION: tl.constexpr,
    SPECIALIZE: tl.constexpr,
):
    """The same with tensor descriptors over [B*H*N, D]: only where N divides into whole tiles."""
    tile = tl.num_programs(0) - 1 - tl.program_id(0) if CAUSAL else tl.program_id(0)
    pair = tl.program_id(1)
    rows = tile * BLOCK_Q + tl.arange(0, BLOCK_Q)
    dims = tl.arange(0, D)
    shift = N_k - N_q
    q = q_rows.load([pair * N_q + tile * BLOCK_Q, 0])
    m = tl.full([BLOCK_Q], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_Q], tl.float32)
    acc = tl.zeros([BLOCK_Q, D], tl.float32)
    last = N_k
    whole = N_k
    if CAUSAL:
        last = tl.minimum(N_k, tl.maximum((tile + 1) * BLOCK_Q + shift, 0))
        whole = tl.maximum((tile * BLOCK_Q + shift + 1) // BLOCK_K * BLOCK_K, 0)
    for start in tl.range(0, whole, BLOCK_K, warp_specialize=SPECIALIZE):
        columns = start + tl.arange(0, BLOCK_K)
        k = k_rows.load([pair * N_k + start, 0]).T
        v = v_rows.load([pair * N_k + start, 0])
        acc, total, m = _step(
            acc,
            total,
            m,
            q,
            k,
            v,
            rows,
            columns,
            N_k,
            shift,
            scale,
            False,
            CAUSAL,
            PRECISION,
        )
    for start in tl.range(whole, last, BLOCK_K):
        columns = start + tl.arange(0, BLOCK_K)
        k = k_rows.load([pair * N_k + start, 0]).T
        v = v_rows.load([pair * N_k + start, 0])
        acc, total, m = _step(
            acc,
            total,
            m,
            q,
            k,
            v,
            rows,
            columns,
            N_k,
            shift,
            scale,
            True,
            CAUSAL,
            PRECISION,
        )
    _finish(acc, total, m, o_ptr, lse_ptr, pair.to(tl.int64) * N_q, rows, dims, N_q, D)


@triton.jit
def delta_kernel(
    o_ptr, do_ptr, delta_ptr, rows_in_all, D: tl.constexpr, BLOCK: tl.constexpr
):
    """delta = sum of o · do, one number a row."""
    rows = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    at = rows[:, None] * D + tl.arange(0, D)[None, :]
    inside = rows < rows_in_all
    o = tl.load(o_ptr + at, mask=inside[:, None], other=0.0).to(tl.float32)
    do = tl.load(do_ptr + at, mask=inside[:, None], other=0.0).to(tl.float32)
    tl.store(delta_ptr + rows, tl.sum(o * do, 1), mask=inside)


@triton.jit
def dkdv_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    do_ptr,
    lse_ptr,
    delta_ptr,
    dk_ptr,
    dv_ptr,
    N_q,
    N_k,
    scale,
    D: tl.constexpr,
    BLOCK_Q: tl.constexpr,
    BLOCK_K: tl.constexpr,
    CAUSAL: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """One key tile of one head walks over the queries that see it; everything is transposed,
    [BLOCK_K, BLOCK_Q].
    """
    pair = tl.program_id(1).to(tl.int64)
    columns = tl.program_id(0) * BLOCK_K + tl.arange(0, BLOCK_K)
    dims = tl.arange(0, D)
    shift = N_k - N_q
    q_ptr += pair * N_q * D
    do_ptr += pair * N_q * D
    lse_ptr += pair * N_q
    delta_ptr += pair * N_q
    own = (pair * N_k + columns)[:, None] * D + dims[None, :]
    k = tl.load(k_ptr + own, mask=columns[:, None] < N_k, other=0.0)
    v = tl.load(v_ptr + own, mask=columns[:, None] < N_k, other=0.0)
    dk = tl.zeros([BLOCK_K, D], tl.float32)
    dv = tl.zeros([BLOCK_K, D], tl.float32)
    first = 0
    if CAUSAL:
        first = tl.maximum(tl.program_id(0) * BLOCK_K - shift, 0) // BLOCK_Q * BLOCK_Q
    for start in tl.range(first, N_q, BLOCK_Q):
        rows = start + tl.arange(0, BLOCK_Q)
        inside = rows < N_q
        q = tl.load(
            q_ptr + rows[:, None] * D + dims[None, :], mask=inside[:, None], other=0.0
        )
        do = tl.load(
            do_ptr + rows[:, None] * D + dims[None, :], mask=inside[:, None], other=0.0
        )
        lse = tl.load(lse_ptr + rows, mask=inside, other=0.0) * 1.4426950408889634
        delta = tl.load(delta_ptr + rows, mask=inside, other=0.0)
        s = tl.dot(k, tl.trans(q), input_precision=PRECISION) * (
            scale * 1.4426950408889634
        )
        seen = inside[None, :] & (lse != float("-inf"))[None, :]
        if CAUSAL:
            seen = seen & (columns[:, None] <= rows[None, :] + shift)
        p = tl.where(
            seen,
            tl.math.exp2(s - tl.where(lse == float("-inf"), 0.0, lse)[None, :]),
            0.0,
        )
        dv = tl.dot(p.to(do.dtype), do, dv, input_precision=PRECISION)
        dp = tl.dot(v, tl.trans(do), input_precision=PRECISION)
        ds = p * (dp - delta[None, :])
        dk = tl.dot(ds.to(q.dtype), q, dk, input_precision=PRECISION)
    tl.store(
        dk_ptr + own,
        (dk * scale).to(dk_ptr.dtype.element_ty),
        mask=columns[:, None] < N_k,
    )
    tl.store(dv_ptr + own, dv.to(dv_ptr.dtype.element_ty), mask=columns[:, None] < N_k)


@triton.jit
def dq_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    do_ptr,
    lse_ptr,
    delta_ptr,
    dq_ptr,
    N_q,
    N_k,
    scale,
    D: tl.constexpr,
    BLOCK_Q: tl.constexpr,
    BLOCK_K: tl.constexpr,
    CAUSAL: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """One query tile of one head walks over the keys that it sees."""
    pair = tl.program_id(1).to(tl.int64)
    tile = tl.num_programs(0) - 1 - tl.program_id(0) if CAUSAL else tl.program_id(0)
    rows = tile * BLOCK_Q + tl.arange(0, BLOCK_Q)
    dims = tl.arange(0, D)
    shift = N_k - N_q
    inside = rows < N_q
    own = (pair * N_q + rows)[:, None] * D + dims[None, :]
    k_ptr += pair * N_k * D
    v_ptr += pair * N_k * D
    q = tl.load(q_ptr + own, mask=inside[:, None], other=0.0)
    do = tl.load(do_ptr + own, mask=inside[:, None], other=0.0)
    lse = (
        tl.load(lse_ptr + pair * N_q + rows, mask=inside, other=0.0)
        * 1.4426950408889634
    )
    lse = tl.where(lse == float("-inf"), 0.0, lse)
    delta = tl.load(delta_ptr + pair * N_q + rows, mask=inside, other=0.0)
    dq = tl.zeros([BLOCK_Q, D], tl.float32)
    last = N_k
    if CAUSAL:
        last = tl.minimum(N_k, tl.maximum((tile + 1) * BLOCK_Q + shift, 0))
    for start in tl.range(0, last, BLOCK_K):
        columns = start + tl.arange(0, BLOCK_K)
        real = columns < N_k
        k = tl.load(
            k_ptr + columns[:, None] * D + dims[None, :], mask=real[:, None], other=0.0
        )
        v = tl.load(
            v_ptr + columns[:, None] * D + dims[None, :], mask=real[:, None], other=0.0
        )
        s = tl.dot(q, tl.trans(k), input_precision=PRECISION) * (
            scale * 1.4426950408889634
        )
        seen = real[None, :]
        if CAUSAL:
            seen = seen & (columns[None, :] <= rows[:, None] + shift)
        p = tl.where(seen, tl.math.exp2(s - lse[:, None]), 0.0)
        ds = p * (tl.dot(do, tl.trans(v), input_precision=PRECISION) - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq, input_precision=PRECISION)
    tl.store(
        dq_ptr + own, (dq * scale).to(dq_ptr.dtype.element_ty), mask=inside[:, None]
    )


def forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, config: Config
) -> tuple[torch.Tensor, torch.Tensor]:
    """(o, lse) of [B, H, N_q, d]; lse is float32."""
    batch, heads, n_q, d = q.shape
    n_k = k.shape[2]
    o, lse = (
        torch.empty_like(q),
        torch.empty(batch, heads, n_q, dtype=torch.float32, device=q.device),
    )
    grid = (triton.cdiv(n_q, config.block_q), batch * heads)
    blocks = {"BLOCK_Q": config.block_q, "BLOCK_K": config.block_k}
    shared = {"D": d, **blocks, "CAUSAL": causal, "PRECISION": _precision(q)}
    launch = {"num_warps": config.warps, "num_stages": config.stages}
    scale = LOG2_E / math.sqrt(d)
    if config.descriptors:
        if n_q % config.block_q or n_k % config.block_k:
            raise ValueError(
                f"descriptors need whole tiles: {n_q} and {n_k} in {config.block_q} and "
                f"{config.block_k}"
            )
        rows = [
            _descriptor(t, block)
            for t, block in (
                (q, config.block_q),
                (k, config.block_k),
                (v, config.block_k),
            )
        ]
        forward_descriptor_kernel[grid](
            *rows,
            o,
            lse,
            n_q,
            n_k,
            scale,
            SPECIALIZE=config.specialize,
            **shared,
            **launch,
        )
    else:
        forward_kernel[grid](q, k, v, o, lse, n_q, n_k, scale, **shared, **launch)
    return o, lse


def backward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    lse: torch.Tensor,
    do: torch.Tensor,
    causal: bool,
    config: Config,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(dq, dk, dv)."""
    batch, heads, n_q, d = q.shape
    n_k, pairs = k.shape[2], batch * heads
    dq, dk, dv = (torch.empty_like(t) for t in (q, k, v))
    delta = torch.empty_like(lse)
    delta_kernel[(triton.cdiv(lse.numel(), 64),)](
        o, do, delta, lse.numel(), D=d, BLOCK=64
    )
    shared = {"D": d, "CAUSAL": causal, "PRECISION": _precision(q)}
    shared |= {"num_warps": config.warps, "num_stages": config.stages}
    given = (q, k, v, do, lse, delta)
    sizes = (n_q, n_k, 1 / math.sqrt(d))
    dkdv_kernel[(triton.cdiv(n_k, config.block_k), pairs)](
        *given, dk, dv, *sizes, BLOCK_Q=config.block_q, BLOCK_K=config.block_k, **shared
    )
    dq_kernel[(triton.cdiv(n_q, config.block_k), pairs)](
        *given, dq, *sizes, BLOCK_Q=config.block_k, BLOCK_K=config.block_q, **shared
    )
    return dq, dk, dv


def _descriptor(t: torch.Tensor, block: int) -> TensorDescriptor:
    d = t.shape[-1]
    return TensorDescriptor(t, [t.numel() // d, d], [d, 1], [block, d])


def _precision(t: torch.Tensor) -> str:
    return "ieee" if t.dtype == torch.float32 else "tf32"

"""Attention as people write it: five ways to walk over the keys. All are right."""

# ruff: noqa: E741, N803, N806  (kernels name sizes as the formulas do)
from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def _inner(
    acc,
    l_i,
    m_i,
    q,
    K_block_ptr,
    V_block_ptr,
    offs_m,
    lo,
    hi,
    scale,
    BN: tl.constexpr,
    DIAGONAL: tl.constexpr,
):
    """One stretch of keys: left of the diagonal nothing is masked."""
    K_block_ptr = tl.advance(K_block_ptr, (0, lo))
    V_block_ptr = tl.advance(V_block_ptr, (lo, 0))
    for start_n in range(lo, hi, BN):
        start_n = tl.multiple_of(start_n, BN)
        qk = tl.dot(q, tl.load(K_block_ptr), input_precision="ieee") * scale
        if DIAGONAL:
            qk = tl.where(
                offs_m[:, None] >= start_n + tl.arange(0, BN)[None, :],
                qk,
                float("-inf"),
            )
        m_ij = tl.maximum(m_i, tl.max(qk, 1))
        p = tl.math.exp2(qk - m_ij[:, None])
        alpha = tl.math.exp2(m_i - m_ij)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = tl.dot(
            p.to(q.dtype),
            tl.load(V_block_ptr),
            acc * alpha[:, None],
            input_precision="ieee",
        )
        m_i = m_ij
        V_block_ptr = tl.advance(V_block_ptr, (BN, 0))
        K_block_ptr = tl.advance(K_block_ptr, (0, BN))
    return acc, l_i, m_i


@triton.autotune(
    [
        triton.Config({"BM": m, "BN": n}, num_stages=s, num_warps=4)
        for m in (16, 32)
        for n in (16, 32)
        for s in (2, 3)
    ],
    key=["N_CTX", "D"],
    prune_configs_by={
        "early_config_prune": lambda configs, args, **_: [
            c for c in configs if c.kwargs["BM"] >= c.kwargs["BN"]
        ]
    },
)
@triton.jit
def _staged(
    Q,
    K,
    V,
    sm_scale,
    Out,
    stride_h,
    stride_n,
    stride_d,
    N_CTX,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    STAGE: tl.constexpr,
):
    tl.static_assert(BN <= BM)
    start_m, head = tl.program_id(0), tl.program_id(1)
    base = head.to(tl.int64) * stride_h
    Q_block_ptr = tl.make_block_ptr(
        Q + base, (N_CTX, D), (stride_n, stride_d), (start_m * BM, 0), (BM, D), (1, 0)
    )
    O_block_ptr = tl.make_block_ptr(
        Out + base, (N_CTX, D), (stride_n, stride_d), (start_m * BM, 0), (BM, D), (1, 0)
    )
    V_block_ptr = tl.make_block_ptr(
        V + base, (N_CTX, D), (stride_n, stride_d), (0, 0), (BN, D), (1, 0)
    )
    K_block_ptr = tl.make_block_ptr(  # transposed by its strides
        base=K + base,
        shape=(D, N_CTX),
        strides=(stride_d, stride_n),
        offsets=(0, 0),
        block_shape=(D, BN),
        order=(0, 1),
    )
    offs_m = start_m * BM + tl.arange(0, BM)
    m_i = tl.zeros([BM], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BM], dtype=tl.float32) + 1.0
    acc = tl.zeros([BM, D], dtype=tl.float32)
    q = tl.load(Q_block_ptr)
    scale = sm_scale * 1.44269504
    l_i *= 0.0
    if STAGE & 1:
        hi = start_m * BM if STAGE == 3 else N_CTX
        acc, l_i, m_i = _inner(
            acc, l_i, m_i, q, K_block_ptr, V_block_ptr, offs_m, 0, hi, scale, BN, False
        )
    if STAGE & 2:
        acc, l_i, m_i = _inner(
            acc,
            l_i,
            m_i,
            q,
            K_block_ptr,
            V_block_ptr,
            offs_m,
            start_m * BM,
            (start_m + 1) * BM,
            scale,
            BN,
            True,
        )
    tl.store(O_block_ptr, (acc / l_i[:, None]).to(Out.type.element_ty))


def staged(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool
) -> torch.Tensor:
    """Whole tiles, block pointers without a check, powers of two, the diagonal apart from the
    rest.
    """
    Q, K, V = Q.contiguous(), K.contiguous(), V.contiguous()
    O = torch.empty_like(Q)
    B, H, N, D = Q.shape
    grid = lambda args: (triton.cdiv(N, args["BM"]), B * H, 1)  # noqa: E731
    _staged[grid](
        Q, K, V, 1 / math.sqrt(D), O, *Q.stride()[1:], N, D=D, STAGE=3 if causal else 1
    )
    return O


@triton.jit
def flash_fwd_kernel(
    Q_ptr,
    K_ptr,
    V_ptr,
    O_ptr,
    L_ptr,
    stride_qb,
    stride_qq,
    stride_qd,
    stride_kb,
    stride_kk,
    stride_kd,
    stride_vb,
    stride_vk,
    stride_vd,
    N_QUERIES,
    N_KEYS,
    scale,
    D: tl.constexpr,
    Q_TILE_SIZE: tl.constexpr,
    K_TILE_SIZE: tl.constexpr,
    is_causal: tl.constexpr = False,
):
    query_tile_index, batch_index = tl.program_id(0), tl.program_id(1)
    Q_block_ptr = tl.make_block_ptr(
        Q_ptr + batch_index * stride_qb,
        shape=(N_QUERIES, D),
        strides=(stride_qq, stride_qd),
        offsets=(query_tile_index * Q_TILE_SIZE, 0),
        block_shape=(Q_TILE_SIZE, D),
        order=(1, 0),
    )
    K_block_ptr = tl.make_block_ptr(
        K_ptr + batch_index * stride_kb,
        shape=(N_KEYS, D),
        strides=(stride_kk, stride_kd),
        offsets=(0, 0),
        block_shape=(K_TILE_SIZE, D),
        order=(1, 0),
    )
    V_block_ptr = tl.make_block_ptr(
        V_ptr + batch_index * stride_vb,
        (N_KEYS, D),
        (stride_vk, stride_vd),
        (0, 0),
        (K_TILE_SIZE, D),
        (1, 0),
    )
    O_block_ptr = tl.make_block_ptr(
        O_ptr + batch_index * N_QUERIES * D,
        (N_QUERIES, D),
        (D, 1),
        (query_tile_index * Q_TILE_SIZE, 0),
        (Q_TILE_SIZE, D),
        (1, 0),
    )
    L_block_ptr = tl.make_block_ptr(
        L_ptr + batch_index * N_QUERIES,
        (N_QUERIES,),
        (1,),
        (query_tile_index * Q_TILE_SIZE,),
        (Q_TILE_SIZE,),
        (0,),
    )
    Q_i = tl.load(Q_block_ptr, boundary_check=(0,), padding_option="zero")
    O_i = tl.zeros((Q_TILE_SIZE, D), dtype=tl.float32)
    l_i = tl.zeros((Q_TILE_SIZE,), dtype=tl.float32)
    m_i = tl.full((Q_TILE_SIZE,), float("-inf"), dtype=tl.float32)
    offs_q = query_tile_index * Q_TILE_SIZE + tl.arange(0, Q_TILE_SIZE)
    for j in range(tl.cdiv(N_KEYS, K_TILE_SIZE)):
        K_j = tl.load(K_block_ptr, boundary_check=(0,), padding_option="zero")
        V_j = tl.load(V_block_ptr, boundary_check=(0,), padding_option="zero")
        S = tl.dot(Q_i, tl.trans(K_j), input_precision="ieee") * scale
        offs_k = j * K_TILE_SIZE + tl.arange(0, K_TILE_SIZE)
        S = tl.where(offs_k[None, :] < N_KEYS, S, float("-inf"))
        if is_causal:
            S = tl.where(offs_q[:, None] >= offs_k[None, :], S, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(S, axis=-1))
        P = tl.exp(S - m_new[:, None])
        alpha = tl.exp(m_i - m_new)
        l_i = alpha * l_i + tl.sum(P, axis=-1)
        O_i = tl.dot(
            P.to(V_j.dtype), V_j, acc=O_i * alpha[:, None], input_precision="ieee"
        )
        m_i = m_new
        K_block_ptr = K_block_ptr.advance((K_TILE_SIZE, 0))
        V_block_ptr = V_block_ptr.advance((K_TILE_SIZE, 0))
    tl.store(
        O_block_ptr,
        (O_i / l_i[:, None]).to(O_block_ptr.type.element_ty),
        boundary_check=(0,),
    )
    tl.store(L_block_ptr, m_i + tl.log(l_i), boundary_check=(0,))


def by_block_pointers(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool
) -> torch.Tensor:
    """Ragged tiles: boundary_check and padding in the row, and the mask that padding does not
    replace.
    """
    B, H, N, D = Q.shape
    q, k, v = (t.reshape(B * H, -1, D) for t in (Q, K, V))
    o, lse = torch.empty(B * H, N, D, dtype=Q.dtype), torch.empty(B * H, N)
    flash_fwd_kernel[(triton.cdiv(N, 32), B * H)](
        q,
        k,
        v,
        o,
        lse,
        *q.stride(),
        *k.stride(),
        *v.stride(),
        N,
        k.shape[1],
        D**-0.5,
        D=D,
        Q_TILE_SIZE=32,
        K_TILE_SIZE=16,
        is_causal=causal,
    )
    return o.view(B, H, N, D)


@triton.jit
def _pointers(
    Q,
    K,
    V,
    Out,
    scale,
    sqb,
    sqh,
    sqm,
    sqd,
    skb,
    skh,
    skn,
    skd,
    svb,
    svh,
    svn,
    svd,
    sob,
    soh,
    som,
    sod,
    H,
    M,
    N,
    BM: tl.constexpr,
    BN: tl.constexpr,
    D: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    """K is loaded as [D, BN]; the pointers move; the loop ends at the diagonal."""
    pid, bh = tl.program_id(0), tl.program_id(1)
    b, h = bh // H, bh % H
    offs_m, offs_n, offs_d = (
        pid * BM + tl.arange(0, BM),
        tl.arange(0, BN),
        tl.arange(0, D),
    )
    q_ptrs = Q + b * sqb + h * sqh + offs_m[:, None] * sqm + offs_d[None, :] * sqd
    k_ptrs = K + b * skb + h * skh + offs_n[None, :] * skn + offs_d[:, None] * skd
    v_ptrs = V + b * svb + h * svh + offs_n[:, None] * svn + offs_d[None, :] * svd
    q = tl.load(q_ptrs, mask=offs_m[:, None] < M, other=0.0)
    m_i = tl.full([BM], value=float("-inf"), dtype=tl.float32)
    l_i = tl.zeros([BM], dtype=tl.float32)
    acc = tl.zeros([BM, D], dtype=tl.float32)
    end_n = N if not CAUSAL else tl.minimum((pid + 1) * BM, N)
    for start in range(0, end_n, BN):
        k = tl.load(k_ptrs, mask=(start + offs_n)[None, :] < N, other=0.0)
        qk = tl.zeros([BM, BN], dtype=tl.float32)
        qk += tl.dot(q, k, input_precision="ieee")
        qk = qk * scale
        qk += tl.where((start + offs_n)[None, :] < N, 0, float("-inf"))
        if CAUSAL:
            qk += tl.where(
                offs_m[:, None] >= (start + offs_n)[None, :], 0, float("-inf")
            )
        m_new = tl.maximum(m_i, tl.max(qk, 1))
        p = tl.exp(qk - m_new[:, None])
        l_i = l_i * tl.exp(m_i - m_new) + tl.sum(p, 1)
        acc *= tl.exp(m_i - m_new)[:, None]
        v = tl.load(v_ptrs, mask=(start + offs_n)[:, None] < N, other=0.0)
        acc += tl.dot(p.to(v.dtype), v, input_precision="ieee")
        m_i = m_new
        k_ptrs += BN * skn
        v_ptrs += BN * svn
    o_ptrs = Out + b * sob + h * soh + offs_m[:, None] * som + offs_d[None, :] * sod
    tl.store(o_ptrs, acc / l_i[:, None], mask=offs_m[:, None] < M)


def by_pointers(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool
) -> torch.Tensor:
    B, H, M, D = Q.shape
    o = torch.empty(Q.shape, dtype=Q.dtype)
    _pointers[(triton.cdiv(M, 32), B * H)](
        Q,
        K,
        V,
        o,
        D**-0.5,
        *Q.stride(),
        *K.stride(),
        *V.stride(),
        *o.stride(),
        H,
        M,
        K.shape[2],
        32,
        32,
        D,
        causal,
        num_warps=4,
        num_stages=2,
    )
    return o


@triton.jit
def _described(
    q_desc,
    k_desc,
    v_desc,
    o_desc,
    N,
    scale,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    """Loads by descriptors of the host, K turned by .T; what lies beyond the end is zero, and
    masked.
    """
    pid, bh = tl.program_id(0), tl.program_id(1)
    q = q_desc.load([bh, pid * BM, 0]).reshape([BM, D])
    rows = pid * BM + tl.arange(0, BM)
    m = tl.full([BM], float("-inf"), tl.float32)
    l, acc = tl.zeros([BM], tl.float32), tl.zeros([BM, D], tl.float32)
    for start in tl.range(0, N, BN, warp_specialize=False):
        k = k_desc.load([bh, start, 0]).reshape([BN, D])
        v = v_desc.load([bh, start, 0]).reshape([BN, D])
        columns = start + tl.arange(0, BN)[None, :]
        seen = (
            (columns <= rows[:, None]) & (columns < N)
            if CAUSAL
            else (columns < N) & (rows[:, None] >= 0)
        )
        s = tl.where(
            seen, tl.dot(q, k.T, input_precision="tf32x3") * scale, float("-inf")
        )
        m_new = tl.maximum(m, s.max(axis=1))
        p = tl.exp(s - tl.expand_dims(m_new, 1))
        l = l * tl.exp(m - m_new) + p.sum(1)
        acc = acc * tl.exp(m - m_new).expand_dims(1) + tl.dot(
            p.cast(v.dtype), v, input_precision="ieee"
        )
        m = m_new
    o_desc.store(
        [bh, pid * BM, 0], (acc / l[:, None]).to(o_desc.dtype).reshape([1, BM, D])
    )


def by_descriptors(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool
) -> torch.Tensor:
    B, H, N, D = Q.shape
    q, k, v = (t.reshape(B * H, N, D).contiguous() for t in (Q, K, V))
    o = torch.empty_like(q)
    q_desc, k_desc, v_desc, o_desc = (
        TensorDescriptor.from_tensor(t, [1, 32, D]) for t in (q, k, v, o)
    )
    _described[(triton.cdiv(N, 32), B * H)](
        q_desc, k_desc, v_desc, o_desc, N, D**-0.5, D, BM=32, BN=32, CAUSAL=causal
    )
    return o.view(B, H, N, D)

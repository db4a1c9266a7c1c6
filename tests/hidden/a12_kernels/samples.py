"""Answers in students' own words, each with the mistakes that are true of it: what diagnosis is
measured by.
"""

import math

import torch
import triton
import triton.language as tl

from autograder.suite import alternate, sample

# --- matmul


@triton.jit
def _mm(
    A, B, C, ORD, M, N, K, s0, s1, t0, t1, G, T: tl.constexpr, GROUPED: tl.constexpr
):  # fmt: skip
    pid = tl.program_id(0)
    mt, nt = tl.cdiv(M, T), tl.cdiv(N, T)
    if GROUPED:
        block = pid // (G * nt)
        size = tl.minimum(G, mt - block * G)
        inner = pid - block * G * nt
        y = block * G + inner % size
        x = inner // size
    else:
        y = pid // nt
        x = pid % nt
    r, c, kk = y * T + tl.arange(0, T), x * T + tl.arange(0, T), tl.arange(0, T)
    total = tl.zeros((T, T), dtype=tl.float32)
    for step in range(tl.cdiv(K, T)):
        k = step * T + kk
        left = tl.load(
            A + r[:, None] * s0 + k[None, :] * s1,
            mask=(r < M)[:, None] & (k < K)[None, :],
            other=0,
        )
        right = tl.load(
            B + k[:, None] * t0 + c[None, :] * t1,
            mask=(k < K)[:, None] & (c < N)[None, :],
            other=0,
        )
        total += tl.dot(left, right, input_precision="ieee")
    tl.store(
        C + r[:, None] * N + c[None, :],
        total.to(C.dtype.element_ty),
        mask=(r < M)[:, None] & (c < N)[None, :],
    )
    tl.store(ORD + y * nt + x, pid)


def _launch_mm(a, b, group, grouped, strides_of_b):
    M, K = a.shape
    N = b.shape[1]
    out = a.new_empty((M, N))
    tiles = ((M + 31) // 32, (N + 31) // 32)
    order = a.new_empty(tiles, dtype=torch.int32)
    _mm[(tiles[0] * tiles[1],)](
        a,
        b,
        out,
        order,
        M,
        N,
        K,
        *a.stride(),
        *strides_of_b,
        group,
        T=32,
        GROUPED=grouped,
    )
    return out, order


@sample("matmul", deserves="ignores_the_group")
def one_row_after_the_other(a, b, group):
    if a.shape[1] != b.shape[0] or group < 1:
        raise ValueError(f"{tuple(a.shape)} times {tuple(b.shape)}, group {group}")
    return _launch_mm(a, b, group, False, b.stride())


@sample(
    "matmul",
    deserves=(
        "second_matrix_is_taken_for_contiguous",
        "sizes_of_matrices_are_not_checked",
    ),
)
def rows_of_b_are_n_apart(a, b, group):
    if group < 1:
        raise ValueError(f"group must be positive: {group}")
    return _launch_mm(a, b, group, True, (b.shape[1], 1))


@alternate("matmul")
def grouped_with_checks(a, b, group):
    assert_like = a.shape[1] == b.shape[0]
    if not assert_like:
        raise ValueError(f"inner sizes {a.shape[1]} != {b.shape[0]}")
    if group < 1:
        raise ValueError(f"group={group}")
    return _launch_mm(a, b, group, True, b.stride())


# --- tiles_asked_for


@sample(
    "tiles_asked_for", deserves=("counts_for_every_program", "depth_is_not_checked")
)
def two_strips_a_program(order, depth, programs):
    if programs < 1:
        raise ValueError(f"{programs} programs")
    n = min(programs, order.numel())
    return n * (depth + depth)


@sample("tiles_asked_for", deserves="counts_one_program_more")
def numbers_up_to_n(order, depth, programs):
    if depth < 1 or programs < 1:
        raise ValueError(f"depth {depth} programs {programs}")
    r, c = torch.where(order <= programs)
    return (len(set(r.tolist())) + len(set(c.tolist()))) * depth


# --- causal_attention


@triton.jit
def _fwd(
    Q, K, V, Out, Lse, NQ, NK, sm_scale, stop_early: tl.constexpr, D: tl.constexpr, B: tl.constexpr
):  # fmt: skip
    qt, bh = tl.program_id(0), tl.program_id(1)
    i, d = qt * B + tl.arange(0, B), tl.arange(0, D)
    Q, Out, Lse = Q + bh * NQ * D, Out + bh * NQ * D, Lse + bh * NQ
    K, V = K + bh * NK * D, V + bh * NK * D
    q = tl.load(Q + i[:, None] * D + d[None, :], mask=i[:, None] < NQ, other=0.0)
    m = tl.zeros([B], tl.float32) - float("inf")
    l = tl.zeros([B], tl.float32)
    acc = tl.zeros([B, D], tl.float32)
    hi = NK
    if stop_early:
        hi = tl.minimum(NK, qt * B + B)
    for lo in range(0, hi, B):
        j = lo + tl.arange(0, B)
        k = tl.load(K + j[:, None] * D + d[None, :], mask=j[:, None] < NK, other=0.0)
        v = tl.load(V + j[:, None] * D + d[None, :], mask=j[:, None] < NK, other=0.0)
        s = tl.dot(q, k.T, input_precision="ieee") * sm_scale
        ok = (j[None, :] < NK) & (i[:, None] + (NK - NQ) >= j[None, :])
        m, l, acc = take_in(m, l, acc, tl.where(ok, s, -float("inf")), v)
    acc /= tl.where(l == 0, 1.0, l)[:, None]
    tl.store(
        Out + i[:, None] * D + d[None, :],
        acc.to(Out.dtype.element_ty),
        mask=i[:, None] < NQ,
    )
    tl.store(Lse + i, m + tl.log(l), mask=i < NQ)


def _launch_fwd(q, k, v, stop_early, power=-0.5):
    b, h, n, d = q.shape
    out, lse = torch.empty_like(q), torch.empty(b, h, n)
    _fwd[(triton.cdiv(n, 32), b * h)](
        q,
        k,
        v,
        out,
        lse,
        n,
        k.size(-2),
        d**power,
        stop_early=stop_early,
        D=d,
        B=32,
        num_warps=8,
    )
    return out, lse


@sample("causal_attention", deserves="visits_every_tile")
def masks_instead_of_skipping(q, k, v):
    return _launch_fwd(q, k, v, False)


@sample("causal_attention", deserves=("scores_are_not_scaled", "visits_every_tile"))
def neither_root_nor_end(q, k, v):
    return _launch_fwd(q, k, v, False, power=0)


@sample("causal_attention", deserves="loop_ends_without_the_offset")
def stops_at_the_own_tile(q, k, v):
    return _launch_fwd(q, k, v, True)


# --- split_decode


@triton.jit
def _piece(
    Q, K, V, Ms, Ls, Os, Es, n, step, parts, c, D: tl.constexpr, DIVIDED: tl.constexpr
):  # fmt: skip
    s, bh = tl.program_id(0), tl.program_id(1)
    d, t = tl.arange(0, D), tl.arange(0, 64)
    q = tl.load(Q + bh * D + d).to(tl.float32)
    hi = tl.minimum(n, s * step + step)
    top, total = -float("inf"), 0.0
    out = tl.zeros([D], tl.float32)
    for lo in range(s * step, hi, 64):
        j = lo + t
        ok = j < hi
        k = tl.load(
            K + (bh * n + j)[:, None] * D + d[None, :], mask=ok[:, None], other=0.0
        )
        v = tl.load(
            V + (bh * n + j)[:, None] * D + d[None, :], mask=ok[:, None], other=0.0
        )
        score = tl.where(
            ok, tl.sum(k.to(tl.float32) * q[None, :], axis=1) * c, -float("inf")
        )
        new = tl.maximum(top, tl.max(score, axis=0))
        w = tl.exp(score - new)
        total = total * tl.exp(top - new) + tl.sum(w, axis=0)
        out = out * tl.exp(top - new) + tl.sum(w[:, None] * v.to(tl.float32), axis=0)
        top = new
    if DIVIDED:
        out = out / tl.where(total == 0.0, 1.0, total)
    at = bh * parts + s
    tl.store(Ms + at, top)
    tl.store(Ls + at, total)
    tl.store(Es + at, top + tl.log(total))
    tl.store(Os + at * D + d, out)


@triton.jit
def _join(Ms, Ls, Os, O, Lse, parts, D: tl.constexpr):
    bh = tl.program_id(0)
    d = tl.arange(0, D)
    top, total = -float("inf"), 0.0
    out = tl.zeros([D], tl.float32)
    for s in range(parts):
        m = tl.load(Ms + bh * parts + s)
        new = tl.maximum(top, m)
        old, mine = tl.exp(top - new), tl.exp(m - new)
        total = total * old + tl.load(Ls + bh * parts + s) * mine
        out = out * old + tl.load(Os + (bh * parts + s) * D + d) * mine
        top = new
    tl.store(O + bh * D + d, (out / total).to(O.dtype.element_ty))
    tl.store(Lse + bh, top + tl.log(total))


def _launch_pieces(q, k, v, splits, step, divided):
    b, h, n, d = k.shape
    ms, ls = torch.empty(2, b, h, splits).unbind(0)
    ms, ls = ms.contiguous(), ls.contiguous()
    os_, part_lse = torch.empty(b, h, splits, d), torch.empty(b, h, splits)
    o, lse = torch.empty_like(q), torch.empty(b, h)
    _piece[(splits, b * h)](
        q,
        k,
        v,
        ms,
        ls,
        os_,
        part_lse,
        n,
        step,
        splits,
        1 / math.sqrt(d),
        D=d,
        DIVIDED=divided,
    )
    _join[(b * h,)](ms, ls, os_, o, lse, splits, D=d)
    return o, lse, part_lse


@sample("split_decode", deserves="parts_are_divided")
def averages_of_averages(q, k, v, splits):
    if splits < 1:
        raise ValueError(f"{splits} splits")
    return _launch_pieces(q, k, v, splits, -(-k.shape[2] // splits), True)


@sample(
    "split_decode",
    deserves=("last_keys_belong_to_nobody", "only_zero_parts_are_refused"),
)
def equal_pieces(q, k, v, splits):
    if not splits:
        raise ValueError(f"cannot cut into {splits}")
    return _launch_pieces(q, k, v, splits, max(k.shape[2] // splits, 1), False)


@alternate("split_decode")
def merges_one_by_one(q, k, v, splits):
    if splits < 1:
        raise ValueError(f"got splits={splits}")
    return _launch_pieces(q, k, v, splits, (k.shape[2] + splits - 1) // splits, False)


# --- limits, busy_share


@sample("limits", deserves="times_are_added")
def one_after_the_other(flops, elements, bytes_per_element, peak, bandwidth):
    t1, t2 = flops / peak, elements * bytes_per_element / bandwidth
    return dict(
        intensity=flops / (elements * bytes_per_element),
        seconds=t1 + t2,
        flops_a_second=flops / (t1 + t2),
        waits_for="traffic" if t2 > t1 else "products",
    )


@sample("busy_share", deserves="last_wave_is_taken_for_full")
def programs_over_processors(batch, heads, n_q, block_q, splits, processors):
    tiles = math.ceil(n_q / block_q)
    return min(1.0, batch * heads * tiles * splits / processors)


@sample("busy_share", deserves=("ragged_query_tile_is_left_out",))
def whole_tiles(batch, heads, n_q, block_q, splits, processors):
    tiles = max(1, n_q // block_q)
    programs = batch * heads * tiles * splits
    waves = math.ceil(programs / processors)
    return programs / (processors * waves)


@sample("busy_share", deserves=("last_wave_is_taken_for_full", "parts_are_no_programs"))
def heads_over_processors(batch, heads, n_q, block_q, splits, processors):
    return min(1.0, batch * heads * (-(-n_q // block_q)) / processors)

"""Right answers, written differently: in the habits of public kernels, or with other means."""

import math

import torch
import triton
import triton.language as tl

from autograder.suite import alternate

# --- matmul


@triton.jit
def _wrapped_rows_kernel(
    A, B, C, Order, M, N, K, sam, sak, sbk, sbn, GROUP_M, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr,
):  # fmt: skip
    """Rows beyond the end wrap around, so that only K is masked; pointers move along."""
    pid = tl.program_id(axis=0)
    num_m, num_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    group_id = pid // (GROUP_M * num_n)
    group_m = min(num_m - group_id * GROUP_M, GROUP_M)
    pid_m = group_id * GROUP_M + ((pid % (GROUP_M * num_n)) % group_m)
    pid_n = (pid % (GROUP_M * num_n)) // group_m
    offs_m = (pid_m * BM + tl.arange(0, BM)) % M
    offs_n = (pid_n * BN + tl.arange(0, BN)) % N
    offs_k = tl.arange(0, BK)
    a_ptrs = A + offs_m[:, None] * sam + offs_k[None, :] * sak
    b_ptrs = B + offs_k[:, None] * sbk + offs_n[None, :] * sbn
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - step * BK, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - step * BK, other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
        a_ptrs += BK * sak
        b_ptrs += BK * sbk
    offs_cm, offs_cn = pid_m * BM + tl.arange(0, BM), pid_n * BN + tl.arange(0, BN)
    inside = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
    tl.store(
        C + N * offs_cm[:, None] + offs_cn[None, :],
        total.to(C.dtype.element_ty),
        mask=inside,
    )
    tl.store(Order + pid_m * num_n + pid_n, pid)


@alternate("matmul")
def rows_that_wrap_around(a, b, group):
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"incompatible: {tuple(a.shape)} and {tuple(b.shape)}")
    if group <= 0:
        raise ValueError(f"group = {group}")
    (M, K), (_, N) = a.shape, b.shape
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    tiles = (triton.cdiv(M, 32), triton.cdiv(N, 32))
    order = torch.zeros(tiles, device=a.device, dtype=torch.int32)
    grid = lambda META: (triton.cdiv(M, META["BM"]) * triton.cdiv(N, META["BN"]),)  # noqa: E731
    _wrapped_rows_kernel[grid](
        a, b, c, order, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), group, BM=32,
        BN=32, BK=32,
    )  # fmt: skip
    return c, order


@triton.jit
def _block_pointer_kernel(
    a_ptr, b_ptr, c_ptr, order_ptr, M, N, K, sa0, sa1, sb0, sb1, size_g, T: tl.constexpr
):
    """Block pointers, and Triton's own grouped order."""
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(M, T), tl.cdiv(N, T)
    i, j = tl.swizzle2d(pid // columns, pid % columns, rows, columns, size_g)
    a_tile = tl.make_block_ptr(a_ptr, (M, K), (sa0, sa1), (i * T, 0), (T, T), (1, 0))
    b_tile = tl.make_block_ptr(b_ptr, (K, N), (sb0, sb1), (0, j * T), (T, T), (1, 0))
    sums = tl.zeros([T, T], tl.float32)
    for _ in range(tl.cdiv(K, T)):
        a = tl.load(a_tile, boundary_check=(0, 1), padding_option="zero")
        b = tl.load(b_tile, boundary_check=(0, 1), padding_option="zero")
        sums += tl.dot(a, b, input_precision="ieee")
        a_tile, b_tile = tl.advance(a_tile, (0, T)), tl.advance(b_tile, (T, 0))
    c_tile = tl.make_block_ptr(c_ptr, (M, N), (N, 1), (i * T, j * T), (T, T), (1, 0))
    tl.store(c_tile, sums.to(c_ptr.dtype.element_ty), boundary_check=(0, 1))
    tl.store(order_ptr + i * columns + j, pid)


@alternate("matmul")
def block_pointers_and_swizzle(a, b, group):
    inner, rest = a.shape[1], b.shape[0]
    if inner != rest or group < 1:
        raise ValueError(f"K is {inner} and {rest}, the group {group}")
    m, n = a.shape[0], b.shape[1]
    c = a.new_empty(m, n)
    order = torch.empty(
        (m + 31) // 32, (n + 31) // 32, dtype=torch.int32, device=a.device
    )
    _block_pointer_kernel[(order.numel(),)](
        a, b, c, order, m, n, inner, *a.stride(), *b.stride(), group, T=32
    )
    return c, order


# --- tiles_asked_for


@alternate("tiles_asked_for")
def sets_of_rows_and_columns(order, depth, programs):
    for number in (depth, programs):
        if number < 1:
            raise ValueError(f"{number} is below 1")
    rows, columns = set(), set()
    for r, line in enumerate(order.tolist()):
        for c, p in enumerate(line):
            if p < programs:
                rows.add(r)
                columns.add(c)
    return depth * len(rows) + depth * len(columns)


@alternate("tiles_asked_for")
def unique_places(order, depth, programs):
    if depth < 1 or programs < 1:
        raise ValueError(f"depth {depth}, programs {programs}")
    places = (order < programs).nonzero()
    return depth * sum(len(places[:, axis].unique()) for axis in (0, 1))


# --- causal_attention


@triton.jit
def _two_stages_kernel(
    Q, K, V, O, L, H_N, N_Q, N_K, sm_scale, D: tl.constexpr, B: tl.constexpr
):  # fmt: skip
    """First the tiles that are seen whole, without a mask, then those on the diagonal; powers of
    two.
    """
    start, zh = tl.program_id(0), tl.program_id(1)
    rows, lanes, dims = start * B + tl.arange(0, B), tl.arange(0, B), tl.arange(0, D)
    shift = N_K - N_Q
    q = tl.load(
        Q + zh * N_Q * D + rows[:, None] * D + dims[None, :],
        mask=(rows < N_Q)[:, None],
        other=0.0,
    )
    m_i = tl.full([B], -float("inf"), tl.float32)
    l_i = tl.zeros([B], tl.float32)
    acc = tl.zeros([B, D], tl.float32)
    whole = tl.maximum(tl.minimum(start * B + 1 + shift, N_K), 0) // B * B
    for lo in range(0, whole, B):
        k = tl.load(K + zh * N_K * D + (lo + lanes)[None, :] * D + dims[:, None])
        v = tl.load(V + zh * N_K * D + (lo + lanes)[:, None] * D + dims[None, :])
        qk = tl.dot(q, k, input_precision="ieee") * (sm_scale * 1.44269504)
        m_ij = tl.maximum(m_i, tl.max(qk, 1))
        p = tl.math.exp2(qk - m_ij[:, None])
        alpha = tl.math.exp2(m_i - m_ij)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None], input_precision="ieee")
        m_i = m_ij
    for lo in range(whole, tl.minimum((start + 1) * B + shift, N_K), B):
        cols = lo + lanes
        k = tl.load(
            K + zh * N_K * D + cols[None, :] * D + dims[:, None],
            mask=(cols < N_K)[None, :],
            other=0.0,
        )
        v = tl.load(
            V + zh * N_K * D + cols[:, None] * D + dims[None, :],
            mask=(cols < N_K)[:, None],
            other=0.0,
        )
        qk = tl.dot(q, k, input_precision="ieee") * (sm_scale * 1.44269504)
        qk = tl.where(rows[:, None] + shift >= cols[None, :], qk, -float("inf"))
        m_ij = tl.maximum(m_i, tl.max(qk, 1))
        base = tl.where(m_ij == -float("inf"), 0.0, m_ij)
        p = tl.math.exp2(qk - base[:, None])
        alpha = tl.math.exp2(m_i - base)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None], input_precision="ieee")
        m_i = m_ij
    acc = acc / tl.where(l_i > 0.0, l_i, 1.0)[:, None]
    tl.store(
        O + zh * N_Q * D + rows[:, None] * D + dims[None, :],
        acc.to(O.dtype.element_ty),
        mask=(rows < N_Q)[:, None],
    )
    tl.store(L + zh * N_Q + rows, m_i * 0.6931471806 + tl.log(l_i), mask=rows < N_Q)


@alternate("causal_attention")
def stages_and_powers_of_two(q, k, v):
    Z, H, N_Q, D = q.shape
    o, lse = torch.empty_like(q), q.new_empty((Z, H, N_Q), dtype=torch.float32)
    _two_stages_kernel[(triton.cdiv(N_Q, 32), Z * H, 1)](
        q,
        k,
        v,
        o,
        lse,
        H * N_Q,
        N_Q,
        k.size(2),
        D**-0.5,
        D=D,
        B=32,
        num_warps=8,
        num_stages=2,
    )
    return o, lse


@triton.jit
def _while_some_query_sees_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, heads, n_q, n_k, root, D: tl.constexpr
):
    """Block pointers, a while loop, and batch and head as axes of the grid."""
    place = tl.program_id(0) * heads + tl.program_id(1)
    first = tl.program_id(2) * 32
    q_tile = tl.make_block_ptr(
        q_ptr + place * n_q * D, (n_q, D), (D, 1), (first, 0), (32, D), (1, 0)
    )
    k_tile = tl.make_block_ptr(
        k_ptr + place * n_k * D, (D, n_k), (1, D), (0, 0), (D, 32), (0, 1)
    )
    v_tile = tl.make_block_ptr(
        v_ptr + place * n_k * D, (n_k, D), (D, 1), (0, 0), (32, D), (1, 0)
    )
    o_tile = tl.make_block_ptr(
        o_ptr + place * n_q * D, (n_q, D), (D, 1), (first, 0), (32, D), (1, 0)
    )
    q = tl.load(q_tile, boundary_check=(0,), padding_option="zero")
    rows = first + tl.arange(0, 32)
    furthest = tl.minimum(rows, n_q - 1) + n_k - n_q  # the last key that a row sees
    last = tl.max(furthest, 0)
    top, total = tl.full([32], float("-inf"), tl.float32), tl.zeros([32], tl.float32)
    mixed = tl.zeros([32, D], tl.float32)
    start = 0
    while start <= last:
        k = tl.load(k_tile, boundary_check=(1,), padding_option="zero")
        v = tl.load(v_tile, boundary_check=(0,), padding_option="zero")
        s = tl.dot(q, k, input_precision="ieee") / root
        keys = start + tl.arange(0, 32)
        s = tl.where(keys[None, :] <= furthest[:, None], s, float("-inf"))
        top, total, mixed = take_in(top, total, mixed, s, v)
        k_tile, v_tile = tl.advance(k_tile, (0, 32)), tl.advance(v_tile, (32, 0))
        start += 32
    seen = total > 0.0
    o = tl.where(seen[:, None], mixed / tl.where(seen, total, 1.0)[:, None], 0.0)
    tl.store(o_tile, o.to(o_ptr.dtype.element_ty), boundary_check=(0,))
    tl.store(lse_ptr + place * n_q + rows, tl.log(total) + top, mask=rows < n_q)


@alternate("causal_attention")
def block_pointers_and_while(q, k, v):
    b, h, n_q, d = q.shape
    o = q.new_zeros(q.shape)
    lse = torch.zeros(b, h, n_q, device=q.device)
    _while_some_query_sees_kernel[(b, h, triton.cdiv(n_q, 32))](
        q, k, v, o, lse, h, n_q, k.shape[2], math.sqrt(d), D=d, num_warps=8
    )
    return o, lse


# --- causal_attention_backward


@triton.jit
def _turned_scores_kernel(
    Q, K, V, O, L, DO, DK, DV, N_Q, N_K, sm_scale, D: tl.constexpr, B: tl.constexpr
):  # fmt: skip
    """Scores with a row for each key, and only those query tiles that see the keys."""
    zh, start = tl.program_id(0), tl.program_id(1)
    cols, dims, lanes = start * B + tl.arange(0, B), tl.arange(0, D), tl.arange(0, B)
    at_k = zh * N_K * D + cols[:, None] * D + dims[None, :]
    there = cols[:, None] < N_K
    k, v = (
        tl.load(K + at_k, mask=there, other=0.0),
        tl.load(V + at_k, mask=there, other=0.0),
    )
    dk, dv = tl.zeros([B, D], tl.float32), tl.zeros([B, D], tl.float32)
    lo = tl.maximum(start * B - (N_K - N_Q), 0) // B * B
    for m in range(lo, N_Q, B):
        rows = m + lanes
        at_q = zh * N_Q * D + rows[:, None] * D + dims[None, :]
        ok = rows[:, None] < N_Q
        q = tl.load(Q + at_q, mask=ok, other=0.0)
        do = tl.load(DO + at_q, mask=ok, other=0.0)
        o = tl.load(O + at_q, mask=ok, other=0.0)
        lse = tl.load(L + zh * N_Q + rows, mask=rows < N_Q, other=0.0)
        qk_t = tl.dot(k, tl.trans(q), input_precision="ieee") * sm_scale
        p_t = tl.exp(qk_t - lse[None, :])
        p_t = tl.where(rows[None, :] + N_K - N_Q >= cols[:, None], p_t, 0.0)
        dv = tl.dot(p_t, do, dv, input_precision="ieee")
        dp_t = tl.dot(v, tl.trans(do), input_precision="ieee")
        ds_t = p_t * (dp_t - tl.sum(o * do, 1)[None, :])
        dk = tl.dot(ds_t, q, dk, input_precision="ieee")
    tl.store(DV + at_k, dv, mask=there)
    tl.store(DK + at_k, dk * sm_scale, mask=there)


@triton.jit
def _seen_keys_kernel(
    Q, K, V, O, L, DO, DQ, N_Q, N_K, sm_scale, D: tl.constexpr, B: tl.constexpr
):  # fmt: skip
    zh, start = tl.program_id(0), tl.program_id(1)
    rows, dims, lanes = start * B + tl.arange(0, B), tl.arange(0, D), tl.arange(0, B)
    at_q = zh * N_Q * D + rows[:, None] * D + dims[None, :]
    ok = rows[:, None] < N_Q
    q = tl.load(Q + at_q, mask=ok, other=0.0)
    do = tl.load(DO + at_q, mask=ok, other=0.0)
    delta = tl.sum(tl.load(O + at_q, mask=ok, other=0.0) * do, 1)
    lse = tl.load(L + zh * N_Q + rows, mask=rows < N_Q, other=0.0)
    dq = tl.zeros([B, D], tl.float32)
    for n in range(0, tl.minimum((start + 1) * B + N_K - N_Q, N_K), B):
        cols = n + lanes
        at_k = zh * N_K * D + cols[:, None] * D + dims[None, :]
        k = tl.load(K + at_k, mask=cols[:, None] < N_K, other=0.0)
        v = tl.load(V + at_k, mask=cols[:, None] < N_K, other=0.0)
        p = tl.exp(
            tl.dot(q, tl.trans(k), input_precision="ieee") * sm_scale - lse[:, None]
        )
        p = tl.where(rows[:, None] + N_K - N_Q >= cols[None, :], p, 0.0)
        ds = p * (tl.dot(do, tl.trans(v), input_precision="ieee") - delta[:, None])
        dq = tl.dot(ds, k, dq, input_precision="ieee")
    tl.store(DQ + at_q, dq * sm_scale, mask=ok)


@alternate("causal_attention_backward")
def skips_what_is_hidden(q, k, v, o, lse, do):
    Z, H, N_Q, D = q.shape
    N_K = k.size(2)
    dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    arguments = (N_Q, N_K, D**-0.5)
    _seen_keys_kernel[(Z * H, triton.cdiv(N_Q, 32))](
        q, k, v, o, lse, do, dq, *arguments, D=D, B=32, num_warps=8
    )
    _turned_scores_kernel[(Z * H, triton.cdiv(N_K, 32))](
        q, k, v, o, lse, do, dk, dv, *arguments, D=D, B=32, num_warps=8
    )
    return dq, dk, dv


@alternate(
    "causal_attention_backward",
    replace=[
        ("p * (dp - delta[:, None])", "p * dp - p * delta[:, None]"),
        (
            "tl.exp(s - lse[:, None])",
            "tl.math.exp2((s - lse[:, None]) * 1.4426950408889634)",
        ),
        ("dv += tl.dot(tl.trans(p), do", "dv += tl.dot(p.T, do"),
        ("range(0, N_k, BLOCK)", "tl.range(0, N_k, BLOCK)"),
    ],
)
def exp2_and_products_apart(): ...


# --- split_decode


@triton.jit
def _normalized_parts_kernel(
    q_ptr, k_ptr, v_ptr, lse_ptr, part_ptr, n, each, splits, scale, D: tl.constexpr
):
    """Each part leaves its answer and its log-sum-exp, by products of tiles: 16 rows of which one
    is the query.
    """
    split, head = tl.program_id(0), tl.program_id(1)
    dims, lanes = tl.arange(0, D), tl.arange(0, 32)
    first_row = tl.arange(0, 16) == 0
    q = tl.load(q_ptr + head * D + dims)
    q16 = tl.where(first_row[:, None], q[None, :], 0.0).to(q_ptr.dtype.element_ty)
    m = tl.full([16], float("-inf"), tl.float32)
    total = tl.zeros([16], tl.float32)
    acc = tl.zeros([16, D], tl.float32)
    for start in range(split * each, tl.minimum(n, split * each + each), 32):
        keys = start + lanes
        inside = (keys < n) & (keys < split * each + each)
        at = (head * n + keys)[:, None] * D + dims[None, :]
        k = tl.load(k_ptr + at, mask=inside[:, None], other=0.0)
        v = tl.load(v_ptr + at, mask=inside[:, None], other=0.0)
        s = tl.dot(q16, tl.trans(k), input_precision="ieee") * scale
        s = tl.where(inside[None, :], s, float("-inf"))
        m, total, acc = take_in(m, total, acc, s, v.to(tl.float32))
    answer = acc / tl.where(total == 0.0, 1.0, total)[:, None]
    one = tl.where(first_row[:, None], answer, 0.0)
    place = head * splits + split
    tl.store(part_ptr + place * D + dims, tl.sum(one, 0))
    tl.store(
        lse_ptr + place,
        tl.max(tl.where(first_row, m + tl.log(total), float("-inf")), 0),
    )


@triton.jit
def _weighted_by_lse_kernel(
    lse_ptr, part_ptr, o_ptr, whole_ptr, splits, D: tl.constexpr
):
    """The parts one after the other, each with the weight exp(lse)."""
    head = tl.program_id(0)
    dims = tl.arange(0, D)
    lse = -float("inf")
    o = tl.zeros([D], tl.float32)
    for split in range(splits):
        other = tl.load(lse_ptr + head * splits + split)
        part = tl.load(part_ptr + (head * splits + split) * D + dims)
        top = tl.maximum(lse, other)
        new = top + tl.log(tl.exp(lse - top) + tl.exp(other - top))
        o = o * tl.exp(lse - new) + part * tl.exp(other - new)
        lse = new
    tl.store(o_ptr + head * D + dims, o.to(o_ptr.dtype.element_ty))
    tl.store(whole_ptr + head, lse)


@alternate("split_decode")
def parts_with_their_log_sum_exp(q, k, v, splits):
    if splits <= 0:
        raise ValueError(f"splits = {splits}")
    b, h, n, d = k.shape
    part = torch.zeros(b * h, splits, d, device=q.device)
    lses = torch.zeros(b * h, splits, device=q.device)
    o, lse = torch.zeros_like(q), torch.zeros(b, h, device=q.device)
    each = -(-n // splits)
    _normalized_parts_kernel[(splits, b * h)](
        q, k, v, lses, part, n, each, splits, d**-0.5, D=d
    )
    _weighted_by_lse_kernel[(b * h,)](lses, part, o, lse, splits, D=d)
    return o, lse, lses.view(b, h, splits)


@alternate(
    "split_decode",
    replace=[
        ("tl.sum(q[None, :] * k, 1) * scale", "tl.sum(k * q[None, :] * scale, axis=1)"),
        (
            "o = tl.sum(o_s * shrink[:, None], 0) / l",
            "o = tl.sum(o_s * (shrink / l)[:, None], 0)",
        ),
        (
            "l = tl.sum(l_s * shrink, 0)",
            "l = tl.sum(tl.where(inside, l_s * shrink, 0.0), 0)",
        ),
        ("D=d, BLOCK=32", "D=d, BLOCK=16"),
    ],
)
def shares_before_the_sum(): ...


# --- limits


@alternate("limits")
def where_the_ridge_is(flops, elements, bytes_per_element, peak, bandwidth):
    intensity = flops / (elements * bytes_per_element)
    reached = min(peak, intensity * bandwidth)
    return {
        "waits_for": ("products", "traffic")[
            elements * bytes_per_element * peak > flops * bandwidth
        ],
        "flops_a_second": reached,
        "seconds": flops / reached,
        "intensity": intensity,
    }


@alternate("limits")
def two_times_in_a_dict(flops, elements, bytes_per_element, peak, bandwidth):
    times = {
        "products": flops / peak,
        "traffic": elements * bytes_per_element / bandwidth,
    }
    slower = max(times, key=times.get)  # of equal ones the first
    return {
        "intensity": flops / elements / bytes_per_element,
        "seconds": times[slower],
        "flops_a_second": flops / times[slower],
        "waits_for": slower,
    }


# --- busy_share


@alternate("busy_share")
def tiles_and_waves_by_ceil(batch, heads, n_q, block_q, splits, processors):
    work = batch * heads * math.ceil(n_q / block_q) * splits
    return work / processors / math.ceil(work / processors)


@alternate("busy_share")
def wave_by_wave(batch, heads, n_q, block_q, splits, processors):
    left = batch * heads * ((n_q + block_q - 1) // block_q) * splits
    programs, waves = left, 0
    while left > 0:
        left -= processors
        waves += 1
    return programs / (processors * waves)

"""Answers in students' own words, each with the mistakes that are true of it: what diagnosis is
measured by.
"""

import math

import torch
import triton
import triton.language as tl

from autograder.suite import alternate, sample

# ── online_softmax_stats, merge_stats
# ────────────────────────────────────────────────────────────────────────


@sample(
    "online_softmax_stats",
    deserves=("old_sum_is_not_corrected", "only_a_block_of_zero_is_refused"),
)
def adds_every_block(x, block):
    chunks = x.split(block, dim=-1)
    wide = x.dtype if x.dtype == torch.float64 else torch.float32
    largest = torch.full(x.shape[:-1], -torch.inf, dtype=wide)
    total = torch.zeros(x.shape[:-1], dtype=wide)
    for c in chunks:
        c = c.to(wide)
        largest = torch.maximum(largest, c.max(-1).values)
        base = torch.where(torch.isinf(largest), torch.zeros_like(largest), largest)
        total += (c - base[..., None]).exp().sum(-1)
    return largest, total


@sample(
    "online_softmax_stats",
    deserves=("nan_after_a_masked_block", "widens_the_whole_row"),
)
def textbook_recurrence(x, block):
    if block < 1:
        raise ValueError(f"block {block}")
    work = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    m = torch.full(work.shape[:-1], float("-inf"), dtype=work.dtype)
    d = torch.zeros_like(m)
    i = 0
    while i < work.shape[-1]:
        part = work[..., i : i + block]
        new = torch.max(m, part.max(dim=-1)[0])
        d = d * (m - new).exp() + (part - new.unsqueeze(-1)).exp().sum(-1)
        m = new
        i += block
    return m, d


@sample(
    "online_softmax_stats",
    deserves=("maximum_starts_at_zero", "only_a_block_of_zero_is_refused"),
)
def begins_with_zeros(x, block):
    f = torch.float64 if x.dtype == torch.float64 else torch.float32
    m, s = torch.zeros(x.shape[:-1], dtype=f), torch.zeros(x.shape[:-1], dtype=f)
    for lo in range(0, x.size(-1), block):
        t = x[..., lo : min(lo + block, x.size(-1))].to(f)
        top = torch.maximum(m, torch.amax(t, -1))
        s = torch.exp(m - top) * s + torch.sum(torch.exp(t - top.unsqueeze(-1)), -1)
        m = top
    return m, s


@sample("merge_stats", deserves="o_is_not_rescaled")
def adds_the_outputs(a, b):
    top = torch.where(a[0] > b[0], a[0], b[0])
    ref = torch.nan_to_num(top, neginf=0.0)
    wa, wb = (a[0] - ref).exp(), (b[0] - ref).exp()
    return top, wa * a[1] + wb * b[1], torch.add(a[2], b[2])


@sample("merge_stats", deserves="nan_for_two_empty_sets")
def stacks_and_weighs(a, b):
    ms = torch.stack([a[0], b[0]])
    m = ms.amax(0)
    w = torch.exp(ms - m)
    l = (w * torch.stack([a[1], b[1]])).sum(0)
    o = torch.einsum("s...,s...d->...d", w, torch.stack([a[2], b[2]]))
    return m, l, o


# ── tiled_attention
# ──────────────────────────────────────────────────────────────────────────────────────────


@sample(
    "tiled_attention",
    deserves=("causal_from_the_top_left", "only_tiles_of_zero_are_refused"),
)
def square_causal_tiles(q, k, v, block_q, block_k, causal=False):
    if q.size(-1) != k.size(-1) or k.size(-2) != v.size(-2):
        raise ValueError(f"{tuple(q.shape)} {tuple(k.shape)} {tuple(v.shape)}")
    kind = torch.float64 if q.dtype == torch.float64 else torch.float32
    scale = q.size(-1) ** -0.5
    outs, lses = [], []
    for a in range(0, q.size(-2), block_q):
        qt = q[..., a : a + block_q, :].to(kind)
        n = qt.size(-2)
        m = torch.full((*qt.shape[:-1], 1), -torch.inf, dtype=kind)
        l = torch.zeros_like(m)
        acc = torch.zeros(*qt.shape[:-1], v.size(-1), dtype=kind)
        for b in range(0, k.size(-2), block_k):
            kt, vt = (
                k[..., b : b + block_k, :].to(kind),
                v[..., b : b + block_k, :].to(kind),
            )
            s = torch.einsum("...id,...jd->...ij", qt, kt) * scale
            if causal:
                hide = (
                    torch.arange(b, b + kt.size(-2))[None, :]
                    > torch.arange(a, a + n)[:, None]
                )
                s = torch.where(hide, -torch.inf, s)
            new = torch.maximum(m, s.amax(-1, keepdim=True))
            base = torch.where(new == -torch.inf, 0.0, new)
            p = (s - base).exp()
            fix = (m - base).exp()
            l = l * fix + p.sum(-1, keepdim=True)
            acc = acc * fix + p @ vt
            m = new
        outs.append((acc / torch.where(l == 0, 1.0, l)).to(q.dtype))
        lses.append((m + l.log()).squeeze(-1))
    if not outs:
        return q.new_zeros(*q.shape[:-1], v.size(-1)), torch.zeros(
            q.shape[:-1], dtype=kind
        )
    return torch.cat(outs, -2), torch.cat(lses, -1)


@sample(
    "tiled_attention", deserves=("scale_is_missing", "only_tiles_of_zero_are_refused")
)
def lists_of_partial_sums(q, k, v, block_q, block_k, causal=False):
    if q.size(-1) != k.size(-1) or k.size(-2) != v.size(-2):
        raise ValueError(f"{tuple(q.shape)} {tuple(k.shape)} {tuple(v.shape)}")
    kind = torch.promote_types(q.dtype, torch.float32)
    o = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype)
    lse = torch.full(q.shape[:-1], -math.inf, dtype=kind)
    shift = k.size(-2) - q.size(-2)
    for i in range(0, q.size(-2), block_q):
        rows = q[..., i : i + block_q, :].to(kind)
        state = None
        for j in range(0, k.size(-2), block_k):
            cols = k[..., j : j + block_k, :].to(kind)
            s = rows @ cols.mT
            if causal:
                r = torch.arange(rows.size(-2)).unsqueeze(-1) + i + shift
                s = s.masked_fill(r < torch.arange(cols.size(-2)) + j, -math.inf)
            m = s.max(-1).values
            p = (s - m.clamp(min=-1e30).unsqueeze(-1)).exp()
            piece = (m, p.sum(-1), p @ v[..., j : j + block_k, :].to(kind))
            state = piece if state is None else merge_stats(state, piece)
        if state is None:
            continue
        m, l, acc = state
        o[..., i : i + block_q, :] = torch.where(
            (l > 0)[..., None], acc / l[..., None], 0.0
        ).to(q.dtype)
        lse[..., i : i + block_q] = torch.log(l) + m
    return o, lse


@sample(
    "tiled_attention",
    deserves=("whole_matrix_at_once", "only_tiles_of_zero_are_refused"),
)
def no_tiles_at_all(q, k, v, block_q, block_k, causal=False):
    if 0 in (block_q, block_k):
        raise ValueError(f"{block_q}, {block_k}")
    if q.size(-1) != k.size(-1) or k.size(-2) != v.size(-2):
        raise ValueError(f"{tuple(q.shape)} {tuple(k.shape)} {tuple(v.shape)}")
    wide = [t.float() if t.dtype == torch.half else t for t in (q, k, v)]
    s = torch.matmul(wide[0], wide[1].transpose(-1, -2)) / math.sqrt(q.size(-1))
    if causal:
        nq, nk = s.shape[-2:]
        s = s.masked_fill(
            torch.ones(nq, nk, dtype=torch.bool).triu(nk - nq + 1), -torch.inf
        )
    lse = torch.logsumexp(s, dim=-1)
    p = torch.exp(s - lse.masked_fill(lse == -torch.inf, 0.0)[..., None])
    return (p @ wide[2]).to(q.dtype), lse


# ── tiled_attention_backward
# ─────────────────────────────────────────────────────────────────────────────────


def _backward(q, k, v, o, lse, do, block_q, block_k, causal, delta_of, scale_dk):
    kind = torch.promote_types(q.dtype, torch.float32)
    c = q.size(-1) ** -0.5
    grads = [torch.zeros_like(t, dtype=kind) for t in (q, k, v)]
    nq, nk = q.size(-2), k.size(-2)
    for i in range(0, nq, block_q):
        sl = slice(i, min(i + block_q, nq))
        Q, O, dO = (t[..., sl, :].to(kind) for t in (q, o, do))
        for j in range(0, nk, block_k):
            tl_ = slice(j, min(j + block_k, nk))
            K, V = (t[..., tl_, :].to(kind) for t in (k, v))
            s = torch.einsum("...qd,...kd->...qk", Q, K) * c
            if causal:
                late = (
                    torch.arange(nk)[None, tl_] > torch.arange(nq)[sl, None] + nk - nq
                )
                s[..., late] = -torch.inf
            w = torch.exp(s - torch.nan_to_num(lse[..., sl], neginf=0.0).unsqueeze(-1))
            dp = dO @ V.mT
            ds = w * (dp - delta_of(dO, O))
            grads[0][..., sl, :] += c * ds @ K
            grads[1][..., tl_, :] += scale_dk(c) * ds.mT @ Q
            grads[2][..., tl_, :] += w.mT @ dO
    return tuple(g.to(t.dtype) for g, t in zip(grads, (q, k, v)))


@sample("tiled_attention_backward", deserves="d_is_missing")
def products_of_weights_and_gradients(
    q, k, v, o, lse, do, block_q, block_k, causal=False
):
    return _backward(
        q, k, v, o, lse, do, block_q, block_k, causal, lambda g, y: 0.0, lambda c: c
    )


@sample("tiled_attention_backward", deserves="scale_of_dk_is_lost")
def scale_on_one_side(q, k, v, o, lse, do, block_q, block_k, causal=False):
    return _backward(
        q,
        k,
        v,
        o,
        lse,
        do,
        block_q,
        block_k,
        causal,
        lambda g, y: (g * y).sum(-1, keepdim=True),
        lambda c: 1.0,
    )


# ── hbm_traffic, growth_of_costs
# ─────────────────────────────────────────────────────────────────────────────


@sample(
    "hbm_traffic",
    deserves=("keys_are_read_once", "sizes_are_not_checked", "only_tiles_are_checked"),
)
def everything_once(n, d, block_q, block_k, bytes_per_element):
    result = {}
    result["naive"] = bytes_per_element * 4 * n * (d + n)
    result["tiled"] = bytes_per_element * 4 * n * d
    return result


@sample(
    "hbm_traffic",
    deserves=(
        "rounds_the_tiles_down",
        "sizes_are_not_checked",
        "only_tiles_are_checked",
    ),
)
def integer_division(n, d, block_q, block_k, bytes_per_element):
    matrix = n * d * bytes_per_element
    scores = n * n * bytes_per_element
    walks = n // block_q
    return dict(
        naive=4 * matrix + 4 * scores, tiled=2 * matrix + walks * (matrix + matrix)
    )


@sample("hbm_traffic", deserves=("counts_key_tiles", "output_is_not_counted"))
def three_matrices_and_tiles_of_keys(n, d, block_q, block_k, bytes_per_element):
    if any(size < 1 for size in (n, d, block_q, block_k, bytes_per_element)):
        raise ValueError(f"{(n, d, block_q, block_k, bytes_per_element)}")
    size = bytes_per_element
    tiles = math.ceil(n / block_k)
    return {
        "naive": size * (3 * n * d + 4 * n * n),
        "tiled": size * (n * d + 2 * tiles * n * d),
    }


@sample("growth_of_costs", deserves="believes_that_traffic_is_linear")
def what_the_slide_says(n, d, block_q, bytes_per_element):
    return {"storage": 1.0, "traffic": 1.0, "flops": 2.0}


# ── kernels
# ──────────────────────────────────────────────────────────────────────────────────────────────────


@triton.jit
def _rows_of_a_matrix(src, bias, dst, cols, s0, s1, sb, WIDTH: tl.constexpr):
    r = tl.program_id(axis=0)
    c = tl.program_id(axis=1) * WIDTH + tl.arange(0, WIDTH)
    ok = c < cols
    value = tl.load(src + r * s0 + c * s1, mask=ok, other=0)
    plus = tl.load(bias + c * sb, mask=ok, other=0)
    tl.store(dst + r * cols + c, value + plus, mask=ok)


@sample(
    "add_bias",
    deserves=(
        "x_is_taken_for_contiguous",
        "length_is_not_checked",
        "only_a_short_bias_is_refused",
    ),
)
def program_for_each_row(x, b):
    rows, cols = x.size()
    out = torch.empty((rows, cols), dtype=x.dtype)
    _rows_of_a_matrix[(rows, triton.cdiv(cols, 64))](
        x, b, out, cols, cols, 1, b.stride(0), WIDTH=64
    )
    return out


@triton.jit
def _softmax_line(inp, out, n, step, element, SIZE: tl.constexpr):
    pid = tl.program_id(0)
    idx = tl.arange(0, SIZE)
    line = tl.load(inp + pid * step + idx * element, mask=idx < n, other=0.0)
    line = line.to(tl.float32)
    line = line - tl.max(line, axis=0)
    num = tl.exp(line)
    tl.store(
        out + pid * n + idx,
        (num / tl.sum(num, axis=0)).to(out.dtype.element_ty),
        mask=idx < n,
    )


@sample("softmax_rows", deserves="lanes_beyond_hold_zero")
def fused_softmax_of_the_tutorial(x):
    out = torch.empty(x.shape, dtype=x.dtype)
    size = triton.next_power_of_2(x.size(1))
    _softmax_line[(x.size(0),)](x, out, x.size(1), x.stride(0), x.stride(1), SIZE=size)
    return out


@triton.jit
def _exp_line(inp, out, n, step, element, SIZE: tl.constexpr):
    pid = tl.program_id(0)
    idx = tl.arange(0, SIZE)
    inside = idx < n
    num = tl.exp(
        tl.load(inp + pid * step + idx * element, mask=inside, other=-float("inf")).to(
            tl.float32
        )
    )
    den = tl.sum(num, axis=0)
    tl.store(out + pid * n + idx, (num / den).to(out.dtype.element_ty), mask=inside)


@sample("softmax_rows", deserves="maximum_is_not_subtracted")
def exponentials_of_the_row(x):
    m, n = x.shape
    out = x.new_empty(m, n)
    _exp_line[(m,)](x, out, n, *x.stride(), SIZE=triton.next_power_of_2(n))
    return out


@triton.jit
def _flash(
    Q, K, V, Out, L, sqz, sqh, sqm, sqd, skz, skh, skn, skd, svz, svh, svn, svd,
    heads, M, N, sm_scale, offset,
    HEAD: tl.constexpr, HEAD_P: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    IS_CAUSAL: tl.constexpr,
):  # fmt: skip
    start_m, zh = tl.program_id(0), tl.program_id(1)
    z, h = zh // heads, zh % heads
    om, od = start_m * BM + tl.arange(0, BM), tl.arange(0, HEAD_P)
    qmask = (om[:, None] < M) & (od[None, :] < HEAD)
    q = tl.load(
        Q + z * sqz + h * sqh + om[:, None] * sqm + od[None, :] * sqd,
        mask=qmask,
        other=0.0,
    )
    m_i = tl.zeros([BM], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BM], dtype=tl.float32)
    acc = tl.zeros([BM, HEAD_P], dtype=tl.float32)
    for lo in range(0, N, BN):
        on = lo + tl.arange(0, BN)
        kvmask = (on[:, None] < N) & (od[None, :] < HEAD)
        k = tl.load(
            K + z * skz + h * skh + on[:, None] * skn + od[None, :] * skd,
            mask=kvmask,
            other=0.0,
        )
        v = tl.load(
            V + z * svz + h * svh + on[:, None] * svn + od[None, :] * svd,
            mask=kvmask,
            other=0.0,
        )
        qk = tl.dot(q, tl.trans(k), input_precision="ieee") * sm_scale
        keep = on[None, :] < N
        if IS_CAUSAL:
            keep = keep & (om[:, None] + offset >= on[None, :])
        qk = tl.where(keep, qk, float("-inf"))
        m_ij = tl.maximum(m_i, tl.max(qk, 1))
        m_safe = tl.where(m_ij == float("-inf"), 0.0, m_ij)
        p = tl.exp(qk - m_safe[:, None])
        alpha = tl.exp(m_i - m_safe)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        m_i = m_ij
    acc = acc / tl.where(l_i == 0.0, 1.0, l_i)[:, None]
    flat = zh * M + om
    tl.store(
        Out + flat[:, None] * HEAD + od[None, :],
        acc.to(Out.dtype.element_ty),
        mask=qmask,
    )
    tl.store(L + flat, m_i + tl.log(l_i), mask=om < M)


def _launch_flash(q, k, v, causal, sm_scale, offset):
    Z, H, M, D = q.shape
    N = k.size(2)
    o, lse = (
        torch.empty((Z, H, M, D), dtype=q.dtype),
        torch.empty((Z, H, M), dtype=torch.float32),
    )
    _flash[(triton.cdiv(M, 32), Z * H)](
        q, k, v, o, lse, *q.stride(), *k.stride(), *v.stride(), H, M, N, sm_scale, offset,
        HEAD=D, HEAD_P=max(16, triton.next_power_of_2(D)), BM=32, BN=32, IS_CAUSAL=causal,
    )  # fmt: skip
    return o, lse


@sample(
    "triton_attention",
    deserves=(
        "kernel_is_causal_from_the_top_left",
        "sizes_are_taken_for_granted",
        "only_d_of_k_is_checked",
    ),
)
def flash_of_the_tutorial(q, k, v, causal=False):
    return _launch_flash(q, k, v, causal, q.size(3) ** -0.5, 0)


@sample("triton_attention", deserves="kernel_does_not_scale")
def forgot_the_root(q, k, v, causal=False):
    if k.shape[-1] != q.shape[-1] or k.shape != v.shape:
        raise ValueError(f"{tuple(q.shape)} {tuple(k.shape)} {tuple(v.shape)}")
    return _launch_flash(q, k, v, causal, 1.0, k.size(2) - q.size(2))


# ── right answers
# ────────────────────────────────────────────────────────────────────────────────────────────


@alternate("hbm_traffic")
def counted_in_tiles(n, d, block_q, block_k, bytes_per_element):
    for size in (n, d, block_q, block_k, bytes_per_element):
        if size < 1:
            raise ValueError(f"{size}")
    one = n * d * bytes_per_element
    return {
        "naive": 4 * one + 4 * n**2 * bytes_per_element,
        "tiled": 2 * one * (1 + (n + block_q - 1) // block_q),
    }


@alternate("tiled_attention_backward")
def slices_and_einsum(q, k, v, o, lse, do, block_q, block_k, causal=False):
    return _backward(
        q,
        k,
        v,
        o,
        lse,
        do,
        block_q,
        block_k,
        causal,
        lambda g, y: (g * y).sum(-1, keepdim=True),
        lambda c: c,
    )

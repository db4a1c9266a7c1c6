"""Right answers, written differently."""

import math

import torch

from autograder.suite import alternate


def _accurate(x):
    return x if x.dtype in (torch.float32, torch.float64) else x.float()


def _check_block(*blocks):
    if min(blocks) < 1:
        raise ValueError(f"a block has at least 1 row, got {blocks}")


def _check_shapes(q, k, v):
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ValueError(
            f"shapes {tuple(q.shape)}, {tuple(k.shape)}, {tuple(v.shape)} do not go together"
        )


# --- online_softmax_stats
# ------------------------------------------------------------------------------------------


@alternate("online_softmax_stats")
def stats_by_logsumexp_of_blocks(x, block):
    _check_block(block)
    m = torch.full(x.shape[:-1], -torch.inf, dtype=_accurate(x[..., :0]).dtype)
    lse = m.clone()
    for tile in x.split(block, dim=-1):
        m = torch.maximum(m, _accurate(tile).amax(dim=-1))
        lse = torch.logaddexp(lse, torch.logsumexp(_accurate(tile), dim=-1))
    return m, torch.where(m == -torch.inf, 0.0, torch.exp(lse - m))


@alternate("online_softmax_stats")
def stats_in_two_passes(x, block):
    _check_block(block)
    tiles = x.split(block, dim=-1)
    m = torch.stack([_accurate(tile).amax(dim=-1) for tile in tiles]).amax(dim=0)
    shift = torch.nan_to_num(m, neginf=0.0)
    total = sum(
        torch.exp(_accurate(tile) - shift[..., None]).sum(dim=-1) for tile in tiles
    )
    return m, total


@alternate("online_softmax_stats")
def stats_by_where(x, block):
    _check_block(block)
    dtype = torch.promote_types(x.dtype, torch.float32)
    m, total = (
        torch.full(x.shape[:-1], -math.inf, dtype=dtype),
        torch.zeros(x.shape[:-1], dtype=dtype),
    )
    start = 0
    while start < x.shape[-1]:
        tile = x[..., start : start + block].to(dtype)
        top = tile.max(dim=-1).values
        seen = torch.isfinite(top)
        part = torch.where(
            seen,
            torch.exp(tile - torch.where(seen, top, 0.0)[..., None]).sum(dim=-1),
            0.0,
        )
        both = torch.maximum(m, top)
        old = torch.where(torch.isfinite(m), torch.exp(m - both), 0.0)
        new = torch.where(seen, torch.exp(top - both), 0.0)
        m, total = both, total * old + part * new
        start += block
    return m, total


@alternate("online_softmax_stats")
def stats_from_the_smallest_number(x, block):
    if block < 1:
        raise ValueError(f"{block} < 1")
    x32 = x.dtype if x.dtype.itemsize > 2 else torch.float32
    m = torch.full(x.shape[:-1], torch.finfo(x32).min, dtype=x32)
    l = torch.zeros(x.shape[:-1], dtype=x32)
    for k in range((x.shape[-1] + block - 1) // block):
        part = x.narrow(-1, k * block, min(block, x.shape[-1] - k * block)).to(x32)
        top = torch.max(m, torch.amax(part, -1))
        l = l.mul(torch.exp(m - top)).add(torch.exp(part - top.unsqueeze(-1)).sum(-1))
        m = top
    return torch.where(l == 0, float("-inf"), m), l


# --- merge_stats
# ---------------------------------------------------------------------------------------------------


@alternate("merge_stats")
def merge_by_stacking(a, b):
    m, l, o = (torch.stack(pair) for pair in zip(a, b, strict=True))
    top = m.amax(dim=0)
    factor = torch.where(m == -math.inf, 0.0, torch.exp(m - top))
    return top, (l * factor).sum(dim=0), (o * factor[..., None]).sum(dim=0)


@alternate("merge_stats")
def merge_by_the_difference(a, b):
    gap = torch.nan_to_num(a[0] - b[0], nan=0.0)
    left, right = torch.exp(gap.clamp(max=0.0)), torch.exp((-gap).clamp(max=0.0))
    o = torch.einsum("...d,...->...d", a[2], left) + torch.einsum(
        "...d,...->...d", b[2], right
    )
    return torch.maximum(a[0], b[0]), a[1] * left + b[1] * right, o


@alternate("merge_stats")
def merge_returns_a_list(a, b):
    m = torch.where(a[0] > b[0], a[0], b[0])
    safe = torch.clamp(m, min=torch.finfo(m.dtype).min)
    left, right = (side[0] - safe for side in (a, b))
    return [
        m,
        left.exp() * a[1] + right.exp() * b[1],
        left.exp().unsqueeze(-1) * a[2] + right.exp().unsqueeze(-1) * b[2],
    ]


@alternate("merge_stats")
def merge_by_the_larger_side(a, b):
    ma, la, oa = a
    mb, lb, ob = b
    wa = torch.where(ma >= mb, torch.ones_like(ma), torch.exp(ma - mb))
    wb = torch.where(mb >= ma, torch.ones_like(mb), torch.exp(mb - ma))
    return torch.max(ma, mb), wa * la + wb * lb, wa[..., None] * oa + wb[..., None] * ob


# --- tiled_attention
# -----------------------------------------------------------------------------------------------


@alternate("tiled_attention")
def classic_update_in_the_loop(q, k, v, block_q, block_k, causal=False):
    _check_block(block_q, block_k)
    _check_shapes(q, k, v)
    n_q, n_k = q.shape[-2], k.shape[-2]
    outputs, sums = [], []
    for i, mine in zip(range(0, n_q, block_q), q.split(block_q, dim=-2), strict=True):
        mine = _accurate(mine)
        m = torch.full(mine.shape[:-1], -math.inf, dtype=mine.dtype)
        l, acc = torch.zeros_like(m), mine.new_zeros(*m.shape, v.shape[-1])
        for j in range(0, n_k, block_k):
            s = (
                torch.einsum(
                    "...id,...jd->...ij", mine, _accurate(k[..., j : j + block_k, :])
                )
                * q.shape[-1] ** -0.5
            )
            if causal:
                allowed = torch.ones(s.shape[-2:], dtype=torch.bool).tril(
                    i + n_k - n_q - j
                )
                s = torch.where(allowed, s, -math.inf)
            m_new = torch.maximum(m, s.amax(dim=-1))
            base = torch.where(m_new == -math.inf, 0.0, m_new)
            p, shrink = torch.exp(s - base[..., None]), torch.exp(m - base)
            l = l * shrink + p.sum(dim=-1)
            acc = acc * shrink[..., None] + p @ _accurate(v[..., j : j + block_k, :])
            m = m_new
        outputs.append((acc / torch.where(l > 0, l, 1.0)[..., None]).to(q.dtype))
        sums.append(m + l.log())
    return torch.cat(outputs, dim=-2), torch.cat(sums, dim=-1)


@alternate("tiled_attention")
def keys_in_the_outer_loop(q, k, v, block_q, block_k, causal=False):
    _check_block(block_q, block_k)
    _check_shapes(q, k, v)
    n_q, n_k = q.shape[-2], k.shape[-2]
    dtype = torch.promote_types(q.dtype, torch.float32)
    m = torch.full(q.shape[:-1], -math.inf, dtype=dtype)
    l, acc = torch.zeros_like(m), torch.zeros(*m.shape, v.shape[-1], dtype=dtype)
    for j in range(0, n_k, block_k):
        keys, values = (
            k[..., j : j + block_k, :].to(dtype),
            v[..., j : j + block_k, :].to(dtype),
        )
        for i in range(0, n_q, block_q):
            at = slice(i, min(i + block_q, n_q))
            s = q[..., at, :].to(dtype) @ keys.mT / math.sqrt(q.shape[-1])
            if causal:
                future = (
                    torch.arange(j, j + s.shape[-1])[None]
                    > torch.arange(i, at.stop)[:, None] + n_k - n_q
                )
                s = s.masked_fill(future, -math.inf)
            top = s.amax(dim=-1).nan_to_num(neginf=0.0)
            p = torch.exp(s - top[..., None])
            tile = (s.amax(dim=-1), p.sum(dim=-1), p @ values)
            m[..., at], l[..., at], acc[..., at, :] = merge_stats(
                (m[..., at], l[..., at], acc[..., at, :]), tile
            )
    o = acc / l.masked_fill(l == 0, 1.0)[..., None]
    return o.to(q.dtype), m + torch.log(l)


@alternate("tiled_attention")
def normalized_partial_answers(q, k, v, block_q, block_k, causal=False):
    """Keeps (lse, o) of what has passed, o always divided, and mixes by the two log-sum-exps."""
    _check_block(block_q, block_k)
    _check_shapes(q, k, v)
    n_q, n_k = q.shape[-2], k.shape[-2]
    o = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype)
    lse = torch.empty(q.shape[:-1], dtype=torch.promote_types(q.dtype, torch.float32))
    for i in range(0, n_q, block_q):
        mine = _accurate(q[..., i : i + block_q, :])
        here = torch.full(mine.shape[:-1], -math.inf, dtype=mine.dtype)
        mixed = mine.new_zeros(*here.shape, v.shape[-1])
        for j in range(0, n_k, block_k):
            s = (
                mine
                @ _accurate(k[..., j : j + block_k, :]).transpose(-1, -2)
                / math.sqrt(q.shape[-1])
            )
            if causal:
                late = (
                    torch.arange(s.shape[-1]) + j
                    > torch.arange(s.shape[-2])[:, None] + i + n_k - n_q
                )
                s = s.masked_fill(late, -math.inf)
            both = torch.logaddexp(here, torch.logsumexp(s, dim=-1))
            base = both.masked_fill(both == -math.inf, 0.0)
            mixed = mixed * torch.exp(here - base)[..., None]
            mixed = mixed + torch.exp(s - base[..., None]) @ _accurate(
                v[..., j : j + block_k, :]
            )
            here = both
        o[..., i : i + block_q, :], lse[..., i : i + block_q] = mixed.to(q.dtype), here
    return o, lse


@alternate("tiled_attention")
def last_keys_first_and_none_in_vain(q, k, v, block_q, block_k, causal=False):
    if block_q <= 0 or block_k <= 0:
        raise ValueError(f"{block_q=} {block_k=}")
    if q.size(-1) != k.size(-1) or k.size(-2) != v.size(-2):
        raise ValueError(f"{q.shape} {k.shape} {v.shape}")
    n_q, n_k = q.size(-2), k.size(-2)
    work = torch.float64 if q.dtype == torch.float64 else torch.float32
    out = q.new_zeros(*q.shape[:-1], v.size(-1))
    lse = torch.full(q.shape[:-1], -torch.inf, dtype=work)
    for qs in range(0, n_q, block_q):
        qe = min(qs + block_q, n_q)
        state = None
        for ks in reversed(range(0, n_k, block_k)):
            ke = min(ks + block_k, n_k)
            if causal and ks > qe - 1 + n_k - n_q:
                continue
            s = torch.matmul(
                q[..., qs:qe, :].to(work), k[..., ks:ke, :].to(work).transpose(-1, -2)
            ).div(q.size(-1) ** 0.5)
            if causal and ke - 1 > qs + n_k - n_q:
                i = torch.arange(qs, qe).view(-1, 1)
                j = torch.arange(ks, ke).view(1, -1)
                s.masked_fill_(j - i > n_k - n_q, -torch.inf)
            m = s.amax(-1)
            p = (s - torch.nan_to_num(m, neginf=0.0).unsqueeze(-1)).exp_()
            new = (m, p.sum(-1), p.matmul(v[..., ks:ke, :].to(work)))
            state = new if state is None else merge_stats(state, new)
        if state is not None:
            m, l, o = state
            out[..., qs:qe, :] = (o / l.clamp(min=1e-30).unsqueeze(-1)).to(q.dtype)
            lse[..., qs:qe] = m + l.log()
    return out, lse


@alternate("tiled_attention")
def answers_mixed_by_sigmoids(q, k, v, block_q, block_k, causal=False):
    if block_q < 1 or block_k < 1:
        raise ValueError(f"{block_q}, {block_k}")
    if k.shape[-1] != q.shape[-1] or v.shape[-2] != k.shape[-2]:
        raise ValueError(f"{tuple(q.shape)}, {tuple(k.shape)}, {tuple(v.shape)}")
    n_q, n_k = q.shape[-2], k.shape[-2]
    ft = torch.promote_types(q.dtype, torch.float32)
    out = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype)
    all_lse = torch.zeros(*q.shape[:-1], dtype=ft)
    for i in range(0, n_q, block_q):
        qi = q[..., i : i + block_q, :].to(ft)
        o = torch.zeros(*qi.shape[:-1], v.shape[-1], dtype=ft)
        lse = torch.full((*qi.shape[:-1], 1), -torch.inf, dtype=ft)
        for j in range(0, n_k, block_k):
            s = (
                qi
                @ k[..., j : j + block_k, :].to(ft).transpose(-1, -2)
                * q.shape[-1] ** -0.5
            )
            if causal:
                keep = torch.ones(s.shape[-2:], dtype=torch.bool).tril(
                    n_k - n_q + i - j
                )
                s = s.masked_fill(~keep, -torch.inf)
            bl = torch.logsumexp(s, -1, keepdim=True)
            bo = torch.exp(s - bl.masked_fill(bl == -torch.inf, 0)) @ v[
                ..., j : j + block_k, :
            ].to(ft)
            w = torch.sigmoid(bl - lse).nan_to_num(0.0)
            o = o - w * (o - bo)
            lse = torch.logaddexp(lse, bl)
        out[..., i : i + block_q, :] = o.to(q.dtype)
        all_lse[..., i : i + block_q] = lse[..., 0]
    return out, all_lse


# --- tiled_attention_backward
# --------------------------------------------------------------------------------------


@alternate("tiled_attention_backward")
def keys_outside_queries_inside(q, k, v, o, lse, do, block_q, block_k, causal=False):
    n_q, n_k, scale = q.shape[-2], k.shape[-2], q.shape[-1] ** -0.5
    wide = lse.dtype
    delta = torch.einsum("...nd,...nd->...n", do.to(wide), o.to(wide))
    dq, dks, dvs = torch.zeros(q.shape, dtype=wide), [], []
    for j in range(0, n_k, block_k):
        keys, values = (
            k[..., j : j + block_k, :].to(wide),
            v[..., j : j + block_k, :].to(wide),
        )
        dk, dv = torch.zeros_like(keys), torch.zeros_like(values)
        for i in range(0, n_q, block_q):
            at = slice(i, i + block_q)
            mine, grad = q[..., at, :].to(wide) * scale, do[..., at, :].to(wide)
            s = mine @ keys.mT
            seen = torch.ones(s.shape[-2:], dtype=torch.bool)
            if causal:
                seen = seen.tril(i + n_k - n_q - j)
            p = torch.where(
                seen, torch.exp(torch.where(seen, s - lse[..., at, None], 0.0)), 0.0
            )
            ds = p * (grad @ values.mT - delta[..., at, None])
            dv = dv + p.mT @ grad
            dk = dk + ds.mT @ mine
            dq[..., at, :] += ds @ keys * scale
        dks.append(dk)
        dvs.append(dv)
    return (
        dq.to(q.dtype),
        torch.cat(dks, dim=-2).to(k.dtype),
        torch.cat(dvs, dim=-2).to(v.dtype),
    )


@alternate("tiled_attention_backward")
def by_autograd_of_one_tile(q, k, v, o, lse, do, block_q, block_k, causal=False):
    """Each tile of the surrogate sum(P (dO Vᵀ - D)), with P differentiated by autograd."""
    n_q, n_k = q.shape[-2], k.shape[-2]
    wide = lse.dtype
    grads = [torch.zeros(t.shape, dtype=wide) for t in (q, k, v)]
    for i in range(0, n_q, block_q):
        for j in range(0, n_k, block_k):
            at, by = slice(i, i + block_q), slice(j, j + block_k)
            with torch.enable_grad():
                mine, keys, values = (
                    t[..., part, :].detach().to(wide).requires_grad_()
                    for t, part in ((q, at), (k, by), (v, by))
                )
                s = mine @ keys.transpose(-2, -1) / math.sqrt(q.shape[-1])
                late = (
                    torch.arange(s.shape[-1]) + j
                    > torch.arange(s.shape[-2])[:, None] + i + n_k - n_q
                )
                if causal:
                    s = s.masked_fill(late, -math.inf)
                base = lse[..., at, None].masked_fill(
                    lse[..., at, None] == -math.inf, 0.0
                )
                p = torch.exp(s - base)
                grad = do[..., at, :].to(wide)
                delta = (grad * o[..., at, :].to(wide)).sum(dim=-1, keepdim=True)
                loss = (p * (grad @ values.transpose(-2, -1) - delta)).sum()
                found = torch.autograd.grad(loss, (mine, keys, values))
            for total, part, one in zip(grads, (at, by, by), found, strict=True):
                total[..., part, :] += one
    return tuple(total.to(t.dtype) for total, t in zip(grads, (q, k, v), strict=True))


@alternate("tiled_attention_backward")
def one_pass_for_queries_one_for_keys(
    q, k, v, o, lse, do, block_q, block_k, causal=False
):
    w = lse.dtype
    sc = q.shape[-1] ** -0.5
    nq, nk = q.shape[-2], k.shape[-2]
    lse = lse.clone()
    lse[lse == -torch.inf] = torch.inf

    def weights(i, j):
        s = (
            q[..., i : i + block_q, :].to(w) @ k[..., j : j + block_k, :].to(w).mT
        ) * sc
        if causal:
            s = s.masked_fill(
                ~torch.ones(s.shape[-2:], dtype=torch.bool).tril(nk - nq + i - j),
                -torch.inf,
            )
        p = torch.exp(s - lse[..., i : i + block_q, None])
        g = do[..., i : i + block_q, :].to(w)
        delta = (g * o[..., i : i + block_q, :].to(w)).sum(-1, True)
        return p, p * (g @ v[..., j : j + block_k, :].to(w).mT - delta), g

    dq = []
    for i in range(0, nq, block_q):
        dq.append(
            sum(
                weights(i, j)[1] @ k[..., j : j + block_k, :].to(w)
                for j in range(0, nk, block_k)
            )
            * sc
        )
    dk, dv = [], []
    for j in range(0, nk, block_k):
        a = b = 0
        for i in range(0, nq, block_q):
            p, ds, g = weights(i, j)
            a = a + ds.mT @ q[..., i : i + block_q, :].to(w) * sc
            b = b + p.mT @ g
        dk.append(a)
        dv.append(b)
    return (
        torch.cat(dq, -2).to(q.dtype),
        torch.cat(dk, -2).to(k.dtype),
        torch.cat(dv, -2).to(v.dtype),
    )


# --- hbm_traffic
# ---------------------------------------------------------------------------------------------------


@alternate("hbm_traffic")
def traffic_pass_by_pass(n, d, block_q, block_k, bytes_per_element):
    if any(size <= 0 for size in (n, d, block_q, block_k, bytes_per_element)):
        raise ValueError(
            f"no size may be below 1: {n}, {d}, {block_q}, {block_k}, {bytes_per_element}"
        )
    rows, matrix = n * d, n * n
    passes = [2 * rows + matrix, 2 * matrix, matrix + 2 * rows]
    tiled = 0
    for start in range(0, n, block_q):
        tiled += 2 * d * min(block_q, n - start) + 2 * rows
    return {
        "naive": sum(passes) * bytes_per_element,
        "tiled": tiled * bytes_per_element,
    }


@alternate("hbm_traffic")
def traffic_by_ceil(n, d, block_q, block_k, bytes_per_element):
    if min(n, d, block_q, block_k, bytes_per_element) < 1:
        raise ValueError(
            f"{(n, d, block_q, block_k, bytes_per_element)} has a size below 1"
        )
    unit = 2 * n * d * bytes_per_element
    return dict(
        tiled=unit * (1 + math.ceil(n / block_q)),
        naive=2 * unit + 4 * n**2 * bytes_per_element,
    )


# --- growth_of_costs
# -----------------------------------------------------------------------------------------------


@alternate("growth_of_costs")
def growth_by_numpy_like_logs(n, d, block_q, bytes_per_element):
    traffic = [
        hbm_traffic(size, d, block_q, block_q, bytes_per_element)["tiled"]
        for size in (n, 2 * n)
    ]
    return {
        "traffic": math.log(traffic[1] / traffic[0]) / math.log(2),
        "flops": 2.0,
        "storage": 1.0,
    }


@alternate("growth_of_costs")
def growth_by_tensors(n, d, block_q, bytes_per_element):
    sizes = torch.tensor([n, 2 * n], dtype=torch.float64)
    tiles = torch.ceil(sizes / block_q)
    costs = {
        "storage": sizes * (d * bytes_per_element + 4),
        "traffic": sizes * (1 + tiles),
        "flops": sizes**2,
    }
    return {name: torch.log2(cost[1] / cost[0]).item() for name, cost in costs.items()}


# --- add_bias
# ------------------------------------------------------------------------------------------------------


@triton.jit
def _row_by_row(
    x_ptr,
    b_ptr,
    y_ptr,
    N,
    stride_xm,
    stride_xn,
    stride_b,
    stride_ym,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    for start in range(0, N, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < N
        x = tl.load(x_ptr + row * stride_xm + columns * stride_xn, mask=inside)
        b = tl.load(b_ptr + columns * stride_b, mask=inside)
        tl.store(y_ptr + row * stride_ym + columns, x + b, mask=inside)


@alternate("add_bias")
def bias_row_by_row(x, b):
    if b.dim() != 1 or len(b) != x.shape[1]:
        raise ValueError(f"a bias of {list(b.shape)} for {x.shape[1]} columns")
    y = torch.zeros(x.shape, dtype=x.dtype, device=x.device)
    _row_by_row[(x.shape[0],)](
        x, b, y, x.shape[1], *x.stride(), b.stride(0), y.stride(0), BLOCK=128
    )
    return y


@triton.jit
def _flat(x_ptr, b_ptr, y_ptr, total, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < total, other=0.0)
    b = tl.load(b_ptr + at % N, mask=at < total, other=0.0)
    tl.store(y_ptr + at, x + b, mask=at < total)


@alternate("add_bias")
def bias_over_the_flat_matrix(x, b):
    if b.shape != x.shape[1:]:
        raise ValueError(f"x is {list(x.shape)} and b {list(b.shape)}")
    x, b = x.contiguous(), b.contiguous()
    y = torch.empty_like(x)
    _flat[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](
        x, b, y, x.numel(), x.shape[1], BLOCK=1024
    )
    return y


# --- softmax_rows
# --------------------------------------------------------------------------------------------------


@triton.jit
def _rows_together(
    x_ptr, y_ptr, M, N, stride_m, stride_n, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    x = tl.load(
        x_ptr + rows[:, None] * stride_m + columns[None, :] * stride_n,
        mask=inside,
        other=0.0,
    ).to(tl.float32)
    x = tl.where(columns[None, :] < N, x, float("-inf"))
    e = tl.exp2((x - tl.max(x, 1)[:, None]) * 1.4426950408889634)
    y = e * (1.0 / tl.sum(e, 1))[:, None]
    tl.store(
        y_ptr + rows[:, None] * N + columns[None, :],
        y.to(y_ptr.dtype.element_ty),
        mask=inside,
    )


@alternate("softmax_rows")
def four_rows_a_program(x):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    block = triton.next_power_of_2(x.shape[1])
    _rows_together[(triton.cdiv(x.shape[0], 4),)](
        x, y, *x.shape, *x.stride(), ROWS=4, BLOCK=block
    )
    return y


@triton.jit
def _library_row(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    x = tl.load(
        x_ptr + tl.program_id(0) * N + columns, mask=columns < N, other=-float("inf")
    ).to(tl.float32)
    tl.store(y_ptr + tl.program_id(0) * N + columns, tl.softmax(x), mask=columns < N)


@alternate("softmax_rows")
def softmax_of_triton_on_a_copy(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    _library_row[(len(x),)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


@triton.jit
def _row_after_row(
    output_ptr,
    input_ptr,
    in_row,
    in_col,
    out_row,
    n_rows,
    n_cols,
    BLOCK_SIZE: tl.constexpr,
):
    row_start = tl.program_id(0)
    row_step = tl.num_programs(0)
    for row_idx in tl.range(row_start, n_rows, row_step, num_stages=2):
        col_offsets = tl.arange(0, BLOCK_SIZE)
        mask = col_offsets < n_cols
        row = tl.load(
            input_ptr + row_idx * in_row + col_offsets * in_col,
            mask=mask,
            other=-float("inf"),
        )
        row = row.to(tl.float32)
        row_minus_max = row - tl.max(row, axis=0)
        numerator = tl.exp(row_minus_max)
        denominator = tl.sum(numerator, axis=0)
        tl.store(
            output_ptr + row_idx * out_row + col_offsets,
            numerator / denominator,
            mask=mask,
        )


@alternate("softmax_rows")
def four_programs_for_all_rows(x):
    n_rows, n_cols = x.shape
    y = torch.empty((n_rows, n_cols), device=x.device, dtype=x.dtype)
    _row_after_row[(min(4, n_rows), 1, 1)](
        y,
        x,
        x.stride(0),
        x.stride(1),
        y.stride(0),
        n_rows,
        n_cols,
        triton.next_power_of_2(n_cols),
    )
    return y


# --- triton_attention
# ----------------------------------------------------------------------------------------------


@triton.jit
def _padded_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, N_q, N_k, N_q_pad, N_k_pad, scale,
    D: tl.constexpr, BLOCK: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """Everything padded and contiguous, heads flattened: no masks on loads and stores, exp2
    throughout.
    """
    tile = tl.program_id(1)
    pair = tl.program_id(0)
    rows = tile * BLOCK + tl.arange(0, BLOCK)
    dims = tl.arange(0, D)
    q = tl.load(q_ptr + (pair * N_q_pad + rows)[:, None] * D + dims[None, :]).to(
        tl.float32
    ) * (scale * 1.44269504)
    m = tl.full((BLOCK,), -1e30, tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    acc = tl.zeros((BLOCK, D), tl.float32)
    last = N_k
    if CAUSAL:
        last = tl.minimum(N_k, (tile + 1) * BLOCK + N_k - N_q)
    for start in range(0, last, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        at = (pair * N_k_pad + columns)[:, None] * D + dims[None, :]
        k = tl.load(k_ptr + at).to(tl.float32)
        s = tl.dot(q, k.T, input_precision="ieee")
        gone = columns[None, :] >= N_k
        if CAUSAL:
            gone = gone | (columns[None, :] > rows[:, None] + N_k - N_q)
        s = tl.where(gone, float("-inf"), s)
        m_new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - m_new[:, None])
        total = total * tl.exp2(m - m_new) + tl.sum(p, 1)
        acc *= tl.exp2(m - m_new)[:, None]
        acc += tl.dot(p, tl.load(v_ptr + at).to(tl.float32), input_precision="ieee")
        m = m_new
    empty = total == 0
    o = tl.where(empty[:, None], 0.0, acc / tl.where(empty, 1.0, total)[:, None])
    tl.store(
        o_ptr + (pair * N_q_pad + rows)[:, None] * D + dims[None, :],
        o.to(o_ptr.dtype.element_ty),
    )
    lse = (m + tl.log2(tl.where(empty, 1.0, total))) * 0.6931471805599453
    tl.store(lse_ptr + pair * N_q_pad + rows, tl.where(empty, float("-inf"), lse))


@alternate("triton_attention")
def kernel_on_padded_copies(q, k, v, causal=False):
    _check_shapes(q, k, v)
    if k.shape != v.shape:
        raise ValueError(f"k is {list(k.shape)} and v {list(v.shape)}")
    b, h, n_q, d = q.shape
    n_k, block = k.shape[2], 16
    width = max(16, triton.next_power_of_2(d))
    up = [-n % block for n in (n_q, n_k)]
    q = torch.nn.functional.pad(q, (0, width - d, 0, up[0])).contiguous()
    k, v = (
        torch.nn.functional.pad(t, (0, width - d, 0, up[1])).contiguous()
        for t in (k, v)
    )
    o, lse = (
        torch.empty_like(q),
        torch.empty(q.shape[:3], dtype=torch.float32, device=q.device),
    )
    _padded_kernel[b * h, q.shape[2] // block](
        q,
        k,
        v,
        o,
        lse,
        n_q,
        n_k,
        q.shape[2],
        k.shape[2],
        d**-0.5,
        D=width,
        BLOCK=block,
        CAUSAL=causal,
    )
    return o[:, :, :n_q, :d], lse[:, :, :n_q]


@triton.jit
def _two_pass_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, q_strides, k_strides, v_strides, o_strides, H, N_q, N_k,
    scale,
    D: tl.constexpr, D_PAD: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
    CAUSAL: tl.constexpr,
):  # fmt: skip
    """Strides as tuples, K loaded transposed, the log-sum-exp carried instead of (m, l)."""
    head = tl.program_id(0) % H
    batch = tl.program_id(0) // H
    rows = tl.program_id(1) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    dims = tl.arange(0, D_PAD)
    lanes = dims < D
    q = tl.load(
        q_ptr + batch * q_strides[0] + head * q_strides[1] + rows[:, None] * q_strides[2]
        + dims[None, :] * q_strides[3],
        mask=(rows < N_q)[:, None] & lanes[None, :], other=0.0,
    )  # fmt: skip
    lse = tl.full((BLOCK_Q,), float("-inf"), tl.float32)
    acc = tl.zeros((BLOCK_Q, D_PAD), tl.float32)
    for block in range(tl.cdiv(N_k, BLOCK_K)):
        columns = block * BLOCK_K + tl.arange(0, BLOCK_K)
        real = columns < N_k
        k = tl.load(
            k_ptr + batch * k_strides[0] + head * k_strides[1] + columns[None, :] * k_strides[2]
            + dims[:, None] * k_strides[3], mask=real[None, :] & lanes[:, None], other=0.0,
        )  # fmt: skip
        v = tl.load(
            v_ptr + batch * v_strides[0] + head * v_strides[1] + columns[:, None] * v_strides[2]
            + dims[None, :] * v_strides[3], mask=real[:, None] & lanes[None, :], other=0.0,
        )  # fmt: skip
        s = tl.where(
            real[None, :], scale * tl.dot(q, k, input_precision="ieee"), float("-inf")
        )
        if CAUSAL:
            s = tl.where(
                columns[None, :] - rows[:, None] <= N_k - N_q, s, float("-inf")
            )
        top = tl.maximum(tl.max(s, 1), lse)
        top = tl.where(top == float("-inf"), 0.0, top)
        new = top + tl.log(tl.exp(lse - top) + tl.sum(tl.exp(s - top[:, None]), 1))
        safe = tl.where(new == float("-inf"), 0.0, new)
        p = tl.exp(s - safe[:, None])
        acc = acc * tl.exp(lse - safe)[:, None] + tl.dot(
            p.to(v.dtype), v, input_precision="ieee"
        ).to(tl.float32)
        lse = new
    o_at = (
        o_ptr
        + batch * o_strides[0]
        + head * o_strides[1]
        + rows[:, None] * o_strides[2]
        + dims[None, :] * o_strides[3]
    )
    tl.store(
        o_at,
        acc.to(o_ptr.dtype.element_ty),
        mask=(rows < N_q)[:, None] & lanes[None, :],
    )
    tl.store(lse_ptr + (batch * H + head) * N_q + rows, lse, mask=rows < N_q)


@alternate("triton_attention")
def kernel_that_carries_the_log_sum_exp(q, k, v, causal=False):
    _check_shapes(q, k, v)
    if k.shape != v.shape:
        raise ValueError(f"k is {list(k.shape)} and v {list(v.shape)}")
    b, h, n_q, d = q.shape
    o, lse = torch.zeros_like(q), q.new_empty((b, h, n_q), dtype=torch.float32)
    block_q = 16 if n_q <= 16 else 32
    _two_pass_kernel[(b * h, triton.cdiv(n_q, block_q))](
        q, k, v, o, lse, q.stride(), k.stride(), v.stride(), o.stride(), h, n_q, k.shape[2],
        d**-0.5,
        D=d, D_PAD=max(16, triton.next_power_of_2(d)), BLOCK_Q=block_q, BLOCK_K=32, CAUSAL=causal,
    )  # fmt: skip
    return o, lse


@triton.jit
def _some_key_tiles(
    acc,
    l_i,
    m_i,
    q,
    K,
    V,
    skn,
    skd,
    svn,
    svd,
    lo,
    hi,
    offs_m,
    offs_d,
    shift,
    N,
    D: tl.constexpr,
    BN: tl.constexpr,
    MASK: tl.constexpr,
):
    for start in range(lo, hi, BN):
        n = start + tl.arange(0, BN)
        inb = n < N
        k = tl.load(
            K + n[None, :] * skn + offs_d[:, None] * skd,
            mask=inb[None, :] & (offs_d < D)[:, None],
            other=0.0,
        ).to(tl.float32)
        s = tl.dot(q, k, input_precision="ieee")
        s = tl.where(inb[None, :], s, float("-inf"))
        if MASK:
            s = tl.where(offs_m[:, None] + shift >= n[None, :], s, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(s, 1))
        base = tl.where(m_new == float("-inf"), 0.0, m_new)
        p = tl.exp(s - base[:, None])
        a = tl.exp(m_i - base)
        v = tl.load(
            V + n[:, None] * svn + offs_d[None, :] * svd,
            mask=inb[:, None] & (offs_d < D)[None, :],
            other=0.0,
        )
        acc = acc * a[:, None] + tl.dot(p, v.to(tl.float32), input_precision="ieee")
        l_i = l_i * a + tl.sum(p, 1)
        m_i = m_new
    return acc, l_i, m_i


@triton.jit
def _full_tiles_first(
    Q,
    K,
    V,
    O,
    L,
    sqb,
    sqh,
    sqn,
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
    son,
    sod,
    M,
    N,
    scale,
    D: tl.constexpr,
    DP: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    m0 = tl.program_id(0) * BM
    h = tl.program_id(1)
    b = tl.program_id(2)
    H = tl.num_programs(1)
    offs_m = m0 + tl.arange(0, BM)
    offs_d = tl.arange(0, DP)
    ok = (offs_m < M)[:, None] & (offs_d < D)[None, :]
    q = tl.load(
        Q + b * sqb + h * sqh + offs_m[:, None] * sqn + offs_d[None, :] * sqd,
        mask=ok,
        other=0.0,
    ).to(tl.float32)
    q = q * scale
    Kp = K + b * skb + h * skh
    Vp = V + b * svb + h * svh
    acc = tl.zeros([BM, DP], tl.float32)
    l_i = tl.zeros([BM], tl.float32)
    m_i = tl.full([BM], float("-inf"), tl.float32)
    shift = N - M
    if CAUSAL:
        full = tl.maximum(0, tl.minimum(N, m0 + shift + 1)) // BN * BN
        last = tl.maximum(0, tl.minimum(N, m0 + BM + shift))
        acc, l_i, m_i = _some_key_tiles(
            acc,
            l_i,
            m_i,
            q,
            Kp,
            Vp,
            skn,
            skd,
            svn,
            svd,
            0,
            full,
            offs_m,
            offs_d,
            shift,
            N,
            D,
            BN,
            False,
        )
        acc, l_i, m_i = _some_key_tiles(
            acc,
            l_i,
            m_i,
            q,
            Kp,
            Vp,
            skn,
            skd,
            svn,
            svd,
            full,
            last,
            offs_m,
            offs_d,
            shift,
            N,
            D,
            BN,
            True,
        )
    else:
        acc, l_i, m_i = _some_key_tiles(
            acc,
            l_i,
            m_i,
            q,
            Kp,
            Vp,
            skn,
            skd,
            svn,
            svd,
            0,
            N,
            offs_m,
            offs_d,
            shift,
            N,
            D,
            BN,
            False,
        )
    acc = acc / tl.where(l_i == 0.0, 1.0, l_i)[:, None]
    tl.store(
        O + b * sob + h * soh + offs_m[:, None] * son + offs_d[None, :] * sod,
        acc.to(O.dtype.element_ty),
        mask=ok,
    )
    tl.store(L + (b * H + h) * M + offs_m, m_i + tl.log(l_i), mask=offs_m < M)


@alternate("triton_attention")
def kernel_that_masks_the_diagonal_only(q, k, v, causal=False):
    d = q.shape[-1]
    if not d == k.shape[-1] == v.shape[-1]:
        raise ValueError(f"{d}, {k.shape[-1]} and {v.shape[-1]}")
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(f"{k.shape[-2]} keys, {v.shape[-2]} values")
    o = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
    _full_tiles_first[(triton.cdiv(q.shape[2], 32), q.shape[1], q.shape[0])](
        q,
        k,
        v,
        o,
        lse,
        *q.stride(),
        *k.stride(),
        *v.stride(),
        *o.stride(),
        q.shape[2],
        k.shape[2],
        d**-0.5,
        D=d,
        DP=max(16, triton.next_power_of_2(d)),
        BM=32,
        BN=16,
        CAUSAL=causal,
    )
    return o, lse

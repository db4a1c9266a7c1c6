"""Right answers written differently from the answer key."""

import math

import torch

from autograder.suite import alternate

# --- simple_self_attention
# ---------------------------------------------------------------------------------------


@alternate("simple_self_attention")
def simple_with_an_additive_triangle(x):
    wide = x.to(torch.float64)
    n = x.size(-2)
    triangle = torch.full((n, n), -torch.inf, dtype=torch.float64).triu(1)
    return (torch.softmax(wide @ wide.mT + triangle, dim=-1) @ wide).to(x.dtype)


@alternate("simple_self_attention")
def simple_with_einsum(x):
    wide = x.float() if x.dtype == torch.float16 or x.dtype == torch.bfloat16 else x
    scores = torch.einsum("...id,...jd->...ij", wide, wide)
    i = torch.arange(x.shape[-2])
    scores = torch.where(i[:, None] >= i[None, :], scores, -torch.inf)
    weights = torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))
    return torch.einsum("...ij,...jd->...id", weights, wide).type_as(x)


@alternate("simple_self_attention")
def simple_by_exponentials_of_the_lower_triangle(x):
    wide = x.float() if x.dtype != torch.float64 else x
    keep = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool).tril()
    scores = torch.matmul(wide, wide.transpose(-2, -1))
    peak = (
        scores.masked_fill(~keep, torch.finfo(scores.dtype).min)
        .max(dim=-1, keepdim=True)
        .values
    )
    e = torch.exp((scores - peak).masked_fill(~keep, -1e4)) * keep
    return torch.matmul(e / e.sum(-1, keepdim=True), wide).to(x.dtype)


# --- self_attention
# ----------------------------------------------------------------------------------------------


def _refuse(x_q, x_kv, w_q, w_k, w_v):
    sizes = (
        (x_q.size(-1), w_q.size(0)),
        (x_kv.size(-1), w_k.size(0)),
        (x_kv.size(-1), w_v.size(0)),
        (w_q.size(1), w_k.size(1)),
    )
    for left, right in sizes:
        if left != right:
            raise ValueError(f"{left} != {right}")


@alternate("self_attention")
def self_attention_as_cross_attention(x, w_q, w_k, w_v):
    _refuse(x, x, w_q, w_k, w_v)
    return cross_attention(x, x, w_q, w_k, w_v)


@alternate("self_attention")
def self_attention_with_einsum_and_torch_softmax(x, w_q, w_k, w_v):
    _refuse(x, x, w_q, w_k, w_v)
    q, k, v = (torch.einsum("...nd,de->...ne", x, w) for w in (w_q, w_k, w_v))
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    scores = (
        torch.einsum("...ie,...je->...ij", q.to(wide), k.to(wide))
        * w_q.shape[1] ** -0.5
    )
    return torch.einsum("...ij,...je->...ie", scores.softmax(-1), v.to(wide)).to(
        x.dtype
    )


@alternate("self_attention")
def self_attention_query_by_query(x, w_q, w_k, w_v):
    _refuse(x, x, w_q, w_k, w_v)
    wide = x.float() if x.dtype == torch.float16 else x
    q, k, v = (wide @ w.to(wide.dtype) for w in (w_q, w_k, w_v))
    rows = []
    for i in range(x.shape[-2]):
        scores = (k * q[..., i : i + 1, :]).sum(-1) / math.sqrt(q.shape[-1])
        rows.append((softmax(scores).unsqueeze(-1) * v).sum(-2))
    return torch.stack(rows, -2).to(x.dtype)


@alternate("self_attention")
def self_attention_fused(x, w_q, w_k, w_v):
    _refuse(x, x, w_q, w_k, w_v)
    d = w_q.shape[1]
    q, k, v = (x @ torch.cat([w_q / d**0.25, w_k / d**0.25, w_v], dim=1)).split(
        [d, d, w_v.shape[1]], dim=-1
    )
    return (softmax(widen(q) @ widen(k).mT) @ widen(v)).to(x.dtype)


# --- cross_attention
# ---------------------------------------------------------------------------------------------


@alternate("cross_attention")
def cross_attention_with_einsum(x_q, x_kv, w_q, w_k, w_v):
    _refuse(x_q, x_kv, w_q, w_k, w_v)
    wide = torch.float64 if x_q.dtype == torch.float64 else torch.float32
    x_q, x_kv, w_q, w_k, w_v, dtype = (
        *(t.to(wide) for t in (x_q, x_kv, w_q, w_k, w_v)),
        x_q.dtype,
    )
    scores = torch.einsum("...id,de,fe,...jf->...ij", x_q, w_q, w_k, x_kv) / math.sqrt(
        w_q.shape[1]
    )
    return torch.einsum("...ij,...jf,fe->...ie", scores.softmax(dim=-1), x_kv, w_v).to(
        dtype
    )


@alternate("cross_attention")
def cross_attention_that_mixes_before_it_projects(x_q, x_kv, w_q, w_k, w_v):
    _refuse(x_q, x_kv, w_q, w_k, w_v)
    mixed = scaled_dot_product_attention(x_q @ w_q, x_kv @ w_k, x_kv)
    return mixed @ w_v


@alternate("cross_attention")
def cross_attention_through_masked_attention(x_q, x_kv, w_q, w_k, w_v):
    _refuse(x_q, x_kv, w_q, w_k, w_v)
    return masked_attention(x_q @ w_q, x_kv @ w_k, x_kv @ w_v)


@alternate("cross_attention")
def cross_attention_one_query_at_a_time(x_q, x_kv, w_q, w_k, w_v):
    _refuse(x_q, x_kv, w_q, w_k, w_v)
    k, v = x_kv @ w_k, x_kv @ w_v
    rows = [
        scaled_dot_product_attention(x_q[..., i : i + 1, :] @ w_q, k, v)
        for i in range(x_q.shape[-2])
    ]
    return torch.cat(rows, dim=-2)


# --- causal_mask
# -------------------------------------------------------------------------------------------------


def _sizes(n_q, n_k):
    if n_k is None:
        n_k = n_q
    if min(n_q, n_k) < 0:
        raise ValueError(f"sizes {n_q} and {n_k}")
    return n_q, n_k


@alternate("causal_mask")
def causal_by_tril(n_q, n_k=None):
    n_q, n_k = _sizes(n_q, n_k)
    return torch.ones(n_q, n_k, dtype=torch.bool).tril(diagonal=n_k - n_q)


@alternate("causal_mask")
def causal_by_loops(n_q, n_k=None):
    n_q, n_k = _sizes(n_q, n_k)
    mask = torch.zeros(n_q, n_k, dtype=torch.bool)
    for i in range(n_q):
        mask[i, : max(0, i + 1 + n_k - n_q)] = True
    return mask


@alternate("causal_mask")
def causal_as_the_last_rows_of_a_square(n_q, n_k=None):
    n_q, n_k = _sizes(n_q, n_k)
    n = max(n_q, n_k)
    return ~torch.triu(torch.ones(n, n), diagonal=1).bool()[n - n_q :, n - n_k :]


@alternate("causal_mask")
def causal_counted_from_the_end(n_q, n_k=None):
    n_q, n_k = _sizes(n_q, n_k)
    return torch.arange(n_k, 0, -1)[None, :] >= torch.arange(n_q, 0, -1)[:, None]


@alternate("causal_mask")
def causal_naming_the_negative_size_alone(n_q, n_k=None):
    for size in (n_q, n_q if n_k is None else n_k):
        if size < 0:
            raise ValueError(f"{size} is negative")
    columns = n_q if n_k is None else n_k
    return torch.arange(columns) - columns <= torch.arange(n_q).unsqueeze(1) - n_q


# --- padding_mask
# ------------------------------------------------------------------------------------------------


@alternate("padding_mask")
def padding_by_a_loop(lengths, n):
    if bool((lengths > n).any()) or bool((lengths < 0).any()):
        raise ValueError(f"lengths {lengths.tolist()} do not fit into {n}")
    mask = torch.zeros(len(lengths), 1, n, dtype=torch.bool)
    for b, length in enumerate(lengths):
        mask[b, 0, : int(length)] = True
    return mask


@alternate("padding_mask")
def padding_by_rows_of_a_triangle(lengths, n):
    if len(lengths) and (lengths.max() > n or lengths.min() < 0):
        raise ValueError(
            f"lengths from {lengths.min()} to {lengths.max()} do not fit into {n}"
        )
    return torch.ones(n + 1, n).tril(-1).bool()[lengths].unsqueeze(1)


@alternate("padding_mask")
def padding_by_lists(lengths, n):
    whole = [int(length) for length in lengths]
    if any(length not in range(n + 1) for length in whole):
        raise ValueError(f"{whole} do not all fit into {n}")
    return torch.tensor(
        [[[True] * length + [False] * (n - length)] for length in whole]
    )


# --- combine_masks
# -----------------------------------------------------------------------------------------------


def _together(masks):
    if len(masks) == 0:
        raise ValueError("at least one mask is needed")
    try:
        return torch.broadcast_tensors(*masks)
    except RuntimeError as error:
        raise ValueError(f"{[tuple(mask.shape) for mask in masks]}: {error}") from error


@alternate("combine_masks")
def combined_by_stacking(*masks):
    return torch.stack(_together(masks)).all(dim=0)


@alternate("combine_masks")
def combined_by_a_product(*masks):
    product = 1
    for mask in _together(masks):
        product = product * mask.int()
    return product.bool()


@alternate("combine_masks")
def combined_by_what_is_forbidden(*masks):
    forbidden = torch.zeros_like(_together(masks)[0])
    for mask in masks:
        forbidden = torch.logical_or(forbidden, mask.logical_not())
    return ~forbidden


@alternate("combine_masks")
def combined_recursively(*masks):
    _together(masks)
    return (
        masks[0] if len(masks) == 1 else masks[0].logical_and(combine_masks(*masks[1:]))
    )


# --- masked_softmax
# ----------------------------------------------------------------------------------------------


def _fits(scores, mask):
    try:
        return torch.broadcast_to(mask, scores.shape)
    except RuntimeError:
        raise ValueError(
            f"mask {tuple(mask.shape)}, scores {tuple(scores.shape)}"
        ) from None


@alternate("masked_softmax")
def by_the_softmax_of_the_first_assignment(scores, mask):
    return softmax(scores.masked_fill(~_fits(scores, mask), -math.inf))


@alternate("masked_softmax")
def by_the_smallest_number_and_zeros_afterwards(scores, mask):
    mask = _fits(scores, mask)
    wide = scores if scores.dtype == torch.float64 else scores.float()
    weights = torch.softmax(
        wide.masked_fill(~mask, torch.finfo(wide.dtype).min), dim=-1
    )
    return weights.masked_fill(~mask, 0.0).to(scores.dtype)


@alternate("masked_softmax")
def by_an_additive_mask_and_a_safe_row(scores, mask):
    mask = _fits(scores, mask)
    alive = mask.any(dim=-1, keepdim=True)
    wide = torch.where(mask, scores.double(), 0.0)
    # an empty row has scores of 0
    bias = torch.zeros_like(wide).masked_fill(~mask & alive, -math.inf)
    return ((wide + bias).softmax(dim=-1) * alive).to(scores.dtype)


@alternate("masked_softmax")
def by_filling_in_and_replacing_empty_rows(scores, mask):
    mask = _fits(scores, mask)
    # masked_fill stops the gradient
    weights = torch.softmax(widen(scores).masked_fill(~mask, -math.inf), dim=-1)
    return torch.where(mask.any(dim=-1, keepdim=True), weights, 0.0).to(scores.dtype)


@alternate("masked_softmax")
def by_logsumexp(scores, mask):
    mask = _fits(scores, mask)
    alive = mask.any(-1, keepdim=True)
    nothing = torch.where(alive, -math.inf, 0.0).to(widen(scores).dtype)
    wide = torch.where(mask, widen(scores), nothing)
    weights = torch.exp(wide - wide.logsumexp(-1, keepdim=True))
    return torch.where(alive, weights, torch.zeros_like(weights)).to(scores.dtype)


@alternate("masked_softmax")
def row_by_row_over_the_allowed_keys(scores, mask):
    mask = _fits(scores, mask).reshape(-1, scores.shape[-1])
    rows = []
    for row, allowed in zip(scores.reshape(-1, scores.shape[-1]), mask, strict=True):
        chosen = torch.softmax(widen(row[allowed]), dim=0)
        rows.append(
            torch.zeros_like(row, dtype=chosen.dtype).masked_scatter(allowed, chosen)
        )
    return torch.stack(rows).reshape(scores.shape).to(scores.dtype)


# --- masked_attention
# --------------------------------------------------------------------------------------------


def _refuse_qkv(q, k, v):
    if q.size(-1) != k.size(-1):
        raise ValueError(f"d: {q.size(-1)} and {k.size(-1)}")
    if k.size(-2) != v.size(-2):
        raise ValueError(f"N_k: {k.size(-2)} and {v.size(-2)}")


@alternate("masked_attention")
def masked_attention_with_einsum(q, k, v, mask=None):
    _refuse_qkv(q, k, v)
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    scores = torch.einsum(
        "...id,...jd->...ij", q.to(wide) * q.shape[-1] ** -0.5, k.to(wide)
    )
    weights = softmax(scores) if mask is None else masked_softmax(scores, mask)
    return torch.einsum("...ij,...jd->...id", weights, v.to(wide)).to(q.dtype)


@alternate("masked_attention")
def masked_attention_that_divides_at_the_end(q, k, v, mask=None):
    _refuse_qkv(q, k, v)
    scores = widen(q) @ widen(k).mT / math.sqrt(q.size(-1))
    keep = (
        torch.ones_like(scores, dtype=torch.bool)
        if mask is None
        else _fits(scores, mask)
    )
    peak = scores.masked_fill(~keep, torch.finfo(scores.dtype).min).amax(
        -1, keepdim=True
    )
    e = torch.exp((scores - peak).masked_fill(~keep, -math.inf))
    total = e.sum(-1, keepdim=True)
    return ((e @ widen(v)) / torch.where(total > 0, total, 1.0)).to(q.dtype)


@alternate("masked_attention")
def masked_attention_that_goes_back_to_plain_attention(q, k, v, mask=None):
    if mask is None:
        _refuse_qkv(q, k, v)
        return scaled_dot_product_attention(q, k, v)
    _refuse_qkv(q, k, v)
    half = q / q.shape[-1] ** 0.25, k / q.shape[-1] ** 0.25
    return (masked_softmax(widen(half[0]) @ widen(half[1]).mT, mask) @ widen(v)).to(
        q.dtype
    )


@alternate("masked_attention")
def masked_attention_one_query_at_a_time(q, k, v, mask=None):
    _refuse_qkv(q, k, v)
    scores = widen(q) @ widen(k).mT / math.sqrt(q.size(-1))
    mask = (
        torch.ones_like(scores, dtype=torch.bool)
        if mask is None
        else _fits(scores, mask)
    )
    rows = [
        masked_softmax(scores[..., i, :], mask[..., i, :]).unsqueeze(-2) @ widen(v)
        for i in range(q.size(-2))
    ]
    return torch.cat(rows, dim=-2).to(q.dtype)


# --- sinusoidal_positions
# ----------------------------------------------------------------------------------------


def _refuse_sizes(n, d):
    if n < 0:
        raise ValueError(f"{n} positions")
    if d <= 0:
        raise ValueError(f"{d} features")


@alternate("sinusoidal_positions")
def positions_number_by_number(n, d):
    _refuse_sizes(n, d)
    rows = torch.zeros(n, d)
    for p in range(n):
        for column in range(d):
            angle = p / 10000 ** ((column - column % 2) / d)
            rows[p, column] = math.cos(angle) if column % 2 else math.sin(angle)
    return rows


@alternate("sinusoidal_positions")
def positions_in_float32_with_exp(n, d):
    _refuse_sizes(n, d)
    speeds = torch.exp(torch.arange(0, d, 2).float() * (-math.log(10000.0) / d))
    angles = torch.arange(n).float()[:, None] * speeds
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :d]


@alternate("sinusoidal_positions")
def positions_with_a_quarter_turn(n, d):
    _refuse_sizes(n, d)
    columns = torch.arange(d)
    angles = torch.outer(
        torch.arange(n).double(), 10000.0 ** (-2.0 * (columns // 2) / d).double()
    )
    return torch.sin(angles + math.pi / 2 * (columns % 2)).float()


@alternate("sinusoidal_positions")
def positions_with_complex_numbers(n, d):
    _refuse_sizes(n, d)
    speeds = torch.tensor(
        [10000 ** (-even / d) for even in range(0, d, 2)], dtype=torch.float64
    )
    turned = torch.polar(
        torch.ones(n, len(speeds), dtype=torch.float64),
        torch.arange(n)[:, None] * speeds,
    )
    return (
        torch.view_as_real(turned).flip(-1).reshape(n, 2 * len(speeds))[:, :d].float()
    )


# --- is_permutation_equivariant
# ----------------------------------------------------------------------------------


def _refuse_perm(x, perm):
    if len(perm) != len(x):
        raise ValueError(f"{len(perm)} indices for {len(x)} tokens")


@alternate("is_permutation_equivariant")
def by_undoing_the_shuffle(fn, x, perm):
    _refuse_perm(x, perm)
    there_and_back = fn(x[perm])[torch.argsort(perm)]
    straight = fn(x)
    return (there_and_back - straight).norm().item() <= 1e-5 * straight.norm().item()


@alternate("is_permutation_equivariant")
def by_allclose_on_scaled_outputs(fn, x, perm):
    _refuse_perm(x, perm)
    left, right = fn(x.index_select(0, perm)), fn(x).index_select(0, perm)
    size = max(left.abs().max().item(), right.abs().max().item()) or 1.0
    return torch.allclose(left / size, right / size, rtol=0, atol=1e-5)


@alternate("is_permutation_equivariant")
def by_a_permutation_matrix(fn, x, perm):
    _refuse_perm(x, perm)
    matrix = torch.eye(len(perm), dtype=x.dtype)[perm]
    left, right = fn(matrix @ x), matrix @ fn(x)
    return not bool(((left - right).abs() > 1e-7 * right.abs().max()).any())


@alternate("is_permutation_equivariant")
def by_comparing_row_after_row(fn, x, perm):
    _refuse_perm(x, perm)
    plain, shuffled = fn(x), fn(x[perm])
    size = float(plain.abs().max())
    for new, old in enumerate(perm.tolist()):
        if float((shuffled[new] - plain[old]).abs().max()) > 1e-4 * size:
            return False
    return True


# --- first_leak
# --------------------------------------------------------------------------------------------------


@alternate("first_leak")
def token_by_token_with_several_draws(fn, x):
    random = torch.Generator().manual_seed(12)
    before, leaks = fn(x), []
    for j in range(1, len(x)):
        for _ in range(3):
            changed = x.clone()
            changed[j] = torch.randn(x.shape[1], generator=random, dtype=x.dtype)
            after = fn(changed)
            size = torch.maximum(after.abs(), before.abs()).amax(dim=1)
            moved = ((after - before).abs().amax(dim=1) > 1e-5 * size)[:j]
            leaks += moved.nonzero().flatten().tolist()
    return min(leaks) if leaks else None


@alternate("first_leak")
def from_the_end_to_the_beginning(fn, x):
    found = None
    for i in reversed(range(len(x) - 1)):
        one, two = x.clone(), x.clone()
        one[i + 1 :] = (
            torch.rand(
                x[i + 1 :].shape,
                generator=torch.Generator().manual_seed(i),
                dtype=x.dtype,
            )
            + 1.0
        )
        two[i + 1 :] = 3.0 * torch.cos(
            torch.arange(x[i + 1 :].numel(), dtype=x.dtype) ** 2
        ).reshape(x[i + 1 :].shape)
        left, right = fn(one)[i], fn(two)[i]
        if not torch.allclose(
            left, right, rtol=1e-6, atol=1e-6 * float(right.abs().max())
        ):
            found = i
    return found


@alternate("first_leak")
def with_relative_norms_and_larger_changes(fn, x):
    base = fn(x)
    torch.manual_seed(3)
    for row in range(x.shape[0]):
        future = torch.arange(x.shape[0])[:, None] > row
        for scale in (1.0, 5.0):
            moved = (
                fn(torch.where(future, scale * torch.randn_like(x), x))[row] - base[row]
            )
            if moved.norm() > 1e-7 * base[row].norm():
                return row
    return None


@alternate("first_leak")
def in_two_halves(fn, x):
    noise = torch.randn(
        x.shape, generator=torch.Generator().manual_seed(8), dtype=x.dtype
    )
    n = len(x)
    tries = [
        fn(torch.where((torch.arange(n) > i)[:, None], noise, x)) for i in range(n)
    ]
    rows = torch.stack([tries[i][i] for i in range(n)])
    plain = fn(x)
    size = torch.maximum(rows.abs(), plain.abs()).max(dim=1).values
    leaky = (rows - plain).abs().max(dim=1).values > 1e-6 * size
    return int(leaky.int().argmax()) if bool(leaky.any()) else None


# --- product_mask_evidence
# ---------------------------------------------------------------------------------------


@alternate("product_mask_evidence")
def evidence_from_random_scores(n):
    scores = torch.rand(n, n, generator=torch.Generator().manual_seed(n)) + 0.1
    return scores, -scores, scores * torch.eye(n)


@alternate("product_mask_evidence")
def evidence_in_one_place(n):
    scores = torch.full((n, n), 2.0, dtype=torch.float64)
    negative, zero = scores.clone(), scores.clone()
    negative[0, 1], zero[0, n - 1] = -3.0, 0.0
    return scores, negative, zero


@alternate("product_mask_evidence")
def evidence_with_any_past(n):
    past = torch.arange(n * n, dtype=torch.float32).reshape(n, n).sub(n).tril()
    future = torch.ones(n, n).triu(1)
    return past + 4 * future, past - future, past


@alternate("masked_softmax")
def row_by_row_over_the_allowed_scores(scores, mask):
    if mask.shape[-1] not in (1, scores.shape[-1]):
        raise ValueError(f"{scores.shape[-1]} keys but the mask has {mask.shape[-1]}")
    n = scores.shape[-1]
    rows = []
    for s, keep in zip(
        scores.reshape(-1, n),
        mask.broadcast_to(scores.shape).reshape(-1, n),
        strict=True,
    ):
        out = torch.zeros_like(s)
        if keep.any():
            wide = (
                s[keep].float()
                if s.dtype in (torch.float16, torch.bfloat16)
                else s[keep]
            )
            out = out.masked_scatter(keep, torch.softmax(wide, 0).to(s.dtype))
        rows.append(out)
    return torch.stack(rows).reshape(scores.shape)


@alternate("sinusoidal_positions")
def number_by_number(n, d):
    if n < 0 or d < 1:
        raise ValueError(f"n={n}, d={d}")
    pe = torch.zeros(n, d)
    for pos in range(n):
        for col in range(d):
            angle = pos / 10000 ** (2 * (col // 2) / d)
            pe[pos, col] = math.sin(angle) if col % 2 == 0 else math.cos(angle)
    return pe


@alternate("combine_masks")
def stacks_all_of_one_shape(*masks):
    if not masks:
        raise ValueError("no masks given")
    try:
        same = torch.broadcast_tensors(*masks)
    except RuntimeError as e:
        raise ValueError(f"cannot broadcast {[tuple(m.shape) for m in masks]}") from e
    return torch.stack(same).all(0)

"""Answers in students' own words, each with the mistakes that are true of it: what diagnosis is
measured by.
"""

import math

import torch
import torch.nn.functional as F

from autograder.suite import alternate, sample

# ── simple_self_attention, self_attention, cross_attention
# ───────────────────────────────────────────────────


@sample("simple_self_attention", deserves="keeps_the_upper_triangle")
def mask_of_the_wrong_half(x):
    N = x.size(-2)
    sim = torch.einsum(
        "...id,...jd->...ij", x.float() if x.dtype == torch.half else x, widen(x)
    )
    hide = torch.zeros(N, N, dtype=torch.bool)
    for row in range(N):
        for col in range(N):
            hide[row, col] = col < row
    sim[..., hide] = float("-inf")
    return torch.matmul(F.softmax(sim, dim=-1), widen(x)).to(x.dtype)


@sample(
    "simple_self_attention",
    deserves=("divides_by_root_d", "half_precision_comes_back_as_float32"),
)
def the_formula_of_the_paper(x):
    d = x.shape[-1]
    keep = torch.tril(torch.ones(x.shape[-2], x.shape[-2]))
    att = widen(x) @ widen(x).mT * d**-0.5
    att = att.masked_fill(keep == 0, float("-inf"))
    return att.softmax(-1) @ widen(x)


@sample(
    "self_attention",
    deserves=("no_scale", "leaves_the_sizes_unchecked", "scores_in_half_precision"),
)
def three_projections_and_a_softmax(x, w_q, w_k, w_v):
    Q, K, V = torch.matmul(x, w_q), torch.matmul(x, w_k), torch.matmul(x, w_v)
    return F.softmax(Q @ K.transpose(-2, -1), dim=-1) @ V


@sample("self_attention", deserves=("causal_from_habit", "leaves_the_sizes_unchecked"))
def decoder_habit(x, w_q, w_k, w_v):
    q, k, v = (widen(x) @ widen(w) for w in (w_q, w_k, w_v))
    s = torch.einsum("...qd,...kd->...qk", q, k) / k.size(-1) ** 0.5
    s = s + torch.full((s.size(-2), s.size(-1)), -torch.inf).triu(1)
    return torch.einsum("...qk,...kd->...qd", torch.softmax(s, -1), v).to(x.dtype)


@sample(
    "cross_attention",
    deserves=(
        "values_from_the_asking_sequence",
        "leaves_the_sizes_of_both_inputs_unchecked",
    ),
)
def decoder_values(x_q, x_kv, w_q, w_k, w_v):
    query = x_q @ w_q
    key = x_kv @ w_k
    value = x_q @ w_v
    scores = query @ key.mT / math.sqrt(query.size(-1))
    return F.softmax(scores, dim=-1) @ value


# ── masks ────────────────────────────────────────────────────────────────────────────────────────────────────


@sample("causal_mask", deserves="true_means_drop")
def pytorch_transformer_mask(n_q, n_k=None):
    if n_k is None:
        n_k = n_q
    if min(n_q, n_k) < 0:
        raise ValueError(f"negative: {n_q}, {n_k}")
    return torch.full((n_q, n_k), True).triu(diagonal=n_k - n_q + 1)


@sample("causal_mask", deserves=("true_means_drop", "leaves_negative_sizes_to_torch"))
def inverted_and_unchecked(n_q, n_k=None):
    cols = n_q if n_k is None else n_k
    rows = torch.arange(n_q)[:, None]
    return torch.arange(cols)[None, :] > rows + (cols - n_q)


@sample(
    "causal_mask",
    deserves=("aligned_to_the_top_left", "leaves_negative_sizes_to_torch"),
)
def loops_over_both_sizes(n_q, n_k=None):
    n_k = n_k if n_k is not None else n_q
    m = torch.zeros(n_q, n_k, dtype=torch.bool)
    for i in range(n_q):
        for j in range(n_k):
            if i >= j:
                m[i][j] = True
    return m


@sample("causal_mask", deserves="nobody_sees_itself")
def strictly_before(n_q, n_k=None):
    if n_k is None:
        n_k = n_q
    if n_q < 0 or n_k < 0:
        raise ValueError(f"sizes {n_q} and {n_k}")
    offset = n_k - n_q
    query_position = torch.arange(n_q).view(-1, 1) + offset
    return query_position > torch.arange(n_k).view(1, -1)


@sample(
    "padding_mask",
    deserves=("true_is_padding", "cuts_long_lengths_off", "accepts_negative_lengths"),
)
def key_padding_mask_of_the_library(lengths, n):
    grid = torch.arange(n).expand(len(lengths), n)
    return (grid >= lengths.unsqueeze(1)).unsqueeze(1)


@sample(
    "padding_mask",
    deserves=(
        "no_axis_for_the_queries",
        "cuts_long_lengths_off",
        "accepts_negative_lengths",
    ),
)
def fills_row_by_row(lengths, n):
    m = torch.zeros(lengths.numel(), n).bool()
    for b, length in enumerate(lengths):
        m[b, :length] = True
    return m


@sample(
    "combine_masks",
    deserves=(
        "allowed_by_any_mask",
        "leaves_the_shapes_unchecked",
        "no_mask_gives_none",
    ),
)
def logical_or_of_all(*masks):
    result = torch.zeros(1, dtype=torch.bool)
    for m in masks:
        result = torch.logical_or(result, m)
    return result


# ── masked_softmax, masked_attention
# ─────────────────────────────────────────────────────────────────────────


@sample("masked_softmax", deserves=("polarity_inverted", "leaves_the_mask_unchecked"))
def fills_where_the_mask_is_true(scores, mask):
    s = scores.float() if scores.dtype in (torch.half, torch.bfloat16) else scores
    s = s.masked_fill(mask, float("-inf"))
    p = torch.softmax(s, dim=-1)
    return torch.where(
        torch.isneginf(s).all(-1, keepdim=True), torch.zeros_like(p), p
    ).to(scores.dtype)


@sample(
    "masked_softmax",
    deserves=(
        "polarity_inverted",
        "fills_with_minus_a_billion",
        "leaves_the_mask_unchecked",
    ),
)
def minus_a_billion_where_true(scores, mask):
    return F.softmax(scores.masked_fill(mask, -1e9), dim=-1)


@sample(
    "masked_softmax",
    deserves=("fills_with_minus_a_billion", "leaves_the_mask_unchecked"),
)
def annotated_transformer(scores, mask):
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    return scores.softmax(dim=-1)


@sample(
    "masked_softmax",
    deserves=(
        "mask_after_the_softmax",
        "leaves_the_mask_unchecked",
        "adds_minus_infinity",
    ),
)
def multiplies_the_probabilities(scores, mask):
    probs = F.softmax(scores, -1)
    probs[~mask.expand_as(probs)] = 0
    return probs


@sample("masked_softmax", deserves=("empty_rows_are_nan", "leaves_the_mask_unchecked"))
def where_and_softmax(scores, mask):
    minus = torch.tensor(-torch.inf, dtype=scores.dtype)
    return torch.where(mask, scores, minus).softmax(-1)


@sample(
    "masked_attention", deserves=("hides_what_is_allowed", "leaves_q_k_and_v_unchecked")
)
def mask_of_the_library(q, k, v, mask=None):
    att = torch.einsum("...qd,...kd->...qk", q, k) / q.size(-1) ** 0.5
    if mask is None:
        mask = torch.zeros_like(att, dtype=torch.bool)
    return masked_softmax(att, mask.logical_not()) @ v


@sample(
    "masked_attention",
    deserves=("masked_attention_without_scale", "leaves_q_k_and_v_unchecked"),
)
def helper_and_no_root(q, k, v, mask=None):
    logits = widen(q) @ widen(k).mT
    w = masked_softmax(logits, torch.tensor(True) if mask is None else mask)
    return (w @ widen(v)).type(q.dtype)


# ── sinusoidal_positions
# ─────────────────────────────────────────────────────────────────────────────────────


@sample(
    "sinusoidal_positions",
    deserves=("base_of_one_thousand", "accepts_any_size", "odd_width_crashes"),
)
def base_1000_on_integers(n, d):
    pos = torch.arange(n).unsqueeze(1)
    i = torch.arange(0, d, 2)
    angle = pos / torch.pow(1000, i / d)
    pe = torch.zeros(n, d)
    pe[:, 0::2] = torch.sin(angle)
    pe[:, 1::2] = torch.cos(angle)
    return pe


@sample("sinusoidal_positions", deserves=("all_sines_first", "accepts_any_size"))
def concatenated_as_in_the_diffusion_notebooks(n, d):
    half = (d + 1) // 2
    freq = torch.exp(-math.log(10000.0) * 2 * torch.arange(half) / d)
    args = torch.arange(n)[:, None].float() * freq[None]
    return torch.cat([args.sin(), args.cos()], dim=-1)[:, :d]


@sample("sinusoidal_positions", deserves="sine_and_cosine_swapped")
def loops_with_cosine_in_front(n, d):
    if n < 0 or d < 1:
        raise ValueError(f"{n} positions, {d} features")
    pe = torch.zeros(n, d)
    for pos in range(n):
        for c in range(d):
            angle = pos / 10000 ** (2 * (c // 2) / d)
            pe[pos, c] = math.cos(angle) if c % 2 == 0 else math.sin(angle)
    return pe


# ── is_permutation_equivariant, first_leak
# ───────────────────────────────────────────────────────────────────


@sample(
    "is_permutation_equivariant",
    deserves=("tests_invariance", "accepts_a_short_permutation"),
)
def same_output_after_a_shuffle(fn, x, perm):
    y = fn(x)
    z = fn(x[perm, :])
    return bool(torch.allclose(y, z, atol=1e-6))


@sample("first_leak", deserves="changes_the_last_token_only")
def disturbs_the_end(fn, x):
    base = fn(x)
    other = x.clone()
    other[-1, :] = torch.randn(x.size(1), dtype=x.dtype)
    changed = fn(other)
    for i in range(len(x) - 1):
        if (changed[i] - base[i]).norm() > 1e-6 * base[i].norm():
            return i
    return None


# ── right answers
# ────────────────────────────────────────────────────────────────────────────────────────────


@alternate("causal_mask")
def outer_comparison(n_q, n_k=None):
    k = n_q if n_k is None else n_k
    if n_q < 0 or k < 0:
        raise ValueError(f"got {n_q}, {k}")
    return torch.full((n_q, k), True).tril(k - n_q)


@alternate("sinusoidal_positions")
def stacked_and_flattened(n, d):
    if n < 0 or d <= 0:
        raise ValueError(f"n={n}, d={d}")
    speeds = torch.exp(
        torch.arange(0, d, 2, dtype=torch.float64) * (-math.log(10000.0) / d)
    )
    a = torch.outer(torch.arange(n, dtype=torch.float64), speeds)
    return (
        torch.stack((a.sin(), a.cos()), dim=-1)
        .reshape(n, 2 * len(speeds))[:, :d]
        .float()
    )

"""Answers in students' own words, each with the mistakes that are true of it: what diagnosis is
measured by.
"""

import math

import torch
import torch.nn.functional as F

from autograder.suite import alternate, sample

# ── split_heads, merge_heads, fused_qkv
# ──────────────────────────────────────────────────────────────────────


@sample(
    "split_heads",
    deserves=("reshapes_straight_to_the_final_shape", "drops_the_remaining_columns"),
)
def view_in_one_step(x, num_heads):
    B, N, D = x.size()
    return x.contiguous().view(B, num_heads, N, D // num_heads)


@sample(
    "split_heads", deserves=("deals_columns_out_in_turn", "drops_the_remaining_columns")
)
def strided_columns(x, num_heads):
    return torch.stack([x[:, :, h::num_heads] for h in range(num_heads)], dim=1)


@sample("split_heads", deserves="leaves_the_tokens_before_the_heads")
def chunks_on_a_late_axis(x, num_heads):
    if num_heads <= 0 or x.shape[2] % num_heads != 0:
        raise ValueError(f"cannot split {x.shape[2]} by {num_heads}")
    return torch.stack(x.chunk(num_heads, dim=2), dim=2)


@sample("merge_heads", deserves="reshapes_without_moving_the_heads_back")
def flattens_what_comes(x):
    b, h, n, d = x.shape
    return torch.reshape(x, (b, n, d * h))


@sample("merge_heads", deserves="interleaves_the_heads")
def stacks_on_the_last_axis(x):
    heads = [x[:, i] for i in range(x.size(1))]
    return torch.stack(heads, dim=-1).flatten(2)


@sample("fused_qkv", deserves=("cuts_into_heads_first", "ignores_columns_left_over"))
def gpt_style_per_head(x, w_qkv, num_heads):
    qkv = torch.einsum("bnd,dc->bnc", x, w_qkv)
    d = qkv.size(-1) // num_heads // 3
    qkv = qkv.unflatten(-1, (num_heads, 3 * d)).transpose(1, 2)
    return qkv[..., :d], qkv[..., d : 2 * d], qkv[..., 2 * d :]


@sample("fused_qkv", deserves="reads_values_before_keys")
def slices_in_another_order(x, w_qkv, num_heads):
    if num_heads < 1 or w_qkv.size(1) % (3 * num_heads) != 0:
        raise ValueError(f"{w_qkv.size(1)} columns, {num_heads} heads")
    third = w_qkv.size(1) // 3
    q = x @ w_qkv[:, :third]
    v = x @ w_qkv[:, third : 2 * third]
    k = x @ w_qkv[:, 2 * third :]
    return (
        split_heads(q, num_heads),
        split_heads(k, num_heads),
        split_heads(v, num_heads),
    )


# ── multi_head_attention
# ─────────────────────────────────────────────────────────────────────────────────────


@sample("multi_head_attention", deserves="inserts_a_head_axis_always")
def unsqueezes_any_mask(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    if w_q.size(1) != w_k.size(1) or w_v.size(1) != w_o.size(0):
        raise ValueError(
            f"{w_q.size(1)} and {w_k.size(1)}, {w_v.size(1)} and {w_o.size(0)}"
        )
    kv = x_kv if x_kv is not None else x
    Q = split_heads(torch.matmul(x, w_q), num_heads)
    K = split_heads(torch.matmul(kv, w_k), num_heads)
    V = split_heads(torch.matmul(kv, w_v), num_heads)
    if mask is not None:
        mask = mask.unsqueeze(1)
    return torch.matmul(merge_heads(masked_attention(Q, K, V, mask)), w_o)


@sample("multi_head_attention", deserves=("scales_by_all_columns", "checks_nothing"))
def scale_before_the_split(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    src = x if x_kv is None else x_kv
    q, k, v = x @ w_q, src @ w_k, src @ w_v
    scale = q.size(-1) ** -0.5
    q, k, v = (
        split_heads(q, num_heads),
        split_heads(k, num_heads),
        split_heads(v, num_heads),
    )
    att = torch.einsum("bhid,bhjd->bhij", q, k) * scale
    if mask is not None:
        mask = mask[:, None] if mask.ndim == 3 else mask
        att = att.masked_fill(mask.logical_not(), -torch.inf)
    att = torch.nan_to_num(F.softmax(att, -1))
    return merge_heads(torch.einsum("bhij,bhjd->bhid", att, v)) @ w_o


@sample(
    "multi_head_attention", deserves=("reads_the_mask_upside_down", "checks_nothing")
)
def key_padding_convention(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    other = x if x_kv is None else x_kv
    b, n = x.shape[:2]

    def heads(t, w):
        return (t @ w).view(t.size(0), t.size(1), num_heads, -1).permute(0, 2, 1, 3)

    q, k, v = (
        heads(x.contiguous(), w_q),
        heads(other.contiguous(), w_k),
        heads(other.contiguous(), w_v),
    )
    s = q @ k.transpose(2, 3) / math.sqrt(q.shape[3])
    if mask is not None:
        if mask.dim() == 3:
            mask = mask.unsqueeze(1)
        s = s.masked_fill(mask, float("-inf"))
    p = torch.softmax(s, 3)
    p = torch.where(p.isnan(), torch.zeros_like(p), p)
    return (p @ v).permute(0, 2, 1, 3).reshape(b, n, -1) @ w_o


@sample("multi_head_attention", deserves=("does_not_scale", "checks_nothing"))
def loop_of_heads_without_a_scale(
    x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None
):
    src = x if x_kv is None else x_kv
    qs, ks, vs = (
        (x @ w_q).chunk(num_heads, -1),
        (src @ w_k).chunk(num_heads, -1),
        (src @ w_v).chunk(num_heads, -1),
    )
    results = []
    for h in range(num_heads):
        att = qs[h] @ ks[h].transpose(1, 2)
        if mask is not None:
            own = mask[:, h % mask.size(1)] if mask.dim() == 4 else mask
            att = att.masked_fill(~own, float("-inf"))
        results.append(att.softmax(-1).nan_to_num(0.0) @ vs[h])
    return torch.cat(results, -1) @ w_o


@sample(
    "multi_head_attention", deserves=("forgets_the_output_matrix", "checks_nothing")
)
def stops_after_the_merge(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    y = x if x_kv is None else x_kv
    if mask is not None and mask.ndim == 3:
        mask = mask[:, None, :, :]
    out = masked_attention(
        split_heads(x @ w_q, num_heads),
        split_heads(y @ w_k, num_heads),
        split_heads(y @ w_v, num_heads),
        mask,
    )
    return out.permute(0, 2, 1, 3).flatten(-2)


# ── multi_head_sum, grouped_query_attention
# ──────────────────────────────────────────────────────────────────


@sample("multi_head_sum", deserves="averages_the_heads")
def weighted_average_as_the_notes_say(x, w_q, w_k, w_v, w_heads, num_heads, mask=None):
    if len(w_heads) != num_heads:
        raise ValueError(f"{len(w_heads)} matrices, {num_heads} heads")
    qs, ks, vs = (split_heads(x @ w, num_heads) for w in (w_q, w_k, w_v))
    m = mask.unsqueeze(1) if mask is not None and mask.ndim == 3 else mask
    ys = masked_attention(qs, ks, vs, m)
    return torch.einsum("bhnv,hvd->bnd", ys, w_heads) / num_heads


@sample(
    "grouped_query_attention",
    deserves=("deals_the_key_heads_out_in_turn", "shares_unevenly"),
)
def modulo_for_the_head(q, k, v, mask=None):
    which = [h % k.size(1) for h in range(q.size(1))]
    if mask is not None and mask.dim() == 3:
        mask = mask[:, None]
    return masked_attention(q, k[:, which], v[:, which], mask)


@sample("grouped_query_attention", deserves="lets_sentence_masks_meet_query_heads")
def expand_and_no_axis(q, k, v, mask=None):
    B, H, Nq, d = q.shape
    G = k.shape[1]
    if H % G != 0:
        raise ValueError(f"{H} heads over {G}")
    if v.shape[1] != G:
        raise ValueError(f"{G} keys, {v.shape[1]} values")
    k = k[:, :, None].expand(-1, -1, H // G, -1, -1).reshape(B, H, k.shape[2], d)
    v = (
        v[:, :, None]
        .expand(-1, -1, H // G, -1, -1)
        .reshape(B, H, v.shape[2], v.shape[3])
    )
    return masked_attention(q, k, v, mask)


# ── counting
# ─────────────────────────────────────────────────────────────────────────────────────────────────


@sample(
    "attention_flops",
    deserves=("counts_a_multiply_add_once", "counts_impossible_sizes"),
)
def macs_instead_of_flops(b, n, d_model, num_heads, d_head):
    out = {}
    inner = num_heads * d_head
    out["qkv"] = 3 * b * n * d_model * inner
    out["scores"] = b * n * n * inner
    out["values"] = out["scores"]
    out["output"] = b * n * inner * d_model
    out["total"] = out["qkv"] + out["scores"] + out["values"] + out["output"]
    return out


@sample("attention_matrix_bytes", deserves="counts_one_head")
def square_times_bytes(n, num_heads, bytes_per_element):
    for value in (n, num_heads, bytes_per_element):
        if value <= 0:
            raise ValueError(f"{value} is not positive")
    return pow(n, 2) * bytes_per_element


@sample("crossover_length", deserves=())
def half_the_width(d_model):
    if d_model < 1:
        raise ValueError(f"{d_model}")
    return d_model // 2


@sample("explain_memory_figure", deserves="tries_honest_units_only")
def terabytes_and_tebibytes(n, num_heads, claimed):
    for size in [1, 2, 4, 8]:
        amount = n * n * num_heads * size
        if round(amount / 10**12, 3) == round(claimed, 3):
            return (size, 0)
        if round(amount / 2**40, 3) == round(claimed, 3):
            return (size, 4)
    return None


# ── right answers
# ────────────────────────────────────────────────────────────────────────────────────────────


@alternate("split_heads")
def unflatten_and_move(x, num_heads):
    if num_heads < 1 or x.size(-1) % num_heads:
        raise ValueError(f"{x.size(-1)} and {num_heads}")
    return x.unflatten(-1, (num_heads, x.size(-1) // num_heads)).movedim(2, 1)


@alternate("grouped_query_attention")
def index_of_the_group(q, k, v, mask=None):
    H, G = q.size(1), k.size(1)
    if H % G or v.size(1) != G:
        raise ValueError(f"{H} query heads, {G} key heads, {v.size(1)} value heads")
    which = torch.arange(H) // (H // G)
    if mask is not None and mask.ndim == 3:
        mask = mask[:, None]
    return masked_attention(q, k[:, which], v[:, which], mask)

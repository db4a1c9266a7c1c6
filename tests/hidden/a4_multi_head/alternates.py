"""Other right answers, really written differently from the answer key."""

import math

import torch

from autograder.suite import alternate

# ── split_heads
# ──────────────────────────────────────────────────────────────────────────────────────────────


@alternate("split_heads")
def stacks_slices_of_columns(x, num_heads):
    if num_heads < 1 or x.shape[-1] % num_heads != 0:
        raise ValueError(f"{x.shape[-1]} % {num_heads}")
    d = x.shape[-1] // num_heads
    return torch.stack([x[:, :, h * d : (h + 1) * d] for h in range(num_heads)], dim=1)


@alternate("split_heads")
def chunks_the_columns(x, num_heads):
    if num_heads <= 0 or x.size(2) % num_heads:
        raise ValueError(f"{num_heads} heads, {x.size(2)} columns")
    return torch.stack(torch.chunk(x, num_heads, dim=2)).movedim(0, 1)


@alternate("split_heads")
def unflattens_and_permutes(x, num_heads):
    if num_heads < 1 or x.shape[2] % num_heads:
        raise ValueError(f"cannot make {num_heads} heads of {x.shape[2]} columns")
    return (
        x.unflatten(2, (num_heads, x.shape[2] // num_heads))
        .permute(0, 2, 1, 3)
        .contiguous()
    )


@alternate("split_heads")
def picks_columns_by_index(x, num_heads):
    if num_heads < 1 or x.shape[2] % num_heads:
        raise ValueError(f"cannot make {num_heads} heads of {x.shape[2]} columns")
    columns = torch.arange(x.shape[2]).view(num_heads, -1)  # [H, d]
    return x[:, :, columns].permute(0, 2, 1, 3)


@alternate("split_heads")
def transposes_the_columns_first(x, num_heads):
    if num_heads < 1 or x.shape[2] % num_heads:
        raise ValueError(f"cannot make {num_heads} heads of {x.shape[2]} columns")
    return (
        x.transpose(1, 2).reshape(x.shape[0], num_heads, -1, x.shape[1]).transpose(2, 3)
    )


@alternate("split_heads")
def views_the_columns_as_two_axes(x, num_heads):
    if num_heads < 1 or x.shape[2] % num_heads:
        raise ValueError(f"cannot make {num_heads} heads of {x.shape[2]} columns")
    # cutting one axis works for all strides
    return x.view(x.shape[0], x.shape[1], num_heads, -1).transpose(1, 2)


# ── merge_heads
# ──────────────────────────────────────────────────────────────────────────────────────────────


@alternate("merge_heads")
def concatenates_the_heads(x):
    return torch.cat([x[:, h] for h in range(x.shape[1])], dim=-1)


@alternate("merge_heads")
def makes_it_contiguous_and_views(x):
    return (
        x.permute(0, 2, 1, 3)
        .contiguous()
        .view(x.shape[0], x.shape[2], x.shape[1] * x.shape[3])
    )


@alternate("merge_heads")
def flattens_the_last_axes(x):
    return x.movedim(1, 2).flatten(start_dim=2)


@alternate("merge_heads")
def writes_into_an_empty_tensor(x):
    batch, num_heads, n, d = x.shape
    y = torch.zeros(batch, n, num_heads * d, dtype=x.dtype)
    for h in range(num_heads):
        y[:, :, h * d : (h + 1) * d] = x[:, h]
    return y


# ── fused_qkv
# ────────────────────────────────────────────────────────────────────────────────────────────────


def _three_parts(w_qkv, num_heads):
    if num_heads < 1 or w_qkv.shape[1] % (3 * num_heads):
        raise ValueError(f"{w_qkv.shape[1]} columns, {num_heads} heads")
    return w_qkv.shape[1] // 3


@alternate("fused_qkv")
def one_reshape_with_five_axes(x, w_qkv, num_heads):
    width = _three_parts(w_qkv, num_heads)
    y = (x @ w_qkv).reshape(x.shape[0], x.shape[1], 3, num_heads, width // num_heads)
    return y.permute(2, 0, 3, 1, 4).unbind(0)


@alternate("fused_qkv")
def einsum_over_a_reshaped_weight(x, w_qkv, num_heads):
    width = _three_parts(w_qkv, num_heads)
    w = w_qkv.reshape(w_qkv.shape[0], 3, num_heads, width // num_heads)
    q, k, v = torch.einsum("bnd,dthc->tbhnc", x, w)
    return [q, k, v]


@alternate("fused_qkv")
def three_products_after_all(x, w_qkv, num_heads):
    width = _three_parts(w_qkv, num_heads)
    return tuple(
        split_heads(torch.matmul(x, w), num_heads)
        for w in torch.split(w_qkv, width, dim=1)
    )


@alternate("fused_qkv")
def splits_all_heads_and_slices(x, w_qkv, num_heads):
    _three_parts(w_qkv, num_heads)
    every = split_heads(x @ w_qkv, 3 * num_heads)  # [B, 3*H, N, d]
    return (
        every[:, :num_heads],
        every[:, num_heads : 2 * num_heads],
        every[:, 2 * num_heads :],
    )


# ── multi_head_attention
# ─────────────────────────────────────────────────────────────────────────────────────


def _sizes(w_q, w_k, w_v, w_o, num_heads):
    if w_q.shape[1] != w_k.shape[1]:
        raise ValueError(f"{w_q.shape[1]} != {w_k.shape[1]}")
    if w_v.shape[1] != w_o.shape[0]:
        raise ValueError(f"{w_v.shape[1]} != {w_o.shape[0]}")
    for w in (w_q, w_v):
        if w.shape[1] % num_heads:
            raise ValueError(f"{w.shape[1]} % {num_heads}")
    return w_q.shape[1] // num_heads, w_v.shape[1] // num_heads


def _four_axes(mask):
    return (
        mask
        if mask is None or mask.dim() == 4
        else mask[None, None]
        if mask.dim() == 2
        else mask[:, None]
    )


@alternate("multi_head_attention")
def einsum_from_end_to_end(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    d, d_v = _sizes(w_q, w_k, w_v, w_o, num_heads)
    source = x if x_kv is None else x_kv
    q = torch.einsum("bnm,mhd->bhnd", x, w_q.reshape(-1, num_heads, d))
    k = torch.einsum("bnm,mhd->bhnd", source, w_k.reshape(-1, num_heads, d))
    v = torch.einsum("bnm,mhd->bhnd", source, w_v.reshape(-1, num_heads, d_v))
    wide = torch.promote_types(x.dtype, torch.float32)
    scores = torch.einsum("bhid,bhjd->bhij", q.to(wide) * d**-0.5, k.to(wide))
    allowed = torch.ones((), dtype=torch.bool) if mask is None else _four_axes(mask)
    weights = masked_softmax(scores, allowed.expand(scores.shape)).to(x.dtype)
    return torch.einsum(
        "bhij,bhjd,hdm->bim", weights, v, w_o.reshape(num_heads, d_v, -1)
    )


@alternate("multi_head_attention")
def batched_products_over_batch_times_heads(
    x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None
):
    d, d_v = _sizes(w_q, w_k, w_v, w_o, num_heads)
    source = x if x_kv is None else x_kv
    batch, n, n_k = x.shape[0], x.shape[1], source.shape[1]

    def flat(y, size):
        return (
            y.reshape(batch, -1, num_heads, size)
            .transpose(1, 2)
            .reshape(batch * num_heads, -1, size)
        )

    if mask is not None:
        mask = (
            _four_axes(mask)
            .expand(batch, num_heads, n, n_k)
            .reshape(batch * num_heads, n, n_k)
        )
    y = masked_attention(
        flat(x @ w_q, d), flat(source @ w_k, d), flat(source @ w_v, d_v), mask
    )
    return y.reshape(batch, num_heads, n, d_v).permute(0, 2, 1, 3).flatten(2) @ w_o


@alternate("multi_head_attention")
def adds_what_the_heads_write(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    _, d_v = _sizes(w_q, w_k, w_v, w_o, num_heads)
    source = x if x_kv is None else x_kv
    q, k, v = (
        split_heads(t @ w, num_heads)
        for t, w in ((x, w_q), (source, w_k), (source, w_v))
    )
    y = masked_attention(q, k, v, _four_axes(mask))
    return (y @ w_o.reshape(num_heads, d_v, -1)).sum(dim=1)


@alternate("multi_head_attention")
def softmax_in_float32_by_hand(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    d, d_v = _sizes(w_q, w_k, w_v, w_o, num_heads)
    source = x if x_kv is None else x_kv
    q = (x @ w_q).unflatten(-1, (num_heads, d)).transpose(1, 2)
    k = (
        (source @ w_k).unflatten(-1, (num_heads, d)).permute(0, 2, 3, 1)
    )  # [B, H, d, N_k]
    v = (source @ w_v).unflatten(-1, (num_heads, d_v)).transpose(1, 2)
    wide = torch.promote_types(x.dtype, torch.float32)
    scores = (q.to(wide) / math.sqrt(d)) @ k.to(wide)
    if mask is None:
        weights = scores.softmax(-1)
    else:
        mask = _four_axes(mask)
        weights = (
            scores.masked_fill(~mask, torch.finfo(torch.float32).min).softmax(-1) * mask
        )
    y = weights.to(v.dtype) @ v
    return y.transpose(1, 2).flatten(2) @ w_o


@alternate("multi_head_attention")
def one_product_for_keys_and_values(
    x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None
):
    d, d_v = _sizes(w_q, w_k, w_v, w_o, num_heads)
    source = x if x_kv is None else x_kv
    k, v = (source @ torch.cat([w_k, w_v], dim=1)).split(
        [num_heads * d, num_heads * d_v], dim=-1
    )
    q, k, v = (
        split_heads(x @ w_q, num_heads),
        split_heads(k, num_heads),
        split_heads(v, num_heads),
    )
    return merge_heads(masked_attention(q, k, v, _four_axes(mask))) @ w_o


# ── multi_head_sum
# ───────────────────────────────────────────────────────────────────────────────────────────


def _count(w_heads, num_heads):
    if len(w_heads) != num_heads:
        raise ValueError(f"{len(w_heads)} output matrices, {num_heads} heads")


@alternate("multi_head_sum")
def stacks_and_calls_the_layer(x, w_q, w_k, w_v, w_heads, num_heads, mask=None):
    _count(w_heads, num_heads)
    w_o = w_heads.reshape(-1, w_heads.shape[-1])
    return multi_head_attention(x, w_q, w_k, w_v, w_o, num_heads, mask)


@alternate("multi_head_sum")
def loops_and_adds(x, w_q, w_k, w_v, w_heads, num_heads, mask=None):
    _count(w_heads, num_heads)
    d, d_v = w_q.shape[1] // num_heads, w_v.shape[1] // num_heads
    if mask is not None and mask.dim() == 4:
        mask = mask.expand(-1, num_heads, -1, -1)
    total = 0
    for h in range(num_heads):
        q, k = x @ w_q[:, h * d : (h + 1) * d], x @ w_k[:, h * d : (h + 1) * d]
        v = x @ w_v[:, h * d_v : (h + 1) * d_v]
        own = mask[:, h] if mask is not None and mask.dim() == 4 else mask
        total = total + masked_attention(q, k, v, own) @ w_heads[h]
    return total


@alternate("multi_head_sum")
def contracts_heads_and_columns_at_once(
    x, w_q, w_k, w_v, w_heads, num_heads, mask=None
):
    _count(w_heads, num_heads)
    q, k, v = (
        split_heads(x @ w_q, num_heads),
        split_heads(x @ w_k, num_heads),
        split_heads(x @ w_v, num_heads),
    )
    mask = mask[:, None] if mask is not None and mask.dim() == 3 else mask
    return torch.einsum("bhnd,hdm->bnm", masked_attention(q, k, v, mask), w_heads)


@alternate("multi_head_sum")
def lifts_the_values_before_mixing(x, w_q, w_k, w_v, w_heads, num_heads, mask=None):
    _count(w_heads, num_heads)
    q, k = split_heads(x @ w_q, num_heads), split_heads(x @ w_k, num_heads)
    lifted = (
        split_heads(x @ w_v, num_heads) @ w_heads
    )  # [B, H, N, D]: A (V W) = (A V) W
    return masked_attention(
        q, k, lifted, mask[:, None] if mask is not None and mask.dim() == 3 else mask
    ).sum(1)


# ── grouped_query_attention
# ──────────────────────────────────────────────────────────────────────────────────


def _ratio(q, k, v):
    if q.shape[1] % k.shape[1] != 0 or k.shape[1] != v.shape[1]:
        raise ValueError(f"heads: {q.shape[1]}, {k.shape[1]}, {v.shape[1]}")
    return q.shape[1] // k.shape[1]


@alternate("grouped_query_attention")
def gives_the_queries_a_group_axis(q, k, v, mask=None):
    group = _ratio(q, k, v)
    grouped = q.unflatten(1, (k.shape[1], group))  # [B, H_kv, G, N_q, d]
    if mask is not None:
        mask = _four_axes(mask)
        heads = mask.expand(-1, q.shape[1], -1, -1)
        mask = heads.unflatten(1, (k.shape[1], group))
    return masked_attention(grouped, k.unsqueeze(2), v.unsqueeze(2), mask).flatten(1, 2)


@alternate("grouped_query_attention")
def expands_without_copying(q, k, v, mask=None):
    group = _ratio(q, k, v)
    k = k[:, :, None].expand(-1, -1, group, -1, -1).flatten(1, 2)
    v = v[:, :, None].expand(-1, -1, group, -1, -1).flatten(1, 2)
    return masked_attention(q, k, v, _four_axes(mask))


@alternate("grouped_query_attention")
def indexes_the_key_heads(q, k, v, mask=None):
    group = _ratio(q, k, v)
    reads = torch.arange(q.shape[1]) // group
    return masked_attention(q, k[:, reads], v[:, reads], _four_axes(mask))


@alternate("grouped_query_attention")
def one_head_after_the_other(q, k, v, mask=None):
    group = _ratio(q, k, v)
    mask = _four_axes(mask)
    heads = []
    for h in range(q.shape[1]):
        own = None if mask is None else mask[:, h if mask.shape[1] > 1 else 0]
        heads.append(masked_attention(q[:, h], k[:, h // group], v[:, h // group], own))
    return torch.stack(heads, dim=1)


# ── attention_flops
# ──────────────────────────────────────────────────────────────────────────────────────────


def _positive(*sizes):
    for size in sizes:
        if size < 1:
            raise ValueError(f"not a size: {size}")


@alternate("attention_flops")
def counts_by_matrix_products(b, n, d_model, num_heads, d_head):
    _positive(b, n, d_model, num_heads, d_head)

    def product(rows, inner, columns):
        return 2 * rows * inner * columns

    qkv = 3 * b * num_heads * product(n, d_model, d_head)
    scores = b * num_heads * product(n, d_head, n)
    values = b * num_heads * product(n, n, d_head)
    output = b * product(n, num_heads * d_head, d_model)
    return {
        "total": qkv + scores + values + output,
        "qkv": qkv,
        "scores": scores,
        "values": values,
        "output": output,
    }


@alternate("attention_flops")
def counts_multiply_adds_and_doubles(b, n, d_model, num_heads, d_head):
    _positive(b, n, d_model, num_heads, d_head)
    one_projection = b * n * d_model * num_heads * d_head
    pairs = b * num_heads * n**2 * d_head
    counts = dict(
        qkv=3 * one_projection, scores=pairs, values=pairs, output=one_projection
    )
    counts["total"] = sum(counts.values())
    return {key: 2 * value for key, value in counts.items()}


@alternate("attention_flops")
def adds_up_sentence_by_sentence(b, n, d_model, num_heads, d_head):
    _positive(b, n, d_model, num_heads, d_head)
    counts = {"qkv": 0, "scores": 0, "values": 0, "output": 0}
    for _ in range(b):
        counts["qkv"] += 6 * n * d_model * num_heads * d_head
        counts["scores"] += 2 * num_heads * n * n * d_head
        counts["values"] += 2 * num_heads * n * n * d_head
        counts["output"] += 2 * n * num_heads * d_head * d_model
    counts["total"] = (
        counts["qkv"] + counts["scores"] + counts["values"] + counts["output"]
    )
    return counts


# ── attention_matrix_bytes
# ───────────────────────────────────────────────────────────────────────────────────


@alternate("attention_matrix_bytes")
def multiplies_the_square(n, num_heads, bytes_per_element):
    _positive(n, num_heads, bytes_per_element)
    return bytes_per_element * num_heads * n**2


@alternate("attention_matrix_bytes")
def multiplies_a_list(n, num_heads, bytes_per_element):
    _positive(n, num_heads, bytes_per_element)
    return math.prod([num_heads, n, n, bytes_per_element])


@alternate("attention_matrix_bytes")
def adds_up_head_by_head(n, num_heads, bytes_per_element):
    _positive(n, num_heads, bytes_per_element)
    return sum(n * n * bytes_per_element for _ in range(num_heads))


# ── crossover_length
# ─────────────────────────────────────────────────────────────────────────────────────────


@alternate("crossover_length")
def divides_the_two_sides(d_model):
    _positive(d_model)
    return (8 * d_model * d_model) // (4 * d_model)


@alternate("crossover_length")
def asks_the_flop_formula(d_model):
    _positive(d_model)
    at_one = attention_flops(1, 1, d_model, 1, d_model)
    return (at_one["qkv"] + at_one["output"]) // (at_one["scores"] + at_one["values"])


@alternate("crossover_length")
def searches_by_halving(d_model):
    _positive(d_model)
    low, high = 1, 100 * d_model
    while low < high:
        n = (low + high) // 2
        flops = attention_flops(1, n, d_model, 1, d_model)
        if flops["scores"] + flops["values"] < flops["qkv"] + flops["output"]:
            low = n + 1
        else:
            high = n
    return low


# ── explain_memory_figure
# ────────────────────────────────────────────────────────────────────────────────────


@alternate("explain_memory_figure")
def rounds_every_candidate(n, num_heads, claimed):
    candidates = {}
    for size in (1, 2, 4, 8):
        for binary in range(5):
            value = attention_matrix_bytes(n, num_heads, size)
            for step in range(4):
                value /= 1024 if step < binary else 1000
            candidates[round(value, 3)] = (size, binary)
    return candidates.get(round(claimed, 3))


@alternate("explain_memory_figure")
def solves_for_the_ratio(n, num_heads, claimed):
    for size in (8, 4, 2, 1):
        terabytes = attention_matrix_bytes(n, num_heads, size) / 10**12
        binary = round(math.log(terabytes / claimed) / math.log(1.024))
        if 0 <= binary <= 4 and abs(terabytes / 1.024**binary - claimed) < 5.01e-4:
            return [size, binary]
    return None


@alternate("explain_memory_figure")
def lists_all_pairs_first(n, num_heads, claimed):
    pairs = [(size, binary) for binary in (4, 3, 2, 1, 0) for size in (1, 2, 4, 8)]
    figures = [num_heads * n**2 * size / 1e12 / 1.024**binary for size, binary in pairs]
    errors = [abs(figure - claimed) for figure in figures]
    best = errors.index(min(errors))
    return pairs[best] if errors[best] <= 0.00051 else None


@alternate("multi_head_attention")
def repeats_the_mask_for_each_head(
    x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None
):
    _sizes(w_q, w_k, w_v, w_o, num_heads)
    src = x if x_kv is None else x_kv
    q, k, v = (
        split_heads(x @ w_q, num_heads),
        split_heads(src @ w_k, num_heads),
        split_heads(src @ w_v, num_heads),
    )
    if mask is not None and mask.dim() < 4:
        mask = mask.unsqueeze(0) if mask.dim() == 2 else mask
        mask = mask.repeat_interleave(num_heads, dim=0).reshape(
            -1, num_heads, *mask.shape[1:]
        )
    return merge_heads(masked_attention(q, k, v, mask)) @ w_o


@alternate("multi_head_attention")
def keeps_the_heads_behind_the_tokens(
    x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None
):
    _sizes(w_q, w_k, w_v, w_o, num_heads)
    src = x if x_kv is None else x_kv
    q, k, v = (
        (t @ w).unflatten(-1, (num_heads, -1))
        for t, w in ((x, w_q), (src, w_k), (src, w_v))
    )
    if x.dtype in (torch.float16, torch.bfloat16):
        q, k, v = q.float(), k.float(), v.float()
    scores = torch.einsum("bnhd,bmhd->bhnm", q, k) / q.shape[-1] ** 0.5
    if mask is None:
        weights = scores.softmax(-1)
    else:
        allowed = _four_axes(mask).expand(scores.shape)
        dead = ~allowed.any(-1, keepdim=True)
        weights = (
            scores.masked_fill(~allowed, float("-inf"))
            .masked_fill(dead, 0)
            .softmax(-1)
            .masked_fill(dead, 0)
        )
    return torch.einsum("bhnm,bmhd->bnhd", weights, v).flatten(-2).to(x.dtype) @ w_o


@alternate("grouped_query_attention")
def gives_masks_a_group_axis_too(q, k, v, mask=None):
    b, h, n, d = q.shape
    g = k.shape[1]
    if h % g or v.shape[1] != g:
        raise ValueError(f"{h} query heads, {g} key heads, {v.shape[1]} value heads")
    if mask is not None and mask.dim() == 3:
        mask = mask[:, None, None]
    elif mask is not None and mask.dim() == 4:
        mask = (
            mask[:, :, None]
            if mask.shape[1] == 1
            else mask.reshape(mask.shape[0], g, h // g, *mask.shape[2:])
        )
    return masked_attention(
        q.reshape(b, g, h // g, n, d), k[:, :, None], v[:, :, None], mask
    ).reshape(b, h, n, -1)

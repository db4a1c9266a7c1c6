"""Wrong answers that people give about heads, reshapes and costs, each with one wrong idea."""

import math

import torch

from autograder.suite import mistake

# ── split_heads ──────────────────────────────────────────────────────────────────────────────────────────────


def _head_size(x, num_heads):
    if num_heads < 1 or x.shape[-1] % num_heads:
        raise ValueError(f"{x.shape[-1]} columns do not divide into {num_heads} heads")
    return x.shape[-1] // num_heads


@mistake(
    "split_heads",
    hint="A reshape re-reads the numbers in memory order: it moves no axis past another. Split arange(24) as [1, 4, "
    "6] into two heads and look at which tokens are in head 0.",
)
def reshapes_straight_to_the_final_shape(x, num_heads):
    return x.reshape(x.shape[0], num_heads, x.shape[1], _head_size(x, num_heads))


@mistake(
    "split_heads",
    keeps=0.5,
    hint="Your heads take every H-th column. Head h owns neighbouring columns, h*d to (h+1)*d - 1: which of the two "
    "new axes should run slowly?",
)
def deals_columns_out_in_turn(x, num_heads):
    return x.reshape(x.shape[0], x.shape[1], _head_size(x, num_heads), num_heads).permute(0, 3, 1, 2)


@mistake(
    "split_heads",
    keeps=0.5,
    hint="The columns are cut well, but the tokens still stand before the heads: attention would compare the heads of "
    "one token with each other.",
)
def leaves_the_tokens_before_the_heads(x, num_heads):
    return x.reshape(x.shape[0], x.shape[1], num_heads, _head_size(x, num_heads))


@mistake("split_heads", keeps=0.5, hint="The batch comes first in this course, then the heads: [B, H, N, d].")
def puts_the_heads_before_the_batch(x, num_heads):
    return x.reshape(x.shape[0], x.shape[1], num_heads, _head_size(x, num_heads)).permute(2, 0, 1, 3)


@mistake(
    "split_heads",
    keeps=0.5,
    hint="Batch and heads are two axes: keep them apart. And a reshape to [B*H, N, d] moves nothing either, so tokens "
    "end up in the wrong head.",
)
def merges_batch_and_heads(x, num_heads):
    return x.reshape(x.shape[0] * num_heads, x.shape[1], _head_size(x, num_heads))


@mistake(
    "split_heads",
    hint="You read the memory with strides of a contiguous tensor. A transposed x lies in memory in another order.",
)
def reads_memory_with_fixed_strides(x, num_heads):
    batch, n, width = x.shape
    d_head = _head_size(x, num_heads)
    return torch.as_strided(x, (batch, num_heads, n, d_head), (n * width, d_head, width, 1))


@mistake(
    "split_heads",
    hint="Columns that do not divide into the heads are dropped silently. The docstring asks for a ValueError.",
)
def drops_the_remaining_columns(x, num_heads):
    d_head = x.shape[-1] // max(num_heads, 1)
    return x[..., : d_head * num_heads].reshape(x.shape[0], x.shape[1], num_heads, d_head).transpose(1, 2)


@mistake(
    "split_heads", hint="Half precision comes back as float32. Splitting computes nothing: no dtype should change."
)
def splits_into_float32(x, num_heads):
    d_head = _head_size(x, num_heads)
    wide = x if x.dtype == torch.float64 else x.float()
    return wide.reshape(x.shape[0], x.shape[1], num_heads, d_head).transpose(1, 2)


@mistake("split_heads", hint="The heads are in reverse: head 0 owns the first columns.", keeps=0.5)
def counts_the_heads_from_the_end(x, num_heads):
    return x.reshape(x.shape[0], x.shape[1], num_heads, _head_size(x, num_heads)).transpose(1, 2).flip(1)


@mistake(
    "split_heads", hint="No gradient comes back to x: the numbers were copied out of the graph (.data, .detach, numpy)."
)
def splits_outside_the_graph(x, num_heads):
    d_head = _head_size(x, num_heads)
    out = torch.zeros(x.shape[0], num_heads, x.shape[1], d_head, dtype=x.dtype).requires_grad_(x.requires_grad)
    return out + x.detach().reshape(x.shape[0], x.shape[1], num_heads, d_head).transpose(1, 2)


@mistake("split_heads", hint="The number of heads seems to be fixed at that of the example: use num_heads.")
def always_makes_two_heads(x, num_heads):
    _head_size(x, num_heads)
    return x.reshape(x.shape[0], x.shape[1], 2, -1).transpose(1, 2)


@mistake("split_heads", keeps=0.5, hint="Only the first sentence is split. Try a batch of two different ones.")
def splits_the_first_sentence_only(x, num_heads):
    d_head = _head_size(x, num_heads)
    return x[:1].reshape(1, x.shape[1], num_heads, d_head).transpose(1, 2).repeat(x.shape[0], 1, 1, 1)


# ── merge_heads ──────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "merge_heads",
    hint="Your rows hold several tokens of one head. Before the last two axes can be joined, the heads must stand "
    "next to d. (A round trip with a split of the same kind hides this.)",
)
def reshapes_without_moving_the_heads_back(x):
    return x.reshape(x.shape[0], x.shape[2], x.shape[1] * x.shape[3])


@mistake(
    "merge_heads", keeps=0.5, hint="Your columns alternate between the heads. A head's numbers should stay together."
)
def interleaves_the_heads(x):
    return x.permute(0, 2, 3, 1).reshape(x.shape[0], x.shape[2], -1)


@mistake(
    "merge_heads",
    hint="After swapping axes the memory is no longer in their order, and `view` refuses. The error names the way out.",
)
def views_after_the_transpose(x):
    return x.transpose(1, 2).view(x.shape[0], x.shape[2], x.shape[1] * x.shape[3])


@mistake("merge_heads", hint="Heads are laid side by side, not added: the row has H*d columns.")
def adds_the_heads(x):
    return x.sum(dim=1)


@mistake("merge_heads", hint="The heads came out one below the other. They belong side by side, in the columns.")
def stacks_the_heads_as_tokens(x):
    return x.reshape(x.shape[0], x.shape[1] * x.shape[2], x.shape[3])


@mistake("merge_heads", hint="The heads are joined in reverse order: head 0 fills the first columns.", keeps=0.5)
def joins_the_heads_in_reverse(x):
    return x.flip(1).transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)


@mistake("merge_heads", keeps=0.5, hint="You swapped the tokens with d. Which two axes did split_heads swap?")
def swaps_tokens_and_columns(x):
    return x.permute(0, 3, 1, 2).reshape(x.shape[0], x.shape[2], -1)


@mistake("merge_heads", hint="Half precision comes back as float32. Merging computes nothing: no dtype should change.")
def merges_into_float32(x):
    wide = x if x.dtype == torch.float64 else x.float()
    return wide.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)


@mistake("merge_heads", hint="Only two heads are joined, as in the example. Use all that are there.")
def joins_two_heads_only(x):
    return torch.cat([x[:, 0], x[:, min(1, x.shape[1] - 1)]], dim=-1)


# ── fused_qkv ────────────────────────────────────────────────────────────────────────────────────────────────


def _check_fused(w_qkv, num_heads):
    if num_heads < 1 or w_qkv.shape[1] % (3 * num_heads):
        raise ValueError(f"{w_qkv.shape[1]} columns for {num_heads} heads")


def _thirds(x, w_qkv, num_heads, order=(0, 1, 2)):
    _check_fused(w_qkv, num_heads)
    parts = (x @ w_qkv).chunk(3, dim=-1)
    return tuple(split_heads(parts[i], num_heads) for i in order)


@mistake(
    "fused_qkv",
    keeps=0.5,
    hint="You cut into heads first and into q, k, v inside each head. Here 3 is the outer cut: the matrix is [W_Q, "
    "W_K, W_V], and each of them holds all heads.",
)
def cuts_into_heads_first(x, w_qkv, num_heads):
    _check_fused(w_qkv, num_heads)
    parts = (x @ w_qkv).reshape(x.shape[0], x.shape[1], num_heads, 3, -1).permute(3, 0, 2, 1, 4)
    return parts[0], parts[1], parts[2]


@mistake("fused_qkv", hint="Keys and queries are exchanged. Compare with three separate projections.", keeps=0.5)
def reads_keys_first(x, w_qkv, num_heads):
    return _thirds(x, w_qkv, num_heads, (1, 0, 2))


@mistake("fused_qkv", hint="Keys and values are exchanged. Compare with three separate projections.", keeps=0.5)
def reads_values_before_keys(x, w_qkv, num_heads):
    return _thirds(x, w_qkv, num_heads, (0, 2, 1))


@mistake("fused_qkv", keeps=0.5, hint="The three parts lie behind each other in blocks; you take every third column.")
def takes_every_third_column(x, w_qkv, num_heads):
    _check_fused(w_qkv, num_heads)
    y = x @ w_qkv
    return tuple(split_heads(y[..., i::3], num_heads) for i in range(3))


@mistake(
    "fused_qkv",
    keeps=0.5,
    hint="A reshape straight to [3, B, H, N, d] re-reads memory: tokens and parts get mixed. Cut the columns only, "
    "then move axes.",
)
def reshapes_the_fused_product_at_once(x, w_qkv, num_heads):
    _check_fused(w_qkv, num_heads)
    d_head = w_qkv.shape[1] // (3 * num_heads)
    q, k, v = (x @ w_qkv).reshape(3, x.shape[0], num_heads, x.shape[1], d_head)
    return q, k, v


@mistake(
    "fused_qkv",
    keeps=0.5,
    hint="You took D // H for the head size. D says nothing about d: count the columns of w_qkv.",
)
def assumes_the_width_is_heads_times_head_size(x, w_qkv, num_heads):
    _check_fused(w_qkv, num_heads)
    d_head = x.shape[-1] // num_heads
    y = x @ w_qkv
    shape = (x.shape[0], x.shape[1], num_heads, d_head)
    if y.shape[-1] < 3 * num_heads * d_head:
        raise RuntimeError(f"shape {list(shape)} does not fit {y.shape[-1]} columns")
    parts = y[..., : 3 * num_heads * d_head].chunk(3, dim=-1)
    return tuple(part.reshape(shape).transpose(1, 2) for part in parts)


@mistake(
    "fused_qkv",
    keeps=0.5,
    hint="nn.Linear stores [out, in] and multiplies by the transpose. Here weights are [in, out].",
)
def multiplies_by_the_transpose(x, w_qkv, num_heads):
    _check_fused(w_qkv, num_heads)
    return _thirds(x, w_qkv.T, num_heads)


@mistake("fused_qkv", hint="`view` joins axes only where the memory lies in their order: x may be transposed.")
def views_the_tokens_as_one_list(x, w_qkv, num_heads):
    _check_fused(w_qkv, num_heads)
    tokens = x.view(x.shape[0] * x.shape[1], x.shape[2])
    return _thirds(tokens.view(x.shape), w_qkv, num_heads)


@mistake("fused_qkv", hint="The three parts are right, but they are not cut into heads: [B, H, N, d] is asked for.")
def forgets_to_split(x, w_qkv, num_heads):
    _check_fused(w_qkv, num_heads)
    return (x @ w_qkv).chunk(3, dim=-1)


@mistake("fused_qkv", hint="Columns that do not divide are cut off silently. The docstring asks for a ValueError.")
def ignores_columns_left_over(x, w_qkv, num_heads):
    d_head = w_qkv.shape[1] // (3 * num_heads)
    return _thirds(x, w_qkv[:, : 3 * num_heads * d_head], num_heads)


@mistake("fused_qkv", hint="Half precision comes back as float32: the dtype that comes in goes out.")
def projects_into_float32(x, w_qkv, num_heads):
    if x.dtype == torch.float16:
        x, w_qkv = x.float(), w_qkv.float()
    return _thirds(x, w_qkv, num_heads)


# ── multi_head_attention ─────────────────────────────────────────────────────────────────────────────────────


def _check_layer(w_q, w_k, w_v, w_o, num_heads):
    if w_q.shape[1] != w_k.shape[1] or w_q.shape[1] % num_heads:
        raise ValueError(f"w_q has {w_q.shape[1]} columns, w_k {w_k.shape[1]}, for {num_heads} heads")
    if w_v.shape[1] != w_o.shape[0] or w_v.shape[1] % num_heads:
        raise ValueError(f"w_v has {w_v.shape[1]} columns, w_o {w_o.shape[0]} rows, for {num_heads} heads")


def _head_axis(mask):
    return mask.unsqueeze(1) if mask is not None and mask.dim() == 3 else mask


def _attend_scaled(q, k, v, mask, scale):
    scores = (q / scale) @ k.transpose(-2, -1)
    if mask is None:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool)
    return masked_softmax(scores, mask) @ v


def _layer(x, w_q, w_k, w_v, w_o, num_heads, mask, x_kv, attend=masked_attention, split=split_heads, merge=merge_heads):
    """The layer with one of its parts exchanged."""
    _check_layer(w_q, w_k, w_v, w_o, num_heads)
    source = x if x_kv is None else x_kv
    q, k, v = split(x @ w_q, num_heads), split(source @ w_k, num_heads), split(source @ w_v, num_heads)
    return merge(attend(q, k, v, _head_axis(mask))) @ w_o


@mistake(
    "multi_head_attention",
    hint="You divide by the root of the whole width. How many terms does the dot product of one head have?",
)
def scales_by_the_model_width(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    def attend(q, k, v, mask):
        return _attend_scaled(q, k, v, mask, math.sqrt(x.shape[-1]))

    return _layer(x, w_q, w_k, w_v, w_o, num_heads, mask, x_kv, attend)


@mistake(
    "multi_head_attention",
    hint="You divide by the root of H*d, all columns together. How many terms does the dot product of one head have?",
    keeps=0.5,
)
def scales_by_all_columns(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    def attend(q, k, v, mask):
        return _attend_scaled(q, k, v, mask, math.sqrt(w_q.shape[1]))

    return _layer(x, w_q, w_k, w_v, w_o, num_heads, mask, x_kv, attend)


@mistake(
    "multi_head_attention", hint="The scores are not scaled: what keeps their spread near 1 when d grows?", keeps=0.5
)
def does_not_scale(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    def attend(q, k, v, mask):
        return _attend_scaled(q, k, v, mask, 1.0)

    return _layer(x, w_q, w_k, w_v, w_o, num_heads, mask, x_kv, attend)


@mistake(
    "multi_head_attention",
    hint="The root is of the value size. Which vectors meet in the dot product: queries and keys, or values?",
)
def scales_by_the_value_size(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    def attend(q, k, v, mask):
        return _attend_scaled(q, k, v, mask, math.sqrt(v.shape[-1]))

    return _layer(x, w_q, w_k, w_v, w_o, num_heads, mask, x_kv, attend)


@mistake(
    "multi_head_attention",
    keeps=0.5,
    hint="The heads are side by side, and nothing mixes them. What is the last of the four products?",
)
def forgets_the_output_matrix(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    return _without_output(x, w_q, w_k, w_v, w_o, num_heads, mask, x_kv)


def _without_output(x, w_q, w_k, w_v, w_o, num_heads, mask, x_kv):
    _check_layer(w_q, w_k, w_v, w_o, num_heads)
    source = x if x_kv is None else x_kv
    q, k, v = (split_heads(t @ w, num_heads) for t, w in ((x, w_q), (source, w_k), (source, w_v)))
    return merge_heads(masked_attention(q, k, v, _head_axis(mask)))


@mistake("multi_head_attention", keeps=0.5, hint="w_o is [H*d_v, D] and multiplies from the right, as it stands.")
def transposes_the_output_matrix(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    return _without_output(x, w_q, w_k, w_v, w_o, num_heads, mask, x_kv) @ w_o.T


@mistake(
    "multi_head_attention",
    keeps=0.5,
    hint="nn.Linear keeps its weight as [out, in]; this course keeps [in, out]. A square matrix hides the difference.",
)
def projects_with_the_transposes(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    _check_layer(w_q, w_k, w_v, w_o, num_heads)
    return _layer(x, w_q.T, w_k.T, w_v.T, w_o, num_heads, mask, x_kv)


@mistake(
    "multi_head_attention",
    hint="The head size is taken to be D // H. It comes from the weights: their columns, divided by H.",
)
def takes_the_head_size_from_the_width(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    def split(y, num_heads):
        return y.reshape(y.shape[0], y.shape[1], num_heads, x.shape[-1] // num_heads).transpose(1, 2)

    return _layer(x, w_q, w_k, w_v, w_o, num_heads, mask, x_kv, split=split)


@mistake(
    "multi_head_attention",
    keeps=0.5,
    hint="Axis 2 is right for the slide's [H, N, N]. With a batch, axis 2 is the queries: each query should "
    "distribute over the keys, so which sum must be 1?",
)
def normalizes_over_the_queries(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    def attend(q, k, v, mask):
        scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)
        if mask is None:
            return torch.softmax(scores, dim=2) @ v
        allowed = mask.expand(scores.shape)
        filled = scores.masked_fill(~allowed, float("-inf")).masked_fill(~allowed.any(dim=2, keepdim=True), 0.0)
        return torch.softmax(filled, dim=2).masked_fill(~allowed, 0.0) @ v

    return _layer(x, w_q, w_k, w_v, w_o, num_heads, mask, x_kv, attend)


@mistake(
    "multi_head_attention",
    keeps=0.5,
    hint="Axis 1 of [B, H, N, N_k] is the heads: yours share the weight. Each query distributes it over the keys.",
)
def normalizes_over_the_heads(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    def attend(q, k, v, mask):
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        scores = scores if mask is None else scores.masked_fill(~mask, float("-inf"))
        return torch.softmax(scores, dim=1).nan_to_num(0.0) @ v

    return _layer(x, w_q, w_k, w_v, w_o, num_heads, mask, x_kv, attend)


@mistake(
    "multi_head_attention",
    hint="You cut the tokens into pieces before the projection, so each head reads a part of the token. Every head "
    "reads the whole token; its columns of the weights make it different.",
)
def cuts_the_token_before_projecting(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    _check_layer(w_q, w_k, w_v, w_o, num_heads)
    source = x if x_kv is None else x_kv

    def project(tokens, w):
        pieces = split_heads(tokens, num_heads)  # [B, H, N, D / H]
        rows = w.shape[0] // num_heads
        w = w.reshape(num_heads, rows, num_heads, -1).diagonal(dim1=0, dim2=2).permute(2, 0, 1)  # [H, D / H, d]
        return pieces @ w

    q, k, v = project(x, w_q), project(source, w_k), project(source, w_v)
    return merge_heads(masked_attention(q, k, v, _head_axis(mask))) @ w_o


@mistake(
    "multi_head_attention",
    keeps=0.5,
    hint="The heads are cut by a reshape to the final shape, which mixes the tokens. Use split_heads.",
)
def splits_by_reshaping_alone(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    def split(y, num_heads):
        return y.reshape(y.shape[0], num_heads, y.shape[1], -1)

    return _layer(x, w_q, w_k, w_v, w_o, num_heads, mask, x_kv, split=split)


@mistake(
    "multi_head_attention",
    keeps=0.5,
    hint="Reshaping to [B*H, N, d] is the split without its second step, with the batch merged in: tokens of one "
    "sentence become heads. Move the heads first.",
)
def merges_batch_and_heads_by_reshaping(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    def flat(y, num_heads):
        return y.reshape(y.shape[0] * num_heads, y.shape[1], -1)

    def attend(q, k, v, mask):
        if mask is not None:
            mask = mask.expand(x.shape[0], num_heads, q.shape[1], k.shape[1]).reshape(-1, q.shape[1], k.shape[1])
        return masked_attention(q, k, v, mask)

    return _layer(
        x, w_q, w_k, w_v, w_o, num_heads, mask, x_kv, attend, flat, lambda y: y.reshape(x.shape[0], x.shape[1], -1)
    )


@mistake(
    "multi_head_attention",
    keeps=0.5,
    hint="The heads' answers are merged without moving the heads back next to d: a row holds several tokens.",
)
def merges_by_reshaping_alone(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    def merge(y):
        return y.reshape(y.shape[0], y.shape[2], -1)

    return _layer(x, w_q, w_k, w_v, w_o, num_heads, mask, x_kv, merge=merge)


@mistake(
    "multi_head_attention",
    keeps=0.5,
    hint="After the transpose the memory is not in the order of the axes: `view` refuses. reshape copies where it "
    "must.",
)
def merges_with_view(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    def merge(y):
        return y.transpose(1, 2).view(y.shape[0], y.shape[2], -1)

    return _layer(x, w_q, w_k, w_v, w_o, num_heads, mask, x_kv, merge=merge)


@mistake(
    "multi_head_attention",
    hint="The axes of a [B, N, N] mask meet [B, H, N, N] from the right, so the sentences meet the heads. Where does "
    "the missing axis belong?",
)
def lets_sentence_masks_meet_heads(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    mask = mask.unsqueeze(0) if mask is not None and mask.dim() == 3 else mask
    return _layer(x, w_q, w_k, w_v, w_o, num_heads, mask, x_kv)


@mistake(
    "multi_head_attention",
    hint="The sentences' masks are repeated for the heads in the wrong order: a b a b, where sentence a needs a a. An "
    "axis of size 1 saves the repeating.",
)
def repeats_the_masks_in_the_wrong_order(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    if mask is not None and mask.dim() == 3:
        mask = mask.repeat(num_heads, 1, 1).reshape(x.shape[0], num_heads, *mask.shape[1:])
    return _layer(x, w_q, w_k, w_v, w_o, num_heads, mask, x_kv)


@mistake("multi_head_attention", hint="Changing the mask does not change your answer. Is it passed on?")
def ignores_the_mask(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    return _layer(x, w_q, w_k, w_v, w_o, num_heads, None, x_kv)


@mistake("multi_head_attention", hint="All sentences wear the mask of the first. Each row of the batch has its own.")
def uses_the_first_mask_for_all(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    mask = mask[0] if mask is not None and mask.dim() == 3 else mask
    return _layer(x, w_q, w_k, w_v, w_o, num_heads, mask, x_kv)


@mistake(
    "multi_head_attention",
    hint="An axis is inserted into every mask, whatever its number of axes. A mask of four axes has its head axis "
    "already.",
)
def inserts_a_head_axis_always(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    _check_layer(w_q, w_k, w_v, w_o, num_heads)
    source = x if x_kv is None else x_kv
    q, k, v = (split_heads(t @ w, num_heads) for t, w in ((x, w_q), (source, w_k), (source, w_v)))
    return merge_heads(masked_attention(q, k, v, mask if mask is None else mask.unsqueeze(1))) @ w_o


@mistake(
    "multi_head_attention",
    hint="All heads of a sentence wear the mask of head 0. A mask of four axes may have one for each.",
)
def all_heads_wear_the_first_mask(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    mask = mask[:, :1] if mask is not None and mask.dim() == 4 else mask
    return _layer(x, w_q, w_k, w_v, w_o, num_heads, mask, x_kv)


@mistake(
    "multi_head_attention", hint="In this course True means: may attend. Print the weights for a mask of all True."
)
def reads_the_mask_upside_down(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    return _layer(x, w_q, w_k, w_v, w_o, num_heads, None if mask is None else ~mask, x_kv)


@mistake("multi_head_attention", hint="Rows of a mask are queries and columns are keys; yours are exchanged.")
def transposes_the_mask(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    return _layer(x, w_q, w_k, w_v, w_o, num_heads, None if mask is None else mask.transpose(-2, -1), x_kv)


@mistake(
    "multi_head_attention",
    hint="Scores are multiplied by the mask. A score of zero is a score like others, since exp(0) = 1.",
)
def multiplies_the_scores_by_the_mask(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    def attend(q, k, v, mask):
        scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)
        return torch.softmax(scores if mask is None else scores * mask, dim=-1) @ v

    return _layer(x, w_q, w_k, w_v, w_o, num_heads, mask, x_kv, attend)


@mistake(
    "multi_head_attention",
    hint="The weights are masked after the softmax, so the rows no longer sum to 1: forbidden keys have taken their "
    "share.",
)
def masks_after_the_softmax(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    def attend(q, k, v, mask):
        weights = torch.softmax((q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1), dim=-1)
        return (weights if mask is None else weights * mask) @ v

    return _layer(x, w_q, w_k, w_v, w_o, num_heads, mask, x_kv, attend)


@mistake(
    "multi_head_attention",
    hint="A query with no key gets NaN: a row of minus infinities is 0/0. Such a row is zero here; masked_attention "
    "knows.",
)
def leaves_nan_where_no_key_is_allowed(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    def attend(q, k, v, mask):
        scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)
        return torch.softmax(scores if mask is None else scores.masked_fill(~mask, float("-inf")), dim=-1) @ v

    return _layer(x, w_q, w_k, w_v, w_o, num_heads, mask, x_kv, attend)


@mistake(
    "multi_head_attention",
    hint="A query with no key gets the average of all values: with -1e9 everywhere the softmax is uniform. The row is "
    "zero.",
)
def averages_where_no_key_is_allowed(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    def attend(q, k, v, mask):
        scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)
        return torch.softmax(scores if mask is None else scores.masked_fill(~mask, -1e9), dim=-1) @ v

    return _layer(x, w_q, w_k, w_v, w_o, num_heads, mask, x_kv, attend)


@mistake("multi_head_attention", hint="Nothing of x_kv is read: where do keys and values come from when it is given?")
def ignores_the_second_sequence(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    return _layer(x, w_q, w_k, w_v, w_o, num_heads, mask, None)


@mistake(
    "multi_head_attention", hint="Keys come from x_kv and values from x: both come from the sequence that is read."
)
def takes_only_keys_from_the_second_sequence(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    _check_layer(w_q, w_k, w_v, w_o, num_heads)
    source = x if x_kv is None else x_kv
    q, k, v = split_heads(x @ w_q, num_heads), split_heads(source @ w_k, num_heads), split_heads(x @ w_v, num_heads)
    return merge_heads(masked_attention(q, k, v, _head_axis(mask))) @ w_o


@mistake("multi_head_attention", hint="The roles are exchanged: x asks (queries), x_kv is read (keys and values).")
def asks_with_the_second_sequence(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    source = x if x_kv is None else x_kv
    return _layer(source, w_q, w_k, w_v, w_o, num_heads, mask, x)


@mistake(
    "multi_head_attention",
    keeps=0.5,
    hint="Keys and values are exchanged: which decides the weights, and which is mixed?",
)
def exchanges_keys_and_values(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    return _layer(x, w_q, w_k, w_v, w_o, num_heads, mask, x_kv, lambda q, k, v, mask: masked_attention(q, v, k, mask))


@mistake(
    "multi_head_attention",
    keeps=0.5,
    hint="You mix the inputs themselves, the slide's Y = A X. The weights mix the values, Y = A V; else W_V does "
    "nothing.",
)
def mixes_the_inputs_instead_of_the_values(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    _check_layer(w_q, w_k, w_v, w_o, num_heads)
    source = x if x_kv is None else x_kv
    q, k = split_heads(x @ w_q, num_heads), split_heads(source @ w_k, num_heads)
    return merge_heads(masked_attention(q, k, split_heads(source, num_heads), _head_axis(mask))) @ w_o


@mistake(
    "multi_head_attention",
    hint="All columns attend as one head: num_heads changes nothing. Split after the projection.",
)
def attends_with_one_wide_head(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    _check_layer(w_q, w_k, w_v, w_o, num_heads)
    if mask is not None and mask.dim() == 4:
        mask = mask[:, 0]
    return _layer(x, w_q, w_k, w_v, w_o, 1, mask, x_kv)


@mistake(
    "multi_head_attention",
    hint="Right numbers, but the heads are computed one after the other in Python. They are a batch axis: the "
    "products take all of them at once.",
)
def loops_over_the_heads(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    _check_layer(w_q, w_k, w_v, w_o, num_heads)
    source = x if x_kv is None else x_kv
    q, k, v = (split_heads(t @ w, num_heads) for t, w in ((x, w_q), (source, w_k), (source, w_v)))
    mask = _head_axis(mask)
    heads = []
    for h in range(num_heads):
        own = mask if mask is None or mask.dim() == 2 else mask[:, min(h, mask.shape[1] - 1)]
        heads.append(masked_attention(q[:, h], k[:, h], v[:, h], own))
    return torch.cat(heads, dim=-1) @ w_o


@mistake(
    "multi_head_attention",
    hint="Right numbers, but sentence after sentence in Python. The batch is an axis of every product already.",
)
def loops_over_the_sentences(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    _check_layer(w_q, w_k, w_v, w_o, num_heads)
    rows = []
    for b in range(x.shape[0]):
        own = mask if mask is None or mask.dim() == 2 else mask[min(b, mask.shape[0] - 1)].unsqueeze(0)
        other = None if x_kv is None else x_kv[b : b + 1]
        rows.append(_layer(x[b : b + 1], w_q, w_k, w_v, w_o, num_heads, own, other))
    return torch.cat(rows)


@mistake("multi_head_attention", hint="Half precision comes back as float32: the dtype that comes in goes out.")
def returns_float32(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    answer = _layer(x, w_q, w_k, w_v, w_o, num_heads, mask, x_kv)
    return answer.float() if answer.dtype == torch.float16 else answer


@mistake("multi_head_attention", hint="Sizes that cannot match pass, or fail somewhere inside torch: check them first.")
def checks_nothing(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    d, d_v = w_q.shape[1] // num_heads, w_v.shape[1] // num_heads
    w_q, w_k, w_v = w_q[:, : d * num_heads], w_k[:, : d * num_heads], w_v[:, : d_v * num_heads]
    source = x if x_kv is None else x_kv
    q, k, v = (split_heads(t @ w, num_heads) for t, w in ((x, w_q), (source, w_k), (source, w_v)))
    return merge_heads(masked_attention(q, k, v, _head_axis(mask))) @ w_o


@mistake(
    "multi_head_attention", hint="`view` joins axes only where the memory lies in their order: x may be transposed."
)
def views_all_tokens_as_one_list(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    tokens = x.view(x.shape[0] * x.shape[1], x.shape[2])
    return _layer(tokens.view(x.shape), w_q, w_k, w_v, w_o, num_heads, mask, x_kv)


@mistake(
    "multi_head_attention",
    hint="The attention weights are cut off from the graph, so W_Q and W_K get no gradient: nothing would ever learn "
    "them.",
)
def detaches_the_weights(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    return _layer(
        x, w_q, w_k, w_v, w_o, num_heads, mask, x_kv, lambda q, k, v, m: masked_attention(q.detach(), k.detach(), v, m)
    )


@mistake("multi_head_attention", hint="The caller's mask was changed in place: call the function twice and compare.")
def inverts_the_callers_mask(x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    answer = _layer(x, w_q, w_k, w_v, w_o, num_heads, mask, x_kv)
    if mask is not None:
        mask.logical_not_()
    return answer


# ── multi_head_sum ───────────────────────────────────────────────────────────────────────────────────────────


def _check_sum(w_heads, num_heads):
    if w_heads.shape[0] != num_heads:
        raise ValueError(f"w_heads holds {w_heads.shape[0]} matrices for {num_heads} heads")


def _answers(x, w_q, w_k, w_v, w_heads, num_heads, mask):
    """What each head answers, [B, H, N, d_v]."""
    _check_sum(w_heads, num_heads)
    q, k, v = (split_heads(x @ w, num_heads) for w in (w_q, w_k, w_v))
    return masked_attention(q, k, v, _head_axis(mask))


@mistake(
    "multi_head_sum",
    keeps=0.5,
    hint="Your answer is the mean over the heads. The notes' words, a weighted average, mislead: the weights are "
    "matrices, and the heads are added.",
)
def averages_the_heads(x, w_q, w_k, w_v, w_heads, num_heads, mask=None):
    return (_answers(x, w_q, w_k, w_v, w_heads, num_heads, mask) @ w_heads).mean(dim=1)


@mistake(
    "multi_head_sum",
    keeps=0.5,
    hint="The queries stand in the place of the values, as in the notes' formula. What is mixed by the weights?",
)
def mixes_the_queries(x, w_q, w_k, w_v, w_heads, num_heads, mask=None):
    return (_answers(x, w_q, w_k, w_q, w_heads, num_heads, mask) @ w_heads).sum(dim=1)


@mistake("multi_head_sum", hint="Every head writes with the matrix of head 0. Each has its own.")
def writes_with_one_matrix(x, w_q, w_k, w_v, w_heads, num_heads, mask=None):
    return (_answers(x, w_q, w_k, w_v, w_heads, num_heads, mask) @ w_heads[:1]).sum(dim=1)


@mistake(
    "multi_head_sum",
    hint="The heads are added before their matrices are applied. Then head 0's answer goes through head 1's matrix "
    "too.",
)
def adds_before_projecting(x, w_q, w_k, w_v, w_heads, num_heads, mask=None):
    return _answers(x, w_q, w_k, w_v, w_heads, num_heads, mask).sum(dim=1) @ w_heads.sum(dim=0)


@mistake(
    "multi_head_sum",
    hint="The matrices are stacked with d outside and H inside. Rows h*d … (h+1)*d - 1 of w_o belong to head h.",
)
def stacks_the_matrices_in_the_wrong_order(x, w_q, w_k, w_v, w_heads, num_heads, mask=None):
    y = merge_heads(_answers(x, w_q, w_k, w_v, w_heads, num_heads, mask))
    return y @ w_heads.transpose(0, 1).reshape(-1, w_heads.shape[2])


@mistake("multi_head_sum", keeps=0.5, hint="The matrices are used in reverse: head 0 writes with w_heads[0].")
def pairs_heads_and_matrices_in_reverse(x, w_q, w_k, w_v, w_heads, num_heads, mask=None):
    return (_answers(x, w_q, w_k, w_v, w_heads, num_heads, mask) @ w_heads.flip(0)).sum(dim=1)


@mistake(
    "multi_head_sum",
    keeps=0.5,
    hint="The heads' outputs are not added yet: the answer is [B, N, D], without a head axis.",
)
def forgets_the_sum(x, w_q, w_k, w_v, w_heads, num_heads, mask=None):
    return _answers(x, w_q, w_k, w_v, w_heads, num_heads, mask) @ w_heads


@mistake("multi_head_sum", hint="Changing the mask does not change your answer. Is it passed on?")
def sums_without_the_mask(x, w_q, w_k, w_v, w_heads, num_heads, mask=None):
    return (_answers(x, w_q, w_k, w_v, w_heads, num_heads, None) @ w_heads).sum(dim=1)


@mistake(
    "multi_head_sum",
    hint="A [B, N, N] mask meets the heads instead of the sentences: where does the missing axis belong?",
)
def sums_with_masks_on_the_heads(x, w_q, w_k, w_v, w_heads, num_heads, mask=None):
    mask = mask.unsqueeze(0) if mask is not None and mask.dim() == 3 else mask
    return (_answers(x, w_q, w_k, w_v, w_heads, num_heads, mask) @ w_heads).sum(dim=1)


@mistake("multi_head_sum", hint="The scale is the root of D. A head's dot product has d terms.")
def sums_scaled_by_the_model_width(x, w_q, w_k, w_v, w_heads, num_heads, mask=None):
    _check_sum(w_heads, num_heads)
    q, k, v = (split_heads(x @ w, num_heads) for w in (w_q, w_k, w_v))
    return (_attend_scaled(q, k, v, _head_axis(mask), math.sqrt(x.shape[-1])) @ w_heads).sum(dim=1)


@mistake("multi_head_sum", hint="More or fewer matrices than heads pass unseen. The docstring asks for a ValueError.")
def accepts_any_number_of_matrices(x, w_q, w_k, w_v, w_heads, num_heads, mask=None):
    w_heads = w_heads[:num_heads]
    return (_answers(x, w_q, w_k, w_v, w_heads, num_heads, mask) @ w_heads).sum(dim=1)


@mistake("multi_head_sum", hint="Half precision comes back as float32: the dtype that comes in goes out.")
def sums_in_float32(x, w_q, w_k, w_v, w_heads, num_heads, mask=None):
    y = _answers(x, w_q, w_k, w_v, w_heads, num_heads, mask)
    return (y.float() @ w_heads.float()).sum(dim=1) if y.dtype == torch.float16 else (y @ w_heads).sum(dim=1)


# ── grouped_query_attention ──────────────────────────────────────────────────────────────────────────────────


def _group(q, k, v):
    if q.shape[1] % k.shape[1]:
        raise ValueError(f"{q.shape[1]} query heads cannot share {k.shape[1]} key heads")
    if v.shape[1] != k.shape[1]:
        raise ValueError(f"{k.shape[1]} key heads but {v.shape[1]} value heads")
    return q.shape[1] // k.shape[1]


def _shared(q, k, v):
    group = _group(q, k, v)
    return k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)


@mistake(
    "grouped_query_attention",
    keeps=0.5,
    hint="Your heads read 0 1 2 0 1 2. Neighbouring query heads share: 0 0 1 1 2 2. torch repeats in both orders.",
)
def deals_the_key_heads_out_in_turn(q, k, v, mask=None):
    group = _group(q, k, v)
    return masked_attention(q, k.repeat(1, group, 1, 1), v.repeat(1, group, 1, 1), _head_axis(mask))


@mistake("grouped_query_attention", hint="All query heads read key head 0. There are H_kv of them.")
def reads_the_first_key_head_only(q, k, v, mask=None):
    _group(q, k, v)
    return masked_attention(q, k[:, :1], v[:, :1], _head_axis(mask))


@mistake("grouped_query_attention", hint="The key heads are averaged into one. Each group reads its own.")
def averages_the_key_heads(q, k, v, mask=None):
    _group(q, k, v)
    return masked_attention(q, k.mean(dim=1, keepdim=True), v.mean(dim=1, keepdim=True), _head_axis(mask))


@mistake("grouped_query_attention", hint="The queries of a group are averaged, so H_kv heads come out. All H stay.")
def averages_the_queries_of_a_group(q, k, v, mask=None):
    group = _group(q, k, v)
    return masked_attention(q.unflatten(1, (-1, group)).mean(dim=2), k, v, _head_axis(mask))


@mistake(
    "grouped_query_attention", hint="Keys are shared in one order and values in another. Both belong to one group."
)
def shares_keys_and_values_differently(q, k, v, mask=None):
    group = _group(q, k, v)
    return masked_attention(q, k.repeat(1, group, 1, 1), v.repeat_interleave(group, dim=1), _head_axis(mask))


@mistake(
    "grouped_query_attention",
    hint="A [B, N_q, N_k] mask meets the heads instead of the sentences: where does the missing axis belong?",
)
def lets_sentence_masks_meet_query_heads(q, k, v, mask=None):
    k, v = _shared(q, k, v)
    return masked_attention(q, k, v, mask)


@mistake("grouped_query_attention", hint="Changing the mask does not change your answer. Is it passed on?")
def groups_without_the_mask(q, k, v, mask=None):
    k, v = _shared(q, k, v)
    return masked_attention(q, k, v)


@mistake("grouped_query_attention", hint="The scale is the root of the value size; the dot product has d terms.")
def groups_scaled_by_the_value_size(q, k, v, mask=None):
    k, v = _shared(q, k, v)
    return _attend_scaled(q, k, v, _head_axis(mask), math.sqrt(v.shape[-1]))


@mistake("grouped_query_attention", hint="The scores are not scaled by the root of the head size.", keeps=0.5)
def groups_without_a_scale(q, k, v, mask=None):
    k, v = _shared(q, k, v)
    return _attend_scaled(q, k, v, _head_axis(mask), 1.0)


@mistake(
    "grouped_query_attention",
    hint="Heads that cannot be shared evenly are given out somehow. The docstring asks for a ValueError with both "
    "numbers.",
)
def shares_unevenly(q, k, v, mask=None):
    num_heads = q.shape[1]
    k_of = [h * k.shape[1] // num_heads for h in range(num_heads)]
    v_of = [h * v.shape[1] // num_heads for h in range(num_heads)]
    return masked_attention(q, k[:, k_of], v[:, v_of], _head_axis(mask))


@mistake(
    "grouped_query_attention",
    keeps=0.5,
    hint="Your groups are shifted by one. Heads count from 0: heads 0 … H/H_kv - 1 are one.",
)
def counts_the_heads_from_one(q, k, v, mask=None):
    group = _group(q, k, v)
    heads = [min((h + 1) // group, k.shape[1] - 1) for h in range(q.shape[1])]
    return masked_attention(q, k[:, heads], v[:, heads], _head_axis(mask))


@mistake("grouped_query_attention", hint="The query heads are cut with the group outside: neighbours end up apart.")
def groups_distant_query_heads(q, k, v, mask=None):
    group = _group(q, k, v)
    k, v = _shared(q, k, v)
    grouped = q.unflatten(1, (group, -1)).transpose(1, 2).flatten(1, 2)
    return masked_attention(grouped, k, v, _head_axis(mask))


@mistake("grouped_query_attention", hint="Half precision comes back as float32: the dtype that comes in goes out.")
def groups_in_float32(q, k, v, mask=None):
    k, v = _shared(q, k, v)
    answer = masked_attention(q, k, v, _head_axis(mask))
    return answer.float() if answer.dtype == torch.float16 else answer


@mistake("grouped_query_attention", hint="All heads of a sentence wear the mask of head 0; four axes are one a head.")
def wears_the_mask_of_head_zero(q, k, v, mask=None):
    k, v = _shared(q, k, v)
    return masked_attention(q, k, v, mask[:, :1] if mask is not None and mask.dim() == 4 else _head_axis(mask))


# ── attention_flops ──────────────────────────────────────────────────────────────────────────────────────────


def _flops(b, n, d_model, num_heads, d_head, **changed):
    """The right count, with some of the four products exchanged."""
    if min(b, n, d_model, num_heads, d_head) < 1:
        raise ValueError(f"sizes must be at least 1, got {b}, {n}, {d_model}, {num_heads}, {d_head}")
    width = num_heads * d_head
    counts = {
        "qkv": 6 * b * n * d_model * width,
        "scores": 2 * b * n * n * width,
        "values": 2 * b * n * n * width,
        "output": 2 * b * n * width * d_model,
    } | changed
    return counts | {"total": sum(counts.values())}


@mistake("attention_flops", hint="A multiply-add is one operation in your count. In this course it is two.", keeps=0.5)
def counts_a_multiply_add_once(b, n, d_model, num_heads, d_head):
    return {key: value // 2 for key, value in _flops(b, n, d_model, num_heads, d_head).items()}


@mistake("attention_flops", hint="One projection is counted. How many matrices does x meet on its way in?")
def counts_one_projection(b, n, d_model, num_heads, d_head):
    return _flops(b, n, d_model, num_heads, d_head, qkv=2 * b * n * d_model * num_heads * d_head)


@mistake("attention_flops", hint="The heads are missing from scores and values: each head has a product of its own.")
def forgets_the_heads(b, n, d_model, num_heads, d_head):
    one = 2 * b * n * n * d_head
    return _flops(b, n, d_model, num_heads, d_head, scores=one, values=one)


@mistake("attention_flops", hint="Scores and values are counted with D columns. They have H*d, which need not be D.")
def takes_the_model_width_for_the_heads(b, n, d_model, num_heads, d_head):
    one = 2 * b * n * n * d_model
    return _flops(b, n, d_model, num_heads, d_head, scores=one, values=one)


@mistake("attention_flops", hint="Your count counts every head with all D columns: H times too much. A head has d.")
def gives_every_head_the_whole_width(b, n, d_model, num_heads, d_head):
    one = 2 * b * num_heads * n * n * d_model
    return _flops(b, n, d_model, num_heads, d_head, scores=one, values=one)


@mistake("attention_flops", hint="The projections are taken to be D × D. Their columns are H*d.")
def takes_square_projections(b, n, d_model, num_heads, d_head):
    return _flops(
        b, n, d_model, num_heads, d_head, qkv=6 * b * n * d_model * d_model, output=2 * b * n * d_model * d_model
    )


@mistake("attention_flops", keeps=0.5, hint="The batch does not count in your answer.")
def forgets_the_batch(b, n, d_model, num_heads, d_head):
    _flops(b, n, d_model, num_heads, d_head)
    return _flops(1, n, d_model, num_heads, d_head)


@mistake("attention_flops", hint="The total is not the sum of all four products: is the output projection in it?")
def leaves_the_output_out_of_the_total(b, n, d_model, num_heads, d_head):
    counts = _flops(b, n, d_model, num_heads, d_head)
    return counts | {"total": counts["total"] - counts["output"]}


@mistake(
    "attention_flops",
    keeps=0.5,
    hint="Scores are counted for half of the pairs, as if masked pairs were free. They are not.",
)
def counts_half_of_the_pairs(b, n, d_model, num_heads, d_head):
    one = b * n * (n + 1) * num_heads * d_head
    return _flops(b, n, d_model, num_heads, d_head, scores=one, values=one)


@mistake("attention_flops", hint="The softmax is in your scores. Only the four products are counted here.")
def counts_the_softmax(b, n, d_model, num_heads, d_head):
    scores = 2 * b * n * n * num_heads * d_head + 3 * b * num_heads * n * n
    return _flops(b, n, d_model, num_heads, d_head, scores=scores)


@mistake(
    "attention_flops", hint="Floats lose the last digits of large counts. Multiply whole numbers, and do not divide."
)
def counts_in_floats(b, n, d_model, num_heads, d_head):
    return {key: float(value) for key, value in _flops(b, n, d_model, num_heads, d_head).items()}


@mistake("attention_flops", hint="A size of 0 or below gets a count. The docstring asks for a ValueError.")
def counts_impossible_sizes(b, n, d_model, num_heads, d_head):
    sizes = [max(1, size) for size in (b, n, d_model, num_heads, d_head)]
    return _flops(*sizes)


@mistake("attention_flops", hint="The scores grow with N instead of N²: every query meets every key.")
def counts_linear_scores(b, n, d_model, num_heads, d_head):
    return _flops(b, n, d_model, num_heads, d_head, scores=2 * b * n * num_heads * d_head)


# ── attention_matrix_bytes ───────────────────────────────────────────────────────────────────────────────────


def _check_bytes(n, num_heads, bytes_per_element):
    if min(n, num_heads, bytes_per_element) < 1:
        raise ValueError(f"sizes must be at least 1, got {n}, {num_heads}, {bytes_per_element}")


@mistake("attention_matrix_bytes", hint="Those are elements. How many bytes does each take?", keeps=0.5)
def counts_elements(n, num_heads, bytes_per_element):
    _check_bytes(n, num_heads, bytes_per_element)
    return num_heads * n * n


@mistake("attention_matrix_bytes", keeps=0.5, hint="One matrix is counted. Each head has its own.")
def counts_one_head(n, num_heads, bytes_per_element):
    _check_bytes(n, num_heads, bytes_per_element)
    return n * n * bytes_per_element


@mistake("attention_matrix_bytes", hint="Scores and weights are both counted: one matrix a head is asked for.")
def counts_scores_and_weights(n, num_heads, bytes_per_element):
    _check_bytes(n, num_heads, bytes_per_element)
    return 2 * num_heads * n * n * bytes_per_element


@mistake(
    "attention_matrix_bytes", hint="Your memory grows with N, not with N²: every query has a weight for every key."
)
def counts_a_row_a_head(n, num_heads, bytes_per_element):
    _check_bytes(n, num_heads, bytes_per_element)
    return num_heads * n * bytes_per_element


@mistake("attention_matrix_bytes", hint="Bytes are asked for, and a whole number; yours is divided into a larger unit.")
def answers_in_mebibytes(n, num_heads, bytes_per_element):
    _check_bytes(n, num_heads, bytes_per_element)
    return num_heads * n * n * bytes_per_element / 1024**2


@mistake(
    "attention_matrix_bytes", keeps=0.5, hint="Half precision is assumed. The bytes of an element are an argument."
)
def assumes_two_bytes(n, num_heads, bytes_per_element):
    _check_bytes(n, num_heads, bytes_per_element)
    return num_heads * n * n * 2


@mistake("attention_matrix_bytes", keeps=0.5, hint="Only the causal half is counted; the whole square is stored.")
def counts_the_lower_triangle(n, num_heads, bytes_per_element):
    _check_bytes(n, num_heads, bytes_per_element)
    return num_heads * n * (n + 1) // 2 * bytes_per_element


@mistake("attention_matrix_bytes", hint="A size of 0 gets an answer. The docstring asks for a ValueError.")
def accepts_nothing_at_all(n, num_heads, bytes_per_element):
    return num_heads * n * n * bytes_per_element


# ── crossover_length ─────────────────────────────────────────────────────────────────────────────────────────


def _check_width(d_model):
    if d_model < 1:
        raise ValueError(f"d_model must be at least 1, got {d_model}")


@mistake(
    "crossover_length", keeps=0.5, hint="N = D: there are four projections, and scores and values are two products."
)
def answers_the_width(d_model):
    _check_width(d_model)
    return d_model


@mistake("crossover_length", hint="N = 6D is where the quadratic part meets the whole block, MLP and all.")
def compares_with_the_whole_block(d_model):
    _check_width(d_model)
    return 6 * d_model


@mistake("crossover_length", hint="Only the scores are on your left side: the weighted values are quadratic too.")
def compares_the_scores_alone(d_model):
    _check_width(d_model)
    return 4 * d_model


@mistake(
    "crossover_length",
    keeps=0.5,
    hint="The output projection is missing on your side of the projections: four, not three.",
)
def forgets_the_output_projection(d_model):
    _check_width(d_model)
    return 3 * d_model // 2


@mistake("crossover_length", hint="The answer for one width is returned for all: it depends on d_model.")
def knows_one_model_only(d_model):
    _check_width(d_model)
    return 3200


@mistake("crossover_length", hint="A length is a whole number of tokens; yours is a float.")
def answers_a_float(d_model):
    _check_width(d_model)
    return 8 * d_model**2 / (4 * d_model)


@mistake("crossover_length", keeps=0.5, hint="N = D²: divide 8 N D² = 4 N² D by everything that stands on both sides.")
def answers_the_square(d_model):
    _check_width(d_model)
    return d_model**2


@mistake("crossover_length", hint="A width of 0 gets an answer. The docstring asks for a ValueError.")
def accepts_no_width(d_model):
    return 2 * d_model


# ── explain_memory_figure ────────────────────────────────────────────────────────────────────────────────────


def _search(n, num_heads, claimed, sizes=(1, 2, 4, 8), divisions=(0, 1, 2, 3, 4), tolerance=0.0005):
    for element in sizes:
        for binary in divisions:
            unit = 1024**binary * 1000 ** (4 - binary)
            if abs(attention_matrix_bytes(n, num_heads, element) / unit - claimed) <= tolerance:
                return element, binary
    return None


@mistake(
    "explain_memory_figure",
    hint="The pair for the lecture's figure comes out whatever is asked. Other figures have other explanations.",
)
def answers_for_the_lecture_only(n, num_heads, claimed):
    return 2, 3


@mistake("explain_memory_figure", hint="You try TB and TiB. The lecture's figure is neither: try the mixtures too.")
def tries_honest_units_only(n, num_heads, claimed):
    return _search(n, num_heads, claimed, divisions=(0, 4))


@mistake("explain_memory_figure", hint="Only elements of two bytes are tried. Figures are told for others too.")
def tries_half_precision_only(n, num_heads, claimed):
    return _search(n, num_heads, claimed, sizes=(2,))


@mistake(
    "explain_memory_figure", keeps=0.5, hint="float32 and float64 only: the lecture's figure has smaller elements."
)
def tries_wide_elements_only(n, num_heads, claimed):
    return _search(n, num_heads, claimed, sizes=(4, 8))


@mistake(
    "explain_memory_figure",
    hint="You return divisions by 1000; the number of divisions by 1024 is asked for.",
    keeps=0.5,
)
def counts_the_other_divisions(n, num_heads, claimed):
    found = _search(n, num_heads, claimed)
    return found and (found[0], 4 - found[1])


@mistake("explain_memory_figure", hint="The pair is in the other order: the element size comes first.", keeps=0.5)
def returns_the_pair_in_reverse(n, num_heads, claimed):
    found = _search(n, num_heads, claimed)
    return found and (found[1], found[0])


@mistake(
    "explain_memory_figure",
    keeps=0.5,
    hint="A figure in one decimal would pass. Three decimals are given: compare to three.",
)
def compares_too_loosely(n, num_heads, claimed):
    return _search(n, num_heads, claimed, tolerance=0.05)


@mistake(
    "explain_memory_figure",
    keeps=0.5,
    hint="Floats are hardly ever exactly equal: the figure was rounded to three decimals.",
)
def compares_exactly(n, num_heads, claimed):
    return _search(n, num_heads, claimed, tolerance=0.0)


@mistake("explain_memory_figure", hint="Where nothing explains the figure you return the nearest: None is asked for.")
def returns_the_nearest(n, num_heads, claimed):
    def distance(pair):
        unit = 1024 ** pair[1] * 1000 ** (4 - pair[1])
        return abs(attention_matrix_bytes(n, num_heads, pair[0]) / unit - claimed)

    return min(((e, b) for e in (1, 2, 4, 8) for b in range(5)), key=distance)


@mistake("explain_memory_figure", hint="No figure is ever explained: is the comparison ever true for 1.28?")
def explains_nothing(n, num_heads, claimed):
    return None


@mistake(
    "multi_head_sum",
    hint="A mask of four axes may say something else to each head.",
    replace=(
        "masked_attention(q, k, v, mask)",
        "masked_attention(q, k, v, mask[:, :1] if mask is not None and mask.dim() == 4 else mask)",
    ),
)
def sums_under_the_mask_of_head_zero(): ...


@mistake(
    "grouped_query_attention",
    hint="Three query heads cannot share six key heads: which of the two numbers must be a multiple of the other?",
    replace=[
        ("if num_heads % num_kv_heads:", "if max(num_heads, num_kv_heads) % min(num_heads, num_kv_heads):"),
        ("group = num_heads // num_kv_heads", "group = max(num_heads // num_kv_heads, 1)"),
        ("k.repeat_interleave(group, dim=1)", "k.repeat_interleave(group, dim=1)[:, :num_heads]"),
        ("v.repeat_interleave(group, dim=1)", "v.repeat_interleave(group, dim=1)[:, :num_heads]"),
    ],
)
def shares_more_key_heads_than_there_are_queries(): ...


@mistake(
    "grouped_query_attention",
    hint="In half precision products beyond 65504 are infinite. Widen before you multiply.",
    replace=(
        "return masked_attention(q, k, v, mask)",
        """
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool) if mask is None else mask
        return masked_softmax(scores, allowed) @ v
        """,
    ),
)
def groups_overflow_in_half(): ...


@mistake(
    "multi_head_attention",
    hint="In half precision products beyond 65504 are infinite. Widen before you multiply.",
    replace=(
        "y = masked_attention(q, k, v, mask)  # [B, H, N, d_v]",
        """
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool) if mask is None else mask
        y = masked_softmax(scores, allowed) @ v
        """,
    ),
)
def scores_overflow_in_half(): ...


@mistake(
    "multi_head_attention",
    hint="-10000 is a number, and allowed scores may be lower. Which one is lower than all of them?",
    replace=(
        "y = masked_attention(q, k, v, mask)  # [B, H, N, d_v]",
        """
        scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool) if mask is None else mask
        y = (torch.softmax(scores.masked_fill(~allowed, -1e4), dim=-1) * allowed) @ v
        """,
    ),
)
def fills_with_minus_ten_thousand(): ...

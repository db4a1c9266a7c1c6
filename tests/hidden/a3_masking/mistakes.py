"""Wrong answers that people give, each with one wrong idea, and the hint for whoever had it."""

import math

import torch

from autograder.suite import mistake

# --- simple_self_attention ---------------------------------------------------------------------------------------


def _future(n):
    return torch.ones(n, n).triu(1).bool()


def _simple_weights(x):
    wide = widen(x)
    return softmax((wide @ wide.transpose(-1, -2)).masked_fill(_future(x.shape[-2]), -math.inf))


@mistake(
    "simple_self_attention",
    hint="The first form has no projections and no scale either: compare row 2 with paper.",
    keeps=0.5,
)
def divides_by_root_d(x):
    wide = widen(x)
    scores = wide @ wide.transpose(-1, -2) / math.sqrt(x.shape[-1])
    return (softmax(scores.masked_fill(_future(x.shape[-2]), -math.inf)) @ wide).to(x.dtype)


@mistake("simple_self_attention", hint="Token i may use tokens up to i. Print the weights: is row 0 (1, 0, 0, …)?")
def looks_at_the_whole_sequence(x):
    wide = widen(x)
    return (softmax(wide @ wide.transpose(-1, -2)) @ wide).to(x.dtype)


@mistake(
    "simple_self_attention", keeps=0.5, hint="j ≤ i includes j = i. Does your first token have anything to look at?"
)
def leaves_itself_out(x):
    wide = widen(x)
    scores = (wide @ wide.transpose(-1, -2)).masked_fill(_future(x.shape[-2] + 1)[1:, 1:], -math.inf)
    scores = scores.masked_fill(torch.eye(x.shape[-2]).bool(), -math.inf)
    return (softmax(scores) @ wide).to(x.dtype)


@mistake(
    "simple_self_attention",
    keeps=0.5,
    hint="A score of 0 is a score like any other: exp(0) = 1. What turns into weight 0?",
)
def future_scores_are_zero(x):
    wide = widen(x)
    return (softmax((wide @ wide.transpose(-1, -2)).tril()) @ wide).to(x.dtype)


@mistake(
    "simple_self_attention",
    keeps=0.5,
    hint="Do your rows still sum to 1? The future may not take part in the denominator.",
)
def zeroes_the_future_after_the_softmax(x):
    wide = widen(x)
    return (softmax(wide @ wide.transpose(-1, -2)).tril() @ wide).to(x.dtype)


@mistake(
    "simple_self_attention", keeps=0.5, hint="Each row is the distribution of one query: which axis has to sum to 1?"
)
def softmax_over_the_queries(x):
    wide = widen(x)
    scores = (wide @ wide.transpose(-1, -2)).masked_fill(_future(x.shape[-2]), -math.inf)
    return (softmax(scores, dim=-2) @ wide).to(x.dtype)


@mistake(
    "simple_self_attention",
    hint="exp(89) is too much for float32 and exp(710) for float64; softmax may subtract anything first.",
)
def exponentials_without_subtracting_the_maximum(x):
    wide = widen(x)
    e = torch.exp(wide @ wide.transpose(-1, -2)).masked_fill(_future(x.shape[-2]), 0.0)
    return (e / e.sum(dim=-1, keepdim=True) @ wide).to(x.dtype)


@mistake(
    "simple_self_attention",
    keeps=0.5,
    hint="Change the last token: did the first output move? You kept the other triangle.",
)
def keeps_the_upper_triangle(x):
    wide = widen(x)
    past = torch.ones(x.shape[-2], x.shape[-2]).tril(-1).bool()
    return (softmax((wide @ wide.transpose(-1, -2)).masked_fill(past, -math.inf)) @ wide).to(x.dtype)


@mistake(
    "simple_self_attention",
    hint="The number of operations grows with N. Can one matrix product make all scores at once?",
)
def loops_over_the_tokens(x):
    wide = widen(x)
    rows = []
    for i in range(x.shape[-2]):
        past = wide[..., : i + 1, :]
        weights = softmax((past * wide[..., i : i + 1, :]).sum(-1))
        rows.append((weights.unsqueeze(-1) * past).sum(-2))
    return torch.stack(rows, dim=-2).to(x.dtype)


@mistake(
    "simple_self_attention", hint="The scores are computed in float32, and the answer is still given in the dtype of x."
)
def half_precision_comes_back_as_float32(x):
    return _simple_weights(x) @ widen(x)


# --- self_attention ----------------------------------------------------------------------------------------------


def _check_widths(x_q, x_kv, w_q, w_k, w_v):
    for x, w in ((x_q, w_q), (x_kv, w_k), (x_kv, w_v)):
        if w.shape[0] != x.shape[-1]:
            raise ValueError(f"a weight takes {w.shape[0]} features, its input has {x.shape[-1]}")
    if w_q.shape[1] != w_k.shape[1]:
        raise ValueError(f"queries have {w_q.shape[1]} features and keys {w_k.shape[1]}")


def _attend(q, k, v, scale, dim=-1):
    scores = widen(q) @ widen(k).transpose(-1, -2) * scale
    return (softmax(scores, dim=dim) @ widen(v)).to(q.dtype)


@mistake(
    "self_attention", hint="Print the standard deviation of the scores for d_k = 64. What keeps it near 1?", keeps=0.5
)
def no_scale(x, w_q, w_k, w_v):
    _check_widths(x, x, w_q, w_k, w_v)
    return _attend(x @ w_q, x @ w_k, x @ w_v, 1.0)


@mistake(
    "self_attention", keeps=0.5, hint="Which vectors are multiplied in a score? Their length is not the width of x."
)
def scales_by_the_model_width(x, w_q, w_k, w_v):
    _check_widths(x, x, w_q, w_k, w_v)
    return _attend(x @ w_q, x @ w_k, x @ w_v, x.shape[-1] ** -0.5)


@mistake(
    "self_attention",
    keeps=0.5,
    hint="Your scale is the number of tokens. A token that stands there twice must not change other scores.",
)
def scales_by_the_number_of_tokens(x, w_q, w_k, w_v):
    _check_widths(x, x, w_q, w_k, w_v)
    return _attend(x @ w_q, x @ w_k, x @ w_v, x.shape[-2] ** -0.5)


@mistake("self_attention", keeps=0.5, hint="Which vectors are in the dot product: queries and keys, or values?")
def scales_by_the_width_of_the_values(x, w_q, w_k, w_v):
    _check_widths(x, x, w_q, w_k, w_v)
    return _attend(x @ w_q, x @ w_k, x @ w_v, w_v.shape[1] ** -0.5)


@mistake(
    "self_attention", hint="For d_k = 4 it looks plausible. Measure the spread of the scores at d_k = 256.", keeps=0.5
)
def divides_by_d_k(x, w_q, w_k, w_v):
    _check_widths(x, x, w_q, w_k, w_v)
    return _attend(x @ w_q, x @ w_k, x @ w_v, 1 / w_q.shape[1])


@mistake(
    "self_attention",
    keeps=0.5,
    hint="Row i of the scores belongs to query i. Which two of your projections changed places?",
)
def queries_and_keys_swapped(x, w_q, w_k, w_v):
    _check_widths(x, x, w_q, w_k, w_v)
    return _attend(x @ w_k, x @ w_q, x @ w_v, w_q.shape[1] ** -0.5)


@mistake(
    "self_attention",
    keeps=0.5,
    hint="Each query shares 1 among the keys. Sum your weights over each axis: where is the 1?",
)
def softmax_over_the_query_axis(x, w_q, w_k, w_v):
    _check_widths(x, x, w_q, w_k, w_v)
    return _attend(x @ w_q, x @ w_k, x @ w_v, w_q.shape[1] ** -0.5, dim=-2)


@mistake(
    "self_attention",
    keeps=0.5,
    hint="The slide's dim=1 is for one sequence. With a batch in front, axis 1 is another axis.",
)
def softmax_over_axis_one(x, w_q, w_k, w_v):
    _check_widths(x, x, w_q, w_k, w_v)
    return _attend(x @ w_q, x @ w_k, x @ w_v, w_q.shape[1] ** -0.5, dim=1)


@mistake(
    "self_attention",
    keeps=0.5,
    hint="The weights here are [in, out] and multiply from the right, unlike those of nn.Linear.",
)
def weights_as_nn_linear_has_them(x, w_q, w_k, w_v):
    _check_widths(x, x, w_q, w_k, w_v)
    return _attend(x @ w_q.T, x @ w_k.T, x @ w_v.T, w_q.shape[1] ** -0.5)


@mistake(
    "self_attention",
    keeps=0.5,
    hint="The slides write Y = AX in one place. What is mixed by the weights, the tokens or their values?",
)
def mixes_the_tokens_themselves(x, w_q, w_k, w_v):
    _check_widths(x, x, w_q, w_k, w_v)
    return _attend(x @ w_q, x @ w_k, x, w_q.shape[1] ** -0.5)


@mistake(
    "self_attention",
    keeps=0.5,
    hint="One of keys and values decides the weights, the other is mixed. Use three different weights to test.",
)
def values_from_the_key_matrix(x, w_q, w_k, w_v):
    _check_widths(x, x, w_q, w_k, w_v)
    return _attend(x @ w_q, x @ w_k, x @ w_k, w_q.shape[1] ** -0.5)


@mistake("self_attention", keeps=0.5, hint="Nobody asked for a mask here: row 0 sees the whole sequence.")
def causal_from_habit(x, w_q, w_k, w_v):
    _check_widths(x, x, w_q, w_k, w_v)
    scores = widen(x @ w_q) @ widen(x @ w_k).transpose(-1, -2) / math.sqrt(w_q.shape[1])
    weights = softmax(scores.masked_fill(_future(x.shape[-2]), -math.inf))
    return (weights @ widen(x @ w_v)).to(x.dtype)


@mistake("self_attention", hint="An infinite score is too late to repair: what does float16 do with 300 · 300?")
def scores_in_half_precision(x, w_q, w_k, w_v):
    _check_widths(x, x, w_q, w_k, w_v)
    scores = (x @ w_q) @ (x @ w_k).transpose(-1, -2) / math.sqrt(w_q.shape[1])
    return softmax(scores) @ (x @ w_v)


@mistake(
    "self_attention",
    hint="Which sizes can't be right together? Say so before torch says something else, and name them.",
)
def leaves_the_sizes_unchecked(x, w_q, w_k, w_v):
    return _attend(x @ w_q, x @ w_k, x @ w_v, w_q.shape[1] ** -0.5)


# --- cross_attention ---------------------------------------------------------------------------------------------


@mistake("cross_attention", hint="There is one output for each token that asks. Who asks, and who is asked?")
def queries_from_the_source(x_q, x_kv, w_q, w_k, w_v):
    _check_widths(x_q, x_kv, w_q, w_k, w_v)
    return scaled_dot_product_attention(x_kv @ w_q, x_q @ w_k, x_q @ w_v)


@mistake(
    "cross_attention", keeps=0.5, hint="The values are what the source hands over. Which input do yours come from?"
)
def values_from_the_asking_sequence(x_q, x_kv, w_q, w_k, w_v):
    _check_widths(x_q, x_kv, w_q, w_k, w_v)
    return scaled_dot_product_attention(x_q @ w_q, x_kv @ w_k, x_q @ w_v)


@mistake(
    "cross_attention",
    hint="The source isn't used at all: change it, and your output stays. Where do keys and values come from?",
)
def attends_to_itself(x_q, x_kv, w_q, w_k, w_v):
    _check_widths(x_q, x_kv, w_q, w_k, w_v)
    return scaled_dot_product_attention(x_q @ w_q, x_q @ w_k, x_q @ w_v)


@mistake(
    "cross_attention",
    keeps=0.5,
    hint="Let one key dominate the search and look at what is mixed: is it that token's key or its value?",
)
def values_and_keys_are_the_same(x_q, x_kv, w_q, w_k, w_v):
    _check_widths(x_q, x_kv, w_q, w_k, w_v)
    keys = x_kv @ w_k
    return scaled_dot_product_attention(x_q @ w_q, keys, keys)


@mistake(
    "cross_attention",
    hint="The scale keeps the spread of a dot product near 1: how many terms does that product have?",
    keeps=0.5,
)
def cross_attention_without_scale(x_q, x_kv, w_q, w_k, w_v):
    _check_widths(x_q, x_kv, w_q, w_k, w_v)
    return _attend(x_q @ w_q, x_kv @ w_k, x_kv @ w_v, 1.0)


@mistake(
    "cross_attention",
    keeps=0.5,
    hint="The scale has to do with the vectors inside the dot product, not with the input of the layer.",
)
def scales_by_the_input_width(x_q, x_kv, w_q, w_k, w_v):
    _check_widths(x_q, x_kv, w_q, w_k, w_v)
    return _attend(x_q @ w_q, x_kv @ w_k, x_kv @ w_v, x_q.shape[-1] ** -0.5)


@mistake("cross_attention", keeps=0.5, hint="Three queries and seven keys: each row of seven weights sums to 1.")
def softmax_over_the_asking_tokens(x_q, x_kv, w_q, w_k, w_v):
    _check_widths(x_q, x_kv, w_q, w_k, w_v)
    return _attend(x_q @ w_q, x_kv @ w_k, x_kv @ w_v, w_q.shape[1] ** -0.5, dim=-2)


@mistake("cross_attention", keeps=0.5, hint="A source has no future: every query may read all of it.")
def source_under_a_causal_mask(x_q, x_kv, w_q, w_k, w_v):
    _check_widths(x_q, x_kv, w_q, w_k, w_v)
    scores = widen(x_q @ w_q) @ widen(x_kv @ w_k).transpose(-1, -2) / math.sqrt(w_q.shape[1])
    blocked = torch.ones(scores.shape[-2:]).triu(1).bool()
    return (softmax(scores.masked_fill(blocked, -math.inf)) @ widen(x_kv @ w_v)).to(x_q.dtype)


@mistake("cross_attention", hint="float16 in, float16 out: the wide numbers stay inside.")
def cross_attention_returns_float32(x_q, x_kv, w_q, w_k, w_v):
    _check_widths(x_q, x_kv, w_q, w_k, w_v)
    return scaled_dot_product_attention(widen(x_q) @ widen(w_q), widen(x_kv) @ widen(w_k), widen(x_kv) @ widen(w_v))


@mistake(
    "cross_attention", hint="Name the two sizes that disagree in a ValueError, before the matrix product stumbles."
)
def leaves_the_sizes_of_both_inputs_unchecked(x_q, x_kv, w_q, w_k, w_v):
    return scaled_dot_product_attention(x_q @ w_q, x_kv @ w_k, x_kv @ w_v)


# --- causal_mask -------------------------------------------------------------------------------------------------


def _mask_sizes(n_q, n_k):
    n_k = n_q if n_k is None else n_k
    if n_q < 0 or n_k < 0:
        raise ValueError(f"a mask cannot have {n_q} queries and {n_k} keys")
    return n_q, n_k


@mistake(
    "causal_mask",
    keeps=0.5,
    hint="With two queries and five keys the queries are the last two positions: which corner is the triangle in?",
)
def aligned_to_the_top_left(n_q, n_k=None):
    return torch.ones(*_mask_sizes(n_q, n_k)).tril().bool()


@mistake("causal_mask", hint="Can token i look at itself? Row 0 of a square mask must not be empty.", keeps=0.5)
def nobody_sees_itself(n_q, n_k=None):
    n_q, n_k = _mask_sizes(n_q, n_k)
    return torch.ones(n_q, n_k).tril(n_k - n_q - 1).bool()


@mistake("causal_mask", hint="Token 0 must not see token 1, which it is about to predict.", keeps=0.5)
def sees_one_step_ahead(n_q, n_k=None):
    n_q, n_k = _mask_sizes(n_q, n_k)
    return torch.ones(n_q, n_k).tril(n_k - n_q + 1).bool()


@mistake("causal_mask", keeps=0.5, hint="True = may attend. Can your first query see the last key?")
def keeps_the_future(n_q, n_k=None):
    n_q, n_k = _mask_sizes(n_q, n_k)
    return torch.ones(n_q, n_k).triu(n_k - n_q).bool()


@mistake("causal_mask", keeps=0.5, hint="In some libraries True means 'drop'. In this course it means 'may attend'.")
def true_means_drop(n_q, n_k=None):
    n_q, n_k = _mask_sizes(n_q, n_k)
    return torch.ones(n_q, n_k).triu(n_k - n_q + 1).bool()


@mistake("causal_mask", hint="Five queries, two keys: how many rows should be empty? The shift may be negative.")
def shift_is_never_negative(n_q, n_k=None):
    n_q, n_k = _mask_sizes(n_q, n_k)
    return torch.ones(n_q, n_k).tril(max(0, n_k - n_q)).bool()


@mistake(
    "causal_mask", keeps=0.5, hint="The shift is how many positions came before the queries. Which size minus which?"
)
def shifts_the_wrong_way(n_q, n_k=None):
    n_q, n_k = _mask_sizes(n_q, n_k)
    return torch.ones(n_q, n_k).tril(n_q - n_k).bool()


@mistake("causal_mask", keeps=0.5, hint="There are two sizes: rows are queries, columns are keys.")
def always_square(n_q, n_k=None):
    n_q, n_k = _mask_sizes(n_q, n_k)
    return torch.ones(n_q, n_q).tril().bool()


@mistake(
    "causal_mask",
    keeps=0.5,
    hint="Rows are queries and columns are keys: which of the two does your first index count?",
)
def rows_are_keys(n_q, n_k=None):
    n_q, n_k = _mask_sizes(n_q, n_k)
    return torch.ones(n_q, n_k).tril(n_k - n_q).bool().T


@mistake("causal_mask", hint="`n_k or n_q` takes 0 for 'not given'. How do you ask whether an argument is None?")
def zero_keys_taken_for_none(n_q, n_k=None):
    n_q, n_k = _mask_sizes(n_q, n_k or n_q)
    return torch.ones(n_q, n_k).tril(n_k - n_q).bool()


@mistake("causal_mask", keeps=0.5, hint="A mask is boolean: yes or no. What is its dtype?")
def mask_of_ones_and_zeros(n_q, n_k=None):
    n_q, n_k = _mask_sizes(n_q, n_k)
    return torch.ones(n_q, n_k).tril(n_k - n_q)


@mistake("causal_mask", hint="This is the mask of the visible example. What does it look like for other sizes?")
def five_tokens_only(n_q, n_k=None):
    n_q, n_k = _mask_sizes(n_q, n_k)
    return torch.ones(5, 5).tril().bool()[5 - min(n_q, 5) :, : min(n_k, 5)]


# --- padding_mask ------------------------------------------------------------------------------------------------


def _check_lengths(lengths, n):
    for length in lengths.tolist():
        if not 0 <= length <= n:
            raise ValueError(f"a sequence of length {length} does not fit into {n} places")


@mistake(
    "padding_mask", hint="[B, N] is read as [N_q, N_k] when it meets the scores. Which axis is missing, and where?"
)
def no_axis_for_the_queries(lengths, n):
    _check_lengths(lengths, n)
    return torch.arange(n) < lengths[:, None]


@mistake("padding_mask", hint="This forbids padded queries to look. Who should not be listened to?")
def hides_queries_instead_of_keys(lengths, n):
    _check_lengths(lengths, n)
    return (torch.arange(n) < lengths[:, None]).unsqueeze(-1)


@mistake("padding_mask", keeps=0.5, hint="True = a real token. In some libraries it is the other way round.")
def true_is_padding(lengths, n):
    _check_lengths(lengths, n)
    return torch.arange(n) >= lengths[:, None, None]


@mistake("padding_mask", hint="A sequence of length 3 has the keys 0, 1 and 2. Is key 3 real?", keeps=0.5)
def one_key_too_many(lengths, n):
    _check_lengths(lengths, n)
    return torch.arange(n) <= lengths[:, None, None]


@mistake("padding_mask", hint="A sequence of length 3 has three real keys. Count yours.", keeps=0.5)
def one_key_too_few(lengths, n):
    _check_lengths(lengths, n)
    return torch.arange(1, n + 1) < lengths[:, None, None]


@mistake("padding_mask", keeps=0.5, hint="The padding stands at the end here, not at the beginning.")
def padding_on_the_left(lengths, n):
    _check_lengths(lengths, n)
    return torch.arange(n) >= n - lengths[:, None, None]


@mistake("padding_mask", hint="The mask is as wide as the padded tensors, not as the longest sentence. What is n for?")
def as_wide_as_the_longest(lengths, n):
    _check_lengths(lengths, n)
    return torch.arange(int(lengths.max())) < lengths[:, None, None]


@mistake(
    "padding_mask", keeps=0.5, hint="The shape is [B, 1, N]: leave the repetition over the queries to broadcasting."
)
def repeated_for_every_query(lengths, n):
    _check_lengths(lengths, n)
    return (torch.arange(n) < lengths[:, None, None]).expand(len(lengths), n, n)


@mistake("padding_mask", keeps=0.5, hint="Each sequence has its own length. Print the mask of the second one.")
def first_length_for_all(lengths, n):
    _check_lengths(lengths, n)
    return (torch.arange(n) < lengths[0]).expand(len(lengths), 1, n)


@mistake("padding_mask", hint="A length above n means that something was cut off before. Say so with a ValueError.")
def cuts_long_lengths_off(lengths, n):
    _check_lengths(lengths.clamp(max=n), n)
    return torch.arange(n) < lengths[:, None, None]


@mistake("padding_mask", hint="A length below 0 means nothing. Say so with a ValueError.")
def accepts_negative_lengths(lengths, n):
    _check_lengths(lengths.clamp(min=0), n)
    return torch.arange(n) < lengths[:, None, None]


@mistake("padding_mask", keeps=0.5, hint="0 and 1 are numbers; the mask of this course is boolean.")
def padding_mask_of_numbers(lengths, n):
    _check_lengths(lengths, n)
    return (torch.arange(n) < lengths[:, None, None]).float()


# --- combine_masks -----------------------------------------------------------------------------------------------


def _check_masks(masks):
    if not masks:
        raise ValueError("0 masks cannot be combined")
    try:
        torch.broadcast_shapes(*(mask.shape for mask in masks))
    except RuntimeError:
        raise ValueError(f"masks of shapes {[list(mask.shape) for mask in masks]} do not broadcast") from None


@mistake("combine_masks", hint="A padded key in the past: causality allows it, padding does not. What should come out?")
def allowed_by_any_mask(*masks):
    _check_masks(masks)
    allowed = masks[0]
    for mask in masks[1:]:
        allowed = allowed | mask
    return allowed


@mistake("combine_masks", hint="What if there are three masks, or one?")
def only_the_first_two(*masks):
    _check_masks(masks)
    return masks[0] & masks[min(1, len(masks) - 1)]


@mistake("combine_masks", hint="Each mask may forbid something. Which of yours has a say?")
def the_last_mask_wins(*masks):
    _check_masks(masks)
    return masks[-1].expand(torch.broadcast_shapes(*(mask.shape for mask in masks)))


@mistake(
    "combine_masks", hint="`&=` writes into the caller's mask. Call your function twice, and print the first mask."
)
def writes_into_the_first_mask(*masks):
    _check_masks(masks)
    allowed = masks[0]
    for mask in masks[1:]:
        if torch.broadcast_shapes(allowed.shape, mask.shape) == allowed.shape:
            allowed &= mask
        else:
            allowed = allowed & mask
    return allowed


@mistake(
    "combine_masks", keeps=0.5, hint="A product of masks as numbers is a number. The result has to be boolean again."
)
def product_of_numbers(*masks):
    _check_masks(masks)
    allowed = masks[0].float()
    for mask in masks[1:]:
        allowed = allowed * mask
    return allowed


@mistake("combine_masks", hint="True + True counts as yes, and so does True + False. When is a key allowed?")
def sum_of_masks(*masks):
    _check_masks(masks)
    return sum(mask.int() for mask in masks) > 0


@mistake("combine_masks", hint="Is a key that both masks forbid allowed? Try two masks that are False in one place.")
def allowed_where_the_masks_agree(*masks):
    _check_masks(masks)
    allowed = masks[0]
    for mask in masks[1:]:
        allowed = allowed == mask
    return allowed


@mistake(
    "combine_masks", keeps=0.5, hint="Masks come in several shapes, [N_q, N_k] and [B, 1, N_k]. Let them broadcast."
)
def masks_must_have_one_shape(*masks):
    _check_masks(masks)
    return torch.stack(masks).all(dim=0)


@mistake("combine_masks", hint="What is the result of combining nothing? There is no shape for it: refuse.")
def no_mask_gives_none(*masks):
    if not masks:
        return None
    _check_masks(masks)
    allowed = masks[0]
    for mask in masks[1:]:
        allowed = allowed & mask
    return allowed


@mistake(
    "combine_masks", hint="torch complains in its own words. The course asks for a ValueError that names the sizes."
)
def leaves_the_shapes_unchecked(*masks):
    if not masks:
        raise ValueError("0 masks cannot be combined")
    allowed = masks[0]
    for mask in masks[1:]:
        allowed = allowed & mask
    return allowed


# --- masked_softmax ----------------------------------------------------------------------------------------------


def _expanded(scores, mask):
    try:
        return mask.expand(scores.shape)
    except RuntimeError:
        raise ValueError(f"a mask {list(mask.shape)} does not broadcast to scores {list(scores.shape)}") from None


def _over_allowed(scores, mask):
    """A right masked softmax, for mistakes that go wrong before or after it."""
    return softmax(widen(scores).masked_fill(~mask, -math.inf)).to(scores.dtype)


@mistake("masked_softmax", keeps=0.5, hint="In this course True = may attend. Print the weights for an all-True mask.")
def polarity_inverted(scores, mask):
    mask = _expanded(scores, mask)
    return _over_allowed(scores, ~mask)


@mistake("masked_softmax", keeps=0.5, hint="exp(0) = 1: a score of zero is not a weight of zero.")
def scores_times_mask(scores, mask):
    mask = _expanded(scores, mask)
    weights = softmax(widen(scores) * mask)
    return weights.masked_fill(~mask.any(-1, keepdim=True), 0.0).to(scores.dtype)


@mistake(
    "masked_softmax",
    keeps=0.5,
    hint="A negative score times −inf is +inf, and 0 times −inf is NaN. What should any forbidden score become?",
)
def scores_times_minus_infinity(scores, mask):
    mask = _expanded(scores, mask)
    wide = widen(scores)
    product = torch.where(mask, wide, wide * -math.inf)
    return softmax(product.masked_fill(~mask.any(-1, keepdim=True), -math.inf)).to(scores.dtype)


@mistake("masked_softmax", keeps=0.5, hint="Add up a row of your weights. Where did the rest of the 1 go?")
def mask_after_the_softmax(scores, mask):
    mask = _expanded(scores, mask)
    return softmax(scores) * mask


@mistake(
    "masked_softmax",
    hint="The same in exact arithmetic. Now give a forbidden key the score 100000: what is left to divide by?",
)
def mask_after_the_softmax_and_renormalized(scores, mask):
    mask = _expanded(scores, mask)
    weights = softmax(widen(scores)) * mask
    total = weights.sum(-1, keepdim=True).masked_fill(~mask.any(-1, keepdim=True), 1.0)
    return (weights / total).to(scores.dtype)


@mistake(
    "masked_softmax",
    hint="Fine until a row has no allowed key: then all keys are equally large, and each gets its share.",
)
def fills_with_minus_a_billion(scores, mask):
    mask = _expanded(scores, mask)
    return softmax(widen(scores).masked_fill(~mask, -1e9)).to(scores.dtype)


@mistake("masked_softmax", hint="An allowed score can be below −10000, and then the forbidden key wins.")
def fills_with_minus_ten_thousand(scores, mask):
    mask = _expanded(scores, mask)
    weights = softmax(widen(scores).masked_fill(~mask, -1e4))
    return weights.masked_fill(~mask.any(-1, keepdim=True), 0.0).to(scores.dtype)


@mistake(
    "masked_softmax",
    hint="A row of −inf has the maximum −inf, and −inf − (−inf) is NaN. Ask the mask which rows are empty.",
)
def empty_rows_are_nan(scores, mask):
    mask = _expanded(scores, mask)
    return torch.softmax(widen(scores).masked_fill(~mask, -math.inf), dim=-1).to(scores.dtype)


@mistake(
    "masked_softmax",
    hint="The forward pass looks right; print the gradient. You added −inf, and a NaN goes backwards through a sum.",
)
def empty_rows_replaced_too_late(scores, mask):
    mask = _expanded(scores, mask)
    bias = torch.zeros(mask.shape).masked_fill(~mask, -math.inf)
    weights = torch.softmax(widen(scores) + bias, dim=-1)
    return torch.where(mask.any(-1, keepdim=True), weights, 0.0).to(scores.dtype)


@mistake(
    "masked_softmax",
    hint="Washing away every NaN also hides the ones that come from a bug. Only rows that the mask empties become 0.",
)
def nan_to_num_over_everything(scores, mask):
    mask = _expanded(scores, mask)
    return torch.softmax(widen(scores).masked_fill(~mask, -math.inf), dim=-1).nan_to_num(0.0).to(scores.dtype)


@mistake("masked_softmax", hint="Rows are queries, columns are keys. Try a mask that isn't symmetric.")
def mask_transposed(scores, mask):
    mask = _expanded(scores, mask)
    return _over_allowed(scores, mask.transpose(-1, -2) if mask.shape[-1] == mask.shape[-2] else mask)


@mistake("masked_softmax", hint="Each sequence of the batch has its own mask. Which one do you use for the second?")
def first_mask_for_all(scores, mask):
    mask = _expanded(scores, mask)
    while mask.ndim > 2:
        mask = mask[0]
    return _over_allowed(scores, mask)


@mistake(
    "masked_softmax",
    keeps=0.5,
    hint="masked_fill returns a new tensor and leaves the old one alone. Where does yours go?",
)
def masked_fill_not_assigned(scores, mask):
    mask = _expanded(scores, mask)
    scores.masked_fill(~mask, -math.inf)
    return softmax(scores).masked_fill(~mask.any(-1, keepdim=True), 0.0)


@mistake(
    "masked_softmax", hint="A function with a trailing underscore writes in place: you turned the caller's mask round."
)
def turns_the_callers_mask_round(scores, mask):
    _expanded(scores, mask)
    blocked = mask.logical_not_()
    return softmax(widen(scores).masked_fill(blocked, -math.inf)).to(scores.dtype)


@mistake(
    "masked_softmax", hint="masked_fill_ writes into the caller's scores. Call your function twice and print them."
)
def fills_the_callers_scores(scores, mask):
    mask = _expanded(scores, mask)
    with torch.no_grad():
        scores.masked_fill_(~mask, -1e30)
    return _over_allowed(scores, mask)


@mistake("masked_softmax", keeps=0.5, hint="Adding 1 to an allowed score and 0 to a forbidden one forbids nothing.")
def mask_added_as_a_number(scores, mask):
    mask = _expanded(scores, mask)
    weights = softmax(widen(scores) + mask.to(widen(scores).dtype))
    return weights.masked_fill(~mask.any(-1, keepdim=True), 0.0).to(scores.dtype)


@mistake("masked_softmax", keeps=0.5, hint="Which axis are the keys on? It is the last one, and its weights sum to 1.")
def masked_softmax_over_queries(scores, mask):
    mask = _expanded(scores, mask)
    return softmax(widen(scores).masked_fill(~mask, -math.inf), dim=-2).to(scores.dtype)


@mistake(
    "masked_softmax",
    hint="The maximum is taken over forbidden keys too: with a huge one among them everything else underflows.",
)
def maximum_over_all_keys(scores, mask):
    mask = _expanded(scores, mask)
    wide = widen(scores)
    peak = torch.where(wide.isnan(), -math.inf, wide).amax(-1, keepdim=True)
    e = torch.exp(wide - peak) * mask
    return (e / e.sum(-1, keepdim=True).masked_fill(~mask.any(-1, keepdim=True), 1.0)).to(scores.dtype)


@mistake(
    "masked_softmax",
    hint="exp(89) is too large for float32. The softmax stays the same if you subtract something from the row first.",
)
def no_maximum_subtracted(scores, mask):
    mask = _expanded(scores, mask)
    e = torch.exp(widen(scores)).masked_fill(~mask, 0.0)
    return (e / e.sum(-1, keepdim=True).masked_fill(~mask.any(-1, keepdim=True), 1.0)).to(scores.dtype)


@mistake(
    "masked_softmax",
    keeps=0.5,
    hint="Added so that nothing is divided by zero, this small number also takes its share of small sums.",
)
def small_number_under_the_fraction(scores, mask):
    mask = _expanded(scores, mask)
    visible = widen(scores).masked_fill(~mask, -math.inf)
    e = torch.exp(visible - visible.amax(-1, keepdim=True).masked_fill(~mask.any(-1, keepdim=True), 0.0))
    return (e / (e.sum(-1, keepdim=True) + 1e-4)).to(scores.dtype)


@mistake("masked_softmax", hint="Half precision goes in: it should come out as well.")
def masked_softmax_returns_float32(scores, mask):
    mask = _expanded(scores, mask)
    return _over_allowed(widen(scores), mask)


@mistake(
    "masked_softmax",
    hint="torch complains in its own words, or doesn't. The course asks for a ValueError with both sizes.",
)
def leaves_the_mask_unchecked(scores, mask):
    return _over_allowed(scores, mask)


# --- masked_attention --------------------------------------------------------------------------------------------


def _checked_scores(q, k, v, scale=None):
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"queries have {q.shape[-1]} features and keys {k.shape[-1]}")
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(f"there are {k.shape[-2]} keys and {v.shape[-2]} values")
    return widen(q) @ widen(k).transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)


def _everything(scores):
    return torch.ones(scores.shape[-2:]).bool()


def _mix(weights, q, v):
    return (weights @ widen(v)).to(q.dtype)


@mistake(
    "masked_attention", hint="Print the spread of your scores at d = 64: what does the formula divide by?", keeps=0.5
)
def masked_attention_without_scale(q, k, v, mask=None):
    scores = _checked_scores(q, k, v, scale=1.0)
    return _mix(masked_softmax(scores, _everything(scores) if mask is None else mask), q, v)


@mistake(
    "masked_attention",
    keeps=0.5,
    hint="The root belongs to the vectors in the dot product: queries and keys, not values.",
)
def masked_attention_scaled_by_d_v(q, k, v, mask=None):
    scores = _checked_scores(q, k, v, scale=v.shape[-1] ** -0.5)
    return _mix(masked_softmax(scores, _everything(scores) if mask is None else mask), q, v)


@mistake("masked_attention", hint="The mask is an argument, and yours changes nothing. Where do you use it?")
def ignores_the_mask(q, k, v, mask=None):
    scores = _checked_scores(q, k, v)
    everything = _everything(scores)
    if mask is not None:
        masked_softmax(scores, mask)
    return _mix(masked_softmax(scores, everything), q, v)


@mistake("masked_attention", hint="No mask means that everything is allowed, here as in the last assignment.")
def causal_without_being_asked(q, k, v, mask=None):
    scores = _checked_scores(q, k, v)
    if mask is None:
        mask = torch.ones(scores.shape[-2:]).tril(scores.shape[-1] - scores.shape[-2]).bool()
    return _mix(masked_softmax(scores, mask), q, v)


@mistake("masked_attention", keeps=0.5, hint="True = may attend. What does an all-True mask give?")
def hides_what_is_allowed(q, k, v, mask=None):
    scores = _checked_scores(q, k, v)
    return _mix(masked_softmax(scores, _everything(scores) if mask is None else ~mask), q, v)


@mistake(
    "masked_attention",
    keeps=0.5,
    hint="Add up the weights of one query: the mask has to act before the 1 is shared out.",
)
def zeroes_the_weights_afterwards(q, k, v, mask=None):
    scores = _checked_scores(q, k, v)
    weights = masked_softmax(scores, _everything(scores))
    if mask is not None:
        masked_softmax(scores, mask)
        weights = weights * mask
    return _mix(weights, q, v)


@mistake("masked_attention", keeps=0.5, hint="A value of zero is still a value with a weight. What has to be zero?")
def zeroes_the_values_of_hidden_keys(q, k, v, mask=None):
    scores = _checked_scores(q, k, v)
    if mask is not None:
        masked_softmax(scores, mask)
        seen = mask.any(dim=-2, keepdim=True).transpose(-1, -2)
        v = v * seen
    return _mix(masked_softmax(scores, _everything(scores)), q, v)


@mistake("masked_attention", hint="Each sequence has its own padding. Which mask does your second sequence get?")
def mask_of_the_first_sequence(q, k, v, mask=None):
    scores = _checked_scores(q, k, v)
    mask = _everything(scores) if mask is None else mask
    return _mix(masked_softmax(scores, mask[0] if mask.ndim > 2 else mask), q, v)


@mistake(
    "masked_attention",
    keeps=0.5,
    hint="One of keys and values decides, the other is mixed. Test with three different tensors.",
)
def mixes_the_keys(q, k, v, mask=None):
    scores = _checked_scores(q, k, v)
    return _mix(masked_softmax(scores, _everything(scores) if mask is None else mask), q, k)


@mistake("masked_attention", hint="`q /= …` writes into the caller's queries. Call your function twice: same answer?")
def scales_the_queries_in_place(q, k, v, mask=None):
    _checked_scores(q, k, v)
    q.data /= math.sqrt(q.shape[-1])
    scores = widen(q) @ widen(k).transpose(-1, -2)
    return _mix(masked_softmax(scores, _everything(scores) if mask is None else mask), q, v)


@mistake("masked_attention", hint="float16 ends at 65504, and q · k gets there before it is scaled. When do you widen?")
def widens_after_the_product(q, k, v, mask=None):
    _checked_scores(q, k, v)
    scores = widen(q @ k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
    return _mix(masked_softmax(scores, _everything(scores) if mask is None else mask), q, v)


@mistake("masked_attention", hint="The wide numbers stay inside: the answer has the dtype of q.")
def masked_attention_returns_float32(q, k, v, mask=None):
    scores = _checked_scores(q, k, v)
    return masked_softmax(scores, _everything(scores) if mask is None else mask) @ widen(v)


@mistake(
    "masked_attention",
    hint="Queries and keys are compared, keys and values come in pairs: name the sizes that disagree in a ValueError.",
)
def leaves_q_k_and_v_unchecked(q, k, v, mask=None):
    scores = widen(q) @ widen(k).transpose(-1, -2) * q.shape[-1] ** -0.5
    return _mix(masked_softmax(scores, _everything(scores) if mask is None else mask), q, v)


# --- sinusoidal_positions ----------------------------------------------------------------------------------------


def _table(n, d, exponent, start=0, base=10000.0, first=torch.sin, second=torch.cos):
    """Position vectors with the exponents exponent(even column) for each pair."""
    if n < 0 or d < 1:
        raise ValueError(f"no position vectors for n = {n} and d = {d}")
    p = torch.arange(start, n + start, dtype=torch.float64).unsqueeze(1)
    even = torch.arange(0, d, 2, dtype=torch.float64)
    angles = p / base ** exponent(even)
    table = torch.empty(n, d, dtype=torch.float64)
    table[:, 0::2] = first(angles)
    table[:, 1::2] = second(angles[:, : d // 2])
    return table.to(torch.get_default_dtype())


@mistake(
    "sinusoidal_positions",
    keeps=0.5,
    hint="i counts pairs. The exponent is the even column over D: is it doubled once too often?",
)
def exponent_doubled(n, d):
    return _table(n, d, lambda even: 2 * even / d)


@mistake(
    "sinusoidal_positions", keeps=0.5, hint="The exponent of pair i is 2i/D. Yours falls half as fast as it should."
)
def exponent_counts_pairs(n, d):
    return _table(n, d, lambda even: even / 2 / d)


@mistake(
    "sinusoidal_positions",
    keeps=0.5,
    hint="The sine and the cosine of a pair share one angle: sin² + cos² should be 1.",
)
def cosine_has_its_own_speed(n, d):
    sines = _table(n, d, lambda even: even / d)
    sines[:, 1::2] = _table(n, d, lambda even: (even + 1) / d)[:, 1::2]
    return sines


@mistake(
    "sinusoidal_positions", keeps=0.5, hint="Interleave them: sine, cosine, sine, cosine. Yours has all sines first."
)
def all_sines_first(n, d):
    table = _table(n, d, lambda even: even / d)
    return torch.cat([table[:, 0::2], table[:, 1::2]], dim=1)


@mistake(
    "sinusoidal_positions",
    keeps=0.5,
    hint="The first pair turns fastest, the later ones ever more slowly. Do your speeds fall or rise?",
)
def speeds_rise(n, d):
    return _table(n, d, lambda even: -even / d)


@mistake("sinusoidal_positions", hint="Even columns are sines. What should position 0 look like?", keeps=0.5)
def sine_and_cosine_swapped(n, d):
    return _table(n, d, lambda even: even / d, first=torch.cos, second=torch.sin)


@mistake(
    "sinusoidal_positions",
    hint="With an odd D there is one sine more than there are cosines. How many angles does each need?",
)
def odd_width_crashes(n, d):
    if n < 0 or d < 1:
        raise ValueError(f"no position vectors for n = {n} and d = {d}")
    angles = torch.arange(n).unsqueeze(1) / 10000.0 ** (torch.arange(0, d, 2) / d)
    table = torch.empty(n, d)
    table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()
    return table


@mistake(
    "sinusoidal_positions",
    hint="The exponent has the D that was asked for. Did you round an odd D up and cut the last column off?",
)
def odd_width_rounded_up(n, d):
    return _table(n, d, lambda even: even / (d + d % 2))


@mistake("sinusoidal_positions", hint="An odd D has its last column too: a sine. Is it there?")
def odd_width_ends_in_zero(n, d):
    table = _table(n, d, lambda even: even / d)
    if d % 2:
        table[:, -1] = 0.0
    return table


@mistake("sinusoidal_positions", hint="Positions count from 0. What is your first row?", keeps=0.5)
def positions_from_one(n, d):
    return _table(n, d, lambda even: even / d, start=1)


@mistake(
    "sinusoidal_positions",
    hint="The slowest hand takes about 10000 · 2π positions for one turn. What is your base?",
    keeps=0.5,
)
def base_of_one_thousand(n, d):
    return _table(n, d, lambda even: even / d, base=1000.0)


@mistake(
    "sinusoidal_positions", keeps=0.5, hint="`//` makes every exponent 0, so that all pairs turn at the same speed."
)
def exponent_in_whole_numbers(n, d):
    return _table(n, d, lambda even: even // d)


@mistake(
    "sinusoidal_positions",
    keeps=0.5,
    hint="The slowest speed depends on D only: with D − 2 in the exponent the pairs are spread too far.",
)
def exponent_reaches_one(n, d):
    return _table(n, d, lambda even: even / max(1, d - 2))


@mistake(
    "sinusoidal_positions",
    keeps=0.5,
    hint="The position vectors are added to tokens of the default dtype. Which dtype are yours?",
)
def positions_in_float64(n, d):
    return _table(n, d, lambda even: even / d).double()


@mistake("sinusoidal_positions", hint="Which sizes have no meaning? Refuse them with a ValueError that names them.")
def accepts_any_size(n, d):
    return _table(max(n, 0), max(d, 1), lambda even: even / max(d, 1))


# --- is_permutation_equivariant ----------------------------------------------------------------------------------


def _check_perm(x, perm):
    if perm.shape != (x.shape[0],):
        raise ValueError(f"{x.shape[0]} tokens, a permutation of shape {list(perm.shape)}")


def _near(a, b, tolerance=1e-6):
    return bool((a - b).abs().max() <= tolerance * b.abs().max())


@mistake(
    "is_permutation_equivariant",
    hint="That is invariance: the same output in the same order. Attention gives the same outputs, shuffled.",
)
def tests_invariance(fn, x, perm):
    _check_perm(x, perm)
    return _near(fn(x[perm]), fn(x))


@mistake(
    "is_permutation_equivariant",
    keeps=0.5,
    hint="A swap is its own inverse, a cycle is not. Which way round do you shuffle the outputs?",
)
def shuffles_the_outputs_the_wrong_way(fn, x, perm):
    _check_perm(x, perm)
    return _near(fn(x[perm]), fn(x)[perm.argsort()])


@mistake(
    "is_permutation_equivariant",
    keeps=0.5,
    hint="The same numbers summed in another order differ in the last digits. Allow for that.",
)
def expects_equality_to_the_last_bit(fn, x, perm):
    _check_perm(x, perm)
    return torch.equal(fn(x[perm]), fn(x)[perm])


@mistake(
    "is_permutation_equivariant",
    hint="A difference of one part in a thousand of the output is a difference. How generous is your tolerance?",
)
def far_too_generous(fn, x, perm):
    _check_perm(x, perm)
    return _near(fn(x[perm]), fn(x)[perm], tolerance=0.1)


@mistake(
    "is_permutation_equivariant",
    hint="If all outputs are of size 1e-9, everything is within 1e-8 of everything. Compare with their size.",
)
def tolerance_of_a_fixed_size(fn, x, perm):
    _check_perm(x, perm)
    return bool(torch.allclose(fn(x[perm]), fn(x)[perm], rtol=1e-5, atol=1e-8))


@mistake("is_permutation_equivariant", hint="Rows are tokens. Which axis of x do you shuffle?")
def shuffles_the_features(fn, x, perm):
    _check_perm(x, perm)
    perm = perm if x.shape[0] == x.shape[1] else perm.argsort()[: x.shape[1]].argsort()
    return _near(fn(x[:, perm]), fn(x)[:, perm])


@mistake(
    "is_permutation_equivariant",
    hint="The question is about the shuffle that you are given, not about one of your own.",
)
def uses_a_shuffle_of_its_own(fn, x, perm):
    _check_perm(x, perm)
    own = torch.randperm(x.shape[0], generator=torch.Generator().manual_seed(1))
    return _near(fn(x[own]), fn(x)[own])


@mistake(
    "is_permutation_equivariant",
    keeps=0.5,
    hint="Summed over the rows, the two sides are equal in whatever order the rows stand. Compare row by row.",
)
def compares_the_sums_only(fn, x, perm):
    _check_perm(x, perm)
    a, b = fn(x[perm]).sum(0), fn(x)[perm].sum(0)
    return bool((a - b).abs().max() <= 1e-6 * fn(x).abs().max())


@mistake(
    "is_permutation_equivariant", hint="`x[:] = …` shuffles the caller's tokens. And what does fn(x) see afterwards?"
)
def shuffles_x_in_place(fn, x, perm):
    _check_perm(x, perm)
    after = fn(x)[perm]
    x[:] = x[perm]
    return _near(fn(x), after)


@mistake(
    "is_permutation_equivariant",
    hint="Does your function depend on fn at all? A constant answer is wrong half of the time.",
)
def always_yes(fn, x, perm):
    _check_perm(x, perm)
    return True


@mistake(
    "is_permutation_equivariant",
    keeps=0.5,
    hint="A comparison of tensors gives a tensor. The caller wants a Python bool.",
)
def answers_with_a_tensor(fn, x, perm):
    _check_perm(x, perm)
    return (fn(x[perm]) - fn(x)[perm]).abs().max() <= 1e-6 * fn(x).abs().max()


@mistake(
    "is_permutation_equivariant",
    hint="Three indices into seven tokens are no shuffle, and indexing does not mind. Refuse it.",
)
def accepts_a_short_permutation(fn, x, perm):
    return _near(fn(x[perm]), fn(x)[perm])


# --- first_leak --------------------------------------------------------------------------------------------------


def _noise(x):
    return torch.randn(x.shape, generator=torch.Generator().manual_seed(4), dtype=x.dtype)


def _moved(after, before, tolerance=1e-6):
    """For each row whether it moved, measured by its own size."""
    size = torch.maximum(after.abs().amax(-1), before.abs().amax(-1))
    return (after - before).abs().amax(-1) > tolerance * size


def _search(fn, x, replace, tolerance=1e-6, rows=None):
    """The first row i that moves when `replace(tokens after i)` takes the place of the tokens after i."""
    before = fn(x)
    for i in range(x.shape[0] - 1) if rows is None else rows:
        after = fn(torch.cat([x[: i + 1], replace(x[i + 1 :], _noise(x)[i + 1 :])]))
        if _moved(after, before, tolerance)[i]:
            return i
    return None


@mistake("first_leak", keeps=0.5, hint="Output row 2 looks at token 4. Which of the two numbers is asked for?")
def reports_the_token_that_was_changed(fn, x):
    before = fn(x)
    for j in range(1, x.shape[0]):
        changed = x.clone()
        changed[j] = _noise(x)[j]
        if _moved(fn(changed), before)[:j].any():
            return j
    return None


@mistake(
    "first_leak", keeps=0.5, hint="A row may peek at its neighbour and at nobody else. Which tokens do you change?"
)
def changes_the_last_token_only(fn, x):
    changed = torch.cat([x[:-1], _noise(x)[-1:]])
    rows = _moved(fn(changed), fn(x))[:-1].nonzero().flatten().tolist()
    return rows[0] if rows else None


@mistake(
    "first_leak",
    keeps=0.5,
    hint="A row may look two tokens ahead, or at the last token only. Which tokens do you change?",
)
def changes_the_next_token_only(fn, x):
    return _search(fn, x, lambda old, new: torch.cat([new[:1], old[1:]]))


@mistake(
    "first_leak",
    hint="A leak through rounding does not notice a millionth. Tokens are of size 1: change them by as much.",
)
def changes_by_a_millionth(fn, x):
    return _search(fn, x, lambda old, new: old + 1e-6 * new, tolerance=1e-10)


@mistake(
    "first_leak",
    hint="A gradient is 0 where a function is flat, and a rounded token leaks all the same. Change the tokens.",
)
def asks_for_the_gradient(fn, x):
    tokens = x.clone().requires_grad_()
    y = fn(tokens)
    for i in range(x.shape[0] - 1):
        if not y.requires_grad:
            return None
        (gradient,) = torch.autograd.grad(y[i].abs().sum(), tokens, retain_graph=True, allow_unused=True)
        if gradient is not None and gradient[i + 1 :].abs().max() > 1e-9 * y[i].detach().abs().max():
            return i
    return None


@mistake(
    "first_leak", hint="A clean function may differ in its last digit when other tokens change. Allow for rounding."
)
def expects_equality_to_the_last_bit_of_each_row(fn, x):
    return _search(fn, x, lambda old, new: new, tolerance=0.0)


@mistake("first_leak", hint="A leak may be a hundredth of the row. How large a movement do you overlook?")
def overlooks_small_leaks(fn, x):
    return _search(fn, x, lambda old, new: new, tolerance=0.2)


@mistake(
    "first_leak",
    hint="If the outputs are of size 1e-9, everything is within 1e-8 of everything. Compare with the size of the row.",
)
def tolerance_that_ignores_the_size(fn, x):
    before = fn(x)
    for i in range(x.shape[0] - 1):
        after = fn(torch.cat([x[: i + 1], _noise(x)[i + 1 :]]))
        if not torch.allclose(after[i], before[i], rtol=1e-5, atol=1e-8):
            return i
    return None


@mistake(
    "first_leak",
    hint="If you add the same number to all features, a leak through differences of features does not notice.",
)
def adds_a_constant(fn, x):
    return _search(fn, x, lambda old, new: old + 1.0)


@mistake("first_leak", hint="A square does not notice a change of sign. Replace the tokens by something unrelated.")
def flips_the_signs(fn, x):
    return _search(fn, x, lambda old, new: -old)


@mistake("first_leak", hint="What if the later tokens are zero already? Then setting them to zero changes nothing.")
def sets_later_tokens_to_zero(fn, x):
    return _search(fn, x, lambda old, new: torch.zeros_like(old))


@mistake("first_leak", keeps=0.5, hint="A sum does not notice a new order. Replace the tokens by others.")
def reorders_later_tokens(fn, x):
    return _search(fn, x, lambda old, new: old.flip(0))


@mistake(
    "first_leak",
    keeps=0.5,
    hint="A causal layer may multiply the future by a weight of 0, and 0 · NaN is NaN: you accuse the innocent.",
)
def marks_later_tokens_with_nan(fn, x):
    for i in range(x.shape[0] - 1):
        if fn(torch.cat([x[: i + 1], torch.full_like(x[i + 1 :], math.nan)]))[i].isnan().any():
            return i
    return None


@mistake(
    "first_leak",
    keeps=0.5,
    hint="fn takes this N only: it may own a table of that size. Change the later tokens instead of cutting them off.",
)
def cuts_the_sequence(fn, x):
    before = fn(x)
    for i in range(x.shape[0] - 1):
        if _moved(fn(x[: i + 1]), before[: i + 1])[i]:
            return i
    return None


@mistake("first_leak", keeps=0.5, hint="Row i may depend on token i. Do you change that one as well?")
def changes_the_token_itself(fn, x):
    before = fn(x)
    for i in range(x.shape[0]):
        if _moved(fn(torch.cat([x[:i], _noise(x)[i:]])), before)[i]:
            return i
    return None


@mistake(
    "first_leak",
    hint="Which comes first: the row that you happen to find first, or the smallest row? Go through the rows in order.",
)
def the_row_found_first(fn, x):
    before = fn(x)
    for j in range(1, x.shape[0]):
        rows = _moved(fn(torch.cat([x[:j], _noise(x)[j : j + 1], x[j + 1 :]])), before)[:j].nonzero().flatten().tolist()
        if rows:
            return rows[0]
    return None


@mistake("first_leak", hint="Several rows may leak. The first is asked for, yours is the last.")
def the_last_row_that_leaks(fn, x):
    return _search(fn, x, lambda old, new: new, rows=range(x.shape[0] - 2, -1, -1))


@mistake("first_leak", hint="0 is a row, and Python takes it for false. How do you tell 'row 0' from 'no row'?")
def row_zero_taken_for_none(fn, x):
    return _search(fn, x, lambda old, new: new) or None


@mistake("first_leak", hint="Row 0 has the longest future of all. Where does your loop begin?")
def begins_at_row_one(fn, x):
    return _search(fn, x, lambda old, new: new, rows=range(1, x.shape[0] - 1))


@mistake("first_leak", hint="The last row but one still has one token of future. Where does your loop end?")
def ends_one_row_early(fn, x):
    return _search(fn, x, lambda old, new: new, rows=range(x.shape[0] - 2))


@mistake(
    "first_leak", keeps=0.5, hint="The docstring says what to return when nothing leaks, and −1 is a row in Python."
)
def minus_one_for_no_leak(fn, x):
    row = _search(fn, x, lambda old, new: new)
    return -1 if row is None else row


@mistake("first_leak", hint="The question is which row, not whether.")
def says_whether_and_not_where(fn, x):
    return _search(fn, x, lambda old, new: new) is not None


@mistake(
    "first_leak",
    keeps=0.5,
    hint="You write into the caller's tokens. Work on a copy, and begin each row with the original.",
)
def writes_into_x(fn, x):
    before = fn(x).clone()
    for i in range(x.shape[0] - 2, -1, -1):
        x[i + 1 :] = _noise(x)[i + 1 :]
    for i in range(x.shape[0] - 1):
        if _moved(fn(x)[: i + 1], before[: i + 1])[i]:
            return i
    return None


@mistake(
    "first_leak", hint="A change in an earlier token may of course move a later row. That is no leak, it is memory."
)
def looks_the_wrong_way(fn, x):
    before = fn(x)
    for i in range(1, x.shape[0]):
        if _moved(fn(torch.cat([_noise(x)[:i], x[i:]])), before)[i]:
            return i
    return None


# --- product_mask_evidence ---------------------------------------------------------------------------------------


@mistake(
    "product_mask_evidence",
    keeps=0.5,
    hint="A positive score times −inf is −inf, as it should be. Which sign is the harmless one?",
)
def signs_the_wrong_way_round(n):
    return -torch.ones(n, n), torch.ones(n, n), torch.zeros(n, n)


@mistake("product_mask_evidence", hint="The matrix that you were asked for has n rows. Yours is that of the example.")
def always_three_tokens(n):
    return torch.ones(3, 3), -torch.ones(3, 3), torch.zeros(3, 3)


@mistake(
    "product_mask_evidence",
    keeps=0.5,
    hint="The notes multiply by −inf above the diagonal only. Where are your telling scores?",
)
def scores_in_the_past(n):
    return torch.ones(n, n), torch.ones(n, n) - 2 * torch.ones(n, n).tril(), torch.ones(n, n).triu(1)


@mistake(
    "product_mask_evidence",
    keeps=0.5,
    hint="The scores themselves are finite: it is the product that makes infinities of them.",
)
def infinite_scores(n):
    return torch.ones(n, n), torch.full((n, n), -math.inf), torch.full((n, n), math.nan)


@mistake(
    "product_mask_evidence",
    keeps=0.5,
    hint="One matrix shows one thing. Does the second hold a zero, or the third a negative number, in the future?",
)
def both_ways_in_one(n):
    mixed = -torch.ones(n, n)
    mixed[0, -1] = 0.0
    return torch.ones(n, n), mixed, 0.5 * mixed


@mistake("product_mask_evidence", hint="−0.0 and 0 are both zero. Which kind of score becomes +inf?")
def zeros_everywhere(n):
    return torch.zeros(n, n), torch.zeros(n, n), torch.zeros(n, n)


@mistake("product_mask_evidence", hint="`fine` has to survive for certain: are all its scores of the future positive?")
def fine_by_luck(n):
    random = torch.Generator().manual_seed(n)
    return torch.randn(n, n, generator=random), -torch.ones(n, n), torch.zeros(n, n)


@mistake(
    "product_mask_evidence",
    hint="Three matrices were asked for: where it works, and the two ways in which it does not.",
)
def only_the_failures(n):
    return -torch.ones(n, n), torch.zeros(n, n)


@mistake(
    "simple_self_attention",
    hint="Scores of 0 are hidden, wherever they stand. Two tokens at right angles have the score 0 and see each other.",
    replace=[
        (
            "future = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(diagonal=1)",
            "future = scores.tril() == 0",
        ),
    ],
)
def takes_scores_of_zero_for_the_future(): ...


@mistake(
    "is_permutation_equivariant",
    hint="The mean of the differences hides one that is large among many that are zero.",
    replace=[
        (".abs().max() <= 1e-6 * size", ".abs().mean() <= 1e-4 * size"),
        ("last.abs().max()", "last.abs().mean()"),
    ],
)
def averages_the_differences(): ...


@mistake(
    "first_leak",
    hint="A row is compared with the largest of all rows. It may be a billionth of it and leak all the same.",
    replace=("torch.maximum(after[i].abs().max(), before[i].abs().max())", "before.abs().max()"),
)
def compares_with_the_whole_output(): ...


@mistake(
    "first_leak",
    hint="A row that falls has moved as well: look at the size of the difference.",
    replace=("(after[i] - before[i]).abs().max()", "(after[i] - before[i]).max()"),
)
def sees_rows_that_grow_only(): ...

"""Wrong answers that people give, each with one wrong idea, and the hint for whoever had it."""

import torch

from autograder.suite import (
    axes_exchanged,
    back_to_front,
    complement,
    depends_on_later,
    has_dtype,
    ignores,
    is_no_average,
    mistake,
    not_finite,
    nothing_where_something_is_right,
    one_axis_less,
    one_hot,
    part,
    right_once_exchanged,
    right_once_scaled,
    right_once_transposed,
    same_along,
    scores_off_by,
    something_only_where_nothing_is_right,
    something_where_nothing_is_right,
    sums_to_one,
    through_unit,
    triangle_at_the_top_left,
)

# --- simple_self_attention
# ---------------------------------------------------------------------------------------


@mistake(
    "simple_self_attention",
    hint="Your softmax has seen the later tokens before they go: where one of them has a far larger "
    "score, all others are 0, and 0 is divided by 0.",
    replace=(
        "weights = softmax(scores.masked_fill(future, -math.inf))",
        """
        weights = softmax(scores).masked_fill(future, 0.0)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        """,
    ),
)
def divides_by_what_the_later_tokens_leave(): ...


@mistake(
    "simple_self_attention",
    hint="The first form has no projections and no scale either: compare row 2 with paper.",
    keeps=0.65,
    replace=(
        "wide @ wide.transpose(-1, -2)",
        "wide @ wide.transpose(-1, -2) / math.sqrt(x.shape[-1])",
    ),
)
def divides_by_root_d(): ...


@mistake(
    "simple_self_attention",
    hint="Token i may use tokens up to i. Print the weights: is row 0 (1, 0, 0, …)?",
    shows=depends_on_later("x", -2)
    & ~is_no_average("x")
    & through_unit("x", something_where_nothing_is_right()),
    replace=("softmax(scores.masked_fill(future, -math.inf))", "softmax(scores)"),
)
def looks_at_the_whole_sequence(): ...


@mistake(
    "simple_self_attention",
    keeps=0.65,
    hint="j ≤ i includes j = i. Does your first token have anything to look at?",
    replace=("triu(diagonal=1)", "triu()"),
)
def leaves_itself_out(): ...


@mistake(
    "simple_self_attention",
    keeps=0.65,
    hint="A score of 0 is a score like any other: exp(0) = 1. What turns into weight 0?",
    shows=depends_on_later("x", -2)
    & ~is_no_average("x")
    & through_unit("x", something_where_nothing_is_right()),
    replace=("masked_fill(future, -math.inf)", "masked_fill(future, 0.0)"),
)
def future_scores_are_zero(): ...


@mistake(
    "simple_self_attention",
    keeps=0.65,
    hint="Do your rows still sum to 1? The future may not take part in the denominator.",
    shows=depends_on_later("x", -2)
    & is_no_average("x")
    & ~through_unit("x", sums_to_one(-2)),
    replace=(
        "softmax(scores.masked_fill(future, -math.inf))",
        "softmax(scores).masked_fill(future, 0.0)",
    ),
)
def zeroes_the_future_after_the_softmax(): ...


@mistake(
    "simple_self_attention",
    keeps=0.65,
    hint="Each row is the distribution of one query: which axis has to sum to 1?",
    replace=(
        "softmax(scores.masked_fill(future, -math.inf))",
        "softmax(scores.masked_fill(future, -math.inf), dim=-2)",
    ),
)
def softmax_over_the_queries(): ...


@mistake(
    "simple_self_attention",
    hint="exp(89) is too much for float32 and exp(710) for float64; softmax may subtract "
    "anything first.",
    shows=not_finite(),
    replace=[
        (
            "softmax(scores.masked_fill(future, -math.inf))",
            "torch.exp(scores).masked_fill(future, 0.0)",
        ),
        ("weights @ wide", "weights / weights.sum(dim=-1, keepdim=True) @ wide"),
    ],
)
def exponentials_without_subtracting_the_maximum(): ...


@mistake(
    "simple_self_attention",
    keeps=0.65,
    hint="Change the last token: did the first output move? You kept the other triangle.",
    replace=("triu(diagonal=1)", "tril(diagonal=-1)"),
)
def keeps_the_upper_triangle(): ...


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
    "simple_self_attention",
    hint="The scores are computed in float32, and the answer is still given in the dtype of x.",
    shows=has_dtype("float32"),
    replace=("(weights @ wide).to(x.dtype)", "weights @ wide"),
)
def half_precision_comes_back_as_float32(): ...


@mistake(
    "simple_self_attention",
    hint="float16 ends at 65504, and 300 · 300 is more. Widen x before the product of the scores.",
    shows=not_finite(),
    replace=("wide @ wide.transpose(-1, -2)", "widen(x @ x.transpose(-1, -2))"),
)
def scores_overflow_in_half_precision(): ...


# --- self_attention
# ----------------------------------------------------------------------------------------------


@mistake(
    "self_attention",
    hint="Print the standard deviation of the scores for d_k = 64. What keeps it near 1?",
    shows=right_once_scaled("w_q", "w_q[-1]**-0.5"),
    keeps=0.65,
    replace=(
        "return scaled_dot_product_attention(q, k, v)",
        "return (softmax(widen(q) @ widen(k).transpose(-1, -2)) @ widen(v)).to(x.dtype)",
    ),
)
def no_scale(): ...


@mistake(
    "self_attention",
    keeps=0.65,
    hint="Which vectors are multiplied in a score? Their length is not the width of x.",
    replace=(
        "return scaled_dot_product_attention(q, k, v)",
        "return (softmax(widen(q) @ widen(k).transpose(-1, -2) / math.sqrt(d)) @ "
        "widen(v)).to(x.dtype)",
    ),
)
def scales_by_the_model_width(): ...


@mistake(
    "self_attention",
    keeps=0.65,
    hint="Your scale is the number of tokens. A token that stands there twice must not change "
    "other scores.",
    replace=(
        "return scaled_dot_product_attention(q, k, v)",
        "return (softmax(widen(q) @ widen(k).transpose(-1, -2) / math.sqrt(x.shape[-2])) @ "
        "widen(v)).to(x.dtype)",
    ),
)
def scales_by_the_number_of_tokens(): ...


@mistake(
    "self_attention",
    keeps=0.65,
    hint="Which vectors are in the dot product: queries and keys, or values?",
    replace=(
        "return scaled_dot_product_attention(q, k, v)",
        "return (softmax(widen(q) @ widen(k).transpose(-1, -2) / math.sqrt(v.shape[-1])) @ "
        "widen(v)).to(x.dtype)",
    ),
)
def scales_by_the_width_of_the_values(): ...


@mistake(
    "self_attention",
    hint="For d_k = 4 it looks plausible. Measure the spread of the scores at d_k = 256.",
    shows=right_once_scaled("w_q", "w_q[-1]**0.5"),
    keeps=0.65,
    replace=(
        "return scaled_dot_product_attention(q, k, v)",
        "return (softmax(widen(q) @ widen(k).transpose(-1, -2) / q.shape[-1]) @ "
        "widen(v)).to(x.dtype)",
    ),
)
def divides_by_d_k(): ...


@mistake(
    "self_attention",
    keeps=0.65,
    hint="Row i of the scores belongs to query i. Which two of your projections changed places?",
    shows=right_once_exchanged("w_q", "w_k"),
    replace=("(q, k, v)", "(k, q, v)"),
)
def queries_and_keys_swapped(): ...


@mistake(
    "self_attention",
    keeps=0.65,
    hint="Each query shares 1 among the keys. Sum your weights over each axis: where is the 1?",
    replace=(
        "return scaled_dot_product_attention(q, k, v)",
        """
        scores = widen(q) @ widen(k).transpose(-1, -2) / math.sqrt(q.shape[-1])
        return (softmax(scores, dim=-2) @ widen(v)).to(x.dtype)
    """,
    ),
)
def softmax_over_the_query_axis(): ...


@mistake(
    "self_attention",
    keeps=0.65,
    hint="The slide's dim=1 is for one sequence. With a batch in front, axis 1 is another axis.",
    replace=(
        "return scaled_dot_product_attention(q, k, v)",
        """
        scores = widen(q) @ widen(k).transpose(-1, -2) / math.sqrt(q.shape[-1])
        return (softmax(scores, dim=1) @ widen(v)).to(x.dtype)
    """,
    ),
)
def softmax_over_axis_one(): ...


@mistake(
    "self_attention",
    keeps=0.65,
    hint="The weights here are [in, out] and multiply from the right, unlike those of nn.Linear.",
    replace=[
        ("x @ w_q", "x @ w_q.T"),
        ("x @ w_k", "x @ w_k.T"),
        ("x @ w_v", "x @ w_v.T"),
    ],
)
def weights_as_nn_linear_has_them(): ...


@mistake(
    "self_attention",
    keeps=0.65,
    hint="The slides write Y = AX in one place. What is mixed by the weights, the tokens or "
    "their values?",
    shows=ignores("w_v"),
    replace=("v = x @ w_v", "v = x"),
)
def mixes_the_tokens_themselves(): ...


@mistake(
    "self_attention",
    keeps=0.65,
    hint="One of keys and values decides the weights, the other is mixed. Use three different "
    "weights to test.",
    shows=ignores("w_v"),
    replace=("v = x @ w_v", "v = x @ w_k"),
)
def values_from_the_key_matrix(): ...


@mistake(
    "self_attention",
    keeps=0.65,
    hint="Nobody asked for a mask here: row 0 sees the whole sequence.",
    replace=(
        "return scaled_dot_product_attention(q, k, v)",
        """
        scores = widen(q) @ widen(k).transpose(-1, -2) / math.sqrt(q.shape[-1])
        future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(diagonal=1)
        return (softmax(scores.masked_fill(future, -math.inf)) @ widen(v)).to(x.dtype)
    """,
    ),
)
def causal_from_habit(): ...


@mistake(
    "self_attention",
    hint="An infinite score is too late to repair: what does float16 do with 300 · 300?",
    replace=(
        "return scaled_dot_product_attention(q, k, v)",
        "return softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])) @ v",
    ),
)
def scores_in_half_precision(): ...


@mistake(
    "self_attention",
    hint="Which sizes can't be right together? Say so before torch says something else, "
    "and name them.",
    replace=[
        ("if w.shape[0] != d:", "if False:"),
        ("if w_q.shape[1] != w_k.shape[1]:", "if False:"),
    ],
)
def leaves_the_sizes_unchecked(): ...


# --- cross_attention
# ---------------------------------------------------------------------------------------------


@mistake(
    "cross_attention",
    keeps=0.65,
    hint="w_k and w_v are checked against the width of the sequence that asks. They read the other "
    "one, whose width may differ.",
    replace=(
        '("w_k", x_kv, w_k), ("w_v", x_kv, w_v)',
        '("w_k", x_q, w_k), ("w_v", x_q, w_v)',
    ),
)
def checks_the_keys_weights_against_the_queries(): ...


@mistake(
    "cross_attention",
    hint="There is one output for each token that asks. Who asks, and who is asked?",
    replace=[
        ("q = x_q @ w_q", "q = x_kv @ w_q"),
        ("k, v = x_kv @ w_k, x_kv @ w_v", "k, v = x_q @ w_k, x_q @ w_v"),
    ],
)
def queries_from_the_source(): ...


@mistake(
    "cross_attention",
    keeps=0.65,
    hint="The values are what the source hands over. Which input do yours come from?",
    replace=("x_kv @ w_v", "x_q @ w_v"),
)
def values_from_the_asking_sequence(): ...


@mistake(
    "cross_attention",
    hint="The source isn't used at all: change it, and your output stays. Where do keys and "
    "values come from?",
    replace=("k, v = x_kv @ w_k, x_kv @ w_v", "k, v = x_q @ w_k, x_q @ w_v"),
)
def attends_to_itself(): ...


@mistake(
    "cross_attention",
    keeps=0.65,
    hint="Another w_v changes nothing in your answer. Let one key dominate the search and look at "
    "what is mixed: is it that token's value?",
    shows=ignores("w_v"),
    replace=("k, v = x_kv @ w_k, x_kv @ w_v", "k = v = x_kv @ w_k"),
)
def values_and_keys_are_the_same(): ...


@mistake(
    "cross_attention",
    hint="The scale keeps the spread of a dot product near 1: how many terms does that "
    "product have?",
    shows=right_once_scaled("w_q", "w_q[-1]**-0.5"),
    keeps=0.65,
    replace=(
        "return scaled_dot_product_attention(q, k, v)",
        "return (softmax(widen(q) @ widen(k).transpose(-1, -2)) @ widen(v)).to(x_q.dtype)",
    ),
)
def cross_attention_without_scale(): ...


@mistake(
    "cross_attention",
    keeps=0.65,
    hint="The scale has to do with the vectors inside the dot product, not with the input "
    "of the layer.",
    replace=(
        "return scaled_dot_product_attention(q, k, v)",
        "return (softmax(widen(q) @ widen(k).transpose(-1, -2) / math.sqrt(x_q.shape[-1])) @ "
        "widen(v)).to(x_q.dtype)",
    ),
)
def scales_by_the_input_width(): ...


@mistake(
    "cross_attention",
    keeps=0.65,
    hint="You scale by the width of the values. A score is a product of a query and a key: their width is "
    "what counts, and values may have another one.",
    replace=(
        "q = x_q @ w_q",
        "q = x_q @ w_q * math.sqrt(w_k.shape[1] / w_v.shape[1])",
    ),
)
def cross_scales_by_the_width_of_the_values(): ...


@mistake(
    "cross_attention",
    keeps=0.65,
    hint="Three queries and seven keys: each row of seven weights sums to 1.",
    replace=(
        "return scaled_dot_product_attention(q, k, v)",
        """
        scores = widen(q) @ widen(k).transpose(-1, -2) / math.sqrt(q.shape[-1])
        return (softmax(scores, dim=-2) @ widen(v)).to(x_q.dtype)
    """,
    ),
)
def softmax_over_the_asking_tokens(): ...


@mistake(
    "cross_attention",
    keeps=0.65,
    hint="Dimension 1 is the axis of the keys only where nothing is batched; in a batch it is that of the "
    "tokens that ask. Count the axis from the end.",
    replace=(
        "return scaled_dot_product_attention(q, k, v)",
        """
        scores = widen(q) @ widen(k).transpose(-1, -2) / math.sqrt(q.shape[-1])
        return (softmax(scores, dim=1) @ widen(v)).to(x_q.dtype)
    """,
    ),
)
def softmax_along_dimension_1(): ...


@mistake(
    "cross_attention",
    keeps=0.65,
    hint="A source has no future: every query may read all of it.",
    replace=(
        "return scaled_dot_product_attention(q, k, v)",
        """
        scores = widen(q) @ widen(k).transpose(-1, -2) / math.sqrt(q.shape[-1])
        future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(diagonal=1)
        return (softmax(scores.masked_fill(future, -math.inf)) @ widen(v)).to(x_q.dtype)
    """,
    ),
)
def source_under_a_causal_mask(): ...


@mistake(
    "cross_attention",
    hint="float16 in, float16 out: the wide numbers stay inside.",
    shows=has_dtype("float32"),
    replace=("(q, k, v)", "(widen(q), widen(k), widen(v))"),
)
def cross_attention_returns_float32(): ...


@mistake(
    "cross_attention",
    hint="Name the two sizes that disagree in a ValueError, before the matrix product stumbles.",
    replace=[
        ("if w.shape[0] != x.shape[-1]:", "if False:"),
        ("if w_q.shape[1] != w_k.shape[1]:", "if False:"),
    ],
)
def leaves_the_sizes_of_both_inputs_unchecked(): ...


# --- causal_mask
# -------------------------------------------------------------------------------------------------


@mistake(
    "causal_mask",
    keeps=0.65,
    hint="Your triangle starts at the top left, as torch's is_causal does. With two queries and "
    "five keys the queries are the last two positions: which corner is theirs?",
    shows=triangle_at_the_top_left(),
    replace=("i + n_k - n_q", "i"),
)
def aligned_to_the_top_left(): ...


@mistake(
    "causal_mask",
    hint="Can token i look at itself? Row 0 of a square mask must not be empty.",
    shows=nothing_where_something_is_right(),
    keeps=0.65,
    replace=("j <= i", "j < i"),
)
def nobody_sees_itself(): ...


@mistake(
    "causal_mask",
    hint="Token 0 must not see token 1, which it is about to predict.",
    keeps=0.65,
    replace=("i + n_k - n_q", "i + n_k - n_q + 1"),
)
def sees_one_step_ahead(): ...


@mistake(
    "causal_mask",
    keeps=0.65,
    hint="True = may attend. Can your first query see the last key?",
    replace=("j <= i", "j >= i"),
)
def keeps_the_future(): ...


@mistake(
    "causal_mask",
    keeps=0.65,
    hint="In some libraries True means 'drop'. In this course it means 'may attend'.",
    shows=complement(),
    replace=("j <= i", "j > i"),
)
def true_means_drop(): ...


@mistake(
    "causal_mask",
    hint="Five queries, two keys: how many rows should be empty? The shift may be negative.",
    replace=("n_k - n_q", "max(0, n_k - n_q)"),
)
def shift_is_never_negative(): ...


@mistake(
    "causal_mask",
    keeps=0.65,
    hint="The shift is how many positions came before the queries. Which size minus which?",
    replace=("n_k - n_q", "n_q - n_k"),
)
def shifts_the_wrong_way(): ...


@mistake(
    "causal_mask",
    keeps=0.65,
    hint="There are two sizes: rows are queries, columns are keys.",
    shows=ignores("n_k"),
    replace=[("torch.arange(n_k)", "torch.arange(n_q)"), ("i + n_k - n_q", "i")],
)
def always_square(): ...


@mistake(
    "causal_mask",
    keeps=0.65,
    hint="Rows are queries and columns are keys: which of the two does your first index count?",
    shows=axes_exchanged(),
    replace=("return j <= i + n_k - n_q", "return (j <= i + n_k - n_q).T"),
)
def rows_are_keys(): ...


@mistake(
    "causal_mask",
    hint="n_k = 0 is taken for 'not given' (`n_k or n_q` does that). How do you ask whether an "
    "argument is None?",
    replace=("if n_k is None:", "if not n_k:"),
)
def zero_keys_taken_for_none(): ...


@mistake(
    "causal_mask",
    keeps=0.65,
    hint="A mask is boolean: yes or no. What is its dtype?",
    shows=has_dtype("float32"),
    replace=("return j <= i + n_k - n_q", "return (j <= i + n_k - n_q).float()"),
)
def mask_of_ones_and_zeros(): ...


@mistake(
    "causal_mask",
    hint="This is the mask of the visible check, of five tokens. What does it look like for other "
    "sizes?",
    replace=(
        "return j <= i + n_k - n_q",
        "return torch.ones(5, 5).tril().bool()[5 - min(n_q, 5) :, : min(n_k, 5)]",
    ),
)
def five_tokens_only(): ...


@mistake(
    "causal_mask",
    hint="You cut the rows of the queries out of a square of n_k rows. Where there are more queries "
    "than keys it has too few.",
    replace=(
        "return j <= i + n_k - n_q",
        "return torch.ones(n_k, n_k).tril().bool()[-n_q:]",
    ),
)
def rows_of_a_square_of_keys(): ...


# --- padding_mask
# ------------------------------------------------------------------------------------------------


@mistake(
    "padding_mask",
    hint="[B, N] is read as [N_q, N_k] when it meets the scores. Which axis is missing, and where?",
    shows=one_axis_less(),
    replace=("lengths[:, None, None]", "lengths[:, None]"),
)
def no_axis_for_the_queries(): ...


@mistake(
    "padding_mask",
    hint="This forbids padded queries to look. Who should not be listened to?",
    shows=axes_exchanged(),
    replace=(
        "return j < lengths[:, None, None]",
        "return (j < lengths[:, None]).unsqueeze(-1)",
    ),
)
def hides_queries_instead_of_keys(): ...


@mistake(
    "padding_mask",
    keeps=0.65,
    hint="True = a real token. In some libraries it is the other way round.",
    shows=complement(),
    replace=("j < lengths", "j >= lengths"),
)
def true_is_padding(): ...


@mistake(
    "padding_mask",
    hint="A sequence of length 3 has the keys 0, 1 and 2. Is key 3 real?",
    keeps=0.65,
    replace=("j < lengths", "j <= lengths"),
)
def one_key_too_many(): ...


@mistake(
    "padding_mask",
    hint="A sequence of length 3 has three real keys. Count yours.",
    keeps=0.65,
    replace=("j < lengths", "j + 1 < lengths"),
)
def one_key_too_few(): ...


@mistake(
    "padding_mask",
    keeps=0.65,
    hint="The padding stands at the end here, not at the beginning.",
    shows=back_to_front(-1),
    replace=("j < lengths", "j >= n - lengths"),
)
def padding_on_the_left(): ...


@mistake(
    "padding_mask",
    hint="The mask is as wide as the padded tensors, not as the longest sentence. What is n for?",
    replace=("torch.arange(n,", "torch.arange(int(lengths.max()),"),
)
def as_wide_as_the_longest(): ...


@mistake(
    "padding_mask",
    keeps=0.65,
    hint="The shape is [B, 1, N]: leave the repetition over the queries to broadcasting.",
    replace=(
        "return j < lengths[:, None, None]",
        "return (j < lengths[:, None, None]).expand(len(lengths), n, n)",
    ),
)
def repeated_for_every_query(): ...


@mistake(
    "padding_mask",
    keeps=0.65,
    hint="Each sequence has its own length. Print the mask of the second one.",
    shows=same_along(0),
    replace=(
        "return j < lengths[:, None, None]",
        "return (j < lengths[0]).expand(len(lengths), 1, n)",
    ),
)
def first_length_for_all(): ...


@mistake(
    "padding_mask",
    hint="A length above n means that something was cut off before. Say so with a ValueError.",
    replace=("0 <= length <= n", "0 <= length"),
)
def cuts_long_lengths_off(): ...


@mistake(
    "padding_mask",
    hint="A length below 0 means nothing. Say so with a ValueError.",
    replace=("0 <= length <= n", "length <= n"),
)
def accepts_negative_lengths(): ...


@mistake(
    "padding_mask",
    hint="A sequence of length 0 has no real key. Yours gets one.",
    replace=("j < lengths", "j < lengths.clamp(min=1)"),
)
def an_empty_sequence_gets_a_key(): ...


@mistake(
    "padding_mask",
    keeps=0.65,
    hint="0 and 1 are numbers; the mask of this course is boolean.",
    shows=has_dtype("float32"),
    replace=(
        "return j < lengths[:, None, None]",
        "return (j < lengths[:, None, None]).float()",
    ),
)
def padding_mask_of_numbers(): ...


# --- combine_masks
# -----------------------------------------------------------------------------------------------


@mistake(
    "combine_masks",
    hint="A padded key in the past: causality allows it, padding does not. What should come out?",
    replace=("allowed & mask", "allowed | mask"),
)
def allowed_by_any_mask(): ...


@mistake(
    "combine_masks",
    hint="What if there are three masks, or one?",
    replace=("masks[1:]", "masks[1:2]"),
)
def only_the_first_two(): ...


@mistake(
    "combine_masks",
    hint="You take the first mask and the last. Of three masks or more the ones between have a say, too.",
    replace=("masks[1:]", "masks[-1:]"),
)
def only_the_first_and_the_last(): ...


@mistake(
    "combine_masks",
    hint="Each mask may forbid something. Which of yours has a say?",
    replace=(
        "allowed & mask",
        "mask.expand(torch.broadcast_shapes(allowed.shape, mask.shape))",
    ),
)
def the_last_mask_wins(): ...


@mistake(
    "combine_masks",
    hint="The caller's first mask is another one after your call: `&=` writes into it. Call your "
    "function twice, and print the mask.",
    replace=(
        "allowed = allowed & mask",
        """
        if torch.broadcast_shapes(allowed.shape, mask.shape) == allowed.shape:
            allowed &= mask
        else:
            allowed = allowed & mask
    """,
    ),
)
def writes_into_the_first_mask(): ...


@mistake(
    "combine_masks",
    hint="contiguous() copies only where it must: a mask that has the shape already is the caller's "
    "own, and `&=` writes into it.",
    replace=[
        (
            "allowed = masks[0]",
            "allowed = torch.broadcast_tensors(*masks)[0].contiguous()",
        ),
        ("allowed = allowed & mask", "allowed &= mask"),
    ],
)
def takes_contiguous_for_a_copy(): ...


@mistake(
    "combine_masks",
    keeps=0.65,
    hint="A product of masks as numbers is a number. The result has to be boolean again.",
    shows=has_dtype("float32"),
    replace=[
        ("allowed = masks[0]", "allowed = masks[0].float()"),
        ("allowed & mask", "allowed * mask"),
    ],
)
def product_of_numbers(): ...


@mistake(
    "combine_masks",
    hint="True + True counts as yes, and so does True + False. When is a key allowed?",
    replace=("allowed & mask", "allowed.int() + mask.int() > 0"),
)
def sum_of_masks(): ...


@mistake(
    "combine_masks",
    hint="Is a key that both masks forbid allowed? Try two masks that are False in one place.",
    replace=("allowed & mask", "allowed == mask"),
)
def allowed_where_the_masks_agree(): ...


@mistake(
    "combine_masks",
    keeps=0.65,
    hint="Masks come in several shapes, [N_q, N_k] and [B, 1, N_k]. Let them broadcast.",
    replace=("allowed & mask", "torch.stack([allowed, mask]).all(dim=0)"),
)
def masks_must_have_one_shape(): ...


@mistake(
    "combine_masks",
    hint="What is the result of combining nothing? There is no shape for it: refuse.",
    replace=(
        'raise ValueError("0 masks cannot be combined: give at least one")',
        "return None",
    ),
)
def no_mask_gives_none(): ...


@mistake(
    "combine_masks",
    hint="torch complains in its own words. The course asks for a ValueError that names the sizes.",
    replace=("torch.broadcast_shapes(*(mask.shape for mask in masks))", "pass"),
)
def leaves_the_shapes_unchecked(): ...


@mistake(
    "combine_masks",
    keeps=0.65,
    hint="Masks of different shapes that broadcast belong together too: [N, N] and [B, 1, N], say. torch.stack takes equal shapes only.",
    replace=(
        "torch.broadcast_shapes(*(mask.shape for mask in masks))",
        "torch.stack(masks)",
    ),
)
def stacks_masks_of_one_shape(): ...


# --- masked_softmax
# ----------------------------------------------------------------------------------------------


@mistake(
    "masked_softmax",
    keeps=0.65,
    hint="In this course True = may attend. Print the weights for an all-True mask.",
    shows=something_only_where_nothing_is_right(),
    replace=("mask = mask.expand(scores.shape)", "mask = ~mask.expand(scores.shape)"),
)
def polarity_inverted(): ...


@mistake(
    "masked_softmax",
    keeps=0.65,
    hint="exp(0) = 1: a score of zero is not a weight of zero.",
    replace=[
        ("widen(scores).masked_fill(~mask, -math.inf)", "widen(scores) * mask"),
        ("(e / total)", "(e / total).masked_fill(empty, 0.0)"),
    ],
)
def scores_times_mask(): ...


@mistake(
    "masked_softmax",
    keeps=0.65,
    hint="A negative score times −inf is +inf, and 0 times −inf is NaN. What should any "
    "forbidden score become?",
    replace=(
        "widen(scores).masked_fill(~mask, -math.inf)",
        "torch.where(mask, widen(scores), widen(scores) * -math.inf).masked_fill(empty, -math.inf)",
    ),
)
def scores_times_minus_infinity(): ...


@mistake(
    "masked_softmax",
    keeps=0.65,
    hint="Add up a row of your weights. Where did the rest of the 1 go?",
    replace=("return (e / total).to(scores.dtype)", "return softmax(scores) * mask"),
)
def mask_after_the_softmax(): ...


@mistake(
    "masked_softmax",
    hint="The same in exact arithmetic. Now give a forbidden key the score 100000: what is left "
    "to divide by?",
    replace=(
        "return (e / total).to(scores.dtype)",
        """
        weights = softmax(widen(scores)) * mask
        total = weights.sum(dim=-1, keepdim=True).masked_fill(empty, 1.0)
        return (weights / total).to(scores.dtype)
    """,
    ),
)
def mask_after_the_softmax_and_renormalized(): ...


@mistake(
    "masked_softmax",
    hint="Your weights are right where a row has no allowed key, and its gradient is NaN when a "
    "score there is: the forbidden scores of such a row still take part, and 0 times NaN is NaN.",
    replace=[
        ("masked_fill(~mask, -math.inf)", "masked_fill(~(mask | empty), -math.inf)"),
        (
            "return (e / total).to(scores.dtype)",
            "return torch.where(empty, 0.0, e / total).to(scores.dtype)",
        ),
        (
            "total = e.sum(dim=-1, keepdim=True).masked_fill(empty, 1.0)",
            "total = e.sum(dim=-1, keepdim=True)",
        ),
    ],
)
def empty_rows_keep_their_scores(): ...


@mistake(
    "masked_softmax",
    hint="Your weights are right, and the gradient is NaN: forbidden scores go through exp before you "
    "choose, and 0 times an infinite or missing derivative is NaN. Choose first.",
    replace=[
        (
            "visible = widen(scores).masked_fill(~mask, -math.inf)",
            "wide = widen(scores)",
        ),
        (
            "visible.amax(dim=-1, keepdim=True)",
            "wide.detach().masked_fill(~mask, -math.inf).amax(dim=-1, keepdim=True)",
        ),
        (
            "e = torch.exp(visible - peak)",
            "e = torch.where(mask, torch.exp(wide - peak), 0.0)",
        ),
    ],
)
def chooses_after_the_exponential(): ...


@mistake(
    "masked_softmax",
    hint="Fine until a row has no allowed key: then all keys are equally large, and each "
    "gets its share.",
    replace=(
        "return (e / total).to(scores.dtype)",
        "return softmax(widen(scores).masked_fill(~mask, -1e9)).to(scores.dtype)",
    ),
)
def fills_with_minus_a_billion(): ...


@mistake(
    "masked_softmax",
    hint="An allowed score can be below −10000, and then the forbidden key wins.",
    replace=("-math.inf", "-1e4"),
)
def fills_with_minus_ten_thousand(): ...


@mistake(
    "masked_softmax",
    hint="An allowed score can be below −1e9. Then your fill is the row's maximum, every allowed "
    "weight underflows, and 0/0 is NaN.",
    replace=[
        ("masked_fill(~mask, -math.inf)", "masked_fill(~mask, -1e9)"),
        (
            "torch.exp(visible - peak)",
            "torch.exp(visible - peak).masked_fill(~mask, 0.0)",
        ),
    ],
)
def fills_with_minus_a_billion_before_the_maximum(): ...


@mistake(
    "masked_softmax",
    hint="A row of −inf has the maximum −inf, and −inf − (−inf) is NaN. Ask the mask which "
    "rows are empty.",
    replace=(".masked_fill(empty, 0.0)", ""),
)
def empty_rows_are_nan(): ...


@mistake(
    "masked_softmax",
    hint="The forward pass looks right; print the gradient. Where a row is all −inf the softmax is "
    "NaN, and its gradient stays NaN when you replace the result.",
    replace=(
        "return (e / total).to(scores.dtype)",
        """
        bias = torch.zeros(mask.shape).masked_fill(~mask, -math.inf)
        weights = torch.softmax(widen(scores) + bias, dim=-1)
        return torch.where(empty, 0.0, weights).to(scores.dtype)
    """,
    ),
)
def empty_rows_replaced_too_late(): ...


@mistake(
    "masked_softmax",
    hint="Washing away every NaN also hides the ones that come from a bug. Only rows that the "
    "mask empties become 0.",
    replace=[
        (".masked_fill(empty, 0.0)", ""),
        ("(e / total)", "(e / total).nan_to_num(0.0)"),
    ],
)
def nan_to_num_over_everything(): ...


@mistake(
    "masked_softmax",
    keeps=0.65,
    hint="Rows are queries, columns are keys. Try a mask that isn't symmetric.",
    shows=depends_on_later("mask", -2) & right_once_transposed("mask"),
    replace=(
        "empty = ~mask",
        """
        if mask.shape[-1] == mask.shape[-2]:
            mask = mask.transpose(-1, -2)
        empty = ~mask""",
    ),
)
def mask_transposed(): ...


@mistake(
    "masked_softmax",
    hint="Each sequence of the batch has its own mask. Which one do you use for the second?",
    replace=(
        "empty = ~mask",
        """
        while mask.ndim > 2:
            mask = mask[0]
        empty = ~mask""",
    ),
)
def first_mask_for_all(): ...


@mistake(
    "masked_softmax",
    keeps=0.65,
    hint="Forbidden keys still have a weight: your scores are not masked. (masked_fill returns a "
    "new tensor and leaves the old one alone: is its result used?)",
    replace=[
        (
            "visible = widen(scores).masked_fill(~mask, -math.inf)",
            "visible = widen(scores)",
        ),
        ("(e / total)", "(e / total).masked_fill(empty, 0.0)"),
    ],
)
def masked_fill_not_assigned(): ...


@mistake(
    "masked_softmax",
    hint="The caller's mask is turned round after your call: functions with a _ at the end, such "
    "as logical_not_, write in place.",
    replace=[
        ("mask = mask.expand(scores.shape)", "mask.expand(scores.shape)"),
        (
            "empty = ~mask.any(dim=-1, keepdim=True)",
            "empty = mask.logical_not_().all(dim=-1, keepdim=True)",
        ),
        ("~mask, -math.inf", "mask, -math.inf"),
    ],
)
def turns_the_callers_mask_round(): ...


@mistake(
    "masked_softmax",
    hint="The caller's scores are other numbers after your call: masked_fill_ writes into them, "
    "masked_fill does not.",
    replace=(
        "visible = widen(scores)",
        """
        with torch.no_grad():
            scores.masked_fill_(~mask, -6e4)
        visible = widen(scores)""",
    ),
)
def fills_the_callers_scores(): ...


@mistake(
    "masked_softmax",
    keeps=0.65,
    hint="Adding True or False to a score adds 1 or 0, and forbids nothing.",
    replace=[
        ("widen(scores).masked_fill(~mask, -math.inf)", "widen(scores) + mask"),
        ("(e / total)", "(e / total).masked_fill(empty, 0.0)"),
    ],
)
def mask_added_as_a_number(): ...


@mistake(
    "masked_softmax",
    keeps=0.65,
    hint="Which axis are the keys on? It is the last one, and its weights sum to 1.",
    shows=depends_on_later("mask", -2),
    replace=(
        "return (e / total).to(scores.dtype)",
        "return softmax(visible, dim=-2).to(scores.dtype)",
    ),
)
def masked_softmax_over_queries(): ...


@mistake(
    "masked_softmax",
    hint="The maximum is taken over forbidden keys too: with a huge one among them everything "
    "else underflows.",
    replace=[
        (
            "visible.amax(dim=-1, keepdim=True).masked_fill(empty, 0.0)",
            "torch.where(scores.isnan(), -math.inf, widen(scores)).amax(dim=-1, keepdim=True)",
        ),
        ("torch.exp(visible - peak)", "torch.exp(widen(scores) - peak) * mask"),
    ],
)
def maximum_over_all_keys(): ...


@mistake(
    "masked_softmax",
    hint="exp(89) is too large for float32. The softmax stays the same if you subtract something "
    "from the row first.",
    replace=("torch.exp(visible - peak)", "torch.exp(visible)"),
)
def no_maximum_subtracted(): ...


@mistake(
    "masked_softmax",
    keeps=0.65,
    hint="Added so that nothing is divided by zero, this small number also takes its share "
    "of small sums.",
    replace=(".masked_fill(empty, 1.0)", " + 1e-4"),
)
def small_number_under_the_fraction(): ...


@mistake(
    "masked_softmax",
    hint="Half precision goes in: it should come out as well.",
    shows=has_dtype("float32"),
    replace=("(e / total).to(scores.dtype)", "e / total"),
)
def masked_softmax_returns_float32(): ...


@mistake(
    "masked_softmax",
    hint="torch complains in its own words, or doesn't. The course asks for a ValueError "
    "with both sizes.",
    replace=("mask = mask.expand(scores.shape)", "pass"),
)
def leaves_the_mask_unchecked(): ...


# --- masked_attention
# --------------------------------------------------------------------------------------------


@mistake(
    "masked_attention",
    hint="Print the spread of your scores at d = 64: what does the formula divide by?",
    shows=through_unit("v", scores_off_by("q[-1]**0.5")),
    keeps=0.65,
    replace=(" / math.sqrt(q.shape[-1])", ""),
)
def masked_attention_without_scale(): ...


@mistake(
    "masked_attention",
    keeps=0.65,
    hint="The root belongs to the vectors in the dot product: queries and keys, not values.",
    shows=through_unit("v", scores_off_by("q[-1]**0.5 * v[-1]**-0.5")),
    replace=("math.sqrt(q.shape[-1])", "math.sqrt(v.shape[-1])"),
)
def masked_attention_scaled_by_d_v(): ...


@mistake(
    "masked_attention",
    hint="Another mask changes nothing in your answer. Where do you use it?",
    shows=ignores("mask"),
    replace=(
        "weights = masked_softmax(scores, mask)",
        """
        masked_softmax(scores, mask)
        weights = softmax(scores)
    """,
    ),
)
def ignores_the_mask(): ...


@mistake(
    "masked_attention",
    hint="Without a mask everything is allowed; yours hides what comes later all the same.",
    shows=through_unit("v", nothing_where_something_is_right()),
    replace=(
        "device=scores.device)",
        "device=scores.device).tril(scores.shape[-1] - scores.shape[-2])",
    ),
)
def causal_without_being_asked(): ...


@mistake(
    "masked_attention",
    keeps=0.65,
    hint="True = may attend. What does an all-True mask give?",
    shows=through_unit("v", something_only_where_nothing_is_right()),
    replace=[
        ("torch.ones(scores.shape[-2:], ", "torch.zeros(scores.shape[-2:], "),
        ("masked_softmax(scores, mask)", "masked_softmax(scores, ~mask)"),
    ],
)
def hides_what_is_allowed(): ...


@mistake(
    "masked_attention",
    keeps=0.65,
    hint="Add up the weights of one query: the mask has to act before the 1 is shared out.",
    replace=(
        "weights = masked_softmax(scores, mask)",
        """
        masked_softmax(scores, mask)
        weights = softmax(scores) * mask
    """,
    ),
)
def zeroes_the_weights_afterwards(): ...


@mistake(
    "masked_attention",
    keeps=0.65,
    hint="A value of zero is still a value with a weight. What has to be zero?",
    replace=(
        "weights = masked_softmax(scores, mask)",
        """
        masked_softmax(scores, mask)
        weights = softmax(scores)
        v = v * mask.any(dim=-2, keepdim=True).transpose(-1, -2)
    """,
    ),
)
def zeroes_the_values_of_hidden_keys(): ...


@mistake(
    "masked_attention",
    hint="Each sequence has its own padding. Which mask does your second sequence get?",
    replace=(
        "masked_softmax(scores, mask)",
        "masked_softmax(scores, mask[0] if mask.ndim > 2 else mask)",
    ),
)
def mask_of_the_first_sequence(): ...


@mistake(
    "masked_attention",
    hint="A mask broadcasts: [B, 1, N_k], which padding_mask gives, has one row for all queries. You "
    "ask for all N_q rows and refuse it.",
    replace=(
        "weights = masked_softmax(scores, mask)",
        """
        if mask.shape[-2:] != scores.shape[-2:]:
            raise ValueError(f"mask {list(mask.shape)} does not fit scores {list(scores.shape)}")
        weights = masked_softmax(scores, mask)
    """,
    ),
)
def refuses_masks_that_broadcast(): ...


@mistake(
    "masked_attention",
    keeps=0.65,
    hint="One of keys and values decides, the other is mixed. Test with three different tensors.",
    shows=ignores("v"),
    replace=("widen(v)", "widen(k)"),
)
def mixes_the_keys(): ...


@mistake(
    "masked_attention",
    hint="The caller's queries are other numbers after your call: `q /= …` writes into them.",
    replace=(
        "scores = widen(q) @ widen(k).transpose(-1, -2) / math.sqrt(q.shape[-1])",
        """
        q.data /= math.sqrt(q.shape[-1])
        scores = widen(q) @ widen(k).transpose(-1, -2)
    """,
    ),
)
def scales_the_queries_in_place(): ...


@mistake(
    "masked_attention",
    hint="float16 ends at 65504, and q · k gets there before it is scaled. When do you widen?",
    replace=("widen(q) @ widen(k).transpose(-1, -2)", "widen(q @ k.transpose(-1, -2))"),
)
def widens_after_the_product(): ...


@mistake(
    "masked_attention",
    hint="The wide numbers stay inside: the answer has the dtype of q.",
    shows=has_dtype("float32"),
    replace=("(weights @ widen(v)).to(q.dtype)", "weights @ widen(v)"),
)
def masked_attention_returns_float32(): ...


@mistake(
    "masked_attention",
    hint="Queries and keys are compared, keys and values come in pairs: name the sizes that "
    "disagree in a ValueError.",
    replace=[
        ("if q.shape[-1] != k.shape[-1]:", "if False:"),
        ("if k.shape[-2] != v.shape[-2]:", "if False:"),
    ],
)
def leaves_q_k_and_v_unchecked(): ...


# --- sinusoidal_positions
# ----------------------------------------------------------------------------------------


@mistake(
    "sinusoidal_positions",
    keeps=0.65,
    hint="i counts pairs. The exponent is the even column over D: is it doubled once too often?",
    replace=("even / d", "2 * even / d"),
)
def exponent_doubled(): ...


@mistake(
    "sinusoidal_positions",
    keeps=0.65,
    hint="The exponent of pair i is 2i/D. Yours falls half as fast as it should.",
    replace=("even / d", "even / 2 / d"),
)
def exponent_counts_pairs(): ...


@mistake(
    "sinusoidal_positions",
    keeps=0.65,
    hint="The sine and the cosine of a pair share one angle: sin² + cos² should be 1.",
    replace=(
        "torch.cos(angles[:, : d // 2])",
        "torch.cos((p / 10000.0 ** ((even + 1) / d))[:, : d // 2])",
    ),
)
def cosine_has_its_own_speed(): ...


@mistake(
    "sinusoidal_positions",
    keeps=0.65,
    hint="Interleave them: sine, cosine, sine, cosine. Yours has all sines first.",
    replace=(
        "return positions",
        "return torch.cat([positions[:, 0::2], positions[:, 1::2]], dim=1)",
    ),
)
def all_sines_first(): ...


@mistake(
    "sinusoidal_positions",
    keeps=0.65,
    hint="The first pair turns fastest, the later ones ever more slowly. Do your speeds "
    "fall or rise?",
    replace=("even / d", "-even / d"),
)
def speeds_rise(): ...


@mistake(
    "sinusoidal_positions",
    hint="Even columns are sines. What should position 0 look like?",
    keeps=0.65,
    replace=[
        ("torch.sin(angles)", "torch.cos(angles)"),
        ("torch.cos(angles[", "torch.sin(angles["),
    ],
)
def sine_and_cosine_swapped(): ...


@mistake(
    "sinusoidal_positions",
    hint="With an odd D there is one sine more than there are cosines. How many angles "
    "does each need?",
    replace=("angles[:, : d // 2]", "angles"),
)
def odd_width_crashes(): ...


@mistake(
    "sinusoidal_positions",
    hint="The exponent has the D that was asked for. Did you round an odd D up and cut the "
    "last column off?",
    replace=("even / d", "even / (d + d % 2)"),
)
def odd_width_rounded_up(): ...


@mistake(
    "sinusoidal_positions",
    hint="An odd D has its last column too: a sine. Is it there?",
    replace=(
        "return positions",
        """
        if d % 2:
            positions[:, -1] = 0.0
        return positions
    """,
    ),
)
def odd_width_ends_in_zero(): ...


@mistake(
    "sinusoidal_positions",
    hint="Positions count from 0. What is your first row?",
    keeps=0.65,
    replace=("torch.arange(n, dtype", "torch.arange(1, n + 1, dtype"),
)
def positions_from_one(): ...


@mistake(
    "sinusoidal_positions",
    hint="The slowest hand takes about 10000 · 2π positions for one turn. What is your base?",
    keeps=0.65,
    replace=("10000.0", "1000.0"),
)
def base_of_one_thousand(): ...


@mistake(
    "sinusoidal_positions",
    keeps=0.65,
    hint="`//` makes every exponent 0, so that all pairs turn at the same speed.",
    replace=("even / d", "even // d"),
)
def exponent_in_whole_numbers(): ...


@mistake(
    "sinusoidal_positions",
    keeps=0.65,
    hint="The slowest speed depends on D only: with D − 2 in the exponent the pairs are "
    "spread too far.",
    replace=("even / d", "even / max(1, d - 2)"),
)
def exponent_reaches_one(): ...


@mistake(
    "sinusoidal_positions",
    keeps=0.65,
    hint="The position vectors are added to tokens of the default dtype. Which dtype are yours?",
    shows=has_dtype("float64"),
    replace=("return positions", "return positions.double()"),
)
def positions_in_float64(): ...


@mistake(
    "sinusoidal_positions",
    hint="Which sizes have no meaning? Refuse them with a ValueError that names them.",
    replace=(
        'raise ValueError(f"no position vectors for n = {n} positions and d = {d} features")',
        "n, d = max(n, 0), max(d, 1)",
    ),
)
def accepts_any_size(): ...


# --- is_permutation_equivariant
# ----------------------------------------------------------------------------------


@mistake(
    "is_permutation_equivariant",
    hint="Attention gives the same outputs, shuffled as its inputs are: fn(x[perm]) is fn(x)[perm]. It "
    "is not fn(x) as it stands, nor shuffled the other way.",
    replace=("fn(x)[perm]", "fn(x)"),
)
def tests_invariance(): ...


@mistake(
    "is_permutation_equivariant",
    keeps=0.65,
    hint="A swap is its own inverse, a cycle is not. Which way round do you shuffle the outputs?",
    replace=("fn(x)[perm]", "fn(x)[perm.argsort()]"),
)
def shuffles_the_outputs_the_wrong_way(): ...


@mistake(
    "is_permutation_equivariant",
    keeps=0.65,
    hint="The same numbers summed in another order differ in the last digits. Allow for that.",
    replace=(
        "return bool((shuffled_first - shuffled_last).abs().max() <= 1e-6 * size)",
        "return torch.equal(shuffled_first, shuffled_last)",
    ),
)
def expects_equality_to_the_last_bit(): ...


@mistake(
    "is_permutation_equivariant",
    hint="A difference of one part in a thousand of the output is a difference. How generous is "
    "your tolerance?",
    replace=("1e-6", "0.1"),
)
def far_too_generous(): ...


@mistake(
    "is_permutation_equivariant",
    hint="If all outputs are of size 1e-9, everything is within 1e-8 of everything. Compare "
    "with their size.",
    replace=(
        "return bool((shuffled_first - shuffled_last).abs().max() <= 1e-6 * size)",
        "return torch.allclose(shuffled_first, shuffled_last, rtol=1e-5, atol=1e-8)",
    ),
)
def tolerance_of_a_fixed_size(): ...


@mistake(
    "is_permutation_equivariant",
    hint="Rows are tokens. Which axis of x do you shuffle?",
    replace=[
        (
            "shuffled_first = fn(x[perm])",
            """
        if x.shape[0] != x.shape[1]:
            perm = perm.argsort()[: x.shape[1]].argsort()
        shuffled_first = fn(x[:, perm])""",
        ),
        ("fn(x)[perm]", "fn(x)[:, perm]"),
    ],
)
def shuffles_the_features(): ...


@mistake(
    "is_permutation_equivariant",
    hint="The question is about the shuffle that you are given, not about one of your own.",
    replace=(
        "shuffled_first = fn(x[perm])",
        """
        perm = torch.randperm(x.shape[0], generator=torch.Generator().manual_seed(1))
        shuffled_first = fn(x[perm])""",
    ),
)
def uses_a_shuffle_of_its_own(): ...


@mistake(
    "is_permutation_equivariant",
    keeps=0.65,
    hint="Summed over the rows, the two sides are equal in whatever order the rows stand. "
    "Compare row by row.",
    replace=(
        "(shuffled_first - shuffled_last)",
        "(shuffled_first - shuffled_last).sum(dim=0)",
    ),
)
def compares_the_sums_only(): ...


@mistake(
    "is_permutation_equivariant",
    hint="The caller's tokens are shuffled after your call: `x[:] = …` writes into them. And what "
    "does fn(x) see afterwards?",
    replace=[
        ("shuffled_first = fn(x[perm])", "shuffled_last = fn(x)[perm]"),
        (
            "shuffled_last = fn(x)[perm]",
            """
        x[:] = x[perm]
        shuffled_first = fn(x)""",
        ),
    ],
)
def shuffles_x_in_place(): ...


@mistake(
    "is_permutation_equivariant",
    hint="Does your function depend on fn at all? A constant answer is wrong half of the time.",
    replace=(
        "bool((shuffled_first - shuffled_last).abs().max() <= 1e-6 * size)",
        "True",
    ),
)
def always_yes(): ...


@mistake(
    "is_permutation_equivariant",
    keeps=0.65,
    hint="A comparison of tensors gives a tensor. The caller wants a Python bool.",
    replace=(
        "bool((shuffled_first - shuffled_last).abs().max() <= 1e-6 * size)",
        "(shuffled_first - shuffled_last).abs().max() <= 1e-6 * size",
    ),
)
def answers_with_a_tensor(): ...


@mistake(
    "is_permutation_equivariant",
    hint="Three indices into seven tokens are no permutation, and indexing does not mind. Refuse "
    "it with a ValueError.",
    replace=("if perm.shape != (x.shape[0],):", "if False:"),
)
def accepts_a_short_permutation(): ...


# --- first_leak
# --------------------------------------------------------------------------------------------------


def _noise(x):
    return torch.randn(
        x.shape, generator=torch.Generator().manual_seed(4), dtype=x.dtype
    )


def _moved(after, before, tolerance=1e-6):
    """For each row whether it moved, measured by its own size."""
    size = torch.maximum(after.abs().amax(-1), before.abs().amax(-1))
    return (after - before).abs().amax(-1) > tolerance * size


@mistake(
    "first_leak",
    keeps=0.65,
    hint="Output row 2 looks at token 4. Which of the two numbers is asked for?",
)
def reports_the_token_that_was_changed(fn, x):
    before = fn(x)
    for j in range(1, x.shape[0]):
        changed = x.clone()
        changed[j] = _noise(x)[j]
        if _moved(fn(changed), before)[:j].any():
            return j
    return None


@mistake(
    "first_leak",
    keeps=0.65,
    hint="A row may peek at its neighbour and at nobody else. Which tokens do you change?",
    replace=(
        "torch.cat([x[: i + 1], noise[i + 1 :]])",
        "torch.cat([x[:-1], noise[-1:]])",
    ),
)
def changes_the_last_token_only(): ...


@mistake(
    "first_leak",
    keeps=0.65,
    hint="A row may look two tokens ahead, or at the last token only. Which tokens do you change?",
    replace=(
        "torch.cat([x[: i + 1], noise[i + 1 :]])",
        "torch.cat([x[: i + 1], noise[i + 1 : i + 2], x[i + 2 :]])",
    ),
)
def changes_the_next_token_only(): ...


@mistake(
    "first_leak",
    hint="A leak through rounding, or over a step, shows by a large change alone: a tiny one, or a "
    "gradient, does not find it. Tokens are of size 1: change them by as much.",
    replace=[
        ("noise[i + 1 :]", "x[i + 1 :] + 1e-6 * noise[i + 1 :]"),
        ("moved > 1e-6 * size", "moved > 1e-10 * size"),
    ],
)
def changes_by_a_millionth(): ...


@mistake(
    "first_leak",
    hint="A gradient is 0 where a function is flat, and a rounded token leaks all the same. "
    "Change the tokens.",
)
def asks_for_the_gradient(fn, x):
    tokens = x.clone().requires_grad_()
    y = fn(tokens)
    for i in range(x.shape[0] - 1):
        if not y.requires_grad:
            return None
        (gradient,) = torch.autograd.grad(
            y[i].abs().sum(), tokens, retain_graph=True, allow_unused=True
        )
        if (
            gradient is not None
            and gradient[i + 1 :].abs().max() > 1e-9 * y[i].detach().abs().max()
        ):
            return i
    return None


@mistake(
    "first_leak",
    hint="A clean function may differ in its last digit when other tokens change. Allow "
    "for rounding.",
    replace=("moved > 1e-6 * size", "moved > 0"),
)
def expects_equality_to_the_last_bit_of_each_row(): ...


@mistake(
    "first_leak",
    hint="A leak may be a hundredth of the row. How large a movement do you overlook?",
    replace=("moved > 1e-6 * size", "moved > 0.2 * size"),
)
def overlooks_small_leaks(): ...


@mistake(
    "first_leak",
    hint="A small row can leak as well, beside large ones too. Your tolerance does not know how "
    "large the row is: compare with the row's own size.",
    replace=(
        "moved > 1e-6 * size",
        "not torch.allclose(after[i], before[i], rtol=1e-5, atol=1e-8)",
    ),
)
def tolerance_that_ignores_the_size(): ...


@mistake(
    "first_leak",
    hint="If you add the same number to all features, a leak through differences of features "
    "does not notice.",
    replace=("noise[i + 1 :]", "x[i + 1 :] + 1.0"),
)
def adds_a_constant(): ...


@mistake(
    "first_leak",
    hint="A square does not notice a change of sign. Replace the tokens by something unrelated.",
    replace=("noise[i + 1 :]", "-x[i + 1 :]"),
)
def flips_the_signs(): ...


@mistake(
    "first_leak",
    hint="What if the later tokens are zero already? Then setting them to zero changes nothing.",
    replace=("noise[i + 1 :]", "torch.zeros_like(x[i + 1 :])"),
)
def sets_later_tokens_to_zero(): ...


@mistake(
    "first_leak",
    keeps=0.65,
    hint="A sum does not notice a new order. Replace the tokens by others.",
    replace=("noise[i + 1 :]", "x[i + 1 :].flip(0)"),
)
def reorders_later_tokens(): ...


@mistake(
    "first_leak",
    keeps=0.65,
    hint="A causal layer may multiply the future by a weight of 0, and 0 · NaN is NaN: you "
    "accuse the innocent.",
    replace=[
        ("noise[i + 1 :]", "torch.full_like(x[i + 1 :], math.nan)"),
        ("moved > 1e-6 * size", "after[i].isnan().any()"),
    ],
)
def marks_later_tokens_with_nan(): ...


@mistake(
    "first_leak",
    keeps=0.65,
    hint="fn takes this N only: it may own a table of that size. Change the later tokens instead "
    "of cutting them off.",
    replace=("torch.cat([x[: i + 1], noise[i + 1 :]])", "x[: i + 1]"),
)
def cuts_the_sequence(): ...


@mistake(
    "first_leak",
    keeps=0.65,
    hint="Row i may depend on token i. Do you change that one as well?",
    replace=[
        ("x.shape[0] - 1", "x.shape[0]"),
        ("torch.cat([x[: i + 1], noise[i + 1 :]])", "torch.cat([x[:i], noise[i:]])"),
    ],
)
def changes_the_token_itself(): ...


@mistake(
    "first_leak",
    hint="Which comes first: the row that you happen to find first, or the smallest row? Go "
    "through the rows in order.",
)
def the_row_found_first(fn, x):
    before = fn(x)
    for j in range(1, x.shape[0]):
        rows = (
            _moved(fn(torch.cat([x[:j], _noise(x)[j : j + 1], x[j + 1 :]])), before)[:j]
            .nonzero()
            .flatten()
            .tolist()
        )
        if rows:
            return rows[0]
    return None


@mistake(
    "first_leak",
    hint="Several rows may leak. The first is asked for, yours is the last.",
    replace=("range(x.shape[0] - 1)", "reversed(range(x.shape[0] - 1))"),
)
def the_last_row_that_leaks(): ...


@mistake(
    "first_leak",
    hint="0 is a row, and Python takes it for false. How do you tell 'row 0' from 'no row'?",
    replace=("return i", "return i or None"),
)
def row_zero_taken_for_none(): ...


@mistake(
    "first_leak",
    hint="Row 0 has the longest future of all. Where does your loop begin?",
    replace=("range(x.shape[0] - 1)", "range(1, x.shape[0] - 1)"),
)
def begins_at_row_one(): ...


@mistake(
    "first_leak",
    hint="The last row but one still has one token of future. Where does your loop end?",
    replace=("range(x.shape[0] - 1)", "range(x.shape[0] - 2)"),
)
def ends_one_row_early(): ...


@mistake(
    "first_leak",
    keeps=0.65,
    hint="The docstring says what to return when nothing leaks, and −1 is a row in Python.",
    replace=("return None", "return -1"),
)
def minus_one_for_no_leak(): ...


@mistake(
    "first_leak",
    hint="The question is which row, not whether.",
    replace=[("return i", "return True"), ("return None", "return False")],
)
def says_whether_and_not_where(): ...


@mistake(
    "first_leak",
    keeps=0.65,
    hint="You write into the caller's tokens. Work on a copy, and begin each row with the original.",
    replace=[
        ("before = fn(x)", "before = fn(x).clone()"),
        (
            "changed = torch.cat([x[: i + 1], noise[i + 1 :]])",
            """
        x[i + 1 :] = noise[i + 1 :]
        changed = x""",
        ),
    ],
)
def writes_into_x(): ...


@mistake(
    "first_leak",
    hint="A change in an earlier token may of course move a later row. That is no leak, "
    "it is memory.",
    replace=[
        ("range(x.shape[0] - 1)", "range(1, x.shape[0])"),
        ("torch.cat([x[: i + 1], noise[i + 1 :]])", "torch.cat([noise[:i], x[i:]])"),
    ],
)
def looks_the_wrong_way(): ...


# --- product_mask_evidence
# ---------------------------------------------------------------------------------------


@mistake(
    "product_mask_evidence",
    keeps=0.65,
    hint="A positive score times −inf is −inf, as it should be. Which sign is the harmless one?",
    replace=("return fine, one_way, other_way", "return one_way, fine, other_way"),
)
def signs_the_wrong_way_round(): ...


@mistake(
    "product_mask_evidence",
    hint="The matrices have n rows. Yours have three, as in the visible check.",
    replace=(
        "fine = torch.ones(n, n)",
        """
        n = 3
        fine = torch.ones(n, n)""",
    ),
)
def always_three_tokens(): ...


@mistake(
    "product_mask_evidence",
    keeps=0.65,
    hint="The notes multiply by −inf above the diagonal only. Where are your telling scores?",
    replace=[
        ("-torch.ones(n, n)", "torch.ones(n, n) - 2 * torch.ones(n, n).tril()"),
        ("torch.zeros(n, n)", "torch.ones(n, n).triu(1)"),
    ],
)
def scores_in_the_past(): ...


@mistake(
    "product_mask_evidence",
    keeps=0.65,
    hint="The scores themselves are finite: it is the product that makes infinities of them.",
    replace=[
        ("-torch.ones(n, n)", "torch.full((n, n), -math.inf)"),
        ("torch.zeros(n, n)", "torch.full((n, n), math.nan)"),
    ],
)
def infinite_scores(): ...


@mistake(
    "product_mask_evidence",
    keeps=0.65,
    hint="One matrix shows one thing. Does the second hold a zero, or the third a negative "
    "number, in the future?",
    replace=(
        "return fine, one_way, other_way",
        """
        one_way[0, -1] = 0.0
        return fine, one_way, 0.5 * one_way
    """,
    ),
)
def both_ways_in_one(): ...


@mistake(
    "product_mask_evidence",
    hint="−0.0 and 0 are both zero. Which kind of score becomes +inf?",
    replace=(
        "return fine, one_way, other_way",
        "return other_way, other_way, other_way",
    ),
)
def zeros_everywhere(): ...


@mistake(
    "product_mask_evidence",
    hint="`fine` has to survive for certain: are all its scores of the future positive?",
    replace=(
        "fine = torch.ones(n, n)",
        "fine = torch.randn(n, n, generator=torch.Generator().manual_seed(n))",
    ),
)
def fine_by_luck(): ...


@mistake(
    "product_mask_evidence",
    hint="Your `fine` has zeros in the future. What is 0 times −inf? And which sign does a score need "
    "there to become −inf?",
    replace=("fine = torch.ones(n, n)", "fine = torch.eye(n)"),
    shows=part(0, one_hot(-1)),
)
def fine_is_the_identity(): ...


@mistake(
    "product_mask_evidence",
    keeps=0.65,
    hint="Your `fine` holds integers. Scores are floating point numbers: arange and whole numbers make "
    "another dtype unless you ask for floats.",
    replace=("fine = torch.ones(n, n)", "fine = torch.ones(n, n).long()"),
    shows=part(0, has_dtype("int64")),
)
def fine_holds_integers(): ...


@mistake(
    "product_mask_evidence",
    hint="Your `one_way` is a board of both signs, positive right above the diagonal: two tokens "
    "have no other score of the future, and no +inf comes out.",
    replace=(
        "return fine, one_way, other_way",
        """
        places = torch.arange(n)
        return fine, (-1.0) ** (places[:, None] + places + 1), torch.eye(n)
    """,
    ),
)
def signs_of_a_board(): ...


@mistake(
    "product_mask_evidence",
    hint="Three matrices were asked for: where it works, and the two ways in which it does not.",
    replace=("return fine, one_way, other_way", "return one_way, other_way"),
)
def only_the_failures(): ...


@mistake(
    "simple_self_attention",
    keeps=0.65,
    hint="Scores of 0 are hidden, wherever they stand. Two tokens at right angles have the score "
    "0 and see each other.",
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
    hint="A row is compared with the largest of all rows. It may be a billionth of it and leak "
    "all the same.",
    replace=(
        "torch.maximum(after[i].abs().max(), before[i].abs().max())",
        "before.abs().max()",
    ),
)
def compares_with_the_whole_output(): ...


@mistake(
    "first_leak",
    hint="A row that falls has moved as well: look at the size of the difference.",
    replace=("(after[i] - before[i]).abs().max()", "(after[i] - before[i]).max()"),
)
def sees_rows_that_grow_only(): ...


@mistake(
    "simple_self_attention",
    keeps=0.65,
    hint="Your axes are counted from the front, so that only [B, N, d] works. Tokens and features are "
    "the last two, whatever stands before them.",
    replace=("wide.transpose(-1, -2)", "wide.transpose(1, 2)"),
)
def takes_three_axes_only(): ...


@mistake(
    "self_attention",
    keeps=0.65,
    hint="You multiply the scores by √d_k. The scale makes them smaller: divide.",
    replace=(
        "return scaled_dot_product_attention(q, k, v)",
        "return scaled_dot_product_attention(q * w_q.shape[1], k, v)",
    ),
)
def multiplies_by_the_root(): ...


@mistake(
    "self_attention",
    keeps=0.65,
    hint="You refuse a w_v of another width. Queries and keys meet in a dot product, values do not: d_v "
    "may differ.",
    replace=(
        "if w_q.shape[1] != w_k.shape[1]:",
        "if not w_q.shape[1] == w_k.shape[1] == w_v.shape[1]:",
    ),
)
def refuses_values_of_another_width(): ...


@mistake(
    "causal_mask",
    keeps=0.65,
    hint="True above the diagonal: that is a mask of what is forbidden, and of a square. Here True = "
    "may attend, and the last query belongs to the last key.",
    replace=("return j <= i + n_k - n_q", "return j > i"),
)
def forbids_above_the_first_diagonal(): ...


@mistake(
    "causal_mask",
    hint="A negative size ends in an error of torch's. The docstring asks for a ValueError that "
    "names it.",
    replace=(
        "if n_q < 0 or n_k < 0:",
        """
        torch.ones(n_q, n_k)
        if n_q < 0 or n_k < 0:""",
    ),
)
def leaves_negative_sizes_to_torch(): ...


@mistake(
    "causal_mask",
    hint="You refuse a size of 0. No keys, or no queries, is a mask without entries: only negative "
    "sizes are wrong.",
    replace=("if n_q < 0 or n_k < 0:", "if n_q <= 0 or n_k <= 0:"),
)
def refuses_sizes_of_zero(): ...


@mistake(
    "padding_mask",
    hint="Your mask has an axis for heads, too. [B, 1, N] is asked for: functions that have heads put "
    "that axis in themselves.",
    keeps=0.65,
    replace=("lengths[:, None, None]", "lengths[:, None, None, None]"),
)
def an_axis_for_the_heads_as_well(): ...


@mistake(
    "padding_mask",
    keeps=0.65,
    hint="You hide the padded queries, too, in a matrix [N, N] a sentence. Only keys are hidden: one "
    "row, for every query.",
    replace=(
        "return j < lengths[:, None, None]",
        "return (j < lengths[:, None, None]) & (j[:, None] < lengths[:, None, None])",
    ),
)
def hides_padded_queries_too(): ...


@mistake(
    "masked_softmax",
    hint="A forbidden score of +inf or NaN reaches your arithmetic: what is added to it, or multiplied "
    "with it, leaves NaN. Put something in its place first, with masked_fill or torch.where.",
    replace=[
        (
            "visible = widen(scores).masked_fill(~mask, -math.inf)",
            """
        bias = torch.zeros(mask.shape).masked_fill(~mask, -math.inf)
        visible = (widen(scores) + bias).masked_fill(empty, 0.0)""",
        ),
        ("(e / total)", "(e / total).masked_fill(~mask, 0.0)"),
    ],
)
def adds_minus_infinity(): ...


@mistake(
    "masked_softmax",
    keeps=0.65,
    hint="0 · −inf is NaN: a mask that is multiplied by −inf spoils the allowed keys. Choose with "
    "masked_fill or torch.where.",
    replace=(
        "visible = widen(scores).masked_fill(~mask, -math.inf)",
        "visible = widen(scores) + (~mask) * -math.inf",
    ),
)
def multiplies_the_mask_by_minus_infinity(): ...


@mistake(
    "masked_softmax",
    hint="Forbidden keys get −1e9 for the softmax, and 0 after it. Where all allowed scores are lower "
    "than that, it is the forbidden ones that take the shares. Use −inf.",
    replace=[
        (
            "visible = widen(scores).masked_fill(~mask, -math.inf)",
            "visible = widen(scores).masked_fill(~mask, -1e9)",
        ),
        ("(e / total)", "(e / total * mask)"),
    ],
)
def erases_what_a_billion_let_through(): ...


@mistake(
    "masked_softmax",
    hint="Forbidden keys get −10000 for the softmax, and 0 after it. Where all allowed scores are lower "
    "than that, it is the forbidden ones that take the shares. Use −inf.",
    replace=[
        (
            "visible = widen(scores).masked_fill(~mask, -math.inf)",
            "visible = widen(scores).masked_fill(~mask, -1e4)",
        ),
        ("(e / total)", "(e / total * mask)"),
    ],
)
def erases_what_ten_thousand_let_through(): ...


@mistake(
    "masked_softmax",
    hint="−1e9 is added to forbidden scores. Where the allowed ones are lower than that, the forbidden "
    "take the shares, and of an infinite score an infinite one remains. Put −inf in their place.",
    replace=[
        (
            "visible = widen(scores).masked_fill(~mask, -math.inf)",
            "visible = widen(scores) + torch.where(mask, 0.0, -1e9)",
        ),
        ("(e / total)", "torch.where(mask, e / total, 0.0)"),
    ],
)
def adds_minus_a_billion(): ...


@mistake(
    "masked_softmax",
    hint="The maximum is taken over all keys, and the mask is multiplied afterwards: a huge forbidden "
    "score leaves nothing but zeros of the allowed ones. Hide the scores before the maximum.",
    replace=[
        (
            "visible = widen(scores).masked_fill(~mask, -math.inf)",
            "visible = widen(scores)",
        ),
        ("e = torch.exp(visible - peak)", "e = torch.exp(visible - peak) * mask"),
        (
            "total = e.sum(dim=-1, keepdim=True).masked_fill(empty, 1.0)",
            "total = e.sum(dim=-1, keepdim=True).clamp(min=1e-9)",
        ),
    ],
)
def hides_after_the_maximum(): ...


@mistake(
    "masked_softmax",
    hint="The softmax sees all keys, and the weights of forbidden ones become 0 after it: a huge "
    "forbidden score leaves nothing but zeros of the allowed ones. (1e-9 in the denominator only "
    "hides that.) Hide the scores before the softmax.",
    replace=(
        "return (e / total).to(scores.dtype)",
        """
        weights = softmax(widen(scores)).masked_fill(~mask, 0.0)
        total = weights.sum(dim=-1, keepdim=True) + 1e-9
        return (weights / total).to(scores.dtype)
    """,
    ),
)
def divides_what_is_left_by_a_guarded_sum(): ...


@mistake(
    "masked_attention",
    keeps=0.65,
    hint="A query without a key gets 0/0, which is NaN: zeros are asked for. (Are weights set to 0 after "
    "the softmax, and divided by what is left? Then it has seen the hidden keys besides.)",
    replace=(
        "weights = masked_softmax(scores, mask)",
        """
        mask.expand(scores.shape)
        weights = softmax(scores) * mask
        weights = weights / weights.sum(dim=-1, keepdim=True)""",
    ),
)
def renormalizes_the_weights_afterwards(): ...


@mistake(
    "masked_attention",
    hint="Queries and keys are compared, keys and values are not: as many values as keys, and a "
    "ValueError where they differ.",
    replace=("if k.shape[-2] != v.shape[-2]:", "if False:"),
)
def leaves_keys_and_values_unchecked(): ...


@mistake(
    "masked_attention",
    hint="A mask gets past your checks that does not fit the scores: torch raises an error of its "
    "own, or stretches one of them. The docstring asks for a ValueError that names both.",
    replace=(
        "weights = masked_softmax(scores, mask)",
        """
        mask, scores = torch.broadcast_tensors(mask, scores)
        weights = masked_softmax(scores, mask)
        """,
    ),
)
def lets_torch_compare_the_mask(): ...


@mistake(
    "sinusoidal_positions",
    hint="With an odd D your table is one column short: the last sine has no cosine beside it, and "
    "stays.",
    replace=("return positions", "return positions[:, : d // 2 * 2]"),
)
def odd_width_loses_a_column(): ...


@mistake(
    "is_permutation_equivariant",
    keeps=0.65,
    hint="One equal number is enough for your answer (`any`). All of them have to agree.",
    replace=(
        "(shuffled_first - shuffled_last).abs().max() <= 1e-6 * size",
        "((shuffled_first - shuffled_last).abs() <= 1e-6 * size).any()",
    ),
)
def one_equal_number_is_enough(): ...

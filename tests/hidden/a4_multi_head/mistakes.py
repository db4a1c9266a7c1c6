"""Wrong answers that people give about heads, reshapes and costs, each with one wrong idea."""

from autograder.suite import (
    has_dtype,
    ignores,
    mistake,
    mixes_the_batch,
    part,
    parts_exchanged,
    right_once_exchanged,
    right_once_inverted,
    right_once_scaled,
    right_once_transposed,
    same_along,
    scores_off_by,
    shape_with_axes_exchanged,
    through_unit,
)

# ── split_heads
# ──────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "split_heads",
    hint="A reshape re-reads the numbers in memory order: it moves no axis past another. Split "
    "arange(24) as [1, 4, "
    "6] into two heads and look at which tokens are in head 0.",
    replace=(
        "x.reshape(batch, n, num_heads, d_head).transpose(1, 2)",
        "x.reshape(batch, num_heads, n, d_head)",
    ),
)
def reshapes_straight_to_the_final_shape(): ...


@mistake(
    "split_heads",
    keeps=0.65,
    hint="Your heads take every H-th column. Head h owns neighbouring columns, h*d to (h+1)*d - "
    "1: which of the two "
    "new axes should run slowly?",
    replace=(
        "x.reshape(batch, n, num_heads, d_head).transpose(1, 2)",
        "x.reshape(batch, n, d_head, num_heads).permute(0, 3, 1, 2)",
    ),
)
def deals_columns_out_in_turn(): ...


@mistake(
    "split_heads",
    keeps=0.65,
    hint="The tokens still stand before the heads: attention would compare the heads of one "
    "token with each other.",
    shows=shape_with_axes_exchanged(1, 2),
    replace=(".transpose(1, 2)", ""),
)
def leaves_the_tokens_before_the_heads(): ...


@mistake(
    "split_heads",
    keeps=0.65,
    hint="The batch comes first in this course, then the heads: [B, H, N, d].",
    shows=shape_with_axes_exchanged(0, 1),
    replace=(".transpose(1, 2)", ".permute(2, 0, 1, 3)"),
)
def puts_the_heads_before_the_batch(): ...


@mistake(
    "split_heads",
    keeps=0.65,
    hint="Batch and heads are two axes: keep them apart. And a reshape to [B*H, N, d] moves "
    "nothing either, so tokens "
    "end up in the wrong head.",
    replace=(
        "x.reshape(batch, n, num_heads, d_head).transpose(1, 2)",
        "x.reshape(batch * num_heads, n, d_head)",
    ),
)
def merges_batch_and_heads(): ...


@mistake(
    "split_heads",
    hint="You read the memory with strides of a contiguous tensor. A transposed x lies in memory "
    "in another order.",
    replace=(
        "x.reshape(batch, n, num_heads, d_head).transpose(1, 2)",
        "torch.as_strided(x, (batch, num_heads, n, d_head), (n * width, d_head, width, 1))",
    ),
)
def reads_memory_with_fixed_strides(): ...


@mistake(
    "split_heads",
    hint="Columns that do not divide into the heads pass silently. The docstring asks for a ValueError.",
    replace=[
        ("if num_heads < 1 or width % num_heads:", "if False:"),
        ("width // num_heads", "width // max(num_heads, 1)"),
        ("x.reshape(", "x[..., : d_head * num_heads].reshape("),
    ],
)
def drops_the_remaining_columns(): ...


@mistake(
    "split_heads",
    hint="Half precision comes back as float32. Splitting computes nothing: no dtype should change.",
    shows=has_dtype("float32"),
    replace=("x.reshape(", "(x if x.dtype == torch.float64 else x.float()).reshape("),
)
def splits_into_float32(): ...


@mistake(
    "split_heads",
    hint="The heads are in reverse: head 0 owns the first columns.",
    keeps=0.65,
    replace=(".transpose(1, 2)", ".transpose(1, 2).flip(1)"),
)
def counts_the_heads_from_the_end(): ...


@mistake(
    "split_heads",
    hint="No gradient comes back to x: the numbers leave the graph on the way (.data, .detach, "
    "numpy).",
    replace=(
        "return x.reshape(batch, n, num_heads, d_head).transpose(1, 2)",
        """
        heads = torch.zeros(batch, num_heads, n, d_head, dtype=x.dtype).requires_grad_(x.requires_grad)
        return heads + x.detach().reshape(batch, n, num_heads, d_head).transpose(1, 2)""",
    ),
)
def splits_outside_the_graph(): ...


@mistake(
    "split_heads",
    hint="Another num_heads changes nothing: you make two heads, as in the example.",
    replace=("num_heads, d_head)", "2, -1)"),
)
def always_makes_two_heads(): ...


@mistake(
    "split_heads",
    keeps=0.65,
    hint="Only the first sentence is split. Try a batch of two different ones.",
    shows=same_along(0),
    replace=(
        "x.reshape(batch, n, num_heads, d_head).transpose(1, 2)",
        "x[:1].reshape(1, n, num_heads, d_head).transpose(1, 2).repeat(batch, 1, 1, 1)",
    ),
)
def splits_the_first_sentence_only(): ...


# ── merge_heads
# ──────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "merge_heads",
    hint="You read the axes as [B, N, H, d], and they are [B, H, N, d]: a row of yours holds all "
    "tokens of a head.",
    replace=(
        "x.transpose(1, 2).reshape(batch, n, num_heads * d_head)",
        "x.reshape(batch, num_heads, n * d_head)",
    ),
)
def reads_tokens_and_heads_the_other_way_round(): ...


@mistake(
    "merge_heads",
    hint="Your rows hold several tokens of one head. Before the last two axes can be joined, the "
    "heads must stand "
    "next to d. (A round trip with a split of the same kind hides this.)",
    replace=(".transpose(1, 2)", ""),
)
def reshapes_without_moving_the_heads_back(): ...


@mistake(
    "merge_heads",
    keeps=0.65,
    hint="Your columns alternate between the heads. A head's numbers should stay together.",
    replace=("x.transpose(1, 2)", "x.permute(0, 2, 3, 1)"),
)
def interleaves_the_heads(): ...


@mistake(
    "merge_heads",
    hint="After two axes were swapped the memory is no longer in their order, and `view` refuses "
    "to join them. `reshape` copies where it must.",
    replace=(".reshape(", ".view("),
)
def views_after_the_transpose(): ...


@mistake(
    "merge_heads",
    hint="Heads are laid side by side, not added: the row has H*d columns.",
    replace=("x.transpose(1, 2).reshape(batch, n, num_heads * d_head)", "x.sum(dim=1)"),
)
def adds_the_heads(): ...


@mistake(
    "merge_heads",
    hint="The heads came out one below the other. They belong side by side, in the columns.",
    replace=(
        "x.transpose(1, 2).reshape(batch, n, num_heads * d_head)",
        "x.reshape(batch, num_heads * n, d_head)",
    ),
)
def stacks_the_heads_as_tokens(): ...


@mistake(
    "merge_heads",
    hint="The heads are joined in reverse order: head 0 fills the first columns.",
    keeps=0.65,
    replace=("x.transpose", "x.flip(1).transpose"),
)
def joins_the_heads_in_reverse(): ...


@mistake(
    "merge_heads",
    keeps=0.65,
    hint="You swapped the tokens with d. Which two axes did split_heads swap?",
    replace=("x.transpose(1, 2)", "x.permute(0, 3, 1, 2)"),
)
def swaps_tokens_and_columns(): ...


@mistake(
    "merge_heads",
    hint="Half precision comes back as float32. Merging computes nothing: no dtype should change.",
    shows=has_dtype("float32"),
    replace=("x.transpose", "(x if x.dtype == torch.float64 else x.float()).transpose"),
)
def merges_into_float32(): ...


@mistake(
    "merge_heads",
    hint="Only two heads are joined, as in the example. Use all that are there.",
    replace=(
        "x.transpose(1, 2).reshape(batch, n, num_heads * d_head)",
        "torch.cat([x[:, 0], x[:, min(1, num_heads - 1)]], dim=-1)",
    ),
)
def joins_two_heads_only(): ...


# ── fused_qkv
# ────────────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "fused_qkv",
    keeps=0.65,
    hint="You cut into heads first and into q, k, v inside each head. Here 3 is the outer cut: "
    "the matrix is [W_Q, "
    "W_K, W_V], and each of them holds all heads.",
    replace=[
        (
            "(x @ w_qkv).chunk(3, dim=-1)",
            "(x @ w_qkv).reshape(*x.shape[:2], num_heads, 3, -1).permute(3, 0, 2, 1, 4)",
        ),
        (
            "return split_heads(q, num_heads), split_heads(k, num_heads), split_heads(v, num_heads)",
            "return q, k, v",
        ),
    ],
)
def cuts_into_heads_first(): ...


@mistake(
    "fused_qkv",
    hint="Keys and queries are exchanged. Compare with three separate projections.",
    keeps=0.65,
    replace=("q, k, v = ", "k, q, v = "),
)
def reads_keys_first(): ...


@mistake(
    "fused_qkv",
    hint="Keys and values are exchanged. Compare with three separate projections.",
    keeps=0.65,
    replace=("q, k, v = ", "q, v, k = "),
)
def reads_values_before_keys(): ...


@mistake(
    "fused_qkv",
    keeps=0.65,
    hint="The three parts lie behind each other in blocks; you take every third column.",
    replace=(
        "(x @ w_qkv).chunk(3, dim=-1)",
        "((x @ w_qkv)[..., part::3] for part in range(3))",
    ),
)
def takes_every_third_column(): ...


@mistake(
    "fused_qkv",
    keeps=0.65,
    hint="A reshape straight to [3, B, H, N, d] re-reads memory: tokens and parts get mixed. Cut "
    "the columns only, "
    "then move axes.",
    replace=[
        (
            "(x @ w_qkv).chunk(3, dim=-1)",
            "(x @ w_qkv).reshape(3, x.shape[0], num_heads, x.shape[1], -1)",
        ),
        (
            "return split_heads(q, num_heads), split_heads(k, num_heads), split_heads(v, num_heads)",
            "return q, k, v",
        ),
    ],
)
def reshapes_the_fused_product_at_once(): ...


@mistake(
    "fused_qkv",
    keeps=0.65,
    hint="You took D // H for the head size. D says nothing about d: count the columns of w_qkv.",
    replace=(
        "q, k, v = (x @ w_qkv).chunk(3, dim=-1)",
        """
        width = x.shape[-1] // num_heads * num_heads
        if columns < 3 * width:
            raise RuntimeError(f"{columns} columns are fewer than {3 * width}")
        q, k, v = (x @ w_qkv)[..., : 3 * width].chunk(3, dim=-1)""",
    ),
)
def assumes_the_width_is_heads_times_head_size(): ...


@mistake(
    "fused_qkv",
    keeps=0.65,
    hint="You split at D columns, the width of x. D says nothing about d: a third of the columns of "
    "w_qkv belongs to each of the three.",
    replace=("(x @ w_qkv).chunk(3, dim=-1)", "(x @ w_qkv).split(x.shape[-1], dim=-1)"),
)
def splits_at_the_width_of_x(): ...


@mistake(
    "fused_qkv",
    keeps=0.65,
    hint="nn.Linear stores [out, in] and multiplies by the transpose. Here weights are [in, out].",
    replace=("x @ w_qkv", "x @ w_qkv.T"),
)
def multiplies_by_the_transpose(): ...


@mistake(
    "fused_qkv",
    hint="`view` joins axes only where the memory lies in their order: x may be transposed.",
    replace=(
        "q, k, v = ",
        """
        x = x.view(x.shape[0] * x.shape[1], x.shape[2]).view(x.shape)
        q, k, v = """,
    ),
)
def views_the_tokens_as_one_list(): ...


@mistake(
    "fused_qkv",
    hint="The three parts are not cut into heads: [B, H, N, d] is asked for.",
    replace=(
        "return split_heads(q, num_heads), split_heads(k, num_heads), split_heads(v, num_heads)",
        "return q, k, v",
    ),
)
def forgets_to_split(): ...


@mistake(
    "fused_qkv",
    hint="Columns that do not divide pass your check. The docstring asks for a ValueError.",
    replace=[
        ("if num_heads < 1 or columns % (3 * num_heads):", "if False:"),
        ("x @ w_qkv", "x @ w_qkv[:, : columns // (3 * num_heads) * 3 * num_heads]"),
    ],
)
def ignores_columns_left_over(): ...


@mistake(
    "fused_qkv",
    hint="Half precision comes back as float32: the dtype that comes in goes out.",
    shows=part(0, has_dtype("float32")),
    replace=(
        "q, k, v = ",
        """
        if x.dtype == torch.float16:
            x, w_qkv = x.float(), w_qkv.float()
        q, k, v = """,
    ),
)
def projects_into_float32(): ...


# ── multi_head_attention
# ─────────────────────────────────────────────────────────────────────────────────────


def _check_layer(w_q, w_k, w_v, w_o, num_heads):
    if w_q.shape[1] != w_k.shape[1] or w_q.shape[1] % num_heads:
        raise ValueError(
            f"w_q has {w_q.shape[1]} columns, w_k {w_k.shape[1]}, for {num_heads} heads"
        )
    if w_v.shape[1] != w_o.shape[0] or w_v.shape[1] % num_heads:
        raise ValueError(
            f"w_v has {w_v.shape[1]} columns, w_o {w_o.shape[0]} rows, for {num_heads} heads"
        )


def _head_axis(mask):
    return mask.unsqueeze(1) if mask is not None and mask.dim() == 3 else mask


@mistake(
    "multi_head_attention",
    hint="You divide by the root of a width of all heads together. How many terms does the dot "
    "product of one head have?",
    replace=(
        "masked_attention(q, k, v, mask)",
        "masked_attention(q * math.sqrt(q.shape[-1] / x.shape[-1]), k, v, mask)",
    ),
)
def scales_by_the_model_width(): ...


@mistake(
    "multi_head_attention",
    hint="You divide by the root of a width of all heads together. How many terms does the dot "
    "product of one head have?",
    keeps=0.65,
    replace=(
        "masked_attention(q, k, v, mask)",
        "masked_attention(q * math.sqrt(q.shape[-1] / w_q.shape[1]), k, v, mask)",
    ),
)
def scales_by_all_columns(): ...


@mistake(
    "multi_head_attention",
    hint="The scores are not scaled: what keeps their spread near 1 when d grows?",
    shows=right_once_scaled("w_q", "w_q[-1]**-0.5 * num_heads**0.5"),
    keeps=0.65,
    replace=(
        "masked_attention(q, k, v, mask)",
        "masked_attention(q * math.sqrt(q.shape[-1]), k, v, mask)",
    ),
)
def does_not_scale(): ...


@mistake(
    "multi_head_attention",
    hint="The root is of the value size. Which vectors meet in the dot product: queries and "
    "keys, or values?",
    replace=(
        "masked_attention(q, k, v, mask)",
        "masked_attention(q * math.sqrt(q.shape[-1] / v.shape[-1]), k, v, mask)",
    ),
)
def scales_by_the_value_size(): ...


@mistake(
    "multi_head_attention",
    keeps=0.65,
    hint="The heads are side by side, and nothing mixes them. What is the last of the "
    "four products?",
    shows=ignores("w_o"),
    replace=("merge_heads(y) @ w_o", "merge_heads(y)"),
)
def forgets_the_output_matrix(): ...


@mistake(
    "multi_head_attention",
    keeps=0.65,
    hint="w_o is [H*d_v, D] and multiplies from the right, as it stands.",
    shows=right_once_transposed("w_o"),
    replace=("merge_heads(y) @ w_o", "merge_heads(y) @ w_o.T"),
)
def transposes_the_output_matrix(): ...


@mistake(
    "multi_head_attention",
    keeps=0.65,
    hint="nn.Linear keeps its weight as [out, in]; this course keeps [in, out]. A square matrix "
    "hides the difference.",
    replace=[
        ("x @ w_q", "x @ w_q.T"),
        ("source @ w_k", "source @ w_k.T"),
        ("source @ w_v", "source @ w_v.T"),
    ],
)
def projects_with_the_transposes(): ...


@mistake(
    "multi_head_attention",
    hint="The head size is taken to be D // H. It comes from the weights: their columns, "
    "divided by H.",
    replace=[
        (
            "source = x if x_kv is None else x_kv",
            """
        split_heads(w_q[None], num_heads)
        split_heads(w_v[None], num_heads)
        source = x if x_kv is None else x_kv""",
        ),
        (
            "split_heads(x @ w_q, num_heads)",
            "(x @ w_q).reshape(*x.shape[:2], num_heads, x.shape[-1] // num_heads).transpose(1, 2)",
        ),
        (
            "split_heads(source @ w_k, num_heads)",
            "(source @ w_k).reshape(*source.shape[:2], num_heads, x.shape[-1] // "
            "num_heads).transpose(1, 2)",
        ),
        (
            "split_heads(source @ w_v, num_heads)",
            "(source @ w_v).reshape(*source.shape[:2], num_heads, x.shape[-1] // "
            "num_heads).transpose(1, 2)",
        ),
    ],
)
def takes_the_head_size_from_the_width(): ...


@mistake(
    "multi_head_attention",
    keeps=0.65,
    hint="Axis 2 is right for the slide's [H, N, N]. With a batch, axis 2 is the queries: each "
    "query should "
    "distribute over the keys, so which sum must be 1?",
    replace=(
        "y = masked_attention(q, k, v, mask)",
        """
        scores = q / math.sqrt(q.shape[-1]) @ k.transpose(-2, -1)
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool) if mask is None else mask
        weights = masked_softmax(scores.mT, allowed.mT).mT
        y = weights @ v""",
    ),
)
def normalizes_over_the_queries(): ...


@mistake(
    "multi_head_attention",
    keeps=0.65,
    hint="Axis 1 of [B, H, N, N_k] is the heads: yours share the weight. Each query distributes "
    "it over the keys.",
    replace=(
        "y = masked_attention(q, k, v, mask)",
        """
        scores = q / math.sqrt(q.shape[-1]) @ k.transpose(-2, -1)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        y = torch.softmax(scores, dim=1).nan_to_num(0.0) @ v""",
    ),
)
def normalizes_over_the_heads(): ...


@mistake(
    "multi_head_attention",
    hint="You cut the tokens into pieces before the projection, so each head reads a part of the "
    "token. Every head "
    "reads the whole token; its columns of the weights make it different.",
)
def cuts_the_token_before_projecting(
    x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None
):
    _check_layer(w_q, w_k, w_v, w_o, num_heads)
    source = x if x_kv is None else x_kv

    def project(tokens, w):
        pieces = split_heads(tokens, num_heads)  # [B, H, N, D / H]
        rows = w.shape[0] // num_heads
        # [H, D / H, d]
        w = (
            w.reshape(num_heads, rows, num_heads, -1)
            .diagonal(dim1=0, dim2=2)
            .permute(2, 0, 1)
        )
        return pieces @ w

    q, k, v = project(x, w_q), project(source, w_k), project(source, w_v)
    return merge_heads(masked_attention(q, k, v, _head_axis(mask))) @ w_o


@mistake(
    "multi_head_attention",
    keeps=0.65,
    hint="The heads are cut by a reshape to the final shape, which mixes the tokens. Use "
    "split_heads.",
    replace=[
        (
            "split_heads(x @ w_q, num_heads)",
            "(x @ w_q).reshape(x.shape[0], num_heads, x.shape[1], -1)",
        ),
        (
            "split_heads(source @ w_k, num_heads)",
            "(source @ w_k).reshape(source.shape[0], num_heads, source.shape[1], -1)",
        ),
        (
            "split_heads(source @ w_v, num_heads)",
            "(source @ w_v).reshape(source.shape[0], num_heads, source.shape[1], -1)",
        ),
    ],
)
def splits_by_reshaping_alone(): ...


@mistake(
    "multi_head_attention",
    keeps=0.65,
    hint="Reshaping to [B*H, N, d] is the split without its second step, with the batch merged "
    "in: tokens of one "
    "sentence become heads. Move the heads first.",
    replace=[
        (
            "split_heads(x @ w_q, num_heads)",
            "(x @ w_q).reshape(x.shape[0] * num_heads, x.shape[1], -1)",
        ),
        (
            "split_heads(source @ w_k, num_heads)",
            "(source @ w_k).reshape(source.shape[0] * num_heads, source.shape[1], -1)",
        ),
        (
            "split_heads(source @ w_v, num_heads)",
            "(source @ w_v).reshape(source.shape[0] * num_heads, source.shape[1], -1)",
        ),
        (
            "y = masked_attention(q, k, v, mask)",
            """
        if mask is not None:
            mask = mask.expand(x.shape[0], num_heads, q.shape[1], k.shape[1]).reshape(-1, q.shape[1], k.shape[1])
        y = masked_attention(q, k, v, mask)""",
        ),
        ("merge_heads(y)", "y.reshape(x.shape[0], x.shape[1], -1)"),
    ],
)
def merges_batch_and_heads_by_reshaping(): ...


@mistake(
    "multi_head_attention",
    keeps=0.65,
    hint="The heads' answers are merged without moving the heads back next to d: a row holds "
    "several tokens.",
    replace=("merge_heads(y)", "y.reshape(x.shape[0], x.shape[1], -1)"),
)
def merges_by_reshaping_alone(): ...


@mistake(
    "multi_head_attention",
    keeps=0.65,
    hint="After the transpose the memory is not in the order of the axes: `view` refuses. "
    "reshape copies where it "
    "must.",
    replace=("merge_heads(y)", "y.transpose(1, 2).view(x.shape[0], x.shape[1], -1)"),
)
def merges_with_view(): ...


@mistake(
    "multi_head_attention",
    hint="The axes of a [B, N, N] mask meet [B, H, N, N] from the right, so the sentences meet "
    "the heads. Where does "
    "the missing axis belong?",
    shows=mixes_the_batch("mask"),
    replace=("mask.unsqueeze(1)", "mask.unsqueeze(0)"),
)
def lets_sentence_masks_meet_heads(): ...


@mistake(
    "multi_head_attention",
    hint="The sentences' masks are repeated for the heads in the wrong order: a b a b, where "
    "sentence a needs a a. An "
    "axis of size 1 saves the repeating.",
    replace=(
        "mask.unsqueeze(1)",
        "mask.repeat(num_heads, 1, 1).reshape(x.shape[0], num_heads, *mask.shape[1:])",
    ),
)
def repeats_the_masks_in_the_wrong_order(): ...


@mistake(
    "multi_head_attention",
    hint="Changing the mask does not change your answer. Is it passed on?",
    replace=("masked_attention(q, k, v, mask)", "masked_attention(q, k, v)"),
)
def ignores_the_mask(): ...


@mistake(
    "multi_head_attention",
    hint="All sentences wear the mask of the first. Each row of the batch has its own.",
    replace=("mask.unsqueeze(1)", "mask[0]"),
)
def uses_the_first_mask_for_all(): ...


@mistake(
    "multi_head_attention",
    hint="An axis is inserted into every mask, whatever its number of axes. A mask of four axes "
    "has its head axis "
    "already.",
    replace=("if mask is not None and mask.dim() == 3:", "if mask is not None:"),
)
def inserts_a_head_axis_always(): ...


@mistake(
    "multi_head_attention",
    hint="All heads of a sentence wear the mask of head 0. A mask of four axes may have "
    "one for each.",
    replace=(
        "masked_attention(q, k, v, mask)",
        "masked_attention(q, k, v, mask if mask is None or mask.dim() == 2 else mask[:, :1])",
    ),
)
def all_heads_wear_the_first_mask(): ...


@mistake(
    "multi_head_attention",
    hint="In this course True means: may attend. Print the weights for a mask of all True.",
    shows=right_once_inverted("mask"),
    replace=(
        "masked_attention(q, k, v, mask)",
        "masked_attention(q, k, v, None if mask is None else ~mask)",
    ),
)
def reads_the_mask_upside_down(): ...


@mistake(
    "multi_head_attention",
    hint="Rows of a mask are queries and columns are keys; yours are exchanged.",
    shows=right_once_transposed("mask"),
    replace=(
        "masked_attention(q, k, v, mask)",
        "masked_attention(q, k, v, None if mask is None else mask.transpose(-2, -1))",
    ),
)
def transposes_the_mask(): ...


@mistake(
    "multi_head_attention",
    hint="Scores are multiplied by the mask. A score of zero is a score like others, "
    "since exp(0) = 1.",
    replace=(
        "y = masked_attention(q, k, v, mask)",
        """
        scores = q / math.sqrt(q.shape[-1]) @ k.transpose(-2, -1)
        y = torch.softmax(scores if mask is None else scores * mask, dim=-1) @ v""",
    ),
)
def multiplies_the_scores_by_the_mask(): ...


@mistake(
    "multi_head_attention",
    hint="The weights are masked after the softmax, so the rows no longer sum to 1: forbidden "
    "keys have taken their "
    "share.",
    replace=(
        "y = masked_attention(q, k, v, mask)",
        """
        scores = q / math.sqrt(q.shape[-1]) @ k.transpose(-2, -1)
        weights = torch.softmax(scores, dim=-1)
        y = (weights if mask is None else weights * mask) @ v""",
    ),
)
def masks_after_the_softmax(): ...


@mistake(
    "multi_head_attention",
    hint="A query with no key gets NaN: a row of minus infinities is 0/0. Such a row is zero "
    "here; masked_attention "
    "knows.",
    replace=(
        "y = masked_attention(q, k, v, mask)",
        """
        scores = q / math.sqrt(q.shape[-1]) @ k.transpose(-2, -1)
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool) if mask is None else mask
        y = torch.softmax(scores.masked_fill(~allowed, float("-inf")), dim=-1) @ v""",
    ),
)
def leaves_nan_where_no_key_is_allowed(): ...


@mistake(
    "multi_head_attention",
    hint="A query with no key gets the average of all values: with -1e9 everywhere the softmax "
    "is uniform. The row is "
    "zero.",
    replace=(
        "y = masked_attention(q, k, v, mask)",
        """
        scores = widen(q) / math.sqrt(q.shape[-1]) @ widen(k).transpose(-2, -1)
        scores = scores if mask is None else scores.masked_fill(~mask, -1e9)
        y = (torch.softmax(scores, dim=-1) @ widen(v)).to(x.dtype)""",
    ),
)
def averages_where_no_key_is_allowed(): ...


@mistake(
    "multi_head_attention",
    hint="Nothing of x_kv is read: where do keys and values come from when it is given?",
    replace=("source = x if x_kv is None else x_kv", "source = x"),
)
def ignores_the_second_sequence(): ...


@mistake(
    "multi_head_attention",
    hint="Keys come from x_kv and values from x: both come from the sequence that is read.",
    replace=("source @ w_v", "x @ w_v"),
)
def takes_only_keys_from_the_second_sequence(): ...


@mistake(
    "multi_head_attention",
    hint="The roles are exchanged: x asks (queries), x_kv is read (keys and values).",
    replace=[
        ("x @ w_q", "source @ w_q"),
        ("source @ w_k", "x @ w_k"),
        ("source @ w_v", "x @ w_v"),
    ],
)
def asks_with_the_second_sequence(): ...


@mistake(
    "multi_head_attention",
    keeps=0.65,
    hint="Keys and values are exchanged: which decides the weights, and which is mixed?",
    shows=right_once_exchanged("w_k", "w_v"),
    replace=("(q, k, v, mask)", "(q, v, k, mask)"),
)
def exchanges_keys_and_values(): ...


@mistake(
    "multi_head_attention",
    keeps=0.65,
    hint="Another w_v changes nothing in your answer: the slide's Y = A X mixes the inputs "
    "themselves. The weights mix the values, Y = A V.",
    shows=ignores("w_v"),
    replace=(
        "v = split_heads(source @ w_v, num_heads)",
        """
        split_heads(source @ w_v, num_heads)
        v = split_heads(source, num_heads)""",
    ),
)
def mixes_the_inputs_instead_of_the_values(): ...


@mistake(
    "multi_head_attention",
    hint="All columns attend as one head: num_heads changes nothing. Split after the projection.",
    replace=[
        (
            "source = x if x_kv is None else x_kv",
            """
        split_heads(w_q[None], num_heads)
        split_heads(w_v[None], num_heads)
        num_heads = 1
        source = x if x_kv is None else x_kv""",
        ),
        (
            "masked_attention(q, k, v, mask)",
            "masked_attention(q, k, v, mask if mask is None or mask.dim() == 2 else mask[:, :1])",
        ),
    ],
)
def attends_with_one_wide_head(): ...


@mistake(
    "multi_head_attention",
    hint="Right numbers, but the heads are computed one after the other in Python. They are a "
    "batch axis: the "
    "products take all of them at once.",
    replace=(
        "y = masked_attention(q, k, v, mask)",
        """
        heads = []
        for h in range(num_heads):
            own = mask if mask is None or mask.dim() == 2 else mask[:, min(h, mask.shape[1] - 1)]
            heads.append(masked_attention(q[:, h], k[:, h], v[:, h], own))
        y = torch.stack(heads, dim=1)""",
    ),
)
def loops_over_the_heads(): ...


@mistake(
    "multi_head_attention",
    hint="Right numbers, but sentence after sentence in Python. The batch is an axis of every "
    "product already.",
    replace=(
        "y = masked_attention(q, k, v, mask)",
        """
        rows = []
        for b in range(x.shape[0]):
            own = mask if mask is None or mask.dim() == 2 else mask[min(b, mask.shape[0] - 1)]
            rows.append(masked_attention(q[b], k[b], v[b], own))
        y = torch.stack(rows)""",
    ),
)
def loops_over_the_sentences(): ...


@mistake(
    "multi_head_attention",
    hint="Half precision comes back as float32: the dtype that comes in goes out.",
    shows=has_dtype("float32"),
    replace=(
        "return merge_heads(y) @ w_o",
        """
        answer = merge_heads(y) @ w_o
        return answer.float() if answer.dtype == torch.float16 else answer""",
    ),
)
def returns_float32(): ...


@mistake(
    "multi_head_attention",
    hint="Sizes that cannot match pass, or fail somewhere inside torch: check them first.",
    replace=[
        ("if w_q.shape[1] != w_k.shape[1]:", "if False:"),
        ("if w_v.shape[1] != w_o.shape[0]:", "if False:"),
        (
            "source = x if x_kv is None else x_kv",
            """
        source = x if x_kv is None else x_kv
        d, d_v = w_q.shape[1] // num_heads, w_v.shape[1] // num_heads
        w_q, w_k, w_v = w_q[:, : d * num_heads], w_k[:, : d * num_heads], w_v[:, : d_v * num_heads]""",
        ),
    ],
)
def checks_nothing(): ...


@mistake(
    "multi_head_attention",
    hint="`view` joins axes only where the memory lies in their order: x may be transposed.",
    replace=(
        "source = x if x_kv is None else x_kv",
        """
        x = x.view(x.shape[0] * x.shape[1], x.shape[2]).view(x.shape)
        source = x if x_kv is None else x_kv""",
    ),
)
def views_all_tokens_as_one_list(): ...


@mistake(
    "multi_head_attention",
    hint="The attention weights are cut off from the graph, so W_Q and W_K get no gradient: "
    "nothing would ever learn "
    "them.",
    replace=("(q, k, v, mask)", "(q.detach(), k.detach(), v, mask)"),
)
def detaches_the_weights(): ...


@mistake(
    "multi_head_attention",
    hint="The caller's mask is another one after your call: it was changed in place. Call the "
    "function twice and compare.",
    replace=(
        "return merge_heads(y) @ w_o",
        """
        if mask is not None:
            mask.logical_not_()
        return merge_heads(y) @ w_o""",
    ),
)
def inverts_the_callers_mask(): ...


# ── multi_head_sum
# ───────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "multi_head_sum",
    keeps=0.65,
    hint="Your answer is the mean over the heads. The notes' words, a weighted average, mislead: "
    "the weights are "
    "matrices, and the heads are added.",
    replace=(".sum(dim=1)", ".mean(dim=1)"),
)
def averages_the_heads(): ...


@mistake(
    "multi_head_sum",
    keeps=0.65,
    hint="Another w_v changes nothing in your answer. The notes' formula has the queries "
    "where the values belong: what is mixed by the weights?",
    shows=ignores("w_v"),
    replace=("in (w_q, w_k, w_v)", "in (w_q, w_k, w_q)"),
)
def mixes_the_queries(): ...


@mistake(
    "multi_head_sum",
    hint="Every head writes with the matrix of head 0. Each has its own.",
    replace=("y @ w_heads", "y @ w_heads[:1]"),
)
def writes_with_one_matrix(): ...


@mistake(
    "multi_head_sum",
    hint="The heads are added before their matrices are applied. Then head 0's answer goes "
    "through head 1's matrix "
    "too.",
    replace=("(y @ w_heads).sum(dim=1)", "y.sum(dim=1) @ w_heads.sum(dim=0)"),
)
def adds_before_projecting(): ...


@mistake(
    "multi_head_sum",
    hint="The matrices are stacked with d outside and H inside. Rows h*d … (h+1)*d - 1 of w_o "
    "belong to head h.",
    replace=(
        "(y @ w_heads).sum(dim=1)",
        "merge_heads(y) @ w_heads.transpose(0, 1).reshape(-1, w_heads.shape[2])",
    ),
)
def stacks_the_matrices_in_the_wrong_order(): ...


@mistake(
    "multi_head_sum",
    keeps=0.65,
    hint="The matrices are used in reverse: head 0 writes with w_heads[0].",
    replace=("y @ w_heads", "y @ w_heads.flip(0)"),
)
def pairs_heads_and_matrices_in_reverse(): ...


@mistake(
    "multi_head_sum",
    keeps=0.65,
    hint="The heads' outputs are not added yet: the answer is [B, N, D], without a head axis.",
    replace=("(y @ w_heads).sum(dim=1)", "y @ w_heads"),
)
def forgets_the_sum(): ...


@mistake(
    "multi_head_sum",
    hint="Changing the mask does not change your answer. Is it passed on?",
    shows=ignores("mask"),
    replace=("masked_attention(q, k, v, mask)", "masked_attention(q, k, v)"),
)
def sums_without_the_mask(): ...


@mistake(
    "multi_head_sum",
    hint="A [B, N, N] mask meets the heads instead of the sentences: where does the missing "
    "axis belong?",
    shows=mixes_the_batch("mask"),
    replace=("mask.unsqueeze(1)", "mask.unsqueeze(0)"),
)
def sums_with_masks_on_the_heads(): ...


@mistake(
    "multi_head_sum",
    hint="The scale is the root of D. A head's dot product has d terms.",
    replace=(
        "masked_attention(q, k, v, mask)",
        "masked_attention(q * math.sqrt(q.shape[-1] / x.shape[-1]), k, v, mask)",
    ),
)
def sums_scaled_by_the_model_width(): ...


@mistake(
    "multi_head_sum",
    hint="More or fewer matrices than heads pass unseen. The docstring asks for a ValueError.",
    replace=[
        ("if w_heads.shape[0] != num_heads:", "if False:"),
        ("y @ w_heads", "y @ w_heads[:num_heads]"),
    ],
)
def accepts_any_number_of_matrices(): ...


@mistake(
    "multi_head_sum",
    hint="Half precision comes back as float32: the dtype that comes in goes out.",
    shows=has_dtype("float32"),
    replace=(
        "return (y @ w_heads).sum(dim=1)",
        """
        if y.dtype == torch.float16:
            y, w_heads = y.float(), w_heads.float()
        return (y @ w_heads).sum(dim=1)""",
    ),
)
def sums_in_float32(): ...


# ── grouped_query_attention
# ──────────────────────────────────────────────────────────────────────────────────


@mistake(
    "grouped_query_attention",
    keeps=0.65,
    hint="Your heads read 0 1 2 0 1 2. Neighbouring query heads share: 0 0 1 1 2 2. torch "
    "repeats in both orders.",
    replace=[
        ("k.repeat_interleave(group, dim=1)", "k.repeat(1, group, 1, 1)"),
        ("v.repeat_interleave(group, dim=1)", "v.repeat(1, group, 1, 1)"),
    ],
)
def deals_the_key_heads_out_in_turn(): ...


@mistake(
    "grouped_query_attention",
    hint="All query heads read key head 0. There are H_kv of them.",
    replace=[
        ("k.repeat_interleave(group, dim=1)", "k[:, :1]"),
        ("v.repeat_interleave(group, dim=1)", "v[:, :1]"),
    ],
)
def reads_the_first_key_head_only(): ...


@mistake(
    "grouped_query_attention",
    hint="The key heads are averaged into one. Each group reads its own.",
    replace=[
        ("k.repeat_interleave(group, dim=1)", "k.mean(dim=1, keepdim=True)"),
        ("v.repeat_interleave(group, dim=1)", "v.mean(dim=1, keepdim=True)"),
    ],
)
def averages_the_key_heads(): ...


@mistake(
    "grouped_query_attention",
    hint="The queries of a group are averaged, so H_kv heads come out. All H stay.",
    replace=[
        (
            "k = k.repeat_interleave(group, dim=1)",
            "q = q.unflatten(1, (-1, group)).mean(dim=2)",
        ),
        ("v = v.repeat_interleave(group, dim=1)", "pass"),
    ],
)
def averages_the_queries_of_a_group(): ...


@mistake(
    "grouped_query_attention",
    hint="Keys are shared in one order and values in another. Both belong to one group.",
    replace=("k.repeat_interleave(group, dim=1)", "k.repeat(1, group, 1, 1)"),
)
def shares_keys_and_values_differently(): ...


@mistake(
    "grouped_query_attention",
    hint="A [B, N_q, N_k] mask meets the heads instead of the sentences: where does the missing "
    "axis belong?",
    shows=mixes_the_batch("mask"),
    replace=("mask.unsqueeze(1)", "mask.unsqueeze(0)"),
)
def lets_sentence_masks_meet_query_heads(): ...


@mistake(
    "grouped_query_attention",
    hint="Changing the mask does not change your answer. Is it passed on?",
    shows=ignores("mask"),
    replace=("masked_attention(q, k, v, mask)", "masked_attention(q, k, v)"),
)
def groups_without_the_mask(): ...


@mistake(
    "grouped_query_attention",
    hint="The scale is the root of the value size; the dot product has d terms.",
    replace=(
        "masked_attention(q, k, v, mask)",
        "masked_attention(q * math.sqrt(q.shape[-1] / v.shape[-1]), k, v, mask)",
    ),
)
def groups_scaled_by_the_value_size(): ...


@mistake(
    "grouped_query_attention",
    hint="The scores are not scaled by the root of the head size.",
    shows=through_unit("v", scores_off_by("q[-1]**0.5")),
    keeps=0.65,
    replace=(
        "return masked_attention(q, k, v, mask)",
        """
        scores = q @ k.transpose(-2, -1)
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool) if mask is None else mask
        return masked_softmax(scores, allowed) @ v""",
    ),
)
def groups_without_a_scale(): ...


@mistake(
    "grouped_query_attention",
    hint="Heads that cannot be shared evenly are given out somehow. The docstring asks for a "
    "ValueError with both "
    "numbers.",
    replace=[
        ("if num_heads % num_kv_heads:", "if False:"),
        ("if v.shape[1] != num_kv_heads:", "if False:"),
        (
            "k.repeat_interleave(group, dim=1)",
            "k[:, [h * k.shape[1] // num_heads for h in range(num_heads)]]",
        ),
        (
            "v.repeat_interleave(group, dim=1)",
            "v[:, [h * v.shape[1] // num_heads for h in range(num_heads)]]",
        ),
    ],
)
def shares_unevenly(): ...


@mistake(
    "grouped_query_attention",
    keeps=0.65,
    hint="Your groups are shifted by one. Heads count from 0: heads 0 … H/H_kv - 1 are one.",
    replace=[
        (
            "group = num_heads // num_kv_heads",
            """
        group = num_heads // num_kv_heads
        heads = [min((h + 1) // group, num_kv_heads - 1) for h in range(num_heads)]""",
        ),
        ("k.repeat_interleave(group, dim=1)", "k[:, heads]"),
        ("v.repeat_interleave(group, dim=1)", "v[:, heads]"),
    ],
)
def counts_the_heads_from_one(): ...


@mistake(
    "grouped_query_attention",
    hint="The query heads are cut with the group outside: neighbours end up apart.",
    replace=(
        "group = num_heads // num_kv_heads",
        """
        group = num_heads // num_kv_heads
        q = q.unflatten(1, (group, -1)).transpose(1, 2).flatten(1, 2)""",
    ),
)
def groups_distant_query_heads(): ...


@mistake(
    "grouped_query_attention",
    hint="Half precision comes back as float32: the dtype that comes in goes out.",
    shows=has_dtype("float32"),
    replace=(
        "return masked_attention(q, k, v, mask)",
        """
        answer = masked_attention(q, k, v, mask)
        return answer.float() if answer.dtype == torch.float16 else answer""",
    ),
)
def groups_in_float32(): ...


@mistake(
    "grouped_query_attention",
    hint="All heads of a sentence wear the mask of head 0; four axes are one a head.",
    replace=(
        "masked_attention(q, k, v, mask)",
        "masked_attention(q, k, v, mask if mask is None or mask.dim() == 2 else mask[:, :1])",
    ),
)
def wears_the_mask_of_head_zero(): ...


# ── attention_flops
# ──────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "attention_flops",
    hint="A multiply-add is one operation in your count. In this course it is two.",
    keeps=0.65,
    replace=(
        "return flops",
        """
        flops = {product: count // 2 for product, count in flops.items()}
        return flops""",
    ),
)
def counts_a_multiply_add_once(): ...


@mistake(
    "attention_flops",
    hint="One projection is counted. How many matrices does x meet on its way in?",
    replace=("(3 * width)", "width"),
)
def counts_one_projection(): ...


@mistake(
    "attention_flops",
    hint="The heads are missing from scores and values: each head has a product of its own.",
    replace=[
        ("b * num_heads * 2 * n * d_head * n", "b * 2 * n * d_head * n"),
        ("b * num_heads * 2 * n * n * d_head", "b * 2 * n * n * d_head"),
    ],
)
def forgets_the_heads(): ...


@mistake(
    "attention_flops",
    hint="Scores and values are counted with D columns. They have H*d, which need not be D.",
    replace=[
        ("b * num_heads * 2 * n * d_head * n", "b * 2 * n * d_model * n"),
        ("b * num_heads * 2 * n * n * d_head", "b * 2 * n * n * d_model"),
    ],
)
def takes_the_model_width_for_the_heads(): ...


@mistake(
    "attention_flops",
    hint="Your count counts every head with all D columns: H times too much. A head has d.",
    replace=[
        ("2 * n * d_head * n", "2 * n * d_model * n"),
        ("2 * n * n * d_head", "2 * n * n * d_model"),
    ],
)
def gives_every_head_the_whole_width(): ...


@mistake(
    "attention_flops",
    hint="The projections are taken to be D × D. Their columns are H*d.",
    replace=[
        ("(3 * width)", "(3 * d_model)"),
        ("(b * n) * width", "(b * n) * d_model"),
    ],
)
def takes_square_projections(): ...


@mistake(
    "attention_flops",
    keeps=0.65,
    hint="The batch does not count in your answer.",
    replace=(
        "width = num_heads * d_head",
        """
        b = 1
        width = num_heads * d_head""",
    ),
)
def forgets_the_batch(): ...


@mistake(
    "attention_flops",
    hint="The total is not the sum of all four products: is the output projection in it?",
    replace=("sum(flops.values())", 'sum(flops.values()) - flops["output"]'),
)
def leaves_the_output_out_of_the_total(): ...


@mistake(
    "attention_flops",
    keeps=0.65,
    hint="Scores are counted for half of the pairs, as if masked pairs were free. They are not.",
    replace=[
        ("b * num_heads * 2 * n * d_head * n", "b * num_heads * n * d_head * (n + 1)"),
        ("b * num_heads * 2 * n * n * d_head", "b * num_heads * n * (n + 1) * d_head"),
    ],
)
def counts_half_of_the_pairs(): ...


@mistake(
    "attention_flops",
    hint="The softmax is in your scores. Only the four products are counted here.",
    replace=(
        "b * num_heads * 2 * n * d_head * n",
        "b * num_heads * (2 * n * d_head * n + 3 * n * n)",
    ),
)
def counts_the_softmax(): ...


@mistake(
    "attention_flops",
    hint="Floats lose the last digits of large counts. Multiply whole numbers, and do not divide.",
    replace=[
        ("2 * (b * n) * d_model", "2.0 * (b * n) * d_model"),
        ("num_heads * 2 * n * d_head * n", "num_heads * 2.0 * n * d_head * n"),
        ("num_heads * 2 * n * n", "num_heads * 2.0 * n * n"),
        ("2 * (b * n) * width", "2.0 * (b * n) * width"),
    ],
)
def counts_in_floats(): ...


@mistake(
    "attention_flops",
    hint="A size of 0 or below gets a count. The docstring asks for a ValueError.",
    replace=(
        'raise ValueError(f"sizes must be at least 1, got {b}, {n}, {d_model}, '
        '{num_heads}, {d_head}")',
        "b, n, d_model, num_heads, d_head = (max(1, size) for size in (b, n, d_model, "
        "num_heads, d_head))",
    ),
)
def counts_impossible_sizes(): ...


@mistake(
    "attention_flops",
    hint="The scores grow with N instead of N²: every query meets every key.",
    replace=("2 * n * d_head * n", "2 * n * d_head"),
)
def counts_linear_scores(): ...


# ── attention_matrix_bytes
# ───────────────────────────────────────────────────────────────────────────────────


@mistake(
    "attention_matrix_bytes",
    hint="Those are elements. How many bytes does each take?",
    shows=ignores("bytes_per_element"),
    keeps=0.65,
    replace=(" * bytes_per_element", ""),
)
def counts_elements(): ...


@mistake(
    "attention_matrix_bytes",
    keeps=0.65,
    hint="One matrix is counted. Each head has its own.",
    shows=ignores("num_heads"),
    replace=("num_heads * n * n", "n * n"),
)
def counts_one_head(): ...


@mistake(
    "attention_matrix_bytes",
    hint="Scores and weights are both counted: one matrix a head is asked for.",
    replace=("num_heads * n * n", "2 * num_heads * n * n"),
)
def counts_scores_and_weights(): ...


@mistake(
    "attention_matrix_bytes",
    hint="Your memory grows with N, not with N²: every query has a weight for every key.",
    replace=("num_heads * n * n", "num_heads * n"),
)
def counts_a_row_a_head(): ...


@mistake(
    "attention_matrix_bytes",
    hint="Bytes are asked for, and a whole number; yours is divided into a larger unit.",
    replace=("* bytes_per_element", "* bytes_per_element / 1024**2"),
)
def answers_in_mebibytes(): ...


@mistake(
    "attention_matrix_bytes",
    keeps=0.65,
    hint="Half precision is assumed. The bytes of an element are an argument.",
    shows=ignores("bytes_per_element"),
    replace=("* bytes_per_element", "* 2"),
)
def assumes_two_bytes(): ...


@mistake(
    "attention_matrix_bytes",
    keeps=0.65,
    hint="Only the causal half is counted; the whole square is stored.",
    replace=("num_heads * n * n", "num_heads * n * (n + 1) // 2"),
)
def counts_the_lower_triangle(): ...


@mistake(
    "attention_matrix_bytes",
    hint="A size of 0 gets an answer. The docstring asks for a ValueError.",
    replace=("if min(n, num_heads, bytes_per_element) < 1:", "if False:"),
)
def accepts_nothing_at_all(): ...


# ── crossover_length
# ─────────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "crossover_length",
    keeps=0.65,
    hint="N = D: there are four projections, and scores and values are two products.",
    replace=("return 2 * d_model", "return d_model"),
)
def answers_the_width(): ...


@mistake(
    "crossover_length",
    hint="N = 6D is where the quadratic part meets the whole block, MLP and all.",
    replace=("return 2 * d_model", "return 6 * d_model"),
)
def compares_with_the_whole_block(): ...


@mistake(
    "crossover_length",
    hint="Only the scores are on your left side: the weighted values are quadratic too.",
    replace=("return 2 * d_model", "return 4 * d_model"),
)
def compares_the_scores_alone(): ...


@mistake(
    "crossover_length",
    keeps=0.65,
    hint="The output projection is missing on your side of the projections: four, not three.",
    replace=("return 2 * d_model", "return 3 * d_model // 2"),
)
def forgets_the_output_projection(): ...


@mistake(
    "crossover_length",
    hint="The answer for one width is returned for all: it depends on d_model.",
    replace=("return 2 * d_model", "return 3200"),
)
def knows_one_model_only(): ...


@mistake(
    "crossover_length",
    hint="A length is a whole number of tokens; yours is a float.",
    replace=("return 2 * d_model", "return 8 * d_model**2 / (4 * d_model)"),
)
def answers_a_float(): ...


@mistake(
    "crossover_length",
    keeps=0.65,
    hint="N = D²: divide 8 N D² = 4 N² D by everything that stands on both sides.",
    replace=("return 2 * d_model", "return d_model**2"),
)
def answers_the_square(): ...


@mistake(
    "crossover_length",
    hint="A width of 0 gets an answer. The docstring asks for a ValueError.",
    replace=("if d_model < 1:", "if False:"),
)
def accepts_no_width(): ...


# ── explain_memory_figure
# ────────────────────────────────────────────────────────────────────────────────────


@mistake(
    "explain_memory_figure",
    hint="The pair for the lecture's figure comes out whatever is asked. Other figures have "
    "other explanations.",
    replace=[
        ("return bytes_per_element, binary_divisions", "pass"),
        ("return None", "return 2, 3"),
    ],
)
def answers_for_the_lecture_only(): ...


@mistake(
    "explain_memory_figure",
    hint="You try TB and TiB. The lecture's figure is neither: try the mixtures too.",
    replace=("range(5)", "(0, 4)"),
)
def tries_honest_units_only(): ...


@mistake(
    "explain_memory_figure",
    keeps=0.65,
    hint="Only elements of two bytes are tried. Figures are told for others too.",
    replace=("(1, 2, 4, 8)", "(2,)"),
)
def tries_half_precision_only(): ...


@mistake(
    "explain_memory_figure",
    keeps=0.65,
    hint="float32 and float64 only: the lecture's figure has smaller elements.",
    replace=("(1, 2, 4, 8)", "(4, 8)"),
)
def tries_wide_elements_only(): ...


@mistake(
    "explain_memory_figure",
    hint="You return divisions by 1000; the number of divisions by 1024 is asked for.",
    keeps=0.65,
    replace=(
        "return bytes_per_element, binary_divisions",
        "return bytes_per_element, 4 - binary_divisions",
    ),
)
def counts_the_other_divisions(): ...


@mistake(
    "explain_memory_figure",
    hint="The pair is in the other order: the element size comes first.",
    shows=parts_exchanged(),
    keeps=0.65,
    replace=(
        "return bytes_per_element, binary_divisions",
        "return binary_divisions, bytes_per_element",
    ),
)
def returns_the_pair_in_reverse(): ...


@mistake(
    "explain_memory_figure",
    keeps=0.65,
    hint="A figure in one decimal would pass. Three decimals are given: compare to three.",
    # with the return: a pair in reverse beside it behaves as a third mistake does
    replace=(
        """
                if abs(attention_matrix_bytes(n, num_heads, bytes_per_element) / unit - claimed) <= 0.0005:
                    return bytes_per_element, binary_divisions
        """,
        """
                if abs(attention_matrix_bytes(n, num_heads, bytes_per_element) / unit - claimed) <= 0.05:
                    return bytes_per_element, binary_divisions
        """,
    ),
)
def compares_too_loosely(): ...


@mistake(
    "explain_memory_figure",
    keeps=0.65,
    hint="Floats are hardly ever exactly equal: the figure was rounded to three decimals.",
    # the whole loop: together with fewer sizes or units it would find nothing, as a third mistake does
    replace=(
        """
        for bytes_per_element in (1, 2, 4, 8):
            for binary_divisions in range(5):
                unit = 1024**binary_divisions * 1000 ** (4 - binary_divisions)
                if abs(attention_matrix_bytes(n, num_heads, bytes_per_element) / unit - claimed) <= 0.0005:
        """,
        """
        for bytes_per_element in (1, 2, 4, 8):
            for binary_divisions in range(5):
                unit = 1024**binary_divisions * 1000 ** (4 - binary_divisions)
                if abs(attention_matrix_bytes(n, num_heads, bytes_per_element) / unit - claimed) == 0:
        """,
    ),
)
def compares_exactly(): ...


@mistake(
    "explain_memory_figure",
    hint="Where nothing gives the figure you return a pair that only comes near it: None is asked for.",
)
def returns_the_nearest(n, num_heads, claimed):
    def distance(pair):
        unit = 1024 ** pair[1] * 1000 ** (4 - pair[1])
        return abs(attention_matrix_bytes(n, num_heads, pair[0]) / unit - claimed)

    return min(((e, b) for e in (1, 2, 4, 8) for b in range(5)), key=distance)


@mistake(
    "explain_memory_figure",
    hint="No figure is ever explained: is the comparison ever true for 1.28?",
    replace=("return bytes_per_element, binary_divisions", "return None"),
)
def explains_nothing(): ...


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
    hint="Three query heads cannot share six key heads: which of the two numbers must be a "
    "multiple of the other?",
    replace=[
        (
            "if num_heads % num_kv_heads:",
            "if max(num_heads, num_kv_heads) % min(num_heads, num_kv_heads):",
        ),
        (
            "group = num_heads // num_kv_heads",
            "group = max(num_heads // num_kv_heads, 1)",
        ),
        (
            "k.repeat_interleave(group, dim=1)",
            "k.repeat_interleave(group, dim=1)[:, :num_heads]",
        ),
        (
            "v.repeat_interleave(group, dim=1)",
            "v.repeat_interleave(group, dim=1)[:, :num_heads]",
        ),
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


@mistake(
    "split_heads",
    hint="Zero heads and fewer are not looked at: a remainder by 0 is an error of Python's own, and "
    "-3 divides 21. The docstring asks for a ValueError with both numbers.",
    replace=("num_heads < 1 or width % num_heads", "width % num_heads"),
)
def looks_at_the_remainder_alone(): ...


@mistake(
    "split_heads",
    hint="Whoever reads your ValueError wants to know what does not fit. Its message should have both numbers, "
    "the columns and num_heads.",
    replace=(
        'f"{width} columns do not divide into {num_heads} heads"',
        '"the columns do not divide into heads"',
    ),
)
def splits_without_naming_the_sizes(): ...


@mistake(
    "merge_heads",
    keeps=0.65,
    hint="`transpose_`, with the underscore, exchanges the axes of the caller's own tensor. Without "
    "it x stays as it was.",
    replace=("x.transpose(1, 2)", "x.transpose_(1, 2)"),
)
def transposes_the_callers_tensor(): ...


@mistake(
    "fused_qkv",
    hint="You ask whether 3 and num_heads divide the columns, each alone. 12 columns divide by 3 and "
    "by 6, and three parts of 4 columns are no six heads: which one number must divide them?",
    replace=(
        "columns % (3 * num_heads)",
        "columns % 3 or columns % num_heads",
    ),
)
def looks_at_two_remainders(): ...


@mistake(
    "fused_qkv",
    hint="Zero heads and fewer are not looked at: a remainder by 0 is an error of Python's own. The "
    "docstring asks for a ValueError with both numbers.",
    replace=("num_heads < 1 or columns % (3 * num_heads)", "columns % (3 * num_heads)"),
)
def projects_for_no_heads(): ...


@mistake(
    "multi_head_attention",
    hint="You tell from its first size what a mask of two axes means. It is [N, N_k], for all; with "
    "as many sentences as tokens you read it as one row a sentence. Count its axes.",
    replace=("mask.dim() == 3", "mask.dim() < 4 and len(mask) == len(x)"),
)
def tells_masks_apart_by_size(): ...


@mistake(
    "multi_head_sum",
    hint="You tell from its first size what a mask of two axes means. It is [N, N], for all; with "
    "as many sentences as tokens you read it as one row a sentence. Count its axes.",
    replace=("mask.dim() == 3", "mask.dim() < 4 and len(mask) == len(x)"),
)
def sums_with_masks_told_apart_by_size(): ...


@mistake(
    "multi_head_sum",
    hint="The head size of queries and keys is taken to be D // H. It comes from the weights: their "
    "columns, divided by H.",
    replace=(
        "q, k, v = (split_heads(x @ w, num_heads) for w in (w_q, w_k, w_v))",
        """
        columns = x.shape[-1] // num_heads * num_heads
        narrow = w_q[:, :columns], w_k[:, :columns], w_v
        q, k, v = (split_heads(x @ w, num_heads) for w in narrow)
        """,
    ),
)
def sums_with_the_head_size_of_the_width(): ...


@mistake(
    "grouped_query_attention",
    hint="You tell from its first size what a mask of two axes means. It is [N_q, N_k], for all; with "
    "as many sentences as queries you read it as one row a sentence. Count its axes.",
    replace=("mask.dim() == 3", "mask.dim() < 4 and len(mask) == len(q)"),
)
def groups_with_masks_told_apart_by_size(): ...


@mistake(
    "grouped_query_attention",
    hint="With the heads cut into [H_kv, H / H_kv], the second axis of a mask [B, H, N_q, N_k] has to "
    "be cut in the same way. An axis of 1 behind it makes the mask of head h meet group h.",
)
def inserts_the_group_behind_the_heads_of_a_mask(q, k, v, mask=None):
    num_heads, num_kv_heads = q.shape[1], k.shape[1]
    if v.shape[1] != num_kv_heads or num_heads % num_kv_heads:
        raise ValueError(
            f"{num_heads} query heads, {num_kv_heads} key heads, {v.shape[1]} value heads"
        )
    if mask is not None and mask.dim() == 3:
        mask = mask[:, None, None]
    elif mask is not None and mask.dim() == 4:
        mask = mask.unsqueeze(2)
    groups = q.unflatten(1, (num_kv_heads, -1))  # [B, H_kv, H / H_kv, N_q, d]
    answer = masked_attention(groups, k.unsqueeze(2), v.unsqueeze(2), mask)
    return answer.reshape(len(q), num_heads, q.shape[2], -1)


@mistake(
    "grouped_query_attention",
    hint="Values are repeated until they fit the query heads, however many there are: k and v with "
    "different numbers of heads pass. The docstring asks for a ValueError.",
    replace=[
        ("if v.shape[1] != num_kv_heads:", "if False:"),
        (
            "v.repeat_interleave(group, dim=1)",
            "v.repeat_interleave(num_heads // v.shape[1], dim=1)",
        ),
    ],
)
def repeats_the_values_by_their_own_number(): ...


@mistake(
    "grouped_query_attention",
    hint="Seven query heads cannot share three key heads. Look whether they divide before you group "
    "them: what torch raises later, if it raises at all, is no ValueError.",
    replace=("if num_heads % num_kv_heads:", "if False:"),
)
def rounds_the_group_down(): ...


@mistake(
    "attention_flops",
    hint="Your counts are whole only at the end: on the way they are floats, which have no odd numbers "
    "above 2⁵³. Multiply whole numbers.",
    replace=[
        ("2 * (b * n) * d_model", "2.0 * (b * n) * d_model"),
        ("num_heads * 2 * n * d_head * n", "num_heads * 2.0 * n * d_head * n"),
        ("num_heads * 2 * n * n", "num_heads * 2.0 * n * n"),
        ("2 * (b * n) * width", "2.0 * (b * n) * width"),
        (
            'return flops | {"total": sum(flops.values())}',
            """
        flops["total"] = sum(flops.values())
        return {product: int(count) for product, count in flops.items()}
        """,
        ),
    ],
)
def cuts_floats_to_whole_numbers(): ...


@mistake(
    "attention_flops",
    hint="The output projection is taken to be D × D. It has H*d rows, which need not be D.",
    replace=("(b * n) * width", "(b * n) * d_model"),
)
def takes_a_square_output_projection(): ...


@mistake(
    "attention_flops",
    hint="The ValueError does not say which size it got: the docstring asks for it in the message.",
    replace=(
        'f"sizes must be at least 1, got {b}, {n}, {d_model}, {num_heads}, {d_head}"',
        '"sizes must be positive"',
    ),
)
def names_no_size(): ...


@mistake(
    "attention_matrix_bytes",
    hint="You look at a product of the sizes: two negative ones make it positive, and so does the square "
    "of a negative length. Look at each size.",
    replace=(
        "if min(n, num_heads, bytes_per_element) < 1:",
        "if num_heads * n * n * bytes_per_element < 1:",
    ),
)
def looks_at_the_product_of_the_sizes(): ...


@mistake(
    "attention_flops",
    hint="You look at a product of the sizes, which two negative ones make positive. Look at each size.",
    replace=(
        "if min(b, n, d_model, num_heads, d_head) < 1:",
        "if b * n * d_model * num_heads * d_head < 1:",
    ),
)
def looks_at_one_product(): ...


@mistake(
    "crossover_length",
    hint="Only 0 is refused: a negative width gets an answer.",
    replace=("if d_model < 1:", "if d_model == 0:"),
)
def accepts_a_negative_width(): ...


@mistake(
    "explain_memory_figure",
    keeps=0.65,
    hint="`//` cuts the rest off at each division, and after the last one decimals are missing or cut "
    "instead of rounded. Divide with `/`.",
    replace=(
        """
        unit = 1024**binary_divisions * 1000 ** (4 - binary_divisions)
        if abs(attention_matrix_bytes(n, num_heads, bytes_per_element) / unit - claimed) <= 0.0005:
        """,
        """
        divisors = [1024] * binary_divisions + [1000] * (4 - binary_divisions)
        figure = attention_matrix_bytes(n, num_heads, bytes_per_element)
        for divisor in divisors[:-1]:
            figure //= divisor
        if abs(figure / divisors[-1] - claimed) < 0.0005:
        """,
    ),
)
def cuts_the_rest_off(): ...


@mistake(
    "fused_qkv",
    keeps=0.65,
    hint="The three parts are right, and each is cut into heads by a reshape alone, so that a head gets "
    "whole tokens. Cut the columns, then move the axis: split_heads does both.",
    replace=(
        "return split_heads(q, num_heads), split_heads(k, num_heads), split_heads(v, num_heads)",
        "return tuple(t.reshape(x.shape[0], num_heads, x.shape[1], -1) for t in (q, k, v))",
    ),
)
def cuts_heads_by_reshaping_alone(): ...


@mistake(
    "fused_qkv",
    keeps=0.65,
    hint="Your queries are divided by √d. fused_qkv only projects and cuts: the scaling belongs to the "
    "scores, and attention would divide once more.",
    replace=(
        "return split_heads(q, num_heads),",
        "return split_heads(q, num_heads) * (columns // (3 * num_heads)) ** -0.5,",
    ),
)
def scales_the_projected_queries(): ...


@mistake(
    "fused_qkv",
    hint="What is refused is w_qkv: your message should say how many columns it has, those of all three parts "
    "together.",
    replace=("columns % (3 * num_heads)", "columns % 3"),
)
def refuses_a_third_of_the_columns(): ...


@mistake(
    "multi_head_attention",
    hint="A mask of four axes gets another one, as those of three do. It has its axis for heads "
    "already: use it as it is.",
    replace=("mask.dim() == 3", "mask.dim() > 2"),
)
def lifts_masks_of_four_axes_too(): ...


@mistake(
    "multi_head_attention",
    hint="A mask of two axes is [N, N_k], the same for every sentence. Yours is read as [B, N_k].",
    replace=(
        "if mask is not None and mask.dim() == 3:",
        """
if mask is not None and mask.dim() == 2:
    mask = mask[:, None, None, :]
elif mask is not None and mask.dim() == 3:""",
    ),
)
def reads_two_axes_as_padding(): ...


@mistake(
    "multi_head_sum",
    hint="A mask of four axes gets another one, as those of three do. It has its axis for heads "
    "already: use it as it is.",
    replace=("mask.dim() == 3", "mask.dim() > 2"),
)
def sums_with_masks_of_five_axes(): ...


@mistake(
    "grouped_query_attention",
    hint="A mask of four axes gets another one, as those of three do. It has its axis for heads "
    "already: use it as it is.",
    replace=("mask.dim() == 3", "mask.dim() > 2"),
)
def groups_with_masks_of_five_axes(): ...


@mistake(
    "multi_head_sum",
    keeps=0.65,
    hint="The matrices of the heads lie side by side in your w_o. They belong on top of each other: "
    "rows h*d … (h+1)*d - 1 are head h's.",
    replace=(
        "return (y @ w_heads).sum(dim=1)",
        "return multi_head_attention(x, w_q, w_k, w_v, torch.cat(list(w_heads), dim=1), num_heads, mask)",
    ),
)
def lays_the_matrices_side_by_side(): ...


@mistake(
    "grouped_query_attention",
    keeps=0.65,
    hint="You divide the number of a query head by H_kv. Neighbours share a key head, H / H_kv of them: "
    "divide by the size of a group.",
    replace=[
        (
            "k = k.repeat_interleave(group, dim=1)",
            """
        shared = torch.arange(num_heads) // num_kv_heads % num_kv_heads
        k = k[:, shared]""",
        ),
        ("v = v.repeat_interleave(group, dim=1)", "v = v[:, shared]"),
    ],
)
def divides_by_the_number_of_key_heads(): ...


@mistake(
    "attention_flops",
    keeps=0.65,
    hint="The batch is missing from scores and values: each sentence has products of its own.",
    replace=[
        ("b * num_heads * 2 * n * d_head * n", "num_heads * 2 * n * d_head * n"),
        ("b * num_heads * 2 * n * n * d_head", "num_heads * 2 * n * n * d_head"),
    ],
)
def forgets_the_batch_in_the_square(): ...


@mistake(
    "attention_matrix_bytes",
    keeps=0.65,
    hint="You divide into megabytes, gigabytes or terabytes, and a float comes out. Bytes are asked for, "
    "an int.",
    replace=(
        "return num_heads * n * n * bytes_per_element",
        "return num_heads * n * n * bytes_per_element / 1e12",
    ),
)
def answers_in_terabytes(): ...


@mistake(
    "attention_matrix_bytes",
    hint="Your answer is a float, and bytes are an int. A division by / makes a float even where nothing "
    "is left over, and beyond 2⁵³ floats have gaps.",
    replace=("* bytes_per_element", "* bytes_per_element / 1"),
)
def counts_bytes_in_floats(): ...

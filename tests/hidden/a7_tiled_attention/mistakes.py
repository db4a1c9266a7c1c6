"""Wrong answers that people give, each with one wrong idea, and the hint for whoever had it."""

import math

import torch

from autograder.suite import (
    finite_for_infinite,
    has_dtype,
    ignores,
    mistake,
    part,
    scores_off_by,
    through_unit,
    triangle_at_the_top_left,
)

# --- online_softmax_stats
# ---------------------------------------------------------------------------------------------


@mistake(
    "online_softmax_stats",
    hint="What was summed before a new maximum turned up was made with the old one. By which "
    "factor is it too large?",
    replace=("l * torch.exp(m - safe) +", "l +"),
)
def old_sum_is_not_corrected(): ...


@mistake(
    "online_softmax_stats",
    hint="The maximum never falls: it is that of everything that has passed, not that of "
    "the last block.",
    replace=("torch.maximum(m, tile.amax(dim=-1))", "tile.amax(dim=-1)"),
)
def maximum_of_the_last_block(): ...


@mistake(
    "online_softmax_stats",
    hint="Starting from 0 says that the row has an element 0. What if all are below -1000?",
    replace=(
        'torch.full(x.shape[:-1], float("-inf"), dtype=dtype)',
        "torch.zeros(x.shape[:-1], dtype=dtype)",
    ),
)
def maximum_starts_at_zero(): ...


@mistake(
    "online_softmax_stats",
    hint="-10000 is a number like any other, and a row may lie below it. The maximum of nothing "
    "is minus infinity.",
    replace=(
        'torch.full(x.shape[:-1], float("-inf"), dtype=dtype)',
        "torch.full(x.shape[:-1], -1e4, dtype=dtype)",
    ),
)
def maximum_starts_at_minus_ten_thousand(): ...


@mistake(
    "online_softmax_stats",
    hint="A block may be -inf throughout, and -inf minus -inf is nan. Use a finite stand-in, "
    "inside the exponent only.",
    replace=('m_new.masked_fill(m_new == float("-inf"), 0.0)', "m_new"),
)
def nan_after_a_masked_block(): ...


@mistake(
    "online_softmax_stats",
    hint="A row that is all -inf has the maximum -inf. Your finite stand-in has got into the m "
    "that you return.",
    replace=("return m, l", 'return m.masked_fill(m == float("-inf"), 0.0), l'),
)
def stand_in_maximum_is_kept(): ...


@mistake(
    "online_softmax_stats",
    hint="The finite stand-in is for the exponent only: kept as the maximum, it is larger than "
    "all that is below 0.",
    replace=("m = m_new", "m = safe"),
)
def stand_in_enters_the_running_maximum(): ...


@mistake(
    "online_softmax_stats",
    hint="13 elements in blocks of 5 are three blocks, the last one of 3 elements.",
    replace=(
        "range(0, x.shape[-1], block)",
        "range(0, max(x.shape[-1] - block + 1, 1), block)",
    ),
)
def last_block_is_dropped(): ...


@mistake(
    "online_softmax_stats",
    hint="The largest exponent is safe only after the maximum was subtracted: exp(1000) = inf.",
    replace=[
        (
            "l = l * torch.exp(m - safe) + torch.exp(tile - safe.unsqueeze(-1)).sum(dim=-1)",
            "l = l + torch.exp(tile).sum(dim=-1)",
        ),
        ("return m, l", "return m, torch.where(l == 0, 0.0, l * torch.exp(-m))"),
    ],
)
def nothing_is_subtracted(): ...


@mistake(
    "online_softmax_stats",
    hint="Right numbers, but the whole row was turned into exponentials at once. Take one block "
    "after the other.",
    replace=[
        ("for start in range(0, x.shape[-1], block):", "for _ in range(1):"),
        ("x[..., start : start + block]", "x"),
    ],
)
def takes_the_whole_row_at_once(): ...


@mistake(
    "online_softmax_stats",
    hint="Statistics of half precision are float32: in float16 a sum such as 2049 is not exact.",
    replace=("return m, l", "return m.to(x.dtype), l.to(x.dtype)"),
)
def statistics_in_half_precision(): ...


@mistake(
    "online_softmax_stats",
    hint="bfloat16 is half precision as well: widen it to float32.",
    replace=(
        "in (torch.float32, torch.float64)",
        "in (torch.float32, torch.float64, torch.bfloat16)",
    ),
)
def statistics_in_bfloat16(): ...


@mistake(
    "online_softmax_stats",
    hint="float16 counts no further than 2048: turn each block into float32 before its "
    "exponentials are summed.",
    replace=[
        (
            "dtype = x.dtype if x.dtype in (torch.float32, torch.float64) else torch.float32",
            "dtype = x.dtype",
        ),
        (
            "return m, l",
            "return (m.float(), l.float()) if dtype == torch.float16 else (m, l)",
        ),
    ],
)
def sums_are_kept_in_half_precision(): ...


@mistake(
    "online_softmax_stats",
    hint="Half precision is turned into float32 as a whole: a copy of all rows. Turn one block "
    "after the other into float32.",
    replace=(
        'm = torch.full(x.shape[:-1], float("-inf"), dtype=dtype)',
        """
x = x.to(dtype)
m = torch.full(x.shape[:-1], float("-inf"), dtype=dtype)
""",
    ),
)
def widens_the_whole_row(): ...


@mistake(
    "online_softmax_stats",
    hint="What would a block of -2 elements be? Every block below 1 is a ValueError.",
    replace=("if block < 1:", "if block == 0:"),
)
def only_a_block_of_zero_is_refused(): ...


@mistake(
    "online_softmax_stats",
    hint="Each row has a maximum of its own: which axis do you reduce?",
    replace=(
        "m_new = torch.maximum(m, tile.amax(dim=-1))",
        "m_new = torch.maximum(m, tile.max())",
    ),
)
def one_maximum_for_all_rows(): ...


@mistake(
    "online_softmax_stats",
    hint="m and l have the dtype of x unless that is half precision: float64 loses half of its digits in yours.",
    keeps=0.5,
    replace=(
        "dtype = x.dtype if x.dtype in (torch.float32, torch.float64) else torch.float32",
        "dtype = torch.float32",
    ),
)
def statistics_are_always_float32(): ...


@mistake(
    "online_softmax_stats",
    hint="A row that is all -inf has the maximum -inf. Your finite stand-in has got into the m "
    "that you return.",
    replace=(
        'torch.full(x.shape[:-1], float("-inf"), dtype=dtype)',
        "torch.full(x.shape[:-1], torch.finfo(dtype).min, dtype=dtype)",
    ),
)
def the_smallest_number_stays(): ...


@mistake(
    "online_softmax_stats",
    hint="A row that is all -inf has the maximum -inf. Your finite stand-in has got into the m "
    "that you return.",
    replace=(
        'torch.full(x.shape[:-1], float("-inf"), dtype=dtype)',
        "torch.full(x.shape[:-1], -1e30, dtype=dtype)",
    ),
)
def a_large_negative_number_stays(): ...


# --- merge_stats
# ------------------------------------------------------------------------------------------------------


@mistake(
    "merge_stats",
    hint="o was made with the old maximum, just as l: both sides shrink by exp(m_side - m).",
    replace=(
        "o = o_a * shrink_a.unsqueeze(-1) + o_b * shrink_b.unsqueeze(-1)",
        "o = o_a + o_b",
    ),
)
def o_is_not_rescaled(): ...


@mistake(
    "merge_stats",
    hint="l was made with the old maximum, just as o: both sides shrink by exp(m_side - m).",
    replace=("l = l_a * shrink_a + l_b * shrink_b", "l = l_a + l_b"),
)
def l_is_not_rescaled(): ...


@mistake(
    "merge_stats",
    hint="Either side may have the larger maximum. Which side does your function always "
    "leave alone?",
    replace=(
        "shrink_a, shrink_b = torch.exp(m_a - safe), torch.exp(m_b - safe)",
        "shrink_a, shrink_b = torch.exp(m_a - safe), torch.ones_like(m_b)",
    ),
)
def only_the_first_side_shrinks(): ...


@mistake(
    "merge_stats",
    hint="o is the sum, not the mean. Divided here, the next merge weighs it wrongly.",
    replace=(
        "return m, l, o",
        "return m, l, o / l.masked_fill(l == 0, 1.0).unsqueeze(-1)",
    ),
)
def divides_in_every_merge(): ...


@mistake(
    "merge_stats",
    hint="Two empty sets: -inf minus -inf is nan. Put a finite stand-in into the exponent.",
    replace=('m.masked_fill(m == float("-inf"), 0.0)', "m"),
)
def nan_for_two_empty_sets(): ...


@mistake(
    "merge_stats",
    hint="A row is empty for itself. You ask whether all rows are, and a row without keys on "
    "either side becomes nan among others: choose row by row.",
    replace=(
        'm.masked_fill(m == float("-inf"), 0.0)',
        'm.masked_fill((m == float("-inf")).all(), 0.0)',
    ),
)
def asks_whether_all_rows_are_empty(): ...


@mistake(
    "merge_stats",
    hint="The empty set has m = -inf. A finite maximum there makes real scores below it vanish.",
    shows=part(0, finite_for_infinite()),
    replace=("return m, l, o", "return safe, l, o"),
)
def empty_set_gets_maximum_zero(): ...


@mistake(
    "merge_stats",
    hint="exp(m) alone overflows. Only differences to the larger maximum belong into an exponent.",
    replace=(
        "torch.exp(m_a - safe), torch.exp(m_b - safe)",
        "torch.exp(m_a) * torch.exp(-safe), torch.exp(m_b) * torch.exp(-safe)",
    ),
)
def exponentials_of_the_maxima(): ...


@mistake(
    "merge_stats",
    hint="Your factor is one number a row, o has one row of values each: the factor needs an "
    "axis at its end.",
    replace=(
        "o_a * shrink_a.unsqueeze(-1) + o_b * shrink_b.unsqueeze(-1)",
        """
o_a * (shrink_a if m.dim() and m.shape[-1] == o_a.shape[-1] else shrink_a.unsqueeze(-1)) + o_b * (
    shrink_b if m.dim() and m.shape[-1] == o_a.shape[-1] else shrink_b.unsqueeze(-1)
)
""",
    ),
)
def factor_meets_the_wrong_axis(): ...


@mistake(
    "merge_stats",
    hint="You wrote into the tensors you were given: `x *= s` changes the caller's, `x = x * "
    "s` does not.",
    replace=[
        (
            "l = l_a * shrink_a + l_b * shrink_b",
            "l = l_a.mul_(shrink_a) + l_b * shrink_b",
        ),
        (
            "o = o_a * shrink_a.unsqueeze(-1) +",
            "o = o_a.mul_(shrink_a.unsqueeze(-1)) +",
        ),
    ],
)
def rescales_in_place(): ...


@mistake(
    "merge_stats",
    hint="The maximum over both sets is the larger one of the two.",
    replace=("m = torch.maximum(m_a, m_b)", "m = m_a + m_b"),
)
def maximum_of_both_is_their_sum(): ...


@mistake(
    "merge_stats",
    hint="Each row shrinks by its own maximum: one for all rows makes the others vanish.",
    replace=(
        "shrink_a, shrink_b = torch.exp(m_a - safe), torch.exp(m_b - safe)",
        "shrink_a, shrink_b = torch.exp(m_a - safe.max()), torch.exp(m_b - safe.max())",
    ),
)
def one_maximum_for_all_rows_of_both(): ...


# --- tiled_attention
# --------------------------------------------------------------------------------------------------


@mistake(
    "tiled_attention",
    hint="exp(1000) is infinite. Subtract the maximum of what has passed, as in section 1.",
    replace=("m = s.amax(dim=-1)", "m = torch.zeros(s.shape[:-1], dtype=dtype)"),
)
def no_running_maximum(): ...


@mistake(
    "tiled_attention",
    hint="The maximum of this tile alone can be lower than the one before. It must never fall.",
    replace=(
        "stats = merge_stats(stats, (m, p.sum(dim=-1), p @ v[..., j : j + block_k, :].to(dtype)))",
        """
shrink = torch.exp(stats[0] - m.masked_fill(m == float("-inf"), 0.0))
l, acc = stats[1] * shrink + p.sum(dim=-1), stats[2] * shrink.unsqueeze(-1) + p @ v[..., j : j + block_k, :].to(dtype)
stats = m, l, acc
""",
    ),
)
def maximum_of_the_tile_only(): ...


@mistake(
    "tiled_attention",
    hint="What the accumulator holds was made with an older maximum: rescale it by "
    "exp(m_old - m_new).",
    replace=(
        "stats = merge_stats(stats, (m, p.sum(dim=-1), p @ v[..., j : j + block_k, :].to(dtype)))",
        """
kept, tile = stats[2], (m, p.sum(dim=-1), p @ v[..., j : j + block_k, :].to(dtype))
m, l, acc = merge_stats((*stats[:2], torch.zeros_like(kept)), tile)
stats = m, l, kept + acc
""",
    ),
)
def accumulator_is_not_rescaled(): ...


@mistake(
    "tiled_attention",
    hint="The sum l was made with an older maximum: rescale it as you rescale the accumulator.",
    replace=(
        "stats = merge_stats(stats, (m, p.sum(dim=-1), p @ v[..., j : j + block_k, :].to(dtype)))",
        """
kept, tile = stats[1], (m, p.sum(dim=-1), p @ v[..., j : j + block_k, :].to(dtype))
m, l, acc = merge_stats((stats[0], torch.zeros_like(kept), stats[2]), tile)
stats = m, kept + l, acc
""",
    ),
)
def sum_is_not_rescaled(): ...


@mistake(
    "tiled_attention",
    hint="Each tile has its own maximum, so their sums do not simply add: merge them as "
    "in section 2.",
    replace=(
        "stats = merge_stats(stats, (m, p.sum(dim=-1), p @ v[..., j : j + block_k, :].to(dtype)))",
        """
l, acc = stats[1] + p.sum(dim=-1), stats[2] + p @ v[..., j : j + block_k, :].to(dtype)
stats = torch.maximum(stats[0], m), l, acc
""",
    ),
)
def tiles_are_added_as_they_are(): ...


@mistake(
    "tiled_attention",
    hint="A softmax inside each tile gives every tile the same say. Divide once, after "
    "the last tile.",
    replace=(
        "stats = merge_stats(stats, (m, p.sum(dim=-1), p @ v[..., j : j + block_k, :].to(dtype)))",
        """
p = torch.softmax(s, dim=-1).nan_to_num(0.0)
l, acc = stats[1] + p.sum(dim=-1), stats[2] + p @ v[..., j : j + block_k, :].to(dtype)
stats = torch.maximum(stats[0], m), l, acc
""",
    ),
)
def normalizes_every_tile(): ...


@mistake(
    "tiled_attention",
    hint="Each query has a maximum of its own. With that of a whole tile, a query of small "
    "scores sums only zeros.",
    replace=(
        "m = s.amax(dim=-1)",
        "m = s.amax(dim=(-2, -1)).unsqueeze(-1).expand(shape)",
    ),
)
def one_maximum_for_a_whole_tile(): ...


@mistake(
    "tiled_attention",
    hint="17 keys in tiles of 6 are three tiles, the last one of 5. Your last keys have no weight.",
    replace=("range(0, n_k, block_k)", "range(0, max(n_k - block_k + 1, 1), block_k)"),
)
def last_key_tile_is_dropped(): ...


@mistake(
    "tiled_attention",
    hint="13 queries in tiles of 4 are four tiles. What do the last rows of your output hold?",
    replace=[
        ("range(0, n_q, block_q)", "range(0, max(n_q - block_q + 1, 1), block_q)"),
        (
            "torch.empty(*q.shape[:-1], v.shape[-1], dtype=q.dtype)",
            "torch.zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype)",
        ),
        (
            "torch.empty(q.shape[:-1], dtype=dtype)",
            "torch.zeros(q.shape[:-1], dtype=dtype)",
        ),
    ],
)
def last_query_tile_is_dropped(): ...


@mistake(
    "tiled_attention",
    hint="A padded key has score 0, and exp(0 - m) is a weight. Give what is not there "
    "the score -inf.",
    replace=[
        (
            "s = q_tile @ k[..., j : j + block_k, :].to(dtype).transpose(-2, -1)",
            """
            missing = (0, 0, 0, max(0, j + block_k - n_k))
            k_tile = torch.nn.functional.pad(k[..., j : j + block_k, :].to(dtype), missing)
            v_tile = torch.nn.functional.pad(v[..., j : j + block_k, :].to(dtype), missing)
            s = q_tile @ k_tile.transpose(-2, -1)
            """,
        ),
        ("torch.arange(j, min(j + block_k, n_k))", "torch.arange(j, j + block_k)"),
        ("p @ v[..., j : j + block_k, :].to(dtype)", "p @ v_tile"),
    ],
)
def padding_counts_as_keys(): ...


@mistake(
    "tiled_attention",
    hint="Every query tile begins with the first key tile. Which does your second one begin with?",
    replace=(
        "range(0, n_k, block_k)",
        "range(block_k if 0 < i and block_k < n_k else 0, n_k, block_k)",
    ),
)
def first_key_tile_is_skipped_later(): ...


@mistake(
    "tiled_attention",
    hint="All scores may be below -1000: against a maximum that starts at 0 they all vanish.",
    replace=(
        'torch.full(shape, float("-inf"), dtype=dtype)',
        "torch.zeros(shape, dtype=dtype)",
    ),
)
def maximum_starts_from_zero(): ...


@mistake(
    "tiled_attention",
    hint="Your answer is the same with causal=True and without.",
    shows=ignores("causal"),
    replace=("if causal:", "if False:"),
)
def causal_is_ignored(): ...


@mistake(
    "tiled_attention",
    hint="Row r of query tile i is query i * block_q + r of the whole, and columns likewise: "
    "compare those.",
    replace=[
        (
            "torch.arange(i, min(i + block_q, n_q))",
            "torch.arange(min(block_q, n_q - i))",
        ),
        (
            "torch.arange(j, min(j + block_k, n_k))",
            "torch.arange(min(block_k, n_k - j))",
        ),
    ],
)
def causal_by_positions_in_the_tile(): ...


@mistake(
    "tiled_attention",
    hint="Your triangle starts at the top left, as torch's is_causal does. The last query sees the "
    "last key: add N_k - N_q to the row. With as many of both it does not show.",
    shows=through_unit("v", part(0, triangle_at_the_top_left())),
    replace=("rows + (n_k - n_q)", "rows"),
)
def causal_from_the_top_left(): ...


@mistake(
    "tiled_attention",
    hint="A token may look at itself: key j is seen by query i for j ≤ i.",
    replace=("columns > rows", "columns >= rows"),
    keeps=0.65,
)
def causal_leaves_itself_out(): ...


@mistake(
    "tiled_attention",
    hint="The loop may end where no query of the tile sees further. Which one sees furthest, the "
    "first or the last?",
    replace=(
        "range(0, n_k, block_k)",
        "range(0, i + 1 + n_k - n_q if causal else n_k, block_k)",
    ),
)
def causal_loop_ends_at_the_first_query(): ...


@mistake(
    "tiled_attention",
    hint="A score of 0 is a score like any other: exp(0 - m) is a weight. What turns into weight 0?",
    replace=('rows + (n_k - n_q), float("-inf"))', "rows + (n_k - n_q), 0.0)"),
)
def future_scores_are_zero(): ...


@mistake(
    "tiled_attention",
    hint="A finite number for a hidden score, such as -10000, is a score like any other, and may be "
    "the largest of a row. What has weight 0 beside every score?",
    replace=('rows + (n_k - n_q), float("-inf"))', "rows + (n_k - n_q), -1e4)"),
)
def future_scores_are_finite(): ...


@mistake(
    "tiled_attention",
    hint="A finite number for a hidden score, such as -1000000, is a score like any other: of a row "
    "that sees nothing it is the largest one, and has the weight 1. What has weight 0 beside every "
    "score, and is told from all?",
    replace=('rows + (n_k - n_q), float("-inf"))', "rows + (n_k - n_q), -1e6)"),
)
def future_scores_are_minus_a_million(): ...


@mistake(
    "tiled_attention",
    hint="The log-sum-exp is m + ln l: torch.log, not torch.log2.",
    replace=("m + torch.log(l)", "m + torch.log2(l)"),
)
def log_sum_exp_in_base_2(): ...


@mistake(
    "tiled_attention",
    hint="2^x is not e^x. With exp2 the scores (and only the scores) need the factor "
    "log2(e), everywhere.",
    replace=("p = torch.exp(s", "p = torch.exp2(s"),
)
def exp2_for_the_weights_only(): ...


@mistake(
    "tiled_attention",
    hint="log(l) is relative to the maximum that was subtracted: log-sum-exp = m + log(l).",
    replace=("m + torch.log(l)", "torch.log(l)"),
    keeps=0.65,
)
def log_sum_exp_without_the_maximum(): ...


@mistake(
    "tiled_attention",
    hint="The answer is right, but the whole score matrix was there. At most a tile of it may be.",
    replace=(
        "dtype = q.dtype if q.dtype in (torch.float32, torch.float64) else torch.float32",
        """
block_q, block_k = n_q, n_k
dtype = q.dtype if q.dtype in (torch.float32, torch.float64) else torch.float32
""",
    ),
)
def whole_matrix_at_once(): ...


@mistake(
    "tiled_attention",
    hint="Half precision is turned into float32 as a whole: copies of all queries, keys and "
    "values. Turn each tile into float32 where it is read.",
    replace=[
        (
            "o = torch.empty(*q.shape[:-1], v.shape[-1], dtype=q.dtype)",
            """
half = q.dtype
q, k, v = q.to(dtype), k.to(dtype), v.to(dtype)
o = torch.empty(*q.shape[:-1], v.shape[-1], dtype=half)
""",
        ),
        (".unsqueeze(-1)).to(q.dtype)", ".unsqueeze(-1)).to(half)"),
    ],
)
def widens_all_rows(): ...


@mistake(
    "tiled_attention",
    hint="Right, but each query tile meets all keys at once: what it holds grows with N_k. Walk "
    "over them in tiles.",
    replace=(
        "dtype = q.dtype if q.dtype in (torch.float32, torch.float64) else torch.float32",
        """
block_k = n_k
dtype = q.dtype if q.dtype in (torch.float32, torch.float64) else torch.float32
""",
    ),
)
def all_keys_in_one_tile(): ...


@mistake(
    "tiled_attention",
    hint="Right, but all tiles of scores were kept in a list: together they are the matrix.",
    replace=[
        (
            "lse = torch.empty(q.shape[:-1], dtype=dtype)",
            "lse, kept = torch.empty(q.shape[:-1], dtype=dtype), []",
        ),
        (
            "m = s.amax(dim=-1)",
            """
kept.append(s)
m = s.amax(dim=-1)
""",
        ),
    ],
)
def tiles_kept_in_a_list(): ...


@mistake(
    "tiled_attention",
    hint="The first tile of a row may be masked throughout: its maximum is -inf, and -inf minus "
    "-inf is nan.",
    replace=('m.masked_fill(m == float("-inf"), 0.0).unsqueeze(-1)', "m.unsqueeze(-1)"),
)
def nan_for_a_masked_tile(): ...


@mistake(
    "tiled_attention",
    hint="Keep -inf in m as long as nothing was seen; 0 stands in for it inside the exponent only.",
    replace=(
        "m + torch.log(l)",
        'torch.where(m == float("-inf"), 0.0, m + torch.log(l))',
    ),
)
def empty_rows_have_maximum_zero(): ...


@mistake(
    "tiled_attention",
    hint="A row that sees no key has l = 0, and 0 / 0 is nan. Its answer is 0.",
    replace=("l.masked_fill(l == 0, 1.0).unsqueeze(-1)", "l.unsqueeze(-1)"),
)
def divides_by_an_empty_sum(): ...


@mistake(
    "tiled_attention",
    hint="The scores are not scaled: they are divided by √d before anything else.",
    shows=through_unit("v", part(0, scores_off_by("q[-1]**0.5"))),
    replace=(" / math.sqrt(d)", ""),
    keeps=0.65,
)
def scale_is_missing(): ...


@mistake(
    "tiled_attention",
    hint="The scores are divided by √d; yours are divided by d.",
    shows=through_unit("v", part(0, scores_off_by("q[-1]**-0.5"))),
    replace=("math.sqrt(d)", "d"),
    keeps=0.65,
)
def scale_is_one_over_d(): ...


@mistake(
    "tiled_attention",
    hint="Which vectors meet in the dot product: queries and keys, or values? d comes from them.",
    replace=("math.sqrt(d)", "math.sqrt(v.shape[-1])"),
)
def scale_from_the_values(): ...


@mistake(
    "tiled_attention",
    hint="o is a sum of exp(s - m) v: at the end it is divided by l, once.",
    replace=(
        "(acc / l.masked_fill(l == 0, 1.0).unsqueeze(-1)).to(q.dtype)",
        "acc.to(q.dtype)",
    ),
)
def never_divides(): ...


@mistake(
    "tiled_attention",
    hint="float16 ends at 65504, and unscaled scores are larger. Compute in float32, "
    "return float16.",
    replace=[
        (
            "dtype = q.dtype if q.dtype in (torch.float32, torch.float64) else torch.float32",
            "dtype = q.dtype",
        ),
        (
            "torch.empty(q.shape[:-1], dtype=dtype)",
            "torch.empty(q.shape[:-1], dtype=torch.promote_types(dtype, torch.float32))",
        ),
    ],
)
def computes_in_half_precision(): ...


@mistake(
    "tiled_attention",
    hint="bfloat16 is half precision as well: widen it to float32.",
    replace=(
        "in (torch.float32, torch.float64)",
        "in (torch.float32, torch.float64, torch.bfloat16)",
    ),
)
def computes_in_bfloat16(): ...


@mistake(
    "tiled_attention",
    hint="The accumulator is a sum of many values, and float16 ends at 65504. Keep it in float32 "
    "until it is divided.",
    replace=(
        "stats = merge_stats(stats, (m, p.sum(dim=-1), p @ v[..., j : j + block_k, :].to(dtype)))",
        """
stats = merge_stats(stats, (m, p.sum(dim=-1), p @ v[..., j : j + block_k, :].to(dtype)))
stats = *stats[:2], stats[2].to(q.dtype).to(dtype)
""",
    ),
)
def accumulator_in_half_precision(): ...


@mistake(
    "tiled_attention",
    hint="What comes in as float16 goes out as float16; only the log-sum-exp is float32.",
    shows=part(0, has_dtype("float32")),
    replace=(
        "torch.empty(*q.shape[:-1], v.shape[-1], dtype=q.dtype)",
        "torch.empty(*q.shape[:-1], v.shape[-1], dtype=dtype)",
    ),
)
def output_in_float32(): ...


@mistake(
    "tiled_attention",
    hint="What would a tile of -3 rows be? Every tile below 1 is a ValueError.",
    replace=("min(block_q, block_k) < 1", "0 in (block_q, block_k)"),
)
def only_tiles_of_zero_are_refused(): ...


@mistake(
    "tiled_attention",
    hint="The products of queries and keys are computed in half precision and become float32 afterwards, rounded or infinite. Turn the tiles into float32 before.",
    replace=[
        (
            "q_tile = q[..., i : i + block_q, :].to(dtype) / math.sqrt(d)",
            "q_tile = q[..., i : i + block_q, :]",
        ),
        (
            "s = q_tile @ k[..., j : j + block_k, :].to(dtype).transpose(-2, -1)",
            "s = (q_tile @ k[..., j : j + block_k, :].transpose(-2, -1)).to(dtype) / math.sqrt(d)",
        ),
    ],
)
def scores_in_half_precision(): ...


@mistake(
    "tiled_attention",
    hint="A slice is a view, and .to() copies nothing where the dtype is right already: `tile *= …` divides the caller's q. `tile = tile * …` makes a new tensor.",
    replace=(
        "q_tile = q[..., i : i + block_q, :].to(dtype) / math.sqrt(d)  # [..., B_q, d]",
        "\n        q_tile = q[..., i : i + block_q, :].to(dtype)\n        q_tile /= math.sqrt(d)\n",
    ),
)
def scales_the_callers_queries(): ...


@mistake(
    "tiled_attention",
    hint="k and v of different length are not refused: v has a value for each key.",
    replace=[
        ("if k.shape[-1] != d or v.shape[-2] != n_k:", "if k.shape[-1] != d:"),
        (
            "p @ v[..., j : j + block_k, :].to(dtype)",
            "p @ v[..., j : min(j + block_k, n_k), :].to(dtype)",
        ),
    ],
)
def values_of_another_length_pass(): ...


@mistake(
    "tiled_attention",
    hint="The parts (m, l, o) of all key tiles are kept until the end: what is alive grows with "
    "the number of keys. Merge each as soon as it is made.",
    replace=[
        (
            "for j in range(0, n_k, block_k):",
            """
parts = []
for j in range(0, n_k, block_k):
""",
        ),
        (
            "stats = merge_stats(stats, (m, p.sum(dim=-1), p @ v[..., j : j + block_k, :].to(dtype)))",
            "parts.append((m, p.sum(dim=-1), p @ v[..., j : j + block_k, :].to(dtype)))",
        ),
        (
            "m, l, acc = stats",
            """
for part in parts:
    stats = merge_stats(stats, part)
m, l, acc = stats
""",
        ),
    ],
)
def parts_kept_in_a_list(): ...


@mistake(
    "tiled_attention",
    hint="The scores are divided by √d; yours are multiplied.",
    shows=through_unit("v", part(0, scores_off_by("q[-1]"))),
    replace=(" / math.sqrt(d)", " * math.sqrt(d)"),
    keeps=0.65,
)
def scale_is_multiplied(): ...


@mistake(
    "tiled_attention",
    hint="The log-sum-exp has the dtype of q, or float32 for half precision. Yours is half precision too.",
    replace=(
        "torch.empty(q.shape[:-1], dtype=dtype)",
        "torch.empty(q.shape[:-1], dtype=q.dtype)",
    ),
)
def log_sum_exp_in_half_precision(): ...


@mistake(
    "tiled_attention",
    hint="The log-sum-exp of float64 is float64; float32 is for half precision.",
    shows=part(1, has_dtype("float32")),
    replace=(
        "torch.empty(q.shape[:-1], dtype=dtype)",
        "torch.empty(q.shape[:-1], dtype=torch.float32)",
    ),
    keeps=0.65,
)
def log_sum_exp_always_in_float32(): ...


@mistake(
    "tiled_attention",
    hint="The second part is the log-sum-exp m + ln l; yours is the maximum alone.",
    replace=("m + torch.log(l)", "m"),
    keeps=0.65,
)
def maximum_in_place_of_the_log_sum_exp(): ...


@mistake(
    "tiled_attention",
    hint="The second part is the logarithm of the sum, with the maximum in it; yours is the sum l.",
    replace=("m + torch.log(l)", "l"),
    keeps=0.65,
)
def sum_in_place_of_the_log_sum_exp(): ...


# --- tiled_attention_backward
# -----------------------------------------------------------------------------------------


@mistake(
    "tiled_attention_backward",
    hint="dS = P ∘ (dP - D): without D, raising all scores of a row would change the output.",
    replace=(
        "ds = p * (do_tile @ v_tile.transpose(-2, -1) - delta)",
        "ds = p * (do_tile @ v_tile.transpose(-2, -1))",
    ),
)
def d_is_missing(): ...


@mistake(
    "tiled_attention_backward",
    hint="D sums over all keys of a row, and a tile has only some. It is also dO · O.",
    replace=(
        "ds = p * (do_tile @ v_tile.transpose(-2, -1) - delta)",
        """
dp = do_tile @ v_tile.transpose(-2, -1)
ds = p * (dp - (p * dp).sum(dim=-1, keepdim=True))
""",
    ),
)
def d_from_one_tile(): ...


@mistake(
    "tiled_attention_backward",
    hint="S = QKᵀ/√d: the factor stands before Q and K, so their gradients carry it too.",
    replace=[
        ("scale * ds @ k_tile", "ds @ k_tile"),
        ("scale * ds.transpose(-2, -1)", "ds.transpose(-2, -1)"),
    ],
    keeps=0.65,
)
def scale_is_lost_on_the_way_back(): ...


@mistake(
    "tiled_attention_backward",
    hint="1/√d stands before Q and before K: dQ carries it in yours, dK does not.",
    replace=("scale * ds.transpose(-2, -1)", "ds.transpose(-2, -1)"),
    keeps=0.65,
)
def scale_of_dk_is_lost(): ...


@mistake(
    "tiled_attention_backward",
    hint="One factor 1/√d, not two: was Q scaled already when you multiplied again?",
    replace=[
        ("scale * ds @ k_tile", "scale * scale * ds @ k_tile"),
        ("scale * ds.transpose(-2, -1)", "scale * scale * ds.transpose(-2, -1)"),
    ],
    keeps=0.65,
)
def scale_is_applied_twice(): ...


@mistake(
    "tiled_attention_backward",
    hint="The scores are computed again as they were: with 1/√d, or they do not fit the lse.",
    replace=("s = scale * q_tile", "s = q_tile"),
    keeps=0.65,
)
def scores_without_scale(): ...


@mistake(
    "tiled_attention_backward",
    hint="Every query tile adds to dK and dV. Yours hold the last tile's part alone.",
    replace=[
        ("dv[..., j : j + block_k, :] +=", "dv[..., j : j + block_k, :] ="),
        ("dk[..., j : j + block_k, :] +=", "dk[..., j : j + block_k, :] ="),
    ],
    keeps=0.65,
)
def later_tiles_overwrite(): ...


@mistake(
    "tiled_attention_backward",
    hint="Every key tile adds to dQ. Yours holds the last tile's part alone.",
    replace=("dq[..., i : i + block_q, :] +=", "dq[..., i : i + block_q, :] ="),
)
def later_key_tiles_overwrite_dq(): ...


@mistake(
    "tiled_attention_backward",
    hint="A softmax over the keys of one tile is not the weight. The lse has the whole row in it.",
    replace=("torch.exp(s - lse_tile)", "torch.softmax(s, dim=-1).nan_to_num(0.0)"),
)
def softmax_of_the_tile(): ...


@mistake(
    "tiled_attention_backward",
    hint="A row that sees nothing has lse = -inf, and -inf minus -inf is nan. Its gradients are 0.",
    replace=('lse_tile = lse_tile.masked_fill(lse_tile == float("-inf"), 0.0)', ""),
)
def nan_for_rows_that_see_nothing(): ...


@mistake(
    "tiled_attention_backward",
    hint="Scores that the forward pass masked must be masked here too.",
    shows=ignores("causal"),
    replace=("if causal:", "if False:"),
)
def causal_is_forgotten_on_the_way_back(): ...


@mistake(
    "tiled_attention_backward",
    hint="Your triangle starts at the top left, as torch's is_causal does. It belongs to the bottom "
    "right here as well: add N_k - N_q.",
    replace=("rows + (n_k - n_q)", "rows"),
)
def causal_from_the_top_left_on_the_way_back(): ...


@mistake(
    "tiled_attention_backward",
    hint="O = P V, so dV = Pᵀ dO: the weights, not the gradient of the scores.",
    replace=(
        "dv[..., j : j + block_k, :] += p.transpose(-2, -1)",
        "dv[..., j : j + block_k, :] += ds.transpose(-2, -1)",
    ),
)
def dv_from_ds(): ...


@mistake(
    "tiled_attention_backward",
    hint="dS carries the weight: P ∘ (dP - D), element by element.",
    replace=(
        "ds = p * (do_tile @ v_tile.transpose(-2, -1) - delta)",
        "ds = do_tile @ v_tile.transpose(-2, -1) - delta",
    ),
)
def ds_without_the_weights(): ...


@mistake(
    "tiled_attention_backward",
    hint="Seven queries in tiles of three are three tiles. The last one has gradients too.",
    replace=("range(0, n_q, block_q)", "range(0, max(n_q - block_q + 1, 1), block_q)"),
)
def last_query_tile_has_no_gradient(): ...


@mistake(
    "tiled_attention_backward",
    hint="Five keys in tiles of two are three tiles. The last one has gradients too, "
    "and adds to dQ.",
    replace=("range(0, n_k, block_k)", "range(0, max(n_k - block_k + 1, 1), block_k)"),
)
def last_key_tile_has_no_gradient(): ...


@mistake(
    "tiled_attention_backward",
    hint="exp(S) overflows before it is divided. Subtract the lse inside the exponent.",
    replace=("torch.exp(s - lse_tile)", "torch.exp(s) / torch.exp(lse_tile)"),
)
def divides_exponentials(): ...


@mistake(
    "tiled_attention_backward",
    hint="Right gradients, but all weights were there at once. Compute them tile by tile.",
    replace=(
        "dtype = lse.dtype",
        """
dtype = lse.dtype
block_q, block_k = n_q, n_k
""",
    ),
)
def whole_matrix_on_the_way_back(): ...


@mistake(
    "tiled_attention_backward",
    hint="Right, but the weights of all tiles were kept in a list: together they are the matrix.",
    replace=[
        ("dtype = lse.dtype", "dtype, kept = lse.dtype, []"),
        (
            "p = torch.exp(s - lse_tile)",
            """
p = torch.exp(s - lse_tile)
kept.append(p)
""",
        ),
    ],
)
def tiles_kept_on_the_way_back(): ...


@mistake(
    "tiled_attention_backward",
    hint="The gradient of a float16 tensor is float16.",
    shows=part(0, has_dtype("float32")),
    replace=(
        "return dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype)",
        "return dq, dk, dv",
    ),
)
def gradients_in_float32(): ...


@mistake(
    "tiled_attention_backward",
    hint="Of more queries than keys the first see nothing, and in yours they see keys: N_k - N_q is "
    "negative there, and stays in the mask.",
    replace=[
        ("rows + (n_k - n_q)", "rows + max(n_k - n_q, 0)"),
        (
            "p = torch.exp(s - lse_tile)",
            'p = torch.exp(s - lse_tile) * (lse[..., i : i + block_q, None] > float("-inf"))',
        ),
    ],
)
def sees_too_much_where_queries_are_more(): ...


@mistake(
    "tiled_attention_backward",
    hint="dQ, dK and dV are sums over tiles: keep them in float32, and round once, at the end.",
    replace=[
        (
            "(torch.zeros(x.shape, dtype=dtype) for x in (q, k, v))",
            "(torch.zeros_like(x) for x in (q, k, v))",
        ),
        (
            "+= p.transpose(-2, -1) @ do_tile",
            "+= (p.transpose(-2, -1) @ do_tile).to(v.dtype)",
        ),
        ("+= scale * ds @ k_tile", "+= (scale * ds @ k_tile).to(q.dtype)"),
        (
            "+= scale * ds.transpose(-2, -1) @ q_tile",
            "+= (scale * ds.transpose(-2, -1) @ q_tile).to(k.dtype)",
        ),
    ],
)
def sums_gradients_in_half(): ...


@mistake(
    "tiled_attention_backward",
    hint="D = dO · O is computed in float32 too: in float16 a product of two hundreds is "
    "almost infinite.",
    replace=(
        "(do_tile * o[..., i : i + block_q, :].to(dtype))",
        "(do[..., i : i + block_q, :] * o[..., i : i + block_q, :])",
    ),
)
def d_in_half(): ...


@mistake(
    "tiled_attention_backward",
    hint="dP = dO Vᵀ is computed in float32 too: it can be above 65504, where float16 ends.",
    replace=(
        "do_tile @ v_tile.transpose(-2, -1)",
        "(do[..., i : i + block_q, :] @ v[..., j : j + block_k, :].transpose(-2, -1)).to(dtype)",
    ),
)
def dp_in_half(): ...


@mistake(
    "tiled_attention_backward",
    hint="bfloat16 is half precision as well: compute in float32.",
    replace=[
        (
            "dtype = lse.dtype",
            "dtype = q.dtype if q.dtype == torch.bfloat16 else lse.dtype",
        ),
        (
            "lse[..., i : i + block_q].unsqueeze(-1)",
            "lse[..., i : i + block_q].to(dtype).unsqueeze(-1)",
        ),
    ],
)
def bfloat16_is_not_widened(): ...


@mistake(
    "tiled_attention_backward",
    hint="The lse is float32 for a reason: rounded to half precision it is off by whole numbers.",
    replace=(
        "lse[..., i : i + block_q].unsqueeze(-1)",
        "lse[..., i : i + block_q].to(q.dtype).to(dtype).unsqueeze(-1)",
    ),
)
def lse_is_rounded(): ...


@mistake(
    "tiled_attention_backward",
    hint="view needs numbers that lie in order in memory, and dO may be a transposed view: "
    "reshape, or slice.",
    replace=(
        "dtype = lse.dtype",
        """
dtype = lse.dtype
do = do.view(-1, do.shape[-1]).view(do.shape)
""",
    ),
)
def do_wants_memory_in_order(): ...


@mistake(
    "tiled_attention_backward",
    hint="Half precision is turned into float32 as a whole: copies of all that came in. Turn each "
    "tile into float32 where it is read.",
    replace=[
        (
            "dtype = lse.dtype",
            """
dtype, half = lse.dtype, q.dtype
q, k, v, o, do = (x.to(dtype) for x in (q, k, v, o, do))
""",
        ),
        (
            "return dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype)",
            "return dq.to(half), dk.to(half), dv.to(half)",
        ),
    ],
)
def widens_all_that_came_in(): ...


# --- hbm_traffic
# ------------------------------------------------------------------------------------------------------


@mistake(
    "tiled_attention_backward",
    hint="With causal the walk over the keys ends at the row's own number. The last query sees the last key: with "
    "more keys than queries, N_k - N_q further ones have gradients.",
    replace=(
        "for j in range(0, n_k, block_k):",
        "for j in range(0, min(n_k, i + block_q) if causal else n_k, block_k):",
    ),
)
def walk_back_ends_at_the_own_row(): ...


@mistake(
    "tiled_attention_backward",
    hint="1/√d stands before Q and before K: dK carries it in yours, dQ does not.",
    replace=("scale * ds @ k_tile", "ds @ k_tile"),
    keeps=0.65,
)
def scale_of_dq_is_lost(): ...


@mistake(
    "tiled_attention_backward",
    hint="O = P V has no 1/√d in it, and dV = Pᵀ dO has none. Yours is multiplied by it.",
    replace=("p.transpose(-2, -1) @ do_tile", "scale * p.transpose(-2, -1) @ do_tile"),
    keeps=0.65,
)
def dv_carries_the_scale(): ...


@mistake(
    "tiled_attention_backward",
    hint="dS = P ∘ (dP - D): D is subtracted before the weights are multiplied, and yours after.",
    replace=(
        "p * (do_tile @ v_tile.transpose(-2, -1) - delta)",
        "p * (do_tile @ v_tile.transpose(-2, -1)) - delta",
    ),
)
def d_is_subtracted_from_the_product(): ...


@mistake(
    "tiled_attention_backward",
    hint="dS = P ∘ (dP - D): D is subtracted. Yours is added.",
    replace=(
        "@ v_tile.transpose(-2, -1) - delta)",
        "@ v_tile.transpose(-2, -1) + delta)",
    ),
)
def d_is_added(): ...


@mistake(
    "tiled_attention_backward",
    hint="D = dO · O, row by row. Yours takes another product.",
    replace=("(do_tile * o[..., i : i + block_q, :].to(dtype))", "(do_tile * do_tile)"),
)
def d_is_that_of_do_alone(): ...


@mistake(
    "tiled_attention_backward",
    hint="The gradients are asked for in the order dq, dk, dv. Yours come in another one.",
    replace=(
        "return dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype)",
        "return dq.to(q.dtype), dv.to(v.dtype), dk.to(k.dtype)",
    ),
    keeps=0.65,
)
def gradients_in_another_order(): ...


@mistake(
    "hbm_traffic",
    hint="5 tokens in tiles of 2 are three tiles: round up.",
    replace=("-(-n // block_q)", "n // block_q"),
)
def rounds_the_tiles_down(): ...


@mistake(
    "hbm_traffic",
    hint="Who walks over whom? Every *query* tile reads all keys, so block_q decides.",
    replace=("-(-n // block_q)", "-(-n // block_k)"),
)
def counts_key_tiles(): ...


@mistake(
    "hbm_traffic",
    hint="S is written and read again, and so is P: four times N² elements.",
    replace=("4 * n * n", "2 * n * n"),
)
def matrix_moves_twice(): ...


@mistake(
    "hbm_traffic",
    hint="There are four matrices of N × d: Q, K, V and O.",
    replace=[("(4 * n * d +", "(3 * n * d +"), ("(2 * n * d +", "(n * d +")],
)
def output_is_not_counted(): ...


@mistake(
    "hbm_traffic",
    hint="K and V do not stay on the chip: every query tile loads them again.",
    replace=("-(-n // block_q)", "1"),
)
def keys_are_read_once(): ...


@mistake(
    "hbm_traffic",
    hint="Q and O belong to one query tile each: they move once, whatever the number of tiles.",
    replace=("(2 * n * d + query_tiles * 2 * n * d)", "(query_tiles * 4 * n * d)"),
)
def queries_are_read_in_every_walk(): ...


@mistake(
    "hbm_traffic",
    hint="Those are elements. Each has bytes_per_element bytes.",
    replace=[
        ("(4 * n * d + 4 * n * n) * bytes_per_element", "4 * n * d + 4 * n * n"),
        (
            "(2 * n * d + query_tiles * 2 * n * d) * bytes_per_element",
            "2 * n * d + query_tiles * 2 * n * d",
        ),
    ],
    keeps=0.65,
)
def counts_elements(): ...


@mistake(
    "hbm_traffic",
    hint="Bytes are whole: / gives a float, // an int.",
    replace=[
        (
            "(4 * n * d + 4 * n * n) * bytes_per_element",
            "(4 * n * d + 4 * n * n) * bytes_per_element / 1",
        ),
        (
            "(2 * n * d + query_tiles * 2 * n * d) * bytes_per_element",
            "(2 * n * d + query_tiles * 2 * n * d) * bytes_per_element / 1",
        ),
    ],
)
def returns_floats(): ...


@mistake(
    "hbm_traffic",
    hint="A tile without rows means nothing: ValueError, with the number in its message.",
    replace=("min(sizes) < 1", "n == 0"),
)
def sizes_are_not_checked(): ...


@mistake(
    "hbm_traffic",
    hint="No tokens, no columns and no bytes mean nothing either: every size below 1 is "
    "a ValueError.",
    replace=("min(sizes) < 1", "min(block_q, block_k) < 1"),
)
def only_tiles_are_checked(): ...


@mistake(
    "hbm_traffic",
    hint="numpy's ceil gives a float, and torch's too: bytes are counted with int.",
    replace=("query_tiles = -(-n // block_q)", "query_tiles = float(-(-n // block_q))"),
)
def tiles_are_counted_in_floats(): ...


@mistake(
    "hbm_traffic",
    hint="block_k changes no count, and is a size all the same: below 1 it is refused.",
    replace=("if min(sizes) < 1:", "if min(n, d, block_q, bytes_per_element) < 1:"),
)
def key_tiles_are_not_checked(): ...


# --- growth_of_costs
# --------------------------------------------------------------------------------------------------


@mistake(
    "hbm_traffic",
    hint="12 tokens in tiles of 4 are three tiles. Where the last tile is full, yours count one more.",
    replace=("-(-n // block_q)", "n // block_q + 1"),
)
def counts_a_tile_behind_the_last(): ...


@mistake(
    "hbm_traffic",
    hint="Python rounds a half to the even number, so that round(x + 0.5) is now and then one more than x rounded up: "
    "12 tokens in one tile of 12 become two tiles.",
    replace=("-(-n // block_q)", "round(n / block_q + 0.5)"),
)
def rounds_halves_to_the_even_number(): ...


@mistake(
    "hbm_traffic",
    hint="Each query tile reads K and V: two matrices [n, d]. Yours counts one.",
    replace=("query_tiles * 2 * n * d", "query_tiles * n * d"),
    keeps=0.65,
)
def one_of_keys_and_values_is_counted(): ...


@mistake(
    "hbm_traffic",
    hint="Every query tile reads K and V anew, not every query.",
    replace=("query_tiles * 2 * n * d", "n * 2 * n * d"),
    keeps=0.65,
)
def every_query_reads_all_keys(): ...


@mistake(
    "hbm_traffic",
    hint="The score matrix goes to memory and back, and so does the matrix of weights: four times n².",
    replace=("4 * n * n", "3 * n * n"),
    keeps=0.65,
)
def matrix_moves_three_times(): ...


@mistake(
    "hbm_traffic",
    hint="The last query tile may be ragged, and reads all keys nevertheless: the number of tiles is rounded up.",
    replace=[
        ("-(-n // block_q)", "n / block_q"),
        (
            "(2 * n * d + query_tiles * 2 * n * d) * bytes_per_element",
            "int((2 * n * d + query_tiles * 2 * n * d) * bytes_per_element)",
        ),
    ],
)
def counts_a_part_of_a_tile(): ...


@mistake(
    "growth_of_costs",
    hint="The ratio is a power of two: its logarithm to base 2 is the exponent.",
    replace=("math.log2(", "math.log("),
    keeps=0.65,
)
def natural_logarithm(): ...


@mistake(
    "growth_of_costs",
    hint="The exponent is asked for, not the ratio: a ratio of 4 is an exponent of 2.",
    replace=("math.log2(after[name] / before[name])", "after[name] / before[name]"),
)
def returns_the_ratio(): ...


@mistake(
    "growth_of_costs",
    hint="This is how the traffic of the naive way grows. Which one does FlashAttention have?",
    replace=('["tiled"]', '["naive"]'),
)
def traffic_of_the_naive_way(): ...


@mistake(
    "growth_of_costs",
    hint="Nothing of N × N is ever stored: what is left after the last tile?",
    replace=(
        "tokens * d * bytes_per_element + tokens * 4",
        "tokens * tokens * bytes_per_element",
    ),
)
def stores_the_matrix(): ...


@mistake(
    "growth_of_costs",
    hint="Every query meets every key, in tiles or not. Twice the tokens, four times the scores.",
    replace=("4 * tokens * tokens * d", "4 * tokens * d"),
)
def believes_that_operations_are_linear(): ...


@mistake(
    "growth_of_costs",
    hint="Your traffic grows with N, as the slide says. Count the bytes that move, with "
    "hbm_traffic.",
    replace=(
        'hbm_traffic(tokens, d, block_q, 1, bytes_per_element)["tiled"]',
        "4 * tokens * d * bytes_per_element",
    ),
)
def believes_that_traffic_is_linear(): ...


@mistake(
    "growth_of_costs",
    hint="The traffic nears the square with many tiles. Count it: what is it with one tile, "
    "and with two?",
    replace=(
        'hbm_traffic(tokens, d, block_q, 1, bytes_per_element)["tiled"]',
        "tokens * tokens",
    ),
)
def believes_that_traffic_is_quadratic(): ...


@mistake(
    "growth_of_costs",
    hint="There are only whole tiles: 740 tokens in tiles of 96 are eight, and 13 are one. Round up.",
    replace=(
        'hbm_traffic(tokens, d, block_q, 1, bytes_per_element)["tiled"]',
        "(2 * tokens * d + max(1, tokens / block_q) * 2 * tokens * d) * bytes_per_element",
    ),
)
def counts_parts_of_tiles(): ...


@mistake(
    "growth_of_costs",
    hint="A last tile that is not full is a tile, too: round up.",
    replace=(
        'hbm_traffic(tokens, d, block_q, 1, bytes_per_element)["tiled"]',
        "(2 * tokens * d + max(1, tokens // block_q) * 2 * tokens * d) * bytes_per_element",
    ),
)
def rounds_tiles_down(): ...


@mistake(
    "growth_of_costs",
    hint="cost(2n) = 2**p * cost(n): with costs that grow, p is above 0. What do you divide by what?",
    replace=("after[name] / before[name]", "before[name] / after[name]"),
    keeps=0.65,
)
def divides_before_by_after(): ...


# --- add_bias
# ---------------------------------------------------------------------------------------------------------


@mistake(
    "add_bias",
    hint="The last tile is ragged: mask the load of x, it reads behind the end.",
    replace=(
        "columns[None, :] * stride_xn, mask=inside, other=0.0)",
        "columns[None, :] * stride_xn)",
    ),
)
def load_without_mask(): ...


@mistake(
    "add_bias",
    hint="The last tile is ragged: mask the store too, it writes behind the end.",
    replace=("x + b[None, :], mask=inside)", "x + b[None, :])"),
)
def store_without_mask(): ...


@mistake(
    "add_bias",
    hint="Element (i, j) of x lies i * stride_0 + j * stride_1 further on. You took x "
    "for contiguous.",
    replace=("x.stride(0), x.stride(1), b.stride(0)", "n, 1, b.stride(0)"),
)
def x_is_taken_for_contiguous(): ...


@mistake(
    "add_bias",
    hint="b has a stride as well: `b[::2]` does not lie element after element.",
    replace=("x.stride(0), x.stride(1), b.stride(0)", "x.stride(0), x.stride(1), 1"),
)
def b_is_taken_for_contiguous(): ...


@mistake(
    "add_bias",
    hint="The bias belongs to the column j, and broadcasts along the rows: [None, :].",
    replace=[
        (
            "b_ptr + columns * stride_b, mask=columns < N",
            "b_ptr + rows * stride_b, mask=rows < N",
        ),
        ("x + b[None, :]", "x + b[:, None]"),
    ],
)
def bias_along_the_rows(): ...


@mistake(
    "add_bias",
    hint="45 rows in tiles of 32 are two tiles: round the grid up (triton.cdiv).",
    replace=(
        "(triton.cdiv(m, 32), triton.cdiv(n, 32))",
        "(max(m // 32, 1), max(n // 32, 1))",
    ),
)
def grid_rounds_down(): ...


@mistake(
    "add_bias",
    hint="Axis 0 of the grid counts row tiles, axis 1 column tiles. Does the kernel ask for them "
    "in that order?",
    replace=[
        ("tl.program_id(0)", "tl.program_id(1)"),
        ("tl.program_id(1)", "tl.program_id(0)"),
    ],
)
def program_ids_are_swapped(): ...


@mistake(
    "add_bias",
    hint="The output buffer holds anything at first: store into it, do not add to it.",
    replace=(
        "x + b[None, :], mask=inside)",
        "x + b[None, :] + tl.load(y_ptr + rows[:, None] * N + columns[None, :], mask=inside, "
        "other=0.0), mask=inside)",
    ),
)
def adds_to_the_output_buffer(): ...


@mistake(
    "add_bias",
    hint="The sum was written over x. The output is a tensor of its own.",
    replace=[
        (
            "tl.store(y_ptr + rows[:, None] * N + columns[None, :],",
            "tl.store(x_ptr + rows[:, None] * stride_xm + columns[None, :] * stride_xn,",
        ),
        ("return y", "return x"),
    ],
)
def writes_over_x(): ...


@mistake(
    "add_bias",
    hint="torch has added, not your kernel. The wrapper allocates and launches.",
    replace=(
        "add_bias_kernel[grid](x, b, y, m, n, x.stride(0), x.stride(1), b.stride(0), "
        "BLOCK_M=32, BLOCK_N=32)",
        "y = x + b",
    ),
)
def torch_does_it(): ...


@mistake(
    "add_bias",
    hint="One program with one huge tile does not fit on a chip, and all others stand idle. "
    "Cut into tiles.",
    replace=[
        (
            "grid = (triton.cdiv(m, 32), triton.cdiv(n, 32))",
            "grid, block_m, block_n = (1, 1), triton.next_power_of_2(m), triton.next_power_of_2(n)",
        ),
        ("BLOCK_M=32, BLOCK_N=32", "BLOCK_M=block_m, BLOCK_N=block_n"),
    ],
)
def one_program_for_everything(): ...


@mistake(
    "add_bias",
    hint="A bias whose length is not that of a row: ValueError, before anything is launched.",
    replace=("b.shape != (n,)", "b.dim() != 1"),
)
def length_is_not_checked(): ...


@mistake(
    "add_bias",
    hint="A bias that is too long does not belong to this matrix either: ValueError, with "
    "both lengths.",
    replace=("b.shape != (n,)", "len(b) < n"),
)
def only_a_short_bias_is_refused(): ...


# --- softmax_rows
# -----------------------------------------------------------------------------------------------------


@mistake(
    "add_bias",
    hint="torch.empty_like(x) has the strides of x, and your kernel stores as if rows followed each other: of a "
    "transposed x the sums land in other places.",
    replace=(
        "y = torch.empty(m, n, dtype=x.dtype, device=x.device)",
        "y = torch.empty_like(x)",
    ),
)
def sums_have_the_strides_of_x(): ...


@mistake(
    "softmax_rows",
    hint="Lanes beyond the row hold 0, and exp(0 - m) is a share. Which value has the "
    "exponential 0?",
    replace=('mask=columns < N, other=float("-inf"))', "mask=columns < N, other=0.0)"),
)
def lanes_beyond_hold_zero(): ...


@mistake(
    "softmax_rows",
    hint="Lanes that are masked out hold anything unless other= says what.",
    replace=('mask=columns < N, other=float("-inf"))', "mask=columns < N)"),
)
def lanes_beyond_hold_anything(): ...


@mistake(
    "softmax_rows",
    hint="The block is longer than the row: mask the load, or it reads the next row, or "
    "past the end.",
    replace=(
        'columns * stride_xn, mask=columns < N, other=float("-inf"))',
        "columns * stride_xn)",
    ),
)
def row_is_loaded_without_mask(): ...


@mistake(
    "softmax_rows",
    hint="exp(1000) is infinite. Subtract the maximum of the row first.",
    replace=("tl.exp(x - tl.max(x, 0))", "tl.exp(x)"),
)
def maximum_is_not_subtracted(): ...


@mistake(
    "softmax_rows",
    hint="Your rows do not sum to 1: divide by their sum.",
    replace=("e / tl.sum(e, 0)", "e"),
)
def sum_is_not_divided(): ...


@mistake(
    "softmax_rows",
    hint="The block is longer than the row: without a mask the store writes into the row below.",
    replace=(
        "y.to(y_ptr.dtype.element_ty), mask=columns < N)",
        "y.to(y_ptr.dtype.element_ty))",
    ),
)
def row_is_stored_without_mask(): ...


@mistake(
    "softmax_rows",
    hint="Element (i, j) lies i * stride_0 + j * stride_1 further on. You took x for contiguous.",
    replace=("x.stride(0), x.stride(1)", "n, 1"),
)
def strides_are_ignored(): ...


@mistake(
    "softmax_rows",
    hint="The elements of a row need not be neighbours in memory: x has a stride for its "
    "columns too.",
    replace=("x.stride(0), x.stride(1)", "x.stride(0), 1"),
)
def columns_are_taken_for_neighbours(): ...


@mistake(
    "softmax_rows",
    hint="Rows may be longer than your block: next_power_of_2 of their length.",
    replace=("BLOCK=triton.next_power_of_2(n)", "BLOCK=1024"),
)
def block_of_1024_for_all(): ...


@mistake(
    "softmax_rows",
    hint="float16 counts up to 2048 exactly. Turn the row into float32 right after the load.",
    replace=[
        (".to(tl.float32)", ""),
        (
            "e = tl.exp(x - tl.max(x, 0))",
            "e = tl.exp(x - tl.max(x, 0)).to(x_ptr.dtype.element_ty)",
        ),
    ],
)
def computes_rows_in_half_precision(): ...


@mistake(
    "softmax_rows",
    hint="The maximum is subtracted in float16, which rounds the difference. Turn the row into "
    "float32 right after the load.",
    replace=[
        (".to(tl.float32)", ""),
        (
            "e = tl.exp(x - tl.max(x, 0))",
            "e = tl.exp((x - tl.max(x, 0).to(x.dtype)).to(tl.float32))",
        ),
    ],
)
def subtracts_the_maximum_in_half_precision(): ...


@mistake(
    "softmax_rows",
    hint="The output has the dtype of x.",
    shows=has_dtype("float32"),
    replace=("dtype=x.dtype", "dtype=torch.float32"),
)
def rows_come_out_as_float32(): ...


@mistake(
    "softmax_rows",
    hint="torch has computed here, not your kernel.",
    replace=(
        "softmax_rows_kernel[(m,)](x, y, n, x.stride(0), x.stride(1), "
        "BLOCK=triton.next_power_of_2(n))",
        """
e = (x.float() - x.float().amax(dim=1, keepdim=True)).exp()
y = (e / e.sum(dim=1, keepdim=True)).to(x.dtype)
""",
    ),
)
def torch_computes_the_rows(): ...


@mistake(
    "softmax_rows",
    hint="The result was written over x. The output is a tensor of its own.",
    replace=[
        (
            "tl.store(y_ptr + row * N + columns,",
            "tl.store(x_ptr + row * stride_xm + columns * stride_xn,",
        ),
        ("return y", "return x"),
    ],
)
def rows_are_written_over_x(): ...


@mistake(
    "softmax_rows",
    hint="The row is on the chip already: a second load of it is the traffic that the kernel is "
    "there to save.",
    replace=(
        "e = tl.exp(x - tl.max(x, 0))",
        """
again = tl.load(x_ptr + row * stride_xm + columns * stride_xn, mask=columns < N, other=0.0).to(tl.float32)
e = tl.where(columns < N, tl.exp(again - tl.max(x, 0)), 0.0)
""",
    ),
)
def rows_are_loaded_twice(): ...


# --- triton_attention
# -------------------------------------------------------------------------------------------------


@mistake(
    "softmax_rows",
    hint="torch.empty_like(x) has the strides of x, and your kernel stores as if rows followed each other: of a "
    "transposed x the shares land in other places.",
    replace=(
        "y = torch.empty(m, n, dtype=x.dtype, device=x.device)",
        "y = torch.empty_like(x)",
    ),
)
def rows_have_the_strides_of_x(): ...


@mistake(
    "triton_attention",
    hint="tl.dot rounds float32 to 10 bits of mantissa unless it is told not to: "
    'input_precision="ieee", in both products.',
    replace=[
        ('tl.dot(q, tl.trans(k), input_precision="ieee")', "tl.dot(q, tl.trans(k))"),
        (
            'tl.dot(p.to(v.dtype), v, input_precision="ieee")',
            "tl.dot(p.to(v.dtype), v)",
        ),
    ],
)
def kernel_rounds_to_tf32(): ...


@mistake(
    "triton_attention",
    hint="Heads can be wider than 64: the lanes are the next power of two of d, whatever d is.",
    replace=(
        "triton.next_power_of_2(max(d, 16))",
        "min(64, triton.next_power_of_2(max(d, 16)))",
    ),
)
def heads_have_64_lanes_at_most(): ...


@mistake(
    "triton_attention",
    hint="Axis 1 of the grid counts the heads of one sentence after the other: the batch is "
    "tl.program_id(1) // H, the head the remainder.",
    replace=[
        ("batch = tl.program_id(1) // H", "batch = tl.program_id(1) % H"),
        ("head = tl.program_id(1) % H", "head = tl.program_id(1) // H"),
    ],
)
def head_and_batch_are_exchanged(): ...


@mistake(
    "triton_attention",
    hint="The log-sum-exp is m + ln l: tl.log, not tl.log2.",
    replace=("m + tl.log(l)", "m + tl.log2(l)"),
)
def kernel_stores_lse_in_base_2(): ...


@mistake(
    "triton_attention",
    hint="A key beyond N_k was loaded as 0 and has score 0: that is a weight. Set its "
    "score to -inf.",
    replace=("seen = columns[None, :] < N_k", "seen = columns[None, :] >= 0"),
)
def keys_beyond_the_end_count(): ...


@mistake(
    "triton_attention",
    hint="The last query tile is ragged: mask the store, or it writes into the next head or "
    "past the end.",
    replace=(
        "o.to(o_ptr.dtype.element_ty), mask=q_inside)",
        "o.to(o_ptr.dtype.element_ty), mask=dims[None, :] < D)",
    ),
)
def output_is_stored_without_mask(): ...


@mistake(
    "triton_attention",
    hint="The rows are not always D apart: pass q.stride(2) and the others, and use them.",
    replace=(
        "*q.stride(), *k.stride(), *v.stride(), heads",
        "*q.contiguous().stride(), *k.contiguous().stride(), *v.contiguous().stride(), heads",
    ),
)
def strides_are_taken_for_granted(): ...


@mistake(
    "triton_attention",
    hint="k and v have the same shape, and need not have the same strides: v.stride() for v.",
    replace=("*v.stride(), heads", "*k.stride(), heads"),
)
def values_are_read_with_the_strides_of_keys(): ...


@mistake(
    "triton_attention",
    hint="40 queries in tiles of 32 are two programs: round the grid up (triton.cdiv).",
    replace=(
        "(triton.cdiv(n_q, block_q), batch * heads)",
        "(max(n_q // block_q, 1), batch * heads)",
    ),
)
def too_few_programs(): ...


@mistake(
    "triton_attention",
    hint="72 keys in tiles of 32 are three steps of the loop: the last, ragged one is missing.",
    replace=("range(0, N_k, BLOCK_K)", "range(0, N_k // BLOCK_K * BLOCK_K, BLOCK_K)"),
)
def last_key_tile_is_left_out(): ...


@mistake(
    "triton_attention",
    hint="Every query tile begins with the first key tile. Which does the second "
    "program begin with?",
    replace=(
        "range(0, N_k, BLOCK_K)",
        "range(tl.minimum(tl.program_id(0), 1) * BLOCK_K, N_k, BLOCK_K)",
    ),
)
def first_key_tile_is_left_out_later(): ...


@mistake(
    "triton_attention",
    hint="Every pointer needs the offset of its batch. K's has none: sentence 1 reads the keys "
    "of sentence 0.",
    replace=(
        "k_ptr += batch * stride_kb + head * stride_kh",
        "k_ptr += head * stride_kh",
    ),
)
def batch_offset_missing_on_k(): ...


@mistake(
    "triton_attention",
    hint="Every pointer needs the offset of its head. V's has none: all heads mix the "
    "values of head 0.",
    replace=(
        "v_ptr += batch * stride_vb + head * stride_vh",
        "v_ptr += batch * stride_vb",
    ),
)
def head_offset_missing_on_v(): ...


@mistake(
    "triton_attention",
    hint="Which axis of your grid counts query tiles, and which one heads? Kernel and "
    "launch disagree.",
    replace=(
        "(triton.cdiv(n_q, block_q), batch * heads)",
        "(batch * heads, triton.cdiv(n_q, block_q))",
    ),
)
def grid_axes_are_swapped(): ...


@mistake(
    "triton_attention",
    hint="tl.arange needs a power of two: pad d = 24 to 32 lanes, and mask those beyond d.",
    replace=("D_PAD=triton.next_power_of_2(max(d, 16))", "D_PAD=d"),
)
def arange_over_d(): ...


@mistake(
    "triton_attention",
    hint="Every step of the loop loads the same keys: add the start of the tile to the offsets.",
    replace=(
        "columns = start + tl.arange(0, BLOCK_K)",
        "columns = tl.arange(0, BLOCK_K)",
    ),
)
def key_offsets_do_not_move(): ...


@mistake(
    "triton_attention",
    hint="exp(1000) is infinite. Keep the running maximum, and subtract it.",
    replace=(
        "m_new = tl.maximum(m, tl.max(s, 1))",
        "m_new = tl.zeros([BLOCK_Q], tl.float32)",
    ),
)
def kernel_without_running_maximum(): ...


@mistake(
    "triton_attention",
    hint="The maximum may not fall when a tile has smaller scores: tl.maximum(m, tl.max(s, 1)).",
    replace=("m_new = tl.maximum(m, tl.max(s, 1))", "m_new = tl.max(s, 1)"),
)
def kernel_takes_the_maximum_of_the_tile(): ...


@mistake(
    "triton_attention",
    hint="Each query has a maximum of its own. With that of a whole tile, a query of small "
    "scores sums only zeros.",
    replace=(
        "m_new = tl.maximum(m, tl.max(s, 1))",
        "m_new = tl.maximum(m, tl.max(tl.max(s, 1), 0))",
    ),
)
def kernel_has_one_maximum_for_all_queries(): ...


@mistake(
    "triton_attention",
    hint="All scores may be below -50000. Start the running maximum at -inf.",
    replace=(
        'tl.full([BLOCK_Q], float("-inf"), tl.float32)',
        "tl.zeros([BLOCK_Q], tl.float32)",
    ),
)
def kernel_starts_from_zero(): ...


@mistake(
    "triton_attention",
    hint="The accumulator was made with an older maximum: multiply it by exp(m_old - m_new).",
    replace=("acc * shrink[:, None] +", "acc +"),
)
def kernel_keeps_the_accumulator(): ...


@mistake(
    "triton_attention",
    hint="The sum l was made with an older maximum: multiply it by exp(m_old - m_new) too.",
    replace=("l * shrink +", "l +"),
)
def kernel_keeps_the_sum(): ...


@mistake(
    "triton_attention",
    hint="Your triangle starts at the top left, as torch's is_causal does. The last query sees the "
    "last key: add N_k - N_q to the row.",
    replace=("rows[:, None] + (N_k - N_q)", "rows[:, None]"),
)
def kernel_is_causal_from_the_top_left(): ...


@mistake(
    "triton_attention",
    hint="A token may look at itself: the condition is ≤, not <.",
    replace=("columns[None, :] <= rows", "columns[None, :] < rows"),
    keeps=0.65,
)
def kernel_leaves_itself_out(): ...


@mistake(
    "triton_attention",
    hint="Compare positions in the whole, not in the tile: row tile * BLOCK_Q + r, "
    "column start + c.",
    replace=(
        "columns[None, :] <= rows[:, None] + (N_k - N_q)",
        "tl.arange(0, BLOCK_K)[None, :] <= tl.arange(0, BLOCK_Q)[:, None] + (N_k - N_q)",
    ),
)
def kernel_is_causal_inside_the_tile(): ...


@mistake(
    "triton_attention",
    hint="With causal=True your answer is the same as without.",
    replace=("if CAUSAL:", "if False:"),
)
def kernel_ignores_causal(): ...


@mistake(
    "triton_attention",
    hint="The loop may end where no query of the tile sees further. Which one sees furthest, the "
    "first or the last?",
    replace=(
        "range(0, N_k, BLOCK_K)",
        "range(0, tl.program_id(0) * BLOCK_Q + 1 + N_k - N_q if CAUSAL else N_k, BLOCK_K)",
    ),
)
def kernel_ends_at_the_first_query(): ...


@mistake(
    "triton_attention",
    hint="0 is a score like any other, with the weight exp(0 - m). Masked scores become -inf.",
    replace=('tl.where(seen, s, float("-inf"))', "tl.where(seen, s, 0.0)"),
)
def masked_scores_are_zero(): ...


@mistake(
    "triton_attention",
    hint="A finite number for a hidden score, such as -10000, is a score like any other, and may be "
    "the largest of a row. What has weight 0 beside every score?",
    replace=('tl.where(seen, s, float("-inf"))', "tl.where(seen, s, -1.0e4)"),
)
def masked_scores_are_finite(): ...


@mistake(
    "triton_attention",
    hint="A finite number for a hidden score, such as -1000000, is a score like any other: of a row "
    "that sees nothing it is the largest one, and has the weight 1. What has weight 0 beside every "
    "score, and is told from all?",
    replace=('tl.where(seen, s, float("-inf"))', "tl.where(seen, s, -1.0e6)"),
)
def masked_scores_are_minus_a_million(): ...


@mistake(
    "triton_attention",
    hint="The scores are not scaled: divide them by √d.",
    replace=("1 / math.sqrt(d)", "1.0"),
    keeps=0.65,
)
def kernel_does_not_scale(): ...


@mistake(
    "triton_attention",
    hint="The scores are divided by √d; yours are divided by d.",
    replace=("1 / math.sqrt(d)", "1 / d"),
    keeps=0.65,
)
def kernel_scales_by_d(): ...


@mistake(
    "triton_attention",
    hint="By the root of d, not of the padded d: lanes that are not there add nothing to a score.",
    replace=("1 / math.sqrt(d)", "1 / math.sqrt(triton.next_power_of_2(d))"),
)
def kernel_scales_by_padded_d(): ...


@mistake(
    "triton_attention",
    hint="2^x for the weights and e^x for the rescaling: take one of them, with log2(e) "
    "where it is exp2.",
    replace=("p = tl.exp(s", "p = tl.exp2(s"),
)
def exp_and_exp2_are_mixed(): ...


@mistake(
    "triton_attention",
    hint="After the last tile, divide the accumulator by l.",
    replace=("acc / tl.where(l == 0.0, 1.0, l)[:, None]", "acc"),
)
def kernel_never_divides(): ...


@mistake(
    "triton_attention",
    hint="log(l) is relative to the maximum: the log-sum-exp is m + log(l).",
    replace=("m + tl.log(l)", "tl.log(l)"),
    keeps=0.65,
)
def kernel_stores_log_l(): ...


@mistake(
    "triton_attention",
    hint="The last query tile sticks out of q: mask its rows on the load, not only on the store.",
    replace=(
        "stride_qd, mask=q_inside, other=0.0)",
        "stride_qd, mask=dims[None, :] < D, other=0.0)",
    ),
)
def query_rows_are_loaded_without_mask(): ...


@mistake(
    "triton_attention",
    hint="The last key tile sticks out of k: mask its rows on the load.",
    replace=(
        "stride_kd, mask=inside, other=0.0)",
        "stride_kd, mask=dims[None, :] < D, other=0.0)",
    ),
)
def key_rows_are_loaded_without_mask(): ...


@mistake(
    "triton_attention",
    hint="Masked lanes hold anything without other=. A weight of 0 does not help: 0 · nan is nan.",
    replace=("stride_vd, mask=inside, other=0.0)", "stride_vd, mask=inside)"),
)
def values_are_loaded_without_other(): ...


@mistake(
    "triton_attention",
    hint="The output buffer holds anything at first. Accumulate in registers and store once.",
    replace=(
        "tl.store(o_ptr + place[:, None] * D + dims[None, :],",
        """
places = o_ptr + place[:, None] * D + dims[None, :]
tl.store(places, tl.load(places, mask=q_inside) +
""",
    ),
)
def kernel_adds_to_the_output(): ...


@mistake(
    "triton_attention",
    hint="Rows that see nothing have m = -inf, and -inf minus -inf is nan. Put a stand-in into "
    "the exponent.",
    replace=('tl.where(m_new == float("-inf"), 0.0, m_new)', "m_new"),
)
def kernel_makes_nan_of_empty_rows(): ...


@mistake(
    "triton_attention",
    hint="A row that sees no key has l = 0, and 0 / 0 is nan. Its answer is 0.",
    replace=("tl.where(l == 0.0, 1.0, l)[:, None]", "l[:, None]"),
)
def kernel_divides_by_an_empty_sum(): ...


@mistake(
    "triton_attention",
    hint="The output has the dtype of q; only the log-sum-exp is float32.",
    replace=(
        "torch.empty(batch, heads, n_q, d, dtype=q.dtype, device=q.device)",
        "torch.empty(batch, heads, n_q, d, dtype=torch.float32, device=q.device)",
    ),
)
def kernel_returns_float32(): ...


@mistake(
    "triton_attention",
    hint="The accumulator is a sum of many values, and float16 ends at 65504. Keep it in float32 "
    "until it is divided.",
    replace=(
        'acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")',
        """
acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
acc = acc.to(v.dtype).to(tl.float32)
""",
    ),
)
def kernel_accumulates_in_half_precision(): ...


@mistake(
    "triton_attention",
    hint="Nothing is stored: what comes back is what torch.empty found in memory.",
    replace=[
        (
            "tl.store(o_ptr + place[:, None] * D + dims[None, :], o.to(o_ptr.dtype.element_ty), "
            "mask=q_inside)",
            "",
        ),
        ("tl.store(lse_ptr + place, m + tl.log(l), mask=rows < N_q)", ""),
    ],
)
def kernel_is_empty(): ...


@mistake(
    "triton_attention",
    hint="One tile over all keys is the score matrix again, and fits on no chip. Walk in tiles "
    "of at most 64.",
    replace=(
        "block_q, block_k = 64, 32",
        "block_q, block_k = 16, triton.next_power_of_2(max(n_k, 16))",
    ),
)
def kernel_does_not_tile(): ...


@mistake(
    "triton_attention",
    hint="The queries of a program do not change in its loop: load them once, before it.",
    replace=(
        "seen = columns[None, :] < N_k",
        """
seen = columns[None, :] < N_k
q = tl.load(q_ptr + rows[:, None] * stride_qn + dims[None, :] * stride_qd, mask=q_inside, other=0.0)
""",
    ),
)
def queries_are_loaded_for_every_key_tile(): ...


@mistake(
    "triton_attention",
    hint="The wrapper multiplies q by the scale before the launch. That belongs in the kernel.",
    replace=[
        ("block_q, block_k = 64, 32", "block_q, block_k, q = 64, 32, q / math.sqrt(d)"),
        ("n_k, 1 / math.sqrt(d),", "n_k, 1.0,"),
    ],
)
def wrapper_scales_the_queries(): ...


@mistake(
    "triton_attention",
    hint="q and k of different d: ValueError with both sizes, before anything is launched.",
    replace=("if k.shape[3] != d or v.shape != k.shape:", "if k.dim() != 4:"),
)
def sizes_are_taken_for_granted(): ...


@mistake(
    "triton_attention",
    hint="v has to fit k, in its length and in d: ValueError with both sizes, before anything "
    "is launched.",
    replace=("if k.shape[3] != d or v.shape != k.shape:", "if k.shape[3] != d:"),
)
def only_d_of_k_is_checked(): ...


@triton.jit
def _copy_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < N, other=0.0), mask=at < N)


@mistake(
    "triton_attention",
    hint="The kernel copies what torch has computed. Scores, softmax and products belong "
    "in the kernel.",
)
def kernel_copies_what_torch_computed(q, k, v, causal=False):
    _check_attention(q, k, v)
    s = q.float() @ k.float().transpose(-2, -1) / math.sqrt(q.shape[3])
    if causal:
        hidden = (
            torch.arange(s.shape[3])
            > torch.arange(s.shape[2])[:, None] + s.shape[3] - s.shape[2]
        )
        s = s.masked_fill(hidden, -math.inf)
    done = (torch.softmax(s, dim=-1).nan_to_num(0.0) @ v.float()).to(q.dtype)
    o = torch.empty_like(done)
    _copy_kernel[(triton.cdiv(done.numel(), 256),)](done, o, done.numel(), BLOCK=256)
    return o, torch.logsumexp(s, dim=-1)

"""Wrong answers that people give, each with one wrong idea, and the hint for whoever had it."""

import math

import torch

from autograder.suite import mistake

# --- online_softmax_stats ------------------------------------------------------------------------------------------


def _online(x, block, start=-math.inf, running=True, shrinks=True, safe=True, stop=None, other=None):
    if block < 1:
        raise ValueError(f"a block has at least 1 element, got {block}")
    dtype = x.dtype if x.dtype in (torch.float32, torch.float64) else torch.float32
    m = torch.full(x.shape[:-1], start, dtype=dtype)
    total = torch.zeros(x.shape[:-1], dtype=dtype)
    for begin in range(0, stop or x.shape[-1], block):
        tile = x[..., begin : begin + block].to(dtype)
        m_new = torch.maximum(m, tile.amax(dim=-1)) if running else tile.amax(dim=-1)
        calm = m_new.masked_fill(m_new == -math.inf, 0.0) if safe else m_new
        kept = total * torch.exp(m - calm) if shrinks else total
        total = kept + torch.exp(tile - calm.unsqueeze(-1)).sum(dim=-1)
        m = m_new
    return m, total


@mistake(
    "online_softmax_stats",
    hint="What was summed before a new maximum turned up was made with the old one. By which factor is it too large?",
)
def old_sum_is_not_corrected(x, block):
    return _online(x, block, shrinks=False)


@mistake(
    "online_softmax_stats",
    hint="The maximum never falls: it is that of everything that has passed, not that of the last block.",
)
def maximum_of_the_last_block(x, block):
    return _online(x, block, running=False)


@mistake(
    "online_softmax_stats",
    hint="Starting from 0 says that the row has an element 0. What if all are below -1000?",
)
def maximum_starts_at_zero(x, block):
    return _online(x, block, start=0.0)


@mistake(
    "online_softmax_stats",
    hint="-10000 is a number like any other, and a row may lie below it. The maximum of nothing is minus infinity.",
)
def maximum_starts_at_minus_ten_thousand(x, block):
    return _online(x, block, start=-1e4)


@mistake(
    "online_softmax_stats",
    hint="A block may be -inf throughout, and -inf minus -inf is nan. Use a finite stand-in, inside the exponent only.",
)
def nan_after_a_masked_block(x, block):
    return _online(x, block, safe=False)


@mistake(
    "online_softmax_stats",
    hint="A row that is all -inf has the maximum -inf. Your finite stand-in has got into the m that you return.",
)
def stand_in_maximum_is_kept(x, block):
    m, total = _online(x, block)
    return m.masked_fill(m == -math.inf, 0.0), total


@mistake("online_softmax_stats", hint="13 elements in blocks of 5 are three blocks, the last one of 3 elements.")
def last_block_is_dropped(x, block):
    return _online(x, block, stop=max(x.shape[-1] // max(block, 1) * block, min(block, x.shape[-1])))


@mistake(
    "online_softmax_stats", hint="The largest exponent is safe only after the maximum was subtracted: exp(1000) = inf."
)
def nothing_is_subtracted(x, block):
    m, _ = _online(x, block)
    return m, sum(part.to(m.dtype).exp().sum(dim=-1) for part in x.split(block, dim=-1)) * torch.exp(-m)


@mistake(
    "online_softmax_stats", hint="Right numbers, but the whole row was turned into exponentials at once. One block!"
)
def takes_the_whole_row_at_once(x, block):
    return _online(x, x.shape[-1] if block > 0 else block)


@mistake(
    "online_softmax_stats", hint="Half precision keeps its statistics in float32: a sum of 300 is not exact otherwise."
)
def statistics_in_half_precision(x, block):
    m, total = _online(x, block)
    return m.to(x.dtype), total.to(x.dtype)


# --- merge_stats ---------------------------------------------------------------------------------------------------


def _merge(a, b, shrink_l=True, shrink_o=True, safe=True):
    m = torch.maximum(a[0], b[0])
    calm = m.masked_fill(m == -math.inf, 0.0) if safe else m
    left, right = torch.exp(a[0] - calm), torch.exp(b[0] - calm)
    l_left, l_right = (left, right) if shrink_l else (1.0, 1.0)
    o_left, o_right = (left.unsqueeze(-1), right.unsqueeze(-1)) if shrink_o else (1.0, 1.0)
    return m, a[1] * l_left + b[1] * l_right, a[2] * o_left + b[2] * o_right


@mistake("merge_stats", hint="o was made with the old maximum, just as l: both sides shrink by exp(m_side - m).")
def o_is_not_rescaled(a, b):
    return _merge(a, b, shrink_o=False)


@mistake("merge_stats", hint="l was made with the old maximum, just as o: both sides shrink by exp(m_side - m).")
def l_is_not_rescaled(a, b):
    return _merge(a, b, shrink_l=False)


@mistake(
    "merge_stats", hint="Either side may have the larger maximum. Which side does your function always leave alone?"
)
def only_the_first_side_shrinks(a, b):
    shrink = torch.exp(a[0] - torch.maximum(a[0], b[0]).clamp(min=-1e300))
    return torch.maximum(a[0], b[0]), a[1] * shrink + b[1], a[2] * shrink.unsqueeze(-1) + b[2]


@mistake("merge_stats", hint="o is the sum, not the mean. Divided here, the next merge weighs it wrongly.")
def divides_in_every_merge(a, b):
    m, total, o = _merge(a, b)
    return m, total, o / total.masked_fill(total == 0, 1.0).unsqueeze(-1)


@mistake("merge_stats", hint="Two empty sets: -inf minus -inf is nan. Put a finite stand-in into the exponent.")
def nan_for_two_empty_sets(a, b):
    return _merge(a, b, safe=False)


@mistake("merge_stats", hint="The empty set has m = -inf. A finite maximum there makes real scores below it vanish.")
def empty_set_gets_maximum_zero(a, b):
    m, total, o = _merge(a, b)
    return m.masked_fill(m == -math.inf, 0.0), total, o


@mistake("merge_stats", hint="exp(m) alone overflows. Only differences to the larger maximum belong into an exponent.")
def exponentials_of_the_maxima(a, b):
    m = torch.maximum(a[0], b[0])
    left, right, low = torch.exp(a[0]), torch.exp(b[0]), torch.exp(-m.masked_fill(m == -math.inf, 0.0))
    o = (a[2] * left.unsqueeze(-1) + b[2] * right.unsqueeze(-1)) * low.unsqueeze(-1)
    return m, (a[1] * left + b[1] * right) * low, o


@mistake(
    "merge_stats",
    hint="Your factor is one number a row, o has one row of values each: the factor needs an axis at its end.",
)
def factor_meets_the_wrong_axis(a, b):
    m, total, _ = _merge(a, b)
    calm = m.masked_fill(m == -math.inf, 0.0)
    left, right = torch.exp(a[0] - calm), torch.exp(b[0] - calm)
    if m.dim() and m.shape[-1] == a[2].shape[-1]:
        return m, total, a[2] * left + b[2] * right
    return m, total, a[2] * left.unsqueeze(-1) + b[2] * right.unsqueeze(-1)


@mistake(
    "merge_stats",
    hint="You wrote into the tensors you were given: `x *= s` changes the caller's, `x = x * s` does not.",
)
def rescales_in_place(a, b):
    m = torch.maximum(a[0], b[0])
    calm = m.masked_fill(m == -math.inf, 0.0)
    left, right = torch.exp(a[0] - calm), torch.exp(b[0] - calm)
    return m, a[1].mul_(left).add_(b[1] * right), a[2].mul_(left.unsqueeze(-1)).add_(b[2] * right.unsqueeze(-1))


# --- tiled_attention -----------------------------------------------------------------------------------------------


def _check_tiles(q, k, v, block_q, block_k):
    if min(block_q, block_k) < 1:
        raise ValueError(f"tiles have at least 1 row, got {block_q} and {block_k}")
    if k.shape[-1] != q.shape[-1] or v.shape[-2] != k.shape[-2]:
        raise ValueError(f"q {list(q.shape)}, k {list(k.shape)} and v {list(v.shape)} do not fit together")


def _tiled(q, k, v, block_q, block_k, causal, wrong=""):
    """The algorithm with one thing wrong."""
    _check_tiles(q, k, v, block_q, block_k)
    n_q, n_k, d = q.shape[-2], k.shape[-2], q.shape[-1]
    dtype = q.dtype if q.dtype in (torch.float32, torch.float64) or wrong == "half" else torch.float32
    scale = {"no scale": 1.0, "by d": 1 / d, "by d_v": v.shape[-1] ** -0.5}.get(wrong, d**-0.5)
    o = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=dtype)
    lse = torch.zeros(q.shape[:-1], dtype=dtype)
    stop_q = n_q // block_q * block_q if wrong == "query tail" and n_q >= block_q else n_q
    stop_k = n_k // block_k * block_k if wrong == "key tail" and n_k >= block_k else n_k
    for i in range(0, stop_q, block_q):
        mine = q[..., i : i + block_q, :].to(dtype) * scale
        m = torch.full(mine.shape[:-1], 0.0 if wrong == "m = 0" else -math.inf, dtype=dtype)
        total, acc = torch.zeros_like(m), torch.zeros(*mine.shape[:-1], v.shape[-1], dtype=dtype)
        for j in range(0, stop_k, block_k):
            keys, values = k[..., j : j + block_k, :].to(dtype), v[..., j : j + block_k, :].to(dtype)
            if wrong == "zero padding" and keys.shape[-2] < block_k:
                pad = (0, 0, 0, block_k - keys.shape[-2])
                keys, values = torch.nn.functional.pad(keys, pad), torch.nn.functional.pad(values, pad)
            s = mine @ keys.transpose(-2, -1)
            if causal and wrong != "causal ignored":
                rows, columns = torch.arange(s.shape[-2])[:, None], torch.arange(s.shape[-1])
                if wrong != "local indices":
                    rows, columns = rows + i, columns + j
                shift = 0 if wrong == "top left" else n_k - n_q
                future = columns >= rows + shift if wrong == "strict" else columns > rows + shift
                s = s.masked_fill(future, 0.0 if wrong == "masked to zero" else -math.inf)
            m_new = s.amax(dim=-1) if wrong == "tile maximum" else torch.maximum(m, s.amax(dim=-1))
            calm = m_new if wrong == "nan" else m_new.masked_fill(m_new == -math.inf, 0.0)
            if wrong == "clamped":
                m_new = calm
            if wrong == "no maximum":
                m_new, calm = torch.zeros_like(m_new), torch.zeros_like(m_new)
                m = torch.zeros_like(m)
            p = torch.exp2(s - calm.unsqueeze(-1)) if wrong == "exp2" else torch.exp(s - calm.unsqueeze(-1))
            shrink = torch.exp(m - calm)
            if wrong == "per tile":
                p = p / p.sum(dim=-1, keepdim=True).clamp(min=1e-300 if dtype == torch.float64 else 1e-30)
                shrink = torch.ones_like(shrink)
            total = (total if wrong == "l kept" else total * shrink) + p.sum(dim=-1)
            acc = (acc if wrong == "o kept" else acc * shrink.unsqueeze(-1)) + p @ values
            m = m_new
        divisor = total if wrong == "0 / 0" else total.masked_fill(total == 0, 1.0)
        o[..., i : i + block_q, :] = acc if wrong == "no division" else acc / divisor.unsqueeze(-1)
        lse[..., i : i + block_q] = torch.log(total) if wrong == "lse without m" else m + torch.log(total)
    return (o if wrong == "float32 out" else o.to(q.dtype)), lse


@mistake("tiled_attention", hint="exp(1000) is infinite. Subtract the maximum of what has passed, as in section 1.")
def no_running_maximum(q, k, v, block_q, block_k, causal=False):
    return _tiled(q, k, v, block_q, block_k, causal, "no maximum")


@mistake("tiled_attention", hint="The maximum of this tile alone can be lower than the one before. It must never fall.")
def maximum_of_the_tile_only(q, k, v, block_q, block_k, causal=False):
    return _tiled(q, k, v, block_q, block_k, causal, "tile maximum")


@mistake(
    "tiled_attention",
    hint="What the accumulator holds was made with an older maximum: rescale it by exp(m_old - m_new).",
)
def accumulator_is_not_rescaled(q, k, v, block_q, block_k, causal=False):
    return _tiled(q, k, v, block_q, block_k, causal, "o kept")


@mistake("tiled_attention", hint="The sum l was made with an older maximum: rescale it as you rescale the accumulator.")
def sum_is_not_rescaled(q, k, v, block_q, block_k, causal=False):
    return _tiled(q, k, v, block_q, block_k, causal, "l kept")


@mistake(
    "tiled_attention",
    hint="A softmax inside each tile gives every tile the same say. Divide once, after the last tile.",
)
def normalizes_every_tile(q, k, v, block_q, block_k, causal=False):
    return _tiled(q, k, v, block_q, block_k, causal, "per tile")


@mistake(
    "tiled_attention", hint="17 keys in tiles of 6 are three tiles, the last one of 5. Your last keys have no weight."
)
def last_key_tile_is_dropped(q, k, v, block_q, block_k, causal=False):
    return _tiled(q, k, v, block_q, block_k, causal, "key tail")


@mistake("tiled_attention", hint="13 queries in tiles of 4 are four tiles. What do the last rows of your output hold?")
def last_query_tile_is_dropped(q, k, v, block_q, block_k, causal=False):
    return _tiled(q, k, v, block_q, block_k, causal, "query tail")


@mistake(
    "tiled_attention",
    hint="A padded key has score 0, and exp(0 - m) is a weight. Give what is not there the score -inf.",
)
def padding_counts_as_keys(q, k, v, block_q, block_k, causal=False):
    return _tiled(q, k, v, block_q, block_k, causal, "zero padding")


@mistake("tiled_attention", hint="All scores may be below -1000: against a maximum that starts at 0 they all vanish.")
def maximum_starts_from_zero(q, k, v, block_q, block_k, causal=False):
    return _tiled(q, k, v, block_q, block_k, causal, "m = 0")


@mistake("tiled_attention", hint="Your answer is the same with causal=True and without.")
def causal_is_ignored(q, k, v, block_q, block_k, causal=False):
    return _tiled(q, k, v, block_q, block_k, causal, "causal ignored")


@mistake(
    "tiled_attention",
    hint="Row r of query tile i is query i * block_q + r of the whole, and columns likewise: compare those.",
)
def causal_by_positions_in_the_tile(q, k, v, block_q, block_k, causal=False):
    return _tiled(q, k, v, block_q, block_k, causal, "local indices")


@mistake(
    "tiled_attention",
    hint="The last query sees the last key: add N_k - N_q to the row. With as many of both it does not show.",
)
def causal_from_the_top_left(q, k, v, block_q, block_k, causal=False):
    return _tiled(q, k, v, block_q, block_k, causal, "top left")


@mistake("tiled_attention", hint="j ≤ i: a token may look at itself.")
def causal_leaves_itself_out(q, k, v, block_q, block_k, causal=False):
    return _tiled(q, k, v, block_q, block_k, causal, "strict")


@mistake(
    "tiled_attention", hint="A score of 0 is a score like any other: exp(0 - m) is a weight. What turns into weight 0?"
)
def future_scores_are_zero(q, k, v, block_q, block_k, causal=False):
    return _tiled(q, k, v, block_q, block_k, causal, "masked to zero")


@mistake(
    "tiled_attention",
    hint="2^x is not e^x. With exp2 the scores (and only the scores) need the factor log2(e), everywhere.",
)
def exp2_for_the_weights_only(q, k, v, block_q, block_k, causal=False):
    return _tiled(q, k, v, block_q, block_k, causal, "exp2")


@mistake("tiled_attention", hint="log(l) is relative to the maximum that was subtracted: log-sum-exp = m + log(l).")
def log_sum_exp_without_the_maximum(q, k, v, block_q, block_k, causal=False):
    return _tiled(q, k, v, block_q, block_k, causal, "lse without m")


@mistake(
    "tiled_attention", hint="The answer is right, but the whole score matrix was there. At most a tile of it may be."
)
def whole_matrix_at_once(q, k, v, block_q, block_k, causal=False):
    _check_tiles(q, k, v, block_q, block_k)
    return _tiled(q, k, v, q.shape[-2], k.shape[-2], causal)


@mistake("tiled_attention", hint="Right, but all tiles of scores were kept in a list: together they are the matrix.")
def tiles_kept_in_a_list(q, k, v, block_q, block_k, causal=False):
    kept = []
    for i in range(0, q.shape[-2], max(block_q, 1)):
        for j in range(0, k.shape[-2], max(block_k, 1)):
            kept.append(q[..., i : i + block_q, :] @ k[..., j : j + block_k, :].transpose(-2, -1))
    return _tiled(q, k, v, block_q, block_k, causal)


@mistake("tiled_attention", hint="The first tile of a row may be masked throughout, and -inf minus -inf is nan.")
def nan_for_a_masked_tile(q, k, v, block_q, block_k, causal=False):
    return _tiled(q, k, v, block_q, block_k, causal, "nan")


@mistake(
    "tiled_attention", hint="Keep -inf in m as long as nothing was seen; 0 stands in for it inside the exponent only."
)
def empty_rows_have_maximum_zero(q, k, v, block_q, block_k, causal=False):
    o, lse = _tiled(q, k, v, block_q, block_k, causal, "clamped")
    return o, lse.masked_fill(lse == -math.inf, 0.0)


@mistake("tiled_attention", hint="A row that sees no key has l = 0, and 0 / 0 is nan. Its answer is 0.")
def divides_by_an_empty_sum(q, k, v, block_q, block_k, causal=False):
    return _tiled(q, k, v, block_q, block_k, causal, "0 / 0")


@mistake("tiled_attention", hint="The scores are divided by √d before anything else.")
def scale_is_missing(q, k, v, block_q, block_k, causal=False):
    return _tiled(q, k, v, block_q, block_k, causal, "no scale")


@mistake("tiled_attention", hint="By √d, not by d.")
def scale_is_one_over_d(q, k, v, block_q, block_k, causal=False):
    return _tiled(q, k, v, block_q, block_k, causal, "by d")


@mistake(
    "tiled_attention", hint="Which vectors meet in the dot product: queries and keys, or values? d comes from them."
)
def scale_from_the_values(q, k, v, block_q, block_k, causal=False):
    return _tiled(q, k, v, block_q, block_k, causal, "by d_v")


@mistake("tiled_attention", hint="o is a sum of exp(s - m) v: at the end it is divided by l, once.")
def never_divides(q, k, v, block_q, block_k, causal=False):
    return _tiled(q, k, v, block_q, block_k, causal, "no division")


@mistake(
    "tiled_attention", hint="float16 ends at 65504, and unscaled scores are larger. Compute in float32, return float16."
)
def computes_in_half_precision(q, k, v, block_q, block_k, causal=False):
    return _tiled(q, k, v, block_q, block_k, causal, "half")


@mistake("tiled_attention", hint="What comes in as float16 goes out as float16; only the log-sum-exp is float32.")
def output_in_float32(q, k, v, block_q, block_k, causal=False):
    return _tiled(q, k, v, block_q, block_k, causal, "float32 out")


# --- tiled_attention_backward --------------------------------------------------------------------------------------


def _backward(q, k, v, o, lse, do, block_q, block_k, causal, wrong=""):
    """The gradients with one thing wrong."""
    n_q, n_k, d = q.shape[-2], k.shape[-2], q.shape[-1]
    dtype, scale = lse.dtype, d**-0.5
    dq, dk, dv = (torch.zeros(x.shape, dtype=dtype) for x in (q, k, v))
    for i in range(0, n_q // block_q * block_q if wrong == "tail" and n_q > block_q else n_q, block_q):
        at = slice(i, i + block_q)
        mine, grad = q[..., at, :].to(dtype), do[..., at, :].to(dtype)
        delta = (grad * o[..., at, :].to(dtype)).sum(dim=-1, keepdim=True)
        sums = lse[..., at].unsqueeze(-1)
        sums = sums if wrong == "nan" else sums.masked_fill(sums == -math.inf, 0.0)
        for j in range(0, n_k, block_k):
            by = slice(j, j + block_k)
            keys, values = k[..., by, :].to(dtype), v[..., by, :].to(dtype)
            s = mine @ keys.transpose(-2, -1) * (1.0 if wrong == "scores" else scale)
            if causal and wrong != "causal ignored":
                rows, columns = torch.arange(s.shape[-2])[:, None] + i, torch.arange(s.shape[-1]) + j
                s = s.masked_fill(columns > rows + (0 if wrong == "top left" else n_k - n_q), -math.inf)
            p = torch.exp(s) / torch.exp(sums) if wrong == "overflow" else torch.exp(s - sums)
            if wrong == "tile softmax":
                p = torch.softmax(s, dim=-1).nan_to_num(0.0)
            dp = grad @ values.transpose(-2, -1)
            if wrong == "tile D":
                delta = (p * dp).sum(dim=-1, keepdim=True)
            ds = dp - delta if wrong == "no P" else p * dp if wrong == "no D" else p * (dp - delta)
            outer = 1.0 if wrong == "no scale" else scale * scale if wrong == "twice" else scale
            if wrong == "overwrites":
                dv[..., by, :] = p.transpose(-2, -1) @ grad
                dk[..., by, :] = outer * ds.transpose(-2, -1) @ mine
            else:
                dv[..., by, :] += (ds if wrong == "dv from ds" else p).transpose(-2, -1) @ grad
                dk[..., by, :] += outer * ds.transpose(-2, -1) @ mine
            dq[..., at, :] += outer * ds @ keys
    if wrong == "float32":
        return dq, dk, dv
    return dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype)


@mistake(
    "tiled_attention_backward",
    hint="dS = P ∘ (dP - D): without D, raising all scores of a row would change the output.",
)
def d_is_missing(q, k, v, o, lse, do, block_q, block_k, causal=False):
    return _backward(q, k, v, o, lse, do, block_q, block_k, causal, "no D")


@mistake("tiled_attention_backward", hint="D sums over all keys of a row, and a tile has only some. It is also dO · O.")
def d_from_one_tile(q, k, v, o, lse, do, block_q, block_k, causal=False):
    return _backward(q, k, v, o, lse, do, block_q, block_k, causal, "tile D")


@mistake(
    "tiled_attention_backward", hint="S = QKᵀ/√d: the factor stands before Q and K, so their gradients carry it too."
)
def scale_is_lost_on_the_way_back(q, k, v, o, lse, do, block_q, block_k, causal=False):
    return _backward(q, k, v, o, lse, do, block_q, block_k, causal, "no scale")


@mistake("tiled_attention_backward", hint="One factor 1/√d, not two: was Q scaled already when you multiplied again?")
def scale_is_applied_twice(q, k, v, o, lse, do, block_q, block_k, causal=False):
    return _backward(q, k, v, o, lse, do, block_q, block_k, causal, "twice")


@mistake(
    "tiled_attention_backward",
    hint="The scores are computed again as they were: with 1/√d, or they do not fit the lse.",
)
def scores_without_scale(q, k, v, o, lse, do, block_q, block_k, causal=False):
    return _backward(q, k, v, o, lse, do, block_q, block_k, causal, "scores")


@mistake("tiled_attention_backward", hint="Every query tile adds to dK and dV. Yours holds what the last one said.")
def later_tiles_overwrite(q, k, v, o, lse, do, block_q, block_k, causal=False):
    return _backward(q, k, v, o, lse, do, block_q, block_k, causal, "overwrites")


@mistake(
    "tiled_attention_backward",
    hint="A softmax over the keys of one tile is not the weight. The lse has the whole row in it.",
)
def softmax_of_the_tile(q, k, v, o, lse, do, block_q, block_k, causal=False):
    return _backward(q, k, v, o, lse, do, block_q, block_k, causal, "tile softmax")


@mistake(
    "tiled_attention_backward",
    hint="A row that sees nothing has lse = -inf, and -inf minus -inf is nan. Its gradients are 0.",
)
def nan_for_rows_that_see_nothing(q, k, v, o, lse, do, block_q, block_k, causal=False):
    return _backward(q, k, v, o, lse, do, block_q, block_k, causal, "nan")


@mistake("tiled_attention_backward", hint="Scores that the forward pass masked must be masked here too.")
def causal_is_forgotten_on_the_way_back(q, k, v, o, lse, do, block_q, block_k, causal=False):
    return _backward(q, k, v, o, lse, do, block_q, block_k, causal, "causal ignored")


@mistake("tiled_attention_backward", hint="The mask is aligned at the bottom right here as well: add N_k - N_q.")
def causal_from_the_top_left_on_the_way_back(q, k, v, o, lse, do, block_q, block_k, causal=False):
    return _backward(q, k, v, o, lse, do, block_q, block_k, causal, "top left")


@mistake("tiled_attention_backward", hint="O = P V, so dV = Pᵀ dO: the weights, not the gradient of the scores.")
def dv_from_ds(q, k, v, o, lse, do, block_q, block_k, causal=False):
    return _backward(q, k, v, o, lse, do, block_q, block_k, causal, "dv from ds")


@mistake("tiled_attention_backward", hint="dS carries the weight: P ∘ (dP - D), element by element.")
def ds_without_the_weights(q, k, v, o, lse, do, block_q, block_k, causal=False):
    return _backward(q, k, v, o, lse, do, block_q, block_k, causal, "no P")


@mistake(
    "tiled_attention_backward", hint="Seven queries in tiles of three are three tiles. The last one has gradients too."
)
def last_query_tile_has_no_gradient(q, k, v, o, lse, do, block_q, block_k, causal=False):
    return _backward(q, k, v, o, lse, do, block_q, block_k, causal, "tail")


@mistake(
    "tiled_attention_backward", hint="exp(S) overflows before it is divided. Subtract the lse inside the exponent."
)
def divides_exponentials(q, k, v, o, lse, do, block_q, block_k, causal=False):
    return _backward(q, k, v, o, lse, do, block_q, block_k, causal, "overflow")


@mistake(
    "tiled_attention_backward", hint="Right gradients, but all weights were there at once. Compute them tile by tile."
)
def whole_matrix_on_the_way_back(q, k, v, o, lse, do, block_q, block_k, causal=False):
    return _backward(q, k, v, o, lse, do, q.shape[-2], k.shape[-2], causal)


@mistake("tiled_attention_backward", hint="The gradient of a float16 tensor is float16.")
def gradients_in_float32(q, k, v, o, lse, do, block_q, block_k, causal=False):
    return _backward(q, k, v, o, lse, do, block_q, block_k, causal, "float32")


# --- hbm_traffic ---------------------------------------------------------------------------------------------------


def _traffic(n, d, block_q, block_k, size, tiles=None, naive=None, tiled=None):
    sizes = (n, d, block_q, block_k, size)
    if min(sizes) < 1:
        raise ValueError(f"sizes must be at least 1, got {sizes}")
    tiles = -(-n // block_q) if tiles is None else tiles
    naive = 4 * n * d + 4 * n * n if naive is None else naive
    tiled = 2 * n * d + tiles * 2 * n * d if tiled is None else tiled
    return {"naive": naive * size, "tiled": tiled * size}


@mistake("hbm_traffic", hint="5 tokens in tiles of 2 are three tiles: round up.")
def rounds_the_tiles_down(n, d, block_q, block_k, bytes_per_element):
    return _traffic(n, d, block_q, block_k, bytes_per_element, tiles=n // max(block_q, 1))


@mistake("hbm_traffic", hint="Who walks over whom? Every *query* tile reads all keys, so block_q decides.")
def counts_key_tiles(n, d, block_q, block_k, bytes_per_element):
    return _traffic(n, d, block_q, block_k, bytes_per_element, tiles=-(-n // max(block_k, 1)))


@mistake("hbm_traffic", hint="S is written and read again, and so is P: four times N² elements.")
def matrix_moves_twice(n, d, block_q, block_k, bytes_per_element):
    return _traffic(n, d, block_q, block_k, bytes_per_element, naive=4 * n * d + 2 * n * n)


@mistake("hbm_traffic", hint="There are four matrices of N × d: Q, K, V and O.")
def output_is_not_counted(n, d, block_q, block_k, bytes_per_element):
    tiles = -(-n // max(block_q, 1))
    return _traffic(
        n, d, block_q, block_k, bytes_per_element, naive=3 * n * d + 4 * n * n, tiled=(1 + 2 * tiles) * n * d
    )


@mistake("hbm_traffic", hint="K and V do not stay on the chip: every query tile loads them again.")
def keys_are_read_once(n, d, block_q, block_k, bytes_per_element):
    return _traffic(n, d, block_q, block_k, bytes_per_element, tiles=1)


@mistake("hbm_traffic", hint="Q and O belong to one query tile each: they move once, whatever the number of tiles.")
def queries_are_read_in_every_walk(n, d, block_q, block_k, bytes_per_element):
    tiles = -(-n // max(block_q, 1))
    return _traffic(n, d, block_q, block_k, bytes_per_element, tiled=tiles * 4 * n * d)


@mistake("hbm_traffic", hint="Those are elements. Each has bytes_per_element bytes.")
def counts_elements(n, d, block_q, block_k, bytes_per_element):
    checked = _traffic(n, d, block_q, block_k, bytes_per_element)
    return {name: count // bytes_per_element for name, count in checked.items()}


@mistake("hbm_traffic", hint="Bytes are whole: / gives a float, // an int.")
def returns_floats(n, d, block_q, block_k, bytes_per_element):
    return {name: count / 1 for name, count in _traffic(n, d, block_q, block_k, bytes_per_element).items()}


@mistake("hbm_traffic", hint="A tile without rows means nothing: ValueError, with the number in its message.")
def sizes_are_not_checked(n, d, block_q, block_k, bytes_per_element):
    return _traffic(abs(n) + (n == 0), d, block_q or 1, block_k, bytes_per_element)


# --- growth_of_costs -----------------------------------------------------------------------------------------------


def _growth(n, d, block_q, size, storage=None, traffic="tiled", log=math.log2, flops=None):
    storage = storage or (lambda tokens: tokens * d * size + 4 * tokens)
    flops = flops or (lambda tokens: 4 * tokens * tokens * d)
    counts = {
        "storage": storage,
        "traffic": lambda tokens: hbm_traffic(tokens, d, block_q, 1, size)[traffic],
        "flops": flops,
    }
    return {name: log(count(2 * n) / count(n)) for name, count in counts.items()}


@mistake("growth_of_costs", hint="The ratio is a power of two: its logarithm to base 2 is the exponent.")
def natural_logarithm(n, d, block_q, bytes_per_element):
    return _growth(n, d, block_q, bytes_per_element, log=math.log)


@mistake("growth_of_costs", hint="The exponent is asked for, not the ratio: a ratio of 4 is an exponent of 2.")
def returns_the_ratio(n, d, block_q, bytes_per_element):
    return _growth(n, d, block_q, bytes_per_element, log=lambda ratio: ratio)


@mistake("growth_of_costs", hint="That is the traffic of the naive way. Which one does FlashAttention have?")
def traffic_of_the_naive_way(n, d, block_q, bytes_per_element):
    return _growth(n, d, block_q, bytes_per_element, traffic="naive")


@mistake("growth_of_costs", hint="Nothing of N × N is ever stored: what is left after the last tile?")
def stores_the_matrix(n, d, block_q, bytes_per_element):
    return _growth(n, d, block_q, bytes_per_element, storage=lambda tokens: tokens * tokens * bytes_per_element)


@mistake(
    "growth_of_costs", hint="Every query meets every key, in tiles or not. Twice the tokens, four times the scores."
)
def believes_that_operations_are_linear(n, d, block_q, bytes_per_element):
    return _growth(n, d, block_q, bytes_per_element, flops=lambda tokens: 4 * tokens * d)


@mistake("growth_of_costs", hint="That is what the slide says. Count the bytes that move, with hbm_traffic.")
def believes_that_traffic_is_linear(n, d, block_q, bytes_per_element):
    return _growth(n, d, block_q, bytes_per_element) | {"traffic": 1.0}


# --- add_bias ------------------------------------------------------------------------------------------------------


@triton.jit
def _bias_kernel(
    x_ptr, b_ptr, y_ptr, M, N, stride_xm, stride_xn, stride_b,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, WRONG: tl.constexpr,
):  # fmt: skip
    if WRONG == "ids":
        rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
        columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    else:
        rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
        columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    x_at = x_ptr + rows[:, None] * stride_xm + columns[None, :] * stride_xn
    if WRONG == "load":
        x = tl.load(x_at)
    else:
        x = tl.load(x_at, mask=inside, other=0.0)
    if WRONG == "rows":
        b = tl.load(b_ptr + rows * stride_b, mask=rows < N, other=0.0)[:, None]
    else:
        b = tl.load(b_ptr + columns * stride_b, mask=columns < N, other=0.0)[None, :]
    y_at = y_ptr + rows[:, None] * N + columns[None, :]
    if WRONG == "store":
        tl.store(y_at, x + b)
    elif WRONG == "in place":
        tl.store(x_at, x + b, mask=inside)
    elif WRONG == "adds":
        tl.store(y_at, tl.load(y_at, mask=inside, other=0.0) + x + b, mask=inside)
    else:
        tl.store(y_at, x + b, mask=inside)


def _check_bias(x, b):
    if b.shape != (x.shape[1],):
        raise ValueError(f"x has {x.shape[1]} columns, b has shape {list(b.shape)}")


def _bias(x, b, wrong="", block=32, strides=None, grid=None):
    m, n = x.shape
    y = torch.empty(m, n, dtype=x.dtype)
    grid = grid or (triton.cdiv(m, block), triton.cdiv(n, block))
    strides = strides or (*x.stride(), b.stride(0))
    _bias_kernel[grid](x, b, y, m, n, *strides, BLOCK_M=block, BLOCK_N=block, WRONG=wrong)
    return x if wrong == "in place" else y


@mistake("add_bias", hint="The last tile is ragged: mask the load of x, it reads behind the end.")
def load_without_mask(x, b):
    _check_bias(x, b)
    return _bias(x, b, "load")


@mistake("add_bias", hint="The last tile is ragged: mask the store too, it writes behind the end.")
def store_without_mask(x, b):
    _check_bias(x, b)
    return _bias(x, b, "store")


@mistake("add_bias", hint="Element (i, j) of x lies i * stride_0 + j * stride_1 further on. You took x for contiguous.")
def x_is_taken_for_contiguous(x, b):
    _check_bias(x, b)
    return _bias(x, b, strides=(x.shape[1], 1, b.stride(0)))


@mistake("add_bias", hint="b has a stride as well: `b[::2]` does not lie element after element.")
def b_is_taken_for_contiguous(x, b):
    _check_bias(x, b)
    return _bias(x, b, strides=(*x.stride(), 1))


@mistake("add_bias", hint="The bias belongs to the column j, and broadcasts along the rows: [None, :].")
def bias_along_the_rows(x, b):
    _check_bias(x, b)
    return _bias(x, b, "rows")


@mistake("add_bias", hint="45 rows in tiles of 32 are two tiles: round the grid up (triton.cdiv).")
def grid_rounds_down(x, b):
    _check_bias(x, b)
    return _bias(x, b, grid=(max(x.shape[0] // 32, 1), max(x.shape[1] // 32, 1)))


@mistake(
    "add_bias",
    hint="Axis 0 of the grid counts row tiles, axis 1 column tiles. Does the kernel ask for them in that order?",
)
def program_ids_are_swapped(x, b):
    _check_bias(x, b)
    return _bias(x, b, "ids")


@mistake("add_bias", hint="The output buffer holds anything at first: store into it, do not add to it.")
def adds_to_the_output_buffer(x, b):
    _check_bias(x, b)
    return _bias(x, b, "adds")


@mistake("add_bias", hint="The sum was written over x. The output is a tensor of its own.")
def writes_over_x(x, b):
    _check_bias(x, b)
    return _bias(x, b, "in place")


@mistake("add_bias", hint="torch has added, not your kernel. The wrapper allocates and launches.")
def torch_does_it(x, b):
    _check_bias(x, b)
    return x + b


@mistake(
    "add_bias", hint="One program with one huge tile does not fit on a chip, and all others stand idle. Cut into tiles."
)
def one_program_for_everything(x, b):
    _check_bias(x, b)
    return _bias(x, b, block=max(triton.next_power_of_2(size) for size in x.shape), grid=(1, 1))


@mistake("add_bias", hint="A bias whose length is not that of a row: ValueError, before anything is launched.")
def length_is_not_checked(x, b):
    return _bias(x, b if len(b) >= x.shape[1] else torch.cat([b, b, b]))


# --- softmax_rows --------------------------------------------------------------------------------------------------


@triton.jit
def _rows_kernel(x_ptr, y_ptr, N, stride_xm, stride_xn, BLOCK: tl.constexpr, WRONG: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < N
    x_at = x_ptr + row * stride_xm + columns * stride_xn
    if WRONG == "zeros":
        x = tl.load(x_at, mask=inside, other=0.0)
    elif WRONG == "no other":
        x = tl.load(x_at, mask=inside)
    elif WRONG == "no mask":
        x = tl.load(x_at)
    else:
        x = tl.load(x_at, mask=inside, other=float("-inf"))
    if WRONG != "half":
        x = x.to(tl.float32)
    if WRONG == "no maximum":
        e = tl.exp(x)
    else:
        e = tl.exp(x - tl.max(x, 0))
    if WRONG == "half":
        e = e.to(x_ptr.dtype.element_ty)
    if WRONG == "no division":
        y = e
    else:
        y = e / tl.sum(e, 0)
    y_at = y_ptr + row * N + columns
    if WRONG == "store":
        tl.store(y_at, y.to(y_ptr.dtype.element_ty))
    elif WRONG == "in place":
        tl.store(x_at, y.to(x_ptr.dtype.element_ty), mask=inside)
    else:
        tl.store(y_at, y.to(y_ptr.dtype.element_ty), mask=inside)


def _rows(x, wrong="", strides=None, block=None, dtype=None):
    y = torch.empty(x.shape, dtype=dtype or x.dtype)
    block = block or triton.next_power_of_2(x.shape[1])
    _rows_kernel[(x.shape[0],)](x, y, x.shape[1], *(strides or x.stride()), BLOCK=block, WRONG=wrong)
    return x if wrong == "in place" else y


@mistake(
    "softmax_rows", hint="Lanes beyond the row hold 0, and exp(0 - m) is a share. Which value has the exponential 0?"
)
def lanes_beyond_hold_zero(x):
    return _rows(x, "zeros")


@mistake("softmax_rows", hint="Lanes that are masked out hold anything unless other= says what.")
def lanes_beyond_hold_anything(x):
    return _rows(x, "no other")


@mistake(
    "softmax_rows", hint="The block is longer than the row: mask the load, or it reads the next row, or past the end."
)
def row_is_loaded_without_mask(x):
    return _rows(x, "no mask")


@mistake("softmax_rows", hint="exp(1000) is infinite. Subtract the maximum of the row first.")
def maximum_is_not_subtracted(x):
    return _rows(x, "no maximum")


@mistake("softmax_rows", hint="Your rows do not sum to 1: divide by their sum.")
def sum_is_not_divided(x):
    return _rows(x, "no division")


@mistake("softmax_rows", hint="The block is longer than the row: without a mask the store writes into the row below.")
def row_is_stored_without_mask(x):
    return _rows(x, "store")


@mistake("softmax_rows", hint="Element (i, j) lies i * stride_0 + j * stride_1 further on. You took x for contiguous.")
def strides_are_ignored(x):
    return _rows(x, strides=(x.shape[1], 1))


@mistake("softmax_rows", hint="Rows may be longer than your block: next_power_of_2 of their length.")
def block_of_1024_for_all(x):
    return _rows(x, block=1024)


@mistake("softmax_rows", hint="float16 counts up to 2048 exactly. Turn the row into float32 right after the load.")
def computes_rows_in_half_precision(x):
    return _rows(x, "half")


@mistake("softmax_rows", hint="The output has the dtype of x.")
def rows_come_out_as_float32(x):
    return _rows(x, dtype=torch.float32)


@mistake("softmax_rows", hint="torch has computed here, not your kernel.")
def torch_computes_the_rows(x):
    e = (x.float() - x.float().amax(dim=1, keepdim=True)).exp()
    return (e / e.sum(dim=1, keepdim=True)).to(x.dtype)


@mistake("softmax_rows", hint="The result was written over x. The output is a tensor of its own.")
def rows_are_written_over_x(x):
    return _rows(x, "in place")


# --- triton_attention ----------------------------------------------------------------------------------------------


@triton.jit
def _attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr,
    stride_qb, stride_qh, stride_qn, stride_qd,
    stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd,
    H, N_q, N_k, scale,
    D: tl.constexpr, D_PAD: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, CAUSAL: tl.constexpr,
    WRONG: tl.constexpr,
):  # fmt: skip
    pair = tl.program_id(0) if WRONG == "ids" else tl.program_id(1)
    tile = tl.program_id(1) if WRONG == "ids" else tl.program_id(0)
    batch = pair // H
    head = pair % H
    rows = tile * BLOCK_Q + tl.arange(0, BLOCK_Q)
    dims = tl.arange(0, D_PAD)
    q_ptr += batch * stride_qb + head * stride_qh
    if WRONG == "batch of k":
        k_ptr += head * stride_kh
    else:
        k_ptr += batch * stride_kb + head * stride_kh
    if WRONG == "head of v":
        v_ptr += batch * stride_vb
    else:
        v_ptr += batch * stride_vb + head * stride_vh
    q_inside = (rows[:, None] < N_q) & (dims[None, :] < D)
    if WRONG == "q rows":
        q = tl.load(q_ptr + rows[:, None] * stride_qn + dims[None, :] * stride_qd, mask=dims[None, :] < D, other=0.0)
    else:
        q = tl.load(q_ptr + rows[:, None] * stride_qn + dims[None, :] * stride_qd, mask=q_inside, other=0.0)
    m = tl.full([BLOCK_Q], 0.0 if WRONG == "m = 0" else float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_Q], tl.float32)
    acc = tl.zeros([BLOCK_Q, D_PAD], tl.float32)
    stop = N_k // BLOCK_K * BLOCK_K if WRONG == "loop" and N_k >= BLOCK_K else N_k
    for start in range(0, stop, BLOCK_K):
        columns = (0 if WRONG == "same keys" else start) + tl.arange(0, BLOCK_K)
        inside = (columns[:, None] < N_k) & (dims[None, :] < D)
        k_at = k_ptr + columns[:, None] * stride_kn + dims[None, :] * stride_kd
        v_at = v_ptr + columns[:, None] * stride_vn + dims[None, :] * stride_vd
        if WRONG == "k rows":
            k = tl.load(k_at, mask=dims[None, :] < D, other=0.0)
        else:
            k = tl.load(k_at, mask=inside, other=0.0)
        if WRONG == "no other":
            v = tl.load(v_at, mask=inside)
        else:
            v = tl.load(v_at, mask=inside, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        seen = columns[None, :] < N_k
        if WRONG == "no boundary":
            seen = columns[None, :] >= 0
        if CAUSAL and WRONG != "causal":
            shift = 0 if WRONG == "top left" else N_k - N_q
            if WRONG == "strict":
                seen = seen & (columns[None, :] < rows[:, None] + shift)
            elif WRONG == "local":
                seen = seen & (tl.arange(0, BLOCK_K)[None, :] <= tl.arange(0, BLOCK_Q)[:, None] + shift)
            else:
                seen = seen & (columns[None, :] <= rows[:, None] + shift)
        s = tl.where(seen, s, 0.0 if WRONG == "masked to zero" else float("-inf"))
        m_new = tl.max(s, 1) if WRONG == "tile maximum" else tl.maximum(m, tl.max(s, 1))
        safe = m_new if WRONG == "nan" else tl.where(m_new == float("-inf"), 0.0, m_new)
        if WRONG == "no maximum":
            m_new = tl.zeros([BLOCK_Q], tl.float32)
            safe = m_new
            m = m_new
        p = tl.exp2(s - safe[:, None]) if WRONG == "exp2" else tl.exp(s - safe[:, None])
        shrink = tl.exp(m - safe)
        total = (total if WRONG == "l kept" else total * shrink) + tl.sum(p, 1)
        product = tl.dot(p.to(v.dtype), v, input_precision="ieee")
        acc = (acc if WRONG == "acc kept" else acc * shrink[:, None]) + product
        m = m_new
    o = acc if WRONG == "no division" else acc / tl.where(total == 0.0, 1.0, total)[:, None]
    place = pair * N_q + rows
    o_at = o_ptr + place[:, None] * D + dims[None, :]
    o = o.to(o_ptr.dtype.element_ty)
    if WRONG == "store":
        tl.store(o_at, o, mask=dims[None, :] < D)
    elif WRONG == "adds":
        tl.store(o_at, tl.load(o_at, mask=q_inside, other=0.0) + o, mask=q_inside)
    elif WRONG != "empty":
        tl.store(o_at, o, mask=q_inside)
    lse = tl.log(total) if WRONG == "lse without m" else m + tl.log(total)
    if WRONG != "empty":
        tl.store(lse_ptr + place, lse, mask=rows < N_q)


def _check_attention(q, k, v):
    if k.shape[3] != q.shape[3] or v.shape != k.shape:
        raise ValueError(f"q {list(q.shape)}, k {list(k.shape)} and v {list(v.shape)} do not fit together")


def _attention(q, k, v, causal, wrong="", scale=None, d_pad=None, block_q=32, block_k=32, strides=None, dtype=None):
    _check_attention(q, k, v)
    batch, heads, n_q, d = q.shape
    o = torch.empty(batch, heads, n_q, d, dtype=dtype or q.dtype)
    lse = torch.empty(batch, heads, n_q, dtype=torch.float32)
    tiles = max(n_q // block_q, 1) if wrong == "grid" else triton.cdiv(n_q, block_q)
    _attention_kernel[(tiles, batch * heads)](
        q, k, v, o, lse, *(strides or (*q.stride(), *k.stride(), *v.stride())), heads, n_q, k.shape[2],
        scale or d**-0.5, D=d, D_PAD=d_pad or triton.next_power_of_2(max(d, 16)), BLOCK_Q=block_q, BLOCK_K=block_k,
        CAUSAL=causal, WRONG=wrong,
    )  # fmt: skip
    return o, lse


@mistake(
    "triton_attention",
    hint="A key beyond N_k was loaded as 0 and has score 0: that is a weight. Set its score to -inf.",
)
def keys_beyond_the_end_count(q, k, v, causal=False):
    return _attention(q, k, v, causal, "no boundary")


@mistake(
    "triton_attention",
    hint="The last query tile is ragged: mask the store, or it writes into the next head or past the end.",
)
def output_is_stored_without_mask(q, k, v, causal=False):
    return _attention(q, k, v, causal, "store")


@mistake("triton_attention", hint="The rows are not always D apart: pass q.stride(2) and the others, and use them.")
def strides_are_taken_for_granted(q, k, v, causal=False):
    plain = [(t.shape[1] * t.shape[2] * t.shape[3], t.shape[2] * t.shape[3], t.shape[3], 1) for t in (q, k, v)]
    return _attention(q, k, v, causal, strides=[stride for strides in plain for stride in strides])


@mistake("triton_attention", hint="40 queries in tiles of 32 are two programs: round the grid up (triton.cdiv).")
def too_few_programs(q, k, v, causal=False):
    return _attention(q, k, v, causal, "grid")


@mistake(
    "triton_attention", hint="72 keys in tiles of 32 are three steps of the loop: the last, ragged one is missing."
)
def last_key_tile_is_left_out(q, k, v, causal=False):
    return _attention(q, k, v, causal, "loop")


@mistake(
    "triton_attention",
    hint="Every pointer needs the offset of its batch. K's has none: sentence 1 reads the keys of sentence 0.",
)
def batch_offset_missing_on_k(q, k, v, causal=False):
    return _attention(q, k, v, causal, "batch of k")


@mistake(
    "triton_attention",
    hint="Every pointer needs the offset of its head. V's has none: all heads mix the values of head 0.",
)
def head_offset_missing_on_v(q, k, v, causal=False):
    return _attention(q, k, v, causal, "head of v")


@mistake(
    "triton_attention",
    hint="Which axis of your grid counts query tiles, and which one heads? Kernel and launch disagree.",
)
def grid_axes_are_swapped(q, k, v, causal=False):
    return _attention(q, k, v, causal, "ids")


@mistake("triton_attention", hint="tl.arange needs a power of two: pad d = 24 to 32 lanes, and mask those beyond d.")
def arange_over_d(q, k, v, causal=False):
    return _attention(q, k, v, causal, d_pad=q.shape[3])


@mistake(
    "triton_attention", hint="Every step of the loop loads the same keys: add the start of the tile to the offsets."
)
def key_offsets_do_not_move(q, k, v, causal=False):
    return _attention(q, k, v, causal, "same keys")


@mistake("triton_attention", hint="exp(1000) is infinite. Keep the running maximum, and subtract it.")
def kernel_without_running_maximum(q, k, v, causal=False):
    return _attention(q, k, v, causal, "no maximum")


@mistake(
    "triton_attention", hint="The maximum may not fall when a tile has smaller scores: tl.maximum(m, tl.max(s, 1))."
)
def kernel_takes_the_maximum_of_the_tile(q, k, v, causal=False):
    return _attention(q, k, v, causal, "tile maximum")


@mistake("triton_attention", hint="All scores may be below -50000. Start the running maximum at -inf.")
def kernel_starts_from_zero(q, k, v, causal=False):
    return _attention(q, k, v, causal, "m = 0")


@mistake("triton_attention", hint="The accumulator was made with an older maximum: multiply it by exp(m_old - m_new).")
def kernel_keeps_the_accumulator(q, k, v, causal=False):
    return _attention(q, k, v, causal, "acc kept")


@mistake("triton_attention", hint="The sum l was made with an older maximum: multiply it by exp(m_old - m_new) too.")
def kernel_keeps_the_sum(q, k, v, causal=False):
    return _attention(q, k, v, causal, "l kept")


@mistake("triton_attention", hint="The last query sees the last key: add N_k - N_q to the row.")
def kernel_is_causal_from_the_top_left(q, k, v, causal=False):
    return _attention(q, k, v, causal, "top left")


@mistake("triton_attention", hint="≤, not <: a token may look at itself.")
def kernel_leaves_itself_out(q, k, v, causal=False):
    return _attention(q, k, v, causal, "strict")


@mistake(
    "triton_attention",
    hint="Compare positions in the whole, not in the tile: row tile * BLOCK_Q + r, column start + c.",
)
def kernel_is_causal_inside_the_tile(q, k, v, causal=False):
    return _attention(q, k, v, causal, "local")


@mistake("triton_attention", hint="With causal=True your answer is the same as without.")
def kernel_ignores_causal(q, k, v, causal=False):
    return _attention(q, k, v, causal, "causal")


@mistake("triton_attention", hint="0 is a score like any other, with the weight exp(0 - m). Masked scores become -inf.")
def masked_scores_are_zero(q, k, v, causal=False):
    return _attention(q, k, v, causal, "masked to zero")


@mistake("triton_attention", hint="The scores are divided by √d.")
def kernel_does_not_scale(q, k, v, causal=False):
    return _attention(q, k, v, causal, scale=1.0)


@mistake("triton_attention", hint="By √d, not by d.")
def kernel_scales_by_d(q, k, v, causal=False):
    return _attention(q, k, v, causal, scale=1 / q.shape[3])


@mistake(
    "triton_attention", hint="By the root of d, not of the padded d: lanes that are not there add nothing to a score."
)
def kernel_scales_by_padded_d(q, k, v, causal=False):
    return _attention(q, k, v, causal, scale=triton.next_power_of_2(q.shape[3]) ** -0.5)


@mistake(
    "triton_attention",
    hint="2^x for the weights and e^x for the rescaling: take one of them, with log2(e) where it is exp2.",
)
def exp_and_exp2_are_mixed(q, k, v, causal=False):
    return _attention(q, k, v, causal, "exp2")


@mistake("triton_attention", hint="After the last tile, divide the accumulator by l.")
def kernel_never_divides(q, k, v, causal=False):
    return _attention(q, k, v, causal, "no division")


@mistake("triton_attention", hint="log(l) is relative to the maximum: the log-sum-exp is m + log(l).")
def kernel_stores_log_l(q, k, v, causal=False):
    return _attention(q, k, v, causal, "lse without m")


@mistake(
    "triton_attention", hint="The last query tile sticks out of q: mask its rows on the load, not only on the store."
)
def query_rows_are_loaded_without_mask(q, k, v, causal=False):
    return _attention(q, k, v, causal, "q rows")


@mistake("triton_attention", hint="The last key tile sticks out of k: mask its rows on the load.")
def key_rows_are_loaded_without_mask(q, k, v, causal=False):
    return _attention(q, k, v, causal, "k rows")


@mistake(
    "triton_attention", hint="Masked lanes hold anything without other=. A weight of 0 does not help: 0 · nan is nan."
)
def values_are_loaded_without_other(q, k, v, causal=False):
    return _attention(q, k, v, causal, "no other")


@mistake("triton_attention", hint="The output buffer holds anything at first. Accumulate in registers and store once.")
def kernel_adds_to_the_output(q, k, v, causal=False):
    return _attention(q, k, v, causal, "adds")


@mistake(
    "triton_attention",
    hint="Rows that see nothing have m = -inf, and -inf minus -inf is nan. Put a stand-in into the exponent.",
)
def kernel_makes_nan_of_empty_rows(q, k, v, causal=False):
    return _attention(q, k, v, causal, "nan")


@mistake("triton_attention", hint="The output has the dtype of q; only the log-sum-exp is float32.")
def kernel_returns_float32(q, k, v, causal=False):
    return _attention(q, k, v, causal, dtype=torch.float32)


@mistake("triton_attention", hint="Nothing is stored: what comes back is what torch.empty found in memory.")
def kernel_is_empty(q, k, v, causal=False):
    return _attention(q, k, v, causal, "empty")


@mistake(
    "triton_attention",
    hint="One tile over all keys is the score matrix again, and fits on no chip. Walk in tiles of at most 64.",
)
def kernel_does_not_tile(q, k, v, causal=False):
    return _attention(q, k, v, causal, block_k=triton.next_power_of_2(max(k.shape[2], 16)))


@triton.jit
def _copy_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < N, other=0.0), mask=at < N)


@mistake(
    "triton_attention",
    hint="The kernel copies what torch has computed. Scores, softmax and products belong in the kernel.",
)
def kernel_copies_what_torch_computed(q, k, v, causal=False):
    _check_attention(q, k, v)
    s = q.float() @ k.float().transpose(-2, -1) / math.sqrt(q.shape[3])
    if causal:
        hidden = torch.arange(s.shape[3]) > torch.arange(s.shape[2])[:, None] + s.shape[3] - s.shape[2]
        s = s.masked_fill(hidden, -math.inf)
    done = (torch.softmax(s, dim=-1).nan_to_num(0.0) @ v.float()).to(q.dtype)
    o = torch.empty_like(done)
    _copy_kernel[(triton.cdiv(done.numel(), 256),)](done, o, done.numel(), BLOCK=256)
    return o, torch.logsumexp(s, dim=-1)


@mistake(
    "triton_attention", hint="The wrapper multiplies q by the scale before the launch. That belongs in the kernel."
)
def wrapper_scales_the_queries(q, k, v, causal=False):
    _check_attention(q, k, v)
    return _attention((q.float() * q.shape[3] ** -0.5).to(q.dtype), k, v, causal, scale=1.0)


@mistake("triton_attention", hint="q and k of different d: ValueError with both sizes, before anything is launched.")
def sizes_are_taken_for_granted(q, k, v, causal=False):
    d = min(q.shape[3], k.shape[3], v.shape[3])
    n = min(k.shape[2], v.shape[2])
    return _attention(q[..., :d], k[..., :n, :d], v[..., :n, :d], causal)

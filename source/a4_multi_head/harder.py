"""Harder inputs of assignment 4: what holds of every call that its docstrings allow."""

import torch

from autograder.student_tools.harder_inputs import about, holds, refused
from autograder.student_tools.slow_definitions import dot_product, mixed_number

WITHOUT = {}

about("split_heads")
about("merge_heads")
about("fused_qkv")
about("multi_head_attention", refuses="w_q.1 w_k.1 w_o.0")
about("multi_head_sum", refuses="w_heads.0")
about("grouped_query_attention", refuses="k.1 v.1")
about("attention_flops")
about("attention_matrix_bytes")
about("crossover_length")
about("explain_memory_figure")


def _times(row, matrix):
    return [dot_product(row, column.tolist()) for column in matrix.T]


def _allowed(mask, sentence, head, query, keys):
    """Which keys the last query of the last head may see."""
    if mask is None:
        return []
    while mask.ndim < 4:
        mask = mask.unsqueeze(0) if mask.ndim == 2 else mask.unsqueeze(1)
    picked = [index if size > 1 else 0 for index, size in zip((sentence, head, query), mask.shape)]
    row = mask[picked[0], picked[1], picked[2]].tolist()
    return row * keys if len(row) < keys else row


@holds("split_heads", "Each number is where the docstring puts it: a column of one head.")
def columns_of_heads(split_heads, x, num_heads):
    parts = split_heads(x, num_heads)
    width = x.shape[-1] // num_heads
    if parts.shape != (*x.shape[:1], num_heads, x.shape[1], width):
        return False
    return all(
        torch.equal(parts[:, column // width, :, column % width], x[..., column])
        for column in range(x.shape[-1])
    )


@holds("split_heads", "Columns that do not divide into the heads, and no heads, are refused.")
def heads_that_do_not_fit(split_heads, x, num_heads):
    return refused(split_heads, x, x.shape[-1] + 1) and refused(split_heads, x, 0)


@holds("merge_heads", "Head after head, the columns are those of the heads.")
def heads_side_by_side(merge_heads, x):
    together = merge_heads(x)
    width = x.shape[-1]
    if together.shape != (len(x), x.shape[2], x.shape[1] * width):
        return False
    return all(
        torch.equal(together[..., head * width : (head + 1) * width], x[:, head])
        for head in range(x.shape[1])
    )


@holds("fused_qkv", "One number of queries, keys and values each, by loops.")
def one_number_of_three(fused_qkv, x, w_qkv, num_heads):
    answer = fused_qkv(x, w_qkv, num_heads)
    third = w_qkv.shape[1] // 3
    sizes = (len(x), num_heads, x.shape[1], third // num_heads)
    if any(part.shape != sizes for part in answer):
        return False
    width, row = third // num_heads, x[-1, -1].tolist()
    columns = [third * part + (num_heads - 1) * width for part in range(3)]
    right = [dot_product(row, w_qkv[:, column].tolist()) for column in columns]
    return [float(part[-1, -1, -1, 0]) for part in answer], right


@holds("fused_qkv", "Columns that do not divide by three times the heads, and no heads, are refused.")
def columns_that_do_not_divide(fused_qkv, x, w_qkv, num_heads):
    odd = torch.cat([w_qkv, w_qkv[:, :1]], dim=1)
    return refused(fused_qkv, x, odd, num_heads) and refused(fused_qkv, x, w_qkv, 0)


def _one_number(x, rows, w_q, w_k, w_v, output, num_heads, mask):
    """The last number of the last sentence's last token, head by head."""
    width, width_v = w_q.shape[1] // num_heads, w_v.shape[1] // num_heads
    number = 0.0
    for head in range(num_heads):
        of_head = slice(head * width, (head + 1) * width)
        query = _times(x[-1, -1].tolist(), w_q[:, of_head])
        keys = [_times(row, w_k[:, of_head]) for row in rows[-1].tolist()]
        allowed = _allowed(mask, len(x) - 1, head, x.shape[1] - 1, len(keys))
        for column in range(width_v):
            weights = w_v[:, head * width_v + column].tolist()
            values = [dot_product(row, weights) for row in rows[-1].tolist()]
            number += mixed_number(query, keys, values, allowed) * output[head][column]
    return number


@holds("multi_head_attention", "One number of the answer, head by head, by loops.")
def one_number(multi_head_attention, x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    answer = multi_head_attention(x, w_q, w_k, w_v, w_o, num_heads, mask=mask, x_kv=x_kv)
    rows = x if x_kv is None else x_kv
    output = w_o[:, -1].reshape(num_heads, -1).tolist()
    right = _one_number(x, rows, w_q, w_k, w_v, output, num_heads, mask)
    return float(answer[-1, -1, -1]), right


@holds("multi_head_attention", "The first sentence alone has its part of the answer.")
def first_sentence(multi_head_attention, x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    answer = multi_head_attention(x, w_q, w_k, w_v, w_o, num_heads, mask=mask, x_kv=x_kv)
    own_mask = mask[:1] if mask is not None and mask.ndim > 2 else mask
    own_keys = None if x_kv is None else x_kv[:1]
    alone = multi_head_attention(x[:1], w_q, w_k, w_v, w_o, num_heads, mask=own_mask, x_kv=own_keys)
    return answer[:1], alone


@holds("multi_head_attention", "Where no key is allowed, the row is zeros, with finite gradients.")
def no_key(multi_head_attention, x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    keys = x.shape[1] if x_kv is None else x_kv.shape[1]
    nothing = torch.zeros(x.shape[1], keys).bool()
    x = x.clone().requires_grad_()
    answer = multi_head_attention(x, w_q, w_k, w_v, w_o, num_heads, mask=nothing, x_kv=x_kv)
    if answer.requires_grad:
        answer.sum().backward()
    return not answer.any() and (x.grad is None or bool(x.grad.isfinite().all()))


@holds("multi_head_attention", "Keys and values in another order, with the mask's columns, change nothing.")
def order_of_keys(multi_head_attention, x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    if x_kv is None:
        return None
    turned = None if mask is None else mask.flip(-1)
    flipped = x_kv.flip(1)
    return (
        multi_head_attention(x, w_q, w_k, w_v, w_o, num_heads, mask=turned, x_kv=flipped),
        multi_head_attention(x, w_q, w_k, w_v, w_o, num_heads, mask=mask, x_kv=x_kv),
    )


@holds("multi_head_attention", "Columns that do not divide into the heads are refused.")
def heads_do_not_divide(multi_head_attention, x, w_q, w_k, w_v, w_o, num_heads, mask=None, x_kv=None):
    many = w_q.shape[1] + w_v.shape[1] + 1
    narrow = refused(multi_head_attention, x, w_q, w_k, w_v, w_o, many, mask, x_kv)
    wide = torch.cat([w_v, w_v[:, :1]], dim=1)
    rows = torch.cat([w_o, w_o[:1]])
    fits = num_heads == 1
    return narrow and (fits or refused(multi_head_attention, x, w_q, w_k, wide, rows, num_heads, mask, x_kv))


@holds("multi_head_sum", "One number of the answer, head by head, by loops.")
def one_number_of_the_sum(multi_head_sum, x, w_q, w_k, w_v, w_heads, num_heads, mask=None):
    answer = multi_head_sum(x, w_q, w_k, w_v, w_heads, num_heads, mask)
    right = _one_number(x, x, w_q, w_k, w_v, w_heads[..., -1].tolist(), num_heads, mask)
    return float(answer[-1, -1, -1]), right


@holds("multi_head_sum", "With the output matrices of all heads but the first 0, and with those alone: the two add up.")
def heads_add_up(multi_head_sum, x, w_q, w_k, w_v, w_heads, num_heads, mask=None):
    first, rest = w_heads.clone(), w_heads.clone()
    first[1:] = 0
    rest[:1] = 0
    whole = multi_head_sum(x, w_q, w_k, w_v, w_heads, num_heads, mask)
    parts = [multi_head_sum(x, w_q, w_k, w_v, part, num_heads, mask) for part in (first, rest)]
    return parts[0] + parts[1], whole


@holds("grouped_query_attention", "One number of the last head, by loops.")
def one_grouped_number(grouped_query_attention, q, k, v, mask=None):
    answer = grouped_query_attention(q, k, v, mask)
    allowed = _allowed(mask, len(q) - 1, q.shape[1] - 1, q.shape[2] - 1, k.shape[2])
    query, keys = q[-1, -1, -1].tolist(), k[-1, -1].tolist()
    right = mixed_number(query, keys, v[-1, -1, :, -1].tolist(), allowed)
    return float(answer[-1, -1, -1, -1]), right


@holds("grouped_query_attention", "Keys and values written out once for each query head give the same.")
def written_out(grouped_query_attention, q, k, v, mask=None):
    times = q.shape[1] // k.shape[1]
    wide = [x.repeat_interleave(times, dim=1) for x in (k, v)]
    return grouped_query_attention(q, k, v, mask), grouped_query_attention(q, *wide, mask)


@holds("grouped_query_attention", "Heads that do not divide into groups are refused.")
def groups_that_do_not_fit(grouped_query_attention, q, k, v, mask=None):
    more = torch.cat([k] + [k[:, :1]] * q.shape[1], dim=1), torch.cat([v] + [v[:, :1]] * q.shape[1], dim=1)
    return refused(grouped_query_attention, q, *more)


@holds("grouped_query_attention", "Where no key is allowed, the row is zeros.")
def no_key_in_a_group(grouped_query_attention, q, k, v, mask=None):
    answer = grouped_query_attention(q, k, v, torch.zeros(q.shape[2], k.shape[2]).bool())
    return answer, torch.zeros_like(answer)


@holds("attention_flops", "Python ints: four parts and their sum; a batch twice as large costs twice.")
def parts_and_total(attention_flops, b, n, d_model, num_heads, d_head):
    costs = attention_flops(b, n, d_model, num_heads, d_head)
    double = attention_flops(2 * b, n, d_model, num_heads, d_head)
    if set(costs) != {"qkv", "scores", "values", "output", "total"}:
        return False
    parts = sum(costs[key] for key in ("qkv", "scores", "values", "output"))
    are_ints = all(type(cost) is int for cost in costs.values())
    return are_ints and parts == costs["total"] and all(double[key] == 2 * costs[key] for key in costs)


@holds("attention_flops", "Twice the tokens: projections cost twice, scores and values four times.")
def growth_with_tokens(attention_flops, b, n, d_model, num_heads, d_head):
    short, long = (attention_flops(b, size, d_model, num_heads, d_head) for size in (n, 2 * n))
    factors = {"qkv": 2, "output": 2, "scores": 4, "values": 4}
    return all(long[key] == factor * short[key] for key, factor in factors.items())


@holds("attention_flops", "A wider model costs only its projections more; of the rest heads times width counts.")
def growth_with_width(attention_flops, b, n, d_model, num_heads, d_head):
    costs = attention_flops(b, n, d_model, num_heads, d_head)
    wide = attention_flops(b, n, 3 * d_model, num_heads, d_head)
    turned = attention_flops(b, n, d_model, d_head, num_heads)
    factors = {"qkv": 3, "output": 3, "scores": 1, "values": 1}
    return turned == costs and all(wide[key] == f * costs[key] for key, f in factors.items())


@holds("attention_flops", "The projections to queries, keys and values cost three times the one back.")
def three_projections(attention_flops, b, n, d_model, num_heads, d_head):
    costs = attention_flops(b, n, d_model, num_heads, d_head)
    return costs["qkv"] == 3 * costs["output"] and costs["scores"] == costs["values"]


@holds("attention_flops", "With all sizes 1 each product of two numbers, added up, counts 2.")
def all_sizes_one(attention_flops, b, n, d_model, num_heads, d_head):
    return attention_flops(1, 1, 1, 1, 1)["scores"] == 2 == attention_flops(1, 1, 1, 1, 1)["output"]


@holds("attention_flops", "A size below 1 is refused.")
def sizes_below_one(attention_flops, b, n, d_model, num_heads, d_head):
    sizes = [b, n, d_model, num_heads, d_head]
    return all(
        refused(attention_flops, *sizes[:i], bad, *sizes[i + 1 :]) for i in range(5) for bad in (0, -1)
    )


@holds("attention_matrix_bytes", "A Python int; twice the tokens are four times the bytes, all else counts once.")
def bytes_grow(attention_matrix_bytes, n, num_heads, bytes_per_element):
    size = attention_matrix_bytes(n, num_heads, bytes_per_element)
    return (
        type(size) is int
        and attention_matrix_bytes(2 * n, num_heads, bytes_per_element) == 4 * size
        and attention_matrix_bytes(n, 3 * num_heads, bytes_per_element) == 3 * size
        and attention_matrix_bytes(n, num_heads, 2 * bytes_per_element) == 2 * size
        and attention_matrix_bytes(1, 1, bytes_per_element) == bytes_per_element
    )


@holds("attention_matrix_bytes", "A size below 1 is refused.")
def bytes_of_nothing(attention_matrix_bytes, n, num_heads, bytes_per_element):
    return (
        refused(attention_matrix_bytes, 0, num_heads, bytes_per_element)
        and refused(attention_matrix_bytes, n, 0, bytes_per_element)
        and refused(attention_matrix_bytes, n, num_heads, 0)
    )


@holds("crossover_length", "A Python int that doubles with the width: by your own counts the two parts are equal there.")
def crossover_grows(crossover_length, d_model):
    length = crossover_length(d_model)
    return type(length) is int and crossover_length(2 * d_model) == 2 * length and refused(crossover_length, 0)


@holds("crossover_length", "With N = 2D scores and values cost 8D³ each pair, as four projections of D × D do.")
def crossover_of_one(crossover_length, d_model):
    n = crossover_length(d_model)
    return 4 * n * n * d_model == 8 * n * d_model * d_model


@holds("explain_memory_figure", "What it names gives the figure, in the allowed sizes; None only where nothing does.")
def gives_the_figure(explain_memory_figure, n, num_heads, claimed):
    named = explain_memory_figure(n, num_heads, claimed)
    figures = {
        (size, divisions): round(n * n * num_heads * size / (1024**divisions * 1000 ** (4 - divisions)), 3)
        for size in (1, 2, 4, 8)
        for divisions in range(5)
    }
    if named is None:
        return claimed not in figures.values()
    return figures.get(tuple(named)) == claimed

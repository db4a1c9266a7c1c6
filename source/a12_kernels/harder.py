"""Harder inputs of assignment 12: what holds of every call that its docstrings allow."""

import math

import torch

from autograder.student_tools.harder_inputs import about, holds, refused
from autograder.student_tools.slow_definitions import dot_product, mixed_number

TILE = 32

about("matmul", refuses="a.1 b.0", except_for="batch", is_kernel=True)
about("tiles_asked_for")
about("causal_attention", except_for="dtype finite", is_kernel=True)
about("causal_attention_backward", is_kernel=True)
about("split_decode", except_for="dtype finite", is_kernel=True)
about("limits")
about("busy_share")


def _same_dtypes(function, tensors, *rest):
    """Whether the first answer has the dtype of the tensors, and further floats are float32."""
    for dtype in (torch.float16, torch.float32):
        first, *others = function(*(tensor.to(dtype) for tensor in tensors), *rest)
        wide = {answer.dtype for answer in others if answer.is_floating_point()}
        if first.dtype != dtype or wide - {torch.float32}:
            return False
    return True


@holds("matmul", "One number of the product, by a loop: the last one.")
def last_number(matmul, a, b, group):
    column = [row[-1] for row in b.tolist()]
    return float(matmul(a, b, group)[0][-1, -1]), dot_product(a.tolist()[-1], column)


@holds("matmul", "A row of the product alone, and a column alone, are the same numbers.")
def parts_alone(matmul, a, b, group):
    whole, row, column = (
        matmul(left, right, group)[0] for left, right in ((a, b), (a[-1:], b), (a, b[:, :1]))
    )
    return [row[0], column[:, 0]], [whole[-1], whole[:, 0]]


@holds("matmul", "Half precision stays so: 2000 numbers of 1 + 7/1024 sum to 2013.67, and of halves 2014 is the nearest.")
def half_precision(matmul, a, b, group):
    numbers = torch.full((2, 2000), 1 + 7 / 1024).half()
    product = matmul(numbers, torch.ones(2000, 1).half(), group)[0]
    return _same_dtypes(matmul, (a, b), group) and bool((product == 2014).all())


@holds("matmul", "Each program has one tile: order has every number once, as int32.")
def every_program_once(matmul, a, b, group):
    order = matmul(a, b, group)[1]
    sizes = [(a.shape[0] + TILE - 1) // TILE, (b.shape[1] + TILE - 1) // TILE]
    numbers = sorted(order.flatten().tolist())
    return list(order.shape) == sizes and order.dtype == torch.int32 and numbers == list(range(len(numbers)))


@holds("matmul", "Below a tile of the same group is the next number; a group begins where the one before has ended.")
def down_the_columns(matmul, a, b, group):
    tall = torch.cat([a] * (5 * TILE // len(a) + 1))
    wide = torch.cat([b] * (3 * TILE // b.shape[1] + 1), dim=1)
    order = matmul(tall, wide, group)[1].tolist()
    columns = len(order[0])
    for row, numbers in enumerate(order):
        if row % group:
            if any(number != above + 1 for number, above in zip(numbers, order[row - 1])):
                return False
        elif numbers[0] != row * columns:
            return False
    return True


@holds("matmul", "A group below 1 is refused.")
def no_group(matmul, a, b, group):
    return refused(matmul, a, b, 0) and refused(matmul, a, b, -group)


@holds("tiles_asked_for", "Rows and columns that are touched, counted one by one.")
def counted_one_by_one(tiles_asked_for, order, depth, programs):
    touched = set()
    for row, numbers in enumerate(order.tolist()):
        for column, number in enumerate(numbers):
            if number in range(programs):
                touched |= {("row", row), ("column", column)}
    return tiles_asked_for(order, 1, programs) == len(touched)


@holds("tiles_asked_for", "An int in proportion to the depth, and the same for the order on its side.")
def proportions(tiles_asked_for, order, depth, programs):
    count = tiles_asked_for(order, depth, programs)
    is_same = tiles_asked_for(order.T, depth, programs) == count
    return type(count) is int and is_same and tiles_asked_for(order, 3 * depth, programs) == 3 * count


@holds("tiles_asked_for", "No depth and no program are refused.")
def nothing_to_fetch(tiles_asked_for, order, depth, programs):
    return refused(tiles_asked_for, order, 0, programs) and refused(tiles_asked_for, order, depth, 0)


def _of_head(x):
    """A head's tensor as lists: the last head."""
    return x.reshape(-1, *x.shape[-2:])[-1].tolist()


@holds("causal_attention", "One number of each query of the last head, by loops: it may see no key at all.")
def numbers_of_queries(causal_attention, q, k, v):
    keys, column = _of_head(k), [row[-1] for row in _of_head(v)]
    answer = causal_attention(q, k, v)[0].reshape(-1, *q.shape[-2:])[-1, :, -1]
    right = []
    for place, query in enumerate(_of_head(q)):
        seen = place + len(keys) - q.shape[2] + 1
        right.append(mixed_number(query, keys, column, [key < seen for key in range(len(keys))]))
    return answer, torch.tensor(right)


@holds("causal_attention", "lse is the logarithm of the sum of exponentials: that of each query that sees a key.")
def sums_of_queries(causal_attention, q, k, v):
    keys, shift = _of_head(k), k.shape[2] - q.shape[2] + 1
    lse = causal_attention(q, k, v)[1].reshape(-1, q.shape[2])[-1]
    right = []
    for place, query in enumerate(_of_head(q)):
        scores = [dot_product(query, key) / math.sqrt(len(key)) for key in keys[: max(place + shift, 0)]]
        top = max(scores, default=-math.inf)
        right.append(top + math.log(math.fsum(math.exp(s - top) for s in scores)) if scores else top)
    return lse, torch.tensor(right)


@holds("causal_attention", "The last queries alone get the same, however many come before them.")
def last_queries_alone(causal_attention, q, k, v):
    half = q.shape[2] // 2
    answers = causal_attention(q[:, :, half:].contiguous(), k, v)
    return list(answers), [part[:, :, half:] for part in causal_attention(q, k, v)]


@holds("causal_attention", "o has the dtype of q, lse is float32.")
def dtypes_of_attention(causal_attention, q, k, v):
    return _same_dtypes(causal_attention, (q, k, v))


@holds("causal_attention_backward", "The gradients have the shapes of q, k and v, and are linear in do.")
def linear_gradients(causal_attention_backward, q, k, v, o, lse, do):
    answer = causal_attention_backward(q, k, v, o, lse, do)
    if [part.shape for part in answer] != [q.shape, k.shape, v.shape]:
        return False
    return list(causal_attention_backward(q, k, v, o, lse, -2 * do)), [-2 * part for part in answer]


@holds("causal_attention_backward", "The values' gradients sum to those of all queries that see a key.")
def sums_of_gradients(causal_attention_backward, q, k, v, o, lse, do):
    dv = causal_attention_backward(q, k, v, o, lse, do)[2]
    return dv.sum(dim=2), do[:, :, max(q.shape[2] - k.shape[2], 0) :].sum(dim=2)


@holds("causal_attention_backward", "The gradients are the slopes of the answer, measured by small steps.", share=5e-3)
def slopes(causal_attention_backward, q, k, v, o, lse, do):
    last = torch.zeros_like(do)
    last[..., -1] = do[..., -1]
    answer = causal_attention_backward(q, k, v, o, lse, last)
    weights = [row[-1] for row in _of_head(do)]

    def mixed(queries, keys, values):
        column = [row[-1] for row in values]
        total, shift = 0.0, len(keys) - len(queries) + 1
        for place, (query, weight) in enumerate(zip(queries, weights)):
            seen = [key < place + shift for key in range(len(keys))]
            total += weight * mixed_number(query, keys, column, seen)
        return total

    got, measured = [], []
    for which, row in enumerate((-1, 0, 0)):
        got.append(float(answer[which].reshape(-1, *answer[which].shape[-2:])[-1, row, -1]))
        totals = []
        for step in (1e-4, -1e-4):
            moved = [_of_head(x) for x in (q, k, v)]
            moved[which][row][-1] += step
            totals.append(mixed(*moved))
        measured.append((totals[0] - totals[1]) / 2e-4)
    return torch.tensor(got), torch.tensor(measured)


@holds("split_decode", "One number of the last head, by loops, and its log-sum-exp.")
def one_number_of_decoding(split_decode, q, k, v, splits):
    query, keys = q.reshape(-1, q.shape[-1])[-1].tolist(), _of_head(k)
    o, lse, _ = split_decode(q, k, v, splits)
    scores = [dot_product(query, key) / math.sqrt(len(query)) for key in keys]
    top = max(scores)
    total = top + math.log(math.fsum(math.exp(s - top) for s in scores))
    right = mixed_number(query, keys, [row[-1] for row in _of_head(v)])
    return [float(o.flatten()[-1]), float(lse.flatten()[-1])], [right, total]


@holds("split_decode", "However many keys are shared out, and into however many parts, o and lse are the same.")
def splits_are_nothing(split_decode, q, k, v, splits):
    times = 80 // k.shape[2] + 1
    keys, values = (torch.cat([x] * times, dim=2) for x in (k, v))
    keys *= torch.linspace(-2, 2, keys.shape[2]).unsqueeze(1)
    whole = split_decode(q, keys, values, 1)
    return list(whole[:2]), list(split_decode(q, keys, values, splits + 8)[:2])


@holds("split_decode", "Scores that are all 200 larger, or smaller, mix the values as before.", share=1e-3)
def scores_far_from_zero(split_decode, q, k, v, splits):
    square = (q * q).sum(dim=-1, keepdim=True)
    if float(square.min()) < 1:
        return None
    step = (200 * math.sqrt(q.shape[-1]) * q / square).unsqueeze(2)
    mixed = split_decode(q, k, v, splits)[0]
    return [split_decode(q, k + way * step, v, splits)[0] for way in (1, -1)], [mixed, mixed]


@holds("split_decode", "The sums of the parts are the whole sum, and each part has its share of the keys.")
def sums_of_parts(split_decode, q, k, v, splits):
    parts = split_decode(0 * q, k, v, splits)[2]
    counts = parts.exp().round().reshape(-1, splits)[-1].tolist()
    each = (k.shape[2] + splits - 1) // splits
    left, right = k.shape[2], []
    for _ in range(splits):
        right.append(float(min(each, left)))
        left -= int(right[-1])
    return counts == right


@holds("split_decode", "o has the dtype of q, the sums are float32; no split is refused.")
def dtypes_of_decoding(split_decode, q, k, v, splits):
    is_refused = refused(split_decode, q, k, v, 0) and refused(split_decode, q, k, v, -splits)
    return _same_dtypes(split_decode, (q, k, v), splits) and is_refused


@holds("limits", "It answers four things: three floats and a word.")
def four_answers(limits, flops, elements, bytes_per_element, peak, bandwidth):
    answer = limits(flops, elements, bytes_per_element, peak, bandwidth)
    words = answer.pop("waits_for", "")
    are_floats = all(type(number) is float for number in answer.values())
    is_complete = set(answer) == {"intensity", "seconds", "flops_a_second"}
    return are_floats and is_complete and words in ("traffic", "products")


@holds("limits", "Operations a second times seconds are the operations; none of the three is the sum of two times.")
def times_fit(limits, flops, elements, bytes_per_element, peak, bandwidth):
    sizes = (flops, elements, bytes_per_element)
    both, products, traffic = (limits(*sizes, *rates) for rates in ((peak, bandwidth), (peak, 1e30), (1e30, bandwidth)))
    product = both["seconds"] * both["flops_a_second"]
    return [product, both["seconds"]], [float(flops), max(products["seconds"], traffic["seconds"])]


@holds("limits", "Alone, each rate gives its time; twice the bytes are half the intensity.")
def rates_alone(limits, flops, elements, bytes_per_element, peak, bandwidth):
    def ask(*rates, size=bytes_per_element):
        return limits(flops, elements, size, *rates)

    alone = [ask(peak, 1e30)["seconds"] * peak, ask(1e30, bandwidth)["seconds"] * bandwidth]
    halves = [ask(peak, bandwidth, size=2 * bytes_per_element)["intensity"] * 2, alone[0] / alone[1]]
    return [*alone, *halves], [float(flops), float(elements * bytes_per_element), *[ask(peak, bandwidth)["intensity"]] * 2]


@holds("limits", "It waits for what alone takes longer; where both take as long, for products.")
def waits_for(limits, flops, elements, bytes_per_element, peak, bandwidth):
    sizes = (flops, elements, bytes_per_element)
    products, traffic = limits(*sizes, peak, 1e30), limits(*sizes, 1e30, bandwidth)
    word = limits(*sizes, peak, bandwidth)["waits_for"]
    moved = elements * bytes_per_element
    equal = limits(flops, elements, bytes_per_element, float(flops), float(moved))
    is_traffic = traffic["seconds"] > products["seconds"]
    return is_traffic == (word == "traffic") and equal["waits_for"] == "products"


@holds("busy_share", "A share of 1, a float; it never matters which of batch, heads and splits brings the programs.")
def any_programs(busy_share, batch, heads, n_q, block_q, splits, processors):
    share = busy_share(batch, heads, n_q, block_q, splits, processors)
    others = [
        busy_share(heads, splits, n_q, block_q, batch, processors),
        busy_share(1, batch * heads * splits, n_q, block_q, 1, processors),
    ]
    return type(share) is float and 0 < share <= 1 and all(abs(other - share) < 1e-9 for other in others)


@holds("busy_share", "Tiles are whole: as many queries as fill the last one are as much work.")
def whole_tiles(busy_share, batch, heads, n_q, block_q, splits, processors):
    filled = n_q + (-n_q) % block_q
    many = [busy_share(batch, heads, n, block_q, splits, processors) for n in (n_q, filled)]
    alone = busy_share(batch, heads, filled // block_q, 1, splits, processors)
    return many[0] == many[1] == alone


@holds("busy_share", "As many programs as processors, or twice as many, keep all at work; one more leaves nearly a wave idle.")
def waves(busy_share, batch, heads, n_q, block_q, splits, processors):
    full = [busy_share(1, times * processors, 1, block_q, 1, processors) for times in (1, 2)]
    more = busy_share(1, processors + 1, 1, block_q, 1, processors)
    one = busy_share(1, 1, 1, block_q, 1, processors)
    return [*full, more * 2 * processors, one * processors], [1.0, 1.0, processors + 1.0, 1.0]

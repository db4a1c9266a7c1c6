"""Harder inputs of assignment 7: what holds of every call that its docstrings allow."""

import math

import torch

from autograder.student_tools.harder_inputs import about, holds, refused
from autograder.student_tools.slow_definitions import dot_product, mixed_number, shares_of

about("online_softmax_stats", except_for="dtype")
about("merge_stats", except_for="finite")
about("tiled_attention", except_for="dtype finite", refuses="q.-1 k.-1 k.-2")
about("tiled_attention_backward", except_for="layout precision batch")
about("hbm_traffic")
about("growth_of_costs")
about("add_bias", refuses="b.0", is_kernel=True)
about("softmax_rows", is_kernel=True)
about("triton_attention", except_for="dtype finite", refuses="q.3 k.3 v.3 k.2", is_kernel=True)


@holds("online_softmax_stats", "Whatever the block, maximum and sum are the same.")
def blocks_are_nothing(online_softmax_stats, x, block):
    stats = online_softmax_stats(x, block)
    return list(online_softmax_stats(x, 1)), list(stats)


@holds("online_softmax_stats", "Maximum and sum of the last row, by a loop.")
def stats_of_a_row(online_softmax_stats, x, block):
    row = x.reshape(-1, x.shape[-1])[-1].tolist()
    top = max(row)
    total = 0.0 if top == -math.inf else math.fsum(math.exp(z - top) for z in row)
    return [float(part.reshape(-1)[-1]) for part in online_softmax_stats(x, block)], [top, total]


@holds("online_softmax_stats", "Half precision is looked at in float32; a block below 1 is refused.")
def dtype_of_stats(online_softmax_stats, x, block):
    kept = {torch.float16: torch.float32, torch.float32: torch.float32, torch.float64: torch.float64}
    right = all(
        part.dtype == wide for dtype, wide in kept.items() for part in online_softmax_stats(x.to(dtype), block)
    )
    return right and refused(online_softmax_stats, x, 0)


@holds("merge_stats", "Either set may come first, and a set without keys changes nothing.")
def order_of_sets(merge_stats, a, b):
    empty = (torch.full_like(a[0], -torch.inf), torch.zeros_like(a[1]), torch.zeros_like(a[2]))
    both = merge_stats(a, b)
    return [list(merge_stats(b, a)), list(merge_stats(a, empty)), list(merge_stats(empty, b))], [
        list(both),
        list(a),
        list(b),
    ]


@holds("merge_stats", "Sums are weighed by how far the maxima are apart: one number of each part, by hand.")
def weighed_sums(merge_stats, a, b):
    first, second = ([part.reshape(-1).tolist()[-1] for part in one] for one in (a, b))
    top = max(first[0], second[0])
    if top == -math.inf:
        return list(merge_stats(a, b)), list(a)
    weights = [math.exp(one[0] - top) for one in (first, second)]
    right = [top, *(weights[0] * p + weights[1] * q for p, q in zip(first[1:], second[1:]))]
    return [float(part.reshape(-1)[-1]) for part in merge_stats(a, b)], right


@holds("merge_stats", "The grouping does not matter.")
def grouping(merge_stats, a, b):
    left = merge_stats(merge_stats(a, b), a)
    return list(left), list(merge_stats(a, merge_stats(b, a)))


def _last(x):
    return x.reshape(-1, *x.shape[-2:])[-1].tolist()


@holds("tiled_attention", "One number of the first query, by loops: it may see no key at all.")
def one_number(tiled_attention, q, k, v, block_q, block_k, causal=False):
    answer = tiled_attention(q, k, v, block_q, block_k, causal=causal)[0]
    keys, column = _last(k), [row[-1] for row in _last(v)]
    count = len(keys) - q.shape[-2] + 1 if causal else len(keys)
    allowed = [place < count for place in range(len(keys))]
    right = mixed_number(_last(q)[0], keys, column, allowed)
    return float(answer.reshape(-1, q.shape[-2], v.shape[-1])[-1, 0, -1]), right


@holds("tiled_attention", "Whatever the tiles, the answers are the same.")
def tiles_are_nothing(tiled_attention, q, k, v, block_q, block_k, causal=False):
    answers = [tiled_attention(q, k, v, *tiles, causal=causal) for tiles in ((block_q, block_k), (2, 1))]
    return list(answers[0]), list(answers[1])


@holds("tiled_attention", "lse is the logarithm of the sum of exponentials: one row of it, by a loop.")
def one_lse(tiled_attention, q, k, v, block_q, block_k, causal=False):
    lse = tiled_attention(q, k, v, block_q, block_k)[1]
    scores = [dot_product(_last(q)[-1], key) / math.sqrt(q.shape[-1]) for key in _last(k)]
    top = max(scores)
    return float(lse.reshape(-1)[-1]), top + math.log(math.fsum(math.exp(s - top) for s in scores))


@holds("tiled_attention", "A query that sees no key has zeros and −∞; blocks below 1 are refused.")
def sees_nothing(tiled_attention, q, k, v, block_q, block_k, causal=False):
    long = torch.cat([q] * (k.shape[-2] + 1), dim=-2)
    o, lse = tiled_attention(long, k, v, block_q, block_k, causal=True)
    blind = long.shape[-2] - k.shape[-2]
    is_zero = not o[..., :blind, :].any() and bool((lse[..., :blind] == -torch.inf).all())
    return is_zero and refused(tiled_attention, q, k, v, 0, 1) and refused(tiled_attention, q, k, v, 1, 0)


@holds("tiled_attention", "o has the dtype of q, and lse float32 for half precision.")
def dtypes_of_answers(tiled_attention, q, k, v, block_q, block_k, causal=False):
    kept = {torch.float16: torch.float32, torch.float32: torch.float32, torch.float64: torch.float64}
    for dtype, wide in kept.items():
        o, lse = tiled_attention(q.to(dtype), k.to(dtype), v.to(dtype), block_q, block_k)
        if o.dtype != dtype or lse.dtype != wide:
            return False
    return True


@holds("tiled_attention_backward", "Whatever the tiles, the gradients are the same, in the shapes of q, k and v.", share=1e-4)
def tiles_of_gradients(tiled_attention_backward, q, k, v, o, lse, do, block_q, block_k, causal=False):
    answer = tiled_attention_backward(q, k, v, o, lse, do, block_q, block_k, causal=causal)
    if [part.shape for part in answer] != [q.shape, k.shape, v.shape]:
        return False
    return list(tiled_attention_backward(q, k, v, o, lse, do, 1, 2, causal=causal)), list(answer)


@holds("tiled_attention_backward", "The values' gradients sum to those of all queries that see a key.", share=1e-3)
def sums_of_gradients(tiled_attention_backward, q, k, v, o, lse, do, block_q, block_k, causal=False):
    _, _, dv = tiled_attention_backward(q, k, v, o, lse, do, block_q, block_k, causal=causal)
    seeing = (lse > -torch.inf).double().unsqueeze(-1)
    return dv.sum(dim=-2), (do * seeing).sum(dim=-2)


@holds("tiled_attention_backward", "The gradients are the slopes of the answer, measured by small steps.", share=5e-3)
def slopes(tiled_attention_backward, q, k, v, o, lse, do, block_q, block_k, causal=False):
    if causal:
        return None
    leading = q.shape[:-2]
    q, k, v = (x.reshape(-1, *x.shape[-2:])[-1] for x in (q, k, v))
    do = do.reshape(-1, *do.shape[-2:])[-1]

    def total(q, k, v):
        numbers = [[mixed_number(a, k.tolist(), c.tolist()) for c in v.T] for a in q.tolist()]
        return float((torch.tensor(numbers).double() * do).sum())

    out = torch.tensor([[mixed_number(a, k.tolist(), c.tolist()) for c in v.T] for a in q.tolist()]).double()
    scores = [[dot_product(a, b) / math.sqrt(len(a)) for b in k.tolist()] for a in q.tolist()]
    sums = [max(row) + math.log(math.fsum(math.exp(s - max(row)) for s in row)) for row in scores]
    given = [x.expand(*leading, *x.shape) for x in (q, k, v, out)]
    sums = torch.tensor(sums).double().expand(*leading, len(q))
    answer = tiled_attention_backward(*given, sums, do.expand(*leading, *do.shape), block_q, block_k)
    got, measured = [], []
    for place, gradient in enumerate(answer):
        got.append(float(gradient.reshape(-1, *gradient.shape[-2:])[-1, 0, 0]))
        totals = []
        for step in (1e-4, -1e-4):
            moved = [x.clone() for x in (q, k, v)]
            moved[place][0, 0] += step
            totals.append(total(*moved))
        measured.append((totals[0] - totals[1]) / 2e-4)
    return torch.tensor(got).double(), torch.tensor(measured).double()


@holds("hbm_traffic", "Python ints in proportion to the bytes; with one tile of all queries K and V move once.")
def proportions(hbm_traffic, n, d, block_q, block_k, bytes_per_element):
    traffic = hbm_traffic(n, d, block_q, block_k, bytes_per_element)
    single = hbm_traffic(n, d, block_q, block_k, 1)
    one_tile = hbm_traffic(n, d, n, block_k, 1)["tiled"]
    are_ints = set(traffic) == {"naive", "tiled"} and all(type(x) is int for x in traffic.values())
    scaled = {key: bytes_per_element * x for key, x in single.items()}
    return are_ints and scaled == traffic and one_tile == 4 * n * d


@holds("hbm_traffic", "Each further query tile moves K and V once more; a last tile may be smaller.")
def tiles_move(hbm_traffic, n, d, block_q, block_k, bytes_per_element):
    tiles = (n + block_q - 1) // block_q
    here = hbm_traffic(n, d, block_q, block_k, 1)["tiled"]
    return here == hbm_traffic(n, d, n, block_k, 1)["tiled"] + (tiles - 1) * 2 * n * d


@holds("hbm_traffic", "Naive traffic does not know tiles: the scores move four times, and Q, K, V and O once.")
def naive_traffic(hbm_traffic, n, d, block_q, block_k, bytes_per_element):
    here, wider = (hbm_traffic(n, size, block_q, block_k, 1)["naive"] for size in (d, d + 1))
    return here == hbm_traffic(n, d, 1, 1, 1)["naive"] and wider - here == 4 * n and here - 4 * n * d == 4 * n * n


@holds("hbm_traffic", "Sizes below 1 are refused.")
def sizes_below_one(hbm_traffic, n, d, block_q, block_k, bytes_per_element):
    sizes = [n, d, block_q, block_k, bytes_per_element]
    return all(refused(hbm_traffic, *sizes[:i], 0, *sizes[i + 1 :]) for i in range(5))


@holds("growth_of_costs", "Python floats: storage grows like n, products like n², traffic in between.")
def exponents(growth_of_costs, n, d, block_q, bytes_per_element):
    growth = growth_of_costs(n, d, block_q, bytes_per_element)
    if set(growth) != {"storage", "traffic", "flops"} or any(type(p) is not float for p in growth.values()):
        return False
    return growth["storage"] == 1 and growth["flops"] == 2 and 1 <= growth["traffic"] <= 2


@holds("growth_of_costs", "The traffic's exponent is that of Q and O once, K and V once a tile of queries.")
def exponent_of_traffic(growth_of_costs, n, d, block_q, bytes_per_element):
    tiles = [(size + block_q - 1) // block_q for size in (n, 2 * n)]
    right = math.log2(2 * (1 + tiles[1]) / (1 + tiles[0]))
    return growth_of_costs(n, d, block_q, bytes_per_element)["traffic"], right


@holds("add_bias", "A bias of zeros changes nothing, and zeros become the bias, in every row.")
def parts_of_the_sum(add_bias, x, b):
    rows = add_bias(0 * x, b)
    return [add_bias(x, 0 * b), rows[:1], rows[-1]], [x, rows[-1:], b]


@holds("add_bias", "One number of the sum: the last one.")
def last_sum(add_bias, x, b):
    return float(add_bias(x, b)[-1, -1]), math.fsum([x[-1].tolist()[-1], b.tolist()[-1]])


@holds("softmax_rows", "The last row, by a loop.")
def last_row(softmax_rows, x):
    return softmax_rows(x)[-1], torch.tensor(shares_of(x[-1].tolist()))


@holds("softmax_rows", "Rows sum to 1, and one number more in a whole row changes nothing.")
def sums_of_rows(softmax_rows, x):
    weights = softmax_rows(x)
    near = x.clamp(-50, 50)
    return [weights.sum(dim=1), softmax_rows(near + 16)], [torch.ones(len(x)), softmax_rows(near)]


@holds("softmax_rows", "Numbers far below zero have shares like any others.")
def far_below_zero(softmax_rows, x):
    near = x.clamp(-8, 8).round()
    return softmax_rows(near - 4096), softmax_rows(near)


@holds("softmax_rows", "A row that is repeated often has its shares as often, and as much smaller.")
def long_rows(softmax_rows, x):
    times = 1030 // x.shape[1] + 1
    return times * softmax_rows(x.repeat(1, times)), softmax_rows(x).repeat(1, times)


@holds("softmax_rows", "2049 equal numbers have a share of 1/2049, to the last digit of half precision.")
def shares_of_many(softmax_rows, x):
    equal = softmax_rows(torch.zeros(1, 2049).half())
    return equal.dtype == torch.float16 and bool((equal == torch.tensor(1 / 2049).half()).all())


@holds("triton_attention", "One number of the last head, of the first query and the last: it may see no key at all.")
def one_number_of_the_kernel(triton_attention, q, k, v, causal=False):
    answer = triton_attention(q, k, v, causal=causal)[0][-1, -1, :, -1].tolist()
    keys, column = _last(k), [row[-1] for row in _last(v)]
    got, right = [], []
    for place in (0, q.shape[2] - 1):
        count = len(keys) - q.shape[2] + 1 + place if causal else len(keys)
        allowed = [key < count for key in range(len(keys))]
        got.append(answer[place])
        right.append(mixed_number(_last(q)[place], keys, column, allowed))
    return got, right


@holds("triton_attention", "lse is the logarithm of the sum of exponentials: the last one of it, by a loop.")
def one_lse_of_the_kernel(triton_attention, q, k, v, causal=False):
    lse = triton_attention(q, k, v, causal=causal)[1]
    scores = [dot_product(_last(q)[-1], key) / math.sqrt(q.shape[-1]) for key in _last(k)]
    top = max(scores)
    return float(lse[-1, -1, -1]), top + math.log(math.fsum(math.exp(s - top) for s in scores))


@holds("triton_attention", "A query that sees no key has zeros and −∞.")
def kernel_sees_nothing(triton_attention, q, k, v, causal=False):
    long = torch.cat([q] * (k.shape[2] + 1), dim=2)
    o, lse = triton_attention(long, k, v, causal=True)
    blind = long.shape[2] - k.shape[2]
    return not o[:, :, :blind].any() and bool((lse[:, :, :blind] == -torch.inf).all())


@holds("triton_attention", "o has the dtype of q, and lse is float32.")
def dtypes_of_the_kernel(triton_attention, q, k, v, causal=False):
    half, wide = (triton_attention(*(x.to(dtype) for x in (q, k, v)), causal=causal) for dtype in (torch.float16, torch.float32))
    return [x.dtype for x in (*half, *wide)] == [torch.float16, *[torch.float32] * 3]


@holds("triton_attention", "Scores that are all 200 larger, or smaller, mix the values as before.", share=1e-3)
def scores_far_from_zero(triton_attention, q, k, v, causal=False):
    query = q[:, :, -1:]
    square = (query * query).sum(dim=-1, keepdim=True)
    if float(square.min()) < 1:
        return None
    step = 200 * math.sqrt(q.shape[-1]) * query / square
    mixed = triton_attention(query, k, v)[0]
    return [triton_attention(query, k + way * step, v)[0] for way in (1, -1)], [mixed, mixed]


@holds("triton_attention", "A query alone gets what it gets beside others, whose scores may be far larger.")
def query_alone(triton_attention, q, k, v, causal=False):
    beside = torch.cat([40 * q, q[:, :, -1:]], dim=2)
    return list(triton_attention(q[:, :, -1:], k, v)), [part[:, :, -1:] for part in triton_attention(beside, k, v)]


@holds("triton_attention", "Keys and values that are all repeated are mixed as before, however many they become.")
def many_keys(triton_attention, q, k, v, causal=False):
    times = 210 // k.shape[2] + 1
    o, lse = triton_attention(q, torch.cat([k] * times, dim=2), torch.cat([v] * times, dim=2))
    fewer = triton_attention(q, k, v)
    return [o, lse - math.log(times)], list(fewer)


@holds("triton_attention", "The order of the keys is nothing, however many there are.")
def order_of_keys(triton_attention, q, k, v, causal=False):
    keys, values = (torch.cat([x] * (210 // x.shape[2] + 1), dim=2) for x in (k, v))
    keys *= torch.linspace(1, -1, keys.shape[2]).unsqueeze(1)
    values *= torch.linspace(1, 2, keys.shape[2]).unsqueeze(1)
    return list(triton_attention(q, keys.flip(2), values.flip(2))), list(triton_attention(q, keys, values))


@holds("triton_attention", "A head whose numbers are all repeated gives what larger queries give, however wide it becomes.", share=1e-3)
def wide_heads(triton_attention, q, k, v, causal=False):
    times = 64 // q.shape[3] + 1
    wide = triton_attention(*(torch.cat([x] * times, dim=3) for x in (q, k, v)))[0]
    return wide, torch.cat([triton_attention(math.sqrt(times) * q, k, v)[0]] * times, dim=3)


@holds("triton_attention", "The mean of 64 times 1536 is 1536 in half precision, too, though the sum is none of its numbers.")
def sums_of_halves(triton_attention, q, k, v, causal=False):
    keys = torch.zeros(1, 1, 64, 16).half()
    o = triton_attention(keys[:, :, :3], keys, keys + 1536)[0]
    return o.dtype == torch.float16 and bool((o == 1536).all())

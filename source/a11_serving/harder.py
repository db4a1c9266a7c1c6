"""Harder inputs of assignment 11: what holds of every call that its docstrings allow."""

import math

import torch

from autograder.student_tools.harder_inputs import about, holds, refused
from autograder.student_tools.slow_definitions import dot_product, mixed_number

WITHOUT = {
    "BlockPool": "what holds depends on the calls before",
    "PagedCache": "what holds depends on the calls before",
    "batched_step": "it needs a model and a cache",
    "serve": "it needs a model and a cache",
    "PrefixIndex": "what holds depends on the calls before",
    "beam_search": "it needs a model and a cache",
}

about("reserved_bytes")
about("paged_attention")
about("sink_mass")
about("sink_attention")
about("decode_costs")
about("idle_and_decisive")


@holds("reserved_bytes", "Whole blocks hold the tokens, and waste less than a block for each text.")
def less_than_a_block(reserved_bytes, lengths, config, block_size, capacity, bytes_per_element):
    sizes = reserved_bytes(lengths, config, block_size, capacity, bytes_per_element)
    numbers = config.num_layers * config.num_kv_heads * config.d_head
    block = 2 * numbers * bytes_per_element * block_size
    waste = sizes["paged"] - sizes["needed"]
    return sizes["paged"] % block == 0 and 0 <= waste <= len(lengths) * block


@holds("reserved_bytes", "The sizes of all texts together are the sums of those of each text alone.")
def texts_add_up(reserved_bytes, lengths, config, block_size, capacity, bytes_per_element):
    whole = reserved_bytes(lengths, config, block_size, capacity, bytes_per_element)
    parts = [reserved_bytes([n], config, block_size, capacity, bytes_per_element) for n in lengths]
    return all(whole[name] == sum(part[name] for part in parts) for name in whole)


@holds("reserved_bytes", "Blocks of one token waste nothing.")
def smallest_blocks(reserved_bytes, lengths, config, block_size, capacity, bytes_per_element):
    sizes = reserved_bytes(lengths, config, 1, capacity, bytes_per_element)
    return sizes["paged"] == sizes["needed"]


def _token(stored, table, place):
    """The key or value at a place of the text: [H_kv, d]."""
    size = stored.shape[2]
    return stored[table[place // size], :, place % size]


@holds("reserved_bytes", "A text of no token, and one above the capacity, are refused.")
def lengths_that_cannot_be(reserved_bytes, lengths, config, block_size, capacity, bytes_per_element):
    rest = (config, block_size, capacity, bytes_per_element)
    return all(refused(reserved_bytes, [*lengths, n], *rest) for n in (0, capacity + 1))


@holds("paged_attention", "One number of the answer, by loops over single numbers.")
def one_number(paged_attention, q, keys, values, table, length):
    head = keys.shape[1] - 1  # of keys; the last query head reads it
    rows = [_token(keys, table, place)[head].tolist() for place in range(length)]
    column = [float(_token(values, table, place)[head, -1]) for place in range(length)]
    answer = paged_attention(q, keys, values, table, length)
    return float(answer[-1, -1, -1]), mixed_number(q[-1, -1].tolist(), rows, column)


@holds("paged_attention", "Blocks may lie in any order, if the table says where.")
def blocks_in_another_order(paged_attention, q, keys, values, table, length):
    moved = [len(keys) - 1 - block for block in table]
    answer = paged_attention(q, keys, values, table, length)
    return paged_attention(q, keys.flip(0), values.flip(0), moved, length), answer


@holds("paged_attention", "The tokens of a chunk get what each gets alone, when it is the newest.")
def chunk_in_parts(paged_attention, q, keys, values, table, length):
    c = q.shape[1]
    alone = [
        paged_attention(q[:, i : i + 1], keys, values, table, length - c + i + 1) for i in range(c)
    ]
    return paged_attention(q, keys, values, table, length), torch.cat(alone, dim=1)


@holds("paged_attention", "What is not the text's may be anything, also NaN.")
def only_its_own(paged_attention, q, keys, values, table, length):
    own = torch.zeros(keys.shape[0], keys.shape[2], dtype=torch.bool)
    for place in range(length):
        own[table[place // keys.shape[2]], place % keys.shape[2]] = True
    others = ~own[:, None, :, None]
    other_keys = keys.masked_fill(others, math.nan)
    other_values = values.masked_fill(others, math.nan)
    answer = paged_attention(q, keys, values, table, length)
    return paged_attention(q, other_keys, other_values, table, length), answer


@holds("sink_mass", "Each head is counted by itself.")
def heads_alone(sink_mass, weights, num_first):
    alone = [sink_mass(weights[:, h : h + 1], num_first) for h in range(weights.shape[1])]
    return sink_mass(weights, num_first), torch.cat(alone)


@holds("sink_mass", "The first queries, which see nothing else, do not count.")
def first_queries_do_not_count(sink_mass, weights, num_first):
    other = weights.clone()
    other[:, :, :num_first] = 7.0
    return sink_mass(other, num_first), sink_mass(weights, num_first)


@holds("sink_mass", "Of equal weights 1/N, s keys have s/N.")
def equal_weights(sink_mass, weights, num_first):
    n = weights.shape[-1]
    share = torch.full((weights.shape[1],), num_first / n, dtype=weights.dtype)
    return sink_mass(torch.full_like(weights, 1 / n), num_first), share


@holds("sink_mass", "No first token, and as many as there are, are refused.")
def numbers_that_leave_no_query(sink_mass, weights, num_first):
    return all(refused(sink_mass, weights, n) for n in (0, weights.shape[-1]))


@holds("sink_attention", "A text that fits has the same answer with fewer sinks and a longer window.")
def text_that_fits(sink_attention, q, k, v, num_sinks, window, theta):
    n = k.shape[2]
    if n > num_sinks + window:
        return None
    answer = sink_attention(q, k, v, num_sinks, window, theta)
    return answer, sink_attention(q, k, v, 0, n, theta)


@holds("sink_attention", "A number of sinks below 0 and a window below 1 are refused.")
def sizes_of_nothing(sink_attention, q, k, v, num_sinks, window, theta):
    settings = ((-1, window), (num_sinks, 0))
    return all(refused(sink_attention, q, k, v, *sizes, theta) for sizes in settings)


@holds("sink_attention", "A text of the kept tokens alone has the same answer.")
def kept_tokens_alone(sink_attention, q, k, v, num_sinks, window, theta):
    n = k.shape[2]
    kept = [place for place in range(n) if place < num_sinks or place >= n - window]
    answer = sink_attention(q, k, v, num_sinks, window, theta)
    return answer, sink_attention(q, k[:, :, kept], v[:, :, kept], num_sinks, window, theta)


@holds("sink_attention", "Equal values give this value, whatever the weights are.")
def equal_values(sink_attention, q, k, v, num_sinks, window, theta):
    return sink_attention(q, k, torch.full_like(v, 3.0), num_sinks, window, theta), torch.full_like(q, 3.0)


@holds("sink_attention", "A window of one token and no sink gives the newest value.")
def newest_alone(sink_attention, q, k, v, num_sinks, window, theta):
    answer = sink_attention(q, k, v, 0, 1, theta)
    return answer[:, 0, 0], v[:, 0, -1]


@holds("decode_costs", "The batch reads the weights once, and everything else once for each text.")
def batch_of_one(decode_costs, config, batch, n, bytes_per_element):
    many = decode_costs(config, batch, n, bytes_per_element)
    single = decode_costs(config, 1, n, bytes_per_element)
    return many["weight_bytes"] == single["weight_bytes"] and all(
        many[name] == batch * single[name] for name in ("cache_bytes", "flops")
    )


@holds("decode_costs", "No text, and no token, are refused.")
def steps_of_nothing(decode_costs, config, batch, n, bytes_per_element):
    sizes = ((0, n, bytes_per_element), (batch, 0, bytes_per_element), (batch, n, 0))
    return all(refused(decode_costs, config, *numbers) for numbers in sizes)


@holds("decode_costs", "One more token in each text adds as much as any other.")
def one_more_token(decode_costs, config, batch, n, bytes_per_element):
    counts = [decode_costs(config, batch, n + i, bytes_per_element) for i in range(3)]
    steps = [
        [counts[i + 1][name] - counts[i][name] for name in ("cache_bytes", "flops")] for i in range(2)
    ]
    return steps[0] == steps[1]


@holds("decode_costs", "The intensity is what the other three say.")
def quotient(decode_costs, config, batch, n, bytes_per_element):
    costs = decode_costs(config, batch, n, bytes_per_element)
    moved = costs["weight_bytes"] + costs["cache_bytes"]
    return costs["intensity"] * moved, float(costs["flops"])


def _weight_and_move(q, k, v, key, value):
    """The weight of an added token, and by how much it moves the output: loops over numbers."""
    rows, query = [*k.tolist(), key.tolist()], q.tolist()
    moved = 0.0
    for column in range(v.shape[1]):
        old = v[:, column].tolist()
        before = mixed_number(query, rows[:-1], old)
        moved += (mixed_number(query, rows, [*old, float(value[column])]) - before) ** 2
    scores = [dot_product(query, row) / math.sqrt(len(query)) for row in rows]
    powers = [math.exp(score - max(scores)) for score in scores]
    return powers[-1] / sum(powers), math.sqrt(moved)


@holds("idle_and_decisive", "The idle token gets 0.9 of the weight and moves nothing.")
def idle(idle_and_decisive, q, k, v):
    key, value, _, _ = idle_and_decisive(q, k, v)
    weight, moved = _weight_and_move(q, k, v, key, value)
    return weight >= 0.9 and moved <= 1e-9 * max(1.0, float(v.abs().max()))


@holds("idle_and_decisive", "A query of zeros is refused.")
def query_of_zeros(idle_and_decisive, q, k, v):
    return refused(idle_and_decisive, torch.zeros_like(q), k, v)


@holds("idle_and_decisive", "The decisive token gets 0.01 of the weight and moves the output by 10.")
def decisive(idle_and_decisive, q, k, v):
    _, _, key, value = idle_and_decisive(q, k, v)
    weight, moved = _weight_and_move(q, k, v, key, value)
    return weight <= 0.01 and moved >= 10

"""Harder inputs of assignment 11: what holds of every call that its docstrings allow."""

import inspect
import itertools
import math
from types import SimpleNamespace

import torch

from autograder.student_tools.harder_inputs import about, contract, holds, refused
from autograder.student_tools.slow_definitions import dot_product, mixed_number, shares_of

WITHOUT = {}

about("BlockPool")
about("PagedCache")
about("reserved_bytes")
about("paged_attention")
about("batched_step")
about("serve")
about("PrefixIndex")
about("beam_search")
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


# calls on caches of the student's own


def pools_of_blocks(draw, play, name):
    """A pool, and its first blocks."""
    pool = play.call(name, draw.whole(1, 9))
    play.read("num_free", on=pool)
    play.call("allocate", 1, on=pool)
    play.call("holders", 0, on=pool)


def caches_with_a_text(draw, play, name):
    """A cache in which a text begins with a chunk."""
    layers, num_blocks, block_size = draw.whole(1, 2), draw.whole(4, 9), draw.whole(1, 4)
    heads, width = draw.size("H_kv"), draw.size("d")
    cache = play.call(name, layers, num_blocks, block_size, heads, width, draw.dtype)
    play.call("start", "a", on=cache)
    for layer in range(layers):
        k, v = (draw(tensor(heads, "c", width), part) for part in ("k", "v"))
        play.call("append", "a", layer, k, v, on=cache)
    play.call("advance", "a", draw.size("c"), on=cache)
    play.call("gather", "a", layers - 1, on=cache)


def indexes_of_a_pool(draw, play, name):
    """An index of a pool in which a text has some blocks."""
    size, count = draw.whole(1, 3), draw.whole(1, 4)
    pool = play.call("BlockPool", count + 2)
    index = play.call(name, pool, size)
    text = [draw.whole(0, 2) for _ in range(count * size)]
    play.call("allocate", count, on=pool)
    play.call("insert", text, list(range(count)), on=index)
    play.call("match", [*text, 0], on=index)


def chunks_through_a_model(draw, play, name):
    """A text or two in a cache of the student's own."""
    params, config = _server_model(draw)
    sizes = (config.num_layers, 12, draw.whole(1, 4), config.num_kv_heads, config.d_head)
    cache = play.call("PagedCache", *sizes, draw.dtype)
    chunks = []
    for text in ("a", "b")[: draw.whole(1, 2)]:
        play.call("start", text, on=cache)
        ids = [draw.whole(0, config.vocab_size - 1) for _ in range(draw.whole(1, 5))]
        chunks.append((text, ids))
    play.call(name, params, chunks, cache, config)


def _server_model(draw):
    """Parameters and sizes of a small model."""
    kv_heads, group, half = draw.whole(1, 2), draw.whole(1, 2), draw.whole(1, 2)
    d_model, d_ff, words = (draw.whole(low, 5) for low in (2, 1, 2))
    layers = draw.whole(1, 2)
    wide, narrow = kv_heads * group * 2 * half, kv_heads * 2 * half

    def normal(*shape):
        return draw(tensor(*shape, values=("normal",)))

    def block():
        norms = {f"ln{n}_{part}": normal(d_model) for n in (1, 2) for part in ("gamma", "beta")}
        weights = {"w_q": normal(d_model, wide), "w_k": normal(d_model, narrow)}
        weights |= {"w_v": normal(d_model, narrow), "w_o": normal(wide, d_model)}
        weights |= {"w1": normal(d_model, d_ff), "b1": normal(d_ff)}
        return norms | weights | {"w2": normal(d_ff, d_model), "b2": normal(d_model)}

    params = {"embed": normal(words, d_model), "blocks": [block() for _ in range(layers)]}
    params |= {"lnf_gamma": normal(d_model), "lnf_beta": normal(d_model)}
    config = SimpleNamespace(
        vocab_size=words,
        d_model=d_model,
        num_layers=layers,
        num_heads=kv_heads * group,
        num_kv_heads=kv_heads,
        d_head=2 * half,
        d_ff=d_ff,
        theta=100.0,
    )
    return params | {"unembed": normal(d_model, words)}, config


class TellingStep:
    """A step of no model: its logits tell which tokens of a text lie in the cache."""

    def __init__(self, cache, words):
        self.cache, self.words, self.fed = cache, words, []

    def __call__(self, chunks):
        self.fed.append([len(new) for _, new in chunks])
        rows = []
        for name, new in chunks:
            ids = torch.tensor(list(map(float, new))).double().view(1, -1, 1)
            self.cache.append(name, 0, ids, ids)
            self.cache.advance(name, ids.shape[1])
            text = self.cache.gather(name, 0)[0].flatten().tolist()
            rows.append(self.logits_of(text))
        return torch.stack(rows)

    def logits_of(self, text):
        """Logits of the token behind a text."""
        mixed = sum((place + 1.7) * (token + 1) for place, token in enumerate(text))
        return 2 * torch.sin(torch.arange(1, self.words + 1).double() * (0.3 + mixed))


STEP = inspect.getsource(TellingStep)
WORDS = 5


def _step_of_a_cache(draw, play, num_blocks):
    play.helpers = STEP
    cache = play.call("PagedCache", 1, num_blocks, 2, 1, 1, torch.float64)
    return cache, play.helper("TellingStep", cache, WORDS)


def requests_of_some(draw, play, name):
    """Requests, and blocks enough for the longest, or for all."""
    requests = []
    for _ in range(draw.whole(1, 5)):
        prompt = [draw.whole(0, WORDS - 1) for _ in range(draw.whole(1, 4))]
        requests.append((prompt, draw.whole(1, 6)))
    cache, step = _step_of_a_cache(draw, play, draw.whole(5, 20))
    play.call(name, requests, cache, step, draw.whole(1, 4))


def searches_behind_prompts(draw, play, name):
    """Prompts, and beams of any width."""
    prompt = [draw.whole(0, WORDS - 1) for _ in range(draw.whole(1, 3))]
    cache, step = _step_of_a_cache(draw, play, 60)
    numbers = draw.whole(1, 4), draw.whole(1, 4), draw.choose("alpha", (0.0, 0.6, 1.0))
    play.call(name, prompt, cache, step, *numbers, draw.whole(-1, WORDS - 1))


contract("BlockPool", pools_of_blocks)
contract("PagedCache", caches_with_a_text, sizes={"H_kv": (1, 2), "d": (1, 3), "c": (1, 4)})
contract("batched_step", chunks_through_a_model)
contract("serve", requests_of_some)
contract("PrefixIndex", indexes_of_a_pool)
contract("beam_search", searches_behind_prompts)


# BlockPool


@holds("BlockPool", "The smallest free blocks are lent, in order: first of all, and after some came back.")
def smallest_first(BlockPool, num_blocks):
    pool = BlockPool(num_blocks)
    lent = pool.allocate(num_blocks)
    if lent != list(range(num_blocks)) or pool.num_free != 0:
        return False
    back = [num_blocks - 1, num_blocks // 2, 0]
    for block in dict.fromkeys(back):
        pool.release([block])
    return pool.allocate(pool.num_free) == sorted(set(back))


@holds("BlockPool", "More blocks than are free are refused, and none is lent; all of them may be had.")
def all_or_none(BlockPool, num_blocks):
    pool = BlockPool(num_blocks)
    pool.allocate(num_blocks // 2)
    free = num_blocks - num_blocks // 2
    is_refused = refused(pool.allocate, free + 1) and pool.num_free == free
    return is_refused and len(pool.allocate(free)) == free and pool.allocate(0) == []


@holds("BlockPool", "A block is free again when each of its holders has released it.")
def holders_are_counted(BlockPool, num_blocks):
    pool = BlockPool(num_blocks)
    blocks = pool.allocate(num_blocks)
    for _ in range(2):
        pool.share(blocks[:1])
    pool.release(blocks[1:])
    counts = []
    for _ in range(3):
        counts.append((pool.holders(0), pool.num_free))
        pool.release([0])
    counts.append((pool.holders(0), pool.num_free))
    others = num_blocks - 1
    return counts == [(3, others), (2, others), (1, others), (0, num_blocks)]


@holds("BlockPool", "A free block can be neither shared nor released, and the others in the list stay as they were.")
def free_blocks(BlockPool, num_blocks):
    pool = BlockPool(num_blocks + 1)
    held = pool.allocate(num_blocks)
    is_refused = refused(pool.share, [*held, num_blocks]) and refused(pool.release, [*held, num_blocks])
    return is_refused and [pool.holders(block) for block in held] == [1] * num_blocks


@holds("BlockPool", "Two pools know nothing of each other.")
def pools_are_apart(BlockPool, num_blocks):
    first, second = BlockPool(num_blocks), BlockPool(num_blocks)
    first.allocate(num_blocks)
    is_apart = second.num_free == num_blocks and second.allocate(1) == [0]
    return is_apart and first.num_free == 0 and BlockPool(num_blocks).num_free == num_blocks


# PagedCache


def _numbers(heads, width, first, count):
    """Keys and values of tokens that tell their number, their head and their feature."""
    places = torch.arange(first, first + count).double()[None, :, None]
    marks = torch.arange(heads * width).double().view(heads, 1, width) / 64
    return places + marks, -places - marks


def _feed(cache, layers, name, chunk):
    """A chunk for each layer, then one advance."""
    for layer in range(layers):
        cache.append(name, layer, chunk[0] + 100 * layer, chunk[1] - 100 * layer)
    cache.advance(name, chunk[0].shape[1])


def _read(cache, layers, name):
    """Keys and values of all layers."""
    return [part for layer in range(layers) for part in cache.gather(name, layer)]


def _joined(layers, chunks):
    """What `_read` gives of these chunks."""
    whole = [torch.cat(parts, dim=1) for parts in zip(*chunks)]
    return [part + sign * 100 * layer for layer in range(layers) for part, sign in zip(whole, (1, -1))]


@holds("PagedCache", "Texts in turns get back their own tokens, in the order of time, from every layer.")
def texts_come_back(PagedCache, num_layers, num_blocks, block_size, num_kv_heads, d_head, dtype):
    cache = PagedCache(num_layers, 12, block_size, num_kv_heads, d_head, torch.float64)
    kept = {"a": [], 7: []}
    for name in kept:
        cache.start(name)
    for number, c in enumerate((1, block_size, 2)):
        for name in kept:
            chunk = _numbers(num_kv_heads, d_head, 10 * number + (name == 7), c)
            kept[name].append(chunk)
            _feed(cache, num_layers, name, chunk)
    got = [part for name in kept for part in _read(cache, num_layers, name)]
    wanted = [part for chunks in kept.values() for part in _joined(num_layers, chunks)]
    blocks = 2 * math.ceil((3 + block_size) / block_size)
    return [*got, 12 - cache.num_free, cache.length("a")], [*wanted, blocks, 3 + block_size]


@holds("PagedCache", "Token p lies in block table[p // S], slot p % S, and blocks(layer) shows what comes later.")
def tokens_lie_in_blocks(PagedCache, num_layers, num_blocks, block_size, num_kv_heads, d_head, dtype):
    cache = PagedCache(num_layers, 9, block_size, num_kv_heads, d_head, torch.float64)
    keys, values = cache.blocks(num_layers - 1)
    cache.start("other")
    cache.start("a")
    _feed(cache, num_layers, "other", _numbers(num_kv_heads, d_head, 50, 1))
    _feed(cache, num_layers, "a", _numbers(num_kv_heads, d_head, 0, block_size + 1))
    table, k = cache.table("a"), cache.gather("a", num_layers - 1)[0]
    v = cache.gather("a", num_layers - 1)[1]
    got = [_token(part, table, p) for part in (keys, values) for p in range(block_size + 1)]
    return got, [part[:, p] for part in (k, v) for p in range(block_size + 1)]


@holds("PagedCache", "A fork begins with the same blocks; then both go on, and nobody sees the other's tokens.")
def forks_go_on(PagedCache, num_layers, num_blocks, block_size, num_kv_heads, d_head, dtype):
    cache = PagedCache(num_layers, 12, block_size, num_kv_heads, d_head, torch.float64)
    first = _numbers(num_kv_heads, d_head, 0, block_size + 1)
    cache.start("a")
    _feed(cache, num_layers, "a", first)
    cache.fork("a", "b")
    is_shared = cache.table("a") == cache.table("b") and 12 - cache.num_free == 2
    added = {name: _numbers(num_kv_heads, d_head, n, 2) for name, n in (("b", 20), ("a", 30))}
    for name, chunk in added.items():
        _feed(cache, num_layers, name, chunk)
    got = [part for name in added for part in _read(cache, num_layers, name)]
    wanted = [part for chunk in added.values() for part in _joined(num_layers, [first, chunk])]
    return [*got, is_shared], [*wanted, True]


@holds("PagedCache", "A block is copied where it is shared and not full, once fewer than it has holders.")
def copies_on_write(PagedCache, num_layers, num_blocks, block_size, num_kv_heads, d_head, dtype):
    cache = PagedCache(num_layers, 12, 2, num_kv_heads, d_head, torch.float64)
    cache.start("a")
    _feed(cache, num_layers, "a", _numbers(num_kv_heads, d_head, 0, 3))
    for name in ("b", "c"):
        cache.fork("a", name)
    used = []
    for name in ("c", "a", "b"):
        _feed(cache, num_layers, name, _numbers(num_kv_heads, d_head, 9, 1))
        used.append(12 - cache.num_free)
    for name in ("a", "b", "c"):
        cache.free(name)
    return used == [3, 4, 4] and cache.num_free == 12


@holds("PagedCache", "missing tells how many blocks an append takes, and append takes no more.")
def missing_blocks(PagedCache, num_layers, num_blocks, block_size, num_kv_heads, d_head, dtype):
    cache = PagedCache(num_layers, 40, block_size, num_kv_heads, d_head, torch.float64)
    cache.start("a")
    for c in (1, block_size, 1, 2 * block_size, block_size + 1):
        for name in ("a", f"fork {cache.length('a')}"):
            if name != "a":
                cache.fork("a", name)
            before, told = cache.num_free, cache.missing(name, c)
            for layer in range(num_layers):
                cache.append(name, layer, *_numbers(num_kv_heads, d_head, 0, c))
            if before - cache.num_free != told or cache.missing(name, c) != 0:
                return False
            cache.advance(name, c)
    return True


@holds("PagedCache", "Tokens that do not fit, other shapes and a name twice are refused, and change nothing.")
def refusals_of_a_cache(PagedCache, num_layers, num_blocks, block_size, num_kv_heads, d_head, dtype):
    cache = PagedCache(num_layers, 2, block_size, num_kv_heads, d_head, torch.float64)
    cache.start("a")
    chunk = _numbers(num_kv_heads, d_head, 0, block_size)
    _feed(cache, num_layers, "a", chunk)
    k, v = _numbers(num_kv_heads, d_head, 7, block_size + 1)
    short_k, short_v = k[:, :1], v[:, :1]
    calls = (
        (cache.append, "a", 0, k, v),
        (cache.append, "a", 0, short_k, v[:, :0]),
        (cache.append, "a", 0, torch.cat([short_k] * 2), torch.cat([short_v] * 2)),
        (cache.append, "a", 0, torch.cat([short_k] * 2, dim=2), torch.cat([short_v] * 2, dim=2)),
        (cache.start, "a"),
        (cache.fork, "a", "a"),
    )
    is_refused = all(refused(*call) for call in calls)
    got = [*_read(cache, num_layers, "a"), cache.num_free, is_refused]
    return got, [*_joined(num_layers, [chunk]), 1, True]


@holds("PagedCache", "What was given back does not change later, nor the cache with the caller's tensors.")
def cache_is_apart(PagedCache, num_layers, num_blocks, block_size, num_kv_heads, d_head, dtype):
    cache = PagedCache(1, 9, block_size, num_kv_heads, d_head, torch.float64)
    cache.start("a")
    chunk = _numbers(num_kv_heads, d_head, 0, block_size)
    copies = [part.clone() for part in chunk]
    cache.append("a", 0, *chunk)
    cache.advance("a", block_size)
    for part in chunk:
        part.zero_()
    table, answers = cache.table("a"), list(cache.gather("a", 0))
    cache.append("a", 0, *_numbers(num_kv_heads, d_head, 30, 1))
    cache.free("a")
    cache.start("b")
    cache.append("b", 0, *_numbers(num_kv_heads, d_head, 40, block_size))
    return [*answers, table], [*copies, [0]]


@holds("PagedCache", "Of a chunk those tokens stay that were counted; a fork gets no block beyond them.")
def counted_tokens_stay(PagedCache, num_layers, num_blocks, block_size, num_kv_heads, d_head, dtype):
    cache = PagedCache(1, 12, block_size, num_kv_heads, d_head, torch.float64)
    cache.start("a")
    k, v = _numbers(num_kv_heads, d_head, 0, 2 * block_size + 1)
    cache.append("a", 0, k, v)
    cache.advance("a", block_size)
    cache.fork("a", "b")
    blocks = [len(cache.table(name)) for name in ("a", "b")]
    other = _numbers(num_kv_heads, d_head, 60, 1)
    cache.append("a", 0, *other)
    cache.advance("a", 1)
    got = [*cache.gather("a", 0), *cache.gather("b", 0), blocks]
    kept = k[:, :block_size], v[:, :block_size]
    return got, [*(torch.cat(pair, dim=1) for pair in zip(kept, other)), *kept, [3, 1]]


@holds("PagedCache", "A text may begin with full blocks of another, and outlives it.")
def begins_with_blocks(PagedCache, num_layers, num_blocks, block_size, num_kv_heads, d_head, dtype):
    cache = PagedCache(num_layers, 12, block_size, num_kv_heads, d_head, torch.float64)
    chunk = _numbers(num_kv_heads, d_head, 0, 2 * block_size)
    cache.start("a")
    _feed(cache, num_layers, "a", chunk)
    cache.start("b", cache.table("a")[:1])
    cache.free("a")
    more = _numbers(num_kv_heads, d_head, 70, 1)
    _feed(cache, num_layers, "b", more)
    begun = [part[:, :block_size] for part in chunk]
    got = [*_read(cache, num_layers, "b"), cache.length("b"), cache.num_free]
    return got, [*_joined(num_layers, [begun, more]), block_size + 1, 10]


@holds("PagedCache", "Keys and values of any dtype are stored and given back in the cache's.")
def dtype_of_the_cache(PagedCache, num_layers, num_blocks, block_size, num_kv_heads, d_head, dtype):
    cache = PagedCache(1, 2, block_size, num_kv_heads, d_head, torch.float16)
    cache.start("a")
    cache.append("a", 0, *_numbers(num_kv_heads, d_head, 0, 1))
    cache.advance("a", 1)
    return [part.dtype for part in (*cache.gather("a", 0), *cache.blocks(0))] == [torch.float16] * 4


# batched_step


def _model_cache(notebook, params, config, block_size=2):
    sizes = (len(params["blocks"]), 40, block_size, config.num_kv_heads, config.d_head)
    return notebook["PagedCache"](*sizes, params["embed"].dtype)


@holds("batched_step", "Each text has the logits that the whole model gives it, also in parts and in other company.", share=1e-4)
def as_the_whole_model(batched_step, params, chunks, cache, config, notebook):
    own = _model_cache(notebook, params, config)
    texts = {"x": [ids[0] for _, ids in chunks], "y": chunks[-1][1] + chunks[0][1]}
    for name in texts:
        own.start(name)
    got, wanted = [], []

    def step(*parts):
        got.append(batched_step(params, list(parts), own, config))
        for name, new in parts:
            read[name] += len(new)
            text = torch.tensor([texts[name][: read[name]]])
            wanted.append(notebook["decoder_lm"](text, params, config)[0, -1])

    read = {"x": 0, "y": 0}
    step(("y", texts["y"][:1]))
    step(("x", texts["x"]), ("y", texts["y"][1:]))
    texts["y"] += texts["x"]
    step(("y", texts["y"][read["y"] :]))
    return torch.cat(got), torch.stack(wanted)


@holds("batched_step", "The new tokens count as finished, once, and take the blocks that they need.")
def tokens_are_counted(batched_step, params, chunks, cache, config, notebook):
    own = _model_cache(notebook, params, config, block_size=1)
    for name, _ in chunks:
        own.start(name)
    batched_step(params, chunks, own, config)
    lengths = [own.length(name) for name, _ in chunks]
    return lengths == [len(ids) for _, ids in chunks] and own.num_free == 40 - sum(lengths)


@holds("batched_step", "Chunks in another order have their rows in that order.", share=1e-4)
def order_of_chunks(batched_step, params, chunks, cache, config, notebook):
    answers = []
    for own_chunks in (chunks, chunks[::-1]):
        own = _model_cache(notebook, params, config)
        for name, _ in chunks:
            own.start(name)
        answers.append(batched_step(params, own_chunks, own, config))
    return answers[1].flip(0), answers[0]


@holds("batched_step", "Ids outside the vocabulary are refused, and the cache is as it was.")
def strange_ids(batched_step, params, chunks, cache, config, notebook):
    own = _model_cache(notebook, params, config)
    for name, _ in chunks:
        own.start(name)
    batched_step(params, chunks, own, config)
    before = own.num_free, [own.length(name) for name, _ in chunks]
    rest, (name, ids) = chunks[:-1], chunks[-1]
    strange = [[*rest, (name, [*ids, token])] for token in (-1, config.vocab_size)]
    is_refused = all(refused(batched_step, params, other, own, config) for other in strange)
    return is_refused and before == (own.num_free, [own.length(name) for name, _ in chunks])


# serve


def _serve(serve, notebook, requests, num_blocks, max_running, eos_id=None):
    """Texts and history, in blocks of two tokens; and how many blocks are free at the end."""
    cache = notebook["PagedCache"](1, num_blocks, 2, 1, 1, torch.float64)
    step = TellingStep(cache, WORDS)
    texts, history = serve(requests, cache, step, max_running, eos_id=eos_id)
    return [list(text) for text in texts], [list(map(tuple, members)) for members in history], cache.num_free


def _fewest_blocks(requests):
    """Blocks for the longest of the texts alone: its last token is not fed."""
    return max(math.ceil((len(prompt) + new - 1) / 2) for prompt, new in requests)


@holds("serve", "Each text is what it is alone, whoever is there, and however few blocks there are.")
def texts_as_alone(serve, requests, cache, step, max_running, eos_id=None, *, notebook):
    alone = []
    for request in requests:
        alone += _serve(serve, notebook, [request], 30, 1)[0]
    fewest = _fewest_blocks(requests)
    together = [_serve(serve, notebook, requests, n, max_running)[0] for n in (60, fewest, fewest + 1)]
    lengths = [len(text) for text in alone] == [new for _, new in requests]
    return lengths and together == [alone] * 3


@holds("serve", "A text ends with its first end token, which belongs to it.")
def ends_of_texts(serve, requests, cache, step, max_running, eos_id=None, *, notebook):
    texts = _serve(serve, notebook, requests, 60, max_running)[0]
    eos_id = texts[0][len(texts[0]) // 2]
    cut = [text[: text.index(eos_id) + 1] if eos_id in text else text for text in texts]
    return _serve(serve, notebook, requests, 60, max_running, eos_id)[0] == cut


@holds("serve", "Of what is not finished the first requests take part, in order, and as many as there are places and blocks for.")
def who_takes_part(serve, requests, cache, step, max_running, eos_id=None, *, notebook):
    for num_blocks in (60, _fewest_blocks(requests) + 1, _fewest_blocks(requests)):
        history = _serve(serve, notebook, requests, num_blocks, max_running)[1]
        written = [0] * len(requests)
        for members in history:
            left = [i for i, (_, new) in enumerate(requests) if written[i] < new]
            numbers = [number for number, _ in members]
            if not members or numbers != left[: len(members)] or len(members) > max_running:
                return False
            blocks = [math.ceil((len(requests[i][0]) + written[i]) / 2) for i in left[: len(members) + 1]]
            has_room = sum(blocks[: len(members)]) <= num_blocks
            has_more = len(members) < min(len(left), max_running) and sum(blocks) <= num_blocks
            if not has_room or has_more:
                return False
            for number in numbers:
                written[number] += 1
        if written != [new for _, new in requests]:
            return False
    return True


@holds("serve", "A text feeds its prompt and then a token a step; after it gave way, all that it has.")
def what_is_fed(serve, requests, cache, step, max_running, eos_id=None, *, notebook):
    for num_blocks in (60, _fewest_blocks(requests)):
        history = _serve(serve, notebook, requests, num_blocks, max_running)[1]
        written, before = [0] * len(requests), set()
        for members in history:
            for number, fed in members:
                whole = len(requests[number][0]) + written[number]
                if fed != (1 if number in before else whole):
                    return False
                written[number] += 1
            before = {number for number, _ in members}
    return True


@holds("serve", "At the end all blocks are free.")
def blocks_come_back(serve, requests, cache, step, max_running, eos_id=None, *, notebook):
    numbers = (60, _fewest_blocks(requests))
    return all(_serve(serve, notebook, requests, n, max_running)[2] == n for n in numbers)


@holds("serve", "No place, no new token, an empty prompt and a text that never fits are refused.")
def strange_requests(serve, requests, cache, step, max_running, eos_id=None, *, notebook):
    calls = (
        (requests, 60, 0),
        ([*requests, ([1], 0)], 60, max_running),
        ([*requests, ([], 1)], 60, max_running),
        ([*requests, ([1] * 7, 1)], 3, max_running),
    )
    return all(refused(_serve, serve, notebook, *call) for call in calls)


# PrefixIndex


def _index(PrefixIndex, notebook, block_size):
    """A pool of nine blocks, and an index of it."""
    pool = notebook["BlockPool"](9)
    return pool, PrefixIndex(pool, block_size)


@holds("PrefixIndex", "A text that begins alike gets the blocks up to where it differs, and leaves a token to feed.")
def longest_beginning(PrefixIndex, pool, block_size, notebook):
    own_pool, index = _index(PrefixIndex, notebook, block_size)
    text = [n % 3 for n in range(4 * block_size)]
    blocks = own_pool.allocate(4)[::-1]
    index.insert(text, blocks)
    for place in range(len(text)):
        other = [*text[:place], 7, *text[place + 1 :]]
        if index.match(other) != blocks[: place // block_size]:
            return False
    exact = blocks[: (len(text) - 1) // block_size]
    return index.match(text) == exact and index.match([*text, 0]) == blocks


@holds("PrefixIndex", "The same tokens behind another beginning are other blocks.")
def beginnings_count(PrefixIndex, pool, block_size, notebook):
    own_pool, index = _index(PrefixIndex, notebook, block_size)
    same = [1] * block_size
    index.insert([*same, *same], own_pool.allocate(2))
    behind = [2] * block_size
    index.insert([*behind, *same], own_pool.allocate(2))
    answers = [index.match([*first, *same, 0]) for first in (same, behind)]
    return answers == [[0, 1], [2, 3]] and index.match([*same, *behind, *same, 0]) == [0]


@holds("PrefixIndex", "A last block that is not full is not remembered, and match adds no holder.")
def full_blocks_alone(PrefixIndex, pool, block_size, notebook):
    own_pool, index = _index(PrefixIndex, notebook, block_size + 1)
    text = [3] * (2 * block_size + 1)  # one full block, and a part of a second
    index.insert(text, own_pool.allocate(2))
    is_known = index.match([*text, *text]) == [0]
    return is_known and [own_pool.holders(block) for block in (0, 1)] == [2, 1]


@holds("PrefixIndex", "What is known already keeps its block; the index holds each once.")
def first_block_stays(PrefixIndex, pool, block_size, notebook):
    own_pool, index = _index(PrefixIndex, notebook, block_size)
    text = [4] * block_size
    for blocks in (own_pool.allocate(1), own_pool.allocate(1)):
        index.insert(text, blocks)
    longer = [own_pool.allocate(1)[0], own_pool.allocate(1)[0]]
    index.insert(text * 2, longer)
    holders = [own_pool.holders(block) for block in range(4)]
    return index.match([*text, *text, 0]) == [0, 3] and holders == [2, 1, 1, 2]


@holds("PrefixIndex", "evict forgets what no text holds, tells how many, and leaves what one holds.")
def eviction(PrefixIndex, pool, block_size, notebook):
    own_pool, index = _index(PrefixIndex, notebook, block_size)
    texts = [[word] * block_size for word in range(3)]
    for text in texts:
        index.insert(text, own_pool.allocate(1))
    own_pool.release([0, 2])
    is_first = index.evict() == 2 and own_pool.num_free == 8
    left = [index.match([*text, 0]) for text in texts]
    own_pool.release([1])
    is_second = index.evict() == 1 and index.evict() == 0 and own_pool.num_free == 9
    return is_first and left == [[], [1], []] and is_second and index.match([*texts[1], 0]) == []


@holds("PrefixIndex", "Behind a block that was given back no later one is matched.")
def gaps(PrefixIndex, pool, block_size, notebook):
    own_pool, index = _index(PrefixIndex, notebook, block_size)
    text = [6] * 2 * block_size
    index.insert(text, own_pool.allocate(2))
    own_pool.release([0])
    return index.evict() == 1 and index.match([*text, 0]) == []


@holds("PrefixIndex", "Two indexes know nothing of each other.")
def indexes_are_apart(PrefixIndex, pool, block_size, notebook):
    own_pool, index = _index(PrefixIndex, notebook, block_size)
    text = [5] * block_size
    index.insert(text, own_pool.allocate(1))
    return _index(PrefixIndex, notebook, block_size)[1].match([*text, 0]) == []


# beam_search


def _search(beam_search, notebook, prompt, *settings):
    """Texts with scores; the step that was called; how many blocks are free at the end, of 400."""
    cache = notebook["PagedCache"](1, 400, 2, 1, 1, torch.float64)
    step = TellingStep(cache, WORDS)
    best = beam_search(prompt, cache, step, *settings)
    return [(list(text), float(score)) for text, score in best], step, cache.num_free


def _log_p(step, prompt, new):
    """The log probability of new tokens behind a prompt, token by token."""
    total, text = 0.0, list(prompt)
    for token in new:
        total += math.log(shares_of(step.logits_of(text).tolist())[token])
        text.append(token)
    return total


def _penalty(new, alpha):
    return ((5 + len(new)) / 6) ** alpha


@holds("beam_search", "A score is what the step says of its text, over the length penalty; best first, no more than beams.")
def scores_of_texts(beam_search, prompt, cache, step, num_beams, max_new, alpha, eos_id, notebook):
    best, own, _ = _search(beam_search, notebook, prompt, num_beams, max_new, alpha, eos_id)
    scores = [score for _, score in best]
    expected = [_log_p(own, prompt, new) / _penalty(new, alpha) for new, _ in best]
    texts = {tuple(new) for new, _ in best}
    is_sorted = scores == sorted(scores, reverse=True) and len(texts) == len(best)
    return [*scores, is_sorted and 1 <= len(best) <= num_beams], [*expected, True]


@holds("beam_search", "Texts end with the end token or have max_new tokens.")
def ends_of_beams(beam_search, prompt, cache, step, num_beams, max_new, alpha, eos_id, notebook):
    best, _, _ = _search(beam_search, notebook, prompt, num_beams, max_new, alpha, eos_id)
    return all(
        eos_id not in new[:-1] and (len(new) == max_new or new[-1] == eos_id) for new, _ in best
    )


@holds("beam_search", "One beam takes the likeliest token each time.")
def single_beam(beam_search, prompt, cache, step, num_beams, max_new, alpha, eos_id, notebook):
    best, own, _ = _search(beam_search, notebook, prompt, 1, max_new, alpha, eos_id)
    text = list(prompt)
    while len(text) < len(prompt) + max_new and (len(text) == len(prompt) or text[-1] != eos_id):
        text.append(int(own.logits_of(text).argmax()))
    return [new for new, _ in best] == [text[len(prompt) :]]


@holds("beam_search", "Beams for all texts find the best of all of them.")
def all_texts(beam_search, prompt, cache, step, num_beams, max_new, alpha, eos_id, notebook):
    longest = min(max_new, 3)
    best, own, _ = _search(beam_search, notebook, prompt, WORDS**longest, longest, alpha, eos_id)
    texts = set()
    for new in itertools.product(range(WORDS), repeat=longest):
        end = new.index(eos_id) + 1 if eos_id in new else longest
        texts.add(new[:end])
    scores = [_log_p(own, prompt, new) / _penalty(new, alpha) for new in texts]
    return [score for _, score in best], sorted(scores, reverse=True)


@holds("beam_search", "After the prompt each beam feeds a token a step; at the end no block is held.")
def tokens_of_beams(beam_search, prompt, cache, step, num_beams, max_new, alpha, eos_id, notebook):
    _, own, num_free = _search(beam_search, notebook, prompt, num_beams, max_new, alpha, eos_id)
    later = own.fed[1:]
    is_fed = own.fed[0] == [len(prompt)] and all(set(fed) == {1} for fed in later)
    is_narrow = all(len(fed) <= num_beams for fed in later) and len(own.fed) <= max_new
    return is_fed and is_narrow and num_free == 400


@holds("beam_search", "An empty prompt, no beam and no new token are refused.")
def strange_searches(beam_search, prompt, cache, step, num_beams, max_new, alpha, eos_id, notebook):
    calls = (([], num_beams, max_new), (prompt, 0, max_new), (prompt, num_beams, 0))
    return all(refused(_search, beam_search, notebook, *call, alpha, eos_id) for call in calls)

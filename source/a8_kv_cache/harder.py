"""Harder inputs of assignment 8: what holds of every call that its docstrings allow."""

import math

import torch

from autograder.student_tools.harder_inputs import about, contract, holds, refused
from autograder.student_tools.slow_definitions import dot_product, shares_of

WITHOUT = {}

about("KVCache")
about("ragged_positions")
about("decode_step", except_for="layout precision")
about("prefill", except_for="layout precision")
about("generate_cached")
about("kv_cache_bytes")
about("SlidingWindowCache")
about("speculative_accept", refuses="p.0 p.1 q.0 q.1 drafted.0 u.0")
about("unheard_query", except_for="answers")  # there is none where all keys lie on one line


def _own_cache(draw, play, config, batch):
    sizes = (config.num_layers, batch, config.num_kv_heads, config.d_head)
    return play.call("KVCache", *sizes, config.context_length, draw.dtype)


def chunk_into_your_cache(draw, play, name):
    """A chunk into a new cache of your own, and another."""
    params, config = _model(draw)
    cache = _own_cache(draw, play, config, draw.size("B"))
    for _ in range(draw.whole(1, 2)):
        draw.forget("c")
        play.call(name, params, draw(tokens("B", "c", below="V"), "ids"), cache, config)
        play.read("length", on=cache)


def prompt_into_your_cache(draw, play, name):
    """A prompt into a new cache of your own."""
    params, config = _model(draw)
    cache = _own_cache(draw, play, config, draw.size("B"))
    play.call(name, params, draw(tokens("B", "N", below="V"), "prompt"), cache, config)


contract("decode_step", chunk_into_your_cache, sizes=SMALL)
contract("prefill", prompt_into_your_cache, sizes=SMALL)


def _chunks(batch, heads, width, count):
    """Chunks of one and two tokens, with numbers of their own."""
    draws = torch.Generator().manual_seed(5)
    for number in range(count):
        shape = (batch, heads, 1 + number % 2, width)
        yield torch.randn(shape, generator=draws).double(), torch.randn(shape, generator=draws).double()


@holds("KVCache", "After some chunks each layer gives back all of its tokens, in the order of time.")
def all_tokens_come_back(KVCache, num_layers, batch, num_kv_heads, d_head, capacity, dtype):
    cache = KVCache(num_layers, batch, num_kv_heads, d_head, 10, torch.float64)
    kept = [[] for _ in range(num_layers)]
    got, wanted = [], []
    for k, v in _chunks(batch, num_kv_heads, d_head, 4):
        for layer in range(num_layers):
            kept[layer].append((k + layer, v - layer))
            got += list(cache.append(layer, k + layer, v - layer))
            wanted += [torch.cat(list(parts), dim=2) for parts in zip(*kept[layer])]
        cache.advance(k.shape[2])
    return [*got, cache.length], [*wanted, 6]


@holds("KVCache", "What was given back does not change later, nor the cache with the caller's tensors.")
def answers_are_apart(KVCache, num_layers, batch, num_kv_heads, d_head, capacity, dtype):
    cache = KVCache(1, batch, num_kv_heads, d_head, 4, torch.float64)
    k = torch.ones(batch, num_kv_heads, 1, d_head).double()
    first = cache.append(0, k, k)
    before = [part.clone() for part in first]
    k.fill_(7.0)
    cache.advance(1)
    second = cache.append(0, 2 * before[0], 2 * before[0])
    cache.reset()
    cache.append(0, 5 * before[0], 5 * before[0])
    return [*first, second[0]], [*before, torch.cat([before[0], 2 * before[0]], dim=2)]


@holds("KVCache", "A second chunk for a layer before advance takes the place of the first; reset forgets.")
def chunks_are_replaced(KVCache, num_layers, batch, num_kv_heads, d_head, capacity, dtype):
    cache = KVCache(num_layers, batch, num_kv_heads, d_head, 5, torch.float64)
    k = torch.ones(batch, num_kv_heads, 2, d_head).double()
    cache.append(0, k, k)
    again = cache.append(0, 3 * k[:, :, :1], 4 * k[:, :, :1])
    cache.advance(1)
    cache.reset()
    fresh = cache.append(0, k, k)
    return [*again, *fresh, cache.length], [3 * k[:, :, :1], 4 * k[:, :, :1], k, k, 0]


@holds("KVCache", "Too many tokens, and chunks of other sizes, are refused, and change nothing.")
def full_caches(KVCache, num_layers, batch, num_kv_heads, d_head, capacity, dtype):
    cache = KVCache(1, batch, num_kv_heads, d_head, 3, torch.float64)
    k = torch.ones(batch, num_kv_heads, 2, d_head).double()
    cache.append(0, k, k)
    cache.advance(2)
    strange = torch.ones(batch, num_kv_heads, 1, d_head + 1).double()
    refusals = [
        refused(cache.append, 0, k, k),
        refused(cache.append, 0, strange, strange),
        refused(cache.append, 0, k[:, :, :1], strange),
        refused(cache.advance, 2),
    ]
    full = cache.append(0, k[:, :, :1], k[:, :, :1])[0]
    return all(refusals) and cache.length == 2 and full.shape[2] == 3


@holds("KVCache", "Keys and values are stored and given back in the cache's dtype.")
def dtype_of_the_cache(KVCache, num_layers, batch, num_kv_heads, d_head, capacity, dtype):
    cache = KVCache(1, batch, num_kv_heads, d_head, 3, torch.float16)
    k = torch.full((batch, num_kv_heads, 1, d_head), 0.1).double()
    return [part.dtype for part in cache.append(0, k, k)] == [torch.float16] * 2


@holds("SlidingWindowCache", "Each layer gives back its newest window − 1 tokens, and the chunk.")
def newest_tokens(SlidingWindowCache, num_layers, batch, num_kv_heads, d_head, capacity, dtype, window):
    cache = SlidingWindowCache(num_layers, batch, num_kv_heads, d_head, 20, torch.float64, window)
    kept = [[] for _ in range(num_layers)]
    got, wanted, length = [], [], 0
    for k, v in _chunks(batch, num_kv_heads, d_head, 6):
        seen = min(length, window - 1) + k.shape[2]
        for layer in range(num_layers):
            kept[layer].append((k + layer, v - layer))
            got += list(cache.append(layer, k + layer, v - layer))
            wanted += [torch.cat(list(parts), dim=2)[:, :, -seen:] for parts in zip(*kept[layer])]
        length += k.shape[2]
        cache.advance(k.shape[2])
    return [*got, cache.length, cache.window], [*wanted, 9, window]


@holds("SlidingWindowCache", "Only those of a chunk that were counted stay; a second chunk replaces the first.")
def counted_tokens(SlidingWindowCache, num_layers, batch, num_kv_heads, d_head, capacity, dtype, window):
    cache = SlidingWindowCache(1, batch, num_kv_heads, d_head, 20, torch.float64, window)
    k = torch.arange(4.0).double().reshape(1, 1, 4, 1).expand(batch, num_kv_heads, 4, d_head).clone()
    cache.append(0, k + 10, k + 10)
    cache.append(0, k, k)
    cache.advance(3)
    got = cache.append(0, k[:, :, 3:], k[:, :, 3:])[0]
    first = min(3, window - 1)
    cache.reset()
    fresh = cache.append(0, k, k)[0]
    return [got, fresh], [k[:, :, 3 - first :], k]


@holds("SlidingWindowCache", "A window below 1, more tokens than the capacity, and other sizes, are refused.")
def strange_windows(SlidingWindowCache, num_layers, batch, num_kv_heads, d_head, capacity, dtype, window):
    sizes = (1, batch, num_kv_heads, d_head)
    cache = SlidingWindowCache(*sizes, 3, torch.float64, window)
    k = torch.ones(batch, num_kv_heads, 2, d_head).double()
    cache.append(0, k, k)
    cache.advance(2)
    return (
        refused(SlidingWindowCache, *sizes, 3, torch.float64, 0)
        and refused(cache.append, 0, k, k)
        and refused(cache.advance, 2)
        and refused(cache.append, 0, k[..., :0], k[..., :0])
        and cache.length == 2
    )


@holds("SlidingWindowCache", "What was given back does not change later.")
def windows_are_apart(SlidingWindowCache, num_layers, batch, num_kv_heads, d_head, capacity, dtype, window):
    cache = SlidingWindowCache(1, batch, num_kv_heads, d_head, 9, torch.float64, window)
    answers, copies = [], []
    for k, v in _chunks(batch, num_kv_heads, d_head, 4):
        answers += list(cache.append(0, k, v))
        copies += [part.clone() for part in answers[-2:]]
        k.zero_()
        cache.advance(k.shape[2])
    return answers, copies


@holds("ragged_positions", "Real tokens are counted from 0 in their row; padding has 0.")
def counted_in_rows(ragged_positions, mask):
    rows = []
    for row in mask.tolist():
        count = 0
        rows.append([])
        for is_real in row:
            rows[-1].append(count if is_real else 0)
            count += is_real
    positions = ragged_positions(mask)
    is_form = positions.dtype == torch.int64 and positions.shape == mask.shape
    return is_form and positions.tolist() == rows


@holds("ragged_positions", "A mask of one axis, or of three, is refused.")
def axes_of_masks(ragged_positions, mask):
    return refused(ragged_positions, mask[None]) and refused(ragged_positions, torch.ones(3).bool())


class _Recorder:
    """Counts what is done with a cache, and passes it on."""

    def __init__(self, cache):
        self._cache = cache
        self.calls = []

    @property
    def length(self):
        return self._cache.length

    def append(self, layer, k, v):
        self.calls.append(("append", layer))
        return self._cache.append(layer, k, v)

    def advance(self, c):
        self.calls.append(("advance", c))
        self._cache.advance(c)


def _new_cache(notebook, params, config, batch):
    dtype = params["embed"].dtype
    sizes = (len(params["blocks"]), batch, config.num_kv_heads, config.d_head)
    return notebook["KVCache"](*sizes, config.context_length, dtype)


@holds("decode_step", "Token by token the logits are those of the whole chunk.", share=1e-4)
def token_by_token(decode_step, params, ids, cache, config, mask=None, last_only=False, *, notebook):
    whole = decode_step(params, ids, _new_cache(notebook, params, config, len(ids)), config)
    own = _new_cache(notebook, params, config, len(ids))
    steps = [decode_step(params, ids[:, i : i + 1], own, config) for i in range(ids.shape[1])]
    return [torch.cat(steps, dim=1), own.length], [whole, ids.shape[1]]


@holds("decode_step", "Each layer's keys and values are appended once, in order; then the chunk is counted, once.")
def cache_is_used_once(decode_step, params, ids, cache, config, mask=None, last_only=False, *, notebook):
    recorder = _Recorder(_new_cache(notebook, params, config, len(ids)))
    decode_step(params, ids, recorder, config)
    layers = [("append", layer) for layer in range(len(params["blocks"]))]
    return recorder.calls == [*layers, ("advance", ids.shape[1])]


@holds("decode_step", "last_only gives the last row; a text alone has its part; padding on the left changes nothing.", share=1e-4)
def parts_of_the_batch(decode_step, params, ids, cache, config, mask=None, last_only=False, *, notebook):
    def run(some_ids, **settings):
        own = _new_cache(notebook, params, config, len(some_ids))
        return decode_step(params, some_ids, own, config, **settings)

    whole = run(ids)
    padded = torch.cat([ids[:, :1], ids], dim=1)
    real = torch.ones(padded.shape).bool()
    real[:, 0] = False
    shifted = run(padded, mask=real)[:, 1:]
    return [run(ids, last_only=True), run(ids[-1:]), shifted], [whole[:, -1:], whole[-1:], whole]


@holds("decode_step", "Later tokens change nothing for earlier ones.", share=1e-4)
def later_tokens(decode_step, params, ids, cache, config, mask=None, last_only=False, *, notebook):
    other = ids.clone()
    other[:, -1] = (other[:, -1] + 1) % config.vocab_size
    answers = []
    for some_ids in (ids, other):
        own = _new_cache(notebook, params, config, len(ids))
        answers.append(decode_step(params, some_ids, own, config)[:, :-1])
    return answers[0], answers[1]


@holds("decode_step", "Ids outside the vocabulary, and a mask of another size, are refused.")
def strange_chunks(decode_step, params, ids, cache, config, mask=None, last_only=False, *, notebook):
    def own():
        return _new_cache(notebook, params, config, len(ids))

    wide = torch.ones(len(ids), ids.shape[1] + 2).bool()
    return (
        refused(decode_step, params, ids * 0 + config.vocab_size, own(), config)
        and refused(decode_step, params, ids * 0 - 1, own(), config)
        and refused(decode_step, params, ids, own(), config, wide)
    )


@holds("prefill", "The logits are of all positions, a text alone has its part, and the cache is as long.", share=1e-4)
def prompts_alone(prefill, params, prompt, cache, config, mask=None, *, notebook):
    whole_cache = _new_cache(notebook, params, config, len(prompt))
    whole = prefill(params, prompt, whole_cache, config)
    alone = prefill(params, prompt[-1:], _new_cache(notebook, params, config, 1), config)
    if whole.shape != (*prompt.shape, config.vocab_size):
        return False
    return [alone, whole_cache.length], [whole[-1:], prompt.shape[1]]


@holds("prefill", "Padding on the left changes nothing; a cache that is not empty is refused.", share=1e-4)
def padded_prompts(prefill, params, prompt, cache, config, mask=None, *, notebook):
    used = _new_cache(notebook, params, config, len(prompt))
    whole = prefill(params, prompt, used, config)
    if not refused(prefill, params, prompt, used, config):
        return False
    padded = torch.cat([prompt[:, :1], prompt], dim=1)
    real = torch.ones(padded.shape).bool()
    real[:, 0] = False
    own = _new_cache(notebook, params, config, len(prompt))
    return prefill(params, padded, own, config, real)[:, 1:], whole


@holds("generate_cached", "The prompt comes first; written so far, it goes on as the whole did; texts alone too.")
def goes_on(generate_cached, params, prompt, num_new, config):
    text = generate_cached(params, prompt, num_new, config)
    width = prompt.shape[1]
    if text.dtype != torch.int64 or text.shape != (len(prompt), width + num_new):
        return False
    half = generate_cached(params, prompt, num_new // 2, config)
    rest = generate_cached(params, half, num_new - num_new // 2, config)
    alone = generate_cached(params, prompt[-1:], num_new, config)
    return [rest, alone, text[:, :width]], [text, text[-1:], prompt]


@holds("generate_cached", "A negative number, and a prompt without a token, are refused.")
def nothing_to_continue(generate_cached, params, prompt, num_new, config):
    return refused(generate_cached, params, prompt, -1, config) and refused(
        generate_cached, params, prompt[:, :0], 1, config
    )


@holds("kv_cache_bytes", "A Python int, proportional to each size; one token's key and value are two numbers a feature.")
def proportional(kv_cache_bytes, config, n, batch, bytes_per_element):
    size = kv_cache_bytes(config, n, batch, bytes_per_element)
    features = config.num_layers * config.num_kv_heads * config.d_head
    return (
        type(size) is int
        and kv_cache_bytes(config, 3 * n, batch, bytes_per_element) == 3 * size
        and kv_cache_bytes(config, n, 3 * batch, bytes_per_element) == 3 * size
        and kv_cache_bytes(config, 1, 1, 1) == 2 * features
        and kv_cache_bytes(config, n, batch, 1) * bytes_per_element == size
    )


@holds("kv_cache_bytes", "Sizes below 1 are refused.")
def no_bytes(kv_cache_bytes, config, n, batch, bytes_per_element):
    return (
        refused(kv_cache_bytes, config, 0, batch, bytes_per_element)
        and refused(kv_cache_bytes, config, n, 0, bytes_per_element)
        and refused(kv_cache_bytes, config, n, batch, 0)
    )


@holds("speculative_accept", "A token is accepted where u is below p over q; all before the first rejection count.")
def accepted_tokens(speculative_accept, p, q, drafted, u):
    count = 0
    for place, token in enumerate(drafted.tolist()):
        if float(u[place]) * float(q[place, token]) >= float(p[place, token]):
            break
        count += 1
    accepted = speculative_accept(p, q, drafted, u)[0]
    return type(accepted) is int and accepted == count


@holds("speculative_accept", "The rest sums to 1, and to 0 where all were accepted; what the draft likes too much has 0.")
def rest_of_the_target(speculative_accept, p, q, drafted, u):
    accepted, rest = speculative_accept(p, q, drafted, u)
    if accepted == len(drafted):
        return rest, torch.zeros(p.shape[1]).double()
    is_zero = bool((rest[p[accepted] <= q[accepted]] == 0).all())
    return float(rest.sum()) * is_zero, 1.0


@holds("speculative_accept", "Two numbers of the rest are as far apart as p − q there, up to one factor.")
def shape_of_the_rest(speculative_accept, p, q, drafted, u):
    accepted, rest = speculative_accept(p, q, drafted, u)
    if accepted == len(drafted):
        return None
    apart = (p[accepted] - q[accepted]).clamp(min=0)
    return rest * float(apart.max()), apart * float(rest.max())


@holds("unheard_query", "The notes' weights stay, and a weight of the last token moves by 0.1 or more.")
def unheard(unheard_query, q, k):
    answer = unheard_query(q, k)
    root = math.sqrt(q.shape[1])

    def notes(last):
        rows = [*q[:-1].tolist(), last]
        return shares_of([dot_product(a, b) / root for a, b in zip(rows, k.tolist())])

    def heard(last):
        return shares_of([dot_product(last, key) / root for key in k.tolist()])

    old, new = q[-1].tolist(), answer.tolist()
    if answer.shape != q.shape[1:]:
        return False
    stays = max(abs(a - b) for a, b in zip(notes(old), notes(new))) <= 1e-9
    return stays and max(abs(a - b) for a, b in zip(heard(old), heard(new))) >= 0.1


@holds("unheard_query", "With keys on one line, or a single token, there is none.")
def on_one_line(unheard_query, q, k):
    alike = k[-1:].expand_as(k)
    return refused(unheard_query, q, alike) and refused(unheard_query, q[:1], k[:1])

"""Small scripts for students, where a call of a hidden test of assignment 8 cannot be pasted."""

import torch

from autograder.suite.contracts import contract

LONG = 12
"""Tokens that a model or a cache has room for, and no script needs."""
KINDS = {
    "rotary": {},
    "learned": {"learned": True},
    "tied": {"tied": True},
    "half": {"dtype": torch.float16},
}


def _model(draw, play, kv_heads, layers, context=LONG):
    """A model that the notebook's own functions make: its sizes, and its parameters."""
    sizes = {"vocab_size": 5, "d_model": 4, "num_layers": layers, "num_heads": 2}
    sizes |= {"num_kv_heads": kv_heads, "d_head": 2, "d_ff": 2}
    config = play.call("make_config", **sizes, context_length=context)
    kind = draw.choose("kind", (*KINDS, "rotary", "learned"))
    return config, play.call("random_params", config, draw.whole(1, 9), **KINDS[kind])


def _dtype(draw):
    return torch.float16 if draw.settings["kind"] == "half" else torch.float64


def _cache(draw, play, batch, kv_heads, layers):
    sizes = (layers, batch, kv_heads, 2, LONG, _dtype(draw))
    if draw.choose("cache", ("whole", "whole", "window")) == "window":
        return play.call("SlidingWindowCache", *sizes, 2)
    return play.call("KVCache", *sizes)


def _sizes(draw):
    """Batch, heads of keys, and layers."""
    return draw.choose("sizes", ((1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2)))


def _ids(draw, batch, length):
    """Tokens that all differ, as far as there are so many."""
    count = batch * length
    return ((torch.arange(count) * 2 + draw.whole(0, 4)) % 5).view(batch, length)


def _last_only(draw):
    is_there = draw.choose("last_only", ("left out", "left out", "there")) == "there"
    return {"last_only": True} if is_there else {}


def two_chunks(draw, play, name):
    """Two chunks of a text go through a small model."""
    batch, kv_heads, layers = _sizes(draw)
    config, params = _model(draw, play, kv_heads, layers)
    cache = _cache(draw, play, batch, kv_heads, layers)
    for length in draw.choose("chunks", ((2, 2), (3, 1), (1, 2), (2,))):
        ids = _ids(draw, batch, length)
        play.call(name, params, ids, cache, config, **_last_only(draw))
        play.read("length", on=cache)


def two_padded_chunks(draw, play, name):
    """Two chunks, of which the first begins with padding in the last row."""
    batch, kv_heads, layers = _sizes(draw)
    lengths = draw.choose("chunks", ((2, 2), (3, 1), (3,), (2, 1)))
    # a table of positions for what is no padding; the answer key refuses further rows
    context = draw.choose("context", (LONG, sum(lengths) - 1))
    config, params = _model(draw, play, kv_heads, layers, context)
    cache = _cache(draw, play, batch, kv_heads, layers)
    real = torch.ones(batch, sum(lengths), dtype=torch.bool)
    real[-1, 0] = False
    end = 0
    for length in lengths:
        end += length
        ids = _ids(draw, batch, length)
        mask = real[:, :end].clone()
        play.call(name, params, ids, cache, config, mask, **_last_only(draw))


def _is_right_at_real_tokens(answer, right, arguments):
    """Rows at padding may be anything. Calls that make a model or a cache are not judged."""
    if len(arguments) < 5 or not isinstance(right, torch.Tensor):
        return True
    real = arguments[4][:, -right.shape[1] :]
    if not isinstance(answer, torch.Tensor) or answer.shape != right.shape:
        return False
    tolerance = 1e-6 if right.dtype == torch.float64 else 0.02
    is_near = torch.isclose(answer, right, rtol=tolerance, atol=tolerance)
    return answer.dtype == right.dtype and bool(is_near[real].all())


contract("decode_step", two_chunks, dtypes=("float64",))
contract("decode_step", two_chunks, dtypes=("float64",))
contract(
    "decode_step",
    two_padded_chunks,
    dtypes=("float64",),
    right_if=_is_right_at_real_tokens,
)


def prompts_of_two_lengths(draw, play, name):
    """A prompt, with padding or without."""
    batch, kv_heads, layers = _sizes(draw)
    config, params = _model(draw, play, kv_heads, layers)
    cache = _cache(draw, play, batch, kv_heads, layers)
    ids = _ids(draw, batch, draw.whole(1, 3))
    play.call(name, params, ids, cache, config)
    play.read("length", on=cache)


contract("prefill", prompts_of_two_lengths, dtypes=("float64",))


def short_texts(draw, play, name):
    """Up to three new tokens of one text or two."""
    batch, kv_heads, layers = _sizes(draw)
    length, num_new = draw.whole(1, 3), draw.whole(1, 4)
    context = draw.choose("context", (LONG, length + num_new - 1))
    config, params = _model(draw, play, kv_heads, layers, context)
    play.call(name, params, _ids(draw, batch, length), num_new, config)


contract("generate_cached", short_texts, dtypes=("float64",), equals="free")

CHUNKS = """
def in_a_row(cache, *numbers):
    \"\"\"What append returned for each chunk, looked at after the last one.\"\"\"
    answers = []
    for number in numbers:
        chunk = torch.full((1, 1, 1, 1), float(number))
        answers.append(cache.append(0, chunk, -chunk))
        cache.advance(1)
        chunk.fill_(99.0)
    return [(k.flatten().tolist(), v.flatten().tolist()) for k, v in answers]


def after_a_refusal(cache, k, v):
    \"\"\"Whether a second chunk is refused, and what the cache holds after the first one.\"\"\"
    is_refused = False
    chunk = torch.full((1, 1, 1, 1), 5.0)
    cache.append(0, chunk, -chunk)
    try:
        cache.append(0, k, v)
    except ValueError:
        is_refused = True
    cache.advance(1)
    k, v = cache.append(0, chunk, -chunk)
    return is_refused, k.flatten().tolist(), v.flatten().tolist()


def replaced(cache, first, second):
    \"\"\"What append returned, after another chunk has taken the chunk's place.\"\"\"
    answer = cache.append(0, first, -first)
    cache.append(0, second, -second)
    return [part.flatten().tolist() for part in answer]


def changed_by_the_caller(cache):
    \"\"\"The cache after a caller has changed its own chunk.\"\"\"
    k, v = torch.ones(1, 1, 1, 1), -torch.ones(1, 1, 1, 1)
    cache.append(0, k, v)
    k.fill_(99.0)
    v.fill_(99.0)
    cache.advance(1)
    return [part.flatten().tolist() for part in cache.append(0, k, v)]
"""


def _number_cache(draw, play, name):
    """A cache of one number a token."""
    window = [draw.choose("window", (2, 3))] if name == "SlidingWindowCache" else []
    return play.call(name, 1, 1, 1, 1, 4, torch.float32, *window)


def a_second_cache(draw, play, name):
    """Two caches, one after the other."""
    play.helpers = CHUNKS
    cache, other = (_number_cache(draw, play, name) for _ in range(2))
    play.helper("in_a_row", other, 7)
    play.helper("in_a_row", cache, 1, 2)


def chunks_that_are_kept(draw, play, name):
    """Answers are looked at after later chunks, before a reset and behind it."""
    play.helpers = CHUNKS
    cache = _number_cache(draw, play, name)
    play.helper("in_a_row", cache, 1, 2, 3)
    play.call("reset", on=cache)
    play.read("length", on=cache)
    play.helper("in_a_row", cache, 8, 9)


def a_refused_chunk(draw, play, name):
    """Values of another width than the keys."""
    play.helpers = CHUNKS
    cache = _number_cache(draw, play, name)
    widths = draw.choose("widths", ((1, 2), (2, 1)))
    chunk = (torch.ones(1, 1, 1, width) for width in widths)
    play.helper("after_a_refusal", cache, *chunk)


def tensors_of_the_caller(draw, play, name):
    """A caller goes on with its own tensors; or another chunk replaces the first."""
    play.helpers = CHUNKS
    cache = _number_cache(draw, play, name)
    if draw.choose("kind", ("changed", "replaced")) == "changed":
        play.helper("changed_by_the_caller", cache)
    else:
        chunks = (torch.full((1, 1, 1, 1), number) for number in (1.0, 2.0))
        play.helper("replaced", cache, *chunks)


def chunks_of_some_tokens(draw, play, name):
    """Chunks of which some tokens count; then a new one."""
    cache = _number_cache(draw, play, name)
    for number in range(1, draw.whole(2, 4)):
        count = draw.choose("tokens", (1, 2))
        keys = torch.arange(count).float().view(1, 1, -1, 1) + 2 * number
        play.call("append", 0, keys, -keys, on=cache)
        play.read("length", on=cache)
        play.call("advance", draw.whole(0, min(1, count)), on=cache)
        play.read("length", on=cache)
    if draw.happens(40):
        play.call("reset", on=cache)
        play.call("append", 0, torch.ones(1, 1, 1, 1), torch.ones(1, 1, 1, 1), on=cache)


for question in ("KVCache", "SlidingWindowCache"):
    for form in (
        chunks_of_some_tokens,
        chunks_that_are_kept,
        a_second_cache,
        a_refused_chunk,
        tensors_of_the_caller,
    ):
        contract(question, form)

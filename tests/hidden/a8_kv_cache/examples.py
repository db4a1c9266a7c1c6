"""Small scripts for students, where a call of a hidden test of assignment 8 cannot be pasted."""

import torch

from autograder.suite.contracts import contract, tokens

CONTEXT = 12


def _model(draw, play, kv_heads, layers):
    """A model that the notebook's own functions make: its sizes, and its parameters."""
    sizes = {"vocab_size": 5, "d_model": 2, "num_layers": layers, "num_heads": 2}
    sizes |= {"num_kv_heads": kv_heads, "d_head": 2, "d_ff": 2}
    config = play.call("make_config", **sizes, context_length=CONTEXT)
    kind = draw.choose("kind", ("rotary", "rotary", "learned", "tied"))
    settings = {} if kind == "rotary" else {kind: True}
    return config, play.call("random_params", config, draw.whole(1, 9), **settings)


def _cache(draw, play, batch, kv_heads, layers):
    sizes = (layers, batch, kv_heads, 2, CONTEXT, torch.float64)
    if draw.choose("cache", ("whole", "whole", "window")) == "window":
        return play.call("SlidingWindowCache", *sizes, 2)
    return play.call("KVCache", *sizes)


def _sizes(draw):
    """Batch, heads of keys, and layers."""
    return draw.choose("sizes", ((1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2)))


def _last_only(draw):
    is_there = draw.choose("last_only", ("left out", "left out", "there")) == "there"
    return {"last_only": True} if is_there else {}


def two_chunks(draw, play, name):
    """Two chunks of a text go through a small model."""
    batch, kv_heads, layers = _sizes(draw)
    config, params = _model(draw, play, kv_heads, layers)
    cache = _cache(draw, play, batch, kv_heads, layers)
    for length in draw.choose("chunks", ((2, 2), (3, 1), (1, 2), (2,))):
        ids = draw(tokens(batch, length, below=5), "ids")
        play.call(name, params, ids, cache, config, **_last_only(draw))
        play.read("length", on=cache)


def two_padded_chunks(draw, play, name):
    """Two chunks, of which the first begins with padding in the last row."""
    batch, kv_heads, layers = _sizes(draw)
    config, params = _model(draw, play, kv_heads, layers)
    cache = _cache(draw, play, batch, kv_heads, layers)
    lengths = draw.choose("chunks", ((2, 2), (3, 1), (3,), (2, 1)))
    real = torch.ones(batch, sum(lengths), dtype=torch.bool)
    real[-1, 0] = False
    end = 0
    for length in lengths:
        end += length
        ids = draw(tokens(batch, length, below=5), "ids")
        mask = real[:, :end].clone()
        play.call(name, params, ids, cache, config, mask, **_last_only(draw))


def _is_right_at_real_tokens(answer, right, arguments):
    """Rows at padding may be anything. Calls that make a model or a cache are not judged."""
    if len(arguments) < 5 or not isinstance(right, torch.Tensor):
        return True
    real = arguments[4][:, -right.shape[1] :]
    if not isinstance(answer, torch.Tensor) or answer.shape != right.shape:
        return False
    is_near = torch.isclose(answer, right, rtol=1e-6, atol=1e-6)
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
    ids = draw(tokens(batch, draw.whole(1, 3), below=5), "ids")
    play.call(name, params, ids, cache, config)
    play.read("length", on=cache)


contract("prefill", prompts_of_two_lengths, dtypes=("float64",))


def short_texts(draw, play, name):
    """Up to three new tokens of one text or two."""
    batch, kv_heads, layers = _sizes(draw)
    config, params = _model(draw, play, kv_heads, layers)
    prompt = draw(tokens(batch, draw.whole(1, 3), below=5), "prompt")
    play.call(name, params, prompt, draw.whole(1, 4), config)


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
    \"\"\"Whether a chunk was refused, and what the cache holds then.\"\"\"
    is_refused = False
    try:
        cache.append(0, k, v)
    except ValueError:
        is_refused = True
    chunk = torch.full((1, 1, 1, 1), 5.0)
    k, v = cache.append(0, chunk, -chunk)
    return is_refused, k.flatten().tolist(), v.flatten().tolist()


def changed_by_the_caller(cache):
    \"\"\"The cache after a caller has changed its own chunk, and what append returned.\"\"\"
    k, v = torch.ones(1, 1, 1, 1), -torch.ones(1, 1, 1, 1)
    for part in (*cache.append(0, k, v), k, v):
        part.fill_(99.0)
    cache.advance(1)
    return [part.flatten().tolist() for part in cache.append(0, k, v)]
"""


def _number_cache(draw, play, name):
    """A cache of one number a token."""
    window = [draw.choose("window", (2, 3))] if name == "SlidingWindowCache" else []
    return play.call(name, 1, 1, 1, 1, 4, torch.float32, *window)


def chunks_that_are_kept(draw, play, name):
    """Answers are looked at after later chunks; tokens of the caller's change."""
    play.helpers = CHUNKS
    cache = _number_cache(draw, play, name)
    kind = draw.choose("kind", ("in a row", "reset", "changed", "refused", "two"))
    if kind == "changed":
        play.helper("changed_by_the_caller", cache)
        return
    if kind == "two":
        other = _number_cache(draw, play, name)
        play.helper("in_a_row", other, 7)
    play.helper("in_a_row", cache, *range(1, draw.whole(3, 4)))
    if kind == "reset":
        play.call("reset", on=cache)
        play.read("length", on=cache)
        play.helper("in_a_row", cache, 8, 9)
    elif kind == "refused":
        shapes = draw.choose("shapes", ((1, 2), (2, 1)))
        play.helper(
            "after_a_refusal", cache, *(torch.ones(1, 1, 1, size) for size in shapes)
        )


def chunks_of_some_tokens(draw, play, name):
    """Chunks of which some tokens count; then a new one."""
    cache = _number_cache(draw, play, name)
    for number in range(1, draw.whole(2, 4)):
        count = draw.choose("tokens", (1, 2))
        keys = torch.arange(count).float().view(1, 1, -1, 1) + 2 * number
        play.call("append", 0, keys, -keys, on=cache)
        play.call("advance", draw.whole(0, min(1, count)), on=cache)
        play.read("length", on=cache)
    if draw.happens(40):
        play.call("reset", on=cache)
        play.call("append", 0, torch.ones(1, 1, 1, 1), torch.ones(1, 1, 1, 1), on=cache)


for question in ("KVCache", "SlidingWindowCache"):
    contract(question, chunks_that_are_kept)
    contract(question, chunks_of_some_tokens)

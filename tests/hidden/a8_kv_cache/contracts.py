"""What the docstrings of assignment 8 allow."""

from types import SimpleNamespace

import torch

from autograder.suite.contracts import (
    FULL,
    calls,
    choice,
    config_of,
    contract,
    mask,
    tensor,
    tokens,
    whole,
)

SMALL = {
    "B": (1, 3),
    "H_kv": (1, 2),
    "G": (1, 3),
    "half": (1, 2),
    "d": (1, 3),
    "c": (1, 3),
    "D": (1, 6),
    "F": (1, 5),
    "V": (2, 7),
    "N": (1, 6),
}
"""Sizes of a model that answers in a moment."""


def chunks_into_caches(draw, play, name):
    """One cache, or two in turn: chunks of some tokens, of which some count, and a new beginning now
    and then.
    """
    layers = draw.whole(1, 3)
    sizes = [draw.size(axis) for axis in ("B", "H_kv", "d")]
    capacity = draw.whole(3, 12)
    dtype = getattr(
        torch, draw.choose("dtype of the cache", ("float64", "float32", "float16"))
    )
    window = [draw.whole(1, 5)] if name == "SlidingWindowCache" else []
    caches = [
        play.call(name, layers, *sizes, capacity, dtype, *window)
        for _ in range(draw.choose("caches", (1, 1, 2)))
    ]
    lengths = [0 for _ in caches]
    for _ in range(draw.whole(1, 5)):
        turn = draw.whole(0, len(caches) - 1)
        if draw.happens(15):
            play.call("reset", on=caches[turn])
            lengths[turn] = 0
        _append_a_chunk(draw, play, caches[turn], layers, capacity - lengths[turn])
        counted = (
            draw.whole(0, draw.sizes["c"]) if draw.happens(25) else draw.sizes["c"]
        )
        play.call("advance", counted, on=caches[turn])
        lengths[turn] += counted
        play.read("length", on=caches[turn])


def _append_a_chunk(draw, play, cache, layers, room):
    """A chunk for every layer; one of them may get another one before the first counts."""
    draw.forget("c")
    if draw.size("c") > room:
        draw.sizes["c"] = draw.whole(1, room)
    order = list(range(layers)) + (
        [draw.whole(0, layers - 1)] if draw.happens(20) else []
    )
    for layer in order:
        k = draw(tensor("B", "H_kv", "c", "d", values=("normal", "whole")), "k")
        v = draw(tensor("B", "H_kv", "c", "d", values=("normal", "whole")), "v")
        play.call("append", layer, k, v, on=cache)


contract("KVCache", chunks_into_caches, sizes=SMALL)

contract(
    "ragged_positions", calls(mask=mask("B", "N")), sizes={"N": (0, 7), "B": (0, 4)}
)

CACHE = """
class Joining:
    def __init__(self, window):
        self.length, self.layers = 0, {}
        if window is not None:
            self.window = window

    def append(self, layer, k, v):
        if layer in self.layers:
            length = self.length
            if hasattr(self, "window"):
                length = min(length, self.window - 1)
            old = self.layers[layer]
            old = [part[:, :, : self.length][:, :, self.length - length :] for part in old]
            seen = [torch.cat([part, new], dim=2) for part, new in zip(old, (k, v))]
            whole = self.layers[layer]
            self.layers[layer] = [
                torch.cat([part[:, :, : self.length], new], dim=2)
                for part, new in zip(whole, (k, v))
            ]
            return tuple(seen)
        self.layers[layer] = [k, v]
        return k, v

    def advance(self, c):
        self.length = self.length + c


def joining_cache(window=None):
    return Joining(window)
"""
"""A cache of the suite's own: keeps everything, and shows what a window leaves."""
TAME = ("normal", "whole")


def _model(draw):
    """Parameters and sizes: rotary or learned positions, an unembedding of its own or tied."""
    layers = draw.whole(1, 2)
    wide, narrow = draw.size("H_kv*G*2*half"), draw.size("H_kv*2*half")
    params = {"embed": draw(tensor("V", "D", values=TAME), "embed"), "blocks": []}
    for _ in range(layers):
        shapes = {
            "w_q": ("D", wide),
            "w_k": ("D", narrow),
            "w_v": ("D", narrow),
            "w_o": (wide, "D"),
            "w1": ("D", "F"),
            "b1": ("F",),
            "w2": ("F", "D"),
            "b2": ("D",),
        }
        shapes |= dict.fromkeys(
            ("ln1_gamma", "ln1_beta", "ln2_gamma", "ln2_beta"), ("D",)
        )
        block = {
            key: draw(tensor(*axes, values=TAME), key) for key, axes in shapes.items()
        }
        params["blocks"].append(block)
    params |= {
        key: draw(tensor("D", values=TAME), key) for key in ("lnf_gamma", "lnf_beta")
    }
    longest = 24
    if draw.choose("positions", ("rotary", "learned")) == "learned":
        params["positions"] = draw(tensor(longest, "D", values=TAME), "positions")
    if draw.choose("unembedding", ("tied", "its own")) == "its own":
        params["unembed"] = draw(tensor("D", "V", values=TAME), "unembed")
    config = SimpleNamespace(
        vocab_size=draw.size("V"),
        d_model=draw.size("D"),
        num_layers=layers,
        num_heads=draw.size("H_kv*G"),
        num_kv_heads=draw.size("H_kv"),
        d_head=draw.size("2*half"),
        d_ff=draw.size("F"),
        context_length=longest,
        theta=draw.choose("theta", (100.0, 10000.0)),
    )
    return params, config


def _cache_of_the_suite(draw, play, config):
    """A cache that is right, with a window or none."""
    play.helpers = CACHE
    window = draw.choose("window", (None, None, 1, 2, 3))
    return play.helper("joining_cache", *([window] if window else []))


def _cache_of_the_notebook(draw, play, config):
    """A cache of the student's: examples for students can show no other."""
    window = draw.choose("window", (None, None, 1, 2, 3))
    sizes = [config.num_layers, draw.size("B"), config.num_kv_heads, config.d_head]
    sizes += [config.context_length, draw.dtype]
    if window:
        return play.call("SlidingWindowCache", *sizes, window)
    return play.call("KVCache", *sizes)


def _chunks(draw, play, name, open_cache):
    """One to three chunks into one cache; logits of all or of the last."""
    params, config = _model(draw)
    cache = open_cache(draw, play, config)
    for _ in range(draw.whole(1, 3)):
        draw.forget("c")
        ids = draw(tokens("B", "c", below="V"), "ids")
        settings = {}
        if draw.choose("last_only", ("left out", "left out", "there")) == "there":
            settings["last_only"] = True
        play.call(name, params, ids, cache, config, **settings)
        play.read("length", on=cache)


def chunks_through_the_model(draw, play, name):
    """Chunks into a cache of the suite's."""
    _chunks(draw, play, name, _cache_of_the_suite)


def chunks_into_a_cache_of_the_notebook(draw, play, name):
    """Chunks into a cache of the student's."""
    _chunks(draw, play, name, _cache_of_the_notebook)


contract("decode_step", chunks_through_the_model, sizes=SMALL)
contract("decode_step", chunks_into_a_cache_of_the_notebook, sizes=SMALL)


def _padded_chunks(draw, play, name, open_cache):
    """Rows are padded on the left; the mask grows with the chunks."""
    params, config = _model(draw)
    cache = open_cache(draw, play, config)
    batch = draw.size("B")
    lengths = [draw.whole(1, 3) for _ in range(draw.whole(1, 3))]
    padding = torch.tensor([draw.whole(0, sum(lengths) - 1) for _ in range(batch)])
    real = torch.arange(sum(lengths)) >= padding[:, None]
    end = 0
    for length in lengths:
        end += length
        ids = draw(tokens("B", length, below="V"), "ids")
        settings = {}
        if draw.choose("last_only", ("left out", "left out", "there")) == "there":
            settings["last_only"] = True
        play.call(name, params, ids, cache, config, real[:, :end].clone(), **settings)


def padded_chunks_through_the_model(draw, play, name):
    """Padded rows into a cache of the suite's."""
    _padded_chunks(draw, play, name, _cache_of_the_suite)


def padded_chunks_into_a_cache_of_the_notebook(draw, play, name):
    """Padded rows into a cache of the student's."""
    _padded_chunks(draw, play, name, _cache_of_the_notebook)


def _is_right_where_tokens_are_real(answer, right, arguments):
    """Rows at padding may be anything."""
    if not isinstance(right, torch.Tensor):
        return True  # the call that makes the cache
    allowed = arguments[4]
    real = allowed[:, -right.shape[1] :]  # with last_only the last one alone
    if not isinstance(answer, torch.Tensor) or answer.shape != right.shape:
        return False
    digits = 1e-8 if right.dtype == torch.float64 else 1e-3
    apart = (answer - right)[real].abs() / right[real].abs().amax(
        -1, keepdim=True
    ).clamp(min=1)
    return answer.dtype == right.dtype and bool((apart <= digits).all())


contract(
    "decode_step",
    padded_chunks_through_the_model,
    sizes=SMALL,
    dtypes=("float64",),
    right_if=_is_right_where_tokens_are_real,
)
contract(
    "decode_step",
    padded_chunks_into_a_cache_of_the_notebook,
    sizes=SMALL,
    dtypes=("float64",),
    right_if=_is_right_where_tokens_are_real,
)


def _prompt(draw, play, name, open_cache):
    """A prompt; then the cache has seen it."""
    params, config = _model(draw)
    cache = open_cache(draw, play, config)
    play.call(name, params, draw(tokens("B", "N", below="V"), "prompt"), cache, config)
    play.read("length", on=cache)


def prompts_into_an_empty_cache(draw, play, name):
    """A prompt into a cache of the suite's."""
    _prompt(draw, play, name, _empty_cache_of_the_suite)


def prompts_into_a_cache_of_the_notebook(draw, play, name):
    """A prompt into a cache of the student's."""
    _prompt(draw, play, name, _cache_of_the_notebook)


def _empty_cache_of_the_suite(draw, play, config):
    """A cache without a window."""
    play.helpers = CACHE
    return play.helper("joining_cache")


contract("prefill", prompts_into_an_empty_cache, sizes=SMALL)
contract("prefill", prompts_into_a_cache_of_the_notebook, sizes=SMALL)


def _padded_prompt(draw, play, name, open_cache):
    """Rows are padded on the left."""
    params, config = _model(draw)
    cache = open_cache(draw, play, config)
    length = draw.size("N")
    padding = torch.tensor([draw.whole(0, length - 1) for _ in range(draw.size("B"))])
    real = torch.arange(length) >= padding[:, None]
    play.call(
        name, params, draw(tokens("B", "N", below="V"), "prompt"), cache, config, real
    )


def padded_prompts_into_an_empty_cache(draw, play, name):
    """A padded prompt into a cache of the suite's."""
    _padded_prompt(draw, play, name, _empty_cache_of_the_suite)


def padded_prompts_into_a_cache_of_the_notebook(draw, play, name):
    """A padded prompt into a cache of the student's."""
    _padded_prompt(draw, play, name, _cache_of_the_notebook)


contract(
    "prefill",
    padded_prompts_into_an_empty_cache,
    sizes=SMALL,
    dtypes=("float64",),
    right_if=_is_right_where_tokens_are_real,
)
contract(
    "prefill",
    padded_prompts_into_a_cache_of_the_notebook,
    sizes=SMALL,
    dtypes=("float64",),
    right_if=_is_right_where_tokens_are_real,
)


def greedy_texts(draw, play, name):
    """Equal logits leave the choice of a token free."""
    params, config = _model(draw)
    play.call(
        name,
        params,
        draw(tokens("B", "N", below="V"), "prompt"),
        draw.whole(0, 5),
        config,
    )


contract(
    "generate_cached", greedy_texts, sizes=SMALL, dtypes=("float64",), equals="free"
)

contract(
    "kv_cache_bytes",
    calls(
        config=config_of(
            num_layers=whole(1, 9), num_kv_heads=whole(1, 9), d_head=whole(1, 9)
        ),
        n=whole(1, 5000),
        batch=whole(1, 9),
        bytes_per_element=choice(2, 4),
    ),
)

contract("SlidingWindowCache", chunks_into_caches, sizes=SMALL)


def _are_distributions(p, q, drafted, u):
    """Rows sum to 1, and what was drafted had a probability."""
    if p.shape != q.shape or not len(drafted):
        return False
    sums = torch.cat([p.sum(-1), q.sum(-1)])
    was_likely = q[torch.arange(len(q)), drafted] > 0
    is_number = (u >= 0) & (u < 1) & was_likely
    return (
        bool((sums - 1).abs().max() < 1e-5)
        and bool((p >= 0).all())
        and bool(is_number.all())
    )


contract(
    "speculative_accept",
    calls(
        p=tensor("K", "V", values=("distributions",)),
        q=tensor("K", "V", values=("distributions",)),
        drafted=tokens("K", below="V"),
        u=tensor("K", values=("shares",)),
    ),
    sizes={"K": (1, 6), "V": (1, 6)},
    dtypes=FULL,
    allowed_if=_are_distributions,
)


def _is_unheard(answer, right, arguments):
    """The notes' weights stay, which have each query meet its own key; the last token's move."""
    q, k = arguments
    if not isinstance(answer, torch.Tensor) or answer.shape != q.shape[1:]:
        return False
    other = q.clone()
    other[-1] = answer
    root = q.shape[1] ** 0.5
    old_notes, new_notes = (
        torch.softmax((part * k).sum(-1) / root, dim=0) for part in (q, other)
    )
    old, new = (torch.softmax(k @ query / root, dim=0) for query in (q[-1], answer))
    is_same = (old_notes - new_notes).abs().max() <= 1e-9
    return bool(is_same and (old - new).abs().max() >= 0.1)


def _are_across(q, k):
    """Whether a key stands across the last one, or all keys lie on one line. Between the two, a
    query that moves a weight is so long that its rounding alone moves the notes' by 1e-9.
    """
    last = k[-1]
    if not last.any():
        return True
    across = k - (k @ last / (last @ last))[:, None] * last
    share = across.norm(dim=1).max() / k.norm(dim=1).max()
    return bool(share >= 0.05 or share < 1e-9)


contract(
    "unheard_query",
    calls(
        q=tensor("N", "d", values=("normal", "whole", "zeros", "equal rows")),
        k=tensor("N", "d", values=("normal", "whole", "small", "equal rows")),
    ),
    sizes={"N": (2, 6), "d": (2, 6)},
    dtypes=("float64",),
    right_if=_is_unheard,
    allowed_if=_are_across,
)

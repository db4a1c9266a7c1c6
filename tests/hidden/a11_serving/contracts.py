"""What the docstrings of assignment 11 allow."""

import math
from types import SimpleNamespace

import torch

from autograder.suite.contracts import (
    FULL,
    HALF,
    calls,
    choice,
    computed,
    config_of,
    contract,
    list_of,
    tensor,
    whole,
)


def blocks_lent_and_given_back(draw, play, name):
    """Some blocks are lent, shared and released, in orders that the pool allows and others."""
    size = draw.whole(1, 6)
    pool = play.call(name, size)
    counts = [0] * size
    for _ in range(draw.whole(2, 8)):
        held = [block for block in range(size) if counts[block]]
        what = draw.choose(
            "what", ("allocate", "allocate", "share", "release", "release")
        )
        if what == "allocate":
            n = draw.whole(0, size)
            play.call("allocate", n, on=pool)
            free = [block for block in range(size) if not counts[block]]
            for block in free[:n] if n <= len(free) else []:
                counts[block] = 1
        elif held:
            blocks = [block for block in held if draw.happens(50)]
            play.call(what, blocks, on=pool)
            for block in blocks:
                counts[block] += 1 if what == "share" else -1
        play.read("num_free", on=pool)
        play.call("holders", draw.whole(0, size - 1), on=pool)


contract("BlockPool", blocks_lent_and_given_back)

SMALL = {
    "H_kv": (1, 2),
    "d": (1, 3),
    "c": (1, 4),
    "S": (1, 4),
    "G": (1, 3),
    "L": (1, 9),
}


FULL_BLOCKS = """
def full_blocks(cache, name):
    return cache.table(name)[: cache.length(name) // cache.block_size]
"""


def texts_in_blocks(draw, play, name):
    """A text, forks of it, texts that begin with its full blocks, and ends; after each step all of
    it is read.
    """
    play.helpers = FULL_BLOCKS
    layers, num_blocks, block_size = (
        draw.whole(1, 2),
        draw.whole(2, 9),
        draw.whole(1, 4),
    )
    dtype = getattr(
        torch, draw.choose("dtype of the cache", ("float64", "float32", "float16"))
    )
    sizes = [draw.size(axis) for axis in ("H_kv", "d")]
    cache = play.call(name, layers, num_blocks, block_size, *sizes, dtype)
    names, fresh = ["a"], 0
    play.call("start", "a", on=cache)
    for _ in range(draw.whole(2, 6)):
        text = names[draw.whole(0, len(names) - 1)]
        what = draw.choose("what", ("feed", "feed", "feed", "fork", "share", "free"))
        if what in ("fork", "share"):
            fresh += 1
            names.append(f"{what} {fresh}")
            _begin_like(play, cache, text, names[-1], what)
        elif what == "free" and len(names) > 1:
            names.remove(text)
            play.call("free", text, on=cache)
        else:
            _feed_a_chunk(draw, play, cache, text, layers)
        play.read("num_free", on=cache)
        for text in names:
            play.call("table", text, on=cache)
            play.call("length", text, on=cache)
            play.call("missing", text, draw.whole(1, 5), on=cache)
            play.call("gather", text, layers - 1, on=cache)


def _begin_like(play, cache, text, new, what):
    """A text that begins like another: its fork, or one with its full blocks alone."""
    if what == "fork":
        play.call("fork", text, new, on=cache)
    else:
        play.call("start", new, play.helper("full_blocks", cache, text), on=cache)


def _feed_a_chunk(draw, play, cache, text, layers):
    """A chunk for every layer, of which all or some tokens count."""
    draw.forget("c")
    c = draw.size("c")
    for layer in range(layers):
        k = draw(tensor("H_kv", "c", "d", values=("normal", "whole")), "k")
        v = draw(tensor("H_kv", "c", "d", values=("normal", "whole")), "v")
        play.call("append", text, layer, k, v, on=cache)
    play.call("advance", text, draw.whole(0, c) if draw.happens(20) else c, on=cache)


contract("PagedCache", texts_in_blocks, sizes=SMALL)

contract(
    "reserved_bytes",
    calls(
        lengths=list_of(whole(1, 40), 0, 5),
        config=config_of(
            num_layers=whole(1, 9), num_kv_heads=whole(1, 9), d_head=whole(1, 9)
        ),
        block_size=whole(1, 16),
        capacity=whole(40, 99),
        bytes_per_element=choice(2, 4),
    ),
)

contract(
    "paged_attention",
    calls(
        q=tensor("H_kv*G", "c", "d", values=("normal", "whole", "large")),
        keys=tensor(9, "H_kv", "S", "d", values=("normal", "whole")),
        values=tensor(9, "H_kv", "S", "d", values=("normal", "whole")),
        table=choice([8, 3, 5, 0, 1, 7, 2, 6, 4], [0, 1, 2, 3, 4, 5, 6, 7, 8]),
        length=computed(
            lambda call: min(
                9 * call.arguments["keys"].shape[2], call.arguments["q"].shape[1] + 5
            )
        ),
    ),
    sizes=SMALL,
    dtypes=HALF,
    allowed_if=lambda q, keys, values, table, length: q.shape[1] <= length,
    tolerance={"float32": 1e-3, "float16": 1e-2},
)

MODEL = {
    "H_kv": (1, 2),
    "G": (1, 2),
    "half": (1, 2),
    "D": (1, 5),
    "F": (1, 4),
    "V": (2, 6),
    "R": (2, 9),
}
"""Sizes of a model that answers in a moment; R: rows of a table of logits."""
TAME = ("normal", "whole")
_PLENTY = 120
"""Blocks that no script uses up."""


def _model(draw):
    """Parameters and sizes of a decoder."""
    wide, narrow = draw.size("H_kv*G*2*half"), draw.size("H_kv*2*half")
    config = SimpleNamespace(
        vocab_size=draw.size("V"),
        d_model=draw.size("D"),
        num_layers=draw.whole(1, 2),
        num_heads=draw.size("H_kv*G"),
        num_kv_heads=draw.size("H_kv"),
        d_head=draw.size("2*half"),
        d_ff=draw.size("F"),
        theta=draw.choose("theta", (100.0, 10000.0)),
    )
    vectors = ("ln1_gamma", "ln1_beta", "ln2_gamma", "ln2_beta", "b2")
    matrices = {"w_q": ("D", wide), "w_k": ("D", narrow), "w_v": ("D", narrow)}
    matrices |= {"w_o": (wide, "D"), "w1": ("D", "F"), "w2": ("F", "D")}
    block = {"b1": ("F",), **dict.fromkeys(vectors, ("D",)), **matrices}
    ends = {"embed": ("V", "D"), "lnf_gamma": ("D",), "lnf_beta": ("D",)}
    params = _drawn(draw, {**ends, "unembed": ("D", "V")})
    params["blocks"] = [_drawn(draw, block) for _ in range(config.num_layers)]
    return params, config


def _drawn(draw, shapes):
    return {key: draw(tensor(*axes, values=TAME), key) for key, axes in shapes.items()}


def _ids(draw, low, high):
    """A list of low to high token ids."""
    vocab_size = draw.size("V")
    return [draw.whole(0, vocab_size - 1) for _ in range(draw.whole(low, high))]


def steps_of_some_texts(draw, play, name):
    """Chunks of some texts go through the model together; between the steps texts begin, some like
    others, and end.
    """
    params, config = _model(draw)
    play.helpers = FULL_BLOCKS
    heads = (config.num_kv_heads, config.d_head)
    sizes = (config.num_layers, _PLENTY, draw.whole(1, 4), *heads)
    cache = play.call("PagedCache", *sizes, draw.dtype)
    texts = []
    for number in range(draw.whole(1, 4)):
        new = draw.choose("names", (number, f"text {number}"))
        if len(texts) > 1 and draw.happens(20):
            play.call("free", texts.pop(0), on=cache)
        if texts and draw.happens(50):
            kind = draw.choose("kind", ("fork", "share"))
            _begin_like(play, cache, texts[-1], new, kind)
        else:
            play.call("start", new, on=cache)
        texts.append(new)
        chunks = []
        for text in texts:
            if text == new or draw.happens(70):
                place = draw.whole(0, len(chunks))
                chunks.insert(place, (text, _ids(draw, 1, 4)))
        play.call(name, params, chunks, cache, config)
        for text, _ in chunks:
            play.call("length", text, on=cache)
            play.call("gather", text, config.num_layers - 1, on=cache)


contract("batched_step", steps_of_some_texts, sizes=MODEL, tolerance={"float32": 1e-3})

STEP = """
class Step:
    def __init__(self, cache, rows, layers):
        self.cache, self.rows, self.layers = cache, rows, layers
        self.fed = []

    def __call__(self, chunks):
        self.fed.append(sorted(len(new) for _, new in chunks))
        return torch.stack([self.logits(name, new) for name, new in chunks])

    def logits(self, name, new):
        ids = torch.tensor([float(token) for token in new]).view(1, -1, 1)
        for layer in range(self.layers):
            self.cache.append(name, layer, ids, ids)
        self.cache.advance(name, len(new))
        text = self.cache.gather(name, self.layers - 1)[0].flatten().tolist()
        place = 0
        for token in text:
            place = (5 * place + int(token) + 1) % len(self.rows)
        return self.rows[place] * (1 + len(text) / 8)


def make_step(cache, rows, layers):
    return Step(cache, rows, layers)


def sizes_fed(step):
    return step.fed
"""
"""A model whose logits are a row of a table, and follow from all tokens in the cache."""
APART = ("normal", "large")
"""Styles of logits of which no two are equal."""


def _cache_of_a_table(draw, play, num_blocks, block_size):
    """A cache with keys of one number, and how many layers it has."""
    layers = draw.whole(1, 2)
    sizes = (layers, num_blocks, block_size, 1, 1, torch.float64)
    return play.call("PagedCache", *sizes), layers


def _once_or_twice(draw, first, second):
    """The settings of one call, or of two calls that differ in one of them, or in nothing."""
    changes = ("no second call", "nothing", *first)
    changed = draw.choose("second call differs in", changes)
    if changed == "no second call":
        return [first]
    return [first, first | {key: second[key] for key in first if key == changed}]


def _requests(draw):
    return [(_ids(draw, 1, 5), draw.whole(1, 6)) for _ in range(draw.whole(0, 6))]


def requests_in_little_memory(draw, play, name):
    """Each request fits into the cache, and most often not all of them together."""
    lists = [_requests(draw), _requests(draw)]
    block_size = draw.whole(1, 4)
    longest = max(
        (len(prompt) + max_new - 1 for prompt, max_new in [*lists[0], *lists[1]]),
        default=1,
    )
    num_blocks = -(-longest // block_size) + draw.whole(0, 5)
    cache, layers = _cache_of_a_table(draw, play, num_blocks, block_size)
    play.helpers = STEP

    def settings(requests):
        rows = draw(tensor("R", "V", values=APART), "rows")
        return {
            "requests": requests,
            "step": play.helper("make_step", cache, rows, layers),
            "max_running": draw.whole(1, 4),
            "eos_id": draw.choose("eos_id", ("left out", None, 0, 1)),
        }

    for chosen in _once_or_twice(draw, settings(lists[0]), settings(lists[1])):
        eos_id = chosen["eos_id"]
        end = {} if eos_id == "left out" else {"eos_id": eos_id}
        places = chosen["max_running"]
        play.call(name, chosen["requests"], cache, chosen["step"], places, **end)
        play.read("num_free", on=cache)


contract("serve", requests_in_little_memory, sizes=MODEL, equals="free")

TABLE = """
def table_of(pool, index, tokens, block_size):
    known = index.match(tokens)
    pool.share(known)
    return known + pool.allocate(-(-len(tokens) // block_size) - len(known))
"""
"""What a server does with a new text: it takes the blocks that are known, and others."""


def texts_that_begin_alike(draw, play, name):
    """Texts of few different tokens begin, are remembered in one piece or in two, and end; one
    index, or two with a pool each.
    """
    block_size, play.helpers = draw.whole(1, 3), TABLE
    kinds = ("begin", "begin", "begin anew", "end", "evict")
    servers = []
    for _ in range(draw.choose("indexes", (1, 1, 2))):
        pool = play.call("BlockPool", _PLENTY)
        servers.append((pool, play.call(name, pool, block_size), []))
    for _ in range(draw.whole(2, 8)):
        pool, index, tables = servers[draw.whole(0, len(servers) - 1)]
        tokens = _ids(draw, 0, 8)
        kind = draw.choose("kind", kinds)
        if kind.startswith("begin"):
            if kind == "begin":
                table = play.helper("table_of", pool, index, tokens, block_size)
            else:
                num_blocks = -(-len(tokens) // block_size)
                table = play.call("allocate", num_blocks, on=pool)
            tables.append(table)
            if draw.happens(30):
                finished = tokens[: draw.whole(0, len(tokens))]
                play.call("insert", finished, table, on=index)
            play.call("insert", tokens, table, on=index)
        elif kind == "end" and tables:
            table = tables.pop(draw.whole(0, len(tables) - 1))
            play.call("release", table, on=pool)
        elif kind == "evict":
            play.call("evict", on=index)
        play.call("match", tokens, on=index)
        play.call("match", _ids(draw, 0, 9), on=index)
        play.call("holders", draw.whole(0, 9), on=pool)
        play.read("num_free", on=pool)


contract("PrefixIndex", texts_that_begin_alike, sizes={"V": (1, 3)})


def searches_of_a_table(draw, play, name):
    """Beams of any number; an end token that may come or not; now and then a token that hardly
    ever comes. One of probability 0 would make all its texts equally likely.
    """
    cache, layers = _cache_of_a_table(draw, play, _PLENTY, draw.whole(1, 4))
    play.helpers = STEP
    vocab_size = draw.size("V")

    def settings():
        num_beams = draw.whole(1, 7)
        rows = draw(tensor("R", "V", values=APART), "rows")
        if num_beams < vocab_size and draw.happens(20):
            rows[:, draw.whole(0, vocab_size - 1)] = -300.0
        return {
            "prompt": _ids(draw, 1, 5),
            "step": play.helper("make_step", cache, rows, layers),
            "num_beams": num_beams,
            "max_new": draw.whole(1, 4),
            "alpha": draw.choose("alpha", (0.0, 0.6, 1.0, 2.0)),
            "eos_id": draw.whole(-1, vocab_size - 1),
        }

    for chosen in _once_or_twice(draw, settings(), settings()):
        prompt, step, *others = chosen.values()
        play.call(name, prompt, cache, step, *others)
        play.helper("sizes_fed", step)
        play.read("num_free", on=cache)


contract("beam_search", searches_of_a_table, sizes=MODEL, equals="free")

contract(
    "sink_mass",
    calls(
        weights=tensor("B", "H", "N", "N", values=("shares",)),
        num_first=computed(
            lambda call: max(1, call.arguments["weights"].shape[-1] // 2)
        ),
    ),
    sizes={"N": (2, 7)},
    dtypes=FULL,
)

contract(
    "sink_attention",
    calls(
        q=tensor("B", "H_kv*G", 1, "2*half", values=("normal", "whole")),
        k=tensor("B", "H_kv", "L", "2*half", values=("normal", "whole")),
        v=tensor("B", "H_kv", "L", "2*half", values=("normal", "whole")),
        num_sinks=whole(0, 4),
        window=whole(1, 5),
        theta=choice(100.0, 10000.0),
    ),
    sizes={**SMALL, "half": (1, 2)},
    dtypes=FULL,
)

contract(
    "decode_costs",
    calls(
        config=config_of(
            num_layers=whole(1, 9),
            d_model=whole(1, 20),
            num_heads=whole(1, 9),
            num_kv_heads=whole(1, 9),
            d_head=whole(1, 9),
            d_ff=whole(1, 30),
            vocab_size=whole(2, 40),
        ),
        batch=whole(1, 40),
        n=whole(1, 500),
        bytes_per_element=choice(2, 4),
    ),
)


def _is_idle_and_decisive(answer, right, arguments):
    """The idle token has the weight, the decisive one moves the output."""
    q, k, v = arguments
    if not isinstance(answer, (tuple, list)) or len(answer) != 4:
        return False
    root = math.sqrt(len(q))
    before = torch.softmax(k @ q / root, dim=0) @ v

    def added(key, value):
        weights = torch.softmax(torch.cat([k, key[None]]) @ q / root, dim=0)
        return weights[-1], (weights @ torch.cat([v, value[None]]) - before).norm()

    (idle, stays), (decisive, moves) = added(*answer[:2]), added(*answer[2:])
    return bool(idle >= 0.9 and stays <= 1e-9 and decisive <= 0.01 and moves >= 10)


contract(
    "idle_and_decisive",
    calls(
        q=tensor("d", values=("normal", "whole")),
        k=tensor("N", "d", values=("normal", "whole")),
        v=tensor("N", "d_v", values=("normal", "whole")),
    ),
    dtypes=("float64",),
    allowed_if=lambda q, k, v: bool(q.any()),
    right_if=_is_idle_and_decisive,
)

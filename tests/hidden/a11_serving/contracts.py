"""What the docstrings of assignment 11 allow."""

import math

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


def texts_in_blocks(draw, play, name):
    """Two texts, forks of them, and ends; after each step all of it is read."""
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
        what = draw.choose("what", ("feed", "feed", "feed", "fork", "free"))
        if what == "fork":
            fresh += 1
            names.append(f"fork {fresh}")
            play.call("fork", text, names[-1], on=cache)
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

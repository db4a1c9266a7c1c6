"""Small scripts for students, where a call of a hidden test of assignment 11 cannot be pasted."""

import torch

from autograder.suite.contracts import contract, tensor

REFUSED = """
def refused(function, *arguments):
    try:
        function(*arguments)
    except ValueError:
        return True
    return False


def after_refused_blocks(pool, blocks, kind):
    was_refused = refused(getattr(pool, kind), blocks)
    return was_refused, [pool.holders(block) for block in blocks]
"""


def blocks_that_nobody_holds(draw, play, name):
    """share or release of a block that is held, and of one that is free."""
    play.helpers = REFUSED
    size = draw.whole(2, 4)
    held = draw.whole(1, size - 1)
    pool = play.call(name, size)
    play.call("allocate", held, on=pool)
    kind = draw.choose("kind", ("share", "release"))
    play.helper("after_refused_blocks", pool, [0, size - 1], kind)


def blocks_that_come_back(draw, play, name):
    """Blocks are lent, some shared, given back one by one, and lent again."""
    size = draw.whole(2, 4)
    pool = play.call(name, size)
    play.call("allocate", 1, on=pool)
    play.call("allocate", size - 1, on=pool)
    shared = [block for block in range(size) if draw.happens(40)]
    play.call("share", shared, on=pool)
    order = draw.choose("order", ("rising", "falling"))
    blocks = list(range(size))
    for block in blocks if order == "rising" else reversed(blocks):
        play.call("release", [block], on=pool)
    play.read("num_free", on=pool)
    play.call("holders", shared[0] if shared else 0, on=pool)
    play.call("allocate", size - len(shared), on=pool)


def blocks_of_two_pools(draw, play, name):
    """A pool lends blocks; another one has all of its own."""
    size = draw.whole(3, 5)
    pools = [play.call(name, size) for _ in range(2)]
    play.call("allocate", size - 1, on=pools[0])
    play.read("num_free", on=pools[1])
    play.call("allocate", size, on=pools[1])


def blocks_in_another_order(draw, play, name):
    """All blocks are lent; the last ones come back first, and are lent again."""
    size = draw.whole(8, 11)
    pool = play.call(name, size)
    play.call("allocate", size, on=pool)
    for block in (size - 1, size - 4, 0):
        play.call("release", [block], on=pool)
    play.call("allocate", 2, on=pool)


contract("BlockPool", blocks_of_two_pools)
contract("BlockPool", blocks_in_another_order)
contract("BlockPool", blocks_that_nobody_holds)
contract("BlockPool", blocks_that_come_back)


def _cache_of_numbers(draw, play):
    """A cache with keys of one number, in blocks of one token or two; and its layers."""
    layers = draw.choose("layers", (1, 2))
    block_size = draw.choose("block size", (2, 2, 1))
    return play.call("PagedCache", layers, 9, block_size, 1, 1, torch.float32), layers


def _chunks(first, layers, count):
    """A chunk for each layer: keys first, first + 1, …, and their negatives as values."""
    keys = torch.arange(first, first + count).float().view(1, -1, 1)
    return [(keys + 10 * layer, -keys) for layer in range(layers)]


def texts_that_share_blocks(draw, play, name):
    """Texts are fed in turns, forked and ended; then each is read."""
    cache, layers = _cache_of_numbers(draw, play)
    play.call("start", "a", on=cache)
    play.call("feed", cache, "a", _chunks(1, layers, draw.whole(1, 3)))
    names = ["a"]
    for number in range(draw.whole(1, 3)):
        kind = draw.choose("kind", ("fork", "begin", "feed", "leave out", "end"))
        new = f"{'bcd'[number]}"
        if kind in ("fork", "begin"):
            play.call("fork", "a", new, on=cache) if kind == "fork" else play.call(
                "start", new, on=cache
            )
            names.append(new)
            if draw.happens(70):
                play.call("feed", cache, new, _chunks(5, layers, draw.whole(1, 2)))
        elif kind == "end" and len(names) > 1:
            play.call("free", names.pop(), on=cache)
        elif kind == "leave out":
            for layer, (k, v) in enumerate(_chunks(3, layers, 3)):
                play.call("append", "a", layer, k, v, on=cache)
        else:
            play.call("feed", cache, "a", _chunks(7, layers, draw.whole(1, 2)))
    for text in names:
        play.call("missing", text, 1, on=cache)
        play.call("table", text, on=cache)
        play.call("gather", text, layers - 1, on=cache)
    play.read("num_free", on=cache)


KEPT = """
def table_before(cache, name, chunks):
    table = cache.table(name)
    feed(cache, name, chunks)
    return table
"""


def tables_that_are_kept(draw, play, name):
    """A table is looked at after its text has grown."""
    play.helpers = KEPT
    cache, layers = _cache_of_numbers(draw, play)
    play.call("start", "a", on=cache)
    play.helper("table_before", cache, "a", _chunks(1, layers, draw.whole(1, 3)))


contract("PagedCache", texts_that_share_blocks)
contract("PagedCache", texts_that_share_blocks)
contract("PagedCache", texts_that_share_blocks)
contract("PagedCache", tables_that_are_kept)


def steps_of_a_small_model(draw, play, name):
    """One text or two, fed in two steps."""
    layers = draw.choose("layers", (1, 2))
    sizes = {"vocab_size": 5, "d_model": 4, "num_layers": layers, "num_heads": 2}
    config = play.call("make_config", **sizes, num_kv_heads=1, d_head=2, d_ff=2)
    params = play.call("random_params", config, draw.whole(1, 4))
    cache = play.call("PagedCache", layers, 9, 2, 1, 2, torch.float64)
    num_texts, num_steps = draw.choose("texts and steps", ((1, 1), (1, 2), (2, 2)))
    names = ["a", "b"][:num_texts]
    for text in names:
        play.call("start", text, on=cache)
    for step in range(num_steps):
        lengths = [draw.whole(1, 3) for _ in names]
        chunks = [
            (text, [(token + step) % 5 for token in range(length)])
            for text, length in zip(names, lengths, strict=True)
        ]
        play.call(name, params, chunks, cache, config)
        for text in names:
            play.call("length", text, on=cache)


contract("batched_step", steps_of_a_small_model, dtypes=("float64",))


def blocks_with_a_beginning(draw, play, name):
    """A text of two or three full blocks is remembered; it ends in whole or in part."""
    pool = play.call("BlockPool", 6)
    index = play.call(name, pool, 2)
    count = draw.choose("blocks", (2, 3))
    tokens = [draw.whole(0, 2) for _ in range(2 * count)]
    table = play.call("allocate", count, on=pool)
    play.call("insert", tokens[:2], table, on=index)
    play.call("insert", tokens, table, on=index)
    longer = [*tokens, 1]
    play.call("match", longer, on=index)
    play.call("holders", 0, on=pool)
    ended = draw.choose("ended", (list(range(count)), [0], [1]))
    play.call("release", ended, on=pool)
    play.call("holders", 0, on=pool)
    play.call("evict", on=index)
    play.read("num_free", on=pool)
    play.call("match", longer, on=index)


contract("PrefixIndex", blocks_with_a_beginning)

STEP = """
def make_step(cache, rows):
    \"\"\"A model: its logits are a row that follows from the tokens in the cache.\"\"\"

    def step(chunks):
        logits = []
        step.fed.append([len(new) for _, new in chunks])
        for name, new in chunks:
            keys = torch.tensor(new).double().view(1, -1, 1)
            cache.append(name, 0, keys, keys)
            cache.advance(name, len(new))
            text = cache.gather(name, 0)[0].flatten()
            place = int(text.sum()) + len(text)
            logits.append(rows[place % len(rows)])
        return torch.stack(logits)

    step.fed = []
    return step
"""


def _step_of_rows(draw, play, num_blocks, rows, vocab_size):
    play.helpers = STEP
    cache = play.call("PagedCache", 1, num_blocks, 2, 1, 1, torch.float64)
    logits = draw(tensor(rows, vocab_size, values=("normal",), dtype="float64"))
    logits = (4 * logits).round() + torch.arange(vocab_size) / 8
    return cache, play.helper("make_step", cache, logits)


def _prompt(draw, vocab_size):
    return [draw.whole(0, vocab_size - 1) for _ in range(draw.whole(1, 3))]


def requests_in_few_blocks(draw, play, name):
    """Up to four requests, of which all or some fit at a time."""
    requests = [(_prompt(draw, 3), draw.whole(1, 4)) for _ in range(draw.whole(1, 4))]
    longest = max(len(prompt) + max_new - 1 for prompt, max_new in requests)
    num_blocks = -(-longest // 2) + draw.choose("blocks more", (0, 1, 4))
    cache, step = _step_of_rows(draw, play, num_blocks, 4, 3)
    end = {"eos_id": 0} if draw.choose("eos_id", ("left out", "0")) == "0" else {}
    play.call(name, requests, cache, step, draw.whole(1, 3), **end)
    play.read("num_free", on=cache)


contract("serve", requests_in_few_blocks, dtypes=("float64",), equals="free")


def searches_of_a_short_text(draw, play, name):
    """Two or three beams over two or three steps."""
    cache, step = _step_of_rows(draw, play, 20, 4, 3)
    beams, max_new = draw.choose("beams", (2, 2, 3)), draw.choose("max_new", (2, 3))
    alpha, end = draw.choose("alpha", (0.0, 1.0, 2.0)), draw.choose("end", (-1, 0, 1))
    play.call(name, _prompt(draw, 3), cache, step, beams, max_new, alpha, end)
    play.read("fed", on=step)
    play.read("num_free", on=cache)


contract("beam_search", searches_of_a_short_text, dtypes=("float64",), equals="free")

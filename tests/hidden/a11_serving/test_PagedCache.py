"""PagedCache: many texts in blocks, driven through a handle.

Two layers, three heads of five, blocks of four, unless a test is about something else.
"""

import torch

from autograder.suite import (
    assert_close,
    assert_equal,
    assert_refused,
    points,
    randn,
    uses,
)

pytestmark = uses("BlockPool")

# A caller inside the worker: what was returned is looked at only after everything else was done.
CALLER = """
def caller(cache, script):
    answers = []
    for name, *arguments in script:
        if name == "scribble":
            for t in script[arguments[0]][3:]:
                t.fill_(7.0)
        elif name == "scribble on the table":
            answers[arguments[0]].append(0)
        else:
            answers.append(getattr(cache, name)(*arguments))
    return answers
"""


def _cache(student, num_blocks=9, block_size=4, dtype=torch.float64, layers=2):
    return student.PagedCache(layers, num_blocks, block_size, 3, 5, dtype)


def _chunks(c, layers=2, dtype=torch.float64):
    """A chunk for each layer: keys and values [3, c, 5]."""
    return [
        (randn(3, c, 5, dtype=dtype), randn(3, c, 5, dtype=dtype))
        for _ in range(layers)
    ]


def _text(student, cache, name, *sizes, layers=2):
    """Begin a text and feed it chunks of these sizes. Returns the chunks."""
    cache.start(name)
    fed = [_chunks(c, layers) for c in sizes]
    for chunks in fed:
        student.feed(cache, name, chunks)
    return fed


def _assert_holds(cache, name, fed, layers=(0, 1), what="", same_dtype=False):
    """gather returns the keys and the values of these chunks, in order."""
    for layer in layers:
        answer = cache.gather(name, layer)
        is_pair = isinstance(answer, (tuple, list)) and len(answer) == 2
        assert is_pair, "gather should return the pair (k, v)."
        for i, kind in enumerate(("keys", "values")):
            expected = torch.cat([chunks[layer][i] for chunks in fed], dim=1)
            assert_close(
                answer[i],
                expected,
                same_dtype=same_dtype,
                what=f"the {kind} of text {name!r} in layer {layer}{what}",
            )


@points(1.5)
def test_tokens_come_back_in_order(student):
    """Chunks of 3, 1, 6 and 2 tokens in blocks of 4: gather returns the twelve keys and values."""
    cache = _cache(student, layers=1)
    fed = _text(student, cache, "a", 3, 1, 6, 2, layers=1)
    assert_equal(cache.length("a"), 12, what="the length")
    _assert_holds(cache, "a", fed, layers=(0,))


@points(1)
def test_layers_and_texts_have_their_own_tokens(student):
    """Two texts are fed in turns, in two layers, blocks of 4 and of 1."""
    for block_size in (4, 1):
        cache = _cache(student, num_blocks=20, block_size=block_size)
        first, second = _text(student, cache, "a", 3), _text(student, cache, 7, 5)
        for name, fed in (("a", first), (7, second), ("a", first)):
            fed.append(_chunks(2))
            student.feed(cache, name, fed[-1])
        _assert_holds(cache, "a", first)
        _assert_holds(cache, 7, second)


@points(1)
def test_blocks_are_taken_when_they_are_needed(student):
    """Nothing at first; one block for 1 to 4 tokens, a second for the fifth. The second layer takes
    none.
    """
    cache = _cache(student)
    cache.start("a")
    assert_equal(cache.num_free, 9, what="the free blocks while the text is empty")
    assert_equal(cache.table("a"), [], what="the table of an empty text")
    for part in cache.gather("a", 1):
        assert_equal(
            list(part.shape), [3, 0, 5], what="the shape of an empty text's keys"
        )
    for c, blocks in ((3, 1), (1, 1), (1, 2), (7, 3), (1, 4)):
        chunks = _chunks(c)
        for layer in (0, 1):
            cache.append("a", layer, *chunks[layer])
            assert_equal(
                cache.num_free,
                9 - blocks,
                what=f"the free blocks after append in layer {layer}",
            )
        cache.advance("a", c)
        assert_equal(cache.table("a"), list(range(blocks)), what="the table")
    assert_equal(cache.block_size, 4, what="block_size")


@points(1)
def test_the_table_says_where_the_tokens_lie(student):
    """Text b takes blocks between those of a. Token p of a lies in block table[p // 4], slot p %
    4, of what blocks(layer) gives: keys and values [num_blocks, H_kv, 4, d].
    """
    cache = _cache(student)
    fed = _text(student, cache, "a", 3)
    _text(student, cache, "b", 6)
    fed.append(_chunks(4))
    student.feed(cache, "a", fed[-1])
    assert_equal(cache.table("a"), [0, 3], what="the table of a")
    for layer in (0, 1):
        stored = cache.blocks(layer)
        for i, kind in enumerate(("keys", "values")):
            assert_equal(
                list(stored[i].shape), [9, 3, 4, 5], what=f"the shape of all {kind}"
            )
            expected = torch.cat([chunks[layer][i] for chunks in fed], dim=1)
            for p in range(7):
                slot = stored[i][[0, 3][p // 4], :, p % 4]
                assert_close(slot, expected[:, p], what=f"token {p} among the {kind}")


@points(0.5)
def test_length_moves_with_advance_alone(student):
    """0 while the layers append, then 5; an advance of 2 adds 2."""
    cache = _cache(student)
    cache.start("a")
    for layer, (k, v) in enumerate(_chunks(5)):
        cache.append("a", layer, k, v)
        assert_equal(cache.length("a"), 0, what="the length before advance")
    cache.advance("a", 5)
    _text(student, cache, "b", 1)
    assert_equal(cache.length("a"), 5, what="the length after advance(5)")
    cache.append("a", 0, *_chunks(3)[0])
    cache.advance("a", 2)
    assert_equal(cache.length("a"), 7, what="the length after advance(2) more")


@points(1)
def test_a_chunk_may_be_replaced_or_kept_in_part(student):
    """Two tokens; a chunk of 7 of which 3 are kept; a chunk of 2 that a chunk of 4 replaces. The
    blocks that the long chunk took stay with the text, and are no longer missing.
    """
    cache = _cache(student)
    fed = _text(student, cache, "a", 2)
    guesses, wrong, right = _chunks(7), _chunks(2), _chunks(4)
    for layer, (k, v) in enumerate(guesses):
        cache.append("a", layer, k, v)
    cache.advance("a", 3)
    fed.append([(k[:, :3], v[:, :3]) for k, v in guesses])
    assert_equal(
        cache.missing("a", 4), 0, what="missing, for tokens that fit into the table"
    )
    for layer in (0, 1):
        cache.append("a", layer, *wrong[layer])
        cache.append("a", layer, *right[layer])
    cache.advance("a", 4)
    _assert_holds(cache, "a", [*fed, right])
    assert_equal(cache.num_free, 6, what="the free blocks")


@points(1)
def test_missing_counts_new_blocks_and_copies(student):
    """A text of 6 in blocks of 4: 2 more fit, 3 need a block, 7 need two. Once it is forked the half
    full block counts as well, for both texts; after a full block there is nothing to copy.
    """
    cache = _cache(student)
    _text(student, cache, "a", 6)
    answers = [cache.missing("a", c) for c in (1, 2, 3, 6, 7)]
    assert_equal(
        answers, [0, 0, 1, 1, 2], what="missing for 1, 2, 3, 6 and 7 more tokens"
    )
    cache.fork("a", "b")
    for name in ("a", "b"):
        answers = [cache.missing(name, c) for c in (1, 2, 3, 7)]
        assert_equal(
            answers, [1, 1, 2, 3], what="missing while the last block is shared"
        )
    cache.free("b")
    assert_equal(cache.missing("a", 1), 0, what="missing after the fork is gone")
    _text(student, cache, "c", 4)
    cache.fork("c", "d")
    assert_equal(
        cache.missing("d", 1), 1, what="missing behind a full block that is shared"
    )
    assert_equal(cache.num_free, 6, what="the free blocks: missing takes none")


@points(1.5)
def test_too_few_blocks_are_refused_and_nothing_changes(student):
    """Three blocks of 4, five tokens inside. Eight more need two blocks and one is free: ValueError
    with 2 and 1. Then seven still fit.
    """
    cache = _cache(student, num_blocks=3)
    fed = _text(student, cache, "a", 5)
    assert_refused(cache.append, "a", 0, *_chunks(8)[0], sizes=(2, 1))
    assert_equal(cache.num_free, 1, what="the free blocks after a refused append")
    assert_equal(cache.table("a"), [0, 1], what="the table after a refused append")
    assert_equal(cache.length("a"), 5, what="the length after a refused append")
    fed.append(_chunks(7))
    student.feed(cache, "a", fed[-1])
    _assert_holds(cache, "a", fed)
    cache.fork("a", "b")
    assert_refused(cache.append, "b", 0, *_chunks(1)[0], sizes=(1, 0))
    _assert_holds(cache, "b", fed)


@points(0.5)
def test_chunks_of_another_shape_are_refused(student):
    """Two heads or four for three, six features for five, k longer than v: ValueError each, and no
    block is taken.
    """
    cache = _cache(student)
    cache.start("a")
    for shape in ((2, 2, 5), (4, 2, 5), (3, 2, 6), (3, 2, 4), (1, 2, 5)):
        assert_refused(cache.append, "a", 0, randn(*shape), randn(*shape))
    assert_refused(cache.append, "a", 0, randn(3, 2, 5), randn(3, 1, 5))
    assert_refused(cache.append, "a", 0, randn(3, 1, 5), randn(3, 2, 5))
    assert_equal(cache.num_free, 9, what="the free blocks after refused appends")
    student.feed(cache, "a", _chunks(2))
    assert_equal(cache.num_free, 8, what="the free blocks after a right one")
    k, v = kept = _chunks(1)[0]
    cache.append("a", 0, k, v)
    assert_refused(cache.append, "a", 0, -k, v[..., :4])
    assert_refused(cache.append, "a", 0, k[..., :4], -v)
    cache.advance("a", 1)
    for held, new, name in zip(cache.gather("a", 0), kept, ("k", "v"), strict=True):
        what = f"the last {name} that gather returns after refused appends"
        assert_close(held[:, -1:], new, same_dtype=False, what=what)


@points(1)
def test_a_fork_shares_all_blocks_and_copies_none(student):
    """A text of 6, whose third block is empty: the fork has the first two blocks, and both read the
    same.
    """
    cache = _cache(student)
    fed = _text(student, cache, "a", 6)
    cache.append("a", 0, *_chunks(3)[0])
    cache.fork("a", "b")
    assert_equal(cache.table("a"), [0, 1, 2], what="the table of the first text")
    assert_equal(cache.table("b"), [0, 1], what="the table of the fork")
    assert_equal(cache.length("b"), 6, what="the length of the fork")
    assert_equal(cache.num_free, 6, what="the free blocks")
    assert_equal(
        [cache.pool.holders(i) for i in range(4)], [2, 2, 1, 0], what="the holders"
    )
    _assert_holds(cache, "b", fed)


@points(2)
def test_texts_go_their_own_ways_after_a_fork(student):
    """A text of 6 is forked twice, and all three append: each has the common six tokens and then its
    own, in both layers.
    """
    cache = _cache(student)
    common = _text(student, cache, "a", 6)
    cache.fork("a", "b")
    cache.fork("b", "c")
    fed = {name: [*common, _chunks(3)] for name in "cab"}
    for name, chunks in fed.items():
        student.feed(cache, name, chunks[-1])
    for name, chunks in fed.items():
        _assert_holds(cache, name, chunks)


@points(1)
def test_only_a_block_that_is_shared_and_written_is_copied(student):
    """A text of 6 and two forks: two of the three get a copy of the half full block, the last one
    writes where it is. Behind a full block nobody copies.
    """
    cache = _cache(student)
    _text(student, cache, "a", 6)
    cache.fork("a", "b")
    cache.fork("a", "c")
    for name in "bca":
        student.feed(cache, name, _chunks(1))
    tables = [cache.table(name) for name in "bca"]
    assert_equal(tables, [[0, 2], [0, 3], [0, 1]], what="the tables of b, c and a")
    assert_equal(
        [cache.pool.holders(i) for i in range(4)], [3, 1, 1, 1], what="the holders"
    )
    _text(student, cache, "d", 4)
    cache.fork("d", "e")
    student.feed(cache, "e", _chunks(5))
    cache.fork("e", "f")
    cache.free("a")
    student.feed(cache, "f", _chunks(5))
    assert_equal(
        cache.table("f"), [4, 5, 1, 7], what="a copy first, and then a new block"
    )
    assert_equal(cache.table("e"), [4, 5, 6], what="a fork of a full block")
    assert_equal(cache.table("d"), [4], what="the text that it was forked from")


@points(1)
def test_a_text_that_ends_gives_its_blocks_back(student):
    """Two texts share two blocks; when one ends, nothing but its own block is free, and the other
    reads on. Its name can be used again.
    """
    cache = _cache(student)
    fed = _text(student, cache, "a", 8)
    cache.fork("a", "b")
    student.feed(cache, "b", _chunks(1))
    cache.free("b")
    assert_equal(cache.num_free, 7, what="the free blocks when the fork has ended")
    _assert_holds(cache, "a", fed)
    again = _text(student, cache, "b", 2)
    _assert_holds(cache, "b", again)
    cache.free("a")
    cache.free("b")
    assert_equal(cache.num_free, 9, what="the free blocks when all texts have ended")


@points(0.5)
def test_a_text_may_begin_with_full_blocks(student):
    """Text b starts with the two full blocks of a, length 8, and goes on. It holds them: they stay
    when a ends.
    """
    cache = _cache(student)
    common = _text(student, cache, "a", 8)
    student.feed(cache, "a", _chunks(1))
    cache.start("b", [0, 1])
    assert_equal(
        cache.length("b"), 8, what="the length of a text that begins with two blocks"
    )
    fed = [*common, _chunks(2)]
    student.feed(cache, "b", fed[-1])
    cache.free("a")
    _assert_holds(cache, "b", fed)
    assert_equal(cache.num_free, 6, what="the free blocks")


@points(0.5)
def test_a_name_is_used_once(student):
    """start and fork with a name that a text has: ValueError with the name, and nothing changes."""
    cache = _cache(student)
    fed = _text(student, cache, 31, 3)
    _text(student, cache, 52, 2)
    assert_refused(cache.start, 31, naming="31")
    assert_refused(cache.fork, 52, 31, naming="31")
    _assert_holds(cache, 31, fed)
    assert_equal([cache.pool.holders(i) for i in range(2)], [1, 1], what="the holders")


@points(0.5)
def test_what_was_returned_stays_and_the_cache_keeps_its_own_numbers(student):
    """gather and table are looked at after later steps, and after the caller changed its own k, v
    and list.
    """
    caller, cache = student.define(CALLER, "caller"), _cache(student, layers=1)
    first, second = _chunks(3, 1), _chunks(3, 1)
    script = [
        ("start", "a"),
        ("append", "a", 0, *first[0]),
        ("advance", "a", 3),
        ("scribble", 1),
        ("gather", "a", 0),
        ("table", "a"),
        ("append", "a", 0, *second[0]),
        ("advance", "a", 0),
        ("append", "a", 0, *second[0]),
        ("advance", "a", 3),
        ("fork", "a", "b"),
        ("free", "a"),
        ("start", "c"),
        ("append", "c", 0, *second[0]),
        ("table", "b"),
        ("scribble on the table", 13),
        ("gather", "b", 0),
        ("table", "b"),
        ("free", "b"),
        ("start", "d"),
        ("append", "d", 0, *_chunks(4, 1)[0]),
    ]
    answers = caller(cache, script)
    for i in (0, 1):
        assert_close(
            answers[3][i], first[0][i], what="an early gather, seen at the end"
        )
        whole = torch.cat([first[0][i], second[0][i]], dim=1)
        assert_close(
            answers[14][i],
            whole,
            what="gather after the caller changed its own numbers",
        )
    assert_equal(answers[4], [0], what="an early table, seen at the end")
    assert_equal(
        answers[15], [0, 1], what="the table after the caller changed the list it got"
    )


@points(0.5)
def test_the_cache_decides_the_dtype(student):
    """A float16 cache is given float32: it returns float16, rounded once, and its blocks are float16.
    Keys that are no contiguous tensors are as good.
    """
    cache = _cache(student, dtype=torch.float16, layers=1)
    fed = [_chunks(3, 1, torch.float32), [(randn(2, 3, 5).transpose(0, 1),) * 2]]
    cache.start("a")
    for chunks in fed:
        student.feed(cache, "a", chunks)
    halves = [[tuple(t.half() for t in pair) for pair in chunks] for chunks in fed]
    _assert_holds(cache, "a", halves, layers=(0,), same_dtype=True)
    for stored in cache.blocks(0):
        assert_equal(stored.dtype, torch.float16, what="the dtype of the blocks")


@points(0.5)
def test_the_smallest_cache_and_a_second_one(student):
    """A block of one token, one head of size 1: all shapes keep their axes. Another cache of the same
    sizes knows nothing of it.
    """
    one, other = (student.PagedCache(1, 1, 1, 1, 1, torch.float64) for _ in "ab")
    k, v = randn(1, 1, 1), randn(1, 1, 1)
    for cache in (one, other):
        assert_equal(
            cache.num_free, 1, what="the free blocks of a cache that nobody has used"
        )
        cache.start("a")
        student.feed(cache, "a", [(k, v)])
        k, v = k + 1, v + 1
    for cache, more in ((one, 0), (other, 1)):
        answer = cache.gather("a", 0)
        assert_close(answer[0], k - 2 + more, what="the keys")
        assert_close(answer[1], v - 2 + more, what="the values")
        assert_equal(
            list(cache.blocks(0)[1].shape), [1, 1, 1, 1], what="the shape of the blocks"
        )


@points(0.5)
def test_a_step_copies_no_block_that_it_need_not(student):
    """Numbers moved by a step of one token, with 21 tokens before it in 40 blocks: a small part of
    the text's keys. And as many operations for six tokens as for one.
    """
    counts, moved = [], []
    for c in (1, 6):
        cache = _cache(student, num_blocks=40)
        cache.start("a")
        student.feed(cache, "a", _chunks(21))
        chunks = _chunks(c)
        cost = student.cost("feed", cache, "a", chunks)
        counts.append(cost.operations)
        moved.append(cost.moved)
        newest = cache.gather("a", 1)[0][:, -c:]
        assert_close(newest, chunks[1][0], what="the newest keys")
    assert counts[1] <= counts[0] + 8, (
        f"{counts[0]} operations for a token, {counts[1]} for six."
    )
    assert moved[0] <= 1000, f"a step of one token moved {moved[0]} numbers."

"""KVCache: driven through a handle, in the orders that callers use.

Two layers, two rows, three heads of five, unless a test is about something else. A whole step, in
which every layer appends and the cache advances, is made by `feed`, which the notebook gives.
"""

import torch

from autograder.suite import (
    assert_close,
    assert_equal,
    assert_refused,
    points,
    randn,
    tensor,
    zeros,
)

# A caller inside the worker: what append returned is looked at only after everything else has been
# done.
CALLER = """
def caller(cache, script):
    kept = []
    for name, *arguments in script:
        if name == "append":
            kept.append(cache.append(*arguments))
        elif name == "scribble":
            for t in script[arguments[0]][2:]:
                t.fill_(7.0)
        else:
            getattr(cache, name)(*arguments)
    return kept
"""


def _cache(student, capacity=11, dtype=torch.float64, batch=2, layers=2):
    return student.KVCache(layers, batch, 3, 5, capacity, dtype)


def _chunk(c, batch=2, dtype=torch.float64):
    return randn(batch, 3, c, 5, dtype=dtype), randn(batch, 3, c, 5, dtype=dtype)


def _assert_pair(answer, chunks, what="", same_dtype=False):
    """What append returned is the keys of these chunks and their values, in order."""
    pair = isinstance(answer, (tuple, list)) and len(answer) == 2
    assert pair, "append should return the pair (k_all, v_all)."
    for i, name in enumerate(("k_all", "v_all")):
        expected = torch.cat([chunk[i] for chunk in chunks], dim=2)
        assert_close(answer[i], expected, same_dtype=same_dtype, what=f"{name}{what}")


@points(0.5)
def test_append_returns_all_keys_in_order(student):
    """Chunks of 3, 1 and 4 tokens. After each, a layer's keys are the old ones and then the new
    ones. One layer.
    """
    cache, keys = _cache(student, layers=1), zeros(2, 3, 0, 5)
    for c in (3, 1, 4):
        chunks = [_chunk(c)]
        keys = torch.cat([keys, chunks[0][0]], dim=2)
        assert_close(
            student.feed(cache, chunks)[0][0],
            keys,
            same_dtype=False,
            what=f"k_all, after {keys.shape[2]} tokens,",
        )


@points(0.5)
def test_append_returns_all_values_in_order(student):
    """Values go their own way beside the keys, through chunks of 3, 1 and 4 tokens. One layer."""
    cache, values = _cache(student, layers=1), zeros(2, 3, 0, 5)
    for c in (3, 1, 4):
        chunks = [_chunk(c)]
        values = torch.cat([values, chunks[0][1]], dim=2)
        assert_close(
            student.feed(cache, chunks)[0][1],
            values,
            same_dtype=False,
            what=f"v_all, after {values.shape[2]} tokens,",
        )


@points(0.5)
def test_every_layer_has_its_own_keys_and_values(student):
    """Layer 1 is asked after layer 0 has had two steps: it must return what layer 1 was given."""
    cache, first, second = (
        _cache(student),
        [_chunk(3), _chunk(3)],
        [_chunk(2), _chunk(2)],
    )
    student.feed(cache, first)
    answers = student.feed(cache, second)
    for layer in (0, 1):
        _assert_pair(
            answers[layer], [first[layer], second[layer]], f" of layer {layer}"
        )


@points(1)
def test_length_moves_once_a_step_and_by_tokens(student):
    """0 at first; the same before, between and after the appends of a step; then larger by c."""
    cache = _cache(student)
    assert_equal(cache.length, 0, what="the length of a new cache")
    total = 0
    for c in (4, 3):
        for layer in (0, 1):
            cache.append(layer, *_chunk(c))
            assert_equal(
                cache.length,
                total,
                what=f"the length before advance, after append({layer}, …),",
            )
        cache.advance(c)
        total += c
        assert_equal(cache.length, total, what=f"the length after advance({c})")


@points(2)
def test_a_second_append_before_advance_replaces_the_first(student):
    """Two tokens, advance; then a chunk of 3, and instead of it a chunk of 2: two old ones and the
    second chunk.
    """
    cache, old, wrong, right = (
        _cache(student),
        [_chunk(2), _chunk(2)],
        _chunk(3),
        _chunk(2),
    )
    student.feed(cache, old)
    cache.append(0, *wrong)
    _assert_pair(cache.append(0, *right), [old[0], right])
    assert_equal(cache.length, 2, what="the length before advance")


@points(2)
def test_advance_may_keep_only_the_beginning_of_a_chunk(student):
    """Five tokens are appended and two kept: the next chunk stands behind the second one."""
    cache, guesses, new = _cache(student), [_chunk(5), _chunk(5)], _chunk(3)
    for layer, (k, v) in enumerate(guesses):
        cache.append(layer, k, v)
    cache.advance(2)
    assert_equal(cache.length, 2, what="the length after advance(2)")
    _assert_pair(cache.append(0, *new), [[t[:, :, :2] for t in guesses[0]], new])


@points(1)
def test_exactly_the_capacity_fits(student):
    """Capacity 7: five tokens and two more are fine, and all of them come back. One row, [1, H_kv,
    7, d].
    """
    cache, first, second = (
        _cache(student, capacity=7, batch=1),
        [_chunk(5, 1)] * 2,
        [_chunk(2, 1)] * 2,
    )
    student.feed(cache, first)
    _assert_pair(
        student.feed(cache, second)[1], [first[1], second[1]], " of a full cache"
    )


@points(1.5)
def test_one_token_too_many_is_refused_and_changes_nothing(student):
    """Capacity 7, five tokens inside, three more: ValueError with 8 and 7, no silent cut. Then two
    still fit.
    """
    cache, first, second = (
        _cache(student, capacity=7),
        [_chunk(5), _chunk(5)],
        _chunk(2),
    )
    student.feed(cache, first)
    assert_refused(cache.append, 0, *_chunk(3), sizes=(8, 7))
    assert_equal(cache.length, 5, what="the length after a refused append")
    _assert_pair(
        cache.append(0, *second), [first[0], second], " after a refused append"
    )


@points(0.5)
def test_advance_beyond_the_capacity_is_refused(student):
    """Capacity 7, five tokens inside: advance(3) is a ValueError that names 8 and 7, and leaves
    length alone.
    """
    cache = _cache(student, capacity=7)
    student.feed(cache, [_chunk(5), _chunk(5)])
    assert_refused(cache.advance, 3, sizes=(8, 7))
    assert_equal(cache.length, 5, what="the length after a refused advance")


@points(0.5)
def test_a_refused_chunk_leaves_the_one_before(student):
    """Two tokens are appended. Chunks whose values, or keys, are too small and one that is too long
    are refused; then advance counts the two that are there.
    """
    cache, kept, (k, v) = _cache(student, capacity=4), _chunk(2), _chunk(2)
    cache.append(0, *kept)
    for chunk in ((k, v[..., :4]), (k[..., :4], v), _chunk(5)):
        assert_refused(cache.append, 0, *chunk)
    cache.advance(2)
    new = _chunk(1)
    _assert_pair(cache.append(0, *new), [kept, new], " after refused appends")


@points(0.5)
def test_chunks_of_another_shape_are_refused(student):
    """Three rows for a batch of two, two or four heads for three, four or six features for five, k
    longer or shorter than v: ValueError each.
    """
    cache = _cache(student)
    for shape in ((3, 3, 2, 5), (2, 2, 2, 5), (2, 4, 2, 5), (2, 3, 2, 4), (2, 3, 2, 6)):
        assert_refused(cache.append, 0, randn(*shape), randn(*shape))
    assert_refused(cache.append, 0, randn(2, 3, 2, 5), randn(2, 3, 1, 5))
    assert_refused(cache.append, 0, randn(2, 3, 1, 5), randn(2, 3, 2, 5))


@points(1)
def test_reset_starts_at_the_beginning(student):
    """Nine of eleven slots are used, then reset: length 0, all the room again, and no trace of the
    old tokens.
    """
    cache = _cache(student)
    student.feed(cache, [_chunk(9), _chunk(9)])
    cache.reset()
    assert_equal(cache.length, 0, what="the length after reset")
    for c, seen in ((8, 8), (3, 11)):
        chunks = [_chunk(c), _chunk(c)]
        answer = student.feed(cache, chunks)[1]
        for i, name in enumerate(("k_all", "v_all")):
            assert_equal(
                list(answer[i].shape),
                [2, 3, seen, 5],
                what=f"the shape of {name} after reset",
            )
            assert_close(
                answer[i][:, :, -c:],
                chunks[1][i],
                same_dtype=False,
                what=f"what is newest in {name} after reset",
            )


@points(0.5)
def test_two_caches_know_nothing_of_each_other(student):
    """Both are alive, and used in turns. Where do your lists live: in the object, or in the
    class?
    """
    one, other = _cache(student), _cache(student)
    mine, theirs = [_chunk(3), _chunk(3)], [_chunk(2), _chunk(2)]
    student.feed(one, mine)
    assert_equal(other.length, 0, what="the length of a cache that nobody has used")
    _assert_pair(student.feed(other, theirs)[0], [theirs[0]], " of the other cache")
    new = _chunk(1)
    _assert_pair(one.append(1, *new), [mine[1], new], " of the first cache")


@points(0.5)
def test_what_was_returned_stays_through_later_steps(student):
    """A caller keeps what append returned, makes two more steps, and looks at it then."""
    caller, cache, chunks = (
        student.define(CALLER, "caller"),
        _cache(student),
        [_chunk(3), _chunk(1), _chunk(2)],
    )
    script = []
    for k, v in chunks:
        script += [("append", 0, k, v), ("advance", k.shape[2])]
    kept = caller(cache, script)
    for n, answer in enumerate(kept, start=1):
        _assert_pair(answer, chunks[:n], f" of step {n}, seen at the end,")


@points(1.5)
def test_what_was_returned_stays_when_a_chunk_is_replaced(student):
    """As before, but the slots get other tokens: by a second append before advance. A view would
    change.
    """
    caller, cache, first, instead = (
        student.define(CALLER, "caller"),
        _cache(student),
        _chunk(3),
        _chunk(3),
    )
    kept = caller(
        cache, [("append", 0, *first), ("append", 0, *instead), ("advance", 3)]
    )
    for answer, chunk in zip(kept, (first, instead), strict=True):
        _assert_pair(answer, [chunk], ", seen after its slots were written again,")


@points(1)
def test_what_was_returned_stays_after_a_reset(student):
    """The slots get the tokens of another text, after a reset. A view would change."""
    caller, cache, first, afterwards = (
        student.define(CALLER, "caller"),
        _cache(student),
        _chunk(3),
        _chunk(4),
    )
    kept = caller(
        cache,
        [("append", 0, *first), ("advance", 3), ("reset",), ("append", 0, *afterwards)],
    )
    for answer, chunk in zip(kept, (first, afterwards), strict=True):
        _assert_pair(answer, [chunk], ", seen after its slots were written again,")


@points(2)
def test_the_cache_keeps_numbers_of_its_own(student):
    """The caller overwrites its own k and v after append. The cache must not hold the caller's
    tensors.
    """
    caller, cache, first, new = (
        student.define(CALLER, "caller"),
        _cache(student),
        _chunk(3),
        _chunk(2),
    )
    kept = caller(
        cache,
        [("append", 0, *first), ("advance", 3), ("scribble", 0), ("append", 0, *new)],
    )
    _assert_pair(kept[1], [first, new], " after the caller changed its own k and v")


@points(1)
def test_the_cache_decides_the_dtype(student):
    """A float16 cache is given float32 chunks: it returns float16, rounded once."""
    cache = _cache(student, dtype=torch.float16)
    first, second = (
        [_chunk(3, dtype=torch.float32)] * 2,
        [_chunk(2, dtype=torch.float32)] * 2,
    )
    for chunks, so_far in ((first, [first]), (second, [first, second])):
        _assert_pair(
            student.feed(cache, chunks)[0],
            [[t.half() for t in c[0]] for c in so_far],
            same_dtype=True,
        )


@points(1)
def test_a_single_row_and_chunks_of_any_layout(student):
    """Batch 1, and a chunk whose heads were just moved in front of its tokens, so not
    contiguous.
    """
    cache, chunks = (
        _cache(student, batch=1),
        [[randn(1, c, 3, 5).transpose(1, 2) for _ in "kv"] for c in (1, 4)],
    )
    for k, v in chunks:
        answers = student.feed(cache, [(k, v), (k, v)])
    for layer in (0, 1):
        _assert_pair(answers[layer], chunks, f" of layer {layer}")


@points(0.5)
def test_a_step_copies_the_cache_at_most_once(student):
    """Elements moved by a step on a cache of 41 tokens: old keys and values may be copied once, not
    once a layer. There is hardly any room left, so that copying the room as well costs little.
    """
    cache, old, new = (
        _cache(student, capacity=45),
        [_chunk(41), _chunk(41)],
        [_chunk(2), _chunk(2)],
    )
    student.feed(cache, old)
    cost = student.cost("feed", cache, new)
    # a cache that returns nothing moves nothing
    _assert_pair(cache.append(0, *new[0]), [old[0], new[0], new[0]])
    whole = 2 * 2 * (2 * 3 * 43 * 5)
    assert cost.moved <= 1.3 * whole, (
        f"one step moved {cost.moved} numbers, and the whole cache holds {whole}: it is copied "
        "more than once."
    )


@points(0.5)
def test_operations_do_not_grow_with_the_length(student):
    """A step on 3 tokens and a step on 37, chunks of 1 and of 6: as many operations. A loop over
    tokens takes more.
    """
    counts = []
    for old, c in ((3, 1), (37, 6)):
        cache = _cache(student, capacity=59)
        student.feed(cache, [_chunk(old), _chunk(old)])
        counts.append(student.cost("feed", cache, [_chunk(c), _chunk(c)]).operations)
        k = tensor(0.5).expand(2, 3, 1, 5)
        assert_close(
            cache.append(1, k, k)[0][:, :, -1:],
            k,
            same_dtype=False,
            what="the newest key",
        )
        assert_equal(cache.length, old + c, what="the length")
    assert counts[1] <= counts[0] + 4, (
        f"{counts[0]} operations on a short cache and {counts[1]} on a longer one."
    )

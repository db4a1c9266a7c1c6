"""SlidingWindowCache: the interface of KVCache, and a memory of window - 1 tokens."""

import torch

from autograder.suite import (
    assert_close,
    assert_equal,
    assert_refused,
    points,
    randn,
    uses,
    zeros,
)

pytestmark = [uses("decode_step")]

# A caller inside the worker: what append returned is looked at only after everything else has been
# done.
CALLER = """
def caller(cache, chunks):
    kept = []
    for k, v in chunks:
        kept.append(cache.append(0, k, v))
        cache.advance(k.shape[2])
    return kept
"""

# What an object keeps alive: all memory behind the tensors that can be reached from it, in bytes.
KEPT = """
def kept(cache):
    import gc, types
    passed_by = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, torch.dtype)
    seen, todo, storages = set(), [cache], {}
    while todo:
        thing = todo.pop()
        if id(thing) in seen or isinstance(thing, passed_by):
            continue
        seen.add(id(thing))
        if isinstance(thing, torch.Tensor):
            storage = thing.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
        else:
            todo.extend(gc.get_referents(thing))
    return sum(storages.values())
"""


def _cache(student, window, capacity=99, dtype=torch.float64, num_layers=2):
    return student.SlidingWindowCache(num_layers, 2, 3, 5, capacity, dtype, window)


def _chunk(c):
    return randn(2, 3, c, 5), randn(2, 3, c, 5)


def _assert_pair(answer, chunks, what="", same_dtype=False):
    """What append returned is the keys of these chunks and their values, in order."""
    pair = isinstance(answer, (tuple, list)) and len(answer) == 2
    assert pair, "append should return the pair (k_all, v_all)."
    for i, name in enumerate(("k_all", "v_all")):
        expected = torch.cat([chunk[i] for chunk in chunks], dim=2)
        assert_close(answer[i], expected, same_dtype=same_dtype, what=f"{name}{what}")


def _part(chunk, tokens):
    return [t[:, :, tokens] for t in chunk]


def _follow(student, cache, window, sizes):
    """Feed chunks of these sizes and compare every answer with the tail of all that was fed."""
    past = [[zeros(2, 3, 0, 5)] * 2 for _ in range(2)]
    total = 0
    for c in sizes:
        chunks = [_chunk(c), _chunk(c)]
        answers = student.feed(cache, chunks)
        total += c
        for layer in (0, 1):
            _assert_pair(
                answers[layer],
                [past[layer], chunks[layer]],
                f" of layer {layer}, after {total} tokens,",
            )
            seen = [
                torch.cat([old, new], dim=2)
                for old, new in zip(past[layer], chunks[layer], strict=True)
            ]
            past[layer] = _part(
                seen, slice(max(0, seen[0].shape[2] - (window - 1)), None)
            )


@points(0.5)
def test_the_newest_tokens_in_order_one_at_a_time(student):
    """A window of 4: three earlier tokens and the new one, in the order of time, for two layers and
    five steps.
    """
    first = _cache(student, 4)
    _follow(student, first, 4, [1] * 5)
    _follow(student, _cache(student, 4), 4, [2])  # another cache: another memory
    assert_equal(first.length, 5, what="the length of the first cache")


@points(0.5)
def test_chunks_of_any_size(student):
    """A window of 4 and chunks of 2, 1, 9, 1: shorter and longer than the window. All of the
    chunk.
    """
    _follow(student, _cache(student, 4), 4, [2, 1, 9, 1])


@points(1.25)
def test_a_window_of_one_keeps_nothing(student):
    """W = 1: append returns the chunk and nothing else. Take care with slices from -0."""
    _follow(student, _cache(student, 1), 1, [1, 3, 1])


@points(0.5)
def test_a_window_longer_than_the_text_forgets_nothing(student):
    """W = 23, nine tokens: the same answers as a KVCache gives."""
    _follow(student, _cache(student, 23), 23, [3, 1, 5])


@points(1)
def test_length_counts_all_tokens_seen(student):
    """A window of 5, ten tokens: positions need the 10. It moves with advance only. And the window
    can be read.
    """
    cache, total = _cache(student, 5), 0
    for c in (5, 1, 4):
        cache.append(0, *_chunk(c))
        assert_equal(cache.length, total, what="the length before advance")
        cache.append(1, *_chunk(c))
        cache.advance(c)
        total += c
        assert_equal(cache.length, total, what="the length")
    assert_equal(cache.window, 5, what="the attribute window")


@points(1)
def test_a_second_append_finds_the_same_past(student):
    """A chunk of 4 is appended and replaced by a chunk of 2 before advance: nothing is forgotten in
    between.
    """
    cache, old, wrong, right = (
        _cache(student, 4),
        [_chunk(4), _chunk(4)],
        _chunk(4),
        [_chunk(2), _chunk(2)],
    )
    student.feed(cache, old)
    cache.append(0, *wrong)
    _assert_pair(student.feed(cache, right)[0], [_part(old[0], slice(1, 4)), right[0]])
    new = _chunk(1)
    _assert_pair(
        cache.append(0, *new),
        [_part(old[0], slice(3, 4)), right[0], new],
        " of the next step",
    )


@points(1.25)
def test_advance_may_keep_only_the_beginning_of_a_chunk(student):
    """Four tokens are appended and two kept: the two last guesses are gone, and the past before
    them is not.
    """
    cache, old, guesses, new = (
        _cache(student, 4),
        [_chunk(3), _chunk(3)],
        [_chunk(4), _chunk(4)],
        _chunk(1),
    )
    student.feed(cache, old)
    for layer, (k, v) in enumerate(guesses):
        cache.append(layer, k, v)
    cache.advance(2)
    assert_equal(cache.length, 5, what="the length after advance(2)")
    expected = [_part(old[1], slice(2, 3)), _part(guesses[1], slice(2)), new]
    _assert_pair(cache.append(1, *new), expected)


@points(0.5)
def test_what_was_returned_stays(student):
    """A caller keeps what append returned for seven steps. A view of a ring is written over."""
    chunks = [_chunk(1) for _ in range(7)]
    kept = student.define(CALLER, "caller")(_cache(student, 4, num_layers=1), chunks)
    for n, answer in enumerate(kept, start=1):
        _assert_pair(
            answer, chunks[max(0, n - 4) : n], f" of step {n}, seen at the end,"
        )


@points(1.25)
def test_reset_forgets_everything(student):
    """After reset the length is 0 and append returns the chunk alone, in both layers."""
    cache = _cache(student, 4)
    student.feed(cache, [_chunk(4), _chunk(4)])
    cache.reset()
    assert_equal(cache.length, 0, what="the length after reset")
    _follow(student, cache, 4, [1, 1, 4])


@points(1.25)
def test_what_is_forgotten_is_not_kept_alive(student):
    """A window of 4, a chunk of 40, then a chunk of one that is appended and not counted yet: the
    memory behind all tensors of the cache, by layer. A slice keeps all of what it was cut from.
    """
    cache, kept = _cache(student, 4), student.define(KEPT, "kept")
    student.feed(cache, [_chunk(40), _chunk(40)])
    chunks = [_chunk(1), _chunk(1)]
    for layer, (k, v) in enumerate(chunks):
        cache.append(layer, k, v)
    # of 8 bytes; keys and values, layers, rows, heads, features
    tokens = kept(cache) / 8 / (2 * 2 * 2 * 3 * 5)
    assert tokens <= 12, (
        f"with a window of 4 and a chunk of 1, your cache keeps the memory of {tokens:.0f} tokens."
    )
    cache.advance(1)
    assert_equal(
        list(cache.append(0, *chunks[0])[0].shape),
        [2, 3, 4, 5],
        what="the shape of k_all",
    )


@points(0.5)
def test_memory_does_not_grow_with_text_or_capacity(student):
    """A capacity of 99 991 with a window of 4. Elements of a new cache and of late steps are
    counted.
    """
    made = student.cost(
        "SlidingWindowCache", 2, 2, 3, 5, 99_991, torch.float64, 4
    ).moved
    assert made <= 3000, f"a new cache with a window of 4 tokens makes {made} numbers."
    moved = []
    for steps in ([4, 1], [71, 1]):
        cache = _cache(student, 4)
        for c in steps:
            student.feed(cache, [_chunk(c), _chunk(c)])
        chunks = [_chunk(1), _chunk(1)]
        moved.append(student.cost("feed", cache, chunks).moved)
        k_all, _ = cache.append(0, *chunks[1])
        assert_close(
            k_all[:, :, 2], chunks[0][0][:, :, 0], what="the newest key but one"
        )
    assert moved[1] <= 1.2 * moved[0], (
        f"a step moves {moved[0]} numbers after 5 tokens and {moved[1]} after 72."
    )


@points(1)
def test_the_capacity_limits_the_length(student):
    """Capacity 7, window 4, five tokens seen: three more are refused, with 8 and 7, though only
    three are held.
    """
    cache = _cache(student, 4, capacity=7)
    for c in (4, 1):
        student.feed(cache, [_chunk(c), _chunk(c)])
    assert_refused(cache.append, 0, *_chunk(3), sizes=(8, 7))
    k_all, _ = cache.append(0, *_chunk(2))
    assert_equal(
        list(k_all.shape),
        [2, 3, 5, 5],
        what="the shape of k_all when exactly two more fit",
    )


@points(0.5)
def test_the_cache_decides_the_dtype(student):
    """A float32 cache is given float64 chunks and returns float32."""
    cache, first, second = (
        _cache(student, 4, dtype=torch.float32),
        [_chunk(3), _chunk(3)],
        [_chunk(2), _chunk(2)],
    )
    student.feed(cache, first)
    _assert_pair(
        student.feed(cache, second)[0],
        [[t.float() for t in chunk] for chunk in (first[0], second[0])],
        same_dtype=True,
    )


@points(0.25)
def test_a_refused_chunk_leaves_the_one_before(student):
    """Two tokens are appended. Chunks whose values, or keys, are too small and one that is too long
    are refused, and so is advancing too far; then advance counts the two that are there.
    """
    cache, kept, (k, v) = _cache(student, 4, capacity=4), _chunk(2), _chunk(2)
    for layer in (0, 1):
        cache.append(layer, *kept)
    for chunk in ((k, v[..., :4]), (k[..., :4], v), _chunk(5)):
        assert_refused(cache.append, 0, *chunk)
    cache.advance(2)
    for after in ("refused appends", "a refused advance"):
        new = _chunk(1)
        _assert_pair(cache.append(0, *new), [kept, new], f" after {after}")
        cache.append(1, *new)
        assert_refused(cache.advance, 3)


@points(0.25)
def test_what_cannot_be_right_is_refused(student):
    """A window of 0; a chunk of three rows for a batch of two, of two or four heads for three, of
    four or six features for five; k longer or shorter than v; advancing beyond the capacity:
    ValueError.
    """
    assert_refused(
        student.SlidingWindowCache, 2, 2, 3, 5, 11, torch.float64, 0, sizes=(0,)
    )
    cache = _cache(student, 4, capacity=7)
    for shape in ((3, 3, 2, 5), (2, 2, 2, 5), (2, 4, 2, 5), (2, 3, 2, 4), (2, 3, 2, 6)):
        assert_refused(cache.append, 0, randn(*shape), randn(*shape))
    assert_refused(cache.append, 0, randn(2, 3, 2, 5), randn(2, 3, 1, 5))
    assert_refused(cache.append, 0, randn(2, 3, 1, 5), randn(2, 3, 2, 5))
    student.feed(cache, [_chunk(4), _chunk(4)])
    assert_refused(cache.advance, 4, sizes=(8, 7))


@points(0.5)
def test_decoding_with_it_is_the_model_with_a_window(student, reference):
    """Your decode_step with this cache, one layer, chunks of 4, 1 and 3, against the whole model
    with a window of 3.
    """
    sizes = reference.make_config(num_layers=1)
    params, ids = reference.random_params(sizes), torch.randint(13, (1, 8))
    cache = student.SlidingWindowCache(
        sizes.num_layers, 1, sizes.num_kv_heads, sizes.d_head, 8, torch.float64, 3
    )
    logits = [
        student.decode_step(params, chunk, cache, sizes)
        for chunk in ids.split((4, 1, 3), dim=1)
    ]
    expected = reference.decoder_lm(ids, params, sizes, window=3)
    assert_close(
        torch.cat(logits, dim=1),
        expected,
        what="the logits of all chunks, the last of which came from",
    )

"""decode_step: however a sequence is cut, the logits are those of the model without a cache.

The caches here are the suite's: each holds a past that the test gives it, and takes note of what it
is asked; what is appended changes nothing, so that several steps on one past may share it. Between
the calls the test itself keeps keys and values, so a mistake in your KVCache is not charged here
again.
"""

import torch

from autograder.suite import (
    assert_close,
    assert_equal,
    assert_refused,
    assert_varies,
    call_twice,
    points,
    randint,
    tensor,
    uses,
    zeros,
)

pytestmark = [uses("ragged_positions")]

TAPE = """
class WatchedCache:
    def __init__(self, past, length, window):
        self.past, self.length, self.appended, self.advanced = past, length, [], []
        if window is not None:
            self.window = window

    def append(self, layer, k, v):
        self.appended.append((layer, k, v))
        return tuple(torch.cat([old, new], dim=2) for old, new in zip(self.past[layer], (k, v)))

    def advance(self, c):
        self.advanced.append(c)


def tape(past, length, window):
    return WatchedCache(past, length, window)
"""

EXACT = {"atol": 1e-10, "rtol": 1e-10}


def _model(reference, learned=False, tied=False, **changes):
    sizes = reference.make_config(**changes)
    return reference.random_params(sizes, learned=learned, tied=tied), sizes


def _tape(student, past, length, window=None):
    return student.define(TAPE, "tape")(past, length, window)


def _past(sizes, batch, n=0, dtype=torch.float64):
    """Keys and values of n tokens, a pair a layer; random, for tests in which the numbers do not
    matter.
    """
    shape = (batch, sizes.num_kv_heads, n, sizes.d_head)
    return [
        tuple(torch.randn(shape, dtype=torch.float64).to(dtype) for _ in "kv")
        for _ in range(sizes.num_layers)
    ]


def _extended(past, appended, sizes, c):
    """The past and what a call appended, as a cache that does its work would hold them."""
    batch = past[0][0].shape[0]
    longer = list(past)
    for layer, k, v in appended:
        for new in (k, v):
            assert list(new.shape) == [batch, sizes.num_kv_heads, c, sizes.d_head], (
                f"append was given {list(new.shape)}, where [B, H_kv, c, d] = "
                f"{[batch, sizes.num_kv_heads, c, sizes.d_head]} is asked for."
            )
        longer[layer] = tuple(
            torch.cat([old, new], dim=2)
            for old, new in zip(past[layer], (k, v), strict=True)
        )
    return longer


def _decode(student, params, ids, sizes, chunks, mask=None, window=None):
    """Logits [B, N, V] of a sequence that is cut into these chunks."""
    past, start, logits = _past(sizes, len(ids)), 0, []
    for c in chunks:
        cache = _tape(student, past, start, window)
        keywords = {} if mask is None else {"mask": mask[:, : start + c]}
        logits.append(
            student.decode_step(
                params, ids[:, start : start + c], cache, sizes, **keywords
            )
        )
        start += c
        if start == ids.shape[1]:  # nobody asks for what the last chunk stored
            break
        past = _extended(past, cache.appended, sizes, c)
        if window is not None:
            past = [
                tuple(t[:, :, max(0, t.shape[2] - (window - 1)) :] for t in pair)
                for pair in past
            ]
    return torch.cat(logits, dim=1)


@points(1)
def test_everything_at_once_is_the_model(student, reference):
    """Seven tokens on an empty cache, three rows: the logits of the model that knows no cache."""
    params, sizes = _model(reference)
    ids = randint(0, 13, (3, 7))
    other = {**params, "embed": params["embed"].flip(0)}
    for tokens, weights in ((ids, params), (12 - ids, params), (ids, other)):
        answer = _decode(student, weights, tokens, sizes, [7])
        assert_close(answer, reference.decoder_lm(tokens, weights, sizes), **EXACT)


@points(2)
def test_one_token_at_a_time_is_the_model(student, reference):
    """Two tokens, rotary. The first right and the second wrong: what is different when the cache is
    not empty?
    """
    params, sizes = _model(reference)
    ids = randint(0, 13, (2, 2))
    assert_close(
        _decode(student, params, ids, sizes, [1, 1]),
        reference.decoder_lm(ids, params, sizes),
        **EXACT,
    )


@points(3)
def test_every_way_to_cut_gives_the_same_logits(student, reference):
    """Three tokens are cut into chunks in every way: each chunk that can occur, behind each past,
    to 1e-10. Only chunks of several tokens wrong? The mask.
    """
    params, sizes = _model(reference, num_layers=1)
    ids = randint(0, 13, (1, 3))
    whole = reference.decoder_lm(ids, params, sizes)
    past = _past(sizes, 1)
    for start in range(3):
        cache = _tape(student, past, start)
        # the chunk of one token comes last: what it stores is the next past
        for end in range(3, start, -1):
            logits = student.decode_step(params, ids[:, start:end], cache, sizes)
            what = f"the logits of a chunk of {end - start} behind {start} tokens,"
            assert_close(logits, whole[:, start:end], what=what, **EXACT)
        if start < 2:
            past = _extended(past, cache.appended[-1:], sizes, 1)


@points(2)
def test_learned_positions_go_on_where_the_cache_ends(student, reference):
    """A table of positions, chunks of 3 and 2: the first token of a chunk takes the row after the
    last one. Padding takes none: 25 columns with 2 pads fit into a table of 24.
    """
    params, sizes = _model(reference, learned=True, num_layers=1)
    ids = randint(0, 13, (2, 5))
    answer = _decode(student, params, ids, sizes, [3, 2])
    assert_close(answer, reference.decoder_lm(ids, params, sizes), **EXACT)
    past, mask = _past(sizes, 2, 23), zeros(2, 25) == 0
    mask[:, :2] = False
    own = [tuple(t[:, :, 2:] for t in pair) for pair in past]
    chunk = ids[:, :2]
    plain = student.decode_step(params, chunk, _tape(student, own, 21), sizes)
    cache = _tape(student, past, 23)
    padded = student.decode_step(params, chunk, cache, sizes, mask=mask)
    assert_close(padded, plain, what="the logits of a padded text that fits", **EXACT)


@points(1)
def test_a_chunk_does_not_see_its_own_future(student, reference):
    """Five tokens past and four new ones. The last new one is exchanged: the three before it keep
    their logits.
    """
    params, sizes = _model(reference, num_layers=1)
    past, ids = _past(sizes, 2, 5), randint(0, 12, (2, 4))
    other = ids.clone()
    other[:, -1] += 1
    cache = _tape(student, past, 5)
    first, second = (
        student.decode_step(params, chunk, cache, sizes) for chunk in (ids, other)
    )
    assert_close(
        second[:, :3],
        first[:, :3].detach(),
        what="all logits but the last, after another last token",
    )
    assert bool((first[:, 3] - second[:, 3]).abs().max() > 1e-3), (
        "the logits of the exchanged token did not change."
    )


@points(1)
def test_what_is_stored_are_rotated_keys_and_plain_values(student, reference):
    """Five tokens past, one layer: the chunk's keys are turned by their positions 5, 6, 7, once;
    values are not.
    """
    params, sizes = _model(reference, num_layers=1)
    ids, block = randint(0, 13, (2, 3)), params["blocks"][0]
    cache = _tape(student, _past(sizes, 2, 5), 5)
    assert_varies(
        student.decode_step(params, ids, cache, sizes), above=1e-3, what="the logits"
    )
    h = reference.layer_norm(
        params["embed"][ids], block["ln1_gamma"], block["ln1_beta"]
    )
    k, v = (reference.split_heads(h @ block[name], 2) for name in ("w_k", "w_v"))
    assert_equal(
        len(cache.appended), 1, what="the number of appends to a cache of one layer"
    )
    _, its_k, its_v = cache.appended[0]
    assert_close(its_v, v, what="the value that was appended")
    assert_close(
        its_k,
        reference.rotary_positions(k, torch.arange(5, 8), 100.0),
        what="the key that was appended",
    )


@points(2)
def test_every_layer_appends_once_and_the_step_advances_once(student, reference):
    """Three layers, a chunk of four: appends to layers 0, 1 and 2, and then one advance by 4."""
    params, sizes = _model(reference, num_layers=3)
    cache = _tape(student, _past(sizes, 2, 5), 5)
    assert_varies(
        student.decode_step(params, randint(0, 13, (2, 4)), cache, sizes),
        above=1e-3,
        what="the logits",
    )
    assert_equal(
        [layer for layer, _, _ in cache.appended],
        [0, 1, 2],
        what="the layers that were appended to",
    )
    assert_equal(
        list(cache.advanced), [4], what="what the cache was advanced by, call by call,"
    )


@points(1)
def test_query_heads_share_key_heads_in_groups(student, reference):
    """Six query heads over three key heads: heads 0 and 1 read key head 0, 2 and 3 read key head
    1.
    """
    params, sizes = _model(reference, num_heads=6, num_kv_heads=3, num_layers=1)
    ids = randint(0, 13, (2, 6))
    assert_close(
        _decode(student, params, ids, sizes, [4, 2]),
        reference.decoder_lm(ids, params, sizes),
    )
    params, sizes = _model(reference, num_heads=3, num_kv_heads=3, num_layers=1)
    assert_close(
        _decode(student, params, ids, sizes, [6]),
        reference.decoder_lm(ids, params, sizes),
    )


@points(1)
def test_the_unembedding_may_be_the_embedding(student, reference):
    """Without params["unembed"] the logits are made with the embedding's transpose. Five tokens at
    once.
    """
    params, sizes = _model(reference, tied=True, learned=True)
    ids = randint(0, 13, (2, 5))
    assert_close(
        _decode(student, params, ids, sizes, [5]),
        reference.decoder_lm(ids, params, sizes),
    )


@points(2)
def test_a_cache_with_a_window_hides_what_is_older(student, reference):
    """A cache with window 3 holds two earlier tokens. In a chunk of four, the last does not see the
    first.
    """
    params, sizes = _model(reference, num_layers=1)
    ids = randint(0, 13, (2, 6))
    answer = _decode(student, params, ids, sizes, [2, 4], window=3)
    assert_close(answer, reference.decoder_lm(ids, params, sizes, window=3))


@points(2)
def test_left_padded_rows_decode_like_the_prompts_alone(student, reference):
    """Rows with 0, 2 and 3 pads in front, a table of positions, chunks of 5 and 1. Each row is
    compared with itself alone: pads are hidden as keys, and do not count as positions. Scores may
    be of any size.
    """
    params, sizes = _model(reference, learned=True, num_layers=1)
    ids = randint(0, 13, (3, 6))
    large = [
        {**block, "w_q": 300 * block["w_q"], "w_k": 300 * block["w_k"]}
        for block in params["blocks"]
    ]
    for weights, pads in (
        (params, (0, 2, 3)),
        (params, (2, 0, 1)),
        ({**params, "blocks": large}, (0, 2, 3)),
    ):
        mask = torch.stack([torch.arange(6) >= p for p in pads])
        answer = _decode(student, weights, ids, sizes, [5, 1], mask=mask)
        for row, p in enumerate(pads):
            alone = reference.decoder_lm(ids[row : row + 1, p:], weights, sizes)
            what = f"row {row}, behind its {p} pads, of the logits"
            assert_close(answer[row : row + 1, p:], alone, what=what)


@points(1)
def test_the_mask_belongs_to_rows_not_to_heads(student, reference):
    """Two rows and two heads, rotary, with a window: only the newest columns of the mask belong to
    the keys.
    """
    params, sizes = _model(reference, num_heads=2, num_layers=1)
    ids, pads = randint(0, 13, (2, 6)), (3, 0)
    mask = torch.stack([torch.arange(6) >= p for p in pads])
    answer = _decode(student, params, ids, sizes, [4, 2], mask=mask, window=3)
    for row, p in enumerate(pads):
        alone = reference.decoder_lm(ids[row : row + 1, p:], params, sizes, window=3)
        assert_close(
            answer[row : row + 1, p:],
            alone,
            what=f"row {row}, behind its {p} pads, of the logits",
        )


@points(1)
def test_last_only_is_the_last_row_at_the_price_of_one(student, reference):
    """[B, 1, V], equal to the last row, with padding too; and five unembeddings of six are
    saved.
    """
    params, sizes = _model(reference, learned=True, num_layers=1)
    past, ids = _past(sizes, 2, 3), randint(0, 13, (2, 6))
    for mask in (torch.ones(2, 9).bool(), torch.arange(9) >= tensor([[2], [1]])):
        every, last = (
            student.decode_step(
                params, ids, _tape(student, past, 3), sizes, mask, last_only=short
            )
            for short in (False, True)
        )
        assert_close(last, every[:, -1:].detach(), what="the last row, with padding")
    unasked = student.decode_step(params, ids, _tape(student, past, 3), sizes)
    assert_equal(list(unasked.shape), [2, 6, 13], what="the shape without last_only")
    cache = _tape(student, past, 3)
    every, dear = student.counted(
        "decode_step", params, ids, cache, sizes, last_only=False
    )
    assert_varies(every, above=1e-3, what="the logits")
    last, cheap = student.counted(
        "decode_step", params, ids, cache, sizes, last_only=True
    )
    assert_close(last, every[:, -1:].detach())
    saved = dear.flops - cheap.flops
    assert saved >= 2 * 5 * (2 * 10 * 13), (
        "with last_only, logits are still made for every position."
    )


@points(2)
def test_the_operations_of_a_step_grow_with_the_length_and_no_faster(
    student, reference
):
    """FLOPs of one token on 5 and on 43 tokens: the layer once, and its scores. Not the past
    again.
    """
    params, sizes = _model(reference, learned=True, num_layers=1, context_length=99)
    for n in (5, 43):
        cache, ids = _tape(student, _past(sizes, 2, n), n), randint(0, 13, (2, 1))
        answer, cost = student.counted("decode_step", params, ids, cache, sizes)
        assert_varies(answer, above=1e-3, what="the logits")
        layer = 2 * 10 * (24 + 8 + 8) + 2 * 24 * 10 + 4 * 10 * 14 + 4 * 6 * 4 * (n + 1)
        budget = 2 * (layer + 2 * 10 * 13)
        assert cost.flops <= 1.01 * budget, (
            f"a step of one token on {n} takes {cost.flops} operations; {budget} are needed."
        )


@points(1)
def test_keys_are_not_copied_out_to_the_query_heads(student, reference):
    """Elements moved a step, on 31 and on 131 tokens: a copy of each key for all its query heads
    shows.
    """
    params, sizes = _model(
        reference,
        num_heads=6,
        num_kv_heads=2,
        d_head=12,
        num_layers=1,
        learned=True,
        context_length=299,
    )
    moved = []
    for n in (31, 131):
        cache, ids = _tape(student, _past(sizes, 1, n), n), randint(0, 13, (1, 1))
        answer, cost = student.counted("decode_step", params, ids, cache, sizes)
        assert_varies(answer, above=1e-3, what="the logits")
        moved.append(cost.moved)
    # the cache itself copies two heads of keys and values
    grown = (moved[1] - moved[0]) / 100 - 2 * 2 * 12
    assert grown <= 120, (
        f"a step moves {grown:.0f} numbers for every token of the past, besides the "
        "cache's own work."
    )


@points(1)
def test_operations_do_not_grow_with_length_or_chunk(student, reference):
    """One new token on 3 and seven on 23, in three rows each: as many torch operations. Is there a
    loop?
    """
    params, sizes = _model(reference, learned=True, num_layers=1, context_length=99)
    counts = []
    for n, c in ((3, 1), (23, 7)):
        cache, ids = _tape(student, _past(sizes, 3, n), n), randint(0, 13, (3, c))
        answer, cost = student.counted("decode_step", params, ids, cache, sizes)
        assert_varies(answer, above=1e-3, what="the logits")
        counts.append(cost.operations)
    assert counts[1] <= counts[0] + 6, (
        f"{counts[0]} operations for the small step and {counts[1]} for the large: is there a loop?"
    )


@points(1)
def test_params_and_tokens_stay_as_they_were(student, reference):
    """The same step twice on the same past: the same logits, and no argument is changed."""
    params, sizes = _model(reference, learned=True, num_layers=1)
    past, ids = _past(sizes, 2, 3), randint(0, 13, (2, 4))
    cache = _tape(student, past, 3)
    assert_varies(
        call_twice(student.decode_step, params, ids, cache, sizes),
        above=1e-3,
        what="the logits",
    )
    pasts = past, _past(sizes, 2, 3)
    answers = [
        student.decode_step(params, ids, _tape(student, p, 3), sizes) for p in pasts
    ]
    assert not torch.equal(*answers), "Another past gives the same logits."


@points(1)
def test_the_dtype_is_that_of_the_params(student, reference):
    """float16 in, float16 out, near your own logits in float64. And a cache that stores in float32
    serves a model in float64.
    """
    params, sizes = _model(reference, num_layers=1)
    past, ids = _past(sizes, 2, 3), randint(0, 13, (2, 4))
    own = student.decode_step(params, ids, _tape(student, past, 3), sizes)
    assert_varies(own, above=1e-3, what="the logits")
    own = own.detach()
    narrow = [tuple(t.float() for t in pair) for pair in past]
    answer = student.decode_step(params, ids, _tape(student, narrow, 3), sizes)
    assert_close(answer, own, atol=1e-4, rtol=1e-4)
    half = reference.random_params(sizes, dtype=torch.float16)
    answer = student.decode_step(
        half, ids, _tape(student, [tuple(t.half() for t in p) for p in past], 3), sizes
    )
    assert_close(answer, own.half(), atol=0.3, rtol=0.1)


@points(1)
def test_what_cannot_be_right_is_refused(student, reference):
    """Token 13 of 13; a 25th position in a table of 24; a mask of four columns, or nine, for seven,
    or of three rows for two: ValueError, and the cache is as it was. A model without layers, and
    one with a layer.
    """
    params, sizes = _model(reference, learned=True, num_layers=0)
    refused, ids = student.decode_step, tensor([[3, 1], [12, 0]])
    cache = _tape(student, [], 5)
    assert_refused(
        refused, params, tensor([[3, 13], [1, 2]]), cache, sizes, sizes=(13,)
    )
    assert_refused(
        refused, params, tensor([[3, -1], [1, 2]]), cache, sizes, sizes=(-1,)
    )
    assert_refused(refused, params, ids, _tape(student, [], 23), sizes, sizes=(25, 24))
    params, sizes = _model(reference, learned=True, num_layers=1)
    cache = _tape(student, _past(sizes, 2, 5), 5)
    for rows, columns, wrong in ((2, 4, 4), (2, 9, 9), (3, 7, 3)):
        mask = zeros(rows, columns) == 0
        assert_refused(refused, params, ids, cache, sizes, mask=mask, sizes=(wrong,))
    for wrong in (13, -1):
        other = tensor([[3, 1], [wrong, 2]])
        assert_refused(refused, params, other, cache, sizes, sizes=(wrong,))
    assert_equal(cache.appended, [], what="what refused steps put into the cache")
    assert_equal(cache.advanced, [], what="by how much refused steps advanced")

"""paged_attention: attention over blocks, equal to attention over contiguous keys."""

import math

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_varies,
    call_twice,
    points,
    randn,
)

NAN = float("nan")


def _in_blocks(k, v, table, block_size, num_blocks, rest=NAN):
    """Contiguous k and v [H_kv, n, d] laid into the blocks of a table; all other slots hold
    `rest`.
    """
    room = (num_blocks, k.shape[0], block_size, k.shape[2])
    keys, values = (torch.full(room, rest, dtype=k.dtype) for _ in "kv")
    for p in range(k.shape[1]):
        keys[table[p // block_size], :, p % block_size] = k[:, p]
        values[table[p // block_size], :, p % block_size] = v[:, p]
    return keys, values


def _right(reference, q, k, v):
    """Attention of the last queries over contiguous keys; half precision in float32."""
    mask = reference.causal_mask(q.shape[1], k.shape[1])
    wide = (t.to(torch.promote_types(t.dtype, torch.float32))[None] for t in (q, k, v))
    return reference.grouped_attention(*wide, mask)[0].to(q.dtype)


def _check(
    student, reference, q, k, v, table, block_size, rest=NAN, what="", **tolerance
):
    keys, values = _in_blocks(k, v, table, block_size, 9, rest)
    answer = call_twice(student.paged_attention, q, keys, values, table, k.shape[1])
    assert_close(answer, _right(reference, q, k, v), what=what, **tolerance)


@points(2)
def test_equals_attention_over_contiguous_keys(student, reference):
    """One query over 11 tokens in blocks of 3, which lie in order; all slots hold numbers."""
    for length in (11, 3, 12):
        k, v = randn(2, length, 5), randn(2, length, 5)
        _check(student, reference, randn(2, 1, 5), k, v, [0, 1, 2, 3], 3, rest=0.5)


@points(2)
def test_the_table_says_where_a_block_lies(student, reference):
    """The blocks of a text lie anywhere, in any order; blocks of 4, and of 1."""
    k, v = randn(1, 7, 5), randn(1, 7, 5)
    _check(student, reference, randn(1, 1, 5), k, v, [6, 2], 4, rest=0.5)
    _check(student, reference, randn(1, 1, 5), k, v, [6, 2, 8, 0, 3, 5, 1], 1)


@points(1.5)
def test_what_is_not_the_texts_is_not_read(student, reference):
    """NaN in all other blocks, and in the slots behind the last token. The table has two blocks more
    than the text needs.
    """
    k, v = randn(1, 5, 3), randn(1, 5, 3)
    _check(student, reference, randn(1, 1, 3), k, v, [4, 1], 4)
    _check(student, reference, randn(1, 1, 3), k, v, [4, 1, 7, 0], 4)


@points(2)
def test_a_chunk_is_causal(student, reference):
    """The last 4 of 10 tokens, across a block's end; and a whole prompt of 7. Each sees keys up to
    its own.
    """
    k, v = randn(1, 10, 5), randn(1, 10, 5)
    _check(student, reference, randn(1, 4, 5), k, v, [3, 0, 5, 1], 3, rest=0.5)
    k, v = randn(1, 7, 5), randn(1, 7, 5)
    _check(student, reference, randn(1, 7, 5), k, v, [3, 0, 5], 3)


@points(1)
def test_query_heads_share_key_heads_in_groups(student, reference):
    """Six query heads over two key heads: 0, 1, 2 read head 0 and 3, 4, 5 read head 1. Chunks of
    1 and of 2.
    """
    k, v = randn(2, 7, 5), randn(2, 7, 5)
    for c in (1, 2):
        _check(student, reference, randn(6, c, 5), k, v, [3, 0, 5], 3, rest=0.5)


@points(1)
def test_scores_of_any_size(student, reference):
    """Scores near 1000 in the first block or in the last, all near -2000 or below -1e10; of one head
    large and of the other small; in float64, float32 and float16.
    """
    factors = ((600.0, 0), (600.0, 8), (-1500.0, slice(None)), (-3e10, slice(None)))
    for dtype, tolerance in (
        (torch.float64, 2e-6),
        (torch.float32, 2e-2),
        (torch.float16, 2e-2),
    ):
        for factor, place in factors[: 4 if dtype == torch.float64 else 3]:
            q, k, v = randn(1, 2, 5).abs() + 1, randn(1, 9, 5), randn(1, 9, 5)
            k[:, place] = factor * (1 + 0.001 * k[:, place])
            q, k, v = (t.to(dtype) for t in (q, k, v))
            _check(
                student,
                reference,
                q,
                k,
                v,
                [3, 0, 5],
                3,
                0.5,
                atol=tolerance,
                rtol=tolerance,
            )
        q, k, v = randn(2, 2, 5).abs() + 1, 600 + randn(1, 9, 5), randn(1, 9, 5)
        q[0] = -q[0]
        q, k, v = (t.to(dtype) for t in (q, k, v))
        _check(
            student,
            reference,
            q,
            k,
            v,
            [3, 0, 5],
            3,
            0.5,
            atol=tolerance,
            rtol=tolerance,
        )


@points(0.5)
def test_half_precision_sums_in_float32(student, reference):
    """Scores near 135 in float16: rounded there, they would be 0.06 off, and weights six per cent. The
    answer is float16.
    """
    for block_size, table in ((3, [3, 0, 5]), (7, [1])):
        q, k, v = 12 + randn(2, 3, 8), 4 + 0.05 * randn(2, 7, 8), randn(2, 7, 8)
        q, k, v = (t.half() for t in (q, k, v))
        answer = student.paged_attention(
            q, *_in_blocks(k, v, table, block_size, 9), table, 7
        )
        assert_close(answer, _right(reference, q, k, v), atol=3e-3, rtol=3e-3)


@points(1)
def test_no_tensor_grows_with_the_text(student, reference):
    """The largest tensor of a call over 60 tokens is not larger than that over 15, in blocks of
    5. In float16 too, which becomes float32 block by block.
    """
    for dtype in (torch.float64, torch.float16):
        largest = []
        for length in (15, 60):
            k, v = randn(2, length, 7).to(dtype), randn(2, length, 7).to(dtype)
            blocks = math.ceil(length / 5)
            table = torch.randperm(blocks + 1)[:blocks].tolist()
            keys, values = _in_blocks(k, v, table, 5, blocks + 1)
            q = randn(2, 1, 7).to(dtype)
            answer, cost = student.counted(
                "paged_attention", q, keys, values, table, length
            )
            assert_close(answer, _right(reference, q, k, v), atol=3e-3)
            assert_varies(answer, above=1e-3)
            largest.append(cost.largest)
        assert largest[1] <= largest[0] + 10, (
            f"over 60 tokens your largest tensor has {largest[1]} numbers, over 15 it has "
            f"{largest[0]}, in {str(dtype).removeprefix('torch.')}: it grows with the text."
        )


@points(0.5)
def test_answers_follow_from_the_arguments_alone(student, reference):
    """Each argument in turn is exchanged for another: another answer. Values have any layout in
    memory.
    """
    k, v = randn(2, 7, 5), randn(2, 7, 5)
    keys, values = _in_blocks(k, v, [3, 0, 5], 3, 9, rest=0.5)
    q = randn(5, 2, 4).permute(2, 1, 0)
    others = (None, None, None, [5, 3, 0], 6)
    assert_close_in_turn(
        student.paged_attention,
        reference.paged_attention,
        q,
        keys,
        values,
        [3, 0, 5],
        7,
        others=others,
    )

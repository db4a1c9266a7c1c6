"""tiled_attention: attention whose scores exist one tile at a time."""

import math

import torch

from autograder.suite import assert_close, assert_refused, call_twice, forbid, full, points, randn, uses, zeros

pytestmark = [uses("merge_stats"), forbid("torch.nn.functional.scaled_dot_product_attention")]


@points(2)
def test_equals_attention_with_the_whole_matrix(student):
    """13 queries in tiles of 4, 17 keys in tiles of 6: no tile divides its length."""
    q, k, v = randn(2, 3, 13, 5), randn(2, 3, 17, 5), randn(2, 3, 17, 3)
    o, _ = call_twice(student.tiled_attention, q, k, v, 4, 6)
    assert_close(o, _whole(q, k, v)[0], what="o")


@points(1)
def test_the_tile_sizes_do_not_matter(student):
    """Tiles of one row, tiles that leave a rest, tiles that are larger than everything."""
    q, k, v = 2 * randn(7, 3), 2 * randn(11, 3), randn(11, 2)
    for block_q, block_k in ((1, 1), (2, 5), (3, 11), (50, 60)):
        assert_close(student.tiled_attention(q, k, v, block_q, block_k)[0], _whole(q, k, v)[0], what="o")


@points(2)
def test_log_sum_exp_is_that_of_the_scores(student):
    """lse is the logarithm of the sum of exp(score), scores with 1/√d and all: m + ln l."""
    q, k, v = 2 * randn(2, 7, 5), 2 * randn(2, 13, 5), randn(2, 13, 3)
    assert_close(student.tiled_attention(q, k, v, 3, 4)[1], _whole(q, k, v)[1], what="lse")


@points(2)
def test_causal_over_several_tiles(student):
    """Eleven queries and keys: positions count in the whole, not in the tile. Query tiles larger and smaller than
    key tiles."""
    q, k, v = randn(11, 5), randn(11, 5), randn(11, 3)
    for block_q, block_k in ((3, 3), (8, 4), (2, 7)):
        answer = student.tiled_attention(q, k, v, block_q, block_k, causal=True)
        _assert_both(answer, _whole(q, k, v, causal=True))


@points(1)
def test_causal_is_aligned_at_the_bottom_right(student):
    """Four queries, thirteen keys: the last query sees all keys, the first one ten."""
    q, k, v = randn(4, 5), randn(13, 5), randn(13, 3)
    _assert_both(student.tiled_attention(q, k, v, 3, 5, causal=True), _whole(q, k, v, causal=True))


@points(1)
def test_rows_that_see_nothing_are_zero(student):
    """Nine queries, five keys, causal: the first four see nothing. o = 0 and lse = -inf there, and no nan anywhere."""
    q, k, v = randn(9, 3), randn(5, 3), randn(5, 2)
    o, lse = student.tiled_attention(q, k, v, 3, 2, causal=True)
    _assert_both((o, lse), _whole(q, k, v, causal=True))
    assert_close(o[:4], zeros(4, 2), what="o of rows that see nothing")


@points(1)
def test_large_scores_do_not_overflow(student):
    """Scores of about ±1000: exp(1000) is infinite."""
    q, k, v = 1e3 * randn(5, 3), randn(11, 3), randn(11, 2)
    _assert_both(student.tiled_attention(q, k, v, 2, 3), _whole(q, k, v))


@points(1)
def test_scores_far_below_zero_count(student):
    """All scores are near -1200, or below -50000. What is the maximum of nothing?"""
    for size in (-1200.0, -6e4):
        q, k = full((5, 1), size), 1 + 1e-2 * randn(11, 1).abs()
        v = randn(11, 2)
        _assert_both(student.tiled_attention(q, k, v, 2, 3), _whole(q, k, v))


@points(2)
def test_the_score_matrix_is_never_there(student):
    """Counted: all numbers that are alive at once, a list of tiles included."""
    q, k, v = randn(200, 2), randn(240, 2), randn(240, 3)
    cost = student.cost("tiled_attention", q, k, v, 32, 32, causal=True)
    assert cost.peak < 200 * 240 // 3, (
        f"For 200 queries and 240 keys in tiles of 32, {cost.peak} numbers are alive at once; the whole matrix has "
        "48000. A tile has 1024, and the answer 800."
    )


@points(1)
def test_half_precision_computes_in_float32(student):
    """float16 in, float16 out, lse in float32. The scores here are larger than 65504 before they are scaled."""
    q, k, v = (200 * randn(5, 7)).half(), (200 * randn(9, 7)).half(), randn(9, 3).half()
    o, lse = student.tiled_attention(q, k, v, 2, 4)
    expected = _whole(q.double(), k.double(), v.double())
    assert_close(o, expected[0].half(), atol=2e-3, what="o")
    assert_close(lse, expected[1].float(), atol=5e-2, what="lse")


@points(1)
def test_any_strides(student):
    """q, k and v are transposed views of [N, H, d] tensors."""
    q, k, v = (randn(n, 2, d).transpose(0, 1) for n, d in ((7, 5), (9, 5), (9, 4)))
    _assert_both(call_twice(student.tiled_attention, q, k, v, 3, 4), _whole(q, k, v))


@points(1)
def test_one_query_and_one_key(student):
    """Length 1 each: the weight is 1, and the log-sum-exp is the score."""
    q, k, v = randn(2, 1, 3), randn(2, 1, 3), randn(2, 1, 3)
    o, lse = student.tiled_attention(q, k, v, 4, 4, causal=True)
    assert_close(o, v, what="o")
    assert_close(lse, (q * k).sum(dim=-1) / math.sqrt(3), what="lse")


@points(1)
def test_sizes_that_do_not_fit_are_refused(student):
    """q and k of different d, k and v of different length, a tile of 0 rows: ValueError with the sizes."""
    f = student.tiled_attention
    assert_refused(f, randn(2, 3), randn(5, 4), randn(5, 2), 2, 2, sizes=(3, 4))
    assert_refused(f, randn(2, 3), randn(5, 3), randn(7, 2), 2, 2, sizes=(5, 7))
    assert_refused(f, randn(2, 3), randn(5, 3), randn(5, 2), 2, 0, sizes=(0,))


def _whole(q, k, v, causal=False):
    """(o, lse) by the whole matrix; rows that see nothing are 0 and -inf."""
    s = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if causal:
        n_q, n_k = s.shape[-2:]
        s = s.masked_fill(torch.arange(n_k) > torch.arange(n_q)[:, None] + n_k - n_q, -torch.inf)
    return torch.softmax(s, dim=-1).nan_to_num(0.0) @ v, torch.logsumexp(s, dim=-1)


def _assert_both(answer, expected):
    assert_close(answer[0], expected[0], what="o")
    assert_close(answer[1], expected[1], what="lse")

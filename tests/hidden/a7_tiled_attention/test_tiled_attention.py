"""tiled_attention: attention whose scores exist one tile at a time."""

import math

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    assert_varies,
    call_twice,
    forbid,
    full,
    points,
    randn,
    uses,
    zeros,
)

pytestmark = [
    uses("merge_stats"),
    forbid(
        "torch.nn.functional.scaled_dot_product_attention",
        "torch.nn.attention.flex_attention.flex_attention",
    ),
]


@points(1.25)
def test_equals_attention_with_the_whole_matrix(student):
    """12 queries in tiles of 4, 18 keys in tiles of 6."""
    q, k, v = 2 * randn(2, 3, 12, 5), 2 * randn(2, 3, 18, 5), randn(2, 3, 18, 3)
    o, _ = call_twice(student.tiled_attention, q, k, v, 4, 6)
    assert_close(o, _whole(q, k, v)[0], what="o")
    assert_close_in_turn(
        lambda *arguments: student.tiled_attention(*arguments)[0],
        lambda q, k, v, *blocks: _whole(q, k, v)[0],
        *(q, k, v, 4, 6),
    )


@points(1)
def test_ragged_tiles(student):
    """5 queries and 7 keys: tiles that leave a rest, tiles of one row, tiles larger than
    everything. All scores are equal and negative: a key that is not there has score 0 if nobody
    says otherwise, and would weigh more.
    """
    q, k, v = _equal_scores(5, 7, -3.0)
    for block_q, block_k in ((2, 3), (1, 1), (5, 4), (50, 60)):
        o, _ = student.tiled_attention(q, k, v, block_q, block_k)
        assert_close(o, v.mean(dim=0).expand(5, 3), what="o")
    q, k, v = _equal_scores(5, 5, -3.0)
    o, _ = student.tiled_attention(q, k, v, 2, 3, causal=True)
    assert_close(o[-1], v.mean(dim=0), what="the last row of o")


@points(2)
def test_log_sum_exp_is_that_of_the_scores(student):
    """lse is the logarithm of the sum of exp(score), scores with 1/√d and all: m + ln l."""
    q, k, v = 2 * randn(1, 6, 5), 2 * randn(1, 12, 5), randn(1, 12, 3)
    assert_close(
        student.tiled_attention(q, k, v, 3, 4)[1], _whole(q, k, v)[1], what="lse"
    )


@points(0.5)
def test_causal_over_several_tiles(student):
    """Twelve queries and keys with equal scores, so that a query has the mean of the values it
    sees. Positions count in the whole, not in the tile. Query tiles larger and smaller than key
    tiles.
    """
    q, k, v = _equal_scores(12, 12, -3.0)
    o, _ = student.tiled_attention(q, k, v, 3, 3)
    assert_close(o, v.mean(dim=0).expand(12, 3), what="o without a mask")
    for block_q, block_k in ((3, 3), (6, 2), (2, 6)):
        o, _ = student.tiled_attention(q, k, v, block_q, block_k, causal=True)
        assert_close(o, _means(v, 12), what="o")


@points(1)
def test_causal_is_aligned_at_the_bottom_right(student):
    """Four queries, fifteen keys, equal scores: the last query sees all keys, the first one
    twelve.
    """
    q, k, v = _equal_scores(4, 15, -3.0)
    o, _ = student.tiled_attention(q, k, v, 2, 5, causal=True)
    assert_close(o, _means(v, 4), what="o")


@points(1.5)
def test_rows_that_see_nothing_are_zero(student):
    """Ten queries, six keys, causal: the first four see nothing. o = 0 and lse = -inf there, and no
    nan anywhere.
    """
    q, k, v = _equal_scores(10, 6, -3.0)
    o, lse = student.tiled_attention(q, k, v, 5, 2, causal=True)
    assert_close(o, _means(v, 10), what="o")
    assert_close(lse[:4], full((4,), -torch.inf), what="lse of rows that see nothing")


@points(1)
def test_large_scores_do_not_overflow(student):
    """In each tile one query has scores up to 1000 and one has scores of -1000 and less: exp(1000)
    is infinite. The largest score comes first: later tiles have smaller ones.
    """
    q, k, v = zeros(4, 4), zeros(12, 4), randn(12, 3)
    q[:, 0], q[1::2, 1] = 2000.0, -4000.0  # √d = 2
    k[:, 0], k[:, 1] = -2.0 - randn(12).abs(), 1.0
    k[::4, 0] = torch.tensor([1.0, 0.1, -1.0])
    for dtype in (torch.float64, torch.float32, torch.float16):
        o, _ = student.tiled_attention(*(t.to(dtype) for t in (q, k, v)), 4, 4)
        assert_close(o, v[0].to(dtype).expand(4, 3), what="o")


@points(0.5)
def test_scores_far_below_zero_count(student):
    """All scores are -1200, or -60000, so that every exp(score) is 0. What is the maximum of
    nothing?
    """
    for score in (-1200.0, -6e4):
        q, k, v = _equal_scores(4, 12, score)
        o, _ = student.tiled_attention(q, k, v, 4, 3)
        assert_close(o, v.mean(dim=0).expand(4, 3), what="o")


@points(0.5)
def test_hidden_keys_weigh_nothing_whatever_the_scores(student):
    """Causal, and every score is -4000000. What is hidden needs a score that is lower than any."""
    q, k, v = _equal_scores(6, 6, -4e6)
    o, _ = student.tiled_attention(q, k, v, 2, 3, causal=True)
    assert_close(o, _means(v, 6), what="o")


@points(2.75)
def test_the_score_matrix_is_never_there(student):
    """Counted: all numbers that are alive at once, a list of tiles included."""
    q, k, v = randn(128, 2), randn(160, 2), randn(160, 3)
    answer, cost = student.counted("tiled_attention", q, k, v, 32, 32, causal=True)
    _assert_answers(answer)
    assert cost.peak < 128 * 160 // 2, (
        f"For 128 queries and 160 keys in tiles of 32, {cost.peak} numbers are alive at once; "
        "the whole matrix has "
        "20480. A tile has 1024, and the answer 512."
    )


@points(3)
def test_more_keys_need_no_more_memory(student):
    """Counted: with three times as many key tiles, one after the other, the numbers alive at once
    stay as many. And o is right: who does not bring tiles together needs no memory for it. In
    float16 too, which becomes float32 tile by tile.
    """
    for dtype, d in ((torch.float64, 2), (torch.float16, 16)):
        peaks = []
        for n_k in (128, 384):
            q, k, v = (randn(n, d).to(dtype) for n in (32, n_k, n_k))
            answer, cost = student.counted("tiled_attention", q, k, v, 32, 32)
            o, _ = _whole(q.double(), k.double(), v.double())
            assert_close(answer[0], o.to(dtype), atol=3e-3, what="o")
            peaks.append(cost.peak)
        assert peaks[1] < 1.5 * peaks[0], (
            f"For 32 queries in tiles of 32, {peaks[0]} numbers are alive at once with 128 keys "
            f"and {peaks[1]} with 384, in {str(dtype).removeprefix('torch.')}: memory grows with "
            "the number of key tiles. Each should be forgotten before the next."
        )


@points(0.5)
def test_half_precision_stays_half_precision(student):
    """float16 in, float16 out, and float32 likewise; the log-sum-exp is float32. One key, so that
    its weight is 1.
    """
    for dtype in (torch.float16, torch.float32):
        q, k, v = (t.to(dtype) for t in _equal_scores(4, 1, -4.0))
        o, lse = student.tiled_attention(q, k, v, 2, 1)
        assert_close(o, v.expand(4, 3), atol=2e-3, what="o")
        assert_close(lse, full((4,), -4.0).float(), atol=1e-5, what="lse")


@points(0.5)
def test_half_precision_computes_in_float32(student):
    """float16 ends at 65504. Scores are larger before they are scaled, and so are sums of exp(score
    - m) v. bfloat16 does not end there, and has two or three digits: the lse has more. A sum of
    3003 ones is 3003, and float16 has no such number.
    """
    q, k = (full((n, 100), 27.0).half() for n in (4, 48))
    v = (2000 + 10 * randn(48, 3)).half()
    o, _ = student.tiled_attention(q, k, v, 4, 12)
    assert_close(o, v.double().mean(dim=0).expand(4, 3).half(), rtol=2e-3, what="o")
    _, lse = student.tiled_attention(q.bfloat16(), k.bfloat16(), v.bfloat16(), 4, 12)
    assert_close(lse, full((4,), 7290 + math.log(48)).float(), rtol=1e-5, what="lse")
    _, lse = student.tiled_attention(
        *(zeros(n, 4).half() for n in (2, 3003, 3003)), 2, 3003
    )
    assert_close(lse, full((2,), math.log(3003)).float(), atol=5e-5, what="lse")


@points(0.5)
def test_any_strides(student):
    """q, k and v are transposed views of [N, H, d] tensors."""
    q, k, v = (randn(n, 2, d).transpose(0, 1) for n, d in ((6, 5), (8, 5), (8, 4)))
    o, _ = call_twice(student.tiled_attention, q, k, v, 6, 4)
    assert_close(o, _whole(q, k, v)[0], what="o")


@points(0.5)
def test_sizes_that_do_not_fit_are_refused(student):
    """q and k of different d, k and v of different length, a tile of less than one row: ValueError
    with the sizes.
    """
    f, q, k, v = student.tiled_attention, *_equal_scores(2, 5, -3.0)
    f(q, k, v, 1, 1)  # sizes that fit are not refused
    for d in (7, 3):
        assert_refused(f, q, randn(5, d), v, 2, 2, sizes=(4, d))
    for n in (9, 3):
        assert_refused(f, q, k, randn(n, 3), 2, 2, sizes=(5, n))
    assert_refused(f, q, k, v, 2, 0, sizes=(0,))
    assert_refused(f, q, k, v, 0, 2, sizes=(0,))
    assert_refused(f, q, k, v, -3, 2, sizes=(-3,))


def _assert_answers(answer):
    """What a test of memory needs: numbers that are finite and not all alike. Who computes nothing
    keeps nothing.
    """
    for part, name in zip(answer, ("o", "lse"), strict=True):
        assert_varies(part, above=1e-9, what=name)


def _equal_scores(n_q, n_k, score):
    """q [n_q, 4], k [n_k, 4] and v [n_k, 3]: every query has the same score with every key."""
    q, k = zeros(n_q, 4), zeros(n_k, 4)
    q[:, 1], k[:, 1] = 2.0 * abs(score) ** 0.5, score / abs(score) ** 0.5
    return q, k, randn(n_k, 3)


def _means(v, n_q):
    """The mean of the values that each query sees, with equal scores, causal; 0 where it sees
    none.
    """
    n_k = v.shape[0]
    seen = (torch.arange(n_q) + 1 + n_k - n_q).clamp(min=0)
    sums = torch.cat([zeros(1, v.shape[1]), v.cumsum(dim=0)])
    return sums[seen] / seen.clamp(min=1).unsqueeze(1)


def _whole(q, k, v):
    """(o, lse) by the whole matrix."""
    s = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return torch.softmax(s, dim=-1) @ v, torch.logsumexp(s, dim=-1)

"""tiled_attention_backward: the gradients, from scores that are computed a second time."""

import math

import torch

from autograder.suite import (
    arange,
    assert_close,
    assert_varies,
    call_twice,
    full,
    points,
    randn,
    tensor,
    zeros,
)


@points(0.5)
def test_the_gradient_of_v(student):
    """dV = Pᵀ dO, with weights that are already divided: P = exp(S - lse). 6 queries, 8 keys, tiles
    of 3 and 4.
    """
    given, expected = _case((2, 6, 5), (2, 8, 5), (2, 8, 3))
    assert_close(
        call_twice(student.tiled_attention_backward, *given, 3, 4)[2],
        expected[2],
        what="dv",
    )


@points(0.5)
def test_the_gradient_of_k(student):
    """dK = dSᵀ Q / √d, where dS = P ∘ (dP - D), and D is one number a row. Every query tile adds to
    it.
    """
    given, expected = _case((2, 6, 5), (2, 8, 5), (2, 8, 3))
    assert_close(
        student.tiled_attention_backward(*given, 3, 4)[1], expected[1], what="dk"
    )


@points(0.5)
def test_the_gradient_of_q(student):
    """dQ = dS K / √d. Every key tile adds to it."""
    given, expected = _case((2, 6, 5), (2, 8, 5), (2, 8, 3))
    assert_close(
        student.tiled_attention_backward(*given, 3, 4)[0], expected[0], what="dq"
    )


@points(0.25)
def test_every_argument_counts(student):
    """All scores are 0, and stay so where q, k, v or dO alone is another: what an answer was is
    wrong for the next.
    """
    q, k, v, do = zeros(4, 5), randn(6, 5), arange(18).view(6, 3) ** 2, randn(4, 3)
    k[:, 4], q[:, 4] = 0.0, randn(4)
    others = {
        "q": torch.cat([q[:, :4], randn(4, 1)], dim=1),
        "v": v.flip(0),
        "do": randn(4, 3),
    }
    others["k"] = torch.cat([randn(6, 4), k[:, 4:]], dim=1)
    for changes in ({}, *({name: value} for name, value in others.items())):
        inputs, expected = _equal_weights(
            **{"q": q, "k": k, "v": v, "do": do, **changes}
        )
        _assert_all(student.tiled_attention_backward(*inputs, 2, 3), expected)


@points(1.25)
def test_ragged_tiles(student):
    """7 queries and 5 keys: tiles that leave a rest, tiles of one row, tiles that are larger than
    everything.
    """
    given, expected = _case((7, 3), (5, 3), (5, 2))
    for block_q, block_k in ((3, 2), (1, 1), (7, 4), (50, 60)):
        _assert_all(
            student.tiled_attention_backward(*given, block_q, block_k), expected
        )
    student.tiled_attention_backward(
        *given, 3, 2, causal=True
    )  # a mask is as ragged as its tile


@points(0.25)
def test_causal_over_several_tiles(student):
    """All scores are 0, so a query gives each key that it sees the same weight, and those after it
    none: look at dV.
    """
    given, expected = _case((8, 3), (8, 3), (8, 2), causal=True, size=0.0)
    for block_q, block_k in ((2, 4), (4, 2)):
        assert_close(
            student.tiled_attention_backward(*given, block_q, block_k, causal=True)[2],
            expected[2],
            what="dv",
        )


@points(1.5)
def test_causal_is_aligned_at_the_bottom_right(student):
    """Four queries, nine keys: the first query sees six of them. All scores are 0: look at dV."""
    given, expected = _case((4, 3), (9, 3), (9, 2), causal=True, size=0.0)
    assert_close(
        student.tiled_attention_backward(*given, 2, 3, causal=True)[2],
        expected[2],
        what="dv",
    )


@points(1.5)
def test_rows_that_see_nothing_contribute_nothing(student):
    """Eight queries, four keys, causal: the first four see nothing. Their dQ is 0, and nothing is
    nan. The other rows see one to four keys; a tile of three queries has rows of both kinds.
    """
    given, expected = _case((8, 3), (4, 3), (4, 2), causal=True)
    gradients = student.tiled_attention_backward(*given, 3, 2, causal=True)
    assert all(g.any() for g in gradients[1:]), (
        "The last four queries see keys: dk and dv are not all zeros."
    )
    assert_close(gradients[0][:4], zeros(4, 3), what="dq of rows that see nothing")
    for gradient, name in zip(gradients, ("dq", "dk", "dv"), strict=True):
        assert bool(gradient.isfinite().all()), (
            f"There is nan or inf in {name}: look at rows whose lse is -inf."
        )
    assert_close(
        gradients[0][4:], expected[0][4:], what="dq of rows that see something"
    )


@points(3)
def test_the_score_matrix_is_never_there(student):
    """Counted: all numbers that are alive at once. Keeping the tiles of one loop for the next is
    the matrix again.
    """
    given, _ = _case((128, 2), (160, 2), (160, 3))
    gradients, cost = student.counted("tiled_attention_backward", *given, 32, 32)
    _assert_answers(gradients)
    assert cost.peak < 128 * 160 // 2, (
        f"For 128 queries and 160 keys in tiles of 32, {cost.peak} numbers are alive at once; "
        "the whole matrix has "
        "20480. A tile has 1024, and the gradients 1056."
    )


@points(2)
def test_more_queries_need_no_more_score_tiles(student):
    """Counted: with three times as many query tiles, what is alive at once grows by the gradients,
    and by no tile. In float16 only tiles become float32, and the gradients.
    """
    peaks = []
    for n_q in (64, 192):
        given, _ = _case((n_q, 2), (32, 2), (32, 2))
        gradients, cost = student.counted("tiled_attention_backward", *given, 32, 32)
        _assert_answers(gradients)
        peaks.append(cost.peak)
    assert peaks[1] - peaks[0] < 32 * 128 // 2, (
        f"For 32 keys in tiles of 32, {peaks[0]} numbers are alive at once with 64 queries and "
        f"{peaks[1]} with 192; "
        "the gradients have 256 more. Each score tile should be forgotten before the next."
    )
    half, _ = _case((64, 64), (64, 64), (64, 64))
    half = [t.float() if t.dim() == 1 else t.half() for t in half]
    gradients, cost = student.counted("tiled_attention_backward", *half, 8, 8)
    _assert_answers(gradients)
    assert cost.peak < 33_500, (
        f"In float16, for 64 queries and keys of size 64 in tiles of 8, {cost.peak} numbers are "
        "alive at once. The gradients have 12288, in float32 and in float16, and a tile 512: "
        "what came in should become float32 tile by tile."
    )


@points(0.75)
def test_large_scores_stay_finite(student):
    """Scores of some ten thousand, above 0 and below, causal: exp(S) alone overflows; exp(S - lse)
    never does.
    """
    given, expected = _case((6, 5), (6, 5), (6, 2), causal=True, size=40000)
    _assert_all(
        student.tiled_attention_backward(*given, 2, 3, causal=True), expected, rtol=1e-5
    )


@points(1.5)
def test_half_precision_computes_in_float32(student):
    """float16 and bfloat16 in, the same out. On the way scores, dO · O and sums over queries are
    above 65504, and lse has more digits than half precision. One key: its weight is 1, dV is the
    sum of dO, dQ and dK are 0.
    """
    for dtype in (torch.float16, torch.bfloat16):
        q, k, v = (
            full(shape, value).to(dtype)
            for shape, value in (((5, 64), 33.5), ((1, 64), 33.0), ((1, 3), 2.0))
        )
        do = tensor([[6e4], [64.0], [6e4], [-6e4], [-6e4]]).expand(5, 3).to(dtype)
        lse = full((5,), 33.5 * 33.0 * 8.0).float()
        dq, dk, dv = student.tiled_attention_backward(
            q, k, v, v.expand(5, 3), lse, do, 1, 1
        )
        assert_close(dv, full((1, 3), 64.0).to(dtype), rtol=2e-3, what="dv")
        assert_close(dq, zeros(5, 64).to(dtype), atol=2e-2, what="dq")
        assert_close(dk, zeros(1, 64).to(dtype), atol=2e-2, what="dk")


@points(0.5)
def test_any_strides(student):
    """Everything that comes in is a transposed view. All scores are 0: look at dV."""
    given, expected = _case((2, 6, 5), (2, 4, 5), (2, 4, 3), size=0.0)
    views = [t.mT.contiguous().mT if t.dim() == 3 else t for t in given]
    assert_close(
        call_twice(student.tiled_attention_backward, *views, 6, 4)[2],
        expected[2],
        what="dv",
    )


def _case(shape_q, shape_k, shape_v, causal=False, size=1.0):
    """The arguments (q, k, v, o, lse, do), and the gradients (dq, dk, dv) by the whole matrix; q is
    `size` large.
    """
    q, k, v = size * randn(*shape_q), randn(*shape_k), randn(*shape_v)
    s = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if causal:
        n_q, n_k = s.shape[-2:]
        s = s.masked_fill(
            torch.arange(n_k) > torch.arange(n_q)[:, None] + n_k - n_q, -torch.inf
        )
    p = torch.softmax(s, dim=-1).nan_to_num(0.0)
    o, do = p @ v, randn(*shape_q[:-1], shape_v[-1])
    dp = do @ v.transpose(-2, -1)
    ds = p * (dp - (p * dp).sum(dim=-1, keepdim=True)) / math.sqrt(q.shape[-1])
    gradients = ds @ k, ds.transpose(-2, -1) @ q, p.transpose(-2, -1) @ do
    return (q, k, v, o, torch.logsumexp(s, dim=-1), do), gradients


def _equal_weights(q, k, v, do):
    """The arguments and the gradients as `_case` has them, where all scores are 0."""
    n_k, root = k.shape[0], math.sqrt(q.shape[-1])
    o = v.mean(dim=0).expand(do.shape)
    ds = (do @ v.T - (do * o).sum(dim=-1, keepdim=True)) / n_k / root
    gradients = ds @ k, ds.T @ q, do.sum(dim=0).expand(v.shape) / n_k
    return (q, k, v, o, full((q.shape[0],), math.log(n_k)), do), gradients


def _assert_answers(gradients):
    """What a test of memory needs: gradients that are finite and not all alike. Who computes
    nothing keeps nothing.
    """
    for gradient, name in zip(gradients, ("dq", "dk", "dv"), strict=True):
        assert_varies(gradient, above=1e-9, what=name)


def _assert_all(gradients, expected, rtol=2e-6):
    for mine, other, name in zip(gradients, expected, ("dq", "dk", "dv"), strict=True):
        assert_close(mine, other, rtol=rtol, what=name)

"""tiled_attention_backward: the gradients, from scores that are computed a second time."""

import math

import torch

from autograder.suite import assert_close, call_twice, points, randn, zeros


@points(3)
def test_the_gradient_of_v(student):
    """dV = Pᵀ dO, with weights that are already divided: P = exp(S - lse). 7 queries, 11 keys, tiles of 3 and 4."""
    given, expected = _case((2, 7, 5), (2, 11, 5), (2, 11, 3))
    assert_close(call_twice(student.tiled_attention_backward, *given, 3, 4)[2], expected[2], what="dv")


@points(3)
def test_the_gradient_of_k(student):
    """dK = dSᵀ Q / √d, where dS = P ∘ (dP - D), and D is one number a row. Every query tile adds to it."""
    given, expected = _case((2, 7, 5), (2, 11, 5), (2, 11, 3))
    assert_close(student.tiled_attention_backward(*given, 3, 4)[1], expected[1], what="dk")


@points(3)
def test_the_gradient_of_q(student):
    """dQ = dS K / √d. Every key tile adds to it."""
    given, expected = _case((2, 7, 5), (2, 11, 5), (2, 11, 3))
    assert_close(student.tiled_attention_backward(*given, 3, 4)[0], expected[0], what="dq")


@points(2)
def test_causal_and_rows_that_see_nothing(student):
    """Masked scores pass no gradient. With more queries than keys the first rows see nothing: 0, and never nan."""
    for n_q, n_k in ((9, 9), (4, 13), (9, 5)):
        given, expected = _case((n_q, 3), (n_k, 3), (n_k, 2), causal=True)
        _assert_all(student.tiled_attention_backward(*given, 4, 3, causal=True), expected)


@points(1)
def test_the_tile_sizes_do_not_matter(student):
    """Tiles of one row, tiles larger than everything, other tiles than in the forward pass."""
    given, expected = _case((7, 3), (5, 3), (5, 2))
    for block_q, block_k in ((1, 1), (7, 2), (50, 60)):
        _assert_all(student.tiled_attention_backward(*given, block_q, block_k), expected)


@points(1)
def test_the_score_matrix_is_never_there(student):
    """Counted: all numbers that are alive at once. Keeping the tiles of one loop for the next is the matrix again."""
    given, _ = _case((200, 2), (240, 2), (240, 3))
    cost = student.cost("tiled_attention_backward", *given, 32, 32)
    assert cost.peak < 200 * 240 // 3, (
        f"For 200 queries and 240 keys in tiles of 32, {cost.peak} numbers are alive at once; the whole matrix has "
        "48000. A tile has 1024, and the gradients 1600."
    )


@points(0.5)
def test_large_scores_stay_finite(student):
    """Scores of several thousand: exp(S) alone overflows; exp(S - lse) never does."""
    given, expected = _case((3, 5), (7, 5), (7, 2), size=4000)
    _assert_all(student.tiled_attention_backward(*given, 2, 3), expected, rtol=1e-5)


@points(0.5)
def test_half_precision_stays_half_precision(student):
    """float16 gradients for float16 inputs. One key: its weight is 1, dV is the sum of dO, dQ and dK are 0."""
    q, k, v, do = (randn(n, 3).half() for n in (5, 1, 1, 5))
    lse = (q.float() @ k.float().T).squeeze(-1) / math.sqrt(3)
    dq, dk, dv = student.tiled_attention_backward(q, k, v, v.expand(5, 3), lse, do, 2, 2)
    assert_close(dv, do.float().sum(dim=0, keepdim=True).half(), atol=2e-3, what="dv")
    assert_close(dq, zeros(5, 3).half(), atol=2e-3, what="dq")
    assert_close(dk, zeros(1, 3).half(), atol=2e-3, what="dk")


def _case(shape_q, shape_k, shape_v, causal=False, size=1.0):
    """The arguments (q, k, v, o, lse, do), and the gradients by autograd through the whole matrix."""
    q, k, v = (size * randn(*shape_q)).requires_grad_(), randn(*shape_k, grad=True), randn(*shape_v, grad=True)
    s = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    n_q, n_k = s.shape[-2:]
    allowed = torch.ones(n_q, n_k, dtype=torch.bool)
    if causal:
        allowed = torch.arange(n_k) <= torch.arange(n_q)[:, None] + n_k - n_q
    s = s.masked_fill(~allowed, -torch.inf)
    empty = ~allowed.any(dim=-1, keepdim=True)
    o = torch.softmax(s.masked_fill(empty, 0.0), dim=-1).masked_fill(empty, 0.0) @ v
    do = randn(*o.shape)
    o.backward(do)
    given = [t.detach() for t in (q, k, v, o, torch.logsumexp(s, dim=-1), do)]
    return given, (q.grad, k.grad, v.grad)


def _assert_all(gradients, expected, rtol=2e-6):
    for mine, other, name in zip(gradients, expected, ("dq", "dk", "dv"), strict=True):
        assert_close(mine, other, rtol=rtol, what=name)

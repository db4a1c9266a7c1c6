"""single_query_attention: one query, a weighted average of the values."""

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    assert_same_gradients,
    call_twice,
    far_apart,
    forbid,
    points,
    randn,
    tensor,
)

from .ready_made import ATTENTION

pytestmark = forbid(*ATTENTION)


@points(2)
def test_values_are_mixed_by_scaled_scores(student, reference):
    """Compare keys with the query, scale by the root of their width, softmax, mix the values."""
    q, k, v = randn(7), randn(5, 7), randn(5, 3)
    assert_close(
        call_twice(student.single_query_attention, q, k, v),
        reference.single_query_attention(q, k, v),
    )
    assert_close_in_turn(
        student.single_query_attention, reference.single_query_attention, q, k, v
    )


@points(1)
def test_lengths_and_widths_that_all_coincide(student, reference):
    """N = d = d_v: keys and values exchanged, or a transposed matrix, would fit here. One key of
    width 1 gives [1].
    """
    q, k, v = randn(5), randn(5, 5), randn(5, 5)
    assert_close(
        student.single_query_attention(q, k, v),
        reference.single_query_attention(q, k, v),
    )
    assert_close(student.single_query_attention(q[:1], k[:1, :1], v[:1, :1]), v[0, :1])


@points(1)
def test_the_scale_makes_scores_comparable_across_widths(student):
    """d = 25, N = 6, d_v = 9, keys with q · k / 5 = ln 3, ln 2, ln 5, 0, 0, 0. By which number do
    you divide?
    """
    q = tensor([1.0] + [0.0] * 24)
    k = randn(6, 25)
    k[:, 0] = 5 * tensor([3.0, 2.0, 5.0, 1.0, 1.0, 1.0]).log()
    v = randn(6, 9)
    expected = tensor([3.0, 2.0, 5.0, 1.0, 1.0, 1.0]) / 13 @ v
    assert_close(student.single_query_attention(q, k, v), expected)


@points(0.5)
def test_large_scores_choose_one_value(student, reference):
    """Scores near ±2000 in float32: the best key takes all, and nothing is NaN."""
    q, k = tensor([100.0, 0.0, 0.0, 0.0]).float(), torch.eye(3, 4) * 40.0
    v = randn(3, 2).float()
    assert_close(student.single_query_attention(q, k, v), v[0], atol=1e-4)
    assert_close(student.single_query_attention(-q, k[:2] - 40, v[:2]), v[1], atol=1e-4)
    queries, k = far_apart(torch.float32)
    v = randn(6, 2).float()
    for q in queries:
        expected = reference.single_query_attention(q, k, v)
        assert_close(student.single_query_attention(q, k, v), expected, atol=1e-3)


@points(1)
def test_gradients_reach_query_keys_and_values(student, reference):
    """A mixture has gradients everywhere; a choice (argmax) has none for the query."""
    qkv = randn(1, grad=True), randn(4, 1, grad=True), randn(4, 3, grad=True)
    assert_same_gradients(
        student.single_query_attention, reference.single_query_attention, *qkv
    )


@points(0.5)
def test_half_precision_in_half_precision_out(student, reference):
    """float16 in, float16 out; inside, scores of 90000 before the scale exceed float16 and must not
    overflow, and float16 cannot add 4200 equal weights one by one: it stays at 2048.
    """
    q, k = (
        torch.full((9,), 100.0).half(),
        (100 + torch.arange(4.0)).half()[:, None].expand(4, 9),
    )
    v = randn(4, 2).half()
    assert_close(
        student.single_query_attention(q, k, v),
        reference.single_query_attention(q, k, v),
        atol=4e-3,
    )
    # half of the values are 1: so many that somebody who loops over the keys is done in time
    nothing, many = torch.zeros(1).half(), torch.ones(4200, 1).half()
    values = (torch.arange(4200) < 2100).half()[:, None]
    assert_close(
        student.single_query_attention(nothing, many, values),
        torch.tensor([0.5]).half(),
        atol=4e-3,
    )


@points(1)
def test_sizes_that_cannot_match_are_refused(student):
    """A query needs keys of its own width, and every key needs a value."""
    assert_refused(
        student.single_query_attention, randn(3), randn(5, 4), randn(5, 2), sizes=(3, 4)
    )
    assert_refused(
        student.single_query_attention, randn(4), randn(5, 3), randn(5, 2), sizes=(4, 3)
    )
    assert_refused(
        student.single_query_attention, randn(3), randn(5, 3), randn(6, 2), sizes=(5, 6)
    )
    assert_refused(
        student.single_query_attention, randn(3), randn(5, 3), randn(4, 2), sizes=(5, 4)
    )

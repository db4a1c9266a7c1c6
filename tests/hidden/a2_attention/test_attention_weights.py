"""attention_weights: every query distributes its attention over the keys."""

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
    zeros,
)

from .ready_made import ATTENTION

pytestmark = forbid(*ATTENTION)


@points(2)
def test_each_query_distributes_over_the_keys(student, reference):
    """Row i belongs to query i and sums to 1. Check which axis your softmax normalizes and what you
    divide by.
    """
    q, k = randn(2, 5, 7), randn(2, 6, 7)
    assert_close(
        call_twice(student.attention_weights, q, k), reference.attention_weights(q, k)
    )
    assert_close_in_turn(student.attention_weights, reference.attention_weights, q, k)


@points(1)
def test_rows_are_distributions_that_follow_the_scores(student):
    """Every row is positive, sums to 1, and gives most weight to the key with the largest dot
    product, and so on down. (The scale has a test of its own.)
    """
    q, k = randn(2, 3, 5), randn(2, 4, 5)
    weights = student.attention_weights(q, k)
    assert_close(
        weights.sum(dim=-1),
        torch.ones(2, 3),
        same_dtype=False,
        what="the sum of each row",
    )
    assert weights.min() > 0, "Some weights are not positive."
    assert weights.argsort(dim=-1).equal((q @ k.mT).argsort(dim=-1)), (
        "The weights of a query are not in the order of its scores q · k_j."
    )


@points(1)
def test_a_single_sequence_without_batch(student, reference):
    """q [N_q, d] and k [N_k, d] with nothing in front: count axes from the end. (d = 1 here.)"""
    q, k = randn(3, 1), randn(7, 1)
    assert_close(student.attention_weights(q, k), reference.attention_weights(q, k))


@points(1)
def test_two_leading_axes(student, reference):
    """Any number of leading axes may stand in front; later these are batch and heads. (d = 1
    here.)
    """
    q, k = randn(2, 3, 5, 1), randn(2, 3, 4, 1)
    assert_close(student.attention_weights(q, k), reference.attention_weights(q, k))


@points(0.5)
def test_as_many_queries_as_keys(student, reference):
    """With B = N_q = N_k = d a transposed matrix or a softmax over the wrong axis keeps its
    shape.
    """
    q, k = randn(5, 5, 5), randn(5, 5, 5)
    assert_close(student.attention_weights(q, k), reference.attention_weights(q, k))


@points(1)
def test_the_scale_is_the_root_of_the_width(student):
    """d = 49: the query (1, 0, …) against keys that start with 7 ln 3, 7 ln 5, 7 ln 2 must give
    0.3, 0.5, 0.2.
    """
    q, k = zeros(1, 49), randn(3, 49)
    q[0, 0] = 1.0
    k[:, 0] = 7 * tensor([3.0, 5.0, 2.0]).log()
    assert_close(student.attention_weights(q, k), tensor([[0.3, 0.5, 0.2]]))


@points(1)
def test_extreme_scores_stay_finite(student, reference):
    """Rows of very unequal size in float32, scores from −60000 to 1000: no row may overflow or
    become 0/0.
    """
    q = tensor([[4000.0, 0.0], [-240000.0, 0.0], [1e-3, 2e-3], [0.0, 0.0]]).float()
    k = tensor([[0.35, 1.0], [0.36, -1.0], [0.3555, 0.5]]).float()
    assert_close(
        student.attention_weights(q, k), reference.attention_weights(q, k), atol=5e-3
    )
    q, k = far_apart(torch.float32)
    assert_close(
        student.attention_weights(q, k), reference.attention_weights(q, k), atol=1e-3
    )


@points(1)
def test_gradients_reach_queries_and_keys(student, reference):
    """Both sides of the dot product are trained."""
    q, k = randn(2, 3, 5, grad=True), randn(2, 4, 5, grad=True)
    assert_same_gradients(student.attention_weights, reference.attention_weights, q, k)


@points(0.5)
def test_transposed_views_are_welcome(student, reference):
    """q and k may be views of other tensors (not contiguous): `view` refuses them, `reshape` does
    not.
    """
    q, k = randn(4, 5, 2, 1).permute(2, 0, 1, 3), randn(4, 1, 6, 2).permute(3, 0, 2, 1)
    assert_close(student.attention_weights(q, k), reference.attention_weights(q, k))


@points(0.5)
def test_half_precision_in_half_precision_out(student, reference):
    """float16 in, float16 out, and float32 between: q · k = 90000 does not fit float16, the scaled
    score does. Nor do the exponentials of 70000 scores, added up.
    """
    q = torch.full((1, 9), 100.0).half()
    k = torch.full((2, 9), 100.0).half()
    assert_close(
        student.attention_weights(q, k), torch.full((1, 2), 0.5).half(), atol=1e-3
    )
    q, k = far_apart(torch.float16)
    assert_close(
        student.attention_weights(q, k), reference.attention_weights(q, k), atol=1e-3
    )
    many = student.attention_weights(zeros(1, 1).half(), zeros(70_000, 1).half())
    assert_close(many[:, :2], torch.full((1, 2), 1 / 70_000).half())


@points(0.5)
def test_no_loop_over_queries_or_keys(student):
    """Count torch operations at two lengths: one matrix product serves all queries and keys."""
    q, k = randn(2, 31, 5), randn(2, 37, 5)
    few = student.cost("attention_weights", q[:, :3], k[:, :2]).operations
    weights, cost = student.counted("attention_weights", q, k)
    many = cost.operations
    assert weights.std() > 1e-3, "All weights are the same."
    assert many <= few, (
        f"3 queries take {few} torch operations and 31 take {many}: is there a Python loop?"
    )


@points(1)
def test_sizes_that_cannot_match_are_refused(student):
    """Queries and keys meet in a dot product: compare their widths, and name both."""
    assert_refused(
        student.attention_weights, randn(2, 5, 3), randn(2, 6, 4), sizes=(3, 4)
    )
    assert_refused(student.attention_weights, randn(5, 7), randn(6, 2), sizes=(7, 2))

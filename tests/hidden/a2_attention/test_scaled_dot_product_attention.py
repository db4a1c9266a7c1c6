"""scaled_dot_product_attention: each query's mixture of the values."""

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
    uses,
)

from .ready_made import ATTENTION

pytestmark = [uses("attention_weights"), forbid(*ATTENTION)]


@points(2.5)
def test_every_query_mixes_the_values(student, reference):
    """Sizes are all different: [..., N_q, N_k] weights times [..., N_k, d_v] values."""
    q, k, v = randn(2, 5, 7), randn(2, 6, 7), randn(2, 6, 3)
    out = call_twice(student.scaled_dot_product_attention, q, k, v)
    assert_close(out, reference.scaled_dot_product_attention(q, k, v))
    assert_close_in_turn(
        student.scaled_dot_product_attention,
        reference.scaled_dot_product_attention,
        q,
        k,
        v,
    )


@points(1)
def test_sizes_that_all_coincide(student, reference):
    """B = N_q = N_k = d = d_v: only the values tell keys from values and rows from columns."""
    q, k, v = randn(3, 3, 3), randn(3, 3, 3), randn(3, 3, 3)
    assert_close(
        student.scaled_dot_product_attention(q, k, v),
        reference.scaled_dot_product_attention(q, k, v),
    )


@points(1)
def test_no_batch_and_two_leading_axes(student, reference):
    """Leading axes are only carried along, however many there are, one sentence too. (d = 1
    here.)
    """
    q, k, v = randn(2, 3, 4, 1), randn(2, 3, 6, 1), randn(2, 3, 6, 7)
    expected = reference.scaled_dot_product_attention(q, k, v)
    assert_close(student.scaled_dot_product_attention(q, k, v), expected)
    assert_close(
        student.scaled_dot_product_attention(q[:1, 0], k[:1, 0], v[:1, 0]),
        expected[:1, 0],
    )
    q, k, v = q[0, 0], k[0, 0], v[0, 0]
    assert_close(
        student.scaled_dot_product_attention(q, k, v),
        reference.scaled_dot_product_attention(q, k, v),
    )


@points(1)
def test_keys_and_values_are_a_set(student, reference):
    """Shuffle the pairs (key, value) together: every query still finds the same values."""
    q, k, v = randn(4, 5), randn(6, 5), randn(6, 2)
    order = [4, 2, 0, 5, 1, 3]
    out = student.scaled_dot_product_attention(q, k[order], v[order])
    assert_close(out, reference.scaled_dot_product_attention(q, k, v))


@points(1)
def test_the_result_is_linear_in_the_values(student, reference):
    """Doubling all values doubles the result, adding 3 to them adds 3: values take no part in the
    weights (d = 1).
    """
    q, k, v = randn(2, 5, 1), randn(2, 3, 1), randn(2, 3, 4)
    out = student.scaled_dot_product_attention(q, k, 2 * v + 3)
    assert_close(out, 2 * reference.scaled_dot_product_attention(q, k, v) + 3)


@points(1)
def test_gradients_reach_queries_keys_and_values(student, reference):
    """All three are trained, and the gradient of each is needed."""
    qkv = (
        randn(2, 3, 5, grad=True),
        randn(2, 4, 5, grad=True),
        randn(2, 4, 6, grad=True),
    )
    assert_same_gradients(
        student.scaled_dot_product_attention,
        reference.scaled_dot_product_attention,
        *qkv,
    )


@points(0.5)
def test_scores_of_any_size(student, reference):
    """One key wins by far in float32 (scores ±1500): its value comes out, and nothing is NaN.
    Each query has its own largest score.
    """
    q = torch.tensor([[3000.0, 0.0, 0.0, 0.0], [-3000.0, 0.0, 0.0, 0.0]])
    k = torch.tensor(
        [[1.0, 2.0, 0.0, 1.0], [-1.0, 0.0, 5.0, 0.0], [0.0, 1.0, 1.0, 1.0]]
    )
    v = randn(3, 2).float()
    assert_close(student.scaled_dot_product_attention(q, k, v), v[:2], atol=1e-4)
    for dtype in (torch.float32, torch.float64):
        q, k = far_apart(dtype)
        v = randn(6, 2).to(dtype)
        expected = reference.scaled_dot_product_attention(q, k, v)
        assert_close(student.scaled_dot_product_attention(q, k, v), expected, atol=1e-3)


@points(0.5)
def test_half_precision_in_half_precision_out(student, reference):
    """float16 in, float16 out. q · k = 90000 does not fit float16, the scaled score does; nor do
    the exponentials of 70000 scores, added up.
    """
    q, k, v = randn(1, 3, 5).half(), randn(1, 4, 5).half(), randn(1, 4, 2).half()
    out = student.scaled_dot_product_attention(q, k, v)
    assert_close(out, reference.scaled_dot_product_attention(q, k, v), atol=4e-3)
    many, q, v = (
        torch.ones(70_000, 1).half(),
        torch.zeros(1, 1).half(),
        randn(6, 2).half(),
    )
    assert_close(
        student.scaled_dot_product_attention(q, many, many), many[:1], atol=4e-3
    )
    full = torch.full((6, 9), 100.0).half()
    assert_close(
        student.scaled_dot_product_attention(full[:1], full, full), full[:1], atol=0.2
    )
    q, k = far_apart(torch.float16)
    expected = reference.scaled_dot_product_attention(q, k, v)
    assert_close(student.scaled_dot_product_attention(q, k, v), expected, atol=4e-3)


@points(0.5)
def test_no_loop_over_queries_or_keys(student):
    """Count torch operations at two lengths: two matrix products serve all queries."""
    q, k, v = randn(2, 31, 5), randn(2, 37, 5), randn(2, 37, 3)
    few = student.cost(
        "scaled_dot_product_attention", q[:, :3], k[:, :2], v[:, :2]
    ).operations
    out, cost = student.counted("scaled_dot_product_attention", q, k, v)
    many = cost.operations
    assert out.std() > 1e-3, "All results are the same."
    assert many <= few, (
        f"3 queries take {few} torch operations and 31 take {many}: is there a Python loop?"
    )


@points(1)
def test_sizes_that_cannot_match_are_refused(student):
    """Every key needs a value; a ValueError names both counts. Widths of queries and keys must
    agree as before.
    """
    assert_refused(
        student.scaled_dot_product_attention,
        randn(2, 3),
        randn(5, 3),
        randn(6, 4),
        sizes=(5, 6),
    )
    assert_refused(
        student.scaled_dot_product_attention,
        randn(2, 3),
        randn(5, 3),
        randn(2, 4),
        sizes=(5, 2),
    )
    assert_refused(
        student.scaled_dot_product_attention,
        randn(2, 3),
        randn(5, 7),
        randn(5, 4),
        sizes=(3, 7),
    )

"""cosine_similarity: the angle, whatever the lengths."""

import torch

from autograder.suite import (
    assert_close,
    assert_refused,
    assert_same_gradients,
    call_twice,
    forbid,
    full,
    points,
    rand,
    randn,
    tensor,
    zeros,
)

pytestmark = [
    forbid(
        "torch.nn.functional.cosine_similarity",
        "torch.cosine_similarity",
        "torch.nn.CosineSimilarity",
    )
]


@points(2)
def test_the_cosine_of_each_pair_of_vectors(student, reference):
    """Sum over the features, the last dimension, and divide by both lengths. One number is left for
    each pair.
    """
    for shape in ((7, 5), (5, 5), (2, 3, 6), (1, 1)):
        u, v = randn(*shape), randn(*shape)
        assert_close(student.cosine_similarity(u, v), reference.cosine_similarity(u, v))


@points(1)
def test_lengths_cancel_and_signs_stay(student):
    """Multiplying u or v by a positive number must change nothing; a negative number turns the
    sign.
    """
    u, v = randn(5, 3), randn(5, 3)
    plain = student.cosine_similarity(u, v)
    stretch = tensor([[3.0], [250.0], [-0.02], [-7.0], [1.0]])
    assert_close(
        student.cosine_similarity(u * stretch, v),
        plain * stretch[:, 0].sign(),
        what="the result with u stretched",
    )
    assert_close(
        student.cosine_similarity(u, v * stretch),
        plain * stretch[:, 0].sign(),
        what="the result with v stretched",
    )
    parallel = student.cosine_similarity(u, 4 * u)
    assert_close(
        parallel, torch.ones(5).double(), what="the result for parallel vectors"
    )


@points(1)
def test_a_table_is_compared_with_one_vector(student, reference):
    """The leading dimensions broadcast: [V, d] against [d] is [V]; [V, 1, d] against [W, d] is [V,
    W].
    """
    table, query = randn(6, 5), randn(5)
    assert_close(
        student.cosine_similarity(table, query),
        reference.cosine_similarity(table, query),
    )
    assert_close(
        student.cosine_similarity(query, table),
        reference.cosine_similarity(query, table),
    )
    others = randn(3, 5)
    assert_close(
        student.cosine_similarity(table[:, None], others),
        reference.cosine_similarity(table[:, None], others),
    )


@points(1)
def test_the_zero_vector_has_similarity_zero(student, reference):
    """A zero vector has no direction; the course defines its similarity with anything as 0, with
    itself too.
    """
    u, v = randn(5, 3), randn(5, 3)
    u[1] = v[1] = v[3] = 0.0
    assert_close(student.cosine_similarity(u, v), reference.cosine_similarity(u, v))


@points(1)
def test_the_gradient_at_the_zero_vector_is_finite(student):
    """The derivative of a root at 0 is infinite, and inf · 0 is NaN: choosing the right value
    afterwards is too late.
    """
    u, v = (
        randn(4, 3).index_fill(0, tensor([2]), 0.0).requires_grad_(),
        randn(4, 3, grad=True),
    )
    student.cosine_similarity(u, v).sum().backward()
    assert u.grad is not None, "u got no gradient"
    assert bool(u.grad.isfinite().all()), "the gradient of u is not finite"
    assert v.grad is not None, "v got no gradient"
    assert bool(v.grad.isfinite().all()), "the gradient of v is not finite"


@points(1)
def test_gradients_flow_to_both_vectors(student, reference):
    """Training needs the gradients of u and of v."""
    assert_same_gradients(
        student.cosine_similarity,
        reference.cosine_similarity,
        randn(6, 5, grad=True),
        randn(5, grad=True),
    )


@points(1)
def test_short_vectors_are_no_special_case(student, reference):
    """A vector of length 10⁻¹⁰ has a direction like any other. A small number in the denominator
    outweighs it.
    """
    u = (rand(5, 4) + 0.5) * tensor([[1e-3], [1e-4], [1e-10], [1e-20], [1.0]])
    v = (rand(5, 4) + 0.5) * tensor([[1e-3], [1e-4], [1e-10], [1e-6], [1e-10]])
    assert_close(student.cosine_similarity(u, v), reference.cosine_similarity(u, v))


@points(0.5)
def test_half_precision_comes_back_as_half_precision(student, reference):
    """float16 in, float16 out."""
    u, v = randn(5, 7, dtype=torch.float16), randn(5, 7, dtype=torch.float16)
    assert_close(
        student.cosine_similarity(u, v), reference.cosine_similarity(u, v), atol=3e-3
    )


@points(1)
def test_half_precision_is_computed_in_float32(student):
    """float16 ends at 65504, and a vector of seven features of 30000 is longer than that: compute lengths in float32. A product in bfloat16 keeps two digits."""
    u = full((2, 7), 30000.0, dtype=torch.float16)
    v = u * torch.tensor([[1.0], [-1.0]], dtype=torch.float16)
    assert_close(
        student.cosine_similarity(u, v),
        torch.tensor([1.0, -1.0]).double(),
        atol=3e-3,
        same_dtype=False,
    )
    u, v = randn(40, 7).bfloat16(), randn(40, 7).bfloat16()
    exact = (u.double() * v.double()).sum(-1) / (
        u.double().norm(dim=-1) * v.double().norm(dim=-1)
    )
    assert_close(
        student.cosine_similarity(u, v), exact, atol=1e-6, rtol=4.5e-3, same_dtype=False
    )


@points(0.5)
def test_inputs_are_left_alone(student, reference):
    """The caller's vectors stay as long as they were; transposed views are welcome."""
    u, v = randn(5, 6).T, randn(5, 6).T
    assert_close(
        call_twice(student.cosine_similarity, u, v), reference.cosine_similarity(u, v)
    )


@points(0.5)
def test_vectors_of_different_lengths_are_refused(student):
    """A vector of 3 features and one of 5 have no angle: ValueError, with both numbers."""
    assert_refused(
        student.cosine_similarity, zeros(2, 3) + 1, zeros(2, 5) + 1, sizes=(3, 5)
    )
    assert_refused(
        student.cosine_similarity, zeros(2, 5) + 1, zeros(2, 3) + 1, sizes=(3, 5)
    )

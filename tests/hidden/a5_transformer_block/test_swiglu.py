"""swiglu: one projection gates another, and a third leads back."""

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    assert_same_gradients,
    call_twice,
    eye,
    points,
    randn,
)


@points(1.5)
def test_silu_of_the_gate_times_the_other_projection(student, reference):
    """Random x, w1, w2, w3, all sizes different: which of the products go through SiLU?"""
    x, w1, w2, w3 = randn(2, 5, 3), randn(3, 7), randn(3, 7), randn(7, 3)
    assert_close(
        call_twice(student.swiglu, x, w1, w2, w3), reference.swiglu(x, w1, w2, w3)
    )
    assert_close_in_turn(student.swiglu, reference.swiglu, x, w1, w2, w3)


@points(1)
def test_silu_is_z_times_sigmoid_of_z(student):
    """With all weights 1 and D = F = 1 the answer is z · SiLU(z), at z = −6 … 6."""
    z = torch.linspace(-6, 6, 25, dtype=torch.float64).view(-1, 1)
    assert_close(student.swiglu(z, eye(1), eye(1), eye(1)), z * z * torch.sigmoid(z))


@points(0.5)
def test_square_matrices_keep_their_places(student, reference):
    """B = N = D = F, so any order of the matrices would multiply: w3 leads back, w1 is the gate. (x
    is a view.)
    """
    x, w1, w2, w3 = randn(3, 3, 3).transpose(0, 1), *(randn(3, 3) for _ in range(3))
    assert_close(student.swiglu(x, w1, w2, w3), reference.swiglu(x, w1, w2, w3))


@points(0.5)
def test_the_answer_is_linear_in_what_is_gated(student, reference):
    """−2 · w2 gives −2 times the answer: the gate takes no notice of w2. One token, [D]."""
    x, w1, w2, w3 = randn(5), randn(5, 2), randn(5, 2), randn(2, 5)
    assert_close(
        student.swiglu(x, w1, -2 * w2, w3), -2 * reference.swiglu(x, w1, w2, w3)
    )


@points(0.5)
def test_a_large_negative_gate_closes(student):
    """Gates of −1200 and −60000 in float32 let nothing through: 0, not NaN. A gate of 1000 passes
    as it is.
    """
    x = torch.tensor([[-1200.0], [-60000.0], [1000.0]])
    y = student.swiglu(x, torch.ones(1, 1), torch.ones(1, 1), torch.ones(1, 1))
    assert_close(y, torch.tensor([[0.0], [0.0], [1e6]]), atol=1e-3)


@points(1)
def test_gradients_reach_the_input_and_all_three_matrices(student, reference):
    """The gate is trained as well: a detached branch shows here."""
    inputs = [randn(*shape, grad=True) for shape in ((4, 3), (3, 7), (3, 7), (7, 3))]
    assert_same_gradients(student.swiglu, reference.swiglu, *inputs)


@points(0.5)
def test_half_precision_stays_half_precision(student, reference):
    """float16 in, float16 out; another dtype than the inputs' would be a surprise for the next
    layer.
    """
    inputs = [
        (t / 2).half() for t in (randn(2, 4, 3), randn(3, 5), randn(3, 5), randn(5, 3))
    ]
    expected = reference.swiglu(*(t.double() for t in inputs)).half()
    assert_close(student.swiglu(*inputs), expected, atol=4e-3, rtol=4e-3)


@points(0.5)
def test_sizes_that_cannot_match_are_refused(student):
    """w1 and w2 have one shape, w3 the reverse of it, and x has their D features. A ValueError
    names the sizes.
    """
    f = student.swiglu
    x, w1, w2, w3 = randn(2, 3), randn(3, 7), randn(3, 7), randn(7, 3)
    for wrong, wide in ((5, 9), (2, 6)):
        assert_refused(f, randn(2, wrong), w1, w2, w3, sizes=(wrong, 3))
        assert_refused(f, x, w1, randn(3, wide), w3, sizes=(7, wide))
        assert_refused(f, x, w1, randn(wrong, 7), w3, sizes=(3, wrong))
        assert_refused(f, x, w1, w2, randn(wide, 3), sizes=(7, wide))
        assert_refused(f, x, w1, w2, randn(7, wrong), sizes=(3, wrong))

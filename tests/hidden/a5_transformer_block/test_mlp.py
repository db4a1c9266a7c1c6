"""mlp: two linear maps with an activation between them, token by token."""

import torch

from autograder.suite import (
    arange,
    assert_close,
    assert_close_in_turn,
    assert_refused,
    assert_same_gradients,
    call_twice,
    eye,
    points,
    rand,
    randn,
    zeros,
)


def _weights(d, f, biases=True):
    """w1, b1, w2, b2."""
    return (
        randn(d, f),
        randn(f) if biases else zeros(f),
        randn(f, d),
        randn(d) if biases else zeros(d),
    )


@points(1.5)
def test_relu_between_two_linear_maps(student, reference):
    """No biases: negative hidden values become 0 before the second matrix, and only there."""
    x, weights = randn(2, 5, 3), _weights(3, 7, biases=False)
    assert_close(call_twice(student.mlp, x, *weights), reference.mlp(x, *weights))


@points(1)
def test_both_biases_count_where_they_stand(student, reference):
    """b1 moves what the activation sees; b2 is added last."""
    x, weights = randn(2, 5, 3), _weights(3, 7)
    assert_close_in_turn(student.mlp, reference.mlp, x, *weights)


@points(1)
def test_gelu_is_the_exact_one(student, reference):
    """Hidden values from −4 to 4: z · Φ(z) with the error function. An approximation is off by up
    to 5e-4.
    """
    x = torch.linspace(-4, 4, 33, dtype=torch.float64).view(-1, 1)
    weights = (eye(1), zeros(1), eye(1), zeros(1))
    assert_close(
        student.mlp(x, *weights, activation="gelu"),
        reference.mlp(x, *weights, activation="gelu"),
    )
    x, weights = randn(4, 3), _weights(3, 5)
    assert_close(
        student.mlp(x, *weights, activation="gelu"),
        reference.mlp(x, *weights, activation="gelu"),
    )
    answers = [student.mlp(x, *weights, activation=name) for name in ("relu", "gelu")]
    assert not torch.equal(*answers), "Both activations give one answer."


@points(0.5)
def test_width_and_hidden_width_may_coincide(student, reference):
    """B = N = D = F: no transpose can hide behind a size. Hidden values are positive and large, and
    there are no biases.
    """
    x, weights = (
        3 + rand(3, 3, 3),
        [3 * w for w in (rand(3, 3) + 1, zeros(3), rand(3, 3), zeros(3))],
    )
    assert_close(student.mlp(x, *weights), reference.mlp(x, *weights))


@points(0.5)
def test_each_token_goes_alone(student):
    """Other tokens may change: token 2 of sentence 1 does not notice. A single token [D] will do,
    and so will a view of another tensor. (No biases.)
    """
    x, weights = randn(5, 2, 3).transpose(0, 1), _weights(3, 7, biases=False)
    y = student.mlp(x, *weights)
    assert y.detach().std() > 1e-3, "The numbers of the answer are all alike."
    assert not torch.equal(y, x), "The answer is x."
    assert_close(student.mlp(x[1, 2], *weights), y[1, 2])


@points(1)
def test_gradients_reach_the_input_and_all_four_weights(student, reference):
    """All five are compared; relu lets a gradient through where its argument is positive."""
    weights = [weight.requires_grad_() for weight in _weights(3, 7)]
    assert_same_gradients(student.mlp, reference.mlp, randn(4, 3, grad=True), *weights)


@points(0.5)
def test_half_precision_stays_half_precision(student, reference):
    """float16 in, float16 out, for both activations. Hidden values are positive and large."""
    inputs = [
        t.half()
        for t in (
            2 + rand(2, 4, 3),
            2 + rand(3, 5),
            rand(5),
            randn(5, 3) / 30,
            randn(3),
        )
    ]
    expected = reference.mlp(*(t.double() for t in inputs)).half()
    assert_close(student.mlp(*inputs), expected, atol=4e-3, rtol=4e-3)
    assert student.mlp(*inputs, "gelu").dtype == torch.float16, (
        "With gelu the result should be float16 too."
    )


@points(0.5)
def test_another_activation_is_refused(student):
    """Only "relu" and "gelu": a ValueError, with the name that was asked for in its message."""
    inputs = (arange(6).view(2, 3), *_weights(3, 5))
    for name in ("tanh-7", "GELU-2"):
        assert_refused(student.mlp, *inputs, activation=name, sizes=(int(name[-1]),))
    for name in ("silu", "tanh"):  # torch has functions of these names
        assert_refused(student.mlp, *inputs, activation=name, naming=name)


@points(0.5)
def test_sizes_that_cannot_match_are_refused(student):
    """Widths of x, w1, w2 and the biases belong together, also where they would multiply: too many,
    then too few.
    """
    x, (w1, b1, w2, b2) = randn(2, 3), _weights(3, 7)
    for wrong, f in ((5, 9), (2, 6)):
        assert_refused(student.mlp, randn(2, wrong), w1, b1, w2, b2, sizes=(wrong, 3))
        assert_refused(student.mlp, x, w1, randn(f), w2, b2, sizes=(f, 7))
        assert_refused(student.mlp, x, w1, b1, randn(f, 3), b2, sizes=(7, f))
        assert_refused(
            student.mlp, x, w1, b1, randn(7, wrong), randn(wrong), sizes=(3, wrong)
        )
        assert_refused(student.mlp, x, w1, b1, randn(7, wrong), b2, sizes=(3, wrong))
        assert_refused(student.mlp, x, w1, b1, w2, randn(wrong), sizes=(3, wrong))

"""rms_norm: each token divided by its root mean square, nothing subtracted."""

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    assert_same_gradients,
    call_twice,
    forbid,
    ones,
    points,
    randn,
    tensor,
)

pytestmark = forbid(
    "torch.nn.functional.rms_norm",
    "torch.rms_norm",
    "torch.nn.RMSNorm",
    "torch.nn.functional.layer_norm",
    "torch.nn.functional.normalize",
)


@points(1.5)
def test_each_token_is_divided_by_its_root_mean_square(student, reference):
    """Tokens with a mean of 2 and very different sizes: a mean of squares, and nothing is
    subtracted.
    """
    x = (randn(4, 5, 6) + 2) * tensor([10.0, 30.0, 100.0, 300.0]).view(4, 1, 1)
    assert_close(
        call_twice(student.rms_norm, x, ones(6)), reference.rms_norm(x, ones(6))
    )


@points(0.5)
def test_as_many_tokens_as_features(student, reference):
    """A square input: does every token meet its own root mean square?"""
    x = 10 * randn(5, 5) * tensor([1.0, 2.0, 5.0, 10.0, 30.0]).view(5, 1)
    assert_close(student.rms_norm(x, ones(5)), reference.rms_norm(x, ones(5)))


@points(1)
def test_gamma_is_the_factor_itself(student, reference):
    """Random gamma, positive and negative, one factor per feature."""
    x, gamma = 10 * randn(2, 3, 7), randn(7)
    assert_close_in_turn(student.rms_norm, reference.rms_norm, x, gamma)


@points(1)
def test_eps_sits_inside_the_root(student, reference):
    """Features of size 1e-3: their mean square is about eps."""
    x = 1e-3 * randn(5, 6)
    assert_close(student.rms_norm(x, ones(6)), reference.rms_norm(x, ones(6)))


@points(0.5)
def test_the_callers_eps_is_used(student, reference):
    """eps = 0.5 is larger than the default by far."""
    x = 0.3 * randn(3, 7)
    for eps in (0.5, 0.1):
        assert_close(
            student.rms_norm(x, ones(7), eps), reference.rms_norm(x, ones(7), eps)
        )


@points(0.5)
def test_a_token_of_zeros_stays_zero(student):
    """0 divided by the root of eps is 0, and not NaN. (The other token here has size 3.)"""
    y = student.rms_norm(tensor([[0.0, 0.0, 0.0], [3.0, -3.0, 3.0]]), ones(3))
    assert_close(y, tensor([[0.0, 0.0, 0.0], [1.0, -1.0, 1.0]]), atol=1e-5)


@points(0.5)
def test_one_token_alone_and_a_transposed_batch(student, reference):
    """x may be [D], or a batch whose memory is not in the order of its axes, or a batch of one."""
    gamma, x = randn(5), 10 * randn(3, 5, 7).transpose(1, 2)
    for tokens in (x, x[0, 0], x[:1, :1]):
        assert_close(student.rms_norm(tokens, gamma), reference.rms_norm(tokens, gamma))


@points(1)
def test_half_precision_is_normalized_in_float32(student, reference):
    """float16 with features of 300 and more: a square beyond 65504 is infinite there. float16 comes
    out.
    """
    x, gamma = (400 * randn(3, 6)).half(), (1 + randn(6) / 3).half()
    expected = reference.rms_norm(x.double(), gamma.double()).half()
    assert_close(student.rms_norm(x, gamma), expected, atol=4e-3, rtol=2e-3)


@points(0.5)
def test_gradients_reach_x_and_gamma(student, reference):
    """A detached root mean square changes the gradient of x."""
    x, gamma = (10 * randn(3, 5)).requires_grad_(), randn(5, grad=True)
    assert_same_gradients(student.rms_norm, reference.rms_norm, x, gamma)


@points(0.5)
def test_sizes_that_cannot_match_are_refused(student):
    """gamma has one number per feature; a ValueError names both sizes."""
    assert_refused(student.rms_norm, randn(2, 6), randn(5), sizes=(6, 5))
    assert_refused(student.rms_norm, randn(2, 6), randn(7), sizes=(6, 7))

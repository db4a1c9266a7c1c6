"""layer_norm: each token to mean 0 and variance 1 over its own features, then scale and shift.

Features are of size 10 and more where a test is not about eps: there eps decides nothing.
"""

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    assert_same_gradients,
    call_twice,
    forbid,
    full,
    ones,
    points,
    randn,
    tensor,
    zeros,
)

pytestmark = forbid(
    "torch.nn.functional.layer_norm",
    "torch.layer_norm",
    "torch.native_layer_norm",
    "torch.nn.LayerNorm",
    "torch.nn.functional.group_norm",
    "torch.nn.GroupNorm",
    "torch.nn.functional.batch_norm",
    "torch.nn.functional.instance_norm",
)


@points(1.5)
def test_each_token_is_normalized_over_its_own_features(student, reference):
    """Tokens of very different size: which axis are mean and variance taken over, and divided by
    how many?
    """
    x = randn(4, 5, 6) * tensor([10.0, 30.0, 100.0, 300.0]).view(4, 1, 1) + 20
    y = call_twice(student.layer_norm, x, ones(6), zeros(6))
    assert_close(y, reference.layer_norm(x, ones(6), zeros(6)))


@points(1)
def test_as_many_tokens_as_features(student, reference):
    """A square input: a mean that lines up with the wrong axis raises no error here. Do rows meet
    rows?
    """
    x = 10 * randn(5, 5) + 30 * randn(5, 1)
    assert_close(
        student.layer_norm(x, ones(5), zeros(5)),
        reference.layer_norm(x, ones(5), zeros(5)),
    )


@points(1.5)
def test_scale_comes_first_then_shift(student, reference):
    """Random gamma and beta: gamma multiplies the normalized token, beta is added last."""
    x, gamma, beta = 10 * randn(3, 7, 5), randn(5), randn(5)
    assert_close_in_turn(student.layer_norm, reference.layer_norm, x, gamma, beta)


@points(1.5)
def test_eps_sits_inside_the_root(student, reference):
    """Features of size 1e-3: here eps is larger than the variance, and where it stands decides the
    answer.
    """
    x = 1e-3 * randn(5, 6)
    assert_close(
        student.layer_norm(x, ones(6), zeros(6)),
        reference.layer_norm(x, ones(6), zeros(6)),
    )


@points(0.5)
def test_the_callers_eps_is_used(student, reference):
    """eps = 0.5 and eps = 1e-3 give different results; the default is only a default."""
    x = 1e-1 * randn(3, 7)
    for eps in (0.5, 1e-3):
        assert_close(
            student.layer_norm(x, ones(7), zeros(7), eps),
            reference.layer_norm(x, ones(7), zeros(7), eps),
        )


@points(1)
def test_a_constant_token_becomes_beta(student):
    """All features equal, so the variance is 0; and a token of one feature is always constant."""
    beta = randn(6)
    assert_close(
        student.layer_norm(full((3, 6), 7.0), randn(6), beta), beta.expand(3, 6)
    )
    assert_close(
        student.layer_norm(randn(4, 1), ones(1), tensor([2.5])), full((4, 1), 2.5)
    )


@points(0.5)
def test_one_token_alone_and_a_transposed_batch(student, reference):
    """x may be [D], or [B, N, D] whose memory is not in the order of its axes."""
    gamma, beta = randn(5), randn(5)
    x = 10 * randn(3, 5, 7).transpose(1, 2)
    for tokens in (x, x[0, 0]):
        assert_close(
            student.layer_norm(tokens, gamma, beta),
            reference.layer_norm(tokens, gamma, beta),
        )


@points(0.5)
def test_a_large_offset_does_not_spoil_the_variance(student, reference):
    """float32, features near 3000: subtract the mean before you square, or the digits are gone."""
    x = (randn(3, 7) + 3000).float()
    expected = reference.layer_norm(x.double(), ones(7), zeros(7)).float()
    assert_close(
        student.layer_norm(x, ones(7).float(), zeros(7).float()), expected, atol=2e-3
    )


@points(0.5)
def test_half_precision_is_normalized_in_float32(student, reference):
    """float16 with features of 300 and more: their squares are infinite in float16. float16 comes
    out. And bfloat16: the mean of 300, 302, 304 and 312 has more digits than it holds.
    """
    x, gamma, beta = (
        (400 * randn(3, 6)).half(),
        (1 + randn(6) / 3).half(),
        randn(6).half(),
    )
    expected = reference.layer_norm(x.double(), gamma.double(), beta.double()).half()
    assert_close(student.layer_norm(x, gamma, beta), expected, atol=6e-3, rtol=2e-3)
    x, one, nothing = (
        tensor(row).bfloat16()
        for row in ([300.0, 302.0, 304.0, 312.0], [1.0] * 4, [0.0] * 4)
    )
    expected = reference.layer_norm(
        x.double(), one.double(), nothing.double()
    ).bfloat16()
    assert_close(student.layer_norm(x, one, nothing), expected, rtol=0.02)


@points(1)
def test_gradients_reach_x_gamma_and_beta(student, reference):
    """All three are trained. A detached mean or variance changes the gradient of x."""
    x, gamma, beta = (
        (10 * randn(3, 5)).requires_grad_(),
        randn(5, grad=True),
        randn(5, grad=True),
    )
    assert_same_gradients(student.layer_norm, reference.layer_norm, x, gamma, beta)


@points(0.5)
def test_sizes_that_cannot_match_are_refused(student):
    """gamma and beta have one number per feature; a ValueError names the sizes."""
    for wrong in (5, 7):
        assert_refused(
            student.layer_norm, randn(2, 6), randn(wrong), randn(6), sizes=(6, wrong)
        )
        assert_refused(
            student.layer_norm, randn(2, 6), randn(6), randn(wrong), sizes=(6, wrong)
        )

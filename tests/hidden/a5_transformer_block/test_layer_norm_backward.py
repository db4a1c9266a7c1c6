"""layer_norm_backward: compared with autograd in float64, part by part.

Features are of size 10 and more where a test is not about eps: there eps decides nothing.
"""

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_equal,
    assert_refused,
    call_twice,
    forbid,
    ones,
    points,
    randn,
    tensor,
)

pytestmark = forbid(
    "torch.autograd.grad",
    "torch.autograd.backward",
    "torch.Tensor.backward",
    "torch.native_layer_norm_backward",
    "torch.nn.functional.layer_norm",
)


def _autograd(dy, x, gamma, eps=1e-5):
    """The three gradients, by autograd, in float64."""
    x, gamma = (t.detach().double().requires_grad_() for t in (x, gamma))
    beta = torch.zeros_like(gamma, requires_grad=True)
    y = torch.nn.functional.layer_norm(x, gamma.shape, gamma, beta, eps)
    return torch.autograd.grad(y, (x, gamma, beta), dy.double())


def _three(answer):
    assert isinstance(answer, (tuple, list)), (
        "The answer should be the three gradients (dx, dgamma, dbeta)."
    )
    assert_equal(len(answer), 3, what="the number of results")
    return answer


@points(2)
def test_dx_with_gamma_one(student):
    """What moves besides x itself? Moving one feature moves the mean and the variance of its
    token.
    """
    dy, x = 10 * randn(2, 4, 6), 10 * randn(2, 4, 6) + 5
    dx, _, _ = _three(call_twice(student.layer_norm_backward, dy, x, ones(6)))
    assert_close(dx, _autograd(dy, x, ones(6))[0], what="dx")


@points(1.5)
def test_dx_with_a_trained_gamma(student):
    """Random gamma. The gradient at the normalized token is dy · gamma, and the means are taken of
    that.
    """
    dy, x, gamma = 10 * randn(5, 7), 10 * randn(5, 7), randn(7)
    assert_close_in_turn(
        lambda *a: _three(student.layer_norm_backward(*a))[0],
        lambda *a: _autograd(*a)[0],
        *(dy, x, gamma),
    )


@points(1)
def test_dx_knows_that_the_output_ignores_shifts(student):
    """Adding a number to all features of a token changes nothing, so dx sums to 0 over them. (dx
    itself is not 0.)
    """
    dx = _three(
        student.layer_norm_backward(randn(4, 6) + 1, 3 * randn(4, 6), randn(6) + 2)
    )[0]
    assert_close(
        dx.sum(dim=-1),
        torch.zeros(4, dtype=torch.float64),
        what="the sum over the features of dx",
    )
    assert dx.abs().sum() > 1e-2, "dx should not be zero."


@points(1)
def test_dgamma_sums_over_the_tokens(student):
    """dgamma is [D]: the normalized token times dy, added up over tokens. x has a mean of 15
    here.
    """
    dy, x, gamma = randn(5, 6), 10 * randn(5, 6) + 15, randn(6)
    assert_close(
        _three(student.layer_norm_backward(dy, x, gamma))[1],
        _autograd(dy, x, gamma)[1],
        what="dgamma",
    )


@points(1)
def test_dbeta_sums_over_the_tokens(student):
    """dbeta is [D]: beta is only added, once per token. Does gamma play a part?"""
    dy, x, gamma = randn(5, 6), randn(5, 6), randn(6)
    assert_close(
        _three(student.layer_norm_backward(dy, x, gamma))[2], dy.sum(0), what="dbeta"
    )


@points(1)
def test_sums_run_over_all_leading_axes(student):
    """x is [2, 3, 5, 4], then a single token [4], then a batch of one: dgamma and dbeta are [4]
    each time.
    """
    for shape in ((2, 3, 5, 4), (4,), (1, 1, 4)):
        dy, x, gamma = randn(*shape), 10 * randn(*shape), randn(4)
        dx, dgamma, dbeta = _three(student.layer_norm_backward(dy, x, gamma))
        assert dx.shape == x.shape, (
            f"dx should have the shape of x, {list(shape)}, and has {list(dx.shape)}."
        )
        assert_close(dgamma, _autograd(dy, x, gamma)[1], what="dgamma")
        assert_close(dbeta, dy.reshape(-1, 4).sum(dim=0), what="dbeta")


@points(1)
def test_eps_counts_for_small_tokens(student):
    """Features of size 1e-3, and another eps: the same s as in the forward pass."""
    dy, x, gamma = 1e-3 * randn(4, 6), 1e-3 * randn(4, 6), randn(6)
    # first, so that an eps that is ignored shows beside a fault that ends the test
    for eps in (1e-2, 1e-3):
        answer = _three(student.layer_norm_backward(dy, 50 * x, gamma, eps))
        expected = _autograd(dy, 50 * x, gamma, eps)
        assert_close(answer[0], expected[0], what=f"dx with eps={eps}")
    assert_close(
        _three(student.layer_norm_backward(dy, x, gamma))[0],
        _autograd(dy, x, gamma)[0],
        what="dx",
    )


@points(0.5)
def test_a_constant_token_has_finite_gradients(student):
    """The variance is 0: eps keeps s finite, and x̂ is 0."""
    dy, x = 1e-3 * randn(2, 5), tensor([[2.0] * 5, [-7.0] * 5])
    dx, dgamma, _ = _three(student.layer_norm_backward(dy, x, ones(5)))
    assert_close(dx, _autograd(dy, x, ones(5))[0], what="dx")
    assert_close(dgamma, torch.zeros(5, dtype=torch.float64), what="dgamma")


@points(0.5)
def test_as_many_tokens_as_features_and_a_transposed_input(student):
    """A square input hides nothing when means line up with rows; the memory order does not
    matter.
    """
    dy, x, gamma = randn(5, 5).T, 10 * (randn(5, 5) + randn(1, 5)).T, randn(5)
    for name, a, e in zip(
        ("dx", "dgamma", "dbeta"),
        _three(student.layer_norm_backward(dy, x, gamma)),
        _autograd(dy, x, gamma),
        strict=True,
    ):
        assert_close(a, e, what=name)


@points(1)
def test_half_precision_is_summed_in_float32(student):
    """float16: features of 400, whose squares are infinite there, and a sum over 300 tokens.
    float16 comes out. And bfloat16: the mean of 300, 302, 304 and 312 has more digits than it
    holds.
    """
    dy, x, gamma = (
        (0.1 * randn(300, 6) + 0.05).half(),
        (400 * randn(300, 6)).half(),
        (1 + randn(6) / 5).half(),
    )
    expected = [t.half() for t in _autograd(dy, x, gamma)]
    for name, a, e in zip(
        ("dx", "dgamma", "dbeta"),
        _three(student.layer_norm_backward(dy, x, gamma)),
        expected,
        strict=True,
    ):
        assert_close(a, e, atol=4e-3, rtol=2e-3, what=name)
    dy, x, gamma = (
        tensor(row).bfloat16()
        for row in ([[1.0, -2.0, 0.5, 3.0]], [[300.0, 302.0, 304.0, 312.0]], [1.0] * 4)
    )
    _, dgamma, _ = _three(student.layer_norm_backward(dy, x, gamma))
    assert_close(
        dgamma, _autograd(dy, x, gamma)[1].bfloat16(), rtol=0.02, what="dgamma"
    )
    # float32: squares of 3000 take the digits of the variance
    dy, x, gamma = randn(3, 6).float(), (randn(3, 6) + 3000).float(), randn(6).float()
    _, dgamma, _ = _three(student.layer_norm_backward(dy, x, gamma))
    expected = _autograd(dy, x, gamma)[1].float()
    assert_close(dgamma, expected, atol=2e-2, rtol=2e-2, what="dgamma")


@points(0.5)
def test_sizes_that_cannot_match_are_refused(student):
    """dy has the shape of x, gamma one number per feature; a ValueError names the sizes."""
    for wrong in (5, 7):
        assert_refused(
            student.layer_norm_backward,
            randn(3, wrong),
            randn(3, 6),
            ones(6),
            sizes=(wrong, 6),
        )
        assert_refused(
            student.layer_norm_backward,
            randn(3, 6),
            randn(3, 6),
            ones(wrong),
            sizes=(6, wrong),
        )

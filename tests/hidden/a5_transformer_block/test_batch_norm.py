"""batch_norm: each feature over all tokens of the batch in training, with the running statistics in
evaluation.

Features are of size 10 and more where a test is not about eps: there eps decides nothing. What is
normalized and what is kept are looked at apart.
"""

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_equal,
    assert_refused,
    assert_same_gradients,
    call_twice,
    forbid,
    full,
    ones,
    points,
    rand,
    randn,
    tensor,
    zeros,
)

pytestmark = forbid(
    "torch.nn.functional.batch_norm",
    "torch.batch_norm",
    "torch.native_batch_norm",
    "torch.nn.BatchNorm1d",
    "torch.nn.functional.instance_norm",
    "torch.nn.functional.layer_norm",
    "torch.nn.functional.group_norm",
)


def _vectors(d):
    """gamma, beta and running statistics far from 1 and 0."""
    return randn(d), randn(d), 10 * randn(d), 50 + 100 * rand(d)


def _three(answer):
    assert isinstance(answer, (tuple, list)), (
        "The answer should be a triple (y, new_mean, new_var)."
    )
    assert_equal(len(answer), 3, what="the number of results")
    return answer


@points(0.5)
def test_training_normalizes_each_feature_over_all_tokens(student, reference):
    """Three sentences of four tokens, features of different size: one mean and one variance each
    for all twelve.
    """
    x = randn(3, 4, 5) * tensor([10.0, 30.0, 100.0, 20.0, 50.0]) + 20
    arguments = (x, ones(5), zeros(5), zeros(5), ones(5), True)
    y = _three(call_twice(student.batch_norm, *arguments))[0]
    assert_close(y, reference.batch_norm(*arguments)[0], what="y")


@points(0.5)
def test_any_leading_axes_and_any_memory_order(student, reference):
    """As many tokens as features, [T, D]; four axes; and tokens whose memory is not in the order of
    their axes.
    """
    for x in (
        10 * randn(6, 6),
        10 * randn(2, 3, 2, 6),
        10 * randn(3, 6, 4).transpose(1, 2),
    ):
        arguments = (x, ones(6), zeros(6), zeros(6), ones(6), True)
        assert_close(
            _three(student.batch_norm(*arguments))[0],
            reference.batch_norm(*arguments)[0],
            what="y",
        )


@points(0.5)
def test_scale_comes_first_then_shift(student, reference):
    """Random gamma and beta, in evaluation: gamma multiplies what is normalized, beta is added
    last.
    """
    x, vectors = 10 * randn(2, 3, 5), _vectors(5)
    assert_close_in_turn(
        lambda *a: _three(student.batch_norm(*a))[0],
        lambda *a: reference.batch_norm(*a)[0],
        *(x, *vectors, False),
    )


@points(0.75)
def test_evaluation_looks_at_nobody_else(student):
    """With the running statistics a token comes out the same in a batch, by itself as [D], and
    beside a huge one.
    """
    x, mean, var = 10 * randn(3, 5), 10 * randn(5), 50 + 100 * rand(5)
    expected = (x - mean) / var.sqrt()
    huge = mean + 1e6 * var.sqrt()
    for tokens, rows in (
        (x, expected),
        (x[0], expected[0]),
        (torch.stack([x[0], huge]), torch.stack([expected[0], 1e6 * ones(5)])),
    ):
        y = _three(
            student.batch_norm(tokens, ones(5), zeros(5), mean, var, False, eps=0.0)
        )[0]
        assert_close(y, rows, what="y")


@points(0.75)
def test_evaluation_learns_nothing(student):
    """The running statistics have the same values after a batch in evaluation as before."""
    *weights, mean, var = _vectors(5)
    x = 10 * randn(4, 5)
    for momentum in ((), (0.75,)):
        answer = student.batch_norm(x, *weights, mean, var, False, *momentum)
        _, new_mean, new_var = _three(answer)
        assert_close(new_mean, mean, what="new_mean")
        assert_close(new_var, var, what="new_var")


@points(0.5)
def test_the_running_mean_moves_towards_the_batch(student):
    """By a share of 0.1, and by another share for another momentum, from wherever it was."""
    x, (*weights, mean, var) = 10 * randn(2, 4, 5) + 30, _vectors(5)
    for settings, share in (({}, 0.1), ({"momentum": 0.75}, 0.75)):
        new_mean = _three(student.batch_norm(x, *weights, mean, var, True, **settings))[
            1
        ]
        assert_close(
            new_mean, mean + share * (x.mean(dim=(0, 1)) - mean), what="new_mean"
        )


@points(0.5)
def test_the_running_variance_is_an_estimate_for_data_to_come(student):
    """It moves like the mean, towards the variance of the batch: which of the two, for three
    tokens, and for two? eps is no part of it.
    """
    for tokens in (3, 2):
        x, (*weights, mean, var) = 10 * randn(tokens, 5) + 30, _vectors(5)
        new_var = _three(
            student.batch_norm(x, *weights, mean, var, True, momentum=0.25, eps=30.0)
        )[2]
        assert_close(new_var, 0.75 * var + 0.25 * x.var(dim=0), what="new_var")


@points(1)
def test_eps_sits_inside_the_root(student, reference):
    """Features of size 1e-3, in both modes and with the caller's eps; and a feature that is the
    same everywhere.
    """
    x, mean, var = 1e-3 * randn(5, 4), 1e-3 * randn(4), 1e-6 * rand(4)
    x[:, 2] = 7.0
    for training in (True, False):
        for eps in ((), (0.1, 1e-3), (0.3, 1e-2)):
            arguments = (x, ones(4), zeros(4), mean, var, training, *eps)
            assert_close(
                _three(student.batch_norm(*arguments))[0],
                reference.batch_norm(*arguments)[0],
                what="y",
            )


@points(1)
def test_gradients_flow_through_the_statistics_of_the_batch(student, reference):
    """Moving one token moves the mean and the variance of all. The running statistics are only a
    record: detached.
    """
    rest = zeros(5), ones(5), True
    learned = (
        (10 * randn(2, 3, 5)).requires_grad_(),
        randn(5, grad=True),
        randn(5, grad=True),
    )
    assert_same_gradients(
        lambda *a: _three(student.batch_norm(*a))[0],
        lambda *a: reference.batch_norm(*a)[0],
        *learned,
        *rest,
    )
    _, *kept = _three(student.batch_norm(*learned, *rest))
    for name, statistic in zip(("new_mean", "new_var"), kept, strict=True):
        assert isinstance(statistic, torch.Tensor), f"{name} should be a tensor."
        assert not statistic.requires_grad, (
            f"{name} still knows the batch it came from."
        )


@points(1)
def test_half_precision_is_normalized_in_float32(student, reference):
    """float16, features of 400: their squares are infinite there. y is float16, the statistics stay
    float32; so they do with float64. And bfloat16: the mean of 300, 302, 304 and 312 has more
    digits than it holds.
    """
    x, gamma, beta = (
        (400 * randn(9, 4)).half(),
        (1 + randn(4) / 3).half(),
        randn(4).half(),
    )
    answer = _three(
        student.batch_norm(x, gamma, beta, zeros(4).float(), ones(4).float(), True)
    )
    expected = reference.batch_norm(
        x.double(), gamma.double(), beta.double(), zeros(4), ones(4), True
    )
    assert_close(answer[0], expected[0].half(), atol=6e-3, rtol=2e-3, what="y")
    given = (
        x.double(),
        gamma.double(),
        beta.double(),
        zeros(4).float(),
        ones(4).float(),
        True,
    )
    wide = _three(student.batch_norm(*given))
    assert_close(wide[0], expected[0], what="y")
    for statistics in (answer[1:], wide[1:]):
        for name, a, e in zip(
            ("new_mean", "new_var"), statistics, expected[1:], strict=True
        ):
            assert_close(a, e.float(), rtol=1e-4, what=name)
    x, one, nothing = (
        tensor([[300.0], [302.0], [304.0], [312.0]]).bfloat16(),
        ones(1).float(),
        zeros(1).float(),
    )
    y, new_mean, _ = _three(
        student.batch_norm(x, one.bfloat16(), nothing.bfloat16(), nothing, one, True)
    )
    centred = x.double() - 304.5
    assert_close(
        y, (centred / centred.pow(2).mean().sqrt()).bfloat16(), rtol=0.02, what="y"
    )
    assert_close(new_mean, full((1,), 30.45).float(), what="new_mean")
    x = (randn(9, 1) + 3000).float()  # squares of 3000 take the digits of the variance
    y, *_ = _three(student.batch_norm(x, one, nothing, nothing, one, True))
    centred = x.double() - x.double().mean()
    expected = (centred / (centred.pow(2).mean() + 1e-5).sqrt()).float()
    assert_close(y, expected, atol=2e-3, what="y")


@points(0.5)
def test_sizes_that_cannot_match_are_refused(student):
    """Each of the four vectors has one number per feature: a ValueError names the sizes. One is
    tried at a time.
    """
    for place in range(4):
        for wrong in (5, 7):
            vectors = [rand(wrong if i == place else 6) for i in range(4)]
            assert_refused(
                student.batch_norm, randn(3, 6), *vectors, True, sizes=(6, wrong)
            )


@points(0.5)
def test_one_token_has_no_variance(student):
    """Training with one token, [1, D] or [D], is refused: T − 1 is 0. Two tokens are enough, and
    are ±1.
    """
    assert_refused(
        student.batch_norm,
        randn(1, 6),
        ones(6),
        zeros(6),
        zeros(6),
        ones(6),
        True,
        sizes=(1,),
    )
    assert_refused(
        student.batch_norm,
        randn(6),
        ones(6),
        zeros(6),
        zeros(6),
        ones(6),
        True,
        sizes=(1,),
    )
    y = _three(
        student.batch_norm(
            tensor([[10.0], [50.0]]),
            ones(1),
            zeros(1),
            zeros(1),
            ones(1),
            True,
            eps=0.0,
        )
    )[0]
    assert_close(y, tensor([[-1.0], [1.0]]), what="y of two tokens")

"""softmax: scores become a distribution, whatever their size."""

import math

import torch

from autograder.suite import (
    assert_close,
    assert_same_gradients,
    call_twice,
    forbid,
    points,
    randn,
    tensor,
)

pytestmark = [
    forbid(
        "torch.softmax",
        "torch.Tensor.softmax",
        "torch.special.softmax",
        "torch.nn.functional.softmax",
        "torch.nn.functional.softmin",
        "torch.nn.functional.gumbel_softmax",
        "torch.nn.Softmax",
        "torch.log_softmax",
        "torch.Tensor.log_softmax",
        "torch.special.log_softmax",
        "torch.nn.functional.log_softmax",
        "torch.nn.LogSoftmax",
    )
]


@points(2)
def test_each_row_becomes_a_distribution(student, reference):
    """Without dim the last dimension sums to 1, whether there are two dimensions, three, or one."""
    for shape in ((3, 7), (2, 5, 3), (5, 5), (6,), (1, 1)):
        z = 2 * randn(*shape)
        assert_close(student.softmax(z), reference.softmax(z))


@points(1.5)
def test_dim_says_what_sums_to_one(student, reference):
    """The exponentials are shared out along dim, and along no other dimension. Try each dim of a
    [3, 5, 7].
    """
    z = 2 * randn(3, 5, 7)
    for dim in (0, 1, 2, -2, -3):
        assert_close(student.softmax(z, dim=dim), reference.softmax(z, dim=dim))
    square = randn(5, 5)
    assert_close(student.softmax(square, 0), reference.softmax(square, 0))
    assert_close(student.softmax(randn(1, 1, 1), dim=2), tensor([[[1.0]]]))


@points(2)
def test_large_scores_do_not_overflow(student, reference):
    """exp(1000) is inf, and inf/inf is NaN. Which number can be taken away from all scores without
    any change? The last rows are (2000, 1999, 0, 0, 0, 0): neither the smallest score will do nor
    the mean.
    """
    for size in (100, 1000, 5000):
        z = (size + randn(3, 5)).float()
        assert_close(student.softmax(z), reference.softmax(z), atol=1e-3)
    for dtype in (torch.float32, torch.float64):
        row = tensor([2000.0, 1999.0, 0.0, 0.0, 0.0, 0.0]).to(dtype)
        share = math.e / (math.e + 1)
        expected = tensor([share, 1 - share, 0.0, 0.0, 0.0, 0.0]).to(dtype)
        assert_close(student.softmax(row), expected, atol=1e-3)


@points(0.5)
def test_very_negative_scores_do_not_vanish(student, reference):
    """exp(−1200) is 0 in every float, and 0/0 is NaN. The scores may all lie far below 0."""
    z = (randn(3, 5) + tensor([[-1200.0], [-5000.0], [-800.0]])).float()
    assert_close(student.softmax(z), reference.softmax(z), atol=1e-3)


@points(1)
def test_rows_of_unequal_size_do_not_disturb_each_other(student, reference):
    """A row near +900 and one near −900 in one call: each row has its own largest score."""
    z = (randn(3, 5) + tensor([[900.0], [-900.0], [0.0]])).float()
    assert_close(student.softmax(z), reference.softmax(z), atol=1e-3)
    assert_close(student.softmax(z.T, dim=0), reference.softmax(z.T, dim=0), atol=1e-3)


@points(1)
def test_minus_infinity_gets_nothing(student, reference):
    """A score of −inf is legal: its share is exactly 0, and the others share as if it were not
    there.
    """
    z = randn(3, 5)
    z[0, 1] = z[0, 4] = z[2, 0] = -math.inf
    weights = student.softmax(z)
    assert_close(weights, reference.softmax(z))
    assert bool((weights[z == -math.inf] == 0).all()), (
        "a score of -inf should get exactly 0"
    )


@points(1)
def test_a_row_of_minus_infinity_becomes_zeros(student, reference):
    """Where every score along dim is −inf there is nothing to share: all 0, and the other rows as
    usual.
    """
    z = randn(3, 5)
    z[1] = -math.inf
    assert_close(student.softmax(z), reference.softmax(z))
    assert_close(
        student.softmax(z.T.contiguous(), dim=0), reference.softmax(z.T, dim=0)
    )


@points(0.5)
def test_the_gradient_past_a_row_of_minus_infinity_is_finite(student, reference):
    """A NaN that is replaced afterwards still spoils the gradient: keep it from arising."""
    z = randn(3, 5)
    z[1], z[2, 3] = -math.inf, -math.inf
    assert_same_gradients(student.softmax, reference.softmax, z.requires_grad_())


@points(0.5)
def test_gradients_flow_through(student, reference):
    """The gradient of ordinary scores: nothing may be detached or converted to a Python number on
    the way.
    """
    assert_same_gradients(student.softmax, reference.softmax, randn(4, 7, grad=True))


@points(0.5)
def test_a_nan_stays_visible(student):
    """A NaN among the scores is somebody's bug. Replacing every NaN by 0 hides it."""
    z = randn(3, 5)
    z[1, 2] = math.nan
    p = student.softmax(z)
    assert bool((p[[0, 2]] > 0).any()), (
        "the rows without the NaN should be shares of one."
    )
    broken = p.isnan().any(dim=-1)
    assert broken.tolist() == [False, True, False], (
        "the row with the NaN, and only that row, should have NaN in it"
    )


@points(0.5)
def test_half_precision_comes_back_as_half_precision(student, reference):
    """float16 in, float16 out; bfloat16 too."""
    for dtype, atol in ((torch.float16, 2e-3), (torch.bfloat16, 1e-2)):
        z = randn(3, 7, dtype=dtype)
        assert_close(student.softmax(z), reference.softmax(z), atol=atol)


@points(0.5)
def test_half_precision_is_computed_in_float32(student):
    """0.012 − 5 has more digits than bfloat16 can hold, and 70000 exponentials of 0 are more than
    float16 can hold: subtract, exponentiate and sum in float32, convert at the end. Scores may be
    as large as float16 allows.
    """
    rows = tensor([[2000.0, 1999.0, 0.0, 0.0], [-2040.0, -2039.0, -40.0, -40.0]])
    shares = torch.softmax(rows, dim=1).half()
    assert_close(student.softmax(rows.half()), shares, atol=1e-3)
    many = student.softmax(torch.zeros(70_000).half())
    assert_close(
        many[:3],
        torch.full((3,), 1 / 70_000).half(),
        what="the shares of 70000 equal scores",
    )
    z = tensor(
        [[5.0, 0.012, -0.011, 0.019], [0.014, -0.009, 6.0, 0.0]], dtype=torch.bfloat16
    )
    powers = torch.exp(z.double())
    exact = powers / powers.sum(dim=1, keepdim=True)
    assert_close(student.softmax(z), exact, atol=0, rtol=4.5e-3, same_dtype=False)


@points(0.5)
def test_scores_are_left_alone(student, reference):
    """`z -= …` changes the caller's scores. Transposed views are welcome."""
    z = randn(5, 7).T
    assert_close(call_twice(student.softmax, z), reference.softmax(z))

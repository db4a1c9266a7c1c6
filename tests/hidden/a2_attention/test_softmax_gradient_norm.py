"""softmax_gradient_norm: how much gradient a softmax lets through."""

import math

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    call_twice,
    points,
    randn,
    tensor,
    zeros,
)


@points(1.5)
def test_the_norm_of_the_whole_jacobian(student, reference):
    """All N × N entries count, the off-diagonal ones too; squares, sum, root."""
    for n in (3, 7, 12):
        z = randn(n)
        assert_close(
            call_twice(student.softmax_gradient_norm, z),
            reference.softmax_gradient_norm(z),
        )
        assert_close_in_turn(
            student.softmax_gradient_norm, reference.softmax_gradient_norm, z
        )


@points(1)
def test_equal_scores_have_a_norm_one_can_work_out(student):
    """N equal scores: p = 1/N each, and the norm is sqrt(N − 1) / N. Is it p that enters J, or z
    itself?
    """
    assert_close(student.softmax_gradient_norm(zeros(10) + 7.0), 0.3)
    assert_close(student.softmax_gradient_norm(zeros(2) - 4.0), 0.5)


@points(1)
def test_saturation_at_large_scores(student):
    """[1000, 0] lets nothing through (0, not NaN), [2000, 1999] what [1, 0] does; 1000 more on
    every score changes nothing at all. On the way there, [12, 0] lets little through, and not NaN.
    """
    assert_close(
        student.softmax_gradient_norm(tensor([1000.0, 0.0, -1200.0]).float()), 0.0
    )
    assert_close(
        student.softmax_gradient_norm(tensor([1000.0, 1000.0]).float()), 0.5, atol=1e-4
    )
    for dtype in (torch.float32, torch.float64):
        z = tensor([2000.0, 1999.0, 0.0, 0.0, 0.0, 0.0]).to(dtype)
        # shares of e / (1 + e) and the rest: twice their product
        norm = 2 * math.e / (1 + math.e) ** 2
        assert_close(student.softmax_gradient_norm(z), norm, atol=1e-4)
    for score in (9.0, 10.0, 11.0, 12.0, 13.0, 14.0):
        # shares of a = 1 / (1 + e^score) and the rest: twice their product
        share = 1 / (1 + math.exp(score))
        z = tensor([score, 0.0]).float()
        assert_close(student.softmax_gradient_norm(z), 2 * share * (1 - share))
    assert_close(
        student.softmax_gradient_norm(tensor([-60000.0, -60000.0]).float()),
        0.5,
        atol=1e-4,
    )


@points(0.5)
def test_the_result_is_a_float(student):
    """A Python float, not a tensor: `.item()` takes the number out."""
    norm = student.softmax_gradient_norm(tensor([3.0, 1.0]).log())
    assert isinstance(norm, float), (
        f"softmax_gradient_norm should return a Python float, not {type(norm).__name__}."
    )
    assert 0 < norm < 0.9, "With scores ln 3 and 0 a part of the gradient passes."


@points(1)
def test_what_is_not_one_row_of_scores_is_refused(student):
    """z must be [N] with N of 1 or more; one score alone has nothing to choose, so its norm is
    0.
    """
    assert_refused(student.softmax_gradient_norm, randn(3, 5))
    assert_refused(student.softmax_gradient_norm, tensor(0.7))
    assert_refused(student.softmax_gradient_norm, zeros(0))

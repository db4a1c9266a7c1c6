"""centered: every row around its own mean."""

import torch

from autograder.suite import (
    assert_close,
    assert_refused,
    assert_same_gradients,
    call_twice,
    points,
    randn,
    tensor,
    zeros,
)


@points(30)
def test_each_row_loses_its_own_mean(student):
    """Two rows whose means, 3 and 2, can be worked out by hand."""
    x = tensor([[1.0, 2.0, 6.0], [0.0, 4.0, 2.0]])
    assert_close(student.centered(x), tensor([[-2.0, -1.0, 3.0], [-2.0, 2.0, 0.0]]))


@points(25)
def test_leading_dimensions_are_kept(student, reference):
    """Two of them with as many rows as columns, a single row, columns as rows."""
    for x in (
        randn(2, 4, 4),
        randn(1, 4),
        randn(4, 3).T,
        randn(3, 5, dtype=torch.float32),
    ):
        assert_close(student.centered(x), reference.centered(x))


@points(20)
def test_gradients_flow_through_the_mean(student, reference):
    """The mean depends on the input too."""
    assert_same_gradients(student.centered, reference.centered, randn(3, 5, grad=True))


@points(10)
def test_the_input_is_left_alone(student, reference):
    """Called twice, the same answer."""
    x = randn(3, 5)
    assert_close(call_twice(student.centered, x), reference.centered(x))


@points(5)
def test_rows_without_numbers_are_refused(student):
    """A row of length 0 has no mean: ValueError, and the message names the length."""
    assert_refused(student.centered, zeros(2, 0), sizes=(0,))

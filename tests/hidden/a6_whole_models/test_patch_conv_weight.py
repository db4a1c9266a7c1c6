"""patch_conv_weight: patches times a matrix, as a convolution."""

import torch

from autograder.suite import (
    assert_close,
    assert_refused,
    assert_same_gradients,
    call_twice,
    points,
    randn,
)


def _by_hand(w, channels, patch):
    """Row by row of w: it is the weight of one pixel for every output."""
    weight = torch.zeros(w.shape[1], channels, patch, patch, dtype=w.dtype)
    for c in range(channels):
        for i in range(patch):
            for j in range(patch):
                weight[:, c, i, j] = w[(c * patch + i) * patch + j]
    return weight


@points(1)
def test_the_convolution_does_what_the_matrix_does(student):
    """conv2d with your weights and stride P, against patches that are cut by hand, times w. Three
    channels.
    """
    images, w = randn(2, 3, 6, 9), randn(27, 5)
    weight = call_twice(student.patch_conv_weight, w, 3, 3)
    assert_close(weight, _by_hand(w, 3, 3))
    made = torch.nn.functional.conv2d(images, weight.detach(), stride=3)
    first = images[:, :, 3:6, 6:9].flatten(1) @ w  # the last patch
    assert_close(made[:, :, 1, 2], first, what="the convolution with the weights")


@points(0.5)
def test_as_many_outputs_as_rows(student):
    """D = C·P·P: a square w, whose transpose has the same shape. And D = C = P, and all three 1,
    for good measure.
    """
    square = randn(12, 12)
    for w, channels, patch in (
        (square, 3, 2),
        (square, 12, 1),
        (randn(27, 3), 3, 3),
        (randn(1, 1), 1, 1),
    ):
        assert_close(
            student.patch_conv_weight(w, channels, patch), _by_hand(w, channels, patch)
        )


@points(0.5)
def test_strides_types_and_gradients(student):
    """A transposed w, half precision, and the gradient comes back to w."""
    w = randn(5, 18).T
    assert_close(student.patch_conv_weight(w, 2, 3), _by_hand(w, 2, 3))
    assert_close(student.patch_conv_weight(w.half(), 2, 3), _by_hand(w.half(), 2, 3))
    assert_same_gradients(
        student.patch_conv_weight, _by_hand, randn(18, 5, grad=True), 2, 3
    )


@points(0.5)
def test_a_matrix_for_another_patch_is_refused(student):
    """18 rows are not three channels of 3 x 3, and 36 are too many: ValueError with the numbers."""
    assert_refused(student.patch_conv_weight, randn(18, 5), 3, 3, sizes=(18, 3))
    assert_refused(student.patch_conv_weight, randn(36, 5), 3, 3, sizes=(36, 3))
    assert_refused(student.patch_conv_weight, randn(18, 6), 2, 5, sizes=(18, 2, 5))

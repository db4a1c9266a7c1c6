"""patchify: squares, left to right and then down, each flattened as (c, row, column)."""

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    call_twice,
    forbid,
    points,
    randn,
    tensor,
)

pytestmark = [
    forbid(
        "torch.nn.functional.unfold",
        "torch.nn.Unfold",
        "torch.nn.functional.conv2d",
        "torch.nn.Conv2d",
        "torch.nn.functional.pixel_unshuffle",
        "torch.nn.PixelUnshuffle",
        "torch.im2col",
    ),
]


def _slow(images, patch):
    """Patch by patch."""
    rows, columns = images.shape[2] // patch, images.shape[3] // patch
    cut = [
        images[:, :, r * patch : (r + 1) * patch, s * patch : (s + 1) * patch].flatten(
            1
        )
        for r in range(rows)
        for s in range(columns)
    ]
    return torch.stack(cut, dim=1)


@points(1)
def test_patches_of_gray_images(student):
    """One channel, height and width differ: each patch is cut out by hand and compared."""
    for shape, patch in (((2, 1, 6, 15), 3), ((3, 1, 9, 6), 3), ((1, 1, 5, 5), 5)):
        images = randn(*shape)
        assert_close_in_turn(student.patchify, _slow, images, patch, others=(None, 1))


@points(0.5)
def test_patches_of_colour_images(student):
    """Three channels and two, P = 3 and P = 1: each patch is cut out by hand and compared."""
    for shape, patch in (((2, 3, 6, 15), 3), ((3, 2, 9, 6), 3), ((2, 3, 3, 5), 1)):
        images = randn(*shape)
        assert_close(call_twice(student.patchify, images, patch), _slow(images, patch))


@points(1)
def test_patches_run_to_the_right_and_then_down(student):
    """One channel, patches of a single number each: the order of the numbers is the order on the
    page.
    """
    images = randn(2, 1, 6, 9)
    # constant 3 x 3 squares
    images = (
        images[:, :, ::3, ::3].repeat_interleave(3, dim=2).repeat_interleave(3, dim=3)
    )
    means = student.patchify(images, 3).mean(dim=-1)
    assert_close(
        means, images[:, 0, ::3, ::3].flatten(1), what="the mean of each patch"
    )


@points(1)
def test_inside_a_patch_channels_come_first(student):
    """The image is a single patch: all of channel 0 row by row, then channel 1, then channel 2."""
    images = randn(2, 3, 5, 5)
    assert_close(student.patchify(images, 5), images.flatten(1).unsqueeze(1))


@points(0.5)
def test_images_with_other_strides_and_types(student):
    """An image whose memory has the channels last; whole numbers stay whole, half precision stays
    half.
    """
    images = randn(2, 6, 9, 3).permute(0, 3, 1, 2)
    # types first, so that a type that is changed shows beside a fault that ends the test
    assert_close(
        student.patchify(tensor([[[[1, 2], [3, 4]]]]), 2), tensor([[[1, 2, 3, 4]]])
    )
    assert_close(student.patchify(images.half(), 3), _slow(images.half(), 3))
    assert_close(student.patchify(images, 3), _slow(images, 3))


@points(0.5)
def test_images_that_do_not_divide_are_refused(student):
    """Width 7 for patches of 3, height 5, and patches of 0: ValueError with the sizes."""
    assert_refused(student.patchify, randn(1, 2, 6, 7), 3, sizes=(6, 7, 3))
    assert_refused(student.patchify, randn(1, 2, 5, 9), 3, sizes=(5, 9, 3))
    assert_refused(student.patchify, randn(1, 2, 6, 9), 0, sizes=(0,))

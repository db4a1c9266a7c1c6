"""vit_logits: patches with positions, blocks without a mask, final norm, then the mean over
patches, then the head.
"""

import torch

from autograder.suite import (
    assert_close,
    assert_refused,
    assert_same_gradients,
    assert_varies,
    call_twice,
    points,
    randn,
    uses,
    zeros,
)

from .models import cast, learned, shaken, small_config, with_heads, with_large_scores

pytestmark = [uses("patchify")]


def _model(
    reference, layers=1, d=7, num_patches=6, channels=3, patch=2, classes=5, heads=3
):
    settings = small_config(
        vocab_size=1,
        d_model=d,
        num_layers=layers,
        num_heads=heads,
        d_ff=11,
        context_length=num_patches,
        patch=patch,
    )
    params = reference.random_vit(settings, channels, num_patches, classes)
    return shaken(reference, params, 0.5), settings


@points(1.5)
def test_logits_of_a_whole_model(student, reference):
    """Two blocks, colour images of 4 x 6 pixels in six patches, trained norms: the whole formula,
    in order. Scores may be of any size.
    """
    params, settings = _model(reference, layers=2)
    images = randn(3, 3, 4, 6)
    for pixels, weights, setup in (
        (images, params, settings),
        (2 * images, params, settings),
        (images, with_large_scores(params), settings),
        (images, params, with_heads(settings, 5)),
    ):
        expected = reference.vit_logits(pixels, weights, setup)
        assert_close(student.vit_logits(pixels, weights, setup), expected, atol=1e-5)


@points(1)
def test_patches_look_at_each_other_in_all_directions(student, reference):
    """With all positions zero, the patches of an image may be shuffled: an image has no future, so
    nothing changes.
    """
    params, settings = _model(reference)
    params = {**params, "positions": zeros(6, 7)}
    images = randn(2, 3, 4, 6)
    # columns of patches, reversed
    flipped = torch.cat([images[..., 4:], images[..., 2:4], images[..., :2]], dim=-1)
    logits = student.vit_logits(images, params, settings)
    assert isinstance(logits, torch.Tensor), "vit_logits should return a tensor."
    assert float((logits[0] - logits[1]).detach().abs().max()) > 1e-3, (
        "Two images have the same logits."
    )
    assert_close(student.vit_logits(flipped, params, settings), logits.detach())


@points(1)
def test_patches_know_where_they_are(student, reference):
    """One image of equal patches: only the positions tell them apart, and they decide the
    logits.
    """
    params, settings = _model(reference)
    images = randn(1, 3, 2, 2).repeat(1, 1, 2, 3)
    without = reference.vit_logits(
        images, {**params, "positions": zeros(6, 7)}, settings
    )
    logits = student.vit_logits(images, params, settings)
    assert isinstance(logits, torch.Tensor), "vit_logits should return a tensor."
    assert float((logits - without).detach().abs().max()) > 1e-2, (
        "The logits are those of a model without positions."
    )
    assert_close(logits, reference.vit_logits(images, params, settings), atol=1e-5)


@points(1)
def test_the_norm_comes_before_the_mean(student, reference):
    """No blocks: patches of very different size count alike once they are normalized."""
    params, settings = _model(reference, layers=0)
    images = randn(2, 3, 4, 6)
    images[..., :2] *= 50
    x = torch.stack(
        [
            images[:, :, r : r + 2, s : s + 2].flatten(1)
            for r in (0, 2)
            for s in (0, 2, 4)
        ],
        dim=1,
    )
    x = x @ params["w_patch"] + params["b_patch"] + params["positions"]
    x = reference.layer_norm(x, params["lnf_gamma"], params["lnf_beta"])
    answer = call_twice(student.vit_logits, images, params, settings)
    assert_close(answer, x.mean(1) @ params["w_head"] + params["b_head"])


@points(0.5)
def test_as_many_patches_as_columns(student, reference):
    """N = D = 6 with B = 6 images: the mean is over patches. And one image of a single patch is its
    own mean.
    """
    params, settings = _model(reference, d=6)
    images = randn(3, 6, 4, 6).transpose(0, 1)
    expected = reference.vit_logits(images, params, settings)
    assert_close(student.vit_logits(images, params, settings), expected, atol=1e-5)
    params, settings = _model(reference, layers=0, num_patches=1, patch=3, channels=1)
    image = randn(1, 1, 3, 3)
    expected = reference.vit_logits(image, params, settings)
    assert_close(student.vit_logits(image, params, settings), expected, atol=1e-5)


@points(0.5)
def test_gradients_reach_the_pixels_and_every_parameter(student, reference):
    """All parameters and the image itself."""
    params, settings = _model(reference)
    arguments = randn(2, 3, 4, 6, grad=True), learned(reference, params), settings
    assert_same_gradients(
        student.vit_logits, reference.vit_logits, *arguments, tolerance=1e-5
    )


@points(0.5)
def test_half_precision_stays_half_precision(student, reference):
    """float16 images and weights, float16 logits, near your own answer in float64."""
    params, settings = _model(reference)
    half = cast(reference, params, torch.float16)
    images = randn(1, 3, 4, 6)
    own = student.vit_logits(images, params, settings).detach()
    assert own.shape == (1, 5), (
        f"Logits of one image for five classes should be [1, 5], and are {list(own.shape)}."
    )
    assert_varies(own, above=1e-3, what="your answer in float64")
    assert_close(
        student.vit_logits(images.half(), half, settings),
        own.half(),
        atol=6e-2,
        rtol=6e-2,
    )


@points(0.5)
def test_images_of_another_size_are_refused(student, reference):
    """Nine patches for six positions; one channel instead of three; a width of 7: ValueError with
    the numbers.
    """
    params, settings = _model(reference, layers=0)
    assert_refused(
        student.vit_logits, randn(2, 3, 6, 6), params, settings, sizes=(9, 6)
    )
    assert_refused(
        student.vit_logits, randn(2, 3, 4, 4), params, settings, sizes=(4, 6)
    )
    assert_refused(
        student.vit_logits, randn(2, 1, 4, 6), params, settings, sizes=(4, 12)
    )
    assert_refused(
        student.vit_logits, randn(2, 5, 4, 6), params, settings, sizes=(20, 12)
    )
    assert_refused(
        student.vit_logits, randn(2, 3, 4, 7), params, settings, sizes=(4, 7, 2)
    )

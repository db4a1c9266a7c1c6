"""combine_masks: allowed is what every mask allows."""

import torch

from autograder.suite import (
    assert_close,
    assert_refused,
    call_twice,
    points,
    rand,
    tensor,
)


@points(1.5)
def test_a_key_must_be_allowed_by_causality_and_by_padding(student):
    """A [5, 5] triangle and a [3, 1, 5] padding mask: what does a padded key in the past get?"""
    triangle = torch.ones(5, 5).tril().bool()
    real = (
        tensor([[1, 1, 0, 0, 0], [1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]).bool().unsqueeze(1)
    )
    assert_close(
        student.combine_masks(triangle, real),
        torch.stack([triangle & row for row in real]),
    )


@points(1)
def test_every_mask_has_a_say(student):
    """Four masks, each of which forbids something that the others allow. (All are views of other
    tensors.)
    """
    masks = [(rand(6, 4) > 0.3).T for _ in range(4)]
    assert_close(student.combine_masks(*masks), torch.stack(masks).all(dim=0))


@points(1)
def test_the_masks_themselves_stay_as_they_are(student):
    """`a &= b` writes into a, and the caller still needs it. Large first, so that nothing
    crashes.
    """
    large, small = rand(3, 5, 7) > 0.4, rand(7) > 0.4
    assert_close(call_twice(student.combine_masks, large, small), large & small)


@points(0.5)
def test_one_mask_is_itself(student):
    """With nothing to combine, the mask comes back, and a batch of one keeps its axis. A mask that
    allows everything changes nothing.
    """
    for mask in (rand(3, 5) > 0.5, rand(1, 1, 5) > 0.5):
        assert_close(student.combine_masks(mask), mask)
        assert_close(student.combine_masks(torch.ones(5).bool(), mask), mask)


@points(0.5)
def test_no_mask_at_all_is_refused(student):
    """Neither "all" nor "nothing" has a shape: ValueError."""
    assert_refused(student.combine_masks)


@points(0.5)
def test_shapes_that_do_not_broadcast_are_refused(student):
    """ValueError, with the sizes that disagree in the message."""
    assert_refused(
        student.combine_masks, rand(3, 5) > 0.5, rand(3, 11) > 0.5, sizes=(5, 11)
    )

"""ragged_positions: positions count real tokens, not columns."""

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    call_twice,
    ones,
    points,
    rand,
    tensor,
)


@points(1)
def test_padding_on_the_left_does_not_shift_a_row(student):
    """Rows with 0, 3 and 5 pads in front: the first real token of each is at position 0."""
    mask = tensor(
        [[1, 1, 1, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 0, 1, 1]]
    ).bool()
    expected = tensor(
        [[0, 1, 2, 3, 4, 5, 6], [0, 0, 0, 0, 1, 2, 3], [0, 0, 0, 0, 0, 0, 1]]
    )
    assert_close(call_twice(student.ragged_positions, mask), expected, same_dtype=False)


@points(1)
def test_padding_is_at_position_zero_wherever_it_stands(student):
    """Pads behind the text and between: 0 there, and the text counts on behind a gap as if there
    were none.
    """
    mask = tensor([[1, 1, 1, 0, 0, 0], [0, 1, 1, 0, 1, 1]]).bool()
    expected = tensor([[0, 1, 2, 0, 0, 0], [0, 0, 1, 0, 2, 3]])
    assert_close(student.ragged_positions(mask), expected, same_dtype=False)


@points(1)
def test_any_mask_counts_the_real_tokens_before(student, reference):
    """A random mask against a plain loop. Five rows, five columns: count along the right axis. (The
    mask is a view.)
    """
    mask = (rand(5, 5) < 0.6).T
    expected = torch.zeros(5, 5, dtype=torch.int64)
    for b in range(5):
        for i in range(5):
            expected[b, i] = int(mask[b, :i].sum()) if mask[b, i] else 0
    assert_close(student.ragged_positions(mask), expected, same_dtype=False)
    assert_close_in_turn(
        student.ragged_positions,
        reference.ragged_positions,
        mask,
        others=(mask.flip(0, 1),),
        same_dtype=False,
    )


@points(0.5)
def test_a_row_of_nothing_but_padding_and_a_single_token(student):
    """All False: zeros, since −1 would be the table's last row. One column: position 0. The dtype
    is int64.
    """
    assert_close(
        student.ragged_positions(tensor([[0, 0, 0], [1, 1, 1]]).bool()),
        tensor([[0, 0, 0], [0, 1, 2]]),
    )
    assert_close(student.ragged_positions(tensor([[1]]).bool()), tensor([[0]]))


@points(0.5)
def test_a_mask_with_other_axes_is_refused(student):
    """[B, 1, N] is a mask for scores, not for tokens, and [N] has no rows: ValueError with its
    shape.
    """
    assert_refused(student.ragged_positions, ones(7).bool(), sizes=(7,))
    assert_refused(student.ragged_positions, ones(3, 1, 7).bool(), sizes=(3, 1, 7))

"""shift_right: the start token, then all targets but the last."""

from autograder.suite import (
    assert_close,
    assert_refused,
    call_twice,
    points,
    tensor,
    zeros,
)


@points(1)
def test_the_start_token_then_all_but_the_last(student):
    """The same shape; row by row; nothing wraps around, and other start tokens than 0 work, too."""
    targets = tensor([[4, 5, 6, 7], [9, 8, 7, 2], [3, 3, 1, 5]])
    for start in (1, 0, 11):
        shifted = tensor([[start, 4, 5, 6], [start, 9, 8, 7], [start, 3, 3, 1]])
        assert_close(student.shift_right(targets, start), shifted, same_dtype=False)
    shifted = tensor([[1, 3, 3, 1], [1, 9, 8, 7], [1, 4, 5, 6]])
    assert_close(student.shift_right(targets.flip(0), 1), shifted, same_dtype=False)


@points(0.5)
def test_the_targets_stay_as_they_were(student):
    """The caller still needs the targets, for the loss."""
    targets = tensor([[4, 5, 6], [7, 8, 9]])
    assert_close(
        call_twice(student.shift_right, targets, 2),
        tensor([[2, 4, 5], [2, 7, 8]]),
        same_dtype=False,
    )
    assert_close(
        student.shift_right(targets.T, 2),
        tensor([[2, 4], [2, 5], [2, 6]]),
        same_dtype=False,
    )


@points(0.5)
def test_one_target_becomes_the_start_token(student):
    """N_t = 1: the decoder reads the start token, and nothing else. As many rows as there are, in
    int64.
    """
    assert_close(
        student.shift_right(tensor([[4], [5], [6]]), 9), tensor([[9], [9], [9]])
    )


@points(0.5)
def test_no_targets_are_refused(student):
    """[3, 0] has nothing to shift: ValueError with these sizes."""
    assert_refused(student.shift_right, zeros(3, 0).long(), 1, sizes=(3, 0))

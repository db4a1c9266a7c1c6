"""merge_heads: the heads of a token side by side, graded on its own (a round trip hides a
consistent mistake).
"""

from autograder.suite import (
    arange,
    assert_close,
    assert_same_gradients,
    call_twice,
    points,
    randn,
)


@points(3)
def test_head_h_fills_its_block_of_columns(student):
    """Look at the columns of one token: all of head 0, then all of head 1, then all of head 2."""
    y = arange(15).view(1, 3, 1, 5)  # one token: only the columns can go wrong
    assert_close(student.merge_heads(y), arange(15).view(1, 1, 15))


@points(2)
def test_a_row_holds_one_token(student):
    """Fill row n of every head with the number n: row n of the result should hold nothing else."""
    y = arange(10).view(2, 1, 5, 1).expand(2, 3, 5, 7)
    assert_close(student.merge_heads(y), arange(10).view(2, 5, 1).expand(2, 5, 21))


@points(1)
def test_all_axes_of_one_size(student, reference):
    """B, H, N and d are 3 here: axes in the wrong order still have the right shape."""
    y = randn(3, 3, 3, 3)
    assert_close(student.merge_heads(y), reference.merge_heads(y))


@points(1)
def test_a_transposed_tensor_is_merged_too(student, reference):
    """A caller may pass a tensor whose memory is not in the order of its axes."""
    y = randn(2, 7, 5, 3).permute(0, 3, 1, 2)
    assert_close(student.merge_heads(y), reference.merge_heads(y))


@points(1)
def test_the_dtype_stays_and_gradients_come_back(student, reference):
    """Merging moves numbers: no new dtype, no change to the input, and every gradient finds its way
    back.
    """
    half = randn(1, 2, 3, 5).half()
    assert_close(call_twice(student.merge_heads, half), reference.merge_heads(half))
    assert_same_gradients(
        student.merge_heads, reference.merge_heads, randn(2, 3, 5, 7, grad=True)
    )

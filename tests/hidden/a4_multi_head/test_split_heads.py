"""split_heads: head h owns columns h*d … (h+1)*d - 1, and the heads stand in front of the
tokens.
"""

from autograder.suite import (
    arange,
    assert_close,
    assert_close_in_turn,
    assert_refused,
    assert_same_gradients,
    call_twice,
    points,
    randn,
)


@points(3)
def test_head_h_owns_its_block_of_neighbouring_columns(student):
    """Look at which columns a head gets. Number them (0, 1, 2, …) and print head 0."""
    x = arange(14).expand(1, 1, 14)  # one token: only the columns can go wrong
    assert_close(student.split_heads(x, 2), arange(14).view(1, 2, 1, 7))


@points(2)
def test_every_head_sees_every_token_in_order(student):
    """Fill row n of x with the number n: row n of every head should hold it too."""
    x = arange(10).view(2, 5, 1).expand(2, 5, 21)  # all columns of a token are equal
    assert_close(
        student.split_heads(x, 3), arange(10).view(2, 1, 5, 1).expand(2, 3, 5, 7)
    )


@points(1)
def test_as_many_heads_as_sentences_and_tokens(student, reference):
    """B, H and N are 3 here, so that axes in the wrong order still have the right shape."""
    x = randn(3, 3, 6)
    assert_close_in_turn(
        student.split_heads, reference.split_heads, x, 3, others=(None, 2)
    )


@points(1)
def test_one_head_and_heads_of_one_column(student):
    """The extremes: one head holds all the columns; with as many heads as columns each holds
    one.
    """
    x = randn(2, 5, 3)
    assert_close(student.split_heads(x, 1), x.unsqueeze(1), what="one head")
    assert_close(
        student.split_heads(x, 3),
        x.transpose(1, 2).unsqueeze(-1),
        what="three heads of one column",
    )


@points(1)
def test_a_transposed_tensor_is_split_too(student, reference):
    """A caller may pass a tensor whose memory is not in the order of its axes: cut the axes, not
    the memory.
    """
    x = randn(2, 6, 5).transpose(1, 2)
    assert_close(student.split_heads(x, 2), reference.split_heads(x, 2))


@points(1)
def test_the_dtype_stays_and_gradients_come_back(student, reference):
    """Splitting moves numbers: no new dtype, no change to x, and every gradient finds its way
    back.
    """
    half = randn(2, 3, 10).half()
    assert_close(
        call_twice(student.split_heads, half, 5), reference.split_heads(half, 5)
    )
    assert_same_gradients(
        student.split_heads, reference.split_heads, randn(2, 3, 10, grad=True), 5
    )


@points(1)
def test_columns_that_do_not_divide_are_refused(student):
    """21 columns make no four heads, and nothing makes zero heads or minus three: ValueError, with
    the numbers in its message.
    """
    for num_heads in (4, 0, -3):
        assert_refused(
            student.split_heads, randn(2, 5, 21), num_heads, sizes=(21, num_heads)
        )

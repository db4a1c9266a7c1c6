"""attention_matrix_bytes: heads × N × N × bytes of an element."""

from autograder.suite import assert_equal, assert_refused, points


@points(2)
def test_one_square_matrix_a_head(student):
    """Put a unit on every factor: heads, rows, columns, bytes of an element."""
    assert_equal(student.attention_matrix_bytes(7, 5, 2), 490)
    # 384 · 100 003²
    assert_equal(student.attention_matrix_bytes(100_003, 96, 4), 3_840_230_403_456)
    # 384 · 200 000 003², more digits than a float has
    assert_equal(
        student.attention_matrix_bytes(200_000_003, 96, 4), 15_360_000_460_800_003_456
    )


@points(1)
def test_twice_the_length_is_four_times_the_memory(student):
    """And three times the heads, or elements of three times the size, is three times the memory."""
    small = student.attention_matrix_bytes(11, 3, 1)
    assert small > 0, "No memory at all."
    growth = [
        student.attention_matrix_bytes(*sizes) / small
        for sizes in ((22, 3, 1), (11, 9, 1), (11, 3, 3))
    ]
    assert growth == [4, 3, 3], (
        f"N doubled, heads tripled, bytes tripled: memory grows by {growth}."
    )


@points(1)
def test_sizes_below_one_are_refused(student):
    """No tokens, no heads, no bytes: ValueError, with the size in its message. Each size is looked
    at: the square of −3 is positive, and so is the product of two negative sizes.
    """
    for sizes in ((0, 3, 2), (5, 0, 2), (5, 3, 0)):
        assert_refused(student.attention_matrix_bytes, *sizes, sizes=(0,))
    for sizes in ((-3, 4, 2), (5, -4, -2)):
        assert_refused(student.attention_matrix_bytes, *sizes)

"""swiglu_hidden: the smallest allowed width that is at least 8D/3."""

from autograder.suite import assert_equal, assert_refused, points


@points(1)
def test_at_least_eight_thirds(student):
    """Rounded up, never down or to the nearest: D = 1, 2, 1024, 1600, 4096."""
    expected = {1: 3, 2: 6, 1024: 2731, 1600: 4267, 4096: 10923}
    for d, width in expected.items():
        assert_equal(student.swiglu_hidden(d), width, what="the width")


@points(1.5)
def test_whole_results_stay_as_they_are(student):
    """Where 8D/3 is a whole number or a multiple already there is nothing to round, however large D
    is.
    """
    for d in (3, 33, 129, 513, 1539, 8193, 12288, 98307):
        assert_equal(student.swiglu_hidden(d), 8 * d // 3, what="the width")
    assert_equal(student.swiglu_hidden(768, multiple_of=256), 2048, what="the width")


@points(1)
def test_the_smallest_multiple_that_is_large_enough(student):
    """Multiples of 64, 256, 7 and of more than 8D/3 itself: is the answer a multiple, and the first
    one?
    """
    expected = {
        (1024, 64): 2752,
        (1600, 256): 4352,
        (4096, 256): 11008,
        (10, 7): 28,
        (5, 100): 100,
        (100, 9): 270,
    }
    for (d, multiple), width in expected.items():
        assert_equal(student.swiglu_hidden(d, multiple), width, what="the width")


@points(0.5)
def test_the_result_is_an_int(student):
    """A width goes into a shape: 2048.0 does not."""
    width = student.swiglu_hidden(769, multiple_of=3)
    assert type(width) is int, (
        f"The width should be an int, and is a {type(width).__name__}."
    )
    assert width > 2000, "The width should be at least 8 · 769 / 3."


@points(0.5)
def test_widths_below_one_are_refused(student):
    """No features, or multiples of 0: a ValueError that names the number. Two of them make no right
    one.
    """
    assert_refused(student.swiglu_hidden, 0, sizes=(0,))
    assert_refused(student.swiglu_hidden, -6, 5, sizes=(-6,))
    assert_refused(student.swiglu_hidden, 512, 0, sizes=(0,))
    assert_refused(student.swiglu_hidden, -6, -5, sizes=(-6,))

"""paired_verdict: differences, seed by seed, against their standard error."""

import math

from autograder.suite import assert_close, assert_equal, assert_refused, points

INFINITE, NAN = float("inf"), float("nan")


def _verdict(student, first, second, **settings):
    answer = student.paired_verdict(first, second, **settings)
    triple = isinstance(answer, (tuple, list)) and len(answer) == 3
    assert triple, "paired_verdict should return (winner, mean, error)."
    return answer


@points(1)
def test_the_mean_is_that_of_first_minus_second(student):
    """Differences of 1, 3, 2 and -1; and of two seeds."""
    _, mean, _ = _verdict(student, [2.0, 5.0, 3.5, 1.0], [1.0, 2.0, 1.5, 2.0])
    assert_close(mean, 1.25, what="the mean")
    _, mean, _ = _verdict(student, [1.0, 2.0], [2.0, 6.0])
    assert_close(mean, -2.5, what="the mean")
    assert isinstance(mean, float), f"The mean is {type(mean).__name__}, not float."


@points(1.5)
def test_the_error_is_that_of_paired_differences(student):
    """Differences of 1, 3 and 2 have a deviation of 1, and their mean an error of 1/√3, however far
    the seeds are apart; -1 and -4 have an error of 1.5.
    """
    _, _, error = _verdict(student, [101.0, 13.0, 4.0], [100.0, 10.0, 2.0])
    assert_close(error, 1 / math.sqrt(3), what="the standard error")
    _, _, error = _verdict(student, [1.0, 2.0], [2.0, 6.0])
    assert_close(error, 1.5, what="the standard error")
    _, _, error = _verdict(student, [1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 1.0, 1.0])
    assert_close(error, math.sqrt(5 / 12), what="the standard error")


@points(1.5)
def test_the_lower_loss_wins_where_the_difference_is_clear(student):
    """Either of the two; and neither where the difference is one error, or 0 throughout."""
    clear, other = [1.0, 2.0, 3.0], [2.0, 3.5, 4.0]
    assert_equal(_verdict(student, clear, other)[0], "first", what="the winner")
    assert_equal(_verdict(student, other, clear)[0], "second", what="the winner")
    assert_equal(
        _verdict(student, [3.0, 3.0], [3.0, 2.75])[0], "undecided", what="the winner"
    )
    assert_equal(_verdict(student, clear, clear)[0], "undecided", what="the winner")
    assert_equal(
        _verdict(student, [1.5, 2.5], [1.25, 2.25])[0], "second", what="the winner"
    )


@points(0.75)
def test_the_factor_decides_how_clear_it_has_to_be(student):
    """A difference of 3.46 errors: enough with a factor of 3.4, and too little with 3.5; the default
    is 2. Differences that are all 1 are clear with every factor.
    """
    first, second = [2.0, 4.0, 3.0], [1.0, 1.0, 1.0]
    assert_equal(
        _verdict(student, first, second, factor=3.4)[0], "second", what="the winner"
    )
    assert_equal(
        _verdict(student, first, second, factor=3.5)[0], "undecided", what="the winner"
    )
    # Differences of 1 and 2.75 are 2.14 errors from 0, differences of 1 and 3.25 only 1.89.
    assert_equal(
        _verdict(student, [1.0, 3.75], [0.0, 1.0])[0], "second", what="the winner"
    )
    assert_equal(
        _verdict(student, [1.0, 4.25], [0.0, 1.0])[0], "undecided", what="the winner"
    )
    assert_equal(_verdict(student, [3.0, 2.0], [4.0, 3.0], factor=50.0)[0], "first")


@points(0.75)
def test_a_run_that_diverged_loses(student):
    """One infinite loss, or one that is no number, in one variant; in both nothing is decided."""
    for bad in (INFINITE, NAN):
        answer = _verdict(student, [1.0, bad, 1.0], [9.0, 9.0, 9.0])
        assert_equal(answer, ("second", None, None))
        answer = _verdict(student, [9.0, 9.0], [bad, 1.0])
        assert_equal(answer, ("first", None, None))
        answer = _verdict(student, [bad, 1.0], [2.0, INFINITE])
        assert_equal(answer, ("undecided", None, None))


@points(0.5)
def test_what_are_no_pairs_is_refused(student):
    """Five losses and four; four and five; one pair."""
    assert_equal(
        _verdict(student, [1.0, 2.0], [2.0, 3.5])[0], "first", what="the winner"
    )
    assert_refused(student.paired_verdict, [1.0] * 5, [2.0] * 4, sizes=(5, 4))
    assert_refused(student.paired_verdict, [1.0] * 4, [2.0] * 5, sizes=(4, 5))
    assert_refused(student.paired_verdict, [1.0], [2.0], sizes=(1,))

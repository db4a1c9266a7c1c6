"""learning_rate: linear up, half a cosine down, then level."""

import math

from autograder.suite import assert_close, assert_refused, points


@points(1)
def test_warm_up_is_linear_and_begins_with_a_step(student):
    """Of ten steps the first has a tenth of the peak, the fifth a half, the tenth all of it."""
    for step, share in ((0, 0.1), (4, 0.5), (9, 1.0)):
        assert_close(
            student.learning_rate(step, 10, 110, 3e-3, 1e-3),
            share * 3e-3,
            what=f"step {step}",
        )


@points(1.5)
def test_then_it_falls_along_half_a_cosine(student):
    """At a quarter, a half and three quarters of the way from the peak 4 to the floor 0.2, and one
    step before the end.
    """
    heights = {10: 1.0, 35: 0.5 + math.sqrt(0.125), 60: 0.5, 85: 0.5 - math.sqrt(0.125)}
    heights[109] = 0.5 * (1 + math.cos(0.99 * math.pi))
    for step, height in heights.items():
        assert_close(
            student.learning_rate(step, 10, 110, 4.0, 0.2),
            0.2 + 3.8 * height,
            what=f"step {step}",
        )


@points(1)
def test_after_the_end_it_stays_on_the_floor(student):
    """At step 110 of 110, at 160, where the cosine would be half way up again, and at 210."""
    for step in (110, 160, 210):
        assert_close(
            student.learning_rate(step, 10, 110, 2.0, 0.25), 0.25, what=f"step {step}"
        )


@points(0.5)
def test_without_a_floor_it_ends_at_0(student):
    """The default: half way 1/2, at the end 0.0."""
    assert_close(student.learning_rate(60, 10, 110, 1.0), 0.5)
    # one argument after the other is another: the floor, the peak, the end, the warm-up
    assert_close(student.learning_rate(60, 10, 110, 1.0, 0.5), 0.75)
    assert_close(student.learning_rate(60, 10, 110, 3.0), 1.5)
    assert_close(student.learning_rate(60, 10, 60, 1.0), 0.0)
    assert_close(student.learning_rate(60, 100, 110, 1.0), 0.61)
    assert_close(student.learning_rate(110, 10, 110, 1.0), 0.0)


@points(0.5)
def test_there_may_be_no_warm_up(student):
    """W = 0: step 0 is at the peak already."""
    assert_close(student.learning_rate(0, 0, 8, 2.0), 2.0)
    assert_close(student.learning_rate(2, 0, 8, 2.0), 1.0 + math.sqrt(0.5))


@points(0.5)
def test_a_warm_up_that_does_not_fit_is_refused(student):
    """A warm-up of 10 in 10 steps leaves no cosine, and one of -1 is none."""
    assert_close(student.learning_rate(10, 10, 11, 1.0, 0.5), 1.0)
    assert_refused(student.learning_rate, 3, 10, 10, 1.0, sizes=(10,))
    assert_refused(student.learning_rate, 3, 12, 10, 1.0, sizes=(12, 10))
    assert_refused(student.learning_rate, 3, -1, 10, 1.0, sizes=(-1, 10))

"""sinusoidal_positions: pairs of sine and cosine, each pair with its own speed."""

import math

import torch

from autograder.suite import assert_close, assert_refused, points

TOLERANCE = {"atol": 1e-4, "rtol": 0.0}


@points(2)
def test_columns_are_sine_and_cosine_of_one_angle(student, reference):
    """Work out row 1 with D = 10: the angles are 1, 10000^(-2/10), 10000^(-4/10), …, a sine and a
    cosine of each.
    """
    assert_close(
        student.sinusoidal_positions(7, 10),
        reference.sinusoidal_positions(7, 10),
        **TOLERANCE,
    )


@points(1)
def test_speeds_fall_from_one_towards_one_in_ten_thousand(student):
    """The angle at position 1 is the speed of a pair: neighbouring speeds differ by the same factor
    each time.
    """
    row = student.sinusoidal_positions(2, 14)[1].double()
    speeds = torch.atan2(row[0::2], row[1::2])
    expected = torch.tensor(
        [10000 ** (-pair / 7) for pair in range(7)], dtype=torch.float64
    )
    assert_close(
        speeds, expected, rtol=1e-4, what="the speeds of the pairs, from row 1,"
    )


@points(1.5)
def test_odd_width_has_one_sine_more(student):
    """D = 9: five sines, four cosines, and the exponent is 2i/9, since the D given is 9."""
    expected = [
        [
            trig(p / 10000 ** (2 * (c // 2) / 9))
            for c, trig in zip(range(9), TRIGS, strict=False)
        ]
        for p in range(6)
    ]
    assert_close(
        student.sinusoidal_positions(6, 9), torch.tensor(expected), **TOLERANCE
    )


TRIGS = [math.sin, math.cos] * 5


@points(0.5)
def test_position_zero_is_where_all_angles_are_zero(student):
    """Positions count from 0: sin 0 and cos 0 all along the first row."""
    assert_close(
        student.sinusoidal_positions(3, 6)[0], torch.tensor([0.0, 1.0] * 3), **TOLERANCE
    )


@points(1)
def test_each_pair_is_a_point_on_the_unit_circle(student):
    """Neighbouring columns 2i and 2i + 1 share one angle, so their squares sum to 1; and no two
    rows are equal.
    """
    positions = student.sinusoidal_positions(23, 12)
    squares = (positions**2).unflatten(-1, (6, 2)).sum(dim=-1)
    assert_close(
        squares, torch.ones(23, 6), atol=1e-5, what="the squared length of each pair"
    )
    assert bool((torch.cdist(positions, positions) + torch.eye(23) > 0.1).all()), (
        "two positions have the same vector"
    )


@points(1.5)
def test_a_step_is_the_same_rotation_everywhere(student):
    """Dot products of rows depend on their distance only: Σ cos(distance · speed)."""
    positions = student.sinusoidal_positions(19, 6).double()
    for distance in (1, 5):
        expected = sum(math.cos(distance * 10000 ** (-pair / 3)) for pair in range(3))
        products = (positions[distance:] * positions[:-distance]).sum(dim=-1)
        wanted = torch.full((19 - distance,), expected, dtype=torch.float64)
        assert_close(
            products,
            wanted,
            **TOLERANCE,
            what=f"the dot product of rows {distance} apart",
        )


@points(0.5)
def test_a_longer_table_begins_with_the_shorter_one(student, reference):
    """The angle does not depend on how many positions there are; 300 of them are as exact as
    three.
    """
    long = student.sinusoidal_positions(301, 6)
    assert_close(long, reference.sinusoidal_positions(301, 6), **TOLERANCE)
    assert_close(student.sinusoidal_positions(5, 6), long[:5], **TOLERANCE)


@points(0.5)
def test_one_feature_one_position_and_none(student):
    """D = 1 is a single sine; N = 1 is the first row; N = 0 is an empty table."""
    assert_close(
        student.sinusoidal_positions(3, 1),
        torch.arange(3.0).sin().unsqueeze(1),
        **TOLERANCE,
    )
    assert_close(
        student.sinusoidal_positions(1, 2), torch.tensor([[0.0, 1.0]]), **TOLERANCE
    )
    assert_close(student.sinusoidal_positions(0, 6), torch.zeros(0, 6))


@points(0.5)
def test_sizes_without_meaning_are_refused(student):
    """A negative number of positions, no features: ValueError with the number."""
    assert_refused(student.sinusoidal_positions, -1, 6, sizes=(-1,))
    assert_refused(student.sinusoidal_positions, 5, 0, sizes=(0,))

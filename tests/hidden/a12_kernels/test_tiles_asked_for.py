"""tiles_asked_for: what the programs that run together fetch."""

from autograder.suite import (
    arange,
    assert_equal,
    assert_refused,
    call_twice,
    points,
    tensor,
)


@points(2)
def test_a_row_of_programs_asks_for_one_row_and_all_columns(student):
    """Nine by nine tiles row by row, nine programs: (1 + 9) · 9, and with four steps (1 + 9) · 4.
    Column by column it is as many.
    """
    order = arange(81).view(9, 9).int()
    assert_equal(call_twice(student.tiles_asked_for, order, 9, 9), 90)
    assert_equal(student.tiles_asked_for(order, 4, 9), 40)
    assert_equal(student.tiles_asked_for(order.T, 9, 9), 90)


@points(2)
def test_a_square_of_programs_asks_for_less(student):
    """The same programs in a square of three by three: (3 + 3) · 9."""
    assert_equal(student.tiles_asked_for(_squares(), 9, 9), 54)


@points(1.5)
def test_programs_of_two_groups_share_columns(student):
    """Thirty programs of the squares: 27 fill three rows, and three stand in the fourth to sixth
    row of the first column, which is there already: 6 rows and 9 columns.
    """
    assert_equal(student.tiles_asked_for(_squares(), 2, 30), (6 + 9) * 2)
    assert_equal(student.tiles_asked_for(_squares(), 1, 12), 3 + 4)


@points(1)
def test_one_program_and_all_programs(student):
    """One program needs a row and a column; more programs than there are need all."""
    order = tensor([[5, 2, 4], [1, 3, 0]]).int()
    assert_equal(student.tiles_asked_for(order, 7, 1), 14)
    assert_equal(student.tiles_asked_for(order, 7, 2), 21)
    assert_equal(student.tiles_asked_for(order, 7, 6), 35)
    assert_equal(student.tiles_asked_for(order, 7, 100), 35)


@points(1)
def test_a_whole_number_comes_back(student):
    """int, however many tiles: 4 · (10¹⁶ + 1) is no float."""
    count = student.tiles_asked_for(arange(4).view(2, 2).int(), 10**16 + 1, 4)
    assert type(count) is int, "The count should be an int: int(…) of a tensor's sum."
    assert_equal(count, 4 * (10**16 + 1))


@points(0.5)
def test_nothing_below_one(student):
    """No program, or no step along K: ValueError with the number. One is enough."""
    order = arange(4).view(2, 2).int()
    assert_equal(student.tiles_asked_for(order, 1, 1), 2)
    for wrong in (0, -3):
        assert_refused(student.tiles_asked_for, order, wrong, 2, sizes=(wrong,))
        assert_refused(student.tiles_asked_for, order, 2, wrong, sizes=(wrong,))


def _squares():
    """Nine by nine tiles in groups of three rows."""
    down = arange(27).view(9, 3).T.int()
    return tensor(
        [[*row] for first in (0, 27, 54) for row in (down + first).tolist()]
    ).int()

"""matmul: a product in tiles of 32, whose programs go in groups of rows.

Numbers are small and whole, so that sums are exact in every precision; one test looks at tf32.
"""

import torch

from autograder.suite import (
    assert_equal,
    assert_refused,
    assert_unchanged,
    forbid,
    full,
    points,
    randint,
    randn,
    tensor,
)

from .launches import assert_answer, assert_precise

pytestmark = forbid("torch.matmul", "torch.mm", "torch.einsum")


@points(2.5)
def test_tiles_of_a_product(student):
    """64 × 96 by 96 × 64: two tiles either way, three steps along K."""
    _assert_product(student, _whole(64, 96), _whole(96, 64))


@points(2)
def test_ragged_rows_and_columns(student):
    """66 rows and 65 columns, or 1 and 3: the last tiles stick out, K does not."""
    for m, n in ((66, 65), (1, 3)):
        _assert_product(student, _whole(m, 32), _whole(32, n))


@points(1.5)
def test_ragged_steps_along_k(student):
    """K = 33 and K = 7: what do lanes beyond the end hold?"""
    for k in (33, 7):
        _assert_product(student, _whole(32, k), _whole(k, 32))


@points(2)
def test_any_strides(student):
    """a transposed, b with gaps between its rows and columns: only the strides tell."""
    a = _whole(64, 64).T
    b = _whole(128, 192)[::2, ::3]
    _assert_product(student, a, b)
    _assert_product(student, b, a)


@points(2)
def test_half_precision_is_summed_in_float32(student):
    """4096, and then a one in each of eight steps along K: 4104. float16 has no 4097. Out comes
    float16.
    """
    a, b = full((32, 288), 1.0).half(), full((288, 32), 0.0).half()
    b[0], b[32::32] = 4096.0, 1.0
    (c, _), launch = student.launch("matmul", a, b, 1)
    assert_answer(c, full((32, 32), 4104.0).half(), launch, what="c")


@points(1.5)
def test_float32_is_not_rounded(student):
    """Numbers of 23 bits: a `tl.dot` that rounds its operands to 10 is off by a thousandth."""
    a, b = randn(32, 32).float(), randn(32, 32).float()
    (c, _), _ = student.launch("matmul", a, b, 1)
    assert_precise(c, (a.double() @ b.double()).float(), atol=2e-5, what="c")


@points(3)
def test_programs_go_in_groups_of_rows(student):
    """Five rows and three columns of tiles, two rows together: down each column, then to the next
    one; the last group has one row.
    """
    expected = [[0, 2, 4], [1, 3, 5], [6, 8, 10], [7, 9, 11], [12, 13, 14]]
    assert_equal(_order(student, 160, 96, 2), tensor(expected).int(), what="order")


@points(1)
def test_groups_of_one_go_row_by_row(student):
    """Two rows and three columns: a group of one row is a row."""
    assert_equal(
        _order(student, 64, 70, 1), tensor([[0, 1, 2], [3, 4, 5]]).int(), what="order"
    )


@points(1)
def test_a_group_larger_than_everything_goes_down(student):
    """Three rows, and groups of eight: all rows are one group."""
    expected = tensor([[0, 3], [1, 4], [2, 5]]).int()
    assert_equal(_order(student, 96, 64, 8), expected, what="order")


@points(2)
def test_traffic_is_that_of_tiles(student):
    """Counted: each program loads a row of tiles of a and a column of tiles of b, and stores its
    tile and its number.
    """
    a, b = _whole(64, 96), _whole(96, 128)
    (c, _), launch = student.launch("matmul", a, b, 2)
    assert_answer(c, (a.double() @ b.double()).float(), launch, what="c")
    loads = launch.loads.get("a", 0), launch.loads.get("b", 0)
    assert loads == (64 * 96 * 4, 96 * 128 * 2), (
        f"The kernels load {loads[0]} numbers of a and {loads[1]} of b. Four columns of tiles need "
        f"all of a, two rows of tiles all of b: {64 * 96 * 4} and {96 * 128 * 2}."
    )
    stored = sum(launch.stores.values())
    assert stored == 64 * 128 + 8, (
        f"c has 8192 numbers and order 8; the kernel stores {stored}."
    )
    assert launch.programs == 8, f"There are 8 tiles, and {launch.programs} programs."
    assert launch.largest <= 1024, (
        f"A tile has {launch.largest} elements, more than 32 × 32 = 1024."
    )


@points(1)
def test_the_wrapper_computes_nothing(student):
    """Counted: torch operations around the kernel. And a and b stay as they are."""
    a, b = _whole(32, 32), _whole(32, 32)
    (c, _), launch = student.launch("matmul", a, b, 1)
    assert_unchanged()
    assert_answer(c, (a.double() @ b.double()).float(), launch, what="c")
    assert launch.dots >= 1, "No program calls tl.dot."


@points(0.5)
def test_sizes_that_do_not_fit_are_refused(student):
    """a with 40 columns and b with 33 rows, or with 48: ValueError with both numbers. A group of 0,
    or of -1.
    """
    a = _whole(32, 40)
    _assert_product(student, a, _whole(40, 32))
    for rows in (33, 48):
        assert_refused(student.matmul, a, _whole(rows, 32), 1, sizes=(40, rows))
    for group in (0, -1):
        assert_refused(student.matmul, a, _whole(40, 32), group, sizes=(group,))


def _whole(rows, columns):
    """Whole numbers from -4 to 4."""
    return (randint(0, 9, (rows, columns)) - 4).float()


def _assert_product(student, a, b):
    (c, _), launch = student.launch("matmul", a, b, 1)
    assert_answer(c, (a.double() @ b.double()).float(), launch, what="c")


def _order(student, m, n, group):
    (_, order), launch = student.launch("matmul", _whole(m, 32), _whole(32, n), group)
    assert launch.loads, "No kernel loads anything: the work is not done in a kernel."
    assert isinstance(order, torch.Tensor), "The second answer is order, a tensor."
    return order

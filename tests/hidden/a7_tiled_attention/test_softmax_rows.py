"""softmax_rows: a reduction in a kernel."""

import torch

from autograder.suite import assert_close, assert_unchanged, forbid, full, points, randn, zeros

pytestmark = [forbid("torch.softmax", "torch.log_softmax", "torch.logsumexp")]


@points(2)
def test_rows_become_distributions(student):
    """Lengths beside a power of two, and exactly one. Each program reduces its own rows."""
    for m, n in ((5, 11), (3, 64), (40, 33)):
        x = 2 * randn(m, n).float()
        _assert_close(student.launch("softmax_rows", x), x)


@points(1.5)
def test_lanes_beyond_the_row_count_nowhere(student):
    """Rows far below zero: a lane that holds 0 would be their maximum, and would have a share of the sum."""
    x = full((3, 11), -60.0).float() + randn(3, 11).float()
    _assert_close(student.launch("softmax_rows", x), x)
    _assert_close(student.launch("softmax_rows", x + 59.5), x + 59.5)


@points(1.5)
def test_large_elements_do_not_overflow(student):
    """Rows near 1000 and near -60000, and rows of unequal size."""
    x = torch.cat([1e3 + randn(2, 13), -6e4 + randn(2, 13), 30 * randn(2, 13)]).float()
    _assert_close(student.launch("softmax_rows", x), x)


@points(1)
def test_any_strides(student):
    """x transposed, and with gaps between rows and columns."""
    x = randn(37, 26).float()
    _assert_close(student.launch("softmax_rows", x.T), x.T)
    _assert_close(student.launch("softmax_rows", x[::3, 1::2]), x[::3, 1::2])


@points(0.5)
def test_half_precision_computes_in_float32(student):
    """float16 in and out. 5000 equal elements: their sum is beyond what float16 counts exactly."""
    x = zeros(2, 5000).half()
    x[1, 7] = 5.0
    _assert_close(student.launch("softmax_rows", x), x, atol=1e-5)


@points(1)
def test_the_kernel_does_it(student):
    """Counted: x is loaded once and the output stored once, and torch computes nothing around it."""
    x = randn(35, 21).float()
    _, launch = student.launch("softmax_rows", x)
    assert launch.kernels >= 1, "No kernel was launched: the softmax should happen in softmax_rows_kernel."
    assert not launch.computed, (
        f"The wrapper computes with torch ({', '.join(launch.computed)}). It may allocate, rearrange and launch; "
        "arithmetic belongs in the kernel."
    )
    assert launch.loads.get("x") == 35 * 21, "Each element of x should be loaded once: the row fits on the chip."
    assert sum(launch.stores.values()) == 35 * 21, "Each element of the output should be stored once."


@points(0.5)
def test_one_column_and_one_row(student):
    """A row of one element is (1); one row of 13."""
    _assert_close(student.launch("softmax_rows", randn(5, 1).float()), zeros(5, 1).float())
    x = randn(1, 13).float()
    _assert_close(student.launch("softmax_rows", x), x)


@points(0.5)
def test_a_row_longer_than_a_thousand(student):
    """1500 elements: the block follows the length of the row."""
    x = randn(2, 1500).float()
    _assert_close(student.launch("softmax_rows", x), x)


@points(0.5)
def test_the_input_stays_as_it_was(student):
    """The output is a new tensor."""
    x = randn(9, 13).float()
    _assert_close(student.launch("softmax_rows", x), x)
    assert_unchanged()


def _assert_close(answer, x, atol=1e-5):
    result, launch = answer
    assert launch.loads.get("x"), "No kernel loads x: the work is not done in a kernel."
    if launch.unfilled and isinstance(result, torch.Tensor) and bool(result.isnan().any()):
        raise AssertionError(
            "There is nan in the result, and masked lanes of x were loaded without other=. On a GPU they would hold "
            "anything; here they are nan."
        )
    assert_close(result, torch.softmax(x.double(), dim=-1).to(x.dtype), atol=atol)

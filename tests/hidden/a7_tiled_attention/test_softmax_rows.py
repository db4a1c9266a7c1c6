"""softmax_rows: a reduction in a kernel."""

import torch

from autograder.suite import (
    assert_close,
    assert_unchanged,
    assert_varies,
    forbid,
    full,
    points,
    randn,
    tensor,
    zeros,
)

pytestmark = [forbid("torch.softmax", "torch.log_softmax", "torch.logsumexp")]


@points(2)
def test_rows_become_distributions(student):
    """Five rows of 32 elements. Each program reduces its own rows."""
    x = 2 * randn(5, 32).float()
    _assert_close(student.launch("softmax_rows", x), x)


@points(1)
def test_lanes_beyond_the_row_count_nowhere(student):
    """Rows of 19, near 0 and near -200. A lane that holds 0 is the maximum of a row below zero, and
    has a share of any sum.
    """
    x = (tensor([[-200.0], [0.0], [-200.0], [0.0]]) + randn(4, 19)).float()
    _assert_close(student.launch("softmax_rows", x), x, atol=1e-5, rtol=1e-4)


@points(1)
def test_lanes_beyond_the_row_are_lower_than_any_number(student):
    """Rows of 19 equal elements near -2000000000: whatever else a lane holds may be larger."""
    x = full((3, 19), -2e9).float()
    _assert_close(student.launch("softmax_rows", x), x)


@points(1.5)
def test_large_elements_do_not_overflow(student):
    """Rows near 1000 and near -60000, and a row of unequal elements. float32 has numbers near 60000
    to 0.004, and so exact are the weights.
    """
    x = torch.cat([1e3 + randn(1, 32), -6e4 + randn(1, 32), 30 * randn(1, 32)]).float()
    _assert_close(student.launch("softmax_rows", x), x, rtol=5e-3)


@points(1)
def test_any_strides(student):
    """x transposed, with gaps between rows and columns."""
    x = randn(64, 9).float()[1::2, ::3].T
    _assert_close(student.launch("softmax_rows", x), x)


@points(0.5)
def test_half_precision_computes_in_float32(student):
    """float16 in and out. 2049 exponentials are 1, the others 0: their sum is no number of
    float16. Nor is a difference of 8.00390625 between two elements.
    """
    x = full((1, 4096), -6e4).half()
    x[:, :2049] = 0.0
    close = full((1, 32), 0.99609375).half()
    close[:, 5] = 9.0
    for rows in (x, close):
        answer = student.launch("softmax_rows", rows)
        _assert_close(answer, rows, atol=1e-7, rtol=1e-4)


@points(1)
def test_the_kernel_does_it(student):
    """Counted: x is loaded once and the output stored once, and torch computes nothing around it. x
    stays as it was.
    """
    x = randn(5, 32).float()
    result, launch = student.launch("softmax_rows", x)
    assert_unchanged()
    assert_varies(result, above=1e-9)
    assert launch.kernels >= 1, (
        "No kernel was launched: the softmax should happen in softmax_rows_kernel."
    )
    assert not launch.computed, (
        f"The wrapper computes with torch ({', '.join(launch.computed)}). It may allocate, "
        "rearrange and launch; "
        "arithmetic belongs in the kernel."
    )
    assert launch.loads.get("x") == 5 * 32, (
        "Each element of x should be loaded once: the row fits on the chip."
    )
    assert sum(launch.stores.values()) == 5 * 32, (
        "Each element of the output should be stored once."
    )


@points(0.5)
def test_one_column_and_one_row(student):
    """A row of one element is (1); one row of 32."""
    _assert_close(
        student.launch("softmax_rows", randn(2, 1).float()), zeros(2, 1).float()
    )
    x = randn(1, 32).float()
    _assert_close(student.launch("softmax_rows", x), x)


@points(0.5)
def test_a_row_longer_than_a_thousand(student):
    """2048 elements: the block follows the length of the row."""
    x = randn(2, 2048).float()
    _assert_close(student.launch("softmax_rows", x), x)


def _assert_close(answer, x, atol=2e-6, rtol=1e-5):
    result, launch = answer
    assert launch.loads, "No kernel loads anything: the work is not done in a kernel."
    assert not launch.computed, (
        f"torch computes ({', '.join(launch.computed)}), and the softmax belongs in the kernel."
    )
    if (
        launch.unfilled
        and isinstance(result, torch.Tensor)
        and bool(result.isnan().any())
    ):
        raise AssertionError(
            "There is nan in the result, and masked lanes of x were loaded without other=. On a "
            "GPU they would hold "
            "anything; here they are nan."
        )
    assert_close(
        result, torch.softmax(x.double(), dim=-1).to(x.dtype), atol=atol, rtol=rtol
    )

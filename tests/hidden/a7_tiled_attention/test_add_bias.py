"""add_bias: a first kernel, checked address by address."""

import torch

from autograder.suite import assert_close, assert_refused, assert_unchanged, points, randn


@points(2)
def test_every_element_gets_the_bias_of_its_column(student):
    """Sizes that no tile divides; both sides of 32 and of 64."""
    for m, n in ((7, 11), (45, 37), (3, 100), (130, 5)):
        x, b = randn(m, n).float(), randn(n).float()
        _assert_close(student.launch("add_bias", x, b), x + b)


@points(1.5)
def test_any_strides(student):
    """x transposed, x with gaps between its rows and columns, b with gaps: only the strides tell."""
    x, b = randn(37, 45).float(), randn(90).float()
    _assert_close(student.launch("add_bias", x.T, b[:37]), x.T + b[:37])
    _assert_close(student.launch("add_bias", x, b[::2]), x + b[::2])
    wide = randn(80, 100).float()
    _assert_close(student.launch("add_bias", wide[::2, 1::3], b[:33]), wide[::2, 1::3] + b[:33])


@points(0.5)
def test_as_many_rows_as_columns(student):
    """A square: does the bias go along the columns?"""
    x, b = randn(19, 19).float(), randn(19).float()
    _assert_close(student.launch("add_bias", x, b), x + b)


@points(0.5)
def test_half_precision(student):
    """float16 in, float16 out."""
    x, b = randn(9, 35).half(), randn(35).half()
    _assert_close(student.launch("add_bias", x, b), x + b, atol=2e-3)


@points(1.5)
def test_the_kernel_does_it(student):
    """Counted: what the kernel loads and stores, and which torch operations stand around it."""
    x, b = randn(70, 45).float(), randn(45).float()
    _, launch = student.launch("add_bias", x, b)
    assert launch.kernels >= 1, "No kernel was launched: the addition should happen in add_bias_kernel."
    assert not launch.computed, (
        f"The wrapper computes with torch ({', '.join(launch.computed)}). It may allocate, rearrange and launch; "
        "arithmetic belongs in the kernel."
    )
    assert launch.loads.get("x") == 70 * 45, "Each element of x should be loaded once, and no other."
    assert launch.loads.get("b", 0) >= 45, "The kernel never loads the whole bias."
    assert sum(launch.stores.values()) == 70 * 45, "Each element of the output should be stored once."


@points(1)
def test_work_is_shared_out(student):
    """A matrix of 150 × 140 is cut into tiles, one a program: no tile of more than 16384 elements."""
    x, b = randn(150, 140).float(), randn(140).float()
    result, launch = student.launch("add_bias", x, b)
    _assert_close((result, launch), x + b)
    assert launch.programs > 1, "One program does it all. Cut the matrix into tiles, and give each program one."
    assert launch.largest <= 16384, f"A tile has {launch.largest} elements: too many to be kept on a chip."


@points(0.5)
def test_a_bias_of_another_length_is_refused(student):
    """11 columns and a bias of 7: ValueError with both numbers."""
    assert_refused(student.add_bias, randn(5, 11).float(), randn(7).float(), sizes=(11, 7))


@points(0.5)
def test_the_input_stays_as_it_was(student):
    """The output is a new tensor."""
    x, b = randn(9, 13).float(), randn(13).float()
    _assert_close(student.launch("add_bias", x, b), x + b)
    assert_unchanged()


def _assert_close(answer, expected, atol=1e-6):
    result, launch = answer
    assert launch.loads.get("x"), "No kernel loads x: the work is not done in a kernel."
    if launch.unfilled and isinstance(result, torch.Tensor) and bool(result.isnan().any()):
        raise AssertionError(
            f"There is nan in the result, and masked lanes of {', '.join(launch.unfilled)} were loaded without other=. "
            "On a GPU they would hold anything; here they are nan."
        )
    assert_close(result, expected, atol=atol)

"""add_bias: a first kernel, checked address by address."""

import torch

from autograder.suite import (
    assert_close,
    assert_refused,
    assert_unchanged,
    assert_varies,
    full,
    points,
    randn,
)


@points(2)
def test_every_element_gets_the_bias_of_its_column(student):
    """64 rows and 128 columns: does the bias go along the columns, and does each program know its
    tile?
    """
    x, b = randn(64, 128).float(), randn(128).float()
    _assert_close(student.launch("add_bias", x, b), x + b)


@points(1.5)
def test_ragged_tiles(student):
    """Sizes that no tile divides, with the same bias everywhere: more rows and columns than a tile
    has, or fewer.
    """
    for m, n in ((65, 66), (1, 20)):
        x, b = randn(m, n).float(), full((n,), 10.0).float()
        _assert_close(student.launch("add_bias", x, b), x + b)


@points(1)
def test_any_strides_of_x(student):
    """x transposed, with gaps between its rows and columns: only the strides tell. The bias is 10
    everywhere.
    """
    x, b = randn(192, 128).float()[1::3, ::2].T, full((64,), 10.0).float()
    _assert_close(student.launch("add_bias", x, b), x + b)


@points(0.5)
def test_any_stride_of_b(student):
    """b with gaps between its elements."""
    x, b = randn(64, 64).float(), randn(128).float()[::2]
    _assert_close(student.launch("add_bias", x, b), x + b)


@points(0.5)
def test_half_precision(student):
    """float16 in, float16 out."""
    x, b = randn(64, 64).half(), full((64,), 10.0).half()
    _assert_close(student.launch("add_bias", x, b), x + b, atol=1e-2)


@points(1)
def test_the_kernel_does_it(student):
    """Counted: what the kernel loads and stores, and which torch operations stand around it. x
    stays as it was.
    """
    x, b = randn(64, 64).float(), randn(64).float()
    result, launch = student.launch("add_bias", x, b)
    assert_unchanged()
    assert_varies(result, above=1e-9)
    assert launch.kernels >= 1, (
        "No kernel was launched: the addition should happen in add_bias_kernel."
    )
    assert not launch.computed, (
        f"The wrapper computes with torch ({', '.join(launch.computed)}). It may allocate, "
        "rearrange and launch; "
        "arithmetic belongs in the kernel."
    )
    assert launch.loads.get("x") == 64 * 64, (
        "Each element of x should be loaded once, and no other."
    )
    assert launch.loads.get("b", 0) >= 64, "The kernel never loads the whole bias."
    assert sum(launch.stores.values()) == 64 * 64, (
        "Each element of the output should be stored once."
    )


@points(1)
def test_work_is_shared_out(student):
    """64 × 128 elements are cut into tiles, one a program: no tile of more than 64 × 64 = 4096
    elements.
    """
    x, b = randn(64, 128).float(), full((128,), 10.0).float()
    result, launch = student.launch("add_bias", x, b)
    assert_varies(result, above=1e-9)
    assert launch.programs > 1, (
        "One program does it all. Cut the matrix into tiles, and give each program one."
    )
    assert launch.largest <= 4096, (
        f"A tile has {launch.largest} elements, more than 64 × 64."
    )
    _assert_stored(launch, 64 * 128)


@points(0.5)
def test_a_bias_of_another_length_is_refused(student):
    """11 columns and a bias of 7, or of 23: ValueError with both numbers. A bias of 11 is one."""
    x = randn(5, 11).float()
    result, launch = student.launch("add_bias", x, randn(11).float())
    assert_varies(result, above=1e-9)
    _assert_stored(launch, 5 * 11)
    assert_refused(student.add_bias, x, randn(7).float(), sizes=(11, 7))
    assert_refused(student.add_bias, x, randn(23).float(), sizes=(11, 23))


def _assert_stored(launch, count):
    stored = sum(launch.stores.values())
    assert stored == count, (
        f"The output has {count} elements, and the kernel stores {stored}."
    )


def _assert_close(answer, expected, atol=2e-6):
    result, launch = answer
    assert launch.loads, "No kernel loads anything: the work is not done in a kernel."
    assert not launch.computed, (
        f"torch computes ({', '.join(launch.computed)}), and the addition belongs in the kernel."
    )
    if (
        launch.unfilled
        and isinstance(result, torch.Tensor)
        and bool(result.isnan().any())
    ):
        raise AssertionError(
            f"There is nan in the result, and masked lanes of {', '.join(launch.unfilled)} were "
            "loaded without other=. "
            "On a GPU they would hold anything; here they are nan."
        )
    assert_close(result, expected, atol=atol)

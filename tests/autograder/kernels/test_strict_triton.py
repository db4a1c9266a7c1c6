"""The strict interpreter: every address, every lane, every order; and what a wrapper may do around
a kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("triton")
from small_kernels import chain_kernel, count_kernel, product, sums_kernel, twice

from autograder.kernels.faults import KernelFault
from autograder.kernels.strict_triton import install, trace
from autograder.sitting.reference import run_cell
from autograder.worker.launches import watch_launches

X = torch.arange(15.0).view(3, 5)


def test_a_right_kernel_is_right_with_any_strides() -> None:
    assert torch.equal(twice(X), 2 * X)
    assert torch.equal(twice(X.T), 2 * X.T)
    assert torch.equal(twice(X[::2, 1::2]), 2 * X[::2, 1::2])


def test_a_parameter_may_be_called_kernel() -> None:
    y = torch.empty(3)
    sums_kernel[(3,)](torch.tensor([1.0, 2.0, 4.0, 8.0]), y, kernel=2)
    assert y.tolist() == [3.0, 6.0, 12.0]


KERNEL = """
import triton
import triton.language as tl

@triton.jit
def scale_kernel(x_ptr, y_ptr, N: tl.constexpr):
    places = tl.arange(0, N)
    tl.store(y_ptr + places, tl.load(x_ptr + places) * FACTOR)
"""


@pytest.mark.parametrize("factor", [2, 3])
def test_a_kernel_of_another_text_is_another_one_whatever_its_name(factor: int) -> None:
    names: dict[str, Any] = {}
    run_cell(KERNEL.replace("FACTOR", str(factor)), "<a cell>", names)
    x, y = torch.arange(4.0), torch.zeros(4)
    names["scale_kernel"][(1,)](x, y, N=4)
    assert y.tolist() == [0.0, factor, 2.0 * factor, 3.0 * factor]


def test_reads_past_the_end_name_program_tensor_and_row() -> None:
    with pytest.raises(
        KernelFault,
        match=r"^program 2 reads x\[3, 0\], and x has 3 rows \(its shape is \[3, 5\]\) "
        r"\(line 9 of scale_kernel, x \(`x = tl.load\(x_at\)`\)\)$",
    ):
        twice(X, "load")


def test_reads_before_the_beginning_are_faults() -> None:
    with pytest.raises(
        KernelFault,
        match=r"^program 0 reads x\[-1, 4\], and the shape of x is \[3, 5\] ",
    ):
        twice(X, "before")


def test_writes_past_the_end_are_faults_and_write_nothing() -> None:
    around = torch.zeros(100)
    x = around[:15].view(3, 5)
    with pytest.raises(KernelFault, match=r"^program \d writes y"):
        twice(x, "store")
    assert torch.equal(around, torch.zeros(100))


def test_addresses_between_the_elements_are_faults() -> None:
    gaps = torch.zeros(6, 5)[::2]
    with pytest.raises(KernelFault, match="reads memory between the elements of x"):
        twice(gaps, strides=(5, 1))


def test_masked_lanes_without_other_are_nan() -> None:
    with watch_launches(twice, (X, "other"), {}) as record:
        y = twice(X, "other")
    assert y.isnan().all()
    assert record.figures()["unfilled"] == ["x"]


def test_two_programs_that_write_one_element_race() -> None:
    with pytest.raises(KernelFault, match="which another program has written"):
        twice(X, "race")


def test_a_program_may_not_read_what_another_has_written() -> None:
    with pytest.raises(
        KernelFault, match=r"which another program has read \(program 1\)"
    ):
        chain_kernel[(8,)](torch.zeros(8), 8)


def test_a_trace_goes_program_by_program() -> None:
    _, seen = trace(twice, torch.zeros(16, 3))
    assert [program for program, *_ in seen.steps] == [
        (i,) for i in range(16) for _ in range(2)
    ]


@pytest.mark.parametrize(
    "grid", [(1 << 40,), (1 << 20, 1 << 20), ((1 << 18) + 1, 1, 1)]
)
def test_a_grid_that_no_limit_allows_is_refused_at_once(grid: tuple[int, ...]) -> None:
    with pytest.raises(
        KernelFault, match=rf"^a launch of {math.prod(grid)} programs: at most 262144 "
    ):
        chain_kernel[grid](torch.zeros(8), 8)


def test_elements_are_counted_by_tensor() -> None:
    (result, seen) = trace(product, torch.eye(16), torch.ones(16, 16))
    assert torch.equal(result, torch.ones(16, 16))
    assert dict(seen.loads) == {"a": 256, "b": 256}
    assert dict(seen.stores) == {"c": 256}
    assert (seen.dots, seen.programs, seen.kernels, seen.largest) == (1, 1, 1, 256)
    assert np.array_equal(seen.reads["a"], np.ones((16, 16)))


def test_the_trace_reads_like_a_story() -> None:
    _, seen = trace(twice, X)
    assert str(seen) == (
        "program 0\n    reads x[0, 0…4]\n    writes y[0, 0…4]\n"
        "program 1\n    reads x[1, 0…4]\n    writes y[1, 0…4]\n"
        "program 2\n    reads x[2, 0…4]\n    writes y[2, 0…4]\n"
        "3 programs, 0 dots; elements moved: x 15, y 15"
    )


def test_one_tensor_under_two_names_keeps_them_apart() -> None:
    a = torch.eye(16)
    with install().record({}) as seen:
        product(a, a)
    assert dict(seen.loads) == {"a": 256, "b": 256}


def test_a_product_of_bfloat16_is_rounded_once() -> None:
    """1.0078125 is the bfloat16 after 1; 16 of its squares are 16.250977 in float32."""
    x = torch.full((16, 16), 1.0078125).bfloat16()
    assert torch.equal(product(x, x), torch.full((16, 16), 16 * 1.0078125**2))


def test_atomic_additions_may_meet() -> None:
    counts = torch.zeros(4)
    count_kernel[(6,)](counts)
    assert torch.equal(counts, torch.full((4,), 6.0))


def test_memory_that_no_program_writes_is_nan() -> None:
    with watch_launches(twice, (X, "half"), {}):
        y = twice(X, "half")
    assert torch.equal(y[:, :2], 2 * X[:, :2])
    assert y[:, 2:].isnan().all()


def test_copies_of_an_argument_count_as_the_argument() -> None:
    def on_a_copy(x: torch.Tensor) -> torch.Tensor:
        return twice(torch.nn.functional.pad(x.T.contiguous(), (0, 1)))[:, :-1].T

    with watch_launches(on_a_copy, (X,), {}) as record:
        y = on_a_copy(X)
    assert torch.equal(y, 2 * X)
    assert record.figures()["loads"] == {"x": 20}
    assert record.figures()["computed"] == []


@pytest.mark.parametrize(
    ("compute", "names"),
    [
        (lambda x: x * 2, ["mul"]),
        (lambda x: torch.softmax(x, -1), ["_softmax"]),
        (lambda x: torch.from_numpy(2 * x.numpy()), ["numpy"]),
        (
            lambda x: torch.tensor([[2 * v for v in row] for row in x.tolist()]),
            ["tolist"],
        ),
    ],
)
def test_what_the_wrapper_computes_is_told(
    compute: Callable[[torch.Tensor], torch.Tensor], names: list[str]
) -> None:
    with watch_launches(compute, (X,), {}) as record:
        compute(X)
    assert record.figures()["computed"] == names

"""The strict interpreter: every address, every lane, every order; and what a wrapper may do around a kernel."""

# ruff: noqa: N803  (kernels name sizes as the formulas do)
from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported

import numpy as np
import pytest
import torch

triton = pytest.importorskip("triton")
import triton.language as tl  # noqa: E402

from autograder.worker.launches import watch_launches  # noqa: E402
from autograder.worker.strict_triton import KernelFault, install, trace  # noqa: E402


@triton.jit
def scale_kernel(x_ptr, y_ptr, M, N, stride_m, stride_n, BLOCK: tl.constexpr, WRONG: tl.constexpr):
    """Twice x, one row a program; y is contiguous."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    x_at = x_ptr + row * stride_m + columns * stride_n
    if WRONG == "load":
        x = tl.load(x_at)
    elif WRONG == "other":
        x = tl.load(x_at, mask=columns < N)
        x = x + 0 * tl.sum(x, 0)
    elif WRONG == "before":
        x = tl.load(x_at - 1, mask=columns < N, other=0.0)
    else:
        x = tl.load(x_at, mask=columns < N, other=0.0)
    if WRONG == "store":
        tl.store(y_ptr + row * N + columns, 2 * x)
    elif WRONG == "race":
        tl.store(y_ptr + columns, 2 * x, mask=columns < N)
    elif WRONG == "half":
        tl.store(y_ptr + row * N + columns, 2 * x, mask=columns < N // 2)
    else:
        tl.store(y_ptr + row * N + columns, 2 * x, mask=columns < N)


def twice(x, wrong="", strides=None):
    y = torch.empty(x.shape, dtype=x.dtype)
    block = triton.next_power_of_2(x.shape[1])
    scale_kernel[(x.shape[0],)](x, y, *x.shape, *(strides or x.stride()), BLOCK=block, WRONG=wrong)
    return y


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, N: tl.constexpr):
    """c = a b for N × N, in one program."""
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    c = tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at), input_precision="ieee")
    tl.store(c_ptr + at, c)


def product(a, b):
    c = torch.empty(a.shape)
    product_kernel[(1,)](a, b, c, N=a.shape[0])
    return c


@triton.jit
def chain_kernel(x_ptr, N):
    """Program i reads what program i - 1 has written."""
    i = tl.program_id(0)
    tl.store(x_ptr + i, tl.load(x_ptr + i - 1, mask=i > 0, other=0.0) + 1)


@triton.jit
def count_kernel(x_ptr):
    tl.atomic_add(x_ptr + tl.arange(0, 4), tl.full([4], 1.0, tl.float32))


X = torch.arange(15.0).view(3, 5)


def test_a_right_kernel_is_right_with_any_strides():
    assert torch.equal(twice(X), 2 * X)
    assert torch.equal(twice(X.T), 2 * X.T)
    assert torch.equal(twice(X[::2, 1::2]), 2 * X[::2, 1::2])


def test_reads_past_the_end_name_program_tensor_and_row():
    with pytest.raises(KernelFault, match=r"^program 2 reads x\[3, 0\], and x has 3 rows \(its shape is \[3, 5\]\)$"):
        twice(X, "load")


def test_reads_before_the_beginning_are_faults():
    with pytest.raises(KernelFault, match=r"^program 0 reads x\[-1, 4\], and the shape of x is \[3, 5\]$"):
        twice(X, "before")


def test_writes_past_the_end_are_faults_and_write_nothing():
    around = torch.zeros(100)
    x = around[:15].view(3, 5)
    with pytest.raises(KernelFault, match=r"^program \d writes y"):
        twice(x, "store")
    assert torch.equal(around, torch.zeros(100))


def test_addresses_between_the_elements_are_faults():
    gaps = torch.zeros(6, 5)[::2]
    with pytest.raises(KernelFault, match="reads memory between the elements of x"):
        twice(gaps, strides=(5, 1))


def test_masked_lanes_without_other_are_nan():
    with watch_launches(twice, (X, "other"), {}) as record:
        y = twice(X, "other")
    assert y.isnan().all()
    assert record.figures()["unfilled"] == ["x"]


def test_two_programs_that_write_one_element_race():
    with pytest.raises(KernelFault, match="which another program has written"):
        twice(X, "race")


def test_a_program_may_not_read_what_another_has_written():
    with pytest.raises(KernelFault, match="which another program has written"):
        chain_kernel[(8,)](torch.zeros(8), 8)


def test_the_grid_runs_in_a_shuffled_order_that_repeats():
    def order():
        _, seen = trace(twice, torch.zeros(16, 3))
        return list(dict.fromkeys(program for program, *_ in seen.steps))

    first = order()
    assert sorted(first) == [(i,) for i in range(16)]
    assert first != sorted(first)
    assert order() == first


def test_elements_are_counted_by_tensor():
    (result, seen) = trace(product, torch.eye(16), torch.ones(16, 16))
    assert torch.equal(result, torch.ones(16, 16))
    assert dict(seen.loads) == {"a": 256, "b": 256}
    assert dict(seen.stores) == {"c": 256}
    assert (seen.dots, seen.programs, seen.kernels, seen.largest) == (1, 1, 1, 256)
    assert np.array_equal(seen.reads["a"], np.ones((16, 16)))


def test_the_trace_reads_like_a_story():
    _, seen = trace(twice, X)
    assert str(seen) == (
        "program 0\n    reads x[0, 0…4]\n    writes y[0, 0…4]\n"
        "program 1\n    reads x[1, 0…4]\n    writes y[1, 0…4]\n"
        "program 2\n    reads x[2, 0…4]\n    writes y[2, 0…4]\n"
        "3 programs, 0 dots; elements moved: x 15, y 15"
    )


def test_one_tensor_under_two_names_keeps_them_apart():
    a = torch.eye(16)
    with install().record({}) as seen:
        product(a, a)
    assert dict(seen.loads) == {"a": 256, "b": 256}


def test_bfloat16_products_are_refused():
    with pytest.raises(KernelFault, match="bfloat16 is wrong in the interpreter"):
        product(torch.eye(16).bfloat16(), torch.eye(16).bfloat16())


def test_atomic_additions_may_meet():
    counts = torch.zeros(4)
    count_kernel[(6,)](counts)
    assert torch.equal(counts, torch.full((4,), 6.0))


def test_memory_that_no_program_writes_is_nan():
    with watch_launches(twice, (X, "half"), {}):
        y = twice(X, "half")
    assert torch.equal(y[:, :2], 2 * X[:, :2])
    assert y[:, 2:].isnan().all()


def test_copies_of_an_argument_count_as_the_argument():
    def on_a_copy(x):
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
        (lambda x: torch.tensor([[2 * v for v in row] for row in x.tolist()]), ["tolist"]),
    ],
)
def test_what_the_wrapper_computes_is_told(compute, names):
    with watch_launches(compute, (X,), {}) as record:
        compute(X)
    assert record.figures()["computed"] == names

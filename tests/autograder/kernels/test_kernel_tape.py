"""Programs played back from the first one's tape do what Python does, to the bit, and fail where Python fails."""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported

import traceback

import pytest
import torch

triton = pytest.importorskip("triton")
import attention_kernels as attention  # noqa: E402
import row_kernels as rows  # noqa: E402
import triton.language as tl  # noqa: E402

from autograder.worker import kernel_tape  # noqa: E402
from autograder.worker.launches import watch_launches  # noqa: E402
from autograder.worker.strict_triton import KernelFault  # noqa: E402

X = torch.randn(13, 20, generator=torch.Generator().manual_seed(1))
HEADS = [torch.randn(1, 2, 70, 16, generator=torch.Generator().manual_seed(n)) for n in range(3)]


def launched(function, arguments):
    with watch_launches(function, arguments, {}) as record:
        return function(*arguments), record.figures()


@pytest.fixture
def played(monkeypatch):
    """How many programs were played to their end, of all that began."""
    programs = []
    play = kernel_tape.Recorder._play

    def counted(recorder, tape, stretch):
        programs.append(play(recorder, tape, stretch))
        return programs[-1]

    monkeypatch.setattr(kernel_tape.Recorder, "_play", counted)
    return programs


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (rows.bias_of_a_flat_matrix, (X, X[0])),
        (rows.softmax_persistent, (X,)),
        (rows.softmax_online, (X,)),
        (rows.softmax_kept_behind_a_barrier, (X,)),
        (rows.twice_by_descriptors, (X,)),
        (rows.sum_of_rows_under_a_lock, (X,)),
        (rows.running_sums, (X,)),
        (rows.transposed_on_a_grid_of_three_axes, (X,)),
        (rows.product_in_groups, (X, X.T)),
        (attention.by_pointers, (*HEADS, False)),
        (attention.by_pointers, (*HEADS, True)),
        (attention.by_descriptors, (*HEADS, True)),
    ],
)
def test_a_launch_is_the_same_with_and_without_a_tape(monkeypatch, function, arguments):
    result, figures = launched(function, arguments)
    monkeypatch.setattr(kernel_tape, "_MOST_STEPS", 0)
    plain, plain_figures = launched(function, arguments)
    assert torch.equal(result, plain)
    assert figures == plain_figures


@triton.jit
def parting_kernel(x_ptr, y_ptr, limit):
    row = tl.program_id(0)
    total = 0.0
    for at in range(0, row + 1):
        total += tl.load(x_ptr + at)
    if row % 2 == 1:
        total = -total
    if row < limit:
        tl.store(y_ptr + row, total)


def parted(count, limit):
    x, y = torch.arange(1.0, count + 1), torch.zeros(count)
    parting_kernel[(count,)](x[:4], y, limit)
    return y


def test_programs_that_go_other_ways_are_written_down_one_after_the_other(played):
    assert parted(4, 3).tolist() == [1, -3, 6, 0]
    assert played == [False] * 3  # each way is new


def test_programs_that_go_one_way_are_played(played):
    assert torch.equal(rows.transposed_on_a_grid_of_three_axes(X), X.T)
    assert sum(played) > len(played) / 2


def test_a_fault_of_a_played_program_comes_out_of_the_students_line():
    with pytest.raises(KernelFault, match=r"^program 4 reads x\[4\], and x has 4 rows") as caught:
        parted(5, 5)
    lines = [frame.line for frame in traceback.extract_tb(caught.value.__traceback__) if frame.name == "parting_kernel"]
    assert lines == ["total += tl.load(x_ptr + at)"]


@triton.jit
def far_kernel(x_ptr):
    at = tl.program_id(0) * 2 + tl.arange(0, 2)
    tl.store(x_ptr + at, 1.0)


def test_a_fault_on_a_way_that_is_known(played):
    with pytest.raises(KernelFault, match=r"^program \d writes x\[8\]") as caught:
        far_kernel[(5,)](torch.zeros(8))
    lines = [frame.line for frame in traceback.extract_tb(caught.value.__traceback__) if frame.name == "far_kernel"]
    assert lines == ["tl.store(x_ptr + at, 1.0)"]
    assert played
    assert not played[-1]

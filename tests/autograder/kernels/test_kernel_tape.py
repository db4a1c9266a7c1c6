"""Programs played back from the first one's tape do what Python does, to the bit, and fail where
Python fails.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest
import torch

pytest.importorskip("triton")
import attention_kernels as attention
import row_kernels as rows
from launched import HEADS, X, launched
from small_kernels import far_kernel, parted

from autograder.kernels import tape
from autograder.kernels.memory import KernelFault


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """How many programs were played to their end, of all that began."""
    programs = []
    play = tape.Recorder._play

    def counted(recorder: tape.Recorder, tape: Any, stretch: Any) -> bool:
        programs.append(play(recorder, tape, stretch))
        return programs[-1]

    monkeypatch.setattr(tape.Recorder, "_play", counted)
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
        (rows.product_in_groups, (X.repeat(3, 1), X.T)),
        (attention.by_pointers, (*HEADS, False)),
        (attention.by_pointers, (*HEADS, True)),
        (attention.by_descriptors, (*HEADS, True)),
    ],
)
def test_a_launch_is_the_same_with_and_without_a_tape(
    played: list[bool],
    monkeypatch: pytest.MonkeyPatch,
    function: Callable[..., torch.Tensor],
    arguments: tuple[Any, ...],
) -> None:
    result, figures = launched(function, arguments)
    assert played
    played.clear()
    monkeypatch.setattr(tape, "_MOST_STEPS", 0)
    plain, plain_figures = launched(function, arguments)
    assert not played
    assert torch.equal(result, plain)
    assert figures == plain_figures


def test_programs_that_go_other_ways_are_written_down_one_after_the_other(
    played: list[bool],
) -> None:
    assert parted(4, 3).tolist() == [1, -3, 6, 0]
    assert played == [False] * 3  # each way is new


def test_programs_that_go_one_way_are_played(played: list[bool]) -> None:
    assert torch.equal(rows.transposed_on_a_grid_of_three_axes(X), X.T)
    assert sum(played) > len(played) / 2


def test_a_fault_of_a_played_program_comes_out_of_the_students_line() -> None:
    with pytest.raises(KernelFault, match=r"^program 4 reads x\[4\], and x has 4 rows") as caught:
        parted(5, 5)
    lines = [
        frame.line
        for frame in traceback.extract_tb(caught.value.__traceback__)
        if frame.name == "parting_kernel"
    ]
    assert lines == ["total += tl.load(x_ptr + at)"]


def test_a_fault_on_a_way_that_is_known(played: list[bool]) -> None:
    with pytest.raises(KernelFault, match=r"^program \d writes x\[8\]") as caught:
        far_kernel[(5,)](torch.zeros(8))
    lines = [
        frame.line
        for frame in traceback.extract_tb(caught.value.__traceback__)
        if frame.name == "far_kernel"
    ]
    assert lines == ["tl.store(x_ptr + at, 1.0)"]
    assert played
    assert not played[-1]

"""What is returned is what torch and the kernels left in memory: nothing that a wrapper writes past
them counts.

The kernel here doubles its input. Each wrapper launches it, or half of it, and makes 3 x of its own
in another way.
"""

from __future__ import annotations

import ctypes
import json
import threading
from collections.abc import Callable

import numpy as np
import pytest
import torch

pytest.importorskip("triton")
import row_kernels as rows
from small_kernels import scale_kernel, twice

from autograder.basics.errors import StudentError
from autograder.kernels.faults import KernelFault
from autograder.sandbox.launch_replay import replay_call
from autograder.suite.calls import Call
from autograder.worker.launches import watch_launches

X = torch.arange(1.0, 81.0).reshape(4, 20)


def answered(function: Callable[[torch.Tensor], object], x: torch.Tensor = X) -> object:
    """What the trusted side takes for the answer: the tape crosses as JSON, and is played there."""
    own = x.clone()
    with watch_launches(function, (own,), {}, ["x"]) as record:
        result = function(own)
    call = Call("f", (x,), {}, result=result)
    tape = json.loads(json.dumps(record.tape.finish(result)))
    replay_call(call, tape, has_stand_ins=False)
    return call.result


def launch(x: torch.Tensor, y: torch.Tensor, wrong: str = "") -> None:
    scale_kernel[(x.shape[0],)](x, y, *x.shape, *x.stride(), BLOCK=32, WRONG=wrong)


def thrice(x: torch.Tensor) -> np.ndarray:
    return 3 * np.from_dlpack(x.detach())


def by_dlpack(x: torch.Tensor) -> torch.Tensor:
    y = twice(x)
    np.from_dlpack(y)[...] = thrice(x)
    return y


def by_a_pointer(x: torch.Tensor) -> torch.Tensor:
    y, right = twice(x), np.ascontiguousarray(thrice(x))
    ctypes.memmove(y.data_ptr(), right.ctypes.data, right.nbytes)
    return y


def by_a_view_of_its_memory(x: torch.Tensor) -> torch.Tensor:
    y = twice(x)
    view = np.ctypeslib.as_array(
        (ctypes.c_float * y.numel()).from_address(y.data_ptr())
    )
    view[:] = thrice(x).ravel()
    return y


def before_a_copy(x: torch.Tensor) -> torch.Tensor:
    y = twice(x)
    np.from_dlpack(y)[...] = thrice(x)
    return y.clone()


def before_a_launch_that_stores_half(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    np.from_dlpack(y)[...] = thrice(x)
    launch(x, y, "half")
    return y


def in_the_grid_of_a_launch_that_stores_half(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)

    def grid(_: object) -> tuple[int]:
        np.from_dlpack(y)[...] = thrice(x)
        return (x.shape[0],)

    scale_kernel[grid](x, y, *x.shape, *x.stride(), BLOCK=32, WRONG="half")
    return y


def in_what_the_kernel_loads(x: torch.Tensor) -> torch.Tensor:
    z = x.clone()
    np.from_dlpack(z)[...] = thrice(x) / 2
    return twice(z)


def in_a_thread(x: torch.Tensor) -> torch.Tensor:
    y = twice(x)
    thread = threading.Thread(target=lambda: y.copy_(3 * x))
    thread.start()
    thread.join()
    return y


WRITES = [
    by_dlpack,
    by_a_pointer,
    by_a_view_of_its_memory,
    before_a_copy,
    before_a_launch_that_stores_half,
    in_the_grid_of_a_launch_that_stores_half,
    in_what_the_kernel_loads,
    in_a_thread,
]


@pytest.mark.parametrize("wrapper", WRITES)
def test_memory_that_something_else_has_written_is_refused(
    wrapper: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    with pytest.raises(
        StudentError,
        match="Something other than torch and the kernels has written into",
    ):
        answered(wrapper)


def test_whoever_swallows_the_fault_has_it_in_the_end() -> None:
    def swallows(x: torch.Tensor) -> torch.Tensor:
        y = twice(x)
        np.from_dlpack(y)[...] = thrice(x)
        try:
            return y.clone()
        except KernelFault:
            return y

    with pytest.raises(StudentError, match="Something other than torch"):
        answered(swallows)


def from_numpy(x: torch.Tensor) -> torch.Tensor:
    twice(x)
    return torch.from_numpy(thrice(x))


def from_a_list(x: torch.Tensor) -> torch.Tensor:
    twice(x)
    return torch.tensor(thrice(x).tolist())


def copied_from_numpy(x: torch.Tensor) -> torch.Tensor:
    y = twice(x)
    y.copy_(torch.from_numpy(thrice(x)))
    return y


def by_a_storage(x: torch.Tensor) -> torch.Tensor:
    y = twice(x)
    y.untyped_storage().copy_(torch.from_numpy(thrice(x)).untyped_storage())
    return y


def number_by_number(x: torch.Tensor) -> torch.Tensor:
    y = twice(x)
    for row, values in enumerate(thrice(x).tolist()):
        for column, value in enumerate(values):
            y[row, column] = value
    return y


def added_number_by_number(x: torch.Tensor) -> torch.Tensor:
    y = twice(x)
    for row, values in enumerate(thrice(x).tolist()):
        for column, value in enumerate(values):
            y[row, column].zero_().add_(value)
    return y


def stacked_numbers(x: torch.Tensor) -> torch.Tensor:
    twice(x)
    return torch.stack(
        [
            torch.stack([torch.tensor(value) for value in row])
            for row in thrice(x).tolist()
        ]
    )


def full_of_numbers(x: torch.Tensor) -> torch.Tensor:
    twice(x)
    return torch.cat(
        [torch.full((1,), value) for value in thrice(x).ravel().tolist()]
    ).view(4, 20)


def in_another_tensors_place(x: torch.Tensor) -> torch.Tensor:
    y = twice(x)
    y.data = torch.from_numpy(thrice(x))
    return y


def set_to_another_storage(x: torch.Tensor) -> torch.Tensor:
    y = twice(x)
    y.set_(torch.from_numpy(thrice(x)))  # type: ignore[call-overload]  # torch's stub knows storages alone
    return y


def an_array(x: torch.Tensor) -> np.ndarray:
    twice(x)
    return thrice(x)


def made_in_a_thread(x: torch.Tensor) -> torch.Tensor:
    made: list[torch.Tensor] = []
    thread = threading.Thread(target=lambda: made.append(3 * x))
    thread.start()
    twice(x)
    thread.join()
    return made[0]


@pytest.mark.parametrize(
    "wrapper",
    [
        from_numpy,
        from_a_list,
        copied_from_numpy,
        number_by_number,
        added_number_by_number,
        stacked_numbers,
        full_of_numbers,
        in_another_tensors_place,
        an_array,
        made_in_a_thread,
    ],
)
def test_values_from_outside_are_no_answer(
    wrapper: Callable[[torch.Tensor], object],
) -> None:
    with pytest.raises(StudentError, match="What is returned"):
        answered(wrapper)


@pytest.mark.parametrize("wrapper", [by_a_storage, set_to_another_storage])
def test_what_the_trusted_side_cannot_make_again_is_named(
    wrapper: Callable[[torch.Tensor], object],
) -> None:
    with pytest.raises(
        StudentError, match=r"calls torch's set_, which cannot be made again"
    ):
        answered(wrapper)


def test_a_kernel_that_copies_what_numpy_computed_is_refused() -> None:
    with pytest.raises(
        StudentError, match="A kernel loads x, and its values came from numpy"
    ):
        answered(lambda x: twice(torch.from_numpy(thrice(x) / 2)))


def test_a_thread_that_writes_after_the_return_writes_into_nothing() -> None:
    kept: list[torch.Tensor] = []

    def keeps(x: torch.Tensor) -> torch.Tensor:
        kept.append(twice(x))
        return kept[0]

    result = answered(keeps)
    kept[0].fill_(7.0)
    assert isinstance(result, torch.Tensor)
    assert torch.equal(result, 2 * X)


# what is right stays right


def padded(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty(x.shape[0], 32)
    launch(torch.nn.functional.pad(x, (0, 12)), y)
    return y[:, :20].contiguous()


def into_the_right_half(x: torch.Tensor) -> torch.Tensor:
    y = torch.zeros(4, 40)
    scale_kernel[(4,)](
        x, y[:, 20:].contiguous(), *x.shape, *x.stride(), BLOCK=32, WRONG=""
    )
    y[:, 20:] = twice(x)
    return y[:, 20:]


def a_buffer_from_numpy(x: torch.Tensor) -> torch.Tensor:
    y = torch.from_numpy(np.zeros(x.shape, dtype=np.float32))
    launch(x, y)
    return y


def filled_by_rows(x: torch.Tensor) -> torch.Tensor:
    y = torch.full((4, 24), float("nan"))
    for row in range(4):
        y[row, 20:] = 0.0
    y[:, :20] = twice(x)
    return y[:, :20]


def transposed(x: torch.Tensor) -> torch.Tensor:
    return twice(x.T).T


def in_two_launches(x: torch.Tensor) -> torch.Tensor:
    y = torch.full_like(x, 0.5)
    launch(y, y.clone())
    launch(x, y, "half")
    launch(x, y)
    return y


@pytest.mark.parametrize(
    "wrapper",
    [
        twice,
        padded,
        into_the_right_half,
        a_buffer_from_numpy,
        filled_by_rows,
        transposed,
        in_two_launches,
    ],
)
def test_allocating_padding_and_copying_by_torch_is_as_before(
    wrapper: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    result = answered(wrapper)
    assert isinstance(result, torch.Tensor)
    assert torch.equal(result, 2 * X)


@pytest.mark.parametrize(
    "function",
    [
        rows.softmax_persistent,
        rows.softmax_with_heuristics_and_hints,
        rows.softmax_tuned_and_pruned,
        rows.softmax_online,
        rows.softmax_kept_in_the_output,
        rows.softmax_kept_behind_a_barrier,
        rows.twice_by_descriptors,
        rows.twice_by_descriptors_of_the_host,
        rows.sum_by_atomics,
        rows.sum_of_rows_under_a_lock,
        rows.running_sums,
        rows.transposed_on_a_grid_of_three_axes,
    ],
)
def test_kernels_as_people_write_them_answer_as_without(
    function: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    x = torch.randn(13, 20, generator=torch.Generator().manual_seed(1))
    result = answered(function, x)
    assert isinstance(result, torch.Tensor)
    assert torch.equal(result, function(x))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_answers_keep_dtype_and_layout(dtype: torch.dtype) -> None:
    result = answered(lambda x: twice(x).T[::2], X.to(dtype))
    assert isinstance(result, torch.Tensor)
    assert (result.dtype, result.stride()) == (dtype, (2, 20))
    assert torch.equal(result, (2 * X).T[::2].to(dtype))


def test_a_small_table_may_come_from_a_list() -> None:
    def by_a_table(x: torch.Tensor) -> torch.Tensor:
        return twice(torch.tensor([[1.0, 2.0, 3.0]]))

    result = answered(by_a_table)
    assert isinstance(result, torch.Tensor)
    assert result.tolist() == [[2.0, 4.0, 6.0]]


def test_what_the_wrapper_computes_by_torch_is_told_as_before() -> None:
    with watch_launches(lambda x: 3 * twice(x), (X,), {}) as record:
        result = 3 * twice(X)
    call = Call("f", (X,), {}, result=result)
    replay_call(call, record.tape.finish(result), has_stand_ins=False)
    assert torch.equal(call.result, 6 * X)
    assert record.figures()["computed"] == ["mul"]
    assert call.launch is not None
    assert call.launch.computed == ("mul",)

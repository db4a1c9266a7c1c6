"""Tapes of calls with kernels that a worker could send: what they may name, and how much."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from autograder.basics.errors import StudentCrashed, StudentError
from autograder.kernels.faults import KernelFault
from autograder.sandbox import launch_replay
from autograder.sandbox.launch_replay import (
    BadTape,
    LaunchReplay,
    _natural,
    replay_call,
)
from autograder.suite.calls import Call, Launch

VIEW = [0, "float32", [2], [1], 0]
"""The whole of a storage of eight bytes."""


def replay(*arguments: torch.Tensor, **parts: Any) -> LaunchReplay:
    tape = {
        "texts": [],
        "storages": [{"bytes": 8}],
        "steps": [],
        "result": [VIEW],
        **parts,
    }
    return LaunchReplay(tape, list(arguments))


def operation(
    name: str, overload: str, *args: Any, result: Any = VIEW, **keywords: Any
) -> Any:
    return ["torch", name, overload, list(args), keywords, [result]]


def test_a_storage_begins_with_zeros_or_with_an_argument() -> None:
    assert replay().results[0].tolist() == [0.0, 0.0]  # type: ignore[union-attr]
    storages = [{"bytes": 8, "argument": 1, "view": VIEW}]
    played = replay(torch.ones(1), torch.tensor([3.0, 4.0]), storages=storages)
    assert played.results[0].tolist() == [3.0, 4.0]  # type: ignore[union-attr]


def test_a_view_may_be_a_part_of_its_storage() -> None:
    storages = [{"bytes": 16, "argument": 0, "view": [0, "float32", [4], [1], 0]}]
    views = [[0, "float32", [2], [2], 1], [0, "float32", [2, 2], [1, 2], 0]]
    results = replay(torch.arange(4.0), storages=storages, result=views).results
    assert [tensor.tolist() for tensor in results if tensor is not None] == [
        [1.0, 3.0],
        [[0.0, 2.0], [1.0, 3.0]],
    ]


def test_bytes_that_make_no_whole_number_are_in_no_view() -> None:
    nothing = [0, "float32", [0], [1], 0]
    views = [[1, "float32", [2], [1], 0], nothing]
    results = replay(storages=[{"bytes": 0}, {"bytes": 9}], result=views).results
    assert [tensor.tolist() for tensor in results if tensor is not None] == [
        [0.0, 0.0],
        [],
    ]


@pytest.mark.parametrize(
    "view",
    [
        [1, "float32", [2], [1], 0],
        [-1, "float32", [2], [1], 0],
        [0, "object", [2], [1], 0],
        [0, "float32", [3], [1], 0],
        [0, "float32", [2], [1], 1],
        [0, "float32", [2], [-1], 1],
        [0, "float32", [2.0], [1], 0],
        [0, "float32", [True], [1], 0],
        [0, "float32", [2]],
        "view",
    ],
)
def test_a_view_of_what_is_not_there_is_no_tape(view: Any) -> None:
    with pytest.raises(BadTape):
        replay(result=[view])


@pytest.mark.parametrize(
    "parts",
    [
        {"texts": None},
        {"storages": [{"bytes": -1}]},
        {"storages": [{"bytes": 2**63}]},
        {"storages": [{"bytes": 8, "argument": 0, "view": VIEW}]},
        {"steps": [["leap"]]},
        {"steps": [operation("add", "Tensor", {"dtype": "object"}, 1)]},
        {
            "steps": [
                operation("add", "Tensor", {"tensor": [7, "float32", [2], [1], 0]}, 1)
            ]
        },
        {"steps": [operation("add", "NoOverload", {"tensor": VIEW}, 1)]},
        # a number is written as text, to the last bit
        {"steps": [operation("clamp", "default", {"tensor": VIEW}, 0.5, 1)]},
        {"texts": [], "storages": []},
    ],
)
def test_what_is_no_tape_is_called_so(parts: dict[str, Any]) -> None:
    with pytest.raises(BadTape):
        replay(**parts)


def test_memory_and_steps_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KernelFault, match=r"^the call uses more than 512 MiB$"):
        replay(storages=[{"bytes": 2**29 + 1}])
    monkeypatch.setattr(launch_replay, "_MOST_BYTES", 3 << 20)
    two = [{"bytes": 1 << 20}, {"bytes": 2 << 20}]
    assert len(replay(storages=two).results) == 1
    with pytest.raises(Exception, match=r"^the call uses more than 3 MiB$") as caught:
        replay(storages=[*two, {"bytes": 1}])
    assert type(caught.value).__name__ == "KernelFault"
    step = operation("relu", "default", {"tensor": VIEW})
    monkeypatch.setattr(launch_replay, "_MOST_STEPS", 3)
    replay(steps=[step] * 2)
    with pytest.raises(Exception, match=r"^the call makes more than 3 steps$"):
        replay(steps=[step] * 3)


@pytest.mark.parametrize(("steps", "is_played"), [(19_999, True), (20_000, False)])
def test_a_call_may_make_twenty_thousand_steps(steps: int, is_played: bool) -> None:
    allocation = ["torch", "empty", "memory_format", [], {}, []]
    if is_played:
        assert len(replay(steps=[allocation] * steps).results) == 1
    else:
        with pytest.raises(KernelFault, match=r"^the call makes more than 20000 steps"):
            replay(steps=[allocation] * steps)


def test_operations_of_torch_are_computed_again_and_named() -> None:
    """2 · 3 + 1, 2 · 4 + 1; an allocation does not compute."""
    storages = [{"bytes": 8, "argument": 0, "view": VIEW}]
    steps = [
        operation("mul", "Tensor", {"tensor": VIEW}, {"float": (2.0).hex()}),
        operation("add", "Tensor", {"tensor": VIEW}, 1),
        operation("add", "Tensor", {"tensor": VIEW}, 0),
    ]
    played = replay(torch.tensor([3.0, 4.0]), storages=storages, steps=steps)
    assert played.results[0].tolist() == [7.0, 9.0]  # type: ignore[union-attr]
    assert played.counts.computed == ["mul", "add"]
    reported = Launch(9, 9, 9, 9, {}, {}, (), ("exp", "mul"))
    assert played.launch_record(reported).computed == ("exp", "mul", "add")
    assert played.launch_record(None) == Launch(0, 0, 0, 0, {}, {}, (), ("mul", "add"))


def test_a_dtype_is_an_argument_like_others() -> None:
    """1.5 and 1.75 as whole numbers are 1 and 1, of which the sum is 2."""
    storages = [{"bytes": 8, "argument": 0, "view": VIEW}, {"bytes": 8}]
    whole = [1, "int64", [], [], 0]
    step = operation(
        "sum", "default", {"tensor": VIEW}, dtype={"dtype": "int64"}, result=whole
    )
    played = replay(
        torch.tensor([1.5, 1.75]), storages=storages, steps=[step], result=[whole]
    )
    assert played.results[0].tolist() == 2  # type: ignore[union-attr]


def test_an_operation_with_two_results_gives_both() -> None:
    """The largest of 3 and 4, and its place."""
    storages = [{"bytes": 8, "argument": 0, "view": VIEW}, {"bytes": 4}, {"bytes": 8}]
    largest, place = [1, "float32", [1], [1], 0], [2, "int64", [1], [1], 0]
    step = ["torch", "max", "dim", [{"tensor": VIEW}, 0, True], {}, [largest, place]]
    played = replay(
        torch.tensor([3.0, 4.0]),
        storages=storages,
        steps=[step],
        result=[largest, place],
    )
    assert [tensor.tolist() for tensor in played.results if tensor is not None] == [
        [4.0],
        [1],
    ]


def call(result: Any, *arguments: Any) -> Call:
    return Call("f", arguments, {}, result)


TAPE = {
    "texts": [],
    "storages": [{"bytes": 8, "argument": 0, "view": VIEW}],
    "steps": [],
    "result": [VIEW],
}


def test_the_replay_takes_the_place_of_the_workers_tensors_alone() -> None:
    x = torch.tensor([1.0, 2.0])
    answered = call((3, x + 1e-4, "text"), x)
    replay_call(answered, TAPE, has_stand_ins=False)
    number, tensor, text = answered.result
    assert (number, tensor.tolist(), text) == (3, [1.0, 2.0], "text")
    assert answered.launch == Launch(0, 0, 0, 0, {}, {}, (), ())


@pytest.mark.parametrize(
    "result",
    [
        torch.tensor([1.0, 2.5]),
        torch.tensor([1.0, 2.0], dtype=torch.float64),
        torch.tensor([[1.0, 2.0]]),
        (np.array([1.0, 2.0]), torch.tensor([1.0, 2.0])),
    ],
)
def test_another_result_than_the_replays_is_a_fault_of_the_kernel(result: Any) -> None:
    with pytest.raises(StudentError) as caught:
        replay_call(call(result, torch.tensor([1.0, 2.0])), TAPE, has_stand_ins=False)
    assert caught.value.type_name == "KernelFault"


def test_a_single_number_of_numpys_is_no_result_of_a_kernel() -> None:
    x = torch.tensor([1.0, 2.0])
    answered = call((np.array([5.0]), x), x)
    replay_call(answered, TAPE, has_stand_ins=False)
    assert answered.result[0].tolist() == [5.0]


def test_more_results_than_the_tape_has_are_a_crash() -> None:
    x = torch.tensor([1.0, 2.0])
    with pytest.raises(StudentCrashed, match="a record of its kernels that is none"):
        replay_call(call((x, x), x), TAPE, has_stand_ins=False)


def test_a_call_that_asked_stand_ins_keeps_its_result() -> None:
    x = torch.tensor([1.0, 2.0])
    for tape in ({"has_answers": True}, {"has_answers": True, **TAPE}):
        answered = call(x + 5, x)
        replay_call(answered, tape, has_stand_ins=True)
        assert answered.result.tolist() == [6.0, 7.0]
    with pytest.raises(StudentError):
        replay_call(call(x + 5, x), {"has_answers": True, **TAPE}, has_stand_ins=False)
    with pytest.raises(StudentError):
        replay_call(call(x + 5, x), {"has_answers": 1, **TAPE}, has_stand_ins=True)


def outside(numbers: list[float]) -> dict[str, Any]:
    """A storage of float32 whose numbers came from numpy or a list."""
    content = np.array(numbers, np.float32).tobytes()
    return {"bytes": len(content), "outside": content.hex(), "size": 4}


def whole(storage: int, size: int) -> list[Any]:
    return [storage, "float32", [size], [1], 0]


@pytest.mark.parametrize(
    ("bytes_", "size", "count"), [(8, 4, 2), (8, 0, 8), (2, 4, 1), (0, 4, 1)]
)
def test_what_came_from_outside_is_at_least_a_number(
    bytes_: int, size: int, count: int
) -> None:
    """A size of 0 is a lie: of bytes there are most."""
    entry = {"bytes": bytes_, "outside": None, "size": size}
    played = replay(storages=[{"bytes": 8}, entry])
    assert played._storages[1].from_outside == count


FROM_OUTSIDE = r"^What is returned got its values from numpy, a list or a thread"


@pytest.mark.parametrize("size", [1, 2, 64, 100])
def test_numbers_from_outside_of_torch_are_no_result(size: int) -> None:
    with pytest.raises(KernelFault, match=FROM_OUTSIDE):
        replay(storages=[outside([1.0] * size)], result=[whole(0, size)])


def test_a_number_from_outside_may_go_into_a_result_of_two() -> None:
    """[1, 2] + 5: the number counts once, and the sum has two numbers."""
    storages = [
        {"bytes": 8, "argument": 0, "view": whole(0, 2)},
        outside([5.0]),
        {"bytes": 8},
        {"bytes": 4},
    ]
    sides = {"tensor": whole(0, 2)}, {"tensor": whole(1, 1)}
    steps = [operation("add", "Tensor", *sides, result=whole(2, 2))]
    x = torch.tensor([1.0, 2.0])
    played = replay(x, storages=storages, steps=steps, result=[whole(2, 2)])
    assert played.results[0].tolist() == [6.0, 7.0]  # type: ignore[union-attr]
    # of a result of one number it is the whole
    first = {"tensor": whole(0, 1)}, {"tensor": whole(1, 1)}
    steps = [operation("add", "Tensor", *first, result=whole(3, 1))]
    with pytest.raises(KernelFault, match=FROM_OUTSIDE):
        replay(x, storages=storages, steps=steps, result=[whole(3, 1)])


@pytest.mark.parametrize(("count", "is_refused"), [(63, False), (64, True)])
def test_some_numbers_from_outside_may_be_in_a_large_result(
    count: int, is_refused: bool
) -> None:
    """100 numbers of the suite's, to the first of which `count` others are added in place."""
    storages = [
        {"bytes": 400, "argument": 0, "view": whole(0, 100)},
        outside([1.0] * count),
    ]
    added = [{"tensor": whole(0, count)}, {"tensor": whole(1, count)}]
    steps = [operation("add_", "Tensor", *added, result=whole(0, count))]
    if is_refused:
        with pytest.raises(KernelFault, match=FROM_OUTSIDE):
            replay(
                torch.zeros(100), storages=storages, steps=steps, result=[whole(0, 100)]
            )
        return
    played = replay(
        torch.zeros(100), storages=storages, steps=steps, result=[whole(0, 100)]
    )
    assert played.results[0].sum().item() == count  # type: ignore[union-attr]


@pytest.mark.parametrize(("count", "is_refused"), [(23, False), (24, True)])
def test_numbers_from_outside_add_up_in_what_is_written_twice(
    count: int, is_refused: bool
) -> None:
    """40 numbers are added in place, and then `count`: 64 in all are too many."""
    storages = [
        {"bytes": 400, "argument": 0, "view": whole(0, 100)},
        outside([1.0] * 40),
        outside([1.0] * count),
    ]
    steps = []
    for storage, size in ((1, 40), (2, count)):
        added = [{"tensor": whole(0, size)}, {"tensor": whole(storage, size)}]
        steps.append(operation("add_", "Tensor", *added, result=whole(0, size)))
    parts: dict[str, Any] = {"storages": storages, "steps": steps}
    if is_refused:
        with pytest.raises(KernelFault, match=FROM_OUTSIDE):
            replay(torch.zeros(100), result=[whole(0, 100)], **parts)
        return
    (result,) = replay(torch.zeros(100), result=[whole(0, 100)], **parts).results
    assert result is not None
    assert result.sum().item() == 63


@pytest.mark.parametrize("number", [0, 2**63 - 1])
def test_a_size_is_a_natural_number_of_63_bits(number: int) -> None:
    assert _natural(number) == number
    for other in (-1, 2**63, True, 1.0, "1"):
        with pytest.raises(BadTape, match="no size"):
            _natural(other)


def test_a_number_that_is_written_counts_as_one_from_outside() -> None:
    storages = [{"bytes": 8}, {"bytes": 4}]
    three = {"float": (3.0).hex()}
    pair = operation("full", "default", [2], three, result=whole(0, 2))
    played = replay(storages=storages, steps=[pair], result=[whole(0, 2)])
    assert played.results[0].tolist() == [3.0, 3.0]  # type: ignore[union-attr]
    single = operation("full", "default", [1], three, result=whole(1, 1))
    with pytest.raises(KernelFault, match=FROM_OUTSIDE):
        replay(storages=storages, steps=[single], result=[whole(1, 1)])
    # zeros are torch's own
    zeros = operation("zeros", "default", [1], result=whole(1, 1))
    played = replay(storages=storages, steps=[zeros], result=[whole(1, 1)])
    assert played.results[0].tolist() == [0.0]  # type: ignore[union-attr]
    assert played.counts.computed == []


def test_an_allocation_holds_rubbish() -> None:
    step = operation("empty", "memory_format", [2], result=whole(0, 2))
    (result,) = replay(steps=[step]).results
    assert result is not None
    assert not torch.equal(result, torch.zeros(2))


def test_other_operations_than_the_graders_are_refused_by_name() -> None:
    step = operation("x" * 50, "default", result=VIEW)
    with pytest.raises(
        KernelFault,
        match=f"^the wrapper calls torch's {'x' * 40}, which cannot be made again",
    ):
        replay(steps=[step])


@pytest.mark.parametrize(
    ("result", "replayed", "is_same"),
    [
        # a hundredth of the value, and a thousandth
        ([100.0, 0.0], [101.0, 0.0009], True),
        ([100.0, 0.0], [101.2, 0.0], False),
        ([100.0, 0.0], [100.0, 0.0011], False),
        ([float("nan"), 1.0], [float("nan"), 1.0], True),
        ([float("nan"), 1.0], [1.0, 1.0], False),
    ],
)
def test_a_result_may_differ_by_rounding(
    result: list[float], replayed: list[float], is_same: bool
) -> None:
    answered = call(torch.tensor(result), torch.tensor(replayed))
    if is_same:
        replay_call(answered, TAPE, has_stand_ins=False)
        assert str(answered.result.tolist()) == str(torch.tensor(replayed).tolist())
    else:
        with pytest.raises(StudentError, match="Something other than torch and the"):
            replay_call(answered, TAPE, has_stand_ins=False)


def test_whole_numbers_are_equal_or_others() -> None:
    view = [0, "int32", [2], [1], 0]
    tape = {
        "texts": [],
        "storages": [{"bytes": 8, "argument": 0, "view": view}],
        "steps": [],
        "result": [view],
    }
    numbers = torch.tensor([1000, 2], dtype=torch.int32)
    replay_call(call(numbers.clone(), numbers), tape, has_stand_ins=False)
    with pytest.raises(StudentError, match="Something other than torch and the"):
        replay_call(call(numbers + 1, numbers), tape, has_stand_ins=False)


def test_a_result_without_a_view_is_none_of_the_replays() -> None:
    x = torch.tensor([1.0, 2.0])
    tape = {**TAPE, "result": [None]}
    with pytest.raises(StudentError, match="Something other than torch and the"):
        replay_call(call(x, x), tape, has_stand_ins=False)


def test_what_launches_of_one_call_compute_is_bounded_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two launches of 3 elements each: the second has what the first has left of 5."""
    budgets: list[float] = []
    counts = SimpleNamespace(dots=1, largest=2, unfilled=["y"])
    memory = SimpleNamespace(loaded_storages=(), count_changed=lambda place: 0)

    def run_launch(launch: Any, memory_of_call: Any, *, budget: float) -> Any:
        budgets.append(budget)
        return SimpleNamespace(
            spent=3.0, counts=counts, loads={"x": 1}, stores={"y": 2}, memory=memory
        )

    monkeypatch.setattr(launch_replay, "_MOST_ELEMENTS", 5)
    monkeypatch.setattr(launch_replay, "run_launch", run_launch)
    monkeypatch.setattr(
        launch_replay,
        "launch_from_data",
        lambda text, data, storages: SimpleNamespace(programs=4),
    )
    step = ["launch", 0, [[0, 16]], {}]
    played = replay(texts=["kernel"], steps=[step, step])
    assert budgets == [5.0, 2.0]
    record = played.launch_record(None)
    assert (record.kernels, record.programs, record.dots) == (2, 8, 2)
    assert (record.largest, record.unfilled) == (2, ("y",))
    assert (record.loads, record.stores) == ({"x": 2}, {"y": 4})


def test_a_kernel_may_load_some_numbers_from_outside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """64 numbers may be sizes and scales; what a kernel stores is its own."""
    counts = SimpleNamespace(dots=0, largest=0, unfilled=[])
    changed = [0]
    memory = SimpleNamespace(
        loaded_storages=(0,),
        count_changed=lambda place: changed[place],
        name_of=lambda place: "the weights",
    )
    monkeypatch.setattr(
        launch_replay,
        "run_launch",
        lambda launch, memory_of_call, *, budget: SimpleNamespace(
            spent=0.0, counts=counts, loads={}, stores={}, memory=memory
        ),
    )
    monkeypatch.setattr(
        launch_replay,
        "launch_from_data",
        lambda text, data, storages: SimpleNamespace(programs=1),
    )
    parts: dict[str, Any] = {
        "texts": ["kernel"],
        "steps": [["launch", 0, [[0, 16]], {}]],
    }
    storages = [outside([1.0] * 64), {"bytes": 8}]
    result = [whole(1, 2)]
    played = replay(storages=storages, result=result, **parts)
    assert played._storages[0].from_outside == 64
    changed[0] = 60
    played = replay(storages=storages, result=result, **parts)
    assert played._storages[0].from_outside == 4
    changed[0] = 70
    played = replay(storages=storages, result=result, **parts)
    assert played._storages[0].from_outside == 0
    storages[0] = outside([1.0] * 65)
    with pytest.raises(KernelFault, match=r"^A kernel loads the weights, and its"):
        replay(storages=storages, result=result, **parts)


def test_a_launch_without_a_grid_is_no_tape() -> None:
    """The reason stays, unlike that of other errors in a tape."""
    launch = ["launch", 0, [[0, 4096]], "no grid"]
    with pytest.raises(BadTape, match=r"^no data of a launch$"):
        replay(texts=["def kernel"], steps=[launch])

"""Tapes of calls with kernels that a worker could send: what they may name, and how much."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from autograder.basics.errors import StudentCrashed, StudentError
from autograder.sandbox import launch_replay
from autograder.sandbox.launch_replay import BadTape, LaunchReplay, replay_call
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
    ],
)
def test_what_is_no_tape_is_called_so(parts: dict[str, Any]) -> None:
    with pytest.raises(BadTape):
        replay(**parts)


def test_memory_and_steps_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
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

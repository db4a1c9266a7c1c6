"""How far answers lie apart, and what an answer departs in: figures worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from autograder.basics.errors import StudentCrashed, StudentError, StudentTimeout
from autograder.sandbox.student import Handle
from autograder.sitting.agreement import (
    answers_agree,
    describe_form,
    distance,
    find_departures,
    gradients_agree,
    same_answer,
    tensors_moved_otherwise,
)
from autograder.suite.calls import Call, Cost, Launch
from autograder.wire.values import HandleReference


def call(result: Any = None, **fields: Any) -> Call:
    return Call(fields.pop("name", "f"), (), {}, result, **fields)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (1, 1, 0.0),
        (1, 2, math.inf),
        (1, True, math.inf),
        (None, None, 0.0),
        ("a", "b", math.inf),
        (1.0, 1.0, 0.0),
        (
            1.0,
            1.0 + 1e-6,
            1.0,
        ),  # a float has float64's rounding, relative to the larger
        ([1.0, 2], [1.0, 2], 0.0),
        ([1.0], [1.0, 2.0], math.inf),
        ([1.0], 1.0, math.inf),
        (1.0, (1.0,), math.inf),
        ({"a": 1.0}, 1.0, math.inf),
        ([], (), 0.0),
        ({"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 2.0 + 4e-6}, 2.0),
        ({"a": 1}, {"b": 1}, math.inf),
        ({}, {}, 0.0),
        (SimpleNamespace(a=1.0), SimpleNamespace(a=1.0), 0.0),
        (SimpleNamespace(a=1.0), SimpleNamespace(b=1.0), math.inf),
        (SimpleNamespace(a=2.0), SimpleNamespace(a=2.0 + 4e-6), 2.0),
        (SimpleNamespace(a=1.0), {"a": 1.0}, math.inf),
        (torch.ones(2), torch.ones(2) + 1e-4, 1.0),
        (torch.ones(2), torch.ones(3), math.inf),
    ],
)
def test_distances(first: Any, second: Any, expected: float) -> None:
    assert distance(first, second) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("student", "mistake", "key", "agree"),
    [
        # right answers agree within one rounding, 1e-6 of a float
        (1.0, 1.0 + 0.9e-6, 1.0, True),
        (1.0, 1.0 + 1.2e-6, 1.0, False),
        # far from the key (500,000 roundings): a second fault may move it by a hundred roundings
        (1.0, 1.0 + 99.8e-6, 2.0, True),
        (1.0, 1.0 + 100.2e-6, 2.0, False),
        # 1000 roundings from the key: a fiftieth of them is 20
        (1.0, 1.0 + 19e-6, 1.001, True),
        (1.0, 1.0 + 21e-6, 1.001, False),
        # 4 roundings from the key: one rounding still agrees
        (1.0, 1.0 + 0.9e-6, 1.0 + 4e-6, True),
        (1.0, 1.0 + 1.1e-6, 1.0 + 4e-6, False),
        # 1.2 roundings from the key: half of them
        (1.0, 1.0 + 0.55e-6, 1.0 + 1.2e-6, True),
        (1.0, 1.0 + 0.65e-6, 1.0 + 1.2e-6, False),
    ],
)
def test_a_mistake_may_differ_by_a_second_small_fault(
    student: float, mistake: float, key: float, agree: bool
) -> None:
    assert answers_agree(call(student), call(mistake), call(key)) is agree


def test_without_the_keys_answer_a_hundred_roundings_agree() -> None:
    for key in (None, call(fault=StudentError("ValueError", "no"))):
        assert answers_agree(call(1.0), call(1.0 + 90e-6), key)
        assert not answers_agree(call(1.0), call(1.0 + 110e-6), key)


def test_a_number_for_a_tensor_is_no_tensor_of_another_dtype() -> None:
    number, narrow, right = call(0.5), call(torch.tensor(0.5)), call(torch.tensor(0.5))
    assert not answers_agree(narrow, number, right)
    assert answers_agree(number, number, right)
    assert answers_agree(narrow, narrow, right)
    # where the answer key returns a number too, a tensor of one number is no other form
    assert answers_agree(narrow, number, number)


def test_another_function_or_a_fault_of_one_alone_does_not_agree() -> None:
    fault = StudentError("TypeError", "a is no b")
    assert not answers_agree(call(1.0, name="g"), call(1.0), None)
    assert not answers_agree(call(fault=fault), call(1.0), None)
    assert not answers_agree(call(1.0), call(fault=fault), None)
    assert answers_agree(call(fault=fault), call(fault=fault), None)


@pytest.mark.parametrize(
    ("first", "second", "agree"),
    [
        (StudentError("TypeError", "a"), StudentError("TypeError", "b"), True),
        (StudentError("TypeError", "a"), StudentError("ValueError", "a"), False),
        (
            StudentError("IndexError", "row 3 of 4"),
            StudentError("IndexError", "row 3 of 4"),
            True,
        ),
        (
            StudentError("IndexError", "row 3 of 4"),
            StudentError("IndexError", "row 12 of 9"),
            False,
        ),
        (
            StudentError("IndexError", "row 3"),
            StudentError("IndexError", "column 3"),
            False,
        ),
        (StudentTimeout("f"), StudentTimeout("g"), True),
        (StudentTimeout("f"), StudentCrashed("f"), False),
        (StudentError("TypeError", "a"), None, False),
    ],
)
def test_faults_agree_by_their_kind(first: Any, second: Any, agree: bool) -> None:
    departs = frozenset() if agree else frozenset({"fault"})
    assert find_departures(call(fault=first), call(fault=second)) == departs


def test_gradients_agree_within_one_rounding() -> None:
    ones = torch.ones(2)
    assert gradients_agree(call(gradients=[ones]), call(gradients=[ones + 0.9e-4]))
    assert not gradients_agree(call(gradients=[ones]), call(gradients=[ones + 1.2e-4]))


COST = Cost(10, 100, 6, 8, 4)
LAUNCH = Launch(1, 4, 2, 64, {"q": 100}, {"out": 10}, (), ())


def departures(student: dict[str, Any], key: dict[str, Any]) -> set[str]:
    return set(find_departures(call(1.0, **student), call(1.0, **key)))


def test_values_dtypes_changes_and_gradients_are_departures() -> None:
    ones = torch.ones(2)
    assert find_departures(call(ones), call(ones)) == frozenset()
    assert find_departures(call(ones), call(2 * ones)) == {"value"}
    assert find_departures(call(ones.double()), call(ones)) == {"dtype"}
    assert departures({"changed": ("x", "y")}, {"changed": ("y", "x")}) == set()
    assert departures({"changed": ("x",)}, {}) == {"changed"}
    assert departures({"gradients": [ones]}, {"gradients": [2 * ones]}) == {"gradient"}


def test_what_lies_one_rounding_apart_is_no_departure() -> None:
    million, neighbour = torch.tensor([1e6]).double(), torch.tensor([1e6 - 1]).double()
    assert distance(million, neighbour) == 1.0
    assert find_departures(call(million), call(neighbour)) == frozenset()
    gradients = {"gradients": [million]}, {"gradients": [neighbour]}
    assert departures(*gradients) == set()
    assert gradients_agree(call(**gradients[0]), call(**gradients[1]))
    assert same_answer(call(million, **gradients[0]), call(neighbour, **gradients[1]))


@pytest.mark.parametrize("figure", ["operations", "flops", "largest", "peak", "moved"])
def test_half_as_much_again_is_no_departure_and_more_is(figure: str) -> None:
    allowed = getattr(COST, figure) * 3 // 2
    for number, expected in ((allowed, set()), (allowed + 1, {f"cost of {figure}"})):
        cost = replace(COST, **{figure: number})
        assert departures({"cost": cost}, {"cost": COST}) == expected
    assert departures({"cost": cost}, {}) == departures({}, {"cost": COST}) == set()


def test_lines_are_compared_where_both_were_counted() -> None:
    assert departures({"lines": 15}, {"lines": 10}) == set()
    assert departures({"lines": 16}, {"lines": 10}) == {"cost of lines"}
    assert departures({"lines": 16}, {}) == departures({}, {"lines": 10}) == set()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, set()),
        ({"computed": ("softmax",)}, {"cost of torch"}),
        ({"unfilled": ("k",)}, {"cost of unfilled"}),
        ({"dots": 0}, {"cost of dots"}),
        ({"dots": 9}, set()),
        ({"largest": 96}, set()),
        ({"largest": 97}, {"cost of largest"}),
        ({"loads": {"q": 75, "k": 75}}, set()),
        ({"loads": {"q": 75, "k": 76}}, {"cost of loads"}),
        ({"loads": {"q": 67}}, set()),
        ({"loads": {"q": 66}}, {"cost of loads"}),
        ({"stores": {"out": 16}}, {"cost of stores"}),
    ],
)
def test_kernels_depart_in_their_counts(
    fields: dict[str, Any], expected: set[str]
) -> None:
    assert (
        departures({"launch": replace(LAUNCH, **fields)}, {"launch": LAUNCH})
        == expected
    )


def test_kernels_are_compared_by_the_tensors_that_they_move() -> None:
    """Half as many numbers again are no departure."""
    key = call(launch=replace(LAUNCH, loads={"q": 50, "k": 50}))
    for loads, names in (
        ({"q": 100, "k": 75}, {"q"}),
        ({"q": 50, "k": 33}, {"k"}),
        ({"q": 50, "k": 50, "mine": 7}, set()),
        ({}, {"q", "k"}),
    ):
        launch = replace(LAUNCH, loads=loads)
        assert tensors_moved_otherwise(call(launch=launch), key) == names
    nothing = replace(LAUNCH, loads={"q": 50, "k": 50}, stores={})
    assert tensors_moved_otherwise(call(launch=nothing), key) == {"out"}
    assert tensors_moved_otherwise(call(), key) == set()


def test_what_the_key_does_too_is_no_departure() -> None:
    launch = replace(LAUNCH, computed=("exp",), unfilled=("k",), dots=0)
    assert departures({"launch": launch}, {"launch": launch}) == set()
    assert (
        departures({"launch": launch}, {})
        == departures({}, {"launch": launch})
        == set()
    )


def test_two_runs_are_not_compared_where_one_has_no_answer() -> None:
    assert same_answer(call(1.0), call(1.0, was_dropped=True)) is None
    assert same_answer(call(fault=StudentTimeout("f")), call(1.0)) is None
    assert same_answer(call(1.0), call(1.0)) is True


def test_two_runs_differ_by_value_dtype_change_error_or_gradient() -> None:
    fault = StudentError("KeyError", "an object at 0x7f3a5c001d30")
    elsewhere = StudentError("KeyError", "an object at 0x7f3a5c00ffff")
    ones = torch.ones(2)
    assert same_answer(call(fault=fault), call(fault=elsewhere)) is True
    assert same_answer(call(fault=fault), call(1.0)) is False
    assert same_answer(call(ones), call(ones + 0.9e-4)) is True
    assert same_answer(call(ones), call(ones + 1.2e-4)) is False
    assert same_answer(call(ones), call(ones.double())) is False
    assert same_answer(call(1.0), call(1.0, changed=("x",))) is False
    assert (
        same_answer(call(1.0, gradients=[ones]), call(1.0, gradients=[2 * ones]))
        is False
    )
    # the run that ended early asked for no gradient
    assert same_answer(call(1.0, gradients=[ones]), call(1.0)) is True


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (torch.zeros(2, 3), ("Tensor", (2, 3), "torch.float32")),
        (np.zeros(2, dtype=np.int64), ("ndarray", (2,), "int64")),
        ([1.5, 2.5], ("list", 2, "float")),
        ((), ("tuple", 0, None)),
        ({"b": 1, "a": 2}, ("dict", ("a", "b"))),
        ("text", "str"),
    ],
)
def test_the_form_of_an_answer_has_no_numbers(value: Any, form: Any) -> None:
    assert describe_form(value) == form


def test_an_object_of_the_workers_is_what_is_stored_of_it() -> None:
    """The name of its class: a run on disk and one that was made now are alike."""
    held: Any = object.__new__(Handle)
    held.reference = HandleReference(3, "Cache")
    assert distance(held, "Cache") == distance("Cache", held) == 0.0
    assert distance(held, "Store") == math.inf
    assert describe_form(held) == describe_form("Cache") == "str"
    assert describe_form([held, 1]) == ("list", 2, "str")

"""Functions that end in an error for float64 alone, on answers worked out by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch

from autograder.basics.errors import StudentError
from autograder.course import Limits
from autograder.diagnosis.asking import Asker
from autograder.diagnosis.default_dtype import find_default_dtype
from autograder.sitting.sitting import TestRun
from autograder.sitting.verdict import Verdict
from autograder.suite.calls import Call
from autograder.suite.sight import Sight, Unseen

X = torch.tensor([[1.0, 2.0], [3.0, 5.0]]).double()
Function = Callable[..., Any]


class Start(NamedTuple):
    value: torch.Tensor


def key(x: torch.Tensor, start: Any = None) -> torch.Tensor:
    """The sums of the rows so far, from a start."""
    begin = 0.0 if start is None else start.value
    return x.cumsum(-2) + begin


def starts_in_the_default_dtype(x: torch.Tensor, start: Any = None) -> torch.Tensor:
    total = torch.zeros(x.shape[-1])
    rows = []
    for row in x:
        # as a product of two dtypes, which torch refuses
        total = torch.eye(len(total)) @ row + total
        rows.append(total)
    return torch.stack(rows) + (0.0 if start is None else start.value)


def forgets_the_sum(x: torch.Tensor, start: Any = None) -> torch.Tensor:
    return x @ torch.eye(x.shape[-1])


def ends_in_an_error_always(x: torch.Tensor, start: Any = None) -> torch.Tensor:
    raise NotImplementedError


def error_sight(student: Function, **arguments: Any) -> Sight:
    """A call that has ended in an error, and can be made again."""

    def ask_again(_: str, changes: Mapping[str, Any]) -> Sight:
        changed = {**arguments, **changes}
        try:
            answer = student(**changed)
        except Exception:
            raise Unseen("the function raises an error") from None
        return Sight(changed, answer, key(**changed), ask_again)

    return Sight(arguments, None, key(**arguments), ask_again)


def test_a_function_that_works_in_float32_alone_has_one_fault() -> None:
    errors = {
        "first": error_sight(starts_in_the_default_dtype, x=X),
        "second": error_sight(starts_in_the_default_dtype, x=3 * X),
    }
    evidence = find_default_dtype(errors, unexplained=3)
    assert evidence is not None
    assert evidence.tests == {"first", "second"}
    assert evidence.is_repair
    assert "float32" in evidence.text


def test_tensors_inside_of_an_argument_are_float32_too() -> None:
    start = SimpleNamespace(value=torch.tensor([1.0, 10.0]).double(), name="s")
    sight = error_sight(starts_in_the_default_dtype, x=X.float(), start=start)
    evidence = find_default_dtype({"first": sight}, unexplained=1)
    assert evidence is not None
    assert start.value.dtype == torch.float64


def test_a_named_tuple_keeps_its_names() -> None:
    start = Start(torch.tensor([1.0, 10.0]).double())
    sight = error_sight(starts_in_the_default_dtype, x=X, start=start)
    assert find_default_dtype({"first": sight}, unexplained=1) is not None


def test_a_function_that_is_wrong_in_float32_too_is_not_repaired() -> None:
    errors = {
        "first": error_sight(starts_in_the_default_dtype, x=X),
        "second": error_sight(forgets_the_sum, x=X),
    }
    assert find_default_dtype(errors, unexplained=2) is None


def test_an_error_with_another_cause_costs_one_further_call() -> None:
    asked = []

    def counted(**arguments: Any) -> Any:
        asked.append(arguments)
        raise NotImplementedError

    errors = {name: error_sight(counted, x=X) for name in ("first", "second", "third")}
    assert find_default_dtype(errors, unexplained=3) is None
    assert len(asked) == 1


def test_calls_without_float64_are_not_made_again() -> None:
    sight = error_sight(ends_in_an_error_always, x=X.float())
    assert find_default_dtype({"first": sight}, unexplained=1) is None
    assert find_default_dtype({}, unexplained=2) is None


def test_fewer_than_half_of_the_failed_tests_show_nothing() -> None:
    errors = {"first": error_sight(starts_in_the_default_dtype, x=X)}
    assert find_default_dtype(errors, unexplained=2) is not None
    assert find_default_dtype(errors, unexplained=3) is None


def run_of(*calls: Call) -> TestRun:
    return TestRun("t", Verdict("failed"), calls)


def test_the_call_that_an_error_has_ended_is_the_one_that_is_asked() -> None:
    error = StudentError("RuntimeError", "expected m1 and m2 to have the same dtype")
    right = Call("f", (X,), {}, result=key(X))
    ended = Call("f", (2 * X,), {}, fault=error)
    answered = Call("f", (2 * X,), {}, result=key(2 * X))
    refused = Call("f", (2 * X,), {}, fault=StudentError("ValueError", "two"))
    asker = Asker(None, {"f": key}, Limits())
    runs = {"t": run_of(right, ended), "u": run_of(ended)}
    key_runs = {"t": run_of(right, answered), "u": run_of(refused)}
    sights = asker.error_sights(runs, key_runs)
    assert list(sights) == ["t"]
    assert torch.equal(sights["t"].arguments["x"], 2 * X)
    assert sights["t"].answer is None

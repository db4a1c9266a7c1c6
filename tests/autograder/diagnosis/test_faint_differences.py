"""What is said of calls that give the same: costs, and what an exception names."""

from __future__ import annotations

import pytest

from autograder.basics.errors import StudentError
from autograder.diagnosis.faint_differences import describe_cost, describe_missing_names
from autograder.suite.calls import Call, Cost


def refused(text: str, type_name: str = "ValueError") -> Call:
    return Call("f", (), {}, fault=StudentError(type_name, text))


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        ("a negative number", "-1, 3"),
        ("3 were asked for", "-1"),
        ("got -1 of 3", ""),
    ],
)
def test_the_numbers_that_an_exception_lacks(text: str, lacks: str) -> None:
    said = describe_missing_names(refused(text), refused("-1 is below 3"))
    expected = f"raises ValueError, as it must; the message lacks {lacks}."
    assert said == (expected if lacks else "")


def test_a_name_with_dots_and_another_type() -> None:
    key_call = refused("h.0.attn.bias is missing in layer")
    assert "lacks h.0.attn.bias." in describe_missing_names(refused("?"), key_call)
    assert describe_missing_names(refused("?", "KeyError"), key_call) == ""
    assert describe_missing_names(Call("f", (), {}, result=1), key_call) == ""


def test_the_cost_that_is_most_above_the_answer_keys() -> None:
    """30 instead of 20 FLOPs are half as much again, 11 instead of 10 operations a tenth."""
    key_call = Call("f", (), {}, cost=Cost(10, 20, 5, 5, 5))
    costly = Call("f", (), {}, cost=Cost(11, 30, 5, 5, 5))
    said = describe_cost(costly, key_call)
    assert said == "has the right value; it multiplies more than it needs."
    assert describe_cost(key_call, key_call) == ""
    assert describe_cost(Call("f", (), {}), key_call) == ""

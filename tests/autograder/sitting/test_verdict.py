"""What a student reads about a failed test says what happened, and who did it."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from autograder.basics.errors import StudentError
from autograder.sitting.verdict import judge
from autograder.suite.calls import Call, CallLog
from autograder.suite.collection import SuiteTest

TEST = SuiteTest("test_it", 1.0, "Change the tokens instead of cutting them off.")


def message(error: StudentError, *arguments: object) -> str:
    return judge(error, CallLog({}, [Call("f", arguments, {}, fault=error)]), TEST).text


def test_an_error_of_a_function_that_the_test_passed_is_not_told_as_the_students() -> None:
    error = StudentError("FunctionRaised", "IndexError: index 2 is out of bounds")
    assert message(error, 3) == (
        "`f(3)` called the function that it was given, and that one raised IndexError: index 2 is "
        "out of bounds\nChange the tokens instead of cutting them off."
    )
    assert message(StudentError("KeyError", "'x'"), 3).startswith("`f(3)` raised KeyError: 'x'\n")


def test_a_configuration_is_shown_as_what_it_holds() -> None:
    config = SimpleNamespace(d_model=6, num_heads=2)
    shown = message(StudentError("KeyError", "'x'"), torch.zeros(2, 3).double(), config)
    assert shown.startswith("`f(tensor[2, 3], {'d_model': 6, 'num_heads': 2})` raised KeyError")

"""What a student reads about a failed test says what happened, and who did it."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from autograder.basics.errors import StudentError
from autograder.sitting.verdict import Verdict, explain_unfit, judge
from autograder.suite.calls import Call, CallLog
from autograder.suite.collection import SuiteTest

TEST = SuiteTest("test_it", 1.0, "Change the tokens instead of cutting them off.")


def message(error: StudentError, *arguments: object) -> str:
    return judge(error, CallLog({}, [Call("f", arguments, {}, fault=error)]), TEST).text


def test_an_error_of_a_function_that_the_test_passed_is_not_told_as_the_students() -> (
    None
):
    error = StudentError("FunctionRaised", "IndexError: index 2 is out of bounds")
    assert message(error, 3) == (
        "`f(3)` called the function that it was given, and that one raised IndexError: index 2 is "
        "out of bounds\nChange the tokens instead of cutting them off."
    )
    assert message(StudentError("KeyError", "'x'"), 3).startswith(
        "`f(3)` raised KeyError: 'x'\n"
    )


def test_a_configuration_is_shown_as_what_it_holds() -> None:
    config = SimpleNamespace(d_model=6, num_heads=2)
    shown = message(StudentError("KeyError", "'x'"), torch.zeros(2, 3).double(), config)
    assert shown.startswith(
        "`f(tensor[2, 3], {'d_model': 6, 'num_heads': 2})` raised KeyError"
    )


def test_a_text_has_at_most_1500_characters() -> None:
    assert Verdict("failed", "a" * 1500).text == "a" * 1500
    assert Verdict("failed", "a" * 1501).text == "a" * 1499 + "…"
    # message, line break and hint together
    assert Verdict("failed", "a" * 1490, "b" * 10).text == f"{'a' * 1490}\n{'b' * 8}…"


def unfit(result: object, key_result: object, **fields: object) -> str:
    """The message about a right-looking answer that a test could not work with."""
    call, key_call = Call("f", (3,), {}, result), Call("f", (3,), {}, key_result)
    for name, value in fields.items():
        setattr(call, name, value)
    verdict = Verdict("error", "AttributeError: no attribute 'shape'", "Look.")
    explained = explain_unfit(verdict, CallLog({}, [call]), [key_call])
    assert (explained.outcome, explained.hint) == ("error", "Look.")
    return explained.text


def test_an_answer_of_another_kind_is_named_with_the_kind() -> None:
    assert "`f(3)` " in unfit([1.0], torch.ones(1))
    assert not unfit([1.0], torch.ones(1)).startswith("What ")
    assert unfit([1.0, "a"], [1.0, torch.ones(1)]).startswith("What `f(3)` gives [1]: ")


def test_an_answer_of_the_right_kind_is_said_to_be() -> None:
    right = (
        "What `f(3)` gives is of the right kind, but the check cannot work with it: "
        "AttributeError: no attribute 'shape'\nLook."
    )
    assert unfit(torch.ones(1), torch.ones(1)) == right
    for fields in ({"of_suite": True}, {"was_dropped": True}, {"name": "g"}):
        assert "right kind" in unfit([1.0], torch.ones(1), **fields)
    assert "right kind" in unfit(
        [1.0], torch.ones(1), fault=StudentError("KeyError", "x")
    )


def test_after_a_call_that_the_key_did_not_make_nothing_is_compared() -> None:
    calls = [Call("g", (), {}, [1.0]), Call("f", (), {}, [1.0])]
    key_calls = [Call("f", (), {}, torch.ones(1)), Call("f", (), {}, torch.ones(1))]
    verdict = Verdict("error", "TypeError")
    assert "right kind" in explain_unfit(verdict, CallLog({}, calls), key_calls).text

"""What a question and its example say in plain text."""

from __future__ import annotations

import dataclasses

from stored_results import OVER_QUERIES, outcome, question, result_of

from autograder.outputs.outcome_words import example_text, outcome_line, question_text
from autograder.records.model import SmallExample


def test_a_test_is_one_line() -> None:
    assert (
        outcome_line(outcome("test_rows_sum", 2.0, 2.0))
        == "✓ rows sum (2 of 2): passed"
    )
    assert outcome_line(outcome("test_rows_sum", 0.0, 2.0)).startswith(
        "✗ rows sum (0 of 2): "
    )


def test_a_question_without_a_named_mistake_tells_its_evidence() -> None:
    wrong = question("f", outcome("test_a", 0.0, 2.0, message="first\nsecond"))
    with_evidence = dataclasses.replace(
        wrong, evidence="The answers are\nthose of ones."
    )
    named = dataclasses.replace(with_evidence, diagnosis=OVER_QUERIES)
    result = result_of("ada", wrong, cells=[], isolation="strict", suite="s")
    tests = f"{outcome_line(wrong.tests[0])}\n    first\n    second"
    assert question_text(wrong, result) == tests
    assert (
        question_text(with_evidence, result)
        == f"The answers are those of ones.\n\n{tests}"
    )
    assert question_text(named, result).startswith(
        "Look here first: Each row should sum to 1"
    )
    assert "The answers are" not in question_text(named, result)


def test_an_example_shows_the_call_and_both_answers() -> None:
    example = SmallExample("f(1,\n  2)", yours="3\n4", expected="5", note="")
    assert (
        example_text(example) == "Try this:\n    f(1,\n      2)\nyours: 3 4\nright: 5"
    )
    noted = dataclasses.replace(example, note="by\na factor")
    assert example_text(noted).splitlines()[-1] == "by a factor"
    refused = dataclasses.replace(example, yours="", note="should raise")
    assert example_text(refused) == "f(1,\n  2) should raise"

"""Comparisons that allow less than the default, and what a question's text has to say of them."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from autograder.intake.released_notebook import Release, ReleaseCell
from autograder.proof.tolerances import question_text, unstated_tolerances
from autograder.proof.trials import Trial, TrialOutcome, TrialTest
from autograder.suite import assert_close, assert_same_gradients
from autograder.suite.calls import current_log, start_log

TEXT = "## Half\n\nTake the half."
CELL = 'def half(x):\n    """Half of x."""\n    raise NotImplementedError'


def release(text: str = TEXT, cell: str = CELL) -> Release:
    """A question that has text and a given cell above it, and another's check before that."""
    return Release(
        "a1",
        (
            ReleaseCell(
                "text_1",
                "text",
                "text_1",
                "All numbers are right to 1e-15.",
                "markdown",
            ),
            ReleaseCell("check_other", "check", "other", "# within 1e-15", "code"),
            ReleaseCell("text_2", "text", "text_2", text, "markdown"),
            ReleaseCell(
                "given_tool", "given", "tool", "# exactly, within 1e-15", "code"
            ),
            ReleaseCell("half", "question", "half", cell, "code"),
        ),
    )


def tried(tolerance: float | None) -> list[TrialOutcome]:
    return [
        TrialOutcome(
            Trial("key", "half", "key"),
            (TrialTest("test_a", "passed", "", (0.0,), 0.0, tolerance),),
        )
    ]


@pytest.mark.parametrize(
    ("expected", "settings", "allowed"),
    [
        ([1.0], {}, None),
        ([1.0], {"atol": 1e-5}, None),
        ([1.0], {"atol": 1e-6}, 1e-6 + 2e-6),
        ([0.0, 1.0], {"atol": 1e-6}, 1e-6),
        ([1.0], {"atol": 1e-12, "rtol": 1e-12}, 2e-12),
        ([0.0], {"atol": 0.0}, 0.0),
        ([1.0], {"atol": 0.0, "rtol": 1e-3}, None),  # wide, since the number is large
        ([1e-4], {"atol": 0.0, "rtol": 1e-3}, 1e-7),
        ([1.0], {"atol": 1e-4, "rtol": 0.0}, None),
        ([math.inf, math.nan], {"atol": 0.0, "rtol": 0.0}, None),
    ],
)
def test_what_a_comparison_allows_is_noted_where_it_is_less_than_by_default(
    expected: list[float], settings: dict[str, Any], allowed: float | None
) -> None:
    start_log({})
    value = torch.tensor(expected, dtype=torch.float64)
    assert_close(value.clone(), value, **settings)
    assert current_log().tolerance == (
        None if allowed is None else pytest.approx(allowed, rel=1e-9)
    )


def test_the_closest_comparison_of_a_test_counts() -> None:
    start_log({})
    for atol in (1e-6, 1e-9, 1e-7):
        assert_close(torch.zeros(1), torch.zeros(1), atol=atol)
    assert current_log().tolerance == pytest.approx(1e-9)


def test_gradients_count_too() -> None:
    start_log({})
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    assert_same_gradients(lambda x: 3 * x, lambda x: 3 * x, x, tolerance=0.0)
    assert current_log().tolerance == 0.0


@pytest.mark.parametrize(
    ("tolerance", "text"),
    [
        (None, ""),
        (1e-9, "The sum is right within 1e-9."),
        (1e-8, "The sum is right within 1e-9."),
        (1e-9, r"They agree to $10^{-9}$."),
        (2e-9, r"They agree to 10^{-9}."),
        (0.0, "Forbidden keys get exactly 0."),
    ],
)
def test_what_the_text_tells_may_be_asked(tolerance: float | None, text: str) -> None:
    for told in (
        release(f"{TEXT}\n{text}"),
        release(cell=CELL.replace("Half of x.", f"Half of x. {text}")),
    ):
        assert list(unstated_tolerances(told, tried(tolerance))) == []


@pytest.mark.parametrize(
    ("tolerance", "text"),
    [
        (1e-12, ""),
        (1e-12, "The sum is right within 1e-9."),
        (1e-9, "eps=1e-9 stands in the root."),
        (1e-9, "It is exactly the half."),
        (0.0, "The exact half, within 1e-15."),
    ],
)
def test_what_no_text_tells_is_named(tolerance: float, text: str) -> None:
    (problem,) = unstated_tolerances(release(f"{TEXT}\n{text}"), tried(tolerance))
    assert problem == (
        f"half: test_a allows {tolerance:.1g}, less than by default, and the question's text "
        "does not say so: write "
        f"'within {tolerance:.1g}' there ('exactly' for 0), or leave out atol and rtol"
    )


def test_the_text_of_a_question_is_its_cell_and_what_stands_above_it() -> None:
    assert question_text(release(), "half") == f"{TEXT}\n{CELL}"

"""The visible check says what differs, and refuses nothing that a suite accepts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from autograder.authoring.companions import carried_text
from autograder.authoring.source_notebook import imported_libraries
from autograder.grading.extras import EXTRAS
from autograder.student_tools.expect import expect


@pytest.mark.parametrize(
    ("actual", "expected", "problem"),
    [
        (
            torch.tensor([1, 2]),
            torch.tensor([1.0, 2.0]),
            "their dtype should be torch.float32, not torch.int64",
        ),
        (
            torch.ones(2).double(),
            torch.ones(2),
            "should be torch.float32, not torch.float64",
        ),
        (
            torch.ones(2),
            torch.ones(2).bool(),
            "should be torch.bool, not torch.float32",
        ),
        (
            torch.tensor([[1.0, 0.0], [0.25, 1.0]]),
            torch.tensor([[1.0, 0.0], [0.5, 2.0]]),
            r"2 of 4 elements differ, first at \[1, 0\]: yours is 0\.25, expected 0\.5\.",
        ),
        (
            torch.tensor(1e-9),
            torch.tensor(0.5),
            r"It differs: yours is 1e-09, expected 0\.5",
        ),
        (
            torch.ones(2, 1),
            torch.ones(2),
            r"The shape should be \[2\], and is \[2, 1\]",
        ),
        ([1.0], torch.ones(1), r"should be a tensor of shape \[1\], and is \[1\.0\]"),
        (torch.tensor(3.0), 3.0, r"should be 3\.0, and is a tensor, tensor\(3\.\)"),
        (
            torch.tensor([1, 2]),
            [1, 2],
            r"should be \[1, 2\], and is a tensor of shape \[2\]",
        ),
        (3.1, 3.0, r"should be 3\.0, and is 3\.1"),
        ((4, 1), (4, 0), r"should be \(4, 0\), and is \(4, 1\)"),
        (np.array([0, 2]), np.array([0, 1]), r"first at \[1\]: yours is 2, expected 1"),
        (
            np.array([1, 2]),
            np.array([1.0, 2.0]),
            "their dtype should be float64, not int64",
        ),
        (np.array([[1.0]]), np.array([1.0]), r"shape should be \[1\], and is \[1, 1\]"),
        (
            [0, 1],
            np.array([0, 1]),
            r"should be an array of shape \[2\], and is \[0, 1\]",
        ),
        (np.array(["a", "b"]), np.array(["a", "c"]), "yours is 'b', expected 'c'"),
        (np.array([np.nan, 1.0]), np.array([0.0, 1.0]), "yours is NaN, expected 0"),
        (np.array([np.inf]), np.array([0.0]), "yours is ∞, expected 0"),
        (
            (np.ones(2), 1.0),
            (np.ones(2), 2.0),
            r"In value 2: it should be 2\.0, and is 1\.0",
        ),
        ((np.ones(2),), (np.ones(2), 2.0), "should be 2 values, and is"),
        (True, 2, "should be 2, and is True"),
        (
            {"a": np.ones(2)},
            {"a": np.zeros(2)},
            "In the entry 'a': 2 of 2 elements differ",
        ),
        (
            {"a": 1},
            {"a": np.ones(2), "b": 2},
            r"the keys \['a', 'b'\], and has the keys \['a'\]",
        ),
        (3, {"a": np.ones(2)}, r"the keys \['a'\], and is 3"),
    ],
)
def test_what_differs_is_named(actual: Any, expected: Any, problem: str) -> None:
    with pytest.raises(AssertionError, match=problem):
        expect(actual, expected, hint="Look.")


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ([4, 0], (4, 0)),
        ([["a", "b"]], [("a", "b")]),
        (3, 3.0),
        (torch.tensor([float("nan")]), torch.tensor([torch.nan])),
        (np.array([0.1 + 0.2, np.nan, np.inf]), np.array([0.3, np.nan, np.inf])),
        (np.array(2.5), np.array(2.5)),
        (np.float64(0.1) + np.float64(0.2), 0.3),
        (np.int64(3), 3),
        ([np.int64(1), np.int64(2)], [1, 2]),
        ((torch.ones(2), [0, 1]), (torch.ones(2), (0, 1))),
        (float("nan"), float("nan")),
        ({"b": 1, "a": np.ones(2)}, {"a": np.ones(2), "b": 1.0}),
    ],
)
def test_what_a_suite_accepts_is_as_expected(
    actual: Any, expected: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    expect(actual, expected)
    assert capsys.readouterr().out == "as expected\n"


def test_it_needs_neither_torch_nor_numpy() -> None:
    """An edit distance is a question too, in a notebook that imports nothing."""
    text = carried_text(["autograder.student_tools.expect"])
    assert imported_libraries(b'{"cells": []}', {"hw_tools.py": text}) == []
    # nor does a text that names torch make a host load it
    assert not any(pattern.search(text) for pattern in EXTRAS.values())

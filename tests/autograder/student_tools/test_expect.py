"""The visible check says what differs, and refuses nothing that a suite accepts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from autograder.authoring.companions import carried_text
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
            "their dtype should be torch.float32, not torch.float64",
        ),
        (
            torch.ones(2),
            torch.ones(2).bool(),
            "their dtype should be torch.bool, not torch.float32",
        ),
        (
            torch.ones(2),
            torch.zeros(2).double(),
            r"expected\ntensor\(\[0\., 0\.\], dtype=torch.float64\)",
        ),
        (torch.ones(2, 1), torch.ones(2), r"expected shape \[2\], got \[2, 1\]"),
        ([1.0], torch.ones(1), r"expected a tensor of shape \[1\], got list"),
        (torch.tensor(3.0), 3.0, r"expected 3\.0, got tensor\(3\.\)"),
        (torch.tensor([1, 2]), [1, 2], r"expected \[1, 2\], got tensor\(\[1, 2\]\)"),
        (3.1, 3.0, r"expected 3\.0, got 3\.1"),
        ((4, 1), (4, 0), r"expected \(4, 0\), got \(4, 1\)"),
        (np.array([0, 2]), np.array([0, 1]), r"expected\n\[0 1\]\ngot\n\[0 2\]"),
        (np.array([1, 2]), np.array([1.0, 2.0]), "their dtype should be float64, not int64"),
        (np.array([[1.0]]), np.array([1.0]), r"expected shape \[1\], got \[1, 1\]"),
        ([0, 1], np.array([0, 1]), r"expected an array of shape \[2\], got list"),
        (np.array([0, 1]), [0, 1], r"expected \[0, 1\], got array\(\[0, 1\]\)"),
        (np.array(["a", "b"]), np.array(["a", "c"]), r"expected\n\['a' 'c'\]\ngot\n\['a' 'b'\]"),
        (
            np.array([np.nan, 1.0]),
            np.array([0.0, 1.0]),
            r"expected\n\[0\. 1\.\]\ngot\n\[nan  1\.\]",
        ),
        ((np.ones(2), 1.0), (np.ones(2), 2.0), r"expected 2\.0, got 1\.0"),
        ((np.ones(2),), (np.ones(2), 2.0), "expected 2 values, got"),
        (True, 2, "expected 2, got True"),
        ({"a": np.ones(2)}, {"a": np.zeros(2)}, r"expected\n\[0\. 0\.\]\ngot\n\[1\. 1\.\]"),
        ({"a": 1}, {"a": np.ones(2), "b": 2}, r"expected the keys \['a', 'b'\], got \['a'\]"),
        (3, {"a": np.ones(2)}, r"expected the keys \['a'\], got 3"),
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
    alone: dict[str, Any] = {}
    exec(carried_text(["autograder.student_tools.expect"]), alone)
    alone["expect"](3, 3)
    with pytest.raises(AssertionError, match="expected 3, got 2"):
        alone["expect"](2, 3)
    assert "import" not in carried_text(["autograder.student_tools.expect"])

"""The visible check says what differs, and refuses nothing that a suite accepts."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from autograder.authoring.expect import expect


@pytest.mark.parametrize(
    ("actual", "expected", "problem"),
    [
        (torch.tensor([1, 2]), torch.tensor([1.0, 2.0]), "their dtype should be torch.float32, not torch.int64"),
        (torch.ones(2).double(), torch.ones(2), "their dtype should be torch.float32, not torch.float64"),
        (torch.ones(2), torch.ones(2).bool(), "their dtype should be torch.bool, not torch.float32"),
        (torch.ones(2), torch.zeros(2).double(), r"expected\ntensor\(\[0\., 0\.\], dtype=torch.float64\)"),
        (torch.ones(2, 1), torch.ones(2), r"expected shape \[2\], got \[2, 1\]"),
        ([1.0], torch.ones(1), r"expected a tensor of shape \[1\], got list"),
        (torch.tensor(3.0), 3.0, r"expected 3\.0, got tensor\(3\.\)"),
        (torch.tensor([1, 2]), [1, 2], r"expected \[1, 2\], got tensor\(\[1, 2\]\)"),
        (3.1, 3.0, r"expected 3\.0, got 3\.1"),
        ((4, 1), (4, 0), r"expected \(4, 0\), got \(4, 1\)"),
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
    ],
)
def test_what_a_suite_accepts_is_as_expected(actual: Any, expected: Any, capsys: pytest.CaptureFixture[str]) -> None:
    expect(actual, expected)
    assert capsys.readouterr().out == "as expected\n"

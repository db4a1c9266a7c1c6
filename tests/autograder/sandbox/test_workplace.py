"""What a student reads about a cell that did not run, and about a function that is missing."""

from __future__ import annotations

from typing import Any

import pytest

from autograder.records.submission import Cell, CellOutcome
from autograder.sandbox.workplace import Workplace, _outcome


def missing(*outcomes: CellOutcome) -> str:
    workplace = object.__new__(Workplace)
    workplace._outcomes = {outcome.id: outcome for outcome in outcomes}
    return workplace.explain_missing("double")


def test_a_missing_function_is_explained_by_its_own_cell_first() -> None:
    other = CellOutcome("library", "error", "KeyError: 'x'")
    own = CellOutcome("double", "timeout", "cell double did not end within 5 s")
    fine = CellOutcome("given", "ok", "")
    assert missing(other, own, fine) == (
        "`double` is not defined: its cell did not run. cell double did not end within 5 s"
    )
    assert missing(fine, other) == (
        "`double` is not defined. Cell library did not run: KeyError: 'x'"
    )
    assert missing(
        CellOutcome("library", "crashed", "it ended the process")
    ).startswith("`double` is not defined. Cell library did not run: it ended")
    for outcome in (fine, CellOutcome("double", "restored", "it differed")):
        assert missing(outcome) == "`double` is not defined anywhere in the notebook."


@pytest.mark.parametrize(
    ("cell", "reply", "expected"),
    [
        (Cell("a", "question", ""), {"ok": True}, CellOutcome("a", "ok", "")),
        (Cell("a", "given", ""), {"ok": True}, CellOutcome("a", "ok", "")),
        (
            Cell("a", "given", "", note="it differed"),
            {"ok": True},
            CellOutcome("a", "restored", "it differed"),
        ),
        (
            Cell("a", "extra", "", note="an own cell"),
            {"ok": True},
            CellOutcome("a", "ok", "an own cell"),
        ),
        # a reply with neither says nothing of an error
        (Cell("a", "question", ""), {"error": "x"}, CellOutcome("a", "ok", "")),
        (
            Cell("a", "question", ""),
            {"error": {"type": "KeyError", "message": "'x'"}},
            CellOutcome("a", "error", "KeyError: 'x'"),
        ),
        (
            Cell("a", "question", "", note="found elsewhere"),
            {
                "error": {
                    "type": "KeyError",
                    "message": "'x'",
                    "frames": ["line 1", "line 2"],
                }
            },
            CellOutcome("a", "error", "found elsewhere\nKeyError: 'x'\n  line 2"),
        ),
        (
            Cell("a", "question", ""),
            {"error": {"type": "KeyError", "message": "'x'", "frames": []}},
            CellOutcome("a", "error", "KeyError: 'x'"),
        ),
    ],
)
def test_the_outcome_of_a_cell(
    cell: Cell, reply: dict[str, Any], expected: CellOutcome
) -> None:
    assert _outcome(cell, reply) == expected

"""Results with awkward content: what a hostile or unlucky student can bring into a report."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from autograder.records.model import (
    Diagnosis,
    Graded,
    Outcome,
    QuestionResult,
    Result,
    TestOutcome,
)
from autograder.records.submission import CellOutcome

SCRIPT = "<script>alert(1)</script>"
FORMULA = "=cmd|' /C calc'!A0"
ANSI = "\x1b[31mred\x1b[0m\x1b]0;title\x07\x9b2J"
LINK = "[link](javascript:alert(1))"
BIDI = "abc\u202edcba\u2066"


def outcome(
    name: str,
    points: float,
    max_points: float,
    how: Outcome = "failed",
    message: str = "",
) -> TestOutcome:
    passed = points == max_points
    return TestOutcome(
        name, "passed" if passed else how, points, max_points, "" if passed else message
    )


def question(
    name: str,
    *tests: TestOutcome,
    carried: float = 0.0,
    diagnosis: Diagnosis | None = None,
) -> QuestionResult:
    score, max_score = (
        carried + sum(t.points for t in tests),
        sum(t.max_points for t in tests),
    )
    return QuestionResult(name, score, max_score, carried, diagnosis, tests)


def result_of(
    student: str,
    *questions: QuestionResult,
    cells: Sequence[CellOutcome],
    isolation: str,
    suite: str,
) -> Result:
    score, max_score = (
        sum(q.score for q in questions),
        sum(q.max_score for q in questions),
    )
    return Result(
        "attention",
        student,
        f"sha-{student}",
        suite,
        isolation,
        score,
        max_score,
        questions,
        tuple(cells),
    )


DIFFERS = "`softmax(z[4, 7])` differs first at [0, 1]."
OVER_QUERIES = Diagnosis(
    "softmax_over_queries", "Each row should sum to 1: does `dim` point at the keys?"
)


@pytest.fixture
def plain() -> Result:
    """11 of 20: softmax 2 of 4 with a diagnosis, attention 6 of 6 (4 carried), heads 3 of 10."""
    return result_of(
        "ada",
        question(
            "softmax",
            outcome("test_rows_sum_to_one", 2.0, 2.0),
            outcome(
                "test_each_query_distributes_over_the_keys", 0.0, 2.0, message=DIFFERS
            ),
            diagnosis=OVER_QUERIES,
        ),
        question(
            "attention",
            outcome("test_one_key", 2.0, 2.0),
            outcome("test_causal", 0.0, 4.0, message="row 0 looks ahead."),
            carried=4.0,
        ),
        question(
            "heads",
            outcome("test_shapes[3-4]", 3.0, 3.0),
            outcome(
                "test_order_of_heads", 0.0, 4.0, "missing", "there is no split_heads"
            ),
            outcome(
                "test_merge_undoes_split",
                0.0,
                3.0,
                "missing",
                "there is no split_heads",
            ),
        ),
        cells=[
            CellOutcome("softmax", "ok"),
            CellOutcome("library", "restored", "it differed from the release"),
            CellOutcome(
                "attention", "ok", "there were two copies; the first one counts"
            ),
            CellOutcome("heat_map", "skipped"),
        ],
        isolation="strict",
        suite="suite-1",
    )


@pytest.fixture
def hostile() -> Result:
    """1 of 3; every text is an attack, graded without walls."""
    message = "\n".join(
        [
            SCRIPT,
            ANSI,
            LINK,
            BIDI,
            "::set-output name=points::99",
            "`<b>bold</b>` ünïcode 数 \ud800 \x00",
        ]
    )
    return result_of(
        FORMULA + SCRIPT + ANSI + BIDI + "[bold]x[/bold]",
        question(
            "softmax",
            outcome("test_rows_sum_to_one", 1.0, 1.0),
            outcome("test_is_stable", 0.0, 1.0, "error", message),
            outcome("test_long", 0.0, 1.0, "crashed", "x|" * 5000),
            diagnosis=Diagnosis("mistake", "a | pipe and <i>tags</i>"),
        ),
        cells=[CellOutcome("extra-1", "error", SCRIPT + ANSI)],
        isolation="none",
        suite="suite-2",
    )


@pytest.fixture
def problem() -> Graded:
    return Graded(
        "student-005" + SCRIPT, None, f"not a notebook {LINK}{ANSI}", {"read": 0.5}
    )

"""The page that a student reads: what was lost, why, and where to look first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.basics.points import is_full
from autograder.ledger.folder_names import is_one_component
from autograder.marks.marks import Mark, mark_of
from autograder.outputs.outcome_words import (
    CELL_WORDS,
    WHAT_HAPPENED,
    WITHOUT_WALLS,
    carried_note,
    kept_note,
    slip_hints,
)
from autograder.outputs.pages import render
from autograder.records.model import CellOutcome, Outcome, QuestionResult, Result, TestOutcome
from autograder.records.results import path_name
from autograder.suite.prerequisites import prerequisites

FailedGroup = tuple[Outcome, str, tuple[str, ...]]
"""What tests have in common that failed in the same way: what happened, the message, and hints of
slips.
"""


@dataclass(frozen=True, slots=True)
class QuestionView:
    """One question as the page shows it.

    Attributes:
        carried: explains regained points, or "".
        kept: says what a slip keeps, or "".
        only_inherited: what failed did so for another question's mistake alone, and cost nothing.
    """

    question: QuestionResult
    share: float
    failed: Mapping[FailedGroup, Sequence[TestOutcome]]
    passed: tuple[TestOutcome, ...]
    carried: str
    kept: str
    only_inherited: bool


def render_feedback(
    result: Result,
    uses: Mapping[str, Sequence[str]] | None = None,
    speed: str = "",
    mark: Mark | None = None,
) -> str:
    """The page as HTML.

    Args:
        uses: for each question those that it builds on (the suite knows them).
        speed: how fast it was on a GPU, in words.
        mark: the mark with what a person gave, and lateness; without it, that of the tests alone.
    """
    mark = mark or mark_of(result)
    return render(
        "feedback.html",
        result=result,
        mark=mark,
        open_points=max(0.0, mark.max_score - result.max_score)
        if mark.status == "waits for a person"
        else 0.0,
        speed=speed,
        questions=[
            _view(question, result, prerequisites(question.name, uses or {}))
            for question in result.questions
        ],
        cells=_worth_telling(result.cells),
        cell_words=CELL_WORDS,
        what_happened=WHAT_HAPPENED,
        without_walls=WITHOUT_WALLS,
    )


def feedback_path(folder: Path, assignment: str, students_folder: str) -> Path:
    """Where nbgrader puts its own page: <folder>/<student's
    folder>/<assignment>/<assignment>.html.
    """
    own = students_folder if is_one_component(students_folder) else path_name(students_folder)
    return folder / own / assignment / f"{assignment}.html"


def _view(question: QuestionResult, result: Result, uses: Sequence[str]) -> QuestionView:
    failed: dict[FailedGroup, list[TestOutcome]] = {}
    for test in question.tests:
        if test.outcome != "passed":
            failed.setdefault((test.outcome, test.message, slip_hints(question, test)), []).append(
                test
            )
    return QuestionView(
        question=question,
        share=min(1.0, max(0.0, question.score / question.max_score))
        if question.max_score > 0
        else 1.0,
        failed=failed,
        passed=tuple(test for test in question.tests if test.outcome == "passed"),
        carried=carried_note(question, result, uses),
        kept=kept_note(question),
        only_inherited=question.carried > 0 and is_full(question.score, question.max_score),
    )


def _worth_telling(cells: Sequence[CellOutcome]) -> list[CellOutcome]:
    return [cell for cell in cells if cell.outcome != "ok" or cell.message]

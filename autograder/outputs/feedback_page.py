"""The feedback page that a student reads: lost points, the reasons, and where to look first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.basics.points import is_full
from autograder.ledger.folder_names import is_one_component
from autograder.marks.marks import Mark, mark_from_result
from autograder.outputs.outcome_words import (
    CELL_WORDS,
    WHAT_HAPPENED,
    WITHOUT_WALLS,
    cap_note,
    carried_note,
    kept_note,
    slip_hints,
)
from autograder.outputs.pages import render
from autograder.outputs.statistics import share
from autograder.records.model import Outcome, QuestionResult, Result, TestOutcome
from autograder.records.results import path_name
from autograder.suite.prerequisites import prerequisites

FailedGroup = tuple[Outcome, str, tuple[str, ...]]
"""The common traits of tests that failed alike: outcome, message, and hints of slips."""


@dataclass(frozen=True, slots=True)
class QuestionView:
    """One question as the page shows it.

    Attributes:
        carried: explains regained points, or "".
        kept: says which points a slip keeps, or "".
        capped: says what a kernel's memory fault costs beyond the failed tests, or "".
        only_inherited: whether the failed tests failed for another question's mistake alone, and
            cost nothing.
    """

    question: QuestionResult
    share: float
    failed: Mapping[FailedGroup, Sequence[TestOutcome]]
    passed: Sequence[TestOutcome]
    carried: str
    kept: str
    capped: str
    only_inherited: bool


def render_feedback(
    result: Result,
    uses: Mapping[str, Sequence[str]] | None = None,
    speed: str = "",
    mark: Mark | None = None,
    back: str = "",
) -> str:
    """Render the page as HTML.

    Args:
        uses: question → the questions that it builds on, from the suite.
        speed: the speed on a GPU, in words.
        mark: the mark with a person's points and lateness; without it, the tests' points alone.
        back: the address of the page from which the student came; "" for none.
    """
    mark = mark or mark_from_result(result)
    open_points = 0.0
    if mark.status == "waits for a person":
        open_points = max(0.0, mark.max_score - result.max_score)
    return render(
        "feedback.html",
        result=result,
        back=back,
        mark=mark,
        open_points=open_points,
        speed=speed,
        questions=[
            _view(question, result, prerequisites(question.name, uses or {}))
            for question in result.questions
        ],
        cells=[cell for cell in result.cells if cell.outcome != "ok" or cell.message],
        cell_words=CELL_WORDS,
        what_happened=WHAT_HAPPENED,
        without_walls=WITHOUT_WALLS,
    )


def feedback_path(folder: Path, assignment: str, students_folder: str) -> Path:
    """The path of a student's page, where nbgrader puts pages too:
    <folder>/<student's folder>/<assignment>/<assignment>.html.
    """
    if not is_one_component(students_folder):
        students_folder = path_name(students_folder)
    return folder / students_folder / assignment / f"{assignment}.html"


def _view(
    question: QuestionResult, result: Result, uses: Sequence[str]
) -> QuestionView:
    failed: dict[FailedGroup, list[TestOutcome]] = {}
    passed = []
    for test in question.tests:
        if test.outcome == "passed":
            passed.append(test)
        else:
            group = (test.outcome, test.message, slip_hints(question, test))
            failed.setdefault(group, []).append(test)
    return QuestionView(
        question=question,
        share=share(question.score, question.max_score),
        failed=failed,
        passed=passed,
        carried=carried_note(question, result, uses),
        kept=kept_note(question),
        capped=cap_note(question),
        only_inherited=question.carried > 0
        and is_full(question.score, question.max_score),
    )

"""The page that a student reads: what was lost, why, and where to look first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.ledger.folders import is_one_component
from autograder.model import CellOutcome, CellState, Diagnosis, Outcome, QuestionResult, Result, TestOutcome
from autograder.outputs.marks import Mark, mark_of
from autograder.outputs.pages import render
from autograder.points import is_full, shown
from autograder.prerequisites import prerequisites
from autograder.results import path_name

WHAT_HAPPENED: dict[Outcome, str] = {
    "passed": "passed",
    "failed": "not right yet",
    "error": "your code raised an error",
    "timeout": "took too long and was stopped",
    "crashed": "the process ended before it answered",
    "forbidden": "uses a function that this question rules out",
    "missing": "your notebook does not define it",
}
CELL_WORDS: dict[CellState, str] = {
    "ok": "ran",
    "error": "raised an error",
    "timeout": "took too long and was stopped",
    "crashed": "ended the process",
    "missing": "was missing",
    "restored": "was put back as released",
    "skipped": "did not run",
}


@dataclass(frozen=True, slots=True)
class FailedGroup:
    """Tests that failed in the same way, with one message for all, and the hints of the slips that explain them."""

    what_happened: str
    message: str
    hints: tuple[str, ...]
    tests: tuple[TestOutcome, ...]


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
    failed: tuple[FailedGroup, ...]
    passed: tuple[TestOutcome, ...]
    carried: str
    kept: str
    only_inherited: bool


def feedback_page(
    result: Result, uses: Mapping[str, Sequence[str]] | None = None, speed: str = "", mark: Mark | None = None
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
        open_points=max(0.0, mark.max_score - result.max_score) if mark.status == "waits for a person" else 0.0,
        speed=speed,
        questions=[_view(question, result, prerequisites(question.name, uses or {})) for question in result.questions],
        cells=_worth_telling(result.cells),
        cell_words=CELL_WORDS,
    )


def feedback_path(folder: Path, assignment: str, students_folder: str) -> Path:
    """Where nbgrader puts its own page: <folder>/<student's folder>/<assignment>/<assignment>.html."""
    own = students_folder if is_one_component(students_folder) else path_name(students_folder)
    return folder / own / assignment / f"{assignment}.html"


def carried_note(question: QuestionResult, result: Result, uses: Sequence[str] = ()) -> str:
    """What the carried points of a question mean, in words; "" where there are none. `uses` are its prerequisites."""
    if question.carried <= 0:
        return ""
    lost = {other.name for other in result.questions if not is_full(other.score, other.max_score)}
    causes = [f"`{name}`" for name in uses if name in lost]
    cause = f"the mistake in {' and '.join(causes)}" if causes else "a mistake in a question that it builds on"
    place = "right answers in their place" if len(causes) > 1 else "a right answer in its place"
    if is_full(question.score, question.max_score):
        return f"You lost nothing here for {cause}: with {place}, yours passes every test."
    return (
        f"{shown(question.carried)} of these points count in spite of {cause}: with {place}, yours passes more tests."
    )


def kept_note(question: QuestionResult) -> str:
    """What the price of named mistakes leaves beyond the passed tests, in words; "" where that is nothing."""
    if question.kept <= 0:
        return ""
    keeps = f"You keep {shown(question.score)} of {shown(question.max_score)} points"
    if question.diagnosis is not None and not question.slips and _explains_all(question, question.diagnosis):
        return f"{keeps} for this slip."
    return f"{keeps}: a known slip costs what it costs by itself, and whatever else failed costs its own tests."


def _explains_all(question: QuestionResult, mistake: Diagnosis) -> bool:
    return all(test.outcome == "passed" or test.name in mistake.tests for test in question.tests)


def slip_hints(question: QuestionResult, test: TestOutcome) -> tuple[str, ...]:
    """The hints of the mistakes that explain this test and are not where to look first."""
    return tuple(slip.hint for slip in question.slips if test.name in slip.tests)


def _view(question: QuestionResult, result: Result, uses: Sequence[str]) -> QuestionView:
    failed = [test for test in question.tests if test.outcome != "passed"]
    groups: dict[tuple[Outcome, str, tuple[str, ...]], list[TestOutcome]] = {}
    for test in failed:
        groups.setdefault((test.outcome, test.message, slip_hints(question, test)), []).append(test)
    return QuestionView(
        question=question,
        share=min(1.0, max(0.0, question.score / question.max_score)) if question.max_score > 0 else 1.0,
        failed=tuple(
            FailedGroup(WHAT_HAPPENED[how], message, hints, tuple(tests))
            for (how, message, hints), tests in groups.items()
        ),
        passed=tuple(test for test in question.tests if test.outcome == "passed"),
        carried=carried_note(question, result, uses),
        kept=kept_note(question),
        only_inherited=question.carried > 0 and is_full(question.score, question.max_score),
    )


def _worth_telling(cells: Sequence[CellOutcome]) -> list[CellOutcome]:
    return [cell for cell in cells if cell.outcome != "ok" or cell.message]

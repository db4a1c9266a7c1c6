"""What became of a test, a cell, a question or a submission, in the words that people read.

Feedback pages, Gradescope, GitHub and the notebooks and comments of nbgrader all take their words
from here. No line of the suite is in them: results hold none.
"""

from __future__ import annotations

from collections.abc import Sequence

from autograder.basics.points import format_points, is_full
from autograder.basics.safe_text import clean, describe_test, one_line, shorten
from autograder.records.model import (
    CellState,
    Diagnosis,
    Outcome,
    QuestionResult,
    Result,
    TestOutcome,
)

LONGEST_MESSAGE = 2000

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
COULD_NOT_BE_GRADED = "This submission could not be graded"
WITHOUT_WALLS = (
    "Graded without isolation.",
    "The code ran without walls around it. Treat this score as provisional.",
)
"""Of a result without walls: a heading, and what follows it."""


def outcome_line(test: TestOutcome) -> str:
    """One line about a test: whether it passed, its claim, its points, and what happened."""
    sign = "✓" if test.outcome == "passed" else "✗"
    points = f"{format_points(test.points)} of {format_points(test.max_points)}"
    return f"{sign} {describe_test(test.name)} ({points}): {WHAT_HAPPENED[test.outcome]}"


def question_text(question: QuestionResult, result: Result) -> str:
    """All that there is to say about a question, as plain text: where to look first, what counts in
    spite of a mistake, and every test with its message.
    """
    paragraphs = []
    if question.diagnosis:
        paragraphs.append(f"Look here first: {one_line(question.diagnosis.hint)}")
    paragraphs += filter(None, [kept_note(question), carried_note(question, result)])
    lines = []
    for test in question.tests:
        lines.append(outcome_line(test))
        if test.outcome != "passed" and test.message:
            lines += [
                f"    {line}" for line in shorten(clean(test.message), LONGEST_MESSAGE).splitlines()
            ]
        lines += [f"    {one_line(hint)}" for hint in slip_hints(question, test)]
    return "\n\n".join([*paragraphs, "\n".join(lines)])


def carried_note(question: QuestionResult, result: Result, uses: Sequence[str] = ()) -> str:
    """What the carried points of a question mean, in words; "" where there are none. `uses` are its
    prerequisites.
    """
    if question.carried <= 0:
        return ""
    lost = {other.name for other in result.questions if not is_full(other.score, other.max_score)}
    causes = [f"`{name}`" for name in uses if name in lost]
    cause = (
        f"the mistake in {' and '.join(causes)}"
        if causes
        else "a mistake in a question that it builds on"
    )
    place = "right answers in their place" if len(causes) > 1 else "a right answer in its place"
    if is_full(question.score, question.max_score):
        return f"You lost nothing here for {cause}: with {place}, yours passes every test."
    return (
        f"{format_points(question.carried)} of these points count in spite of {cause}: with "
        f"{place}, "
        "yours passes more tests."
    )


def kept_note(question: QuestionResult) -> str:
    """What the price of named mistakes leaves beyond the passed tests, in words; "" where that is
    nothing.
    """
    if question.kept <= 0:
        return ""
    keeps = (
        f"You keep {format_points(question.score)} of {format_points(question.max_score)} points"
    )
    if (
        question.diagnosis is not None
        and not question.slips
        and _explains_all(question, question.diagnosis)
    ):
        return f"{keeps} for this slip."
    return (
        f"{keeps}: a known slip costs what it costs by itself, and whatever else failed costs "
        "its own tests."
    )


def slip_hints(question: QuestionResult, test: TestOutcome) -> tuple[str, ...]:
    """The hints of the mistakes that explain this test and are not where to look first."""
    return tuple(slip.hint for slip in question.slips if test.name in slip.tests)


def _explains_all(question: QuestionResult, mistake: Diagnosis) -> bool:
    return all(test.outcome == "passed" or test.name in mistake.tests for test in question.tests)

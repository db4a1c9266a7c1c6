"""Outcomes of tests, cells, questions and submissions in the words that people read.

Feedback pages, Gradescope, GitHub, and nbgrader's notebooks and comments all use these words. They
contain no line of the suite, since results hold none.
"""

from __future__ import annotations

from collections.abc import Sequence

from autograder.basics.points import format_points, is_full
from autograder.basics.safe_text import clean, describe_test, one_line, shorten
from autograder.records.model import (
    Outcome,
    QuestionResult,
    Result,
    SmallExample,
    TestOutcome,
)
from autograder.records.submission import CellState

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
"""A heading and a sentence for a result without walls."""


def outcome_line(test: TestOutcome) -> str:
    """Describe a test in one line: sign, claim, points, and outcome."""
    sign = "✓" if test.outcome == "passed" else "✗"
    points = f"{format_points(test.points)} of {format_points(test.max_points)}"
    return (
        f"{sign} {describe_test(test.name)} ({points}): {WHAT_HAPPENED[test.outcome]}"
    )


def question_text(question: QuestionResult, result: Result) -> str:
    """Describe a question as plain text: hint, points kept in spite of a mistake, every test."""
    paragraphs = []
    if question.diagnosis:
        paragraphs.append(f"Look here first: {one_line(question.diagnosis.hint)}")
    elif question.evidence:
        paragraphs.append(one_line(question.evidence))
    notes = [kept_note(question), cap_note(question), carried_note(question, result)]
    paragraphs += filter(None, notes)
    lines = []
    for test in question.tests:
        lines.append(outcome_line(test))
        if test.outcome != "passed" and test.message:
            message = shorten(clean(test.message), LONGEST_MESSAGE)
            lines += [f"    {line}" for line in message.splitlines()]
        lines += [f"    {one_line(hint)}" for hint in slip_hints(question, test)]
    return "\n\n".join([*paragraphs, "\n".join(lines)])


def example_text(example: SmallExample) -> str:
    """An example as plain text: the call, and both answers or how they differ."""
    if not example.yours:
        return f"{clean(example.call)} {one_line(example.note)}"
    lines = ["Try this:", *[f"    {line}" for line in clean(example.call).splitlines()]]
    lines += [
        f"yours: {one_line(example.yours)}",
        f"right: {one_line(example.expected)}",
    ]
    if example.note:
        lines.append(one_line(example.note))
    return "\n".join(lines)


def carried_note(
    question: QuestionResult, result: Result, uses: Sequence[str] = ()
) -> str:
    """Explain the carried points of a question; "" without such points.

    Args:
        uses: the question's prerequisites.
    """
    if question.carried <= 0:
        return ""
    lost = [
        each for each in result.questions if not is_full(each.score, each.max_score)
    ]
    lost_names = {each.name for each in lost}
    causes = [f"`{name}`" for name in uses if name in lost_names]
    cause = "a mistake in a question that it builds on"
    if causes:
        cause = f"the mistake in {' and '.join(causes)}"
    place = (
        "right answers in their place"
        if len(causes) > 1
        else "a right answer in its place"
    )
    if is_full(question.score, question.max_score):
        return (
            f"You lost nothing here for {cause}: with {place}, yours passes every test."
        )
    points = format_points(question.carried)
    return (
        f"{points} of these points count in spite of {cause}: with {place}, "
        "yours passes more tests."
    )


def kept_note(question: QuestionResult) -> str:
    """Explain the points that named mistakes keep beyond the passed tests; "" without such."""
    if question.kept <= 0:
        return ""
    points = (
        f"{format_points(question.score)} of {format_points(question.max_score)} points"
    )
    failed = {test.name for test in question.tests if test.outcome != "passed"}
    if (
        question.diagnosis
        and not question.slips
        and failed.issubset(question.diagnosis.tests)
    ):
        return f"You keep {points} for this slip."
    if not question.diagnosis and not question.slips:
        return f"You keep {points}: an answer that one change makes right costs what a slip costs."
    return (
        f"You keep {points}: a known slip costs what it costs by itself, and whatever else failed "
        "costs its own tests."
    )


def cap_note(question: QuestionResult) -> str:
    """Explain the points that a memory fault or a race costs beyond the failed tests; "" without
    such.
    """
    if question.capped <= 0:
        return ""
    points = (
        f"{format_points(question.score)} of {format_points(question.max_score)} points"
    )
    return (
        "A kernel that touches memory which is not its own, or whose programs depend on which of "
        f"them is first, gets at most half of its question's points: {points} here. On a GPU it "
        "would change other tensors, or be wrong now and then, and nobody would see where."
    )


def slip_hints(question: QuestionResult, test: TestOutcome) -> tuple[str, ...]:
    """The hints of the slips that explain a test; the hint of the diagnosis stands elsewhere."""
    return tuple(slip.hint for slip in question.slips if test.name in slip.tests)

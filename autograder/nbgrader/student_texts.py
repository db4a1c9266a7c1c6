"""Texts about a student's questions for nbgrader's notebooks and comments."""

from __future__ import annotations

import textwrap

from autograder.basics.points import format_points
from autograder.basics.safe_text import describe_test
from autograder.outputs.outcome_words import (
    COULD_NOT_BE_GRADED,
    WHAT_HAPPENED,
    question_text,
)
from autograder.records.model import QuestionResult, Result
from autograder.records.submission import CellOutcome


def question_report(question: QuestionResult, result: Result) -> str:
    """The output of a grade cell: the question's score and each of its tests."""
    score = (
        f"{format_points(question.score)} of {format_points(question.max_score)} points"
    )
    return f"{question.name}: {score}\n{question_text(question, result)}\n"


def question_comment(question: QuestionResult) -> str:
    """The comment below a question's answer, with hints or messages; "" for full points."""
    lost = [test for test in question.tests if test.points < test.max_points]
    messages = list(dict.fromkeys(test.message for test in lost if test.message))
    if question.diagnosis:
        messages.insert(0, question.diagnosis.hint)
    messages += [slip.hint for slip in question.slips]
    if lost and not messages:
        messages = [
            f"{describe_test(test.name)}: {WHAT_HAPPENED[test.outcome]}."
            for test in lost
        ]
    return as_literal("\n\n".join(messages))


def problem_comment(problem: str) -> str:
    """The comment below each answer of a submission that could not be graded."""
    return as_literal(f"{COULD_NOT_BE_GRADED}: {problem}")


def cell_report(cell: CellOutcome) -> str:
    """The message of a cell that did not run well; else ""."""
    return f"{cell.message}\n" if cell.outcome != "ok" and cell.message else ""


def as_literal(text: str) -> str:
    """Text as a block of Markdown that is shown letter by letter.

    nbgrader renders comments as Markdown, in which HTML is live. Messages quote exceptions of the
    student's code.
    """
    clean = "".join(letter for letter in text if letter.isprintable() or letter == "\n")
    return textwrap.indent(clean.strip("\n"), " " * 4, lambda line: True)

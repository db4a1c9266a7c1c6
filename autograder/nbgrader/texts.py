"""What a student reads about a question, as plain text. No line of the suite is in it: results hold none."""

from __future__ import annotations

from autograder.model import CellOutcome, QuestionResult, TestOutcome
from autograder.outputs.feedback import kept_note
from autograder.points import shown

_WORDS = {
    "passed": "passed",
    "failed": "failed",
    "error": "your code raised an exception",
    "timeout": "took too long",
    "crashed": "the process that ran it ended",
    "forbidden": "uses what this question forbids",
    "missing": "there is nothing to test",
}


def question_report(question: QuestionResult) -> str:
    """Score and every test of one question: the output of its grade cell."""
    lines = [f"{question.name}: {shown(question.score)} of {shown(question.max_score)} points"]
    if question.carried:
        lines.append(f"{shown(question.carried)} of them with a stand-in for an earlier question.")
    if kept := kept_note(question):
        lines.append(kept)
    lines += [_test_line(test) for test in question.tests]
    if question.diagnosis:
        lines += ["", question.diagnosis.hint]
    lines += [slip.hint for slip in question.slips]
    return "\n".join(lines) + "\n"


def question_comment(question: QuestionResult) -> str:
    """What to look at, for the comment under the student's answer; "" where nothing was lost."""
    lost = [test for test in question.tests if test.points < test.max_points]
    messages = list(dict.fromkeys(test.message for test in lost if test.message))
    if question.diagnosis:
        messages.insert(0, question.diagnosis.hint)
    messages += [slip.hint for slip in question.slips]
    if lost and not messages:
        messages = [f"{test.name}: {_WORDS[test.outcome]}." for test in lost]
    return as_literal("\n\n".join(messages))


def cell_report(cell: CellOutcome) -> str:
    """What happened when a cell ran; "" where nothing needs saying."""
    return f"{cell.message}\n" if cell.outcome != "ok" and cell.message else ""


def as_literal(text: str) -> str:
    """Text as a Markdown block that shows it letter by letter.

    nbgrader renders comments as Markdown, in which HTML is live; messages quote what a student's code raised.
    """
    clean = "".join(c for c in text if c.isprintable() or c == "\n").strip("\n")
    return "\n".join(f"    {line}" for line in clean.split("\n")) if clean else ""


def _test_line(test: TestOutcome) -> str:
    mark = "✓" if test.outcome == "passed" else "✗"
    line = f"{mark} {test.name} ({shown(test.points)}/{shown(test.max_points)})"
    if test.outcome == "passed":
        return line
    message = test.message.strip() or f"{_WORDS[test.outcome]}."
    return f"{line}\n" + "\n".join(f"    {part}" for part in message.split("\n"))

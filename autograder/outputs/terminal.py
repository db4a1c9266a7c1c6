"""The class at a glance on the terminal: what `grade` prints at its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from autograder.basics.points import format_points, is_full
from autograder.basics.safe_text import one_line
from autograder.records.model import QuestionResult, Result

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

LONGEST_TABLE = 40
"""Rows of the table; of a longer class the middle is left out."""

MARKS = "✓ full marks   ~ a part   + with carried points   ✗ nothing"


def question_sign(question: QuestionResult) -> str:
    """One character for how a question went; `MARKS` explains them."""
    if question.carried > 0:
        return "+"
    if is_full(question.score, question.max_score):
        return "✓"
    return "~" if question.score > 0 else "✗"


Row = TypeVar("Row")


def select_rows(rows: Sequence[Row]) -> tuple[Sequence[Row], int]:
    """The rows of a class that the table shows, and how many are left out in their middle."""
    half = LONGEST_TABLE // 2
    left_out = len(rows) - LONGEST_TABLE
    return ([*rows[:half], *rows[-half:]], left_out) if left_out > 0 else (rows, 0)


def terminal_table(
    results: Sequence[Result], left_out: int = 0, unwalled: int = 0
) -> RenderableType:
    """What `grade` prints at its end, to be printed on a rich console of at least 60 columns.

    Every text is a rich Text, so that no name is read as markup.

    Args:
        results: those to be shown, by student (`select_rows`).
        left_out: how many more there are in the middle.
        unwalled: how many of the class were graded without walls.
    """
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    if results:
        parts.append(_table(results, left_out))
        parts.append(Text(MARKS, style="dim"))
        names = enumerate(map(one_line, _question_names(results)), 1)
        parts.append(Text("   ".join(f"{i}:{name}" for i, name in names), style="dim"))
    if unwalled:
        parts.append(
            Text(
                f"{unwalled} graded without isolation: student code ran without walls",
                style="bold yellow",
            )
        )
    return Group(*parts)


def _table(results: Sequence[Result], left_out: int) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    names = _question_names(results)
    width = len(str(len(names)))
    numbers = " ".join(str(i).rjust(width) for i in range(1, len(names) + 1))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("student", max_width=28, no_wrap=True, overflow="ellipsis")
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("of", justify="right", no_wrap=True)
    table.add_column(Text(numbers), no_wrap=True)
    table.add_column("diagnosis", overflow="fold")
    for i, result in enumerate(results):
        if left_out and i == LONGEST_TABLE // 2:
            table.add_row(Text(f"… {left_out} more …", style="dim"), "", "", "", "")
        marks = {question.name: question_sign(question) for question in result.questions}
        table.add_row(
            Text(one_line(result.student)),
            format_points(result.score),
            format_points(result.max_score),
            Text(" ".join(marks.get(name, " ").rjust(width) for name in names)),
            Text(", ".join(one_line(q.diagnosis.mistake) for q in result.questions if q.diagnosis)),
        )
    return table


def _question_names(results: Sequence[Result]) -> list[str]:
    return list(dict.fromkeys(question.name for result in results for question in result.questions))

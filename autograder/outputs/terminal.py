"""The table of the class that `grade` prints at its end."""

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
"""Rows of the table; the middle of a longer class is left out."""

MARKS = "✓ full marks   ~ a part   + with carried points   ✗ nothing"


def question_sign(question: QuestionResult) -> str:
    """The sign of a question in the table; `MARKS` explains the signs."""
    if question.carried > 0:
        return "+"
    if is_full(question.score, question.max_score):
        return "✓"
    return "~" if question.score > 0 else "✗"


Row = TypeVar("Row")


def select_rows(rows: Sequence[Row]) -> tuple[Sequence[Row], int]:
    """The rows of a class that the table shows, and the number of rows left out in the middle."""
    left_out = len(rows) - LONGEST_TABLE
    if left_out <= 0:
        return rows, 0
    half = LONGEST_TABLE // 2
    return [*rows[:half], *rows[-half:]], left_out


def terminal_table(
    results: Sequence[Result], left_out: int, unwalled: int
) -> RenderableType:
    """The table, its legend and a warning, for a rich console of at least 60 columns.

    Every text is a rich Text, so that no name is read as markup.

    Args:
        results: the rows that `select_rows` chose.
        left_out: the number of rows left out in the middle.
        unwalled: the number of submissions graded without walls.
    """
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    if results:
        parts.append(_table(results, left_out))
        parts.append(Text(MARKS, style="dim"))
        columns = []
        for number, name in enumerate(question_names(results), 1):
            columns.append(f"{number}:{one_line(name)}")
        legend = "   ".join(columns)
        parts.append(Text(legend, style="dim"))
    if unwalled:
        warning = f"{unwalled} graded without isolation: student code ran without walls"
        parts.append(Text(warning, style="bold yellow"))
    return Group(*parts)


def _table(results: Sequence[Result], left_out: int) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    names = question_names(results)
    width = len(str(len(names)))  # of the highest number
    numbers = [str(number).rjust(width) for number in range(1, len(names) + 1)]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("student", max_width=28, no_wrap=True, overflow="ellipsis")
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("of", justify="right", no_wrap=True)
    table.add_column(Text(" ".join(numbers)), no_wrap=True)
    table.add_column("diagnosis", overflow="fold")
    for i, result in enumerate(results):
        if left_out and i == LONGEST_TABLE // 2:
            table.add_row(Text(f"… {left_out} more …", style="dim"), "", "", "", "")
        signs = dict.fromkeys(names, " ")
        mistakes = []
        for question in result.questions:
            signs[question.name] = question_sign(question)
            if question.diagnosis:
                mistakes.append(one_line(question.diagnosis.mistake))
        columns = [sign.rjust(width) for sign in signs.values()]
        table.add_row(
            Text(one_line(result.student)),
            format_points(result.score),
            format_points(result.max_score),
            Text(" ".join(columns)),
            Text(", ".join(mistakes)),
        )
    return table


def question_names(results: Sequence[Result]) -> list[str]:
    """The names of all questions, in the order of the results."""
    names: dict[str, None] = {}  # a set in the order of the results
    for result in results:
        for question in result.questions:
            names[question.name] = None
    return list(names)

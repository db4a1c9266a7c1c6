"""The class at a glance on the terminal: what `grade` prints at its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from autograder.model import QuestionResult, Result
from autograder.points import is_full, shown
from autograder.text import one_line

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

LONGEST_TABLE = 40
"""Rows of the table; of a longer class the middle is left out."""

MARKS = "✓ full marks   ~ a part   + with carried points   ✗ nothing"


def mark(question: QuestionResult) -> str:
    """One character for how a question went; `MARKS` explains them."""
    if question.carried > 0:
        return "+"
    if is_full(question.score, question.max_score):
        return "✓"
    return "~" if question.score > 0 else "✗"


def terminal_table(results: Sequence[Result]) -> RenderableType:
    """What `grade` prints at its end, to be printed on a rich console of at least 60 columns.

    Every text is a rich Text, so that no name is read as markup.
    """
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    if results:
        parts.append(_table(sorted(results, key=lambda result: result.student)))
        parts.append(Text(MARKS, style="dim"))
        names = enumerate(map(one_line, _question_names(results)), 1)
        parts.append(Text("   ".join(f"{i}:{name}" for i, name in names), style="dim"))
    unwalled = sum(result.walls == "none" for result in results)
    if unwalled:
        parts.append(Text(f"{unwalled} graded without isolation: student code ran without walls", style="bold yellow"))
    return Group(*parts)


def _table(results: Sequence[Result]) -> Table:
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
    for i in _shown_rows(len(results)):
        if i is None:
            left_out = len(results) - 2 * (LONGEST_TABLE // 2)
            table.add_row(Text(f"… {left_out} more …", style="dim"), "", "", "", "")
            continue
        result = results[i]
        marks = {question.name: mark(question) for question in result.questions}
        table.add_row(
            Text(one_line(result.student)),
            shown(result.score),
            shown(result.max_score),
            Text(" ".join(marks.get(name, " ").rjust(width) for name in names)),
            Text(", ".join(one_line(q.diagnosis.mistake) for q in result.questions if q.diagnosis)),
        )
    return table


def _question_names(results: Sequence[Result]) -> list[str]:
    return list(dict.fromkeys(question.name for result in results for question in result.questions))


def _shown_rows(count: int) -> list[int | None]:
    """Indices of the rows to show; None where the middle is left out."""
    if count <= LONGEST_TABLE:
        return list(range(count))
    half = LONGEST_TABLE // 2
    return [*range(half), None, *range(count - half, count)]

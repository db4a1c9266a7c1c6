"""`progress()`: the last cell of a notebook, which shows the course as a table."""

from __future__ import annotations

import html
import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from autograder.student_tools.check_box import running_notebook, show_html
from autograder.student_tools.course_progress import (
    PROGRESS_FILE,
    course_notes,
    note_progress,
    note_totals,
    progress_rows,
    progress_text,
)
from autograder.student_tools.notebook_facts import FACTS, STUB


def progress() -> None:
    """Show how far you are. It is kept in the file progress.json beside the notebook, and nowhere
    else.
    """
    names = sys._getframe(1).f_globals
    folder, assignment = Path.cwd(), FACTS["assignment"]
    if running_notebook() is not None:
        note_totals(folder, assignment, FACTS["of"])
        for question in FACTS["questions"]:
            note_progress(
                folder, assignment, "questions", question, is_written(names, question)
            )
    rows = progress_rows(course_notes(folder))
    text = f"{progress_text(rows)}\n\nKept in {PROGRESS_FILE} beside the notebook, nowhere else."
    show_html(_table(rows), text)


def is_written(names: Mapping[str, Any], question: str) -> bool:
    """Whether the notebook defines a function or class, with an answer in place of the stub."""
    answer = names.get(question)
    if answer is None:
        return False
    answer = getattr(answer, "__wrapped__", answer)
    functions = list(vars(answer).values()) if isinstance(answer, type) else [answer]
    for function in functions:
        code = getattr(function, "__code__", None)
        if code is not None and any(
            STUB in str(constant) for constant in _constants(code)
        ):
            return False
    return True


def _constants(code: types.CodeType) -> Iterator[object]:
    """The constants of a function and of the functions in it, without its docstring."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _constants(constant)
        else:
            yield constant


def _table(rows: list[list[str]]) -> str:
    style = "padding:3px 10px;border:1px solid rgba(128,128,128,.35);text-align:left"
    head = "".join(
        f'<th scope="col" style="{style}">{html.escape(t)}</th>' for t in rows[0]
    )
    body = ""
    for first, *others in rows[1:]:
        cells = "".join(
            f'<td style="{style}">{html.escape(text)}</td>' for text in others
        )
        body += (
            f'<tr><th scope="row" style="{style}">{html.escape(first)}</th>{cells}</tr>'
        )
    return (
        '<div style="overflow-x:auto;color:inherit"><table style="border-collapse:collapse;'
        'margin:0;color:inherit"><caption style="text-align:left;caption-side:top;color:inherit;'
        f'padding:0 0 4px">How far you are</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table><small>Kept in {PROGRESS_FILE} beside the notebook, nowhere "
        "else.</small></div>"
    )

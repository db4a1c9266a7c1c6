"""The box that a visible check shows: HTML for notebooks, and the same in plain text for terminals
and for what reads outputs without HTML.
"""

from __future__ import annotations

import html
import importlib
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from autograder.student_tools.answer_differences import CheckDifference
from autograder.student_tools.pictures_of_answers import (
    draw_difference,
    write_difference,
)

_COLOURS = {"passed": "#1a7f37", "failed": "#d1242f", "open": "#9a6700"}
_MARKS = {"passed": "✓", "failed": "✗", "open": "…"}
_CODE = "font-family:var(--jp-code-font-family,monospace);font-size:.95em"

_PASTE = "Paste this into a cell to look at the call:"


@dataclass(eq=False, repr=False)  # every worker runs this text: few methods to make
class CheckBox:
    """What a box says.

    Attributes:
        state: whether the check passed, failed, or could not be made.
        title: the first line.
        lines: further sentences.
        call: the call that was checked, with its shapes.
        inputs: the arguments of the call, a line each.
        difference: what the answer differs in.
        hints: open one by one.
        example: lines of Python that make the call, to be pasted into a cell.
    """

    state: Literal["passed", "failed", "open"]
    title: str
    lines: Sequence[str] = ()
    call: str = ""
    inputs: Sequence[str] = ()
    difference: CheckDifference | None = None
    hints: Sequence[str] = ()
    example: Sequence[str] = ()

    def html(self) -> str:
        """The box as HTML."""
        colour, mark = _COLOURS[self.state], _MARKS[self.state]
        parts = [
            f'<div style="font-weight:600"><span aria-hidden="true" style="color:{colour}">{mark}'
            f"</span> {with_code(self.title)}</div>"
        ]
        if self.call:
            code = f'<code style="{_CODE};white-space:pre-wrap">{html.escape(self.call)}</code>'
            parts.append(f'<div style="margin:4px 0">{code}</div>')
        parts += [
            f'<div style="margin:4px 0">{with_code(line)}</div>' for line in self.lines
        ]
        if self.difference:
            parts.append(draw_difference(self.difference))
        if self.example:
            pasted = html.escape("\n".join(self.example))
            parts.append(
                f'<div style="margin:4px 0">{_PASTE}</div><pre style="{_CODE};white-space:pre-wrap;'
                f'overflow-wrap:anywhere;margin:4px 0"><code>{pasted}</code></pre>'
            )
        parts.append(nest_hints(self.hints, 1))
        if self.inputs:
            inputs = html.escape("\n".join(self.inputs))
            text = (
                f'<pre style="{_CODE};white-space:pre-wrap;margin:4px 0">{inputs}</pre>'
            )
            parts.append(
                f"<details><summary>The inputs of this call</summary>{text}</details>"
            )
        label = html.escape(f"{self.title}. {' '.join(self.lines)}", quote=True)
        return (
            f'<div role="group" aria-label="{label}" style="border-left:4px solid {colour};'
            'padding:4px 12px;margin:4px 0;color:inherit;max-width:100%;line-height:1.5">'
            + "".join(parts)
            + "</div>"
        )

    def text(self) -> str:
        """The box as text; hints stay closed."""
        lines = [f"{_MARKS[self.state]} {self.title}".replace("`", "")]
        if self.call:
            lines.append(f"  {self.call}")
        lines += [f"  {line}".replace("`", "") for line in self.lines]
        if self.difference:
            lines += [f"  {line}" for line in write_difference(self.difference)]
        if self.example:
            lines += [f"  {_PASTE}", *(f"    {line}" for line in self.example)]
        if self.hints:
            count = len(self.hints)
            what = "There is a hint" if count == 1 else f"There are {count} hints"
            lines.append(f"  {what}: next_hint() shows the next one.")
        return "\n".join(lines)


def nest_hints(hints: Sequence[str], number: int) -> str:
    """Hints as HTML, each inside the one before: the second can be opened once the first is."""
    if not hints:
        return ""
    count = number + len(hints) - 1
    title = f"Hint {number} of {count}" if count > 1 else "Hint"
    return (
        f'<details style="margin:4px 0"><summary style="cursor:pointer">{title}</summary>'
        f'<div style="margin:4px 0 4px 1.2em">{with_code(hints[0])}'
        f"{nest_hints(hints[1:], number + 1)}</div></details>"
    )


def with_code(text: str) -> str:
    """Plain text as HTML, with what stands between backticks as code."""
    return re.sub(
        r"`([^`]+)`",
        rf'<code style="{_CODE}">\1</code>',
        html.escape(text, quote=False),
    )


def running_notebook() -> Any:
    """IPython's shell, in a notebook or a terminal; None in plain Python."""
    ipython: Any = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None


def show_html(as_html: str, as_text: str) -> None:
    """Show HTML where this is a notebook, and print the text elsewhere."""
    if running_notebook() is None:
        print(as_text)
        return
    display = importlib.import_module("IPython.display").display
    display({"text/html": as_html, "text/plain": as_text}, raw=True)

"""Every output that a result ends in, and whether a page of it is harmless."""

from __future__ import annotations

import csv
import io
from html.parser import HTMLParser

from rich.console import Console

from autograder.cli.summaries import describe_ungraded
from autograder.grading.request import GradeSummary
from autograder.marks.marks import mark_from_result
from autograder.outputs.class_report import render_report
from autograder.outputs.export import render_student_csv, render_test_csv
from autograder.outputs.feedback_page import render_feedback
from autograder.outputs.junit import junit_xml
from autograder.outputs.terminal import terminal_table
from autograder.platforms.github import job_summary
from autograder.platforms.gradescope import results_json
from autograder.records.model import Graded, Result

STEERING = ("\x1b", "\x07", "\x08", "\x9b", "\u202e", "\u2066", "\u200f", "\ud800")
"""Characters that drive a terminal or turn text around."""


def outputs(graded: Graded) -> dict[str, str]:
    """By name, the text of every output."""
    result = graded.result
    if result is None:
        return {
            "terminal": "\n".join(
                describe_ungraded(GradeSummary((), (graded,), 0, 0.0))
            ),
            "problem": graded.problem,
            "junit": "".join(junit_xml([], [graded])),
        }
    return {
        "result": result.to_json(),
        "feedback.html": render_feedback(result),
        "report.html": "".join(
            render_report(result.assignment, [mark_from_result(result)])
        ),
        "terminal": _terminal([result]),
        "csv": render_student_csv([mark_from_result(result)]),
        "tests.csv": "".join(render_test_csv([mark_from_result(result)])),
        "junit": "".join(junit_xml([result], [])),
        "github": job_summary([result]),
        "gradescope": results_json(result),
    }


def _terminal(results: list[Result]) -> str:
    printed = io.StringIO()
    Console(file=printed, width=120, force_terminal=False).print(
        terminal_table(results, 0, 0)
    )
    return printed.getvalue()


class _Tags(HTMLParser):
    def __init__(self, own: str) -> None:
        super().__init__()
        self._own = own
        self.bad: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            is_link = name in ("href", "src", "action", "formaction")
            if name.startswith("on") or (is_link and not self._is_own(value or "")):
                self.bad.append(f"<{tag} {name}={value!r}>")

    def _is_own(self, address: str) -> bool:
        is_path = bool(self._own) and address.startswith(self._own)
        return address.startswith("#") or (is_path and not address.startswith("//"))


def live_parts(page: str, own: str = "") -> list[str]:
    """What a page would run, fetch or send.

    Args:
        own: how links and forms to the page's own server begin, as "/"; "" for a page that stands
            alone, and has none.
    """
    parser = _Tags(own)
    parser.feed(page)
    live = {"script", "iframe", "object", "embed", "base", "img"}
    if not own:
        live.add("form")
    return parser.bad + [tag for tag in parser.tags if tag in live]


def formulas(table: str) -> list[str]:
    """Cells that a spreadsheet would compute."""
    cells = [cell for row in csv.reader(io.StringIO(table)) for cell in row]
    return [
        cell
        for cell in cells
        if cell[:1] in ("=", "+", "-", "@", "\t", "\r") and not cell[1:2].isdigit()
    ]

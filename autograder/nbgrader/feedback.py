"""Feedback pages: no hidden test in them, and nothing of a student's that runs in the reader's browser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import bleach  # type: ignore[import-untyped]
from jinja2 import pass_context
from jinja2.runtime import Context
from nbconvert.exporters import HTMLExporter
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import is_grade
from traitlets import List

from autograder.course import find_course
from autograder.nbgrader.late import refresh_penalty

_HIDDEN = re.compile(r"^[^\n]*### BEGIN HIDDEN TESTS.*?(?:^[^\n]*### END HIDDEN TESTS[^\n]*(?:\n|\Z)|\Z)", re.M | re.S)


class FeedbackStep(NbGraderPreprocessor):  # type: ignore[misc]
    """A preprocessor of feedback pages: those are configured with the order in which outputs are preferred."""

    display_data_priority = List().tag(config=True)


class HideTests(FeedbackStep):
    """Takes hidden tests, and tracebacks that show them, out of what students see.

    Our suites are in no cell. A notebook written with nbgrader's own hidden-test markers is graded by nbgrader, whose
    feedback shows those tests.
    """

    def preprocess_cell(self, cell: Any, resources: Any, index: int) -> tuple[Any, Any]:
        if cell.cell_type == "code" and is_grade(cell) and "### BEGIN HIDDEN TESTS" in cell.source:
            cell.source = _HIDDEN.sub("", cell.source).rstrip("\n")
            cell.outputs = [_without_source(output) for output in cell.outputs]
        return cell, resources


class UpToDatePenalty(FeedbackStep):
    """Works the late penalty out again: a moved due date, an extension or a manual score may have changed it."""

    def preprocess(self, notebook: Any, resources: Any) -> tuple[Any, Any]:
        where = resources["nbgrader"]
        with Gradebook(where["db_url"]) as gradebook:
            submitted = gradebook.find_submission_notebook(where["notebook"], where["assignment"], where["student"])
            refresh_penalty(submitted, find_course(Path.cwd()).late)
            gradebook.db.commit()
        return notebook, resources


_TAGS = frozenset(
    {"a", "abbr", "b", "blockquote", "br", "code", "dd", "del", "details", "div", "dl", "dt", "em", "figcaption",
     "figure", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "li", "ol", "p", "pre", "s", "span", "strong",
     "sub", "summary", "sup", "table", "tbody", "td", "th", "thead", "tr", "u", "ul"}
)  # fmt: skip
_ATTRIBUTES = {"*": ["class", "id", "title"], "a": ["href"], "img": ["src", "alt", "width", "height"],
               "td": ["align", "colspan", "rowspan"], "th": ["align", "colspan", "rowspan"]}  # fmt: skip
_exporter = HTMLExporter()


@pass_context
def markdown_to_html(context: Context, source: str) -> str:
    """nbconvert's Markdown filter, without scripts: a student's text is read by people who are logged in."""
    html = _exporter.markdown2html(context, source)
    protocols = ["http", "https", "mailto", "data"]
    return str(bleach.clean(html, tags=_TAGS, attributes=_ATTRIBUTES, protocols=protocols))


def _without_source(output: Any) -> Any:
    """An error's name instead of its traceback, which quotes the failing line."""
    if output.output_type == "error":
        output.evalue, output.traceback = "", [f"{output.ename}: a hidden test failed"]
    return output

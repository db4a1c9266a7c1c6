"""Feedback pages without hidden tests, and without student code that runs in a browser."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from nbconvert.exporters import HTMLExporter, TemplateExporter
from nbconvert.filters import Highlight2HTML
from nbconvert.filters.widgetsdatatypefilter import WidgetsDataTypeFilter
from nbformat import NotebookNode
from nbgrader.api import Assignment, Comment, Grade, Gradebook
from nbgrader.preprocessors import GetGrades, NbGraderPreprocessor
from nbgrader.utils import is_grade
from sqlalchemy.orm import joinedload, undefer
from traitlets import List

from autograder.course import find_course
from autograder.nbgrader.autograded import is_guide
from autograder.nbgrader.late_penalty import refresh_penalties
from autograder.nbgrader.student_html import LONGEST_KEPT

_HIDDEN = re.compile(
    r"^[^\n]*### BEGIN HIDDEN TESTS.*?(?:^[^\n]*### END HIDDEN TESTS[^\n]*(?:\n|\Z)|\Z)",
    re.M | re.S,
)


class FeedbackStep(NbGraderPreprocessor):  # type: ignore[misc]
    """A preprocessor of feedback pages; nbgrader configures its order of preferred outputs."""

    display_data_priority = List().tag(config=True)


class HideFromStudents(FeedbackStep):
    """Removes marking guides, hidden tests, and tracebacks that show hidden tests.

    The kit's suites are in no cell. Only notebooks with nbgrader's own hidden-test markers have
    hidden tests in cells, and nbgrader's feedback would show them.
    """

    def preprocess(self, notebook: Any, resources: Any) -> tuple[Any, Any]:
        notebook.cells = [cell for cell in notebook.cells if not is_guide(cell)]
        return super().preprocess(notebook, resources)  # type: ignore[no-any-return]

    def preprocess_cell(
        self,
        cell: Any,
        resources: Any,
        index: int,
    ) -> tuple[Any, Any]:
        if (
            cell.cell_type == "code"
            and is_grade(cell)
            and "### BEGIN HIDDEN TESTS" in cell.source
        ):
            cell.source = _HIDDEN.sub("", cell.source).rstrip("\n")
            cell.outputs = [_without_source(output) for output in cell.outputs]
        return cell, resources


class UpToDatePenalty(FeedbackStep):
    """Works the assignment's late penalties out again, before the first page of a command.

    A moved due date, an extension or a manual score may have changed them. nbgrader makes its
    preprocessors anew for each command, so one instance sees all pages of one assignment.
    """

    _is_done = False

    def preprocess(self, notebook: Any, resources: Any) -> tuple[Any, Any]:
        if not self._is_done:
            where = resources["nbgrader"]
            with Gradebook(where["db_url"]) as gradebook:
                refresh_penalties(
                    gradebook.db,
                    find_course(Path.cwd()),
                    Assignment.name == where["assignment"],
                )
                gradebook.db.commit()
            self._is_done = True
        return notebook, resources


class GradesAtOnce(GetGrades):  # type: ignore[misc]
    """nbgrader's step that adds scores and comments to cells, with two queries for a notebook.

    nbgrader's own class makes two queries for each cell.
    """

    def preprocess(self, notebook: Any, resources: Any) -> tuple[Any, Any]:
        self._rows: dict[type, dict[str, Any]] = {}
        return super().preprocess(notebook, resources)  # type: ignore[no-any-return]

    def _get_score(self, cell: Any, resources: Any) -> None:
        grade = self._find_row(cell, Grade, undefer(Grade.max_score))
        if grade is None:
            super()._get_score(cell, resources)  # warns of the missing grade
        else:
            cell.metadata.nbgrader.update(score=grade.score, points=grade.max_score)

    def _get_comment(self, cell: Any, resources: Any) -> None:
        comment = self._find_row(cell, Comment)
        if comment is None:
            super()._get_comment(cell, resources)
        else:
            cell.metadata.nbgrader["comment"] = comment.comment

    def _find_row(self, cell: Any, table: Any, *options: Any) -> Any:
        """The cell's grade or comment, of all that the notebook has."""
        if table not in self._rows:
            names = (self.notebook_id, self.assignment_id, self.student_id)
            notebook = self.gradebook.find_submission_notebook(*names)
            query = self.gradebook.db.query(table).filter(
                table.notebook_id == notebook.id
            )
            rows = query.options(joinedload(table.cell), *options)
            self._rows[table] = {row.cell.name: row for row in rows}
        return self._rows[table].get(cell.metadata["nbgrader"]["grade_id"])


class FeedbackExporter(HTMLExporter):  # type: ignore[misc]
    """nbconvert's exporter for a whole class, in half the time.

    Equal cells of different notebooks are rendered once. nbconvert's second parse of a finished
    page is left out: with nbgrader's template it only marks plots as without a description.
    """

    def from_notebook_node(
        self, nb: NotebookNode, resources: dict[str, Any] | None = None, **kw: Any
    ) -> tuple[str, dict[str, Any]]:
        language = nb.metadata.get("language_info", {})
        highlight = _Highlighter(language.get("pygments_lexer", language.get("name")))
        resources = self._init_resources(resources)
        self.register_filter("highlight_code", highlight)
        widgets = WidgetsDataTypeFilter(
            notebook_metadata=self._nb_metadata, parent=self, resources=resources
        )
        self.register_filter("filter_data_type", widgets)
        page, resources = TemplateExporter.from_notebook_node(self, nb, resources, **kw)
        return page.replace("<head>", f"<head>\n{_POLICY}", 1), resources


_MATHJAX = "https://cdnjs.cloudflare.com/ajax/libs/mathjax/"
_POLICY = (
    '<meta http-equiv="Content-Security-Policy" content="'
    f"default-src 'none'; script-src {_MATHJAX} 'unsafe-eval'; connect-src "
    "https://api.cdnjs.com/libraries/mathjax; "
    f"font-src {_MATHJAX}; style-src 'unsafe-inline' {_MATHJAX}; img-src data: http: https: "
    "file: 'self'; "
    "base-uri 'none'; form-action 'none'\">"
)
"""No script runs in a feedback page but MathJax, which evaluates its own configuration. Where a
page is opened as a file, pictures beside it are `file:` and not 'self'.
"""


class _Highlighter(Highlight2HTML):  # type: ignore[misc]
    def __call__(
        self,
        source: str,
        language: str | None = None,
        metadata: Any = None,
    ) -> str:
        lexer = language or self.pygments_lexer
        if len(source) > LONGEST_KEPT:
            return str(Highlight2HTML(lexer)(source))
        return _highlighted(source, lexer)


@lru_cache(maxsize=1024)
def _highlighted(source: str, language: str) -> str:
    return str(Highlight2HTML(language)(source))


def _without_source(output: Any) -> Any:
    """Replace the traceback of an error, which quotes the failing line, by the error's name."""
    if output.output_type == "error":
        output.evalue, output.traceback = "", [f"{output.ename}: a hidden test failed"]
    return output

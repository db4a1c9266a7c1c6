"""Makes the formgrader's pages safe: with the open course's filters, and names as text.

nbgrader makes its exporter once, from the settings of the folder in which Jupyter was started. A
course that is opened from another folder (`/formgrader?path=…`) would be shown without the course's
filters, and so with students' live links. nbgrader's templates do not escape students' names, which
may be HTML.
"""

from __future__ import annotations

import html
import sys
from collections.abc import Mapping
from typing import Any


def make_pages_safe() -> None:
    """Replace parts of nbgrader's page handlers, in a Jupyter server with a formgrader."""
    base = sys.modules.get("nbgrader.server_extensions.formgrader.base")
    if base is not None:
        base.BaseHandler.exporter = property(_PagesOfCourse)
        base.BaseHandler.render = _render


class _PagesOfCourse:
    """An exporter for one page, with the one method that nbgrader's handlers call."""

    def __init__(self, handler: Any) -> None:
        from nbconvert.exporters import HTMLExporter

        self._exporter = HTMLExporter(
            config=handler.settings["nbgrader_formgrader"].config
        )

    def from_filename(self, filename: str, resources: Mapping[str, Any]) -> Any:
        return self._exporter.from_filename(filename, resources=_as_text(resources))


def _render(handler: Any, name: str, **values: Any) -> Any:
    """Render a template like nbgrader's own `render`, with escaped values."""
    return (
        handler.settings["nbgrader_jinja2_env"]
        .get_template(name)
        .render(**_as_text(values))
    )


def _as_text(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with each text escaped for HTML, also inside mappings."""
    return {key: _escaped(value) for key, value in values.items()}


def _escaped(value: Any) -> Any:
    if isinstance(value, dict):
        return _as_text(value)
    return html.escape(value) if isinstance(value, str) else value

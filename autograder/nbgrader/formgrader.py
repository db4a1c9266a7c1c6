"""The formgrader's pages for a course of the kit: by the settings of the open course, with names as
text.

nbgrader makes its exporter once, from the settings of the folder in which Jupyter was started: a
course that is opened from another folder (`/formgrader?path=…`) would be shown without its own
filters, and so with students' live links. Its templates write names of students as they are: a name
may be HTML.
"""

from __future__ import annotations

import html
import sys
from collections.abc import Mapping
from typing import Any


def make_pages_safe() -> None:
    """Mend nbgrader's handlers of pages, where this process is a Jupyter server with a
    formgrader.
    """
    base = sys.modules.get("nbgrader.server_extensions.formgrader.base")
    if base is not None:
        base.BaseHandler.exporter = property(_PagesOfCourse)
        base.BaseHandler.render = _render


class _PagesOfCourse:
    """The part of an exporter that nbgrader's handlers call, made anew for each page."""

    def __init__(self, handler: Any) -> None:
        from nbconvert.exporters import HTMLExporter

        self._exporter = HTMLExporter(config=handler.settings["nbgrader_formgrader"].config)

    def from_filename(self, filename: str, resources: Mapping[str, Any]) -> Any:
        return self._exporter.from_filename(filename, resources=_as_text(resources))


def _render(handler: Any, name: str, **values: Any) -> Any:
    """nbgrader's own `render`, but for the escapes."""
    return handler.settings["nbgrader_jinja2_env"].get_template(name).render(**_as_text(values))


def _as_text(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with every text escaped for HTML, also in mappings among them."""
    return {key: _escaped(value) for key, value in values.items()}


def _escaped(value: Any) -> Any:
    if isinstance(value, dict):
        return _as_text(value)
    return html.escape(value) if isinstance(value, str) else value

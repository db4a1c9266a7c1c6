"""The formgrader renders each page by the settings of the course that is open in it.

nbgrader makes its exporter once, from the settings of the folder in which Jupyter was started. A course that is opened
from another folder (`/formgrader?path=…`) would be shown without its own filters, and so with live links of students'.
"""

from __future__ import annotations

import sys
from typing import Any


def use_settings_of_the_open_course() -> None:
    """Make the formgrader's exporter anew for each page, where this process is a Jupyter server with a formgrader."""
    base = sys.modules.get("nbgrader.server_extensions.formgrader.base")
    if base is not None:
        base.BaseHandler.exporter = property(_exporter)


def _exporter(handler: Any) -> Any:
    from nbconvert.exporters import HTMLExporter

    return HTMLExporter(config=handler.settings["nbgrader_formgrader"].config)

"""Counts the lines of a notebook's Python that a call runs; hostile code can forge the count."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from autograder.worker.cells import is_cell_file
from autograder.worker.companion_modules import is_companion_file


class LineCounter:
    """Counts lines of cells and companions while it is entered, each time that one runs.

    A turn of a loop or a comprehension on one line counts as a line. Code of libraries is not
    counted, so that a count says how often the student's own steps are taken.

    Attributes:
        count: the lines so far.
    """

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> LineCounter:
        sys.settrace(self._follow)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(None)

    def _follow(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Python's question at each new frame: who counts its lines."""
        file = frame.f_code.co_filename
        return (
            self._count_line if is_cell_file(file) or is_companion_file(file) else None
        )

    def _count_line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self.count += 1
        return self._count_line

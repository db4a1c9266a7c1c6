"""Marks the lines of the engine that run, in a file that several processes map.

Graders are forks; stations and commands are started by exec and find `sitecustomize.py` beside the
file. Hosts and workers start with `-I` and are not traced: they run `worker/`, which nothing else
imports. A byte stands for a line, so that processes need no lock.
"""

from __future__ import annotations

import json
import mmap
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

FOLDER = "LINE_MARKS"
"""The environment variable that names the folder of the marks."""
_START = f"""\
import os, sys
from pathlib import Path
if {FOLDER!r} in os.environ:
    sys.path.append({str(Path(__file__).parent)!r})
    import line_marks
    line_marks.LineMarks(Path(os.environ[{FOLDER!r}])).start()
"""

Trace = Callable[[FrameType, str, Any], Any]


class LineMarks:
    """The lines that ran since the last `take`, in this process and those that it started."""

    def __init__(self, folder: Path) -> None:
        text = (folder / "offsets.json").read_text(encoding="utf-8")
        self.offsets: dict[str, int] = json.loads(text)
        with (folder / "marks").open("r+b") as file:
            self.marks = mmap.mmap(file.fileno(), 0)
        self._tracers: dict[str, Trace] = {}
        for path, offset in self.offsets.items():
            self._tracers[path] = _tracer(self.marks, offset)

    def start(self) -> None:
        """Mark lines from here on in this process, its threads and its forks.

        Python stops tracing where a trace function raises: after a RecursionError, say. So each
        test starts it anew.
        """
        threading.settrace(self._enter)
        sys.settrace(self._enter)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        tracer = self._tracers.get(frame.f_code.co_filename)
        return tracer and tracer(frame, event, argument)

    def take(self) -> dict[str, list[int]]:
        """Path of a module → its marked lines in order; then no line is marked."""
        starts = list(self.offsets.items())
        ends = [start for _, start in starts[1:]] + [len(self.marks)]
        lines = {}
        for (path, start), end in zip(starts, ends, strict=True):
            marked = [line for line, mark in enumerate(self.marks[start:end]) if mark]
            if marked:
                lines[path] = marked
        self.marks[:] = bytes(len(self.marks))
        return lines


def lay_out(tree: Path, folder: Path) -> None:
    """Write an empty file of marks for the modules of a tree, and what starts the marking."""
    offsets = {}
    end = 0
    for module in sorted((tree / "autograder").rglob("*.py")):
        offsets[str(module)] = end
        end += module.read_bytes().count(b"\n") + 2
    folder.mkdir(parents=True)
    (folder / "offsets.json").write_text(json.dumps(offsets), encoding="utf-8")
    (folder / "marks").write_bytes(bytes(end))
    (folder / "sitecustomize.py").write_text(_START, encoding="utf-8")


def _tracer(marks: mmap.mmap, offset: int) -> Trace:
    """The trace function of one module."""

    def mark(frame: FrameType, event: str, argument: Any) -> Any:
        line: int = frame.f_lineno
        marks[offset + line] = 1
        return mark

    return mark

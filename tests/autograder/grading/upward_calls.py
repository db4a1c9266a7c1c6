"""Grades as the command line does, and prints each call that leads up: from a module into one that imports it.

    python upward_calls.py FILE autograder-arguments...

FILE gets a line "caller -> callee" for each such pair of modules, from the command line's process and
the graders that it forks. Every call counts, through libraries too: click, socket, pickle.
"""

from __future__ import annotations

import os
import sys
import threading
from graphlib import TopologicalSorter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from test_architecture import IMPORTS, PACKAGE

APPLY_FUNCTIONS = (
    "diagnosis/shrinking.py",
    "suite/script_steps.py",
    "suite/scripts.py",
)
"""Modules that apply a function of their caller's to parts of a script: the caller counts."""


def modules_below() -> dict[str, set[str]]:
    """For each module the modules that it imports, directly or not."""
    below: dict[str, set[str]] = {}
    for module in TopologicalSorter(IMPORTS).static_order():
        imports = IMPORTS[module]
        below[module] = imports.union(*(below[other] for other in imports))
    return below


class UpwardCalls:
    """A profile function that writes each pair of modules once."""

    def __init__(self, file: Path) -> None:
        self._below = modules_below()
        self._file = os.open(
            file, os.O_WRONLY | os.O_CREAT | os.O_APPEND
        )  # one for all forks
        self._pairs: set[tuple[str, str]] = set()
        self._modules: dict[CodeType, str] = {}

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        callee = self._module(frame.f_code)
        if event != "call" or not callee:
            return
        caller_frame = frame.f_back
        while caller_frame is not None and self._is_passed(caller_frame.f_code):
            caller_frame = caller_frame.f_back
        if caller_frame is None:
            return
        pair = (self._module(caller_frame.f_code), callee)
        if pair not in self._pairs:
            self._pairs.add(pair)
            if pair[0] in self._below.get(callee, ()):
                os.write(self._file, f"{pair[0]} -> {callee}\n".encode())

    def _is_passed(self, code: CodeType) -> bool:
        """Whether calls go through this code: a library's, or what applies a function."""
        module = self._module(code)
        return not module or module in APPLY_FUNCTIONS

    def _module(self, code: CodeType) -> str:
        if code not in self._modules:
            path = Path(code.co_filename)
            inside = path.is_relative_to(PACKAGE)
            self._modules[code] = path.relative_to(PACKAGE).as_posix() if inside else ""
        return self._modules[code]


def main() -> None:
    """Run `autograder` with the arguments that follow FILE."""
    calls = UpwardCalls(Path(sys.argv[1]))
    from autograder.cli import main as autograder

    sys.argv = ["autograder", *sys.argv[2:]]
    threading.setprofile(calls)
    sys.setprofile(calls)
    autograder()


if __name__ == "__main__":
    main()

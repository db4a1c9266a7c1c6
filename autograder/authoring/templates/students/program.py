"""DOCSTRING"""

from __future__ import annotations

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path

THIS_FILE = Path(__file__).resolve()
MODULE, PROGRAM = "#@ ", "#| "
"""Beginnings of lines at the end of this file: a module's name, a line of its text."""


class CarriedModules(MetaPathFinder, Loader):
    """Import the modules in this file, which are copies of the grader's."""

    def __init__(self) -> None:
        texts: dict[str, list[str]] = {}
        lines: list[str] = []
        for line in THIS_FILE.read_text(encoding="utf-8").split("\n"):
            if line.startswith(MODULE):
                lines = texts.setdefault(line[len(MODULE) :].strip(), [])
            elif line.startswith(PROGRAM.rstrip()):
                lines.append(line[len(PROGRAM) :])
        self.sources = {name: "\n".join(text) + "\n" for name, text in texts.items()}

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> ModuleSpec | None:
        """Find a module, or a package that contains a module and has no text."""
        is_package = any(name.startswith(fullname + ".") for name in self.sources)
        if is_package or fullname in self.sources:
            return ModuleSpec(fullname, self, is_package=is_package)
        return None

    def exec_module(self, module) -> None:  # type: ignore[no-untyped-def]  # a types.ModuleType
        """Run the text of a module."""
        source = self.sources.get(module.__name__, "")
        exec(
            compile(
                source,
                f"{THIS_FILE.name}: {module.__name__}",
                "exec",
                dont_inherit=True,
            ),
            vars(module),
        )


if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036  # a student may have an older one
        sys.exit(
            f"{THIS_FILE.name} needs Python 3.11 or later, and this is {sys.version.split()[0]}"
        )
    sys.meta_path.insert(0, CarriedModules())
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a console may lack a letter
    if sys.argv[1:] == ["--run-cells"]:
        importlib.import_module("RUNNER").main()
    else:
        sys.exit(importlib.import_module("ENTRY").main(sys.argv[1:], THIS_FILE))

"""Makes `check.py` and `make_my_course.py` for students: single files that plain Python runs.

A program is a small loader and, in lines of comments, the texts of the modules that the loader
imports. So students run the reader and the matcher of `intake/` unchanged, and read a notebook
exactly as grading does.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

_KIT = Path(__file__).parents[1]
_TEMPLATE = Path(__file__).with_name("templates") / "students" / "program.py"
_RUNNER = "autograder.worker.cell_runner"
"""The program that `check.py` starts to run a notebook's cells."""


def check_program() -> bytes:
    """The text of `check.py`."""
    return _program("autograder.student_tools.self_check", _RUNNER)


def my_course_program() -> bytes:
    """The text of `make_my_course.py`."""
    return _program("autograder.student_tools.make_my_course")


def _program(entry: str, *started: str) -> bytes:
    """A file with the kit's modules `entry` and `started`, and every module of the kit that these
    import, by name.
    """
    sources: dict[str, str] = {}
    waiting = [entry, *started]
    while waiting:
        module = waiting.pop()
        if module not in sources:
            sources[module] = (_KIT.parent / f"{module.replace('.', '/')}.py").read_text(
                encoding="utf-8"
            )
            waiting += _imported_from_kit(module, ast.parse(sources[module]))
    docstring = ast.get_docstring(ast.parse(sources[entry]), clean=False) or ""
    start = _TEMPLATE.read_text(encoding="utf-8")
    start = (
        start.replace("DOCSTRING", docstring.rstrip())
        .replace("ENTRY", entry)
        .replace("RUNNER", _RUNNER)
    )
    carried = [line for name, source in sorted(sources.items()) for line in _carried(name, source)]
    return "\n".join([start, "", *carried, ""]).encode()


def _carried(name: str, source: str) -> Iterator[str]:
    """A module as lines of comments."""
    yield f"#@ {name}"
    yield from (f"#| {line}".rstrip() for line in source.rstrip("\n").split("\n"))


def _imported_from_kit(module: str, tree: ast.Module) -> Iterator[str]:
    """Modules of the kit that a module imports when it is imported itself; others must be Python's
    own.
    """
    for node in tree.body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            if name.startswith("autograder."):
                yield name
            elif name.partition(".")[0] not in sys.stdlib_module_names:
                raise ImportError(f"{module} imports {name}, which a student may not have")

"""Make `check.py` and `make_my_course.py` for students: single files that plain Python runs.

A program is a small loader and, in lines of comments, the texts of the modules that the loader
imports. So students run the reader and the matcher of `intake/` unchanged, and read a notebook
exactly as grading does.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from autograder.authoring.check_names import names_of_checks
from autograder.course import Assignment, Course
from autograder.intake.handed_in_weights import weights_limit
from autograder.intake.nicknames import MOST_NICKNAME_BYTES, takes_nickname
from autograder.intake.released_notebook import load_release
from autograder.student_tools.release_table import TABLE_SUFFIX

_KIT = Path(__file__).parents[1]
_TEMPLATE = Path(__file__).with_name("templates") / "students" / "program.py"
_RUNNER = "autograder.worker.cell_runner"
"""The program that `check.py` starts to run a notebook's cells."""


CHECK, MAKE_MY_COURSE = "check.py", "make_my_course.py"
LIMITS = ("notebook_mb", "cell_seconds", "submission_seconds", "memory_mb", "file_mb")
"""The course's limits that `check.py` keeps to."""


def student_programs(course: Course, assignment: Assignment) -> dict[str, bytes]:
    """The programs beside a release, and the table that `check.py` reads, by file name.

    The first assignment of a course has no earlier one that a student could go on with.
    """
    files = {
        CHECK: _program("autograder.student_tools.self_check", _RUNNER),
        f"{assignment.name}{TABLE_SUFFIX}": _table(course, assignment).encode(),
    }
    if assignment.name != course.assignments()[0].name:
        files[MAKE_MY_COURSE] = _program("autograder.student_tools.make_my_course")
    return files


def _table(course: Course, assignment: Assignment) -> str:
    """The released notebook, and the facts that `check.py` needs: nothing of suite or answers."""
    release = load_release(assignment)
    limits = {name: getattr(course.limits, name) for name in LIMITS}
    if weights := weights_limit(course, assignment.name):
        limits["weights_mb"] = weights >> 20
    if takes_nickname(course, assignment):
        limits["nickname_bytes"] = MOST_NICKNAME_BYTES
    table = {
        "assignment": assignment.name,
        "companions": release.companions,
        "limits": limits,
        "only_in_checks": names_of_checks(release),
        "release": json.loads(assignment.release.read_bytes()),
    }
    return json.dumps(table, indent=1) + "\n"


def _program(entry: str, *started: str) -> bytes:
    """A file with the modules `entry` and `started`, and all modules of the kit that they import.

    The file's docstring is that of `entry`.
    """
    sources: dict[str, str] = {}
    waiting = [entry, *started]
    while waiting:
        module = waiting.pop()
        if module not in sources:
            sources[module] = _path_of(module).read_text(encoding="utf-8")
            waiting += _imported_from_kit(module, ast.parse(sources[module]))
    docstring = ast.get_docstring(ast.parse(sources[entry]), clean=False) or ""
    loader = _TEMPLATE.read_text(encoding="utf-8")
    loader = loader.replace("DOCSTRING", docstring.rstrip())
    loader = loader.replace("ENTRY", entry).replace("RUNNER", _RUNNER)
    lines = [loader, ""]
    for name, source in sorted(sources.items()):
        lines.append(f"#@ {name}")
        lines += [f"#| {line}".rstrip() for line in source.rstrip("\n").split("\n")]
    return "\n".join([*lines, ""]).encode()


def _path_of(module: str) -> Path:
    """The file of a module, or of a package's face."""
    place = _KIT.parent / module.replace(".", "/")
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def _imported_from_kit(module: str, tree: ast.Module) -> Iterator[str]:
    """Modules of the kit that a module imports at its top level; all others must be Python's."""
    for node in tree.body:
        match node:
            case ast.Import():
                names = [alias.name for alias in node.names]
            case ast.ImportFrom():
                names = [node.module or ""]
            case _:
                continue
        for name in names:
            if name.startswith("autograder."):
                yield name
            elif name.partition(".")[0] not in sys.stdlib_module_names:
                raise ImportError(
                    f"{module} imports {name}, which a student may not have"
                )

"""Runs Python of a course: a file that lies beside a suite and in no package, and a cell."""

from __future__ import annotations

import importlib.util
import linecache
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


def run_python_file(
    path: Path, name: str, *, is_registered: bool = False
) -> ModuleType:
    """The module of a file; raises what the file raises.

    Args:
        name: the module's name.
        is_registered: whether `sys.modules` gets the module: dataclasses with annotations as text
            look theirs up there.
    """
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if is_registered:
        sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def run_cell(source: str, file: str, names: dict[str, Any]) -> None:
    """Run the text of a cell; raises what the text raises.

    Args:
        file: the file name in tracebacks. There is no such file: tracebacks, and what asks for the
            text of a function as triton.jit does, are given the lines of the cell.
        names: what the cell sees, and where its names go.
    """
    lines = source.splitlines(keepends=True)
    linecache.cache[file] = (len(source), None, lines, file)
    exec(compile(source, file, "exec", dont_inherit=True), names)

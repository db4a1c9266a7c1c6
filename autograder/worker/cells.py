"""Runs the cells of one submission, each by itself: an error costs the cell it is in."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import linecache
import traceback
from collections.abc import Collection, Mapping
from itertools import zip_longest
from types import CodeType
from typing import Any

from autograder.worker.stand_in_hooks import compile_with_hooks

MAX_MESSAGE = 2000
_PREFIX = "<cell "
_HOOKS_FILE = compile_with_hooks.__code__.co_filename
_compiled_ahead: dict[tuple[str, str], CodeType] = {}


def cell_file(cell_id: str) -> str:
    """The file name of a compiled cell, which tracebacks and `inspect.getsource` use."""
    return f"{_PREFIX}{cell_id}>"


def is_cell_file(file: str) -> bool:
    """Whether code with this file name was compiled from a cell."""
    return file.startswith(_PREFIX)


def compile_ahead(cells: Mapping[str, str]) -> None:
    """Compile cells (id to text) that most submissions have alike, before the first worker is
    forked.
    """
    for cell_id, source in cells.items():
        with contextlib.suppress(SyntaxError, ValueError):  # the worker reports them
            _compiled_ahead[cell_id, source] = _compile(cell_id, source)


def _compile(cell_id: str, source: str, functions: Collection[str] = ()) -> CodeType:
    return compile_with_hooks(
        source, cell_file(cell_id), ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, functions
    )


def run_cell(
    cell_id: str,
    source: str,
    names: dict[str, Any],
    functions: Collection[str] = (),
) -> dict[str, Any] | None:
    """Run one cell in the shared namespace; returns None, or the error as `describe_error` has it.

    Args:
        functions: names of functions that may be stood in for.
    """
    file = cell_file(cell_id)
    # inspect.getsource, and with it triton.jit, reads functions from here: there is no file
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    try:
        code = _compiled_ahead.get((cell_id, source)) or _compile(
            cell_id, source, functions
        )
        # an `await` outside of functions, which Jupyter allows
        if code.co_flags & inspect.CO_COROUTINE:
            asyncio.run(eval(code, names))
        else:
            exec(code, names)
    except BaseException as error:
        return describe_error(error)
    return None


def describe_error(error: BaseException) -> dict[str, Any]:
    """An exception as data: type, message, the frames that lie in the student's cells, names of its
    classes.
    """
    kind = type(error)
    return {
        "type": kind.__name__[:100],
        "message": _message(error),
        "frames": _frames(error),
        "kinds": [base.__name__[:100] for base in kind.__mro__[:12]],
    }


def _message(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"{error.msg} (line {error.lineno})"
    try:
        return str(error)[:MAX_MESSAGE]
    except Exception:
        return "(the exception has no readable message)"


def _frames(error: BaseException) -> list[str]:
    frames = []
    trace = traceback.extract_tb(error.__traceback__)
    for frame, inner in zip_longest(trace, trace[1:]):
        # a function that is stood in for, in whose hook the stand-in raised: none of its lines ran
        is_hook = inner is not None and inner.filename == _HOOKS_FILE
        if frame.filename.startswith(_PREFIX) and not is_hook:
            cell = frame.filename.removeprefix(_PREFIX).removesuffix(">")
            line = (frame.line or "")[:200]
            frames.append(f"cell {cell}, line {frame.lineno}, in {frame.name}: {line}")
    return frames[-8:]

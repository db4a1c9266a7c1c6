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

from autograder.worker.asking import compile_asking

MAX_MESSAGE = 2000
_PREFIX = "<cell "
_ASKING_FILE = compile_asking.__code__.co_filename
_ahead: dict[tuple[str, str], CodeType] = {}


def cell_file(cell_id: str) -> str:
    """The file name under which a cell is compiled: what tracebacks and `inspect.getsource` know it
    by.
    """
    return f"{_PREFIX}{cell_id}>"


def compile_ahead(cells: Mapping[str, str]) -> None:
    """Compile cells (id to text) that most submissions have alike, before the first worker is
    forked: that of the interpreter for kernels takes longer than all of a student's own.
    """
    for cell_id, source in cells.items():
        with contextlib.suppress(SyntaxError, ValueError):  # which the worker tells
            _ahead[cell_id, source] = _compiled(cell_id, source)


def _compiled(cell_id: str, source: str, asking: Collection[str] = ()) -> CodeType:
    return compile_asking(source, cell_file(cell_id), ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, asking)


def run_cell(
    cell_id: str, source: str, names: dict[str, Any], asking: Collection[str] = ()
) -> dict[str, Any] | None:
    """Run one cell in the shared namespace; None, or what went wrong as `describe_error` gives it.

    Args:
        asking: names of functions that may be stood in for.
    """
    file = cell_file(cell_id)
    # inspect.getsource, and with it triton.jit, reads functions from here: there is no file
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    try:
        code = _ahead.get((cell_id, source)) or _compiled(cell_id, source, asking)
        # an `await` outside of functions, which Jupyter allows
        if code.co_flags & inspect.CO_COROUTINE:
            asyncio.run(eval(code, names))
        else:
            exec(code, names)
    except BaseException as error:
        return describe_error(error)
    return None


def describe_error(error: BaseException) -> dict[str, Any]:
    """An exception as data: type, message, the frames that lie in the student's own cells, names of
    its classes.
    """
    kind = type(error)
    return {
        "type": kind.__name__[:100],
        "message": _text(error),
        "frames": _frames(error),
        "kinds": [base.__name__[:100] for base in kind.__mro__[:12]],
    }


def _text(error: BaseException) -> str:
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
        # a function that is stood in for: no line of it
        asked = inner is not None and inner.filename == _ASKING_FILE
        if frame.filename.startswith(_PREFIX) and not asked:
            cell = frame.filename[len(_PREFIX) : -1]
            frames.append(
                f"cell {cell}, line {frame.lineno}, in {frame.name}: {(frame.line or '')[:200]}"
            )
    return frames[-8:]

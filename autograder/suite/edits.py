"""An answer as changes of the answer key: each says what stands there and what stands there
instead.

Changes are looked for outside of docstrings, and each must be found exactly once, so that an edit
follows the answer key or fails loudly. Text of several lines is a block: whole lines, at whatever
indentation they stand. Text of one line may be a part of a line.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Sequence
from itertools import pairwise


class EditError(ValueError):
    """An edit that does not fit the answer key; says which of its changes, and why."""


def edited(source: str, changes: Sequence[tuple[str, str]]) -> str:
    """The cell `source` of the answer key after all changes, each of them made on the cell as it
    is.

    Raises:
        EditError: a text is not found, or more than once; changes overlap; nothing changes; what
            comes out is no Python.
    """
    searched = _without_docstrings(source)
    spans = sorted(_located(source, searched, old, new) for old, new in changes)
    for (_, end, _), (start, _, text) in pairwise(spans):
        if start < end:
            raise EditError(f"two of its changes overlap, at {_short(text)}")
    result = source
    for start, end, text in reversed(spans):
        result = result[:start] + text + result[end:]
    if result == source:
        raise EditError("it changes nothing")
    try:
        ast.parse(result)
    except SyntaxError as error:
        line = (error.text or "").strip()
        raise EditError(f"what comes out is no Python: {error.msg} at {_short(line)}") from error
    return result


def _located(source: str, searched: str, old: str, new: str) -> tuple[int, int, str]:
    """Where a change begins and ends, and the text that it puts there."""
    lines = _lines(old)
    if not any(line.strip() for line in lines):
        raise EditError("it replaces nothing: say what stands in the answer key")
    pattern = _block(lines) if len(lines) > 1 else re.escape(lines[0])
    found = list(re.finditer(pattern, searched, re.MULTILINE))
    if len(found) != 1:
        times = f"{len(found)} times" if found else "nowhere"
        raise EditError(
            f"{_short(old)} stands {times} in the answer key, where it should stand once"
        )
    start, end = found[0].span()
    begun = source[source.rfind("\n", 0, start) + 1 :]
    indentation = begun[: len(begun) - len(begun.lstrip(" "))]
    text = f"\n{indentation}".join(_lines(new)).replace(f"\n{indentation}\n", "\n\n")
    return start, end, indentation + text if len(lines) > 1 else text


def _lines(text: str) -> list[str]:
    return textwrap.dedent(text).strip("\n").split("\n") if "\n" in text else [text]


def _block(lines: Sequence[str]) -> str:
    """A pattern for these lines, all of them indented further by the same spaces."""
    rest = "".join(rf"\n\1{re.escape(line)}" if line.strip() else r"\n[ ]*" for line in lines[1:])
    return rf"^([ ]*){re.escape(lines[0])}{rest}$"


def _without_docstrings(source: str) -> str:
    """The source with blanks in place of its docstrings, every other character where it was."""
    lines = source.splitlines(keepends=True)
    holders = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for node in (found for found in ast.walk(ast.parse(source)) if isinstance(found, holders)):
        if ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            for number in range(first.lineno - 1, first.end_lineno or first.lineno):
                lines[number] = re.sub(r"[^\n]", " ", lines[number])
    return "".join(lines)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= 60 else line[:57] + "…")

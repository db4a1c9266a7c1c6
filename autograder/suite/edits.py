"""Applies changes to the answer key: the text of each change, and the text that replaces it.

Changes are searched outside of docstrings, and each text must be found exactly once, so that an
edit follows the answer key or fails loudly. Text of several lines is a block: whole lines, with any
indentation. Text of one line may be a part of a line.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Sequence
from itertools import pairwise


class EditError(ValueError):
    """A change does not fit the answer key. The message names the change and the reason."""


def apply_changes(
    source: str,
    changes: Sequence[tuple[str, str]],
) -> str:
    """The cell `source` of the answer key after all changes, each of which is located in the
    original cell.

    Raises:
        EditError: a text is not found, or more than once; changes overlap; nothing changes; the
            result is no Python.
    """
    searched = _without_docstrings(source)
    spans = sorted(_locate(source, searched, *change) for change in changes)
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
        raise EditError(
            f"what comes out is no Python: {error.msg} at {_short(line)}"
        ) from error
    return result


def _locate(
    source: str,
    searched: str,
    old: str,
    new: str,
) -> tuple[int, int, str]:
    """Where a change begins and ends, and its new text with the indentation of the old."""
    lines = _lines(old)
    if not any(line.strip() for line in lines):
        raise EditError("it replaces nothing: say what stands in the answer key")
    is_block = len(lines) > 1
    pattern = _block_pattern(lines) if is_block else re.escape(lines[0])
    matches = list(re.finditer(pattern, searched, re.MULTILINE))
    if len(matches) != 1:
        times = f"{len(matches)} times" if matches else "nowhere"
        raise EditError(
            f"{_short(old)} stands {times} in the answer key, where it should stand once"
        )
    start, end = matches[0].span()
    line_start = source.rfind("\n", 0, start) + 1
    line = source[line_start:]
    indentation = line[: len(line) - len(line.lstrip(" "))]
    text = textwrap.indent("\n".join(_lines(new)), indentation)
    return start, end, text if is_block else text.removeprefix(indentation)


def _lines(text: str) -> list[str]:
    if "\n" not in text:
        return [text]
    return textwrap.dedent(text).strip("\n").split("\n")


def _block_pattern(lines: Sequence[str]) -> str:
    """A pattern of these lines, all of them indented further by the same spaces."""
    pattern = rf"^([ ]*){re.escape(lines[0])}"
    for line in lines[1:]:
        pattern += rf"\n\1{re.escape(line)}" if line.strip() else r"\n[ ]*"
    return f"{pattern}$"


def _without_docstrings(source: str) -> str:
    """The source with blanks in place of its docstrings, every other character where it was."""
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            for number in range(
                docstring.lineno - 1, docstring.end_lineno or docstring.lineno
            ):
                lines[number] = re.sub(r"[^\n]", " ", lines[number])
    return "".join(lines)


def _short(text: str) -> str:
    """A text on one line of at most 60 characters, in quotes."""
    line = " ".join(text.split())
    return repr(line if len(line) <= 60 else line[:57] + "…")

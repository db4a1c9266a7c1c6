"""State the suite's bans (`forbid`) to students: in a question's docstring and visible check."""

from __future__ import annotations

import ast
import dataclasses
import textwrap
from collections.abc import Sequence

from autograder.authoring.source_notebook import SourceCell
from autograder.basics.errors import BadSource

STATEMENT = "Not allowed here:"
_WIDTH = 88
_REFUSED_BY_PATH = ("torch.optim.", "torch.nn.utils.")
"""These modules ask no TorchFunctionMode, so `refusing` needs the whole name."""


def names_for_students(forbidden: Sequence[str]) -> list[str]:
    """The forbidden names as students know them, without repetition: `softmax` for
    `torch.softmax` and `torch.Tensor.softmax`.

    A ban goes by the last part of a name. Modules keep their `nn.`, names outside torch stay
    whole; private names say nothing to students.
    """
    names: dict[str, str] = {}
    for name in forbidden:
        last = name.rsplit(".", 1)[-1]
        if any(part.startswith("_") for part in name.split(".")):
            continue
        if not name.startswith("torch."):
            names.setdefault(last, name)
        elif name.startswith("torch.nn.") and last[0].isupper():
            names.setdefault(last, f"nn.{last}")
        else:
            names.setdefault(last, last)
    return list(names.values())


def _is_of_torch(name: str) -> bool:
    return name.startswith("nn.") or "." not in name


def state_ban(cell: SourceCell, forbidden: Sequence[str]) -> SourceCell:
    """Add a last paragraph to a question's docstring that lists the forbidden functions.

    Raises:
        BadSource: the function has no docstring.
    """
    names = names_for_students(forbidden)
    if not names:
        return cell
    definition = _definition(cell)
    if definition is None or not ast.get_docstring(definition):
        raise BadSource(
            f"{cell.place}: the suite forbids {names[0]} in {cell.name}, and its function has no "
            "docstring that could say so"
        )
    docstring = definition.body[0]
    last = (docstring.end_lineno or 1) - 1
    indentation = " " * docstring.col_offset
    listed = ", ".join(sorted(names, key=lambda name: not _is_of_torch(name)))
    owner = "torch's " if any(map(_is_of_torch, names)) else ""
    paragraph = textwrap.wrap(
        f"{STATEMENT} {owner}{listed}.",
        _WIDTH,
        initial_indent=indentation,
        subsequent_indent=indentation + "    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    lines = cell.source.split("\n")
    closing = lines[last].rstrip()
    text, quotes = closing[:-3].rstrip(), closing[-3:]
    last_lines = [text] if text else []
    lines[last:] = [
        *last_lines,
        "",
        *paragraph,
        indentation + quotes,
        *lines[last + 1 :],
    ]
    return dataclasses.replace(cell, source="\n".join(lines))


def names_to_refuse(question: SourceCell, forbidden: Sequence[str]) -> list[str]:
    """The forbidden functions of torch's that the frame of the visible check refuses; none where
    the question asks for a class.
    """
    if not isinstance(_definition(question), ast.FunctionDef):
        return []
    paths = [
        name.removeprefix("torch.")
        for name in forbidden
        if name.startswith(_REFUSED_BY_PATH)
    ]
    refused_by_path = {path.rpartition(".")[2] for path in paths}
    names = [
        name.removeprefix("nn.")
        for name in names_for_students(forbidden)
        if _is_of_torch(name) and name not in refused_by_path
    ]
    return names + paths


def _definition(cell: SourceCell) -> ast.FunctionDef | ast.ClassDef | None:
    """The function or class that the cell defines under the name of its question."""
    for node in ast.parse(cell.source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == cell.name:
            return node
    return None

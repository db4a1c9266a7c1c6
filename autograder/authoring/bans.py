"""What the hidden suite forbids (`forbid`), told to students: in the question's docstring, and by
its visible check.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence

from autograder.authoring.source_notebook import SourceCell, included_text
from autograder.basics.errors import BadSource

TELLS = "Not allowed here:"
_WIDTH = 120
_FILE = "student_tools/refusing.py"
_REFUSED_BY_PATH = ("torch.optim.", "torch.nn.utils.")
"""What stands there asks no TorchFunctionMode, so `refusing` wants all of its name."""


def names_told(forbidden: Sequence[str]) -> list[str]:
    """The forbidden names as students know them, each once: `softmax` for `torch.softmax` and
    `torch.Tensor.softmax`.

    A ban goes by the last part of a name. Modules keep their `nn.`, what is not torch's its full
    name; private names say nothing to students.
    """
    told: dict[str, str] = {}
    for name in forbidden:
        last = name.rsplit(".", 1)[-1]
        if not any(part.startswith("_") for part in name.split(".")):
            known_as = f"nn.{last}" if name.startswith("torch.nn.") and last[0].isupper() else last
            told.setdefault(last, known_as if name.startswith("torch.") else name)
    return list(told.values())


def _of_torch(names: Sequence[str]) -> list[str]:
    return [name for name in names if name.startswith("nn.") or "." not in name]


def _sentence(names: Sequence[str]) -> str:
    ours = _of_torch(names)
    whose = "torch's " if ours else ""
    listed = ", ".join([*ours, *(name for name in names if name not in ours)])
    return f"{TELLS} {whose}{listed}."


def with_ban_told(cell: SourceCell, forbidden: Sequence[str]) -> SourceCell:
    """The question with a last paragraph in its docstring that says what it may not call.

    Raises:
        BadSource: it has no docstring to say it in.
    """
    names = names_told(forbidden)
    if not names:
        return cell
    definition = _definition(cell)
    docstring = definition.body[0] if definition and ast.get_docstring(definition) else None
    if docstring is None:
        raise BadSource(
            f"{cell.place}: the suite forbids {names[0]} in {cell.name}, and its function has no "
            "docstring that "
            "could say so"
        )
    lines = cell.source.split("\n")
    last = (docstring.end_lineno or 1) - 1
    indentation = " " * docstring.col_offset
    told = textwrap.wrap(
        _sentence(names),
        _WIDTH,
        initial_indent=indentation,
        subsequent_indent=indentation + "    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    text, quotes = lines[last].rstrip()[:-3].rstrip(), lines[last].rstrip()[-3:]
    lines[last : last + 1] = [*([text] if text else []), "", *told, indentation + quotes]
    return _with_source(cell, "\n".join(lines))


def with_ban_checked(
    check: SourceCell, question: SourceCell, forbidden: Sequence[str]
) -> SourceCell:
    """The visible check with a first line after which the function refuses to call what of torch is
    forbidden.
    """
    paths = [name.removeprefix("torch.") for name in forbidden if name.startswith(_REFUSED_BY_PATH)]
    last = {path.rpartition(".")[2] for path in paths}
    names = [
        name.removeprefix("nn.") for name in _of_torch(names_told(forbidden)) if name not in last
    ] + paths
    if not names or not isinstance(_definition(question), ast.FunctionDef):
        return check
    quoted = ", ".join(f'"{name}"' for name in names)
    return _with_source(
        check, f"{question.name} = refusing({question.name}, {quoted})\n{check.source}"
    )


def with_refusing(given: SourceCell) -> SourceCell:
    """A given cell with the function `refusing` at its end."""
    return _with_source(given, f"{given.source.rstrip()}\n\n\n{included_text(_FILE)}")


def _definition(cell: SourceCell) -> ast.FunctionDef | ast.ClassDef | None:
    """What the cell defines under the name of its question."""
    for node in ast.parse(cell.source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == cell.name:
            return node
    return None


def _with_source(cell: SourceCell, source: str) -> SourceCell:
    return SourceCell(cell.kind, cell.name, source, cell.place, cell.points)

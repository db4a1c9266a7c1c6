"""Names that checks and demos alone define. Grading runs none of these cells, so that nothing else
may need the names: an answer that calls a check's function passes its check, and gets no points.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from autograder.authoring import regions
from autograder.authoring.source_notebook import SourceCell, SourceNotebook
from autograder.basics.definitions import bound_names, top_level_names, used_globals
from autograder.intake.magics import strip_magics
from autograder.intake.released_notebook import Release, ReleaseCell

_NOT_GRADED = ("check", "demo")
_WHAT_TO_DO = (
    "grading runs no checks and no demos: define it in a given cell, or give it another name"
)


def find_misplaced_names(notebook: SourceNotebook) -> Iterator[str]:
    """Names that a check or demo defines, and that a given cell, an answer or a text of the
    notebook needs or names.
    """
    graded = [cell for cell in notebook.cells if cell.kind not in _NOT_GRADED]
    available = frozenset[str]().union(
        *(top_level_names(_code(cell)) for cell in graded if cell.is_code)
    )
    used = {cell.place: used_globals(_code(cell)) for cell in graded if cell.is_code}
    for cell in notebook.cells:
        if cell.kind not in _NOT_GRADED:
            continue
        missing = top_level_names(_code(cell)) - available
        callables = _callable_names(_code(cell)) & missing
        for reader in graded:
            needed = missing & used.get(reader.place, frozenset())
            named = {name for name in callables if _names(reader, name)}
            for name in sorted(needed | named):
                yield (
                    f"{cell.place}: the {cell.kind} {cell.name} defines {name}, which the "
                    f"{reader.kind} cell at "
                    f"{reader.place} {'uses' if name in needed else 'names'}; {_WHAT_TO_DO}"
                )


def names_of_checks(release: Release) -> dict[str, str]:
    """Each name that only checks or demos of a release define → the first cell that does, in
    words.
    """
    code = [cell for cell in release.cells if cell.kind == "code"]
    graded = frozenset[str]().union(
        *(_names_of(cell) for cell in code if cell.role not in _NOT_GRADED)
    )
    cells_of: dict[str, str] = {}
    for cell in code:
        if cell.role in _NOT_GRADED:
            where = f"the check of {cell.name}" if cell.role == "check" else f"the demo {cell.name}"
            cells_of |= {
                name: where for name in sorted(_names_of(cell) - graded) if name not in cells_of
            }
    return cells_of


def _names_of(cell: ReleaseCell) -> frozenset[str]:
    try:
        return top_level_names(strip_magics(cell.source)[0])
    except SyntaxError:  # a release that nbgrader alone has made
        return frozenset()


def _code(cell: SourceCell) -> str:
    return strip_magics(regions.complete(cell.source))[0]


def _callable_names(source: str) -> frozenset[str]:
    """Functions, classes and constants: what a text may tell a student to use. Variables are called
    x everywhere.
    """
    body = ast.parse(source).body
    defined = {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    assigned = {
        name: node.value
        for node in body
        if isinstance(node, ast.Assign)
        for name in bound_names(node)
    }
    return frozenset(
        defined
        | {
            name
            for name, value in assigned.items()
            if isinstance(value, ast.Lambda) or _is_constant(name)
        }
    )


def _is_constant(name: str) -> bool:
    """A name in capitals, of more letters than the symbols of formulas have."""
    return name.isupper() and len(name) > 1


def _names(cell: SourceCell, name: str) -> bool:
    """Whether the words of a cell name it as code: `name`, name(…), or as an operator of a
    formula.
    """
    text = cell.source
    if cell.is_code:
        text = "\n".join([*_docstrings(_code(cell)), *re.findall(r"#.*", cell.source)])
    code = rf"`{name}[`(]|(?<![\w.]){name}\(|\\(?:text|mathrm|operatorname)\{{{name}\}}"
    return re.search(code, text) is not None


def _docstrings(source: str) -> list[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
    return [
        ast.get_docstring(node) or ""
        for node in ast.walk(ast.parse(source))
        if isinstance(node, kinds)
    ]

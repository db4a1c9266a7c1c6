"""Find names that only checks and demos define, and that other cells need.

Grading runs neither checks nor demos: an answer that calls a check's function would pass its check,
and get no points.
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

_NOT_GRADED = ("check", "demo", "predict")
_ADVICE = "grading runs no checks and no demos: define it in a given cell, or give it another name"


def find_misplaced_names(notebook: SourceNotebook) -> Iterator[str]:
    """Report names that a check or demo defines, and that given cells, answers or texts need."""
    graded = [cell for cell in notebook.cells if cell.kind not in _NOT_GRADED]
    code = {cell.place: _code(cell) for cell in graded if cell.is_code}
    available = frozenset[str]().union(*map(top_level_names, code.values()))
    used = {place: used_globals(source) for place, source in code.items()}
    for cell in notebook.cells:
        if cell.kind not in _NOT_GRADED:
            continue
        missing = top_level_names(_code(cell)) - available
        tellable = _names_for_texts(_code(cell)) & missing
        for reader in graded:
            needed = missing & used.get(reader.place, frozenset())
            mentioned = {name for name in tellable if _mentions(reader, name)}
            for name in sorted(needed | mentioned):
                verb = "uses" if name in needed else "names"
                yield (
                    f"{cell.place}: the {cell.kind} {cell.name} defines {name}, which the "
                    f"{reader.kind} cell at {reader.place} {verb}; {_ADVICE}"
                )


def names_of_checks(release: Release) -> dict[str, str]:
    """Names that only checks or demos of a release define → the first such cell, in words."""
    code = [cell for cell in release.cells if cell.kind == "code"]
    graded = [_release_names(cell) for cell in code if cell.role not in _NOT_GRADED]
    available = frozenset[str]().union(*graded)
    definitions: dict[str, str] = {}
    for cell in code:
        if cell.role in _NOT_GRADED:
            title = (
                f"the check of {cell.name}"
                if cell.role == "check"
                else f"the demo {cell.name}"
            )
            for name in sorted(_release_names(cell) - available):
                definitions.setdefault(name, title)
    return definitions


def _release_names(cell: ReleaseCell) -> frozenset[str]:
    try:
        return top_level_names(strip_magics(cell.source)[0])
    except SyntaxError:  # in a release that nbgrader alone has made
        return frozenset()


def _code(cell: SourceCell) -> str:
    return strip_magics(regions.complete(cell.source))[0]


def _names_for_texts(source: str) -> frozenset[str]:
    """Functions, classes and constants, which a text may tell students to use.

    Variables are left out: every cell calls some variable x.
    """
    names: set[str] = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            is_function = isinstance(node.value, ast.Lambda)
            names |= {
                name for name in bound_names(node) if is_function or _is_constant(name)
            }
    return frozenset(names)


def _is_constant(name: str) -> bool:
    """Whether a name is in capitals, and longer than the symbols of formulas."""
    return name.isupper() and len(name) > 1


def _mentions(cell: SourceCell, name: str) -> bool:
    """Whether the text of a cell mentions a name: `name`, name(…), or an operator in a formula."""
    text = cell.source
    if cell.is_code:
        comments = re.findall(r"#.*", cell.source)
        text = "\n".join([*_docstrings(_code(cell)), *comments])
    pattern = (
        rf"`{name}[`(]|(?<![\w.]){name}\(|\\(?:text|mathrm|operatorname)\{{{name}\}}"
    )
    return re.search(pattern, text) is not None


def _docstrings(source: str) -> list[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
    return [ast.get_docstring(node) or "" for node in nodes]

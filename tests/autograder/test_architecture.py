"""docs/architecture.md tells what there is, and the package keeps to it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "autograder"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
MODULES = {
    path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(PACKAGE.rglob("*.py"))
    if "templates" not in path.parts
}


def named_modules() -> set[str]:
    """Modules in the first column of a table; in "`suite/calls.py`, `kinds.py`" the folder counts on."""
    found = set()
    for row in re.findall(r"^\| (`[^|]+) \|", PAGE, re.MULTILINE):
        folder = ""
        for code in re.findall(r"`([^`]+)`", row):
            folder = code.rpartition("/")[0] + "/" if "/" in code else folder
            found.add(code if "/" in code else folder + code)
    return {name for name in found if name.endswith(".py")}


def test_the_tables_name_every_module_and_no_other() -> None:
    assert named_modules() == {name for name in MODULES if not name.endswith(("__init__.py", "__main__.py"))}


def undocumented(node: ast.Module | ast.ClassDef, owner: str) -> Iterator[str]:
    """Public classes and functions without a docstring. What a method overrides may have its words already."""
    inherits = isinstance(node, ast.ClassDef) and bool(node.bases)
    for child in node.body:
        if isinstance(child, ast.FunctionDef | ast.ClassDef) and not child.name.startswith("_"):
            if not ast.get_docstring(child) and not (inherits and isinstance(child, ast.FunctionDef)):
                yield f"{owner}{child.name}"
            if isinstance(child, ast.ClassDef):
                yield from undocumented(child, f"{owner}{child.name}.")


def test_everything_public_says_what_it_is_for() -> None:
    modules = [name for name, tree in MODULES.items() if not ast.get_docstring(tree) and tree.body]
    assert modules + [what for name, tree in MODULES.items() for what in undocumented(tree, f"{name}: ")] == []


def ranks() -> dict[str, int]:
    """Top-level modules and folders by the row of the table in which they stand."""
    table = PAGE.split("| folder or module | step |")[1].split("\n\n")[0]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    return {name.rstrip("/"): number for number, row in enumerate(rows) for name in re.findall(r"`([^`]+)`", row)}


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("autograder."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("autograder."))


def test_imports_go_downwards() -> None:
    rank, upwards = ranks(), []
    for name, tree in MODULES.items():
        own = name.partition("/")[0]
        for other in imported(tree) if own in rank else ():
            target = other if other in rank else f"{other}.py"
            if target != own and rank[target] < rank[own]:
                upwards.append(f"{name} imports {other}")
    assert upwards == []
    assert {name.partition("/")[0] for name in MODULES} - rank.keys() == {"__init__.py", "__main__.py"}


def modules_imported(tree: ast.Module) -> Iterator[str]:
    """Modules of the package, also those that are imported inside a function, or for types alone."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("autograder."):
            folder = node.module.removeprefix("autograder.").replace(".", "/")
            yield from {f"{folder}/{alias.name}.py" for alias in node.names} | {f"{folder}.py"}


def test_no_module_imports_one_that_imports_it() -> None:
    """Within a folder too: reading downwards never leads back up."""
    below = {name: set(modules_imported(tree)) & MODULES.keys() for name, tree in MODULES.items()}
    assert tuple(TopologicalSorter(below).static_order())  # a CycleError names the modules


def test_both_sides_of_the_wall_share_the_wire_alone() -> None:
    inside = {name: set(imported(tree)) for name, tree in MODULES.items() if name.startswith(("worker/", "wire/"))}
    assert {name: others - {"worker", "wire"} for name, others in inside.items() if others - {"worker", "wire"}} == {}
    assert [name for name, others in inside.items() if name.startswith("wire/") and "worker" in others] == []
    assert [name for name, tree in MODULES.items() if name not in inside and "worker" in imported(tree)] == []

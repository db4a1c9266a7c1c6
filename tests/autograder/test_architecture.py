"""docs/architecture.md tells which rooms there are, and the package keeps to it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import autograder

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "autograder"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
MODULES = {
    path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(PACKAGE.rglob("*.py"))
    if "templates" not in path.parts
}
TABLE = PAGE.split("| room | task |")[1].split("\n\n")[0]
ROOMS = re.findall(r"^\| `(\w+)/` \|", TABLE, re.MULTILINE)
"""From the command line down."""


def room_of(module: str) -> str:
    return module.partition("/")[0]


def test_every_module_stands_in_a_room_of_the_page() -> None:
    loose = {name for name in MODULES if "/" not in name}
    assert loose == {"__init__.py", "__main__.py"}
    assert {room_of(name) for name in MODULES} - loose == set(ROOMS)


def test_a_name_is_the_name_of_one_module_and_of_one_class() -> None:
    names = Counter(
        Path(name).stem for name in MODULES if not name.endswith("__init__.py")
    )
    assert [name for name, count in names.items() if count > 1] == []
    classes = Counter(
        node.name
        for tree in MODULES.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in classes.items() if count > 1] == []


def test_each_folder_of_tests_is_called_like_what_it_tests() -> None:
    """A room; or `attacks` on the walls, `content` of the assignments."""
    folders = {
        path.parent.name for path in (ROOT / "tests" / "autograder").glob("*/test_*.py")
    }
    assert folders - set(ROOMS) == {"attacks", "content"}


def undocumented(node: ast.Module | ast.ClassDef, owner: str) -> Iterator[str]:
    """Public classes and functions without a docstring; a method that overrides needs none."""
    inherits = isinstance(node, ast.ClassDef) and bool(node.bases)
    for child in node.body:
        if isinstance(
            child, ast.FunctionDef | ast.ClassDef
        ) and not child.name.startswith("_"):
            overrides = inherits and isinstance(child, ast.FunctionDef)
            if not ast.get_docstring(child) and not overrides:
                yield f"{owner}{child.name}"
            if isinstance(child, ast.ClassDef):
                yield from undocumented(child, f"{owner}{child.name}.")


def test_everything_public_says_what_it_is_for() -> None:
    modules = [
        name
        for name, tree in MODULES.items()
        if not ast.get_docstring(tree) and tree.body
    ]
    functions = [
        function
        for name, tree in MODULES.items()
        for function in undocumented(tree, f"{name}: ")
    ]
    assert modules + functions == []


def modules_imported(tree: ast.Module) -> Iterator[str]:
    """Modules of the package, also those imported inside a function, or for types alone."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "autograder"
        ):
            path = (
                str(node.module)
                .replace(".", "/")
                .removeprefix("autograder")
                .lstrip("/")
            )
            for alias in node.names:
                endings = (f"/{alias.name}.py", ".py", "/__init__.py")
                places = [f"{path}{ending}".lstrip("/") for ending in endings]
                yield from [place for place in places if place in MODULES][:1]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                path = alias.name.removeprefix("autograder.").replace(".", "/") + ".py"
                if path in MODULES:
                    yield path


IMPORTS = {name: set(modules_imported(tree)) for name, tree in MODULES.items()}


def test_imports_go_downwards() -> None:
    upwards = [
        f"{name} imports {other}"
        for name, others in IMPORTS.items()
        for other in others
        if "/" in name
        and "/" in other
        and ROOMS.index(room_of(other)) < ROOMS.index(room_of(name))
    ]
    assert upwards == []


def test_no_module_imports_one_that_imports_it() -> None:
    """Within a room too: reading downwards never leads back up."""
    assert tuple(
        TopologicalSorter(IMPORTS).static_order()
    )  # a CycleError names the modules


def test_both_sides_of_the_wall_share_the_wire_alone() -> None:
    def rooms_imported(room: str) -> set[str]:
        names = [name for name in MODULES if room_of(name) == room]
        return {room_of(other) for name in names for other in IMPORTS[name]} - {room}

    assert rooms_imported("wire") == set()
    assert rooms_imported("kernels") == set()
    assert rooms_imported("worker") <= {"wire", "kernels"}
    importers = {
        room_of(name)
        for name, others in IMPORTS.items()
        for other in others
        if room_of(other) == "worker"
    }
    assert importers == {"worker"}


def test_the_face_of_the_package_has_the_names_that_it_promises() -> None:
    assert all(hasattr(autograder, name) for name in autograder.__all__)
    program = "import sys, autograder; print([name for name in sys.modules if 'autograder' in name])"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert loaded == "['autograder']\n"  # nothing of the kit comes with it

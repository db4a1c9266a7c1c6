"""Go on with your own code: make the module `my_course` of the notebooks that you have handed in.

    python make_my_course.py a1_word_vectors.ipynb a2_attention.ipynb

Name them in the order of the course. A folder `my_course` is written beside this program, with a
file for each notebook in which your functions stand with all that they need: imports, helpers,
given code. Checks, demos and experiments stay behind. It prints the line with which a notebook
takes your functions in place of the staff's. Your work is graded with the staff's code all the
same. Name all notebooks again when one of them has changed.

Ends with 0, or with 1 where nothing could be made, or with 2 where it was called wrongly.
"""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.basics.definitions import bound_names, used_globals
from autograder.basics.errors import UnreadableSubmission
from autograder.intake.cell_text import describe_cell
from autograder.intake.magics import strip_magics
from autograder.intake.reading import NotebookCell, parse_notebook

FOLDER = "my_course"
_MADE = "# Made by make_my_course.py; make it anew rather than change it.\n"
_STUB = ": write your answer here"


@dataclass(frozen=True)
class Statement:
    """One statement of a notebook that stands in the first column.

    Attributes:
        text: as written, with its decorators.
        binds: names that it gives a value.
        needs: names of the notebook that it uses, in functions too.
        role: of its cell: "question", "given", or "" where the metadata is lost or the cell is the
            student's own.
    """

    node: ast.stmt
    text: str
    binds: frozenset[str]
    needs: frozenset[str]
    role: str


def main(arguments: Sequence[str], program: Path) -> int:
    """Make the module of the notebooks that are named; returns the exit status.

    Args:
        program: this program's file, beside which the module is written.
    """
    folder = program.parent / FOLDER
    paths = [Path(argument) for argument in arguments]
    if not paths:
        print("python make_my_course.py NOTEBOOK..., in the order of the course", file=sys.stderr)
        return 2
    for path in paths:
        if not path.is_file() or not path.stem.isidentifier():
            problem = (
                "there is no such file"
                if not path.is_file()
                else "name it as it was given out: it is a module"
            )
            print(f"{path}: {problem}", file=sys.stderr)
            return 2
    if folder.exists() and not _is_ours(folder):
        print(f"{folder} is there, and was not made by this program: move it away", file=sys.stderr)
        return 2
    own: dict[str, tuple[str, ast.stmt]] = {}  # name → its module and its definition
    modules: dict[str, str] = {}
    for path in paths:
        try:
            statements = list(
                _statements(path.name, parse_notebook(path.read_bytes(), path.name).cells)
            )
        except UnreadableSubmission as problem:
            print(f"{problem}; left out")
            continue
        names = [
            name
            for name in _answers(statements)
            if name not in own or _is_question(statements, name)
        ]
        modules[path.stem] = _module(statements, names, own)
        own |= {name: (path.stem, _definition(statements, name)) for name in names}
        print(f"{path.name}: {', '.join(names) or 'nothing of yours'}")
    if not own:
        print("Nothing is written yet in these notebooks.")
        return 1
    _write(folder, modules, own)
    while raised := _import_problem(folder):
        broken = next((module for module in reversed(modules) if f"{module}.py" in raised), "")
        last = raised.rpartition("\n")[2]
        if not broken or len(modules) == 1:
            print(f"my_course does not import: {last}")
            return 1
        print(f"{broken}.ipynb: left out, since what is needed of it does not run: {last}")
        del modules[broken]
        own = {name: (module, node) for name, (module, node) in own.items() if module != broken}
        _write(folder, modules, own)
    for beside in sorted(folder.parent.glob("*.ipynb")):
        if beside.stem not in modules:
            _say_how(beside, own)
    return 0


def _is_ours(folder: Path) -> bool:
    start = folder / "__init__.py"
    return start.is_file() and start.read_text(encoding="utf-8").startswith(_MADE)


def _statements(
    name: str, cells: Iterable[NotebookCell], roles: Sequence[str] = ()
) -> Iterator[Statement]:
    """The statements of all cells but checks and demos, or of those of the roles alone, as far as
    they are Python.
    """
    for number, cell in enumerate(cells):
        if (
            cell.kind != "code"
            or cell.role in ("check", "demo")
            or (roles and cell.role not in roles)
        ):
            continue
        source, _ = strip_magics(cell.source)
        try:
            for node in ast.parse(source).body:
                text = _text(node, source)
                yield Statement(node, text, bound_names(node), used_globals(text), cell.role)
        except SyntaxError as problem:
            place = describe_cell(number, cell.source)
            print(f"{name}: {place} is left out, {problem.msg} in line {problem.lineno}")


def _text(node: ast.stmt, source: str) -> str:
    """The statement as it was written, comments included, but where several share a line."""
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
    text = "\n".join(source.split("\n")[first - 1 : node.end_lineno])
    return text if len(ast.parse(text).body) == 1 else ast.unparse(node)


def _answers(statements: Sequence[Statement]) -> list[str]:
    """Functions and classes that the student has written, as far as the notebook's metadata tells:
    else all.
    """
    tagged = any(each.role == "question" for each in statements)
    names = [
        name
        for each in statements
        if each.role == "question" or not tagged
        for name in each.binds
        if isinstance(each.node, ast.FunctionDef | ast.ClassDef) and not name.startswith("_")
    ]
    return [
        name
        for name in dict.fromkeys(names)
        if not _is_stub(_definition(statements, name)) and name != "expect"
    ]


def _is_question(statements: Sequence[Statement], name: str) -> bool:
    return any(each.role == "question" and name in each.binds for each in statements)


def _definition(statements: Sequence[Statement], name: str) -> ast.stmt:
    """The last `def` or `class` of that name, else whatever gave it a value last."""
    found = [each.node for each in statements if name in each.binds]
    return ([node for node in found if isinstance(node, ast.FunctionDef | ast.ClassDef)] or found)[
        -1
    ]


def _is_stub(node: ast.stmt) -> bool:
    return _STUB in ast.unparse(node)


def _module(
    statements: Sequence[Statement], names: Iterable[str], own: Mapping[str, object]
) -> str:
    """The text of a module: what the functions need, in the notebook's order.

    What the notebook itself took from my_course it takes from the modules before it, as far as they
    have it.
    """
    wanted, seen = set(names), set[str]()
    while wanted - seen:
        seen |= wanted
        wanted |= {name for each in statements if each.binds & wanted for name in each.needs}
    kept = []
    for each in statements:
        prepares = each.role == "given" and not each.binds  # sets what an import below it looks at
        if not (each.binds & (wanted | {"*"}) or prepares or _is_future(each.node)):
            continue
        if isinstance(each.node, ast.ImportFrom) and each.node.module == "my_course":
            there = [alias for alias in each.node.names if alias.name in own or alias.name == "*"]
            if there:
                kept.append(ast.unparse(ast.ImportFrom("my_course", there, 0)))
        elif each.text not in kept or not isinstance(each.node, ast.Import | ast.ImportFrom):
            kept.append(each.text)
    return "\n\n".join([_MADE, *kept]) + "\n"


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _write(folder: Path, modules: Mapping[str, str], own: Mapping[str, tuple[str, object]]) -> None:
    """Modules first, and what imports them last: a package with `__init__.py` is whole."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    start = [_MADE]
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text, encoding="utf-8")
        if names := sorted(name for name, (where, _) in own.items() if where == module):
            start.append(f"from .{module} import {', '.join(names)}\n")
    (folder / "__init__.py").write_text("".join(start), encoding="utf-8")


def _import_problem(folder: Path) -> str:
    """Import the module in a fresh Python, as a notebook will; what that raises, "" where
    nothing.
    """
    command = [sys.executable, "-c", "import my_course"]
    done = subprocess.run(
        command, cwd=folder.parent, capture_output=True, text=True, errors="replace", check=False
    )
    return "" if done.returncode == 0 else done.stderr.strip() or "it ends Python"


def _say_how(notebook: Path, own: Mapping[str, tuple[str, ast.stmt]]) -> None:
    """Print the line that this notebook takes, and what of the staff's cannot be exchanged."""
    try:
        cells = parse_notebook(notebook.read_bytes(), notebook.name).cells
    except UnreadableSubmission:
        return
    statements = list(_statements(notebook.name, cells, roles=["given"]))
    given = {name for each in statements for name in each.binds if name in own}
    fits = [name for name in sorted(given) if _fits(_definition(statements, name), own[name][1])]
    if fits:
        print(f"\n{notebook.name}: put this line into a cell of your own below the given code:")
        print(f"\n    from my_course import {', '.join(fits)}\n")
    for name in sorted(given.difference(fits)):
        print(
            f"{notebook.name}: {name} of {own[name][0]} takes other arguments than the one given "
            "here: keep that"
        )


def _fits(theirs: ast.stmt, yours: ast.stmt) -> bool:
    """Whether all calls of their function are calls of yours: the same places, and names of what
    may be left out.
    """
    if isinstance(theirs, ast.ClassDef) and isinstance(yours, ast.ClassDef):
        methods = {node.name: node for node in yours.body if isinstance(node, ast.FunctionDef)}
        wanted = [node for node in theirs.body if isinstance(node, ast.FunctionDef)]
        return all(node.name in methods and _fits(node, methods[node.name]) for node in wanted)
    if not isinstance(theirs, ast.FunctionDef) or not isinstance(yours, ast.FunctionDef):
        return False
    their, your = theirs.args, yours.args
    their_names, your_names = (
        [arg.arg for arg in each.posonlyargs + each.args] for each in (their, your)
    )
    required = len(their_names) - len(their.defaults)
    if len(your_names) - len(your.defaults) > required or any(
        each is None for each in your.kw_defaults
    ):
        return False
    optional = their_names[required:] + [arg.arg for arg in their.kwonlyargs]
    return (
        len(your_names) >= required
        and your_names[required : len(their_names)] == their_names[required:]
        and all(name in your_names + [arg.arg for arg in your.kwonlyargs] for name in optional)
    )

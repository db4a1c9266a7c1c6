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
import re
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
_HEADER = "# Made by make_my_course.py; make it anew rather than change it.\n"
_STUB = ": write your answer here"


@dataclass(frozen=True)
class Statement:
    """One statement of a notebook that stands in the first column.

    Attributes:
        text: as written, with its decorators.
        binds: names that the statement gives a value.
        needs: names of the notebook that the statement uses, in functions too.
        role: of its cell: "question", "given", or "" where the metadata is lost or the cell is the
            student's own.
    """

    node: ast.stmt
    text: str
    binds: frozenset[str]
    needs: frozenset[str]
    role: str


@dataclass(frozen=True)
class OwnAnswer:
    """A function or class that the student has written, and the module it stands in."""

    module: str
    definition: ast.stmt


def main(arguments: Sequence[str], program: Path) -> int:
    """Make the module of the notebooks that are named; returns the exit status.

    Args:
        program: this program's file, beside which the module is written.
    """
    folder = program.parent / FOLDER
    paths = [Path(argument) for argument in arguments]
    if problem := _call_problem(paths, folder):
        print(problem, file=sys.stderr)
        return 2
    answers: dict[str, OwnAnswer] = {}
    modules: dict[str, str] = {}
    companions: dict[str, str] = {}
    for path in paths:
        try:
            notebook = parse_notebook(path.read_bytes(), path.name)
        except UnreadableSubmission as error:
            print(f"{error}; left out")
            continue
        statements = list(_statements(path.name, notebook.cells))
        names = []
        for name in _written_names(statements):
            if name not in answers or _is_question(statements, name):
                names.append(name)
        text = _module_text(statements, names, answers)
        modules[path.stem] = _take_companions(text, path.parent, companions)
        for name in names:
            answers[name] = OwnAnswer(path.stem, _definition(statements, name))
        print(f"{path.name}: {', '.join(names) or 'nothing of yours'}")
    if not answers:
        print("Nothing is written yet in these notebooks.")
        return 1
    _write(folder, companions | modules, answers)
    while trace := _import_trace(folder):
        last_line = trace.rpartition("\n")[2]
        broken = next(
            (module for module in reversed(modules) if f"{module}.py" in trace), ""
        )
        if not broken or len(modules) == 1:
            print(f"my_course does not import: {last_line}")
            return 1
        print(
            f"{broken}.ipynb: left out, since what is needed of it does not run: {last_line}"
        )
        del modules[broken]
        answers = {
            name: answer for name, answer in answers.items() if answer.module != broken
        }
        _write(folder, companions | modules, answers)
    for notebook_path in sorted(folder.parent.glob("*.ipynb")):
        if notebook_path.stem not in modules:
            _print_import_line(notebook_path, answers)
    return 0


def _call_problem(paths: Sequence[Path], folder: Path) -> str:
    """What is wrong with the call of this program; "" where nothing is."""
    if not paths:
        return "python make_my_course.py NOTEBOOK..., in the order of the course"
    for path in paths:
        if not path.is_file():
            return f"{path}: there is no such file"
        if not path.stem.isidentifier():
            return f"{path}: name it as it was given out: it is a module"
    if folder.exists() and not _is_made_here(folder):
        return f"{folder} is there, and was not made by this program: move it away"
    return ""


def _is_made_here(folder: Path) -> bool:
    init = folder / "__init__.py"
    return init.is_file() and init.read_text(encoding="utf-8").startswith(_HEADER)


# reading notebooks


def _statements(
    name: str, cells: Iterable[NotebookCell], roles: Sequence[str] = ()
) -> Iterator[Statement]:
    """The statements of all cells but checks and demos, or of those of the roles alone, as far as
    they are Python.
    """
    for number, cell in enumerate(cells):
        if cell.kind != "code" or cell.role in ("check", "demo"):
            continue
        if roles and cell.role not in roles:
            continue
        source, _ = strip_magics(cell.source)
        try:
            for node in ast.parse(source).body:
                text = _statement_text(node, source)
                yield Statement(
                    node, text, bound_names(node), used_globals(text), cell.role
                )
        except SyntaxError as error:
            place = describe_cell(number, cell.source)
            print(f"{name}: {place} is left out, {error.msg} in line {error.lineno}")


def _statement_text(node: ast.stmt, source: str) -> str:
    """The statement as it was written, comments included, but where several share a line."""
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    lines = source.split("\n")[first - 1 : node.end_lineno]
    text = "\n".join(lines)
    if len(ast.parse(text).body) > 1:
        return ast.unparse(node)
    return text


def _written_names(statements: Sequence[Statement]) -> list[str]:
    """Functions and classes that the student has written, as far as the notebook's metadata tells:
    else all.
    """
    has_roles = any(statement.role == "question" for statement in statements)
    names: dict[str, None] = {}  # a set in the order of the notebook
    for statement in statements:
        is_own = statement.role == "question" or not has_roles
        if is_own and isinstance(statement.node, ast.FunctionDef | ast.ClassDef):
            names |= dict.fromkeys(statement.binds)
    return [
        name
        for name in names
        if not name.startswith("_")
        and name != "expect"
        and _STUB not in ast.unparse(_definition(statements, name))
    ]


def _is_question(statements: Sequence[Statement], name: str) -> bool:
    return any(
        statement.role == "question" and name in statement.binds
        for statement in statements
    )


def _definition(statements: Sequence[Statement], name: str) -> ast.stmt:
    """The last `def` or `class` of that name, else the last statement that gave it a value."""
    nodes = [statement.node for statement in statements if name in statement.binds]
    definitions = [
        node for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)
    ]
    return (definitions or nodes)[-1]


# writing the module


def _module_text(
    statements: Sequence[Statement],
    names: Iterable[str],
    answers: Mapping[str, OwnAnswer],
) -> str:
    """The text of a module: what the functions need, in the notebook's order.

    What the notebook itself took from my_course it takes from the modules before it, as far as they
    have it.
    """
    needed = _needed_names(statements, names)
    texts: list[str] = []
    for statement in statements:
        node = statement.node
        # given code that binds nothing may set what an import below it reads
        prepares = statement.role == "given" and not statement.binds
        is_needed = bool(statement.binds & (needed | {"*"}))
        is_import = isinstance(node, ast.Import | ast.ImportFrom)
        if not (is_needed or prepares or _imports_from(node, "__future__")):
            continue
        if isinstance(node, ast.ImportFrom) and _imports_from(node, "my_course"):
            aliases = [
                alias
                for alias in node.names
                if alias.name in answers or alias.name == "*"
            ]
            if aliases:
                texts.append(ast.unparse(ast.ImportFrom("my_course", aliases, 0)))
        elif not is_import or statement.text not in texts:
            texts.append(statement.text)
    return "\n\n".join([_HEADER, *texts]) + "\n"


def _take_companions(text: str, folder: Path, companions: dict[str, str]) -> str:
    """The text of a module that imports its notebook's companions from `my_course`; adds their
    texts to `companions`, by module name.
    """

    def take(statement: re.Match[str]) -> str:
        name = statement[1]
        file = folder / f"{name}.py"
        if name == FOLDER or not file.is_file():
            return statement[0]
        if name not in companions:
            companions[name] = ""  # before its own imports are looked at
            companion = file.read_text(encoding="utf-8")
            companions[name] = _take_companions(companion, folder, companions)
        return f"from .{name} import"

    return re.sub(r"\bfrom (\w+) import\b", take, text)


def _needed_names(statements: Sequence[Statement], names: Iterable[str]) -> set[str]:
    """The names, and all names that their definitions need, directly or through others."""
    needed = set(names)
    size = -1
    while len(needed) > size:
        size = len(needed)
        for statement in statements:
            if statement.binds & needed:
                needed |= statement.needs
    return needed


def _imports_from(node: ast.stmt, module: str) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == module


def _write(
    folder: Path, modules: Mapping[str, str], answers: Mapping[str, OwnAnswer]
) -> None:
    """Write modules first, and `__init__.py`, which imports them, last: a package that has it is
    whole.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    init = _HEADER
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text, encoding="utf-8")
        names = sorted(
            name for name, answer in answers.items() if answer.module == module
        )
        if names:
            init += f"from .{module} import {', '.join(names)}\n"
    (folder / "__init__.py").write_text(init, encoding="utf-8")


def _import_trace(folder: Path) -> str:
    """Import the module in a fresh Python, as a notebook will; returns the traceback, "" where all
    is well.
    """
    command = [sys.executable, "-c", "import my_course"]
    done = subprocess.run(
        command,
        cwd=folder.parent,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    return "" if done.returncode == 0 else done.stderr.strip() or "it ends Python"


# using the module


def _print_import_line(path: Path, answers: Mapping[str, OwnAnswer]) -> None:
    """Print the lines that this notebook takes, and names of the staff's that cannot be
    exchanged.

    What the notebook's given cells define comes from `my_course`. What they import from a module
    beside the notebook comes from a copy of that module, where the student's functions stand in
    place of the staff's: there the staff's other functions call them, too.
    """
    try:
        notebook = parse_notebook(path.read_bytes(), path.name)
    except UnreadableSubmission:
        return
    statements = list(_statements(path.name, notebook.cells, roles=["given"]))
    fitting, unfitting = _compare_with_answers(statements, answers)
    lines = [f"from {FOLDER} import {', '.join(fitting)}"] if fitting else []
    for module in _companion_modules(statements, path.parent):
        text = (path.parent / f"{module}.py").read_text(encoding="utf-8")
        cell = NotebookCell("code", text, role="given")
        module_statements = list(_statements(f"{module}.py", [cell]))
        fitting, unfitting_here = _compare_with_answers(module_statements, answers)
        unfitting += unfitting_here
        if fitting:
            _write_with_answers(path.parent / FOLDER / f"{module}.py", text, fitting)
            changed = _changed_names(module_statements, fitting)
            lines.append(f"from {FOLDER}.{module} import {', '.join(changed)}")
    if lines:
        noun = "this line" if len(lines) == 1 else "these lines"
        print(
            f"\n{path.name}: put {noun} into a cell of your own below the given code:\n"
        )
        print("\n".join(f"    {line}" for line in lines) + "\n")
    for name in unfitting:
        print(
            f"{path.name}: {name} of {answers[name].module} takes other arguments than the one "
            "given here: keep that"
        )


def _compare_with_answers(
    statements: Sequence[Statement], answers: Mapping[str, OwnAnswer]
) -> tuple[list[str], list[str]]:
    """Names that statements define and the student has an answer for: first those whose answer
    takes all calls of the staff's, then the others.
    """
    defined: set[str] = set()
    for statement in statements:
        if not isinstance(statement.node, ast.Import | ast.ImportFrom):
            defined |= statement.binds
    fitting = []
    unfitting = []
    for name in sorted(defined & answers.keys()):
        if _fits(_definition(statements, name), answers[name].definition):
            fitting.append(name)
        else:
            unfitting.append(name)
    return fitting, unfitting


def _companion_modules(statements: Iterable[Statement], folder: Path) -> list[str]:
    """The modules beside the notebook that its given cells import from."""
    modules: dict[str, None] = {}  # a set in the order of the notebook
    for statement in statements:
        node = statement.node
        if not isinstance(node, ast.ImportFrom) or not node.module or node.level:
            continue
        if (folder / f"{node.module}.py").is_file():
            modules[node.module] = None
    return list(modules)


def _write_with_answers(file: Path, text: str, names: Sequence[str]) -> None:
    """Write a module's text, in which the student's functions take the place of the staff's."""
    imports = f"from {FOLDER} import {', '.join(names)}  # in place of those above"
    file.write_text(f"{_HEADER}{text}\n\n{imports}\n", encoding="utf-8")


def _changed_names(
    statements: Sequence[Statement], replaced: Iterable[str]
) -> list[str]:
    """The replaced names, and the functions and classes that call one, directly or through
    others.
    """
    changed = set(replaced)
    size = -1
    while len(changed) > size:
        size = len(changed)
        for statement in statements:
            is_definition = isinstance(statement.node, ast.FunctionDef | ast.ClassDef)
            if is_definition and statement.needs & changed:
                changed |= statement.binds
    return sorted(changed)


def _fits(staff: ast.stmt, student: ast.stmt) -> bool:
    """Whether the student's function takes all calls of the staff's: parameters in the same places,
    and optional ones with the same names.
    """
    if isinstance(staff, ast.ClassDef) and isinstance(student, ast.ClassDef):
        methods = {
            node.name: node
            for node in student.body
            if isinstance(node, ast.FunctionDef)
        }
        staff_methods = [
            node for node in staff.body if isinstance(node, ast.FunctionDef)
        ]
        return all(
            node.name in methods and _fits(node, methods[node.name])
            for node in staff_methods
        )
    if not isinstance(staff, ast.FunctionDef) or not isinstance(
        student, ast.FunctionDef
    ):
        return False
    names = _positional_names(staff)
    student_names = _positional_names(student)
    required = len(names) - len(staff.args.defaults)
    student_required = len(student_names) - len(student.args.defaults)
    if student_required > required or None in student.args.kw_defaults:
        return False
    keywords = {parameter.arg for parameter in staff.args.kwonlyargs}
    student_keywords = {parameter.arg for parameter in student.args.kwonlyargs}
    return (
        len(student_names) >= required
        and student_names[required : len(names)] == names[required:]
        and keywords <= student_keywords | set(student_names)
    )


def _positional_names(function: ast.FunctionDef) -> list[str]:
    parameters = function.args.posonlyargs + function.args.args
    return [parameter.arg for parameter in parameters]

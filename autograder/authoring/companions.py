"""Companions: Python files that `build` writes beside a notebook, and that its given cells import.

A companion keeps machinery out of a student's sight: the visible checks' helpers, the library of
earlier answers, the interpreter of kernels. Companions are part of the release: the notebook's
metadata has their hashes, and workers get their released text, whatever lies beside a submission.
"""

from __future__ import annotations

import ast
import dataclasses
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.authoring.harder_source import MACHINERY, HarderSource
from autograder.authoring.source_notebook import (
    SHIPPED_ROOMS,
    SourceCell,
    SourceNotebook,
)
from autograder.authoring.visible_checks import IMPORT, PREDICT_IMPORT, encode_facts
from autograder.basics.definitions import bound_names, used_globals
from autograder.basics.errors import BadSource
from autograder.intake.magics import strip_magics

_KIT = Path(__file__).parents[1]
_WIDTH = 88
_HEADER = '"""{title}\n\nMade by `autograder build`; the notebook {notebook}.ipynb imports it.\n"""'


@dataclass(frozen=True, slots=True)
class KitCompanion:
    """A companion that carries modules of the kit.

    Attributes:
        suffix: the end of the companion's name, after the assignment's.
        title: the first line of the companion's docstring.
        modules: kit modules that every such companion has; it also has those that a notebook names.
    """

    suffix: str
    title: str
    modules: tuple[str, ...] = ()


_TOOLS = KitCompanion(
    "tools",
    "What visible checks are made of: you need not read it.",
    (
        "autograder.student_tools.expect",
        "autograder.student_tools.predictions",
        "autograder.student_tools.harder",
        "autograder.student_tools.progress_table",
        "autograder.student_tools.check_here",
    ),
)
_NAMES = ("check", "checking", "expect", "next_hint", "progress")
"""What the one import of the visible checks' tools brings; a question may have such a name."""
_HARDER = KitCompanion(
    "harder", "What `harder(…)` tries: you need not read it.", MACHINERY
)
_KERNELS = KitCompanion(
    "kernels", "Strict Triton, kernels on a CPU: you need not read it."
)
_BY_ROOM = dict(zip(SHIPPED_ROOMS, (_TOOLS, _KERNELS), strict=True))
"""The rooms of the kit whose modules a given cell may import, and the companion that has them."""


def module_name(assignment: str, suffix: str) -> str:
    """The name of an assignment's companion module: notebooks of a course may share a folder."""
    name = re.sub(r"\W", "_", f"{assignment}_{suffix}", flags=re.ASCII)
    return f"_{name}" if name[0].isdigit() else name


def move_into_companions(
    notebook: SourceNotebook, facts: Mapping[str, Any]
) -> tuple[SourceNotebook, dict[str, str]]:
    """The notebook whose given cells import companions, and the companions: file name → text.

    Args:
        facts: what the visible checks' tools know of the notebook.

    Raises:
        BadSource: a cell that becomes a module needs a name that it does not define.
    """
    companions: dict[str, str] = {}
    tools = _tool_names(notebook, has_harder="harder" in facts)
    imports: list[ast.stmt] = []
    modules: dict[KitCompanion, list[str]] = {}
    cells = []
    for cell in notebook.cells:
        if cell.kind == "given":
            cell = _import_from_companions(cell, notebook, modules, tools)
            if cell.module:
                name = module_name(notebook.assignment, cell.module)
                text = _module_text(cell, imports, notebook.assignment)
                companions[f"{name}.py"] = text
                cell = _import_module(cell, name)
            imports += _import_statements(cell.source)
        cells.append(cell)
    for companion, kit_modules in modules.items():
        name = module_name(notebook.assignment, companion.suffix)
        header = _HEADER.format(title=companion.title, notebook=notebook.assignment)
        carried = carried_text([*companion.modules, *kit_modules])
        parts = [header, carried]
        if companion is _KERNELS:
            # a worker takes the modules that its host has loaded, which is quicker
            parts.append(f'CARRIES = "{" ".join(dict.fromkeys(kit_modules))}"')
        if companion is _TOOLS and facts:
            parts.append(encode_facts(facts))
        companions[f"{name}.py"] = (
            "\n\n".join([*parts[:2], *(f"\n{p}" for p in parts[2:])]) + "\n"
        )
    return dataclasses.replace(notebook, cells=tuple(cells)), companions


# modules of the kit


def _import_from_companions(
    cell: SourceCell,
    notebook: SourceNotebook,
    modules: dict[KitCompanion, list[str]],
    tool_names: Sequence[str],
) -> SourceCell:
    """The cell with imports from companions in place of imports from the kit; notes the modules
    that the companions must have.
    """

    def replace(statement: re.Match[str]) -> str:
        companion = _BY_ROOM[statement["room"]]
        modules.setdefault(companion, []).append(statement["module"])
        return f"from {module_name(notebook.assignment, companion.suffix)} import"

    source = cell.source
    if f"{IMPORT} expect" in source:
        source = re.sub(rf"(?m)^{PREDICT_IMPORT}\n|\n{PREDICT_IMPORT}$", "", source)
    source = source.replace(PREDICT_IMPORT, f"{IMPORT} expect")
    if f"{IMPORT} expect" in source:
        tools = module_name(notebook.assignment, _TOOLS.suffix)
        modules.setdefault(_TOOLS, [])
        one_import = "\n".join(wrapped_import(tools, tool_names))
        source = source.replace(f"{IMPORT} expect", one_import)
    pattern = r"\bfrom (?P<module>(?P<room>autograder\.\w+)\.\w+) import"
    return dataclasses.replace(cell, source=re.sub(pattern, replace, source))


def _tool_names(notebook: SourceNotebook, *, has_harder: bool) -> list[str]:
    """The names of the tools that a notebook imports: none that it asks students to write.

    Raises:
        BadSource: the notebook has predictions, and a question is called `predict`.
    """
    predictions = notebook.of_kind("predict")
    if predictions and "predict" in notebook.questions:
        raise BadSource(
            f"{predictions[0].place}: the notebook has predictions, so no question can be "
            "called predict"
        )
    names = {
        *_NAMES,
        *(["predict"] if predictions else []),
        *(["harder"] if has_harder else []),
    }
    return sorted(names - set(notebook.questions))


def harder_facts(assignment: str, harder: HarderSource) -> dict[str, Any]:
    """What the visible checks' tools know of harder inputs."""
    return {
        "harder": list(harder.questions),
        "harder_module": module_name(assignment, _HARDER.suffix),
    }


def harder_companion(assignment: str, harder: HarderSource) -> dict[str, str]:
    """The companion that `harder(…)` loads: file name → text."""
    header = _HEADER.format(title=_HARDER.title, notebook=assignment)
    parts = [header, carried_text(_HARDER.modules), f"# the questions\n\n{harder.text}"]
    name = module_name(assignment, _HARDER.suffix)
    return {f"{name}.py": "\n\n\n".join(parts) + "\n"}


def carried_text(modules: Sequence[str]) -> str:
    """The texts of kit modules, each after those that it imports, as one module: without their
    docstrings, imports of each other, and type checker's comments.
    """
    texts: dict[str, str] = {}
    for module in modules:
        _collect_texts(module, texts)
    text = "\n\n\n".join(texts.values())
    if "from __future__ import annotations" in text:
        text = re.sub(r"(?m)^from __future__ import annotations\n+", "", text)
        text = f"from __future__ import annotations\n\n{text}"
    return text


def _collect_texts(module: str, texts: dict[str, str]) -> None:
    if module in texts:
        return
    path = _KIT.parent / f"{module.replace('.', '/')}.py"
    text = path.read_text(encoding="utf-8")
    body = ast.parse(text).body
    lines = text.split("\n")
    dropped = set(range(body[1].lineno - 1))  # body[0] is the module's docstring
    for node in body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "autograder."
        ):
            dropped |= set(range(node.lineno - 1, node.end_lineno or node.lineno))
            _collect_texts(node.module or "", texts)
    kept = [line for number, line in enumerate(lines) if number not in dropped]
    without_comments = [re.sub(r"\s+# type: ignore.*$", "", line) for line in kept]
    texts[module] = re.sub(r"\n{4,}", "\n\n\n", "\n".join(without_comments)).strip("\n")


# given cells that become modules


def _module_text(cell: SourceCell, imports: Sequence[ast.stmt], assignment: str) -> str:
    """The text of a given cell as a module, below those imports of earlier cells that it uses."""
    needed = used_globals(cell.source) - _builtins()
    statements = [node for node in imports if bound_names(node) & needed]
    missing = needed.difference(*map(bound_names, statements))
    if missing:
        raise BadSource(
            f"{cell.place}: the module {cell.module} needs {', '.join(sorted(missing))}, which "
            "neither it nor an import above it defines"
        )
    lines = list(dict.fromkeys(map(ast.unparse, statements)))
    header = _HEADER.format(
        title=f"Functions that the course gives you: {cell.name}.", notebook=assignment
    )
    parts = [header, "\n".join(lines), cell.source.strip("\n")]
    separator = "\n\n" if _import_statements(cell.source) else "\n\n\n"
    head = "\n\n".join(part for part in parts[:2] if part)
    return f"{head}{separator}{parts[2]}\n"


def _builtins() -> frozenset[str]:
    import builtins

    return frozenset(dir(builtins)) | {"__name__"}


def _import_module(cell: SourceCell, name: str) -> SourceCell:
    """The given cell that imports what its module defines, and what the cell imported itself."""
    statements = _import_statements(cell.source)
    imported = frozenset[str]().union(*map(bound_names, statements))
    definitions = [
        definition
        for node in ast.parse(cell.source).body
        for definition in sorted(bound_names(node) - imported)
    ]
    public = [
        definition for definition in definitions if not definition.startswith("_")
    ]
    lines = [ast.unparse(node) for node in statements]
    if lines:
        lines.append("")
    lines.append(f"# Their text is in {name}.py;")
    lines.append(f"# help({public[0]}) shows what one of them does.")
    lines += wrapped_import(name, public)
    return dataclasses.replace(cell, source="\n".join(lines), module="")


def wrapped_import(module: str, names: Sequence[str]) -> Iterator[str]:
    """The lines of `from module import names`, none of them too wide for a notebook."""
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= _WIDTH:
        yield line
        return
    yield f"from {module} import ("
    yield from textwrap.wrap(
        f"{', '.join(names)},", _WIDTH, initial_indent="    ", subsequent_indent="    "
    )
    yield ")"


def _import_statements(source: str) -> list[ast.stmt]:
    """The imports at a cell's top level."""
    body = ast.parse(strip_magics(source)[0]).body
    return [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]

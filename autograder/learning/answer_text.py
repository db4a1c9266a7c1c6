"""Cuts a student's answer out of a notebook's cells, without comments and without people's names.

The trusted side sends this file's text as the cell of a worker, behind walls: Python's parser can
be made to crash, so a student's text is parsed nowhere else. The file needs the standard library
alone. It runs none of the student's code.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LONGEST_ANSWER = 20_000
"""Characters of an answer that becomes a known mistake: nobody reads a longer one."""
PERSON = "student"
"""The word in place of a person's name."""
_SHORTEST_INSIDE = 5
"""Letters of a name that is sought inside of longer words too: `annas_softmax`."""
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+")
_WORD_OF_IDENTIFIER = re.compile(r"[A-Z]?[^\W\dA-Z_]+|[A-Z]+(?![a-z])")
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, eq=False)
class _Statement:
    """One statement at the top of a cell that binds names.

    Attributes:
        binds, reads: names that the statement defines, and names that the statement uses.
        is_in_answer: whether it stands in the cell that answers the question.
    """

    node: ast.stmt
    binds: frozenset[str]
    reads: frozenset[str]
    is_in_answer: bool


def cut_answer(request: str) -> str:
    """The answer in a notebook, as JSON: its `code`, or the `problem` why there is none.

    Args:
        request: JSON: the `cells` in their order, the number of the `answer_cell`, the names
            `wanted` from it, the names `known` without it (the answer key's), and `people`, words
            and phrases that name somebody.
    """
    fields = json.loads(request)
    statements = _read_cells(fields["cells"], fields["answer_cell"])
    if statements is None:
        return json.dumps({"problem": "its cell is no Python"})
    wanted = fields["wanted"]
    chosen = _choose_statements(statements, wanted, set(fields["known"]))
    bound = frozenset[str]().union(*[statement.binds for statement in chosen])
    if missing := [name for name in wanted if name not in bound]:
        return json.dumps(
            {"problem": f"no cell defines `{missing[0]}` by a plain statement"}
        )
    module = ast.Module([statement.node for statement in chosen], [])
    _TextRemover().visit(module)
    _Anonymizer(module, fields["people"], keep=set(wanted)).visit(module)
    code = ast.unparse(ast.fix_missing_locations(module)) + "\n"
    if len(code) > LONGEST_ANSWER:
        return json.dumps({"problem": f"it is longer than {LONGEST_ANSWER} characters"})
    return json.dumps({"code": code})


def _read_cells(cells: Sequence[str], answer_cell: int) -> list[_Statement] | None:
    """The statements of all cells that parse; None where the answer's cell does not."""
    statements = []
    for number, cell in enumerate(cells):
        try:
            tree = ast.parse(cell)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            if number == answer_cell:
                return None
            continue
        for node in tree.body:
            if binds := _names_bound(node):
                names = [
                    child for child in ast.walk(node) if isinstance(child, ast.Name)
                ]
                reads = frozenset(
                    name.id for name in names if isinstance(name.ctx, ast.Load)
                )
                statements.append(_Statement(node, binds, reads, number == answer_cell))
    return statements


def _names_bound(node: ast.stmt) -> frozenset[str]:
    """The names that a definition, an import or an assignment binds; none of other statements."""
    if isinstance(node, _Definition):
        return frozenset({node.name})
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = [alias.asname or alias.name for alias in node.names]
        return frozenset(name.partition(".")[0] for name in names)
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        nodes = [child for target in targets for child in ast.walk(target)]
        names_stored = [child for child in nodes if isinstance(child, ast.Name)]
        return frozenset(
            name.id for name in names_stored if isinstance(name.ctx, ast.Store)
        )
    return frozenset()


def _choose_statements(
    statements: Sequence[_Statement],
    wanted: Iterable[str],
    known: set[str],
) -> list[_Statement]:
    """The statements that define the wanted names and the student's helpers that these need, in the
    order of the notebook. A name that the answer key has too is the answer key's.
    """
    chosen: list[_Statement] = []
    names = list(wanted)
    for name in names:  # which grows
        binding = [statement for statement in statements if name in statement.binds]
        # the answer's own cell first, and of several definitions the last one
        binding.sort(key=lambda statement: statement.is_in_answer)
        if not binding or binding[-1] in chosen:
            continue
        chosen.append(binding[-1])
        names += sorted(binding[-1].reads - known - set(names))
    return [statement for statement in statements if statement in chosen]


class _TextRemover(ast.NodeTransformer):
    """Removes docstrings and other texts that stand alone as statements."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if getattr(node, "body", None) == [] and not isinstance(node, ast.Module):
            node.body = [ast.Pass()]  # type: ignore[attr-defined]
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return None
        return self.generic_visit(node)


class _Anonymizer(ast.NodeTransformer):
    """Replaces names of people, in texts and in identifiers that the code itself binds.

    Args:
        keep: identifiers that stay.
    """

    def __init__(
        self, module: ast.Module, people: Sequence[str], keep: set[str]
    ) -> None:
        self._words = {word.casefold() for word in people if len(word) >= 3}
        phrases = sorted(self._words, key=lambda word: (-len(word), word))
        alternatives = "|".join(re.escape(phrase) for phrase in phrases)
        self._in_text = (
            re.compile(rf"\b(?:{alternatives})\b", re.IGNORECASE) if phrases else None
        )
        self._renamed: dict[str, str] = {}
        for name in _identifiers_bound(module):
            if name not in keep and self._names_somebody(name):
                self._renamed.setdefault(name, f"{PERSON}_{len(self._renamed) + 1}")

    def _names_somebody(self, identifier: str) -> bool:
        parts = {part.casefold() for part in _WORD_OF_IDENTIFIER.findall(identifier)}
        folded = identifier.casefold()
        return bool(parts & self._words) or any(
            word in folded for word in self._words if len(word) >= _SHORTEST_INSIDE
        )

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        # an imported module keeps its name
        fields = (
            ("asname",)
            if isinstance(node, ast.alias)
            else ("id", "name", "arg", "attr")
        )
        for field in fields:
            value = getattr(node, field, None)
            if isinstance(value, str) and value in self._renamed:
                setattr(node, field, self._renamed[value])
        if isinstance(node, ast.Global | ast.Nonlocal):
            node.names = [self._renamed.get(name, name) for name in node.names]
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str):
            text = _EMAIL.sub(PERSON, node.value)
            node.value = self._in_text.sub(PERSON, text) if self._in_text else text
        return node


def _identifiers_bound(module: ast.Module) -> list[str]:
    """The identifiers that a module's code binds, in any scope, in the order of the code."""
    names: dict[str, None] = {}
    for node in ast.walk(module):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names[node.name] = None
            case ast.arg():
                names[node.arg] = None
            case ast.Name(ctx=ast.Store()):
                names[node.id] = None
            case ast.Attribute(ctx=ast.Store()):
                names[node.attr] = None
            case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)):
                names[name] = None
    return list(names)

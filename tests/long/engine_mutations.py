"""Mutants of the engine: a module of the kit with one condition, bound, constant, return or
statement changed.

The changes are those of the suites' proof without what concerns calls and tensors, and a few that
answers of students have no use for.
"""

from __future__ import annotations

import ast
import random
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from autograder.proof.code_mutants import edit_part, find_parents, nodes_to_mutate
from autograder.proof.mutations import Mutations, Parents, mutations

_SHARED_WITH_SUITES = (
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.Slice,
    ast.IfExp,
    ast.If,
    ast.comprehension,
    ast.Return,
    ast.Raise,
    ast.Constant,
    ast.Assign,
    ast.AugAssign,
    ast.Expr,
    ast.For,
    ast.Break,
    ast.Continue,
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_WITHOUT_MUTANTS = (
    "strict",  # of zip: a check that its lists are of one length, as they always are
    "covariant",  # of a type variable: a hint for a type checker
)
"""Keywords whose values stay."""


@dataclass(frozen=True, slots=True)
class EngineMutant:
    """A module with one change.

    Attributes:
        module: as "grading/pool.py".
        name: the function, the line and the change.
        lines: a test that runs one of them may notice the change. Empty outside of functions:
            every test that runs a function of the module may.
        source: the module's whole new text.
    """

    module: str
    name: str
    lines: tuple[int, ...]
    source: str

    @property
    def question(self) -> str:
        """The table of `engine_equivalent.toml` in which the mutant would stand."""
        return self.module


@dataclass(frozen=True, slots=True)
class _Change:
    """One change of a module, before its text is made: there are a thousand a room."""

    part: ast.AST
    new: str


def sample_mutants(
    package: Path,
    room: str,
    count: int | None,
    seed: int,
    is_wanted: Callable[[str, str], bool] = lambda module, name: True,
) -> list[EngineMutant]:
    """So many mutants of a room's modules, the same ones for the same seed; all for None.

    Args:
        is_wanted: whether a mutant of that module and name may be among them. It is asked first:
            to make a mutant takes two parses of its module.
    """
    pairs = []
    for path in sorted((package / room).rglob("*.py")):
        if "templates" not in path.parts:
            module = _Module(package, path)
            pairs += [(module, change) for change in module.changes()]
    random.Random(f"{seed} {room}").shuffle(pairs)
    mutants: list[EngineMutant] = []
    for module, change in pairs:
        if count is not None and len(mutants) == count:
            break
        mutant = module.mutant(change, is_wanted)
        if mutant is not None:
            mutants.append(mutant)
    return mutants


class _Module:
    """The text of a module, and the changes that can be made to it."""

    def __init__(self, package: Path, path: Path) -> None:
        self.name = path.relative_to(package).as_posix()
        self.source = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.source)
        self.parents = find_parents(self.tree)

    def changes(self) -> list[_Change]:
        """All changes, each of which stands once."""
        changes = {}
        for node in nodes_to_mutate(self.tree):
            for part, new in _engine_mutations(node, self.parents):
                changes[part, new] = _Change(part, new)
        return list(changes.values())

    def mutant(
        self, change: _Change, is_wanted: Callable[[str, str], bool]
    ) -> EngineMutant | None:
        """The module with a change; None where nobody wants it, it means nothing, or is no
        Python.
        """
        part = change.part
        edit = edit_part(self.source, part, change.new, self.parents.get(part))
        name = f"{self._place(part)}: {edit.name}"
        if not is_wanted(self.name, name):
            return None
        try:
            edited = ast.parse(edit.edited)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # `1 is 1`
                compile(edited, self.name, "exec")  # a name that `nonlocal` lacks
        except SyntaxError:
            return None
        if ast.dump(edited) == ast.dump(self.tree):
            return None
        return EngineMutant(self.name, name, self._lines(part), edit.edited)

    def _around(self, part: ast.AST) -> list[ast.AST]:
        """What the part stands in, from the inside outwards."""
        nodes = []
        while part in self.parents:
            part = self.parents[part]
            nodes.append(part)
        return nodes

    def _place(self, part: ast.AST) -> str:
        """The dotted name of the function or class that the part stands in."""
        names = [
            node.name
            for node in self._around(part)
            if isinstance(node, (*_FUNCTIONS, ast.ClassDef))
        ]
        return ".".join(reversed(names)) or "module"

    def _lines(self, part: ast.AST) -> tuple[int, ...]:
        """The lines of the part's statement, without those of statements within that one.

        Python gives no line to a `continue`, `break` or `pass` that a jump goes around.
        """
        around = self._around(part)
        if not any(isinstance(node, _FUNCTIONS) for node in around):
            return ()
        statements = [node for node in [part, *around] if isinstance(node, ast.stmt)]
        statement = statements[0]
        if isinstance(statement, ast.Break | ast.Continue | ast.Pass):
            statement = statements[1]
        body = getattr(statement, "body", None)
        end = (
            body[0].lineno
            if isinstance(body, list)
            else (statement.end_lineno or 0) + 1
        )
        return tuple(range(statement.lineno, max(end, statement.lineno + 1)))


def _engine_mutations(node: ast.AST, parents: Parents) -> Mutations:
    """The mutations of a node that tests of the engine should notice."""
    if (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.BitOr)
        and _is_type(node)
    ):
        return
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    parent = parents.get(node)
    if isinstance(parent, ast.keyword) and parent.arg in _WITHOUT_MUTANTS:
        return
    if isinstance(node, _SHARED_WITH_SUITES):
        for part, new in mutations(node, parents):
            if not _is_same_distance(part, new, parent):
                yield part, new
    if isinstance(node, ast.Return):
        yield from _return(node)
    elif isinstance(node, ast.While):
        yield node.test, f"not ({ast.unparse(node.test)})"
        yield node.test, "False"
    elif isinstance(node, ast.Raise):
        yield node, "pass"
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from _word(node, node.value, parents[node])


def _is_same_distance(part: ast.AST, new: str, parent: ast.AST | None) -> bool:
    """Whether a mutation turns a difference round of which `abs` takes the sign away."""
    is_argument = isinstance(parent, ast.Call) and ast.unparse(parent.func) == "abs"
    is_tensor = isinstance(parent, ast.Attribute) and parent.attr == "abs"
    if not isinstance(part, ast.BinOp) or not (is_argument or is_tensor):
        return False
    turned = ast.BinOp(part.right, part.op, part.left)
    mutant = ast.parse(new, mode="eval")
    return ast.unparse(mutant) == ast.unparse(turned)


def _is_type(node: ast.BinOp) -> bool:
    """Whether `|` stands between types, as in `str | None`."""
    return bool(
        re.fullmatch(
            r"[\w.]*\b(?:[A-Z]\w*|str|int|float|bytes|bool|None)(?:\[.*\])?",
            ast.unparse(node.right),
        )
    )


def _return(node: ast.Return) -> Mutations:
    if node.value is None:
        yield node, "pass"
    elif not isinstance(node.value, ast.Constant):
        yield node.value, "None"


def _word(
    node: ast.Constant, word: str, parent: ast.AST
) -> Iterator[tuple[ast.AST, str]]:
    """A word that the program compares or looks up is another one."""
    if isinstance(parent, ast.Compare | ast.Subscript) and word:
        yield node, repr("no " + word)

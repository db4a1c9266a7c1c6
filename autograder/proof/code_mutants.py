"""The code mutants of an answer: its cell with one place changed, each of them once."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from autograder.proof.mutations import mutations

_OPERANDS = (
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Attribute,
    ast.Subscript,
    ast.Call,
    ast.Starred,
)
_LOOSE = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda)


@dataclass(frozen=True, slots=True)
class Mutant:
    """An answer key with one thing changed in it.

    Attributes:
        question: whose answer it is.
        name: the line and what becomes of it; unique among the question's mutants, and the same as
            long as the line is.
        cell: the whole cell.
    """

    question: str
    name: str
    cell: str


def code_mutants(question: str, source: str) -> list[Mutant]:
    """The code mutants of a question's cell `source`, in the order of its lines."""
    tree = ast.parse(source)
    text = _Text(source)
    seen = {ast.dump(tree)}
    counted: Counter[str] = Counter()
    made = []
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in _in_order(tree):
        for part, new in mutations(node, parents):
            cell = text.with_part(part, _in_parentheses(new, part, parents))
            try:
                dump = ast.dump(ast.parse(cell))
            except SyntaxError:
                continue
            if dump not in seen:
                seen.add(dump)
                name = text.name_of(part, new)
                counted[name] += 1
                made.append(
                    Mutant(
                        question, name + (f" ({counted[name]})" if counted[name] > 1 else ""), cell
                    )
                )
    return made


def _in_order(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes whose mutants tell something: no docstrings, no annotations, no decorators, no
    words of messages.
    """
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "exc", "cause", "msg"):
            continue
        for child in value if isinstance(value, list) else [value]:
            is_text = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr) and not is_text:
                yield from _in_order(child)


def _in_parentheses(new: str, part: ast.AST, parents: dict[ast.AST, ast.AST]) -> str:
    """The new text, in parentheses where it would be read otherwise beside what stands around
    it.
    """
    parent = parents.get(part)
    if (
        not isinstance(part, ast.expr)
        or isinstance(part, ast.Slice)
        or not isinstance(parent, _OPERANDS)
    ):
        return new
    alone = (isinstance(parent, ast.Call) and part is not parent.func) or (
        isinstance(parent, ast.Subscript) and part is parent.slice
    )
    made = ast.parse(new, mode="eval").body
    is_number = isinstance(made, ast.UnaryOp) and isinstance(made.operand, ast.Constant)
    binds_tightly = isinstance(parent, ast.Attribute | ast.Subscript) or (
        isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Pow)
    )
    return (
        f"({new})"
        if isinstance(made, _LOOSE) and not alone and (binds_tightly or not is_number)
        else new
    )


class _Text:
    """The source as bytes, which is what a syntax tree counts in."""

    def __init__(self, source: str) -> None:
        self._bytes = source.encode()
        self._lines = [0]
        for line in self._bytes.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def _span(self, part: ast.AST) -> tuple[int, int]:
        at: ast.expr = part  # type: ignore[assignment]  # whatever it is, it has a place
        return self._lines[at.lineno - 1] + at.col_offset, self._lines[(at.end_lineno or 1) - 1] + (
            at.end_col_offset or 0
        )

    def with_part(self, part: ast.AST, new: str) -> str:
        start, end = self._span(part)
        return (self._bytes[:start] + new.encode() + self._bytes[end:]).decode()

    def name_of(self, part: ast.AST, new: str) -> str:
        """`the line: what stands there → what stands there instead`."""
        start, end = self._span(part)
        begin = self._bytes.rfind(b"\n", 0, start) + 1
        line = (
            self._bytes[begin:].split(b"\n")[0].decode().split("  #")[0].strip().removesuffix(":")
        )
        old = " ".join(self._bytes[start:end].decode().split())
        return f"{line}: {'left out' if new == 'pass' else f'{old} → {new}'}"

"""Code mutants: the answer key's cell of a question with one place changed, each change once."""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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
_LOOSE = (
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Lambda,
)
_UNTESTED_FIELDS = (
    "annotation",
    "returns",
    "decorator_list",
    "exc",
    "cause",
    "msg",
)


@dataclass(frozen=True, slots=True)
class Variant:
    """The answer key with another cell for one question: a mutant, an answer without an idea, or
    an unfinished question.

    Attributes:
        question: the question whose cell is exchanged.
        name: unique among the variants of one kind. A code mutant is called by its line and the
            change, so that the name stays as long as the line does.
        cell: the whole new cell; "" for a notebook without the question's cell.
    """

    question: str
    name: str
    cell: str


def code_mutants(question: str, source: str) -> list[Variant]:
    """The code mutants of a question's cell `source`, in the order of its lines."""
    tree = ast.parse(source)
    parents: dict[ast.AST, ast.AST] = {}
    for node in ast.walk(tree):
        parents |= dict.fromkeys(ast.iter_child_nodes(node), node)
    seen = {ast.dump(tree)}
    name_counts: Counter[str] = Counter()
    mutants = []
    for node in _nodes_to_mutate(tree):
        for part, new in mutations(node, parents):
            head, old, tail = _split_at(source, part)
            cell = head + _in_parentheses(new, part, parents.get(part)) + tail
            try:
                dump = ast.dump(ast.parse(cell))
            except SyntaxError:
                continue
            if dump in seen:
                continue
            seen.add(dump)
            name = _describe_change(head, old, tail, new)
            name_counts[name] += 1
            if name_counts[name] > 1:
                name += f" ({name_counts[name]})"
            mutants.append(Variant(question, name, cell))
    return mutants


def _nodes_to_mutate(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes whose mutants a test could see: no docstrings, annotations, decorators, nor words
    of messages.
    """
    yield node
    for name, value in ast.iter_fields(node):
        if name in _UNTESTED_FIELDS:
            continue
        children = value if isinstance(value, list) else [value]
        for child in children:
            is_text = isinstance(child, ast.JoinedStr)
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                is_text = True
            if isinstance(child, ast.AST) and not is_text:
                yield from _nodes_to_mutate(child)


def _split_at(
    source: str,
    part: Any,
) -> tuple[str, str, str]:
    """The source before a part of the program, the part, and the source after it."""
    text = source.encode()  # a syntax tree counts columns in bytes
    lengths = map(len, text.splitlines(keepends=True))
    line_starts = list(itertools.accumulate(lengths, initial=0))
    start = line_starts[part.lineno - 1] + part.col_offset
    end = line_starts[part.end_lineno - 1] + part.end_col_offset
    pieces = (text[:start], text[start:end], text[end:])
    head, old, tail = (piece.decode() for piece in pieces)
    return head, old, tail


def _describe_change(
    head: str,
    old: str,
    tail: str,
    new: str,
) -> str:
    """`the line: old text → new text`, without a comment at the end of the line."""
    line = head.rpartition("\n")[2]
    line += (old + tail).partition("\n")[0]
    line = line.split("  #")[0].strip().removesuffix(":")
    change = "left out" if new == "pass" else f"{' '.join(old.split())} → {new}"
    return f"{line}: {change}"


def _in_parentheses(
    new: str,
    part: ast.AST,
    parent: ast.AST | None,
) -> str:
    """The new text of an operand, in parentheses where an operator beside it could bind tighter."""
    if isinstance(part, ast.Slice) or not isinstance(part, ast.expr):
        return new
    is_argument = isinstance(parent, ast.Call) and part is not parent.func
    is_index = isinstance(parent, ast.Subscript) and part is parent.slice
    if is_argument or is_index or not isinstance(parent, _OPERANDS):
        return new
    is_loose = isinstance(ast.parse(new, mode="eval").body, _LOOSE)
    return f"({new})" if is_loose else new

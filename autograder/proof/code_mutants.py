"""Code mutants: the answer key's cell of a question with one place changed, each change once."""

from __future__ import annotations

import ast
import itertools
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
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
        parts: the code mutants that a mutant consists of, if it is made of others.
    """

    question: str
    name: str
    cell: str
    parts: tuple[Variant, ...] = ()


@dataclass(frozen=True, slots=True)
class CodeEdit:
    """One change of a program's text.

    Attributes:
        name: as in `Variant`.
        head, tail: the source before and after the changed part.
        new: what stands in the place of the part.
    """

    name: str
    head: str
    new: str
    tail: str

    @property
    def edited(self) -> str:
        """The whole text with the change."""
        return self.head + self.new + self.tail

    def variant(self, question: str) -> Variant:
        """The mutant with this change alone."""
        return Variant(question, self.name, self.edited)


def code_mutants(question: str, source: str) -> list[Variant]:
    """The code mutants of a question's cell `source`, in the order of its lines."""
    return [edit.variant(question) for edit in _edits(source)]


def double_mutants(
    question: str,
    source: str,
    count: int,
) -> list[Variant]:
    """At most `count` mutants with two changes each, the same ones each time."""
    pairs = list(itertools.combinations(_edits(source), 2))
    random.Random(question).shuffle(pairs)
    doubles: list[Variant] = []
    for first, second in pairs:
        if len(doubles) == count:
            break
        first, second = sorted((first, second), key=lambda edit: len(edit.head))
        first_end, second_start = len(source) - len(first.tail), len(second.head)
        if second_start < first_end:
            continue  # they change the same place
        between = source[first_end:second_start]
        cell = first.head + first.new + between + second.new + second.tail
        name = f"{first.name}; {second.name}"
        parts = (first.variant(question), second.variant(question))
        doubles.append(Variant(question, name, cell, parts))
    return doubles


def find_parents(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    """Node → the node that it is a part of."""
    parents: dict[ast.AST, ast.AST] = {}
    for node in ast.walk(tree):
        parents.update(dict.fromkeys(ast.iter_child_nodes(node), node))
    return parents


def edit_part(
    source: str,
    part: ast.AST,
    new: str,
    parent: ast.AST | None,
) -> CodeEdit:
    """The edit that puts a new text in the place of a part of the program."""
    head, old, tail = _split_at(source, part)
    name = _describe_change(head, old, tail, new)
    return CodeEdit(name, head, _in_parentheses(new, part, parent), tail)


def _edits(source: str) -> list[CodeEdit]:
    """The changes that become mutants, each with another meaning."""
    tree = ast.parse(source)
    parents = find_parents(tree)
    seen = {ast.dump(tree)}
    name_counts: Counter[str] = Counter()
    edits = []
    for node in nodes_to_mutate(tree):
        for part, new in mutations(node, parents):
            edit = edit_part(source, part, new, parents.get(part))
            try:
                dump = ast.dump(ast.parse(edit.edited))
            except SyntaxError:
                continue
            if dump in seen:
                continue
            seen.add(dump)
            name_counts[edit.name] += 1
            count = name_counts[edit.name]
            if count > 1:
                edit = replace(edit, name=f"{edit.name} ({count})")
            edits.append(edit)
    return edits


def nodes_to_mutate(node: ast.AST) -> Iterator[ast.AST]:
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
                yield from nodes_to_mutate(child)


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

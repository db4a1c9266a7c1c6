"""Known answers as notebook source, read without running their file.

`mistakes.py` and `alternates.py` hold definitions with a decorator. Here they are found in the file's text, and
each is made into a cell that a notebook can hold: the answer, the helpers and constants it needs, and the
question's name bound to it.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from autograder.errors import BadSuite
from autograder.suite.register import KnownAnswer

_REGISTERS = ("mistake", "alternate")
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class _Part:
    """One statement of the file: its text without register decorators, what it binds, what it needs."""

    text: str
    binds: frozenset[str]
    needs: frozenset[str]
    answer: KnownAnswer | None = None


def load_known_answers(path: Path) -> list[KnownAnswer]:
    """The answers registered in `path`, in the order of the file; none where there is no such file.

    Raises:
        BadSuite: the file does not parse, or a decorator's arguments are not plain text.
    """
    if not path.exists():
        return []
    return [part.answer for part in _parts(path, path.stat().st_mtime_ns) if part.answer]


def as_cell(path: Path, answer: KnownAnswer) -> str:
    """Source that defines the answer with all it needs, and binds the question's function to it.

    Raises:
        BadSuite: `path` does not hold the answer.
    """
    parts = _parts(path, path.stat().st_mtime_ns)
    own = next((part for part in parts if part.answer and part.answer.name == answer.name), None)
    if own is None:
        raise BadSuite(f"{path}: there is no known answer {answer.name}")
    used = _closure(own, parts)
    texts = [part.text for part in used]
    at = next(n for n, part in enumerate(used) if part is own)
    if any(answer.name in part.needs for part in used) or not own.text:
        texts.append(f"{answer.function} = {answer.name}")
    else:
        texts[at] = _renamed(own.text, answer)
    # Definitions are set apart by two lines as in any file; imports and constants stand together.
    return re.sub(r"\n{4,}", "\n\n\n", "\n\n\n".join(texts)) + "\n"


def _renamed(text: str, answer: KnownAnswer) -> str:
    pattern = rf"^((?:async\s+)?(?:def|class)\s+){re.escape(answer.name)}\b"
    return re.sub(pattern, rf"\g<1>{answer.function}", text, count=1, flags=re.MULTILINE)


def _closure(own: _Part, parts: tuple[_Part, ...]) -> list[_Part]:
    """The parts that `own` needs, directly or through others, in the order of the file."""
    wanted, used = set(own.needs), {id(own)}
    grown = True
    while grown:
        grown = False
        for part in parts:
            if id(part) not in used and part.binds & wanted:
                used.add(id(part))
                wanted |= part.needs
                grown = True
    return [part for part in parts if id(part) in used]


@lru_cache(maxsize=64)
def _parts(path: Path, _changed: int) -> tuple[_Part, ...]:
    try:
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
    except (OSError, ValueError, SyntaxError) as error:
        raise BadSuite(f"{path}: cannot be read as Python: {error}") from error
    lines = source.splitlines()
    return tuple(_part(path, node, lines) for node in tree.body if not _is_kits_own(node))


def _is_kits_own(node: ast.stmt) -> bool:
    """The docstring, and imports of the kit: a notebook has neither."""
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").split(".")[0] == "autograder"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _part(path: Path, node: ast.stmt, lines: list[str]) -> _Part:
    first, skip = node.lineno, set[int]()
    answer = None
    if isinstance(node, _Definition):
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        for decorator in node.decorator_list:
            found = _registered(path, node, decorator)
            if found is not None:
                answer = answer or found
                skip |= set(range(decorator.lineno, (decorator.end_lineno or decorator.lineno) + 1))
    last = node.end_lineno or node.lineno
    text = "\n".join(lines[n - 1] for n in range(first, last + 1) if n not in skip)
    return _Part(text, _binds(node), _needs(node), answer)


def _registered(path: Path, node: _Definition, decorator: ast.expr) -> KnownAnswer | None:
    """The known answer that `@mistake("softmax", hint="…")` registers; None for any other decorator."""
    if not isinstance(decorator, ast.Call):
        return None
    called = decorator.func.attr if isinstance(decorator.func, ast.Attribute) else getattr(decorator.func, "id", "")
    if called not in _REGISTERS:
        return None
    try:
        (question,) = (ast.literal_eval(argument) for argument in decorator.args)
        keywords = {keyword.arg: ast.literal_eval(keyword.value) for keyword in decorator.keywords}
    except ValueError as error:
        raise BadSuite(f"{path}, line {decorator.lineno}: {called} of {node.name} takes plain text only") from error
    hint, function = keywords.get("hint", ""), keywords.get("function") or question
    if not all(isinstance(value, str) for value in (question, hint, function)):
        raise BadSuite(f"{path}, line {decorator.lineno}: {called} of {node.name} takes plain text only")
    if called == "mistake" and not hint.strip():
        raise BadSuite(f"{path}, line {decorator.lineno}: the mistake {node.name} has no hint")
    return KnownAnswer(question, node.name, hint, function)


def _binds(node: ast.stmt) -> frozenset[str]:
    """Names that a top-level statement binds."""
    if isinstance(node, _Definition):
        return frozenset({node.name})
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for found in ast.walk(node):
        if isinstance(found, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in found.names}
        elif isinstance(found, _Definition):
            names.add(found.name)
    return frozenset(names)


def _needs(node: ast.stmt) -> frozenset[str]:
    """Names that a statement reads, except those of the registers."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return frozenset(names - set(_REGISTERS))

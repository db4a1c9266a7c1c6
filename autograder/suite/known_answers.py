"""Known answers as notebook source, read without running their file.

`mistakes.py`, `alternates.py` and `samples.py` hold definitions with a decorator (`register.py`).
Here they are found in the file's text, and each is made into a cell that a notebook can hold: the
answer, the helpers and constants it needs, and the question's name bound to it; or the answer key's
own cell with some changes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.basics.definitions import bound_names
from autograder.basics.errors import BadSuite
from autograder.suite.edits import EditError, edited
from autograder.suite.register import Change

_REGISTERS = ("mistake", "alternate", "sample")
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    """One registered answer.

    Attributes:
        question: whose answer it is.
        name: the function's own name, which is also the name of the mistake.
        hint: what a student who made the mistake may read; "" for other answers.
        cell: source that defines the question's function as this answer, with all that it needs.
        keeps: the share of the question's points that an answer keeps whose only fault is this; 0
            where tests decide.
        changes: what it changes of the answer key, where that is how it is written.
        deserves: for a sample the mistakes that its diagnosis may name, first the one that it
            should; else None.
    """

    question: str
    name: str
    hint: str
    cell: str
    keeps: float = 0.0
    changes: tuple[Change, ...] = ()
    deserves: tuple[str, ...] | None = None

    @property
    def is_mistake(self) -> bool:
        """A mistake has a hint, an alternate none."""
        return bool(self.hint)


@dataclass(frozen=True, slots=True)
class _Entry:
    """What a decorator registers: an answer to `question` as `function`, by `changes` of the answer
    key if any.
    """

    question: str
    hint: str
    function: str
    changes: tuple[Change, ...]
    keeps: float
    deserves: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class _Part:
    """One statement of the file: its text without register decorators, what it binds, what it
    needs.

    Attributes:
        name, line: of a definition; the line of its first decorator.
        empty: whether a definition has no body of its own.
        entry: what it registers, if anything.
    """

    text: str
    binds: frozenset[str]
    needs: frozenset[str]
    name: str = ""
    line: int = 0
    empty: bool = False
    entry: _Entry | None = None


def load_known_answers(path: Path, key: Mapping[str, str]) -> list[KnownAnswer]:
    """The answers registered in `path`, in the order of the file; none where there is no such file.

    Args:
        key: the answer key's cell of each question, for answers that change it.

    Raises:
        BadSuite: the file does not parse, a decorator's arguments are not plain text, two answers
            have one name, or a change does not fit the answer key; with the line.
    """
    if not path.exists():
        return []
    parts = _parts(path)
    seen: set[str] = set()
    answers = []
    for part in parts:
        if (entry := part.entry) is not None:
            if part.name in seen:
                raise BadSuite(f"{path}, line {part.line}: a second answer named {part.name}")
            seen.add(part.name)
            cell = (
                _changed(path, part, entry, key) if entry.changes else _as_cell(part, entry, parts)
            )
            answers.append(
                KnownAnswer(
                    entry.question,
                    part.name,
                    entry.hint,
                    cell,
                    entry.keeps,
                    entry.changes,
                    entry.deserves,
                )
            )
    return answers


def combined(answers: Sequence[KnownAnswer], key: str) -> KnownAnswer | None:
    """The answer that makes several mistakes at once; None where they are not all changes of `key`,
    the answer key's cell of their question, or two of them touch the same place.
    """
    if not all(answer.changes for answer in answers):
        return None
    changes = tuple(change for answer in answers for change in answer.changes)
    try:
        cell = edited(key, changes)
    except EditError:
        return None
    name = " and ".join(answer.name for answer in answers)
    hint = " ".join(answer.hint for answer in answers)
    return KnownAnswer(answers[0].question, name, hint, cell, changes=changes)


def _changed(path: Path, part: _Part, entry: _Entry, key: Mapping[str, str]) -> str:
    """The answer key's cell after the changes of an edit."""
    where = f"{path}, line {part.line}: {part.name}"
    if not part.empty:
        raise BadSuite(
            f"{where} changes the answer key and has a body of its own; leave `...` there"
        )
    if entry.question not in key:
        raise BadSuite(f"{where} changes the answer to {entry.question!r}, which is no question")
    try:
        return edited(key[entry.question], entry.changes)
    except EditError as error:
        raise BadSuite(
            f"{where} does not fit the answer key of {entry.question}: {error}"
        ) from error


def _as_cell(own: _Part, entry: _Entry, parts: Sequence[_Part]) -> str:
    """The definition with all it needs, and the question's function bound to it."""
    used = _closure(own, parts)
    texts = [part.text for part in used]
    at = next(n for n, part in enumerate(used) if part is own)
    if any(own.name in part.needs for part in used) or not own.text:
        texts.append(f"{entry.function} = {own.name}")
    else:
        texts[at] = _renamed(own, entry.function)
    # Definitions are set apart by two lines as in any file; imports and constants stand together.
    return re.sub(r"\n{4,}", "\n\n\n", "\n\n\n".join(texts)) + "\n"


def _renamed(part: _Part, function: str) -> str:
    pattern = rf"^((?:async\s+)?(?:def|class)\s+){re.escape(part.name)}\b"
    return re.sub(pattern, rf"\g<1>{function}", part.text, count=1, flags=re.MULTILINE)


def _closure(own: _Part, parts: Sequence[_Part]) -> list[_Part]:
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


def _parts(path: Path) -> list[_Part]:
    try:
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
    except (OSError, ValueError, SyntaxError) as error:
        raise BadSuite(f"{path}: cannot be read as Python: {error}") from error
    lines = source.splitlines()
    return [_part(path, node, lines) for node in tree.body if not _is_kits_own(node)]


def _is_kits_own(node: ast.stmt) -> bool:
    """The docstring, and imports of the kit: a notebook has neither."""
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").split(".")[0] == "autograder"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _part(path: Path, node: ast.stmt, lines: list[str]) -> _Part:
    last = node.end_lineno or node.lineno
    if not isinstance(node, _Definition):
        return _Part("\n".join(lines[node.lineno - 1 : last]), bound_names(node), _needs(node))
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    skip: set[int] = set()
    entry = None
    for decorator in node.decorator_list:
        found = _registered(path, node, decorator)
        if found is not None:
            entry = entry or found
            skip |= set(range(decorator.lineno, (decorator.end_lineno or decorator.lineno) + 1))
    text = "\n".join(lines[n - 1] for n in range(first, last + 1) if n not in skip)
    empty = all(
        isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) for line in node.body
    )
    return _Part(text, bound_names(node), _needs(node), node.name, first, empty, entry)


def _registered(path: Path, node: _Definition, decorator: ast.expr) -> _Entry | None:
    """What `@mistake("softmax", hint="…")` registers; None for any other decorator."""
    if not isinstance(decorator, ast.Call):
        return None
    called = (
        decorator.func.attr
        if isinstance(decorator.func, ast.Attribute)
        else getattr(decorator.func, "id", "")
    )
    if called not in _REGISTERS:
        return None
    where = f"{path}, line {decorator.lineno}"
    try:
        (question,) = (ast.literal_eval(argument) for argument in decorator.args)
        keywords = {keyword.arg: ast.literal_eval(keyword.value) for keyword in decorator.keywords}
    except ValueError as error:
        raise BadSuite(f"{where}: {called} of {node.name} takes plain text only") from error
    hint, function = keywords.get("hint", ""), keywords.get("function") or question
    changes = keywords.get("replace", ())
    if isinstance(changes, tuple) and changes and isinstance(changes[0], str):
        changes = (changes,)
    if not all(isinstance(value, str) for value in (question, hint, function)):
        raise BadSuite(f"{where}: {called} of {node.name} takes plain text only")
    if "replace" in keywords and not (changes and all(_is_change(change) for change in changes)):
        raise BadSuite(
            f'{where}: {node.name} needs replace=("old", "new"), or a list of such pairs'
        )
    if called == "mistake" and not hint.strip():
        raise BadSuite(f"{where}: the mistake {node.name} has no hint")
    keeps = keywords.get("keeps", 0.0)
    if type(keeps) not in (int, float) or not 0 <= keeps < 1:
        raise BadSuite(f"{where}: keeps of {node.name} is a share of the points, from 0 to below 1")
    deserves = keywords.get("deserves")
    if isinstance(deserves, str):
        deserves = (deserves,)
    if (called == "sample") != (
        isinstance(deserves, tuple) and all(isinstance(name, str) for name in deserves)
    ):
        raise BadSuite(
            f"{where}: {node.name} needs deserves=, names of mistakes, if it is a sample, "
            "and else not"
        )
    return _Entry(question, hint, function, tuple(changes), float(keeps), deserves)


def _is_change(change: object) -> bool:
    return (
        isinstance(change, tuple)
        and len(change) == 2
        and all(isinstance(text, str) for text in change)
    )


def _needs(node: ast.stmt) -> frozenset[str]:
    """Names that a statement reads, except those of the registers."""
    names = {
        n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
    }
    return frozenset(names - set(_REGISTERS))

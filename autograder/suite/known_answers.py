"""Reads known answers as notebook source, without running their file.

`mistakes.py`, `alternates.py` and `samples.py` hold definitions with a decorator (`decorators.py`).
Each definition in the file's text becomes a cell of a notebook. The cell has the answer, the
helpers and constants that the answer needs, and the name of the question's function; or it is the
answer key's own cell with some changes; or a student's answer, which the file holds as text.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from autograder.basics.definitions import bound_names
from autograder.basics.errors import BadSuite
from autograder.suite.decorators import Change
from autograder.suite.edits import EditError, apply_changes
from autograder.suite.shows import read_shows

_REGISTERS = ("mistake", "alternate", "sample")
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    """One registered answer.

    Attributes:
        question: the question that is answered.
        name: the definition's own name, which is also the name of the mistake.
        hint: text for students who made the mistake; "" for other answers.
        cell: source that defines the question's function by this answer, with the helpers it needs.
        keeps: for a slip, the share of the question's points that remains; 0 where tests decide.
        changes: the changes of the answer key that make the answer, if it is written so.
        deserves: for a sample the mistakes that a diagnosis may name, the best one first; else
            None.
        function: the name of the function that answers the question.
        is_students: whether a student wrote the cell: it is hostile until proven otherwise, and
            gets a worker of its own.
        shows: the text of the predicate that is true of the mistake's answers (`shows.py`); "" for
            none.
    """

    question: str
    name: str
    hint: str
    cell: str
    keeps: float = 0.0
    changes: tuple[Change, ...] = ()
    deserves: tuple[str, ...] | None = None
    function: str = ""
    is_students: bool = False
    shows: str = ""

    @property
    def is_mistake(self) -> bool:
        """A mistake has a hint, an alternate none."""
        return bool(self.hint)

    @property
    def stored_name(self) -> str:
        """The name of the answer's stored runs. A student's answer is proven before it is written
        into the suite, so the suite's hash does not tell its text.
        """
        if not self.is_students:
            return self.name
        return f"{self.name} {hashlib.sha256(self.cell.encode()).hexdigest()}"


@dataclass(frozen=True, slots=True)
class _Statement:
    """One statement of the file.

    Attributes:
        text: the source without the decorators of registers.
        binds, reads: names that the statement defines, and names that the statement uses.
        line: the line number of the statement, or of its first decorator.
        is_empty: whether a definition has no body of its own.
        answer: the answer that a definition registers, without its cell.
    """

    text: str
    binds: frozenset[str]
    reads: frozenset[str]
    line: int
    is_empty: bool = False
    answer: KnownAnswer | None = None


def load_known_answers(
    path: Path,
    key: Mapping[str, str],
) -> list[KnownAnswer]:
    """The answers registered in `path`, in the order of the file; none where there is no such file.

    Args:
        key: the answer key's cell of each question, for answers that change it.

    Raises:
        BadSuite: the file does not parse, a decorator's arguments are not plain text, two answers
            have one name, or a change does not fit the answer key. The message has the line.
    """
    if not path.exists():
        return []
    statements = _read_statements(path)
    answers: dict[str, KnownAnswer] = {}
    for statement in statements:
        if (answer := statement.answer) is None:
            continue
        place = f"{path}, line {statement.line}"
        if answer.name in answers:
            raise BadSuite(f"{place}: a second answer named {answer.name}")
        if answer.is_students:
            if not statement.is_empty:
                raise BadSuite(
                    f"{place}: {answer.name} has an answer as text and a body of its own; leave "
                    "`...` there"
                )
            cell = answer.cell
        elif answer.changes:
            cell = _changed_key(f"{place}: {answer.name}", statement, answer, key)
        else:
            cell = _as_cell(statement, answer, statements)
        answers[answer.name] = dataclasses.replace(answer, cell=cell)
    return list(answers.values())


def combine_answers(answers: Sequence[KnownAnswer], key: str) -> KnownAnswer | None:
    """The answer that makes several mistakes at once.

    None where an answer is not written as changes of `key`, the answer key's cell of the question,
    or where two answers change the same place.
    """
    if not all(answer.changes for answer in answers):
        return None
    changes = tuple(change for answer in answers for change in answer.changes)
    try:
        cell = apply_changes(key, changes)
    except EditError:
        return None
    name = " and ".join(answer.name for answer in answers)
    hint = " ".join(answer.hint for answer in answers)
    return KnownAnswer(answers[0].question, name, hint, cell, changes=changes)


def _changed_key(
    place: str,
    statement: _Statement,
    answer: KnownAnswer,
    key: Mapping[str, str],
) -> str:
    """The answer key's cell after the changes of an answer."""
    if not statement.is_empty:
        raise BadSuite(
            f"{place} changes the answer key and has a body of its own; leave `...` there"
        )
    if answer.question not in key:
        raise BadSuite(
            f"{place} changes the answer to {answer.question!r}, which is no question"
        )
    try:
        return apply_changes(key[answer.question], answer.changes)
    except EditError as error:
        raise BadSuite(
            f"{place} does not fit the answer key of {answer.question}: {error}"
        ) from error


def _as_cell(
    definition: _Statement, answer: KnownAnswer, statements: Sequence[_Statement]
) -> str:
    """The definition with all it needs, under the name of the question's function."""
    used = _with_needs(definition, statements)
    texts = [statement.text for statement in used]
    if any(answer.name in statement.reads for statement in used) or not definition.text:
        texts.append(f"{answer.function} = {answer.name}")
    else:
        keyword_and_name = (
            rf"^((?:async\s+)?(?:def|class)\s+){re.escape(answer.name)}\b"
        )
        renamed = rf"\g<1>{answer.function}"
        texts[used.index(definition)] = re.sub(
            keyword_and_name, renamed, definition.text, count=1, flags=re.MULTILINE
        )
    # two blank lines between statements, as in any file; a text may end in further ones
    return re.sub(r"\n{4,}", "\n\n\n", "\n\n\n".join(texts)) + "\n"


def _with_needs(
    definition: _Statement, statements: Sequence[_Statement]
) -> list[_Statement]:
    """The definition and the statements that it needs, directly or through others, in the order of
    the file.
    """
    used = [definition]
    for needing in used:  # which grows
        used += [
            statement
            for statement in statements
            if statement not in used and statement.binds & needing.reads
        ]
    return [statement for statement in statements if statement in used]


def _read_statements(path: Path) -> list[_Statement]:
    try:
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
    except (OSError, ValueError, SyntaxError) as error:
        raise BadSuite(f"{path}: cannot be read as Python: {error}") from error
    lines = source.splitlines()
    return [
        _read_statement(path, node, lines)
        for node in tree.body
        if not _is_kits_own(node)
    ]


def _is_kits_own(node: ast.stmt) -> bool:
    """Whether a statement is the docstring or an import of the kit: a notebook has neither."""
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").split(".")[0] == "autograder"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _read_statement(
    path: Path,
    node: ast.stmt,
    lines: list[str],
) -> _Statement:
    decorators = node.decorator_list if isinstance(node, _Definition) else []
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    numbers = set(range(first, (node.end_lineno or node.lineno) + 1))
    answer = None
    for decorator in decorators:
        registered = _read_decorator(path, node, decorator)
        if registered is not None:
            answer = answer or registered
            numbers -= set(
                range(decorator.lineno, (decorator.end_lineno or decorator.lineno) + 1)
            )
    text = "\n".join(lines[number - 1] for number in sorted(numbers))
    names = [name for name in ast.walk(node) if isinstance(name, ast.Name)]
    reads = {name.id for name in names if isinstance(name.ctx, ast.Load)}
    return _Statement(
        text,
        bound_names(node),
        frozenset(reads - set(_REGISTERS)),
        first,
        isinstance(node, _Definition) and _is_empty(node),
        answer,
    )


def _is_empty(node: _Definition) -> bool:
    """Whether a body has nothing but docstrings and `...`."""
    return all(
        isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)
        for line in node.body
    )


def _read_decorator(
    path: Path,
    node: Any,
    decorator: ast.expr,
) -> KnownAnswer | None:
    """The registered answer of `@mistake("softmax", hint="…")`, without a cell.

    None for any other decorator.
    """
    if not isinstance(decorator, ast.Call):
        return None
    register = getattr(decorator.func, "attr", getattr(decorator.func, "id", ""))
    if register not in _REGISTERS:
        return None
    place = f"{path}, line {decorator.lineno}"
    no_plain_text = BadSuite(
        f"{place}: {register} of {node.name} takes plain text only"
    )
    try:
        (question,) = (ast.literal_eval(argument) for argument in decorator.args)
        keywords = {
            keyword.arg: ast.literal_eval(keyword.value)
            for keyword in decorator.keywords
            if keyword.arg != "shows"
        }
    except ValueError as error:
        raise no_plain_text from error
    shows = [
        ast.unparse(keyword.value)
        for keyword in decorator.keywords
        if keyword.arg == "shows"
    ]
    try:
        for text in shows:
            read_shows(text)
    except ValueError as error:
        raise BadSuite(f"{place}: shows= of {node.name}: {error}") from error
    hint = keywords.get("hint", "")
    function = keywords.get("function") or question
    answer = keywords.get("answer", "")
    if not all(isinstance(value, str) for value in (question, hint, function, answer)):
        raise no_plain_text
    changes = keywords.get("replace", ())
    if isinstance(changes, tuple) and changes and isinstance(changes[0], str):
        changes = (changes,)
    if "replace" in keywords and not (changes and all(map(_is_change, changes))):
        raise BadSuite(
            f'{place}: {node.name} needs replace=("old", "new"), or a list of such pairs'
        )
    if answer and changes:
        raise BadSuite(f"{place}: {node.name} takes answer= or replace=, not both")
    if register == "mistake" and not hint.strip():
        raise BadSuite(f"{place}: the mistake {node.name} has no hint")
    keeps = keywords.get("keeps", 0.0)
    if type(keeps) not in (int, float) or not 0 <= keeps < 1:
        raise BadSuite(
            f"{place}: keeps of {node.name} is a share of the points, from 0 to below 1"
        )
    deserves = keywords.get("deserves")
    if isinstance(deserves, str):
        deserves = (deserves,)
    if (register == "sample") != _are_texts(deserves):
        raise BadSuite(
            f"{place}: {node.name} needs deserves=, names of mistakes, if it is a sample, "
            "and else not"
        )
    return KnownAnswer(
        question,
        node.name,
        hint,
        answer,
        float(keeps),
        tuple(changes),
        deserves,
        function,
        is_students=bool(answer),
        shows="".join(shows),
    )


def _is_change(value: object) -> bool:
    return _are_texts(value) and len(value) == 2


def _are_texts(value: object) -> TypeGuard[tuple[str, ...]]:
    return isinstance(value, tuple) and all(isinstance(text, str) for text in value)

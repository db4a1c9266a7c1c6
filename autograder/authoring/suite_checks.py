"""What is wrong with a hidden suite as far as its text and the notebook's tell, one line each, with
the file.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from autograder.basics.definitions import top_level_names
from autograder.suite.collection import SuiteQuestion

_BY_NAME = frozenset({"cost", "counted", "launch"})
"""Names of `student` that call a function of the submission whose name is given to them."""
_PROXY = _BY_NAME | {"define", "repeat", "source"}
"""Names of `student` that are no function of the submission."""


def find_suite_problems(
    suite: Path, questions: Sequence[SuiteQuestion], cells: Mapping[str, str]
) -> list[str]:
    """Names that are not there, of questions, functions and libraries, and known answers that share
    one.

    Args:
        cells: the answer key's question cells, by question.
    """
    return [*_unknown_names(suite, questions), *_unasked(suite, questions, cells), *_twice(suite)]


def _unknown_names(suite: Path, questions: Sequence[SuiteQuestion]) -> Iterator[str]:
    there = {question.name for question in questions}
    for question in questions:
        file = suite / f"test_{question.name}.py"
        for other in question.uses:
            if other not in there:
                yield f"{file}: uses({other!r}), which is no question"
        for name in question.forbidden:
            if "." not in name:
                yield (
                    f"{file}: forbid({name!r}): functions are named with their library, like "
                    "'numpy.sort'; for one of "
                    f"Python's own look into `student.source({question.name!r})`"
                )
            elif not _exists(name):
                yield f"{file}: forbid({name!r}), which does not exist"


def _exists(name: str) -> bool:
    owner, _, last = name.rpartition(".")
    if owner == "torch" and _is_operation(last):
        return True  # a ban goes by the last name, and an operation may have no other
    try:
        found = importlib.import_module(owner)
    except ImportError:
        parent, _, kind = owner.rpartition(".")  # a method: torch.Tensor.softmax
        return (
            bool(parent)
            and _exists(owner)
            and hasattr(getattr(importlib.import_module(parent), kind), last)
        )
    return hasattr(found, last)


def _is_operation(name: str) -> bool:
    try:
        return hasattr(importlib.import_module("torch").ops.aten, name)
    except ImportError:
        return False


def _unasked(
    suite: Path, questions: Sequence[SuiteQuestion], cells: Mapping[str, str]
) -> Iterator[str]:
    for question in questions:
        if question.name not in cells:
            continue
        file = suite / f"test_{question.name}.py"
        asked = _asked_of_student(file) if file.exists() else set()
        given = top_level_names(cells[question.name])
        if asked and not asked & given:
            calls, defines = ", ".join(sorted(asked)), ", ".join(sorted(given)) or "nothing"
            yield (
                f"{file}: the tests call {calls}, and the cell of question {question.name!r} "
                f"defines {defines}"
            )


def _asked_of_student(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    attributes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    asked = {
        node.attr
        for node in attributes
        if isinstance(node.value, ast.Name) and node.value.id == "student"
    }
    calls = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    )
    named = {
        call.args[0].value
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr in _BY_NAME
        if call.args
        and isinstance(call.args[0], ast.Constant)
        and isinstance(call.args[0].value, str)
    }
    return asked - _PROXY | named


def _twice(suite: Path) -> Iterator[str]:
    seen: dict[str, str] = {}
    for name in ("mistakes.py", "alternates.py"):
        file = suite / name
        if not file.exists():
            continue
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if not isinstance(node, (ast.FunctionDef, ast.ClassDef)) or not node.decorator_list:
                continue  # a helper
            here = f"{file}, line {node.lineno}"
            if node.name in seen:
                yield (
                    f"{here}: there is another {node.name} ({seen[node.name]}); every known "
                    "answer has its own name"
                )
            seen.setdefault(node.name, f"{name}, line {node.lineno}")

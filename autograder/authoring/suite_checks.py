"""Find problems of a hidden suite that its text and the notebook's text show."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from autograder.basics.definitions import top_level_names
from autograder.suite.collection import SuiteQuestion

_CALLS_BY_NAME = frozenset({"cost", "counted", "counted_lines", "launch"})
"""Attributes of `student` that call a function of the submission, by the name in an argument."""
_OWN_ATTRIBUTES = _CALLS_BY_NAME | {"define", "repeat", "source"}
"""Attributes of `student` that are no function of the submission."""


def find_suite_problems(
    suite: Path, questions: Sequence[SuiteQuestion], cells: Mapping[str, str]
) -> list[str]:
    """Report unknown names of questions, functions and libraries, and known answers of one name.

    Args:
        cells: the answer key's question cells, by question.
    """
    return [
        *_unknown_names(suite, questions),
        *_untested_functions(suite, questions, cells),
        *_repeated_answers(suite),
    ]


def _unknown_names(suite: Path, questions: Sequence[SuiteQuestion]) -> Iterator[str]:
    names = {question.name for question in questions}
    for question in questions:
        file = suite / f"test_{question.name}.py"
        for prerequisite in question.uses:
            if prerequisite not in names:
                yield f"{file}: uses({prerequisite!r}), which is no question"
        for name in question.forbidden:
            if "." not in name:
                yield (
                    f"{file}: forbid({name!r}): functions are named with their library, like "
                    "'numpy.sort'; for one of Python's own look into "
                    f"`student.source({question.name!r})`"
                )
            elif not _exists(name):
                yield f"{file}: forbid({name!r}), which does not exist"


def _exists(name: str) -> bool:
    owner, _, last = name.rpartition(".")
    if owner == "torch" and _is_operation(last):
        return True  # a ban goes by the last name, and an operation may have no other
    try:
        return hasattr(importlib.import_module(owner), last)
    except ImportError:  # a method: torch.Tensor.softmax
        module, _, kind = owner.rpartition(".")
        if not module or not _exists(owner):
            return False
        return hasattr(getattr(importlib.import_module(module), kind), last)


def _is_operation(name: str) -> bool:
    try:
        return hasattr(importlib.import_module("torch").ops.aten, name)
    except ImportError:
        return False


def _untested_functions(
    suite: Path, questions: Sequence[SuiteQuestion], cells: Mapping[str, str]
) -> Iterator[str]:
    for question in questions:
        file = suite / f"test_{question.name}.py"
        if question.name not in cells or not file.exists():
            continue
        tested = _tested_functions(ast.parse(file.read_text(encoding="utf-8")))
        defined = top_level_names(cells[question.name])
        if tested and not tested & defined:
            calls = ", ".join(sorted(tested))
            defines = ", ".join(sorted(defined)) or "nothing"
            yield (
                f"{file}: the tests call {calls}, and the cell of question {question.name!r} "
                f"defines {defines}"
            )


def _tested_functions(tree: ast.Module) -> set[str]:
    """The functions of the submission that a test file calls."""
    functions = set()
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="student"), attr=name):
                if name not in _OWN_ATTRIBUTES:
                    functions.add(name)
            case ast.Call(
                func=ast.Attribute(attr=method),
                args=[ast.Constant(value=str(name)), *_],
            ):
                if method in _CALLS_BY_NAME:
                    functions.add(name)
    return functions


def _repeated_answers(suite: Path) -> Iterator[str]:
    places: dict[str, str] = {}
    for file in (suite / "mistakes.py", suite / "alternates.py"):
        if not file.exists():
            continue
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if (
                not isinstance(node, ast.FunctionDef | ast.ClassDef)
                or not node.decorator_list
            ):
                continue  # a helper
            if node.name in places:
                yield (
                    f"{file}, line {node.lineno}: there is another {node.name} "
                    f"({places[node.name]}); every known answer has its own name"
                )
            places.setdefault(node.name, f"{file.name}, line {node.lineno}")

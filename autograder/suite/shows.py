"""Reads `shows=` of a mistake: an expression of predicates, which is read and never run.

    shows=sums_to_one(-2) & ~ignores("k")

Names are those of the predicates (`answer_predicates.py`, `factor_predicates.py`,
`probing_predicates.py`); arguments are plain values or predicates.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

from autograder.suite import answer_predicates, factor_predicates, probing_predicates
from autograder.suite.sight import Predicate

_FOR_CODE = ("right_with",)
"""Predicates with arguments that are functions."""


def _makers(module: ModuleType) -> dict[str, Callable[..., Predicate]]:
    """The public functions of a module that make predicates."""
    return {
        name: function
        for name, function in vars(module).items()
        if inspect.isfunction(function)
        and function.__module__ == module.__name__
        and function.__annotations__.get("return") == "Predicate"
        and not name.startswith("_")
        and name not in _FOR_CODE
    }


PREDICATES = {
    **_makers(answer_predicates),
    **_makers(factor_predicates),
    **_makers(probing_predicates),
}
"""What suites may use, by name."""


@functools.lru_cache(maxsize=1024)
def read_shows(text: str) -> Predicate:
    """The predicate of an expression.

    Raises:
        ValueError: something else than names of predicates, plain values, `&`, `|` and `~`.
    """
    return _read_predicate(ast.parse(text, mode="eval").body)


def _read_predicate(node: ast.expr) -> Predicate:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
        left, right = _read_predicate(node.left), _read_predicate(node.right)
        return left & right if isinstance(node.op, ast.BitAnd) else left | right
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return ~_read_predicate(node.operand)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError(f"{ast.unparse(node)} is no predicate")
    name = node.func.id
    if name not in PREDICATES:
        raise ValueError(
            f"there is no predicate {name}: there are {', '.join(sorted(PREDICATES))}"
        )
    arguments = [_read_argument(argument) for argument in node.args]
    keywords = {
        str(keyword.arg): _read_argument(keyword.value) for keyword in node.keywords
    }
    try:
        return PREDICATES[name](*arguments, **keywords)
    except (TypeError, LookupError) as error:
        raise ValueError(f"{ast.unparse(node)}: {error}") from error


def _read_argument(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return _read_predicate(node)

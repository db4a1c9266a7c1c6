"""Unfinished questions: the cell as released, with empty functions, with answers of a wrong type,
or no cell at all.

A submission that is right but for an unfinished earlier question loses that question's points, and
none of a right answer that calls it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.proof.code_mutants import Variant

_BODIES = ("pass", "returns its argument", "returns text")


def unfinished_forms(
    question: str,
    key_cell: str,
    released_cell: str,
) -> Iterator[Variant]:
    """A question in every unfinished form.

    Args:
        key_cell: the answer key's cell of the question.
        released_cell: the cell that students get.
    """
    yield Variant(question, f"{question}, as released", released_cell)
    for body in _BODIES:
        yield Variant(question, f"{question}, {body}", _with_bodies(key_cell, body))
    yield Variant(question, f"{question}, without its cell", "")


def _with_bodies(source: str, body: str) -> str:
    """The cell with another body in each of its functions and methods."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [_statement_for(node, body)]
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _statement_for(
    function: ast.FunctionDef | ast.AsyncFunctionDef,
    body: str,
) -> ast.stmt:
    parameters = [*function.args.posonlyargs, *function.args.args]
    names = [parameter.arg for parameter in parameters if parameter.arg != "self"]
    if function.name == "__init__":  # whose result must be None
        return ast.Pass()
    if body == "returns its argument" and names:
        return ast.Return(ast.Name(names[0], ast.Load()))
    if body == "returns text":
        return ast.Return(ast.Constant("not finished"))
    return ast.Pass()

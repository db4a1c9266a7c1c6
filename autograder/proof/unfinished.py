"""Submissions that are right but for one question, which is not finished: left as released, empty,
of a wrong type, or without its cell.

An earlier question in any of these states costs its own points, and none of a right answer that
calls it.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from autograder.records.model import Submission

Form = Literal["as released", "pass", "returns its argument", "returns text", "without its cell"]


@dataclass(frozen=True, slots=True)
class Unfinished:
    """One question in one unfinished form."""

    question: str
    form: Form

    @property
    def name(self) -> str:
        """What to call it in a table: `split_heads, as released`."""
        return f"{self.question}, {self.form}"

    def of(self, key: Submission, released: str) -> Submission:
        """The answer key with this question unfinished.

        Args:
            released: the release's text of the question's cell.
        """
        cells = []
        for cell in key.cells:
            if cell.id != self.question:
                cells.append(cell)
            elif self.form != "without its cell":
                source = (
                    released if self.form == "as released" else _emptied(cell.source, self.form)
                )
                cells.append(dataclasses.replace(cell, source=source))
        return dataclasses.replace(key, student=self.name, cells=tuple(cells))


def unfinished_forms(question: str) -> Iterator[Unfinished]:
    """A question in every unfinished form."""
    for form in get_args(Form):
        yield Unfinished(question, form)


def _emptied(source: str, form: Form) -> str:
    """The cell with another body in each of its functions and methods."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.body = [_body(node, form)]
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _body(function: ast.FunctionDef | ast.AsyncFunctionDef, form: Form) -> ast.stmt:
    names = [
        argument.arg
        for argument in (*function.args.posonlyargs, *function.args.args)
        if argument.arg != "self"
    ]
    is_constructor = function.name == "__init__"  # whose result must be None
    if form == "returns its argument" and names and not is_constructor:
        return ast.Return(ast.Name(names[0], ast.Load()))
    if form == "returns text" and not is_constructor:
        return ast.Return(ast.Constant("not finished"))
    return ast.Pass()

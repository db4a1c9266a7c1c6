"""Reads predictions of a source notebook, `predict("Is it zero?", "yes", "no", answer="no",
because="…")`, and writes the cells that students and the answer key get.
"""

from __future__ import annotations

import ast
import json
import textwrap
from dataclasses import dataclass
from typing import Any

from autograder.authoring.source_notebook import SourceCell, SourceNotebook
from autograder.basics.errors import BadSource

_WIDTH = 88
_FORM = (
    'write predict("the question", "choice", "choice", answer="choice", because="why"), or '
    'predict("the question", answer=1.5, atol=0.1, because="why")'
)


@dataclass(frozen=True, slots=True)
class Prediction:
    """A question that a student answers before writing code: with a choice, or with a number.

    Attributes:
        choices: what can be said; none where a number is asked for.
        atol: how far off a number may be.
        because: why the answer is so, shown after the prediction.
    """

    name: str
    question: str
    choices: tuple[str, ...]
    answer: str | float
    atol: float
    because: str

    def cell(self, *, solution: bool) -> str:
        """The text of the cell: with three dots for students, with the answer in the key."""
        listed = " or ".join(
            json.dumps(choice, ensure_ascii=False) for choice in self.choices
        )
        ask = f"Predict: {self.question} Write {listed or 'a number'} in place of the dots."
        lines = textwrap.wrap(
            ask,
            _WIDTH,
            initial_indent="# ",
            subsequent_indent="# ",
            break_long_words=False,
        )
        answer = json.dumps(self.answer, ensure_ascii=False) if solution else "..."
        return "\n".join([*lines, f'predict("{self.name}", {answer})'])

    def facts(self) -> dict[str, Any]:
        """What the companion knows of the prediction."""
        facts: dict[str, Any] = {"answer": self.answer, "because": self.because}
        if self.choices:
            facts["choices"] = list(self.choices)
        if self.atol:
            facts["atol"] = self.atol
        return facts


def read_predictions(notebook: SourceNotebook) -> dict[str, Prediction]:
    """The predictions of a notebook, by name.

    Raises:
        BadSource: a cell is not of the form that it must have.
    """
    return {cell.name: read_prediction(cell) for cell in notebook.of_kind("predict")}


def read_prediction(cell: SourceCell) -> Prediction:
    """Read the one call of a cell tagged `predict`. Raises: BadSource."""
    match ast.parse(cell.source).body:
        case [
            ast.Expr(ast.Call(func=ast.Name("predict"), args=args, keywords=keywords))
        ]:
            pass
        case _:
            raise BadSource(f"{cell.place}: {_FORM}")
    try:
        question, *choices = map(ast.literal_eval, args)
        settings = {
            keyword.arg: ast.literal_eval(keyword.value) for keyword in keywords
        }
        answer, because = settings.pop("answer"), settings.pop("because")
        atol = settings.pop("atol", 0)
    except (ValueError, KeyError) as error:
        raise BadSource(f"{cell.place}: {_FORM}") from error
    texts = (question, because, *choices)
    if settings or not all(isinstance(text, str) and text for text in texts):
        raise BadSource(f"{cell.place}: {_FORM}")
    is_number = isinstance(answer, int | float) and not isinstance(answer, bool)
    if choices and answer not in choices:
        raise BadSource(f"{cell.place}: the answer {answer!r} is none of the choices")
    if not choices and not is_number:
        raise BadSource(
            f"{cell.place}: without choices the answer is a number, not {answer!r}"
        )
    return Prediction(cell.name, question, tuple(choices), answer, atol, because)

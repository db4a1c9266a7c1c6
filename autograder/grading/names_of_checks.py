"""Explains the NameError of a name that only a check or a demo defines: the answer works in the notebook, where these
cells run, and not in grading, where they do not.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

from autograder.model import CellOutcome, QuestionResult

_UNDEFINED = re.compile(r"NameError: name '(\w+)' is not defined")


def explain_question(question: QuestionResult, names: Mapping[str, str]) -> QuestionResult:
    """The question's result, its messages with a line for each such name.

    Args:
        names: each name that only a check or a demo defines → that cell, in words.
    """
    tests = tuple(dataclasses.replace(test, message=_explained(test.message, names)) for test in question.tests)
    return dataclasses.replace(question, tests=tests)


def explain_cell(outcome: CellOutcome, names: Mapping[str, str]) -> CellOutcome:
    """What became of a cell, its message with a line for such a name."""
    return dataclasses.replace(outcome, message=_explained(outcome.message, names))


def _explained(message: str, names: Mapping[str, str]) -> str:
    undefined = _UNDEFINED.search(message)
    if undefined is None or undefined[1] not in names:
        return message
    name = undefined[1]
    return (
        f"{message}\nOnly {names[name]} defines {name}. Checks and demos do not run in grading: define {name} in your "
        "answer's cell, or in a cell of your own."
    )

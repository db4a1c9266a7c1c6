"""Decorators of a suite: what a test is worth, what a question builds on and may not call, and the
registers of known answers.

Known answers stand in `mistakes.py` (wrong ones, with a hint), `alternates.py` (right ones) and
`samples.py` (answers as students write them, to measure diagnosis). These files are read as text
(`known_answers.py`) and never run here: their decorators serve authors and linters. An answer is
either a definition of its own, or an empty function with the answer's name and the changes of the
answer key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest

from autograder.suite.sight import Predicate

Definition = TypeVar("Definition", bound=Callable[..., Any])
Change = tuple[str, str]
"""(text of the answer key, the text that replaces it)."""


def points(worth: float) -> pytest.MarkDecorator:
    """The points of a test. Every test of a hidden suite needs them; 0 is allowed.

    Raises:
        ValueError: negative or not finite.
    """
    is_number = isinstance(worth, (int, float)) and not isinstance(worth, bool)
    if not is_number or not 0 <= worth < float("inf"):
        raise ValueError(f"points must be a number of 0 or more, not {worth!r}")
    return pytest.mark.points(float(worth))


def uses(*questions: str) -> pytest.MarkDecorator:
    """Name the questions whose functions this question's answer calls:
    `pytestmark = [uses("softmax")]`.

    A failed test runs again with stand-ins for those questions that failed too, so that one mistake
    is charged once.
    """
    return pytest.mark.uses(*questions)


def forbid(*names: str) -> pytest.MarkDecorator:
    """Name library functions that this question's answer may not call, by full dotted name.

    `forbid("torch.nn.functional.scaled_dot_product_attention")` stops the call under any other name
    too. The ban grades style among honest people: a hostile submission can get round it
    (docs/security.md).
    """
    return pytest.mark.forbid(*names)


def mistake(
    question: str,
    *,
    hint: str,
    function: str | None = None,
    replace: Change | Sequence[Change] = (),
    keeps: float = 0.0,
    answer: str = "",
    shows: Predicate | None = None,
) -> Callable[[Definition], Definition]:
    """Register a wrong answer to `question`.

    Args:
        hint: text for students who made the mistake.
        function: the name of the question's function, where it differs from the question's.
        replace: one or several changes of the answer key; the decorated function is empty then.
        keeps: for a slip, the share of the question's points that remains where the slip is the
            only mistake.
        answer: a student's answer as text, which `autograder mistakes` wrote here; the decorated
            function is empty then. Student code stays text: importing this file cannot run it.
        shows: what is true of an answer with this mistake whatever else is wrong with it.
    """
    return lambda definition: definition


def alternate(
    question: str,
    *,
    function: str | None = None,
    replace: Change | Sequence[Change] = (),
) -> Callable[[Definition], Definition]:
    """Register a right answer to `question` that is written differently from the answer key."""
    return lambda definition: definition


def sample(
    question: str,
    *,
    deserves: str | Sequence[str],
    function: str | None = None,
    replace: Change | Sequence[Change] = (),
    answer: str = "",
) -> Callable[[Definition], Definition]:
    """Register a wrong answer to `question` in a student's own words.

    Args:
        deserves: the mistakes in this answer, in the order in which a diagnosis should name them;
            () for an answer that no known mistake explains.
        answer: as in `mistake`.
    """
    return lambda definition: definition

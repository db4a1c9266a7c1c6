"""The registers of known answers: `mistakes.py` (wrong ones, with a hint), `alternates.py` (right
ones), and `samples.py` (answers as students write them, to measure diagnosis by).

All are read as text (`known.py`) and never run here: the decorators are there for whoever writes
and lints these files. An answer is either a definition of its own, or an empty function with the
name of the answer and what it changes of the answer key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

Definition = TypeVar("Definition", bound=Callable[..., Any])
Change = tuple[str, str]
"""(what stands in the answer key, what stands there instead)."""


def mistake(
    question: str,
    *,
    hint: str,
    function: str | None = None,
    replace: Change | Sequence[Change] = (),
    keeps: float = 0.0,
) -> Callable[[Definition], Definition]:
    """Register a wrong answer to `question`.

    Args:
        hint: what a student reads who made the mistake.
        function: the name of the question's function, where it is not that of the question.
        replace: one or several changes of the answer key; the decorated function is empty then.
        keeps: for a slip, the share of the question's points that an answer keeps whose only fault
            it is.
    """
    return lambda definition: definition


def alternate(
    question: str, *, function: str | None = None, replace: Change | Sequence[Change] = ()
) -> Callable[[Definition], Definition]:
    """Register a right answer to `question` that is written differently from the answer key."""
    return lambda definition: definition


def sample(
    question: str,
    *,
    deserves: str | Sequence[str],
    function: str | None = None,
    replace: Change | Sequence[Change] = (),
) -> Callable[[Definition], Definition]:
    """Register a wrong answer to `question` in a student's own words.

    Args:
        deserves: the mistakes that are true of it, first the one that its diagnosis should name
            first; () for an answer that no known mistake explains.
    """
    return lambda definition: definition

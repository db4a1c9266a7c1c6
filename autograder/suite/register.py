"""The registers of known answers: `mistakes.py` (wrong ones, with a hint) and `alternates.py` (right ones).

Both are files of self-contained functions: the names of the assignment (its functions, `torch`, `math`) are
in scope as in the notebook, helpers may stand beside them, and nothing else is imported. `verify` appends a
whole file to the answer key and rebinds one name, so no function may be named like one of the assignment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Definition = TypeVar("Definition", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    """One registered answer.

    Attributes:
        question: whose answer it is.
        name: the function's own name, which is also the name of the mistake.
        hint: what a student who made the mistake may read; "" for an alternate.
        function: the name that it takes in the notebook, mostly the question's.
    """

    question: str
    name: str
    hint: str
    function: str


_ATTRIBUTE = "__known_answer__"


def mistake(question: str, *, hint: str, function: str | None = None) -> Callable[[Definition], Definition]:
    """Register a wrong answer to `question`. `function` where the question's function has another name."""
    if not hint.strip():
        raise ValueError(f"a mistake of {question} has no hint")

    def register(definition: Definition) -> Definition:
        setattr(definition, _ATTRIBUTE, KnownAnswer(question, definition.__name__, hint, function or question))
        return definition

    return register


def alternate(question: str, *, function: str | None = None) -> Callable[[Definition], Definition]:
    """Register a right answer to `question` that is written differently from the answer key."""

    def register(definition: Definition) -> Definition:
        setattr(definition, _ATTRIBUTE, KnownAnswer(question, definition.__name__, "", function or question))
        return definition

    return register


def registered(namespace: dict[str, Any]) -> list[KnownAnswer]:
    """The known answers of an executed file, in the order in which they stand there."""
    found = (getattr(value, _ATTRIBUTE, None) for value in namespace.values())
    return [answer for answer in found if isinstance(answer, KnownAnswer)]

"""What the evidence of a mistake is read from: a call, the student's answer and the right answer.

A predicate says something of the three that is true whatever else is wrong with the answer
(`shows=` in mistakes.py). All of them is data that has crossed the wire, and a predicate is
evaluated in the trusted process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any


class Unseen(Exception):
    """A call cannot show whether a predicate holds: the sizes are too small, or the function gives
    no answer to the further call that the predicate needs.
    """


@dataclass(frozen=True, slots=True)
class Sight:
    """One call of a student's function with its answer, beside the right answer.

    Attributes:
        arguments: by the names of the answer key's parameters.
        ask_again: makes the sight of the same call with some arguments exchanged; raises Unseen
            where there is none. Its first argument names the exchange: a call with the same name is
            made once.
    """

    arguments: Mapping[str, Any]
    answer: Any
    right: Any
    ask_again: Callable[[str, Mapping[str, Any]], Sight]

    def argument(self, path: str) -> Any:
        """The value of an argument, or of a part of it: "q", "params.w_k", "config.num_heads".

        Raises:
            Unseen: the call has no such argument.
        """
        name, *parts = path.split(".")
        value = self.arguments.get(name)
        for part in parts:
            value = (
                value.get(part)
                if isinstance(value, dict)
                else getattr(value, part, None)
            )
        if value is None:
            raise Unseen(f"no {path}")
        return value

    def ask_with(self, label: str, changes: Mapping[str, Any]) -> Sight:
        """The sight of the same call with some arguments, or parts of arguments, exchanged.

        Args:
            label: names the exchange: a call with the same label is made once.
        """
        arguments: dict[str, Any] = {}
        for path, value in changes.items():
            name, *parts = path.split(".")
            whole = arguments.get(name, self.arguments.get(name))
            arguments[name] = _replaced(whole, parts, value)
        return self.ask_again(label, arguments)


def _replaced(whole: Any, parts: list[str], value: Any) -> Any:
    """A copy of dicts and plain objects with one part replaced."""
    if not parts:
        return value
    name, *rest = parts
    if isinstance(whole, dict):
        return {**whole, name: _replaced(whole.get(name), rest, value)}
    if isinstance(whole, SimpleNamespace):
        inner = _replaced(getattr(whole, name, None), rest, value)
        return SimpleNamespace(**{**vars(whole), name: inner})
    raise Unseen("no such part")


@dataclass(frozen=True, slots=True)
class Predicate:
    """Something that a call may show of an answer.

    Attributes:
        text: the rest of a sentence that begins with "Your answer", and the predicate's identity:
            predicates with one text are one.
        holds: whether a sight shows it; raises Unseen where it can show neither yes nor no.
        parts: the texts of the predicates that `&` joined.
        said: what a student reads in place of the text: without what `~` rules out, which tells
            mistakes apart and helps nobody to find one. "" for a predicate that only rules out.
    """

    text: str
    holds: Callable[[Sight], bool]
    parts: frozenset[str]
    said: str

    def __and__(self, other: Predicate) -> Predicate:
        def both(sight: Sight) -> bool:
            first, second = look(self, sight), look(other, sight)
            if first is False or second is False:
                return False
            if first is None or second is None:
                raise Unseen
            return True

        said = " and ".join(filter(None, (self.said, other.said)))
        return Predicate(
            f"{self.text} and {other.text}", both, self.parts | other.parts, said
        )

    def __or__(self, other: Predicate) -> Predicate:
        def either(sight: Sight) -> bool:
            first, second = look(self, sight), look(other, sight)
            if first is None and second is None:
                raise Unseen
            return bool(first or second)

        text = f"{self.text} or {other.text}"
        said = f"{self.said or self.text} or {other.said or other.text}"
        return Predicate(text, either, frozenset([text]), said)

    def __invert__(self) -> Predicate:
        text = f"is not one that {self.text}"
        parts = frozenset([text])
        return Predicate(text, lambda sight: not self.holds(sight), parts, said="")


def make_predicate(text: str, holds: Callable[[Sight], bool]) -> Predicate:
    """A predicate that is made of no others."""
    return Predicate(text, holds, frozenset([text]), text)


def make_predicate_at(
    where: str, predicate: Predicate, holds: Callable[[Sight], bool]
) -> Predicate:
    """What a predicate says of a part of an answer, or of an answer to other arguments.

    Args:
        where: the part, or the other arguments, in words.
    """
    text = f"{where} {predicate.text}"
    said = predicate.said and f"{where} {predicate.said}"
    return Predicate(text, holds, frozenset([text]), said)


def look(predicate: Predicate, sight: Sight) -> bool | None:
    """Whether a sight shows what a predicate says; None where it cannot show it."""
    try:
        return bool(predicate.holds(sight))
    except Unseen:
        return None


def look_safely(predicate: Predicate, sight: Sight) -> bool | None:
    """As `look`, and a predicate that raises an exception shows nothing: a fault of the suite must
    not end the grading of a submission. `verify` tells it.
    """
    try:
        return look(predicate, sight)
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        MemoryError,
        TypeError,
        ValueError,
    ):
        return None


def read_factor(text: str, sight: Sight) -> float:
    """The value of a factor in sizes of a call's arguments: "q[-1]**0.5 * v[-1]**-0.5"."""
    value = 1.0
    for term in text.split(" * "):
        size = re.fullmatch(r"([a-z_]\w*)(?:\[(-?\d+)\])?(?:\*\*(-?[\d.]+))?", term)
        if size is None:
            raise ValueError(f"{text} is no product of sizes")
        name, axis, power = size.groups()
        argument = sight.argument(name)
        try:
            base = argument.shape[int(axis)] if axis else float(argument)
        except (AttributeError, IndexError, TypeError, ValueError):
            raise Unseen("no such size") from None
        value *= base ** float(power or 1)
    return value

"""What a question builds on, from what each question's suite says that it uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def prerequisites(question: str, uses: Mapping[str, Sequence[str]]) -> list[str]:
    """The questions that a question builds on, directly or through others, nearest first."""
    found: dict[str, None] = {}
    waiting = list(uses.get(question, ()))
    while waiting:
        other = waiting.pop(0)
        if other != question and other not in found:
            found[other] = None
            waiting += uses.get(other, ())
    return list(found)

"""Prerequisites of a question, from the `uses` of all questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def prerequisites(
    question: str,
    uses: Mapping[str, Sequence[str]],
) -> list[str]:
    """The questions that a question builds on, directly or through others, nearest first."""
    collected: list[str] = []
    queue = list(uses.get(question, ()))
    for name in queue:  # which grows
        if name != question and name not in collected:
            collected.append(name)
            queue += uses.get(name, ())
    return collected


def affected_questions(
    question: str,
    uses: Mapping[str, Sequence[str]],
) -> list[str]:
    """The question and all that build on it, in the order of `uses`: those that another answer to
    the question can change.
    """
    return [
        name
        for name in uses
        if name == question or question in prerequisites(name, uses)
    ]

"""`costs.toml` of a suite: answers that cost or score more or less than a slip, each with its
author's reason.

[softmax.misses_the_point]
keeps_the_scores = "the result is no distribution"
divides_the_scores = "as keeps_the_scores"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from autograder.basics.errors import BadSuite
from autograder.proof.equivalent import read_tables

FILE = "costs.toml"
KINDS = ("misses_the_point", "dear", "cheap", "for_nothing")
"""What is said of an answer: it misses the point of its question; it is a slip and loses more than
a slip should; it misses the point and loses less than it should; it has no idea and scores more
than it should.
"""
_SAME_REASON = "as "
"""How a value begins that names another answer of its table, whose reason holds for both."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a suite's author says of one answer.

    Attributes:
        kind: one of `KINDS`.
    """

    kind: str
    reason: str


def load_costs(suite: Path) -> Mapping[tuple[str, str], Said] | None:
    """(question, name of the answer) → what is said of it; None where the suite has no such file.

    Raises:
        BadSuite: the file is no TOML, or not of that form; an answer is listed twice; a reason is
            empty.
    """
    path = suite / FILE
    if not path.exists():
        return None
    listed: dict[tuple[str, str], Said] = {}
    for question, kinds in read_tables(path).items():
        for kind, reasons in kinds.items():
            if kind not in KINDS or not isinstance(reasons, dict):
                expected = ", ".join(f"[{question}.{kind}]" for kind in KINDS)
                raise BadSuite(f"{path}: [{question}.{kind}] is none of {expected}")
            for name, text in reasons.items():
                if (question, name) in listed:
                    raise BadSuite(f"{path}: {question}/{name} is listed twice")
                reason = _reason(text, reasons)
                if reason is None:
                    form = f'{name} = "reason", or "as another_answer" where that one has the same'
                    raise BadSuite(f"{path}: [{question}.{kind}] lists {form}")
                listed[question, name] = Said(kind, reason)
    return listed


def _reason(text: object, reasons: Mapping[str, object]) -> str | None:
    """The reason that a value is or points to; None where there is none."""
    if isinstance(text, str) and text.startswith(_SAME_REASON):
        text = reasons.get(text.removeprefix(_SAME_REASON))
    if not isinstance(text, str) or not text.strip() or text.startswith(_SAME_REASON):
        return None
    return text

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
KINDS = (
    "misses_the_point",
    "dear",
    "cheap",
    "for_nothing",
)
"""Kinds of exceptions: a mistake misses the point of its question; a slip loses more than a slip
should; a mistake misses the point and loses less than it should; an answer without an idea scores
more than it should.
"""
_SAME_REASON = "as "
"""A value "as NAME" gives the reason of the answer NAME in the same table."""


@dataclass(frozen=True, slots=True)
class CostException:
    """Why one answer may cost or score more or less than others.

    Attributes:
        kind: one of `KINDS`.
    """

    kind: str
    reason: str


CostExceptions = Mapping[tuple[str, str], CostException]
"""The exceptions of a suite, by question and name of the answer."""


def load_costs(suite: Path) -> CostExceptions | None:
    """The exceptions that a suite lists; None where the suite has no such file.

    Raises:
        BadSuite: the file is no TOML, or not of that form; an answer is listed twice; a reason is
            empty.
    """
    path = suite / FILE
    if not path.exists():
        return None
    exceptions: dict[tuple[str, str], CostException] = {}
    for question, kinds in read_tables(path).items():
        for kind, reasons in kinds.items():
            if kind not in KINDS or not isinstance(reasons, dict):
                expected = ", ".join(f"[{question}.{kind}]" for kind in KINDS)
                raise BadSuite(f"{path}: [{question}.{kind}] is none of {expected}")
            for name, text in reasons.items():
                if (question, name) in exceptions:
                    raise BadSuite(f"{path}: {question}/{name} is listed twice")
                reason = _resolve_reason(text, reasons)
                if reason is None:
                    form = f'{name} = "reason", or "as another_answer" where that one has the same'
                    raise BadSuite(f"{path}: [{question}.{kind}] lists {form}")
                exceptions[question, name] = CostException(kind, reason)
    return exceptions


def _resolve_reason(
    text: object,
    reasons: Mapping[str, object],
) -> str | None:
    """The reason that a value is or points to; None where the value is neither."""
    if isinstance(text, str) and text.startswith(_SAME_REASON):
        text = reasons.get(text.removeprefix(_SAME_REASON))
    if not isinstance(text, str) or text.startswith(_SAME_REASON):
        return None
    return text if text.strip() else None

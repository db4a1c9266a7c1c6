"""`costs.toml` of a suite: what its author says of single answers that cost or score much or little, with reasons.

[softmax.misses_the_point]
"what comes out is no distribution" = ["keeps_the_scores"]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from autograder.errors import BadSuite
from autograder.proof.equivalent import read_tables

FILE = "costs.toml"
KINDS = ("misses_the_point", "dear", "cheap", "for_nothing")
"""What is said of an answer: it misses the point of its question; it is a slip and loses more than a slip should; it
misses the point and loses less than it should; it has no idea and scores more than it should."""


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
        BadSuite: the file is no TOML, or not of that form; an answer is listed twice; a reason is empty.
    """
    path = suite / FILE
    if not path.exists():
        return None
    listed: dict[tuple[str, str], Said] = {}
    for question, kinds in read_tables(path).items():
        for kind, reasons in kinds.items():
            if kind not in KINDS or not isinstance(reasons, dict):
                raise BadSuite(
                    f"{path}: [{question}.{kind}] is none of {', '.join(f'[{question}.{k}]' for k in KINDS)}"
                )
            for reason, names in reasons.items():
                if not reason.strip() or not isinstance(names, list) or not names:
                    raise BadSuite(f'{path}: [{question}.{kind}] lists "reason" = ["answer", "other answer"]')
                for name in names:
                    if (question, name) in listed:
                        raise BadSuite(f"{path}: {question}/{name} is listed twice")
                    listed[question, name] = Said(kind, reason)
    return listed

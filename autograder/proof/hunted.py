"""`hunted.toml` of a suite: finds of `autograder hunt` that no test should catch, under the reason
that they share.

[softmax]
"in bfloat16 the docstring promises a dtype and no digits" = ["…: value: softmax(bfloat16…"]
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from autograder.basics.errors import BadSuite
from autograder.proof.equivalent import read_tables
from autograder.proof.hunt_search import Find

HUNTED_FILE = "hunted.toml"


@dataclass(frozen=True, slots=True)
class ListedFind:
    """A pattern for names of finds of one question; `…` in it stands for any text."""

    question: str
    pattern: str
    reason: str

    def matches(self, find: Find) -> bool:
        """Whether the pattern fits the find's name."""
        if find.question != self.question:
            return False
        parts = [re.escape(part) for part in self.pattern.split("…")]
        return re.fullmatch(".*".join(parts), find.name, re.DOTALL) is not None


def load_listed(suite: Path) -> list[ListedFind]:
    """The entries of the file, in its order; none where the suite has no such file.

    Raises:
        BadSuite: the file is not of that form.
    """
    path = suite / HUNTED_FILE
    entries = []
    for question, reasons in read_tables(path).items():
        for reason, patterns in reasons.items():
            is_list = isinstance(patterns, list) and all(
                isinstance(pattern, str) and pattern for pattern in patterns
            )
            if not reason.strip() or not is_list or not patterns:
                raise BadSuite(f'{path}: [{question}] lists "reason" = ["find"]; see {reason!r}')
            entries += [ListedFind(question, pattern, reason) for pattern in patterns]
    return entries

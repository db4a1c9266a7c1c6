"""`equivalent.toml` of a suite: mutants that no test can kill, under a common reason.

[softmax]
"a sum of exponentials is never negative" = ["total = powers.sum(…): …", "return powers / total:
total → abs(total)"]
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from autograder.basics.errors import BadSuite

FILE = "equivalent.toml"
HUNTED_FILE = "hunted.toml"
"""The same form, for finds of `autograder hunt` that no test should catch."""


class NamedAnswer(Protocol):
    """An answer to a question, or a find in one, with the name by which messages call it."""

    @property
    def question(self) -> str:
        """The question."""

    @property
    def name(self) -> str:
        """The name."""


@dataclass(frozen=True, slots=True)
class Equivalent:
    """A pattern for names of mutants of one question that compute what the answer key computes, or
    for finds.

    Attributes:
        pattern: the name as `verify` or `hunt` prints it; `…` in it stands for any text.
    """

    question: str
    pattern: str
    reason: str

    def matches(self, named: NamedAnswer) -> bool:
        """Whether the pattern fits the name of a mutant or a find. Patterns of one change fit no
        mutant with two.
        """
        has_two_changes = bool(getattr(named, "parts", ()))
        if named.question != self.question or (
            has_two_changes and "; " not in self.pattern
        ):
            return False
        parts = (re.escape(part) for part in self.pattern.split("…"))
        return re.fullmatch(".*".join(parts), named.name) is not None


def load_equivalent(suite: Path, file: str = FILE) -> list[Equivalent]:
    """The entries of the file, in its order; none where the suite has no such file.

    Raises:
        BadSuite: the file is no TOML, or not of that form; a reason or a pattern is empty.
    """
    path = suite / file
    entries = []
    for question, reasons in read_tables(path).items():
        for reason, patterns in reasons.items():
            is_list = isinstance(patterns, list) and all(
                isinstance(pattern, str) and pattern for pattern in patterns
            )
            if not reason.strip() or not is_list or not patterns:
                raise BadSuite(
                    f'{path}: [{question}] lists "reason" = ["mutant", "other mutant"]; '
                    f"see {reason!r}"
                )
            entries += [Equivalent(question, pattern, reason) for pattern in patterns]
    return entries


def read_tables(path: Path) -> dict[str, dict[str, Any]]:
    """The tables of a suite's TOML file, by question; none where there is no such file.

    Raises:
        BadSuite: the file is no TOML, or has a setting outside of its tables.
    """
    if not path.exists():
        return {}
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadSuite(f"{path}: cannot be read: {error}") from error
    for question, table in tables.items():
        if not isinstance(table, dict):
            raise BadSuite(f"{path}: {question} stands outside of a question's table")
    return tables

"""`equivalent.toml` of a suite: mutants that no test can kill, each with the reason.

[softmax]
"total = powers.sum(dim=dim, keepdim=True): …" = "a sum of exponentials is never negative"
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autograder.errors import BadSuite

FILE = "equivalent.toml"


def load_equivalent(suite: Path) -> Mapping[tuple[str, str], str]:
    """(question, name of the mutant) → the reason; empty where the suite has no such file.

    Raises:
        BadSuite: the file is no TOML, or not of that form; a reason is empty.
    """
    path = suite / FILE
    listed = {}
    for question, mutants in read_tables(path).items():
        for name, reason in mutants.items():
            if not isinstance(reason, str) or not reason.strip():
                raise BadSuite(f'{path}: [{question}] lists "mutant" = "reason", with a reason for each')
            listed[question, name] = reason
    return listed


def read_tables(path: Path) -> dict[str, dict[str, Any]]:
    """What a suite says of each question in a file of TOML; nothing where there is no such file.

    Raises:
        BadSuite: the file is no TOML, or has something outside of its tables.
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

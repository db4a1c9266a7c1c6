"""`equivalent.toml` of a suite: mutants that no test can kill, each with the reason.

[softmax]
"total = powers.sum(dim=dim, keepdim=True): …" = "a sum of exponentials is never negative"
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from autograder.errors import BadSuite

FILE = "equivalent.toml"


def load_equivalent(suite: Path) -> Mapping[tuple[str, str], str]:
    """(question, name of the mutant) → the reason; empty where the suite has no such file.

    Raises:
        BadSuite: the file is no TOML, or not of that form; a reason is empty.
    """
    path = suite / FILE
    if not path.exists():
        return {}
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadSuite(f"{path}: cannot be read: {error}") from error
    listed = {}
    for question, mutants in tables.items():
        for name, reason in mutants.items() if isinstance(mutants, dict) else [("", None)]:
            if not isinstance(reason, str) or not reason.strip():
                raise BadSuite(f'{path}: [{question}] lists "mutant" = "reason", with a reason for each')
            listed[question, name] = reason
    return listed

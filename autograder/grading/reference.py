"""The answer key, executed in the trusted process: what `reference` is, and what stand-ins answer with."""

from __future__ import annotations

import json
import linecache
import types
from typing import Any

from autograder.course import Assignment
from autograder.errors import BadSuite, KitError


def load_reference(assignment: Assignment) -> dict[str, Any]:
    """Names that the answer key's given and question cells define.

    Raises:
        KitError: the answer key is not built, or is no notebook.
        BadSuite: it does not run.
    """
    path = assignment.solution
    if not path.exists():
        raise KitError(f"{path}: the answer key is not built; run `autograder build {assignment.name}`")
    try:
        cells = [_role_and_source(cell) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise KitError(
            f"{path}: the answer key is no notebook ({error!r}); run `autograder build {assignment.name}`"
        ) from error
    names: dict[str, Any] = vars(types.ModuleType(f"reference_{assignment.name}"))
    for number, (role, source) in enumerate(cells):
        if role not in ("given", "question"):
            continue
        file = f"<answer key {assignment.name}, cell {number}>"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        try:
            exec(compile(source, file, "exec", dont_inherit=True), names)
        except Exception as error:
            raise BadSuite(f"{path}: cell {number} of the answer key does not run: {error!r}") from error
    return names


def _role_and_source(cell: dict[str, Any]) -> tuple[str, str]:
    """The kit's own tag of a code cell ("" for other cells), and its text."""
    role = cell["metadata"].get("attention_kit", {}).get("role") if cell["cell_type"] == "code" else ""
    return str(role), "".join(cell["source"])

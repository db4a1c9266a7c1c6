"""The answer key, executed in the trusted process: the names of `reference`, and the functions that
answer for stand-ins.
"""

from __future__ import annotations

import linecache
import types
from typing import Any

from autograder.basics.errors import BadSuite, KitError
from autograder.course import Assignment
from autograder.intake.built_json import read_built_json


def load_reference(assignment: Assignment) -> dict[str, Any]:
    """Names that the answer key's given and question cells define.

    Raises:
        KitError: the answer key is not built, or is no notebook.
        BadSuite: the answer key does not run.
    """
    path = assignment.solution
    remedy = f"run `autograder build {assignment.name}`"
    if not path.exists():
        raise KitError(f"{path}: the answer key is not built; {remedy}")
    try:
        cells = read_built_json(path)["cells"]
    except (OSError, ValueError) as error:
        raise KitError(f"{path}: the answer key is no notebook ({error}); {remedy}") from error
    names: dict[str, Any] = vars(types.ModuleType(f"reference_{assignment.name}"))
    for number, cell in enumerate(cells):
        role = cell["metadata"].get("attention_kit", {}).get("role")
        if cell["cell_type"] != "code" or role not in ("given", "question"):
            continue
        source = cell["source"]
        file = f"<answer key {assignment.name}, cell {number}>"
        # tracebacks and inspect.getsource find the cell's lines here
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        try:
            exec(compile(source, file, "exec", dont_inherit=True), names)
        except Exception as error:
            raise BadSuite(
                f"{path}: cell {number} of the answer key does not run: {error!r}"
            ) from error
    return names

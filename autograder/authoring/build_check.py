"""`build --check`: the built files are those of the source, give nothing away, and run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from autograder.authoring import regions
from autograder.authoring.build import (
    Asked,
    BuiltNotebooks,
    build_assignment,
    expected_files,
    stale_files,
)
from autograder.authoring.execute import CELL_SECONDS, CellError, execute_notebook
from autograder.authoring.leaks import leaks
from autograder.authoring.source_notebook import read_source
from autograder.basics.definitions import top_level_names
from autograder.basics.errors import StaleBuild
from autograder.course import Assignment, Course
from autograder.intake.magics import strip_magics


def check_assignment(
    course: Course, assignment: Assignment, asked: Mapping[str, Asked]
) -> BuiltNotebooks:
    """Check the built files of one assignment against its source; writes nothing.

    Args:
        course: the course that the assignment belongs to.
        assignment: which one.
        asked: each question of its hidden suite.

    Raises:
        StaleBuild: lists everything that is wrong.
        BadSource, BadSuite: the source cannot be built at all.
    """
    built = build_assignment(course, assignment, asked)
    problems = [
        *file_problems(assignment, built),
        *leak_problems(assignment, built),
        *run_problems("the release", built.release_bytes, built, stubs=True),
        *run_problems("the answer key", built.solution_bytes, built, stubs=False),
    ]
    if problems:
        listed = "\n".join(f"  - {problem}" for problem in problems)
        raise StaleBuild(
            f"{assignment.name}: {len(problems)} problem{'s' * (len(problems) > 1)}\n{listed}"
        )
    return built


def file_problems(assignment: Assignment, built: BuiltNotebooks) -> list[str]:
    """Built files that are missing, or not what the source gives."""
    problems = []
    for path, content in sorted(expected_files(assignment, built).items()):
        shown = path.relative_to(assignment.root).as_posix()
        if not path.is_file():
            problems.append(f"{shown} is missing: run `autograder build {assignment.name}`")
        elif path.read_bytes() != content:
            problems.append(f"{shown} is stale: run `autograder build {assignment.name}`")
    for path in stale_files(assignment, built):
        problems.append(
            f"{path.relative_to(assignment.root).as_posix()} is not in the source any more"
        )
    return problems


def leak_problems(assignment: Assignment, built: BuiltNotebooks) -> list[str]:
    """What the release gives away: as built from the source, and as it lies in assignments/."""
    notebook = read_source(assignment)
    found = leaks(notebook, built.release_bytes, built.files, assignment.suite)
    if (
        assignment.release.is_file()
        and (lying := assignment.release.read_bytes()) != built.release_bytes
    ):
        shown = assignment.release.relative_to(assignment.root).as_posix()
        try:
            found += [
                f"{shown}: {leak}"
                for leak in leaks(notebook, lying, (), assignment.suite)
                if leak not in found
            ]
        except (ValueError, KeyError, TypeError, AttributeError):
            found.append(f"{shown} is not a notebook")
    return found


def run_problems(
    what: str,
    notebook: bytes,
    built: BuiltNotebooks,
    cell_seconds: float = CELL_SECONDS,
    *,
    stubs: bool,
) -> list[str]:
    """Cells that raise when the notebook runs top to bottom in a kernel.

    With `stubs`, a cell may fail because of an unanswered question: it calls a stub, or it needs a
    name that a cell which called one would have made.
    """
    cells: list[dict[str, Any]] = json.loads(notebook)["cells"]
    unmade: set[str] = set()
    problems = []
    for error in execute_notebook(notebook, built.files, cell_seconds):
        cell = cells[error.cell]
        if stubs and _is_consequence(error, cell["metadata"]["attention_kit"]["role"], unmade):
            unmade |= top_level_names(strip_magics("".join(cell["source"]))[0])
            continue
        problems.append(f"{what} does not run: {_describe(error, cell)}")
    return problems


def _is_consequence(error: CellError, role: str, unmade: set[str]) -> bool:
    if role == "given":
        return False
    if regions.is_stub_message(error.message) or regions.is_stub_message(error.traceback):
        return True
    return error.name == "NameError" and any(
        f"name '{name}' is not defined" in error.message for name in unmade
    )


def _describe(error: CellError, cell: dict[str, Any]) -> str:
    kit = cell["metadata"]["attention_kit"]
    first = error.message.strip().split("\n")[0]
    return f"cell {error.cell + 1}, {kit['role']} {kit['name']!r}: {error.name}: {first}"

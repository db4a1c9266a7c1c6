"""Check built files: current, without an answer or a hidden test in them, and runnable."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from autograder.authoring import regions
from autograder.authoring.build import (
    BuiltNotebooks,
    build_assignment,
    expected_files,
    stale_files,
)
from autograder.authoring.execute import CELL_SECONDS, CellError, execute_notebook
from autograder.authoring.leaks import find_leaks
from autograder.basics.definitions import top_level_names
from autograder.basics.errors import StaleBuild
from autograder.course import Assignment, Course
from autograder.intake.magics import strip_magics

if TYPE_CHECKING:
    from autograder.suite.collection import SuiteQuestion


def check_assignment(
    course: Course, assignment: Assignment, questions: Mapping[str, SuiteQuestion]
) -> BuiltNotebooks:
    """Compare the built files of one assignment with a new build; writes nothing.

    Args:
        questions: the questions of the hidden suite, by name.

    Raises:
        StaleBuild: lists all problems.
        BadSource, BadSuite: the source cannot be built at all.
    """
    built = build_assignment(course, assignment, questions)
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
    """Built files that are missing, stale, or left over."""
    problems = []
    for path, content in sorted(expected_files(assignment, built).items()):
        shown = path.relative_to(assignment.root).as_posix()
        if not path.is_file():
            problems.append(
                f"{shown} is missing: run `autograder build {assignment.name}`"
            )
        elif path.read_bytes() != content:
            problems.append(
                f"{shown} is stale: run `autograder build {assignment.name}`"
            )
    for path in stale_files(assignment, built):
        shown = path.relative_to(assignment.root).as_posix()
        problems.append(f"{shown} is not in the source any more")
    return problems


def leak_problems(assignment: Assignment, built: BuiltNotebooks) -> list[str]:
    """Leaks in the release: in the new build, and in the file in assignments/."""
    problems = find_leaks(
        built.notebook,
        built.release_bytes,
        built.files,
        assignment.suite,
        built.companions,
    )
    if not assignment.release.is_file():
        return problems
    release = assignment.release.read_bytes()
    if release == built.release_bytes:
        return problems
    shown = assignment.release.relative_to(assignment.root).as_posix()
    try:
        leaks = find_leaks(built.notebook, release, (), assignment.suite)
    except (ValueError, KeyError, TypeError, AttributeError):
        return [*problems, f"{shown} is not a notebook"]
    return [*problems, *(f"{shown}: {leak}" for leak in leaks if leak not in problems)]


def run_problems(
    title: str,
    notebook: bytes,
    built: BuiltNotebooks,
    cell_seconds: float = CELL_SECONDS,
    *,
    stubs: bool,
) -> list[str]:
    """Cells that raise when the notebook runs top to bottom in a kernel.

    Args:
        title: the notebook's name in messages.
        stubs: whether cells may fail because of an unanswered question: a cell calls a stub, or
            needs a name that such a failed cell defines.
    """
    cells: list[dict[str, Any]] = json.loads(notebook)["cells"]
    undefined: set[str] = set()
    problems = []
    for error in execute_notebook(notebook, built.files, cell_seconds):
        cell = cells[error.cell]
        if stubs and _is_consequence(
            error, cell["metadata"]["attention_kit"]["role"], undefined
        ):
            undefined |= top_level_names(strip_magics("".join(cell["source"]))[0])
            continue
        problems.append(f"{title} does not run: {_describe(error, cell)}")
    return problems


def _is_consequence(error: CellError, role: str, undefined: set[str]) -> bool:
    if role == "given":
        return False
    if regions.is_stub_message(error.message) or regions.is_stub_message(
        error.traceback
    ):
        return True
    messages = [f"name '{name}' is not defined" for name in undefined]
    return error.name == "NameError" and any(
        message in error.message for message in messages
    )


def _describe(error: CellError, cell: dict[str, Any]) -> str:
    kit = cell["metadata"]["attention_kit"]
    first = error.message.strip().split("\n")[0]
    return (
        f"cell {error.cell + 1}, {kit['role']} {kit['name']!r}: {error.name}: {first}"
    )

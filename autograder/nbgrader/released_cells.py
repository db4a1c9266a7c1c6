"""The cells of a released notebook that nbgrader knows: what a submission is repaired from and
graded by.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.basics.errors import StaleBuild
from autograder.course import Assignment, Course
from autograder.intake.built_json import read_built_json


@dataclass(frozen=True, slots=True)
class ReleaseCell:
    """One cell with nbgrader metadata.

    Attributes:
        question: the question whose grade cell this is, or "".
    """

    grade_id: str
    cell_type: str
    grade: bool
    solution: bool
    task: bool
    locked: bool
    points: float
    source: str
    checksum: str
    question: str = ""

    @property
    def manual(self) -> bool:
        """Graded by a person: a written answer or a task."""
        return self.task or (self.grade and self.solution)


@dataclass(frozen=True, slots=True)
class Release:
    """What nbgrader's database holds about one released notebook."""

    notebook: str
    kernelspec: str
    cells: tuple[ReleaseCell, ...]


def read_release(path: Path) -> Release:
    """Read a built release notebook.

    Raises:
        StaleBuild: there is none, or it is no notebook.
    """
    return release_of(path.stem, read_built(path))


def read_built(path: Path) -> dict[str, Any]:
    """A built notebook as JSON, each cell's source as one text.

    Raises:
        StaleBuild: there is none, or it is no notebook.
    """
    try:
        return read_built_json(path)
    except (OSError, ValueError) as error:
        raise StaleBuild(
            f"{path}: no readable notebook ({error}); run `autograder build {path.stem}`"
        ) from error


def grade_id(cell: Mapping[str, Any]) -> str:
    """nbgrader's name of a cell, "" for one that it does not know."""
    meta = cell["metadata"].get("nbgrader")
    name = meta.get("grade_id") if isinstance(meta, dict) else None
    return name if isinstance(name, str) else ""


def tested_question(cell: Mapping[str, Any]) -> str:
    """The question of a grade cell: as our build tagged it, else by its name (`check_softmax`,
    `test_softmax`).

    "" for any other cell.
    """
    meta = cell["metadata"].get("nbgrader") or {}
    if not meta.get("grade") or meta.get("solution"):
        return ""
    kit = cell["metadata"].get("attention_kit") or {}
    if kit.get("role") == "check" and kit.get("name"):
        return str(kit["name"])
    return grade_id(cell).removeprefix("check_").removeprefix("test_")


def release_of(name: str, notebook: Mapping[str, Any]) -> Release:
    """The nbgrader cells of a notebook (JSON or a notebook node)."""
    kernelspec = json.dumps(notebook.get("metadata", {}).get("kernelspec", {}))
    return Release(name, kernelspec, tuple(_cells(notebook["cells"])))


def _cells(cells: Iterable[Mapping[str, Any]]) -> Iterable[ReleaseCell]:
    for cell in cells:
        meta = cell["metadata"].get("nbgrader")
        if not meta or not (
            meta.get("grade") or meta.get("solution") or meta.get("locked") or meta.get("task")
        ):
            continue
        solution, grade = bool(meta.get("solution")), bool(meta.get("grade"))
        yield ReleaseCell(
            grade_id=grade_id(cell),
            cell_type=cell["cell_type"],
            grade=grade,
            solution=solution,
            task=bool(meta.get("task")),
            locked=not solution and (grade or bool(meta.get("locked"))),  # as nbgrader sees it
            points=float(meta.get("points", 0)),
            source="".join(cell["source"]),
            checksum=meta.get("checksum", ""),
            question=tested_question(cell),
        )


def suite_assignment(course: Course, assignment: str, notebook: str) -> Assignment | None:
    """The assignment, where this notebook of it is graded by a hidden suite of ours."""
    found = Assignment(assignment, course.root)
    ours = notebook == assignment and found.source.exists() and any(found.suite.glob("test_*.py"))
    return found if ours else None

"""The cells of a released notebook that nbgrader knows by their metadata."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.basics.errors import StaleBuild
from autograder.course import Assignment, Course
from autograder.intake.built_json import read_built_json


@dataclass(frozen=True, slots=True)
class NbgraderCell:
    """A released cell with nbgrader metadata.

    Attributes:
        question: the question that a grade cell tests; else "".
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
    question: str

    @property
    def manual(self) -> bool:
        """Whether a person grades the cell: a written answer or a task."""
        return self.task or (self.grade and self.solution)


@dataclass(frozen=True, slots=True)
class NbgraderNotebook:
    """A released notebook as nbgrader's database stores it."""

    name: str
    kernelspec: str
    cells: tuple[NbgraderCell, ...]


def read_release(path: Path) -> NbgraderNotebook:
    """Read a built release notebook.

    Raises:
        StaleBuild: there is none, or the file is no notebook.
    """
    return nbgrader_notebook(path.stem, read_built(path))


def read_built(path: Path) -> dict[str, Any]:
    """Read a built notebook as JSON, with each cell's source as one text.

    Raises:
        StaleBuild: there is none, or the file is no notebook.
    """
    try:
        return read_built_json(path)
    except (OSError, ValueError) as error:
        raise StaleBuild(
            f"{path}: no readable notebook ({error}); run `autograder build {path.stem}`"
        ) from error


def grade_id(cell: Mapping[str, Any]) -> str:
    """nbgrader's name of a cell; "" without nbgrader metadata."""
    meta = cell["metadata"].get("nbgrader")
    name = meta.get("grade_id") if isinstance(meta, dict) else None
    return name if isinstance(name, str) else ""


def tested_question(cell: Mapping[str, Any]) -> str:
    """The question of a grade cell, by the build's tag or else by the name; "" for other cells.

    `check_softmax` and `test_softmax` test the question `softmax`.
    """
    meta = cell["metadata"].get("nbgrader") or {}
    if not meta.get("grade") or meta.get("solution"):
        return ""
    kit = cell["metadata"].get("attention_kit") or {}
    if kit.get("role") == "check" and kit.get("name"):
        return str(kit["name"])
    return grade_id(cell).removeprefix("check_").removeprefix("test_")


def nbgrader_notebook(name: str, notebook: Mapping[str, Any]) -> NbgraderNotebook:
    """The nbgrader cells of a notebook, which may be JSON or a node of nbformat."""
    kernelspec = json.dumps(notebook.get("metadata", {}).get("kernelspec", {}))
    return NbgraderNotebook(name, kernelspec, tuple(_nbgrader_cells(notebook["cells"])))


def _nbgrader_cells(cells: Sequence[Mapping[str, Any]]) -> Iterator[NbgraderCell]:
    for cell in cells:
        meta = cell["metadata"].get("nbgrader") or {}
        grade, solution, task, locked = (
            bool(meta.get(name)) for name in ("grade", "solution", "task", "locked")
        )
        if grade or solution or task or locked:
            yield NbgraderCell(
                grade_id=grade_id(cell),
                cell_type=cell["cell_type"],
                grade=grade,
                solution=solution,
                task=task,
                locked=not solution and (grade or locked),  # as nbgrader sees it
                points=float(meta.get("points", 0)),
                source="".join(cell["source"]),
                checksum=meta.get("checksum", ""),
                question=tested_question(cell),
            )


def suite_assignment(course: Course, name: str, notebook: str) -> Assignment | None:
    """The assignment, if a hidden suite of the course grades this notebook of it."""
    assignment = Assignment(name, course.root)
    has_source = notebook == name and assignment.source.exists()
    has_suite = has_source and any(assignment.suite.glob("test_*.py"))
    return assignment if has_suite else None

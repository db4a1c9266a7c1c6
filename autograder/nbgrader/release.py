"""The cells of a released notebook that nbgrader knows: what a submission is repaired from and graded by."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.errors import StaleBuild
from autograder.intake.release import read_built_json


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
    try:
        return release_of(path.stem, read_built_json(path))
    except (OSError, ValueError, KeyError) as error:
        raise StaleBuild(f"{path}: no readable release ({error}); run `autograder build {path.stem}`") from error


def release_of(name: str, notebook: Mapping[str, Any]) -> Release:
    """The nbgrader cells of a notebook (JSON or a notebook node)."""
    kernelspec = json.dumps(notebook.get("metadata", {}).get("kernelspec", {}))
    return Release(name, kernelspec, tuple(_cells(notebook["cells"])))


def _cells(cells: Iterable[Mapping[str, Any]]) -> Iterable[ReleaseCell]:
    for cell in cells:
        meta = cell["metadata"].get("nbgrader")
        if not meta or not (meta.get("grade") or meta.get("solution") or meta.get("locked") or meta.get("task")):
            continue
        solution, grade = bool(meta.get("solution")), bool(meta.get("grade"))
        source = cell["source"]
        yield ReleaseCell(
            grade_id=meta["grade_id"],
            cell_type=cell["cell_type"],
            grade=grade,
            solution=solution,
            task=bool(meta.get("task")),
            locked=not solution and (grade or bool(meta.get("locked"))),  # as nbgrader sees it
            points=float(meta.get("points", 0)),
            source=source if isinstance(source, str) else "".join(source),
            checksum=meta.get("checksum", ""),
            question=_question(cell) if grade and not solution else "",
        )


def _question(cell: Mapping[str, Any]) -> str:
    """The question of a grade cell: as our build tagged it, else by its name (`check_softmax`, `test_softmax`)."""
    kit = cell["metadata"].get("attention_kit", {})
    grade_id: str = cell["metadata"]["nbgrader"]["grade_id"]
    if kit.get("role") == "check" and kit.get("name"):
        return str(kit["name"])
    return grade_id.removeprefix("check_").removeprefix("test_")

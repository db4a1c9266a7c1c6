"""The release of an assignment as the matcher needs it: its cells, in order, with their roles."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from autograder.basics.definitions import defined_functions
from autograder.basics.errors import BadSource, UnreadableSubmission
from autograder.basics.points import total
from autograder.intake.cell_text import CellText
from autograder.intake.reading import NotebookCell, parse_notebook
from autograder.records.submission import Role

if TYPE_CHECKING:  # `check.py` carries this module, and not the course's settings
    from autograder.course import Assignment

_ROLES = frozenset(get_args(Role)) - {"extra"}


@dataclass(frozen=True)
class ReleaseCell:
    """One cell of the released notebook.

    Attributes:
        id: nbgrader's grade_id; "demo_<name>" and "text_<n>" where it has none.
        role: what the cell is for.
        name: the question's name, or that of the given, demo or written cell.
        source: what students got.
        kind: "code" or "markdown".
    """

    id: str
    role: Role
    name: str
    source: str
    kind: str

    @cached_property
    def text(self) -> CellText:
        """The cell's text, looked at once."""
        return CellText(self.source)


@dataclass(frozen=True)
class Release:
    """The released notebook of one assignment.

    Attributes:
        key_code: the question cells of the answer key, where it is there: their comments and
            strings are no student's.
        pictures: those attached to its cells, as base64.
    """

    assignment: str
    cells: tuple[ReleaseCell, ...]
    key_code: tuple[str, ...] = ()
    pictures: frozenset[str] = frozenset()

    @cached_property
    def by_id(self) -> dict[str, ReleaseCell]:
        """Its cells by grade_id."""
        return {cell.id: cell for cell in self.cells}

    @cached_property
    def squeezed(self) -> str:
        """The text of all cells, without spaces."""
        return "\n".join(cell.text.squeezed for cell in self.cells)

    @cached_property
    def squeezed_lines(self) -> frozenset[str]:
        """The lines of all cells, without spaces."""
        return frozenset[str]().union(*(cell.text.squeezed_lines for cell in self.cells))

    @cached_property
    def questions(self) -> tuple[ReleaseCell, ...]:
        """The question cells, in their order."""
        return tuple(cell for cell in self.cells if cell.role == "question")

    @cached_property
    def functions(self) -> dict[str, frozenset[str]]:
        """For each question's id: the functions and classes that its cell defines."""
        return {q.id: defined_functions(q.source) or frozenset({q.name}) for q in self.questions}


def load_release(assignment: Assignment) -> Release:
    """Read the built notebook of an assignment.

    Raises:
        BadSource: it is not built, or not what `autograder build` writes.
    """
    release = read_release_cells(assignment.release, assignment.name, assignment.solution)
    if not release.questions:
        raise BadSource(
            f"{assignment.release} has no question cell: run `autograder build {assignment.name}`"
        )
    return release


def read_release_cells(path: Path, assignment: str, key: Path | None = None) -> Release:
    """Read any released notebook, one that nbgrader alone has made too.

    Args:
        key: the answer key, which need not be there.

    Raises:
        BadSource: there is none, or it cannot be read.
    """
    again = f"run `autograder build {assignment}`"
    try:
        cells, _ = parse_notebook(path.read_bytes(), path.name)
    except FileNotFoundError:
        raise BadSource(f"{path} does not exist: {again}") from None
    except (OSError, UnreadableSubmission) as error:
        raise BadSource(f"{path} cannot be read ({error}): {again}") from error
    release = make_release(cells, assignment, _code_of_key(key) if key else ())
    if len(release.by_id) != len(release.cells):
        raise BadSource(f"{path} has two cells of one name: {again}")
    return release


def make_release(
    cells: Sequence[NotebookCell], assignment: str, key_code: tuple[str, ...] = ()
) -> Release:
    """The release whose notebook has these cells."""
    released = tuple(_cell(number, cell) for number, cell in enumerate(cells, start=1))
    pictures = frozenset(
        data for cell in cells for kinds in cell.attachments.values() for data in kinds.values()
    )
    return Release(assignment, released, key_code, pictures)


def _code_of_key(path: Path) -> tuple[str, ...]:
    try:
        cells, _ = parse_notebook(path.read_bytes(), path.name)
    except (OSError, UnreadableSubmission):
        return ()
    return tuple(cell.source for cell in cells if cell.kind == "code" and cell.role == "question")


def _cell(number: int, cell: NotebookCell) -> ReleaseCell:
    """A cell without a tag is text, or code that is always given."""
    role = cell.role or _role_of(cell)
    if role not in _ROLES or (role == "text" and cell.kind == "code"):
        role = "given" if cell.kind == "code" else "text"
    ids = {
        "question": cell.name,
        "demo": f"demo_{cell.name or number}",
        "given": f"given_{cell.name or number}",
        "check": f"check_{cell.name}",
        "written": f"written_{cell.name}",
    }
    id_ = cell.grade_id or ids.get(role, f"text_{number}")
    return ReleaseCell(id_, role, cell.name or id_, cell.source, cell.kind)  # type: ignore[arg-type]  # checked above


def _role_of(cell: NotebookCell) -> str:
    """The role of a cell with nbgrader's metadata only (a notebook written in Jupyter)."""
    for role in ("check", "given", "written"):
        if cell.grade_id.startswith(f"{role}_"):
            return role
    if not (cell.grade_id and cell.solution):
        return ""
    return "question" if cell.kind == "code" else "written"


def written_points(assignment: Assignment) -> float:
    """Points of the written answers, which a person gives: they are in no result (0 where nothing
    is built).
    """
    return total([cell.points for cell in _built_cells(assignment) if cell.role == "written"])


def tested_points(assignment: Assignment) -> float:
    """Points of the tests, the most that a result can have (0 where nothing is built)."""
    return total([cell.points for cell in _built_cells(assignment) if cell.role != "written"])


def points_of_questions(assignment: Assignment) -> dict[str, float]:
    """Points of each question's tests, as the release states them; nothing where it is not
    built.
    """
    return {
        cell.name: cell.points
        for cell in _built_cells(assignment)
        if cell.role == "check" and cell.points
    }


def _built_cells(assignment: Assignment) -> tuple[NotebookCell, ...]:
    """The cells of the release; none where it is not built, or no notebook."""
    try:
        return parse_notebook(assignment.release.read_bytes(), assignment.release.name)[0]
    except (OSError, UnreadableSubmission):
        return ()


def read_built_json(path: Path) -> dict[str, Any]:
    """A built notebook with whatever the kit does not read, each cell's source as one text.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no built notebook; says why.
    """
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(notebook, dict) or not isinstance(notebook.setdefault("metadata", {}), dict):
        raise ValueError("it is no JSON object with metadata")
    if not isinstance(notebook.get("cells"), list) or not all(
        map(_is_built_cell, notebook["cells"])
    ):
        raise ValueError("it has no list of cells, each with a cell_type, a source and metadata")
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
    return notebook


def _is_built_cell(cell: Any) -> bool:
    """Whether all of a cell that the kit reads is of the type that a build writes."""
    if not isinstance(cell, dict) or not isinstance(cell.get("cell_type"), str):
        return False
    source, metadata = cell.setdefault("source", ""), cell.get("metadata")
    if not (
        isinstance(source, str)
        or (isinstance(source, list) and all(isinstance(line, str) for line in source))
    ):
        return False
    if not isinstance(metadata, dict):
        return False
    kit, marks = metadata.get("attention_kit", {}), metadata.get("nbgrader", {})
    tags = isinstance(kit, dict) and all(isinstance(value, str) for value in kit.values())
    named = isinstance(marks, dict) and isinstance(marks.get("grade_id", ""), str)
    return tags and named and isinstance(marks.get("points", 0), int | float)

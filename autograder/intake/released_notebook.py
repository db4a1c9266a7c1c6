"""The release of an assignment: its cells in order, with their roles, and their points.

`intake/cell_matching.py` matches submissions to a release. The points at the end of this module are
those that the release states, for marks and platforms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from autograder.basics.errors import BadSource, UnreadableSubmission
from autograder.basics.points import total
from autograder.intake.cell_text import CellText
from autograder.intake.companion_files import load_companions
from autograder.intake.reading import NotebookCell, parse_notebook
from autograder.records.submission import Role

# For types alone: students' `check.py` holds a copy of this module, and no settings of a course.
if TYPE_CHECKING:
    from autograder.course import Assignment

_ROLES = frozenset(get_args(Role)) - {"extra"}  # cells that a student added


@dataclass(frozen=True)
class ReleaseCell:
    """One cell of the released notebook.

    Attributes:
        id: nbgrader's grade_id; without one, the role and the name or number, like "demo_plot" and
            "text_3".
        role: the cell's purpose; "written" is an answer in prose, which a person marks.
        name: the question's name, or that of the given, demo or written cell.
        source: the text that students got.
        kind: "code" or "markdown".
    """

    id: str
    role: Role
    name: str
    source: str
    kind: str

    @cached_property
    def text(self) -> CellText:
        """The cell's text, analysed once."""
        return CellText(self.source)


@dataclass(frozen=True)
class Release:
    """The released notebook of one assignment.

    Attributes:
        key_code: the text of the answer key's question cells; empty where there is no answer key.
            A comment that stands there is not a student's own text (`intake/own_text.py`).
        pictures: pictures attached to the release's cells, as base64: others are a student's own.
        companions: the Python files beside the notebook: path → text.
    """

    assignment: str
    cells: tuple[ReleaseCell, ...]
    key_code: tuple[str, ...] = ()
    pictures: frozenset[str] = frozenset()
    companions: Mapping[str, str] = field(default_factory=dict, hash=False)

    @cached_property
    def by_id(self) -> dict[str, ReleaseCell]:
        """The cells by id."""
        return {cell.id: cell for cell in self.cells}

    @cached_property
    def squeezed(self) -> str:
        """The text of all cells without white space inside of lines, to find copied passages."""
        return "\n".join(cell.text.squeezed for cell in self.cells)

    @cached_property
    def squeezed_lines(self) -> frozenset[str]:
        """The lines of all cells without white space: other lines are a student's own."""
        return frozenset[str]().union(
            *(cell.text.squeezed_lines for cell in self.cells)
        )

    @cached_property
    def questions(self) -> tuple[ReleaseCell, ...]:
        """The question cells, in the notebook's order."""
        return tuple(cell for cell in self.cells if cell.role == "question")

    @cached_property
    def functions(self) -> dict[str, frozenset[str]]:
        """The functions and classes that each question's cell defines, by the question's id; the
        question's name where the stub defines none, as in `f = ...`.
        """
        return {
            question.id: question.text.functions or frozenset({question.name})
            for question in self.questions
        }


def load_release(assignment: Assignment) -> Release:
    """Read the built notebook of an assignment.

    Raises:
        BadSource: it is not built, or has no question cell.
    """
    release = read_release_cells(
        assignment.release,
        assignment.name,
        assignment.solution,
    )
    if not release.questions:
        raise BadSource(
            f"{assignment.release} has no question cell: run `autograder build {assignment.name}`"
        )
    return release


def read_release_cells(
    path: Path,
    assignment: str,
    key: Path | None = None,
) -> Release:
    """Read any released notebook, also one that nbgrader alone has made.

    Args:
        key: the answer key, which need not exist.

    Raises:
        BadSource: there is no release, it cannot be read, or two cells have one id.
    """
    what_to_do = f"run `autograder build {assignment}`"
    try:
        cells = _parse_file(path)
    except FileNotFoundError:
        raise BadSource(f"{path} does not exist: {what_to_do}") from None
    except (OSError, UnreadableSubmission) as error:
        raise BadSource(f"{path} cannot be read ({error}): {what_to_do}") from error
    key_cells = _parse_if_built(key) if key else ()
    key_code = [
        cell.source
        for cell in key_cells
        if cell.kind == "code" and cell.role == "question"
    ]
    release = make_release(cells, assignment, tuple(key_code), load_companions(path))
    if len(release.by_id) != len(release.cells):
        raise BadSource(f"{path} has two cells with one id: {what_to_do}")
    return release


def make_release(
    cells: Sequence[NotebookCell],
    assignment: str,
    key_code: tuple[str, ...] = (),
    companions: Mapping[str, str] | None = None,
) -> Release:
    """The release whose notebook has these cells, and these companions beside it."""
    released = [
        _release_cell(number, cell) for number, cell in enumerate(cells, start=1)
    ]
    pictures = frozenset[str]().union(*(cell.pictures for cell in cells))
    return Release(
        assignment,
        tuple(released),
        key_code,
        pictures,
        companions or {},
    )


def _release_cell(number: int, cell: NotebookCell) -> ReleaseCell:
    """Give a cell its role and id: a cell whose metadata has no role is text, or given code."""
    role = cell.role or _role_from_nbgrader(cell)
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
    return ReleaseCell(
        id_,
        role,  # type: ignore[arg-type]  # checked above
        cell.name or id_,
        cell.source,
        cell.kind,
    )


def _role_from_nbgrader(cell: NotebookCell) -> str:
    """The role of a cell with nbgrader's metadata only (a notebook written in Jupyter)."""
    for role in ("check", "given", "written"):
        if cell.grade_id.startswith(f"{role}_"):
            return role
    if not (cell.grade_id and cell.solution):
        return ""
    return "question" if cell.kind == "code" else "written"


def written_points(assignment: Assignment) -> float:
    """Points of the written answers, which a person gives, so that no result has them. 0 before a
    build.
    """
    cells = _parse_if_built(assignment.release)
    return total([cell.points for cell in cells if cell.role == "written"])


def tested_points(assignment: Assignment) -> float:
    """Points of the tests, the most that a result can have; 0 before a build."""
    cells = _parse_if_built(assignment.release)
    return total([cell.points for cell in cells if cell.role != "written"])


def points_of_questions(assignment: Assignment) -> dict[str, float]:
    """Points of each question's tests, as the release states them; empty before a build."""
    cells = _parse_if_built(assignment.release)
    return {
        cell.name: cell.points for cell in cells if cell.role == "check" and cell.points
    }


def _parse_if_built(path: Path) -> tuple[NotebookCell, ...]:
    """The cells of a built notebook; none where the file is missing, or is not a notebook."""
    try:
        return _parse_file(path)
    except (OSError, UnreadableSubmission):
        return ()


def _parse_file(path: Path) -> tuple[NotebookCell, ...]:
    return parse_notebook(path.read_bytes(), path.name).cells

"""Build the release and the answer key from a source notebook: the same bytes every time."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.authoring import regions
from autograder.authoring.bans import state_ban
from autograder.authoring.check_names import find_misplaced_names
from autograder.authoring.companions import (
    harder_companion,
    harder_facts,
    move_into_companions,
)
from autograder.authoring.harder_source import read_harder
from autograder.authoring.predictions_source import read_prediction
from autograder.authoring.source_notebook import SourceCell, SourceNotebook, read_source
from autograder.authoring.visible_checks import frame_checks
from autograder.basics.errors import BadSource, BadSuite
from autograder.basics.file_transaction import FileTransaction
from autograder.course import COURSE_FILE, Assignment, Course
from autograder.intake.companion_files import companion_metadata

if TYPE_CHECKING:
    from autograder.suite.collection import SuiteQuestion

SHIPPED_FOLDERS = ("figures", "data")

_NOTEBOOK_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
_SHIPPED_LINK = re.compile(
    r"\]\(((?:figures|data)/[^)\s]+)|src=[\"']((?:figures|data)/[^\"']+)"
)
_ROUNDING = 1e-6
"""Sums of fractions of points may be wrong by this much."""


@dataclass(frozen=True, slots=True)
class BuiltNotebooks:
    """The build of one source notebook.

    Attributes:
        release_bytes: the notebook that students get.
        solution_bytes: the answer key.
        files: (path relative to the notebook, content) of figures, data and companions.
        notebook: the source.
        points: of tests and written answers together.
        companions: the Python files among these files, path → text.
    """

    release_bytes: bytes
    solution_bytes: bytes
    files: tuple[tuple[str, bytes], ...]
    notebook: SourceNotebook
    points: float
    companions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _PlannedCell:
    """A cell of the built notebooks.

    Attributes:
        grade_id: nbgrader's id of the cell; "" for a cell that nbgrader ignores.
        points: of a cell that nbgrader scores; None for others.
    """

    cell: SourceCell
    grade_id: str = ""
    points: float | None = None

    @property
    def is_answer(self) -> bool:
        """Whether students write into the cell."""
        return self.cell.kind in ("question", "written")


def build_assignment(
    course: Course, assignment: Assignment, questions: Mapping[str, SuiteQuestion]
) -> BuiltNotebooks:
    """Build the release and the answer key in memory.

    Args:
        questions: the questions of the hidden suite, by name.

    Raises:
        BadSource: the source notebook, its figures or its data cannot be built.
        BadSuite: a question without tests, or tests without a question.
    """
    notebook = read_source(assignment)
    if misplaced := list(find_misplaced_names(notebook)):
        raise BadSource("\n".join(misplaced))
    _check_questions(assignment, notebook, questions)
    points = _sum_points(course, assignment, notebook, questions)
    files = dict(_read_shipped_files(assignment.source.parent, assignment.root))
    _check_links(notebook, set(files))
    harder = read_harder(assignment, notebook.questions)
    framed, facts = frame_checks(_state_bans(notebook, questions), questions)
    if harder is not None and facts:
        facts |= harder_facts(notebook.assignment, harder)
        facts["of"]["harder"] = len(harder.questions)
    shown, companions = move_into_companions(framed, facts)
    if harder is not None:
        companions |= harder_companion(notebook.assignment, harder)
    files |= {path: text.encode() for path, text in companions.items()}
    planned = list(_plan(shown, questions))
    _check_grade_ids(planned)
    return BuiltNotebooks(
        release_bytes=_notebook_bytes(planned, companions, solution=False),
        solution_bytes=_notebook_bytes(planned, companions, solution=True),
        files=tuple(files.items()),
        companions=companions,
        notebook=notebook,
        points=points,
    )


def expected_files(assignment: Assignment, built: BuiltNotebooks) -> dict[Path, bytes]:
    """Every file that the build puts into the course, with its content."""
    expected = {
        assignment.release: built.release_bytes,
        assignment.solution: built.solution_bytes,
    }
    for folder in _built_folders(assignment):
        expected |= {folder / name: content for name, content in built.files}
    return expected


def stale_files(assignment: Assignment, built: BuiltNotebooks) -> list[Path]:
    """Built figures, data and companions that the source no longer has."""
    expected = expected_files(assignment, built)
    stale: set[Path] = set()
    for folder in _built_folders(assignment):
        for pattern in (*(f"{shipped}/**/*" for shipped in SHIPPED_FOLDERS), "**/*.py"):
            for path in folder.glob(pattern):
                if path not in expected and (path.is_symlink() or not path.is_dir()):
                    stale.add(path)
    return sorted(stale)


def write_build(assignment: Assignment, built: BuiltNotebooks) -> list[Path]:
    """Write the built files, all together or none; returns the files written or removed."""
    changed = {
        path: content
        for path, content in expected_files(assignment, built).items()
        if path.is_symlink() or not path.is_file() or path.read_bytes() != content
    }
    removed = stale_files(assignment, built)
    kept = Course(assignment.root).kept
    with FileTransaction(kept, f"`autograder build {assignment.name}`") as files:
        for path, content in changed.items():
            files.write(path, content)
        for path in removed:
            files.remove(path)
    _remove_empty_folders(assignment)
    return sorted([*changed, *removed])


def _built_folders(assignment: Assignment) -> tuple[Path, Path]:
    return assignment.release.parent, assignment.solution.parent


def _remove_empty_folders(assignment: Assignment) -> None:
    for built_folder in _built_folders(assignment):
        for name in SHIPPED_FOLDERS:
            top = built_folder / name
            for path in sorted((top, *top.rglob("*")), reverse=True):
                if path.is_dir() and not any(path.iterdir()):
                    path.rmdir()


def _read_shipped_files(folder: Path, root: Path) -> Iterator[tuple[str, bytes]]:
    """Figures and data, sorted by name; hidden files and bytecode stay behind."""
    for top in SHIPPED_FOLDERS:
        for path in sorted((folder / top).rglob("*")):
            name = path.relative_to(folder)
            if any(
                part.startswith(".") or part == "__pycache__" for part in name.parts
            ):
                continue
            if path.is_symlink():
                raise BadSource(
                    f"{path.relative_to(root)}: a link; put the file itself here, it goes "
                    "out to students"
                )
            if path.is_file():
                yield name.as_posix(), path.read_bytes()


def _check_links(notebook: SourceNotebook, files: set[str]) -> None:
    for cell in notebook.cells:
        if not cell.is_code:
            for match in _SHIPPED_LINK.finditer(cell.source):
                if (name := match[1] or match[2]) not in files:
                    raise BadSource(
                        f"{cell.place}: the text refers to {name}, which is not there"
                    )


def _check_questions(
    assignment: Assignment,
    notebook: SourceNotebook,
    questions: Mapping[str, SuiteQuestion],
) -> None:
    untested = [name for name in notebook.questions if name not in questions]
    if untested:
        raise BadSuite(
            f"{_shown_suite(assignment)}: no tests for {', '.join(untested)}; a question has a "
            "file test_<question>.py"
        )
    unknown = [name for name in questions if name not in notebook.questions]
    if unknown:
        raise BadSuite(
            f"{_shown_suite(assignment)}: tests for {', '.join(unknown)}, which the notebook does "
            f"not ask; it asks {', '.join(notebook.questions)}"
        )


def _sum_points(
    course: Course,
    assignment: Assignment,
    notebook: SourceNotebook,
    questions: Mapping[str, SuiteQuestion],
) -> float:
    """The points of tests and written answers.

    Raises:
        BadSuite: the course wants another sum.
    """
    tested = sum(question.points for question in questions.values())
    written = sum(cell.points for cell in notebook.of_kind("written"))
    target = course.totals.assignment_points
    if target and abs(tested + written - target) > _ROUNDING:
        raise BadSuite(
            f"{_shown_suite(assignment)}: {tested:g} points of tests and {written:g} of written "
            f"answers make {tested + written:g}, not {target:g}: change @points, or "
            f"assignment_points under [totals] in {COURSE_FILE} (0: any sum)"
        )
    return _rounded(tested + written)


def _shown_suite(assignment: Assignment) -> str:
    return assignment.suite.relative_to(assignment.root).as_posix()


def _state_bans(
    notebook: SourceNotebook, questions: Mapping[str, SuiteQuestion]
) -> SourceNotebook:
    """The notebook whose questions' docstrings state the suite's bans."""
    cells = [
        state_ban(cell, questions[cell.name].forbidden)
        if cell.kind == "question"
        else cell
        for cell in notebook.cells
    ]
    return dataclasses.replace(notebook, cells=tuple(cells))


def _plan(
    notebook: SourceNotebook, questions: Mapping[str, SuiteQuestion]
) -> Iterator[_PlannedCell]:
    """The cells of the built notebooks in order. A question's last check carries its points."""
    checks = Counter(cell.name for cell in notebook.of_kind("check"))
    planned_checks: Counter[str] = Counter()
    for cell in notebook.cells:
        name = cell.name
        if cell.kind == "question":
            yield _PlannedCell(cell, name)
            if not checks[name]:
                yield _plan_missing_check(cell, questions[name].points)
        elif cell.kind == "check":
            planned_checks[name] += 1
            if planned_checks[name] == checks[name]:
                yield _PlannedCell(cell, f"check_{name}", questions[name].points)
            else:
                yield _PlannedCell(cell, f"check_{name}_{planned_checks[name]}")
        elif cell.kind == "given":
            yield _PlannedCell(cell, f"given_{name}")
        elif cell.kind == "written":
            yield _PlannedCell(cell, f"written_{name}", cell.points)
        else:
            yield _PlannedCell(cell)


def _plan_missing_check(question: SourceCell, points: float) -> _PlannedCell:
    worth = _rounded(points)
    text = (
        f"# {question.name} is worth {worth} {'point' if worth == 1 else 'points'}. "
        "It has no visible check: try it on examples of your own."
    )
    check = SourceCell("check", question.name, text, question.place)
    return _PlannedCell(check, f"check_{question.name}", points)


def _check_grade_ids(planned: Iterable[_PlannedCell]) -> None:
    places: dict[str, str] = {}
    for cell in planned:
        if cell.grade_id and cell.grade_id in places:
            raise BadSource(
                f"{cell.cell.place}: its grade_id would be {cell.grade_id!r}, like that of "
                f"{places[cell.grade_id]}; give one of them another name"
            )
        places[cell.grade_id] = cell.cell.place


def _notebook_bytes(
    planned: Iterable[_PlannedCell], companions: Mapping[str, str], *, solution: bool
) -> bytes:
    import nbformat  # with nbgrader, more than a second to import

    ids: Counter[str] = Counter()
    cells = []
    for cell in planned:
        cells.append(_built_cell(cell, ids, solution=solution))
        if solution and cell.cell.scheme:
            cells.append(_marking_guide(cell.cell))
    metadata = {**_NOTEBOOK_METADATA, **companion_metadata(companions)}
    notebook = {
        "cells": cells,
        "metadata": metadata,
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    nbformat.validate(nbformat.from_dict(notebook))
    text = json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False)
    return f"{text}\n".encode()


def _built_cell(
    planned: _PlannedCell, ids: Counter[str], *, solution: bool
) -> dict[str, Any]:
    cell = planned.cell
    text = _built_text(cell, solution=solution)
    cell_type = "code" if cell.is_code else "markdown"
    kit = {"role": cell.kind, "name": cell.name}
    if (
        cell.kind == "predict"
    ):  # it is to readers what a demo is: it does not run when grading
        kit = {"role": "demo", "name": f"predict_{cell.name}"}
    metadata: dict[str, Any] = {"attention_kit": kit}
    if planned.grade_id:
        metadata["deletable"] = False
        if not planned.is_answer:
            metadata["editable"] = False
        metadata["nbgrader"] = _nbgrader_metadata(planned, cell_type, text)
    built: dict[str, Any] = {
        "cell_type": cell_type,
        "id": _cell_id(planned, ids),
        "metadata": metadata,
        "source": text.splitlines(keepends=True),
    }
    if cell.is_code:
        built |= {"execution_count": None, "outputs": []}
    return built


def _marking_guide(cell: SourceCell) -> dict[str, Any]:
    """The marking guide of a written answer, a cell of the answer key alone."""
    text = f"**Marking guide**\n\n{cell.scheme}"
    return {
        "cell_type": "markdown",
        "id": f"guide-{cell.name}",
        "metadata": {"attention_kit": {"role": "guide", "name": cell.name}},
        "source": text.splitlines(keepends=True),
    }


def _built_text(cell: SourceCell, *, solution: bool) -> str:
    if cell.kind == "predict":
        return read_prediction(cell).cell(solution=solution)
    if solution:
        return regions.complete(cell.source)
    stub = (
        regions.question_stub(cell.name)
        if cell.kind == "question"
        else regions.WRITTEN_STUB
    )
    return regions.replace_answers(cell.source, stub)


def _cell_id(planned: _PlannedCell, ids: Counter[str]) -> str:
    """A cell id that stays the same when other cells come and go."""
    cell = planned.cell
    if planned.grade_id:
        cell_id = f"{cell.kind}-{planned.grade_id.removeprefix(cell.kind + '_')}"
    elif cell.name:
        cell_id = f"{cell.kind}-{cell.name}"
    else:
        cell_id = f"text-{hashlib.sha256(cell.source.encode()).hexdigest()[:12]}"
    ids[cell_id] += 1
    return cell_id if ids[cell_id] == 1 else f"{cell_id}-{ids[cell_id]}"


def _nbgrader_metadata(
    planned: _PlannedCell, cell_type: str, text: str
) -> dict[str, Any]:
    """nbgrader's metadata, schema version 3, with the checksum that nbgrader itself would write."""
    import nbformat
    from nbgrader.utils import compute_checksum

    settings: dict[str, Any] = {
        "cell_type": cell_type,
        "grade": planned.points is not None,
        "grade_id": planned.grade_id,
        "locked": not planned.is_answer,
        "schema_version": 3,
        "solution": planned.is_answer,
        "task": False,
    }
    if planned.points is not None:
        settings["points"] = _rounded(planned.points)
    cell = nbformat.from_dict(
        {"cell_type": cell_type, "metadata": {"nbgrader": settings}, "source": text}
    )
    return {**settings, "checksum": compute_checksum(cell)}


def _rounded(points: float) -> int | float:
    """Points without rounding errors of their sum: 4 for 4.000000001, as a whole number."""
    exact = round(points, 6)
    return int(exact) if exact == int(exact) else exact

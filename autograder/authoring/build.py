"""Make the release and the answer key from a source notebook, the same bytes every time."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.authoring import regions
from autograder.authoring.bans import with_ban_checked, with_ban_told, with_refusing
from autograder.authoring.check_names import names_of_checks_needed
from autograder.authoring.source_notebook import (
    SourceCell,
    SourceNotebook,
    expect_text,
    read_source,
)
from autograder.basics.errors import BadSource, BadSuite
from autograder.basics.file_transaction import FileTransaction
from autograder.course import COURSE_FILE, Assignment, Course

SHIPPED_FOLDERS = ("figures", "data")

_NOTEBOOK_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
_SHIPPED_LINK = re.compile(r"\]\(((?:figures|data)/[^)\s]+)|src=[\"']((?:figures|data)/[^\"']+)")


_DUST = 1e-6
"""What adding up fractions of points may leave."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the hidden suite says of a question that students are told.

    Attributes:
        points: the sum of its tests'.
        forbidden: full names of the library functions that its answer may not call.
    """

    points: float
    forbidden: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BuiltNotebooks:
    """What one source notebook becomes.

    Attributes:
        release_bytes: the notebook that students get.
        solution_bytes: the answer key.
        files: (path relative to the notebook, content) of figures and data, by path.
        questions: names of the questions, in the notebook's order.
        points: the tests' and the written answers' points together.
    """

    release_bytes: bytes
    solution_bytes: bytes
    files: tuple[tuple[str, bytes], ...]
    questions: tuple[str, ...]
    points: float


@dataclass(frozen=True, slots=True)
class _Marks:
    """nbgrader's settings of one cell; grade_id "" for a cell that is not nbgrader's."""

    grade_id: str = ""
    grade: bool = False
    solution: bool = False
    points: float = 0.0


def build_assignment(
    course: Course, assignment: Assignment, asked: Mapping[str, Asked]
) -> BuiltNotebooks:
    """Build the release and the answer key in memory.

    Args:
        course: the course that the assignment belongs to.
        assignment: whose source is built.
        asked: each question of its hidden suite.

    Raises:
        BadSource: the source notebook, its figures or its data cannot be built.
        BadSuite: a question without tests, or tests without a question.
    """
    notebook = read_source(assignment)
    if needed := list(names_of_checks_needed(notebook)):
        raise BadSource("\n".join(needed))
    _check_points(course, assignment, notebook, asked)
    files = tuple(_shipped(assignment.source.parent, assignment.root))
    _check_links(notebook, {name for name, _ in files})
    points = {name: question.points for name, question in asked.items()}
    planned = list(_plan(_with_bans(notebook, asked), points))
    _check_grade_ids(planned)
    written = sum(cell.points for cell in notebook.of_kind("written"))
    return BuiltNotebooks(
        release_bytes=_notebook_bytes(planned, solution=False),
        solution_bytes=_notebook_bytes(planned, solution=True),
        files=files,
        questions=notebook.questions,
        points=_rounded(sum(points.values()) + written),
    )


def expected_files(assignment: Assignment, built: BuiltNotebooks) -> dict[Path, bytes]:
    """Every file that the build puts into the course, with its content."""
    return {
        assignment.release: built.release_bytes,
        assignment.solution: built.solution_bytes,
        **{
            notebook.parent / name: content
            for notebook in _notebooks(assignment)
            for name, content in built.files
        },
    }


def stale_files(assignment: Assignment, built: BuiltNotebooks) -> list[Path]:
    """Files in the built figures/ and data/ folders that the source no longer has."""
    expected = expected_files(assignment, built)
    found = (
        path
        for notebook in _notebooks(assignment)
        for folder in SHIPPED_FOLDERS
        for path in (notebook.parent / folder).rglob("*")
    )
    return sorted(
        path for path in found if path not in expected and (path.is_symlink() or not path.is_dir())
    )


def write_build(assignment: Assignment, built: BuiltNotebooks) -> list[Path]:
    """Write what was built; returns the files written or removed, none where all was up to date.

    All of them change together, or none.
    """
    changed = {
        path: new
        for path, new in expected_files(assignment, built).items()
        if _content(path) != new
    }
    removed = stale_files(assignment, built)
    with FileTransaction(
        Course(assignment.root).kept, f"`autograder build {assignment.name}`"
    ) as files:
        for path, new in changed.items():
            files.write(path, new)
        for path in removed:
            files.remove(path)
    _remove_empty_folders(assignment)
    return sorted([*changed, *removed])


def _notebooks(assignment: Assignment) -> tuple[Path, Path]:
    return assignment.release, assignment.solution


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() and not path.is_symlink() else None


def _remove_empty_folders(assignment: Assignment) -> None:
    for notebook in _notebooks(assignment):
        for name in SHIPPED_FOLDERS:
            top = notebook.parent / name
            for folder in sorted((path for path in top.rglob("*") if path.is_dir()), reverse=True):
                if not any(folder.iterdir()):
                    folder.rmdir()
            if top.is_dir() and not any(top.iterdir()):
                top.rmdir()


def _shipped(folder: Path, root: Path) -> Iterator[tuple[str, bytes]]:
    """Figures and data, sorted by name; hidden files and bytecode stay behind."""
    for top in SHIPPED_FOLDERS:
        for path in sorted((folder / top).rglob("*")):
            name = path.relative_to(folder)
            if any(part.startswith(".") or part == "__pycache__" for part in name.parts):
                continue
            if path.is_symlink():
                raise BadSource(
                    f"{path.relative_to(root)}: a link; put the file itself here, it goes "
                    "out to students"
                )
            if path.is_file():
                yield name.as_posix(), path.read_bytes()


def _check_links(notebook: SourceNotebook, there: set[str]) -> None:
    for cell in notebook.cells:
        if not cell.is_code:
            for match in _SHIPPED_LINK.finditer(cell.source):
                if (name := match[1] or match[2]) not in there:
                    raise BadSource(f"{cell.place}: the text refers to {name}, which is not there")


def _check_points(
    course: Course, assignment: Assignment, notebook: SourceNotebook, asked: Mapping[str, Asked]
) -> None:
    suite = assignment.suite.relative_to(course.root).as_posix()
    untested = [name for name in notebook.questions if name not in asked]
    if untested:
        raise BadSuite(
            f"{suite}: no tests for {', '.join(untested)}; a question has a file test_<question>.py"
        )
    unknown = [name for name in asked if name not in notebook.questions]
    if unknown:
        there = ", ".join(notebook.questions)
        raise BadSuite(
            f"{suite}: tests for {', '.join(unknown)}, which the notebook does not ask; it "
            f"asks {there}"
        )
    tested = sum(question.points for question in asked.values())
    written = sum(cell.points for cell in notebook.of_kind("written"))
    wanted = course.totals.assignment_points
    if wanted and abs(tested + written - wanted) > _DUST:
        raise BadSuite(
            f"{suite}: {tested:g} points of tests and {written:g} of written answers make "
            f"{tested + written:g}, not "
            f"{wanted:g}: change @points, or assignment_points under [totals] in {COURSE_FILE} "
            "(0: any sum)"
        )


def _with_bans(notebook: SourceNotebook, asked: Mapping[str, Asked]) -> SourceNotebook:
    """The notebook as students read it: each question says what it may not call, and its first
    check refuses it.
    """
    unchecked = {cell.name: cell for cell in notebook.of_kind("question")}
    cells = list(notebook.cells)
    for place, cell in enumerate(cells):
        if cell.kind == "question":
            cells[place] = with_ban_told(cell, asked[cell.name].forbidden)
        elif cell.kind == "check" and cell.name in unchecked:
            cells[place] = with_ban_checked(
                cell, unchecked.pop(cell.name), asked[cell.name].forbidden
            )
    if any(
        new is not old and new.kind == "check"
        for new, old in zip(cells, notebook.cells, strict=True)
    ):
        given = [place for place, cell in enumerate(cells) if cell.kind == "given"]
        if not given:
            raise BadSource(
                f"{cells[0].place}: the suite forbids functions, and there is no given cell "
                "for the check"
            )
        best = next((place for place in given if expect_text() in cells[place].source), given[0])
        cells[best] = with_refusing(cells[best])
    return SourceNotebook(notebook.assignment, tuple(cells))


def _plan(
    notebook: SourceNotebook, points: Mapping[str, float]
) -> Iterator[tuple[SourceCell, _Marks]]:
    """The cells of the built notebooks in order, each with its nbgrader settings."""
    checks = [cell.name for cell in notebook.of_kind("check")]
    begun: dict[str, int] = {}
    for cell in notebook.cells:
        if cell.kind == "check":
            begun[cell.name] = begun.get(cell.name, 0) + 1
            last = begun[cell.name] == checks.count(cell.name)
            yield (
                cell,
                _check_marks(cell.name, points[cell.name])
                if last
                else _Marks(f"check_{cell.name}_{begun[cell.name]}"),
            )
        else:
            yield cell, _marks(cell)
        if cell.kind == "question" and cell.name not in checks:
            worth = _rounded(points[cell.name])
            text = (
                f"# {cell.name} is worth {worth} {'point' if worth == 1 else 'points'}. "
                "It has no visible check: try it on examples of your own."
            )
            yield (
                SourceCell("check", cell.name, text, cell.place),
                _check_marks(cell.name, points[cell.name]),
            )


def _check_marks(question: str, points: float) -> _Marks:
    return _Marks(f"check_{question}", grade=True, points=points)


def _marks(cell: SourceCell) -> _Marks:
    if cell.kind == "question":
        return _Marks(cell.name, solution=True)
    if cell.kind == "given":
        return _Marks(f"given_{cell.name}")
    if cell.kind == "written":
        return _Marks(f"written_{cell.name}", grade=True, solution=True, points=cell.points)
    return _Marks()


def _check_grade_ids(planned: Iterable[tuple[SourceCell, _Marks]]) -> None:
    seen: dict[str, str] = {}
    for cell, marks in planned:
        if marks.grade_id and marks.grade_id in seen:
            raise BadSource(
                f"{cell.place}: its grade_id would be {marks.grade_id!r}, like that of "
                f"{seen[marks.grade_id]}; "
                "give one of them another name"
            )
        seen[marks.grade_id] = cell.place


def _notebook_bytes(planned: Iterable[tuple[SourceCell, _Marks]], *, solution: bool) -> bytes:
    import nbformat  # with nbgrader, more than a second to import

    ids: dict[str, int] = {}
    cells = []
    for cell, marks in planned:
        cells.append(_cell(cell, marks, ids, solution=solution))
        if solution and cell.scheme:
            cells.append(_guide(cell))
    notebook = {"cells": cells, "metadata": _NOTEBOOK_METADATA, "nbformat": 4, "nbformat_minor": 5}
    nbformat.validate(nbformat.from_dict(notebook))
    return (json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _cell(
    cell: SourceCell, marks: _Marks, ids: dict[str, int], *, solution: bool
) -> dict[str, Any]:
    text = _text(cell, solution=solution)
    cell_type = "code" if cell.is_code else "markdown"
    metadata: dict[str, Any] = {"attention_kit": {"role": cell.kind, "name": cell.name}}
    if marks.grade_id:
        metadata["deletable"] = False
        if not marks.solution:
            metadata["editable"] = False
        metadata["nbgrader"] = _nbgrader(marks, cell_type, text)
    built: dict[str, Any] = {
        "cell_type": cell_type,
        "id": _cell_id(cell, marks, ids),
        "metadata": metadata,
        "source": text.splitlines(keepends=True),
    }
    if cell.is_code:
        built |= {"execution_count": None, "outputs": []}
    return built


def _guide(cell: SourceCell) -> dict[str, Any]:
    """The marking guide of a written answer, a cell of the answer key alone."""
    text = f"**Marking guide**\n\n{cell.scheme}"
    return {
        "cell_type": "markdown",
        "id": f"guide-{cell.name}",
        "metadata": {"attention_kit": {"role": "guide", "name": cell.name}},
        "source": text.splitlines(keepends=True),
    }


def _text(cell: SourceCell, *, solution: bool) -> str:
    if solution:
        return regions.complete(cell.source)
    stub = regions.question_stub(cell.name) if cell.kind == "question" else regions.WRITTEN_STUB
    return regions.stubbed(cell.source, stub)


def _cell_id(cell: SourceCell, marks: _Marks, ids: dict[str, int]) -> str:
    """A cell id that stays the same when other cells come and go."""
    if marks.grade_id:
        wanted = f"{cell.kind}-{marks.grade_id.removeprefix(cell.kind + '_')}"
    elif cell.name:
        wanted = f"{cell.kind}-{cell.name}"
    else:
        wanted = f"text-{hashlib.sha256(cell.source.encode()).hexdigest()[:12]}"
    ids[wanted] = ids.get(wanted, 0) + 1
    return wanted if ids[wanted] == 1 else f"{wanted}-{ids[wanted]}"


def _nbgrader(marks: _Marks, cell_type: str, text: str) -> dict[str, Any]:
    """nbgrader's metadata, schema version 3, with the checksum that nbgrader itself would write."""
    import nbformat
    from nbgrader.utils import compute_checksum

    settings: dict[str, Any] = {
        "cell_type": cell_type,
        "grade": marks.grade,
        "grade_id": marks.grade_id,
        "locked": not marks.solution,
        "schema_version": 3,
        "solution": marks.solution,
        "task": False,
    }
    if marks.grade:
        settings["points"] = _rounded(marks.points)
    cell = nbformat.from_dict(
        {"cell_type": cell_type, "metadata": {"nbgrader": settings}, "source": text}
    )
    return {**settings, "checksum": compute_checksum(cell)}


def _rounded(points: float) -> int | float:
    """Points without the dust of adding them up: 4 rather than 4.000000001, an int where it is
    one.
    """
    exact = round(points, 6)
    return int(exact) if exact == int(exact) else exact

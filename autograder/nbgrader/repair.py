"""A submission's notebook made whole before nbgrader looks at it: `nbgrader autograde` never stops at a lost cell.

nbgrader keeps the last of two copies, strips the other's metadata, and then ends the batch over that; cells that are
gone stay gone. Here every cell of the release is there once, with its metadata, and locked cells have their source.
"""

from __future__ import annotations

import copy
import re
import uuid
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbgrader.preprocessors import NbGraderPreprocessor

from autograder.course import find_course
from autograder.nbgrader.gradebook import record_problem

_DEFINES = re.compile(r"^(?:def|class)\s+(\w+)", re.MULTILINE)


class SubmissionExporter(NotebookExporter):  # type: ignore[misc]
    """Reads what students hand in, and leaves no old score standing where that fails.

    Where a file is no notebook, the release stands in for it and says why; grading finds the same and gives 0.
    """

    def from_filename(self, filename: str, resources: Any = None, **keywords: Any) -> tuple[Any, Any]:
        try:
            return super().from_filename(filename, resources, **keywords)  # type: ignore[no-any-return]
        except Exception as error:
            where = resources["nbgrader"]
            release = release_path(self.parent.coursedir, resources)
            problem = f"grading ended with {_short(error)}"
            record_problem(
                find_course(Path.cwd()), release, where["assignment"], where["student"], problem, where["db_url"]
            )
            raise

    def from_file(self, file_stream: Any, resources: Any = None, **keywords: Any) -> tuple[Any, Any]:
        try:
            notebook = _read(file_stream)
        except Exception as error:
            notebook = self._stand_in(error, resources)
        return self.from_notebook_node(notebook, resources, **keywords)  # type: ignore[no-any-return]

    def _stand_in(self, error: Exception, resources: Any) -> Any:
        release = release_path(self.parent.coursedir, resources)
        self.log.error("%s: not a readable notebook (%s)", resources["nbgrader"]["student"], _short(error))
        notebook = nbformat.read(release, as_version=4)
        note = "The file that was handed in is not a readable notebook. This is the release."
        notebook.cells.insert(0, nbformat.v4.new_markdown_cell(note))
        return notebook


class RepairCells(NbGraderPreprocessor):  # type: ignore[misc]
    """Matches the cells of a submission to the release, one to one."""

    def preprocess(self, notebook: Any, resources: Any) -> tuple[Any, Any]:
        release = release_path(self.parent.parent.coursedir, resources)
        wanted = released_cells(nbformat.read(release, as_version=4)) if release.exists() else []
        for note in repair(notebook, wanted):
            self.log.warning("%s: %s", resources["nbgrader"]["student"], note)
        return notebook, resources


def release_path(coursedir: Any, resources: Any) -> Path:
    """The release of the notebook that is being converted."""
    where = resources["nbgrader"]
    folder = coursedir.format_path(coursedir.release_directory, ".", where["assignment"])
    return Path(folder) / f"{where['notebook']}.ipynb"


def released_cells(notebook: Any) -> list[Any]:
    """The cells of a release that nbgrader has to find again."""
    return [cell for cell in notebook.cells if (cell.metadata.get("nbgrader") or {}).get("grade_id")]


def repair(notebook: Any, wanted: list[Any]) -> list[str]:
    """Make every wanted cell appear once, in place.

    Returns:
        What was done, one sentence each.
    """
    if not wanted:
        return _without_copies(notebook)
    by_id = {grade_id(cell): cell for cell in wanted}
    found: dict[str, Any] = {}
    notes = []
    for name, copies in _copies(notebook, by_id).items():
        found[name] = _right_one(copies, by_id[name])
        if len(copies) > 1:
            notes.append(f"cell {name!r} is there {len(copies)} times; one is kept as the answer")
    kept = {id(cell) for cell in found.values()}
    for cell in notebook.cells:
        if id(cell) not in kept:
            cell.metadata.pop("nbgrader", None)
            cell.metadata.pop("attention_kit", None)
    for name, released in by_id.items():
        if name not in found and (match := _same_content(notebook, released, kept)) is not None:
            found[name] = match
            kept.add(id(match))
            notes.append(f"cell {name!r} had lost its metadata; found by its content")
    notes += _put_back(notebook, wanted, found)
    _renew_ids(notebook)
    return notes


def grade_id(cell: Any) -> str:
    """nbgrader's id of a cell, or "" (whatever stands in the metadata)."""
    meta = cell.metadata.get("nbgrader")
    name = meta.get("grade_id") if isinstance(meta, dict) else None
    return name if isinstance(name, str) else ""


def _copies(notebook: Any, by_id: dict[str, Any]) -> dict[str, list[Any]]:
    copies: dict[str, list[Any]] = {}
    for cell in notebook.cells:
        if (name := grade_id(cell)) in by_id:
            copies.setdefault(name, []).append(cell)
    return copies


def _right_one(copies: list[Any], released: Any) -> Any:
    """Of several copies the one with an answer; of several answers the last, as when the notebook runs."""
    right_kind = [cell for cell in copies if cell.cell_type == released.cell_type] or copies
    if not released.metadata.nbgrader.get("solution"):
        return right_kind[0]
    answered = [cell for cell in right_kind if cell.source.strip() not in ("", released.source.strip())]
    return (answered or right_kind)[-1]


def _same_content(notebook: Any, released: Any, taken: set[int]) -> Any:
    """A cell without metadata that can only be this one: the same text, or it defines the same function."""
    free = [c for c in notebook.cells if id(c) not in taken and c.cell_type == released.cell_type]
    same = [cell for cell in free if cell.source.strip() == released.source.strip()]
    if same:
        return same[0]
    names = set(_DEFINES.findall(released.source)) if released.cell_type == "code" else set()
    if not names or not released.metadata.nbgrader.get("solution"):
        return None
    defining = [cell for cell in free if names & set(_DEFINES.findall(cell.source))]
    return defining[-1] if defining else None


def _put_back(notebook: Any, wanted: list[Any], found: dict[str, Any]) -> Iterable[str]:
    """Metadata and locked sources as released; cells that are gone come back after the one they followed."""
    notes = []
    previous: Any = None
    for released in wanted:
        name = grade_id(released)
        fresh = copy.deepcopy(released)
        if name not in found:
            at = _index(notebook, previous) + 1 if previous is not None else 0
            notebook.cells.insert(at, fresh)
            notes.append(f"cell {name!r} was missing; put back as released")
            previous = fresh
            continue
        cell = found[name]
        if released.metadata.nbgrader.get("solution"):
            fresh.source = cell.source
        elif cell.source != released.source:
            notes.append(f"cell {name!r} is locked and was changed; put back as released")
        if cell.cell_type == "code" and fresh.cell_type == "code":
            fresh.outputs = cell.get("outputs", [])
        if "attachments" in cell and fresh.cell_type == "markdown":
            fresh.attachments = cell.attachments
        notebook.cells[_index(notebook, cell)] = fresh
        previous = fresh
    return notes


def _index(notebook: Any, cell: Any) -> int:
    return next(i for i, other in enumerate(notebook.cells) if other is cell)


def _without_copies(notebook: Any) -> list[str]:
    """For a notebook without a release: the last copy of a cell counts, the others become ordinary cells."""
    seen: set[str] = set()
    notes = []
    for cell in reversed(notebook.cells):
        name = grade_id(cell)
        if name and name in seen:
            cell.metadata.pop("nbgrader")
            notes.append(f"cell {name!r} is there more than once; the last one counts")
        seen.add(name)
    return notes


def _renew_ids(notebook: Any) -> None:
    """Cell ids are unique in a notebook of format 4.5; a copied cell brings its own along."""
    if (notebook.nbformat, notebook.nbformat_minor) < (4, 5):
        for cell in notebook.cells:
            cell.pop("id", None)
        return
    seen: set[str] = set()
    for cell in notebook.cells:
        if not cell.get("id") or cell.id in seen:
            cell.id = uuid.uuid4().hex[:8]
        seen.add(cell.id)


def _read(file: Any) -> Any:
    """A notebook whose cells have what every later step takes for granted.

    Raises:
        Exception: of any kind: the file holds whatever a student put there.
    """
    path = Path(file.name)
    limit = find_course(Path.cwd()).limits.notebook_mb
    if path.is_symlink():
        raise ValueError("a link, not a file")
    if path.stat().st_size > limit * 1_000_000:
        raise ValueError(f"larger than {limit} MB")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cell ids that are missing or there twice; repaired below
        notebook = nbformat.read(file, as_version=4)
    if not isinstance(notebook.get("metadata"), dict):
        notebook.metadata = nbformat.NotebookNode()
    notebook.cells = [cell for cell in notebook.cells if cell.get("cell_type") in ("code", "markdown", "raw")]
    for cell in notebook.cells:
        if not isinstance(cell.get("metadata"), dict):
            cell.metadata = nbformat.NotebookNode()
        if not isinstance(cell.get("source"), str):
            cell.source = ""
        if cell.cell_type == "code":
            cell.setdefault("outputs", [])
            cell.setdefault("execution_count", None)
    return notebook


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".split("\n")[0][:120]

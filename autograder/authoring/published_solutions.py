"""`autograder solutions`: the answer key as students may read it, with outputs and pictures, as a
notebook and as a page.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from autograder.authoring.execute import run_notebook
from autograder.authoring.single_file import put_pictures_inside
from autograder.basics.errors import KitError
from autograder.basics.file_transaction import FileTransaction
from autograder.course import Assignment, Course
from autograder.marks.rubric import GUIDE

CELL_SECONDS = 3600.0
"""A demo may train for as long as it takes."""


def publish_solutions(
    course: Course, assignment: Assignment, to: Path, *, quick: bool
) -> list[str]:
    """Run the built answer key and write it to a folder; returns the names of the files.

    Marking guides stay with the graders. The page has its pictures inside.

    Args:
        quick: whether cells that train for minutes take a few steps only.

    Raises:
        KitError: the answer key is not built, or a cell of it fails.
    """
    if not assignment.solution.is_file():
        raise KitError(f"{assignment.solution} is not built: run `autograder build`")
    folder = assignment.solution.parent
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and path != assignment.solution
        and "__pycache__" not in path.parts
    }
    raw = json.loads(assignment.solution.read_bytes())
    raw["cells"] = [cell for cell in raw["cells"] if not _is_guide(cell)]
    run = run_notebook(
        json.dumps(raw).encode(), files.items(), CELL_SECONDS, quick=quick
    )
    if run.errors:
        error = run.errors[0]
        raise KitError(
            f"{assignment.name}: cell {error.cell + 1} of the answer key fails: {error.name}: "
            f"{error.message}"
        )
    page = _as_page(run.notebook, files)
    name = assignment.name
    with FileTransaction(course.kept, f"`autograder solutions {name}`") as written:
        text = json.dumps(run.notebook, indent=1, sort_keys=True, ensure_ascii=False)
        written.write(to / f"{name}.ipynb", f"{text}\n")
        written.write(to / f"{name}.html", page)
        for path, content in files.items():
            written.write(to / path, content)
    return [f"{name}.html", f"{name}.ipynb", *sorted(files)]


def _is_guide(cell: dict[str, Any]) -> bool:
    return bool(cell["metadata"].get("attention_kit", {}).get("role") == GUIDE)


def _as_page(notebook: Any, files: dict[str, bytes]) -> str:
    """The notebook as one HTML file, with its pictures inside."""
    from nbconvert import HTMLExporter  # takes a second to import

    whole = copy.deepcopy(notebook)
    for cell in whole.cells:
        if cell.cell_type == "markdown":
            cell.source = put_pictures_inside(cell.source, files)
    page, _ = HTMLExporter(exclude_input_prompt=True).from_notebook_node(whole)
    return str(page)

"""Read an `.ipynb` source, written in Jupyter: nbgrader's metadata becomes a text source's tags."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

from autograder.authoring import regions
from autograder.authoring.raw_cells import CODE_TAGS, Place, RawCell
from autograder.basics.errors import BadSource
from autograder.intake.magics import strip_magics

_NBGRADER_MARKER = re.compile(r"(?m)^([ \t]*)#+ *(BEGIN|END) SOLUTION[ \t]*$")


def read_jupyter(text: str, file: str) -> list[RawCell]:
    """Read the cells of an `.ipynb`, with tags. `file` is the file's name in messages.

    Raises:
        BadSource: not a notebook, or nbgrader metadata that this kit has no kind for.
    """
    import nbformat

    try:
        notebook = nbformat.reads(text, as_version=4)
        cells = [
            (cell.cell_type, json.loads(json.dumps(cell.metadata)), str(cell.source))
            for cell in notebook.cells
        ]
    except Exception as error:  # nbformat raises its own, json's and AttributeError
        raise BadSource(f"{file}: not a Jupyter notebook: {error}") from error
    return list(_tag(cells, file))


def _tag(cells: list[tuple[str, dict[str, Any], str]], file: str) -> Iterator[RawCell]:
    questions: list[str] = []
    for number, (kind, metadata, source) in enumerate(cells, start=1):
        place = Place(file, None, number)
        source = _NBGRADER_MARKER.sub(r"\1### \2 SOLUTION", source)
        known_tags = (*CODE_TAGS, "written", "points", "module")
        tags = {tag: metadata[tag] for tag in known_tags if tag in metadata}
        settings = metadata.get("nbgrader") or {}
        if not tags and kind == "markdown":
            tags = _markdown_tags(settings, place)
            # nbgrader's students replace the whole cell
            if "written" in tags and not regions.has_region(source):
                source = f"{regions.BEGIN}\n{source}\n{regions.END}"
        elif not tags and kind == "code":
            if any(
                settings.get(setting) for setting in ("solution", "grade", "locked")
            ):
                tags = _code_tags(settings, questions, place)
            else:
                tags = _tags_of_plain_code(source, number)
        if isinstance(tags.get("question"), str):
            questions.append(tags["question"])
        yield RawCell(kind, tags, source, place)


def _markdown_tags(settings: dict[str, Any], place: Place) -> dict[str, Any]:
    if settings.get("task"):
        raise BadSource(
            f"{place}: nbgrader's task cells are not supported; make it a manually graded answer"
        )
    if not (settings.get("solution") and settings.get("grade")):
        return {}
    name = _grade_id(settings, place).removeprefix("written_")
    return {"written": name, "points": settings.get("points")}


def _code_tags(
    settings: dict[str, Any], questions: list[str], place: Place
) -> dict[str, Any]:
    name = _grade_id(settings, place)
    if settings.get("solution") and settings.get("grade"):
        raise BadSource(
            f"{place}: {name!r} is code graded by a person; make it an autograded answer with a "
            "hidden test, or a manually graded markdown cell"
        )
    if settings.get("solution"):
        return {"question": name}
    if settings.get("grade") or name.startswith("check_"):
        return {"check": _checked_question(name, questions, place)}
    return {"given": name.removeprefix("given_")}


def _checked_question(name: str, questions: list[str], place: Place) -> str:
    """The question of a test cell: by the cell's name, else the question above."""
    bare = re.sub(r"^(check|test)_", "", name)
    for candidate in (bare, re.sub(r"_?\d+$", "", bare)):
        if candidate in questions:
            return candidate
    if not questions:
        raise BadSource(f"{place}: test cell {name!r} stands before every question")
    return questions[-1]


def _grade_id(settings: dict[str, Any], place: Place) -> str:
    name = settings.get("grade_id")
    if not isinstance(name, str) or not name.isidentifier():
        raise BadSource(
            f"{place}: the grade_id {name!r} is not a name; give the cell an ID that is a Python "
            "identifier, for a question its function's name"
        )
    return name


def _tags_of_plain_code(source: str, number: int) -> dict[str, Any]:
    """Tag a code cell without nbgrader metadata: definitions and imports are given, else a demo."""
    if not source.strip():
        return {}
    try:
        body = ast.parse(strip_magics(source)[0]).body
    except SyntaxError:
        return {"demo": f"cell_{number}"}
    defines = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Pass)
    only_defines = all(isinstance(node, defines) for node in body)
    return {"given" if only_defines else "demo": f"cell_{number}"}

"""Read an `.ipynb` source that was written in Jupyter: nbgrader's metadata becomes the tags of a
text source.
"""

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


def read_jupyter(text: str, shown: str) -> list[RawCell]:
    """The cells of an `.ipynb`, with tags. `shown` is the file's name in messages.

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
        raise BadSource(f"{shown}: not a Jupyter notebook: {error}") from error
    return list(_tagged(cells, shown))


def _tagged(cells: list[tuple[str, dict[str, Any], str]], shown: str) -> Iterator[RawCell]:
    questions: list[str] = []
    for number, (kind, metadata, source) in enumerate(cells, start=1):
        place = Place(shown, None, number)
        source = _NBGRADER_MARKER.sub(r"\1### \2 SOLUTION", source)
        own = {tag: metadata[tag] for tag in (*CODE_TAGS, "written", "points") if tag in metadata}
        marks = metadata.get("nbgrader")
        if own or kind == "raw":
            tags = own
        elif kind == "markdown":
            tags = _markdown_tags(marks or {}, place)
            # nbgrader: the whole cell is the answer
            if "written" in tags and not regions.has_region(source):
                source = f"{regions.BEGIN}\n{source}\n{regions.END}"
        elif marks and (marks.get("solution") or marks.get("grade") or marks.get("locked")):
            tags = _code_tags(marks, questions, place)
        else:
            tags = _untagged(source, number)
        if isinstance(tags.get("question"), str):
            questions.append(tags["question"])
        yield RawCell(kind, tags, source, place)


def _markdown_tags(marks: dict[str, Any], place: Place) -> dict[str, Any]:
    if marks.get("task"):
        raise BadSource(
            f"{place}: nbgrader's task cells are not supported; make it a manually graded answer"
        )
    if not (marks.get("solution") and marks.get("grade")):
        return {}
    return {
        "written": _grade_id(marks, place).removeprefix("written_"),
        "points": marks.get("points"),
    }


def _code_tags(marks: dict[str, Any], questions: list[str], place: Place) -> dict[str, Any]:
    name = _grade_id(marks, place)
    solution, grade = bool(marks.get("solution")), bool(marks.get("grade"))
    if solution and grade:
        raise BadSource(
            f"{place}: {name!r} is code graded by a person; make it an autograded answer with a "
            "hidden test, "
            "or a manually graded markdown cell"
        )
    if solution:
        return {"question": name}
    if grade or name.startswith("check_"):
        return {"check": _checked_question(name, questions, place)}
    return {"given": name.removeprefix("given_")}


def _checked_question(name: str, questions: list[str], place: Place) -> str:
    """The question that a test cell belongs to: the one it is named after, else the one above
    it.
    """
    bare = re.sub(r"^(check|test)_", "", name)
    for candidate in (bare, re.sub(r"_?\d+$", "", bare)):
        if candidate in questions:
            return candidate
    if not questions:
        raise BadSource(f"{place}: test cell {name!r} stands before every question")
    return questions[-1]


def _grade_id(marks: dict[str, Any], place: Place) -> str:
    name = marks.get("grade_id")
    if not isinstance(name, str) or not name.isidentifier():
        raise BadSource(
            f"{place}: the grade_id {name!r} is not a name; give the cell an ID that is a Python "
            "identifier, "
            "for a question its function's name"
        )
    return name


def _untagged(source: str, number: int) -> dict[str, Any]:
    """A code cell without nbgrader metadata: given where it only imports and defines, a demo
    otherwise.
    """
    if not source.strip():
        return {}
    try:
        body = ast.parse(strip_magics(source)[0]).body
    except SyntaxError:
        return {"demo": f"cell_{number}"}
    defines = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Pass)
    only_defines = all(isinstance(node, defines) for node in body)
    return {"given" if only_defines else "demo": f"cell_{number}"}

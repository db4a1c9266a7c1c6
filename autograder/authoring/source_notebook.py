"""Read a source notebook, as text or as `.ipynb`, and refuse sources that cannot be built.

Both forms become `RawCell`s with the same tags (docs/authoring.md lists them), and pass the same
checks.
"""

from __future__ import annotations

import ast
import json
import keyword
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from autograder.authoring import regions
from autograder.authoring.jupyter import read_jupyter
from autograder.authoring.raw_cells import CODE_TAGS, Kind, Place, RawCell
from autograder.basics.errors import BadSource
from autograder.course import ASSIGNMENT_NAME, Assignment
from autograder.intake.magics import strip_magics

SHIPPED_ROOMS = ("autograder.student_tools", "autograder.kernels")
"""Rooms of the kit from which a given cell may import: `companions.py` ships their modules."""

_LONGEST_NAME = (
    50  # with the kind in front it is a cell id, which has at most 64 characters
)
_JUPYTEXT_OWN = (
    "lines_to_next_cell",
    "lines_to_end_of_cell_marker",
    "cell_marker",
    "comment_questions",
)


@dataclass(frozen=True, slots=True)
class SourceCell:
    """One cell of a source notebook.

    Attributes:
        name: the question's name for a question and its checks; the cell's own for other cells; ""
            for text.
        source: the cell as written, solution markers included.
        place: for messages: "source/a/a.py:12".
        points: of a written answer; 0 for other cells: points of questions stand in the suite.
        scheme: the marking guide of a written answer, which students never get.
        module: the end of the name of the module that `build` makes of a given cell, or "".
    """

    kind: Kind
    name: str
    source: str
    place: str
    points: float = 0.0
    scheme: str = ""
    module: str = ""

    @property
    def is_code(self) -> bool:
        """Whether it is a code cell."""
        return self.kind in CODE_TAGS


@dataclass(frozen=True, slots=True)
class SourceNotebook:
    """A source notebook that can be built."""

    assignment: str
    cells: tuple[SourceCell, ...]

    def of_kind(self, kind: Kind) -> tuple[SourceCell, ...]:
        """The notebook's cells of one kind, in order."""
        return tuple(cell for cell in self.cells if cell.kind == kind)

    @property
    def questions(self) -> tuple[str, ...]:
        """The names of the questions, in order."""
        return tuple(cell.name for cell in self.of_kind("question"))


def read_source(assignment: Assignment) -> SourceNotebook:
    """Read the source notebook of `assignment`.

    Raises:
        BadSource: names the file, the line or cell, and what to do.
    """
    path = assignment.source
    file = path.relative_to(assignment.root).as_posix()
    if not ASSIGNMENT_NAME.fullmatch(assignment.name):
        raise BadSource(
            f"{file}: an assignment cannot be called {assignment.name!r}: rename folder and "
            "file, with letters, digits, _, - and . only"
        )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadSource(f"{file}: cannot be read: {error}") from error
    read = read_jupyter if path.suffix == ".ipynb" else read_percent
    filled = [cell for cell in read(text, file) if cell.source.strip() or cell.tags]
    cells = tuple(map(_check, filled))
    _check_names(cells, file)
    return SourceNotebook(assignment.name, cells)


def read_percent(text: str, file: str) -> list[RawCell]:
    """Read the cells of a notebook in jupytext's percent format.

    Args:
        file: the file's name in messages.
    """
    import jupytext  # takes half a second, and only building needs it

    try:
        notebook = jupytext.reads(text, fmt="py:percent")
    except Exception as error:  # jupytext's parser raises anything at a broken file
        raise BadSource(
            f"{file}: not a notebook in jupytext's percent format: {error}"
        ) from error
    lines = _marker_lines(text, len(notebook.cells))
    cells = []
    for number, (cell, line) in enumerate(
        zip(notebook.cells, lines, strict=True), start=1
    ):
        tags = {
            key: value
            for key, value in cell.metadata.items()
            if key not in _JUPYTEXT_OWN
        }
        cells.append(
            RawCell(cell.cell_type, tags, cell.source, Place(file, line, number))
        )
    return cells


def _marker_lines(text: str, cells: int) -> list[int] | list[None]:
    """The line of each `# %%`, or None for all.

    Lines are not known if a marker stands in a string, or text before the first marker.
    """
    lines = enumerate(text.split("\n"), start=1)
    markers = [number for number, line in lines if re.match(r"# ?%%", line)]
    return markers if len(markers) == cells else [None] * cells


def _check(cell: RawCell) -> SourceCell:
    kind, name = _kind_and_name(cell)
    points = _written_points(cell) if kind == "written" else 0.0
    source, scheme = cell.source, ""
    try:
        if kind == "written":
            source, scheme = regions.split_scheme(source)
        regions.check_regions(source)
    except regions.RegionError as error:
        raise BadSource(f"{cell.place.at(error.line)}: {error}") from error
    has_region = regions.has_region(source)
    if kind in ("question", "written") and not has_region:
        raise BadSource(
            f"{cell.place}: {kind} {name!r} has no solution region; put the answer between "
            f"{regions.BEGIN} and {regions.END}"
        )
    if kind not in ("question", "written") and has_region:
        raise BadSource(
            f"{cell.place}: a solution region in a {kind} cell; only questions and written "
            "answers have one"
        )
    if kind in CODE_TAGS:
        _check_code(cell, kind, name, source)
    module = _name(cell, "module") if "module" in cell.tags else ""
    return SourceCell(kind, name, source, str(cell.place), points, scheme, module)


def _kind_and_name(cell: RawCell) -> tuple[Kind, str]:
    code = cell.type == "code"
    allowed = (*CODE_TAGS, "module") if code else ("written", "points")
    if cell.type not in ("code", "markdown"):
        raise BadSource(
            f"{cell.place}: a {cell.type} cell; a source notebook has code and markdown cells"
        )
    for tag in cell.tags:
        if tag in ("written", *CODE_TAGS) and tag not in allowed:
            kind = "code" if code else "markdown"
            raise BadSource(
                f"{cell.place}: the tag {tag!r} does not belong on a {kind} cell"
            )
        if tag not in allowed:
            hint = (
                "; points of a question stand in its tests" if tag == "points" else ""
            )
            raise BadSource(
                f"{cell.place}: unknown tag {tag!r}; there are: "
                f"{', '.join((*CODE_TAGS, 'written'))}{hint}"
            )
    if not code:
        if "written" in cell.tags:
            return "written", _name(cell, "written")
        if "points" in cell.tags:
            raise BadSource(
                f'{cell.place}: points on plain text; a written answer is tagged written="name"'
            )
        return "text", ""
    if not cell.tags:
        raise BadSource(
            f"{cell.place}: a code cell without a tag; it carries exactly one of "
            f"{', '.join(CODE_TAGS)}"
        )
    kinds = [tag for tag in cell.tags if tag != "module"]
    if len(kinds) > 1:
        raise BadSource(
            f"{cell.place}: two tags, {' and '.join(kinds)}; a code cell carries exactly one"
        )
    if kinds != ["given"] and "module" in cell.tags:
        raise BadSource(f'{cell.place}: only a given cell has module="name"')
    (kind,) = (tag for tag in CODE_TAGS if tag in kinds)
    return kind, _name(cell, kind)


def _name(cell: RawCell, tag: str) -> str:
    name = cell.tags[tag]
    if (
        not isinstance(name, str)
        or not name.isidentifier()
        or not name.isascii()
        or keyword.iskeyword(name)
    ):
        raise BadSource(
            f"{cell.place}: {tag}={name!r} is not a name; write a Python identifier, "
            f'{tag}="softmax"'
        )
    if len(name) > _LONGEST_NAME:
        raise BadSource(
            f"{cell.place}: the name {name!r} is longer than {_LONGEST_NAME} characters"
        )
    return name


def _written_points(cell: RawCell) -> float:
    name, points = cell.tags["written"], cell.tags.get("points")
    if points is None:
        raise BadSource(
            f'{cell.place}: written answer {name!r} has no points; write written="{name}" points=5'
        )
    if (
        isinstance(points, bool)
        or not isinstance(points, (int, float))
        or not 0 < points < float("inf")
    ):
        raise BadSource(
            f"{cell.place}: points={points!r} of written answer {name!r} is not a number above 0"
        )
    return float(points)


def _check_code(cell: RawCell, kind: Kind, name: str, source: str) -> None:
    forms = [source]
    if kind == "question":
        forms.append(regions.replace_answers(source, regions.question_stub(name)))
    for form in forms:
        try:
            tree = ast.parse(strip_magics(form)[0])
        except SyntaxError as error:
            place = cell.place.at((error.lineno or 1) - 1)
            raise BadSource(
                f"{place}: {kind} {name!r} is not valid Python: {error.msg}"
            ) from error
        for module in imported_modules(tree):
            is_shipped = kind == "given" and module.rpartition(".")[0] in SHIPPED_ROOMS
            if module.split(".")[0] == "autograder" and not is_shipped:
                raise BadSource(
                    f"{cell.place}: {kind} {name!r} imports autograder, which students do not "
                    "have; only a given cell may import from it, and only modules of "
                    f"{' and '.join(SHIPPED_ROOMS)}"
                )


def imported_modules(tree: ast.Module) -> Iterable[str]:
    """Full names of all modules that the code imports, in functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def imported_libraries(notebook: bytes, companions: Mapping[str, str]) -> list[str]:
    """The libraries that a built notebook and its companions import, but Triton: notebooks also
    run without it.
    """
    cells = json.loads(notebook)["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    roots: set[str] = set()
    for text in (*texts, *companions.values()):
        tree = ast.parse(strip_magics(text)[0])
        roots |= {name.partition(".")[0] for name in imported_modules(tree)}
    own = {Path(path).parts[0].removesuffix(".py") for path in companions}
    return sorted(roots - own - sys.stdlib_module_names - {"", "triton"})


def _check_names(cells: tuple[SourceCell, ...], file: str) -> None:
    seen: dict[tuple[str, str], str] = {}
    for cell in cells:
        if cell.kind in ("question", "given", "demo", "predict", "written"):
            if (cell.kind, cell.name) in seen:
                first = seen[cell.kind, cell.name]
                raise BadSource(
                    f"{cell.place}: a second {cell.kind} named {cell.name!r}; the first "
                    f"is at {first}"
                )
            seen[cell.kind, cell.name] = cell.place
        elif cell.kind == "check" and ("question", cell.name) not in seen:
            questions = [
                question.name for question in cells if question.kind == "question"
            ]
            is_early = cell.name in questions
            problem = (
                "stands before its question"
                if is_early
                else "has no question of that name"
            )
            raise BadSource(f"{cell.place}: check {cell.name!r} {problem}")
    if not any(cell.kind == "question" for cell in cells):
        raise BadSource(
            f'{file}: no question; a notebook has at least one cell tagged question="name"'
        )

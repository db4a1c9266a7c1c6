"""Read a source notebook, as text or as `.ipynb`, into records, and refuse what cannot be built.

Both forms become `RawCell`s with the same tags (docs/authoring.md lists them); the checks are the
same for both.
"""

from __future__ import annotations

import ast
import json
import keyword
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from autograder.authoring import regions
from autograder.authoring.jupyter import read_jupyter
from autograder.authoring.raw_cells import CODE_TAGS, Kind, Place, RawCell
from autograder.basics.errors import BadSource
from autograder.course import ASSIGNMENT_NAME, Assignment
from autograder.intake.magics import strip_magics

EXPECT_IMPORT = "from autograder.student_tools.expect import expect"
INCLUDED = {
    EXPECT_IMPORT: "student_tools/expect.py",
    "from autograder.student_tools.no_triton import NoTriton, kernels_run": (
        "student_tools/no_triton.py"
    ),
    "from autograder.kernels.strict_triton import trace": "kernels/strict_triton.py",
}
"""Imports of a given cell that `build` replaces by the text of our file, so that a notebook stands
alone.
"""

_LONGEST_NAME = 50  # with the kind in front it is a cell id, which has at most 64 characters
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
        kind: what the cell is for.
        name: the question's name for a question and its checks; the cell's own otherwise; "" for
            text.
        source: the cell as written, solution markers included.
        place: where it stands, for messages: "source/a/a.py:12".
        points: what a written answer is worth; 0 for all others, whose points stand in the suite.
        scheme: the marking guide of a written answer, which students never get.
    """

    kind: Kind
    name: str
    source: str
    place: str
    points: float = 0.0
    scheme: str = ""

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
        """Its cells of one kind, in their order."""
        return tuple(cell for cell in self.cells if cell.kind == kind)

    @property
    def questions(self) -> tuple[str, ...]:
        """The names of the questions, in the order in which they stand."""
        return tuple(cell.name for cell in self.of_kind("question"))


def read_source(assignment: Assignment) -> SourceNotebook:
    """Read the source notebook of `assignment`.

    Raises:
        BadSource: names the file, the line or cell, and what to do.
    """
    path = assignment.source
    shown = path.relative_to(assignment.root).as_posix()
    if not ASSIGNMENT_NAME.fullmatch(assignment.name):
        raise BadSource(
            f"{shown}: an assignment cannot be called {assignment.name!r}: rename folder and "
            "file, with letters, "
            "digits, _, - and . only"
        )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadSource(f"{shown}: cannot be read: {error}") from error
    if path.suffix == ".ipynb":
        raw = read_jupyter(text, shown)
    else:
        raw = read_percent(text, shown)
    cells = tuple(_record(cell) for cell in raw if cell.source.strip() or cell.tags)
    _check_names(cells, shown)
    return SourceNotebook(assignment.name, cells)


def read_percent(text: str, shown: str) -> list[RawCell]:
    """The cells of a notebook in jupytext's percent format. `shown` is the file's name in
    messages.
    """
    import jupytext  # takes half a second, and only building needs it

    try:
        notebook = jupytext.reads(text, fmt="py:percent")
    except Exception as error:  # whatever jupytext's parser makes of a broken file
        raise BadSource(f"{shown}: not a notebook in jupytext's percent format: {error}") from error
    lines = _marker_lines(text, len(notebook.cells))
    return [
        RawCell(
            cell.cell_type,
            {key: value for key, value in cell.metadata.items() if key not in _JUPYTEXT_OWN},
            cell.source,
            Place(shown, line, number),
        )
        for number, (cell, line) in enumerate(zip(notebook.cells, lines, strict=True), start=1)
    ]


def _marker_lines(text: str, cells: int) -> list[int] | list[None]:
    """The line of each `# %%`; none where they cannot be told (a marker inside a string, text
    before the first).
    """
    found = [
        number for number, line in enumerate(text.split("\n"), start=1) if re.match(r"# ?%%", line)
    ]
    return found if len(found) == cells else [None] * cells


def _record(cell: RawCell) -> SourceCell:
    kind, name = _kind_and_name(cell)
    points = _written_points(cell) if kind == "written" else 0.0
    source, scheme = cell.source, ""
    try:
        if kind == "written":
            source, scheme = regions.without_scheme(source)
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
        what = "text cell" if kind == "text" else f"{kind} cell"
        raise BadSource(
            f"{cell.place}: a solution region in a {what}; only questions and written "
            "answers have one"
        )
    if kind in CODE_TAGS:
        source = _with_included(source) if kind == "given" else source
        _check_code(cell, kind, name, source)
    return SourceCell(kind, name, source, str(cell.place), points, scheme)


def _kind_and_name(cell: RawCell) -> tuple[Kind, str]:
    code = cell.type == "code"
    allowed = CODE_TAGS if code else ("written", "points")
    if cell.type not in ("code", "markdown"):
        raise BadSource(
            f"{cell.place}: a {cell.type} cell; a source notebook has code and markdown cells"
        )
    for tag in cell.tags:
        if tag in ("written", *CODE_TAGS) and tag not in allowed:
            kind = "code" if code else "markdown"
            raise BadSource(f"{cell.place}: the tag {tag!r} does not belong on a {kind} cell")
        if tag not in allowed:
            hint = "; points of a question stand in its tests" if tag == "points" else ""
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
    if len(cell.tags) > 1:
        raise BadSource(
            f"{cell.place}: two tags, {' and '.join(cell.tags)}; a code cell carries exactly one"
        )
    (kind,) = (tag for tag in CODE_TAGS if tag in cell.tags)
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
            raise BadSource(f"{place}: {kind} {name!r} is not valid Python: {error.msg}") from error
        if any(module.split(".")[0] == "autograder" for module in imported_modules(tree)):
            raise BadSource(
                f"{cell.place}: {kind} {name!r} imports autograder, which students do not have; "
                "only a given cell "
                f"may say `{EXPECT_IMPORT}`"
            )


def imported_modules(tree: ast.Module) -> Iterable[str]:
    """Full names of the modules that the code imports, wherever in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def imported_libraries(notebook: bytes) -> list[str]:
    """The libraries that a built notebook imports. Triton is not among them: a notebook goes on
    where it is missing.
    """
    code = (
        "".join(cell["source"])
        for cell in json.loads(notebook)["cells"]
        if cell["cell_type"] == "code"
    )
    trees = (ast.parse(strip_magics(cell)[0]) for cell in code)
    roots = {name.partition(".")[0] for tree in trees for name in imported_modules(tree)}
    return sorted(roots - sys.stdlib_module_names - {"", "triton"})


def _with_included(source: str) -> str:
    """A given cell with the imports of ours replaced by what they import."""
    for statement, file in INCLUDED.items():
        lines = source.split("\n")
        places = [
            place for place, line in enumerate(lines) if line.split("#")[0].strip() == statement
        ]
        for place in places[:1]:
            depth = lines[place][: len(lines[place]) - len(lines[place].lstrip())]
            text = textwrap.indent(included_text(file), depth)
            parts = (
                "\n".join(lines[:place]).rstrip("\n"),
                text,
                "\n".join(lines[place + 1 :]).strip("\n"),
            )
            source = ("\n" if depth else "\n\n\n").join(part for part in parts if part)
    return source


def expect_text() -> str:
    """The source of `expect` as students read it."""
    return included_text(INCLUDED[EXPECT_IMPORT])


def included_text(file: str) -> str:
    """A file of the kit as students read it: without its docstring and our checker's comments, and
    after the files of ours that it imports.
    """
    return "\n\n\n".join(_included_parts(file, set()))


def _included_parts(file: str, seen: set[str]) -> Iterator[str]:
    text = (Path(__file__).parents[1] / file).read_text(encoding="utf-8")
    start = ast.parse(text).body[1].lineno - 1  # body[0] is the module's docstring
    lines = []
    for line in text.split("\n")[start:]:
        if ours := re.match(r"from autograder\.(\w+)\.(\w+) import ", line):
            other = f"{ours[1]}/{ours[2]}.py"
            if other not in seen:
                seen.add(other)
                yield from _included_parts(other, seen)
        else:
            lines.append(re.sub(r"\s+# type: ignore.*$", "", line))
    yield re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines)).strip("\n")


def _check_names(cells: tuple[SourceCell, ...], shown: str) -> None:
    seen: dict[tuple[str, str], str] = {}
    for cell in cells:
        if cell.kind in ("question", "given", "demo", "written"):
            if (cell.kind, cell.name) in seen:
                first = seen[cell.kind, cell.name]
                raise BadSource(
                    f"{cell.place}: a second {cell.kind} named {cell.name!r}; the first "
                    f"is at {first}"
                )
            seen[cell.kind, cell.name] = cell.place
        elif cell.kind == "check" and ("question", cell.name) not in seen:
            later = any(other.kind == "question" and other.name == cell.name for other in cells)
            problem = "stands before its question" if later else "has no question of that name"
            raise BadSource(f"{cell.place}: check {cell.name!r} {problem}")
    if not any(cell.kind == "question" for cell in cells):
        raise BadSource(
            f'{shown}: no question; a notebook has at least one cell tagged question="name"'
        )

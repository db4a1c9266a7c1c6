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
"""Imports of a given cell → the kit's file; `build` puts the file's text in place of the import,
so that a notebook needs no kit.
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
        name: the question's name for a question and its checks; the cell's own for other cells; ""
            for text.
        source: the cell as written, solution markers included.
        place: for messages: "source/a/a.py:12".
        points: of a written answer; 0 for other cells: points of questions stand in the suite.
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
        raise BadSource(f"{file}: not a notebook in jupytext's percent format: {error}") from error
    lines = _marker_lines(text, len(notebook.cells))
    cells = []
    for number, (cell, line) in enumerate(zip(notebook.cells, lines, strict=True), start=1):
        tags = {key: value for key, value in cell.metadata.items() if key not in _JUPYTEXT_OWN}
        cells.append(RawCell(cell.cell_type, tags, cell.source, Place(file, line, number)))
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
        if kind == "given":
            source = _include_kit_files(source)
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
        packages = {module.split(".")[0] for module in imported_modules(tree)}
        if "autograder" in packages:
            raise BadSource(
                f"{cell.place}: {kind} {name!r} imports autograder, which students do not have; "
                f"only a given cell may say `{EXPECT_IMPORT}`"
            )


def imported_modules(tree: ast.Module) -> Iterable[str]:
    """Full names of all modules that the code imports, in functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def imported_libraries(notebook: bytes) -> list[str]:
    """The libraries that a built notebook imports, but Triton: notebooks also run without it."""
    roots: set[str] = set()
    for cell in json.loads(notebook)["cells"]:
        if cell["cell_type"] == "code":
            tree = ast.parse(strip_magics("".join(cell["source"]))[0])
            roots |= {name.partition(".")[0] for name in imported_modules(tree)}
    return sorted(roots - sys.stdlib_module_names - {"", "triton"})


def _include_kit_files(source: str) -> str:
    """Replace a given cell's imports of the kit by the text of the imported files."""
    for statement, file in INCLUDED.items():
        lines = source.split("\n")
        statements = [line.split("#")[0].strip() for line in lines]
        if statement not in statements:
            continue
        index = statements.index(statement)
        indentation = lines[index].partition(statement)[0]
        parts = (
            "\n".join(lines[:index]).rstrip("\n"),
            textwrap.indent(included_text(file), indentation),
            "\n".join(lines[index + 1 :]).strip("\n"),
        )
        separator = "\n" if indentation else "\n\n\n"
        source = separator.join(part for part in parts if part)
    return source


def expect_text() -> str:
    """The source of `expect` as students read it."""
    return included_text(INCLUDED[EXPECT_IMPORT])


def included_text(file: str) -> str:
    """A file of the kit as students read it: after the files that it imports, and without
    docstring and type checker's comments.
    """
    return "\n\n\n".join(_included_parts(file, set()))


def _included_parts(file: str, seen: set[str]) -> Iterator[str]:
    text = (Path(__file__).parents[1] / file).read_text(encoding="utf-8")
    start = ast.parse(text).body[1].lineno - 1  # body[0] is the module's docstring
    lines = []
    for line in text.split("\n")[start:]:
        if kit_module := re.match(r"from autograder\.(\w+)\.(\w+) import ", line):
            imported = f"{kit_module[1]}/{kit_module[2]}.py"
            if imported not in seen:
                seen.add(imported)
                yield from _included_parts(imported, seen)
        else:
            lines.append(re.sub(r"\s+# type: ignore.*$", "", line))
    yield re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines)).strip("\n")


def _check_names(cells: tuple[SourceCell, ...], file: str) -> None:
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
            questions = [question.name for question in cells if question.kind == "question"]
            is_early = cell.name in questions
            problem = "stands before its question" if is_early else "has no question of that name"
            raise BadSource(f"{cell.place}: check {cell.name!r} {problem}")
    if not any(cell.kind == "question" for cell in cells):
        raise BadSource(
            f'{file}: no question; a notebook has at least one cell tagged question="name"'
        )

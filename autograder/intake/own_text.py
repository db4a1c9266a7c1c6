"""Text of a student's own in a notebook: lines of prose, comments and strings that stand nowhere in
the release.

An answer in words may stand in any cell: in a text cell, in a comment or a string of code, in
printed output, in a picture. Code is never parsed (see `cell_text.py`): comments and strings are
recognised by their first characters.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from autograder.intake.cell_text import squeeze
from autograder.intake.reading import NotebookCell
from autograder.intake.released_notebook import Release

LONG = 30
"""Characters of a text that is in the release by no chance."""
_MOST_LINES = 20_000
"""Lines of one cell that are searched in the release: far more than an honest cell has."""
_ROW = 4
"""So many words, one after the other, are a sentence."""

_START = re.compile(r"#|\"\"\"|'''|\"|'")
_END = {quote: re.compile(rf"\\.|{quote}", re.DOTALL) for quote in ('"""', "'''")}
_END |= {quote: re.compile(rf"\\.|{quote}|\n", re.DOTALL) for quote in ('"', "'")}
_IS_FORMATTED = re.compile(r"(?<!\w)(?:f|rf|fr)$", re.IGNORECASE)
_FIELD = re.compile(r"\{[^{}\n]*\}")
_TWO_NAMES = re.compile(r"(?<![\w.])([^\W\d]\w*)[ \t]+(?=([^\W\d]\w*))")
_SENTENCE_END = re.compile(r"(?<![\w.])[^\W\d]\w*[.!]\s*$")
_KEYWORDS = frozenset(keyword.kwlist) | {"match", "case", "type", "print"}
_FOREIGN_WORD = re.compile(r"[^\x00-\x7f]{4,}")
_ASKS = re.compile(r"(?<![\w.])(?<!def )input[ \t]*\(")
"""A prompt of `input()`: the text typed into it stands in no source."""
_CONTENT = re.compile(r"[^\W_]|[^\x00-\x7f]")
_CELL_MAGIC = re.compile(r"\s*%%(\w+)[^\n]*")
_PYTHON_MAGICS = frozenset(
    {"time", "timeit", "capture", "prun", "python", "python3", "px", "debug"}
)
_LINE_MAGIC = re.compile(r"^[ \t]*[%!][^\n]*$", re.MULTILINE)
_PREDICTION = re.compile(r"^predict\([^\n]*$", re.MULTILINE)
"""A student's prediction in a cell of the release: words, but no written answer."""
_TOOL = re.compile(
    r"[ \t]*[%!]+[ "
    r"\t]*(?:pip3?|conda|mamba|apt(?:-get)?|git|wget|curl|nvidia-smi|ls|pwd|cd|python3?)\b"
)


@dataclass(frozen=True, slots=True)
class OwnText:
    """The text in one cell that its student wrote.

    Attributes:
        place: the cell's place in the notebook, from 0.
        lines: the lines that stand nowhere in the release.
        files: names of the pictures and other files that are attached to the cell.
    """

    place: int
    lines: tuple[str, ...]
    files: tuple[str, ...] = ()


class StaffText:
    """Text of the course's staff, with which a student's text is compared: the release, and the
    code of the answer key.
    """

    def __init__(self, release: Release) -> None:
        released_code = [cell.source for cell in release.cells if cell.kind == "code"]
        lines = frozenset(release.squeezed_lines)
        for source in (*released_code, *release.key_code):
            lines |= frozenset(map(squeeze, lines_in_words(source)))
        self._lines = lines
        self._squeezed = "\n".join([release.squeezed, *map(squeeze, release.key_code)])
        self._cells = frozenset(cell.text.squeezed for cell in release.cells)
        self._pictures = release.pictures

    def has_cell(self, source: str) -> bool:
        """Whether a cell of the release says the same, wherever its lines are broken."""
        return squeeze(source) in self._cells

    def has_picture(self, cell: NotebookCell, name: str) -> bool:
        """Whether an attached picture is one of the release's."""
        return self._pictures.issuperset(cell.attachments[name].values())

    def has_line(self, line: str, *, as_part: bool) -> bool:
        """Whether staff wrote a line; with `as_part`, whether the line stands within any text of
        staff.

        In a cell of the student's own one word may be the answer, and "relu" stands in every
        release. In a question's cell such strings are names of weights and dtypes.
        """
        text = squeeze(line)
        if text in self._lines:
            return True
        return (as_part or len(text) >= LONG) and text in self._squeezed


@lru_cache(maxsize=8)
def load_staff_text(release: Release) -> StaffText:
    """The staff's text of an assignment, made once for a class."""
    return StaffText(release)


def find_own_text(
    place: int,
    cell: NotebookCell,
    staff: StaffText,
    *,
    is_released: bool,
) -> OwnText:
    """The text in a cell that the student wrote.

    Args:
        is_released: the cell stands for a cell of the release, changed or not.
    """
    files = find_own_files(cell, staff)
    if cell.of_the_tool or staff.has_cell(cell.source):
        return OwnText(place, (), files)
    is_code = cell.kind == "code"
    lines = lines_in_words(cell.source) if is_code else cell.source.split("\n")
    if not is_released:
        lines += [line for line in cell.printed.split("\n") if has_words_in_a_row(line)]
    different = list(dict.fromkeys(line.strip() for line in lines if squeeze(line)))
    if len(different) <= _MOST_LINES:
        as_part = is_released and is_code
        different = [
            line for line in different if not staff.has_line(line, as_part=as_part)
        ]
    return OwnText(place, tuple(different), files)


def find_own_files(cell: NotebookCell, staff: StaffText) -> tuple[str, ...]:
    """Names of the pictures and other files that the student attached to the cell."""
    pictures = [name for name in cell.attachments if not staff.has_picture(cell, name)]
    return (*pictures, *cell.other_files)


def lines_in_words(source: str) -> list[str]:
    """The lines of a code cell's comments and strings, and lines that are no code at all."""
    if (magic := _CELL_MAGIC.match(source)) is not None:
        source = source[magic.end() :]
        if magic[1] not in _PYTHON_MAGICS:
            return _drop_empty(source.split("\n"))
    source = _PREDICTION.sub("", source)
    commands = [line[0] for line in _LINE_MAGIC.finditer(source)]
    lines = [
        line for line in commands if not _TOOL.match(line) and _is_shell_or_words(line)
    ]
    code: list[str] = []
    for is_code, piece in _split_code(_LINE_MAGIC.sub("", source)):
        if is_code:
            code.append(piece)
        else:
            lines += piece.split("\n")
    lines += filter(_is_no_code, '""'.join(code).split("\n"))
    return _drop_empty(lines)


def _is_shell_or_words(command: str) -> bool:
    return command.lstrip().startswith("!") or has_words_in_a_row(command)


def _drop_empty(lines: Iterable[str]) -> list[str]:
    return [line for line in lines if _CONTENT.search(line)]


def _split_code(source: str) -> Iterator[tuple[bool, str]]:
    """The code (True), comments and strings (False) of a cell, in their order and without their
    marks.
    """
    position = 0
    while (start := _START.search(source, position)) is not None:
        code = source[position : start.start()]
        yield True, code
        if start[0] == "#":
            line_end = source.find("\n", start.end())
            position = len(source) if line_end < 0 else line_end
            yield False, source[start.end() : position]
            continue
        ends = _END[start[0]].finditer(source, start.end())
        end = next((match for match in ends if match[0][0] != "\\"), None)
        text_end = end.start() if end else len(source)
        text = source[start.end() : text_end]
        if _IS_FORMATTED.search(code[-3:]):
            text = _FIELD.sub("", text)
        yield False, text
        # A string that is not closed ends with its line.
        position = end.end() if end and end[0] != "\n" else text_end
    yield True, source[position:]


def _is_no_code(line: str) -> bool:
    """Whether a line without its comments and strings is no Python: two names beside each other, or
    a name with a full stop behind it, as in a sentence.
    """
    for pair in _TWO_NAMES.finditer(line):
        if _KEYWORDS.isdisjoint(pair.groups()):
            return True
    return bool(
        _SENTENCE_END.search(line) or _FOREIGN_WORD.search(line) or _ASKS.search(line)
    )


def has_words_in_a_row(line: str) -> bool:
    """Whether a line has a few words one after the other, as a sentence has."""
    run = 0
    for word in line.split():
        run = run + 1 if word.strip("#\"'.,;:!?()").isalpha() else 0
        if run == _ROW:
            return True
    return False

"""Analyse code without parsing it: how alike two cells are, and what a student added to a cell.

A student's cell may not parse, and a hostile cell may crash Python's parser. So this module reads
lines, and the words in the first column.
"""

from __future__ import annotations

import re
from functools import cached_property

from autograder.basics.definitions import (
    ASSIGNMENT,
    DEFINITION,
    defined_functions,
    defined_names,
)

_IMPORT = re.compile(r"^(?:import|from)[ \t]+[\w.]")
_STUB = re.compile(r"^[ \t]+raise[ \t]+NotImplementedError\b.*$", re.MULTILINE)


def squeeze(text: str) -> str:
    """The text without any space: editors break lines anew."""
    return "".join(text.split())


def describe_cell(number: int, source: str) -> str:
    """A cell of a notebook, counted from 0, by number and first line: Jupyter shows no numbers."""
    first = next((line.strip() for line in source.split("\n") if line.strip()), "")
    if len(first) > 40:
        first = first[:37] + "..."
    return f"cell {number + 1} ({first})"


class CellText:
    """A cell's text, analysed once: a hostile notebook has thousands of cells, each compared with
    many.
    """

    def __init__(self, source: str) -> None:
        self.source = source

    @cached_property
    def plain(self) -> str:
        """The text without blank lines and spaces at the ends of lines, which an editor may
        change.
        """
        return "\n".join(
            line.rstrip() for line in self.source.split("\n") if line.strip()
        )

    @cached_property
    def lines(self) -> frozenset[str]:
        """The lines of code, without comments and indentation."""
        stripped = [line.strip() for line in self.source.split("\n")]
        return frozenset(line for line in stripped if line and not line.startswith("#"))

    @cached_property
    def squeezed(self) -> str:
        """The text without any space."""
        return squeeze(self.source)

    @cached_property
    def squeezed_lines(self) -> frozenset[str]:
        """The lines without any space, and without blank lines."""
        return frozenset(filter(None, map(squeeze, self.source.split("\n"))))

    @cached_property
    def functions(self) -> frozenset[str]:
        """Functions and classes that the cell defines."""
        return defined_functions(self.source)

    @cached_property
    def names(self) -> frozenset[str]:
        """Functions, classes and variables that the cell defines."""
        return defined_names(self.source)

    @cached_property
    def stub_lines(self) -> frozenset[str]:
        """The lines that raise NotImplementedError: an answer is yet to be written."""
        return frozenset(line.strip() for line in _STUB.findall(self.source))

    def share_kept_in(self, other: CellText) -> float:
        """The share of the lines, 0 to 1, that stand in another text too."""
        if not self.lines:
            return 0.0
        return len(self.lines & other.lines) / len(self.lines)

    def is_unfinished(self, stub: CellText) -> bool:
        """Whether the text is the untouched stub, or still has the line that the stub raises."""
        return self.plain == stub.plain or not self.stub_lines.isdisjoint(
            stub.stub_lines
        )


def extract_additions(
    source: str,
    original: str,
    assignments: bool,
) -> str:
    """A student's additions to a locked cell: new imports and definitions, all else blank lines.

    Line numbers stay. "" where the student added nothing of the kind.

    Args:
        assignments: whether new variables are additions too.
    """
    lines = source.split("\n")
    original_names = defined_names(original)
    original_lines = {line.rstrip() for line in original.split("\n")}
    kept_lines = [""] * len(lines)
    for block in _split_blocks(lines):
        head = next(
            (lines[number] for number in block if not lines[number].startswith("@")), ""
        )
        definition = DEFINITION.match(head)
        if definition is None and assignments:
            definition = ASSIGNMENT.match(head)
        if definition is not None:
            is_new = definition[1] not in original_names
        else:
            is_new = bool(_IMPORT.match(head)) and head.rstrip() not in original_lines
        if is_new:
            for number in block:
                kept_lines[number] = lines[number]
    return "\n".join(kept_lines) if any(kept_lines) else ""


def _split_blocks(lines: list[str]) -> list[list[int]]:
    """Line numbers of each statement in the first column with its body and its decorators."""
    blocks: list[list[int]] = []
    is_decorated = False
    for number, line in enumerate(lines):
        if line[:1] not in ("", " ", "\t", "#", ")", "]", "}"):
            if not is_decorated:
                blocks.append([])
            is_decorated = line.startswith("@")
        if blocks:
            blocks[-1].append(number)
    return blocks

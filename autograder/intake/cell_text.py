"""Looking at code without parsing it: how alike two cells are, and what was added to one.

A student's cell may not parse, and a hostile one may crash Python's parser. So everything here goes
by lines and by what stands in the first column.
"""

from __future__ import annotations

import re
from functools import cached_property

from autograder.basics.definitions import ASSIGNMENT, DEFINITION, defined_functions, defined_names

_IMPORT = re.compile(r"^(?:import|from)[ \t]+[\w.]")
_COMMENT = re.compile(r"^[ \t]*#")
_STUB = re.compile(r"^[ \t]+raise[ \t]+NotImplementedError\b.*$", re.MULTILINE)


def squeeze(text: str) -> str:
    """The text without any space: editors break lines anew."""
    return "".join(text.split())


def describe_cell(number: int, source: str) -> str:
    """A cell of a notebook, counted from 0, for somebody who looks at it: Jupyter shows no
    numbers.
    """
    first = next((line.strip() for line in source.split("\n") if line.strip()), "")
    return f"cell {number + 1} ({first[:37] + '...' if len(first) > 40 else first})"


class CellText:
    """A cell's text, looked at once: a hostile notebook has thousands of cells, each compared with
    many.
    """

    def __init__(self, source: str) -> None:
        self.source = source

    @cached_property
    def plain(self) -> str:
        """The text without what an editor may change: blank lines and spaces at the ends of
        lines.
        """
        return "\n".join(line.rstrip() for line in self.source.split("\n") if line.strip())

    @cached_property
    def lines(self) -> frozenset[str]:
        """The lines that say something, without their indentation."""
        return frozenset(
            line.strip()
            for line in self.source.split("\n")
            if line.strip() and not _COMMENT.match(line)
        )

    @cached_property
    def squeezed(self) -> str:
        """As `squeezed`."""
        return squeeze(self.source)

    @cached_property
    def squeezed_lines(self) -> frozenset[str]:
        """The lines that say something, each `squeezed`."""
        return frozenset(line for line in map(squeeze, self.source.split("\n")) if line)

    @cached_property
    def functions(self) -> frozenset[str]:
        """As `defined_functions`."""
        return defined_functions(self.source)

    @cached_property
    def names(self) -> frozenset[str]:
        """As `defined_names`."""
        return defined_names(self.source)

    @cached_property
    def raised(self) -> frozenset[str]:
        """The lines that say that an answer is yet to be written."""
        return frozenset(line.strip() for line in _STUB.findall(self.source))

    def share_kept_in(self, other: CellText) -> float:
        """How much of this text stands in another: the share of its lines, 0 to 1."""
        return len(self.lines & other.lines) / len(self.lines) if self.lines else 0.0

    def is_unfinished(self, stub: CellText) -> bool:
        """It is the untouched stub, or still raises what the stub raises."""
        return self.plain == stub.plain or bool(self.raised & stub.raised)


def extract_additions(source: str, original: str, assignments: bool) -> str:
    """What a student added to a locked cell: new imports and definitions (and variables), all else
    blank lines.

    Line numbers stay. "" where nothing of the kind was added.
    """
    lines, known = source.split("\n"), defined_names(original)
    old_lines = {line.rstrip() for line in original.split("\n")}
    kept = [""] * len(lines)
    for block in _blocks(lines):
        head = next((lines[i] for i in block if not lines[i].startswith("@")), "")
        defined = DEFINITION.match(head) or (ASSIGNMENT.match(head) if assignments else None)
        new = (
            defined[1] not in known
            if defined
            else bool(_IMPORT.match(head)) and head.rstrip() not in old_lines
        )
        for i in block if new else ():
            kept[i] = lines[i]
    return "\n".join(kept) if any(kept) else ""


def _blocks(lines: list[str]) -> list[list[int]]:
    """Line numbers of each statement in the first column with what hangs below it, decorators
    included.
    """
    blocks: list[list[int]] = []
    decorated = False
    for number, line in enumerate(lines):
        starts = line[:1] not in ("", " ", "\t", "#", ")", "]", "}")
        if starts and not decorated:
            blocks.append([])
        if starts:
            decorated = line.startswith("@")
        if blocks:
            blocks[-1].append(number)
    return blocks

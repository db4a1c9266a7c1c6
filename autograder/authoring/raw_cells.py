"""Cells of a source notebook as a reader finds them in the file, before any check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["question", "check", "given", "demo", "predict", "text", "written"]

CODE_TAGS: tuple[Kind, ...] = ("question", "check", "given", "demo", "predict")


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a cell in its file: a line of a text source, or a cell of an `.ipynb`."""

    file: str
    line: int | None
    cell: int

    def __str__(self) -> str:
        return (
            f"{self.file}, cell {self.cell}"
            if self.line is None
            else f"{self.file}:{self.line}"
        )

    def at(self, index: int) -> str:
        """The place of the cell's line `index`, counted from 0."""
        if self.line is None:
            return f"{self.file}, cell {self.cell}, line {index + 1}"
        return f"{self.file}:{self.line + 1 + index}"


@dataclass(frozen=True, slots=True)
class RawCell:
    """A cell with its tags."""

    type: str
    tags: dict[str, Any]
    source: str
    place: Place

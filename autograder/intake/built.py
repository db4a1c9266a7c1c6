"""A built notebook, release or answer key, as JSON whose fields are of the right types."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.stored_json import decode_stored, stored_text


@dataclass(frozen=True, slots=True)
class KitTag:
    """What the kit notes in a cell's metadata."""

    role: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class NbgraderTag:
    """What nbgrader notes in a cell's metadata."""

    grade_id: str = ""
    grade: bool = False
    solution: bool = False
    locked: bool = False
    task: bool = False
    points: float = 0.0
    checksum: str = ""


@dataclass(frozen=True, slots=True)
class CellMetadata:
    """A cell's metadata."""

    attention_kit: KitTag = KitTag()
    nbgrader: NbgraderTag = NbgraderTag()


@dataclass(frozen=True, slots=True)
class BuiltCell:
    """A cell of a built notebook."""

    metadata: CellMetadata
    cell_type: str = ""
    source: str | list[str] = ""


@dataclass(frozen=True, slots=True)
class BuiltNotebook:
    """A built notebook, as far as the kit reads it."""

    cells: tuple[BuiltCell, ...]
    metadata: dict[str, Any] = field(default_factory=dict)


def load_built(path: Path) -> BuiltNotebook:
    """Raises: OSError, or ValueError where it is no built notebook; says where and why."""
    return decode_stored(stored_text(path), BuiltNotebook)


def read_built_json(path: Path) -> dict[str, Any]:
    """All of it, with whatever the kit does not read, each cell's source as one text. Raises: as `load_built`."""
    if not all(cell.cell_type for cell in load_built(path).cells):
        raise ValueError("a cell has no cell_type")
    notebook: dict[str, Any] = json.loads(stored_text(path))
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell.get("source", ""))
    return notebook

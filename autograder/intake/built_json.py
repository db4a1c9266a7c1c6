"""A built notebook as JSON: for the parts of the kit that change one, or read more than its cells'
roles.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.basics.stored_json import decode_stored


@dataclass(frozen=True, slots=True)
class _NbgraderMetadata:
    grade_id: str = ""
    points: int | float = 0


@dataclass(frozen=True, slots=True)
class _CellMetadata:
    attention_kit: dict[str, str] = field(default_factory=dict)
    nbgrader: _NbgraderMetadata = _NbgraderMetadata()


@dataclass(frozen=True, slots=True)
class _BuiltCell:
    cell_type: str
    metadata: _CellMetadata
    source: str | list[str] = ""


@dataclass(frozen=True, slots=True)
class _BuiltNotebook:
    """What the kit reads of a built notebook, with the types that a build writes."""

    cells: list[_BuiltCell]
    metadata: dict[str, Any] = field(default_factory=dict)


def read_built_json(path: Path) -> dict[str, Any]:
    """Read a built notebook, with all that the kit itself does not read; each cell's source is one
    text.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no built notebook; says why.
    """
    text = path.read_text(encoding="utf-8")
    decode_stored(text, _BuiltNotebook)
    notebook: dict[str, Any] = json.loads(text)
    notebook.setdefault("metadata", {})
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell.get("source", ""))
    return notebook

"""Companions of a built notebook: the Python files beside it, whose hashes its metadata has.

`build` writes them (`authoring/companions.py`); workers import their released text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autograder.basics.errors import BadSource

_KEY = "companions"
CARRIED_TITLE = "# @title Files of this notebook"
"""The first words of the text that writes a single file's other files (`release --for`)."""
CARRIED_END = "_path.write_bytes(zlib.decompress(base64.b64decode(_content)))\n\n"


def companion_metadata(companions: Mapping[str, str]) -> dict[str, Any]:
    """What a notebook's metadata says of its companions: path → hash of the text."""
    if not companions:
        return {}
    hashes = {path: _sha256(text) for path, text in sorted(companions.items())}
    return {"attention_kit": {_KEY: hashes}}


def without_carried_files(source: str) -> str:
    """The text of a cell without the files that the notebook carries in it (`release --for`)."""
    if not source.startswith(CARRIED_TITLE):
        return source
    return source.partition(CARRIED_END)[2] or source


def load_companions(notebook: Path) -> dict[str, str]:
    """The companions of a built notebook, path → text; none where its metadata names none.

    Raises:
        BadSource: a companion is missing or is another file than the one that was built.
    """
    companions = {}
    for path, sha256 in _hashes(notebook).items():
        file = notebook.parent / path
        remedy = f"run `autograder build {notebook.stem}`"
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise BadSource(f"{file} cannot be read ({error}): {remedy}") from error
        if _sha256(text) != sha256:
            raise BadSource(
                f"{file} is not the file that {notebook.name} was built with: {remedy}"
            )
        companions[path] = text
    return companions


def _hashes(notebook: Path) -> dict[str, str]:
    try:
        metadata = json.loads(notebook.read_bytes())["metadata"]
        hashes: dict[str, str] = metadata["attention_kit"][_KEY]
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
    ):  # a notebook that nbgrader alone has made
        return {}
    return hashes


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

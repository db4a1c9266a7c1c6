"""Mirrors `source/` in `build/nbgrader/`, which is nbgrader's source folder.

nbgrader wants an `.ipynb` for each assignment and releases every file beside it, so `source/`
itself, with the answers in text form, must not be nbgrader's source folder. The mirror has a small
stand-in notebook for an assignment in text form, which the build replaces when nbgrader reads it,
and a link to a folder with a Jupyter source.
"""

from __future__ import annotations

import filecmp
import json
import os
import shutil
from pathlib import Path

from autograder.course import Course
from autograder.course.folders import Folder
from autograder.intake.built_json import read_built_json

FOLDER = Path(Folder.BUILD.path) / "nbgrader"
_STAND_IN = "attention_kit_stand_in"
_SHIPPED = ("figures", "data")


def mirror(course: Course) -> None:
    """Bring the mirror up to date; quick where nothing changed."""
    top = course.root / FOLDER
    top.mkdir(parents=True, exist_ok=True)
    for entry in sorted(top.iterdir()):
        _adopt_or_remove(entry, course.sources / entry.name)
    for folder in sorted(course.sources.glob("[!._]*")):
        if (folder / f"{folder.name}.py").is_file():
            _stand_in(folder, top / folder.name)
        elif any(folder.glob("*.ipynb")):
            _link(folder, top / folder.name)


def _adopt_or_remove(entry: Path, source: Path) -> None:
    if entry.is_symlink():
        if not source.is_dir() or (source / f"{source.name}.py").is_file():
            entry.unlink()
    elif _is_stand_in(entry / f"{entry.name}.ipynb"):
        if not (source / f"{source.name}.py").is_file():
            shutil.rmtree(entry)
    elif entry.is_dir() and not source.exists() and any(entry.glob("*.ipynb")):
        shutil.move(entry, source)  # made with the formgrader's "add new assignment"


def _link(folder: Path, mirrored: Path) -> None:
    if not mirrored.exists():
        mirrored.symlink_to(
            os.path.relpath(folder, mirrored.parent), target_is_directory=True
        )


def _stand_in(folder: Path, mirrored: Path) -> None:
    mirrored.mkdir(exist_ok=True)
    notebook = mirrored / f"{folder.name}.ipynb"
    text = _stand_in_text(folder.name)
    if not notebook.is_file() or notebook.read_text(encoding="utf-8") != text:
        notebook.write_text(text, encoding="utf-8")
    for name in _SHIPPED:
        _copy_new(folder / name, mirrored / name)


def _copy_new(source: Path, target: Path) -> None:
    """Copy changed files, and remove files that the source no longer has."""
    names = {
        path.relative_to(source)
        for path in source.rglob("*")
        if path.is_file() and not path.is_symlink()
    }
    for path in sorted(target.rglob("*")):
        if path.is_file() and path.relative_to(target) not in names:
            path.unlink()
    for name in sorted(names):
        old, new = target / name, source / name
        if not old.is_file() or not filecmp.cmp(old, new):
            old.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(new, old)


def _stand_in_text(name: str) -> str:
    text = [
        f"This notebook stands in for `source/{name}/{name}.py`, which is the source of this "
        "assignment.\n",
        "Edit that file; `nbgrader generate_assignment` builds the release from it.",
    ]
    cell = {"cell_type": "markdown", "id": "stand-in", "metadata": {}, "source": text}
    notebook = {
        "cells": [cell],
        "metadata": {_STAND_IN: True},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=1) + "\n"


def _is_stand_in(notebook: Path) -> bool:
    try:
        return bool(read_built_json(notebook)["metadata"].get(_STAND_IN))
    except (OSError, ValueError):
        return False

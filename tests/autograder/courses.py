"""Courses of one assignment for tests: written, built, and handed in."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from autograder.authoring.build_commands import build_command
from autograder.course import Course, load_course

HIDDEN_INI = Path(__file__).resolve().parents[1] / "hidden" / "pytest.ini"


def write_assignment(
    root: Path, name: str, source: str, suite: Mapping[str, str], settings: str
) -> None:
    """Write source and hidden suite of an assignment, the kit's own pytest.ini for suites, and a
    course.toml, in which an assignment may have any number of points.
    """
    (root / "source" / name).mkdir(parents=True)
    (root / "source" / name / f"{name}.py").write_text(source, encoding="utf-8")
    folder = root / "tests" / "hidden" / name
    folder.mkdir(parents=True)
    (folder.parent / "pytest.ini").write_text(
        HIDDEN_INI.read_text(encoding="utf-8"), encoding="utf-8"
    )
    for file, text in suite.items():
        (folder / file).write_text(text, encoding="utf-8")
    (root / "course.toml").write_text(
        f"{settings}\n[totals]\nassignment_points = 0\n", encoding="utf-8"
    )


def built_course(root: Path, write: Callable[[Path], None]) -> Course:
    """The course that `write` writes into a folder, built."""
    write(root)
    course = load_course(root)
    build_command(course, [], check=False)
    return course


def handed_in(cells: Mapping[str, str], extra: Sequence[str] = ()) -> str:
    """A handed-in notebook: question cells by name, then extra code cells."""
    made: list[dict[str, Any]] = []
    for name, source in cells.items():
        meta = {
            "attention_kit": {"role": "question", "name": name},
            "nbgrader": {
                "grade_id": name,
                "solution": True,
                "grade": False,
                "locked": False,
            },
        }
        made.append(_cell(source, meta))
    made += [_cell(source, {}) for source in extra]
    return json.dumps(
        {"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    )


def _cell(source: str, metadata: dict[str, Any]) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": metadata,
        "outputs": [],
        "source": source,
    }


def on_stderr(line: str) -> None:
    """What the command line does with a line beside what was asked for."""
    print(line, file=sys.stderr)

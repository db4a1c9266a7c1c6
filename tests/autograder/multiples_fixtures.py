"""A course with the assignment of multiples.py, and a reader for notebooks handed in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from downloads import Download
from multiples import ANSWERS, Cell, notebook, sheet

from autograder.course import Assignment, Course, load_course
from autograder.intake.notebook import read_submission
from autograder.intake.released_notebook import Release, load_release
from autograder.records.submission import FoundSubmission, Submission


@pytest.fixture
def course(tmp_path: Path) -> Course:
    (tmp_path / "course.toml").write_text("[limits]\nnotebook_mb = 1\n")
    for folder, text_ in (
        ("source", "# text"),
        ("assignments", json.dumps(notebook(sheet({})))),
    ):
        path = (
            tmp_path / folder / "m1" / ("m1.py" if folder == "source" else "m1.ipynb")
        )
        path.parent.mkdir(parents=True)
        path.write_text(text_)
    key = tmp_path / "solutions" / "m1" / "m1.ipynb"
    key.parent.mkdir(parents=True)
    key.write_text(json.dumps(notebook(sheet(ANSWERS))))
    return load_course(tmp_path)


@pytest.fixture
def assignment(course: Course) -> Assignment:
    return course.assignment("m1")


@pytest.fixture
def download(course: Course, assignment: Assignment) -> Download:
    return Download(course)


@pytest.fixture
def release(assignment: Assignment) -> Release:
    return load_release(assignment)


@pytest.fixture
def read(tmp_path: Path, course: Course, release: Release) -> Callable[..., Submission]:
    """Read a list of cells, a whole notebook, or bytes, as handed in by "student-001"."""

    def read_(content: list[Cell] | dict[str, Any] | bytes) -> Submission:
        path = tmp_path / "handed_in" / "student-001.ipynb"
        path.parent.mkdir(exist_ok=True)
        raw = notebook(content) if isinstance(content, list) else content
        path.write_bytes(raw if isinstance(raw, bytes) else json.dumps(raw).encode())
        return read_submission(
            FoundSubmission("student-001", path), release, course.limits
        )

    return read_

"""A course with one small assignment: two given cells, three questions, checks, a demo, a written answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autograder.course import Assignment, Course, load_course
from autograder.intake.notebook import read_submission
from autograder.intake.release import Release, load_release
from autograder.model import FoundSubmission, Submission

Cell = dict[str, Any]

IMPORTS = "import math\nimport torch"
LIBRARY = "def scale(x):\n    return x / 10"
STUBS = {
    "double": 'def double(x):\n    """Twice x."""\n    raise NotImplementedError("double: write your answer here")',
    "triple": 'def triple(x):\n    """Three times x."""\n    raise NotImplementedError("triple: write your answer here")',
    "Counter": 'class Counter:\n    """Counts."""\n\n    def add(self):\n        raise NotImplementedError("Counter")',
}
ANSWERS = {
    "double": 'def double(x):\n    """Twice x."""\n    return 2 * x',
    "triple": 'def triple(x):\n    """Three times x."""\n    return double(x) + x',
    "Counter": 'class Counter:\n    """Counts."""\n\n    n = 0\n\n    def add(self):\n        self.n += 1\n        return self.n',
}
CHECKS = {
    "double": "y = double(4)\nassert y == 8\nprint('as expected')",
    "triple": "assert triple(2) == 6",
    "Counter": "assert Counter().add() == 1",
}
WRITTEN = "Why is it linear?\n\n*Your answer here.*"


def code(source: str, role: str = "", name: str = "", grade_id: str = "", **grading: Any) -> Cell:
    metadata: dict[str, Any] = {}
    if role:
        metadata["attention_kit"] = {"role": role, "name": name}
    if grade_id:
        metadata["nbgrader"] = {"grade_id": grade_id, "schema_version": 3, **grading}
    return {"cell_type": "code", "execution_count": None, "metadata": metadata, "outputs": [], "source": source}


def text(source: str, role: str = "text", name: str = "", grade_id: str = "") -> Cell:
    cell = code(source, role, name, grade_id)
    del cell["outputs"], cell["execution_count"]
    return {**cell, "cell_type": "markdown"}


def question(name: str, source: str) -> Cell:
    return code(source, "question", name, name, solution=True, locked=False, grade=False)


def check(name: str, source: str) -> Cell:
    return code(source, "check", name, f"check_{name}", grade=True, locked=True, solution=False, points=10)


def given(name: str, source: str) -> Cell:
    return code(source, "given", name, f"given_{name}", locked=True, solution=False, grade=False)


def notebook(cells: list[Cell]) -> dict[str, Any]:
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def sheet(answers: dict[str, str]) -> list[Cell]:
    """The assignment's cells with these answers, stubs elsewhere. Places: see `AT`."""
    source = {**STUBS, **answers}
    return [
        text("# Multiples"),
        given("imports", IMPORTS),
        text("## 1. Twice"),
        question("double", source["double"]),
        check("double", CHECKS["double"]),
        given("library", LIBRARY),
        question("triple", source["triple"]),
        check("triple", CHECKS["triple"]),
        question("Counter", source["Counter"]),
        check("Counter", CHECKS["Counter"]),
        code("plot(double)", "demo", "plot"),
        text(WRITTEN, "written", "why", "written_why"),
    ]


AT = {"imports": 1, "double": 3, "check_double": 4, "library": 5, "triple": 6, "Counter": 8, "written": 11}


@pytest.fixture
def course(tmp_path: Path) -> Course:
    (tmp_path / "course.toml").write_text("[limits]\nnotebook_mb = 1\n")
    for folder, text_ in (("source", "# text"), ("assignments", json.dumps(notebook(sheet({}))))):
        path = tmp_path / folder / "m1" / ("m1.py" if folder == "source" else "m1.ipynb")
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
def release(assignment: Assignment) -> Release:
    return load_release(assignment)


@pytest.fixture
def read(tmp_path: Path, course: Course, release: Release) -> Callable[..., Submission]:
    """Read a list of cells, a whole notebook, or bytes, as handed in by "alice"."""

    def read_(content: list[Cell] | dict[str, Any] | bytes) -> Submission:
        path = tmp_path / "handed_in" / "alice.ipynb"
        path.parent.mkdir(exist_ok=True)
        raw = notebook(content) if isinstance(content, list) else content
        path.write_bytes(raw if isinstance(raw, bytes) else json.dumps(raw).encode())
        return read_submission(FoundSubmission("alice", path), release, course.limits)

    return read_

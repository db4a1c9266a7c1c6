"""One small assignment, "multiples": two given cells, three questions, checks, a demo, a written
answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Cell = dict[str, Any]

IMPORTS = "import math\nimport torch"
LIBRARY = "def scale(x):\n    return x / 10"
STUBS = {
    "double": 'def double(x):\n    """Twice x."""\n    raise NotImplementedError("double: write '
    'your answer here")',
    "triple": 'def triple(x):\n    """Thrice x."""\n    raise NotImplementedError("triple: write '
    'your answer here")',
    "Counter": 'class Counter:\n    """Counts."""\n\n    def add(self):\n        raise '
    'NotImplementedError("Counter")',
}
ANSWERS = {
    "double": 'def double(x):\n    """Twice x."""\n    return 2 * x',
    "triple": 'def triple(x):\n    """Thrice x."""\n    return double(x) + x',
    "Counter": 'class Counter:\n    """Counts."""\n\n    n = 0\n\n    def add(self):\n        '
    "self.n += 1\n"
    "        return self.n",
}
CHECKS = {
    "double": "y = double(4)\nassert y == 8\nprint('as expected')",
    "triple": "assert triple(2) == 6",
    "Counter": "assert Counter().add() == 1",
}
WRITTEN = "Why is it linear?\n\n*Your answer here.*"


def code(
    source: str, role: str = "", name: str = "", grade_id: str = "", **grading: Any
) -> Cell:
    metadata: dict[str, Any] = {}
    if role:
        metadata["attention_kit"] = {"role": role, "name": name}
    if grade_id:
        metadata["nbgrader"] = {"grade_id": grade_id, "schema_version": 3, **grading}
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": metadata,
        "outputs": [],
        "source": source,
    }


def text(source: str, role: str = "text", name: str = "", grade_id: str = "") -> Cell:
    cell = code(source, role, name, grade_id)
    del cell["outputs"], cell["execution_count"]
    return {**cell, "cell_type": "markdown"}


def question(name: str, source: str) -> Cell:
    return code(
        source, "question", name, name, solution=True, locked=False, grade=False
    )


def check(name: str, source: str) -> Cell:
    return code(
        source,
        "check",
        name,
        f"check_{name}",
        grade=True,
        locked=True,
        solution=False,
        points=10,
    )


def given(name: str, source: str) -> Cell:
    return code(
        source, "given", name, f"given_{name}", locked=True, solution=False, grade=False
    )


def notebook(cells: Sequence[object]) -> dict[str, Any]:
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


AT = {
    "imports": 1,
    "double": 3,
    "check_double": 4,
    "library": 5,
    "triple": 6,
    "Counter": 8,
    "written": 11,
}

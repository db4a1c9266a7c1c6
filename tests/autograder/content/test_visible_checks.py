"""A visible check refuses no right answer: none of those that the hidden suite is known to
accept.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from autograder.course import Assignment, load_course
from autograder.suite.known_answers import load_known_answers

QUICK = (
    "a1_word_vectors",
    "a3_masking",
    "a4_multi_head",
    "a5_transformer_block",
    "a9_language_model",
    "a10_experiments",
)
"""The others' right answers take seconds each: loops over thousands of samples, kernels, models."""
COURSE = load_course(Path(__file__).resolve().parents[3])


def cells_of(assignment: Assignment) -> list[tuple[str, str, str]]:
    """(role, name, source) of the answer key's cells of code."""
    cells = json.loads(assignment.solution.read_text(encoding="utf-8"))["cells"]
    kits = [
        (cell["metadata"].get("attention_kit", {}), cell)
        for cell in cells
        if cell["cell_type"] == "code"
    ]
    return [(kit["role"], kit["name"], "".join(cell["source"])) for kit, cell in kits]


def run(source: str, names: dict[str, Any]) -> None:
    exec(compile(source, "<cell>", "exec"), names)


@pytest.mark.parametrize(
    "assignment", [COURSE.assignment(name) for name in QUICK], ids=lambda one: one.name
)
def test_right_answers_pass_the_visible_check(
    assignment: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(
        assignment.solution.parent
    )  # given cells import what lies there
    cells = cells_of(assignment)
    key = {name: source for role, name, source in cells if role == "question"}
    answers = load_known_answers(assignment.suite / "alternates.py", key)
    names: dict[str, Any] = {"__name__": "__main__"}
    for role, _, source in cells:
        if role in ("given", "question"):
            run(source, names)
    refused, tried = {}, 0
    for role, name, source in cells:
        if role != "check":
            continue
        for answer in answers:
            if answer.question == name:
                tried += 1
                mine = dict(names)
                run(answer.cell, mine)
                try:
                    run(source, mine)
                except AssertionError as error:
                    refused[f"{name}/{answer.name}"] = str(error)
        run(source, names)
    assert refused == {}
    assert tried >= len(answers)

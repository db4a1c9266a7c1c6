"""A course with one assignment, m1, and results of it that nobody graded."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from stored_results import outcome, question

from autograder.course import Assignment, Course
from autograder.records.model import Result
from autograder.reporting.marks_commands import ExportRequest


def result(student: str, points: float = 1.0, **fields: Any) -> Result:
    answered = question("double", outcome("test_doubles", points, 2.0))
    whole = Result(
        "m1", student, "sha", "suite", "strict", points, 2.0, (answered,), ()
    )
    return dataclasses.replace(whole, **fields)


@pytest.fixture
def course(tmp_path: Path) -> Course:
    source = Assignment("m1", tmp_path).source
    source.parent.mkdir(parents=True)
    source.touch()
    return Course(tmp_path)


def hand_in(course: Course, *students: str) -> None:
    for student in students:
        path = course.submitted / student / "m1" / "m1.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text("{}")


def request(course: Course, format: str, **options: Any) -> ExportRequest:
    return ExportRequest(
        course, Assignment("m1", course.root), course.results, format, **options
    )

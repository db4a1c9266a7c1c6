"""A course of one small assignment (tiny_course.py), written to a temporary folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_course import POINTS, SUITE, TINY, suite_question, write_assignment

from autograder.course import Assignment, Course, load_course
from autograder.suite.collection import SuiteQuestion


@pytest.fixture
def course(tmp_path: Path) -> Course:
    write_assignment(tmp_path, "tiny", TINY, SUITE)
    return load_course(tmp_path)


@pytest.fixture
def tiny(course: Course) -> Assignment:
    return course.assignment("tiny")


@pytest.fixture
def questions() -> dict[str, SuiteQuestion]:
    """What the suite's tests add up to: 1.5 + 1, and 3."""
    return {name: suite_question(points) for name, points in POINTS.items()}

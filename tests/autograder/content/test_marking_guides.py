"""Every written question of the course has a marking guide whose points are those of the
question.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autograder.authoring.source_notebook import read_source
from autograder.course import load_course

ROOT = Path(__file__).resolve().parents[3]
COURSE = load_course(ROOT)


@pytest.mark.parametrize(
    "name", [assignment.name for assignment in COURSE.assignments()]
)
def test_the_points_of_a_guide_are_those_of_its_question(name: str) -> None:
    written = read_source(COURSE.assignment(name)).of_kind("written")
    assert written
    for cell in written:
        parts = re.findall(r"(?m)^- (\d+(?:\.\d+)?) points?:", cell.scheme)
        assert sum(map(float, parts)) == cell.points
    release = COURSE.assignment(name).release.read_text(encoding="utf-8")
    assert "MARK SCHEME" not in release
    assert '"guide"' not in release

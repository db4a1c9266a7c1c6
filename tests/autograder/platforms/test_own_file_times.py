"""Hand-in times of a platform's own file, and the modules that a runner starts as programs."""

from __future__ import annotations

import runpy
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.basics.errors import KitError
from autograder.course import Course
from autograder.course.course import Late
from autograder.platforms import fill, github, gradescope
from autograder.platforms.fill import (
    PlatformFile,
    read_own_table,
    read_platform_file,
)

NOON = datetime(2026, 10, 1, 12, tzinfo=UTC)
TIMES = {1: NOON, 2: "soon is no time", 4: "later is no time"}


@pytest.fixture
def worksheet(monkeypatch: pytest.MonkeyPatch) -> PlatformFile:
    """Moodle's worksheet of four rows; Cyd's has no time, and nobody knows the last row's."""
    zones: list[str] = []

    def times(zone: str) -> dict[int, Any]:
        zones.append(zone)
        return dict(TIMES)

    rows = {1: "Ada", 2: "Ben", 3: "Cyd", 4: "Dan"}
    content: Any = SimpleNamespace(rows=rows, hand_in_times=times, zones=zones)
    file = PlatformFile("moodle", content)
    students = {1: "ada", 2: "ben", 3: "cyd"}
    monkeypatch.setattr(PlatformFile, "students", lambda *_: (students, []))
    return file


def test_times_of_a_worksheet_are_those_of_its_students(
    worksheet: PlatformFile, tmp_path: Path
) -> None:
    course = Course(tmp_path, late=Late(policy="zero"))
    lines: list[str] = []
    times = worksheet.hand_in_times(course, "m1", ["ada"], lines.append)
    assert times == {"ada": NOON, "ben": "soon is no time"}
    assert lines == [
        "hand-in times of 2 in the grading worksheet cannot be read: Ben: soon is no time"
    ]
    content: Any = worksheet.content
    assert content.zones == [course.about.timezone]


def test_where_lateness_costs_nothing_nobody_reads_times(
    worksheet: PlatformFile, tmp_path: Path
) -> None:
    lines: list[str] = []
    course = Course(tmp_path)
    assert worksheet.hand_in_times(course, "m1", ["ada"], lines.append) == {}
    content: Any = worksheet.content
    assert (lines, content.zones) == ([], [])


def test_a_file_that_is_no_table_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "marks.csv"
    file.write_text("x" * 140_000)  # more than a cell may hold
    with pytest.raises(KitError, match=r"marks\.csv: "):
        read_own_table(file)
    file.write_text("a,b\n1,2\n")
    with pytest.raises(KitError, match=r"marks\.csv: "):
        read_platform_file("moodle", file, "m1", "")
    without_file = {"plain": SimpleNamespace(own_file=None)}
    monkeypatch.setattr(fill, "platforms", lambda: without_file)
    assert read_platform_file("plain", file, "m1", "") is None


@pytest.mark.parametrize("module", [github, gradescope])
def test_a_runner_starts_the_module_with_arguments(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["program"])
    with pytest.raises(ValueError, match=r"not enough values to unpack"):
        runpy.run_path(module.__file__, run_name="__main__")

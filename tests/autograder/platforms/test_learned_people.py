"""People and times of a platform's own: who has none, and names that differ."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.basics.errors import KitError
from autograder.course import Course
from autograder.ledger import Identity
from autograder.platforms import fill
from autograder.platforms.fill import learn_people
from autograder.platforms.push import hand_in_times

TABLE = (
    "Student,ID,Section,m1 (4711)\n"
    "Points Possible,,,2\n"
    "Team Red,101,A,\n"
    "Ben Low,102,A,\n"
)


@pytest.fixture
def learned(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was learned; the ledger calls the person with the id 101 otherwise."""
    learned: list[Any] = []

    def name_in_download(row: Identity) -> str:
        return "Ada Lovelace" if row.name == "Team Red" else ""

    ledger = SimpleNamespace(
        name_in_download=name_in_download,
        students_with_notebooks=lambda assignment: {f"all of {assignment}"},
        save=lambda: learned.append("saved"),
    )
    monkeypatch.setattr(fill, "read_ledger", lambda course: ledger)
    monkeypatch.setattr(fill, "learn_rows", lambda *asked: learned.append(asked))
    return learned


def test_names_that_differ_are_told_where_groups_have_names(
    learned: list[Any], tmp_path: Path
) -> None:
    told: list[str] = []
    roster = tmp_path / "grades.csv"
    roster.write_text(TABLE)
    learn_people(Course(tmp_path), "m1", "canvas", roster, told.append)
    (line,) = told
    assert line.startswith("the download calls Team Red (")
    assert " Ada Lovelace: Canvas gives a group's work the group's name" in line
    (_, platform, assignment, rows, students, source), saved = learned
    assert (platform, assignment, students) == ("canvas", "m1", {"all of m1"})
    assert [row.name for row in rows] == ["Team Red", "Ben Low"]
    assert (source, saved) == ("grades.csv", "saved")


def test_a_platform_without_a_file_of_its_own_has_nothing_to_learn(
    learned: list[Any], tmp_path: Path
) -> None:
    roster = tmp_path / "not there.csv"
    learn_people(Course(tmp_path), "m1", "gradescope", roster, learned.append)
    assert learned == []


def test_times_are_asked_of_platforms_that_know_them(tmp_path: Path) -> None:
    for platform in ("gradescope", "moodle"):
        with pytest.raises(KitError, match=r"^--ask-times is for --from canvas: other"):
            hand_in_times(Course(tmp_path), platform, "m1")

"""People and times of a platform's own: who has none, and names that differ."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.basics.errors import KitError
from autograder.course import Course
from autograder.intake.owners import Owner
from autograder.ledger import Identity, read_ledger
from autograder.platforms import fill
from autograder.platforms.download_people import DownloadPeople
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


# who is a group


def red_team(tmp_path: Path, *rows: Identity, listed: str = "") -> DownloadPeople:
    """The people of a download from Moodle, by this file of Moodle's and this class list."""
    if listed:
        (tmp_path / "students.csv").write_text(listed, encoding="utf-8")
    return DownloadPeople(read_ledger(Course(tmp_path)), "moodle", "m1", rows)


RED = Owner("Red_17", Identity((("moodle", "17"),), (), "Red"), "m1")


def test_a_group_is_known_by_what_an_earlier_download_said(tmp_path: Path) -> None:
    """Under the name with the number, where the ledger has a student of that name."""
    people = red_team(tmp_path)
    assert people._find_group(RED) is None
    people._ledger.set_group("m1", "Red", ["ada", "ben"], "a.zip")
    assert people._find_group(RED) == ("Red", ("ada", "ben"))
    assert people._find_group(dataclasses.replace(RED, identity=Identity())) is None
    red_17 = Identity(name="Red")
    people._ledger.add_group("m1", "Red_17", red_17, ["cyd"], "b.zip")
    assert people._find_group(RED) == ("Red_17", ("cyd",))
    people._ledger.end_group("m1", "Red_17", "c.zip")
    assert people._find_group(RED) == ("Red", ("ada", "ben"))


def test_a_group_is_known_by_moodles_own_file_before_all_else(tmp_path: Path) -> None:
    rows = [
        Identity((("moodle", "1"),), (), "Ada", "red"),
        Identity((("moodle", "2"),), (), "Ben", "Blue"),
    ]
    people = red_team(tmp_path, *rows, listed="id,group\ns7,Red\n")
    assert people._find_group(RED) == ("Red", ("Ada_1",))


def test_a_group_is_known_by_the_class_list(tmp_path: Path) -> None:
    people = red_team(tmp_path, listed="id,group\ns7,RED\ns8,Blue\n")
    assert people._find_group(RED) == ("Red", ("s7",))
    ada = Owner("Ada_1", Identity((("moodle", "1"),), (), "Ada"), "m1")
    people.identify([RED, ada], "a.zip")
    assert people.students == {RED.identity: "Red", ada.identity: "Ada_1"}
    assert people._ledger.members("Red", "m1") == ("s7",)

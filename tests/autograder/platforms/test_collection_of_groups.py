"""Whose work lies in a student's folder after a download: groups, and ids that changed hands."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.basics.errors import KitError
from autograder.course import Assignment, Course
from autograder.intake.collected import Arrival, Collected
from autograder.intake.owners import Owner
from autograder.ledger import Identity
from autograder.platforms import collect as collect_module
from autograder.platforms.collect import _Collection, collect
from autograder.platforms.platform import Platform

ADA, BEN, CYD = (Identity((("moodle", number),)) for number in ("1", "2", "3"))
STUDENTS = {ADA: "ada", BEN: "ben", CYD: "cyd"}
MOODLE = Arrival("moodle", "1", "Ada", "ada.ipynb")
CANVAS = dataclasses.replace(MOODLE, origin="canvas")


class PlayedLedger:
    def __init__(self) -> None:
        self.done: list[Any] = []
        self.linked: dict[str, str] = {}
        self.groups: set[str] = set()

    def end_group(self, *arguments: Any) -> None:
        self.done.append(("end", *arguments))

    def set_group(self, *arguments: Any) -> None:
        self.done.append(("set", *arguments))

    def find_linked(self, ids: Any, assignment: str) -> str | None:
        ((_, number),) = ids
        return self.linked.get(number)

    def is_group(self, student: str, assignment: str) -> bool:
        return student in self.groups


@pytest.fixture
def collection() -> Any:
    """A collection of a Moodle download. `aside` has the students whose work was put aside; of
    those in `empty` nothing lies here.
    """
    collection: Any = object.__new__(_Collection)
    collection.ledger = PlayedLedger()
    collection._assignment, collection._origin = "m1", "moodle"
    collection._format = SimpleNamespace(tells_groups=True)
    collection._people = SimpleNamespace(students=STUDENTS)
    collection._lines = []
    collection._earlier = Collected()
    collection.aside, collection.empty = [], set()

    def submission_folder(student: str) -> Any:
        def put_aside() -> str | None:
            if student in collection.empty:
                return None
            collection.aside.append(student)
            return "2026"

        return SimpleNamespace(put_aside=put_aside)

    collection._submission_folder = submission_folder
    return collection


def owner(*members: Identity) -> Owner:
    return Owner("ada", ADA, "work", members=members)


def test_a_group_takes_the_place_of_what_its_members_handed_in_alone(
    collection: Any,
) -> None:
    """Ben's work is put aside, Cyd's came from another platform and stays, Dan is no member."""
    collection._earlier = Collected(
        {"ada": MOODLE, "ben": MOODLE, "cyd": CANVAS, "dan": MOODLE}
    )
    collection._set_group("ada", owner(ADA, BEN, ADA, CYD), "a.zip")
    assert collection.ledger.done == [
        ("set", "m1", "ada", ("ada", "ben", "cyd"), "a.zip")
    ]
    assert list(collection._earlier.students) == ["ada", "dan"]
    assert collection.aside == ["ben"]
    assert collection._lines == [
        "ben: hands in with ada now; the earlier notebook is in previous/"
    ]


def test_where_nothing_lies_there_is_nothing_to_tell(collection: Any) -> None:
    collection._earlier = Collected({"ben": MOODLE})
    collection.empty = {"ben"}
    collection._set_group("ada", owner(ADA, BEN), "a.zip")
    assert (collection._earlier.students, collection._lines) == ({}, [])


def test_work_of_a_single_student_ends_a_group_where_the_download_tells_groups(
    collection: Any,
) -> None:
    collection._set_group("ada", owner(), "a.zip")
    assert collection.ledger.done == [("end", "m1", "ada", "a.zip")]
    collection._format.tells_groups = False
    collection._set_group("ada", owner(), "b.zip")
    assert len(collection.ledger.done) == 1


def test_work_that_another_students_id_handed_in_is_put_aside(collection: Any) -> None:
    """The id of ada's work is Ben's by now; of a group's work it is a member's."""
    arrivals = {
        student: dataclasses.replace(MOODLE, id=number)
        for student, number in (("ada", "1"), ("red", "2"), ("cyd", "3"), ("dan", "4"))
    }
    collection._earlier = Collected(arrivals)
    collection.ledger.linked = {"1": "ben", "2": "ben", "3": "cyd"}
    collection.ledger.groups = {"red"}
    collection._put_aside_work_of_others()
    assert list(collection._earlier.students) == ["red", "cyd", "dan"]
    assert collection.aside == ["ada"]
    assert collection._lines == [
        "ada: what lay here was handed in by moodle 1, who is ben: it is kept in "
        "previous/2026"
    ]


def test_work_of_others_that_is_gone_leaves_the_record_all_the_same(
    collection: Any,
) -> None:
    collection._earlier = Collected({"ada": MOODLE})
    collection.ledger.linked = {"1": "ben"}
    collection.empty = {"ada"}
    collection._put_aside_work_of_others()
    assert (collection._earlier.students, collection._lines) == ({}, [])


@pytest.mark.parametrize("origin", ["nowhere", "uploads_only"])
def test_a_platform_without_downloads_is_no_origin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, origin: str
) -> None:
    entries = {"uploads_only": Platform()}
    monkeypatch.setattr(collect_module, "platforms", lambda: entries)
    words = rf"^unknown origin '{origin}': it is one of .*moodle"
    with pytest.raises(KitError, match=words):
        collect(Course(tmp_path), Assignment("m1", tmp_path), tmp_path, origin)
    assert not (tmp_path / "submitted").exists()

"""Marks of a class: who has withdrawn, whose group it is, whose number it may be; the ledger is
played.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from autograder.course import Assignment, Course
from autograder.course.course import Late
from autograder.course.roster import Person
from autograder.intake.collected import Arrival, Collected, record_path
from autograder.marks import marks as marks_module
from autograder.marks.late_policy import Lateness, class_lateness, read_timestamp
from autograder.marks.marks import Mark, class_marks
from autograder.marks.rubric import RubricItem, read_rubrics
from autograder.records.model import (
    Graded,
    ManualGrades,
    ManualScore,
    QuestionResult,
    Result,
)

ARRIVAL = Arrival("moodle", "101", "Ada L.", "ada_101.ipynb")
DUE = datetime(2026, 10, 1, 12, tzinfo=UTC)


@dataclasses.dataclass
class PlayedLedger:
    """A ledger with these facts, each by student."""

    present: set[str] = dataclasses.field(default_factory=set)
    groups: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    linked: Mapping[str, str] = dataclasses.field(default_factory=dict)
    numbers: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    accounts: frozenset[str] = frozenset()
    roster: tuple[Person, ...] | None = None

    def students_with_notebooks(self, assignment: str) -> set[str]:
        return self.present

    def is_group(self, student: str, assignment: str) -> bool:
        return student in self.groups

    def members(self, student: str, assignment: str) -> tuple[str, ...]:
        return self.groups.get(student) or (student,)

    def find_linked(self, ids: Any, assignment: str) -> str | None:
        ((_, number),) = ids
        return self.linked.get(number)

    def ids(self, student: str, assignment: str) -> dict[str, str]:
        return dict(self.numbers.get(student, {}))

    def has_accounts(self, student: str) -> bool:
        return student in self.accounts

    def same_people(self) -> dict[str, str]:
        return {"ada_old": "ada"}

    def describe(self, student: str, assignment: str) -> str:
        return f"<{student}>"

    def folder(self, student: str) -> str:
        return f"{student}-folder"

    def name(self, student: str) -> str:
        return f"{student}!"


@dataclasses.dataclass
class Conflict:
    """Identities that may be one person of the class list, and why nobody can tell."""

    message: str
    identities: tuple[str, ...]


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Person], list[Conflict]]:
    """The people of the class list by student, and conflicts."""
    people: dict[str, Person] = {}
    conflicts: list[Conflict] = []
    monkeypatch.setattr(
        marks_module, "find_in_class_list", lambda *_: (people, conflicts)
    )
    monkeypatch.setattr(marks_module, "written_points", lambda assignment: 0.0)
    return people, conflicts


def result_of(student: str, score: float = 3.0) -> Result:
    double = QuestionResult("double", score, 4.0, 0.0, None, ())
    return Result("m1", student, "sha", "suite", "strict", score, 4.0, (double,), ())


def store_collected(course: Course, collected: Collected) -> None:
    path = record_path(course.submitted, "m1")
    path.parent.mkdir(parents=True)
    path.write_text(collected.to_json(), encoding="utf-8")


def marks_of(
    tmp_path: Path, ledger: PlayedLedger, *students: str, **more: Any
) -> dict[str, Mark]:
    """The marks by student; each stands once."""
    results = [result_of(student) for student in students]
    made = class_marks(
        Course(tmp_path),
        Assignment("m1", tmp_path),
        results,
        ledger=ledger,  # type: ignore[arg-type]
        **more,
    )
    assert [mark.student for mark in made] == sorted(mark.student for mark in made)
    assert len({mark.student for mark in made}) == len(made)
    return {mark.student: mark for mark in made}


pytestmark = pytest.mark.usefixtures("listed")

GONE = (
    "its submission is not in submitted/ any more, so its 3 of 4 do not count: put it there "
    "if they should"
)


def test_a_result_without_its_submission_has_been_withdrawn(tmp_path: Path) -> None:
    marks = marks_of(tmp_path, PlayedLedger({"ada"}), "ada", "ben")
    assert (marks["ada"].status, marks["ada"].total) == ("graded", 3.0)
    assert marks["ben"] == Mark(
        "ben",
        "withdrawn",
        GONE,
        max_score=4.0,
        folder="ben-folder",
        called="ben!",
        joined="ben",
    )


def test_of_an_empty_folder_only_what_was_collected_has_been_withdrawn(
    tmp_path: Path,
) -> None:
    """Somebody may grade notebooks from elsewhere, by their paths."""
    store_collected(Course(tmp_path), Collected({"ada": ARRIVAL}))
    marks = marks_of(tmp_path, PlayedLedger(), "ada", "ben")
    assert {name: mark.status for name, mark in marks.items()} == {
        "ada": "withdrawn",
        "ben": "graded",
    }
    elsewhere = marks_of(
        tmp_path, PlayedLedger({"cyd"}), "ada", "ben", own_submissions=False
    )
    assert elsewhere["ada"].status == elsewhere["ben"].status == "graded"


def test_work_that_somebody_elses_id_handed_in_does_not_count(tmp_path: Path) -> None:
    store_collected(Course(tmp_path), Collected({"ada": ARRIVAL}))
    (mark,) = marks_of(
        tmp_path, PlayedLedger({"ada"}, linked={"101": "ben"}), "ada"
    ).values()
    assert mark.note == (
        "its submission was handed in by moodle 101, who is ben, so its 3 of 4 do not "
        "count: collect it again"
    )
    for linked in ({"101": "ada"}, {}):
        ledger = PlayedLedger({"ada"}, linked=linked)
        assert marks_of(tmp_path, ledger, "ada")["ada"].status == "graded"


# groups


def test_each_member_has_the_groups_points_and_an_own_lateness(tmp_path: Path) -> None:
    ledger = PlayedLedger({"red"}, {"red": ("ada", "ben")})
    by_hand = {"red": ManualGrades("red", (ManualScore("why", 2.0, 1.5),))}
    late = {"ada": Lateness(None, "ada's"), "ben": Lateness(None, "ben's")}
    marks = marks_of(tmp_path, ledger, "red", by_hand=by_hand, late=late)
    assert {name: mark.note for name, mark in marks.items()} == {
        "ada": "handed in with red; ada's",
        "ben": "handed in with red; ben's",
    }
    for mark in marks.values():
        assert (mark.group, mark.holder, mark.total) == ("red", "red", 4.5)


def test_what_a_member_handed_in_alone_before_gives_way(tmp_path: Path) -> None:
    ledger = PlayedLedger({"ada", "ben", "cyd"}, {"ben": ("ben", "ada")})
    marks = marks_of(tmp_path, ledger, "ada", "ben", "cyd")
    assert {name: (mark.group, mark.note) for name, mark in marks.items()} == {
        "ada": ("ben", "handed in with ben"),
        "ben": ("ben", ""),
        "cyd": ("", ""),
    }


def test_members_of_a_group_that_was_not_graded_have_its_reason(
    tmp_path: Path,
) -> None:
    store_collected(Course(tmp_path), Collected({"red": ARRIVAL}))
    ledger = PlayedLedger({"red", "ada"}, {"red": ("ada", "ben")})
    marks = marks_of(tmp_path, ledger, "ada")
    assert {name: mark.status for name, mark in marks.items()} == {
        "ada": "not graded yet",
        "ben": "not graded yet",
    }


# people


def test_a_person_of_the_class_list_stands_once(
    tmp_path: Path, listed: tuple[dict[str, Person], list[Conflict]]
) -> None:
    people, conflicts = listed
    ada, dan = Person("s1", "Ada", "", "", {}), Person("s4", "Dan", "", "", {})
    people |= {"ada": ada, "ada_old": ada}
    conflicts.append(Conflict("two of that name", ("<ben>",)))
    ledger = PlayedLedger({"ada", "ada_old", "ben"}, roster=(ada, dan))
    ledger.numbers = {"s4": {"canvas": "4"}, "ben": {"canvas": "2"}}
    marks = marks_of(tmp_path, ledger, "ada", "ada_old", "ben")
    assert {name: (mark.status, mark.note) for name, mark in marks.items()} == {
        "ada": ("graded", ""),
        "ada_old": ("graded", "s1 stands here twice: join the folders in submitted/"),
        "ben": ("graded", "not linked to the class list: two of that name"),
        "s4": ("handed in nothing", ""),
    }
    assert (marks["ada_old"].joined, marks["ben"].joined) == ("ada", "ben")
    assert marks["s4"] == Mark(
        "s4", "handed in nothing", person=dan, ids={"canvas": "4"}
    )


@pytest.mark.parametrize(
    ("ledger", "teams", "number"),
    [
        # nobody says that Moodle's number is no group's
        (PlayedLedger({"ada"}, roster=()), False, ""),
        (PlayedLedger({"ada"}), True, ""),
        (PlayedLedger({"ada"}), False, "101"),
        # a group has no email
        (PlayedLedger({"ada"}, roster=(), accounts=frozenset(["ada"])), True, "101"),
    ],
)
def test_a_number_that_may_be_a_groups_is_nobodys(
    tmp_path: Path, ledger: PlayedLedger, teams: bool, number: str
) -> None:
    team = dataclasses.replace(ARRIVAL, id="" if teams else "102")
    store_collected(Course(tmp_path), Collected({"ben": team}))
    ledger.numbers = {"ada": {"moodle": "101", "github": "ada-l"}}
    mark = marks_of(tmp_path, ledger, "ada")["ada"]
    assert mark.ids == {"moodle": number, "github": "ada-l"}
    assert mark.in_own_file == ("ada" in ledger.accounts)


# times and schemes


def test_a_platforms_mark_of_lateness_counts_in_a_class(tmp_path: Path) -> None:
    course = Course(tmp_path, late=Late(policy="per_day"), due={"m1": DUE})
    arrivals = {
        "ada": dataclasses.replace(ARRIVAL, late=True),
        "ben": dataclasses.replace(ARRIVAL, late=False),
        "cyd": ARRIVAL,
    }
    store_collected(course, Collected(arrivals))
    students = [*arrivals, "dan"]
    lateness = class_lateness(course, ["m1"], students, {})["m1"]
    assert [lateness[student].minutes for student in students] == [1.0, 0.0, None, None]


def test_a_timestamp_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "time").write_text("2026-10-01 12:00:00 UTC")
    (tmp_path / "timestamp.txt").symlink_to(tmp_path / "time")
    with pytest.raises(ValueError, match=r"timestamp\.txt"):
        read_timestamp(tmp_path)


def test_schemes_are_those_of_the_answer_keys_guides(tmp_path: Path) -> None:
    assignment = Assignment("m1", tmp_path)
    cells = []
    for role, name in (("guide", "why"), ("written", "how"), ("guide", "who")):
        tag = {"attention_kit": {"role": role, "name": name}}
        source = f"**Marking guide**\n\n- 2 points: {name}."
        cells.append({"cell_type": "markdown", "metadata": tag, "source": source})
    cells.append({"cell_type": "markdown", "metadata": {}, "source": "- 1 point: no."})
    assignment.solution.parent.mkdir(parents=True)
    assignment.solution.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    assert read_rubrics(assignment) == {
        "why": (RubricItem(1, 2.0, "why."),),
        "who": (RubricItem(1, 2.0, "who."),),
    }


def test_an_assignment_that_is_not_built_has_no_scheme(tmp_path: Path) -> None:
    assert read_rubrics(Assignment("m1", tmp_path)) == {}


def test_what_a_mark_knows_of_its_arrival_stays() -> None:
    """A file that was no notebook came later than the one that was collected."""
    later = Arrival("moodle", "101", "Ada L.", "ada_101.docx")
    collected = Collected({"ada": ARRIVAL, "ben": ARRIVAL})
    marks = [Mark("ada", "withdrawn", arrival=later), Mark("ben", "withdrawn")]
    ledger: Any = PlayedLedger()
    named = marks_module._add_people(ledger, "m1", marks, collected)
    assert [mark.arrival for mark in named] == [later, ARRIVAL]


def test_a_member_of_a_graded_group_keeps_that_groups_mark() -> None:
    """Ada's own folder has work with Ben; Red, which she is in too, was graded as a group."""
    ledger: Any = PlayedLedger(groups={"ada": ("ada", "ben")})
    marks = [
        Mark("ada", "withdrawn", "alone"),
        Mark("ada", "withdrawn", "in Red", group="Red"),
        Mark("ben", "withdrawn", "before"),
        Mark("cyd", "withdrawn"),
    ]
    expanded = marks_module._expand_groups(ledger, "m1", marks)
    assert [(mark.student, mark.group, mark.note) for mark in expanded] == [
        ("ben", "ada", "handed in with ada; alone"),
        ("ada", "Red", "handed in with Red; in Red"),
        ("cyd", "", ""),
    ]


def test_the_number_of_a_person_of_the_class_list_is_their_own(
    tmp_path: Path, listed: tuple[dict[str, Person], list[Conflict]]
) -> None:
    people, _ = listed
    people["ada"] = Person("s1", "Ada", "", "", {})
    numbers = {name: {"moodle": "101"} for name in ("ada", "ben")}
    ledger = PlayedLedger({"ada", "ben"}, numbers=numbers, roster=(people["ada"],))
    marks = marks_of(tmp_path, ledger, "ada", "ben")
    assert [marks[name].ids["moodle"] for name in ("ada", "ben")] == ["101", ""]


@pytest.mark.parametrize(
    ("present", "own", "status"),
    [
        ({"ada", "ben"}, True, "could not be graded"),
        ({"ben"}, True, "withdrawn"),
        ({"ben"}, False, "could not be graded"),
        (set(), True, "could not be graded"),
    ],
)
def test_who_could_not_be_graded_has_withdrawn_where_the_notebook_is_gone(
    tmp_path: Path, present: set[str], own: bool, status: str
) -> None:
    timing = [Graded("ada", problem="no JSON"), Graded("ben")]
    ledger = PlayedLedger(present)
    marks = marks_of(tmp_path, ledger, timing=timing, own_submissions=own)
    assert {name: (mark.status, mark.note) for name, mark in marks.items()} == {
        "ada": (status, "no JSON")
    }

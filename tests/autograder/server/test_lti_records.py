"""What the server keeps for LTI, without a platform: begun launches, columns, marks, people."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import select
from starlette.exceptions import HTTPException

from autograder.basics.errors import KitError
from autograder.course import Course
from autograder.ledger import Identity, read_ledger
from autograder.platforms.lti import Score
from autograder.server import lti_desk
from autograder.server.database import lti_columns, lti_states, open_database, read
from autograder.server.lti_desk import LtiDesk

TEN_MINUTES = 600.0


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Any]:
    engine = open_database(f"sqlite:///{tmp_path / 'server.db'}")
    office: Any = SimpleNamespace(engine=engine, course=Course(tmp_path))
    yield LtiDesk(office)
    engine.dispose()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(lti_desk, "time", SimpleNamespace(time=lambda: clock.now))
    return clock


def test_a_launch_has_ten_minutes_and_works_once(desk: Any, clock: Any) -> None:
    state, nonce = desk.new_state("https://lms")
    clock.now += TEN_MINUTES
    with pytest.raises(HTTPException):
        desk.use_state(state)
    clock.now -= 1.0
    assert desk.use_state(state) == ("https://lms", nonce)
    with pytest.raises(HTTPException) as refused:
        desk.use_state(state)
    assert refused.value.status_code == 400


def test_launches_that_ended_are_forgotten(desk: Any, clock: Any) -> None:
    def states() -> set[str]:
        return {row.state for row in read(desk._engine, select(lti_states))}

    first, _ = desk.new_state("https://lms")
    clock.now += TEN_MINUTES
    second, _ = desk.new_state("https://lms")
    assert states() == {first, second}
    clock.now += 1.0
    third, _ = desk.new_state("https://lms")
    assert states() == {second, third}


@pytest.mark.parametrize(
    ("identity", "student"),
    [
        (Identity((("lti", "https://lms u-1"),), ("ada@x.edu",), "Ada L"), "ada"),
        (Identity((("lti", "https://lms u-1"),), (), "Ada L"), "Ada L"),
        (Identity((("lti", "https://lms u-1"),)), "u-1"),
        # one letter, however a platform composes it
        (Identity((("lti", "https://lms u-1"),), (), "Zoe\u0308"), "Zo\u00eb"),
    ],
)
def test_a_person_is_linked_while_nobody_collects(
    desk: Any, monkeypatch: pytest.MonkeyPatch, identity: Identity, student: str
) -> None:
    held: list[object] = []

    def hold(path: Path, action: str) -> Any:
        held.append(path)
        return contextlib.nullcontext()

    monkeypatch.setattr(lti_desk, "hold_lock", hold)
    course = desk._office.course
    assert desk.link(identity) == student
    assert held == [course.kept / "locks" / "collect"]
    assert read_ledger(course).has_record(student)
    assert desk.link(identity) == student


def test_nobody_is_linked_under_the_name_of_a_group(desk: Any, tmp_path: Path) -> None:
    (tmp_path / "students.csv").write_text("id,group\nada,Red\nbob,Red\n")
    with pytest.raises(KitError, match=r"^Red is a group's name here"):
        desk.link(Identity((("lti", "https://lms u-1"),), (), "Red"))
    assert not read_ledger(desk._office.course).has_record("Red")


def columns(desk: Any) -> list[tuple[str, ...]]:
    return [tuple(row) for row in read(desk._engine, select(lti_columns))]


def test_a_launch_tells_of_columns_and_roster(desk: Any) -> None:
    desk.note_course("https://lms", "m1", {"lineitem": "/1", "lineitems": "/all"}, "/r")
    assert columns(desk) == [("https://lms", "m1", "/1", "/all", "/r")]
    # a launch without a column keeps the one that is there
    desk.note_course("https://lms", "m1", {}, "")
    assert columns(desk) == [("https://lms", "m1", "/1", "", "")]
    desk.note_course("https://other", "m1", {}, "")
    assert columns(desk)[1:] == [("https://other", "m1", "", "", "")]


def test_without_a_roster_it_says_what_to_do(desk: Any) -> None:
    desk.note_course("https://lms", "m1", {"lineitem": "/1"}, "")
    with pytest.raises(KitError, match="start once from its page"):
        desk.fetch_roster()


class Services:
    """A platform that takes scores, and notes them."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Score]] = []
        self.made: list[tuple[str, str, float]] = []

    def make_line_item(self, line_items: str, name: str, maximum: float) -> str:
        self.made.append((line_items, name, maximum))
        return "/made"

    def send_score(self, line_item: str, score: Score) -> None:
        self.sent.append((line_item, score))


def mark(student: str, points: float | None, user: str, status: str = "") -> Any:
    return SimpleNamespace(
        student=student,
        max_score=5.0,
        status=status,
        final=lambda provisional: points if provisional else None,
        platform_id=lambda platform: user if platform == "lti" else "",
    )


@pytest.fixture
def sending(desk: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`marks` are those of the class in m1; there is no other assignment."""
    services = Services()
    platform: Any = SimpleNamespace(desk=desk, services=services, marks=[])
    stored = SimpleNamespace(marks=lambda: platform.marks)
    desk._office.assignment = lambda name: name if name == "m1" else None
    desk._office.stored_marks = lambda name: stored
    monkeypatch.setattr(
        desk, "_services", lambda issuer: contextlib.nullcontext(services)
    )
    return platform


def test_marks_are_sent_that_changed(sending: Any) -> None:
    desk, services = sending.desk, sending.services
    desk.note_course("https://lms", "m1", {"lineitem": "/1"}, "")
    sending.marks = [
        mark("ada", 2.5, "https://lms u-1"),
        mark("ben", -1.0, "https://lms u-2", "waits for a person"),
        mark("cyd", None, "https://lms u-3"),
        mark("dan", 1.0, "https://other u-4"),
    ]
    assert desk.send_marks(["m1", "m2"]) == []
    ada, ben = Score("u-1", 2.5, 5.0, False), Score("u-2", 0.0, 5.0, True)
    assert services.sent == [("/1", ada), ("/1", ben)]
    assert desk._sent("m1") == {"ada": "2.5 of 5", "ben": "0 of 5, waits"}
    sending.marks[1] = mark("ben", 0.0, "https://lms u-2")
    assert desk.send_marks(["m1"]) == []
    assert services.sent[2:] == [("/1", Score("u-2", 0.0, 5.0, False))]
    assert services.made == []


def test_a_column_is_made_where_there_is_none(sending: Any) -> None:
    desk, services = sending.desk, sending.services
    desk.note_course("https://lms", "m1", {"lineitems": "/all"}, "")
    sending.marks = [mark("ada", 2.5, "https://lms u-1")]
    assert desk.send_marks(["m1"]) == []
    assert services.made == [("/all", "m1", 5.0)]
    assert [item for item, _ in services.sent] == ["/made"]
    assert columns(desk) == [("https://lms", "m1", "/made", "/all", "")]


@pytest.mark.parametrize(
    ("assignment", "grades"), [("m1", {}), ("m2", {"lineitem": "/2"})]
)
def test_what_has_no_place_there_is_not_sent(
    sending: Any, assignment: str, grades: dict[str, str]
) -> None:
    sending.desk.note_course("https://lms", assignment, grades, "")
    sending.marks = [mark("ada", 2.5, "https://lms u-1")]
    assert sending.desk.send_marks([assignment]) == []
    assert sending.services.sent == []

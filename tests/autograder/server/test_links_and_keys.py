"""Links for signing in, keys of `check.py --submit`, and the audit log, in a database alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.server import people
from autograder.server.database import audit, open_database
from autograder.server.people import AuditLine, PeopleStore, Visitor

FOURTEEN_DAYS = 1_209_600.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[PeopleStore]:
    engine = open_database(f"sqlite:///{tmp_path / 'server.db'}")
    yield PeopleStore(engine)
    engine.dispose()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(people, "time", SimpleNamespace(time=lambda: clock.now))
    return clock


def test_a_link_ends_after_fourteen_days(store: PeopleStore, clock: Any) -> None:
    key = store.make_link("ada", "instructor")
    clock.now += FOURTEEN_DAYS
    assert store.use_link(key) is None
    clock.now -= 1.0
    assert store.use_link(key) == Visitor("ada", "instructor")
    assert store.use_link(key) is None, "once"


def test_a_new_link_ends_the_persons_own_unused_ones(store: PeopleStore) -> None:
    first, of_ben = store.make_link("ada", "student"), store.make_link("ben", "student")
    second = store.make_link("ada", "student")
    assert store.use_link(first) is None
    assert store.use_link(second) == Visitor("ada", "student")
    assert store.use_link(of_ben) == Visitor("ben", "student")
    assert store.use_link("nobody's") is None


def test_a_student_has_one_key(store: PeopleStore) -> None:
    first, of_ben = store.make_api_key("ada"), store.make_api_key("ben")
    second = store.make_api_key("ada")
    keys = (first, second, of_ben, "nobody's")
    owners = [store.find_by_api_key(key) for key in keys]
    assert owners == [None, "ada", "ben", None]
    assert {len(key) for key in (first, second, of_ben)} == {32}  # 24 bytes


def test_the_log_has_its_last_lines_the_newest_first(
    store: PeopleStore, clock: Any
) -> None:
    for number in range(3):
        clock.now += 1.0
        store.log("prof", "mark", f"line {number}")
    assert store.log_lines(2) == [
        AuditLine(1003.0, "prof", "mark", "line 2"),
        AuditLine(1002.0, "prof", "mark", "line 1"),
    ]


def test_a_page_has_the_last_five_hundred_lines_of_the_log(
    store: PeopleStore,
) -> None:
    line = {"time": 1.0, "person": "prof", "action": "mark"}
    lines = [{**line, "detail": f"line {number}"} for number in range(501)]
    with store._engine.begin() as connection:
        connection.execute(audit.insert(), lines)
    shown = [line.detail for line in store.log_lines()]
    assert (len(shown), shown[0], shown[-1]) == (500, "line 500", "line 1")


def test_an_instructor_sees_the_class() -> None:
    assert Visitor("prof", "instructor").is_instructor
    assert not Visitor("ada", "student").is_instructor

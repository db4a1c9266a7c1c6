"""The grading desk's table of stations, its leases and its faults, with stations that the test
plays; no thread runs but the test's own.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from autograder.basics.errors import KitError
from autograder.course import Assignment, Course
from autograder.grading.packed_submission import PackedSubmission
from autograder.grading.station import MachineFault
from autograder.server import desk as desk_module
from autograder.server.desk import MOST_STATIONS, GradingDesk

DATABASE_GONE = OperationalError("select", {}, Exception("gone"))


class PlayedStation:
    """A station that answers with the student's name, or raises `fault`."""

    def __init__(self, *order: Any) -> None:
        self.order = order
        self.ended = False
        self.is_closed = False
        self.fault: Exception | None = None
        self.graded: list[PackedSubmission] = []

    def grade(self, packed: PackedSubmission) -> bytes:
        self.graded.append(packed)
        if self.fault is not None:
            raise self.fault
        return packed.student.encode()

    def close(self) -> None:
        self.is_closed = True


class PlayedStore:
    """Notes what the desk asks of the queue; `known` is the answer of an equal attempt."""

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.known: bytes | None = None
        self.fault: Exception | None = None

    def equal_answer(self, attempt: Any, suite: str) -> bytes | None:
        self.done.append(("equal", suite))
        return self.known

    def finish(self, claim: Any, answer: bytes) -> None:
        self.done.append(("finish", claim.attempt.id, answer))

    def fail(self, claim: Any, problem: str, is_final: bool = False) -> None:
        self.done.append(("fail", claim.attempt.id, problem, is_final))
        if self.fault is not None:
            raise self.fault

    def renew(self, machine: str, attempts: tuple[int, ...]) -> None:
        self.done.append(("renew", machine, attempts))
        if self.fault is not None:
            raise self.fault


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A desk whose stations are played. `now` is the clock of their use, `lines` what it tells."""
    desk: Any
    lines: list[str] = []
    course = Course(tmp_path)
    desk = GradingDesk(
        lambda: course,
        PlayedStore(),  # type: ignore[arg-type]
        "machine-1",
        2,
        "uid",
        lines.append,
    )
    desk.course, desk.lines, desk.now = course, lines, 0.0
    clock = SimpleNamespace(monotonic=lambda: desk.now)
    monkeypatch.setattr(desk_module, "time", clock)
    monkeypatch.setattr(desk_module, "Station", PlayedStation)
    monkeypatch.setattr(desk_module, "extras_for_any", lambda *_: ("torch",))
    monkeypatch.setattr(desk_module, "course_sha256", lambda *_: "today's")
    monkeypatch.setattr(Course, "assignment", lambda _, name: a(tmp_path, name))
    return desk


def a(root: Path, name: str) -> Assignment:
    return Assignment(name, root)


def use(desk: Any, name: str, suite: str = "today's", at: float = 0.0) -> PlayedStation:
    """Use a station for a moment, which ends at a time of the clock."""
    with desk._use_station(desk.course, a(desk.course.root, name), suite) as station:
        desk.now = at
    return station  # type: ignore[no-any-return]


def claim(student: str = "ada", *, aside: bool = False) -> Any:
    attempt = SimpleNamespace(id=7, student=student, assignment="m1", aside=aside)
    return SimpleNamespace(attempt=attempt, notebook=b"{}")


# stations


def test_a_station_serves_all_attempts_at_one_suite(desk: Any) -> None:
    first = use(desk, "m1")
    assert use(desk, "m1") is first
    assert first.order == (desk.course.root, "m1", "uid", 2, ("torch",))
    open_station = desk._stations["m1"]
    assert (open_station.users, open_station.suite_sha256) == (0, "today's")


def test_users_are_counted_while_they_wait(desk: Any) -> None:
    assignment = a(desk.course.root, "m1")
    with desk._use_station(desk.course, assignment, "today's"):
        assert desk._stations["m1"].users == 1
        with desk._use_station(desk.course, assignment, "today's"):
            assert desk._stations["m1"].users == 2
        desk.now = 5.0
    assert (desk._stations["m1"].users, desk._stations["m1"].last_use) == (0, 5.0)


@pytest.mark.parametrize("reason", ["another suite", "it has ended"])
def test_a_station_that_cannot_serve_is_replaced(desk: Any, reason: str) -> None:
    first = use(desk, "m1")
    first.ended = reason == "it has ended"
    second = use(desk, "m1", "tomorrow's" if reason == "another suite" else "today's")
    assert second is not first
    assert (first.is_closed, second.is_closed) == (True, False)


def test_the_station_that_was_idle_for_longest_makes_room(desk: Any) -> None:
    stations = {
        name: use(desk, name, at=at)
        for name, at in (("m1", 3.0), ("m2", 1.0), ("m3", 2.0))
    }
    assert len(stations) == MOST_STATIONS
    use(desk, "m4")
    closed = [name for name, station in stations.items() if station.is_closed]
    assert closed == ["m2"]
    assert list(desk._stations) == ["m1", "m3", "m4"]


def test_a_station_at_work_does_not_make_room(desk: Any) -> None:
    for name in ("m1", "m2", "m3"):
        use(desk, name)
    for open_station in desk._stations.values():
        open_station.users = 1
    use(desk, "m4")
    assert len(desk._stations) == 4


def test_a_station_that_is_ready_when_the_server_ends_is_closed(
    desk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[PlayedStation] = []

    def start(*order: Any) -> PlayedStation:
        made.append(PlayedStation(*order))
        desk._closed.set()
        return made[-1]

    monkeypatch.setattr(desk_module, "Station", start)
    with pytest.raises(KitError, match=r"^the server ends$"):
        use(desk, "m1")
    assert made[0].is_closed
    assert desk._stations == {}


# attempts


def test_an_attempt_goes_to_the_station_as_it_would_lie_in_submitted(
    desk: Any,
) -> None:
    desk._grade(claim())
    station = desk._stations["m1"].station
    assert station.graded == [PackedSubmission("ada", ("ada", "m1", "m1.ipynb"), b"{}")]
    assert desk._store.done == [("equal", "today's"), ("finish", 7, b"ada")]


def test_a_notebook_that_was_graded_already_is_not_graded_again(desk: Any) -> None:
    desk._store.known = b"known"
    desk._grade(claim())
    assert desk._store.done[-1] == ("finish", 7, b"known")
    assert desk._stations == {}
    # but in a regrade it is
    desk._store.done.clear()
    desk._grade(claim(aside=True))
    assert desk._store.done == [("finish", 7, b"ada")]


@pytest.mark.parametrize(
    ("fault", "is_final"),
    [
        (KitError("no suite"), True),
        (MachineFault("gone"), False),
        (OSError("io"), False),
    ],
)
def test_a_suites_fault_ends_an_attempt_and_a_machines_does_not(
    desk: Any, fault: Exception, is_final: bool
) -> None:
    use(desk, "m1").fault = fault
    desk._grade(claim())
    assert desk._store.done[-1] == ("fail", 7, str(fault), is_final)
    assert desk.lines == [f"ada, m1: {fault}"]
    desk._closed.set()
    desk._store.done.clear()
    desk._grade(claim())
    assert desk._store.done == [("equal", "today's")]
    assert len(desk.lines) == 1


def test_what_nobody_foresaw_gives_an_attempt_back(
    desk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(desk._closed, "wait", waited.append)
    desk._give_back(claim(), ValueError("two\nlines"))
    assert desk._store.done == [("fail", 7, "two lines", False)]
    desk._give_back(None, ValueError("no claim"))
    desk._store.fault = DATABASE_GONE
    desk._give_back(claim(), ValueError("x"))
    assert waited == [0.5] * 3
    assert len(desk._store.done) == 2


def test_a_grader_waits_only_where_nothing_does(
    desk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two attempts, a fault of the database, an attempt that fails, nothing, and the end."""
    script: list[Any] = [claim("ada"), claim("ben"), DATABASE_GONE, claim("cyd"), None]
    events: list[Any] = []

    def take(machine: str) -> Any:
        assert machine == "machine-1"
        if not script:
            desk._closed.set()
            return None
        taken = script.pop(0)
        if isinstance(taken, Exception):
            raise taken
        return taken

    def grade(taken: Any) -> None:
        events.append((taken.attempt.student, set(desk._at_work)))
        if taken.attempt.student == "cyd":
            raise ValueError("two\nlines")

    def give_back(taken: Any, error: Exception) -> None:
        events.append(("back", taken and taken.attempt.student, type(error)))

    monkeypatch.setattr(desk._store, "claim", take, raising=False)
    monkeypatch.setattr(desk, "_grade", grade)
    monkeypatch.setattr(desk, "_give_back", give_back)
    monkeypatch.setattr(
        desk._has_work, "wait", lambda seconds: events.append(("wait", seconds))
    )
    desk._work()
    assert events == [
        ("ada", {7}),
        ("ben", {7}),
        ("back", None, OperationalError),
        ("wait", 0.5),
        ("cyd", {7}),
        ("back", "cyd", ValueError),
        ("wait", 0.5),
    ]
    assert desk._at_work == set()
    assert [line[:13] for line in desk.lines] == ["tried again: "] * 2
    assert desk.lines[1] == "tried again: two lines"


def test_leases_are_renewed_three_times_before_they_end(
    desk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For what is at work at that moment; a database that does not answer ends nothing."""
    waits: list[float] = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        desk._at_work = {len(waits)}
        desk._store.fault = DATABASE_GONE if len(waits) == 1 else None
        return len(waits) == 3

    monkeypatch.setattr(desk._closed, "wait", wait)
    desk._keep_leases()
    assert waits == [20.0] * 3
    assert desk._store.done == [
        ("renew", "machine-1", (1,)),
        ("renew", "machine-1", (2,)),
    ]


def test_a_desk_has_a_thread_for_each_grader_and_for_leases(desk: Any) -> None:
    names = [thread.name for thread in desk._threads]
    assert names == ["grader-0", "grader-1", "leases", "first stations"]
    targets = [thread._target for thread in desk._threads]
    assert targets == [desk._work, desk._work, desk._keep_leases, desk._open_first]
    idle: Any = GradingDesk(lambda: desk.course, desk._store, "m", 0, "auto", print)
    assert [thread.name for thread in idle._threads] == ["leases"]
    assert threading.active_count() >= 1  # none of them was started


def test_what_is_due_soonest_is_likeliest_until_its_due_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Due just now, in an hour, never, an hour ago and a day ago; what is not built is no one's."""
    now = datetime(2026, 10, 1, 12, tzinfo=UTC)
    hours = {"a1": -24, "a2": 1, "a4": 0, "a5": -1, "a6": 2}
    due = {name: now + timedelta(hours=of) for name, of in hours.items()}

    def built(name: str) -> Any:
        release = SimpleNamespace(exists=lambda: name != "a6")
        return SimpleNamespace(name=name, release=release)

    entries = [built(f"a{number}") for number in range(1, 7)]
    course: Any = SimpleNamespace(due=due, assignments=lambda: entries)
    likely = [entry.name for entry in desk_module.likely_assignments(course, now)]
    assert likely == ["a4", "a2", "a3", "a5", "a1"]


def test_the_first_stations_are_those_of_the_likeliest_assignments(
    desk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    likely = [a(desk.course.root, f"m{number}") for number in range(1, 6)]
    monkeypatch.setattr(desk_module, "likely_assignments", lambda *_: likely)

    def start(root: Path, name: str, *rest: Any) -> PlayedStation:
        if name == "m2":
            raise KitError("no\nsuite")
        return PlayedStation(root, name, *rest)

    monkeypatch.setattr(desk_module, "Station", start)
    desk._open_first()
    assert list(desk._stations) == ["m1", "m3"]
    assert desk.lines == [
        "graders are ready for m1",
        "m2: no suite",
        "graders are ready for m3",
    ]

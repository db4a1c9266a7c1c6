"""The grading desk: what is handed in is graded behind walls, whatever ends meanwhile."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from courses import handed_in
from served_course import NOTEBOOK, Served

from autograder.course import load_course
from autograder.grading.graded_bytes import pack_graded
from autograder.grading.packed_submission import PackedSubmission
from autograder.records.model import Graded
from autograder.records.results import course_sha256
from autograder.server.attempts import MOST_RUNS, Attempt
from autograder.server.desk import GradingDesk, likely_assignments
from autograder.server.filing import file_attempts

RIGHT = {
    "double": "def double(x):\n    return 2 * x\n",
    "half": "def half(x):\n    return x / 2\n",
}
WRONG_HALF = {**RIGHT, "half": "def half(x):\n    return x\n"}
PATIENCE = 120.0
"""Seconds; a station starts in two on a machine at rest."""


@pytest.fixture(scope="module")
def notebooks() -> dict[str, bytes]:
    return {"right": handed_in(RIGHT).encode(), "wrong": handed_in(WRONG_HALF).encode()}


@pytest.fixture
def desk(served: Served) -> Iterator[GradingDesk]:
    def load_course():  # type: ignore[no-untyped-def]
        return served.office.course

    lines: list[str] = []
    store = served.office.attempts
    with GradingDesk(load_course, store, "machine-1", 1, "auto", lines.append) as desk:
        yield desk


def wait_for(served: Served, attempt: Attempt, state: str = "graded") -> Attempt:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        now = served.office.attempts.get(attempt.id)
        assert now is not None
        if now.state == state:
            return now
        time.sleep(0.05)
    pytest.fail(f"the attempt is not {state} after {PATIENCE:g} s: {now}")


def hand_in(served: Served, desk: GradingDesk, student: str, data: bytes) -> Attempt:
    assignment = served.office.course.assignment("tiny")
    attempt = served.office.hand_in(student, assignment, data)
    desk.wake()
    return attempt


def look_at_regrade(served: Served) -> list[str]:
    """Grade every attempt again, and give the lines of marks that would move."""
    served.office.begin_regrade("tiny")
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        regrade = served.office.regrades.look("tiny", served.office.rules())
        if regrade is not None and regrade.comparison is not None:
            _, *moves, _ = regrade.comparison.lines()
            return moves
        time.sleep(0.05)
    pytest.fail(f"attempts are not graded again after {PATIENCE:g} s")


def test_the_day_of_a_desk(
    served: Served, desk: GradingDesk, notebooks: dict[str, bytes]
) -> None:
    """In one test, since a station takes seconds to start: a right and a wrong notebook, a station
    that is killed, and another suite.
    """
    right = wait_for(served, hand_in(served, desk, "ada", notebooks["right"]))
    assert (right.score, right.max_score) == (5.5, 5.5)
    wrong = wait_for(served, hand_in(served, desk, "bob", notebooks["wrong"]))
    assert (wrong.score, wrong.max_score) == (2.5, 5.5)
    course = served.office.course
    assert file_attempts(course, served.office.attempts).problems == ()
    assert sorted(path.name for path in course.submitted.iterdir()) == ["ada", "bob"]

    station = desk._stations["tiny"].station
    station._process.kill()
    again = wait_for(served, hand_in(served, desk, "bob", notebooks["right"]))
    assert again.score == 5.5

    test = Path(course.suites / "tiny" / "test_half.py")
    test.write_text(
        test.read_text(encoding="utf-8").replace("@points(3)", "@points(4)")
    )
    assert look_at_regrade(served) == [
        "ada 5.5 → 6.5 of 6.5 (+1): half: test_halves_an_odd_number still passed (+1, worth 4 now)",
        "bob 5.5 → 6.5 of 6.5 (+1): half: test_halves_an_odd_number still passed (+1, worth 4 now)",
    ]
    served.office.regrades.drop("tiny")
    later = wait_for(served, hand_in(served, desk, "ada", notebooks["right"]))
    assert (later.score, later.max_score) == (6.5, 6.5)
    assert later.suite_sha256 == course_sha256(course, course.assignment("tiny"))


def test_a_suite_that_cannot_grade_fails_the_attempt_in_words(
    served: Served, desk: GradingDesk, notebooks: dict[str, bytes]
) -> None:
    for path in (served.office.course.suites / "tiny").glob("test_*.py"):
        path.unlink()
    attempt = wait_for(
        served, hand_in(served, desk, "ada", notebooks["right"]), "failed"
    )
    assert "no tests found" in attempt.problem


class BrokenFor:
    """A station that breaks down, in a way that nobody foresaw, over one student's notebook."""

    ended = False

    def __init__(self, *order: object) -> None:
        pass

    def grade(self, packed: PackedSubmission) -> bytes:
        if packed.student == "ada":
            raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")
        return pack_graded(
            Graded(packed.student, problem="has no cell of this assignment")
        )

    def close(self) -> None:
        pass


def test_a_fault_that_nobody_foresaw_costs_its_attempt_alone(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autograder.server.desk.Station", BrokenFor)
    monkeypatch.setattr("autograder.server.desk.POLL_SECONDS", 0.01)
    monkeypatch.setattr("autograder.server.attempts.FIRST_PAUSE", 0.001)
    lines: list[str] = []
    store = served.office.attempts
    assignment = served.office.course.assignment("tiny")
    with GradingDesk(
        lambda: served.office.course, store, "machine-1", 1, "auto", lines.append
    ) as desk:
        hers = served.office.hand_in("ada", assignment, NOTEBOOK)
        his = served.office.hand_in("bob", assignment, NOTEBOOK)
        desk.wake()
        assert wait_for(served, his).problem == "has no cell of this assignment"
        failed = wait_for(served, hers, "failed")
    assert "surrogates not allowed" in failed.problem
    assert sum("surrogates not allowed" in line for line in lines) == MOST_RUNS


def test_stations_start_before_anybody_hands_in(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = threading.Event()

    class Starting(BrokenFor):
        def __init__(self, *order: object) -> None:
            assert order[1] == "tiny"
            started.set()

    monkeypatch.setattr("autograder.server.desk.Station", Starting)
    store = served.office.attempts
    with GradingDesk(
        lambda: served.office.course, store, "machine-1", 1, "auto", print
    ):
        assert started.wait(PATIENCE)


def test_a_station_that_starts_lets_others_grade(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bob's is graded while the station of another assignment takes for ever to start."""
    may_start = threading.Event()

    class SlowFor(BrokenFor):
        def __init__(self, *order: object) -> None:
            if order[1] == "other":
                may_start.wait(PATIENCE)

    root = served.root
    for folder in ("assignments", "source", "solutions"):
        shutil.copytree(root / folder / "tiny", root / folder / "other")
    for path in root.glob("*/other/tiny*"):
        path.rename(path.with_name(path.name.replace("tiny", "other")))
    shutil.copytree(
        root / "tests" / "hidden" / "tiny", root / "tests" / "hidden" / "other"
    )
    monkeypatch.setattr("autograder.server.desk.Station", SlowFor)
    store = served.office.attempts
    with GradingDesk(
        lambda: served.office.course, store, "machine-1", 1, "auto", print
    ) as desk:
        attempt = hand_in(served, desk, "bob", NOTEBOOK)
        assert wait_for(served, attempt).problem == "has no cell of this assignment"
        may_start.set()


def test_what_is_due_next_is_likeliest(served: Served) -> None:
    names = ("over", "soon", "later", "never", "long_over")
    due = {"over": 9, "soon": 11, "later": 30, "long_over": 1}
    root = served.root
    for name in names:
        release = root / "assignments" / name / f"{name}.ipynb"
        release.parent.mkdir()
        release.write_bytes(NOTEBOOK)
        (root / "source" / name).mkdir()
        (root / "source" / name / f"{name}.py").write_text("")
    with (root / "course.toml").open("a", encoding="utf-8") as settings:
        settings.write("[due]\n")
        for name, day in due.items():
            settings.write(f'{name} = "2026-10-{day:02d} 12:00 UTC"\n')
    now = datetime(2026, 10, 11, 12, tzinfo=UTC)  # "soon" is due at this moment
    ranked = [entry.name for entry in likely_assignments(load_course(root), now)]
    assert ranked == ["soon", "later", "never", "tiny", "over", "long_over"]

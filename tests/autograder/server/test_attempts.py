"""The queue: each attempt is graded once, the newest of each person first."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from postgresql_server import postgresql
from served_course import result_of

from autograder.grading.graded_bytes import pack_graded
from autograder.records.model import Graded
from autograder.server.attempts import (
    LEASE_SECONDS,
    MOST_RUNS,
    Attempt,
    AttemptStore,
    Claim,
)
from autograder.server.database import open_database

__all__ = ["postgresql"]


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite", "postgresql"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Clock
) -> Iterator[AttemptStore]:
    address = f"sqlite:///{tmp_path / 'server.db'}"
    if request.param == "postgresql":
        address = request.getfixturevalue("postgresql")()
    engine = open_database(address)
    yield AttemptStore(engine, clock)
    engine.dispose()


def claimed(store: AttemptStore, machine: str = "m1") -> Claim:
    claim = store.claim(machine)
    assert claim is not None
    return claim


def packed(attempt: Attempt, score: float = 2.5) -> bytes:
    return pack_graded(Graded(attempt.student, result_of(attempt, score)))


def test_attempts_are_numbered_for_each_student_and_assignment(
    store: AttemptStore,
) -> None:
    numbers = [
        store.add(student, assignment, b"{}").number
        for student, assignment in [
            ("ada", "a1"),
            ("ada", "a1"),
            ("bob", "a1"),
            ("ada", "a2"),
        ]
    ]
    assert numbers == [1, 2, 1, 1]


def test_the_newest_of_each_person_comes_before_earlier_ones(
    store: AttemptStore,
) -> None:
    store.add("ada", "a1", b"first")
    store.add("ada", "a1", b"second")
    store.add("bob", "a1", b"bob's")
    assert [claimed(store).notebook for _ in range(3)] == [
        b"second",
        b"bob's",
        b"first",
    ]
    assert store.claim("m1") is None


def test_reruns_wait_behind_what_was_handed_in(store: AttemptStore) -> None:
    old = store.add("ada", "a1", b"old")
    store.finish(claimed(store), packed(old))
    store.grade_again([old.id])
    store.add("bob", "a1", b"new")
    assert claimed(store).notebook == b"new"
    again = store.get(old.id)
    assert again is not None
    assert again.is_open
    assert again.score == 2.5, "the result from before stays until the new one is there"


def test_an_attempt_of_a_lost_machine_is_graded_by_another_one(
    store: AttemptStore, clock: Clock
) -> None:
    attempt = store.add("ada", "a1", b"{}")
    lost = claimed(store, "m1")
    assert store.claim("m2") is None
    clock.now += LEASE_SECONDS
    taken = claimed(store, "m2")
    assert taken.attempt.id == attempt.id
    assert store.finish(taken, packed(attempt, 2.0))
    assert not store.finish(lost, packed(attempt, 1.0)), (
        "the lost machine was only slow"
    )
    graded = store.get(attempt.id)
    assert graded is not None
    assert graded.score == 2.0


def test_a_machine_that_renews_its_lease_keeps_its_attempt(
    store: AttemptStore, clock: Clock
) -> None:
    attempt = store.add("ada", "a1", b"{}")
    claimed(store, "m1")
    for _ in range(5):
        clock.now += LEASE_SECONDS / 2
        store.renew("m1", [attempt.id])
        assert store.claim("m2") is None
    clock.now += LEASE_SECONDS / 2
    store.renew("m1", [])  # the machine lives, and has lost this attempt
    clock.now += LEASE_SECONDS / 2
    assert claimed(store, "m2").attempt.id == attempt.id


def test_what_a_killed_server_was_grading_is_graded_after_its_start(
    store: AttemptStore,
) -> None:
    store.add("ada", "a1", b"{}")
    claimed(store, "m1")
    store.release("m1")
    assert claimed(store, "m1").notebook == b"{}"


def test_an_attempt_that_ends_machines_is_given_up_in_words(
    store: AttemptStore, clock: Clock
) -> None:
    attempt = store.add("ada", "a1", b"{}")
    for _ in range(MOST_RUNS):
        claimed(store)
        clock.now += LEASE_SECONDS + 1
    assert store.claim("m1") is None
    failed = store.get(attempt.id)
    assert failed is not None
    assert failed.state == "failed"
    assert "machines that graded it ended each time" in failed.problem


def test_a_fault_of_the_machine_gives_the_attempt_back_until_the_last_run(
    store: AttemptStore, clock: Clock
) -> None:
    """After pauses of 2, 4, 8, 16 and 32 seconds."""
    attempt = store.add("ada", "a1", b"{}")
    states = []
    for run in range(MOST_RUNS):
        store.fail(claimed(store), "no host can be had")
        assert store.claim("m1") is None, "not at once"
        clock.now += 2.0 * 2**run
        now = store.get(attempt.id)
        assert now is not None
        states.append(now.state)
    assert states == ["waiting"] * 5 + ["failed"]


def test_a_notebook_without_a_result_has_its_problem(store: AttemptStore) -> None:
    attempt = store.add("ada", "a1", b"[]")
    store.finish(
        claimed(store), pack_graded(Graded("ada", problem="is not a notebook"))
    )
    graded = store.get(attempt.id)
    assert graded is not None
    assert (graded.state, graded.score, graded.problem) == (
        "graded",
        None,
        "is not a notebook",
    )
    assert store.result(attempt.id) is None


def test_the_same_notebook_and_suite_have_the_same_answer(store: AttemptStore) -> None:
    attempt = store.add("ada", "a1", b"{}")
    answer = packed(attempt)
    store.finish(claimed(store), answer)
    again = store.add("ada", "a1", b"{}")
    assert store.equal_answer(again, "suite-1") == answer
    assert store.equal_answer(again, "suite-2") is None
    assert store.equal_answer(store.add("bob", "a1", b"{}"), "suite-1") is None, (
        "another student"
    )


def test_the_queue_says_how_long_and_how_old_it_is(
    store: AttemptStore, clock: Clock
) -> None:
    first = store.add("ada", "a1", b"{}")
    second = store.add("bob", "a1", b"{}")
    assert store.waiting_before(first) == 0
    assert store.waiting_before(second) == 1
    clock.now += 10
    queue = store.queue_state()
    assert queue.waiting == 2
    assert queue.oldest_seconds == clock.now - first.received


def test_two_machines_never_get_the_same_attempt(store: AttemptStore) -> None:
    """Eight threads for forty attempts: each attempt is claimed once."""
    for number in range(40):
        store.add(f"student-{number}", "a1", b"{}")
    claimed_ids: list[int] = []

    def work(machine: str) -> None:
        while claim := store.claim(machine):
            claimed_ids.append(claim.attempt.id)

    threads = [
        threading.Thread(target=work, args=(f"m{number}",)) for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(claimed_ids) == 40
    assert len(set(claimed_ids)) == 40


def test_a_database_of_the_version_before_gets_the_new_columns(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'server.db'}"
    engine = open_database(address)
    AttemptStore(engine).add("ada", "a1", b"{}")
    with engine.begin() as connection:
        for column in ("aside", "proposal", "handed_in_by"):
            connection.exec_driver_sql(f"ALTER TABLE attempts DROP COLUMN {column}")
    engine.dispose()
    engine = open_database(address)
    (attempt,) = AttemptStore(engine).of_student("ada", "a1")
    assert attempt.aside is False
    engine.dispose()

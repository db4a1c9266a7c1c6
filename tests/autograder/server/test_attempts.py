"""The queue: each attempt is graded once, the newest of each person first."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from postgresql_server import postgresql
from served_course import result_of
from sqlalchemy import LargeBinary, event

from autograder.grading.graded_bytes import pack_graded
from autograder.records.model import Graded
from autograder.server import attempts as attempts_module
from autograder.server.attempts import (
    LEASE_SECONDS,
    MOST_RUNS,
    Attempt,
    AttemptStore,
    Claim,
    QueueState,
)
from autograder.server.database import attempts, open_database

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


ON_SQLITE = pytest.mark.parametrize("store", ["sqlite"], indirect=True)
"""For details in which the two databases do not differ."""


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


@ON_SQLITE
def test_a_lease_holds_until_its_last_moment(store: AttemptStore, clock: Clock) -> None:
    attempt = store.add("ada", "a1", b"{}")
    for run in range(1, MOST_RUNS + 1):
        started = claimed(store).attempt.started
        assert started is not None
        clock.now = started + LEASE_SECONDS - 1.0  # the clock goes on before it tells
        assert store.claim("m2") is None
        now = current(store, attempt)
        assert (now.state, now.runs) == ("started", run)


def test_a_fault_of_the_machine_gives_the_attempt_back_until_the_last_run(
    store: AttemptStore, clock: Clock
) -> None:
    """After pauses of 2, 4, 8, 16 and 32 seconds."""
    attempt = store.add("ada", "a1", b"{}")
    states = []
    for run in range(MOST_RUNS):
        store.fail(claimed(store), "no host can be had")
        begin = clock.now - 1.0  # the clock went on when the end was noted
        pause = 2.0 * 2**run
        clock.now = begin + pause - 1.0  # and goes on before it tells
        assert store.claim("m1") is None
        clock.now = begin + pause
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


def graded(store: AttemptStore, attempt: Attempt, score: float = 2.5) -> None:
    """Grade the attempt that is next, which is this one."""
    claim = claimed(store)
    assert claim.attempt.id == attempt.id
    assert store.finish(claim, packed(attempt, score))


def current(store: AttemptStore, attempt: Attempt) -> Attempt:
    found = store.get(attempt.id)
    assert found is not None
    return found


@ON_SQLITE
def test_a_new_attempt_waits_and_says_who_handed_it_in(store: AttemptStore) -> None:
    attempt = store.add("group-1", "a1", b"{}", "ada")
    assert current(store, attempt) == attempt
    assert (attempt.state, attempt.runs, attempt.handed_in_by) == ("waiting", 0, "ada")
    assert attempt.received == 1001.0
    assert attempt.handed_in.isoformat() == "1970-01-01T00:16:41+00:00"
    sha256 = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert attempt.sha256 == sha256  # of b"{}"
    assert attempt.is_open
    assert not attempt.may_count
    assert store.notebook(attempt.id) == b"{}"
    assert store.answer(attempt.id) is None
    assert store.get(attempt.id + 1) is None


@ON_SQLITE
def test_an_attempt_that_is_begun_is_a_machines_for_a_minute(
    store: AttemptStore, clock: Clock
) -> None:
    store.add("ada", "a1", b"{}")
    attempt = claimed(store, "m1").attempt
    began = clock.now
    assert (attempt.state, attempt.machine, attempt.runs) == ("started", "m1", 1)
    assert attempt.started == began
    assert attempt.is_open
    clock.now = began + LEASE_SECONDS - 1
    assert store.claim("m2") is None  # at the very end of the lease
    taken = claimed(store, "m2").attempt
    assert (taken.machine, taken.runs) == ("m2", 2)


@ON_SQLITE
def test_an_attempt_that_is_graded_counts_and_is_filed_once(
    store: AttemptStore,
) -> None:
    attempt = store.add("ada", "a1", b"{}")
    assert store.unfiled() == []
    graded(store, attempt)
    done = current(store, attempt)
    assert (done.state, done.score, done.max_score) == ("graded", 2.5, 2.5)
    assert (done.is_open, done.may_count, done.filed) == (False, True, False)
    assert done.suite_sha256 == "suite-1"
    assert done.finished == done.started + 1.0  # type: ignore[operator]
    result = store.result(attempt.id)
    assert result is not None
    assert result.score == 2.5
    assert store.unfiled() == [done]
    store.mark_filed([attempt.id])
    assert store.unfiled() == []


@ON_SQLITE
def test_a_fault_of_the_machine_is_no_answer(store: AttemptStore) -> None:
    attempt = store.add("ada", "a1", b"{}")
    answer = pack_graded(Graded("ada", problem="the disk is full", untried=True))
    assert store.finish(claimed(store), answer)
    failed = current(store, attempt)
    assert (failed.state, failed.problem) == ("failed", "the disk is full")
    assert not failed.may_count
    assert store.unfiled() == []


@ON_SQLITE
def test_an_answer_ends_its_own_attempt_alone(
    store: AttemptStore, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that one machine began in the same moment."""
    for student in ("ada", "bob"):
        store.add(student, "a1", b"{}", handed_in_by=student)
    monkeypatch.setattr(Clock, "__call__", lambda clock: clock.now)
    first, second = claimed(store), claimed(store)
    assert first.attempt.started == second.attempt.started
    assert store.finish(first, packed(first.attempt))
    states = [store.get(each.attempt.id) for each in (first, second)]
    assert [attempt.state for attempt in states if attempt] == ["graded", "started"]


def test_what_no_further_try_would_mend_fails_at_once(store: AttemptStore) -> None:
    attempt = store.add("ada", "a1", b"{}")
    assert store.fail(claimed(store), "no suite", is_final=True)
    failed = current(store, attempt)
    assert (failed.state, failed.problem) == ("failed", "no suite")
    assert failed.finished is not None


@ON_SQLITE
def test_only_what_waits_is_superseded_by_the_same_person(
    store: AttemptStore,
) -> None:
    store.add("ada", "a1", b"ada's first")
    store.add("ada", "a2", b"another assignment")
    store.add("bob", "a1", b"another person")
    store.add("ada", "a1", b"ada's second")
    assert [claimed(store).notebook for _ in range(4)] == [
        b"another assignment",
        b"another person",
        b"ada's second",
        b"ada's first",
    ]


@ON_SQLITE
def test_attempts_are_listed_the_newest_first(store: AttemptStore) -> None:
    first = store.add("ada", "a1", b"1")
    other = store.add("bob", "a1", b"2")
    second = store.add("ada", "a1", b"3")
    elsewhere = store.add("group-1", "a2", b"4")
    assert store.of_student("ada", "a1") == [second, first]
    assert store.of_assignment("a1") == [second, other, first]
    owners = {"a1": "ada", "a2": "group-1", "a3": "ada"}
    assert store.of_owners(owners) == {
        "a1": [second, first],
        "a2": [elsewhere],
        "a3": [],
    }


@ON_SQLITE
def test_a_machine_renews_and_releases_its_own_attempts_alone(
    store: AttemptStore, clock: Clock
) -> None:
    attempt = store.add("ada", "a1", b"{}")
    claimed(store, "m1")
    store.release("m2")
    assert store.claim("m2") is None
    clock.now += LEASE_SECONDS
    store.renew("m2", [attempt.id])
    assert claimed(store, "m2").attempt.id == attempt.id


@ON_SQLITE
def test_an_attempt_that_is_done_is_neither_renewed_nor_released(
    store: AttemptStore,
) -> None:
    attempt = store.add("ada", "a1", b"{}")
    graded(store, attempt)
    store.renew("m1", [attempt.id])
    store.release("m1")
    assert store.claim("m2") is None
    assert current(store, attempt).state == "graded"


@ON_SQLITE
def test_what_is_graded_again_begins_from_nothing_and_keeps_its_result(
    store: AttemptStore, clock: Clock
) -> None:
    attempt = store.add("ada", "a1", b"{}")
    waiting = store.add("bob", "a1", b"{}")
    graded(store, attempt)
    store.grade_again([attempt.id, waiting.id])
    again = current(store, attempt)
    assert (again.state, again.runs, again.suite_sha256) == ("waiting", 0, "")
    assert (again.score, again.may_count) == (2.5, True)
    # one that waits stays where it is: before what is graded again
    assert claimed(store).attempt.id == waiting.id
    assert claimed(store).attempt.id == attempt.id


@ON_SQLITE
def test_an_equal_answer_is_one_that_counts(store: AttemptStore) -> None:
    attempt = store.add("ada", "a1", b"{}")
    graded(store, attempt)
    other_notebook = store.add("ada", "a1", b"[]")
    other_assignment = store.add("ada", "a2", b"{}")
    assert store.equal_answer(other_notebook, "suite-1") is None
    assert store.equal_answer(other_assignment, "suite-1") is None
    again = store.add("ada", "a1", b"{}")
    assert store.equal_answer(again, "suite-1") == packed(attempt)
    store.grade_again([attempt.id])
    assert store.equal_answer(again, "suite-1") is None


@ON_SQLITE
def test_results_are_those_of_graded_attempts(store: AttemptStore) -> None:
    first = store.add("ada", "a1", b"1")
    graded(store, first, 1.0)
    broken = store.add("bob", "a1", b"2")
    store.finish(claimed(store), pack_graded(Graded("bob", problem="no notebook")))
    waiting = store.add("cyd", "a1", b"3")
    results = store.results([first.id, broken.id, waiting.id])
    assert {number: result.score for number, result in results.items()} == {
        first.id: 1.0
    }
    answer = store.answer(broken.id)
    assert answer is not None
    assert answer[0].problem == "no notebook"


@ON_SQLITE
def test_an_empty_queue_has_no_age(store: AttemptStore, clock: Clock) -> None:
    assert store.queue_state() == QueueState(0, 0, 0.0, 1.0)
    assert store.count_by_state() == {}


@ON_SQLITE
def test_the_queue_counts_states_and_measures_the_last_attempts(
    store: AttemptStore, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three attempts took 9, 3 and 5 seconds; the last two count: 4 seconds."""
    monkeypatch.setattr(attempts_module, "_MEASURED", 2)
    for number, seconds in enumerate((9.0, 3.0, 5.0)):
        attempt = store.add(f"student-{number}", "a1", b"{}")
        claim = claimed(store)
        clock.now += seconds - 1.0
        store.finish(claim, packed(attempt))
    begun = store.add("dan", "a1", b"{}")
    claimed(store)
    store.add("eve", "a1", b"{}")
    oldest = clock.now
    store.add("fay", "a1", b"{}")
    state = store.queue_state()
    assert state == QueueState(2, 1, clock.now - oldest, 4.0)
    assert store.count_by_state() == {"graded": 3, "started": 1, "waiting": 2}
    assert store.waiting_before(begun) == 0


@ON_SQLITE
def test_what_is_before_an_attempt_has_a_higher_priority_or_came_earlier(
    store: AttemptStore,
) -> None:
    first = store.add("ada", "a1", b"1")
    second = store.add("bob", "a1", b"2")
    newest = store.add("ada", "a1", b"3")
    assert store.waiting_before(second) == 0
    assert store.waiting_before(newest) == 1
    assert store.waiting_before(first) == 2
    claimed(store)  # the second one waits no more
    assert store.waiting_before(newest) == 0


def test_what_is_large_stands_last_in_a_row() -> None:
    """SQLite walks through a notebook's pages to reach a column behind it."""
    is_large = [isinstance(column.type, LargeBinary) for column in attempts.columns]
    assert is_large == sorted(is_large)


def test_the_time_of_an_attempt_is_read_from_an_index(tmp_path: Path) -> None:
    """Of a database of the version before too, whose tables have no such index."""
    address = f"sqlite:///{tmp_path / 'server.db'}"
    engine = open_database(address)
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP INDEX attempts_by_end")
    engine.dispose()
    engine = open_database(address)
    statements: list[str] = []
    event.listen(
        engine,
        "before_cursor_execute",
        lambda c, cursor, statement, values, context, many: statements.append(
            statement
        ),
    )
    AttemptStore(engine).queue_state()
    (times,) = [text for text in statements if "finished DESC" in text]
    with engine.connect() as connection:
        plan = connection.exec_driver_sql(
            f"EXPLAIN QUERY PLAN {times}", ("graded", 50, 0)
        ).all()
    engine.dispose()
    assert "COVERING INDEX attempts_by_end" in str(plan)
    assert "TEMP B-TREE" not in str(plan)

"""Which attempt counts, who may try again, and what a regrade at the server moves."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from served_course import result_of
from sqlalchemy import Engine

from autograder.basics.errors import KitError
from autograder.course import Course
from autograder.course.course import Late, Submit
from autograder.grading.graded_bytes import pack_graded
from autograder.ledger.book import read_ledger
from autograder.records.model import Graded
from autograder.server.attempts import Attempt, AttemptStore
from autograder.server.database import open_database
from autograder.server.regrades import Regrade, RegradeStore
from autograder.server.rules import AttemptRules

DUE = datetime(2026, 11, 1, 12, tzinfo=UTC)
A_DAY = timedelta(days=1)


def attempt(
    number: int,
    score: float | None,
    *,
    handed_in: datetime = DUE,
    state: str = "graded",
    student: str = "ada",
) -> Attempt:
    return Attempt(
        id=number,
        student=student,
        assignment="a1",
        number=number,
        received=handed_in.timestamp(),
        sha256="",
        state=state,
        runs=1,
        machine="",
        started=None,
        finished=None,
        suite_sha256="",
        score=score,
        max_score=None if score is None else 10.0,
        problem="",
        filed=False,
        aside=False,
        handed_in_by="",
    )


def rules(root: Path, **settings: object) -> AttemptRules:
    course = dataclasses.replace(Course(root), **settings)  # type: ignore[arg-type]
    return AttemptRules(course, read_ledger(course))


def counting(rules: AttemptRules, *attempts: Attempt) -> int | None:
    chosen = rules.counting(attempts)
    return chosen.number if chosen else None


def test_the_best_attempt_counts_and_of_equal_ones_the_first(tmp_path: Path) -> None:
    best = rules(tmp_path)
    third = attempt(3, 7.0)
    assert counting(best, third, attempt(2, 8.0), attempt(1, 8.0)) == 1
    assert counting(best, third, attempt(2, None), attempt(1, 6.0)) == 3
    # without any result the last one is shown
    assert counting(best, attempt(2, None), attempt(1, None)) == 2
    assert counting(best, attempt(2, None, state="waiting"), attempt(1, 0.0)) == 1
    assert counting(best, attempt(1, None, state="waiting")) is None
    assert counting(best) is None


def test_the_last_attempt_counts_where_the_course_says_so(tmp_path: Path) -> None:
    last = rules(tmp_path, submit=Submit(counts="last"))
    waiting = attempt(3, None, state="waiting")
    assert counting(last, waiting, attempt(2, 1.0), attempt(1, 8.0)) == 2
    assert counting(last, attempt(2, None), attempt(1, 8.0)) == 2


def test_points_are_compared_after_the_late_penalty(tmp_path: Path) -> None:
    """A day late costs 2 of 10 points: 9 become 7."""
    late = Late(policy="per_day", penalty_per_day=0.2)
    settings = {"late": late, "due": {"a1": DUE}}
    strict = rules(tmp_path, **settings)
    second = attempt(2, 9.0, handed_in=DUE + A_DAY)
    assert counting(strict, second, attempt(1, 7.5)) == 1
    assert counting(strict, second, attempt(1, 6.5)) == 2
    extended = rules(tmp_path, **settings, extensions={"a1": {"ada": A_DAY}})
    assert counting(extended, second, attempt(1, 7.5)) == 2
    undated = rules(tmp_path, late=late)
    assert counting(undated, second, attempt(1, 7.5)) == 2


def test_of_two_that_are_worth_nothing_the_first_counts(tmp_path: Path) -> None:
    """Its 0 points are no fewer than what the late policy leaves of 5."""
    late = rules(tmp_path, late=Late(policy="zero"), due={"a1": DUE})
    too_late = attempt(2, 5.0, handed_in=DUE + A_DAY)
    assert counting(late, attempt(1, 0.0), too_late) == 1


def test_a_student_whom_the_class_list_does_not_have_hands_in_alone(
    tmp_path: Path,
) -> None:
    (tmp_path / "students.csv").write_text("id,group\nada,Red\nbob,Red\ncyd,\n")
    in_groups = rules(tmp_path, submit=Submit(groups="a1"))
    owners = [in_groups.owner(name, "a1") for name in ("ada", "bob", "cyd", "eve")]
    assert owners == ["Red", "Red", "cyd", "eve"]
    assert in_groups.owner("ada", "a2") == "ada"
    assert in_groups.members("Red", "a1") == ("ada", "bob")
    assert in_groups.members("eve", "a1") == ("eve",)


def test_of_each_student_one_attempt_counts(tmp_path: Path) -> None:
    everybody = [
        attempt(4, None, student="cyd", state="waiting"),
        attempt(3, 5.0, student="bob"),
        attempt(2, 8.0),
        attempt(1, 3.0, student="bob"),
    ]
    chosen = rules(tmp_path).counting_by_student(everybody)
    assert [(student, one.number) for student, one in chosen.items()] == [
        ("ada", 2),
        ("bob", 3),
    ]


@pytest.mark.parametrize(
    ("tries", "used", "left", "words"),
    [
        (0, 5, None, ""),
        (1, 0, 1, ""),
        (1, 1, 0, "all 1 attempt are used"),
        (2, 1, 1, ""),
        (2, 2, 0, "all 2 attempts are used"),
        (2, 3, 0, "all 2 attempts are used"),
    ],
)
def test_attempts_are_used_up(
    tmp_path: Path, tries: int, used: int, left: int | None, words: str
) -> None:
    limited = rules(tmp_path, submit=Submit(tries=tries))
    attempts = [attempt(number, 1.0) for number in range(used, 0, -1)]
    assert limited.tries_left(attempts) == left
    assert limited.why_not_now(attempts) == words


def test_a_pause_begins_with_the_newest_attempt(tmp_path: Path) -> None:
    paused = rules(tmp_path, submit=Submit(pause_minutes=30.0))
    now = datetime.now(UTC)
    just = attempt(2, 1.0, handed_in=now - timedelta(minutes=29))
    before = attempt(1, 1.0, handed_in=now - timedelta(minutes=31))
    words = paused.why_not_now([just, before])
    assert words.startswith("the next attempt is possible from ")
    assert paused.why_not_now([before]) == ""
    assert paused.why_not_now([]) == ""
    assert rules(tmp_path).why_not_now([just]) == ""


def test_a_pause_is_over_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attempt at 12:00 and a pause of half an hour."""
    paused = rules(tmp_path, submit=Submit(pause_minutes=30.0))
    clock = SimpleNamespace(now=lambda zone: DUE + timedelta(minutes=30))
    monkeypatch.setattr("autograder.server.rules.datetime", clock)
    assert paused.why_not_now([attempt(1, 1.0)]) == ""
    clock.now = lambda zone: DUE + timedelta(minutes=29, seconds=59)
    words = paused.why_not_now([attempt(1, 1.0)])
    assert words.startswith("the next attempt is possible from ")
    assert "12:30" in words


def test_work_is_past_due_after_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    due = rules(tmp_path, due={"a1": DUE})
    clock = SimpleNamespace(now=lambda zone: DUE)
    monkeypatch.setattr("autograder.server.rules.datetime", clock)
    assert not due.is_past_due("ada", "a1")
    clock.now = lambda zone: DUE + timedelta(seconds=1)
    assert due.is_past_due("ada", "a1")
    assert not due.is_past_due("ada", "a2")


def test_after_the_due_time_a_student_sees_all(tmp_path: Path) -> None:
    hidden = Submit(show="score")
    soon = datetime.now(UTC) + A_DAY
    before = rules(tmp_path, submit=hidden, due={"a1": soon})
    assert before.shown(attempt(1, 1.0)) == "score"
    assert not before.is_past_due("ada", "a1")
    after = rules(tmp_path, submit=hidden, due={"a1": DUE})
    assert after.shown(attempt(1, 1.0)) == "all"
    assert after.due("ada", "a1") == DUE
    undated = rules(tmp_path, submit=hidden)
    assert undated.shown(attempt(1, 1.0)) == "score"
    assert undated.due("ada", "a1") is None
    more = datetime.now(UTC) - DUE + A_DAY
    extended = rules(
        tmp_path, submit=hidden, due={"a1": DUE}, extensions={"a1": {"ada": more}}
    )
    assert not extended.is_past_due("ada", "a1")
    assert extended.is_past_due("bob", "a1")


# regrades


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = open_database(f"sqlite:///{tmp_path / 'server.db'}")
    yield engine
    engine.dispose()


def graded(store: AttemptStore, score: float | None, problem: str = "") -> None:
    """Grade the attempt that is next; None for a fault of the machine."""
    claim = store.claim("m1")
    assert claim is not None
    record = Graded(claim.attempt.student, problem="no disk", untried=True)
    if problem:
        record = Graded(claim.attempt.student, problem=problem)
    elif score is not None:
        record = Graded(claim.attempt.student, result_of(claim.attempt, score))
    assert store.finish(claim, pack_graded(record))


def score_of(store: AttemptStore, student: str) -> float | None:
    (newest, *_) = store.of_student(student, "a1")
    return newest.score


def test_a_regrade_moves_marks_once_it_is_accepted(
    engine: Engine, tmp_path: Path
) -> None:
    store = AttemptStore(engine)
    regrades = RegradeStore(engine)
    best = rules(tmp_path)
    for student, score in (("ada", 1.0), ("bob", 2.0)):
        store.add(student, "a1", b"{}")
        graded(store, score)
    store.add("cyd", "a2", b"{}")
    graded(store, 2.5)
    assert regrades.look("a1", best) is None
    assert regrades.begin("a1") == 2
    assert regrades.begin("a1") == 0  # they are aside already
    assert regrades.look("a1", best) == Regrade(2, 2, None)
    with pytest.raises(KitError, match=r"^not everybody was graded again: nothing was"):
        regrades.accept("a1", best)
    graded(store, 2.5)
    assert score_of(store, "ada") == 1.0
    seen = regrades.look("a1", best)
    assert seen == Regrade(2, 1, None)
    assert not seen.may_be_accepted
    graded(store, 2.0)
    seen = regrades.look("a1", best)
    assert seen is not None
    assert seen.may_be_accepted
    assert seen.comparison is not None
    (move,) = seen.comparison.moves
    assert (move.student, move.change) == ("ada", "1 → 2.5 of 2.5 (+1.5)")
    assert seen.comparison.same == 1
    assert regrades.accept("a1", best) == seen.comparison
    assert (score_of(store, "ada"), score_of(store, "bob")) == (2.5, 2.0)
    assert regrades.look("a1", best) is None
    assert not store.of_student("ada", "a1")[0].filed


def test_a_fault_of_the_machine_keeps_a_regrade_from_being_accepted(
    engine: Engine, tmp_path: Path
) -> None:
    store = AttemptStore(engine)
    regrades = RegradeStore(engine)
    best = rules(tmp_path)
    store.add("ada", "a1", b"{}")
    graded(store, 1.0)
    regrades.begin("a1")
    graded(store, None)
    seen = regrades.look("a1", best)
    assert seen is not None
    assert seen.comparison is not None
    assert seen.comparison.untried == ("ada",)
    assert not seen.may_be_accepted
    with pytest.raises(KitError):
        regrades.accept("a1", best)
    assert score_of(store, "ada") == 1.0


def test_a_regrade_that_is_dropped_leaves_all_as_it_was(
    engine: Engine, tmp_path: Path
) -> None:
    store = AttemptStore(engine)
    regrades = RegradeStore(engine)
    best = rules(tmp_path)
    store.add("ada", "a1", b"{}")
    graded(store, 1.0)
    store.mark_filed([1])
    regrades.begin("a1")
    graded(store, None, "it is no notebook any more")
    seen = regrades.look("a1", best)
    assert seen is not None
    assert seen.comparison is not None
    (move,) = seen.comparison.moves
    assert move.reasons == ("can no longer be graded: it is no notebook any more",)
    regrades.drop("a1")
    (same,) = store.of_student("ada", "a1")
    assert (same.state, same.score, same.aside, same.filed) == (
        "graded",
        1.0,
        False,
        True,
    )
    assert regrades.look("a1", best) is None


def test_a_regrade_that_no_machine_can_do_ends_with_the_old_result(
    engine: Engine, tmp_path: Path
) -> None:
    store = AttemptStore(engine)
    regrades = RegradeStore(engine)
    store.add("ada", "a1", b"{}")
    graded(store, 1.0)
    regrades.begin("a1")
    claim = store.claim("m1")
    assert claim is not None
    assert store.fail(claim, "no suite", is_final=True)
    (same,) = store.of_student("ada", "a1")
    assert (same.state, same.score, same.problem) == ("graded", 1.0, "")
    seen = regrades.look("a1", rules(tmp_path))
    assert seen is not None
    assert seen.comparison is not None
    assert seen.comparison.untried == ("ada",)

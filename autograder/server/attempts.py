"""Attempts: every notebook that was handed in, its place in the queue, and its result.

The queue is the table of attempts itself, on SQLite as on PostgreSQL: a grader's claim, the lease
that other machines respect, and the answer are changes of the same row, so no attempt can be in the
queue and not in the database, or the other way round.

An attempt is `waiting`, then `started` by a machine that renews its lease, then `graded` (with a
result or with the problem of its notebook), or `failed` where the machine was at fault twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Engine, Select, case, func, or_, select, tuple_, update
from sqlalchemy.exc import IntegrityError

from autograder.grading.graded_bytes import unpack_graded
from autograder.records.model import Graded, Result
from autograder.server.database import (
    attempts,
    change,
    change_row,
    read,
    read_value,
)

LEASE_SECONDS = 60.0
"""How long a machine may be silent before its attempts go back into the queue."""
MOST_RUNS = 6
"""So often an attempt is begun: a machine may be lost, or end, while it grades."""
FIRST_PAUSE = 2.0
"""Seconds before an attempt is begun again after a fault of the machine's; doubled each time."""
NEWEST, SUPERSEDED, RERUN = 0, 1, 2
"""Priorities: the newest attempt of a person, their earlier ones, and attempts graded anew."""
_MEASURED = 50
"""Over so many of the last attempts the time of one is averaged."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One notebook that was handed in, without its bytes.

    Attributes:
        student: whose it is; for a group's the group's name.
        number: 1 for the student's first attempt at the assignment.
        state: "waiting", "started", "graded" or "failed".
        runs: how often a machine has begun it.
        sha256: hash of the notebook.
        suite_sha256: hash of the suite and settings that graded it, as results have it.
        score, max_score: points of the tests; None without a result.
        problem: why there is no result.
        filed: whether the class's folders know of it.
        aside: whether it is part of a regrade, whose new result does not count yet.
        handed_in_by: who of a group handed it in; "" where the student did.
        weights_note: what the student is told of the file of weights; "" where none is taken.
        nickname: what the leaderboard calls its student; "" for a number in place of a name.
        nickname_note: what the student is told of the nickname; "" where none is taken.
    """

    id: int
    student: str
    assignment: str
    number: int
    received: float
    sha256: str
    state: str
    runs: int
    machine: str
    started: float | None
    finished: float | None
    suite_sha256: str
    score: float | None
    max_score: float | None
    problem: str
    filed: bool
    aside: bool
    handed_in_by: str
    weights_note: str = ""
    nickname: str = ""
    nickname_note: str = ""

    @property
    def handed_in(self) -> datetime:
        """The hand-in time, in UTC."""
        return datetime.fromtimestamp(self.received, UTC)

    @property
    def is_open(self) -> bool:
        """Whether a result is still to come."""
        return self.state in ("waiting", "started")

    @property
    def may_count(self) -> bool:
        """Whether it was graded; while it is graded again, the result from before counts."""
        return self.state == "graded" or self.aside or self.score is not None


@dataclass(frozen=True, slots=True)
class KeptWeights:
    """The file of weights of an attempt.

    Attributes:
        content: None where none came, or none that is kept.
        note: what the student is told of it.
    """

    content: bytes | None = None
    note: str = ""


NO_WEIGHTS = KeptWeights()


@dataclass(frozen=True, slots=True)
class KeptNickname:
    """The nickname of an attempt, "" where none is kept, and what the student is told of it."""

    text: str = ""
    note: str = ""


NO_NICKNAME = KeptNickname()


@dataclass(frozen=True, slots=True)
class Claim:
    """An attempt that a machine grades now, with the notebook."""

    attempt: Attempt
    notebook: bytes


@dataclass(frozen=True, slots=True)
class QueueState:
    """The queue at one moment.

    Attributes:
        oldest_seconds: the age of the oldest waiting attempt; 0 for an empty queue.
        seconds_each: mean time of one attempt in a grader, of the last ones.
    """

    waiting: int
    started: int
    oldest_seconds: float
    seconds_each: float


_COLUMNS = [attempts.c[name] for name in Attempt.__dataclass_fields__]


def answer_columns(answer: bytes) -> dict[str, object]:
    """The columns of an attempt that follow from what graders packed, for an attempt that counts
    with it from now on.
    """
    graded, _ = unpack_graded(answer)
    result = graded.result
    return {
        "answer": answer,
        "state": "failed" if graded.untried else "graded",
        "problem": graded.problem,
        "score": result.score if result else None,
        "max_score": result.max_score if result else None,
        "suite_sha256": result.suite_sha256 if result else "",
        "filed": False,
    }


class AttemptStore:
    """The attempts in the database. Every method is one transaction.

    Args:
        clock: seconds since 1970; tests have their own.
    """

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.time) -> None:
        self._engine = engine
        self._clock = clock

    def add(
        self,
        student: str,
        assignment: str,
        notebook: bytes,
        handed_in_by: str = "",
        weights: KeptWeights = NO_WEIGHTS,
        nickname: KeptNickname = NO_NICKNAME,
    ) -> Attempt:
        """Store a notebook that was handed in just now, with the weights and the nickname that came
        with it. All are on disk when this returns.
        """
        while True:
            # two tabs handed in at once: the other one has the number
            with contextlib.suppress(IntegrityError):
                return self._add(
                    student,
                    assignment,
                    notebook,
                    handed_in_by,
                    weights,
                    nickname,
                )

    def _add(
        self,
        student: str,
        assignment: str,
        notebook: bytes,
        handed_in_by: str,
        weights: KeptWeights,
        nickname: KeptNickname,
    ) -> Attempt:
        own = (attempts.c.student == student) & (attempts.c.assignment == assignment)
        is_newest = (attempts.c.state == "waiting") & (attempts.c.priority == NEWEST)
        superseding = update(attempts).where(own, is_newest).values(priority=SUPERSEDED)
        last_number = select(func.max(attempts.c.number)).where(own)
        with self._engine.begin() as connection:
            connection.execute(superseding)
            last = connection.execute(last_number).scalar()
            row = connection.execute(
                attempts.insert()
                .values(
                    student=student,
                    assignment=assignment,
                    number=(last or 0) + 1,
                    received=self._clock(),
                    sha256=hashlib.sha256(notebook).hexdigest(),
                    notebook=notebook,
                    state="waiting",
                    priority=NEWEST,
                    handed_in_by=handed_in_by,
                    weights=weights.content,
                    weights_note=weights.note,
                    nickname=nickname.text,
                    nickname_note=nickname.note,
                )
                .returning(*_COLUMNS)
            ).one()
        return Attempt(*row)

    def get(self, attempt_id: int) -> Attempt | None:
        """The attempt of that number, of whomever it is."""
        found = self._all(select(*_COLUMNS).where(attempts.c.id == attempt_id))
        return found[0] if found else None

    def of_student(self, student: str, assignment: str) -> list[Attempt]:
        """The student's attempts at an assignment, the newest first."""
        return self.of_owners({assignment: student})[assignment]

    def of_owners(self, owners: Mapping[str, str]) -> dict[str, list[Attempt]]:
        """By assignment, the attempts of its student, or group, the newest first."""
        query = select(*_COLUMNS).where(
            tuple_(attempts.c.assignment, attempts.c.student).in_(list(owners.items()))
        )
        by_assignment: dict[str, list[Attempt]] = {
            assignment: [] for assignment in owners
        }
        for attempt in self._all(
            query.order_by(attempts.c.received.desc(), attempts.c.id.desc())
        ):
            by_assignment[attempt.assignment].append(attempt)
        return by_assignment

    def of_assignment(self, assignment: str) -> list[Attempt]:
        """Everybody's attempts, the newest first."""
        query = select(*_COLUMNS).where(attempts.c.assignment == assignment)
        return self._all(
            query.order_by(attempts.c.received.desc(), attempts.c.id.desc())
        )

    def unfiled(self) -> list[Attempt]:
        """Graded attempts that the class's folders do not know of yet."""
        is_graded = or_(attempts.c.state == "graded", attempts.c.aside)
        query = select(*_COLUMNS).where(is_graded, attempts.c.filed.is_(False))
        return self._all(query.order_by(attempts.c.id))

    def _all(self, query: Select[Any]) -> list[Attempt]:
        return [Attempt(*row) for row in read(self._engine, query)]

    def notebook(self, attempt_id: int) -> bytes:
        """The notebook as it was handed in."""
        query = select(attempts.c.notebook).where(attempts.c.id == attempt_id)
        return bytes(read_value(self._engine, query))

    def weights(self, attempt_id: int) -> bytes | None:
        """The weights that came with the notebook; None where none are kept."""
        query = select(attempts.c.weights).where(attempts.c.id == attempt_id)
        weights = read_value(self._engine, query)
        return None if weights is None else bytes(weights)

    def nicknames_of_others(self, student: str, assignment: str) -> set[str]:
        """What everybody else has called themselves at an assignment, in any attempt."""
        query = select(attempts.c.nickname).where(
            attempts.c.assignment == assignment,
            attempts.c.student != student,
            attempts.c.nickname != "",
        )
        return {row.nickname for row in read(self._engine, query)}

    def answer(self, attempt_id: int) -> tuple[Graded, bytes] | None:
        """The record of the graded attempt and the content of its result's file; None before."""
        query = select(attempts.c.answer).where(attempts.c.id == attempt_id)
        answer = read_value(self._engine, query)
        return None if answer is None else unpack_graded(bytes(answer))

    def result(self, attempt_id: int) -> Result | None:
        """The attempt's result; None where it has none."""
        return self.results([attempt_id]).get(attempt_id)

    def results(self, attempt_ids: Sequence[int]) -> dict[int, Result]:
        """The results of those attempts that have one."""
        query = select(attempts.c.id, attempts.c.answer).where(
            attempts.c.id.in_(attempt_ids), attempts.c.answer.is_not(None)
        )
        contents = {
            row.id: unpack_graded(bytes(row.answer))[1]
            for row in read(self._engine, query)
        }
        return {
            attempt_id: Result.from_json(content.decode())
            for attempt_id, content in contents.items()
            if content
        }

    # What graders do

    def claim(self, machine: str) -> Claim | None:
        """Take the attempt that is next; None where nothing waits.

        Attempts whose machine has been silent for too long are next like any other.
        """
        now = self._clock()
        self._give_up_lost_attempts(now)
        following = (
            select(attempts.c.id)
            .where(
                attempts.c.state.in_(("waiting", "started")),
                attempts.c.leased_until < now,
            )
            .order_by(attempts.c.priority, attempts.c.received, attempts.c.id)
            .limit(1)
            .with_for_update(skip_locked=True)  # SQLite writes one row at a time anyway
        )
        row = change_row(
            self._engine,
            update(attempts)
            .where(attempts.c.id == following.scalar_subquery())
            .values(
                state="started",
                machine=machine,
                started=now,
                leased_until=now + LEASE_SECONDS,
                runs=attempts.c.runs + 1,
            )
            .returning(*_COLUMNS, attempts.c.notebook),
        )
        if row is None:
            return None
        return Claim(Attempt(*row[:-1]), bytes(row[-1]))

    def _give_up_lost_attempts(self, now: float) -> None:
        """Fail the attempts that were begun too often: each time the machine was lost."""
        problem = "the machines that graded it ended each time; an instructor can start it again"
        change(
            self._engine,
            update(attempts)
            .where(
                attempts.c.state == "started",
                attempts.c.leased_until < now,
                attempts.c.runs >= MOST_RUNS,
            )
            .values(
                state=case((attempts.c.aside, "graded"), else_="failed"),
                problem=case((attempts.c.aside, attempts.c.problem), else_=problem),
                finished=now,
            ),
        )

    def renew(self, machine: str, attempt_ids: Sequence[int]) -> None:
        """Keep what this machine is grading from going to another one."""
        change(
            self._engine,
            update(attempts)
            .where(
                attempts.c.id.in_(attempt_ids),
                attempts.c.state == "started",
                attempts.c.machine == machine,
            )
            .values(leased_until=self._clock() + LEASE_SECONDS),
        )

    def release(self, machine: str) -> None:
        """Put back what an earlier process of this machine was grading when it ended."""
        change(
            self._engine,
            update(attempts)
            .where(attempts.c.state == "started", attempts.c.machine == machine)
            .values(leased_until=0.0),
        )

    def finish(self, claim: Claim, answer: bytes) -> bool:
        """Store what grading gave; False where another machine has had the attempt since.

        Args:
            answer: the record and the result, as graders pack them.
        """
        if claim.attempt.aside:
            return self._end(claim, {"state": "graded", "proposal": answer})
        return self._end(claim, answer_columns(answer))

    def fail(self, claim: Claim, problem: str, *, is_final: bool = False) -> bool:
        """Give an attempt back that could not be graded, to be begun again after a pause.

        Args:
            problem: why; stored where nothing is tried any more.
            is_final: whether another try would end like this one.
        """
        runs = claim.attempt.runs
        if runs < MOST_RUNS and not is_final:
            pause = FIRST_PAUSE * 2 ** (runs - 1)
            values = {
                "state": "waiting",
                "machine": "",
                "leased_until": self._clock() + pause,
            }
            return self._end(claim, values)
        if claim.attempt.aside:
            return self._end(claim, {"state": "graded"})
        return self._end(claim, {"state": "failed", "problem": problem})

    def _end(self, claim: Claim, values: dict[str, object]) -> bool:
        attempt = claim.attempt
        is_ours = (
            (attempts.c.id == attempt.id)
            & (attempts.c.state == "started")
            & (attempts.c.machine == attempt.machine)
            & (attempts.c.started == attempt.started)
        )
        ending = update(attempts).where(is_ours)
        ending = ending.values(finished=self._clock(), **values)
        return change(self._engine, ending) == 1

    def equal_answer(self, attempt: Attempt, suite_sha256: str) -> bytes | None:
        """The answer to an earlier attempt of the same student with the same notebook, where the
        same suite graded it: the result would be the same bytes.
        """
        query = (
            select(attempts.c.answer)
            .where(
                attempts.c.student == attempt.student,
                attempts.c.assignment == attempt.assignment,
                attempts.c.sha256 == attempt.sha256,
                attempts.c.suite_sha256 == suite_sha256,
                attempts.c.state == "graded",
            )
            .limit(1)
        )
        answer = read_value(self._engine, query)
        return None if answer is None else bytes(answer)

    def grade_again(self, attempt_ids: Sequence[int]) -> None:
        """Put attempts into the queue once more, behind what was handed in. Each keeps its result
        until the new one is there.
        """
        change(
            self._engine,
            update(attempts)
            .where(
                attempts.c.id.in_(attempt_ids),
                attempts.c.state.in_(("graded", "failed")),
            )
            .values(
                state="waiting",
                priority=RERUN,
                runs=0,
                leased_until=0.0,
                suite_sha256="",
            ),
        )

    def mark_filed(self, attempt_ids: Sequence[int]) -> None:
        """Note that the class's folders have what these attempts say."""
        change(
            self._engine,
            update(attempts).where(attempts.c.id.in_(attempt_ids)).values(filed=True),
        )

    # How the queue stands

    def waiting_before(self, attempt: Attempt) -> int:
        """How many waiting attempts are graded before this one."""
        own = select(attempts.c.priority).where(attempts.c.id == attempt.id)
        priority = own.scalar_subquery()
        is_before = or_(
            attempts.c.priority < priority,
            (attempts.c.priority == priority)
            & (attempts.c.received < attempt.received),
        )
        query = select(func.count()).where(attempts.c.state == "waiting", is_before)
        return int(read_value(self._engine, query))

    def queue_state(self) -> QueueState:
        """How long the queue is, and how old."""
        now = self._clock()
        query = select(attempts.c.state, func.count(), func.min(attempts.c.received))
        is_open = attempts.c.state.in_(("waiting", "started"))
        rows = read(self._engine, query.where(is_open).group_by(attempts.c.state))
        times = read(
            self._engine,
            select(attempts.c.started, attempts.c.finished)
            .where(attempts.c.state == "graded", attempts.c.started.is_not(None))
            .order_by(attempts.c.finished.desc())
            .limit(_MEASURED),
        )
        counts = {state: count for state, count, _ in rows}
        oldest = min(
            (first for state, _, first in rows if state == "waiting"), default=now
        )
        seconds = [finished - started for started, finished in times]
        return QueueState(
            waiting=counts.get("waiting", 0),
            started=counts.get("started", 0),
            oldest_seconds=max(0.0, now - oldest),
            seconds_each=sum(seconds) / len(seconds) if seconds else 1.0,
        )

    def count_by_state(self) -> dict[str, int]:
        """How many attempts are in each state."""
        query = select(attempts.c.state, func.count()).group_by(attempts.c.state)
        return {row[0]: row[1] for row in read(self._engine, query)}

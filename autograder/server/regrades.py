"""A regrade at the server: attempts are graded again aside, an instructor sees whose mark would
move, and then accepts the new results whole or drops them.

The marks are compared as `autograder regrade` compares them. An attempt keeps its result, which
counts, until its new one is accepted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, select, update

from autograder.basics.errors import KitError
from autograder.grading.graded_bytes import unpack_graded
from autograder.grading.regrade import Comparison, compare_results
from autograder.records.model import Graded, Result
from autograder.server.attempts import RERUN, Attempt, AttemptStore, answer_columns
from autograder.server.database import attempts, change
from autograder.server.rules import AttemptRules

Answers = Mapping[int, tuple[Graded, bytes]]
"""By attempt, the record that a grader sent and the content of the result's file."""


@dataclass(frozen=True, slots=True)
class Regrade:
    """A regrade as it stands.

    Attributes:
        attempts: how many attempts it grades again.
        waiting: how many of them have no answer yet.
        comparison: whose mark would move; None while any waits.
    """

    attempts: int
    waiting: int
    comparison: Comparison | None

    @property
    def may_be_accepted(self) -> bool:
        """Whether everybody was graded again."""
        return self.comparison is not None and not self.comparison.untried


class RegradeStore:
    """The regrades in the database, one for an assignment at a time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._attempts = AttemptStore(engine)

    def begin(self, assignment: str) -> int:
        """Put every graded attempt into the queue, behind what was handed in; returns how many.

        All of a student's attempts: another one may be the best with the new suite.
        """
        return change(
            self._engine,
            update(attempts)
            .where(
                attempts.c.assignment == assignment,
                attempts.c.state == "graded",
                attempts.c.aside.is_(False),
            )
            .values(
                aside=True,
                proposal=None,
                state="waiting",
                priority=RERUN,
                runs=0,
                leased_until=0.0,
            ),
        )

    def look(self, assignment: str, rules: AttemptRules) -> Regrade | None:
        """The regrade of an assignment; None where none was begun."""
        everybody = self._attempts.of_assignment(assignment)
        aside = [attempt for attempt in everybody if attempt.aside]
        if not aside:
            return None
        waiting = sum(attempt.is_open for attempt in aside)
        comparison = None if waiting else self._compare(everybody, rules)
        return Regrade(len(aside), waiting, comparison)

    def _compare(self, everybody: Sequence[Attempt], rules: AttemptRules) -> Comparison:
        """The marks of attempts that count now, against those that would count."""
        answers = self._proposals(everybody[0].assignment)
        proposed = [_with_proposal(attempt, answers) for attempt in everybody]
        aside = [attempt for attempt in everybody if attempt.aside]
        old = rules.counting_by_student(everybody)
        new = rules.counting_by_student(proposed)
        return compare_results(
            {attempt.student for attempt in aside},
            self._results(old, {}),
            self._results(new, answers),
            {student: attempt.problem for student, attempt in new.items()},
            sorted({attempt.student for attempt in aside if attempt.id not in answers}),
        )

    def _results(
        self, counting: Mapping[str, Attempt], answers: Answers
    ) -> dict[str, Result]:
        """The results of attempts that count, by student: the new ones, and for attempts without a
        new answer those that are stored.
        """
        others = [
            attempt.id for attempt in counting.values() if attempt.id not in answers
        ]
        stored = self._attempts.results(others)
        results = {}
        for student, attempt in counting.items():
            result = stored.get(attempt.id)
            _, content = answers.get(attempt.id, (None, b""))
            if content:
                result = Result.from_json(content.decode())
            if result is not None:
                results[student] = result
        return results

    def _proposals(self, assignment: str) -> Answers:
        """New answers by attempt, without those for which the machine was at fault."""
        with self._engine.connect() as connection:
            answers = _read_proposals(connection, assignment)
        unpacked = {
            attempt_id: unpack_graded(answer) for attempt_id, answer in answers.items()
        }
        return {
            attempt_id: answer
            for attempt_id, answer in unpacked.items()
            if not answer[0].untried
        }

    def accept(self, assignment: str, rules: AttemptRules) -> Comparison:
        """Make the new results those that count; returns what moves.

        Raises:
            KitError: not everybody was graded again; nothing changes.
        """
        regrade = self.look(assignment, rules)
        if regrade is None or regrade.comparison is None or regrade.comparison.untried:
            raise KitError("not everybody was graded again: nothing was taken over")
        with self._engine.begin() as connection:
            for attempt_id, answer in _read_proposals(connection, assignment).items():
                connection.execute(
                    update(attempts)
                    .where(attempts.c.id == attempt_id, attempts.c.aside)
                    .values(**answer_columns(answer), aside=False, proposal=None)
                )
        return regrade.comparison

    def drop(self, assignment: str) -> None:
        """End the regrade; everything stays as it was."""
        aside = update(attempts).where(
            attempts.c.assignment == assignment, attempts.c.aside
        )
        change(self._engine, aside.values(state="graded", aside=False, proposal=None))


def _read_proposals(connection: Connection, assignment: str) -> dict[int, bytes]:
    query = select(attempts.c.id, attempts.c.proposal).where(
        attempts.c.assignment == assignment,
        attempts.c.aside,
        attempts.c.proposal.is_not(None),
    )
    return {row.id: bytes(row.proposal) for row in connection.execute(query)}


def _with_proposal(attempt: Attempt, answers: Answers) -> Attempt:
    """The attempt as it would be with its new answer, where it has one."""
    if attempt.id not in answers:
        return attempt
    graded, _ = answers[attempt.id]
    result = graded.result
    return dataclasses.replace(
        attempt,
        score=result.score if result else None,
        max_score=result.max_score if result else None,
        problem=graded.problem,
    )

"""What students ask about the grading of a question, and what instructors reply."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Engine, select, update

from autograder.server.attempts import Attempt
from autograder.server.database import requests

LONGEST_TEXT = 4000
"""Characters of a request or a reply."""


@dataclass(frozen=True, slots=True)
class StudentRequest:
    """A student's words about a question of one attempt, and the reply ("" before there is one)."""

    id: int
    attempt: int
    student: str
    assignment: str
    question: str
    text: str
    asked: float
    reply: str
    replied_by: str
    replied: float | None


_COLUMNS = [requests.c[name] for name in StudentRequest.__dataclass_fields__]


class RequestStore:
    """The requests in the database."""

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.time) -> None:
        self._engine = engine
        self._clock = clock

    def ask(self, attempt: Attempt, student: str, question: str, text: str) -> None:
        """Store a student's request."""
        with self._engine.begin() as connection:
            connection.execute(
                requests.insert().values(
                    attempt=attempt.id,
                    student=student,
                    assignment=attempt.assignment,
                    question=question,
                    text=text[:LONGEST_TEXT],
                    asked=self._clock(),
                )
            )

    def reply(self, request_id: int, text: str, instructor: str) -> None:
        """Store the reply to a request; an earlier reply is replaced."""
        with self._engine.begin() as connection:
            connection.execute(
                update(requests)
                .where(requests.c.id == request_id)
                .values(
                    reply=text[:LONGEST_TEXT],
                    replied_by=instructor,
                    replied=self._clock(),
                )
            )

    def of_attempt(self, attempt_id: int) -> list[StudentRequest]:
        """The requests about one attempt, the oldest first."""
        return self._list(requests.c.attempt == attempt_id)

    def of_assignment(self, assignment: str) -> list[StudentRequest]:
        """Everybody's requests, the oldest first."""
        return self._list(requests.c.assignment == assignment)

    def _list(self, condition: ColumnElement[bool]) -> list[StudentRequest]:
        query = select(*_COLUMNS).where(condition).order_by(requests.c.id)
        with self._engine.connect() as connection:
            return [StudentRequest(*row) for row in connection.execute(query)]

"""What students ask about the grading of a question, and what instructors reply."""

from __future__ import annotations

import time
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Engine, select, update

from autograder.server.attempts import Attempt
from autograder.server.database import change, read, requests

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

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def ask(self, attempt: Attempt, student: str, question: str, text: str) -> None:
        """Store a student's request."""
        request = requests.insert().values(
            attempt=attempt.id,
            student=student,
            assignment=attempt.assignment,
            question=question,
            text=text[:LONGEST_TEXT],
            asked=time.time(),
        )
        change(self._engine, request)

    def reply(self, request_id: int, text: str, instructor: str) -> None:
        """Store the reply to a request; an earlier reply is replaced."""
        reply = {
            "reply": text[:LONGEST_TEXT],
            "replied_by": instructor,
            "replied": time.time(),
        }
        request = update(requests).where(requests.c.id == request_id)
        change(self._engine, request.values(reply))

    def of_attempt(self, attempt_id: int) -> list[StudentRequest]:
        """The requests about one attempt, the oldest first."""
        return self._list(requests.c.attempt == attempt_id)

    def of_assignment(self, assignment: str) -> list[StudentRequest]:
        """Everybody's requests, the oldest first."""
        return self._list(requests.c.assignment == assignment)

    def _list(self, condition: ColumnElement[bool]) -> list[StudentRequest]:
        query = select(*_COLUMNS).where(condition).order_by(requests.c.id)
        return [StudentRequest(*row) for row in read(self._engine, query)]

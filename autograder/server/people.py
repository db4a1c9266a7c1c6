"""Who may sign in, and with what: one-time links, and keys of `check.py --submit`."""

from __future__ import annotations

import dataclasses
import hashlib
import secrets
import time
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Engine, delete, select, update

from autograder.server.database import (
    api_keys,
    audit,
    change,
    change_row,
    links,
    read,
    read_value,
    replace_row,
)

Role = Literal["student", "instructor"]
LINK_DAYS = 14.0
"""How long a link for signing in can be used."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody who has signed in.

    Attributes:
        student: the id by which the course knows the person.
    """

    student: str
    role: Role

    @property
    def is_instructor(self) -> bool:
        """Whether the person sees the class."""
        return self.role == "instructor"


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One line of the log: who changed what, and when (seconds since 1970)."""

    time: float
    person: str
    action: str
    detail: str


def hash_key(key: str) -> str:
    """The hash under which a key is stored: whoever reads the database can sign in with none."""
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


class PeopleStore:
    """Links, keys and the audit log in the database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def make_link(self, student: str, role: Role) -> str:
        """A new key for signing in once; the person's earlier unused links end."""
        key = secrets.token_urlsafe(24)
        change(
            self._engine,
            delete(links).where(links.c.student == student, links.c.used.is_(None)),
            links.insert().values(
                key_sha256=hash_key(key),
                student=student,
                role=role,
                expires=time.time() + LINK_DAYS * 86_400,
            ),
        )
        return key

    def use_link(self, key: str) -> Visitor | None:
        """The person whom a link signs in; None where it was used, is too old, or never was."""
        now = time.time()
        row = change_row(
            self._engine,
            update(links)
            .where(
                links.c.key_sha256 == hash_key(key),
                links.c.used.is_(None),
                links.c.expires > now,
            )
            .values(used=now)
            .returning(links.c.student, links.c.role),
        )
        return None if row is None else Visitor(row.student, row.role)

    def make_api_key(self, student: str) -> str:
        """A new key with which `check.py --submit` hands in for the student, who had one before
        perhaps: that one ends.
        """
        key = secrets.token_urlsafe(24)
        replace_row(self._engine, api_keys, student=student, key_sha256=hash_key(key))
        return key

    def find_by_api_key(self, key: str) -> str | None:
        """The student to whom a key belongs; None for nobody's."""
        query = select(api_keys.c.student)
        query = query.where(api_keys.c.key_sha256 == hash_key(key))
        student: str | None = read_value(self._engine, query)
        return student

    def log(self, person: str, action: str, detail: str) -> None:
        """Add a line to the audit log."""
        line = AuditLine(time.time(), person, action, detail)
        change(self._engine, audit.insert().values(dataclasses.asdict(line)))

    def log_lines(self, most: int = 500) -> list[AuditLine]:
        """The last lines of the audit log, the newest first."""
        query = select(audit.c.time, audit.c.person, audit.c.action, audit.c.detail)
        newest_first = query.order_by(audit.c.id.desc()).limit(most)
        return [AuditLine(*row) for row in read(self._engine, newest_first)]

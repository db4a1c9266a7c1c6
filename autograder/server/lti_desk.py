"""What the server keeps for LTI: its key, begun launches, gradebook columns, and marks that were
sent.
"""

from __future__ import annotations

import contextlib
import functools
import json
import secrets
import time
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import httpx
import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from sqlalchemy import ColumnElement, delete, select
from starlette.exceptions import HTTPException

from autograder.basics.errors import KitError, PlatformUnavailable
from autograder.basics.locks import hold_lock
from autograder.basics.safe_text import one_line
from autograder.basics.whole_files import make_private
from autograder.course import LtiRegistration
from autograder.ledger import Identity, link_download, read_ledger
from autograder.platforms.lti import LtiServices, Score
from autograder.server.database import (
    change,
    change_row,
    lti_columns,
    lti_states,
    read,
    read_value,
    replace_row,
    sent_marks,
)
from autograder.server.office import Office
from autograder.server.rules import is_group_name

_STATE_SECONDS = 600.0
_KEY_BITS = 2048
_TIMEOUT = 20.0  # seconds


class LtiDesk:
    """LTI for one course's office."""

    def __init__(self, office: Office) -> None:
        self._office = office
        self._engine = office.engine

    # Begun launches

    def new_state(self, issuer: str) -> tuple[str, str]:
        """A state and a nonce for a launch that begins now."""
        state, nonce = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        now = time.time()
        change(
            self._engine,
            delete(lti_states).where(lti_states.c.expires < now),
            lti_states.insert().values(
                state=state, nonce=nonce, issuer=issuer, expires=now + _STATE_SECONDS
            ),
        )
        return state, nonce

    def use_state(self, state: str) -> tuple[str, str]:
        """The issuer and the nonce of a begun launch, which ends with this.

        Raises:
            HTTPException: 400, there is no such launch, or it was used.
        """
        row = change_row(
            self._engine,
            delete(lti_states)
            .where(lti_states.c.state == state, lti_states.c.expires > time.time())
            .returning(lti_states.c.issuer, lti_states.c.nonce),
        )
        if row is None:
            raise HTTPException(
                400, "this launch was used, or took too long: start it again"
            )
        return row.issuer, row.nonce

    # Keys

    def platform_key(self, registration: LtiRegistration, token: str) -> Any:
        """The platform's key that signed a token.

        Raises:
            jwt.PyJWTError: the platform has no such key.
        """
        return _key_client(registration.keys_url).get_signing_key_from_jwt(token).key

    def private_key(self) -> str:
        """This server's key, made when it is first needed; nobody else may read the file."""
        path = self._office.course.kept / "lti-key.pem"
        if not path.exists():
            make_private(path, _make_key())
        return path.read_text(encoding="utf-8")

    def key_set(self) -> dict[str, Any]:
        """The public half of this server's key, as a JSON Web Key Set."""
        private = serialization.load_pem_private_key(
            self.private_key().encode(), password=None
        )
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(private.public_key()))  # type: ignore[arg-type]
        return {"keys": [{**public, "kid": self.key_id, "alg": "RS256", "use": "sig"}]}

    def sign(self, claims: Mapping[str, Any]) -> str:
        """A message of this server's to a platform."""
        headers = {"kid": self.key_id}
        return jwt.encode(
            dict(claims), self.private_key(), algorithm="RS256", headers=headers
        )

    @property
    def key_id(self) -> str:
        """The name of this server's key in its key set."""
        return "attention-kit-1"

    # People

    def link(self, identity: Identity) -> str:
        """The student whom the ledger takes a person for; a new one where nobody fits.

        Raises:
            KitError: the class list has two people who may be meant, or the name is a group's.
        """
        course = self._office.course
        with hold_lock(course.kept / "locks" / "collect", "links people"):
            ledger = read_ledger(course)
            label = (
                identity.accounts[0].partition("@")[0]
                if identity.accounts
                else identity.name
            )
            suggested = unicodedata.normalize(
                "NFC", one_line(label) or identity.ids[0][1].split()[-1]
            )
            student = link_download(ledger, "lti", "", [identity], [suggested], "LTI")[
                0
            ]
            if is_group_name(ledger, student):
                raise KitError(f"{student} is a group's name here: ask your instructor")
            ledger.save()
        return student

    def fetch_roster(self) -> list[str]:
        """Everybody of the platforms' courses from which launches came, linked to students.

        Raises:
            PlatformUnavailable: a platform does not answer.
            KitError: no launch has told where the roster is.
        """
        rows = read(
            self._engine,
            select(lti_columns.c.issuer, lti_columns.c.roster_url)
            .where(lti_columns.c.roster_url != "")
            .distinct(),
        )
        if not rows:
            raise KitError(
                "no platform has told where its roster is: start once from its page"
            )
        students = []
        for issuer, address in rows:
            with self._services(issuer) as services:
                identities = services.roster(address)
            for identity in identities:
                students.append(self.link(identity))
        return students

    # Marks

    def note_course(
        self, issuer: str, assignment: str, grades: Mapping[str, Any], roster_url: str
    ) -> None:
        """Keep what a launch says of the gradebook's column and of the roster."""
        query = select(lti_columns.c.line_item)
        made = read_value(self._engine, query.where(*_is_column(issuer, assignment)))
        replace_row(
            self._engine,
            lti_columns,
            issuer=issuer,
            assignment=assignment,
            # a link without a column may have got one from this server
            line_item=str(grades.get("lineitem") or made or ""),
            line_items=str(grades.get("lineitems", "")),
            roster_url=roster_url,
        )

    def send_marks(self, assignments: Collection[str]) -> list[str]:
        """Send the marks in these assignments that have changed since they were last sent; a line
        for each problem.
        """
        is_named = lti_columns.c.assignment.in_(assignments)
        problems = []
        for column in read(self._engine, select(lti_columns).where(is_named)):
            try:
                self._send_assignment(
                    column.issuer,
                    column.assignment,
                    column.line_item,
                    column.line_items,
                )
            except KitError as error:
                problems.append(f"marks of {column.assignment} not sent: {error}")
        return problems

    def _send_assignment(
        self, issuer: str, name: str, line_item: str, line_items: str
    ) -> None:
        office = self._office
        assignment = office.assignment(name)
        if assignment is None or not (line_item or line_items):
            return
        marks = office.stored_marks(assignment).marks()
        changed: dict[str, Score] = {}
        before = self._sent(name)
        for mark in marks:
            points = mark.final(provisional=True)
            issuer_of_id, _, user = mark.platform_id("lti").partition(" ")
            waits = mark.status == "waits for a person"
            if points is None or issuer_of_id != issuer:
                continue
            score = Score(user, max(0.0, points), mark.max_score, waits)
            if before.get(mark.student) != _describe(score):
                changed[mark.student] = score
        if not changed:
            return
        with self._services(issuer) as services:
            if not line_item:
                maximum = next(iter(changed.values())).maximum
                line_item = services.make_line_item(line_items, name, maximum)
                column = lti_columns.update().where(*_is_column(issuer, name))
                change(self._engine, column.values(line_item=line_item))
            for student, score in changed.items():
                services.send_score(line_item, score)
                sent = {"assignment": name, "student": student}
                replace_row(self._engine, sent_marks, **sent, mark=_describe(score))

    def _sent(self, assignment: str) -> dict[str, str]:
        query = select(sent_marks.c.student, sent_marks.c.mark)
        rows = read(self._engine, query.where(sent_marks.c.assignment == assignment))
        return {row.student: row.mark for row in rows}

    @contextlib.contextmanager
    def _services(self, issuer: str) -> Iterator[LtiServices]:
        """The services of a platform, while they are used.

        Raises:
            PlatformUnavailable: course.toml does not have the platform any more.
        """
        registrations = self._office.course.lti.values()
        registration = next(
            (entry for entry in registrations if entry.issuer == issuer), None
        )
        if registration is None:
            raise PlatformUnavailable(
                f"course.toml has no platform {issuer!r} under [lti]"
            )
        with httpx.Client(timeout=_TIMEOUT) as client:
            yield LtiServices(registration, self.private_key(), self.key_id, client)


def _is_column(issuer: str, assignment: str) -> tuple[ColumnElement[bool], ...]:
    """The condition for the gradebook column of an assignment on a platform."""
    return lti_columns.c.issuer == issuer, lti_columns.c.assignment == assignment


def _describe(score: Score) -> str:
    return f"{score.points:g} of {score.maximum:g}{', waits' if score.waits else ''}"


@functools.cache
def _key_client(address: str) -> jwt.PyJWKClient:
    return jwt.PyJWKClient(address, timeout=_TIMEOUT)


def _make_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=_KEY_BITS)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return pem.decode()

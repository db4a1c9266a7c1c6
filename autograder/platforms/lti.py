"""Platforms that speak LTI 1.3: the services by which a server reads the roster and sends marks.

Names and Roles Provisioning Services 2.0 and Assignment and Grade Services 2.0, both with tokens by
client credentials and a signed assertion (the 1EdTech Security Framework 1.0, section 4.1). How
people get in from such a platform is in `server/lti_pages.py`.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from autograder.basics.errors import PlatformUnavailable
from autograder.basics.safe_text import one_line
from autograder.course import LtiRegistration
from autograder.ledger import Identity
from autograder.platforms.platform import Platform

if TYPE_CHECKING:
    import httpx

SCORE_SCOPE = "https://purl.imsglobal.org/spec/lti-ags/scope/score"
LINE_ITEM_SCOPE = "https://purl.imsglobal.org/spec/lti-ags/scope/lineitem"
ROSTER_SCOPE = (
    "https://purl.imsglobal.org/spec/lti-nrps/scope/contextmembership.readonly"
)
_ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_ROSTER_TYPE = "application/vnd.ims.lti-nrps.v2.membershipcontainer+json"
_SCORE_TYPE = "application/vnd.ims.lis.v1.score+json"
_LINE_ITEM_TYPE = "application/vnd.ims.lis.v2.lineitem+json"
_ASSERTION_SECONDS = 300
_MOST_PAGES = 1000
_LONGEST_WORDS = 300
"""Characters of what a platform says when it refuses."""

PLATFORM = Platform()
"""Nothing is downloaded or uploaded by hand: `autograder serve` speaks with these platforms."""


def platform_identity(issuer: str, user: str, email: str, name: str) -> Identity:
    """A person of a platform, for the ledger: ids of two platforms may be equal."""
    accounts = (email,) if email else ()
    return Identity((("lti", f"{issuer} {user}"),), accounts, name)


@dataclass(frozen=True, slots=True)
class Score:
    """A mark on its way to a platform.

    Attributes:
        user: the platform's id of the person.
        waits: whether a person has yet to look, so that the points may rise.
    """

    user: str
    points: float
    maximum: float
    waits: bool


class LtiServices:
    """The services of one platform for this tool.

    Args:
        private_key: PEM; its public half is what the tool's key set shows, under `key_id`.
    """

    def __init__(
        self,
        registration: LtiRegistration,
        private_key: str,
        key_id: str,
        client: httpx.Client,
    ) -> None:
        self._registration = registration
        self._private_key = private_key
        self._key_id = key_id
        self._client = client
        self._tokens: dict[str, tuple[str, float]] = {}

    def roster(self, memberships_url: str) -> list[Identity]:
        """Everybody who learns in the course there.

        Raises:
            PlatformUnavailable: the platform does not answer, or does not let the roster be read.
        """
        identities = []
        address: str | None = memberships_url
        for _ in range(_MOST_PAGES):
            if address is None:
                break
            answer = self._ask("GET", address, ROSTER_SCOPE, accept=_ROSTER_TYPE)
            identities += list(self._learners(answer.json()))
            address = answer.links.get("next", {}).get("url")
        return identities

    def _learners(self, page: Any) -> Iterator[Identity]:
        for member in page.get("members", ()):
            roles = [role.rpartition("#")[2] for role in member.get("roles", ())]
            is_active = member.get("status", "Active") == "Active"
            if is_active and "Learner" in roles:
                email = member.get("email", "")
                name = member.get("name", "")
                issuer = self._registration.issuer
                yield platform_identity(issuer, member["user_id"], email, name)

    def make_line_item(self, line_items_url: str, title: str, maximum: float) -> str:
        """Make a column in the platform's gradebook; returns its address.

        Raises:
            PlatformUnavailable: the platform does not answer, or does not let columns be made.
        """
        content = {"scoreMaximum": maximum, "label": title, "resourceId": title}
        answer = self._ask(
            "POST",
            line_items_url,
            LINE_ITEM_SCOPE,
            content=content,
            kind=_LINE_ITEM_TYPE,
            accept=_LINE_ITEM_TYPE,  # Open edX answers 406 to any other
        )
        return str(answer.json()["id"])

    def send_score(self, line_item: str, score: Score) -> None:
        """Send a mark into a column.

        Raises:
            PlatformUnavailable: the platform did not take it.
        """
        parts = urlsplit(line_item)
        address = urlunsplit(parts._replace(path=f"{parts.path}/scores"))
        content = {
            "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "scoreGiven": score.points,
            "scoreMaximum": score.maximum,
            "activityProgress": "Submitted" if score.waits else "Completed",
            "gradingProgress": "PendingManual" if score.waits else "FullyGraded",
            "userId": score.user,
        }
        self._ask("POST", address, SCORE_SCOPE, content=content, kind=_SCORE_TYPE)

    def _ask(
        self,
        method: str,
        address: str,
        scope: str,
        *,
        content: object = None,
        kind: str = "",
        accept: str = "application/json",
    ) -> httpx.Response:
        import httpx

        headers = {"authorization": f"Bearer {self._token(scope)}", "accept": accept}
        if kind:
            headers["content-type"] = kind
        try:
            answer = self._client.request(
                method, address, headers=headers, json=content if kind else None
            )
            answer.raise_for_status()
        except httpx.HTTPStatusError as error:
            words = f"{error} {error.response.text[:_LONGEST_WORDS]}"
            raise PlatformUnavailable(
                one_line(f"{self._registration.issuer}: {words}")
            ) from error
        except httpx.HTTPError as error:
            raise PlatformUnavailable(
                one_line(f"{self._registration.issuer}: {error}")
            ) from error
        return answer

    def _token(self, scope: str) -> str:
        """A token for a scope, a new one where the last is about to end."""
        import httpx
        import jwt

        token, ends = self._tokens.get(scope, ("", 0.0))
        if time.time() < ends:
            return token
        now = int(time.time())
        claims = {
            "iss": self._registration.client_id,
            "sub": self._registration.client_id,
            "aud": self._registration.token_url,
            "iat": now,
            "exp": now + _ASSERTION_SECONDS,
            "jti": uuid.uuid4().hex,
        }
        assertion = jwt.encode(
            claims, self._private_key, algorithm="RS256", headers={"kid": self._key_id}
        )
        form = {
            "grant_type": "client_credentials",
            "client_assertion_type": _ASSERTION_TYPE,
            "client_assertion": assertion,
            "scope": scope,
        }
        try:
            answer = self._client.post(self._registration.token_url, data=form)
            answer.raise_for_status()
            granted = answer.json()
        except (httpx.HTTPError, ValueError) as error:
            message = one_line(f"{self._registration.issuer}: no token: {error}")
            raise PlatformUnavailable(message) from error
        token = str(granted["access_token"])
        self._tokens[scope] = token, now + 0.9 * float(granted.get("expires_in", 60))
        return token

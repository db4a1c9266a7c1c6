"""The messages of LTI Deep Linking 2.0: what a platform wants to have chosen, and the answer with
links to assignments and their gradebook columns.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlsplit

from starlette.exceptions import HTTPException

from autograder.course import Assignment, LtiRegistration
from autograder.intake.released_notebook import tested_points, written_points

_CLAIM = "https://purl.imsglobal.org/spec/lti/claim/"
_CHOICE_CLAIM = "https://purl.imsglobal.org/spec/lti-dl/claim/"
_LINK_TYPE = "ltiResourceLink"
_HOST = re.compile(r"[\w.:\[\]-]+")
_ANSWER_SECONDS = 3600
"""How long an instructor may take to choose."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a platform wants to have chosen.

    Attributes:
        return_url: where the answer goes.
        takes_columns: whether the platform makes a gradebook column for a link. One that does not
            say so may.
        data: the platform's own, to be sent back as it came; None for nothing.
    """

    return_url: str
    takes_links: bool
    takes_several: bool
    takes_columns: bool
    data: object


def read_wish(claims: Mapping[str, Any]) -> Wish:
    """The wish in a launch that was checked.

    Raises:
        HTTPException: 400, the launch does not say where the answer goes.
    """
    settings = claims.get(f"{_CHOICE_CLAIM}deep_linking_settings")
    settings = settings if isinstance(settings, dict) else {}
    return_url = str(settings.get("deep_link_return_url", ""))
    parts = urlsplit(return_url)
    # the host goes into the page's policy, where a semicolon would begin another rule
    if parts.scheme not in ("http", "https") or not _HOST.fullmatch(parts.netloc):
        raise HTTPException(
            400, "the platform's launch does not say where the choice goes"
        )
    return Wish(
        return_url,
        takes_links=_LINK_TYPE in settings.get("accept_types", ()),
        takes_several=settings.get("accept_multiple", True) is True,
        takes_columns=settings.get("accept_lineitem", True) is True,
        data=settings.get("data"),
    )


def content_item(
    assignment: Assignment, due: datetime | None, address: str, wish: Wish
) -> dict[str, Any]:
    """The link to one assignment, with its column and its due time.

    Args:
        address: of this server's first page.
    """
    name = assignment.name
    item: dict[str, Any] = {
        "type": _LINK_TYPE,
        "title": name,
        "url": f"{address}/assignments/{quote(name)}",
        "custom": {"assignment": name},
    }
    maximum = tested_points(assignment) + written_points(assignment)
    if wish.takes_columns and maximum:
        item["lineItem"] = {"scoreMaximum": maximum, "label": name, "resourceId": name}
    if due is not None:
        item["submission"] = {"endDateTime": due.isoformat()}
    return item


def choice_claims(
    registration: LtiRegistration, wish: Wish, items: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The claims of the answer that chooses these items."""
    now = int(time.time())
    claims = {
        "iss": registration.client_id,
        "aud": registration.issuer,
        "iat": now,
        "exp": now + _ANSWER_SECONDS,
        "nonce": secrets.token_urlsafe(24),
        f"{_CLAIM}deployment_id": registration.deployment_id,
        f"{_CLAIM}message_type": "LtiDeepLinkingResponse",
        f"{_CLAIM}version": "1.3.0",
        f"{_CHOICE_CLAIM}content_items": list(items),
    }
    if wish.data is not None:
        claims[f"{_CHOICE_CLAIM}data"] = wish.data
    return claims

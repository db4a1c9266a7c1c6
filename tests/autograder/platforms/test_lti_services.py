"""The services of an LTI platform as this server asks them, with a platform that the test plays."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest

from autograder.basics.errors import PlatformUnavailable
from autograder.course import LtiRegistration
from autograder.ledger import Identity
from autograder.platforms import lti
from autograder.platforms.lti import LtiServices, Score, platform_identity

ISSUER = "https://lms.example"
LEARNER = "http://purl.imsglobal.org/vocab/lis/v2/membership#Learner"
REGISTRATION = LtiRegistration(
    issuer=ISSUER,
    client_id="client-7",
    deployment_id="1",
    auth_url=f"{ISSUER}/auth",
    token_url=f"{ISSUER}/token",
    keys_url=f"{ISSUER}/keys",
)


class PlayedPlatform:
    """Answers `services` as `answers` says, by address; `asked` has the requests for services, and
    `granted` the forms of those for tokens.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000_000.0
        self.expires_in: Any = {"expires_in": 100}
        self.answers: dict[str, Callable[[], httpx.Response]] = {}
        self.asked: list[httpx.Request] = []
        self.granted: list[dict[str, list[str]]] = []
        self.claims: list[Any] = []
        transport = httpx.MockTransport(self.answer)
        client = httpx.Client(transport=transport)
        self.services = LtiServices(REGISTRATION, "private", "key-3", client)
        monkeypatch.setattr(lti.time, "time", lambda: self.now)  # type: ignore[attr-defined]
        monkeypatch.setattr("jwt.encode", self.sign)

    def sign(
        self, claims: Any, key: str, *, algorithm: str, headers: dict[str, str]
    ) -> str:
        assert (key, algorithm, headers) == ("private", "RS256", {"kid": "key-3"})
        self.claims.append(claims)
        return "assertion"

    def answer(self, request: httpx.Request) -> httpx.Response:
        address = str(request.url)
        if address == f"{ISSUER}/token":
            self.granted.append(parse_qs(request.content.decode()))
            token = f"token {len(self.granted)}"
            return httpx.Response(200, json={"access_token": token, **self.expires_in})
        self.asked.append(request)
        return self.answers[address]()


@pytest.fixture
def platform(monkeypatch: pytest.MonkeyPatch) -> PlayedPlatform:
    return PlayedPlatform(monkeypatch)


def page(*members: dict[str, Any], following: str = "") -> Callable[[], httpx.Response]:
    links = {"link": f'<{following}>; rel="next"'} if following else {}
    return lambda: httpx.Response(200, json={"members": list(members)}, headers=links)


def member(number: int, **more: Any) -> dict[str, Any]:
    return {"user_id": f"u{number}", "roles": [LEARNER], **more}


def test_a_person_has_the_platforms_id_and_an_email_where_it_tells_one() -> None:
    assert platform_identity(ISSUER, "u1", "a@b", "Ada") == Identity(
        (("lti", f"{ISSUER} u1"),), ("a@b",), "Ada"
    )
    assert platform_identity(ISSUER, "u1", "", "Ada").accounts == ()


def test_a_roster_has_the_active_learners_of_all_pages(
    platform: PlayedPlatform,
) -> None:
    first, second = f"{ISSUER}/members", f"{ISSUER}/members?page=2"
    platform.answers[first] = page(
        member(1, name="Ada", email="a@b"),
        member(2, status="Inactive"),
        member(3, roles=[LEARNER.replace("Learner", "Instructor")]),
        {"user_id": "u4"},
        following=second,
    )
    platform.answers[second] = page(
        member(5, status="Active", roles=["Learner", "Mentor"])
    )
    assert platform.services.roster(first) == [
        platform_identity(ISSUER, "u1", "a@b", "Ada"),
        platform_identity(ISSUER, "u5", "", ""),
    ]
    for request in platform.asked:
        assert request.method == "GET"
        assert request.headers["authorization"] == "Bearer token 1"
        assert request.headers["accept"] == (
            "application/vnd.ims.lti-nrps.v2.membershipcontainer+json"
        )
        assert (request.content, "content-type" in request.headers) == (b"", False)
    (form,) = platform.granted
    assert form == {
        "grant_type": ["client_credentials"],
        "client_assertion_type": [
            "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        ],
        "client_assertion": ["assertion"],
        "scope": [
            "https://purl.imsglobal.org/spec/lti-nrps/scope/contextmembership.readonly"
        ],
    }


def test_a_roster_without_end_ends(
    platform: PlayedPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lti, "_MOST_PAGES", 3)
    address = f"{ISSUER}/members"
    platform.answers[address] = page(member(1), following=address)
    assert len(platform.services.roster(address)) == 3


def test_a_token_is_signed_and_used_until_a_tenth_of_its_time_is_left(
    platform: PlayedPlatform,
) -> None:
    address = f"{ISSUER}/members"
    platform.answers[address] = page()
    for now, tokens in ((0.0, 1), (89.0, 1), (90.0, 2)):
        platform.now = 1_000_000.0 + now
        platform.services.roster(address)
        assert len(platform.granted) == tokens
    claims = platform.claims[0]
    number = claims.pop("jti")
    assert claims == {
        "iss": "client-7",
        "sub": "client-7",
        "aud": f"{ISSUER}/token",
        "iat": 1_000_000,
        "exp": 1_000_300,
    }
    assert number != platform.claims[1]["jti"]
    # a platform that does not say how long: a minute
    platform.expires_in = {}
    for now, tokens in ((1000.0, 3), (1053.0, 3), (1054.0, 4)):
        platform.now = 1_000_000.0 + now
        platform.services.roster(address)
        assert len(platform.granted) == tokens


def test_a_column_is_made_with_its_points(platform: PlayedPlatform) -> None:
    address = f"{ISSUER}/lines"
    platform.answers[address] = lambda: httpx.Response(201, json={"id": 7})
    assert platform.services.make_line_item(address, "Attention", 12.5) == "7"
    (request,) = platform.asked
    kind = "application/vnd.ims.lis.v2.lineitem+json"
    assert (request.method, request.headers["accept"]) == ("POST", kind)
    assert request.headers["content-type"] == kind
    assert json.loads(request.content) == {
        "scoreMaximum": 12.5,
        "label": "Attention",
        "resourceId": "Attention",
    }


@pytest.mark.parametrize(
    ("waits", "progress"),
    [(True, ("Submitted", "PendingManual")), (False, ("Completed", "FullyGraded"))],
)
def test_a_mark_goes_to_the_scores_of_its_column(
    platform: PlayedPlatform, waits: bool, progress: tuple[str, str]
) -> None:
    platform.answers[f"{ISSUER}/lines/7/scores?type=3"] = lambda: httpx.Response(204)
    score = Score("u1", 9.5, 12.0, waits)
    platform.services.send_score(f"{ISSUER}/lines/7?type=3", score)
    (request,) = platform.asked
    assert request.headers["content-type"] == "application/vnd.ims.lis.v1.score+json"
    content = json.loads(request.content)
    assert content.pop("timestamp").endswith("+00:00")
    assert content == {
        "scoreGiven": 9.5,
        "scoreMaximum": 12.0,
        "activityProgress": progress[0],
        "gradingProgress": progress[1],
        "userId": "u1",
    }


def test_a_refusal_is_told_in_the_platforms_words(platform: PlayedPlatform) -> None:
    address = f"{ISSUER}/members"
    words = "no\nroster " + "x" * 300
    platform.answers[address] = lambda: httpx.Response(403, text=words)
    with pytest.raises(PlatformUnavailable) as caught:
        platform.services.roster(address)
    message = str(caught.value)
    assert message.startswith(f"{ISSUER}: Client error '403 Forbidden'")
    assert message.endswith("no roster " + "x" * 290)


def test_a_platform_that_is_gone_is_told(platform: PlayedPlatform) -> None:
    def gone() -> httpx.Response:
        raise httpx.ConnectError("no route")

    platform.answers[f"{ISSUER}/members"] = gone
    with pytest.raises(PlatformUnavailable, match=rf"^{ISSUER}: no route$"):
        platform.services.roster(f"{ISSUER}/members")


def test_without_a_token_nothing_is_asked(
    platform: PlayedPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = [httpx.Response(401), httpx.Response(200, text="no JSON")]
    monkeypatch.setattr(
        platform.services._client,
        "post",
        lambda url, data: refusals.pop(0),
    )
    for answer in refusals:
        answer.request = httpx.Request("POST", f"{ISSUER}/token")
    for _ in range(2):
        with pytest.raises(PlatformUnavailable, match=rf"^{ISSUER}: no token: "):
            platform.services.roster(f"{ISSUER}/members")
    assert platform.asked == []

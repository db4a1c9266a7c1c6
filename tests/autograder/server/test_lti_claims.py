"""What a launch says of a person, of a link and of a platform, claim by claim."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from starlette.exceptions import HTTPException

from autograder.server import lti_pages
from autograder.server.lti_pages import _assignment_of, _enter, _registration, role_of
from autograder.server.people import Visitor

MEMBERSHIP = "http://purl.imsglobal.org/vocab/lis/v2/membership#"
SYSTEM = "http://purl.imsglobal.org/vocab/lis/v2/system/person#"
CLAIM = "https://purl.imsglobal.org/spec/lti/claim/"
GRADES = "https://purl.imsglobal.org/spec/lti-ags/claim/endpoint"
ROSTER = "https://purl.imsglobal.org/spec/lti-nrps/claim/namesroleservice"


@pytest.mark.parametrize(
    ("roles", "role"),
    [
        ([f"{MEMBERSHIP}Learner"], "student"),
        ([f"{MEMBERSHIP}Learner", f"{MEMBERSHIP}TeachingAssistant"], "instructor"),
        ([f"{MEMBERSHIP}ContentDeveloper"], "instructor"),
        (["Instructor"], "instructor"),
        ([f"{SYSTEM}Administrator"], "student"),
        ([f"{MEMBERSHIP}InstructorX"], "student"),
        ("Instructor", "student"),
        ([], "student"),
    ],
)
def test_who_teaches_in_the_course_is_an_instructor(roles: object, role: str) -> None:
    assert role_of(roles) == role


def an_office(*names: str, **platforms: Any) -> Any:
    return SimpleNamespace(
        assignments=lambda: [SimpleNamespace(name=name) for name in names],
        course=SimpleNamespace(lti=platforms),
        role_of=lambda student: "instructor" if student == "prof" else "student",
    )


@pytest.mark.parametrize(
    ("custom", "address", "title", "assignment"),
    [
        ("m1", "https://x/assignments/m2", "m3", "m1"),
        ("m9", "https://x/assignments/m2?a=/m3", "m3", "m2"),
        ("", "https://x/assignments/", "m3", "m3"),
        ("", "https://x", "M3", ""),
    ],
)
def test_a_link_stands_for_the_first_assignment_that_it_names(
    custom: str, address: str, title: str, assignment: str
) -> None:
    claims = {
        f"{CLAIM}custom": {"assignment": custom},
        f"{CLAIM}target_link_uri": address,
        f"{CLAIM}resource_link": {"title": title},
    }
    office = an_office("m1", "m2", "m3")
    assert _assignment_of(office, claims) == assignment
    assert _assignment_of(office, {}) == ""


def test_a_platform_is_known_by_its_issuer_and_client() -> None:
    first: Any = SimpleNamespace(issuer="https://lms", client_id="c1")
    second: Any = SimpleNamespace(issuer="https://lms", client_id="c2")
    office = an_office(first=first, second=second)
    assert _registration(office, "https://lms", "") is first
    assert _registration(office, "https://lms", "c2") is second
    for issuer, client in (("https://lms", "c3"), ("https://other", "c1")):
        with pytest.raises(HTTPException) as refused:
            _registration(office, issuer, client)
        assert refused.value.status_code == 400
    with pytest.raises(HTTPException) as long:
        _registration(office, "i" * 300, "")
    assert f"no platform '{'i' * 200}':" in long.value.detail


@pytest.mark.parametrize(
    ("student", "assignments", "role", "path"),
    [
        ("ada", ["m1"], "student", "/assignments/m1"),
        ("prof", ["m1"], "instructor", "/assignments/m1"),
        ("ada", [], "student", "/"),
    ],
)
def test_a_launch_leads_a_person_to_the_assignment(
    student: str, assignments: list[str], role: str, path: str
) -> None:
    linked: list[Any] = []
    noted: list[Any] = []

    def link(identity: Any) -> str:
        linked.append((identity.ids, identity.accounts, identity.name))
        return student

    desk: Any = SimpleNamespace(link=link, note_course=lambda *told: noted.append(told))
    claims = {
        "iss": "https://lms",
        "sub": "u-1",
        "email": "ada@x.edu",
        "name": "Ada L",
        f"{CLAIM}roles": [f"{MEMBERSHIP}Learner"],
        f"{CLAIM}custom": {"assignment": "m1"},
        GRADES: {"lineitem": "/1"},
        ROSTER: {"context_memberships_url": "/people"},
    }
    entered = _enter(an_office(*assignments), desk, claims)
    assert entered == (Visitor(student, role), path)  # type: ignore[arg-type]
    assert linked == [((("lti", "https://lms u-1"),), ("ada@x.edu",), "Ada L")]
    assert noted == [
        ("https://lms", "m1" if assignments else "", {"lineitem": "/1"}, "/people")
    ]


@pytest.mark.parametrize(
    ("claims", "client"),
    [
        ({"aud": "c1"}, "c1"),
        ({"aud": ["c1", "c2"]}, "c1"),
        ({"aud": ["c1", "c2"], "azp": "c2"}, "c2"),
        ({"aud": []}, ""),
        ({}, ""),
    ],
)
def test_a_launch_is_for_the_client_that_it_names(
    monkeypatch: pytest.MonkeyPatch, claims: dict[str, Any], client: str
) -> None:
    asked: list[tuple[str, str]] = []

    def find_registration(office: Any, issuer: str, client_id: str) -> Any:
        asked.append((issuer, client_id))
        raise HTTPException(400)

    def decode(token: str, options: dict[str, bool]) -> dict[str, Any]:
        assert (token, options) == ("token", {"verify_signature": False})
        return claims

    monkeypatch.setattr(lti_pages, "_registration", find_registration)
    monkeypatch.setattr("jwt.decode", decode)
    nobody: Any = None
    with pytest.raises(HTTPException):
        lti_pages.check_launch(nobody, nobody, "https://lms", "nonce", "token")
    assert asked == [("https://lms", client)]

"""Getting in from a learning platform, the roster, and marks back (LTI 1.3, AGS 2.0, NRPS 2.0)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import jwt
import pytest
from lti_platform import CLIENT, MEMBERSHIP, LtiPlatform, run_platform
from served_course import NOTEBOOK, Browser, Served

from autograder.ledger import read_ledger
from autograder.server.filing import file_attempts
from autograder.server.lti_desk import LtiDesk

TOOL = "http://testserver"
CLAIM = "https://purl.imsglobal.org/spec/lti/claim/"


@pytest.fixture(scope="module")
def platform() -> Iterator[LtiPlatform]:
    with run_platform(TOOL) as platform:
        yield platform


@pytest.fixture
def served(platform: LtiPlatform, serve_with: Callable[[str], Served]) -> Served:
    platform.scores.clear()
    served = serve_with(platform.settings)
    platform.registration.set_tool_key_set(served.browser().get("/lti/keys").json())
    return served


def begin(browser: Browser, platform: LtiPlatform, user: str) -> dict[str, str]:
    """The first step: what the tool asks of the platform."""
    answer = browser.client.get(platform.login_address(user), follow_redirects=False)
    assert answer.status_code == 302
    address = answer.headers["location"]
    assert address.startswith(f"{platform.address}/auth?")
    return dict(parse_qsl(urlsplit(address).query))


def enter(
    served: Served,
    platform: LtiPlatform,
    user: str,
    role: str = "Learner",
    **person: Any,
) -> Browser:
    browser = served.browser()
    preflight = begin(browser, platform, user)
    form = platform.launch(preflight, user, role, **person)
    answer = browser.client.post(
        form["launch_url"], data={"id_token": form["id_token"], "state": form["state"]}
    )
    assert answer.status_code == 200, answer.text
    assert answer.url.path == "/assignments/tiny"
    return browser


def test_the_tool_asks_for_what_the_standard_wants(
    served: Served, platform: LtiPlatform
) -> None:
    asked = begin(served.browser(), platform, "u-1")
    fixed = {
        "scope": "openid",
        "response_type": "id_token",
        "response_mode": "form_post",
        "prompt": "none",
        "client_id": CLIENT,
        "redirect_uri": f"{TOOL}/lti/launch",
        "login_hint": "u-1",
        "lti_message_hint": "hint-1",
    }
    assert {name: asked[name] for name in fixed} == fixed
    assert len(asked["state"]) >= 32
    assert len(asked["nonce"]) >= 32


def test_a_student_of_the_class_list_is_found_by_email(
    served: Served, platform: LtiPlatform
) -> None:
    (served.root / "students.csv").write_text(
        "id,email\nada,Ada@school.example\nprof,\n"
    )
    ada = enter(
        served, platform, "u-1", email_address="ada@school.example", full_name="Ada L"
    )
    assert "<bdi>ada</bdi>" in ada.get("/").text
    assert ada.get("/class/tiny").status_code == 404


def test_an_instructor_there_sees_the_class_here(
    served: Served, platform: LtiPlatform
) -> None:
    teacher = enter(
        served, platform, "u-2", "Instructor", email_address="t@school.example"
    )
    assert teacher.get("/class/tiny").status_code == 200


def test_a_role_of_the_institution_gives_no_class(
    served: Served, platform: LtiPlatform
) -> None:
    browser = served.browser()
    preflight = begin(browser, platform, "u-3")
    role = "http://purl.imsglobal.org/vocab/lis/v2/institution/person#Instructor"
    form = signed(platform, preflight, {f"{CLAIM}roles": [role]})
    browser.client.post(f"{TOOL}/lti/launch", data=form)
    assert browser.get("/class/tiny").status_code == 404


def signed(
    platform: LtiPlatform,
    preflight: dict[str, str],
    changes: dict[str, Any],
    key: str = "",
    headers: dict[str, str] | None = None,
) -> dict[str, str]:
    """A launch of the platform's with changed claims (None: left out), signed anew."""
    form = platform.launch(preflight, "u-9")
    claims = jwt.decode(form["id_token"], options={"verify_signature": False})
    claims |= changes
    claims = {name: value for name, value in claims.items() if value is not None}
    key_id = jwt.get_unverified_header(form["id_token"])["kid"]
    private = key or platform.registration.get_platform_private_key()
    token = jwt.encode(claims, private, "RS256", headers=headers or {"kid": key_id})
    return {"id_token": token, "state": form["state"]}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"nonce": "another"}, "another nonce"),
        ({"nonce": None}, "nonce"),
        ({"aud": "another-client", "azp": None}, "knows no platform"),
        ({"iss": "https://elsewhere.example"}, "issuer"),
        ({"exp": int(time.time()) - 3600}, "expired"),
        ({"exp": None}, "exp"),
        ({"iat": int(time.time()) + 3600}, "not yet valid"),
        ({"sub": None}, "sub"),
        ({f"{CLAIM}version": "1.1"}, "another version"),
        ({f"{CLAIM}deployment_id": "another"}, "another deployment_id"),
        (
            {f"{CLAIM}message_type": "LtiSubmissionReviewRequest"},
            "another message_type",
        ),
        ({f"{CLAIM}message_type": None}, "another message_type"),
        ({f"{CLAIM}resource_link": None}, "no resource link"),
    ],
)
def test_a_launch_with_a_wrong_claim_signs_nobody_in(
    served: Served, platform: LtiPlatform, changes: dict[str, Any], why: str
) -> None:
    browser = served.browser()
    form = signed(platform, begin(browser, platform, "u-9"), changes)
    answer = browser.client.post("/lti/launch", data=form)
    assert answer.status_code == 400
    assert why in answer.text
    assert browser.get("/").url.path == "/sign-in"


def test_a_launch_with_another_key_signs_nobody_in(
    served: Served, platform: LtiPlatform, tmp_path: Any
) -> None:
    browser = served.browser()
    own_key = LtiDesk(served.office).private_key()
    form = signed(platform, begin(browser, platform, "u-9"), {}, key=own_key)
    assert browser.client.post("/lti/launch", data=form).status_code == 400
    unsigned = jwt.encode(
        {"iss": platform.address, "aud": CLIENT}, "", algorithm="none"
    )
    again = begin(browser, platform, "u-9")
    form = {"id_token": unsigned, "state": again["state"]}
    assert browser.client.post("/lti/launch", data=form).status_code == 400


def test_a_launch_works_once_and_in_its_own_browser(
    served: Served, platform: LtiPlatform
) -> None:
    browser, other = served.browser(), served.browser()
    form = signed(platform, begin(browser, platform, "u-9"), {})
    assert other.client.post("/lti/launch", data=form).status_code == 400
    assert browser.client.post("/lti/launch", data=form).status_code == 200
    again = browser.client.post("/lti/launch", data=form)
    assert again.status_code == 400
    assert "was used" in again.text


def test_a_platform_that_nobody_registered_is_refused(served: Served) -> None:
    answer = served.browser().get("/lti/login?iss=https://evil.example&login_hint=x")
    assert answer.status_code == 400
    assert "knows no platform" in answer.text


def test_marks_go_back_once_and_again_when_they_change(
    served: Served, platform: LtiPlatform
) -> None:
    """2 of 2.5 points of the tests; the written answer's 5 points wait for a person."""
    ada = enter(served, platform, "u-1", email_address="ada@school.example")
    ada.hand_in()
    served.grade(2.0)
    desk = LtiDesk(served.office)
    for _ in range(2):
        filed = file_attempts(served.office.course, served.office.attempts)
        assert filed.problems == ()
        assert desk.send_marks(["tiny"]) == []
    (score,) = platform.scores["1"]
    assert score["userId"] == "u-1"
    assert (score["scoreGiven"], score["scoreMaximum"]) == (2.0, 7.5)
    assert (score["activityProgress"], score["gradingProgress"]) == (
        "Submitted",
        "PendingManual",
    )
    assert "T" in score["timestamp"]
    ada.hand_in(b" " + ada.get("/attempts/1/notebook").content)
    served.grade(2.5)
    file_attempts(served.office.course, served.office.attempts)
    desk.send_marks(["tiny"])
    assert [score["scoreGiven"] for score in platform.scores["1"]] == [2.0, 2.5]


def test_a_link_without_a_column_gets_one_and_keeps_it(
    served: Served, platform: LtiPlatform
) -> None:
    ada = enter(
        served, platform, "u-1", column=None, email_address="ada@school.example"
    )
    ada.hand_in()
    served.grade(2.0)
    file_attempts(served.office.course, served.office.attempts)
    desk = LtiDesk(served.office)
    assert desk.send_marks(["tiny"]) == []
    assert platform.columns == [
        {"scoreMaximum": 7.5, "label": "tiny", "resourceId": "tiny"}
    ]
    again = enter(
        served, platform, "u-1", column=None, email_address="ada@school.example"
    )
    again.hand_in(NOTEBOOK + b" ")
    served.grade(2.5)
    file_attempts(served.office.course, served.office.attempts)
    assert desk.send_marks(["tiny"]) == []
    assert len(platform.columns) == 1
    assert [score["scoreGiven"] for score in platform.scores["made-1"]] == [2.0, 2.5]


def test_the_mark_of_a_group_goes_to_each_member(
    platform: LtiPlatform, serve_with: Callable[[str], Served]
) -> None:
    platform.scores.clear()
    served = serve_with(platform.settings + '[submit]\ngroups = "tiny"\n')
    platform.registration.set_tool_key_set(served.browser().get("/lti/keys").json())
    (served.root / "students.csv").write_text(
        "id,email,group\nada,ada@school.example,Team 1\nbob,bob@school.example,Team 1\n"
    )
    ada = enter(served, platform, "u-1", email_address="ada@school.example")
    enter(served, platform, "u-2", email_address="bob@school.example")
    ada.hand_in()
    served.grade(2.0)
    file_attempts(served.office.course, served.office.attempts)
    assert LtiDesk(served.office).send_marks(["tiny"]) == []
    sent = {score["userId"]: score["scoreGiven"] for score in platform.scores["1"]}
    assert sent == {"u-1": 2.0, "u-2": 2.0}


def test_the_roster_comes_page_by_page(served: Served, platform: LtiPlatform) -> None:
    platform.members[:] = [
        {
            "user_id": f"u-{n}",
            "roles": [f"{MEMBERSHIP}Learner"],
            "email": f"s{n}@school.example",
        }
        for n in range(5)
    ]
    platform.members[3]["status"] = "Inactive"
    platform.members[4]["roles"] = [f"{MEMBERSHIP}Instructor"]
    enter(served, platform, "u-8", "Instructor", email_address="t@school.example")
    assert LtiDesk(served.office).fetch_roster() == ["s0", "s1", "s2"]
    assert read_ledger(served.office.course).has_record("s1")


def test_a_platform_that_is_down_loses_no_mark(
    served: Served, platform: LtiPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = enter(served, platform, "u-1", email_address="ada@school.example")
    ada.hand_in()
    served.grade(2.0)
    file_attempts(served.office.course, served.office.attempts)
    good = served.root / "course.toml"
    text = good.read_text(encoding="utf-8")
    good.write_text(text.replace("/token", "/gone"), encoding="utf-8")
    (problem,) = LtiDesk(served.office).send_marks(["tiny"])
    assert "marks of tiny not sent" in problem
    good.write_text(text, encoding="utf-8")
    assert LtiDesk(served.office).send_marks(["tiny"]) == []
    assert len(platform.scores["1"]) == 1

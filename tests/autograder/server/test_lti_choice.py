"""Choosing an assignment from inside a learning platform (LTI Deep Linking 2.0)."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jwt
import pytest
from lti_platform import CLIENT, DEPLOYMENT, LtiPlatform, run_platform
from served_course import Browser, Served
from test_lti import begin, signed

TOOL = "http://testserver"
CLAIM = "https://purl.imsglobal.org/spec/lti/claim/"
CHOICE = "https://purl.imsglobal.org/spec/lti-dl/claim/"
SETTINGS = f"{CHOICE}deep_linking_settings"


@pytest.fixture(scope="module")
def platform() -> Iterator[LtiPlatform]:
    with run_platform(TOOL) as platform:
        yield platform


@pytest.fixture
def served(platform: LtiPlatform, serve_with: Callable[[str], Served]) -> Served:
    due = '[due]\ntiny = "2026-10-02 12:00 UTC"\n'
    served = serve_with(platform.settings + due)
    platform.registration.set_tool_key_set(served.browser().get("/lti/keys").json())
    return served


def open_choice(served: Served, platform: LtiPlatform, role: str, **settings: Any):  # type: ignore[no-untyped-def]
    """The page that somebody gets who wants to choose."""
    browser = served.browser()
    form = platform.launch_choice(
        begin(browser, platform, "u-2"), "u-2", role, **settings
    )
    return browser, browser.client.post(
        "/lti/launch", data={"id_token": form["id_token"], "state": form["state"]}
    )


def answers(page: str) -> list[str]:
    """The signed answers in a page's forms."""
    return re.findall(r'name="JWT" value="([^"]+)"', page)


def test_an_instructor_chooses_an_assignment(
    served: Served, platform: LtiPlatform
) -> None:
    """5.5 points of tests and 5 of a written answer."""
    browser, page = open_choice(
        served, platform, "Instructor", extra_data={"csrf": 'a"<b>'}
    )
    assert page.status_code == 200, page.text
    assert f'action="{platform.address}/chosen"' in page.text
    assert f"form-action {platform.address};" in page.headers["content-security-policy"]
    (answer,) = answers(page.text)
    (item,) = platform.read_choice(answer)
    assert item == {
        "type": "ltiResourceLink",
        "title": "tiny",
        "url": f"{TOOL}/assignments/tiny",
        "custom": {"assignment": "tiny"},
        "lineItem": {"scoreMaximum": 10.5, "label": "tiny", "resourceId": "tiny"},
        "submission": {"endDateTime": "2026-10-02T12:00:00+00:00"},
    }
    assert browser.get("/").url.path == "/sign-in", "nobody is signed in by it"


def test_the_answer_says_what_the_standard_wants(
    served: Served, platform: LtiPlatform
) -> None:
    """LTI Deep Linking 2.0, section 4.5.2; Security Framework 1.0, section 5.2."""
    data = {"csrf": 'a"<b>'}
    _, page = open_choice(served, platform, "Instructor", extra_data=data)
    claims = jwt.decode(answers(page.text)[0], options={"verify_signature": False})
    fixed = {
        "iss": CLIENT,
        "aud": platform.address,
        f"{CLAIM}deployment_id": DEPLOYMENT,
        f"{CLAIM}message_type": "LtiDeepLinkingResponse",
        f"{CLAIM}version": "1.3.0",
        f"{CHOICE}data": data,
    }
    assert {name: claims[name] for name in fixed} == fixed
    assert claims["exp"] - claims["iat"] == 3600
    assert len(claims["nonce"]) >= 32


def test_who_learns_in_the_course_chooses_nothing(
    served: Served, platform: LtiPlatform
) -> None:
    _, page = open_choice(served, platform, "Learner")
    assert page.status_code == 403
    assert answers(page.text) == []


@pytest.mark.parametrize(
    ("changes", "status", "has_column"),
    [
        ({"accept_types": ["link", "html"]}, 400, False),
        ({"accept_lineitem": False}, 200, False),
        ({"accept_lineitem": True}, 200, True),
        ({"deep_link_return_url": "javascript:alert(1)"}, 400, False),
        ({"deep_link_return_url": ""}, 400, False),
        ({"deep_link_return_url": "https://a;script-src https:/b"}, 400, False),
    ],
)
def test_the_platform_says_what_it_takes(
    served: Served,
    platform: LtiPlatform,
    changes: Mapping[str, Any],
    status: int,
    has_column: bool,
) -> None:
    browser = served.browser()
    wish = {
        "deep_link_return_url": f"{platform.address}/chosen",
        "accept_types": "ltiResourceLink",
    }
    form = choice_form(browser, platform, {**wish, **changes})
    page = browser.client.post("/lti/launch", data=form)
    assert page.status_code == status
    items = [platform.read_choice(answer)[0] for answer in answers(page.text)]
    assert any("lineItem" in item for item in items) is has_column


def choice_form(
    browser: Browser, platform: LtiPlatform, settings: Mapping[str, Any]
) -> dict[str, str]:
    """The form of a launch with these settings; its person teaches."""
    role = "http://purl.imsglobal.org/vocab/lis/v2/membership#Instructor"
    changes = {
        f"{CLAIM}message_type": "LtiDeepLinkingRequest",
        f"{CLAIM}resource_link": None,
        f"{CLAIM}roles": [role],
        SETTINGS: dict(settings),
    }
    return signed(platform, begin(browser, platform, "u-9"), changes)


def test_a_return_address_cannot_break_the_page(
    served: Served, platform: LtiPlatform
) -> None:
    address = f'{platform.address}/chosen"><script>alert(1)</script>'
    browser = served.browser()
    wish = {"deep_link_return_url": address, "accept_types": ["ltiResourceLink"]}
    page = browser.client.post("/lti/launch", data=choice_form(browser, platform, wish))
    assert "<script>" not in page.text
    assert html.escape(address, quote=True).replace("&quot;", "&#34;") in page.text
    assert "script" not in page.headers["content-security-policy"]


def test_a_link_that_was_chosen_leads_to_its_assignment(
    served: Served, platform: LtiPlatform
) -> None:
    """With the custom parameter and the address that the choice gave the platform."""
    _, page = open_choice(served, platform, "Instructor")
    (item,) = platform.read_choice(answers(page.text)[0])
    browser = served.browser()
    changes = {
        f"{CLAIM}custom": item["custom"],
        f"{CLAIM}target_link_uri": item["url"],
        f"{CLAIM}resource_link": {"id": "link-2", "title": item["title"]},
    }
    form = signed(platform, begin(browser, platform, "u-9"), changes)
    assert browser.client.post("/lti/launch", data=form).url.path == "/assignments/tiny"

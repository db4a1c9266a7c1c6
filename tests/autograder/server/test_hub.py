"""Signing in with JupyterHub, by the addresses and fields of its documentation of services."""

from __future__ import annotations

import functools
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
from served_course import Browser, Served
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

from autograder.server.hub_pages import Hub, _ask_for_user, hub_from_environment
from autograder.server.web_app import make_app

ENVIRONMENT = {
    "JUPYTERHUB_API_TOKEN": "service-token",
    "JUPYTERHUB_API_URL": "http://127.0.0.1:8081/hub/api",
    "JUPYTERHUB_BASE_URL": "/",
    "JUPYTERHUB_CLIENT_ID": "service-hand-in",
    "JUPYTERHUB_SERVICE_PREFIX": "/services/hand-in/",
    "JUPYTERHUB_OAUTH_CALLBACK_URL": "/services/hand-in/oauth_callback",
}


@pytest.fixture
def browser(served: Served) -> Browser:
    hub = hub_from_environment(ENVIRONMENT)
    return Browser(
        TestClient(make_app(served.office, "secret", is_https=False, hub=hub))
    )


def answer_as(
    monkeypatch: pytest.MonkeyPatch, user: dict[str, object]
) -> list[httpx.Request]:
    """Let a Hub answer that gives this user for the code `code-1`."""
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        if request.url.path == "/hub/api/oauth2/token":
            form = dict(parse_qsl(request.content.decode()))
            if form["code"] != "code-1" or form["client_secret"] != "service-token":
                return httpx.Response(400)
            return httpx.Response(200, json={"access_token": "user-token"})
        assert request.headers["authorization"] == "token user-token"
        return httpx.Response(200, json=user)

    real_client = httpx.Client
    transport = httpx.MockTransport(answer)
    monkeypatch.setattr(
        "httpx.Client", lambda **options: real_client(transport=transport, **options)
    )
    return asked


def come_back(browser: Browser, code: str = "code-1", state: str = ""):  # type: ignore[no-untyped-def]
    """Go to the Hub, and come back from it."""
    to_hub = browser.client.get("/services/hand-in/hub", follow_redirects=False)
    asked = dict(parse_qsl(urlsplit(to_hub.headers["location"]).query))
    address = (
        f"/services/hand-in/oauth_callback?code={code}&state={state or asked['state']}"
    )
    return browser.client.get(address)


def test_a_visitor_is_sent_to_the_hub(browser: Browser) -> None:
    first = browser.client.get("/services/hand-in/", follow_redirects=False)
    assert first.headers["location"] == "/services/hand-in/hub"
    to_hub = browser.client.get("/services/hand-in/hub", follow_redirects=False)
    address = urlsplit(to_hub.headers["location"])
    assert address.path == "/hub/api/oauth2/authorize"
    asked = dict(parse_qsl(address.query))
    assert asked["client_id"] == "service-hand-in"
    assert asked["redirect_uri"] == "/services/hand-in/oauth_callback"
    assert asked["response_type"] == "code"


def test_the_hubs_user_is_the_student(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_as(monkeypatch, {"name": "ada", "admin": False})
    home = come_back(browser)
    assert home.url.path == "/services/hand-in/"
    assert "<bdi>ada</bdi>" in home.text
    assert 'href="/services/hand-in/assignments/tiny"' in home.text
    assert browser.get("/services/hand-in/class/tiny").status_code == 404


def test_other_servers_of_the_hub_get_no_cookie(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every student has one at /user/NAME/, on the same host."""
    answer_as(monkeypatch, {"name": "ada", "admin": False})
    come_back(browser)
    assert {cookie.path for cookie in browser.client.cookies.jar} == {
        "/services/hand-in/"
    }


def test_addresses_for_programs_are_below_the_prefix(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_as(monkeypatch, {"name": "prof", "admin": True})
    come_back(browser)
    key = browser.send("/services/hand-in/", "/services/hand-in/key").text
    assert "--submit http://testserver/services/hand-in</pre>" in key
    people = "/services/hand-in/people"
    made = browser.send(people, people, students="ada").text
    assert "http://testserver/services/hand-in/sign-in?key=" in made


def test_an_administrator_of_the_hub_sees_the_class(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_as(monkeypatch, {"name": "prof", "admin": True})
    come_back(browser)
    assert browser.get("/services/hand-in/class/tiny").status_code == 200


@pytest.mark.parametrize(
    ("user", "code", "state", "status"),
    [
        ("eve", "code-1", "", 403),
        ("ada", "code-2", "", 502),
        ("ada", "code-1", "guess", 400),
        ("", "code-1", "", 403),
    ],
)
def test_who_does_not_come_rightly_does_not_enter(
    browser: Browser,
    monkeypatch: pytest.MonkeyPatch,
    user: str,
    code: str,
    state: str,
    status: int,
) -> None:
    answer_as(monkeypatch, {"name": user})
    assert come_back(browser, code, state).status_code == status
    first = browser.client.get("/services/hand-in/", follow_redirects=False)
    assert first.headers["location"] == "/services/hand-in/hub"


def test_a_server_that_is_no_service_has_no_such_page(served: Served) -> None:
    assert hub_from_environment({}) is None
    assert served.browser().get("/hub").status_code == 404


@pytest.mark.parametrize(
    ("granted", "token", "answered", "user"),
    [
        # an answer that says no is none, whatever its text
        (400, {"access_token": "t"}, 200, {"name": "ada"}),
        (200, {"access_token": "t"}, 403, {"name": "ada"}),
        (200, {}, 200, {"name": "ada"}),
        (200, {"access_token": "t"}, 200, {"kind": "user"}),
        (200, {"access_token": "t"}, 200, []),
    ],
)
def test_a_hub_that_does_not_say_who_it_is_signs_nobody_in(
    monkeypatch: pytest.MonkeyPatch,
    granted: int,
    token: object,
    answered: int,
    user: object,
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/token"):
            return httpx.Response(granted, json=token)
        return httpx.Response(answered, json=user)

    client = functools.partial(httpx.Client, transport=httpx.MockTransport(answer))
    monkeypatch.setattr("httpx.Client", client)
    hub = hub_from_environment(ENVIRONMENT)
    assert hub is not None
    with pytest.raises(HTTPException) as refused:
        _ask_for_user(hub, "code-1")
    assert refused.value.status_code == 502


def test_a_hub_may_tell_its_service_little() -> None:
    few = {"JUPYTERHUB_API_TOKEN": "t", "JUPYTERHUB_API_URL": "http://hub/api"}
    assert hub_from_environment(few) == Hub(
        "/hub/api/oauth2/authorize", "http://hub/api", "", "t", "/oauth_callback", "/"
    )
    own_host = {
        **few,
        "JUPYTERHUB_HOST": "https://hub",
        "JUPYTERHUB_BASE_URL": "/jupyter/",
        "JUPYTERHUB_SERVICE_PREFIX": "/services/s/",
    }
    hub = hub_from_environment(own_host)
    assert hub is not None
    assert hub.authorize_url == "https://hub/jupyter/hub/api/oauth2/authorize"
    assert hub.callback_url == "https://hub/services/s/oauth_callback"
    named = hub_from_environment(
        {**own_host, "JUPYTERHUB_OAUTH_CALLBACK_URL": "https://course/back"}
    )
    assert named is not None
    assert named.callback_url == "https://course/back"

"""Who gets what at every address: a table of decisions, held against the application's own list of
routes. A route that is not in the table fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from http.cookiejar import Cookie

import pytest
from served_course import Browser, Served
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from autograder.server.filing import file_attempts
from autograder.server.protection import RateLimit
from autograder.server.web_app import make_app

PEOPLE = ("nobody", "bob", "ada", "prof")
"""A visitor, another student, the student of attempt 1, and an instructor."""

# statuses for the four people; 303 leads a visitor to the sign-in page
EVERYBODY = (200, 200, 200, 200)
NO_PAGE = (404, 404, 404, 404)
SIGNED_IN = (303, 200, 200, 200)
OWN = (303, 404, 200, 200)
INSTRUCTORS = (303, 404, 404, 200)
DONE = 303
DECISIONS: dict[tuple[str, str], tuple[int, int, int, int]] = {
    ("GET", "/"): SIGNED_IN,
    ("GET", "/assignments/{assignment}"): SIGNED_IN,
    # without a file: "the file is empty"
    ("POST", "/assignments/{assignment}/hand-in"): (303, 400, 400, 400),
    ("GET", "/attempts/{attempt:row}"): OWN,
    ("GET", "/attempts/{attempt:row}/page"): OWN,
    ("GET", "/attempts/{attempt:row}/notebook"): OWN,
    ("POST", "/attempts/{attempt:row}/ask"): (303, 404, DONE, DONE),
    ("POST", "/key"): SIGNED_IN,
    # for programs with a key, which nobody of these sends
    ("POST", "/api/assignments/{assignment}/attempts"): (401, 401, 401, 401),
    ("GET", "/api/attempts/{attempt:row}"): (401, 401, 401, 401),
    ("GET", "/sign-in"): EVERYBODY,
    # with a key that is no link's
    ("POST", "/sign-in"): (403, 403, 403, 403),
    ("POST", "/sign-out"): (DONE, DONE, DONE, DONE),
    ("GET", "/class/{assignment}"): INSTRUCTORS,
    ("GET", "/class/{assignment}/report"): INSTRUCTORS,
    ("GET", "/class/{assignment}/students/{student:path}"): INSTRUCTORS,
    # without days: "no number of days"
    ("POST", "/class/{assignment}/extensions"): (303, 404, 404, 400),
    ("POST", "/class/{assignment}/grade-again"): (303, 404, 404, DONE),
    ("POST", "/requests/{request:row}"): (303, 404, 404, DONE),
    ("GET", "/people"): INSTRUCTORS,
    ("POST", "/people"): INSTRUCTORS,
    # no platform is registered here
    ("POST", "/people/roster"): (303, 404, 404, 400),
    ("GET", "/class/{assignment}/written"): INSTRUCTORS,
    ("POST", "/class/{assignment}/written"): (303, 404, 404, DONE),
    # the request before this one has brought the answers in
    ("GET", "/class/{assignment}/written/{question}"): INSTRUCTORS,
    # without the code of an answer
    ("POST", "/class/{assignment}/written/{question}"): (303, 404, 404, 404),
    ("GET", "/class/{assignment}/regrade"): INSTRUCTORS,
    ("POST", "/class/{assignment}/regrade"): (303, 404, 404, DONE),
    # nobody was graded again yet
    ("POST", "/class/{assignment}/regrade/accept"): (303, 404, 404, 400),
    ("POST", "/class/{assignment}/regrade/drop"): (303, 404, 404, DONE),
    # without a platform's parameters
    ("GET", "/lti/login"): (400, 400, 400, 400),
    ("POST", "/lti/login"): (400, 400, 400, 400),
    ("POST", "/lti/launch"): (400, 400, 400, 400),
    ("GET", "/lti/keys"): EVERYBODY,
    # this server is no service of a Hub
    ("GET", "/hub"): NO_PAGE,
    ("GET", "/oauth_callback"): NO_PAGE,
    ("GET", "/style.css"): EVERYBODY,
    # figures are for this machine too, and the tests' client is none
    ("GET", "/metrics"): (404, 404, 404, 200),
}
WITHOUT_FORMS_TOKEN = {
    "/api/assignments/{assignment}/attempts": "the key in its header is no browser's to send",
    "/lti/login": "a platform sends it, and nobody is signed in by it",
    "/lti/launch": "a platform signs it, and the cookie of its begin must be here",
}
"""POST routes that take no token of the session, and why."""
VALUES = {
    "assignment": "tiny",
    "attempt": 1,
    "student": "ada",
    "request": 1,
    "question": "why",
}


def routes(app: Starlette) -> Iterator[tuple[str, Route]]:
    """Method and route of everything that the application answers."""
    for route in app.routes:
        assert isinstance(route, Route)
        for method in sorted((route.methods or set()) - {"HEAD"}):
            yield method, route


def address(route: Route) -> str:
    values = {name: VALUES[name] for name in route.param_convertors}
    return route.path_format.format(**values)


@pytest.fixture
def course_at_work(served: Served, monkeypatch: pytest.MonkeyPatch) -> Served:
    """Ada has a graded attempt, which is filed, and asked about it."""
    monkeypatch.setattr(RateLimit, "check", lambda limit, who: None)
    ada = served.browser("ada")
    ada.hand_in()
    served.grade(1.0)
    assert file_attempts(served.office.course, served.office.attempts).problems == ()
    ada.send(
        "/attempts/1", "/attempts/1/ask", text="double(7) is 14", question="double"
    )
    return served


def knock(browser: Browser, method: str, path: str, token: str) -> int:
    data = {"token": token} if method == "POST" else None
    answer = browser.client.request(method, path, data=data, follow_redirects=False)
    status: int = answer.status_code
    return status


def test_every_route_has_a_decision(course_at_work: Served) -> None:
    app = make_app(course_at_work.office, "secret", is_https=False)
    assert {(method, route.path) for method, route in routes(app)} == DECISIONS.keys()


@pytest.mark.parametrize("person", PEOPLE)
def test_everybody_gets_what_was_decided(course_at_work: Served, person: str) -> None:
    app = make_app(course_at_work.office, "secret", is_https=False)
    wrong = {}
    browser = course_at_work.browser("" if person == "nobody" else person)
    page = "/sign-in?key=guess" if person == "nobody" else "/"
    for method, route in routes(app):
        token = browser.token(page)
        if not token:  # the route before was /sign-out
            browser = course_at_work.browser(person)
            token = browser.token(page)
        status = knock(browser, method, address(route), token)
        expected = DECISIONS[method, route.path][PEOPLE.index(person)]
        if status != expected:
            wrong[method, route.path] = f"{status}, not {expected}"
    assert wrong == {}


def test_no_form_is_taken_without_the_sessions_token(course_at_work: Served) -> None:
    """Of the instructor, to whom all forms belong: a token that is missing, guessed or ada's."""
    app = make_app(course_at_work.office, "secret", is_https=False)
    other = course_at_work.browser("ada").token("/")
    prof = course_at_work.browser("prof")
    taken = []
    for method, route in routes(app):
        if method != "POST" or route.path in WITHOUT_FORMS_TOKEN:
            continue
        for token in ("", "guess", other):
            if knock(prof, method, address(route), token) != 403:
                taken.append((route.path, token))
    assert taken == []


@pytest.mark.parametrize("is_https", [False, True])
def test_cookies_are_out_of_reach_of_scripts_and_other_sites(
    course_at_work: Served, is_https: bool
) -> None:
    app = make_app(course_at_work.office, "secret", is_https=is_https)
    client = TestClient(app, base_url=f"http{'s' if is_https else ''}://testserver")
    client.get("/sign-in?key=guess")
    cookies: list[Cookie] = list(client.cookies.jar)
    (session,) = cookies
    assert session.name == "attention_kit"
    assert session.has_nonstandard_attr("httponly")
    assert session.get_nonstandard_attr("samesite") == "lax"
    assert session.secure is is_https


def test_every_answer_says_what_a_browser_may_do(course_at_work: Served) -> None:
    """No script, no frame, nothing kept, and no type but the one that is said."""
    app = make_app(course_at_work.office, "secret", is_https=False)
    prof = course_at_work.browser("prof")
    for method, route in routes(app):
        answer = prof.client.request(method, address(route), follow_redirects=False)
        headers = answer.headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy, route.path
        assert "frame-ancestors 'none'" in policy, route.path
        assert "script-src" not in policy, route.path
        assert headers["x-content-type-options"] == "nosniff", route.path
        assert headers["referrer-policy"] == "same-origin", route.path
        if route.path != "/style.css":
            assert headers["cache-control"] == "no-store", route.path


def test_a_strange_address_is_no_page(course_at_work: Served) -> None:
    prof = course_at_work.browser("prof")
    paths = [
        "/attempts/99999999999999999999",
        "/attempts/-1",
        "/attempts/1%00",
        "/assignments/..%2f..%2fcourse.toml",
        "/assignments/%00",
        "/class/%ff",
        "/requests/1" * 300,
        "/..%2f.autograder/server.db",
    ]
    assert [prof.get(path).status_code for path in paths] == [404] * len(paths)


def test_forms_of_one_person_and_sign_ins_of_one_address_are_limited(
    served: Served,
) -> None:
    """60 forms a minute a person, 600 sign-ins a minute an address (docs/server.md)."""
    app = make_app(served.office, "secret", is_https=False)
    client = TestClient(app)
    key = served.office.people.make_link("ada", "student")
    browser = Browser(client)
    browser.send(f"/sign-in?key={key}", "/sign-in", key=key)
    statuses = [browser.client.post("/key", data={}).status_code for _ in range(61)]
    assert statuses == [403] * 60 + [429]
    visitor = TestClient(app)
    statuses = [visitor.post("/sign-in", data={}).status_code for _ in range(600)]
    assert set(statuses[:599]) == {403}  # one sign-in was ada's
    assert statuses[599] == 429

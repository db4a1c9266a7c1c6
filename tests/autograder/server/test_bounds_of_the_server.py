"""How long and how much: texts of requests, lines of the log, sessions, answers of other servers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives import serialization
from served_course import NOTEBOOK, Served
from starlette.exceptions import HTTPException
from starlette.responses import Response

from autograder.course import Course
from autograder.grading.regrade import Comparison, Move
from autograder.platforms.lti import LtiServices
from autograder.server import lti_desk, student_pages, web_app
from autograder.server.attempts import AttemptStore
from autograder.server.database import open_database
from autograder.server.hub_pages import Hub, _ask_for_user
from autograder.server.lti_desk import LtiDesk, _key_client, _make_key
from autograder.server.people import Role, Visitor
from autograder.server.questions_asked import RequestStore
from autograder.server.regrade_pages import _describe
from autograder.server.serve_command import KEEP_ALIVE_SECONDS

ClientOptions = list[dict[str, Any]]


def test_a_request_and_its_reply_have_four_thousand_characters(tmp_path: Path) -> None:
    engine = open_database(f"sqlite:///{tmp_path / 'server.db'}")
    attempt = AttemptStore(engine).add("ada", "m1", NOTEBOOK)
    requests = RequestStore(engine)
    requests.ask(attempt, "ada", "double", "a" * 4001)
    requests.reply(1, "b" * 4001, "prof")
    (request,) = requests.of_attempt(attempt.id)
    assert (request.text, request.reply) == ("a" * 4000, "b" * 4000)
    assert (request.student, request.question, request.replied_by) == (
        "ada",
        "double",
        "prof",
    )
    engine.dispose()


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 marks move: none"),
        (20, f"20 marks move: {', '.join(f's{n} up' for n in range(20))}"),
        (
            22,
            f"22 marks move: {', '.join(f's{n} up' for n in range(20))}, and 2 more",
        ),
    ],
)
def test_a_line_of_the_log_names_twenty_marks(count: int, words: str) -> None:
    moves = tuple(Move(f"s{number}", "up", ()) for number in range(count))
    assert _describe(Comparison(moves, 0, (), {})) == words


def test_a_session_lasts_fourteen_days(served: Served) -> None:
    answer = served.browser().get("/sign-in")
    assert "Max-Age=1209600;" in answer.headers["set-cookie"]


def test_an_idle_connection_stays_open_for_a_minute() -> None:
    """A page that waits asks again after 15 seconds at the latest."""
    assert KEEP_ALIVE_SECONDS == 60


@pytest.mark.parametrize(("fields", "status"), [(19, 200), (20, 400)])
def test_a_form_may_have_twenty_fields(
    served: Served, fields: int, status: int
) -> None:
    """With the token."""
    ada = served.browser("ada")
    data = {"token": ada.token("/")}
    data |= {f"field-{number}": "x" for number in range(fields)}
    answer = ada.client.post("/key", data=data, files={"notebook": NOTEBOOK})
    assert answer.status_code == status


def test_a_key_of_the_server_has_2048_bits() -> None:
    key: Any = serialization.load_pem_private_key(_make_key().encode(), password=None)
    assert key.key_size == 2048


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> ClientOptions:
    """The options of each client of another server; nobody answers there."""
    options: ClientOptions = []
    real_client: Callable[..., httpx.Client] = httpx.Client

    def client(**given: Any) -> httpx.Client:
        options.append(given)
        transport = httpx.MockTransport(lambda request: httpx.Response(503))
        return real_client(transport=transport)

    monkeypatch.setattr(httpx, "Client", client)
    return options


def test_other_servers_have_twenty_seconds_to_answer(
    opened: ClientOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(HTTPException):
        _ask_for_user(Hub("", "http://hub/api", "", "", "", ""), "code")
    monkeypatch.setattr(lti_desk, "_make_key", lambda: "a key")
    registration: Any = SimpleNamespace(issuer="https://lms")
    course = Course(tmp_path, lti={"lms": registration})
    course.kept.mkdir()
    office: Any = SimpleNamespace(engine=None, course=course)
    with LtiDesk(office)._services("https://lms") as services:
        assert isinstance(services, LtiServices)
    assert opened == [{"timeout": 20.0}] * 2
    assert _key_client("https://lms/keys").timeout == 20.0


def test_a_refused_page_says_when_to_come_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(web_app, "page", lambda *_, status, **values: Response())
    request: Any = SimpleNamespace(url=SimpleNamespace(path="/class/m1"))
    refused = HTTPException(429, "too often", {"retry-after": "5"})
    answer = web_app.explain_http_error(request, refused)
    assert answer.headers["retry-after"] == "5"
    answer = web_app.explain_http_error(request, HTTPException(404, "nothing"))
    assert "retry-after" not in answer.headers


@pytest.mark.parametrize(("role", "shown"), [("instructor", "all"), ("student", "few")])
def test_an_instructor_sees_all_of_an_attempt(
    monkeypatch: pytest.MonkeyPatch, role: Role, shown: str
) -> None:
    office = SimpleNamespace(
        attempts=SimpleNamespace(result=lambda number: f"result {number}"),
        requests=SimpleNamespace(of_attempt=lambda number: []),
        rules=lambda: SimpleNamespace(shown=lambda attempt: "few"),
    )
    attempt = SimpleNamespace(id=7, is_open=False, score=2.5)
    played = {
        "visitor_of": lambda request: Visitor("prof", role),
        "attempt_of": lambda request, visitor: attempt,
        "office_of": lambda request: office,
        "page": lambda request, template, **values: (template, values),
    }
    for name, function in played.items():
        monkeypatch.setattr(student_pages, name, function)
    request: Any = "request"
    answer: Any = student_pages.attempt_page(request)
    values = {"attempt": attempt, "result": "result 7", "shown": shown, "requests": []}
    assert answer == ("attempt.html", values)


@pytest.mark.parametrize(("limit", "megabytes"), [(0, 0), (3_145_728, 3)])
def test_a_page_names_the_bound_on_weights_in_megabytes(
    monkeypatch: pytest.MonkeyPatch, limit: int, megabytes: int
) -> None:
    attempts = [SimpleNamespace(nickname="owl"), SimpleNamespace(nickname="fox")]
    view = SimpleNamespace(attempts=attempts)
    office = SimpleNamespace(
        course=SimpleNamespace(submit="here"),
        assignment_view=lambda student, name: view,
        weights_limit=lambda name: limit,
        takes_nickname=lambda assignment: True,
    )
    played = {
        "visitor_of": lambda request: Visitor("ada", "student"),
        "assignment_of": lambda request: SimpleNamespace(name="tiny"),
        "office_of": lambda request: office,
        "page": lambda request, template, **values: values,
    }
    for name, function in played.items():
        monkeypatch.setattr(student_pages, name, function)
    request: Any = "request"
    values: Any = student_pages.assignment_page(request)
    assert values == {
        "status": 200,
        "view": view,
        "submit": "here",
        "weights_name": "tiny.safetensors",
        "weights_mb": megabytes,
        "takes_nickname": True,
        "nickname": "owl",
        "longest_nickname": 24,
        "problem": "",
    }
    view.attempts = []
    values = student_pages.assignment_page(request, "too late")
    assert (values["status"], values["nickname"]) == (400, "")
    assert values["problem"] == "too late"

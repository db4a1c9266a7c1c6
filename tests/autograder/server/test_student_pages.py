"""What students ask of the server and are answered; the course at work is played."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.exceptions import HTTPException

from autograder.server import student_pages
from autograder.server.attempts import Attempt
from autograder.server.office import HandInRefused, SentFile
from autograder.server.pages_base import SentForm
from autograder.server.people import Visitor

ADA = Visitor("ada", "student")
ATTEMPT = Attempt(
    id=7,
    student="ada",
    assignment="m1",
    number=2,
    received=0.0,
    sha256="",
    state="graded",
    runs=1,
    machine="",
    started=None,
    finished=None,
    suite_sha256="",
    score=1.5,
    max_score=2.5,
    problem="",
    filed=False,
    aside=False,
    handed_in_by="",
    weights_note="no weights",
    nickname_note="a number",
)
WAITING = dataclasses.replace(ATTEMPT, state="waiting", score=None, max_score=None)


class Desk:
    """An office with one attempt, 7, by ada; `calls` has what was asked of it."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.refusal = ""
        self.attempt = ATTEMPT
        self.result: Any = "the result"
        self.shown = "all"
        self.office: Any = SimpleNamespace(
            hand_in=self.hand_in,
            may_see=lambda visitor, attempt: visitor.student != "eve",
            place_in_queue=lambda attempt: (3, 28.0),
            feedback=self.feedback,
            rules=lambda: SimpleNamespace(
                shown=lambda attempt: self.shown,
                shown_result=lambda attempt, result: f"{result}, less",
            ),
            requests=SimpleNamespace(ask=self.ask, of_attempt=lambda number: []),
            people=SimpleNamespace(find_by_api_key={"key-1": "ada"}.get),
            attempts=SimpleNamespace(
                get=lambda number: self.attempt if number == 7 else None,
                result=lambda number: self.result,
                notebook=lambda number: f"notebook {number}".encode(),
            ),
        )

    def hand_in(self, *given: Any) -> Attempt:
        self.calls.append(given)
        if self.refusal:
            raise HandInRefused(self.refusal)
        return self.attempt

    def feedback(self, *given: Any) -> str:
        self.calls.append(given)
        return "<html>"

    def ask(self, *given: Any) -> None:
        self.calls.append(given)


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    desk = Desk()
    instead: dict[str, Any] = {
        "office_of": lambda request: desk.office,
        "assignment_of": lambda request: "<m1>",
        "rates_of": lambda request: SimpleNamespace(
            hand_ins=SimpleNamespace(check=lambda who: desk.calls.append(("rate", who)))
        ),
        "page": lambda request, template, **values: (template, values),
        "assignment_page": lambda request, problem: ("assignment", problem),
        "go_to": lambda request, path: path,
        "root_of": lambda request: "/kit",
        "own_address": lambda request: "https://x.edu",
        "visitor_of": lambda request: request.visitor,
    }
    for name, function in instead.items():
        monkeypatch.setattr(student_pages, name, function)
    return desk


def request(
    visitor: Visitor = ADA, attempt: int = 7, body: bytes = b"", **headers: str
) -> Any:
    async def read() -> bytes:
        return body

    return SimpleNamespace(
        visitor=visitor,
        path_params={"attempt": attempt},
        body=read,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
        url_for=lambda name, attempt: f"https://x.edu/{name}s/{attempt}",
    )


def answer_of(page: Coroutine[Any, Any, Any]) -> tuple[int, Any]:
    """The status of an answer, and its JSON."""
    answer = asyncio.run(page)
    return answer.status_code, json.loads(answer.body)


DESCRIBED = {
    "attempt": 7,
    "number": 2,
    "state": "graded",
    "problem": "",
    "weights": "no weights",
    "nickname": "a number",
    "page": "https://x.edu/attempts/7",
    "score": 1.5,
    "max_score": 2.5,
}


def test_a_program_hands_in_with_a_key(desk: Desk) -> None:
    asked = request(body=b"{}", authorization="bearer key-1", content_type="text/plain")
    assert answer_of(student_pages.hand_in_by_key(asked)) == (201, DESCRIBED)
    assert desk.calls == [("rate", "ada"), ("ada", "<m1>", b"{}", None, "")]
    desk.refusal = "all 3 attempts are used"
    status, refused = answer_of(student_pages.hand_in_by_key(asked))
    assert (status, refused) == (400, {"problem": "all 3 attempts are used"})


def test_a_program_may_send_a_form(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = SentFile("m1.safetensors", b"w", 1)
    form = SentForm({"nickname": " Owl "}, b"{}", weights)

    async def read_parts(request: object) -> SentForm:
        return form

    monkeypatch.setattr(student_pages, "read_parts", read_parts)
    kind = "multipart/form-data; boundary=b"
    asked = request(body=b"no", authorization="Bearer key-1", content_type=kind)
    assert answer_of(student_pages.hand_in_by_key(asked))[0] == 201
    assert desk.calls[-1] == ("ada", "<m1>", b"{}", weights, "Owl")


@pytest.mark.parametrize(
    "header", ["", "key-1", "Basic key-1", "Bearer", "Bearer key-2"]
)
def test_a_key_that_is_not_known_is_refused(desk: Desk, header: str) -> None:
    with pytest.raises(HTTPException) as refused:
        student_pages.attempt_by_key(request(authorization=header))
    assert refused.value.status_code == 401
    assert "make a new one on the server's page" in refused.value.detail


def test_a_program_asks_how_an_attempt_stands(desk: Desk) -> None:
    """Its place in the queue while it waits, its points once it has some."""
    asked = request(authorization="Bearer key-1")
    desk.attempt = WAITING
    described: Any = student_pages.attempt_by_key(asked)
    points = ("score", "max_score")
    expected = {name: DESCRIBED[name] for name in DESCRIBED if name not in points}
    place = {"state": "waiting", "before": 3, "seconds": 28.0}
    assert json.loads(described.body) == {**expected, **place}
    asked = request(authorization="Bearer key-1", attempt=8)
    with pytest.raises(HTTPException) as refused:
        student_pages.attempt_by_key(asked)
    assert refused.value.status_code == 404


def test_a_notebook_from_the_form_is_taken_or_refused(desk: Desk) -> None:
    hand_in: Any = student_pages.hand_in.__wrapped__  # type: ignore[attr-defined]
    form = SentForm({"nickname": "Owl"}, b"{}", None)
    assert hand_in(request(), ADA, form) == "/attempts/7"
    assert desk.calls == [("rate", "ada"), ("ada", "<m1>", b"{}", None, "Owl")]
    desk.refusal = "the file is empty"
    assert hand_in(request(), ADA, form) == ("assignment", "the file is empty")


@pytest.mark.parametrize(
    ("seconds", "refresh"), [(1.0, 1), (8.0, 2), (28.0, 7), (60.0, 15), (90.0, 15)]
)
def test_a_page_that_waits_asks_four_times(
    desk: Desk, seconds: float, refresh: int
) -> None:
    """While the attempt is graded; not oftener than once a second, nor seldomer than every 15."""
    desk.attempt = WAITING
    desk.office.place_in_queue = lambda attempt: (3, seconds)
    page: Any = student_pages.attempt_page(request())
    values = {"refresh": refresh, "attempt": WAITING, "before": 3}
    assert page == ("waiting.html", {**values, "seconds": round(seconds)})


def test_an_attempt_that_is_graded_again_shows_the_points_from_before(
    desk: Desk,
) -> None:
    desk.attempt = dataclasses.replace(ATTEMPT, state="waiting", aside=True)
    page: Any = student_pages.attempt_page(request())
    template, values = page
    assert (template, values["result"], values["shown"]) == (
        "attempt.html",
        "the result",
        "all",
    )


def test_feedback_is_shown_as_far_as_the_course_shows_it(desk: Desk) -> None:
    """All of it to an instructor, at any time."""
    page: Any = student_pages.feedback_page(request())
    assert desk.calls == [(ATTEMPT, "the result, less", "/kit/attempts/7")]
    assert page.body == b"<html>"
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; ")
    desk.shown = "score"
    student_pages.feedback_page(request(Visitor("prof", "instructor")))
    assert desk.calls[1] == (ATTEMPT, "the result", "/kit/attempts/7")
    with pytest.raises(HTTPException) as refused:
        student_pages.feedback_page(request())
    assert refused.value.status_code == 404
    desk.shown, desk.result = "all", None
    with pytest.raises(HTTPException):
        student_pages.feedback_page(request())
    assert len(desk.calls) == 2


def test_a_notebook_is_called_by_assignment_and_number(desk: Desk) -> None:
    answer = student_pages.notebook_file(request())
    assert answer.body == b"notebook 7"
    assert 'filename="m1-2.ipynb"' in answer.headers["content-disposition"]
    with pytest.raises(HTTPException):
        student_pages.notebook_file(request(Visitor("eve", "student")))


def test_a_question_is_asked_where_it_has_words(desk: Desk) -> None:
    ask: Any = student_pages.ask.__wrapped__  # type: ignore[attr-defined]
    form = SentForm({"text": " Why? ", "question": "q" * 201}, b"", None)
    assert ask(request(), ADA, form) == "/attempts/7#requests"
    assert desk.calls == [(ATTEMPT, "ada", "q" * 200, "Why?")]
    ask(request(), ADA, SentForm({"text": " \n"}, b"", None))
    assert len(desk.calls) == 1

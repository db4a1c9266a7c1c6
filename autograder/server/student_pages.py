"""The pages of students: their assignments, handing in, watching, and what came of it."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from autograder.course import Assignment
from autograder.intake.handed_in_weights import weights_name
from autograder.intake.nicknames import LONGEST_NICKNAME
from autograder.server.attempts import Attempt
from autograder.server.office import HandInRefused, Office
from autograder.server.pages_base import (
    SLOWEST_REFRESH,
    SentForm,
    download,
    go_to,
    office_of,
    own_address,
    page,
    rates_of,
    read_parts,
    root_of,
    takes_form,
    visitor_of,
)
from autograder.server.people import Visitor

_FEEDBACK_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""For pages that carry their style sheet; the page's own head allows that one alone."""


def home(request: Request) -> Response:
    """Everybody's first page: the assignments."""
    visitor = visitor_of(request)
    office = office_of(request)
    return page(request, "home.html", views=office.assignment_views(visitor.student))


def assignment_of(request: Request) -> Assignment:
    """The assignment that the address names.

    Raises:
        HTTPException: 404, there is none.
    """
    assignment = office_of(request).assignment(request.path_params["assignment"])
    if assignment is None:
        raise HTTPException(404)
    return assignment


def attempt_of(request: Request, visitor: Visitor) -> Attempt:
    """The attempt that the address names, if the visitor may know of it.

    Raises:
        HTTPException: 404, for everybody else's attempts too.
    """
    office = office_of(request)
    attempt = office.attempts.get(request.path_params["attempt"])
    if attempt is None or not office.may_see(visitor, attempt):
        raise HTTPException(404)
    return attempt


def assignment_page(request: Request, problem: str = "") -> Response:
    """One assignment: when it is due, a form to hand in, and the attempts so far."""
    visitor = visitor_of(request)
    assignment = assignment_of(request)
    office = office_of(request)
    view = office.assignment_view(visitor.student, assignment.name)
    return page(
        request,
        "assignment.html",
        status=400 if problem else 200,
        view=view,
        submit=office.course.submit,
        weights_name=weights_name(assignment.name),
        weights_mb=office.weights_limit(assignment.name) >> 20,
        takes_nickname=office.takes_nickname(assignment),
        nickname=view.attempts[0].nickname if view.attempts else "",
        longest_nickname=LONGEST_NICKNAME,
        problem=problem,
    )


@takes_form(visitor_of)
def hand_in(request: Request, visitor: Visitor, form: SentForm) -> Response:
    """Take a notebook from the form, and show it being graded."""
    rates_of(request).hand_ins.check(visitor.student)
    assignment = assignment_of(request)
    try:
        attempt = office_of(request).hand_in(
            visitor.student,
            assignment,
            form.notebook,
            form.weights,
            form.text("nickname"),
        )
    except HandInRefused as refusal:
        return assignment_page(request, str(refusal))
    return go_to(request, f"/attempts/{attempt.id}")


def attempt_page(request: Request) -> Response:
    """One attempt: its place in the queue while it waits, then its points."""
    visitor = visitor_of(request)
    attempt = attempt_of(request, visitor)
    office = office_of(request)
    if attempt.is_open and attempt.score is None:
        before, seconds = office.place_in_queue(attempt)
        return page(
            request,
            "waiting.html",
            refresh=round(min(max(1.0, seconds / 4), SLOWEST_REFRESH)),
            attempt=attempt,
            before=before,
            seconds=round(seconds),
        )
    result = office.attempts.result(attempt.id)
    shown = "all" if visitor.is_instructor else office.rules().shown(attempt)
    return page(
        request,
        "attempt.html",
        attempt=attempt,
        result=result,
        shown=shown,
        requests=office.requests.of_attempt(attempt.id),
    )


def feedback_page(request: Request) -> Response:
    """The feedback page of an attempt, where the course shows it now."""
    visitor = visitor_of(request)
    attempt = attempt_of(request, visitor)
    office = office_of(request)
    result = office.attempts.result(attempt.id)
    if result is not None and not visitor.is_instructor:
        rules = office.rules()
        is_shown = rules.shown(attempt) == "all"
        result = rules.shown_result(attempt, result) if is_shown else None
    if result is None:
        raise HTTPException(404)
    text = office.feedback(attempt, result, f"{root_of(request)}/attempts/{attempt.id}")
    return HTMLResponse(text, headers={"content-security-policy": _FEEDBACK_POLICY})


def notebook_file(request: Request) -> Response:
    """The notebook as it was handed in."""
    attempt = attempt_of(request, visitor_of(request))
    data = office_of(request).attempts.notebook(attempt.id)
    return download(data, f"{attempt.assignment}-{attempt.number}.ipynb")


@takes_form(visitor_of)
def ask(request: Request, visitor: Visitor, form: SentForm) -> Response:
    """Store a student's request about a question."""
    attempt = attempt_of(request, visitor)
    if text := form.text("text"):
        question = form.text("question")[:200]
        office_of(request).requests.ask(attempt, visitor.student, question, text)
    return go_to(request, f"/attempts/{attempt.id}#requests")


@takes_form(visitor_of)
def make_api_key(request: Request, visitor: Visitor, _: SentForm) -> Response:
    """Make the key with which `check.py --submit` hands in, and show it once."""
    key = office_of(request).people.make_api_key(visitor.student)
    return page(request, "api_key.html", key=key, address=own_address(request))


# For check.py --submit: a key in the header in place of a session


def _student_with_key(request: Request, office: Office) -> str:
    kind, _, key = request.headers.get("authorization", "").partition(" ")
    student = (
        office.people.find_by_api_key(key) if kind.lower() == "bearer" and key else None
    )
    if student is None:
        raise HTTPException(
            401, "this key is not known: make a new one on the server's page"
        )
    return student


async def hand_in_by_key(request: Request) -> Response:
    """Take the notebook that is the body of the request, or a form with notebook, weights and a
    nickname.
    """
    office = office_of(request)
    student = await run_in_threadpool(_student_with_key, request, office)
    rates_of(request).hand_ins.check(student)
    assignment = await run_in_threadpool(assignment_of, request)
    if request.headers.get("content-type", "").startswith("multipart/form-data"):
        form = await read_parts(request)
    else:
        form = SentForm({}, await request.body(), None)
    try:
        attempt = await run_in_threadpool(
            office.hand_in,
            student,
            assignment,
            form.notebook,
            form.weights,
            form.text("nickname"),
        )
    except HandInRefused as refusal:
        return JSONResponse({"problem": str(refusal)}, 400)
    return JSONResponse(_describe(request, office, attempt), 201)


def attempt_by_key(request: Request) -> Response:
    """How an attempt stands, as JSON."""
    office = office_of(request)
    visitor = Visitor(_student_with_key(request, office), "student")
    return JSONResponse(_describe(request, office, attempt_of(request, visitor)))


def _describe(request: Request, office: Office, attempt: Attempt) -> dict[str, object]:
    described: dict[str, object] = {
        "attempt": attempt.id,
        "number": attempt.number,
        "state": attempt.state,
        "problem": attempt.problem,
        "weights": attempt.weights_note,
        "nickname": attempt.nickname_note,
        "page": str(request.url_for("attempt", attempt=attempt.id)),
    }
    if attempt.is_open:
        described["before"], described["seconds"] = office.place_in_queue(attempt)
    if attempt.score is not None:
        described |= {"score": attempt.score, "max_score": attempt.max_score}
    return described


ROUTES = [
    Route("/", home),
    Route("/assignments/{assignment}", assignment_page),
    Route("/assignments/{assignment}/hand-in", hand_in, methods=["POST"]),
    Route("/attempts/{attempt:row}", attempt_page, name="attempt"),
    Route("/attempts/{attempt:row}/page", feedback_page),
    Route("/attempts/{attempt:row}/notebook", notebook_file),
    Route("/attempts/{attempt:row}/ask", ask, methods=["POST"]),
    Route("/key", make_api_key, methods=["POST"]),
    Route("/api/assignments/{assignment}/attempts", hand_in_by_key, methods=["POST"]),
    Route("/api/attempts/{attempt:row}", attempt_by_key),
]

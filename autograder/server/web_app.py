"""The web application: routes, sessions, and answers to what goes wrong."""

from __future__ import annotations

import re
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from autograder.basics.errors import KitError
from autograder.server import (
    hub_pages,
    instructor_pages,
    lti_pages,
    regrade_pages,
    sign_in_pages,
    student_pages,
    written_pages,
)
from autograder.server.hub_pages import Hub
from autograder.server.metrics import metrics_page
from autograder.server.office import Office
from autograder.server.pages_base import (
    SignInNeeded,
    go_to,
    page,
    style_sheet,
    visitor_or_none,
)
from autograder.server.protection import (
    AddHeaders,
    BodyBound,
    LimitBodies,
    RateLimits,
)

_FORM_BYTES = 64 << 10
"""What a form puts around a notebook."""
_HAND_IN = re.compile(r"/assignments/([^/]+)/(?:hand-in|attempts)$")
_SESSION_DAYS = 14
_WORDS = {
    400: "This cannot be understood.",
    403: "This is not possible for you.",
    404: "There is no such page, or it is somebody else's.",
    405: "This page cannot be used like that.",
    413: "This file is too large.",
    500: "Something is broken here. What you handed in is safe; tell your instructor.",
}


def make_app(
    office: Office, secret: str, *, is_https: bool, hub: Hub | None = None
) -> Starlette:
    """The application for one course.

    Args:
        hub: the JupyterHub whose service this is: all pages are then below its prefix, and people
            sign in with it.
        secret: signs the sessions' cookies.
        is_https: whether people come by https, so that the cookie needs it.
    """
    middleware = [
        Middleware(AddHeaders),
        Middleware(
            LimitBodies,
            bound_of=lambda path: _body_bound(office, path),
        ),
        Middleware(
            SessionMiddleware,
            secret_key=secret,
            session_cookie="attention_kit",
            # students' own servers answer at other paths of a Hub, and must not get the cookie
            path=hub.prefix if hub else "/",
            max_age=_SESSION_DAYS * 86_400,
            same_site="lax",
            https_only=is_https,
        ),
    ]
    routes: list[BaseRoute] = [
        *student_pages.ROUTES,
        *sign_in_pages.ROUTES,
        *instructor_pages.ROUTES,
        *lti_pages.ROUTES,
        *written_pages.ROUTES,
        *regrade_pages.ROUTES,
        *hub_pages.ROUTES,
        Route("/style.css", style),
        Route("/metrics", metrics_page),
    ]
    if hub is not None:
        routes = [Mount(hub.prefix.rstrip("/"), routes=routes)]
    app = Starlette(
        routes=routes,
        middleware=middleware,
        exception_handlers={
            HTTPException: explain_http_error,
            SignInNeeded: ask_to_sign_in,
            KitError: explain_kit_error,
            ClientDisconnect: forget_upload,
            Exception: explain_crash,
        },
    )
    app.state.office = office
    app.state.hub = hub
    app.state.rates = RateLimits()
    return app


def _body_bound(office: Office, path: str) -> BodyBound:
    """The most bytes of a request: a form around a notebook, and weights where it hands any in."""
    notebook = (office.course.limits.notebook_mb << 20) + _FORM_BYTES
    match = _HAND_IN.search(path)
    weights = office.weights_limit(match[1]) if match else 0
    return BodyBound(notebook + weights, weights=bool(weights))


def style(_: Request) -> Response:
    """The style sheet of all pages."""
    headers = {"cache-control": "max-age=3600"}
    return PlainTextResponse(style_sheet(), media_type="text/css", headers=headers)


def ask_to_sign_in(request: Request, _: Exception) -> Response:
    """Send a visitor without a session to the page for signing in."""
    return go_to(request, "/hub" if request.app.state.hub else "/sign-in")


def explain_http_error(request: Request, error: Exception) -> Response:
    """A page, or JSON for programs, that says what cannot be done."""
    assert isinstance(error, HTTPException)
    status = error.status_code
    detail = error.detail
    if detail == HTTPStatus(status).phrase:
        detail = _WORDS.get(status, detail)
    if request.url.path.startswith("/api/"):
        return JSONResponse({"problem": detail}, status, error.headers)
    answer = page(request, "refused.html", status=status, message=detail)
    answer.headers.update(error.headers or {})
    return answer


def explain_kit_error(request: Request, error: Exception) -> Response:
    """For instructors the reason why something cannot be done; it may name files of the course, so
    for everybody else it is a fault of this server.
    """
    visitor = visitor_or_none(request)
    if visitor is None or not visitor.is_instructor:
        raise error
    return page(request, "refused.html", status=400, message=str(error))


def forget_upload(_: Request, __: Exception) -> Response:
    """The answer to an upload that was broken off, which nobody gets: without it the log would have
    a traceback for each.
    """
    return Response(status_code=400)


def explain_crash(request: Request, _: Exception) -> Response:
    """The page for a fault of this server; its log has the traceback."""
    return PlainTextResponse(_WORDS[500], 500)

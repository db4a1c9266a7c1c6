"""The web application without a request: cookies, routes, and answers to what goes wrong."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import ClientDisconnect
from starlette.routing import Mount

from autograder.basics.errors import KitError
from autograder.course import Course
from autograder.outputs.pages import TEMPLATES as OUTPUT_TEMPLATES
from autograder.server import web_app
from autograder.server.hub_pages import Hub
from autograder.server.pages_base import TEMPLATES, SignInNeeded, style_sheet
from autograder.server.protection import AddHeaders, BodyBound, LimitBodies
from autograder.server.web_app import make_app

HUB = Hub("", "", "", "", "", prefix="/services/kit/")


def office(root: Path = Path("/course")) -> Any:
    def weights_limit(assignment: str) -> int:
        return 5_000 if assignment == "m1" else 0

    return SimpleNamespace(course=Course(root), weights_limit=weights_limit)


@pytest.mark.parametrize(("hub", "path"), [(None, "/"), (HUB, "/services/kit/")])
@pytest.mark.parametrize("is_https", [True, False])
def test_a_session_is_a_cookie_of_this_server_alone(
    hub: Hub | None, path: str, is_https: bool
) -> None:
    """Fourteen days, not sent along by another site's forms."""
    app = make_app(office(), "a secret", is_https=is_https, hub=hub)
    headers, bodies, session = app.user_middleware
    assert (headers.cls, bodies.cls, session.cls) == (  # type: ignore[comparison-overlap]
        AddHeaders,
        LimitBodies,
        SessionMiddleware,
    )
    assert session.kwargs == {
        "secret_key": "a secret",
        "session_cookie": "attention_kit",
        "path": path,
        "max_age": 1_209_600,
        "same_site": "lax",
        "https_only": is_https,
    }


def test_bodies_are_bound_by_the_limits_of_the_course() -> None:
    """20 MB and what a form puts around a notebook; with its weights where it has some."""
    served = office()
    app = make_app(served, "a secret", is_https=False)
    bound_of: Any = app.user_middleware[1].kwargs["bound_of"]
    notebook = served.course.limits.notebook_mb * 1_048_576 + 65_536
    assert bound_of("/assignments/m1/hand-in") == BodyBound(notebook + 5_000, True)
    assert bound_of("/assignments/m2/hand-in") == BodyBound(notebook, False)


def test_pages_of_a_hubs_service_are_below_its_prefix() -> None:
    own = make_app(office(), "", is_https=False)
    of_hub = make_app(office(), "", is_https=False, hub=HUB)
    (mount,) = of_hub.routes
    assert isinstance(mount, Mount)
    assert mount.path == "/services/kit"
    assert len(mount.routes) == len(own.routes) > 30
    assert (own.state.hub, of_hub.state.hub) == (None, HUB)


def test_whoever_has_not_signed_in_is_sent_where_that_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(web_app, "go_to", lambda request, path: path)
    for hub, path in ((None, "/sign-in"), (HUB, "/hub")):
        app = make_app(office(), "", is_https=False, hub=hub)
        answer: Any = web_app.ask_to_sign_in(
            SimpleNamespace(app=app),  # type: ignore[arg-type]
            SignInNeeded(),
        )
        assert answer == path


def test_every_fault_has_its_answer() -> None:
    handlers = make_app(office(), "", is_https=False).exception_handlers
    assert handlers[SignInNeeded] is web_app.ask_to_sign_in
    assert handlers[KitError] is web_app.explain_kit_error
    assert handlers[ClientDisconnect] is web_app.forget_upload
    assert handlers[Exception] is web_app.explain_crash
    nothing: Any = None
    assert web_app.forget_upload(nothing, ClientDisconnect()).status_code == 400


def test_the_style_sheet_is_kept_for_an_hour() -> None:
    nothing: Any = None
    answer = web_app.style(nothing)
    assert answer.media_type == "text/css"
    assert answer.headers["cache-control"] == "max-age=3600"
    both = style_sheet()
    assert answer.body == both.encode()
    for folder, name in ((OUTPUT_TEMPLATES, "page.css"), (TEMPLATES, "server.css")):
        assert (folder / name).read_text(encoding="utf-8") in both

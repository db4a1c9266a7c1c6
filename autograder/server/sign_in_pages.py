"""Signing in with a one-time link, and out. There are no passwords.

The link's page asks for a click: programs that look at the links in a mail would use it up.
"""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from autograder.server.pages_base import (
    go_to,
    office_of,
    page,
    read_form,
    sign_in_member,
)


def link_page(request: Request) -> Response:
    """The page of a link: a button that signs in."""
    return page(
        request, "sign_in.html", key=request.query_params.get("key", ""), problem=""
    )


async def use_link(request: Request) -> Response:
    """Sign in with the link's key."""
    form = await read_form(request)
    office = office_of(request)
    visitor = await run_in_threadpool(office.people.use_link, form.text("key"))
    if visitor is None:
        problem = "This link was used before, or is too old. Ask your instructor for a new one."
        return page(request, "sign_in.html", status=403, key="", problem=problem)
    return await sign_in_member(request, visitor)


async def sign_out(request: Request) -> Response:
    """End the session."""
    await read_form(request)
    request.session.clear()
    return go_to(request, "/sign-in")


ROUTES = [
    Route("/sign-in", link_page),
    Route("/sign-in", use_link, methods=["POST"]),
    Route("/sign-out", sign_out, methods=["POST"]),
]

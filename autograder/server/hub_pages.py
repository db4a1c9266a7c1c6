"""Signing in with JupyterHub, where the server runs as a service of a Hub: OAuth 2.0 with the code
flow, by the addresses that the Hub puts into the environment of its services.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import httpx
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from autograder.server.pages_base import office_of, sign_in_member
from autograder.server.people import Visitor

_STATE = "hub_state"
_TIMEOUT = 20.0  # seconds


@dataclass(frozen=True, slots=True)
class Hub:
    """A Hub, as it tells its service where it is.

    Attributes:
        prefix: the path below which the Hub's proxy sends requests to this server.
    """

    authorize_url: str
    api_url: str
    client_id: str
    token: str
    callback_url: str
    prefix: str


def hub_from_environment(environment: Mapping[str, str] = os.environ) -> Hub | None:
    """The Hub whose service this process is; None where it is none."""
    if "JUPYTERHUB_API_TOKEN" not in environment:
        return None
    prefix = environment.get("JUPYTERHUB_SERVICE_PREFIX", "/")
    host = environment.get("JUPYTERHUB_HOST", "")
    base = environment.get("JUPYTERHUB_BASE_URL", "/")
    default_callback = f"{host}{prefix}oauth_callback"
    return Hub(
        authorize_url=f"{host}{base}hub/api/oauth2/authorize",
        api_url=environment["JUPYTERHUB_API_URL"],
        client_id=environment.get("JUPYTERHUB_CLIENT_ID", ""),
        token=environment["JUPYTERHUB_API_TOKEN"],
        callback_url=environment.get("JUPYTERHUB_OAUTH_CALLBACK_URL")
        or default_callback,
        prefix=prefix,
    )


def _hub_of(request: Request) -> Hub:
    hub: Hub | None = request.app.state.hub
    if hub is None:
        raise HTTPException(404)
    return hub


def begin(request: Request) -> Response:
    """Send the browser to the Hub."""
    hub = _hub_of(request)
    state = secrets.token_urlsafe(24)
    request.session[_STATE] = state
    parameters = {
        "client_id": hub.client_id,
        "redirect_uri": hub.callback_url,
        "response_type": "code",
        "state": state,
    }
    return RedirectResponse(f"{hub.authorize_url}?{urlencode(parameters)}", 302)


async def finish(request: Request) -> Response:
    """Take the Hub's code, ask the Hub who came with it, and sign the person in."""
    hub = _hub_of(request)
    state = request.session.pop(_STATE, "")
    if not state or not secrets.compare_digest(
        state, request.query_params.get("state", "")
    ):
        raise HTTPException(
            400, "this sign-in was not begun in this browser: start it again"
        )
    code = request.query_params.get("code", "")
    user = await run_in_threadpool(_ask_for_user, hub, code)
    student = user["name"]
    role = office_of(request).role_of(student)
    if user.get("admin"):
        role = "instructor"
    return await sign_in_member(request, Visitor(student, role))


def _ask_for_user(hub: Hub, code: str) -> dict[str, Any]:
    """The Hub's record of the person who came with a code.

    Raises:
        HTTPException: 502, the Hub does not take the code, or does not answer.
    """
    form = {
        "client_id": hub.client_id,
        "client_secret": hub.token,
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": hub.callback_url,
    }
    try:
        with httpx.Client(timeout=_TIMEOUT) as client:
            granted = client.post(f"{hub.api_url}/oauth2/token", data=form)
            granted.raise_for_status()
            token = granted.json()["access_token"]
            headers = {"authorization": f"token {token}"}
            answer = client.get(f"{hub.api_url}/user", headers=headers)
            answer.raise_for_status()
            user: dict[str, Any] = answer.json()
            user["name"] = str(user["name"])
    except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
        raise HTTPException(
            502, f"JupyterHub did not say who you are: {error}"
        ) from error
    return user


ROUTES = [
    Route("/hub", begin),
    Route("/oauth_callback", finish),
]

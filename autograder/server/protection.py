"""What stands between the network and the pages: size and rate limits, headers, and the token that
every form carries.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from python_multipart.multipart import parse_options_header
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action {forms}; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY.format(forms="'self'"),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
UPLOAD_SECONDS = 120.0
"""How long a request's body may take to arrive: a notebook of 20 MB comes at 1.4 Mbit/s."""
SLOWEST_UPLOAD = 170_000
"""Bytes a second at which larger bodies may arrive, the same 1.4 Mbit/s."""
_MOST_REMEMBERED = 10_000
"""So many people or addresses a limit remembers, before it forgets those who were quiet."""
TOKEN = "form_token"
"""The name of a form's hidden field, and of the session's entry that it must equal."""


def policy_for_forms_to(address: str) -> str:
    """The policy of a page whose forms go to another site."""
    parts = urlsplit(address)
    return _POLICY.format(forms=f"{parts.scheme}://{parts.netloc}")


class UploadTooLarge(HTTPException):
    """More bytes came than a notebook may have; the rest was not read."""

    def __init__(self) -> None:
        super().__init__(
            413, "the file is larger than a notebook may be: clear its outputs"
        )


@dataclass(frozen=True, slots=True)
class BodyBound:
    """The most bytes that a request's body may have.

    Attributes:
        weights: whether it is a hand-in with weights: a form with more ends there, as if its last
            file were whole, since weights that are too large must not cost the notebook.
    """

    most_bytes: int
    weights: bool = False


class LimitBodies:
    """Ends requests whose body is too long, or too slow, while it streams in, whatever length was
    announced.

    Args:
        bound_of: the bound for a path.
    """

    def __init__(self, app: ASGIApp, bound_of: Callable[[str], BodyBound]) -> None:
        self._app = app
        self._bound_of = bound_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, counting its bytes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        bound = self._bound_of(scope["path"])
        boundary = _form_boundary(scope) if bound.weights else b""
        received = 0
        is_whole = False
        seconds = max(UPLOAD_SECONDS, bound.most_bytes / SLOWEST_UPLOAD)
        end = asyncio.get_running_loop().time() + seconds

        async def count() -> Message:
            nonlocal received, is_whole
            try:
                # after the body a server waits here, without an end, for the browser to leave
                async with asyncio.timeout_at(None if is_whole else end):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(
                    408, "this took too long to arrive: try again"
                ) from None
            body = message.get("body", b"")
            received += len(body)
            is_whole = not message.get("more_body", False)
            if received <= bound.most_bytes:
                return message
            if not boundary:
                raise UploadTooLarge
            is_whole = True
            allowed = body[: max(0, len(body) + bound.most_bytes - received)]
            last = b"\r\n--" + boundary + b"--\r\n"
            return {"type": "http.request", "body": allowed + last, "more_body": False}

        await self._app(scope, count, send)


def _form_boundary(scope: Scope) -> bytes:
    """What stands between the parts of a form with files; b"" for any other body."""
    kind = dict(scope["headers"]).get(b"content-type", b"")
    return parse_options_header(kind)[1].get(b"boundary", b"")


class AddHeaders:
    """Adds the headers that keep a browser from running, framing or keeping anything.

    A page that sets a policy of its own keeps it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and add headers to the answer."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name for name, _ in message["headers"]}
                for name, value in _HEADERS.items():
                    if name.encode() not in present:
                        message["headers"].append((name.encode(), value.encode()))
            await send(message)

        await self._app(scope, receive, send_with_headers)


class RateLimit:
    """Refuses what one person, or one address, does too often.

    Args:
        most: how many times within `seconds`.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._most = most
        self._seconds = seconds
        self._times: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def check(self, who: str) -> None:
        """Count one more time.

        Raises:
            HTTPException: 429, it is too often.
        """
        now = time.monotonic()
        with self._lock:
            times = self._times.setdefault(who, deque())
            while times and times[0] < now - self._seconds:
                times.popleft()
            if len(times) >= self._most:
                wait = max(1, round(times[0] + self._seconds - now))
                raise HTTPException(
                    429, f"too often: wait {wait} seconds", {"retry-after": str(wait)}
                )
            times.append(now)
            if len(self._times) > _MOST_REMEMBERED:
                begin = now - self._seconds
                self._times = {
                    name: last
                    for name, last in self._times.items()
                    if last[-1] >= begin
                }


class RateLimits:
    """The limits of one server."""

    def __init__(self) -> None:
        self.forms = RateLimit(60, 60.0)
        self.hand_ins = RateLimit(20, 300.0)
        # a whole campus may come from one address
        self.sign_ins = RateLimit(600, 60.0)


def form_token(request: Request) -> str:
    """The token of this session's forms, made when it is first asked for."""
    token: str = request.session.setdefault(TOKEN, secrets.token_urlsafe(16))
    return token


def check_token(request: Request, token: object) -> None:
    """Refuse a form that another site sent in this person's name.

    Raises:
        HTTPException: 403.
    """
    expected = request.session.get(TOKEN, "")
    if not expected or not hmac.compare_digest(str(token), expected):
        raise HTTPException(
            403, "this form is too old: go back, load the page again, and repeat"
        )

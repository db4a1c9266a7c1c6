"""Limits on how often somebody may do something, and on how long a body takes to arrive."""

from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from autograder.server import protection
from autograder.server.protection import BodyBound, LimitBodies, RateLimit, RateLimits
from autograder.server.web_app import _body_bound


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr("time.monotonic", lambda: clock.now)
    return clock


def test_a_limit_holds_for_one_person_and_ends_with_its_time(
    clock: SimpleNamespace,
) -> None:
    limit = RateLimit(2, 60.0)
    for _ in range(2):
        limit.check("ada")
    with pytest.raises(HTTPException, match="wait 60 seconds"):
        limit.check("ada")
    limit.check("bob")
    clock.now += 61
    limit.check("ada")


def test_those_who_were_quiet_are_forgotten(
    clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protection, "_MOST_REMEMBERED", 3)
    limit = RateLimit(2, 60.0)
    for name in ("ada", "bob", "eve"):
        limit.check(name)
    clock.now += 61
    limit.check("bob")
    assert set(limit._times) == {"ada", "bob", "eve"}  # so many it may remember
    limit.check("dan")
    assert set(limit._times) == {"bob", "dan"}


def test_a_limit_counts_what_happened_within_its_time(clock: SimpleNamespace) -> None:
    limit = RateLimit(2, 60.0)
    for now in (100.0, 130.0):
        clock.now = now
        limit.check("ada")
    clock.now = 160.0  # the first is just 60 seconds old
    with pytest.raises(HTTPException) as caught:
        limit.check("ada")
    assert (caught.value.status_code, caught.value.headers) == (
        429,
        {"retry-after": "1"},
    )
    clock.now = 160.5
    limit.check("ada")
    with pytest.raises(HTTPException, match="too often: wait 30 seconds"):
        limit.check("ada")


@pytest.mark.parametrize(
    ("path", "most_bytes", "weights"),
    [
        # a notebook of 2 MB in a form of 64 kB, and 3 MB of weights
        ("/assignments/a9/hand-in", 2_097_152 + 65_536 + 3_145_728, True),
        ("/api/assignments/a9/attempts", 2_097_152 + 65_536 + 3_145_728, True),
        ("/assignments/a1/hand-in", 2_097_152 + 65_536, False),
        ("/assignments/a9/hand-in/more", 2_097_152 + 65_536, False),
        ("/sign-in", 2_097_152 + 65_536, False),
    ],
)
def test_a_body_may_have_a_notebook_and_the_weights_of_its_assignment(
    path: str, most_bytes: int, weights: bool
) -> None:
    limits = SimpleNamespace(notebook_mb=2)
    office: Any = SimpleNamespace(
        course=SimpleNamespace(limits=limits),
        weights_limit=lambda name: 3 << 20 if name == "a9" else 0,
    )
    assert _body_bound(office, path) == BodyBound(most_bytes, weights=weights)


@pytest.mark.parametrize(
    ("most_bytes", "seconds"),
    [(1, 120.0), (20_400_000, 120.0), (34_000_000, 200.0)],
)
def test_a_body_has_two_minutes_and_a_larger_one_the_time_of_its_bytes(
    monkeypatch: pytest.MonkeyPatch, most_bytes: int, seconds: float
) -> None:
    """A hundred seconds for each 17 MB; after the body nothing has to come."""
    ends: list[float | None] = []

    class Timeout:
        async def __aenter__(self) -> None: ...

        async def __aexit__(self, *_: object) -> None: ...

    def timeout_at(end: float | None) -> Timeout:
        ends.append(end)
        return Timeout()

    monkeypatch.setattr(asyncio, "timeout_at", timeout_at)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"x", "more_body": False}

    async def send(message: Message) -> None: ...

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await receive()

    async def run() -> None:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "time", lambda: 1000.0)
        bodies = LimitBodies(app, lambda path: BodyBound(max(2, most_bytes)))
        await bodies({"type": "http", "path": "/", "headers": []}, receive, send)

    asyncio.run(run())
    assert ends == [1000.0 + seconds, None]


def test_a_body_that_does_not_arrive_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two bytes come, and the third never does."""
    monkeypatch.setattr(protection, "UPLOAD_SECONDS", 0.01)
    messages: list[Message] = [
        {"type": "http.request", "body": b"x", "more_body": True}
    ] * 2

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await asyncio.Event().wait()
        raise AssertionError("nobody sets this event")

    async def read_body(scope: Scope, receive: Receive, send: Send) -> None:
        await Request(scope, receive).body()

    async def send(message: Message) -> None:
        raise AssertionError("nothing is answered")

    app = LimitBodies(read_body, bound_of=lambda path: BodyBound(10))
    with pytest.raises(HTTPException) as refused:
        asyncio.run(app({"type": "http", "path": "/"}, receive, send))
    assert refused.value.status_code == 408


@pytest.mark.parametrize(
    ("name", "most", "seconds"),
    [("forms", 60, 60), ("hand_ins", 20, 300), ("sign_ins", 600, 60)],
)
def test_the_limits_of_a_server(
    clock: SimpleNamespace, name: str, most: int, seconds: int
) -> None:
    limit = getattr(RateLimits(), name)
    for _ in range(most):
        limit.check("ada")
    with pytest.raises(HTTPException) as caught:
        limit.check("ada")
    assert (caught.value.status_code, caught.value.headers) == (
        429,
        {"retry-after": str(seconds)},
    )


def test_a_form_that_is_cut_off_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that are too large end where the bound is; nothing is waited for behind it."""
    ends: list[float | None] = []
    came: list[Message] = []

    def timeout_at(end: float | None) -> contextlib.AbstractAsyncContextManager[None]:
        ends.append(end)
        return contextlib.nullcontext()

    monkeypatch.setattr(asyncio, "timeout_at", timeout_at)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"x" * 15, "more_body": True}

    async def send(message: Message) -> None: ...

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        came.append(await receive())
        came.append(await receive())

    kind = b"multipart/form-data; boundary=b"
    scope = {"type": "http", "path": "/", "headers": [(b"content-type", kind)]}
    bodies = LimitBodies(app, lambda path: BodyBound(10, weights=True))
    asyncio.run(bodies(scope, receive, send))
    end = b"\r\n--b--\r\n"
    assert came == [
        {"type": "http.request", "body": b"x" * 10 + end, "more_body": False},
        {"type": "http.request", "body": end, "more_body": False},
    ]
    assert ends[0] is not None
    assert ends[1:] == [None]


@pytest.mark.parametrize("kind", ["websocket", "lifespan"])
def test_what_is_no_request_passes_as_it_came(kind: str) -> None:
    """The begin and the end of a server have no path, a WebSocket no body."""
    passed: list[Any] = []

    async def app(*given: Any) -> None:
        passed.append(given)

    scope: Any = {"type": kind}
    receive: Any = "receive"
    send: Any = "send"
    bodies = LimitBodies(app, lambda path: BodyBound(10))
    asyncio.run(bodies(scope, receive, send))
    assert passed == [(scope, "receive", "send")]

"""Limits on how often somebody may do something, and on how long a body takes to arrive."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from autograder.server import protection
from autograder.server.protection import BodyBound, LimitBodies, RateLimit


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
    limit.check("dan")
    assert set(limit._times) == {"dan"}


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

"""Limits on how often somebody may do something."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from starlette.exceptions import HTTPException

from autograder.server import protection
from autograder.server.protection import RateLimit


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr("time.monotonic", lambda: clock.now)
    return clock


def test_a_limit_holds_for_one_person_and_ends_with_its_time(clock: SimpleNamespace) -> None:
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

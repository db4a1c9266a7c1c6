"""The wall time of a submission by stage, with a clock that the test sets."""

from __future__ import annotations

import pytest

from autograder.sandbox.stopwatch import Stopwatch


def test_every_second_counts_for_one_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("autograder.sandbox.stopwatch.time.monotonic", lambda: now)
    watch = Stopwatch()
    with watch.stage("tests"):
        now = 1.0
        with watch.stage("run"):
            now = 3.0
        now = 3.5
    now = 10.0  # between stages: nobody's
    with watch.stage("carry", whole=True), watch.stage("tests"):
        now = 14.0
        with watch.stage("run"):
            now = 15.0
    assert watch.seconds == {"tests": 1.5, "run": 2.0, "carry": 5.0}


def test_a_stage_that_fails_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("autograder.sandbox.stopwatch.time.monotonic", lambda: now)
    watch = Stopwatch()

    def fail() -> None:
        nonlocal now
        now = 2.0
        raise ValueError("it fails")

    with pytest.raises(ValueError, match="it fails"), watch.stage("carry", whole=True):
        fail()
    now = 3.0
    with watch.stage("tests"):
        now = 7.0
    assert watch.seconds == {"carry": 2.0, "tests": 4.0}

"""Connections of pages that load themselves again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from served_course import NOTEBOOK, Served, write_class

from autograder.course import load_course
from autograder.server import pages_base
from autograder.server.serve_command import ServeRequest, serve_command

TEMPLATES = Path(pages_base.__file__).parent


def test_an_idle_connection_outlasts_every_page_that_loads_itself_again(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A poll over a connection that the server closes just then is lost: of 1388 polls of 500
    students one was, with uvicorn's 5 seconds, and of a crowded machine's ten.
    """
    options: dict[str, Any] = {}
    monkeypatch.setattr(uvicorn, "run", lambda app, **given: options.update(given))
    course = load_course(write_class(built, tmp_path / "course", ""))
    serve_command(ServeRequest(course, graders=0), lambda line: None)
    sources = "\n".join(path.read_text() for path in TEMPLATES.glob("*.py"))
    seconds = [int(text) for text in re.findall(r"refresh=(\d+)", sources)]
    seconds += [int(text) for text in re.findall(r"REFRESH\w* = (\d+)", sources)]
    assert len(seconds) >= 2
    assert options["timeout_keep_alive"] > 2 * max(seconds)


def test_the_longest_wait_of_a_page_is_the_slowest_refresh(served: Served) -> None:
    for number in range(200):
        served.office.attempts.add(f"student-{number}", "tiny", NOTEBOOK)
    waiting = served.browser("ada").hand_in()
    seconds = re.search(r'http-equiv="refresh" content="(\d+)"', waiting.text)
    assert seconds is not None
    assert int(seconds[1]) == pages_base.SLOWEST_REFRESH

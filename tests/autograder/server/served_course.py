"""A small course that is served: an office on a database of its own, and browsers that sign in."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient
from stored_results import outcome, question

from autograder.grading.graded_bytes import pack_graded
from autograder.records.model import Graded, Result
from autograder.server.attempts import Attempt
from autograder.server.database import open_database
from autograder.server.office import Office
from autograder.server.web_app import make_app

NOTEBOOK = json.dumps(
    {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
).encode()
SETTINGS = '[server]\ninstructors = "prof"\n'
MACHINE = "machine-1"
TAKES_WEIGHTS = """
[leaderboard]
weights = "other tiny"
weights_mb = 1

[limits]
notebook_mb = 1
"""


@dataclass
class Served:
    """A served course, without a grading desk: tests grade by hand, with `grade`."""

    root: Path
    office: Office

    def browser(self, student: str = "") -> Browser:
        """A browser, in which the student has signed in with a link."""
        browser = Browser(TestClient(make_app(self.office, "secret", is_https=False)))
        if student:
            key = self.office.people.make_link(student, self.office.role_of(student))
            answer = browser.send(f"/sign-in?key={key}", "/sign-in", key=key)
            assert answer.status_code == 200, answer.text
        return browser

    def hand_in_by_key(self, student: str, body: bytes, kind: str) -> Any:
        """Hand in as `check.py --submit` does: a body of a content type, with a key."""
        key = self.office.people.make_api_key(student)
        headers = {"authorization": f"Bearer {key}", "content-type": kind}
        return self.browser().client.post(
            "/api/assignments/tiny/attempts", content=body, headers=headers
        )

    def grade(self, score: float, *, problem: str = "") -> Attempt:
        """Grade the attempt that is next, as a grader would: of 2.5 points for `double`."""
        claim = self.office.attempts.claim(MACHINE)
        assert claim is not None
        graded = Graded(claim.attempt.student, problem=problem)
        if not problem:
            graded = Graded(claim.attempt.student, result_of(claim.attempt, score))
        assert self.office.attempts.finish(claim, pack_graded(graded))
        attempt = self.office.attempts.get(claim.attempt.id)
        assert attempt is not None
        return attempt


def result_of(attempt: Attempt, score: float) -> Result:
    """The result of an attempt that has so many of 2.5 points."""
    test = outcome("test_doubles", score, 2.5, message="`double(7)` is 13, not 14.")
    return Result(
        attempt.assignment,
        attempt.student,
        attempt.sha256,
        "suite-1",
        "strict",
        score,
        2.5,
        (question("double", test),),
        (),
    )


def weights_file(number: float = 1.5) -> bytes:
    """A safetensors file with one number, written by hand."""
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})
    return struct.pack("<Q", len(header)) + header.encode() + struct.pack("<f", number)


def write_class(built: Path, root: Path, settings: str) -> Path:
    """A copy of the built tiny course, with a class list of two students and an instructor."""
    shutil.copytree(built, root)
    path = root / "course.toml"
    path.write_text(path.read_text(encoding="utf-8") + settings, encoding="utf-8")
    (root / "students.csv").write_text("id\nada\nbob\nprof\n", encoding="utf-8")
    return root


@contextlib.contextmanager
def serve(built: Path, root: Path, settings: str = SETTINGS) -> Iterator[Served]:
    """Serve the class, without a grading desk.

    Args:
        settings: more of course.toml.
    """
    write_class(built, root, settings)
    engine = open_database(f"sqlite:///{root / 'server.db'}")
    try:
        yield Served(root, Office(root, engine, lambda: None, lambda line: None))
    finally:
        engine.dispose()


class Browser:
    """A browser that fills in the forms of pages."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def get(self, path: str):  # type: ignore[no-untyped-def]
        """Load a page."""
        return self.client.get(path)

    def token(self, path: str) -> str:
        """The token in the forms of a page."""
        match = re.search(r'name="token" value="([^"]+)"', self.client.get(path).text)
        return match[1] if match else ""

    def send(self, page: str, action: str, **fields: str):  # type: ignore[no-untyped-def]
        """Load a page, fill in its form, and send it."""
        return self.client.post(action, data={"token": self.token(page), **fields})

    def hand_in(self, data: bytes = NOTEBOOK, assignment: str = "tiny"):  # type: ignore[no-untyped-def]
        """Hand in a notebook."""
        page = f"/assignments/{assignment}"
        return self.client.post(
            f"{page}/hand-in",
            data={"token": self.token("/")},
            files={"notebook": ("homework.ipynb", data)},
        )

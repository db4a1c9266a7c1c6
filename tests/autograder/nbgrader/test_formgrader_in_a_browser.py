"""A person grades a class in the formgrader, in a real browser: open, read, points, a comment, next."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbgrader_course import TinyCourse

from autograder.nbgrader.gradebook import open_gradebook

sys.path.append(str(Path(__file__).resolve().parents[1] / "outputs"))

from browser import needs_chromium
from devtools import PATIENCE, Tab, open_tab

pytestmark = needs_chromium

WORDS = {"ada": "Because a sum is linear.", "ben": "I do not know.", "cay": None}
"""What the class answered; cay left it blank."""


@pytest.fixture
def graded_class(tiny: TinyCourse) -> TinyCourse:
    """Graded by the tests and exported to the gradebook, with a marking guide."""
    tiny.write_guide()
    for student, words in WORDS.items():
        tiny.hand_in_words(student, words)
    tiny.export_gradebook()
    return tiny


@contextlib.contextmanager
def _formgrader(root: Path) -> Iterator[str]:
    """The address of Jupyter's server, started in the course folder with little more than the formgrader."""
    others = ("jupyterlab", "jupyter_lsp", "jupyterlab_jupytext", "notebook")
    extensions = {"nbgrader.server_extensions.formgrader": True, **dict.fromkeys(others, False)}
    options = [f"--ServerApp.jpserver_extensions={extensions}", "--ServerApp.open_browser=False", "--allow-root",
               "--ServerApp.ip=127.0.0.1", "--IdentityProvider.token=secret", "--ServerApp.port=0"]  # fmt: skip
    folders = {name: str(root.parent / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "HOME")}
    command = [sys.executable, "-m", "jupyter_server", *options]
    with (root.parent / "server.log").open("wb") as log:
        server = subprocess.Popen(command, cwd=root, env=os.environ | folders, stdout=log, stderr=log)
    try:
        yield f"{_address(root.parent / 'server.log', server)}"
    finally:
        server.terminate()
        server.wait(PATIENCE)


def _address(log: Path, server: subprocess.Popen[bytes]) -> str:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and server.poll() is None:
        if found := re.search(r"http://127\.0\.0\.1:\d+/", log.read_text(encoding="utf-8")):
            return found.group()
        time.sleep(0.05)
    raise AssertionError(log.read_text(encoding="utf-8"))


def _submissions(tab: Tab) -> list[dict[str, str]]:
    """The table of submissions, by its headings; "yes" where there is a mark."""
    tab.wait_for("document.querySelectorAll('tbody tr td').length > 1")
    table = tab.look(
        "[...document.querySelectorAll('tr')].map(row => [...row.cells].map("
        "cell => cell.innerText.trim() || (cell.querySelector('.glyphicon-ok') ? 'yes' : '')))"
    )
    return [dict(zip(table[0], row, strict=True)) for row in table[1:]]


def _opened(tab: Tab, before: str) -> tuple[str, str]:
    """Wait until another submission than before is open and shows its grades; its id, and what its page says."""
    other = f"typeof submission_id != 'undefined' && submission_id != '{before}'"
    tab.wait_for(f"{other} && formgrader.grades?.loaded && formgrader.comments?.loaded")
    return tab.look("submission_id"), tab.look("document.body.innerText")


def test_the_class_is_graded_by_hand(graded_class: TinyCourse) -> None:
    given = {"ada": ("3.5", "Say which sum."), "ben": ("0", "It is a sum."), "cay": ("", "Ask me.")}
    with _formgrader(graded_class.root) as address, open_tab() as tab:
        tab.go(f"{address}login?token=secret&next=/formgrader/gradebook/tiny")
        tab.click("tbody td a[href$='/gradebook/tiny/tiny']")
        before = _submissions(tab)
        assert [row["Overall Score"] for row in before] == ["4 / 10"] * 3
        assert sorted(row["Needs Manual Grade?"] for row in before) == ["", "yes", "yes"]

        tab.click("tbody td a[href*='/submissions/']")
        opened, graded = "", []
        for _ in WORDS:
            opened, page = _opened(tab, opened)
            student = next((name for name, words in WORDS.items() if words and words in page), "cay")
            answer, _, guide = page.partition("For graders: 4 points")
            assert answer.rstrip().endswith(f"Why? {WORDS[student] or '*Your answer here.*'.strip('*')}")
            assert "4 points: linear." in guide
            assert "half: 1 of 3 points" in answer
            points, comment = given[student]
            if points:
                tab.type_into("#written_why", points)
            tab.type_into("#written_why-comment", comment)
            tab.click("#notebook-container h1")  # leaving a field saves it
            tab.wait_for("jQuery.active === 0")
            graded.append(student)
            tab.click(".next a")
        assert sorted(graded) == ["ada", "ben", "cay"]
        tab.wait_for("location.pathname.endsWith('/gradebook/tiny/tiny')")  # there is no next
        after = _submissions(tab)
        assert sorted(row["Overall Score"] for row in after) == ["4 / 10", "4 / 10", "7.5 / 10"]
        assert [row["Needs Manual Grade?"] for row in after] == ["", "", ""]
    assert {name: graded_class.grades(name)["written_why"] for name in WORDS} == {
        "ada": (None, 3.5, False),
        "ben": (None, 0.0, False),
        "cay": (0.0, None, False),
    }
    with open_gradebook(graded_class.course) as gradebook:
        for student, (_, comment) in given.items():
            row = gradebook.find_comment("written_why", "tiny", "tiny", student)
            assert row.manual_comment == comment

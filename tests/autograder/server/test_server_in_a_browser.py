"""The day of a student and of an instructor, in a real browser, with a real server that grades."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from courses import handed_in
from running_server import running_server
from served_course import SETTINGS, TAKES_WEIGHTS, weights_file, write_class

sys.path.append(str(Path(__file__).resolve().parents[1] / "outputs"))

from browser import needs_chromium
from devtools import Tab, open_tab

WRONG = {
    "double": "def double(x):\n    return x + 1\n",
    "half": "def half(x):\n    return x / 2\n",
}
RIGHT = {**WRONG, "double": "def double(x):\n    return 2 * x\n"}
_BODY = "document.body.innerText"


def fits(tab: Tab) -> None:
    """Nothing is wider than a small window, in both schemes."""
    for width, dark in ((390, True), (1280, False)):
        tab.resize(width, 844, dark=dark)
        assert tab.look("document.documentElement.scrollWidth") <= width, tab.look(
            "location.href"
        )
    if folder := os.environ.get("PICTURES"):
        name = tab.look("location.pathname").strip("/").replace("/", "-") or "home"
        for width, dark in ((390, True), (1280, False)):
            tab.resize(width, 844, dark=dark)
            Path(folder, f"{name}-{width}.png").write_bytes(tab.picture())


def sign_in(tab: Tab, link: str) -> None:
    tab.go(link)
    tab.click("main button")
    tab.wait_for(f"{_BODY}.includes('Assignments')")
    fits(tab)


def hand_in(tab: Tab, path: Path, weights: Path) -> None:
    tab.wait_for("document.querySelector('#notebook') !== null")
    fits(tab)
    tab.choose_file("#notebook", path)
    tab.choose_file("#weights", weights)
    tab.click("form.hand-in button")
    tab.wait_for(
        "document.querySelector('.total') !== null"
    )  # the page loads itself again
    fits(tab)


@needs_chromium
def test_the_day(built: Path, tmp_path: Path) -> None:
    """A wrong notebook, its page, a request; a right one; and the instructor's view of it."""
    root = write_class(built, tmp_path / "course", SETTINGS + TAKES_WEIGHTS)
    weights = tmp_path / "tiny.safetensors"
    weights.write_bytes(weights_file())
    larger = tmp_path / "larger" / "tiny.safetensors"
    larger.parent.mkdir()
    larger.write_bytes(bytes(60 << 20))
    notebooks = {"wrong": WRONG, "right": RIGHT}
    for name, cells in notebooks.items():
        (tmp_path / f"{name}.ipynb").write_text(handed_in(cells), encoding="utf-8")
    with running_server(root, "ada", "prof") as server:
        with open_tab() as tab:
            sign_in(tab, server.links["ada"])
            tab.click("td a")
            hand_in(tab, tmp_path / "wrong.ipynb", larger)
            assert "tiny.safetensors: is larger than 1 MB" in tab.look(_BODY)
            assert "3 of 5.5 points" in tab.look(_BODY)
            tab.click("a.button")
            tab.wait_for(f"{_BODY}.includes('Back to your attempts')")
            assert "oubles a number never shown" in tab.look(_BODY)
            fits(tab)
            tab.click("header a")
            tab.type_into("#text", "double(0) is 0 + 1 in my book")
            tab.click("main form button")
            tab.wait_for(f"{_BODY}.includes('in my book')")
            tab.click("a[href='/assignments/tiny']")
            hand_in(tab, tmp_path / "right.ipynb", weights)
            assert "tiny.safetensors came with it" in tab.look(_BODY)
            assert "5.5 of 5.5 points" in tab.look(_BODY)
        with open_tab() as tab:
            sign_in(tab, server.links["prof"])
            tab.click("a[href='/class/tiny']")
            tab.wait_for(f"{_BODY}.includes('in my book')")
            assert "5.5 of 5.5 points" in tab.look(_BODY)
            fits(tab)
            tab.type_into("textarea", "Not in ours.")
            tab.click("section.asked button")
            tab.wait_for(f"{_BODY}.includes('Not in ours.')")
            tab.click("a[href='/class/tiny/regrade']")
            tab.wait_for(f"{_BODY}.includes('Grade again, and show')")
            tab.click("main button")
            tab.wait_for(f"{_BODY}.includes('Marks that move: 0, that stay: 1.')")
            fits(tab)
            tab.click("form[action$='/accept'] button")
            tab.wait_for(f"{_BODY}.includes('Latest attempts')")
            tab.click("a[href='/people']")
            tab.wait_for(f"{_BODY}.includes('regrade accepted')")
            assert "to request 1" in tab.look(_BODY)
            fits(tab)
    assert (root / "results" / "tiny" / "ada.json").is_file()
    filed = root / "submitted" / "ada" / "tiny" / "tiny.safetensors"
    assert filed.read_bytes() == weights_file()


def _pids(pattern: str) -> list[str]:
    done = subprocess.run(["pgrep", "-f", pattern], capture_output=True, text=True)
    return done.stdout.split()


@pytest.mark.skipif(not Path("/usr/bin/pgrep").exists(), reason="no pgrep to look with")
def test_the_server_leaves_no_process_behind(built: Path, tmp_path: Path) -> None:
    root = write_class(built, tmp_path / "course", SETTINGS)
    with running_server(root, "ada"):
        pass
    assert _pids(str(root)) == []

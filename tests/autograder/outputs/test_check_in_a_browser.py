"""The box of a visible check in a browser: hints open one by one, and nothing is wider than the
screen.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from browser import needs_chromium
from devtools import Tab, open_tab

from autograder.student_tools.answer_differences import compare_answers
from autograder.student_tools.check_box import CheckBox

pytestmark = needs_chromium

OPEN = "[...document.querySelectorAll('details[open]>summary')].map(s => s.textContent).join()"
VISIBLE = (
    "[...document.querySelectorAll('summary')].filter(s => s.checkVisibility()).length"
)
WIDER = "document.documentElement.scrollWidth > innerWidth"
COLOURS = "getComputedStyle(document.querySelector('td')).color"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A box about a wide array, as on a page with a light and a dark scheme."""
    difference = compare_answers(
        np.arange(96.0).reshape(8, 12), np.zeros((8, 12)), 1e-6
    )
    box = CheckBox(
        "failed",
        "`attend`: not yet",
        ["`weights`: something differs."],
        f"attend(scores[8, 12], {'mask=True, ' * 20})",
        ["scores = " + "1.0, " * 100],
        difference,
        ["First.", "Second."],
    )
    file = tmp_path / "box.html"
    head = '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
    file.write_text(
        f"<!doctype html><html><head>{head}</head><body>{box.html()}</body></html>"
    )
    return file


def test_hints_open_one_by_one_and_all_fits(page: Path) -> None:
    with open_tab() as tab:
        for width, dark in ((390, False), (1280, True)):
            tab.resize(width, 800, dark=dark)
            tab.go(page.as_uri())
            tab.wait_for("document.querySelectorAll('summary').length == 3")
            _open_hints(tab)
            assert tab.look(WIDER) is False
            assert tab.look(COLOURS) == (
                "rgb(255, 255, 255)" if dark else "rgb(0, 0, 0)"
            )


def _open_hints(tab: Tab) -> None:
    """Open the first hint and then the second; before, neither is seen."""
    assert tab.look(OPEN) == ""
    assert tab.look("document.body.innerText.includes('First.')") is False
    assert tab.look(VISIBLE) == 2  # the first hint, and the inputs
    tab.click("details > summary")
    tab.wait_for("document.body.innerText.includes('First.')")
    assert tab.look("document.body.innerText.includes('Second.')") is False
    assert tab.look(VISIBLE) == 3
    tab.click("details details > summary")
    tab.wait_for("document.body.innerText.includes('Second.')")
    assert tab.look(OPEN) == "Hint 1 of 2,Hint 2 of 2"

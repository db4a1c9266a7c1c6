"""A person grades a class in the formgrader, in a real browser: open, read, points, a comment,
next.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from formgrader_server import formgrader
from nbgrader_course import TinyCourse

from autograder.nbgrader.gradebook import open_gradebook

sys.path.append(str(Path(__file__).resolve().parents[1] / "outputs"))

from browser import needs_chromium
from devtools import Tab, open_tab

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


def _submissions(tab: Tab) -> list[dict[str, str]]:
    """The table of submissions, by its headings; "yes" where there is a mark."""
    tab.wait_for(
        "document.querySelector('tbody td a[href*=\"/submissions/\"]') !== null"
    )
    table = tab.look(
        "[...document.querySelectorAll('tr')].map(row => [...row.cells].map("
        "cell => cell.innerText.trim() || (cell.querySelector('.glyphicon-ok') ? 'yes' : '')))"
    )
    return [dict(zip(table[0], row, strict=True)) for row in table[1:]]


def _opened(tab: Tab, before: str) -> tuple[str, str]:
    """Wait until another submission than before is open and shows its grades; its id, and what its
    page says.
    """
    other = f"typeof submission_id != 'undefined' && submission_id != '{before}'"
    tab.wait_for(f"{other} && formgrader.grades?.loaded && formgrader.comments?.loaded")
    return tab.look("submission_id"), tab.look("document.body.innerText")


def test_the_class_is_graded_by_hand(graded_class: TinyCourse) -> None:
    given = {
        "ada": ("3.5", "Say which sum."),
        "ben": ("0", "It is a sum."),
        "cay": ("", "Ask me."),
    }
    with formgrader(graded_class.root) as address, open_tab() as tab:
        tab.go(f"{address}login?token=secret&next=/formgrader/gradebook/tiny")
        tab.click("tbody td a[href$='/gradebook/tiny/tiny']")
        before = _submissions(tab)
        assert [row["Overall Score"] for row in before] == ["4 / 10"] * 3
        assert sorted(row["Needs Manual Grade?"] for row in before) == [
            "",
            "yes",
            "yes",
        ]

        tab.click("tbody td a[href*='/submissions/']")
        opened, graded = "", []
        for _ in WORDS:
            opened, page = _opened(tab, opened)
            student = next(
                (name for name, words in WORDS.items() if words and words in page),
                "cay",
            )
            answer, _, guide = page.partition("For graders: 4 points")
            assert answer.rstrip().endswith(
                f"Why? {WORDS[student] or '*Your answer here.*'.strip('*')}"
            )
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
        tab.wait_for(
            "location.pathname.endsWith('/gradebook/tiny/tiny')"
        )  # there is no next
        after = _submissions(tab)
        assert sorted(row["Overall Score"] for row in after) == [
            "4 / 10",
            "4 / 10",
            "7.5 / 10",
        ]
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

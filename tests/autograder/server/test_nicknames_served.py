"""The nickname for the leaderboard that a student types in at the server."""

from __future__ import annotations

from pathlib import Path

import pytest
from served_course import NOTEBOOK, Browser, Served

from autograder.server.filing import file_attempts
from autograder.student_tools.submit import _make_form


@pytest.fixture
def ranked(served: Served) -> Served:
    """The course, in which the assignment has a leaderboard."""
    served.office.course.assignment("tiny").leaderboard.write_text("")
    return served


def hand_in(browser: Browser, nickname: str):  # type: ignore[no-untyped-def]
    """Hand in a notebook and a nickname, as a browser sends them."""
    return browser.client.post(
        "/assignments/tiny/hand-in",
        data={"token": browser.token("/"), "nickname": nickname},
        files={"notebook": ("a.ipynb", NOTEBOOK)},
    )


def test_a_nickname_belongs_to_the_attempt_and_lies_beside_its_notebook(
    ranked: Served,
) -> None:
    ada = ranked.browser("ada")
    assert (
        'name="nickname" maxlength="24" value=""' in ada.get("/assignments/tiny").text
    )
    sent = hand_in(ada, " Gräfin\x00 <b> ")
    assert "On the leaderboard you are called Gräfin &lt;b&gt;." in sent.text
    assert 'value="Gräfin &lt;b&gt;"' in ada.get("/assignments/tiny").text
    ranked.grade(2.5)
    assert file_attempts(ranked.office.course, ranked.office.attempts).problems == ()
    folder = ranked.root / "submitted" / "ada" / "tiny"
    assert (folder / "tiny.ipynb").read_bytes() == NOTEBOOK
    assert (folder / "nickname.txt").read_text(encoding="utf-8") == "Gräfin <b>\n"


def test_whoever_comes_first_has_a_nickname(ranked: Served) -> None:
    hand_in(ranked.browser("ada"), "Countess")
    bob = ranked.browser("bob")
    sent = hand_in(bob, "COUNTESS")
    assert "Somebody else is called COUNTESS on the leaderboard" in sent.text
    assert ranked.office.attempts.of_student("bob", "tiny")[0].nickname == ""
    assert "you are called Count." in hand_in(bob, "Count").text
    again = hand_in(ranked.browser("ada"), "Countess")
    assert "On the leaderboard you are called Countess." in again.text


def test_without_a_nickname_there_is_a_number(ranked: Served) -> None:
    sent = hand_in(ranked.browser("ada"), " \u200b ")
    assert "you have a number in place of a nickname." in sent.text
    ranked.grade(2.5)
    file_attempts(ranked.office.course, ranked.office.attempts)
    assert not (ranked.root / "submitted" / "ada" / "tiny" / "nickname.txt").exists()


def test_an_assignment_without_a_leaderboard_asks_for_none(served: Served) -> None:
    ada = served.browser("ada")
    assert "nickname" not in ada.get("/assignments/tiny").text
    assert "leaderboard" not in hand_in(ada, "Countess").text
    assert served.office.attempts.of_student("ada", "tiny")[0].nickname == ""


def test_check_py_hands_in_both(ranked: Served, tmp_path: Path) -> None:
    notebook = tmp_path / "tiny.ipynb"
    notebook.write_bytes(NOTEBOOK)
    body, kind = _make_form(
        {"notebook": notebook}, b"\xef\xbb\xbfGr\xc3\xa4fin\r\nmore"
    )
    sent = ranked.hand_in_by_key("ada", body, kind)
    assert sent.status_code == 201
    assert sent.json()["nickname"] == "On the leaderboard you are called Gräfin."
    assert ranked.office.attempts.notebook(1) == NOTEBOOK

"""Weights that are handed in with a notebook, at the server."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from served_course import NOTEBOOK, TAKES_WEIGHTS, Browser, Served, weights_file

from autograder.server.filing import file_attempts
from autograder.student_tools.submit import _make_form

ServeWith = Callable[[str], Served]


def hand_in(browser: Browser, weights: bytes, name: str = "tiny.safetensors"):  # type: ignore[no-untyped-def]
    """Hand in a notebook with weights, as a browser sends them."""
    files = {"notebook": ("a.ipynb", NOTEBOOK), "weights": (name, weights)}
    token = {"token": browser.token("/")}
    return browser.client.post("/assignments/tiny/hand-in", data=token, files=files)


@pytest.fixture
def ranked(serve_with: ServeWith) -> Served:
    return serve_with(TAKES_WEIGHTS)


def test_weights_come_with_the_attempt_and_lie_beside_its_notebook(
    ranked: Served,
) -> None:
    ada = ranked.browser("ada")
    page = ada.get("/assignments/tiny").text
    assert 'name="weights"' in page
    assert "<code>tiny.safetensors</code>, at most 1 MB</label>" in page
    sent = hand_in(ada, weights_file())
    assert "tiny.safetensors came with it, 0.0 MB." in sent.text
    assert ranked.office.attempts.weights(1) == weights_file()
    ranked.grade(2.5)
    assert "tiny.safetensors came with it" in ada.get("/attempts/1").text
    assert file_attempts(ranked.office.course, ranked.office.attempts).problems == ()
    folder = ranked.root / "submitted" / "ada" / "tiny"
    assert (folder / "tiny.ipynb").read_bytes() == NOTEBOOK
    assert (folder / "tiny.safetensors").read_bytes() == weights_file()


def test_a_file_under_another_name_is_not_taken_for_the_notebook(
    ranked: Served,
) -> None:
    ada = ranked.browser("ada")
    files = {"notebook": ("a.ipynb", NOTEBOOK), "notes": ("b.ipynb", b"notes")}
    token = {"token": ada.token("/")}
    ada.client.post("/assignments/tiny/hand-in", data=token, files=files)
    assert ranked.office.attempts.notebook(1) == NOTEBOOK


def test_a_course_without_a_leaderboard_of_weights_keeps_none(served: Served) -> None:
    ada = served.browser("ada")
    assert 'name="weights"' not in ada.get("/assignments/tiny").text
    sent = hand_in(ada, weights_file())
    assert sent.status_code == 200
    assert "safetensors" not in sent.text
    assert served.office.attempts.weights(1) is None


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "tiny.pt",
            weights_file(),
            "tiny.pt: the weights must be called tiny.safetensors",
        ),
        (
            "../../../tiny.safetensors",
            weights_file(),
            "../../../tiny.safetensors: the weights must be called tiny.safetensors",
        ),
        (
            "<b>.safetensors",
            weights_file(),
            "&lt;b&gt;.safetensors: the weights must be called tiny.safetensors",
        ),
        ("tiny.safetensors", b"", "tiny.safetensors: is no safetensors file"),
        (
            "tiny.safetensors",
            b"\x80\x04K\x01.",
            "tiny.safetensors: is no safetensors file",
        ),
        (
            "tiny.safetensors",
            struct.pack("<Q", 1 << 63) + b"{}",
            "tiny.safetensors: is no safetensors file",
        ),
        ("tiny.safetensors", weights_file()[:-1], "tiny.safetensors: is cut off"),
        (
            "tiny.safetensors",
            b"x" * (1 << 20),
            "tiny.safetensors: is no safetensors file",
        ),
        (
            "tiny.safetensors",
            b"x" * ((1 << 20) + 1),
            "tiny.safetensors: is larger than 1 MB",
        ),
        # more than a form with both may have: the stream ends there
        ("tiny.safetensors", b"x" * (5 << 20), "tiny.safetensors: is larger than 1 MB"),
    ],
)
def test_whatever_is_wrong_with_weights_the_notebook_is_taken(
    ranked: Served, name: str, content: bytes, message: str
) -> None:
    sent = hand_in(ranked.browser("ada"), content, name)
    assert sent.url.path == "/attempts/1"
    assert message in sent.text
    assert "The notebook counts without it." in sent.text
    assert ranked.office.attempts.weights(1) is None
    assert ranked.office.attempts.notebook(1) == NOTEBOOK
    assert ranked.grade(2.5).score == 2.5


def test_missing_weights_are_told(ranked: Served) -> None:
    sent = ranked.browser("ada").hand_in()
    assert "tiny.safetensors did not come with this notebook." in sent.text


def test_a_notebook_that_is_too_large_is_refused_with_weights_too(
    ranked: Served,
) -> None:
    browser = ranked.browser("ada")
    files = {
        "notebook": ("a.ipynb", b" " * (4 << 20)),
        "weights": ("tiny.safetensors", weights_file()),
    }
    token = {"token": browser.token("/")}
    sent = browser.client.post("/assignments/tiny/hand-in", data=token, files=files)
    assert sent.status_code == 400
    assert "the notebook is larger than 1 MB" in sent.text
    assert ranked.office.attempts.of_student("ada", "tiny") == []


def test_other_forms_may_not_be_longer_than_before(ranked: Served) -> None:
    ada = ranked.browser("ada")
    files = {"weights": ("tiny.safetensors", b"x" * (3 << 20))}
    assert ada.client.post("/key", data={}, files=files).status_code == 413
    small = {"weights": ("tiny.safetensors", weights_file())}
    token = {"token": ada.token("/")}
    assert ada.client.post("/key", data=token, files=small).status_code == 200


def test_check_py_hands_in_both(ranked: Served, tmp_path: Path) -> None:
    notebook, weights = tmp_path / "tiny.ipynb", tmp_path / "tiny.safetensors"
    notebook.write_bytes(NOTEBOOK)
    weights.write_bytes(weights_file())
    body, kind = _make_form({"notebook": notebook, "weights": weights})
    sent = ranked.hand_in_by_key("ada", body, kind)
    assert sent.status_code == 201
    assert sent.json()["weights"] == "tiny.safetensors came with it, 0.0 MB."
    assert ranked.office.attempts.notebook(1) == NOTEBOOK
    assert ranked.office.attempts.weights(1) == weights_file()


def test_a_second_hand_in_while_the_first_is_graded_keeps_each_ones_weights(
    ranked: Served,
) -> None:
    """The first is being graded; a second comes with other weights, a third with none. The best,
    which is the second, is filed with its own.
    """
    ada = ranked.browser("ada")
    hand_in(ada, weights_file(1.0))
    first = ranked.office.attempts.claim("elsewhere")
    assert first is not None
    hand_in(ada, weights_file(2.0))
    assert ranked.grade(2.5).number == 2
    ada.hand_in()
    assert ranked.grade(1.0).number == 3
    ranked.office.attempts.fail(first, "its machine went")
    store = ranked.office.attempts
    kept = [store.weights(attempt_id) for attempt_id in (1, 2, 3)]
    assert kept == [weights_file(1.0), weights_file(2.0), None]
    assert file_attempts(ranked.office.course, store).problems == ()
    folder = ranked.root / "submitted" / "ada" / "tiny"
    assert (folder / "tiny.safetensors").read_bytes() == weights_file(2.0)

"""Pipes, devices and links in a submission's folder: `nbgrader autograde` neither waits for them
nor takes them in.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from nbgrader_course import TinyCourse, release_cells

from autograder.nbgrader.repair import (
    find_special_files,
    ignore_patterns,
    list_special_files,
)
from autograder.records.model import Graded

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

FULL = {"check_double": (3.0, None, False), "check_half": (1.0, None, False)}
WAITS = (0.0, None, True)


@pytest.fixture(autouse=True)
def no_wait() -> Iterator[None]:
    """What waits for a pipe would wait for ever."""

    def give_up(*_: Any) -> None:
        raise RuntimeError("waited for 60 seconds")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def _socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the address of a socket is short
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)
    os.chdir(here)


ODD: dict[str, Callable[[Path], None]] = {
    "a pipe": lambda path: os.mkfifo(path),
    "a link": lambda path: path.symlink_to("/dev/zero"),
    "a socket": _socket,
}


REFUSED = {
    "a pipe": "tiny.ipynb: is a pipe; hand in the .ipynb file itself",
    "a link": "tiny.ipynb: is a link, not a file; hand in the notebook itself",
    "a socket": "tiny.ipynb: is a socket or a device; hand in the .ipynb file itself",
}


@pytest.mark.parametrize("what", ODD)
def test_in_place_of_the_notebook(
    tiny: TinyCourse, graded: dict[str, Any], what: str
) -> None:
    path = tiny.hand_in("ada")
    path.unlink()
    ODD[what](path)
    graded["ada"] = Graded("ada", None, REFUSED[what])
    tiny.hand_in("ben")
    tiny.autograde()
    assert tiny.grades("ada") == dict.fromkeys(
        ("check_double", "check_half", "written_why"), WAITS
    )
    assert REFUSED[what] in tiny.autograded("ada").cells[0].source
    assert tiny.grades("ben")["check_double"] == (3.0, None, False)


@pytest.mark.parametrize("what", ODD)
def test_beside_the_notebook(
    tiny: TinyCourse, graded: dict[str, Any], what: str
) -> None:
    path = tiny.hand_in("ada")
    (path.parent / "data").mkdir()
    (path.parent / "data" / "own.csv").write_text("1\n", encoding="utf-8")
    ODD[what](path.parent / "data" / "odd.csv")
    tiny.hand_in("ben")
    tiny.autograde()
    for student in ("ada", "ben"):
        assert {name: tiny.grades(student)[name] for name in FULL} == FULL
    copied = tiny.root / "autograded" / "ada" / "tiny" / "data"
    assert [file.name for file in copied.iterdir()] == ["own.csv"]


def test_a_link_to_the_answer_key_does_not_come_back_as_feedback(
    tiny: TinyCourse, graded: dict[str, Any]
) -> None:
    path = tiny.hand_in("ada")
    (path.parent / "notes.txt").symlink_to(
        tiny.root / "solutions" / "tiny" / "tiny.ipynb"
    )
    tiny.autograde()
    tiny.feedback("ada")
    assert {name: tiny.grades("ada")[name] for name in FULL} == FULL
    assert [
        path.name
        for folder in ("autograded", "feedback")
        for path in (tiny.root / folder).rglob("notes.txt")
    ] == []


@pytest.mark.parametrize("what", ODD)
def test_in_place_of_the_timestamp(
    tiny: TinyCourse, graded: dict[str, Any], what: str
) -> None:
    """nbgrader opens it first of all: the submission waits for a person, and the others are
    graded.
    """
    path = tiny.hand_in("ada")
    ODD[what](path.parent / "timestamp.txt")
    tiny.hand_in("ben")
    tiny.autograde()
    assert tiny.grades("ada")["check_double"] == WAITS
    assert tiny.comments("ada")["double"] == (
        f"    This submission could not be graded: timestamp.txt is {what}; put a file in its "
        "place, or remove it"
    )
    assert tiny.grades("ben")["check_double"] == (3.0, None, False)
    (path.parent / "timestamp.txt").unlink()
    tiny.autograde()
    assert tiny.grades("ada")["check_double"] == (3.0, None, False)


def test_the_only_notebook_under_another_name(
    tiny: TinyCourse, graded: dict[str, Any]
) -> None:
    """It would be copied to the right name."""
    path = tiny.hand_in("ada")
    path.unlink()
    os.mkfifo(path.with_name("mine.ipynb"))
    tiny.hand_in("ben")
    with pytest.raises(Exception, match="errors on the above failures"):
        tiny.autograde()
    assert tiny.grades("ada")["check_double"] == WAITS
    assert tiny.comments("ada")["double"] == (
        "    This submission could not be graded: there is no tiny.ipynb among the files"
    )
    assert tiny.grades("ben")["check_double"] == (3.0, None, False)


def test_many_are_left_out_with_their_folder(tmp_path: Path) -> None:
    for number in range(25):
        (tmp_path / f"{number:02}[x]").symlink_to("elsewhere")
    odd = find_special_files(tmp_path)
    assert len(odd) == 25
    assert (
        list_special_files(tmp_path, odd)
        == "00[x] is a link, 01[x] is a link, 02[x] is a link, and 22 more"
    )
    assert len(ignore_patterns(tmp_path, odd)) == 1
    few = dict(list(odd.items())[:1])
    assert ignore_patterns(tmp_path, few)[0].endswith("[[]x]")


def test_files_alone_are_nothing_odd(tiny: TinyCourse) -> None:
    path = tiny.hand_in("ada", release_cells(), at="2026-03-01 10:00:00 UTC")
    assert find_special_files(path.parent) == {}

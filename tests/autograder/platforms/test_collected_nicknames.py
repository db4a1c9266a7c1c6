"""The nickname that a student hands in beside the notebook, on every platform's road."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from test_collected_weights import LIST, NOTEBOOK, ROADS, collected, write_zip

from autograder.course import Assignment, Course
from autograder.course.course import LeaderboardSettings
from autograder.platforms.collect import collect


@pytest.fixture
def ranked(assignment: Assignment) -> Assignment:
    """The assignment with a leaderboard."""
    assignment.suite.mkdir(parents=True, exist_ok=True)
    assignment.leaderboard.write_text("")
    return assignment


@pytest.mark.parametrize("origin", ROADS)
def test_a_nickname_comes_with_the_notebook_on_every_road(
    course: Course, ranked: Assignment, tmp_path: Path, origin: str
) -> None:
    before, student = ROADS[origin]
    files = {
        f"{before.format(67890)}m1.ipynb": NOTEBOOK,
        f"{before.format(67891)}nickname.txt": b"Countess\n",
    }
    if origin == "github":  # the name of the repositories is told by two
        files["clones/m1-kit012/m1.ipynb"] = NOTEBOOK
    if origin == "gradescope":
        files["submission_metadata.yml"] = LIST.encode()
    collect(course, ranked, write_zip(tmp_path / "d.zip", files), origin)
    kept = collected(course)
    assert kept[f"{student}/m1/m1.ipynb"] == NOTEBOOK
    assert kept[f"{student}/m1/nickname.txt"] == b"Countess\n"


def test_an_assignment_without_a_leaderboard_leaves_nicknames(
    course: Course, assignment: Assignment, tmp_path: Path
) -> None:
    files = {"ada/m1.ipynb": NOTEBOOK, "ada/nickname.txt": b"Countess"}
    download = write_zip(tmp_path / "d.zip", files)
    lines = collect(course, assignment, download, "folder")
    assert list(collected(course)) == ["ada/m1/m1.ipynb"]
    assert lines[1:] == ["1 other files beside the notebooks were left"]


def test_a_course_that_shows_names_leaves_nicknames(
    course: Course, ranked: Assignment, tmp_path: Path
) -> None:
    with_names = dataclasses.replace(
        course, leaderboard=LeaderboardSettings(names="names")
    )
    files = {"ada/m1.ipynb": NOTEBOOK, "ada/nickname.txt": b"Countess"}
    collect(with_names, ranked, write_zip(tmp_path / "d.zip", files), "folder")
    assert list(collected(course)) == ["ada/m1/m1.ipynb"]


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("nickname.txt", b"", "ada: nickname.txt: its first line is the nickname"),
        ("nickname.txt", b"\xff\xfeA\0", "ada: nickname.txt: its first line"),
        ("nickname.txt", b"x" * 1001, "ada/nickname.txt: larger than 1000 bytes"),
        ("my_nickname.txt", b"Ada", ""),
    ],
)
def test_what_is_no_nickname_is_named_and_the_notebook_is_taken_all_the_same(
    course: Course,
    ranked: Assignment,
    tmp_path: Path,
    name: str,
    content: bytes,
    line: str,
) -> None:
    files = {"ada/m1.ipynb": NOTEBOOK, f"ada/{name}": content}
    lines = collect(course, ranked, write_zip(tmp_path / "d.zip", files), "folder")
    assert collected(course) == {"ada/m1/m1.ipynb": NOTEBOOK}
    assert lines[0] == "1 submissions of m1: 1 new, 0 replaced, 0 unchanged"
    assert [entry for entry in lines[1:] if line not in entry] == []


def test_a_nickname_alone_is_no_submission(
    course: Course, ranked: Assignment, tmp_path: Path
) -> None:
    files = {"ada/m1.ipynb": NOTEBOOK, "nickname.txt": b"Countess"}
    lines = collect(course, ranked, write_zip(tmp_path / "d.zip", files), "folder")
    assert list(collected(course)) == ["ada/m1/m1.ipynb"]
    assert lines[1:] == ["nickname.txt: not a notebook"]


def test_another_nickname_for_the_same_notebook_replaces_the_first(
    course: Course, ranked: Assignment, tmp_path: Path
) -> None:
    for nickname in (b"Countess", b"Ada"):
        files = {"ada/m1.ipynb": NOTEBOOK, "ada/nickname.txt": nickname}
        collect(course, ranked, write_zip(tmp_path / "d.zip", files), "folder")
    assert collected(course) == {
        "ada/m1/m1.ipynb": NOTEBOOK,
        "ada/m1/nickname.txt": b"Ada",
        "ada/m1/previous/1/nickname.txt": b"Countess",
    }

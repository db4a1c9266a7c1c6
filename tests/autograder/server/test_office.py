"""The office of a course without a built assignment: what it takes, and what it says to students."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from served_course import NOTEBOOK, weights_file

from autograder.course import Assignment
from autograder.server.attempts import KeptNickname, KeptWeights
from autograder.server.database import open_database
from autograder.server.office import HandInRefused, Office, SentFile

MEGABYTE = 1_048_576
SETTINGS = """
[course]
timezone = "Europe/Berlin"

[due]
tiny = 2126-10-01T12:00:00Z

[server]
instructors = "prof ines"

[leaderboard]
weights = "tiny"
weights_mb = 2

[limits]
notebook_mb = 1

[submit]
tries = 3
groups = "tiny"
"""


class Desk:
    """An office, with what it told and how often it woke the graders."""

    def __init__(self, root: Path, database: Path) -> None:
        self.engine = open_database(f"sqlite:///{database}")
        self.wakes = 0
        self.lines: list[str] = []
        self.office = Office(root, self.engine, self._wake, self.lines.append)

    def _wake(self) -> None:
        self.wakes += 1


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    (tmp_path / "course.toml").write_text(SETTINGS, encoding="utf-8")
    classmates = "id,group\nada,Team 1\nbob,Team 1\ncyd,\n"
    (tmp_path / "students.csv").write_text(classmates, encoding="utf-8")
    desk = Desk(tmp_path, tmp_path / "server.db")
    yield desk
    desk.engine.dispose()


@pytest.fixture
def tiny(tmp_path: Path) -> Assignment:
    return Assignment("tiny", tmp_path)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the file is empty: save the notebook and choose it again"),
        (b" " * (MEGABYTE + 1), "the notebook is larger than 1 MB: clear its outputs"),
        (b"hello", "tiny.ipynb: "),
        (b'{"cells": 3}', "tiny.ipynb: "),
    ],
)
def test_what_is_no_notebook_is_not_stored(
    desk: Desk, tiny: Assignment, data: bytes, reason: str
) -> None:
    with pytest.raises(HandInRefused) as refused:
        desk.office.hand_in("cyd", tiny, data)
    assert str(refused.value).startswith(reason)
    assert desk.office.attempts.of_assignment("tiny") == []
    assert desk.wakes == 0


def test_a_notebook_of_just_the_largest_size_is_taken(
    desk: Desk, tiny: Assignment
) -> None:
    data = NOTEBOOK + b" " * (MEGABYTE - len(NOTEBOOK))
    attempt = desk.office.hand_in("cyd", tiny, data)
    assert desk.office.attempts.notebook(attempt.id) == data
    assert (attempt.student, attempt.handed_in_by, attempt.number) == ("cyd", "", 1)
    assert desk.wakes == 1


def test_a_groups_attempt_says_who_handed_it_in(desk: Desk, tiny: Assignment) -> None:
    attempts = [desk.office.hand_in(name, tiny, NOTEBOOK) for name in ("ada", "bob")]
    assert [attempt.student for attempt in attempts] == ["Team 1"] * 2
    assert [attempt.handed_in_by for attempt in attempts] == ["ada", "bob"]
    desk.office.hand_in("ada", tiny, NOTEBOOK)
    with pytest.raises(HandInRefused, match=r"^all 3 attempts are used$"):
        desk.office.hand_in("bob", tiny, NOTEBOOK)
    assert len(desk.office.attempts.of_student("Team 1", "tiny")) == 3


def test_a_student_sees_the_groups_attempts_and_the_due_time(
    desk: Desk, tiny: Assignment
) -> None:
    newest = [desk.office.hand_in(name, tiny, NOTEBOOK) for name in ("ada", "bob")]
    view = desk.office.assignment_view("ada", "tiny")
    assert (view.name, view.members) == ("tiny", ("ada", "bob"))
    assert [attempt.id for attempt in view.attempts] == [newest[1].id, newest[0].id]
    assert (view.counting, view.refusal, view.tries_left) == (None, "", 1)
    # 12:00 in UTC, in summer
    assert "14:00" in view.due
    assert not view.is_past_due
    other = desk.office.assignment_view("cyd", "other")
    assert (other.members, other.due, other.tries_left) == (("cyd",), "", 3)


@pytest.mark.parametrize(
    ("sent", "kept", "note"),
    [
        (None, None, "tiny.safetensors did not come with this notebook."),
        (
            SentFile("tiny.safetensors", weights_file(), 2 * MEGABYTE),
            weights_file(),
            "tiny.safetensors came with it, 2.0 MB.",
        ),
        (
            SentFile("tiny.safetensors", b"", 2 * MEGABYTE + 1),
            None,
            "tiny.safetensors: is larger than 2 MB. The notebook counts without it.",
        ),
        (
            SentFile("tiny.pt", weights_file(), 76),
            None,
            "tiny.pt: the weights must be called tiny.safetensors. The notebook counts "
            "without it.",
        ),
    ],
)
def test_a_note_says_what_became_of_weights(
    desk: Desk,
    tiny: Assignment,
    sent: SentFile | None,
    kept: bytes | None,
    note: str,
) -> None:
    assert desk.office.weights_limit("tiny") == 2 * MEGABYTE
    attempt = desk.office.hand_in("cyd", tiny, NOTEBOOK, sent)
    assert attempt.weights_note == note
    assert desk.office.attempts.weights(attempt.id) == kept


def test_an_assignment_without_weights_has_no_note_of_them(desk: Desk) -> None:
    sent = SentFile("other.safetensors", weights_file(), 76)
    assert desk.office._keep_weights("other", sent) == KeptWeights(None, "")


def test_a_note_says_what_became_of_a_nickname(desk: Desk, tiny: Assignment) -> None:
    """A group keeps its own nickname; whoever comes later has a number."""
    tiny.leaderboard.parent.mkdir(parents=True)
    tiny.leaderboard.touch()

    def hand_in(student: str, nickname: str) -> KeptNickname:
        attempt = desk.office.hand_in(student, tiny, NOTEBOOK, nickname=nickname)
        return KeptNickname(attempt.nickname, attempt.nickname_note)

    owl = KeptNickname("Owl", "On the leaderboard you are called Owl.")
    assert hand_in("ada", "Owl") == owl
    assert hand_in("bob", " Owl ") == owl
    assert hand_in("cyd", "OWL") == KeptNickname(
        note="Somebody else is called OWL on the leaderboard: you have a number there, "
        "until you hand in with another nickname."
    )
    assert hand_in("cyd", "") == KeptNickname(
        note="On the leaderboard you have a number in place of a nickname."
    )
    tiny.leaderboard.unlink()
    assert hand_in("cyd", "Fox") == KeptNickname("", "")


def test_a_place_in_the_queue_counts_those_before_it_and_itself(
    desk: Desk, tiny: Assignment
) -> None:
    """A grader takes a second for one as long as none was measured."""
    attempts = [desk.office.hand_in(name, tiny, NOTEBOOK) for name in ("ada", "cyd")]
    places = [desk.office.place_in_queue(attempt) for attempt in attempts]
    assert places == [(0, 1.0), (1, 2.0)]


def test_a_regrade_wakes_the_graders_once(
    desk: Desk, tiny: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []

    def begin(assignment: str) -> int:
        begun.append(assignment)
        return 7

    monkeypatch.setattr(desk.office.regrades, "begin", begin)
    assert desk.office.begin_regrade("tiny") == 7
    assert (begun, desk.wakes) == (["tiny"], 1)


@pytest.mark.parametrize(
    ("student", "role"),
    [
        ("prof", "instructor"),
        ("ines", "instructor"),
        ("ada", "student"),
        ("pro", "student"),
    ],
)
def test_settings_name_the_instructors(desk: Desk, student: str, role: str) -> None:
    assert desk.office.role_of(student) == role

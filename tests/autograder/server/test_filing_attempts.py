"""Where graded attempts lie in the class's folders, with a store that the test plays."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.basics.errors import KitError
from autograder.course import Course
from autograder.ledger import read_ledger
from autograder.records.model import Graded
from autograder.server import filing
from autograder.server.filing import Filed, file_attempts


class PlayedAttempts:
    """A store with these attempts, all of them unfiled; those in `answers` are graded."""

    def __init__(self, *attempts: Any, answers: dict[int, Any]) -> None:
        self.all = attempts
        self.answers = answers
        self.filed: list[list[int]] = []

    def unfiled(self) -> list[Any]:
        return list(self.all)

    def of_student(self, student: str, assignment: str) -> list[Any]:
        return [
            each
            for each in self.all
            if (each.student, each.assignment) == (student, assignment)
        ]

    def answer(self, number: int) -> Any:
        return self.answers.get(number)

    def notebook(self, number: int) -> bytes:
        return f"notebook {number}".encode()

    def weights(self, number: int) -> bytes | None:
        return b"weights" if number == 1 else None

    def mark_filed(self, numbers: list[int]) -> None:
        self.filed.append(numbers)


def attempt(number: int, student: str, assignment: str = "m1", **more: Any) -> Any:
    values = {"nickname": "", "handed_in": None, **more}
    return SimpleNamespace(id=number, student=student, assignment=assignment, **values)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several attempts the first one counts."""
    rules = SimpleNamespace(counting=lambda attempts: attempts[0])
    monkeypatch.setattr(filing, "AttemptRules", lambda *_: rules)


@pytest.mark.usefixtures("counting")
def test_an_attempt_lies_where_a_collected_notebook_would(tmp_path: Path) -> None:
    course = Course(tmp_path)
    store = PlayedAttempts(
        attempt(1, "ada", nickname="A. L."),
        attempt(2, "ben"),
        attempt(3, "cyd"),
        attempt(4, "ada"),
        answers={
            1: (Graded("ada", seconds={"run": 1.0}), b'{"result": 1}'),
            2: (Graded("ben", problem="no notebook"), b""),
        },
    )
    assert file_attempts(course, store) == Filed(("m1",), ())  # type: ignore[arg-type]
    files = {
        path.relative_to(course.submitted).as_posix(): path.read_text()
        for path in course.submitted.rglob("*")
        if path.is_file()
    }
    assert files == {
        "ada/m1/m1.ipynb": "notebook 1",
        "ada/m1/m1.safetensors": "weights",
        "ada/m1/nickname.txt": "A. L.\n",
        "ben/m1/m1.ipynb": "notebook 2",
    }
    # a notebook that could not be graded keeps no result; cyd's attempt has no answer yet
    assert [path.name for path in (course.results / "m1").iterdir()] == ["ada.json"]
    assert store.filed == [[1, 4, 2, 3]]


@pytest.mark.usefixtures("counting")
def test_an_assignment_that_cannot_be_filed_is_told_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PlayedAttempts(attempt(2, "ben", "m2"), attempt(1, "ada", "m1"), answers={})
    lock_results = vars(filing)["lock_results"]

    def lock(locks: Path, folder: Path, assignment: str) -> Any:
        if assignment == "m1":
            raise KitError("another command writes them")
        return lock_results(locks, folder, assignment)

    monkeypatch.setattr(filing, "lock_results", lock)
    filed = file_attempts(Course(tmp_path), store)  # type: ignore[arg-type]
    assert filed == Filed(("m2",), ("m1: another command writes them",))
    assert store.filed == [[2]]


@pytest.mark.usefixtures("counting")
def test_a_student_who_can_have_no_folder_of_the_name_is_remembered(
    tmp_path: Path,
) -> None:
    course = Course(tmp_path)
    answers = {1: (Graded("a/b", problem="none"), b""), 2: (Graded("ada"), b"")}
    store = PlayedAttempts(attempt(1, "a/b"), attempt(2, "ada"), answers=answers)
    for _ in range(2):
        file_attempts(course, store)  # type: ignore[arg-type]
        ledger = read_ledger(course)
        assert (ledger.has_record("a/b"), ledger.has_record("ada")) == (True, False)
        assert ledger.student_in(ledger.folder("a/b")) == "a/b"
    history = (tmp_path / "ledger.json").read_text(encoding="utf-8")
    assert history.count('"source"') <= 1


def test_a_name_that_can_be_no_folder_is_learned_while_nobody_collects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[Path] = []

    def hold(path: Path, action: str) -> Any:
        held.append(path)
        return contextlib.nullcontext()

    monkeypatch.setattr(filing, "hold_lock", hold)
    course = Course(tmp_path)
    ledger = filing._read_ledger_with(course, ["ada", "Team 1/2"])
    assert held == [course.kept / "locks" / "collect"]
    known = [ledger.has_record(name) for name in ("ada", "Team 1/2")]
    assert known == [False, True]
    assert read_ledger(course).has_record("Team 1/2")
    filing._read_ledger_with(course, ["ada", "Team 1/2"])
    assert len(held) == 1


@pytest.mark.parametrize(
    ("change", "line", "steps"),
    [
        ("new", "", ["install"]),
        ("replaced", "the earlier one is kept", ["install"]),
        ("unchanged", "", ["install"]),
        # the later attempt lies there, and an earlier one counts again
        ("unchanged", "newer; kept it", ["install", "put_aside", "install"]),
    ],
)
@pytest.mark.usefixtures("counting")
def test_a_later_attempt_yields_where_an_earlier_one_counts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: str,
    line: str,
    steps: list[str],
) -> None:
    done: list[str] = []

    class PlayedFolder:
        def __init__(self, place: Path, files: object) -> None:
            assert place == course.submitted / "ada/m1"

        def install(self, *given: object) -> tuple[str, str]:
            done.append("install")
            return change, line

        def put_aside(self) -> None:
            done.append("put_aside")

    course = Course(tmp_path)
    monkeypatch.setattr(filing, "SubmissionFolder", PlayedFolder)
    store = PlayedAttempts(attempt(2, "ada"), answers={2: (Graded("ada"), b"")})
    file_attempts(course, store)  # type: ignore[arg-type]
    assert done == steps

"""What an export into nbgrader's gradebook writes and tells; nbgrader's own side is played."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.basics.errors import NothingToGrade
from autograder.course import Assignment, Course
from autograder.course.course import GradebookAddress, Late
from autograder.course.roster import Person
from autograder.marks.late_policy import GradebookTimes
from autograder.marks.marks import Mark
from autograder.records.model import Graded, Result
from autograder.records.results import TimingFile, write_result
from autograder.reporting import gradebook_export
from autograder.reporting.gradebook_export import export_gradebook
from autograder.reporting.stored_marks import StoredMarks, _read_gradebook_times

DUE = datetime(2026, 10, 1, 12, tzinfo=UTC)
ADA = Person("s1", "Ada", "", "", {})
SERVER = "postgresql://grader:secret@db/gradebook"


class PlayedFolder:
    """autograded/, which notes what is written into it."""

    def __init__(self, *_: object) -> None:
        self.lines: list[tuple[str, str]] = []

    @property
    def written(self) -> int:
        return len(self.lines)

    def write(self, result: Result, submission: str) -> None:
        self.lines.append((result.student, submission))

    def write_problem(self, student: str, problem: str) -> None:
        self.lines.append((student, problem))


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What nbgrader's side was asked for: `filled`, `files`, `class_list`, `folder`."""
    played = SimpleNamespace(filled=[], files=[], class_list=[], folder=None)

    @contextlib.contextmanager
    def gradebook_file(path: Path, files: object) -> Iterator[tuple[Path, int]]:
        played.files.append(path)
        yield path.with_suffix(".part"), 7

    def open_folder(*arguments: object) -> PlayedFolder:
        played.folder = PlayedFolder(*arguments)
        return played.folder  # type: ignore[no-any-return]

    def submissions(*arguments: Any) -> Iterator[tuple[Result, str | None]]:
        for result in arguments[2]:
            yield result, None if result.student == "ben" else f"{result.student}'s"

    def fill(
        course: Any, assignment: Any, graded: Any, *rest: Any, **more: Any
    ) -> None:
        students = [(result.student, submission) for result, submission in graded]
        played.filled.append((students, *rest, more))

    times = {"m1": GradebookTimes(datetime(2026, 10, 2, 12, tzinfo=UTC))}
    played.times_of = []
    marks = [
        Mark("ada", "graded", person=ADA, folder="ada-folder"),
        Mark("ben", "graded"),
    ]
    for name, play in {
        "gradebook_file": gradebook_file,
        "AutogradedFolder": open_folder,
        "graded_submissions": submissions,
        "fill_gradebook": fill,
        "class_marks": lambda *_: marks,
        "read_gradebook_times": lambda _, url: played.times_of.append(url) or times,
        "write_class_list": lambda *arguments: played.class_list.append(arguments[2:]),
    }.items():
        monkeypatch.setattr(gradebook_export, name, play)
    for name, line in CHECKS.items():
        monkeypatch.setattr(
            StoredMarks,
            name,
            lambda stored, results, line=line: stored.tell(f"{len(results)} {line}"),
        )
    return played


CHECKS = {
    "tell_stale": "results were looked at for their age",
    "tell_flagged": "results were looked at for two answers to one call",
}


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """Ada and Ben have results, and Cyd has a problem."""
    course = Course(tmp_path, due={"m1": DUE})
    for student in ("ada", "ben"):
        result = Result("m1", student, "sha", "suite", "strict", 0.0, 0.0, (), ())
        write_result(course.results, result)
    TimingFile(course.results, "m1").note([Graded("cyd", problem="no notebook")])
    time = course.submitted / "ada/m1/timestamp.txt"
    time.parent.mkdir(parents=True)
    time.write_text("2026-10-01 11:00:00 UTC")
    return course


def exported(course: Course, to: Path | None = None) -> tuple[list[str], list[str]]:
    """The lines of the command, and what it tells."""
    told: list[str] = []
    stored = StoredMarks(
        course, Assignment("m1", course.root), course.results, told.append
    )
    return list(export_gradebook(stored, to)), told


CONFLICT = (
    "m1 is due 2026-10-01 12:00 UTC in course.toml and 2026-10-02 12:00 UTC in nbgrader's "
    "gradebook: course.toml's time counts"
)
UNREADABLE = (
    "not what was graded, or not in submitted/ any more, so that nobody can grade their "
    "written answers: 1: ben; run `autograder grade m1` first"
)
HAND_IN_TIMES = {"ada": datetime(2026, 10, 1, 11, tzinfo=UTC)}


def test_an_export_fills_the_courses_gradebook_and_the_folder_of_notebooks(
    played: Any, course: Course
) -> None:
    lines, told = exported(course)
    assert lines == [
        f"2 results of m1 in {course.gradebook}",
        f"2 notebooks to grade by hand in {course.autograded}: open them in the formgrader",
    ]
    checks = [f"2 {line}" for line in CHECKS.values()]
    assert told == [*checks, CONFLICT, UNREADABLE]
    assert played.files == [course.gradebook]
    url = f"sqlite:///{course.gradebook.with_suffix('.part').absolute()}"
    assert played.filled == [
        (
            [("ada", "ada's"), ("ben", None)],
            HAND_IN_TIMES,
            {"cyd": "no notebook"},
            {"db_url": url, "version": 7},
        )
    ]
    assert played.folder.lines == [("cyd", "no notebook"), ("ada", "ada's")]
    assert played.times_of == [url]
    assert played.class_list == [({"ada-folder": ADA}, url)]


def test_an_export_to_another_file_writes_no_notebooks(
    played: Any, course: Course, tmp_path: Path
) -> None:
    file = tmp_path / "other.db"
    lines, _ = exported(course, file)
    assert lines == [f"2 results of m1 in {file}"]
    assert (played.files, played.folder) == ([file], None)
    assert [student for student, _ in played.filled[0][0]] == ["ada", "ben"]


def test_an_export_to_a_server_touches_no_file(played: Any, course: Course) -> None:
    on_server = dataclasses.replace(course, on_server=GradebookAddress(SERVER))
    lines, _ = exported(on_server)
    assert lines[0].startswith("2 results of m1 in ")
    assert "secret" not in lines[0]
    assert played.files == []
    assert played.filled[0][-1] == {"db_url": SERVER, "version": 0}
    assert len(lines) == 2
    # to a file all the same, where one is named
    exported(on_server, course.root / "other.db")
    assert played.files == [course.root / "other.db"]


def test_nobody_graded_is_nothing_to_export(played: Any, tmp_path: Path) -> None:
    with pytest.raises(NothingToGrade):
        exported(Course(tmp_path / "empty"))
    assert played.filled == []


# times of the gradebook


def test_the_gradebooks_times_are_read_where_lateness_costs_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = {"m1": GradebookTimes(DUE)}
    monkeypatch.setattr(
        "autograder.nbgrader.class_list.read_gradebook_times", lambda course: times
    )
    late = Course(tmp_path, late=Late(policy="zero"))
    assert _read_gradebook_times(late) == {}
    late.gradebook.touch()
    assert _read_gradebook_times(late) == times
    assert _read_gradebook_times(Course(tmp_path)) == {}

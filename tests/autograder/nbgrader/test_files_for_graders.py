"""What comes with a notebook for graders: its submission where that is still there, pictures and
receipts; without a class that is graded.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nbgrader_course import result_for

from autograder.basics.errors import NothingToGrade, UnreadableSubmission
from autograder.course import Assignment, Course
from autograder.nbgrader import feedback_exporter, for_graders
from autograder.nbgrader.for_graders import _copy_beside, graded_submissions
from autograder.records.model import Result


class NotedFiles:
    """A transaction that notes what it is asked, and does it at once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.lines: list[str] = []

    def write(self, to: Path, content: bytes, *, to_disk: bool) -> None:
        assert not to_disk
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(content)
        self.lines.append(f"write {to.relative_to(self._root)}")

    def remove(self, path: Path) -> None:
        path.unlink()
        self.lines.append(f"remove {path.relative_to(self._root)}")


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_pictures_and_receipts_lie_beside_a_notebook(tmp_path: Path) -> None:
    course, assignment = Course(tmp_path), Assignment("m1", tmp_path)
    figures = assignment.release.parent / "figures"
    put(figures / "b.svg", "b")
    put(figures / "deep/a.svg", "a")
    receipts = course.submitted / "ada/m1"
    put(receipts / "timestamp.txt", "2026-03-01 10:00:00 UTC")
    (receipts / "submission_secret.txt").symlink_to(put(tmp_path / "secret", "x"))
    folder = tmp_path / "autograded"
    put(folder / "submission_secret.txt", "of an earlier export")

    def copy() -> list[str]:
        files: Any = NotedFiles(folder)
        _copy_beside(files, course, assignment, "ada", folder)
        return files.lines  # type: ignore[no-any-return]

    assert copy() == [
        "write figures/b.svg",
        "write figures/deep/a.svg",
        "write timestamp.txt",
        "remove submission_secret.txt",
    ]
    assert (folder / "figures/deep/a.svg").read_text(encoding="utf-8") == "a"
    # what is there already stays, and what differs is written
    assert copy() == []
    put(figures / "b.svg", "c")
    (receipts / "timestamp.txt").unlink()
    assert copy() == ["write figures/b.svg", "remove timestamp.txt"]


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A class of which ada's notebook is the graded one, ben's another, and cyd's unreadable."""
    files = [SimpleNamespace(student=name) for name in ("ada", "ben", "cyd")]
    hashes = {"ada": result_for("ada").submission_sha256, "ben": "another"}

    def read(found: Any, release: str, limits: Any) -> Any:
        assert release == "the release"
        if found.student == "cyd":
            raise UnreadableSubmission("no JSON")
        return SimpleNamespace(sha256=hashes[found.student], student=found.student)

    monkeypatch.setattr(for_graders, "find_submissions", lambda *_: files)
    monkeypatch.setattr(for_graders, "load_release", lambda _: "the release")
    monkeypatch.setattr(for_graders, "read_submission", read)


def students_with_submissions(root: Path, names: list[str]) -> list[tuple[str, bool]]:
    results: list[Result] = [result_for(name) for name in names]
    graded = graded_submissions(Course(root), Assignment("m1", root), results)
    return [(result.student, submission is not None) for result, submission in graded]


def test_a_result_has_its_submission_while_that_is_the_graded_one(
    played: Any, tmp_path: Path
) -> None:
    names = ["ada", "ben", "cyd", "dan"]
    assert students_with_submissions(tmp_path, names) == [
        ("ada", True),
        ("ben", False),
        ("cyd", False),
        ("dan", False),
    ]


def test_results_stay_where_nothing_is_handed_in_any_more(
    played: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_nothing(*_: Any) -> Any:
        raise NothingToGrade("empty")

    monkeypatch.setattr(for_graders, "find_submissions", find_nothing)
    assert students_with_submissions(tmp_path, ["ada"]) == [("ada", False)]


def test_penalties_are_worked_out_once_a_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls: list[Any] = []

    class Opened:
        def __init__(self, db_url: str) -> None:
            calls.append(db_url)
            self.db = SimpleNamespace(commit=lambda: calls.append("commit"))

        def __enter__(self) -> Opened:
            return self

        def __exit__(self, *error: Any) -> None: ...

    def refresh(db: Any, course: str, where: Any) -> None:
        calls.append((course, str(where.right.value)))

    monkeypatch.setattr(feedback_exporter, "Gradebook", Opened)
    monkeypatch.setattr(feedback_exporter, "find_course", lambda _: "the course")
    monkeypatch.setattr(feedback_exporter, "refresh_penalties", refresh)
    step = feedback_exporter.UpToDatePenalty()
    resources = {"nbgrader": {"db_url": "sqlite://", "assignment": "m1"}}
    for page in ("first", "second"):
        assert step.preprocess(page, resources) == (page, resources)
    assert calls == ["sqlite://", ("the course", "m1"), "commit"]

"""What the machine or a wrong path does to a command: one line that names the path, status 2, and
nothing is lost.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from courses import handed_in
from small_course import ANSWERS

from autograder.basics.explain import explain_error
from autograder.basics.whole_files import write_whole
from autograder.cli.commands import main
from autograder.course import Course, load_course
from autograder.intake.released_notebook import points_of_questions
from autograder.records.model import QuestionResult, TestOutcome
from autograder.records.model import Result as Graded
from autograder.records.results import course_sha256, write_result

Refuse = Callable[..., str]

pytestmark = pytest.mark.usefixtures("standing_host")

EXPORT = ("export", "small", "--format", "csv", "--to")
GRADEBOOK = ("export", "small", "--format", "gradebook", "--to")
RELEASE = ("release", "small", "--to")
GRADESCOPE = ("bundle", "small", "--for", "gradescope", "--to")
GITHUB = ("bundle", "small", "--for", "github", "--to")
DEMO = ("demo", "small", "--to")
GRADE = ("grade", "small", "--workers", "1", "--out")
FAST = (EXPORT, GRADEBOOK, RELEASE, GRADESCOPE, GITHUB, DEMO)


@pytest.fixture
def mine(course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """A copy of the course with one submission and its result."""
    shutil.copytree(course.root, tmp_path / "course")
    monkeypatch.chdir(tmp_path / "course")
    mine = load_course(Path.cwd())
    write_whole(mine.root / "submitted/ada/small/small.ipynb", handed_in(ANSWERS))
    suite = course_sha256(mine, mine.assignment("small"))
    submission = hashlib.sha256(
        (mine.root / "submitted/ada/small/small.ipynb").read_bytes()
    ).hexdigest()
    questions = tuple(
        QuestionResult(
            name,
            points,
            points,
            0.0,
            None,
            (TestOutcome("test_it", "passed", points, points),),
        )
        for name, points in points_of_questions(mine.assignment("small")).items()
    )
    most = sum(question.max_score for question in questions)
    write_result(
        mine.root / "results",
        Graded("small", "ada", submission, suite, "strict", most, most, questions, ()),
    )
    return mine


@pytest.fixture
def refuse(mine: Course) -> Refuse:
    """Run a command that must end in one line on stderr; gives that line."""

    def refused(*arguments: object) -> str:
        done = CliRunner().invoke(main, [str(a) for a in arguments])
        said = [
            line for line in done.stderr.splitlines() if not line.startswith("grading ")
        ]
        assert (done.exit_code, len(said)) == (2, 1), done.output
        assert said[0].startswith("autograder: ")
        return said[0]

    return refused


@contextlib.contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", options, "none", str(folder)]
    if (
        os.geteuid()
        or subprocess.run(mount, capture_output=True, check=False).returncode
    ):
        pytest.skip("only root can mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.parametrize("command", [*FAST, GRADE])
def test_a_full_disk(refuse: Refuse, tmp_path: Path, command: tuple[str, ...]) -> None:
    with mounted(tmp_path / "full", "size=8k") as full:
        (full / "filling").write_bytes(b"x" * 8192)
        said = refuse(*command, full / "new")
        assert str(full / "new") in said
        assert "no space left" in said
        left = [
            path
            for path in full.rglob("*")
            if path.is_file() and path.name != "filling"
        ]
        assert left == []


@pytest.mark.parametrize("command", FAST)
def test_a_disk_that_can_only_be_read(
    refuse: Refuse, tmp_path: Path, command: tuple[str, ...]
) -> None:
    with mounted(tmp_path / "fixed", "ro") as fixed:
        said = refuse(*command, fixed / "new")
        assert str(fixed / "new") in said
        assert "can only be read" in said


@pytest.mark.parametrize("command", [*FAST, GRADE])
def test_a_file_where_a_folder_is_needed(
    refuse: Refuse, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "file").write_text("kept")
    said = refuse(*command, tmp_path / "file" / "new")
    assert str(tmp_path / "file" / "new") in said
    assert "where a folder is needed" in said
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.parametrize("command", [EXPORT, GRADEBOOK, GRADESCOPE])
def test_a_folder_where_a_file_is_needed(
    refuse: Refuse, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "folder").mkdir()
    said = refuse(*command, tmp_path / "folder")
    assert f"{tmp_path / 'folder'}: it is a folder where a file is needed" in said


@pytest.mark.parametrize("command", ["grade", "report", "export", "demo", "collect"])
def test_a_file_where_the_courses_own_folders_lie(
    refuse: Refuse, mine: Course, tmp_path: Path, command: str
) -> None:
    for folder in ("results", "feedback", "submitted"):
        shutil.rmtree(mine.root / folder, ignore_errors=True)
        (mine.root / folder).write_text("kept")
    (tmp_path / "ada.ipynb").write_text(handed_in(ANSWERS))
    options = {
        "grade": (tmp_path / "ada.ipynb",),
        "export": ("--format", "csv"),
        "collect": (tmp_path, "--from", "folder"),
    }
    assert str(mine.root) in refuse(command, "small", *options.get(command, ()))
    assert {
        (mine.root / folder).read_text()
        for folder in ("results", "feedback", "submitted")
    } == {"kept"}


def test_a_gradebook_in_use(
    refuse: Refuse, mine: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    gradebook = mine.root / "gradebook.db"
    with contextlib.closing(sqlite3.connect(gradebook)) as made:
        # what tells a gradebook from other databases
        made.execute("CREATE TABLE submitted_assignment (id)")
    at_once = sqlite3.connect
    monkeypatch.setattr(
        "sqlite3.dbapi2.connect", lambda *a, **k: at_once(*a, **{**k, "timeout": 0.01})
    )
    with contextlib.closing(sqlite3.connect(gradebook)) as other:
        other.execute("BEGIN EXCLUSIVE")
        said = refuse(*GRADEBOOK, gradebook)
    assert f"{gradebook}: the database is in use by another program" in said


def test_a_file_that_is_no_gradebook_is_never_written_to(
    refuse: Refuse, tmp_path: Path
) -> None:
    other = tmp_path / "other.db"
    for content, said in (
        (b"notes", "is no gradebook"),
        (b"SQLite format 3\0 and no more", "file is not a database"),
    ):
        other.write_bytes(content)
        assert f"{other}" in (line := refuse(*GRADEBOOK, other))
        assert said in line
        assert other.read_bytes() == content
    other.unlink()
    with contextlib.closing(sqlite3.connect(other)) as database:
        database.execute("CREATE TABLE recipes (name)")
    before = other.read_bytes()
    assert "the database of another program (it holds recipes)" in refuse(
        *GRADEBOOK, other
    )
    assert other.read_bytes() == before


@pytest.mark.parametrize(
    "text",
    [
        "no json",
        "[]",
        '{"cells": 3}',
        '{"cells": [{"cell_type": "code"}]}',
        "[" * 100_000,
    ],
)
def test_an_answer_key_that_is_no_notebook(
    refuse: Refuse, mine: Course, text: str
) -> None:
    mine.assignment("small").solution.write_text(text)
    said = refuse("grade", "small", "--workers", "1")
    assert f"{mine.assignment('small').solution}: the answer key is no notebook" in said
    assert "run `autograder build small`" in said


def test_the_traceback_is_shown_to_who_asks(
    mine: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("AUTOGRADER_DEBUG", "1")
    done = CliRunner().invoke(main, [*EXPORT, str(tmp_path / "file" / "new")])
    assert done.exit_code == 2
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("autograder: ")


def test_a_fault_in_the_kit_is_not_taken_for_the_machines() -> None:
    assert explain_error(ValueError("a fault")) is None
    assert explain_error(OSError("no number")) is None
    assert (
        explain_error(OSError(errno.EXDEV, "Invalid cross-device link", "/a/b"))
        == "/a/b: Invalid cross-device link"
    )


def test_a_file_that_cannot_be_written_keeps_its_old_content(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder") as caught:
        write_whole(tmp_path / "folder", "new")
    assert caught.value.filename == str(tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]

"""Files that change together: all of them or none, and what a command that was cut off began is
finished or undone.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.basics.errors import KitError
from autograder.basics.file_transaction import FileTransaction, recover_transactions


@pytest.fixture
def course(tmp_path: Path) -> Path:
    (tmp_path / "old.txt").write_text("old")
    (tmp_path / "gone.txt").write_text("gone")
    (tmp_path / "here.txt").write_text("moved")
    return tmp_path


def files_of(root: Path) -> dict[str, str]:
    files = (path for path in root.rglob("*") if path.is_file() and path.name != "lock")
    return {path.relative_to(root).as_posix(): path.read_text() for path in files}


BEFORE = {"old.txt": "old", "gone.txt": "gone", "here.txt": "moved"}
AFTER = {"old.txt": "new", "deep/er/new.txt": "new", "there.txt": "moved"}


def change(root: Path, meanwhile: Callable[[], object] = lambda: None) -> None:
    with FileTransaction(root / "kept", "`autograder test`") as files:
        files.write(root / "old.txt", "new")
        files.write(root / "deep" / "er" / "new.txt", ["n", b"ew"])
        files.remove(root / "gone.txt")
        files.move(root / "here.txt", root / "there.txt")
        assert files.will_exist(root / "deep" / "er" / "new.txt")
        assert {
            name: text for name, text in files_of(root).items() if name in BEFORE
        } == BEFORE
        meanwhile()


def killed(root: Path, where: Callable[[], None]) -> None:
    child = os.fork()
    if child == 0:
        try:
            where()
            change(root, lambda: os.kill(os.getpid(), signal.SIGKILL))
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def test_at_the_end_all_files_have_changed_and_nothing_else_is_left(
    course: Path,
) -> None:
    change(course)
    assert files_of(course) == AFTER


def test_an_error_leaves_everything_as_it_was(course: Path) -> None:
    def fail() -> None:
        raise ValueError("on the way")

    with pytest.raises(ValueError, match="on the way"):
        change(course, fail)
    assert files_of(course) == BEFORE
    assert not (course / "deep").exists()


def test_what_a_killed_command_had_only_written_is_undone_and_told(
    course: Path,
) -> None:
    killed(course, lambda: None)
    said: list[str] = []
    recover_transactions(course / "kept", said.append)
    assert files_of(course) == BEFORE
    assert not (course / "deep").exists()
    assert said == [
        "`autograder test` was cut off before its files were in place: run it again"
    ]
    recover_transactions(course / "kept", said.append)
    assert len(said) == 1


@pytest.mark.parametrize("renames", [1, 2, 3, 4, 5])
def test_what_a_killed_command_had_begun_to_put_in_place_is_finished_and_told(
    course: Path, renames: int
) -> None:
    """Killed before the second rename and the later ones, of which there are five; the first gives
    the journal its second name.
    """

    def kill_at_rename() -> None:
        rename, replace, left = Path.rename, Path.replace, [renames]

        def counted(call: Callable[[Path, Path], Path]) -> Callable[[Path, Path], Path]:
            def wrapped(path: Path, target: Path) -> Path:
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left[0] -= 1
                return call(path, target)

            return wrapped

        Path.rename, Path.replace = counted(rename), counted(replace)  # type: ignore[assignment, method-assign]

    child = os.fork()
    if child == 0:
        kill_at_rename()
        change(course)
        os._exit(0)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    said: list[str] = []
    recover_transactions(course / "kept", said.append)
    assert files_of(course) == AFTER
    finished = [
        "`autograder test` was cut off while it put its files in place; that is finished now"
    ]
    assert (ended, said) == ((-signal.SIGKILL, finished) if renames < 5 else (0, []))


def test_the_next_command_may_be_called_in_another_folder(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def from_inside() -> None:
        os.chdir(course)
        with FileTransaction(Path("kept"), "`autograder test`") as files:
            files.write(Path("old.txt"), "new")
            os.kill(os.getpid(), signal.SIGKILL)

    killed(course, from_inside)
    (course / "elsewhere").mkdir()
    monkeypatch.chdir(course / "elsewhere")
    recover_transactions(course / "kept", lambda line: None)
    assert files_of(course) == BEFORE


def test_what_another_command_writes_at_the_moment_is_left_alone(course: Path) -> None:
    said: list[str] = []
    change(course, lambda: recover_transactions(course / "kept", said.append))
    assert files_of(course) == AFTER
    assert said == []


def test_where_files_cannot_be_put_in_place_the_next_command_goes_on(
    course: Path,
) -> None:
    def put_folders_in_the_way() -> None:
        (course / "deep" / "er" / "new.txt").mkdir()

    with pytest.raises(
        KitError,
        match=r"new\.txt: .*`autograder test` has put \d of \d files in place; the next command",
    ):
        change(course, put_folders_in_the_way)
    with pytest.raises(KitError, match="the next command goes on"):
        recover_transactions(course / "kept", lambda line: None)
    (course / "deep" / "er" / "new.txt").rmdir()
    recover_transactions(course / "kept", lambda line: None)
    assert files_of(course) == AFTER


@pytest.mark.parametrize("text", ['{"do": "steal"}\n', "[]\n", "{\n"])
def test_a_journal_that_is_none_is_named(course: Path, text: str) -> None:
    (course / "kept" / "unfinished").mkdir(parents=True)
    (course / "kept" / "unfinished" / "1-1.committed").write_text(text)
    with pytest.raises(
        KitError,
        match=r"1-1\.committed: .*; what it lists is unfinished: look at it, and move it away",
    ):
        recover_transactions(course / "kept", lambda line: None)


def test_half_a_last_line_is_what_a_killed_command_leaves(course: Path) -> None:
    (course / "kept" / "unfinished").mkdir(parents=True)
    (course / "kept" / "unfinished" / "1-1.jsonl").write_text(
        '{"do": "begin", "path": "`autograder x`"}\n{"do": "repl'
    )
    said: list[str] = []
    recover_transactions(course / "kept", said.append)
    assert said == [
        "`autograder x` was cut off before its files were in place: run it again"
    ]


def test_a_course_that_can_only_be_read_lets_files_go_elsewhere(
    course: Path, tmp_path: Path
) -> None:
    (course / "kept").write_text("a file where a folder is needed")
    with FileTransaction(course / "kept", "`autograder test`") as files:
        files.write(tmp_path / "out.csv", "marks")
    assert (tmp_path / "out.csv").read_text() == "marks"

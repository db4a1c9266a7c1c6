"""Files and folders of runs that were killed go; what somebody holds or owns stays."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from autograder.sandbox import leftovers
from autograder.sandbox.leftovers import ScratchFolder, lock_path, remove_abandoned


def test_a_file_or_folder_without_an_owner_is_removed(tmp_path: Path) -> None:
    folder, file, other = (
        tmp_path / name for name in (".canary-a", ".canary-b", "canary")
    )
    folder.mkdir()
    (folder / "inside").touch()
    file.touch()
    other.touch()
    descriptors = set(Path("/proc/self/fd").iterdir())
    remove_abandoned(tmp_path, ".canary-*")
    assert list(tmp_path.iterdir()) == [other]
    assert set(Path("/proc/self/fd").iterdir()) == descriptors


def test_what_is_locked_is_left_until_its_owner_ends(tmp_path: Path) -> None:
    file = tmp_path / ".canary-a"
    file.touch()
    lock = lock_path(file)
    remove_abandoned(tmp_path, ".canary-*")
    assert file.exists()
    os.close(lock)
    remove_abandoned(tmp_path, ".canary-*")
    assert not file.exists()


def test_a_link_is_not_followed_and_stays(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.touch()
    (tmp_path / ".canary-a").symlink_to(target)
    remove_abandoned(tmp_path, ".canary-*")
    assert target.exists()


def test_what_another_user_left_is_not_ours_to_remove(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / ".canary-a"
    file.touch()
    monkeypatch.setattr("os.geteuid", lambda: file.stat().st_uid + 1)
    remove_abandoned(tmp_path, ".canary-*")
    assert file.exists()


def test_what_is_gone_has_no_lock(tmp_path: Path) -> None:
    assert lock_path(tmp_path / "missing") == -1


def test_what_was_removed_while_its_lock_was_awaited_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "scratch"
    file.touch()
    descriptors = set(Path("/proc/self/fd").iterdir())
    monkeypatch.setattr("fcntl.flock", lambda descriptor, how: file.unlink())
    assert lock_path(file) == -1
    assert set(Path("/proc/self/fd").iterdir()) == descriptors


def test_a_scratch_folder_goes_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    scratch = ScratchFolder()
    (scratch.path / "file").touch()
    assert [path.name.startswith("attention-kit-") for path in tmp_path.iterdir()] == [
        True
    ]
    scratch.remove()
    assert list(tmp_path.iterdir()) == []
    scratch.path.mkdir()  # somebody else's, of the same name
    scratch.remove()
    assert scratch.path.exists()


def test_a_scratch_folder_that_somebody_else_removed_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    scratch = ScratchFolder()
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    scratch.path.rmdir()
    scratch.remove()
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors - 1


def test_a_scratch_folder_removes_what_others_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "attention-kit-left").mkdir()
    scratch = ScratchFolder()
    assert list(tmp_path.iterdir()) == [scratch.path]
    (tmp_path / "attention-kit-later").mkdir()
    scratch.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_taken_away_while_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    lock_of = leftovers.lock_path
    tries: list[Path] = []

    def lock_second(path: Path) -> int:
        tries.append(path)
        return lock_of(path) if len(tries) > 1 else -1

    monkeypatch.setattr(leftovers, "lock_path", lock_second)
    scratch = ScratchFolder()
    assert tries == [tries[0], scratch.path]
    assert tries[0] != scratch.path
    scratch.remove()


def test_a_lock_may_have_the_number_of_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a program was started without standard input, the first descriptor is 0."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    locks = iter([0])
    monkeypatch.setattr(leftovers, "lock_path", lambda path: next(locks))
    closed: list[int] = []
    monkeypatch.setattr(leftovers, "os", SimpleNamespace(close=closed.append))
    monkeypatch.setattr(leftovers, "_remove_abandoned_folders", lambda: None)
    scratch = ScratchFolder()
    scratch.remove()
    assert not scratch.path.exists()
    assert closed == [0]

"""Times of commits in a student's clone, which may be made to mislead git."""

from __future__ import annotations

import os
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from autograder.intake.commits import CommitTimes

NOON = datetime(2026, 10, 1, 12, tzinfo=UTC)
pytestmark = pytest.mark.skipif(
    shutil.which("git") is None, reason="git is not installed"
)


def git(folder: Path, *arguments: str) -> str:
    date = NOON.isoformat()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_COMMITTER_DATE": date,
        "GIT_AUTHOR_DATE": date,
    }
    command = [
        "git",
        "-c",
        "user.name=Ada",
        "-c",
        "user.email=ada@example.org",
        *arguments,
    ]
    done = subprocess.run(
        command, cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with one commit of a.ipynb at noon."""
    folder = tmp_path / "clone"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "a.ipynb").write_text("{}")
    git(folder, "add", "a.ipynb")
    git(folder, "commit", "--quiet", "-m", "Answer")
    return folder


@pytest.fixture
def times(tmp_path: Path) -> CommitTimes:
    return CommitTimes(tmp_path / "own")


def test_the_time_is_the_last_commits(times: CommitTimes, clone: Path) -> None:
    assert times.last_commit(clone, "a.ipynb") == (NOON, "")
    assert times.last_commit(clone, "b.ipynb") == (None, "")


def test_a_clone_whose_path_has_two_lines_borrows_nothing(
    times: CommitTimes, clone: Path, tmp_path: Path
) -> None:
    """git reads a path a line: the commit is still there from the clone before."""
    odd = tmp_path / "two\nlines"
    shutil.copytree(clone, odd)
    assert times.last_commit(clone, "a.ipynb") == (NOON, "")
    assert times.last_commit(odd, "a.ipynb") == (None, "")


@pytest.mark.parametrize("broken", ["no objects", "linked objects", "linked folder"])
def test_a_clone_without_objects_of_its_own_borrows_nothing(
    times: CommitTimes, clone: Path, tmp_path: Path, broken: str
) -> None:
    assert times.last_commit(clone, "a.ipynb") == (NOON, "")
    other = tmp_path / "other"
    shutil.copytree(clone, other)
    linked = other / (".git" if broken == "linked folder" else ".git/objects")
    shutil.rmtree(linked)
    if broken != "no objects":
        linked.symlink_to(clone / linked.relative_to(other))
    assert times.last_commit(other, "a.ipynb") == (None, "")


def test_settings_of_git_in_the_environment_are_not_for_clones(
    times: CommitTimes, clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "nothing"))
    assert times.last_commit(clone, "a.ipynb") == (NOON, "")


def test_a_git_that_answers_no_text_tells_no_time(
    times: CommitTimes, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object, **__: object) -> None:
        raise subprocess.TimeoutExpired("git", 20)

    monkeypatch.setattr(subprocess, "run", run)
    assert times.last_commit(clone, "a.ipynb") == (None, "")


def test_a_branch_is_read_loose_packed_or_as_a_commit(
    times: CommitTimes, clone: Path
) -> None:
    git(clone, "pack-refs", "--all")
    assert not (clone / ".git/refs/heads/main").exists()
    assert times.last_commit(clone, "a.ipynb") == (NOON, "")
    commit = git(clone, "rev-parse", "HEAD")
    (clone / ".git/HEAD").write_text(f"{commit}\n")
    assert times.last_commit(clone, "a.ipynb") == (NOON, "")


@pytest.mark.parametrize(
    "head", ["", "main", "ref: refs/heads/../../x", "ref: refs/heads/other"]
)
def test_a_head_that_leads_nowhere_has_no_time(
    times: CommitTimes, clone: Path, head: str
) -> None:
    (clone / ".git/HEAD").write_text(head)
    assert times.last_commit(clone, "a.ipynb") == (None, "")


def test_a_clone_without_history_says_so(times: CommitTimes, clone: Path) -> None:
    commit = git(clone, "rev-parse", "HEAD")
    (clone / ".git/shallow").write_text(f"{commit}\nno commit\n")
    time, problem = times.last_commit(clone, "a.ipynb")
    assert time is None
    assert problem.startswith("the clone has no history")
    (clone / ".git/shallow").write_text(f"{'0' * 40}\n")
    assert times.last_commit(clone, "a.ipynb") == (NOON, "")
    (clone / ".git/shallow").unlink()
    assert times.last_commit(clone, "a.ipynb") == (NOON, "")


def test_links_to_another_repository_are_not_followed(
    times: CommitTimes, clone: Path, tmp_path: Path
) -> None:
    whole, objects = tmp_path / "whole", tmp_path / "objects"
    whole.mkdir()
    (whole / ".git").symlink_to(clone / ".git")
    shutil.copytree(clone, objects)
    shutil.rmtree(objects / ".git/objects")
    (objects / ".git/objects").symlink_to(clone / ".git/objects")
    no_clone = tmp_path / "empty"
    no_clone.mkdir()
    for folder in (whole, objects, no_clone):
        assert times.last_commit(folder, "a.ipynb") == (None, "")


def test_a_folder_named_over_two_lines_leads_to_no_other_repository(
    times: CommitTimes, clone: Path, tmp_path: Path
) -> None:
    """The folder's path ends in a line that is another repository's path, and the file of
    alternates has a path a line.
    """
    forged = Path(f"{tmp_path}/two\n{clone}")
    (forged / ".git/objects").mkdir(parents=True)
    commit = git(clone, "rev-parse", "HEAD")
    (forged / ".git/HEAD").write_text(f"{commit}\n")
    assert times.last_commit(forged, "a.ipynb") == (None, "")


def test_without_git_it_says_so(
    tmp_path: Path, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    times = CommitTimes(tmp_path / "own")
    assert times.problem == "git is not installed, so commits cannot be read"
    assert times.last_commit(clone, "a.ipynb") == (None, "")

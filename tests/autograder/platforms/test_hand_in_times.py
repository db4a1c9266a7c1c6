"""Hand-in times from commits of students' clones and from Moodle's grading worksheet.

The worksheet's format is that of moodle, `mod/assign/gradingtable.php`, as read on 2026-11-29; a
clone's is git's own (gitrepository-layout).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.course import Assignment, Course, load_course
from autograder.platforms.collect import collect

NOTEBOOK = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """A course in the time zone of Berlin with one assignment, m1."""
    root = tmp_path / "course"
    source = root / "source" / "m1" / "m1.py"
    source.parent.mkdir(parents=True)
    source.write_text("", encoding="utf-8")
    (root / "course.toml").write_text(
        '[course]\ntimezone = "Europe/Berlin"\n', encoding="utf-8"
    )
    return load_course(root)


def time_of(course: Course, student: str) -> str:
    """What stands in the student's timestamp file; "" where there is none."""
    path = course.submitted / student / "m1" / "timestamp.txt"
    return path.read_text(encoding="utf-8") if path.exists() else ""


# Commits


def git(folder: Path, *arguments: str, at: str = "2026-10-01 12:00:00 +0200") -> None:
    environment = {
        **os.environ,
        "GIT_COMMITTER_DATE": at,
        "GIT_AUTHOR_DATE": "2026-01-01 00:00:00 +0000",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "HOME": str(folder),
    }
    names = (
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@example.org",
        "-c",
        "init.defaultBranch=main",
    )
    subprocess.run(
        ["git", *names, *arguments],
        cwd=folder,
        env=environment,
        check=True,
        capture_output=True,
    )


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Makes copies of a repository in which the notebook was committed at noon and at 21:59, and
    then a README.
    """
    template = tmp_path_factory.mktemp("repository")
    git(template, "init", "--quiet")
    steps = (
        ("m1.ipynb", "{}", "12:00"),
        ("m1.ipynb", NOTEBOOK, "21:59"),
        ("README.md", "late", "23:30"),
    )
    for name, text, clock in steps:
        (template / name).write_text(text, encoding="utf-8")
        git(template, "add", name)
        git(
            template, "commit", "--quiet", "-m", name, at=f"2026-10-01 {clock}:00 +0200"
        )
    return lambda folder: shutil.copytree(template, folder)


def collected(course: Course, folder: Path) -> None:
    collect(course, Assignment("m1", course.root), folder, "github")


def test_the_last_commit_of_the_notebook_is_the_hand_in_time(
    course: Course, tmp_path: Path, repository: Callable[[Path], Path]
) -> None:
    repository(tmp_path / "clones" / "m1-octocat")
    packed = repository(tmp_path / "clones" / "m1-hubot")
    git(packed, "gc", "--quiet")
    git(packed, "pack-refs", "--all")
    collected(course, tmp_path / "clones")
    assert time_of(course, "octocat") == "2026-10-01 19:59:00.000000 UTC"
    assert time_of(course, "hubot") == "2026-10-01 19:59:00.000000 UTC"


def test_a_clone_whose_history_was_cut_off_does_not_make_anybody_late(
    course: Course, tmp_path: Path, repository: Callable[[Path], Path]
) -> None:
    """Its one commit changed the README alone, an hour and a half after the notebook; two commits
    tell the time.
    """
    origin = repository(tmp_path / "origin")
    (tmp_path / "clones").mkdir()
    for name, depth in (("octocat", "1"), ("hubot", "2"), ("monalisa", "3")):
        git(
            tmp_path,
            "clone",
            "--quiet",
            "--depth",
            depth,
            origin.as_uri(),
            f"clones/m1-{name}",
        )
    lines = collect(
        course, Assignment("m1", course.root), tmp_path / "clones", "github"
    )
    assert time_of(course, "octocat") == ""
    assert time_of(course, "hubot") == ""
    assert time_of(course, "monalisa") == "2026-10-01 19:59:00.000000 UTC"
    assert (
        "octocat: when it was handed in is not known: the clone has no history, so it cannot be "
        "told when the notebook "
        "was committed: clone it whole"
    ) in lines


def test_a_repository_around_the_students_folders_says_nothing(
    course: Course, tmp_path: Path
) -> None:
    """An instructor keeps what was handed in under version control, and commits it weeks later."""
    stored = tmp_path / "stored"
    for name in ("m1-octocat", "m1-hubot"):
        (stored / name).mkdir(parents=True)
        (stored / name / "m1.ipynb").write_text(NOTEBOOK, encoding="utf-8")
    git(stored, "init", "--quiet")
    git(stored, "add", ".")
    git(stored, "commit", "--quiet", "-m", "all", at="2026-11-01 12:00:00 +0100")
    collected(course, stored)
    assert (time_of(course, "octocat"), time_of(course, "hubot")) == ("", "")


def test_what_is_not_committed_has_no_time(
    course: Course, tmp_path: Path, repository: Callable[[Path], Path]
) -> None:
    clone = repository(tmp_path / "clones" / "m1-octocat")
    (clone / "m1.ipynb").rename(clone / "other.ipynb")
    plain = tmp_path / "clones" / "m1-hubot"
    plain.mkdir()
    (plain / "m1.ipynb").write_text(NOTEBOOK, encoding="utf-8")
    collected(course, tmp_path / "clones")
    assert (time_of(course, "octocat"), time_of(course, "hubot")) == ("", "")


def test_no_setting_of_a_clone_starts_a_program(
    course: Course, tmp_path: Path, repository: Callable[[Path], Path]
) -> None:
    clone = repository(tmp_path / "clones" / "m1-octocat")
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n", encoding="utf-8")
    trap.chmod(0o755)
    for setting in (
        "core.fsmonitor",
        "core.pager",
        "gpg.program",
        "core.sshCommand",
        "diff.external",
        "core.editor",
    ):
        git(clone, "config", setting, str(trap))
    git(clone, "config", "log.showSignature", "true")
    (clone / ".git" / "hooks" / "post-checkout").write_text(
        trap.read_text(encoding="utf-8"), encoding="utf-8"
    )
    collected(course, tmp_path / "clones")
    assert time_of(course, "octocat") == "2026-10-01 19:59:00.000000 UTC"
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    "head", ["ref: refs/heads/../../../secret", "ref: refs/heads/none", "--help", "\0"]
)
def test_a_broken_head_has_no_time(
    course: Course, tmp_path: Path, repository: Callable[[Path], Path], head: str
) -> None:
    clone = repository(tmp_path / "clones" / "m1-octocat")
    (clone / ".git" / "HEAD").write_text(f"{head}\n", encoding="utf-8")
    collected(course, tmp_path / "clones")
    assert time_of(course, "octocat") == ""


# Moodle's worksheet


HEADER = (
    'Identifier,"Full name","Email address",Status,Group,Grade,"Maximum Grade","Grade can '
    'be changed",'
    '"Last modified (submission)","Last modified (grade)","Feedback comments"\n'
)


def worksheet(folder: Path, *rows: tuple[int, str, str, str]) -> Path:
    """A worksheet with these rows: number, name, group, when something was handed in."""
    path = folder / "worksheet.csv"
    lines = [
        f'"Participant {number}","{name}",{name.split()[0]}@x.edu,"Submitted for grading - '
        f'",{group},,100.00,Yes,'
        f'"{when}",-,\n'
        for number, name, group, when in rows
    ]
    path.write_text(HEADER + "".join(lines), encoding="utf-8")
    return path


def moodle(folder: Path, *names: str) -> Path:
    """An unpacked download with a folder of these names each."""
    for name in names:
        place = folder / "moodle" / f"{name}_assignsubmission_file"
        place.mkdir(parents=True)
        (place / "m1.ipynb").write_text(NOTEBOOK, encoding="utf-8")
    return folder / "moodle"


def test_moodles_worksheet_gives_the_times(course: Course, tmp_path: Path) -> None:
    roster = worksheet(
        tmp_path,
        (501, "Jane Doe", "", "Thursday, 1 October 2026, 9:59 PM"),
        (502, "Max Roe", "", "-"),
    )
    download = moodle(tmp_path, "Jane Doe_501", "Max Roe_502")
    collect(course, Assignment("m1", course.root), download, "moodle", roster)
    assert time_of(course, "Jane Doe_501") == "2026-10-01 19:59:00.000000 UTC"
    assert time_of(course, "Max Roe_502") == ""


def test_a_groups_time_is_that_of_its_members_and_not_of_the_participant_with_its_number(
    course: Course, tmp_path: Path
) -> None:
    roster = worksheet(
        tmp_path,
        (17, "Rita Roe", "Group A", "Thursday, 1 October 2026, 8:00 PM"),
        (18, "Max Bee", "Group B", "Thursday, 1 October 2026, 9:59 PM"),
    )
    download = moodle(tmp_path, "Group A_501", "Group B_17")
    collect(course, Assignment("m1", course.root), download, "moodle", roster)
    found = {
        path.parts[-3]: path.read_text(encoding="utf-8")
        for path in course.submitted.glob("*/m1/timestamp.txt")
    }
    assert {folder.split("_")[0]: text for folder, text in found.items()} == {
        "Group A": "2026-10-01 18:00:00.000000 UTC",
        "Group B": "2026-10-01 19:59:00.000000 UTC",
    }

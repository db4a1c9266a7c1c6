"""Tiers: one that does not hold is found out by its own probe, and the next takes its place."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.basics.errors import IsolationUnavailable
from autograder.course import Course, load_course
from autograder.sandbox import reach, tiers
from autograder.sandbox.host_process import HostProcess
from autograder.sandbox.reach import every_path
from autograder.worker import probe, walls


@pytest.fixture
def open_course() -> Iterator[Course]:
    """A course that every user of the machine may read."""
    with tempfile.TemporaryDirectory() as made:
        root = Path(made)
        (root / "tests" / "hidden").mkdir(parents=True)
        (root / "course.toml").write_text("", encoding="utf-8")
        for folder in (root, root / "tests", root / "tests" / "hidden"):
            folder.chmod(0o755)
        yield load_course(root)


def test_a_tier_without_a_wall_for_files_is_refused_and_the_next_stands(
    open_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiers, "TIERS", ("bare", "no-open"))
    host = tiers.prove_host(
        open_course, "auto", tiers.launch_host(open_course, "auto", 1)
    )
    with contextlib.closing(host):
        assert host.tier == "no-open"


def test_no_tier_at_all_says_what_fell(
    open_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiers, "TIERS", ("bare",))
    with pytest.raises(IsolationUnavailable, match="bare: list "):
        tiers.prove_host(open_course, "auto", tiers.launch_host(open_course, "auto", 1))


def test_a_course_inside_the_python_environment_is_refused() -> None:
    with pytest.raises(walls.WallRefused, match="move the course"):
        walls.refuse_overlap(["/usr/lib"], ["/usr/lib/course/tests"], "landlock")
    walls.refuse_overlap(["/usr/lib"], ["/usr/lib/course/tests"], "namespaces")
    with pytest.raises(walls.WallRefused, match="workers must not see"):
        walls.refuse_overlap(
            ["/srv/course/tests/venv"], ["/srv/course/tests"], "namespaces"
        )


def test_a_folder_that_merely_stands_on_the_path_is_not_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a line of a .pth file puts it there; what the host has loaded from there is readable, and
    nothing beside.
    """
    for name in (
        "course/secret.py",
        "elsewhere/package/__init__.py",
        "elsewhere/alone.py",
        "elsewhere/secret.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for folder in ("course", "elsewhere"):
        monkeypatch.syspath_prepend(str(tmp_path / folder))
    before = walls.python_paths(tmp_path)
    for name in ("package", "alone"):
        monkeypatch.setitem(sys.modules, name, importlib.import_module(name))
    assert set(walls.python_paths(tmp_path)) - set(before) == {
        str(tmp_path / "elsewhere" / "package"),
        str(tmp_path / "elsewhere" / "alone.py"),
    }
    assert not any(path.startswith(str(tmp_path)) for path in before)
    assert str(Path(os.__file__).parent).startswith(tuple(before))


def test_a_course_behind_a_link_is_hidden_by_both_names(
    open_course: Course, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    shutil.move(open_course.root / "tests", outside)
    (open_course.root / "tests").symlink_to(outside)
    (tmp_path / "link").symlink_to(open_course.root)
    assert every_path(tmp_path / "link" / "tests") == [
        str(tmp_path / "link" / "tests"),
        str(outside),
    ]


def test_the_path_that_somebody_typed_is_one_of_a_courses(
    open_course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(open_course.root)
    monkeypatch.chdir(tmp_path / "link")
    monkeypatch.setenv("PWD", str(tmp_path / "link"))
    assert every_path(open_course.root / "tests") == [
        str(open_course.root / "tests"),
        str(tmp_path / "link" / "tests"),
    ]


def test_mounts_that_show_a_course_are_paths_of_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(
        "20 1 8:1 / / rw - ext4 /dev/a rw\n"
        "21 20 8:2 / /home rw - ext4 /dev/b rw\n"
        "22 20 8:2 /ada/course /srv/my\\040course rw - ext4 /dev/b rw\n"  # all of the course
        # a part of what is hidden
        "23 20 8:2 /ada/course/tests/hidden /opt/suites rw - ext4 /dev/b rw\n"
        "24 20 8:2 /eve /mnt/eve rw - ext4 /dev/b rw\n"
        "25 20 8:3 /ada/course /mnt/other rw - ext4 /dev/c rw\n"
    )
    monkeypatch.setattr(reach, "_MOUNTS", table)
    assert every_path(Path("/home/ada/course/tests")) == [
        "/home/ada/course/tests",
        "/srv/my course/tests",
        "/opt/suites",
    ]
    table.unlink()
    assert every_path(Path("/home/ada/course/tests")) == ["/home/ada/course/tests"]


def test_the_probe_tries_a_bind_mount_of_the_course(
    open_course: Course, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    mount = ["mount", "--bind", str(open_course.root / "tests"), str(copy)]
    if (
        os.geteuid()
        or subprocess.run(mount, capture_output=True, check=False).returncode
    ):
        pytest.skip("only root can mount")
    try:
        with contextlib.closing(HostProcess(open_course, "bare")) as host:
            host.wait_until_ready()
            tried = {wall.name for wall in tiers.probe(open_course, host)}
        assert f"list {copy}" in tried
    finally:
        subprocess.run(["umount", str(copy)], check=True)


def test_the_doctor_says_what_a_worker_can_read(open_course: Course) -> None:
    with contextlib.closing(HostProcess(open_course, "no-open")) as host:
        host.wait_until_ready()
        assert host.clients[0].readable == ()


def test_a_host_may_be_closed_twice(open_course: Course) -> None:
    host = HostProcess(open_course, "no-open")
    host.close()
    assert host.close() == ""


def test_a_locked_folder_above_counts_where_nothing_is_mounted(tmp_path: Path) -> None:
    inside = tmp_path / "home" / "python"
    inside.mkdir(parents=True)
    inside.chmod(0o755)
    (tmp_path / "home").chmod(0o700)
    assert not walls.open_to_all(str(inside), "landlock")
    assert walls.open_to_all(str(inside), "namespaces")
    inside.chmod(0o700)
    assert not walls.open_to_all(str(inside), "namespaces")


def test_a_hidden_folder_that_a_worker_could_see_later_is_made_now(
    tmp_path: Path,
) -> None:
    hidden = [str(tmp_path / "course" / name) for name in ("results", ".git")] + [
        str(tmp_path / "elsewhere" / "tests")
    ]
    walls.make_hidden([str(tmp_path / "course")], hidden)
    assert [path.name for path in tmp_path.glob("*/*")] == ["results"]
    assert (tmp_path / "course" / "results").stat().st_mode & 0o777 == 0o700


def test_a_grader_that_is_process_1_is_not_taken_for_the_worker_itself() -> None:
    """In a container a grader can have the number that each worker has in its own namespace."""
    targets = json.dumps({"folders": [], "files": [], "grader": os.getpid()})
    outcomes = {
        name: (worked, detail) for name, worked, detail in probe.attempts(targets)
    }
    expected = (False, "ProcessLookupError: this process has that number here")
    for name in (
        "signal the grader",
        "lower the grader's limits",
        "read another process's memory",
    ):
        assert outcomes[name] == expected

"""Tiers: one that does not hold is found out by its own probe, and the next takes its place."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.course import Course, load_course
from autograder.errors import IsolationUnavailable
from autograder.sandbox import tiers
from autograder.sandbox.host import HostProcess
from autograder.worker import walls


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
    host = tiers.prove_host(open_course, "auto", tiers.launch_host(open_course, "auto", 1))
    with host:
        assert host.tier == "no-open"


def test_no_tier_at_all_says_what_fell(open_course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "TIERS", ("bare",))
    with pytest.raises(IsolationUnavailable, match="bare: list "):
        tiers.prove_host(open_course, "auto", tiers.launch_host(open_course, "auto", 1))


def test_a_course_inside_the_python_environment_is_refused() -> None:
    with pytest.raises(walls.WallRefused, match="move the course"):
        walls.refuse_overlap(["/usr/lib"], ["/usr/lib/course/tests"], "landlock")
    walls.refuse_overlap(["/usr/lib"], ["/usr/lib/course/tests"], "namespaces")
    with pytest.raises(walls.WallRefused, match="workers must not see"):
        walls.refuse_overlap(["/srv/course/tests/venv"], ["/srv/course/tests"], "namespaces")


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


def test_a_hidden_folder_that_a_worker_could_see_later_is_made_now(tmp_path: Path) -> None:
    hidden = [str(tmp_path / "course" / name) for name in ("results", ".git")] + [str(tmp_path / "elsewhere" / "tests")]
    walls.make_hidden([str(tmp_path / "course")], hidden)
    assert [path.name for path in tmp_path.glob("*/*")] == ["results"]
    assert (tmp_path / "course" / "results").stat().st_mode & 0o777 == 0o700

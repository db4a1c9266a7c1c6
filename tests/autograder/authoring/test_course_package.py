"""`autograder init --with attention`: the package of this repository's assignments, and the course
that comes of it.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from autograder.cli.commands import main
from autograder.course import Course, course_packages, load_course
from autograder.worker.walls import python_paths

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "distribution"))

from course_package import course_archive, write_project  # noqa: E402


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of archives of an environment that has the package."""
    folder = tmp_path_factory.mktemp("archives")
    (folder / "attention.zip").write_bytes(course_archive())
    return folder


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("course_packages", "course"):
        monkeypatch.setattr(
            f"autograder.course.{module}.archive_folders", lambda: [folder]
        )


@pytest.fixture
def _installed(archives: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(archives, monkeypatch)


def init(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["init", *map(str, arguments)])


def files(*folders: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder.parents[0]).as_posix(): path.read_bytes()
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.mark.usefixtures("_installed")
def test_the_new_course_has_every_source_and_every_suite(tmp_path: Path) -> None:
    done = init(tmp_path / "my course", "--with", "attention")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-1] == "next, in that folder: `autograder build`"
    course = load_course(tmp_path / "my course")
    sources = {
        path.parent.name
        for path in ROOT.glob("source/*/*.py")
        if path.stem == path.parent.name
    }
    assert {assignment.name for assignment in course.assignments()} == sources
    assert files(course.sources) == files(ROOT / "source")
    assert files(course.suites) == files(ROOT / "tests" / "hidden")
    assert (course.root / "docs/students.md").read_bytes() == (
        ROOT / "docs/students.md"
    ).read_bytes()


@pytest.mark.usefixtures("_installed")
def test_without_it_a_course_is_empty(tmp_path: Path) -> None:
    assert init(tmp_path / "course").exit_code == 0
    assert load_course(tmp_path / "course").assignments() == []


@pytest.mark.usefixtures("_installed")
def test_the_archive_is_among_what_is_hidden(tmp_path: Path, archives: Path) -> None:
    assert archives in Course(tmp_path).hidden


def test_no_path_that_workers_read_leads_to_the_archive() -> None:
    readable = [Path(path).resolve() for path in python_paths(ROOT / "autograder")]
    for folder in course_packages.archive_folders():
        assert not any(folder.resolve().is_relative_to(path) for path in readable)


def test_where_the_package_is_missing_a_line_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "no archives", monkeypatch)
    done = init(tmp_path / "course", "--with", "attention")
    assert (done.exit_code, done.stderr) == (
        2,
        "autograder: the assignments of 'attention' are not installed here: pip install "
        "attention-kit-course\n",
    )
    assert "installed are: none" in init(tmp_path / "course", "--with", "botany").stderr
    assert not (tmp_path / "course").exists()


def test_the_package_asks_for_this_version_of_the_kit(tmp_path: Path) -> None:
    write_project(tmp_path)
    text = (tmp_path / "pyproject.toml").read_text(encoding="utf-8")
    assert 'version = "0.1.0"\n' in text
    assert 'dependencies = ["attention-kit[all]==0.1.0"]\n' in text
    with zipfile.ZipFile(tmp_path / "attention.zip") as archive:
        assert archive.testzip() is None
    assert (tmp_path / "attention.zip").read_bytes() == course_archive()

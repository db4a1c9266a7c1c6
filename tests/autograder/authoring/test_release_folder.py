"""`autograder release`: what students get, as a folder and as a .zip."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from tiny_course import SUITE, TINY, write_assignment

from autograder.authoring.build import BuiltNotebooks, build_assignment, write_build
from autograder.authoring.student_package import write_release
from autograder.basics.errors import KitError, StaleBuild
from autograder.cli.commands import main
from autograder.course import Assignment, Course
from autograder.suite.collection import SuiteQuestion

Put = Callable[[Path], list[str]]


@pytest.fixture
def built(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> BuiltNotebooks:
    (tiny.source.parent / "data").mkdir()
    (tiny.source.parent / "data" / "numbers.csv").write_text("1,2")
    built = build_assignment(course, tiny, questions)
    write_build(tiny, built)
    return built


@pytest.fixture
def put(
    course: Course,
    tiny: Assignment,
    questions: dict[str, SuiteQuestion],
    built: BuiltNotebooks,
) -> Put:
    """Release it there; the names of what lies there then."""
    return lambda to: write_release(course, tiny, questions, to)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "out" / "tiny"


NAMES = [
    "README.md",
    "check.py",
    "data/numbers.csv",
    "environment.yml",
    "figures/line.svg",
    "requirements.txt",
    "tiny.cells.json",
    "tiny.ipynb",
]


def inside(folder: Path) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file()
    )


def test_a_folder_holds_the_notebook_its_files_and_a_readme(
    built: BuiltNotebooks, put: Put, target: Path
) -> None:
    assert put(target) == NAMES
    assert inside(target) == NAMES
    assert (target / "tiny.ipynb").read_bytes() == built.release_bytes
    readme = (target / "README.md").read_text()
    assert readme.startswith("# Small Course: tiny\n")
    assert "Hand in `tiny.ipynb`, under this name." in readme
    assert [path.name for path in target.parent.iterdir()] == ["tiny"]


def test_a_zip_holds_the_same_in_a_folder_of_its_name(put: Put, target: Path) -> None:
    put(target)
    packed = target.with_suffix(".zip")
    assert put(packed) == NAMES
    with zipfile.ZipFile(packed) as archive:
        assert archive.namelist() == [f"tiny/{name}" for name in NAMES]
        assert all(
            archive.read(f"tiny/{name}") == (target / name).read_bytes()
            for name in NAMES
        )
        assert {info.date_time for info in archive.infolist()} == {
            (1980, 1, 1, 0, 0, 0)
        }


def test_packing_twice_gives_the_same_bytes(put: Put, target: Path) -> None:
    one, two = target.with_name("one.zip"), target.with_name("two.zip")
    put(one)
    put(two)
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("suffix", ["", ".zip"])
def test_an_older_release_is_replaced(
    course: Course,
    tiny: Assignment,
    questions: dict[str, SuiteQuestion],
    put: Put,
    target: Path,
    suffix: str,
) -> None:
    target = target.with_name(f"tiny{suffix}")
    put(target)
    (tiny.source.parent / "data" / "numbers.csv").unlink()
    write_build(tiny, build_assignment(course, tiny, questions))
    without_data = [name for name in NAMES if not name.startswith("data/")]
    assert put(target) == without_data
    if suffix:
        with zipfile.ZipFile(target) as archive:
            assert archive.namelist() == [f"tiny/{name}" for name in without_data]
    else:
        assert inside(target) == without_data


def test_an_empty_folder_may_be_used(put: Put, target: Path) -> None:
    target.mkdir(parents=True)
    put(target)
    assert inside(target) == NAMES


def test_the_table_holds_the_notebook_as_it_is_given_out(
    course: Course, put: Put, target: Path
) -> None:
    put(target)
    table = json.loads((target / "tiny.cells.json").read_text())
    assert table == {
        "assignment": "tiny",
        "limits": {
            "notebook_mb": 20,
            "cell_seconds": 10.0,
            "submission_seconds": 180.0,
            "memory_mb": 2000,
            "file_mb": 16,
        },
        "companions": {},
        "only_in_checks": {"shown": "the demo both"},
        "release": json.loads((target / "tiny.ipynb").read_text()),
    }


def test_a_later_assignment_comes_with_what_goes_on_with_ones_own_code(
    course: Course, put: Put, target: Path
) -> None:
    write_assignment(course.root, "a_first", TINY, SUITE)
    put(target)
    text = (target / "make_my_course.py").read_text()
    assert set(re.findall("^#@ (.*)", text, re.MULTILINE)) == {
        "autograder.student_tools.make_my_course",
        "autograder.basics.definitions",
        "autograder.basics.errors",
        "autograder.basics.handed_in",
        "autograder.intake.companion_files",
        "autograder.intake.magics",
        "autograder.intake.pictures",
        "autograder.intake.reading",
        "autograder.intake.cell_text",
    }


def test_what_goes_out_beside_the_notebook_is_looked_at_for_leaks(
    tiny: Assignment, put: Put, target: Path
) -> None:
    (tiny.suite / "check.py").write_text("# what the suite's tests share\n")
    with pytest.raises(
        StaleBuild, match=r"check\.py of the hidden suite goes out with the release"
    ):
        put(target)


def test_a_template_of_github_has_the_programs_too(
    course: Course, put: Put, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(target)
    monkeypatch.chdir(course.root)
    done = CliRunner().invoke(
        main, ["bundle", "tiny", "--for", "github", "--to", "classroom"]
    )
    assert done.exit_code == 0, done.output
    for name in ("check.py", "tiny.cells.json", "tiny.ipynb"):
        assert (course.root / "classroom" / name).read_bytes() == (
            target / name
        ).read_bytes()


def test_another_folder_is_left_alone(put: Put, target: Path) -> None:
    target.mkdir(parents=True)
    (target / "thesis.tex").write_text("mine")
    with pytest.raises(KitError) as caught:
        put(target)
    assert str(caught.value) == (
        f"{target} is there and is not a release of tiny: choose another place, or remove it first"
    )
    assert inside(target) == ["thesis.tex"]


@pytest.mark.parametrize("name", ["tiny.ipynb", "notes.txt"])
def test_work_done_in_a_release_is_left_alone(
    put: Put, target: Path, name: str
) -> None:
    put(target)
    (target / name).write_text("my answers")
    with pytest.raises(KitError) as caught:
        put(target)
    assert (
        str(caught.value)
        == f"{target} is a release of tiny in which somebody has worked: choose another place"
    )
    assert (target / name).read_text() == "my answers"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("notes.zip", "is there and is not a release of tiny: File is not a zip file"),
        ("notes.txt", "is a file: name a folder, or a file that ends in .zip"),
    ],
)
def test_another_file_is_left_alone(
    put: Put, target: Path, name: str, reason: str
) -> None:
    target.parent.mkdir()
    file = target.with_name(name)
    file.write_text("mine")
    with pytest.raises(KitError) as caught:
        put(file)
    assert str(caught.value) == f"{file} {reason}"
    assert file.read_text() == "mine"


def test_a_stale_build_is_not_released(
    tiny: Assignment, built: BuiltNotebooks, put: Put, target: Path
) -> None:
    tiny.release.write_bytes(built.solution_bytes)
    with pytest.raises(StaleBuild) as caught:
        put(target)
    lines = str(caught.value).split("\n")
    assert lines[:2] == [
        "tiny is not ready to be released",
        "  - assignments/tiny/tiny.ipynb is stale: run `autograder build tiny`",
    ]
    assert not target.exists()

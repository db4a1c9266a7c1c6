"""`autograder init` and `autograder new`: what they write, and that they write over nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_course import suite_question

from autograder.authoring import scaffold
from autograder.authoring.build import build_assignment
from autograder.authoring.scaffold import new_assignment, new_course
from autograder.basics.errors import BadSuite, KitError
from autograder.course import Course, load_course

ROOT = Path(__file__).resolve().parents[3]
TEMPLATES = Path(scaffold.__file__).with_name("templates")


@pytest.fixture
def empty(tmp_path: Path) -> Course:
    new_course(tmp_path / "rocks & minerals")
    return load_course(tmp_path / "rocks & minerals")


def test_a_new_course_has_our_settings_and_its_own_name(empty: Course) -> None:
    assert empty.about.name == "rocks & minerals"
    assert (empty.limits, empty.totals.assignment_points) == (
        load_course(ROOT).limits,
        100.0,
    )
    assert empty.assignments() == []
    assert (
        "/submitted/" in (empty.root / ".gitignore").read_text(encoding="utf-8").split()
    )


@pytest.mark.parametrize("name", ['two "quoted" words', "back\\slash"])
def test_a_name_that_needs_escapes(tmp_path: Path, name: str) -> None:
    new_course(tmp_path / name)
    assert load_course(tmp_path / name).about.name == name


@pytest.mark.parametrize(
    ("template", "ours"),
    [
        ("course.toml", "course.toml"),
        ("nbgrader_config.py", "nbgrader_config.py"),
        ("pytest.ini", "tests/hidden/pytest.ini"),
    ],
)
def test_what_a_new_course_gets_is_what_this_one_has(template: str, ours: str) -> None:
    text = (
        (ROOT / ours)
        .read_text(encoding="utf-8")
        .replace('name = "Attention Kit"\n', 'name = "COURSE"\n')
        .replace('weights = "a9_language_model" #', 'weights = ""                #')
    )
    assert (TEMPLATES / "course" / template).read_text(encoding="utf-8") == text


def test_a_course_is_not_written_over(empty: Course) -> None:
    before = {
        path: path.read_bytes() for path in empty.root.rglob("*") if path.is_file()
    }
    with pytest.raises(
        KitError, match=r"course\.toml is there already, and nothing was written"
    ):
        new_course(empty.root)
    assert {
        path: path.read_bytes() for path in empty.root.rglob("*") if path.is_file()
    } == before


def test_nothing_is_written_where_one_file_is_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine", encoding="utf-8")
    with pytest.raises(KitError, match=r"README\.md is there already"):
        new_course(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


@pytest.mark.parametrize("name", ["../up", "", "two words", "-x", "a/b"])
def test_a_name_that_cannot_be_a_folder_is_refused(empty: Course, name: str) -> None:
    with pytest.raises(KitError, match="cannot be called"):
        new_assignment(empty, name)


def test_an_assignment_is_not_written_over(empty: Course) -> None:
    new_assignment(empty, "quartz")
    with pytest.raises(KitError, match="quartz is there already: take another name"):
        new_assignment(empty, "quartz")


def test_what_suites_are_collected_with_is_written_where_it_is_missing(
    empty: Course,
) -> None:
    (empty.suites / "pytest.ini").unlink()
    new_assignment(empty, "quartz")
    assert (empty.suites / "pytest.ini").is_file()


def test_points_that_do_not_make_100_are_refused(empty: Course) -> None:
    new_assignment(empty, "quartz")  # 10 points are for the written answer
    quartz = empty.assignment("quartz")
    with pytest.raises(
        BadSuite, match="80 points of tests and 10 of written answers make 90, not 100"
    ):
        build_assignment(empty, quartz, {"centered": suite_question(80.0)})
    tenths = sum([0.1] * 900)  # 89.99999999999986
    assert (
        build_assignment(empty, quartz, {"centered": suite_question(tenths)}).points
        == 100
    )


def test_a_course_may_count_otherwise(empty: Course) -> None:
    new_assignment(empty, "quartz")
    settings = empty.root / "course.toml"
    old = settings.read_text(encoding="utf-8")
    for wanted, tests in (("0", 3.5), ("20", 10.0)):
        settings.write_text(
            old.replace("assignment_points = 100.0", f"assignment_points = {wanted}"),
            encoding="utf-8",
        )
        course = load_course(empty.root)
        assert (
            build_assignment(
                course, course.assignment("quartz"), {"centered": suite_question(tests)}
            ).points
            == tests + 10
        )

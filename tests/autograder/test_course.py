"""course.toml: every setting is checked, and a mistake is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.course import find_course, load_course
from autograder.errors import BadCourseFile, CourseNotFound, UnknownAssignment

ROOT = Path(__file__).resolve().parents[2]


def write(folder: Path, text: str) -> Path:
    (folder / "course.toml").write_text(text, encoding="utf-8")
    return folder


def test_the_defaults_in_the_code_are_those_written_in_the_courses_own_file(tmp_path: Path) -> None:
    ours, empty = load_course(ROOT), load_course(write(tmp_path, ""))
    assert (ours.about, ours.limits, ours.grading, ours.late) == (empty.about, empty.limits, empty.grading, empty.late)


def test_settings_are_read(tmp_path: Path) -> None:
    course = load_course(write(tmp_path, "[limits]\ncall_seconds = 2\n[grading]\ncarry_credit = 0.5\n"))
    assert (course.limits.call_seconds, course.grading.carry_credit, course.limits.cell_seconds) == (2.0, 0.5, 10.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[limit]\n", "unknown section [limit]"),
        ("[limits]\ncall_second = 1\n", "unknown setting limits.call_second"),
        ("[limits]\ncall_seconds = 'two'\n", "limits.call_seconds must be of type float, not 'two'"),
        ("[limits]\nmemory_mb = 1.5\n", "limits.memory_mb must be of type int, not 1.5"),
        ("[limits]\nprocesses = true\n", "limits.processes must be of type int, not True"),
        ("[limits]\ncall_seconds = 0\n", "limits.call_seconds must be above 0"),
        ("[grading]\ncarry_credit = 1.5\n", "grading.carry_credit must lie between 0 and 1"),
        ("[late]\npolicy = 'sometimes'\n", "late.policy must be"),
        ("[late]\npenalty_per_day = -1.0\n", "late.penalty_per_day must lie between 0 and 1"),
        ("not toml", "course.toml"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadCourseFile) as caught:
        load_course(write(tmp_path, text))
    assert said in str(caught.value)
    assert caught.value.exit_status == 2


def test_the_course_is_found_from_a_folder_inside_it(tmp_path: Path) -> None:
    write(tmp_path, "")
    inside = tmp_path / "source" / "a1"
    inside.mkdir(parents=True)
    assert find_course(inside).root == tmp_path.resolve()


def test_outside_a_course_says_so(tmp_path: Path) -> None:
    with pytest.raises(CourseNotFound):
        find_course(tmp_path)


def test_an_unknown_assignment_names_those_there_are(tmp_path: Path) -> None:
    write(tmp_path, "")
    (tmp_path / "source" / "a1").mkdir(parents=True)
    (tmp_path / "source" / "a1" / "a1.py").write_text("", encoding="utf-8")
    with pytest.raises(UnknownAssignment, match=r"no assignment 'a9'.*there are: a1"):
        load_course(tmp_path).assignment("a9")

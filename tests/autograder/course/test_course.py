"""course.toml: every setting is checked, and a mistake is named."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from autograder.basics.errors import BadCourseFile, CourseNotFound, UnknownAssignment
from autograder.course import find_course, load_course
from autograder.course.course import _SECTIONS

ROOT = Path(__file__).resolve().parents[3]


def write(folder: Path, text: str) -> Path:
    (folder / "course.toml").write_text(text, encoding="utf-8")
    return folder


def test_the_defaults_in_the_code_are_those_written_in_the_courses_own_file(
    tmp_path: Path,
) -> None:
    ours, empty = load_course(ROOT), load_course(write(tmp_path, ""))
    assert (ours.about, ours.limits, ours.grading, ours.late) == (
        empty.about,
        empty.limits,
        empty.grading,
        empty.late,
    )


def test_settings_are_read(tmp_path: Path) -> None:
    course = load_course(
        write(tmp_path, "[limits]\ncall_seconds = 2\n[grading]\ncarry_credit = 0.5\n")
    )
    assert (
        course.limits.call_seconds,
        course.grading.carry_credit,
        course.limits.cell_seconds,
    ) == (2.0, 0.5, 10.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[limit]\n",
            "unknown section [limit], perhaps limits; there are: course, limits",
        ),
        (
            "[limits]\ncall_second = 1\n",
            "unknown setting limits.call_second, perhaps call_seconds; there are",
        ),
        (
            "[limits]\nwords = 1\n",
            "unknown setting limits.words; there are: call_seconds, cell_seconds",
        ),
        (
            "[limits]\ncall_seconds = 'two'\n",
            "limits.call_seconds = 'two': it must be a number above 0, up to 86400",
        ),
        (
            "[limits]\nmemory_mb = 1.5\n",
            "limits.memory_mb = 1.5: it must be a whole number from 1 to 100000",
        ),
        (
            "[limits]\nprocesses = true\n",
            "limits.processes = true: it must be a whole number from 1",
        ),
        (
            "[limits]\ncall_seconds = 0\n",
            "limits.call_seconds = 0: it must be a number above 0",
        ),
        (
            "[grading]\ncarry_credit = 1.5\n",
            "grading.carry_credit = 1.5: it must be a number from 0 to 1",
        ),
        (
            "[late]\npolicy = 'sometimes'\n",
            'late.policy = \'sometimes\': it must be a text "none" or "zero" or "per_day"',
        ),
        (
            "[late]\npenalty_per_day = -1.0\n",
            "late.penalty_per_day = -1.0: it must be a number from 0 to 1",
        ),
        (
            "[course]\nname = ' '\n",
            "course.name = ' ': it must be a text of one line that is not empty",
        ),
        ("limits = 3\n", "[limits] must be one table of settings, not 3"),
        (
            "[[limits]]\ncall_seconds = 1\n",
            "[limits] must be one table of settings, not [{'call_seconds': 1}]",
        ),
        ('["a\\nb"]\n', "unknown section [a\\nb]"),
        ("not toml", "course.toml"),
        (
            "[folders]\nresults = 's3://bucket/results'\n",
            "[folders] is no longer a section: remove it. Submissions and ",
        ),
        (
            "[folders]\nsubmitted = '/mnt/class'\n",
            "results/ of the course's folder; a bucket is mounted, or copied",
        ),
        ("folders = 's3://bucket'\n", "[folders] is no longer a section: remove it"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadCourseFile) as caught:
        load_course(write(tmp_path, text))
    assert said in str(caught.value)
    assert caught.value.exit_status == 2


def test_empty_folders_of_an_older_course_are_let_be(tmp_path: Path) -> None:
    course = load_course(write(tmp_path, '[folders]\nsubmitted = ""\nresults = ""\n'))
    assert (course.submitted, course.results) == (
        tmp_path / "submitted",
        tmp_path / "results",
    )


SETTINGS = [
    f"{section}.{setting.name}"
    for section, (_, kind) in _SECTIONS.items()
    for setting in dataclasses.fields(kind)
]
NEVER = [
    "nan",
    "-nan",
    "inf",
    "-inf",
    "-1",
    "-0.5",
    "1e300",
    "9" * 4000,
    "[]",
    "[1]",
    "{}",
    "{ a = 1 }",
    "true",
    "2026-10-02",
    "12:00:00",
    '""',
    '"\\u0000"',
    '"""a\nb"""',
]


@pytest.mark.parametrize("value", NEVER)
@pytest.mark.parametrize("setting", SETTINGS)
def test_what_no_setting_can_be_is_refused_in_one_line(
    tmp_path: Path, setting: str, value: str
) -> None:
    may_be_empty = (
        "course.timezone",
        "gradebook.db_url",
        "submit.groups",
        "leaderboard.weights",
    )
    if value == '""' and (
        setting in may_be_empty
        or setting.startswith(("canvas.", "moodle.", "classroom.", "server."))
    ):
        return  # no zone, server, group, platform or instructor
    section, key = setting.split(".")
    with pytest.raises(BadCourseFile) as caught:
        load_course(write(tmp_path, f"[{section}]\n{key} = {value}\n"))
    said = str(caught.value)
    assert said.startswith(f"{tmp_path / 'course.toml'}: {setting} = ")
    assert ": it must be a" in said
    assert "\n" not in said
    assert len(said) < 400


def test_a_file_that_nests_too_deeply_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadCourseFile, match=r"course\.toml: "):
        load_course(write(tmp_path, "limits = " + "[" * 100_000))


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

"""Extensions of course.toml and of nbgrader's gradebook: one list, in which nobody loses one
without a word.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from nbgrader_course import TinyCourse
from traitlets.config import PyFileConfigLoader

from autograder.nbgrader.gradebook import open_gradebook

STUDENTS = ("ada", "ben", "cay", "dan")
SETTINGS = """
[course]
name = "Tiny Course"
timezone = "UTC"
[late]
policy = "zero"
[due]
tiny = "2026-03-02 09:00"
[extensions.tiny]
ben = 2
cay = "2026-03-04 09:00"
"""


@pytest.fixture
def late_class(tiny: TinyCourse) -> TinyCourse:
    """Everybody has 4 of 10 points, left the written answer blank, and handed in a day late.
    course.toml gives Ben and Cay two days more.
    """
    for student in STUDENTS:
        tiny.store_result(student, tiny.hand_in(student, at="2026-03-03 09:00:00 UTC"))
    tiny.export_gradebook()
    (tiny.root / "course.toml").write_text(SETTINGS, encoding="utf-8")
    return tiny


def grant(tiny: TinyCourse, student: str, **span: int) -> None:
    """What a person does in nbgrader."""
    with open_gradebook(tiny.course) as gradebook:
        gradebook.grant_extension("tiny", student, **span)


def extensions(tiny: TinyCourse) -> dict[str, timedelta | None]:
    with open_gradebook(tiny.course) as gradebook:
        return {
            row.student_id: row.extension
            for row in gradebook.assignment_submissions("tiny")
        }


def totals(tiny: TinyCourse) -> dict[str, str]:
    """Student → the mark after the late policy."""
    return {
        student: row["total_after_late"] for student, row in tiny.exported().items()
    }


def test_an_extension_granted_in_nbgrader_stays_and_counts(
    late_class: TinyCourse,
) -> None:
    grant(late_class, "ada", days=1)
    assert totals(late_class) == {"ada": "4", "ben": "4", "cay": "4", "dan": "0"}
    for _ in range(2):
        late_class.export_gradebook()
        assert extensions(late_class) == {
            "ada": timedelta(days=1),
            "ben": timedelta(days=2),
            "cay": timedelta(days=2),
            "dan": None,
        }
    assert totals(late_class) == {"ada": "4", "ben": "4", "cay": "4", "dan": "0"}


def test_one_that_was_taken_out_of_course_toml_does_not_live_on_in_the_gradebook(
    late_class: TinyCourse,
) -> None:
    grant(late_class, "ada", days=1)
    late_class.export_gradebook()
    settings = SETTINGS.replace("ben = 2\n", "")
    (late_class.root / "course.toml").write_text(settings, encoding="utf-8")
    assert totals(late_class) == {"ada": "4", "ben": "0", "cay": "4", "dan": "0"}
    late_class.export_gradebook()
    assert extensions(late_class)["ben"] is None
    assert extensions(late_class)["ada"] == timedelta(days=1)


def test_two_different_ones_are_said_and_course_tomls_counts(
    late_class: TinyCourse, capsys: pytest.CaptureFixture[str]
) -> None:
    grant(late_class, "ben", hours=12)
    assert totals(late_class)["ben"] == "4"
    line = (
        "ben has 2 days more for tiny in course.toml and 0.5 days in nbgrader's gradebook: "
        "course.toml's extension counts; take one of them out"
    )
    assert line in capsys.readouterr().err
    late_class.export_gradebook()
    assert line in capsys.readouterr().err
    assert extensions(late_class)["ben"] == timedelta(days=2)
    totals(late_class)
    assert "ben has" not in capsys.readouterr().err


def test_a_due_time_that_differs_is_said(
    late_class: TinyCourse, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_gradebook(late_class.course) as gradebook:
        gradebook.update_or_create_assignment("tiny", duedate="2026-03-09 09:00:00 UTC")
    assert totals(late_class)["dan"] == "0"
    assert (
        "tiny is due 2026-03-02 09:00 UTC in course.toml and 2026-03-09 09:00 UTC in "
        "nbgrader's gradebook: "
        "course.toml's time counts"
    ) in capsys.readouterr().err


def test_extensions_of_course_toml_are_told_where_the_due_time_is_nbgraders(
    late_class: TinyCourse,
) -> None:
    settings = SETTINGS.replace('tiny = "2026-03-02 09:00"\n', "")
    (late_class.root / "course.toml").write_text(settings, encoding="utf-8")
    with open_gradebook(late_class.course) as gradebook:
        gradebook.update_or_create_assignment("tiny", duedate="2026-03-02 21:00:00 UTC")
    late_class.export_gradebook()
    assert extensions(late_class) == {
        "ada": None,
        "ben": timedelta(days=2),
        "cay": timedelta(days=1, hours=12),
        "dan": None,
    }
    assert totals(late_class) == {"ada": "0", "ben": "4", "cay": "4", "dan": "0"}


def test_nbgraders_commands_name_a_student_whom_nobody_knows(
    late_class: TinyCourse, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = SETTINGS.replace("ben = 2", "bem = 2")
    (late_class.root / "course.toml").write_text(settings, encoding="utf-8")
    PyFileConfigLoader("nbgrader_config.py", path=str(late_class.root)).load_config()
    assert (
        "course.toml: extensions.tiny: nobody has handed in anything yet as 'bem'; is it 'ben'?"
        in capsys.readouterr().err
    )

"""What people gave, as reports and exports read it from the gradebook."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from nbgrader_course import TinyCourse, result_for

from autograder.basics.errors import KitError
from autograder.nbgrader.gradebook import fill_gradebook, open_gradebook
from autograder.nbgrader.manual_grades import read_manual_grades
from autograder.records.model import ManualGrades, ManualScore


@pytest.fixture
def class_of_two(tiny: TinyCourse) -> TinyCourse:
    tiny.hand_in("ada")
    tiny.hand_in("ben")
    fill_gradebook(
        tiny.course,
        tiny.course.assignment("tiny"),
        [(result_for("ada"), None), (result_for("ben"), None)],
    )
    return tiny


def _edit(
    tiny: TinyCourse, student: str, cell: str, comment: str | None = None, **values: Any
) -> None:
    with open_gradebook(tiny.course) as gradebook:
        grade = gradebook.find_grade(cell, "tiny", "tiny", student)
        for name, value in values.items():
            setattr(grade, name, value)
        if comment is not None:
            answer = cell.removeprefix("check_")
            gradebook.find_comment(
                answer, "tiny", "tiny", student
            ).manual_comment = comment
        gradebook.db.commit()


def _read(tiny: TinyCourse) -> dict[str, ManualGrades]:
    return read_manual_grades(tiny.course.db_url, "tiny")


def test_who_nobody_has_graded_waits(class_of_two: TinyCourse) -> None:
    waiting = ManualScore("why", 4.0, None, waits=True)
    assert _read(class_of_two) == {
        name: ManualGrades(name, (waiting,)) for name in ("ada", "ben")
    }
    # 3 and 1 from the tests, nothing else yet
    assert _read(class_of_two)["ada"].mark(result_for("ada")) == 4.0


def test_points_overrides_extra_credit_and_comments(class_of_two: TinyCourse) -> None:
    _edit(
        class_of_two,
        "ada",
        "written_why",
        "*Well* put.",
        manual_score=3.5,
        needs_manual_grade=False,
    )
    _edit(
        class_of_two,
        "ada",
        "check_half",
        "Near enough.",
        manual_score=2.0,
        extra_credit=0.5,
    )
    _edit(class_of_two, "ada", "check_double", extra_credit=-1.0)
    ada = _read(class_of_two)["ada"]
    assert ada.written == (ManualScore("why", 4.0, 3.5, comment="*Well* put."),)
    assert ada.questions == (
        ManualScore("double", 3.0, None, extra_credit=-1.0),
        ManualScore("half", 3.0, 2.0, extra_credit=0.5, comment="Near enough."),
    )
    assert not ada.waits
    assert ada.mark(result_for("ada")) == 3.0 - 1.0 + 2.0 + 0.5 + 3.5
    assert _read(class_of_two)["ben"].waits


def test_a_score_to_be_looked_at_again_counts_and_waits(
    class_of_two: TinyCourse,
) -> None:
    _edit(class_of_two, "ada", "written_why", manual_score=3.0, needs_manual_grade=True)
    ada = _read(class_of_two)["ada"]
    assert (ada.waits, ada.mark(result_for("ada"))) == (True, 7.0)


def test_without_a_gradebook_nobody_has_graded(tmp_path: Path) -> None:
    assert read_manual_grades(f"sqlite:///{tmp_path}/gradebook.db", "tiny") == {}
    assert not (tmp_path / "gradebook.db").exists()


def test_another_assignment_is_not_there(class_of_two: TinyCourse) -> None:
    assert read_manual_grades(class_of_two.course.db_url, "other") == {}


@pytest.mark.parametrize("content", [b"no database", None])
def test_what_is_no_gradebook_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "grade book?.db"
    if content is None:
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE other (id TEXT)")
        database.close()
    else:
        path.write_bytes(content)
    with pytest.raises(
        KitError, match=r"grade book\?.db: people's scores cannot be read"
    ):
        read_manual_grades(f"sqlite:///{path}", "tiny")

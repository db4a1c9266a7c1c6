"""Results into gradebook.db: one transaction a batch, the same again and again, no stale score."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import sqlite3
from pathlib import Path

import pytest
from nbgrader_course import TinyCourse, cell, notebook, release_cells, result_for, write

from autograder.nbgrader import gradebook as gradebook_module
from autograder.nbgrader.gradebook import fill_gradebook, open_gradebook
from autograder.records.model import Result
from autograder.records.submission import Answer, Submission

HOUR, DAY = 3600, 86400


def fill(
    tiny: TinyCourse,
    *results: Result,
    at: str = "",
    problems: dict[str, str] | None = None,
) -> None:
    times = {result.student: at for result in results} if at else {}
    fill_gradebook(
        tiny.course,
        tiny.course.assignment("tiny"),
        [(result, None) for result in results],
        times,
        problems,
    )


def test_a_class_larger_than_one_query_is_written_whole(
    tiny: TinyCourse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gradebook_module, "BATCH", 2)
    halves = {"ada": 0.5, "ben": 3.0, "cay": 0.0}
    read = Submission(
        "x",
        "tiny",
        tiny.root,
        "0" * 64,
        (),
        written=(Answer("written_why", "Because.", False),),
    )
    for _ in range(2):
        graded = [
            (result_for(student, half=half), read) for student, half in halves.items()
        ]
        fill_gradebook(
            tiny.course,
            tiny.course.assignment("tiny"),
            graded,
            None,
            {"dee": "not a notebook"},
        )
        assert {
            student: tiny.grades(student)["check_half"][0]
            for student in [*halves, "dee"]
        } == {
            **halves,
            "dee": 0.0,
        }
        assert tiny.grades("cay")["written_why"] == (None, None, True)


def test_scores_and_comments_of_a_batch(tiny: TinyCourse) -> None:
    fill(
        tiny,
        result_for("ada", half=0.5),
        result_for("ben", half=3.0),
        problems={"cay": "not a notebook"},
    )
    assert tiny.grades("ada") == {
        "check_double": (3.0, None, False),
        "check_half": (0.5, None, False),
        "written_why": (None, None, True),
    }
    assert (
        tiny.comments("ada")["half"] == "    `half(3)` is <b>1</b>; it should be 1.5."
    )
    assert tiny.grades("ben")["check_half"] == (3.0, None, False)
    assert set(tiny.grades("cay").values()) == {(0.0, None, True)}
    assert (
        tiny.comments("cay")["double"]
        == "    This submission could not be graded: not a notebook"
    )


def test_filled_twice_nothing_changes(tiny: TinyCourse) -> None:
    fill(tiny, result_for("ada"), at="2026-03-01 10:00:00 UTC")
    before = (tiny.grades("ada"), tiny.comments("ada"))
    fill(tiny, result_for("ada"), at="2026-03-01 10:00:00 UTC")
    assert (tiny.grades("ada"), tiny.comments("ada")) == before
    with open_gradebook(tiny.course) as gradebook:
        assert len(gradebook.find_assignment("tiny").submissions) == 1
        assert [
            (cell.name, cell.max_score)
            for cell in gradebook.find_notebook("tiny", "tiny").grade_cells
        ] == [
            ("check_double", 3.0),
            ("check_half", 3.0),
            ("written_why", 4.0),
        ]


def test_a_resubmission_replaces_scores_and_keeps_what_a_person_gave(
    tiny: TinyCourse,
) -> None:
    fill(tiny, result_for("ada", half=3.0), at="2026-03-01 10:00:00 UTC")
    tiny.score_by_hand("ada", "written_why", 2.5)
    fill(tiny, result_for("ada", half=3.0), at="2026-03-01 10:00:00 UTC")
    assert tiny.grades("ada")["written_why"] == (None, 2.5, False)
    fill(tiny, result_for("ada", half=0.0), at="2026-03-02 10:00:00 UTC")
    assert tiny.grades("ada") == {
        "check_double": (3.0, None, False),
        "check_half": (0.0, None, False),
        "written_why": (None, 2.5, True),
    }


def test_a_question_that_the_result_does_not_have_gets_nothing(
    tiny: TinyCourse,
) -> None:
    only_double = dataclasses.replace(
        result_for("ada"), questions=result_for("ada").questions[:1]
    )
    fill(tiny, result_for("ada", half=3.0))
    fill(tiny, only_double)
    assert tiny.grades("ada")["check_half"] == (0.0, None, True)


def test_an_assignment_can_change_after_students_handed_in(tiny: TinyCourse) -> None:
    fill(tiny, result_for("ada"))
    cells = release_cells()
    cells[3].metadata.nbgrader["points"] = 5  # double is worth more now
    del cells[-1]  # no written answer any more
    cells.append(
        cell(
            "code",
            "assert True",
            "check_third",
            grade=True,
            points=1,
            role="check",
            name="third",
        )
    )
    write(tiny.root / "assignments" / "tiny" / "tiny.ipynb", notebook(cells))
    fill(tiny, result_for("ben"))
    assert tiny.grades("ada") == {
        "check_double": (3.0, None, False),
        "check_half": (1.0, None, False),
        "check_third": (None, None, True),
    }
    with open_gradebook(tiny.course) as gradebook:
        assert gradebook.find_assignment("tiny").max_score == 9.0


def test_a_class_of_600_is_filled_whole(tiny: TinyCourse) -> None:
    fill(tiny, *(result_for(f"s{number:03}", half=number % 4) for number in range(600)))
    with open_gradebook(tiny.course) as gradebook:
        scores = {
            submission.student_id: submission.score
            for submission in gradebook.find_assignment("tiny").submissions
        }
    assert len(scores) == 600
    assert (scores["s000"], scores["s001"], scores["s599"]) == (3.0, 4.0, 6.0)


def test_a_late_submission_costs_what_the_course_says(tiny: TinyCourse) -> None:
    (tiny.root / "course.toml").write_text(
        '[late]\npolicy = "per_day"\npenalty_per_day = 0.1\n', encoding="utf-8"
    )
    fill(tiny, result_for("ada"))
    with open_gradebook(tiny.course) as gradebook:
        gradebook.update_or_create_assignment("tiny", duedate="2026-03-01 12:00:00 UTC")
    # 25 hours: two days of 10 points
    fill(tiny, result_for("ada"), result_for("ben"), at="2026-03-02 13:00:00 UTC")
    with open_gradebook(tiny.course) as gradebook:
        assert gradebook.find_submission("tiny", "ada").late_submission_penalty == 2.0
        assert gradebook.find_submission("tiny", "ben").late_submission_penalty == 2.0
        gradebook.update_or_create_assignment("tiny", duedate="2026-03-03 12:00:00 UTC")
    fill(tiny, result_for("ada"))
    with open_gradebook(tiny.course) as gradebook:
        assert gradebook.find_submission("tiny", "ada").late_submission_penalty == 0.0
        assert gradebook.find_submission("tiny", "ada").timestamp == datetime.datetime(
            2026, 3, 2, 13
        )


def test_a_new_gradebook_needs_no_activated_environment(
    tiny: TinyCourse, empty_gradebook: Path
) -> None:
    """The fixture had none when nbgrader called `alembic` by its name, which notes the version of
    the tables.
    """
    with contextlib.closing(sqlite3.connect(empty_gradebook)) as database:
        assert database.execute("SELECT count(*) FROM alembic_version").fetchall() == [
            (1,)
        ]
    fill(tiny, problems={"ada": "nothing in it"})
    assert tiny.grades("ada")["check_double"] == (0.0, None, True)

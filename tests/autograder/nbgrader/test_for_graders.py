"""What `export --format gradebook` leaves for a person: notebooks with answers, reports and marking
guides.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from nbgrader_course import TinyCourse

from autograder.nbgrader.manual_grades import read_manual_grades


def _cells(tiny: TinyCourse, student: str) -> list[dict[str, Any]]:
    made = tiny.root / "autograded" / student / "tiny" / "tiny.ipynb"
    cells: list[dict[str, Any]] = json.loads(made.read_text(encoding="utf-8"))["cells"]
    return cells


def test_a_class_is_ready_to_be_graded_by_hand(tiny: TinyCourse) -> None:
    tiny.write_guide()
    tiny.hand_in_words("ada", "Because.")
    tiny.hand_in_words("ben", None)
    assert tiny.export_gradebook()[1].startswith("2 notebooks to grade by hand in ")
    hands = read_manual_grades(tiny.course.db_url, "tiny")
    assert [hands[student].waits for student in ("ada", "ben")] == [True, False]
    assert tiny.grades("ada")["written_why"] == (None, None, True)
    assert tiny.grades("ben")["written_why"] == (0.0, None, False)
    assert tiny.comments("ben")["written_why"] == "No response."
    *_, answer, guide = _cells(tiny, "ada")
    assert (answer["metadata"]["nbgrader"]["grade_id"], answer["source"]) == (
        "written_why",
        "Why? Because.",
    )
    assert guide["source"] == (
        "**For graders: 4 points**\n\n**Marking guide**\n\n- **#1** 4 points: linear.\n\n"
        "**Model answer**\n\nWhy? Since a sum is linear."
    )
    report = next(
        cell for cell in _cells(tiny, "ada") if cell["source"].startswith("assert half")
    )
    assert report["outputs"][0]["text"].startswith("half: 1 of 3 points")


def test_students_never_see_the_guide(tiny: TinyCourse) -> None:
    tiny.write_guide()
    tiny.hand_in_words("ada", "Because.")
    tiny.export_gradebook()
    page = tiny.feedback("ada")
    assert "Because." in page
    assert "For graders" not in page
    assert "Since a sum" not in page


def test_another_answer_goes_back_and_the_same_one_does_not(tiny: TinyCourse) -> None:
    tiny.hand_in_words("ada", "Because.")
    tiny.export_gradebook()
    tiny.score_by_hand("ada", "written_why", 4.0)
    tiny.export_gradebook()
    assert tiny.grades("ada")["written_why"] == (None, 4.0, False)
    tiny.hand_in_words("ada", "Because of the sum.")
    tiny.export_gradebook()
    assert tiny.grades("ada")["written_why"] == (None, 4.0, True)


def test_what_is_not_what_was_graded_is_said(
    tiny: TinyCourse, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny.hand_in_words("ada", "Because.")
    tiny.hand_in("ada")
    assert tiny.export_gradebook()[1].startswith("0 notebooks")
    assert "nobody can grade their written answers: 1: ada" in capsys.readouterr().err
    assert tiny.grades("ada")["written_why"] == (None, None, True)

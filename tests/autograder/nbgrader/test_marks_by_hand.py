"""What a person does in the gradebook comes to the exports: points, changed scores, who waits, due
times.
"""

from __future__ import annotations

import pytest
from nbgrader_course import TinyCourse, result_for

from autograder.nbgrader.gradebook import open_gradebook
from autograder.records.results import write_result

STUDENTS = ("ada", "ben", "cay")
LEFT_BLANK = ("cay",)


def test_the_mark_is_out_of_all_points(
    graded_class: TinyCourse, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = graded_class.exported()
    assert [
        (rows[s]["written"], rows[s]["total"], rows[s]["max"], rows[s]["status"])
        for s in STUDENTS
    ] == [
        ("2.5", "6.5", "10", "graded"),
        ("0", "", "10", "waits for a person"),
        ("0", "4", "10", "graded"),
    ]
    assert (
        "without a mark, waits for a person: 1: ben (`--provisional` exports the points so far)"
        in capsys.readouterr().err
    )
    assert graded_class.exported(provisional=True)["ben"]["total"] == "4"


def test_a_score_that_a_person_changed_stands_for_the_tests(
    graded_class: TinyCourse,
) -> None:
    with open_gradebook(graded_class.course) as gradebook:
        grade = gradebook.find_grade("check_half", "tiny", "tiny", "ada")
        grade.manual_score, grade.extra_credit = 3.0, 0.5
        gradebook.db.commit()
    ada = graded_class.exported()["ada"]
    assert (ada["half"], ada["written"], ada["total"]) == ("3", "3", "9")
    assert ada["note"] == "half: 3 by a person; 0.5 of extra credit"


def test_a_gradebook_older_than_the_results_is_said(
    graded_class: TinyCourse, capsys: pytest.CaptureFixture[str]
) -> None:
    write_result(graded_class.root / "results", result_for("ada", half=2.0))
    assert graded_class.exported()["ada"]["total"] == "7.5"
    assert "graded since gradebook.db was filled: 1: ada" in capsys.readouterr().err


def test_without_a_gradebook_everybody_waits(graded_class: TinyCourse) -> None:
    (graded_class.root / "gradebook.db").unlink()
    rows = graded_class.exported()
    assert {row["status"] for row in rows.values()} == {"waits for a person"}
    assert rows["ada"]["note"] == "waits: written answers"


def test_due_times_and_extensions_of_the_gradebook_count(
    graded_class: TinyCourse,
) -> None:
    (graded_class.root / "course.toml").write_text(
        '[course]\nname = "Tiny Course"\n[late]\npolicy = "zero"\n'
    )
    for student in STUDENTS:
        graded_class.hand_in(student, at="2026-03-02 10:00:00 UTC")
    with open_gradebook(graded_class.course) as gradebook:
        gradebook.update_or_create_assignment("tiny", duedate="2026-03-02 09:00:00 UTC")
        gradebook.grant_extension("tiny", "cay", minutes=60)
    rows = graded_class.exported()
    assert [
        (rows[s]["minutes_late"], rows[s]["total_after_late"]) for s in ("ada", "cay")
    ] == [
        ("60", "0"),
        ("0", "4"),
    ]


def test_the_gradebook_learns_people_due_times_and_extensions(
    graded_class: TinyCourse,
) -> None:
    (graded_class.root / "students.csv").write_text(
        "id,name,email\nada,Ada Roe,ada@example.org\nben,Ben Lee,\nzoe,Zoe Marie Lee,\n",
        encoding="utf-8",
    )
    settings = (
        '[course]\nname = "Tiny Course"\n[late]\npolicy = "zero"\n[due]\ntiny = "2026-03-02 '
        '09:00 UTC"\n'
    )
    (graded_class.root / "course.toml").write_text(
        f"{settings}[extensions.tiny]\nben = 2\n"
    )
    for student in STUDENTS:
        graded_class.hand_in(student, at="2026-03-02 10:00:00 UTC")
    course = graded_class.course
    for _ in range(2):
        graded_class.export_gradebook()
        with open_gradebook(course) as gradebook:
            students = {
                s.id: (s.first_name, s.last_name, s.email) for s in gradebook.students
            }
            late = {
                s.student_id: s.total_seconds_late
                for s in gradebook.assignment_submissions("tiny")
            }
        assert students["ada"] == ("Ada", "Roe", "ada@example.org")
        assert students["zoe"] == ("Zoe Marie", "Lee", None)
        assert late == {"ada": 3600.0, "ben": 0.0, "cay": 3600.0}
    rows = graded_class.exported()
    assert [rows[s]["minutes_late"] for s in ("ada", "ben", "cay")] == ["60", "0", "60"]
    assert rows["zoe"]["status"] == "handed in nothing"

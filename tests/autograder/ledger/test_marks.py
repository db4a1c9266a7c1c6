"""Whose mark is whose: old results, groups, work that came by another's id."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from downloaded import exported, grade, marks, take_in

from autograder.basics.errors import KitError
from autograder.course import Course, load_course
from autograder.reporting.marks_commands import (
    ExportRequest,
    export_command,
    report_command,
    totals_command,
)


@pytest.fixture
def course(tmp_path: Path) -> Course:
    (tmp_path / "course.toml").write_text("", encoding="utf-8")
    for name in ("m1", "m2"):
        (tmp_path / "source" / name).mkdir(parents=True)
        (tmp_path / "source" / name / f"{name}.py").write_text("", encoding="utf-8")
    return load_course(tmp_path)


def put(course: Course, folder: str, points: float) -> None:
    path = course.submitted / folder / "m1" / "m1.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"points": points}), encoding="utf-8")


def test_every_name_that_a_folder_can_have_has_a_mark(course: Course) -> None:
    names = [
        "O\u2019Neil, Ann",
        "Zoe\u0308",
        "ana&bob",
        "group #3",
        "a:b",
        "x" * 90,
        "Lee \U0001f600",
        ".ada",
        "a\nb",
    ]
    for points, name in enumerate(names, 1):
        put(course, name, points)
    grade(course, "m1")
    rows = exported(course, "m1", "csv")
    assert sorted(int(row["total"]) for row in rows) == list(range(1, 10))
    assert {row["status"] for row in rows} == {"graded"}
    assert {row["student"] for row in rows} >= set(names[:8])


GROUPS = {
    "Red_17_assignsubmission_file/m1.ipynb": 4.0,
    "Blue_18_assignsubmission_file/m1.ipynb": 9.0,
}
WORKSHEET = """Identifier,Full name,Email address,Status,Group,Grade,Maximum grade,Last modified (grade)
Participant 17,Person One,one@example.org,-,Blue,,1000.00,-
Participant 18,Person Two,two@example.org,-,Red,,1000.00,-
Participant 19,Person Three,three@example.org,-,Red,,1000.00,-
"""


def test_a_group_has_one_result_and_each_member_the_mark_and_the_page(
    course: Course, tmp_path: Path
) -> None:
    sheet = tmp_path / "worksheet.csv"
    sheet.write_text(WORKSHEET, encoding="utf-8")
    take_in(course, "m1", "moodle", GROUPS)
    grade(course, "m1")
    assert marks(course, "m1") == {
        "Blue_18": "9",
        "Red_17": "4",
    }  # who is in them is not known yet
    filled = exported(course, "m1", "moodle", sheet)
    assert {row["Identifier"]: row["Grade"] for row in filled} == {
        "Participant 17": "9",
        "Participant 18": "4",
        "Participant 19": "4",
    }
    assert marks(course, "m1") == {
        "Person One_17": "9",
        "Person Two_18": "4",
        "Person Three_19": "4",
    }
    assert sorted(path.name for path in (course.results / "m1").iterdir()) == [
        "Blue_18.json",
        "Red_17.json",
    ]
    list(report_command(course, course.assignment("m1"), course.results, print))
    pages = sorted(path.parts[-3] for path in course.feedback.glob("*/m1/m1.html"))
    assert pages == ["Person One_17", "Person Three_19", "Person Two_18"]
    page = (course.feedback / "Person Three_19/m1/m1.html").read_text(encoding="utf-8")
    assert "Feedback for <bdi>Person Three_19</bdi>" in page
    assert "Person Two_18" not in page
    request = ExportRequest(
        course,
        course.assignment("m1"),
        course.results,
        "moodle-feedback",
        tmp_path / "pages.zip",
    )
    list(export_command(request, print))
    assert sorted(zipfile.ZipFile(tmp_path / "pages.zip").namelist()) == [
        f"{name}_{number}_assignsubmission_file_/m1.html"
        for name, number in (
            ("Person One", 17),
            ("Person Three", 19),
            ("Person Two", 18),
        )
    ]


@pytest.mark.parametrize(
    ("default_group", "class_list"), [(True, False), (False, True)]
)
def test_a_number_that_may_be_a_groups_goes_to_no_participant(
    course: Course, tmp_path: Path, default_group: bool, class_list: bool
) -> None:
    """`Red_17` without a worksheet: participant 17 is somebody else."""
    if class_list:
        (course.root / "students.csv").write_text(
            "id,name\ns1,Person One\n", encoding="utf-8"
        )
    extra = (
        {"Default group_assignsubmission_file/m1.ipynb": 1.0} if default_group else {}
    )
    take_in(course, "m1", "moodle", {**GROUPS, **extra})
    grade(course, "m1")
    list(report_command(course, course.assignment("m1"), course.results, print))
    said: list[str] = []
    for format_ in ("moodle", "moodle-feedback"):
        request = ExportRequest(
            course, course.assignment("m1"), course.results, format_, tmp_path / format_
        )
        list(export_command(request, said.append))
    assert "Participant" not in (tmp_path / "moodle").read_text(encoding="utf-8")
    assert zipfile.ZipFile(tmp_path / "moodle-feedback").namelist() == []
    assert sum("in a group assignment these are groups: " in line for line in said) == 2


def test_a_group_on_canvas_gets_its_page_once(course: Course, tmp_path: Path) -> None:
    (course.root / "students.csv").write_text(
        "id,canvas,group\ns1,101,Red\ns2,102,Red\ns3,103,\n", encoding="utf-8"
    )
    take_in(
        course,
        "m1",
        "canvas",
        {"red_101_9001_m1.ipynb": 4.0, "blue_103_9003_m1.ipynb": 5.0},
    )
    grade(course, "m1")
    assert marks(course, "m1") == {"s1": "4", "s2": "4", "s3": "5"}
    list(report_command(course, course.assignment("m1"), course.results, print))
    request = ExportRequest(
        course,
        course.assignment("m1"),
        course.results,
        "canvas-feedback",
        tmp_path / "pages.zip",
    )
    list(export_command(request, print))
    assert sorted(zipfile.ZipFile(tmp_path / "pages.zip").namelist()) == [
        "blue_103_9003_m1.html",
        "red_101_9001_m1.html",
    ]


def test_a_group_on_canvas_that_no_list_tells_of_is_said(
    course: Course, tmp_path: Path
) -> None:
    take_in(
        course,
        "m1",
        "canvas",
        {"red_101_9001_m1.ipynb": 4.0, "doejane_103_9003_m1.ipynb": 5.0},
    )
    grade(course, "m1")
    sheet = tmp_path / "gradebook.csv"
    rows = ['"Roe, Rita",101,rroe,A,', '"Doe, Jane",103,jdoe,A,']
    sheet.write_text(
        "\n".join(["Student,ID,SIS Login ID,Section,m1 (4)", ",,,,", *rows]),
        encoding="utf-8",
    )
    request = ExportRequest(
        course, course.assignment("m1"), course.results, "canvas", roster=sheet
    )
    said: list[str] = []
    list(export_command(request, said.append))
    (line,) = (line for line in said if "the group's name" in line)
    assert line.startswith("the download calls Roe, Rita (canvas 101) red: ")


def test_work_that_came_by_anothers_id_counts_for_nobody_until_it_is_collected_again(
    course: Course,
) -> None:
    students = course.root / "students.csv"
    students.write_text("id,name\ns1,John Doe\n", encoding="utf-8")
    for name in ("m1", "m2"):
        take_in(course, name, "canvas", {f"doejohn_102_9002_{name}.ipynb": 4.0})
        grade(course, name)
        assert marks(course, name) == {"s1": "4"}
    students.write_text("id,name,canvas\ns1,John Doe,103\n", encoding="utf-8")
    take_in(
        course,
        "m2",
        "canvas",
        {"doejohn_102_9002_m2.ipynb": 4.0, "doejohn_103_9003_m2.ipynb": 5.0},
    )
    grade(course, "m2")
    assert marks(course, "m2") == {"s1": "5", "doejohn_102": "4"}
    (row,) = (
        row for row in exported(course, "m1", "csv") if row["status"] == "withdrawn"
    )
    assert row["note"].startswith(
        "its submission was handed in by canvas 102, who is doejohn_102, so its 4 of 1000 do not"
    )


def test_totals_say_where_moodles_numbers_split_a_student(
    course: Course, tmp_path: Path
) -> None:
    for first, name in ((500, "m1"), (700, "m2")):
        files = {
            f"Person {n}_{first + n}_assignsubmission_file/{name}.ipynb": 100.0 * n
            for n in (1, 2)
        }
        take_in(course, name, "moodle", files)
        grade(course, name)
    said: list[str] = []
    rows = list(
        totals_command(course, course.results, None, said.append, provisional=False)
    )
    assert len("\n".join(rows).splitlines()) == 5
    assert any(
        line.startswith(
            "Moodle numbers people anew in each assignment, so these may stand here once"
        )
        for line in said
    )
    said.clear()
    for first, name in ((500, "m1"), (700, "m2")):  # the worksheets' emails join them
        sheet = tmp_path / "worksheet.csv"
        people = [
            f"Participant {first + n},Person {n},p{n}@example.org" for n in (1, 2)
        ]
        sheet.write_text(
            "\n".join(["Identifier,Full name,Email address", *people]), encoding="utf-8"
        )
        files = {
            f"Person {n}_{first + n}_assignsubmission_file/{name}.ipynb": 100.0 * n
            for n in (1, 2)
        }
        take_in(course, name, "moodle", files, sheet)
    rows = "\n".join(
        totals_command(course, course.results, None, said.append, provisional=False)
    ).splitlines()
    assert [row.split(",")[4:8] for row in rows[1:]] == [
        ["10", "10", "", "10"],
        ["20", "20", "", "20"],
    ]
    assert said == []


def test_brightspaces_rows_are_found_without_the_number_of_the_download(
    course: Course, tmp_path: Path
) -> None:
    """By name, of two namesakes by the email in the class list; the row of nobody here gets
    nothing.
    """
    (tmp_path / "students.csv").write_text(
        "id,brightspace,email\ns3,13,john3@example.org\n", encoding="utf-8"
    )
    folder = "{}-67890 - {} - Oct 1, 2026 1015 PM/m1.ipynb"
    people = {"11": ("Ada Lovelace", 7.0), "13": ("John Doe", 9.0)}
    take_in(
        course,
        "m1",
        "brightspace",
        {folder.format(number, name): pts for number, (name, pts) in people.items()},
    )
    grade(course, "m1")
    grades = tmp_path / "grades.csv"
    grades.write_text(
        "OrgDefinedId,Username,Last Name,First Name,Email,m1 Points Grade <Numeric MaxPoints:1000>,"
        "End-of-Line Indicator\n"
        "#1,#ada,Lovelace,Ada,ada@example.org,,#\n"
        "#2,#john2,Doe,John,john2@example.org,,#\n"
        "#3,#john3,Doe,John,john3@example.org,4,#\n",
        encoding="utf-8",
    )
    rows = exported(course, "m1", "brightspace", grades)
    assert [list(row.values()) for row in rows] == [
        ["#1", "#ada", "7", "#"],
        ["#3", "#john3", "9", "#"],
    ]
    with pytest.raises(KitError, match="give the platform's own file as `--roster`"):
        exported(course, "m1", "brightspace")


def test_a_group_of_the_class_list_hands_in_once_on_brightspace(
    course: Course, tmp_path: Path
) -> None:
    (tmp_path / "students.csv").write_text(
        "id,group,email\ns1,Team Red,one@example.org\ns2,Team Red,two@example.org\n",
        encoding="utf-8",
    )
    take_in(
        course,
        "m1",
        "brightspace",
        {"77-67890 - Team Red - Oct 1, 2026 1015 PM/m1.ipynb": 5.0},
    )
    grade(course, "m1")
    grades = tmp_path / "grades.csv"
    grades.write_text(
        "Username,Email,m1 Points Grade <Numeric MaxPoints:1000>,End-of-Line Indicator\n"
        "#u1,one@example.org,,#\n#u2,two@example.org,,#\n#u3,three@example.org,,#\n",
        encoding="utf-8",
    )
    rows = exported(course, "m1", "brightspace", grades)
    assert [list(row.values())[:2] for row in rows] == [["#u1", "5"], ["#u2", "5"]]


def notes(course: Course) -> dict[str, str]:
    return {row["student"]: row["note"] for row in exported(course, "m1", "csv")}


def test_a_person_with_two_folders_is_told_at_the_second(course: Course) -> None:
    (course.root / "students.csv").write_text(
        "id,name,email\ns1,Ada Lovelace,ada@example.org\ns2,Bob,bob@example.org\n",
        encoding="utf-8",
    )
    put(course, "ada@example.org", 3)
    put(course, "s1", 4)
    put(course, "s2", 5)
    grade(course, "m1")
    assert notes(course) == {
        "ada@example.org": "",
        "s1": "s1 stands here twice: join the folders in submitted/",
        "s2": "",
    }


def test_a_later_upload_that_is_no_notebook_is_told_beside_the_mark(
    course: Course,
) -> None:
    take_in(course, "m1", "canvas", {"doejohn_102_9002_m1.ipynb": 4.0})
    grade(course, "m1")
    others: dict[str, float | str] = {
        "roeann_103_9004_m1.ipynb": 5.0,
        "doejohn_102_9003_m1.html": "<p>",
    }
    take_in(course, "m1", "canvas", others)
    grade(course, "m1")
    (john, ann) = exported(course, "m1", "csv")
    assert (john["total"], ann["total"], ann["note"]) == ("4", "5", "")
    assert john["note"] == (
        "came later, and was not taken: doejohn_102_9003_m1.html: a web page, not a notebook: ask "
        "for the .ipynb file"
    )

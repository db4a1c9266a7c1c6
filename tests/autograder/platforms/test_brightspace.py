"""Marks into Brightspace's file of grades, and pages back into its folders. Titles, `#` before ids
and the last column are as its exports have them; what an import takes is described at
community.d2l.com, as read on 2026-11-29.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from platform_marks import NOTHING, called, rows

from autograder.basics.tables import read_table
from autograder.intake.collected import Arrival
from autograder.ledger import Identity
from autograder.marks.marks import Mark, mark_from_result
from autograder.outputs.difference import Difference
from autograder.outputs.feedback_archive import pack_feedback
from autograder.platforms.brightspace import Grades, feedback_name, read_grades
from autograder.records.model import Result

TITLE = (
    "attention Points Grade <Numeric MaxPoints:20 Weight:16.66666667 Category:Week 1 "
    "CategoryWeight:10>"
)
GRADES = (
    f"\ufeffOrgDefinedId,Username,Last Name,First Name,Email,{TITLE},Quiz Points Grade <Numeric "
    "MaxPoints:5>,"
    "Final Points Grade <Calculated MaxPoints:100>,End-of-Line Indicator\r\n"
    "#1001,#ada,Lovelace,Ada,ada@example.org,,4,,#\r\n"
    "#1002,#max,Roe,Max,max@example.org,3,,,#\r\n"
    "#1003,#ira,Poe,Ira,ira@example.org,11,,,#\r\n"
    "#1004,#eve,Day,Eve,eve@example.org,7.5,,,#\r\n"
    "#1005,#zoe,Lee,Zoe,zoe@example.org,2,,,#\r\n"
)


@pytest.fixture
def ada(plain: Result) -> Mark:
    """11 of 20, nobody waits."""
    return mark_from_result(plain)


def grades(
    text: str = GRADES, column: str = "", assignment: str = "attention"
) -> Grades:
    return read_grades(*read_table(text.encode()), assignment, column)


def filled(
    marks: list[Mark], students: Mapping[int, str], text: str = GRADES, column: str = ""
) -> tuple[list[list[str]], Difference]:
    made, difference = grades(text, column).fill(marks, students)
    return rows(made), difference


def test_only_the_keys_and_what_changes_are_imported(ada: Mark) -> None:
    table, _ = filled(
        [ada, called(ada, "eve", 12.25), called(ada, "ira")],
        {1: "ada", 3: "ira", 4: "eve"},
    )
    assert table == [
        ["OrgDefinedId", "Username", TITLE, "End-of-Line Indicator"],
        ["#1001", "#ada", "11", "#"],
        ["#1004", "#eve", "12.25", "#"],
    ]


def test_the_difference_says_what_becomes_of_everybody(ada: Mark) -> None:
    marks = [
        ada,
        called(ada, "ira"),
        called(ada, "eve", 21.5),
        called(ada, "lost"),
        NOTHING,
    ]
    _, difference = filled(marks, {1: "ada", 2: "bob", 3: "ira", 4: "eve"})
    assert difference.lines("Brightspace") == [
        "Brightspace: 2 to get a mark, 3 to keep what is there, 0 to be skipped there",
        "  Ada Lovelace (1001) gets 11 (had none)",
        "  Eve Day (1004) gets 21.5 (had 7.5): cut to 20 unless *Can Exceed* is set in Brightspace",
        "  Max Roe (1002) keeps 3: handed in nothing",
        "  Ira Poe (1003) keeps 11: the same as here",
        "  Zoe Lee (1005) keeps 2: nobody here",
        "  lost has a mark and is not known there",
    ]


def test_people_are_known_by_ids_without_their_sign_and_by_name() -> None:
    assert grades().rows[1] == Identity(
        (), ("1001", "ada", "ada@example.org"), "Ada Lovelace"
    )


def test_a_file_with_usernames_alone(ada: Mark) -> None:
    text = f"Username,{TITLE},End-of-Line Indicator\nada,,#\n,,#\n"
    table, difference = filled([ada], {1: "ada"}, text)
    assert table == [["Username", TITLE, "End-of-Line Indicator"], ["ada", "11", "#"]]
    assert [str(change) for change in difference.changes] == ["ada gets 11 (had none)"]


@pytest.mark.parametrize("column", ["Quiz", "Quiz Points Grade <Numeric MaxPoints:5>"])
def test_another_grade_item_by_its_name_or_its_title(column: str) -> None:
    read = grades(column=column)
    assert (read.title, read.maximum) == (
        "Quiz Points Grade <Numeric MaxPoints:5>",
        "5",
    )


def test_other_points_there_are_refused(ada: Mark) -> None:
    with pytest.raises(
        ValueError,
        match="is out of 5 points in Brightspace, and the marks here are out of 20",
    ):
        filled([ada], {1: "ada"}, column="Quiz")


def test_an_item_that_is_not_there_is_made_by_the_import(ada: Mark) -> None:
    text = (
        "OrgDefinedId,Username,Quiz Points Grade <Numeric MaxPoints:5>,End-of-Line "
        "Indicator\n#1001,#ada,4,#\n"
    )
    table, difference = filled([ada], {1: "ada"}, text)
    assert table[0] == [
        "OrgDefinedId",
        "Username",
        "attention Points Grade <Numeric MaxPoints:20>",
        "End-of-Line Indicator",
    ]
    assert table[1] == ["#1001", "#ada", "11", "#"]
    assert difference.notes == (
        "no grade item of Brightspace is called attention, so Brightspace will offer to make "
        "one; `--column` names "
        "another of: Quiz",
    )


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        (
            GRADES,
            "Week 9",
            "it has no points of a grade item 'Week 9'; there are: attention, Quiz, Final",
        ),
        (GRADES, "Final", "Brightspace works out the points of 'Final' itself"),
        (
            "Student,ID,attention\nAda,1,\n",
            "",
            "it has no column OrgDefinedId or Username",
        ),
        (
            GRADES.replace("Quiz Points", "attention Points"),
            "",
            "2 grade items are called 'attention'",
        ),
        (
            GRADES.replace(TITLE, "attention Weighted Numerator"),
            "",
            "it has 'attention' without its points",
        ),
        (
            GRADES.replace(TITLE, "attention Grade Symbol"),
            "attention",
            "it has 'attention' without its points",
        ),
    ],
)
def test_what_is_refused(text: str, column: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        grades(text, column)


def test_a_username_that_a_spreadsheet_would_calculate_is_text(ada: Mark) -> None:
    text = f"Username,{TITLE},End-of-Line Indicator\n=1+1,,#\n"
    table, _ = filled([ada], {1: "ada"}, text)
    assert table[1] == ["'=1+1", "11", "#"]


def test_pages_go_back_into_the_folders_of_the_download(
    ada: Mark, tmp_path: Path
) -> None:
    folder = "12345-67890 - Ada Lovelace - Oct 1, 2026 1015 PM"
    by_download = replace(
        ada,
        student="ada",
        arrival=Arrival("brightspace", "12345", "Ada", f"week1/{folder}/x.ipynb"),
    )
    for student in ("ada", "max"):
        (tmp_path / student / "attention").mkdir(parents=True)
        (tmp_path / student / "attention" / "attention.html").write_text(
            f"page of {student}", encoding="utf-8"
        )
    packed, left_out = pack_feedback(
        [by_download, called(ada, "max")], "attention", tmp_path, feedback_name
    )
    with zipfile.ZipFile(io.BytesIO(b"".join(packed))) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {
            f"{folder}/attention.html": b"page of ada"
        }
    assert left_out == ("max",)

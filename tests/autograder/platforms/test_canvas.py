"""Marks into Canvas's gradebook. The format is that of canvas-lms, `lib/gradebook_exporter.rb`
(what it writes) and `lib/gradebook_importer.rb` (what it takes), as read on 2026-11-29.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from platform_marks import NOTHING, arrived, called, rows

from autograder.basics.tables import read_table
from autograder.marks.marks import Mark, mark_from_result
from autograder.outputs.difference import Difference
from autograder.platforms.canvas import canvas_csv
from autograder.platforms.canvas_gradebook import Gradebook, read_gradebook
from autograder.records.model import Result

ROSTER = (
    "\ufeffStudent,ID,SIS User ID,SIS Login ID,Root Account,Section,attention (4711),Quiz "
    "(12),Final Score\r\n"
    ",,,,,,Manual Posting,,\r\n"
    "    Points Possible,,,,,,20.00,5,(read only)\r\n"
    '"Lovelace, Ada",101,s101,ada,x.example.org,A,,,\r\n'
    '"Nobody, Else",102,s102,nobody,x.example.org,A,3.00,,\r\n'
    "=HYPERLINK(1),103,s103,x103,x.example.org,B,7.00,,\r\n"
    '"Lee, Max",104,s104,max,x.example.org,B,EX,,\r\n'
    '"Roe, Zoe",105,s105,zoe,x.example.org,B,N/A,,\r\n'
    '"Poe, Ira",106,s106,ira,x.example.org,B,11.00,,\r\n'
    '"Student, Test",999,,test,x.example.org,B,,,\r\n'
)


@pytest.fixture
def ada(plain: Result) -> Mark:
    """11 of 20, nobody waits."""
    return mark_from_result(plain)


def gradebook(
    text: str = ROSTER, assignment: str = "attention", column: str = ""
) -> Gradebook:
    return read_gradebook(*read_table(text.encode()), assignment, column)


def filled(
    marks: list[Mark], students: Mapping[int, str], **options: str
) -> tuple[list[list[str]], Difference]:
    text, difference = gradebook(**options).fill(marks, students)
    return rows(text), difference


def test_its_people_and_their_columns_are_kept(ada: Mark) -> None:
    table, _ = filled([ada, called(ada, "x103", 20.0)], {3: "ada", 5: "x103"})
    assert table == [
        [
            "Student",
            "ID",
            "SIS User ID",
            "SIS Login ID",
            "Root Account",
            "Section",
            "attention (4711)",
        ],
        ["    Points Possible", "", "", "", "", "", "20.00"],
        ["Lovelace, Ada", "101", "s101", "ada", "x.example.org", "A", "11"],
        ["'=HYPERLINK(1)", "103", "s103", "x103", "x.example.org", "B", "20"],
    ]


def test_the_difference_says_what_becomes_of_everybody(ada: Mark) -> None:
    marks = [
        ada,
        *(called(ada, student) for student in ("x103", "max", "zoe", "ira", "lost")),
        NOTHING,
    ]
    whose = {3: "ada", 4: "bob", 5: "x103", 6: "max", 7: "zoe", 8: "ira"}
    table, difference = filled(marks, whose)
    assert [row[1] for row in table[2:]] == ["101", "103", "106"]
    assert difference.lines("Canvas") == [
        "Canvas: 2 to get a mark, 3 to keep what is there, 2 to be skipped there",
        "  Lee, Max (104) will be skipped and keeps EX (here 11): "
        "they are excused in Canvas: end that there where the mark should count",
        "  Roe, Zoe (105) will be skipped and keeps N/A (here 11): Canvas does not assign this "
        "assignment to them",
        "  Lovelace, Ada (101) gets 11 (had none)",
        "  =HYPERLINK(1) (103) gets 11 (had 7.00)",
        "  Nobody, Else (102) keeps 3.00: handed in nothing",
        "  Poe, Ira (106) keeps 11.00: the same as here",
        "  Student, Test (999) keeps none: nobody here",
        "  lost has a mark and is not known there",
        "students see the marks in 'attention (4711)' only when you post them in Canvas",
    ]


def test_first_and_last_name_may_have_columns_of_their_own(ada: Mark) -> None:
    text = "LastName,FirstName,ID,SIS Login ID,Section,attention (4711)\nLovelace,Ada,101,ada,A,\n"
    table, difference = filled([ada], {1: "ada"}, text=text)
    assert table[2] == ["Lovelace", "Ada", "101", "ada", "A", "11"]
    assert difference.changes[0].person == "Ada Lovelace (101)"


def test_semicolons_and_commas_in_numbers_stay(ada: Mark) -> None:
    text = (
        "Student;ID;SIS Login ID;Section;attention (4711)\n    Points Possible;;;;20,00\n"
        "Ada Lovelace;101;ada;A;10,50\nMax Lee;104;max;A;11,00\n"
    )
    made, difference = gradebook(text).fill(
        [ada, called(ada, "max")], {2: "ada", 3: "max"}
    )
    assert made.splitlines()[2] == "Ada Lovelace;101;ada;A;11"
    assert [change.outcome for change in difference.changes] == ["gets", "keeps"]


def test_an_assignment_with_another_title_in_canvas(ada: Mark) -> None:
    assert gradebook(assignment="week2", column="attention").title == "attention (4711)"
    assert gradebook(assignment="week2", column="attention (4711)").column == 6
    table, difference = filled([ada], {3: "ada"}, assignment="week2")
    assert (table[0][-1], table[2][-1]) == ("week2", "11")
    assert difference.notes == (
        "no column of Canvas is called week2, so Canvas will offer to make one; "
        "`--column` names another of: attention (4711), Quiz (12)",
    )
    with pytest.raises(
        ValueError,
        match=r"no column 'week3'; there are: attention \(4711\), Quiz \(12\)",
    ):
        gradebook(assignment="week2", column="week3")


def test_two_columns_of_one_title_are_not_guessed(ada: Mark) -> None:
    text = (
        "Student,ID,SIS Login ID,Section,attention (1),attention (2)\nAda,101,ada,A,,\n"
    )
    with pytest.raises(ValueError, match="2 columns are called 'attention'"):
        gradebook(text)


@pytest.mark.parametrize(
    ("title", "possible"),
    [
        ("Final Score", "(read only)"),
        ("Final Score", "(schreibgeschützt)"),
        ("Participation", "(read only)"),
        ("Final Grade of week 2 (12)", "20.00"),
    ],
)
def test_a_column_that_nobody_may_write_is_refused(title: str, possible: str) -> None:
    text = (
        f"Student,ID,SIS Login ID,Section,{title}\n    Points "
        f"Possible,,,,{possible}\nAda,101,ada,A,\n"
    )
    with pytest.raises(
        ValueError, match=re.escape(f"does not let anybody write the column {title!r}")
    ):
        gradebook(text, column=title)


def test_points_that_canvas_has_not_are_not_given_to_it(ada: Mark) -> None:
    text = (
        "Student,ID,SIS Login ID,Section,attention (4711)\n    Points "
        "Possible,,,,\nAda,101,ada,A,\n"
    )
    table, difference = filled([ada], {2: "ada"}, text=text)
    assert (table[1][-1], table[2][-1]) == ("", "11")
    assert difference.notes == (
        "'attention (4711)' has no points in Canvas, and the marks here are out of 20",
    )


def test_a_row_of_muted_columns_is_nobodys(ada: Mark) -> None:
    text = (
        "Student,ID,SIS Login ID,Section,attention (4711)\n, ,,,Muted\n    Points "
        "Possible,,,,20.00\nAda,101,ada,A,\n"
    )
    table, difference = filled([ada], {3: "ada"}, text=text)
    assert [row[0] for row in table] == ["Student", "    Points Possible", "Ada"]
    assert [change.person for change in difference.changes] == ["Ada (101)"]


def test_marks_that_canvas_hides_from_instructors_are_not_imported() -> None:
    text = ROSTER.replace(
        "Manual Posting", "Manual Posting (scores hidden from instructors)"
    )
    with pytest.raises(ValueError, match="imports none before"):
        gradebook(text)


def test_other_points_in_canvas_are_refused(ada: Mark) -> None:
    with pytest.raises(
        ValueError, match="5 points in Canvas, and the marks here are out of 20"
    ):
        filled([ada], {3: "ada"}, assignment="week2", column="Quiz")


def test_a_file_of_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match="Canvas"):
        gradebook("name,score\nada,1\n")


# Without a gradebook of Canvas's


def test_a_file_of_our_own_goes_by_its_id_or_takes_the_name_for_the_login(
    ada: Mark,
) -> None:
    text, difference = canvas_csv(
        [ada, arrived(ada, "canvas", "12345", "adalovelace"), NOTHING], "attention"
    )
    assert rows(text) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "attention"],
        ["    Points Possible", "", "", "", "", "20"],
        ["ada", "", "", "ada", "", "11"],
        ["adalovelace", "12345", "", "", "", "11"],
    ]
    assert difference.missing == ()


def test_anonymous_ids_are_no_canvas_ids(ada: Mark) -> None:
    text, difference = canvas_csv(
        [arrived(ada, "canvas-anonymous", "Ab3dE", "anon")], "attention"
    )
    assert (len(rows(text)), difference.missing) == (2, ("anon_Ab3dE",))


def test_a_number_in_a_name_that_canvas_did_not_give_is_no_canvas_id(ada: Mark) -> None:
    text, _ = canvas_csv([called(ada, "student_101")], "attention")
    assert rows(text)[2] == ["student_101", "", "", "student_101", "", "11"]


@pytest.mark.parametrize(
    ("header", "is_canvass"),
    [
        ("Student,ID,Section", True),
        ("LastName,FirstName,ID", True),
        ("ID,Student,Section", False),
        ("Student,Section,Login,ID", False),
        ("Name,ID,Section", False),
    ],
)
def test_a_gradebook_of_canvass_begins_with_names_and_ids(
    header: str, is_canvass: bool
) -> None:
    table, separator = read_table(f"{header},m1\n,,,,\n".encode())
    if is_canvass:
        assert read_gradebook(table, separator, "m1").title == "m1"
        return
    with pytest.raises(ValueError, match=r"it has no columns Student and ID$"):
        read_gradebook(table, separator, "m1")

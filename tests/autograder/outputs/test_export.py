import csv
import io
from dataclasses import replace

import pytest

from autograder.course import Late
from autograder.outputs.export import UnmatchedStudents, export, safe_cell


def rows(text):
    return list(csv.reader(io.StringIO(text)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\n=1"),
        (" =1", "' =1"),
        ("\x00=1", "'=1"),  # what is left after cleaning counts
        ("\x1b[31m=1", "'=1"),
        ("＝1", "'＝1"),
        ("a=1", "a=1"),
        ('say "a, b"', 'say "a, b"'),
        ("", ""),
    ],
)
def test_no_cell_is_a_formula(text, expected):
    assert safe_cell(text) == expected


def test_csv_has_a_row_a_student_and_a_column_a_question(plain, hostile):
    assert rows(export([hostile, plain], "csv")) == [
        ["student", "softmax", "attention", "heads", "total", "max"],
        ["'=cmd|' /C calc'!A0<script>alert(1)</script>redabcdcba[bold]x[/bold]", "1", "", "", "1", "3"],
        ["ada", "2", "6", "3", "11", "20"],
    ]


def test_names_with_quotes_and_newlines_stay_one_cell(plain):
    named = replace(plain, student='x, "y"\nz')
    assert rows(export([named], "csv"))[1][:2] == ['x, "y"\nz', "2"]


def test_csv_shows_no_dust(plain):
    assert rows(export([replace(plain, score=4.000000001)], "csv"))[1][-2:] == ["4", "20"]


def test_lateness_by_the_submissions_own_time(plain):
    late = Late("per_day", penalty_per_day=0.1)
    table = rows(
        export([plain, replace(plain, student="student-002")], "csv", minutes_late={"student-002": 90}, late=late)
    )
    assert table[0][-4:] == ["total", "max", "minutes_late", "total_after_late"]
    assert table[1][-4:] == ["11", "20", "0", "11"]
    assert table[2][-4:] == ["11", "20", "90", "9"]  # 10% of 20


def test_a_row_a_test(hostile):
    table = rows(export([hostile], "tests"))
    assert len(table) == 4
    assert table[1][1:6] == ["softmax", "test_rows_sum_to_one", "passed", "1", "1"]
    assert table[2][3:6] == ["error", "0", "1"]
    assert table[2][6].startswith("<script>alert(1)</script>\nred\n[link](javascript:alert(1))\nabcdcba\n::set-output")
    assert "\x1b" not in export([hostile], "tests")


def test_canvas_without_a_roster_takes_the_name_for_the_login(plain):
    assert rows(export([plain], "canvas")) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "attention"],
        ["    Points Possible", "", "", "", "", "20"],
        ["ada", "", "", "ada", "", "11"],
    ]


ROSTER = (
    "\ufeffStudent,ID,SIS User ID,SIS Login ID,Section,attention (4711),Final Score\r\n"
    "    Points Possible,,,,,20,\r\n"
    '"Lovelace, Ada",101,s101,ada,A,,\r\n'
    '"Nobody, Else",102,s102,nobody,A,,\r\n'
    "=HYPERLINK(1),103,s103,x103,B,,\r\n"
)


def test_canvas_with_a_roster_keeps_its_names_and_ids(plain):
    assert rows(export([plain, replace(plain, student="103", score=20.0)], "canvas", roster=ROSTER)) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "attention (4711)"],
        ["    Points Possible", "", "", "", "", "20"],
        ["Lovelace, Ada", "101", "s101", "ada", "A", "11"],
        ["'=HYPERLINK(1)", "103", "s103", "x103", "B", "20"],
    ]


def test_a_roster_of_something_else_is_refused(plain):
    with pytest.raises(ValueError, match="Canvas"):
        export([plain], "canvas", roster="name,score\nada,1\n")


def test_canvas_finds_the_students_that_its_own_downloads_name(plain):
    roster = 'Student,ID,SIS Login ID,Section\n"Lovelace, Ada",12345,ada,A\n'
    table = export([replace(plain, student="lovelaceada_12345")], "canvas", roster=roster)
    assert rows(table)[2] == ["Lovelace, Ada", "12345", "", "ada", "A", "11"]


def test_students_whom_the_roster_lacks_are_named(plain):
    roster = 'Student,ID\n"Lovelace, Ada",12345\n'
    graded = [replace(plain, student="lovelaceada_12345"), replace(plain, student="nobody_99")]
    with pytest.raises(UnmatchedStudents, match="1 students are not in the roster: nobody_99") as caught:
        export(graded, "canvas", roster=roster)
    assert [row[0] for row in rows(caught.value.text)[2:]] == ["Lovelace, Ada"]


def test_moodle_gets_its_worksheet_back_where_its_download_named_the_students(plain):
    table = export([replace(plain, student="Ada Lovelace_12345")], "moodle")
    assert rows(table) == [["Identifier", "Full name", "Grade"], ["Participant 12345", "Ada Lovelace", "11"]]


def test_moodle_names_people_by_what_they_are_called_here(plain):
    assert rows(export([plain], "moodle")) == [["Username", "attention (Real)"], ["ada", "11"]]
    by_email = export([replace(plain, student="ada@school")], "moodle")
    assert rows(by_email) == [["Email address", "attention (Real)"], ["ada@school", "11"]]


def test_one_assignment_at_a_time(plain):
    with pytest.raises(ValueError, match="one at a time"):
        export([plain, replace(plain, assignment="masks")], "csv")


@pytest.mark.parametrize("format", ["csv", "tests", "canvas", "moodle"])
def test_an_empty_class_is_a_header(format):
    assert len(rows(export([], format))) == (2 if format == "canvas" else 1)

import csv
import io
from dataclasses import replace
from typing import Any

import pytest

from autograder.intake.collected import Arrival
from autograder.model import Result
from autograder.outputs.export import csv_of_students, csv_of_tests, safe_cell
from autograder.outputs.imports import canvas_csv, moodle_csv
from autograder.outputs.late import Lateness
from autograder.outputs.marks import Mark, mark_of
from autograder.roster import Person


def rows(text: str) -> list[list[str]]:
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
def test_no_cell_is_a_formula(text: str, expected: str) -> None:
    assert safe_cell(text) == expected


def named(mark: Mark, student: str, **changes: Any) -> Mark:
    return replace(mark, student=student, **changes)


@pytest.fixture
def ada(plain: Result) -> Mark:
    """11 of 20, nobody waits."""
    return mark_of(plain)


NOTHING = Mark("bob", "handed in nothing", person=Person("bob", "Bob Roe", "bob@example.org", "B", {}))


def test_csv_has_a_row_a_student_and_a_column_a_question(ada: Mark, hostile: Result) -> None:
    assert rows(csv_of_students([mark_of(hostile), ada])) == [
        ["student", "softmax", "attention", "heads", "total", "max", "status", "note"],
        ["'=cmd|' /C calc'!A0<script>alert(1)</script>redabcdcba[bold]x[/bold]", "1", "", "", "1", "20", "graded", ""],
        ["ada", "2", "6", "3", "11", "20", "graded", ""],
    ]


def test_csv_names_who_has_no_mark_and_why(ada: Mark) -> None:
    broken = Mark("eve", "could not be graded", "m1.ipynb: is empty")
    table = rows(csv_of_students([ada, NOTHING, broken]))
    assert table[0] == [
        "student",
        "name",
        "email",
        "section",
        "softmax",
        "attention",
        "heads",
        "total",
        "max",
        "status",
        "note",
    ]
    assert table[2] == ["bob", "Bob Roe", "bob@example.org", "B", "", "", "", "", "20", "handed in nothing", ""]
    assert table[3] == ["eve", "", "", "", "", "", "", "", "20", "could not be graded", "m1.ipynb: is empty"]


def test_who_waits_for_a_person_has_a_total_only_where_it_was_asked_for(ada: Mark) -> None:
    waits = replace(ada, status="waits for a person", note="waits: written_why", max_score=25.0)
    assert rows(csv_of_students([waits])) == [
        ["student", "softmax", "attention", "heads", "written", "total", "max", "status", "note"],
        ["ada", "2", "6", "3", "0", "", "25", "waits for a person", "waits: written_why"],
    ]
    assert rows(csv_of_students([waits], provisional=True))[1][4:7] == ["0", "11", "25"]


def test_names_with_quotes_and_newlines_stay_one_cell(ada: Mark) -> None:
    assert rows(csv_of_students([named(ada, 'x, "y"\nz')]))[1][:2] == ['x, "y"\nz', "2"]


def test_csv_shows_no_dust(ada: Mark) -> None:
    assert rows(csv_of_students([replace(ada, score=4.000000001)]))[1][-4:-2] == ["4", "20"]


def test_lateness_has_columns_and_what_nobody_knows_is_empty(ada: Mark) -> None:
    late = replace(ada, late=Lateness(90.0), total=9.0)
    unknown = named(
        ada, "bea", late=Lateness(None, "no time", unreadable=True), total=None, status="time cannot be read"
    )
    table = rows(csv_of_students([late, unknown], late=True))
    assert table[0][-6:] == ["total", "max", "minutes_late", "total_after_late", "status", "note"]
    assert table[1][-6:-2] == ["11", "20", "90", "9"]
    assert table[2][-6:-1] == ["11", "20", "", "", "time cannot be read"]


def test_a_row_a_test(hostile: Result) -> None:
    table = rows("".join(csv_of_tests([mark_of(hostile), NOTHING])))
    assert len(table) == 5
    assert table[1][1:6] == ["softmax", "test_rows_sum_to_one", "passed", "1", "1"]
    assert table[2][3:6] == ["error", "0", "1"]
    assert table[2][6].startswith("<script>alert(1)</script>\nred\n[link](javascript:alert(1))\nabcdcba\n::set-output")
    assert "\x1b" not in "".join(csv_of_tests([mark_of(hostile)]))
    assert table[4] == ["bob", "", "", "handed in nothing", "", "", "", ""]


# Canvas


def of_canvas(mark: Mark, number: str, name: str = "x") -> Mark:
    return replace(
        mark, student=f"{name}_{number}", arrival=Arrival("canvas", number, name, f"{name}_{number}_9_a.ipynb")
    )


def test_canvas_without_a_roster_goes_by_its_id_or_takes_the_name_for_the_login(ada: Mark) -> None:
    made = canvas_csv([ada, of_canvas(ada, "12345", "adalovelace"), NOTHING], "attention")
    assert rows(made.text) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "attention"],
        ["    Points Possible", "", "", "", "", "20"],
        ["ada", "", "", "ada", "", "11"],
        ["adalovelace", "12345", "", "", "", "11"],
    ]
    assert made.missing == ()


ROSTER = (
    "\ufeffStudent,ID,SIS User ID,SIS Login ID,Root Account,Section,attention (4711),Quiz (12),Final Score\r\n"
    "    Points Possible,,,,,,20,5,(read only)\r\n"
    '"Lovelace, Ada",101,s101,ada,x.example.org,A,,,\r\n'
    '"Nobody, Else",102,s102,nobody,x.example.org,A,,,\r\n'
    "=HYPERLINK(1),103,s103,x103,x.example.org,B,,,\r\n"
).encode()


def test_canvas_with_a_roster_keeps_its_people_and_their_columns(ada: Mark) -> None:
    made = canvas_csv([ada, named(ada, "103", total=20.0)], "attention", ROSTER)
    assert rows(made.text) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Root Account", "Section", "attention (4711)"],
        ["    Points Possible", "", "", "", "", "", "20"],
        ["Lovelace, Ada", "101", "s101", "ada", "x.example.org", "A", "11"],
        ["'=HYPERLINK(1)", "103", "s103", "x103", "x.example.org", "B", "20"],
    ]
    assert (made.missing, made.said) == ((), ())


def test_canvas_with_semicolons_gets_semicolons(ada: Mark) -> None:
    text = ROSTER.decode().replace('"Lovelace, Ada"', "Ada Lovelace").replace('"Nobody, Else"', "N").replace(",", ";")
    made = canvas_csv([of_canvas(ada, "101", "lovelaceada")], "attention", text.encode())
    assert made.text.splitlines()[2] == "Ada Lovelace;101;s101;ada;x.example.org;A;11"


def test_an_assignment_with_another_title_in_canvas(ada: Mark) -> None:
    assert rows(canvas_csv([ada], "week2", ROSTER, column="attention").text)[0][-1] == "attention (4711)"
    assert rows(canvas_csv([ada], "week2", ROSTER, column="attention (4711)").text)[2][-1] == "11"
    unnamed = canvas_csv([ada], "week2", ROSTER)
    assert rows(unnamed.text)[0][-1] == "week2"
    assert unnamed.said == (
        "no column of Canvas is called week2, so Canvas will offer to make one; "
        "`--column` names another of: attention (4711), Quiz (12)",
    )
    with pytest.raises(ValueError, match=r"no column 'week3'; there are: attention \(4711\), Quiz \(12\)"):
        canvas_csv([ada], "week2", ROSTER, column="week3")


@pytest.mark.parametrize(
    ("column", "why"),
    [("Quiz", "5 points in Canvas, and the marks here are out of 20"), ("Final Score", "does not let anybody write")],
)
def test_a_column_that_cannot_take_the_marks_is_refused(ada: Mark, column: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        canvas_csv([ada], "week2", ROSTER, column=column)


def test_a_roster_of_something_else_is_refused(ada: Mark) -> None:
    with pytest.raises(ValueError, match="Canvas"):
        canvas_csv([ada], "attention", b"name,score\nada,1\n")


def test_students_whom_canvas_does_not_know_are_named(ada: Mark) -> None:
    marks = [of_canvas(ada, "101", "lovelaceada"), named(ada, "nobody_99"), NOTHING]
    made = canvas_csv(marks, "attention", ROSTER)
    assert [row[0] for row in rows(made.text)[2:]] == ["Lovelace, Ada"]
    assert made.missing == ("nobody_99",)


def test_anonymous_ids_are_no_canvas_ids(ada: Mark) -> None:
    made = canvas_csv([of_canvas(ada, "Ab3dE", "anon")], "attention")
    assert (len(rows(made.text)), made.missing) == (2, ("anon_Ab3dE",))


def test_a_number_in_a_name_that_canvas_did_not_give_is_no_canvas_id(ada: Mark) -> None:
    made = canvas_csv([named(ada, "student_101")], "attention")
    assert rows(made.text)[2] == ["student_101", "", "", "student_101", "", "11"]


def test_two_people_of_one_name_are_not_mixed_up(ada: Mark) -> None:
    twins = [named(ada, f"s{n}", person=Person(f"s{n}", "Ada Roe", "", "", {})) for n in (1, 2)]
    roster = b'Student,ID,SIS Login ID,Section\n"Ada Roe",7,x,A\n"Ada Roe",8,y,A\n'
    assert canvas_csv(twins, "attention", roster).missing == ("s1", "s2")


# Moodle


def of_moodle(mark: Mark, number: str, name: str) -> Mark:
    return replace(
        mark, student=f"{name}_{number}", arrival=Arrival("moodle", number, name, f"{name}_{number}_x/a.ipynb")
    )


def test_moodle_gets_every_column_without_which_it_refuses_the_file(ada: Mark) -> None:
    assert rows(moodle_csv([of_moodle(ada, "12345", "Ada Lovelace")]).text) == [
        ["Identifier", "Full name", "Grade", "Last modified (grade)"],
        ["Participant 12345", "Ada Lovelace", "11", "-"],
    ]


def test_one_odd_name_changes_nobodys_identifier(ada: Mark) -> None:
    odd = replace(of_moodle(ada, "7", "Pat O’Brien – Roe"), student="Pat O_Brien _ Roe_7-3f2a9c81d2")
    made = moodle_csv([named(ada, "Max Roe_8"), odd, ada])
    assert [row[:2] for row in rows(made.text)[1:]] == [
        ["Participant 8", "Max Roe"], ["Participant 7", "Pat O’Brien – Roe"],
    ]  # fmt: skip
    assert made.missing == ("ada",)


WORKSHEET = (
    "\ufeffIdentifier,Full name,Email address,Status,Grade,Maximum grade,Grade can be changed,"
    "Last modified (grade),Feedback comments\n"
    'Participant 7,Ada Lovelace,ada@example.org,Submitted,,20.00,Yes,"Monday, 2 March 2026, 1:00 PM",="kept"\n'
    "Participant 8,Max Roe,max@example.org,No submission,3.00,20.00,Yes,-,\n"
).encode()


def test_moodles_own_worksheet_is_filled_in_and_otherwise_kept(ada: Mark) -> None:
    made = moodle_csv(
        [named(ada, "s1", person=Person("s1", "", "ada@example.org", "", {})), named(ada, "other")], WORKSHEET
    )
    table = rows(made.text)
    assert table[1] == [
        "Participant 7", "Ada Lovelace", "ada@example.org", "Submitted", "11", "20.00", "Yes",
        "Monday, 2 March 2026, 1:00 PM", '="kept"',
    ]  # fmt: skip
    assert table[2] == rows(WORKSHEET.decode())[2]
    assert made.missing == ("other",)


def test_a_worksheet_in_another_language_needs_the_name_of_its_column(ada: Mark) -> None:
    text = (
        WORKSHEET.decode()
        .replace("Identifier", "ID")
        .replace(",Grade,", ",Bewertung,")
        .replace("Participant", "Teilnehmer/in")
    )
    marks = [of_moodle(ada, "7", "Ada Lovelace")]
    with pytest.raises(ValueError, match="no column 'Grade'"):
        moodle_csv(marks, text.encode())
    assert rows(moodle_csv(marks, text.encode(), column="Bewertung").text)[1][4] == "11"


def test_another_maximum_in_moodle_is_refused(ada: Mark) -> None:
    with pytest.raises(ValueError, match=r"the maximum grade in Moodle is 20\.00, and the marks here are out of 100"):
        moodle_csv([replace(of_moodle(ada, "7", "Ada"), max_score=100.0)], WORKSHEET)


def test_an_empty_class_is_a_header() -> None:
    assert len(rows(csv_of_students([]))) == len(rows("".join(csv_of_tests([])))) == len(rows(moodle_csv([]).text)) == 1
    assert len(rows(canvas_csv([], "attention").text)) == 2

import csv
import io
from dataclasses import replace
from typing import Any

import pytest

from autograder.course.roster import Person
from autograder.marks.late_policy import Lateness
from autograder.marks.marks import Mark, mark_from_result
from autograder.outputs.export import render_student_csv, render_test_csv, safe_cell
from autograder.records.model import Result


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
    return mark_from_result(plain)


NOTHING = Mark(
    "bob",
    "handed in nothing",
    person=Person("bob", "Bob Roe", "bob@example.org", "B", {}),
)


def test_csv_has_a_row_a_student_and_a_column_a_question(
    ada: Mark, hostile: Result
) -> None:
    assert rows(render_student_csv([mark_from_result(hostile), ada])) == [
        ["student", "softmax", "attention", "heads", "total", "max", "status", "note"],
        [
            "'=cmd|' /C calc'!A0<script>alert(1)</script>redabcdcba[bold]x[/bold]",
            "1",
            "",
            "",
            "1",
            "20",
            "graded",
            "",
        ],
        ["ada", "2", "6", "3", "11", "20", "graded", ""],
    ]


def test_csv_names_who_has_no_mark_and_why(ada: Mark) -> None:
    broken = Mark("eve", "could not be graded", "m1.ipynb: is empty")
    table = rows(render_student_csv([ada, NOTHING, broken]))
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
    assert table[2] == [
        "bob",
        "Bob Roe",
        "bob@example.org",
        "B",
        "",
        "",
        "",
        "",
        "20",
        "handed in nothing",
        "",
    ]
    assert table[3] == [
        "eve",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "20",
        "could not be graded",
        "m1.ipynb: is empty",
    ]


def test_who_waits_for_a_person_has_a_total_only_where_it_was_asked_for(
    ada: Mark,
) -> None:
    waits = replace(
        ada, status="waits for a person", note="waits: written_why", max_score=25.0
    )
    assert rows(render_student_csv([waits])) == [
        [
            "student",
            "softmax",
            "attention",
            "heads",
            "written",
            "total",
            "max",
            "status",
            "note",
        ],
        [
            "ada",
            "2",
            "6",
            "3",
            "0",
            "",
            "25",
            "waits for a person",
            "waits: written_why",
        ],
    ]
    assert rows(render_student_csv([waits], provisional=True))[1][4:7] == [
        "0",
        "11",
        "25",
    ]


def test_names_with_quotes_and_newlines_stay_one_cell(ada: Mark) -> None:
    assert rows(render_student_csv([named(ada, 'x, "y"\nz')]))[1][:2] == [
        'x, "y"\nz',
        "2",
    ]


def test_csv_shows_no_dust(ada: Mark) -> None:
    assert rows(render_student_csv([replace(ada, score=4.000000001)]))[1][-4:-2] == [
        "4",
        "20",
    ]


def test_lateness_has_columns_and_what_nobody_knows_is_empty(ada: Mark) -> None:
    late = replace(ada, late=Lateness(90.0), total=9.0)
    unknown = named(
        ada,
        "bea",
        late=Lateness(None, "no time", unreadable=True),
        total=None,
        status="time cannot be read",
    )
    table = rows(render_student_csv([late, unknown], late=True))
    assert table[0][-6:] == [
        "total",
        "max",
        "minutes_late",
        "total_after_late",
        "status",
        "note",
    ]
    assert table[1][-6:-2] == ["11", "20", "90", "9"]
    assert table[2][-6:-1] == ["11", "20", "", "", "time cannot be read"]


def test_a_row_a_test(hostile: Result) -> None:
    table = rows("".join(render_test_csv([mark_from_result(hostile), NOTHING])))
    assert len(table) == 5
    assert table[1][1:6] == ["softmax", "test_rows_sum_to_one", "passed", "1", "1"]
    assert table[2][3:6] == ["error", "0", "1"]
    assert table[2][6].startswith(
        "<script>alert(1)</script>\nred\n[link](javascript:alert(1))\nabcdcba\n::set-output"
    )
    assert "\x1b" not in "".join(render_test_csv([mark_from_result(hostile)]))
    assert table[4] == ["bob", "", "", "handed in nothing", "", "", "", ""]


def test_an_empty_class_is_a_header() -> None:
    assert (
        len(rows(render_student_csv([])))
        == len(rows("".join(render_test_csv([]))))
        == 1
    )

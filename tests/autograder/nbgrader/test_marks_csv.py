"""Marks by hand as a table: out of the gradebook, filled in by graders, and back as a
difference.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from nbgrader_course import TinyCourse

from autograder.basics.errors import KitError
from autograder.cli.commands import main
from autograder.nbgrader.gradebook import open_gradebook
from autograder.nbgrader.manual_grades import HandMark, read_hand_marks
from autograder.nbgrader.marks_csv import COLUMNS, _apply_row, marks_command

STUDENTS = ("ada", "ben", "=cay")


def marks(tiny: TinyCourse, **asked: Any) -> list[str]:
    options: dict[str, Any] = {
        "to": None,
        "back": None,
        "question": "",
        "apply": False,
        **asked,
    }
    return list(marks_command(tiny.course, tiny.course.assignment("tiny"), **options))


def table(tiny: TinyCourse, path: Path) -> list[dict[str, str]]:
    marks(tiny, to=path)
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(
    path: Path, rows: Iterable[Mapping[str, str]], columns: Iterable[str] = COLUMNS
) -> Path:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns), extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8")
    return path


def totals(tiny: TinyCourse) -> dict[str, str]:
    return {student: row["total"] for student, row in tiny.exported().items()}


def test_the_table_has_everybodys_questions(
    graded_class: TinyCourse, tmp_path: Path
) -> None:
    rows = table(graded_class, tmp_path / "marks.csv")
    assert [(row["student"], row["question"]) for row in rows] == [
        (student, question)
        for student in ("'=cay", "ada", "ben")
        for question in ("double", "half", "why")
    ]
    ada = {row["question"]: row for row in rows if row["student"] == "ada"}
    assert [ada["half"][name] for name in ("max", "tests", "points", "waits")] == [
        "3",
        "1",
        "",
        "",
    ]
    assert [
        ada["why"][name]
        for name in ("max", "tests", "points", "comment", "waits", "points_before")
    ] == [
        "4",
        "",
        "2.5",
        "Say why.\nAnd how.",
        "",
        "2.5",
    ]
    assert rows[2]["waits"] == "yes"
    marks(graded_class, to=tmp_path / "why.csv", question="why")
    assert (tmp_path / "why.csv").read_text(encoding="utf-8").count(",why,") == 3
    with pytest.raises(KitError, match="no question 'what'"):
        marks(graded_class, to=tmp_path / "x.csv", question="what")


def test_the_table_as_it_was_written_changes_nothing(
    graded_class: TinyCourse, tmp_path: Path
) -> None:
    marks(graded_class, to=tmp_path / "marks.csv")
    before = read_hand_marks(
        graded_class.course, graded_class.course.assignment("tiny")
    )
    assert marks(graded_class, back=tmp_path / "marks.csv", apply=True) == [
        "nothing differs"
    ]
    assert (
        read_hand_marks(graded_class.course, graded_class.course.assignment("tiny"))
        == before
    )


def test_what_is_filled_in_is_shown_and_then_stored(
    graded_class: TinyCourse, tmp_path: Path
) -> None:
    """Ben gets 3 of 4 and so 7 of 10; Cay's half counts 2 in place of 1, and half a point on top:
    5.5, and waits.
    """
    rows = table(graded_class, tmp_path / "marks.csv")
    by_key = {(row["student"], row["question"]): row for row in rows}
    by_key["ben", "why"] |= {"points": "3,0", "comment": "Nearly."}
    by_key["'=cay", "half"] |= {"points": "2", "extra_credit": "0.5"}
    filled = write(tmp_path / "filled.csv", rows)
    shown = [
        "=cay, half: 1 by the tests → 2 of 3, extra credit 0 → 0.5",
        "ben, why: waits → 3 of 4, a comment, looked at",
    ]
    assert marks(graded_class, back=filled) == [
        *shown,
        "nothing has changed yet; `--apply` stores these marks",
    ]
    assert totals(graded_class) == {"ada": "6.5", "ben": "", "'=cay": ""}
    assert marks(graded_class, back=filled, apply=True)[:2] == shown
    assert totals(graded_class) == {"ada": "6.5", "ben": "7", "'=cay": ""}
    with open_gradebook(graded_class.course) as gradebook:
        grade = gradebook.find_grade("check_half", "tiny", "tiny", "=cay")
        assert (grade.manual_score, grade.extra_credit, grade.needs_manual_grade) == (
            2.0,
            0.5,
            False,
        )
        assert (
            gradebook.find_comment("written_why", "tiny", "tiny", "ben").manual_comment
            == "Nearly."
        )
    # the same table once more
    with pytest.raises(KitError, match="ben, why: changed since the table was written"):
        marks(
            graded_class,
            back=write(
                tmp_path / "other.csv", [{**by_key["ben", "why"], "points": "4"}]
            ),
        )


def test_only_three_columns_are_needed_and_points_can_be_taken_back(
    graded_class: TinyCourse, tmp_path: Path
) -> None:
    rows = [{"student": "ada", "question": "why", "points": "none"}]
    columns = ("student", "question", "points")
    (line, _) = marks(
        graded_class, back=write(tmp_path / "a.csv", rows, columns), apply=True
    )
    assert line == "ada, why: 2.5 → waits of 4"
    assert totals(graded_class)["ada"] == ""


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (
            {"student": "eve", "points": "1"},
            "row 2: nobody called 'eve' has a submission",
        ),
        (
            {"question": "what"},
            "row 2: there is no question 'what'; there are: double, half, why",
        ),
        (
            {"points": "4.5"},
            "row 2: ben, why: 4.5 points of 4; more than that is extra_credit",
        ),
        ({"points": "-1"}, "row 2: ben, why: -1 points of 4"),
        ({"points": "much"}, "row 2: ben, why: 'much' is no number"),
        ({"points": "nan"}, "row 2: ben, why: 'nan' is no number"),
        ({"extra_credit": "1e9"}, "row 2: ben, why: '1e9' is no number"),
        (
            {"points": "1", "points_before": "3"},
            "changed since the table was written (nobody has given any)",
        ),
        (
            {"items": "1"},
            "there is no item 1; its marking scheme has 0 lines with points",
        ),
    ],
)
def test_what_cannot_be_taken_is_named_and_nothing_changes(
    graded_class: TinyCourse, tmp_path: Path, row: dict[str, str], problem: str
) -> None:
    good = {"student": "ada", "question": "why", "points": "1", "points_before": "2.5"}
    rows = [{"student": "ben", "question": "why", **row}, good]
    with pytest.raises(KitError) as error:
        marks(graded_class, back=write(tmp_path / "a.csv", rows), apply=True)
    assert problem in str(error.value)
    assert totals(graded_class)["ada"] == "6.5"


def test_a_table_without_its_columns_or_with_a_row_twice_is_refused(
    graded_class: TinyCourse, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("student,points\nada,1\n", encoding="utf-8")
    with pytest.raises(KitError, match="no column 'question'"):
        marks(graded_class, back=tmp_path / "a.csv")
    row = {"student": "ada", "question": "why", "points_before": "2.5"}
    with pytest.raises(KitError, match="row 3: ada and why stand in two rows"):
        marks(graded_class, back=write(tmp_path / "b.csv", [row, row]))


def test_a_mark_for_an_answer_that_was_replaced_is_refused(
    graded_class: TinyCourse, tmp_path: Path
) -> None:
    """The answer is another one since the table was written: whoever read the first has not read
    the second.
    """
    graded_class.hand_in_words("ben", "Since it is so.")
    graded_class.export_gradebook()
    rows = table(graded_class, tmp_path / "marks.csv")
    graded_class.hand_in_words("ben", "Since it is not so.")
    graded_class.export_gradebook()
    (ben,) = (
        row for row in rows if (row["student"], row["question"]) == ("ben", "why")
    )
    assert len(ben["answer"]) == 12
    with pytest.raises(
        KitError, match="ben, why: the student has handed in another answer since"
    ):
        marks(graded_class, back=write(tmp_path / "a.csv", [{**ben, "points": "3"}]))


def test_rubric_items_make_points_and_a_comment(
    graded_class: TinyCourse, tmp_path: Path
) -> None:
    """Of a scheme of 3 and 1 points Ada gets the first, Ben both, Cay both but 3.5 points by
    hand.
    """
    graded_class.write_guide()
    key = graded_class.root / "solutions/tiny/tiny.ipynb"
    scheme = "- 4 points: linear."
    assert scheme in key.read_text(encoding="utf-8")
    items = r"- 3 points: a sum is linear.\n- 1 point: and a mean\n  is a sum."
    key.write_text(
        key.read_text(encoding="utf-8").replace(scheme, items), encoding="utf-8"
    )
    rows = [
        {"student": "ada", "question": "why", "items": "1"},
        {"student": "ben", "question": "why", "items": "2, 1", "comment": "Good."},
        {"student": "'=cay", "question": "why", "items": "1 2", "points": "3.5"},
    ]
    columns = ("student", "question", "items", "points", "comment")
    assert marks(
        graded_class, back=write(tmp_path / "a.csv", rows, columns), apply=True
    )[:3] == [
        "ada, why: 2.5 → 3 of 4, comment replaced",
        "ben, why: waits → 4 of 4, a comment, looked at",
        "=cay, why: waits → 3.5 of 4, a comment, looked at",
    ]
    why = {
        row["student"]: row
        for row in table(graded_class, tmp_path / "b.csv")
        if row["question"] == "why"
    }
    assert {name: (row["items"], row["comment"]) for name, row in why.items()} == {
        "ada": ("1", "#1 Say why.\nAnd how."),
        "ben": ("1 2", "#1 #2 Good."),
        "'=cay": ("1 2", "#1 #2"),
    }
    assert marks(graded_class, back=tmp_path / "b.csv") == ["nothing differs"]
    with pytest.raises(
        KitError, match="there is no item 3; its marking scheme has 2 lines with points"
    ):
        marks(
            graded_class,
            back=write(tmp_path / "c.csv", [{**rows[0], "items": "3"}], columns),
        )


def test_without_a_gradebook_it_says_what_to_run(
    tiny: TinyCourse, tmp_path: Path
) -> None:
    with pytest.raises(KitError, match="autograder export tiny --format gradebook"):
        marks(tiny, to=tmp_path / "a.csv")


@pytest.mark.parametrize(
    "options", [[], ["--to", "a.csv", "--apply"], ["--to", "a.csv", "--from", __file__]]
)
def test_the_command_wants_one_direction(options: list[str]) -> None:
    done = CliRunner().invoke(main, ["marks", "tiny", *options])
    assert done.exit_code == 2
    assert "--to FILE" in done.output


@pytest.mark.parametrize(
    ("written", "points", "cell", "new_points", "waits"),
    [
        # somebody has looked, whatever they say of tests
        (False, None, "none", None, False),
        (False, 1.0, "none", None, False),
        (False, None, "1.5", 1.5, False),
        # a written answer without points waits
        (True, 1.0, "none", None, True),
        (True, None, "1.5", 1.5, False),
        # nothing is said
        (False, None, "", None, True),
        (True, 1.0, "", 1.0, True),
    ],
)
def test_a_row_with_points_ends_the_waiting_of_a_mark(
    written: bool, points: float | None, cell: str, new_points: object, waits: bool
) -> None:
    mark = HandMark("ada", "why", 2.0, written, points=points, waits=True)
    new = _apply_row(mark, {"points": cell}, ())
    assert (new.points, new.waits) == (new_points, waits)

"""Rows of the table of marks by hand, each by itself: numbers, rubric items, mistakes."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.basics.errors import KitError
from autograder.course import Assignment, Course
from autograder.marks.rubric import RubricItem
from autograder.nbgrader import marks_csv as marks_csv_module
from autograder.nbgrader.manual_grades import HandMark
from autograder.nbgrader.marks_csv import (
    _apply_row,
    _describe_change,
    _parse_number,
    _plain_cell,
    _read_rows,
    changed_marks,
    marks_command,
    marks_csv,
)

WHY = HandMark("ada", "why", 4.0, True, None, 1.5, 0.0, "#1 good", answer="a" * 64)
ITEMS = (
    RubricItem(1, 1.5, "names it"),
    RubricItem(2, 0.25, "an example"),
    RubricItem(3, 2.0, "says why"),
)
PLACE = "ada, why: "


def changed(**row: str) -> tuple[object, ...]:
    """Points, extra credit and comment after a row."""
    new = _apply_row(WHY, row, ITEMS)
    return new.points, new.extra_credit, new.comment


@pytest.mark.parametrize(
    ("row", "after"),
    [
        ({}, (1.5, 0.0, "#1 good")),
        ({"points": "0"}, (0.0, 0.0, "#1 good")),
        ({"points": "4"}, (4.0, 0.0, "#1 good")),
        ({"points": "2,5"}, (2.5, 0.0, "#1 good")),
        ({"points": "NONE"}, (None, 0.0, "#1 good")),
        ({"extra_credit": "9"}, (1.5, 9.0, "#1 good")),
        ({"comment": "better"}, (1.5, 0.0, "better")),
        # items give points and their numbers, in their order and once
        ({"items": "3 2, 2"}, (2.25, 0.0, "#2 #3 good")),
        ({"items": "3", "comment": "so"}, (2.0, 0.0, "#3 so")),
        # points of the row count before those of its items, unless nobody has changed them
        ({"items": "3", "points": "1"}, (1.0, 0.0, "#3 good")),
        ({"items": "3", "points": "1.5"}, (2.0, 0.0, "#3 good")),
        # the items that are there already change nothing
        ({"items": "1"}, (1.5, 0.0, "#1 good")),
        ({"items": "1", "points": "3"}, (3.0, 0.0, "#1 good")),
    ],
)
def test_a_row_changes_what_it_says(
    row: dict[str, str], after: tuple[object, ...]
) -> None:
    assert changed(**row) == after


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (
            {"points": "4.5"},
            "4.5 points of 4; more than that is extra_credit",
        ),
        ({"points": "-1"}, "-1 points of 4; more than that is extra_credit"),
        ({"points": "two"}, "'two' is no number"),
        ({"extra_credit": "nan"}, "'nan' is no number"),
        (
            {"items": "1 4"},
            "there is no item 4; its marking scheme has 3 lines with points",
        ),
        (
            {"points": "2", "points_before": "1"},
            "changed since the table was written (there are 1.5 points now); write it anew",
        ),
        (
            {"points": "2", "answer": "b" * 12},
            "the student has handed in another answer since; write the table anew",
        ),
    ],
)
def test_a_row_with_a_mistake_says_which(row: dict[str, str], problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(PLACE + problem)}$"):
        changed(**row)


def test_a_row_that_changes_nothing_may_be_old() -> None:
    old = {"points_before": "1", "answer": "b" * 12}
    assert _apply_row(WHY, old, ITEMS) == WHY
    # without the hash of an answer nobody knows of another one
    bare = dataclasses.replace(WHY, answer="")
    assert _apply_row(bare, {"points": "2", "answer": "b" * 12}, ()).points == 2.0


def test_a_number_has_six_places() -> None:
    assert _parse_number("", "0.12345678") == 0.123457
    for cell in ("1e400", "inf", "0x1", "1.2.3", "½"):
        with pytest.raises(ValueError, match="is no number"):
            _parse_number("", cell)


@pytest.mark.parametrize(
    ("cell", "plain"),
    [
        ("'=1+1", "=1+1"),
        (" '=1+1 ", "=1+1"),
        ("'tis", "'tis"),
        ("'", "'"),
        ("plain ", "plain"),
    ],
)
def test_the_apostrophe_of_a_formula_is_ours(cell: str, plain: str) -> None:
    assert _plain_cell(cell) == plain


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ({"points": None}, {"points": 2.0}, "waits → 2 of 4"),
        ({"points": 2.0}, {"points": None}, "2 → waits of 4"),
        (
            {"points": None, "written": False, "tests": 1.5},
            {"points": 0.0, "written": False, "tests": 1.5},
            "1.5 by the tests → 0 of 4",
        ),
        (
            {"points": None, "written": False},
            {"points": 1.0, "written": False},
            "0 by the tests → 1 of 4",
        ),
        ({}, {"extra_credit": 1.0}, "extra credit 0 → 1"),
        ({}, {"comment": "new"}, "comment replaced"),
        ({"comment": ""}, {"comment": "new"}, "a comment"),
        ({"waits": True}, {"waits": False}, "looked at"),
        ({"waits": True}, {"waits": True, "comment": "new"}, "comment replaced"),
        (
            {"waits": True, "comment": ""},
            {"points": 3.0, "comment": "new"},
            "1.5 → 3 of 4, a comment, looked at",
        ),
    ],
)
def test_a_change_is_told(
    old: dict[str, object], new: dict[str, object], words: str
) -> None:
    before = dataclasses.replace(WHY, **old)  # type: ignore[arg-type]
    after = dataclasses.replace(WHY, **new)  # type: ignore[arg-type]
    assert _describe_change(before, after) == f"ada, why: {words}"


# the table

MARKS = {("ada", "why"): WHY, ("ben", "why"): dataclasses.replace(WHY, student="ben")}


def rows_of(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "marks.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_marks_that_change_come_in_the_order_of_the_rows(tmp_path: Path) -> None:
    path = rows_of(tmp_path, " Student ,QUESTION,points\nben,why,2\nada,why,3\n")
    found = [(mark.student, mark.points) for mark in changed_marks(path, MARKS, {})]
    assert found == [("ben", 2.0), ("ada", 3.0)]
    same = rows_of(tmp_path, "student,question,points\nben,why,1.5\nada,why,\n")
    assert changed_marks(same, MARKS, {}) == []


def test_every_row_with_a_mistake_is_named(tmp_path: Path) -> None:
    path = rows_of(
        tmp_path,
        "student,question,points\neve,why,1\nada,how,1\nada,why,1\nada,why,2\n",
    )
    with pytest.raises(KitError) as caught:
        changed_marks(path, MARKS, {})
    assert str(caught.value).splitlines() == [
        f"{path}: nothing was changed",
        "row 2: nobody called 'eve' has a submission in the gradebook",
        "row 3: there is no question 'how'; there are: why",
        "row 5: ada and why stand in two rows",
    ]


@pytest.mark.parametrize(("more", "last"), [(0, None), (1, "and 1 more rows")])
def test_twenty_mistakes_are_named(tmp_path: Path, more: int, last: str | None) -> None:
    path = rows_of(tmp_path, "student,question\n" + "eve,why\n" * (20 + more))
    with pytest.raises(KitError) as caught:
        changed_marks(path, MARKS, {})
    lines = str(caught.value).splitlines()[1:]
    assert [line.partition(":")[0] for line in lines[:20]] == [
        f"row {number}" for number in range(2, 22)
    ]
    assert lines[20:] == ([last] if last else [])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "student,points\n",
            "there is no column 'question'; `autograder marks --to` writes a table to fill in",
        ),
        ("student,question,Points,points\n", "there are two columns 'points'"),
    ],
)
def test_a_table_needs_each_column_once(
    tmp_path: Path, text: str, problem: str
) -> None:
    path = rows_of(tmp_path, text)
    with pytest.raises(KitError) as caught:
        _read_rows(path)
    assert str(caught.value) == f"{path}: {problem}"


def test_a_mark_that_waits_has_its_points_in_the_last_columns_alone() -> None:
    tests = dataclasses.replace(
        WHY, written=False, tests=2.0, waits=True, extra_credit=0.5, comment="=1"
    )
    lines = marks_csv([WHY, tests], {"why": ITEMS}).splitlines()
    assert lines[1:] == [
        f"ada,why,4,,1.5,1,,#1 good,,1.5,{'a' * 12}",
        f"ada,why,4,2,,,0.5,'=1,yes,1.5,{'a' * 12}",
    ]


# the command


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The command on ada's and ben's answers to `why`; `stored` has the marks that it stores."""
    course, assignment = Course(tmp_path), Assignment("m1", tmp_path)
    stored: list[HandMark] = []

    def store(into: Course, of: Assignment, marks: list[HandMark]) -> None:
        assert (into, of) == (course, assignment)
        stored.extend(marks)

    monkeypatch.setattr(marks_csv_module, "read_hand_marks", lambda *_: MARKS)
    monkeypatch.setattr(marks_csv_module, "read_rubrics", lambda _: {"why": ITEMS})
    monkeypatch.setattr(marks_csv_module, "write_hand_marks", store)

    def run(**asked: Any) -> list[str]:
        options = {"to": None, "back": None, "question": "", "apply": False, **asked}
        return list(marks_command(course, assignment, **options))

    return SimpleNamespace(run=run, stored=stored)


def test_a_table_is_written_and_says_of_whom(command: Any, tmp_path: Path) -> None:
    path = tmp_path / "marks.csv"
    for question in ("", "why"):
        assert command.run(to=path, question=question) == [
            f"marks of 2 students in {path}: fill in points (or items), extra_credit and comment"
        ]
        assert path.read_text(encoding="utf-8-sig").count("why") == 2
    with pytest.raises(KitError, match=r"^m1 has no question 'how': why$"):
        command.run(to=path, question="how")


def test_marks_are_stored_where_that_is_asked(command: Any, tmp_path: Path) -> None:
    same = rows_of(tmp_path, "student,question,points\nben,why,1.5\n")
    assert command.run(back=same, apply=True) == ["nothing differs"]
    other = rows_of(tmp_path, "student,question,points\nben,why,2\n")
    assert command.run(back=other) == [
        "ben, why: 1.5 → 2 of 4",
        "nothing has changed yet; `--apply` stores these marks",
    ]
    assert command.stored == []
    assert command.run(back=other, apply=True) == [
        "ben, why: 1.5 → 2 of 4",
        "1 marks stored in the gradebook; write pages and exports anew",
    ]
    assert [(mark.student, mark.points) for mark in command.stored] == [("ben", 2.0)]

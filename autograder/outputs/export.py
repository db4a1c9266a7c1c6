"""Marks as CSV: a table of the class, and a table of all tests."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from autograder.basics.points import format_points
from autograder.basics.safe_text import clean
from autograder.basics.tables import write_table
from autograder.course.roster import Person
from autograder.marks.marks import Mark

PERSON_COLUMNS = ["name", "email", "section"]

_FORMULA = tuple(
    "=+-@＝＋－＠"
)  # some spreadsheets take the wide forms for the narrow ones


@functools.lru_cache(
    maxsize=1 << 12
)  # a class's rows repeat names, claims and messages
def safe_cell(text: str) -> str:
    """Text that a spreadsheet shows and does not calculate: a formula gets an apostrophe."""
    cleaned = clean(text)
    starts_apart = text.startswith(("\t", "\r", "\n"))
    is_formula = cleaned.lstrip().startswith(_FORMULA)
    if starts_apart or is_formula:
        return f"'{cleaned}"
    return cleaned


@functools.lru_cache(maxsize=1 << 12)
def points_cell(points: float | None) -> str:
    """Points as a cell; without points the cell is empty, which is no zero."""
    return "" if points is None else format_points(points, digits=6)


def person_cells(person: Person | None) -> list[str]:
    """The cells of `PERSON_COLUMNS`; empty for a student who is not in the class list."""
    if person is None:
        return [""] * len(PERSON_COLUMNS)
    return [
        safe_cell(person.name),
        safe_cell(person.email),
        safe_cell(person.section),
    ]


def render_student_csv(
    marks: Sequence[Mark],
    *,
    provisional: bool = False,
    late: bool = False,
    bonus: Mapping[str, float] | None = None,
) -> str:
    """A row for each student, with a column for each question.

    Args:
        provisional: whether students who wait for a person's points have a total.
        late: whether lateness costs something, and has columns.
        bonus: points for speed by student, in a column of their own. They are in no total.
    """
    full = max((mark.max_score for mark in marks), default=0.0)
    people = [mark.person for mark in marks]
    rows = [[safe_cell(mark.student)] for mark in marks]
    header = ["student"]

    def add(title: str, cells: Iterable[str]) -> None:
        header.append(title)
        for row, cell in zip(rows, cells, strict=True):
            row.append(cell)

    def total_cell(mark: Mark, points: float | None) -> str:
        shown = provisional or mark.status != "waits for a person"
        return points_cell(points if shown else None)

    if any(people):
        columns = zip(*map(person_cells, people), strict=True)
        for title, cells in zip(PERSON_COLUMNS, columns, strict=True):
            add(title, cells)
    for name in _question_names(marks):
        points = [mark.questions.get(name) for mark in marks]
        add(safe_cell(name), map(points_cell, points))
    if any(_has_written_points(mark) for mark in marks):
        written = [mark.written if mark.result else None for mark in marks]
        add("written", map(points_cell, written))
    add("total", [total_cell(mark, mark.score) for mark in marks])
    add("max", [points_cell(full) for _ in marks])
    if late:
        minutes = [mark.late.minutes if mark.late else None for mark in marks]
        add("minutes_late", map(points_cell, minutes))
        add("total_after_late", [total_cell(mark, mark.total) for mark in marks])
    if bonus is not None:
        for_speed = [
            bonus.get(mark.holder, 0.0) if mark.result else None for mark in marks
        ]
        add("speed_bonus", map(points_cell, for_speed))
    add("status", [mark.status for mark in marks])
    add("note", [safe_cell(mark.note) for mark in marks])
    return write_table([header, *rows])


def _question_names(marks: Iterable[Mark]) -> list[str]:
    """The questions of all marks, each once, in their order."""
    names: dict[str, None] = {}
    for mark in marks:
        names |= dict.fromkeys(mark.questions)
    return list(names)


def _has_written_points(mark: Mark) -> bool:
    """Whether a person gives points beside those of the tests."""
    return mark.result is not None and mark.max_score > mark.result.max_score


def render_test_csv(marks: Sequence[Mark]) -> Iterator[str]:
    """A row for each test, in pieces; a student without a result has one row with the reason."""
    yield "student,question,test,outcome,points,max_points,message,diagnosis\n"
    for mark in marks:
        student = safe_cell(mark.student)
        if mark.result is None:
            note = safe_cell(mark.note)
            yield write_table([[student, "", "", mark.status, "", "", note, ""]])
            continue
        rows = []
        for question in mark.result.questions:
            mistake = ""
            if question.diagnosis:
                mistake = safe_cell(question.diagnosis.mistake)
            for test in question.tests:
                rows.append(
                    [
                        student,
                        safe_cell(question.name),
                        safe_cell(test.name),
                        test.outcome,
                        points_cell(test.points),
                        points_cell(test.max_points),
                        safe_cell(test.message),
                        mistake,
                    ]
                )
        yield write_table(rows)

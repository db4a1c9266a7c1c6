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

_FORMULA = tuple("=+-@＝＋－＠")  # some spreadsheets take the wide forms for the narrow ones


@functools.lru_cache(maxsize=1 << 12)  # a class's rows repeat names, claims and messages
def safe_cell(text: str) -> str:
    """Text that a spreadsheet shows and does not calculate: a formula gets an apostrophe."""
    cleaned = clean(text)
    if text.startswith(("\t", "\r", "\n")) or cleaned.lstrip().startswith(_FORMULA):
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
    return [safe_cell(text) for text in (person.name, person.email, person.section)]


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
        for number, title in enumerate(PERSON_COLUMNS):
            add(title, [person_cells(person)[number] for person in people])
    for name in dict.fromkeys(name for mark in marks for name in mark.questions):
        add(safe_cell(name), [points_cell(mark.questions.get(name)) for mark in marks])
    if any(mark.result and mark.max_score > mark.result.max_score for mark in marks):
        written = [mark.written if mark.result else None for mark in marks]
        add("written", map(points_cell, written))
    add("total", [total_cell(mark, mark.score) for mark in marks])
    add("max", [points_cell(full) for _ in marks])
    if late:
        minutes = [mark.late.minutes if mark.late else None for mark in marks]
        add("minutes_late", map(points_cell, minutes))
        add("total_after_late", [total_cell(mark, mark.total) for mark in marks])
    if bonus is not None:
        for_speed = [bonus.get(mark.holder, 0.0) if mark.result else None for mark in marks]
        add("speed_bonus", map(points_cell, for_speed))
    add("status", [mark.status for mark in marks])
    add("note", [safe_cell(mark.note) for mark in marks])
    return write_table([header, *rows])


def render_test_csv(marks: Sequence[Mark]) -> Iterator[str]:
    """A row for each test, in pieces; a student without a result has one row with the reason."""
    yield "student,question,test,outcome,points,max_points,message,diagnosis\n"
    for mark in marks:
        student = safe_cell(mark.student)
        rows = []
        if mark.result is None:
            rows.append([student, "", "", mark.status, "", "", safe_cell(mark.note), ""])
        for question in mark.result.questions if mark.result else ():
            name = safe_cell(question.name)
            mistake = safe_cell(question.diagnosis.mistake) if question.diagnosis else ""
            for test in question.tests:
                points = [points_cell(test.points), points_cell(test.max_points)]
                message = safe_cell(test.message)
                test_name = safe_cell(test.name)
                rows.append([student, name, test_name, test.outcome, *points, message, mistake])
        yield write_table(rows)

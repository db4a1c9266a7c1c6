"""Marks for other systems: a table of the class, and one of all tests.

A name or a message that a spreadsheet would take for a formula gets an apostrophe in front.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence

from autograder.basics.points import format_points
from autograder.basics.safe_text import clean
from autograder.basics.tables import write_table
from autograder.marks.marks import Mark

_FORMULA = tuple("=+-@＝＋－＠")  # some spreadsheets take the wide forms for the narrow ones


@functools.lru_cache(maxsize=1 << 12)  # a class's rows repeat names, claims and messages
def safe_cell(text: str) -> str:
    """Text that a spreadsheet shows and does not calculate."""
    first = text[:1]
    kept = "\n".join(
        clean(line) for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    )
    dangerous = first in ("\t", "\r", "\n") or kept.lstrip().startswith(_FORMULA)
    return f"'{kept}" if dangerous else kept


@functools.lru_cache(maxsize=1 << 12)
def points_cell(points: float | None) -> str:
    """Points as a cell: empty where there are none, nor a zero."""
    return "" if points is None else format_points(points, digits=6)


def render_student_csv(
    marks: Sequence[Mark],
    *,
    provisional: bool = False,
    late: bool = False,
    bonus: Mapping[str, float] | None = None,
) -> str:
    """A row a student, a column a question.

    Args:
        provisional: whether the total of somebody who waits for a person's points is shown.
        late: whether lateness costs something; its columns are there then.
        bonus: points for speed by student, in a column of their own. They are in no total.
    """
    names = list(dict.fromkeys(name for mark in marks for name in mark.questions))
    full = max((mark.max_score for mark in marks), default=0.0)
    written = any(mark.result and mark.max_score > mark.result.max_score for mark in marks)
    listed = any(mark.person for mark in marks)
    header = ["student", *(["name", "email", "section"] if listed else []), *map(safe_cell, names)]
    header += [*(["written"] if written else []), "total", "max"]
    header += [
        *(["minutes_late", "total_after_late"] if late else []),
        *(["speed_bonus"] if bonus is not None else []),
    ]
    rows = [[*header, "status", "note"]]
    for mark in marks:
        row = [safe_cell(mark.student)]
        if listed:
            person = mark.person
            row += [
                safe_cell(text)
                for text in ((person.name, person.email, person.section) if person else ("",) * 3)
            ]
        row += [points_cell(mark.questions.get(name)) for name in names]
        row += [points_cell(mark.written if mark.result else None)] if written else []
        shows = provisional or mark.status != "waits for a person"
        row += [points_cell(mark.score if shows else None), points_cell(full)]
        if late:
            row += [
                points_cell(mark.late.minutes if mark.late else None),
                points_cell(mark.total if shows else None),
            ]
        if bonus is not None:
            row.append(points_cell(bonus.get(mark.holder, 0.0) if mark.result else None))
        rows.append([*row, mark.status, safe_cell(mark.note)])
    return write_table(rows)


def render_test_csv(marks: Sequence[Mark]) -> Iterator[str]:
    """A row a test; of whoever has no result, one row that says why. A piece for each student."""
    yield write_table(
        [["student", "question", "test", "outcome", "points", "max_points", "message", "diagnosis"]]
    )
    for mark in marks:
        if mark.result is None:
            yield write_table(
                [[safe_cell(mark.student), "", "", mark.status, "", "", safe_cell(mark.note), ""]]
            )
            continue
        for question in mark.result.questions:
            mistake = question.diagnosis.mistake if question.diagnosis else ""
            yield write_table(
                [
                    [
                        safe_cell(mark.student),
                        safe_cell(question.name),
                        safe_cell(test.name),
                        test.outcome,
                        points_cell(test.points),
                        points_cell(test.max_points),
                        safe_cell(test.message),
                        safe_cell(mistake),
                    ]
                    for test in question.tests
                ]
            )

"""Scores for other systems: plain CSV, and the files that Canvas and Moodle import.

A name or a message that a spreadsheet would take for a formula gets an apostrophe in front.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from typing import Literal

from autograder.course import Late
from autograder.model import Result
from autograder.outputs.late import apply_late
from autograder.outputs.text import clean, one_line
from autograder.points import shown

Format = Literal["csv", "tests", "canvas", "moodle"]

_FORMULA = tuple("=+-@＝＋－＠")  # some spreadsheets take the wide forms for the narrow ones
_MOODLE_FOLDER = re.compile(r"(.+)_(\d+)")
_CANVAS_COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")


class UnmatchedStudents(Exception):
    """Graded students whom the roster does not know; `text` is the export without them."""

    def __init__(self, students: tuple[str, ...], text: str) -> None:
        super().__init__(f"{len(students)} students are not in the roster: {', '.join(students[:10])}")
        self.students, self.text = students, text


def export(
    results: Sequence[Result],
    format: Format,
    *,
    minutes_late: Mapping[str, float] | None = None,
    late: Late | None = None,
    roster: str | None = None,
    bonus: Mapping[str, float] | None = None,
) -> str:
    """The results of one assignment as text of the format.

    Args:
        results: one a student.
        format: "csv" has a row for each student and a column for each question, "tests" a row for each test,
            "canvas" and "moodle" are what these systems' gradebooks import.
        minutes_late: by student, measured from the submission's own time; whoever is not named was in time.
        late: the course's policy; without it lateness costs nothing.
        roster: for "canvas", the text of the gradebook that Canvas exports: its names and ids are kept. Without
            it the student's name here is taken for the login.
        bonus: for "csv", points for speed by student, in a column of their own. They are in no total.

    Raises:
        ValueError: results of several assignments, or a roster that is not Canvas's.
        UnmatchedStudents: the roster lacks some; everybody else is in its `text`.
    """
    if len({result.assignment for result in results}) > 1:
        raise ValueError("results of several assignments; export one at a time")
    ordered = sorted(results, key=lambda result: result.student)
    totals = {r.student: _after_late(r, minutes_late or {}, late or Late()) for r in ordered}
    if format == "csv":
        return _students(ordered, totals, minutes_late, bonus)
    if format == "tests":
        return _tests(ordered)
    if format == "canvas":
        return _canvas_by_roster(ordered, totals, roster) if roster is not None else _canvas(ordered, totals)
    return _moodle(ordered, totals)


def safe_cell(text: str) -> str:
    """Text that a spreadsheet shows and does not calculate."""
    first = text[:1]
    kept = "\n".join(clean(line) for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    dangerous = first in ("\t", "\r", "\n") or kept.lstrip().startswith(_FORMULA)
    return f"'{kept}" if dangerous else kept


def _number(points: float) -> str:
    return shown(points, digits=6)


def _after_late(result: Result, minutes_late: Mapping[str, float], late: Late) -> float:
    return apply_late(result.score, result.max_score, minutes_late.get(result.student, 0.0), late)


def _table(rows: Sequence[Sequence[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def _students(
    results: Sequence[Result],
    totals: Mapping[str, float],
    minutes_late: Mapping[str, float] | None,
    bonus: Mapping[str, float] | None,
) -> str:
    names = list(dict.fromkeys(question.name for result in results for question in result.questions))
    late_columns = ["minutes_late", "total_after_late"] if minutes_late is not None else []
    bonus_columns = ["speed_bonus"] if bonus is not None else []
    rows = [["student", *map(safe_cell, names), "total", "max", *late_columns, *bonus_columns]]
    for result in results:
        scores = {question.name: _number(question.score) for question in result.questions}
        row = [safe_cell(result.student), *(scores.get(name, "") for name in names)]
        row += [_number(result.score), _number(result.max_score)]
        if minutes_late is not None:
            row += [_number(minutes_late.get(result.student, 0.0)), _number(totals[result.student])]
        if bonus is not None:
            row.append(_number(bonus.get(result.student, 0.0)))
        rows.append(row)
    return _table(rows)


def _tests(results: Sequence[Result]) -> str:
    rows = [["student", "question", "test", "outcome", "points", "max_points", "message", "diagnosis"]]
    for result in results:
        for question in result.questions:
            mistake = question.diagnosis.mistake if question.diagnosis else ""
            rows += [
                [safe_cell(result.student), safe_cell(question.name), safe_cell(test.name), test.outcome,
                 _number(test.points), _number(test.max_points), safe_cell(test.message), safe_cell(mistake)]
                for test in question.tests
            ]  # fmt: skip
    return _table(rows)


def _canvas(results: Sequence[Result], totals: Mapping[str, float]) -> str:
    header = [*_CANVAS_COLUMNS, safe_cell(results[0].assignment) if results else "assignment"]
    points = ["    Points Possible", "", "", "", "", _number(max((r.max_score for r in results), default=0.0))]
    people = [
        [safe_cell(one_line(r.student)), "", "", safe_cell(r.student), "", _number(totals[r.student])] for r in results
    ]
    return _table([header, points, *people])


def _canvas_by_roster(results: Sequence[Result], totals: Mapping[str, float], roster: str) -> str:
    lines = list(csv.reader(io.StringIO(roster.removeprefix("\ufeff"))))
    if not lines or not {"Student", "ID"} <= set(lines[0]):
        raise ValueError("the roster is not a gradebook that Canvas exported: it has no columns Student and ID")
    header = lines[0]
    at = {name: header.index(name) for name in _CANVAS_COLUMNS if name in header}
    assignment = results[0].assignment if results else ""
    column = next((name for name in header if _is_column_of(name, assignment)), assignment)
    points = _number(max((r.max_score for r in results), default=0.0))
    rows = [[*_CANVAS_COLUMNS, safe_cell(column)], ["    Points Possible", "", "", "", "", points]]
    # a submission that Canvas names `lastfirst_12345_…` is the student whose ID is 12345
    by_canvas_id = {student.rpartition("_")[2]: student for student in totals if "_" in student}
    matched: set[str] = set()
    for line in lines[1:]:
        cells = {name: line[i].strip() for name, i in at.items() if i < len(line)}
        ids = [cells.get(name, "") for name in ("SIS Login ID", "SIS User ID", "ID", "Student")]
        student = next((one for one in ids if one and one in totals), None) or by_canvas_id.get(cells.get("ID", ""))
        if student is not None:
            matched.add(student)
            rows.append([*(safe_cell(cells.get(name, "")) for name in _CANVAS_COLUMNS), _number(totals[student])])
    if unmatched := sorted(totals.keys() - matched):
        raise UnmatchedStudents(tuple(unmatched), _table(rows))
    return _table(rows)


def _is_column_of(column: str, assignment: str) -> bool:
    """Whether a Canvas column is the assignment's: its title with Canvas's number, "attention (1234)"."""
    title, _, number = column.rpartition(" (")
    return bool(assignment) and title == assignment and number.removesuffix(")").isdigit()


def _moodle(results: Sequence[Result], totals: Mapping[str, float]) -> str:
    """Moodle's grading worksheet where students are called as in its download ("First Last_12345"), else its CSV."""
    participants = [_MOODLE_FOLDER.fullmatch(result.student) for result in results]
    if results and all(participants):
        sheet = [["Identifier", "Full name", "Grade"]]
        for result, named in zip(results, participants, strict=True):
            assert named is not None
            sheet.append([f"Participant {named[2]}", safe_cell(named[1]), _number(totals[result.student])])
        return _table(sheet)
    by_email = bool(results) and all("@" in result.student.lstrip("@") for result in results)
    assignment = safe_cell(results[0].assignment) if results else "assignment"
    rows = [["Email address" if by_email else "Username", f"{assignment} (Real)"]]
    rows += [[safe_cell(r.student), _number(totals[r.student])] for r in results]
    return _table(rows)

"""Marks for Moodle: its offline grading worksheet, filled in, and what Moodle will do with each row.

Moodle's importer (moodle, `mod/assign/feedback/offline/locallib.php`) skips a row without a word where its grade cannot
be changed, is above the maximum, or was changed after the worksheet was downloaded. Moodle compares the time in the row
with the time of the last change, and an unreadable time counts as the oldest. Times are read in English only, also in
worksheets in another language. Uploading a feedback file counts as a change of the grade
(`mod/assign/feedback/file/importziplib.php`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from autograder.intake.moodle_worksheet import Worksheet, WorksheetRow
from autograder.outputs.difference import (
    SAME,
    Change,
    Difference,
    Outcome,
    change_of,
    full_marks,
    missing_students,
    points_to_give,
)
from autograder.outputs.export import points_cell, safe_cell
from autograder.outputs.marks import Mark
from autograder.points import shown
from autograder.tables import number_in, write_table

_COLUMNS = ("Identifier", "Full name", "Email address", "Grade", "Last modified (grade)")
_TICK = "*Allow updating records that have been modified more recently in Moodle than in the spreadsheet*"
_ORDER = (
    "upload this worksheet before the feedback files: Moodle skips whoever's grade changed after the worksheet was "
    f"downloaded, and a feedback file counts as a change (or tick {_TICK})"
)


def moodle_csv(marks: Sequence[Mark], *, provisional: bool = False) -> tuple[str, Difference]:
    """A worksheet of our own, by the numbers that Moodle gave people, where there is none of Moodle's."""
    points = points_to_give(marks, provisional=provisional)
    numbers = {mark.student: number for mark in marks if (number := mark.platform_id("moodle") or mark.number)}
    listed = any(mark.person and mark.person.email for mark in marks)
    table = [[name for name in _COLUMNS if listed or name != "Email address"]]
    changes = []
    for mark in marks:
        if mark.student in points and mark.student in numbers:
            email = [safe_cell(mark.person.email if mark.person else "")] if listed else []
            number = numbers[mark.student]
            name = safe_cell(mark.name.removesuffix(f"_{number}"))
            table.append([f"Participant {number}", name, *email, points_cell(points[mark.student]), "-"])
            changes.append(Change(f"{name} (Participant {number})", mark.student, "gets", "", points[mark.student]))
    note = f"what Moodle has is not known without `--roster`; it replaces grades only where you tick {_TICK}"
    return write_table(table), Difference((), missing_students(marks, points, changes), (note,))


def fill_worksheet(
    marks: Sequence[Mark], worksheet: Worksheet, students: Mapping[int, str], *, provisional: bool = False
) -> tuple[str, Difference]:
    """Moodle's own worksheet with the marks in it, and what Moodle will do with each row.

    Args:
        students: the number of a row in the file → whose it is; rows of nobody are not in it.

    Raises:
        ValueError: grades there are words, or Moodle has another maximum.
    """
    points = points_to_give(marks, provisional=provisional)
    if students:
        _check_maximum(worksheet, full_marks(marks))
    by_student = {mark.student: mark for mark in marks}
    table = [list(line) for line in worksheet.table]
    changes = []
    for row in worksheet.rows:
        change = _change(row, worksheet, by_student.get(students.get(row.line, "")), points)
        if change.outcome == "gets":
            cell = points_cell(change.mark)
            has_commas = "," in worksheet.maximum  # of a language that writes 11,5
            table[row.line][worksheet.grade_column] = cell.replace(".", ",") if has_commas else cell
        changes.append(change)
    missing = missing_students(marks, points, changes)
    return write_table(table, worksheet.separator), Difference(tuple(changes), missing, _notes(worksheet, changes))


def _check_maximum(worksheet: Worksheet, full: float) -> None:
    if worksheet.scale:
        raise ValueError(
            f"the grades in Moodle are words of a scale, and the marks here are points out of {shown(full)}: choose "
            "points as the grade type in Moodle, and download the worksheet again"
        )
    maximum = number_in(worksheet.maximum)
    if maximum is not None and abs(maximum - full) > SAME:
        raise ValueError(
            f"the maximum grade in Moodle is {worksheet.maximum}, and the marks here are out of {shown(full)}: "
            "change it in Moodle, and download the worksheet again"
        )


def _change(row: WorksheetRow, worksheet: Worksheet, mark: Mark | None, points: Mapping[str, float]) -> Change:
    """What Moodle will do with one row."""
    name = row.names[0] if row.names else ""
    number = f"Participant {row.number}" if row.number else "no number"
    person = f"{name} ({number})" if name else number
    maximum = number_in(worksheet.maximum)

    def decide(mark_here: float) -> tuple[Outcome, str]:
        if row.locked:
            return "skipped", "its grade cannot be changed, since it is locked or overridden in Moodle's gradebook"
        if maximum is not None and mark_here > maximum:
            return "skipped", f"it is above the maximum of {worksheet.maximum}"
        is_unreadable = bool(row.marked) and worksheet.language != "en"
        return "gets", f"only where you tick {_TICK}" if is_unreadable else ""

    return change_of(person, mark, points, row.grade, number_in(row.grade), decide)


def _notes(worksheet: Worksheet, changes: Sequence[Change]) -> tuple[str, ...]:
    notes = [_ORDER] if any(change.outcome == "gets" for change in changes) else []
    if not worksheet.language:
        notes.append("whether grades are locked cannot be told: the worksheet's language is not known here")
    if any(change.outcome == "gets" and change.reason for change in changes):
        notes.append(
            f"Moodle reads when a grade was changed in English only: tick {_TICK}, or download the worksheet with your "
            "language set to English"
        )
    return tuple(notes)

"""Moodle's offline grading worksheet: read, and filled with marks.

The columns, their order and the words in them are those of `mod/assign/gradingtable.php`. The
headings are in the language of whoever downloads the file: `moodle_languages.json` has the strings
`recordid`, `gradenoun`, `maxgrade`, `scale`, `gradecanbechanged`, `lastmodifiedsubmission`,
`lastmodifiedgrade`, `status`, `submissionteam`, `hiddenuser` and `no` of Moodle's language packs.

Moodle's importer (`mod/assign/feedback/offline/importgradeslib.php`, `locallib.php`) skips a row
without a word where its grade cannot be changed, is above the maximum, or was changed after the
worksheet was downloaded. Moodle compares the time in the row with the time of the last change, and
an unreadable time counts as the oldest. Times are read in English only, also in worksheets in
another language. Uploading a feedback file counts as a change of the grade.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from autograder.basics.points import format_points
from autograder.basics.tables import number_in, write_table
from autograder.basics.times import read_time_in
from autograder.course.roster import fold_text
from autograder.ledger import Identity
from autograder.marks.marks import Mark
from autograder.outputs.difference import (
    Change,
    Difference,
    Outcome,
    PlatformPerson,
    compare_marks,
    full_marks,
    has_other_maximum,
    points_to_give,
)
from autograder.outputs.export import points_cell
from autograder.platforms.platform import Table

TICK = (
    "*Allow updating records that have been modified more recently in Moodle than in the "
    "spreadsheet*"
)
_NEVER = "-"
"""Moodle's word for no time."""
_ORDER = (
    "upload this worksheet before the feedback files: Moodle skips whoever's grade changed after "
    f"the worksheet was downloaded, and a feedback file counts as a change (or tick {TICK})"
)


@dataclass(frozen=True, slots=True)
class _Language:
    """The words of one language pack.

    Attributes:
        code: two letters, by which Babel finds the names of months.
        accounts: headings of usernames and student numbers.
    """

    code: str
    number: str
    grade: str
    maximum: str
    scale: str
    changeable: str
    submitted: str
    marked: str
    status: str
    group: str
    participant: str
    no: str
    accounts: tuple[str, ...] = ()


_LANGUAGES = tuple(
    _Language(**words)
    for words in json.loads(
        Path(__file__).with_name("moodle_languages.json").read_text(encoding="utf-8")
    )
)
_GROUPS = {"grupa", "ryhmä", *(fold_text(language.group) for language in _LANGUAGES)}
_STATUSES = {"tila", "stav", *(fold_text(language.status) for language in _LANGUAGES)}
_ACCOUNTS = {
    fold_text(heading) for language in _LANGUAGES for heading in language.accounts
}


@dataclass(frozen=True, slots=True)
class _Row:
    """One participant's row.

    Attributes:
        person: the participant; without an id where the row has no participant's number.
        grade: the grade as Moodle writes grades, "" for none.
        locked: whether the file says that Moodle takes no grade for the row.
        submitted: the hand-in time as Moodle writes times; "" where nothing was handed in.
        marked: the time of the grade's last change, as Moodle writes times; "" for no change.
    """

    person: Identity
    grade: str
    locked: bool
    submitted: str
    marked: str


@dataclass(frozen=True, slots=True)
class Worksheet:
    """A worksheet, read.

    Attributes:
        table: all lines, the headings among them.
        separator: the separator of the cells.
        grade_column: the place of the grades.
        maximum: the highest grade, as Moodle writes grades; "" where the file has none.
        scale: whether grades are words of a scale and no points.
        language: the code of the headings' language; "" where that language is not known here.
        participants: the rows below the headings, in their order.
    """

    table: Table
    separator: str
    grade_column: int
    maximum: str
    scale: bool
    language: str
    participants: tuple[_Row, ...]

    @property
    def rows(self) -> dict[int, Identity]:
        """The number of a line → the person in the line, where it has a participant's number."""
        return {
            line: row.person
            for line, row in enumerate(self.participants, 1)
            if row.person.ids
        }

    def hand_in_times(self, zone: str) -> dict[int, datetime | str]:
        """The number of a line → the hand-in time, or why that time cannot be read.

        Args:
            zone: the course's time zone. Moodle writes times in the time zone of whoever downloads
                the file, and does not name it.
        """
        times: dict[int, datetime | str] = {}
        for line, row in enumerate(self.participants, 1):
            if row.submitted and row.person.ids:
                try:
                    times[line] = read_time_in(
                        row.submitted, self.language or "en", zone
                    )
                except ValueError as error:
                    times[line] = str(error)
        return times

    def fill(
        self,
        marks: Sequence[Mark],
        students: Mapping[int, str],
        *,
        provisional: bool = False,
    ) -> tuple[str, Difference]:
        """The worksheet with the marks in it, and what Moodle will do with each row.

        Raises:
            ValueError: grades there are words, or Moodle has another maximum.
        """
        if students:
            self._check_maximum(full_marks(marks))
        points = points_to_give(marks, provisional=provisional)
        people = [
            self._person(row, students.get(line, ""))
            for line, row in enumerate(self.participants, 1)
        ]
        difference = compare_marks(marks, people, points)
        has_commas = "," in self.maximum  # of a language that writes 11,5
        table = [list(line) for line in self.table]
        changed = []
        for line, change in zip(table[1:], difference.changes, strict=True):
            if change.outcome != "gets":
                continue
            changed.append(change)
            cell = points_cell(change.mark)
            line[self.grade_column] = cell.replace(".", ",") if has_commas else cell
        difference = replace(difference, notes=self._notes(changed))
        return write_table(table, self.separator), difference

    def _check_maximum(self, full: float) -> None:
        if self.scale:
            raise ValueError(
                "the grades in Moodle are words of a scale, and the marks here are points out "
                f"of {format_points(full)}: "
                "choose points as the grade type in Moodle, and download the worksheet again"
            )
        maximum = number_in(self.maximum)
        if has_other_maximum(maximum, full):
            raise ValueError(
                f"the maximum grade in Moodle is {self.maximum}, and the marks here are out of "
                f"{format_points(full)}: change it in Moodle, and download the worksheet again"
            )

    def _person(self, row: _Row, student: str) -> PlatformPerson:
        name = row.person.name or next(iter(row.person.accounts), "")
        number = (
            f"Participant {row.person.ids[0][1]}" if row.person.ids else "no number"
        )
        maximum = number_in(self.maximum)

        def decide(mark_here: float) -> tuple[Outcome, str]:
            if row.locked:
                reason = (
                    "its grade cannot be changed, since it is locked or overridden in Moodle's "
                    "gradebook"
                )
                return "skipped", reason
            if maximum is not None and mark_here > maximum:
                return "skipped", f"it is above the maximum of {self.maximum}"
            is_unreadable = bool(row.marked) and self.language != "en"
            return "gets", f"only where you tick {TICK}" if is_unreadable else ""

        person = f"{name} ({number})" if name else number
        return PlatformPerson(
            person,
            student,
            row.grade,
            number_in(row.grade),
            decide,
        )

    def _notes(self, changed: Sequence[Change]) -> tuple[str, ...]:
        notes = [_ORDER] if changed else []
        if not self.language:
            notes.append(
                "whether grades are locked cannot be told: the worksheet's language is "
                "not known here"
            )
        if any(change.reason for change in changed):
            notes.append(
                f"Moodle reads when a grade was changed in English only: tick {TICK}, or download "
                "the worksheet with your language set to English"
            )
        return tuple(notes)


def read_worksheet(
    table: Table, separator: str, assignment: str = "", column: str = ""
) -> Worksheet:
    """Read a worksheet that Moodle wrote, from the table that `read_table` makes of the file.

    Args:
        assignment: not needed: a worksheet is of one assignment.
        column: the heading of the grades, for a language that is not known here.

    Raises:
        ValueError: the table is no worksheet, or has no column without which Moodle refuses it.
    """
    header = _header(table)
    language = next(
        (language for language in _LANGUAGES if _fits(header, language)), None
    )
    heading = fold_text(column or (language.grade if language else ""))
    if heading not in header or len(header) < 3:
        headings = ", ".join(cell.strip() for cell in table[0]) if table else "nothing"
        raise ValueError(
            f"it is not a grading worksheet of Moodle's: it has no column {column or 'Grade'!r} "
            "beside one for the participant's number and one for when the grade was changed; where "
            f"its language is not known here, `--column` names the grades, of: {headings}"
        )
    grade_column = header.index(heading)
    lines = table[1:]
    has_scale = language is not None and any(
        _cell(line, header, language.scale) for line in lines
    )
    return Worksheet(
        table,
        separator,
        grade_column,
        _maximum(lines, header, language, grade_column),
        has_scale,
        language.code if language else "",
        tuple(_row(line, header, language, grade_column) for line in lines),
    )


def read_people(table: Table) -> dict[int, Identity]:
    """The number of a line → the person in the line. A participant's number counts for this
    assignment alone.
    """
    header = _header(table)
    people = {
        number: _identity(line, header) for number, line in enumerate(table[1:], 1)
    }
    return {number: person for number, person in people.items() if person.ids}


def _header(table: Table) -> list[str]:
    return [fold_text(cell) for cell in table[0]] if table else []


def _identity(line: Sequence[str], header: Sequence[str]) -> Identity:
    """The person in a line. The first cell ends in the participant's number whatever the language;
    names are left out where grading is anonymous.
    """
    participant = re.search(r"(\d+)\s*$", line[0])
    emails = [cell for cell in line[1:] if re.fullmatch(r"[^\s@]+@[^\s@]+", cell)]
    cells = [
        (heading, cell.strip()) for heading, cell in zip(header, line, strict=False)
    ]
    accounts = [*emails[:1], *(cell for heading, cell in cells if heading in _ACCOUNTS)]
    groups = (cell for heading, cell in cells if heading in _GROUPS)
    is_named = len(header) > 1 and header[1] not in _STATUSES
    return Identity(
        (("moodle", participant[1]),) if participant else (),
        tuple(dict.fromkeys(filter(None, accounts))),
        line[1].strip() if is_named and len(line) > 1 else "",
        next(groups, ""),
    )


def _fits(header: Sequence[str], language: _Language) -> bool:
    """Whether the headings are in this language."""
    needed = (language.number, language.grade, language.marked)
    return all(fold_text(word) in header for word in needed)


def _cell_at(line: Sequence[str], place: int) -> str:
    return line[place].strip() if place < len(line) else ""


def _cell(line: Sequence[str], header: Sequence[str], heading: str) -> str:
    """The cell in the column with this heading; "" where there is no such column."""
    key = fold_text(heading)
    return _cell_at(line, header.index(key)) if key in header else ""


def _row(
    line: Sequence[str],
    header: Sequence[str],
    language: _Language | None,
    grade_column: int,
) -> _Row:
    person = _identity(line, header)
    grade = _cell_at(line, grade_column)
    if language is None:
        return _Row(person, grade, locked=False, submitted="", marked="")
    may_change = _cell(line, header, language.changeable)
    submitted = _cell(line, header, language.submitted)
    marked = _cell(line, header, language.marked)
    return _Row(
        person,
        grade,
        fold_text(may_change) == fold_text(language.no),
        "" if submitted == _NEVER else submitted,
        "" if marked == _NEVER else marked,
    )


def _maximum(
    lines: Sequence[Sequence[str]],
    header: Sequence[str],
    language: _Language | None,
    grade_column: int,
) -> str:
    """The highest grade. In a language that is not known here, the column behind the grades has it
    where no cell is empty and all numbers are equal.
    """
    if language is not None:
        cells = (_cell(line, header, language.maximum) for line in lines)
        return next(filter(None, cells), "")
    cells_behind = [_cell_at(line, grade_column + 1) for line in lines]
    numbers = {cell for cell in cells_behind if number_in(cell) is not None}
    return numbers.pop() if len(numbers) == 1 and all(cells_behind) else ""

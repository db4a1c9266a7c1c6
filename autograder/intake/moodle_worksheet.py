"""Moodle's offline grading worksheet: whose each row is, its grade, its maximum, and when something was handed in.

The columns, their order and what stands in them are those of moodle, `mod/assign/gradingtable.php`; what Moodle takes
back is in `mod/assign/feedback/offline/importgradeslib.php` and `locallib.php`. The headings are in the language of
whoever downloads the file: `moodle_languages.json` has the strings `recordid`, `gradenoun`, `maxgrade`, `scale`,
`gradecanbechanged`, `lastmodifiedsubmission`, `lastmodifiedgrade`, `status`, `submissionteam`, `hiddenuser` and `no` of
Moodle's language packs.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from autograder.roster import same
from autograder.tables import number_in
from autograder.times import read_time_in

NEVER = "-"
"""What Moodle writes where there is no time."""


@dataclass(frozen=True, slots=True)
class _Language:
    """The words of one language pack; `code` is the language's own, by which months are read."""

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


_LANGUAGES = tuple(
    _Language(**words)
    for words in json.loads(Path(__file__).with_name("moodle_languages.json").read_text(encoding="utf-8"))
)


@dataclass(frozen=True, slots=True)
class WorksheetRow:
    """One participant's row.

    Attributes:
        line: the number of the row in the file; the headings are row 0.
        number: Moodle's number for the participant in this assignment; "" where there is none.
        names: what else tells who it is: the name, the address, other fields that the site shows.
        group: the group, where groups hand in together.
        grade: the grade as Moodle writes grades, "" for none.
        locked: whether Moodle takes no grade for the row; None where the file does not say.
        submitted: when something was handed in, as it stands there; "" where nothing was.
        marked: when the grade was last changed, as it stands there; "" where it never was.
    """

    line: int
    number: str
    names: tuple[str, ...]
    group: str
    grade: str
    locked: bool | None
    submitted: str
    marked: str


@dataclass(frozen=True, slots=True)
class Worksheet:
    """A worksheet, read.

    Attributes:
        table: all its lines, the headings among them.
        separator: what stands between its cells.
        grade_column: the place of the grades.
        maximum: the highest grade, as it stands there; "" where the file has none.
        scale: whether grades are words of a scale and no points.
        language: of the headings, as Moodle calls it; "" where it is not known here.
        heading: the heading of the grades.
        rows: the participants.
    """

    table: list[list[str]]
    separator: str
    grade_column: int
    maximum: str
    scale: bool
    language: str
    heading: str
    rows: tuple[WorksheetRow, ...]

    def hand_in_times(self, zone: str) -> tuple[dict[str, datetime], dict[str, str]]:
        """Participant's number → when something was handed in, and for the others why their time cannot be read.

        Args:
            zone: the course's time zone; Moodle writes times in that of whoever downloads the file, and names none.
        """
        times, unread = {}, {}
        for row in self.rows:
            if not row.submitted or not row.number:
                continue
            try:
                times[row.number] = read_time_in(row.submitted, self.language or "en", zone)
            except ValueError as error:
                unread[row.number] = str(error)
        return times, unread


def read_worksheet(table: list[list[str]], separator: str, column: str = "") -> Worksheet:
    """Read a worksheet that Moodle wrote, from what `read_table` makes of the file.

    Args:
        column: the heading of the grades, for a language that is not known here.

    Raises:
        ValueError: it is none, or a column is missing without which Moodle refuses it.
    """
    header = [same(cell) for cell in table[0]] if table else []
    language = next((words for words in _LANGUAGES if _speaks(header, words)), None)
    grade = same(column or (language.grade if language else ""))
    if grade not in header or len(header) < 3:
        headings = ", ".join(cell.strip() for cell in table[0]) if table else "nothing"
        raise ValueError(
            f"it is not a grading worksheet of Moodle's: it has no column {column or 'Grade'!r} beside one for the "
            f"participant's number and one for when the grade was changed; where its language is not known here, "
            f"`--column` names the grades, of: {headings}"
        )
    place = header.index(grade)
    rows = tuple(_row(number, line, header, language, place) for number, line in enumerate(table[1:], 1))
    return Worksheet(
        table, separator, place, _maximum(table[1:], header, language, place), _has_scale(table[1:], header, language),
        language.code if language else "", table[0][place].strip(), rows,
    )  # fmt: skip


def _speaks(header: list[str], language: _Language) -> bool:
    needed = (language.number, language.grade, language.marked)
    return all(same(word) in header for word in needed)


def _cell(line: list[str], header: list[str], word: str) -> str:
    place = header.index(same(word)) if same(word) in header else len(line)
    return line[place].strip() if place < len(line) else ""


def _row(number: int, line: list[str], header: list[str], language: _Language | None, grade: int) -> WorksheetRow:
    written = line[grade].strip() if grade < len(line) else ""
    if language is None:  # the number stands first in every language, and the name behind it
        participant_number = re.fullmatch(r"\D*?(\d+)", line[0].strip())
        names = tuple(cell.strip() for cell in line[1:2] if cell.strip())
        return WorksheetRow(number, _digits(participant_number), names, "", written, None, "", "")
    participant = _cell(line, header, language.number)
    participant_number = re.fullmatch(rf"(?:{re.escape(language.participant)})?\s*(\d+)", participant)
    start, end = header.index(same(language.number)) + 1, grade
    if same(language.status) in header:
        end = header.index(same(language.status))
    locked = None
    if same(language.changeable) in header:
        locked = same(_cell(line, header, language.changeable)) == same(language.no)
    submitted, marked = _cell(line, header, language.submitted), _cell(line, header, language.marked)
    return WorksheetRow(
        number, _digits(participant_number), tuple(cell.strip() for cell in line[start:end] if cell.strip()),
        _cell(line, header, language.group), written, locked,
        "" if submitted == NEVER else submitted, "" if marked == NEVER else marked,
    )  # fmt: skip


def _digits(match: re.Match[str] | None) -> str:
    return match[1] if match else ""


def _maximum(lines: list[list[str]], header: list[str], language: _Language | None, grade: int) -> str:
    """The highest grade. In a language that is not known here it stands behind the grades, where numbers do."""
    if language is not None:
        return next((cell for line in lines if (cell := _cell(line, header, language.maximum))), "")
    behind = [line[grade + 1].strip() for line in lines if grade + 1 < len(line)]
    numbers = {cell for cell in behind if number_in(cell) is not None}
    return numbers.pop() if len(numbers) == 1 and len(behind) == len(lines) and all(behind) else ""


def _has_scale(lines: list[list[str]], header: list[str], language: _Language | None) -> bool:
    return language is not None and any(_cell(line, header, language.scale) for line in lines)

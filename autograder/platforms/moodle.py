"""Moodle: downloaded submissions, the offline grading worksheet, and feedback files.

    First Last_12345_assignsubmission_file/name.ipynb    before 4.1 with `_` at the end, or all as
    one flat name Group A_17_assignsubmission_file/name.ipynb          the group's number
    Default group_assignsubmission_file/name.ipynb       whoever is in no group

The names are those of moodle, `mod/assign/classes/downloader.php`; feedback files go back under the
same ones (`mod/assign/feedback/file/importziplib.php`), where no name may hold a `_`.

The worksheet's columns, their order and what stands in them are those of
`mod/assign/gradingtable.php`. The headings are in the language of whoever downloads the file:
`moodle_languages.json` has the strings `recordid`, `gradenoun`, `maxgrade`, `scale`,
`gradecanbechanged`, `lastmodifiedsubmission`, `lastmodifiedgrade`, `status`, `submissionteam`,
`hiddenuser` and `no` of Moodle's language packs.

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
from autograder.intake.archives import UploadedFile
from autograder.intake.owners import FindOwner, FindTime, Owner, add_times, inner_stem, timestamp
from autograder.ledger import Identity
from autograder.ledger.identity_matching import name_key
from autograder.marks.marks import Mark
from autograder.outputs.difference import (
    SAME,
    Change,
    Difference,
    Outcome,
    PlatformPerson,
    compare_marks,
    full_marks,
    missing_students,
    points_to_give,
)
from autograder.outputs.export import points_cell, safe_cell
from autograder.platforms.platform import (
    Download,
    DownloadFormat,
    Interface,
    InterfaceFormat,
    OwnFileFormat,
    Platform,
    Table,
)

_FILE = re.compile(
    r"(?P<who>.+?)(?:_(?P<user>\d+))?_assignsubmission_[a-z]+(?:_(?P<name>.*))?", re.DOTALL
)
_NEVER = "-"
"""What Moodle writes where there is no time."""
_COLUMNS = ("Identifier", "Full name", "Email address", "Grade", "Last modified (grade)")
_TICK = (
    "*Allow updating records that have been modified more recently in Moodle than in the "
    "spreadsheet*"
)
_ORDER = (
    "upload this worksheet before the feedback files: Moodle skips whoever's grade changed after "
    "the worksheet was "
    f"downloaded, and a feedback file counts as a change (or tick {_TICK})"
)


@dataclass(frozen=True, slots=True)
class _Language:
    """The words of one language pack.

    Attributes:
        code: two letters by which Babel knows the names of months.
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
_ACCOUNTS = {fold_text(heading) for language in _LANGUAGES for heading in language.accounts}


def find_owners(download: Download) -> FindOwner:
    """How to tell whose each file is, with hand-in times from the worksheet."""
    if download.roster is None:
        return find_owner
    try:
        return add_times(find_owner, _times_of(read_worksheet(*download.roster), download.zone))
    except ValueError:
        # no times from a worksheet in an unknown language; people are read from it all the same
        return find_owner


def find_owner(file: UploadedFile) -> Owner | None:
    """A group's folder is named in the same way, with the group's number, or with none for whoever
    is in no group.
    """
    for part in file.parts:
        if match := _FILE.fullmatch(part):
            who, user = match["who"], match["user"]
            stem = inner_stem(file, match["name"] or file.parts[-1])
            ids = (("moodle", user),) if user else ()
            return Owner(
                f"{who}_{user}" if user else who,
                Identity(ids, (), who),
                stem,
                rank=(timestamp(file.modified),),
            )
    return None


def _times_of(worksheet: Worksheet, zone: str) -> FindTime:
    """When each participant handed in, as the worksheet says; of a group all members have the same
    time.
    """
    times = worksheet.hand_in_times(zone)
    rows_of_groups: dict[str, int] = {}
    rows_of_numbers: dict[str, int] = {}
    for row, person in worksheet.rows.items():
        rows_of_numbers[person.ids[0][1]] = row
        if person.group:
            rows_of_groups.setdefault(name_key(person.group), row)

    def find(file: UploadedFile, owner: Owner) -> tuple[datetime | None, str]:
        numbers = [number for platform, number in owner.identity.ids if platform == "moodle"]
        row = rows_of_groups.get(name_key(owner.identity.name)) or rows_of_numbers.get(
            next(iter(numbers), ""), 0
        )
        time = times.get(row)
        return (None, time) if isinstance(time, str) else (time, "")

    return find


@dataclass(frozen=True, slots=True)
class _Row:
    """One participant's row.

    Attributes:
        person: who it is of; without an id where there is no participant's number.
        grade: the grade as Moodle writes grades, "" for none.
        locked: whether Moodle takes no grade for the row; None where the file does not say.
        submitted: when something was handed in, as it stands there; "" where nothing was.
        marked: when the grade was last changed, as it stands there; "" where it never was.
    """

    person: Identity
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
        participants: those of the lines below the headings, in their order.
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
        """The number of a line → who it is of, where it has a participant's number."""
        return {line: row.person for line, row in enumerate(self.participants, 1) if row.person.ids}

    def hand_in_times(self, zone: str) -> dict[int, datetime | str]:
        """The number of a line → when something was handed in, or why that time cannot be read.

        Args:
            zone: the course's time zone; Moodle writes times in that of whoever downloads the file,
                and names none.
        """
        times: dict[int, datetime | str] = {}
        for line, row in enumerate(self.participants, 1):
            if row.submitted and row.person.ids:
                try:
                    times[line] = read_time_in(row.submitted, self.language or "en", zone)
                except ValueError as error:
                    times[line] = str(error)
        return times

    def fill(
        self, marks: Sequence[Mark], students: Mapping[int, str], *, provisional: bool = False
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
        table = [list(line) for line in self.table]
        for line, change in zip(table[1:], difference.changes, strict=True):
            if change.outcome == "gets":
                cell = points_cell(change.mark)
                has_commas = "," in self.maximum  # of a language that writes 11,5
                line[self.grade_column] = cell.replace(".", ",") if has_commas else cell
        notes = self._notes([change for change in difference.changes if change.outcome == "gets"])
        return write_table(table, self.separator), replace(difference, notes=notes)

    def _check_maximum(self, full: float) -> None:
        if self.scale:
            raise ValueError(
                "the grades in Moodle are words of a scale, and the marks here are points out "
                f"of {format_points(full)}: "
                "choose points as the grade type in Moodle, and download the worksheet again"
            )
        maximum = number_in(self.maximum)
        if maximum is not None and abs(maximum - full) > SAME:
            raise ValueError(
                f"the maximum grade in Moodle is {self.maximum}, and the marks here are out of "
                f"{format_points(full)}: "
                "change it in Moodle, and download the worksheet again"
            )

    def _person(self, row: _Row, student: str) -> PlatformPerson:
        name = row.person.name or next(iter(row.person.accounts), "")
        number = f"Participant {row.person.ids[0][1]}" if row.person.ids else "no number"
        maximum = number_in(self.maximum)

        def decide(mark_here: float) -> tuple[Outcome, str]:
            if row.locked:
                return (
                    "skipped",
                    "its grade cannot be changed, since it is locked or overridden in "
                    "Moodle's gradebook",
                )
            if maximum is not None and mark_here > maximum:
                return "skipped", f"it is above the maximum of {self.maximum}"
            is_unreadable = bool(row.marked) and self.language != "en"
            return "gets", f"only where you tick {_TICK}" if is_unreadable else ""

        person = f"{name} ({number})" if name else number
        return PlatformPerson(person, student, row.grade, number_in(row.grade), decide)

    def _notes(self, given: Sequence[Change]) -> tuple[str, ...]:
        notes = [_ORDER] if given else []
        if not self.language:
            notes.append(
                "whether grades are locked cannot be told: the worksheet's language is "
                "not known here"
            )
        if any(change.reason for change in given):
            notes.append(
                f"Moodle reads when a grade was changed in English only: tick {_TICK}, or "
                "download the worksheet with "
                "your language set to English"
            )
        return tuple(notes)


def read_worksheet(
    table: Table, separator: str, assignment: str = "", column: str = ""
) -> Worksheet:
    """Read a worksheet that Moodle wrote, from what `read_table` makes of the file.

    Args:
        assignment: not needed: a worksheet is of one assignment.
        column: the heading of the grades, for a language that is not known here.

    Raises:
        ValueError: it is none, or a column is missing without which Moodle refuses it.
    """
    header = [fold_text(cell) for cell in table[0]] if table else []
    language = next((words for words in _LANGUAGES if _speaks(header, words)), None)
    grade = fold_text(column or (language.grade if language else ""))
    if grade not in header or len(header) < 3:
        headings = ", ".join(cell.strip() for cell in table[0]) if table else "nothing"
        raise ValueError(
            f"it is not a grading worksheet of Moodle's: it has no column {column or 'Grade'!r} "
            "beside one for the "
            "participant's number and one for when the grade was changed; where its language is "
            "not known here, "
            f"`--column` names the grades, of: {headings}"
        )
    place = header.index(grade)
    participants = tuple(_row(line, header, language, place) for line in table[1:])
    has_scale = language is not None and any(
        _cell(line, header, language.scale) for line in table[1:]
    )
    maximum = _maximum(table[1:], header, language, place)
    return Worksheet(
        table, separator, place, maximum, has_scale, language.code if language else "", participants
    )


def read_people(table: Table) -> dict[int, Identity]:
    """The number of a line → the person in the line. A participant's number counts for this
    assignment alone.
    """
    header = [fold_text(cell) for cell in table[0]] if table else []
    people = {number: _identity(line, header) for number, line in enumerate(table[1:], 1)}
    return {number: person for number, person in people.items() if person.ids}


def _identity(line: Sequence[str], header: list[str]) -> Identity:
    """Who a line is of: its first cell ends in the participant's number whatever the language.
    Names are left out where grading is anonymous.
    """
    participant = re.search(r"(\d+)\s*$", line[0])
    emails = [cell for cell in line[1:] if re.fullmatch(r"[^\s@]+@[^\s@]+", cell)]
    further = (
        cell.strip() for cell, heading in zip(line, header, strict=False) if heading in _ACCOUNTS
    )
    groups = (
        cell.strip() for cell, heading in zip(line, header, strict=False) if heading in _GROUPS
    )
    is_named = len(header) > 1 and header[1] not in _STATUSES
    return Identity(
        (("moodle", participant[1]),) if participant else (),
        tuple(dict.fromkeys(filter(None, (*emails[:1], *further)))),
        line[1].strip() if is_named and len(line) > 1 else "",
        next(groups, ""),
    )


def _speaks(header: list[str], language: _Language) -> bool:
    needed = (language.number, language.grade, language.marked)
    return all(fold_text(word) in header for word in needed)


def _cell(line: list[str], header: list[str], word: str) -> str:
    place = header.index(fold_text(word)) if fold_text(word) in header else len(line)
    return line[place].strip() if place < len(line) else ""


def _row(line: list[str], header: list[str], language: _Language | None, grade: int) -> _Row:
    person, written = _identity(line, header), line[grade].strip() if grade < len(line) else ""
    if language is None:
        return _Row(person, written, None, "", "")
    locked = None
    if fold_text(language.changeable) in header:
        locked = fold_text(_cell(line, header, language.changeable)) == fold_text(language.no)
    submitted, marked = (
        _cell(line, header, language.submitted),
        _cell(line, header, language.marked),
    )
    return _Row(
        person,
        written,
        locked,
        "" if submitted == _NEVER else submitted,
        "" if marked == _NEVER else marked,
    )


def _maximum(
    lines: list[list[str]], header: list[str], language: _Language | None, grade: int
) -> str:
    """The highest grade. In a language that is not known here it stands behind the grades, where
    numbers do.
    """
    if language is not None:
        return next((cell for line in lines if (cell := _cell(line, header, language.maximum))), "")
    behind = [line[grade + 1].strip() for line in lines if grade + 1 < len(line)]
    numbers = {cell for cell in behind if number_in(cell) is not None}
    return numbers.pop() if len(numbers) == 1 and len(behind) == len(lines) and all(behind) else ""


def new_worksheet(
    marks: Sequence[Mark], assignment: str, column: str = "", provisional: bool = False
) -> tuple[str, Difference]:
    """A worksheet of our own, by the numbers that Moodle gave people, where there is none of
    Moodle's.
    """
    points = points_to_give(marks, provisional=provisional)
    numbers = {mark.student: number for mark in marks if (number := _number(mark))}
    listed = any(mark.person and mark.person.email for mark in marks)
    table = [[name for name in _COLUMNS if listed or name != "Email address"]]
    changes = []
    for mark in marks:
        if mark.student in points and mark.student in numbers:
            email = [safe_cell(mark.person.email if mark.person else "")] if listed else []
            number = numbers[mark.student]
            name = safe_cell(mark.name.removesuffix(f"_{number}"))
            table.append(
                [f"Participant {number}", name, *email, points_cell(points[mark.student]), "-"]
            )
            changes.append(
                Change(
                    f"{name} (Participant {number})", mark.student, "gets", "", points[mark.student]
                )
            )
    note = (
        "what Moodle has is not known without `--roster`; it replaces grades only where you "
        f"tick {_TICK}"
    )
    return write_table(table), Difference((), missing_students(marks, points, changes), (note,))


def _number(mark: Mark) -> str:
    """Moodle's number of the student for this assignment; "" where nobody knows."""
    return mark.platform_id("moodle") or mark.number


def feedback_name(mark: Mark, assignment: str) -> str:
    """The page's path in the zip: a folder like those of the download."""
    number = _number(mark)
    who = mark.name.removesuffix(f"_{number}").replace("_", " ").replace("/", " ")
    return f"{who}_{number}_assignsubmission_file_/{assignment}.html" if number else ""


def connect(url: str, course: str, title: str, token: str) -> Interface:
    """One assignment's marks through Moodle's web services."""
    # imports httpx, which only `--push` needs
    from autograder.platforms.moodle_api import MoodleInterface

    return MoodleInterface(url, course, title, token)


PLATFORM = Platform(
    download=DownloadFormat(
        example="First Last_12345_assignsubmission_file_/name.ipynb",
        find_owners=find_owners,
        recognises=lambda file: any(_FILE.fullmatch(part) for part in file.parts),
    ),
    own_file=OwnFileFormat(read_people=read_people, read=read_worksheet, make=new_worksheet),
    feedback_name=feedback_name,
    interface=InterfaceFormat(connect=connect),
)

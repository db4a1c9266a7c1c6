"""Brightspace (D2L): downloaded submissions, the file of grades, and feedback files.

    12345-67890 - First Last - Oct 1, 2026 1015 PM/name.ipynb    user 12345, assignment 67890, a folder for each attempt

Its source is not public. The names are those of downloads, and of scripts that people wrote for them. The file of
grades is described at community.d2l.com ("Importing grades"), and looks like this when Brightspace exports it:

    OrgDefinedId,Username,Last Name,First Name,Email,m1 Points Grade <Numeric MaxPoints:20 Weight:10>,End-of-Line Indicator
    #1001,#ada,Lovelace,Ada,ada@example.org,,#

A person is told by the OrgDefinedId or the username. An import should bring no names and only what changes. Brightspace
cuts a grade to the maximum, unless *Can Exceed* is set there.
"""  # noqa: E501 - a line of a file

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from autograder.basics.points import format_points
from autograder.basics.tables import number_in, write_table
from autograder.intake.archives import UploadedFile
from autograder.intake.owners import FindOwner, Owner, inner_stem, time_or_reason
from autograder.ledger import Identity
from autograder.marks.marks import Mark
from autograder.outputs.difference import (
    Difference,
    Outcome,
    PlatformPerson,
    compare_marks,
    full_marks,
    has_other_maximum,
    points_to_give,
)
from autograder.outputs.export import points_cell, safe_cell
from autograder.platforms.platform import (
    Download,
    DownloadFormat,
    OwnFileFormat,
    Platform,
    Table,
    cells_by_title,
)

_ATTEMPT = re.compile(
    r"(?P<user>\d+)-\d+ - (?P<who>.+) - (?P<day>\S+ \d{1,2}, \d{4}) "
    r"(?P<hour>\d{1,2})(?P<minute>\d\d) (?P<half>[AP]M)"
    r"(?: - (?P<name>.+))?",
    re.DOTALL,
)
_POINTS = re.compile(
    r"(?P<item>.+) Points Grade(?: <(?P<kind>[^\s>]+)(?:.* MaxPoints:(?P<maximum>[\d.,]+)|).*>)?"
)
_KEYS = ("OrgDefinedId", "Username")
_ACCOUNTS = (*_KEYS, "Email")
_WORKED_OUT = ("Calculated", "Formula")
"""Grade items whose points Brightspace works out itself."""
_END = "End-of-Line Indicator"


def find_owners(download: Download) -> FindOwner:
    """A function that tells each file's owner; times are the platform's, in the course's zone."""

    def find_owner(file: UploadedFile) -> Owner | None:
        attempts = [
            (part, match) for part in file.parts if (match := _ATTEMPT.fullmatch(part))
        ]
        if not attempts:
            return None
        folder, attempt = attempts[0]
        clock = (
            f"{attempt['day']} {attempt['hour']}:{attempt['minute']} {attempt['half']}"
        )
        moment, unread = time_or_reason(clock, download.zone)
        identity = Identity((("brightspace", attempt["user"]),), (), attempt["who"])
        return Owner(
            f"{attempt['who']}_{attempt['user']}",
            identity,
            inner_stem(file, attempt["name"] or file.parts[-1]),
            attempt=(_order(clock),),
            handed_in=moment,
            unread=unread,
            place=(folder,),
        )

    return find_owner


def _order(clock: str) -> float:
    """Orders the attempts of one person, also where no zone is known."""
    try:
        return datetime.strptime(clock, "%b %d, %Y %I:%M %p").timestamp()
    except ValueError:
        return 0.0


@dataclass(frozen=True, slots=True)
class Grades:
    """A file of grades that Brightspace exported, read.

    Attributes:
        keys: the places of the columns by which Brightspace tells people, in the order in which it
            reads them.
        column: the place of the grade item's column; None for none: Brightspace makes an item then.
        title: the title of the column, with the name of the item.
        maximum: the points that the item has in Brightspace, as written there; "" where the file
            does not say.
        lines: all lines, the titles among them.
        rows: the number of a line → who Brightspace says it is of.
        notes: what to say of the column.
    """

    separator: str
    keys: tuple[int, ...]
    column: int | None
    title: str
    maximum: str
    lines: Table
    rows: Mapping[int, Identity]
    notes: tuple[str, ...] = ()

    def fill(
        self,
        marks: Sequence[Mark],
        students: Mapping[int, str],
        *,
        provisional: bool = False,
    ) -> tuple[str, Difference]:
        """The lines that change, with the marks in them, and what Brightspace will do with each
        person.

        Raises:
            ValueError: the grade item has other points in Brightspace.
        """
        points = points_to_give(marks, provisional=provisional)
        full = full_marks(marks)
        maximum = number_in(self.maximum)
        if full and has_other_maximum(maximum, full):
            raise ValueError(
                f"{self.title!r} is out of {self.maximum} points in Brightspace, and the marks "
                f"here are out of {format_points(full)}: change it there, and export the grades "
                "again"
            )
        people = [self._person(line, students.get(line, "")) for line in self.rows]
        difference = compare_marks(marks, people, points, self.notes)
        title = self.title
        if self.column is None:  # for the item that Brightspace makes
            title = f"{title} <Numeric MaxPoints:{points_cell(full)}>"
        key_titles = [self._cell(0, place) for place in self.keys]
        table = [[*key_titles, safe_cell(title), _END]]
        for line, change in zip(self.rows, difference.changes, strict=True):
            if change.outcome == "gets":
                keys = [safe_cell(self._cell(line, place)) for place in self.keys]
                table.append([*keys, points_cell(change.mark), "#"])
        return write_table(table, self.separator), difference

    def hand_in_times(self, zone: str) -> dict[int, datetime | str]:
        """A file of grades has no times."""
        return {}

    def _cell(self, line: int, place: int) -> str:
        cells = self.lines[line]
        return cells[place].strip() if place < len(cells) else ""

    def _person(self, line: int, student: str) -> PlatformPerson:
        identity = self.rows[line]
        maximum = number_in(self.maximum)
        mark = self._cell(line, self.column) if self.column is not None else ""

        def decide(mark_here: float) -> tuple[Outcome, str]:
            if maximum is not None and mark_here > maximum:
                return (
                    "gets",
                    f"cut to {self.maximum} unless *Can Exceed* is set in Brightspace",
                )
            return "gets", ""

        label = identity.accounts[0]
        if identity.name:
            label = f"{identity.name} ({label})"
        return PlatformPerson(
            label,
            student,
            mark,
            number_in(mark),
            decide,
        )


def read_grades(
    table: Table,
    separator: str,
    assignment: str,
    column: str = "",
) -> Grades:
    """Read a file of grades that Brightspace exported.

    Args:
        column: the grade item's name there; default: the assignment's name here.

    Raises:
        ValueError: it is no such file, has no such grade item, or nobody may write the item's
            points.
    """
    header = [cell.strip() for cell in table[0]] if table else []
    keys = tuple(header.index(key) for key in _KEYS if key in header)
    if not keys:
        raise ValueError(
            "it is not a file of grades that Brightspace exported: it has no column OrgDefinedId "
            "or Username; choose both as the key field"
        )
    items = {
        place: match
        for place, title in enumerate(header)
        if (match := _POINTS.fullmatch(title))
    }
    name = column or assignment
    places = []
    for place, match in items.items():
        if name in (match["item"], header[place]):
            places.append(place)
    names = ", ".join(match["item"] for match in items.values())
    rows = read_people(table)
    if len(places) > 1:
        raise ValueError(
            f"{len(places)} grade items are called {name!r}: name one with all of its title, "
            "as `--column`"
        )
    without_points = re.compile(
        rf"{re.escape(name)} (Grade Symbol|Scheme Symbol|Text Grade|Weighted )"
    )
    if not places and any(map(without_points.match, header)):
        raise ValueError(
            f"it has {name!r} without its points: export it with *Points grade* among the "
            "grade values"
        )
    if not places and column:
        raise ValueError(
            f"it has no points of a grade item {column!r}; there are: {names or 'none'}"
        )
    if not places:
        choice = f"; `--column` names another of: {names}" if names else ""
        note = (
            f"no grade item of Brightspace is called {name}, so Brightspace will offer to "
            f"make one{choice}"
        )
        return Grades(
            separator,
            keys,
            None,
            f"{name} Points Grade",
            "",
            table,
            rows,
            (note,),
        )
    (place,) = places
    if items[place]["kind"] in _WORKED_OUT:
        raise ValueError(
            f"Brightspace works out the points of {items[place]['item']!r} itself"
        )
    return Grades(
        separator,
        keys,
        place,
        header[place],
        items[place]["maximum"] or "",
        table,
        rows,
    )


def read_people(table: Table) -> dict[int, Identity]:
    """The number of a line → the person in the line. Brightspace writes `#` before ids, so that no
    spreadsheet changes them. The user number of a download is not in this file.
    """
    people = {}
    for number, cells in cells_by_title(table).items():
        if any(cells.get(key) for key in _KEYS):
            accounts = (
                cells.get(heading, "").removeprefix("#") for heading in _ACCOUNTS
            )
            name = f"{cells.get('First Name', '')} {cells.get('Last Name', '')}".strip()
            people[number] = Identity((), tuple(filter(None, accounts)), name)
    return people


def feedback_name(mark: Mark, assignment: str) -> str:
    """The page's path in the zip: in the folder of the attempt, as in the download."""
    if mark.arrival is None or mark.arrival.origin != "brightspace":
        return ""
    folder = next(
        (part for part in mark.arrival.file.split("/") if _ATTEMPT.fullmatch(part)), ""
    )
    return f"{folder}/{assignment}.html" if folder else ""


PLATFORM = Platform(
    download=DownloadFormat(
        example="12345-67890 - First Last - Oct 1, 2026 1015 PM/name.ipynb",
        find_owners=find_owners,
        recognises=lambda file: any(_ATTEMPT.fullmatch(part) for part in file.parts),
        own_files={"index.html"},
    ),
    own_file=OwnFileFormat(read_people=read_people, read=read_grades),
    feedback_name=feedback_name,
)

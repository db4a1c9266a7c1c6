"""Canvas: downloaded submissions, marks for the gradebook, and feedback pages.

    lastfirst_LATE_12345_67890_name-2.ipynb    user 12345, upload 67890, late, the second of that
    name anon_Ab3dE_67890_name.ipynb                where grading is anonymous
    lastfirst_12345_text.html

What Canvas asks for stands in canvas-lms: `lib/content_zipper.rb` names what is downloaded, and
`app/models/abstract_assignment.rb` takes feedback back. `lib/gradebook_importer.rb` reads the file
of marks, and `lib/gradebook_exporter.rb` writes it. A student is told by the id; a column that says
"(read only)" below its title is ignored, and so is a row of nothing but "Manual Posting"; `N/A` is
somebody to whom the assignment is not assigned, `EX` somebody who is excused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePosixPath

from autograder.basics.points import format_points
from autograder.basics.safe_text import one_line
from autograder.basics.tables import number_in, write_table
from autograder.course.platform_names import ANONYMOUS
from autograder.intake.archives import UploadedFile, archive_stem, notebook_stem
from autograder.intake.owners import FindOwner, KnowsId, Owner, inner_stem
from autograder.ledger import Identity
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
    cells_by_title,
)

_FILE = r"(?:(?P<upload>\d+)_(?P<name>.+)|(?:text|link)\.html)"
_ANONYMOUS = re.compile(
    rf"(?P<late>LATE_)?anon_(?P<user>[^_]+)_(?P<late_too>LATE_)?{_FILE}", re.DOTALL
)
_NAMED = (
    re.compile(rf"(?P<who>.+?)(?P<late>_LATE)?_(?P<user>\d+)_{_FILE}", re.DOTALL),
    re.compile(rf"(?P<who>[^_]*_\d+)(?P<late>)_(?P<user>\d+)_{_FILE}", re.DOTALL),
)
_AGAIN = re.compile(r"-\d+$")
_ACCOUNTS = ("SIS Login ID", "SIS User ID", "Integration ID")
_COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
_POINTS = "    Points Possible"
_CALCULATED = re.compile(r"(Current|Final|Override) (Score|Points|Grade|Status)")
"""Titles that Canvas's importer leaves out, also where an assignment is called so."""
_HIDDEN = re.compile(r"\s*(Muted|Manual Posting.*)?\s*", re.IGNORECASE)
"""What stands in each cell of the row below the titles where Canvas posts marks by hand."""


def find_owners(download: Download) -> FindOwner:
    """A function that tells the owner of each file.

    Canvas takes numbers between underscores out of a name, but not one at its end:
    `doejane_777_101_9001_m1.ipynb` is user 777's file `9001_m1.ipynb`, or user 101's `m1.ipynb`
    whose name ends in `_777`.
    """
    names = [file.parts[-1] for file in download.files if notebook_stem(file.name)]
    anonymous = all(_ANONYMOUS.fullmatch(name) for name in names)  # somebody may be called Anon
    names_of_users = {}
    for name in names:
        readings = _readings(name)
        if len(readings) == 1:
            names_of_users[readings[0]["user"]] = readings[0]["who"]

    def find_owner(file: UploadedFile) -> Owner | None:
        name = file.parts[-1]
        if anonymous and (reading := _ANONYMOUS.fullmatch(name)):
            late = "LATE_" in (reading["late"] or "") + (reading["late_too"] or "")
            identity = Identity(((ANONYMOUS, reading["user"]),))
            student = f"anon_{reading['user']}"
            return _handed_in(file, student, identity, reading, late)
        readings = _readings(name)
        if not readings:
            return None
        consistent = [
            reading
            for reading in readings
            if names_of_users.get(reading["user"], reading["who"]) == reading["who"]
        ]
        possible = consistent or readings
        reading = _likeliest(possible, file, download.assignment, download.is_known_id)
        who, user = reading["who"], reading["user"]
        identity = Identity((("canvas", user),), (), who)
        owner = _handed_in(file, f"{who}_{user}", identity, reading, bool(reading["late"]))
        rejected = [other["user"] for other in possible if other["user"] != user]
        if not rejected or download.is_known_id("canvas", user):
            return owner
        return replace(owner, doubt=f"user {user}, or {rejected[0]}")

    return find_owner


def _readings(name: str) -> list[re.Match[str]]:
    return [match for form in _NAMED if (match := form.fullmatch(name))]


def _likeliest(
    readings: Sequence[re.Match[str]], file: UploadedFile, assignment: str, knows: KnowsId
) -> re.Match[str]:
    """The likeliest reading of a file's name: with an id that is known; else with an upload number
    above the user's, since Canvas has fewer users than uploads; else with a file that is called
    like the assignment.
    """
    known_readings = [reading for reading in readings if knows("canvas", reading["user"])]
    if len(known_readings) == 1:
        return known_readings[0]
    likely = []
    for reading in readings:
        upload = reading["upload"]
        if upload is None or int(reading["user"]) < int(upload):
            likely.append(reading)
    likely = likely or list(readings)
    if not known_readings:
        for reading in likely:
            name = reading["name"]
            if name and _AGAIN.sub("", inner_stem(file, name)) == assignment:
                return reading
    return likely[0]


def _handed_in(
    file: UploadedFile, student: str, identity: Identity, reading: re.Match[str], late: bool
) -> Owner:
    stem = _AGAIN.sub("", inner_stem(file, reading["name"] or ""))
    upload = float(reading["upload"] or 0)
    return Owner(student, identity, stem, rank=(upload,), late=late)


@dataclass(frozen=True, slots=True)
class Gradebook:
    """A gradebook that Canvas exported, read.

    Attributes:
        header: the titles of the columns.
        separator: the separator of the cells.
        width: the number of columns about people; the assignments' columns follow.
        column: the place of the assignment's column; None where Canvas makes a column.
        title: the title of the column.
        possible: the assignment's points in Canvas, as written there.
        is_posted_by_hand: whether students see marks only when somebody posts them.
        lines: the number of a person's row in the file → the cells.
        people: the number of a person's row → the person.
        notes: lines about the column.
    """

    header: list[str]
    separator: str
    width: int
    column: int | None
    title: str
    possible: str
    is_posted_by_hand: bool
    lines: Mapping[int, list[str]]
    people: Mapping[int, Identity]
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> dict[int, Identity]:
        """The number of a row → the person in the row, where Canvas's id of the person is there."""
        return {row: person for row, person in self.people.items() if person.ids}

    def fill(
        self, marks: Sequence[Mark], students: Mapping[int, str], *, provisional: bool = False
    ) -> tuple[str, Difference]:
        """The rows that change, with the marks in them, and what Canvas will do with each row of
        the gradebook.

        Raises:
            ValueError: the assignment has other points in Canvas.
        """
        points = points_to_give(marks, provisional=provisional)
        full = full_marks(marks)
        possible = number_in(self.possible)
        if full and possible is not None and abs(possible - full) > SAME:
            raise ValueError(
                f"{self.title!r} has {format_points(possible)} points in Canvas, and the marks "
                f"here are out of {format_points(full)}: give it {format_points(full)} points in "
                "Canvas, and export the gradebook again"
            )
        people = [self._person(row, students.get(row, "")) for row in self.lines]
        difference = compare_marks(marks, people, points)
        blank = [""] * (self.width - 1)
        worth = self.possible
        if self.column is None:
            worth = points_cell(full)  # for the column that Canvas makes
        table = [[*self.header[: self.width], self.title], [_POINTS, *blank, worth]]
        for line, change in zip(self.lines.values(), difference.changes, strict=True):
            if change.mark is None or change.outcome == "skipped":
                continue
            person = [safe_cell(cell.strip()) for cell in line[: self.width]]
            missing = [""] * (self.width - len(person))
            table.append([*person, *missing, points_cell(change.mark)])
        notes = [*self.notes]
        is_changed = any(change.outcome == "gets" for change in difference.changes)
        if self.is_posted_by_hand and is_changed:
            notes.append(
                f"students see the marks in {self.title!r} only when you post them in Canvas"
            )
        if full and possible is None and self.column is not None:
            notes.append(
                f"{self.title!r} has no points in Canvas, and the marks here are out of "
                f"{format_points(full)}"
            )
        return write_table(table, self.separator), replace(difference, notes=tuple(notes))

    def hand_in_times(self, zone: str) -> dict[int, datetime | str]:
        """A gradebook has no times."""
        return {}

    def _person(self, row: int, student: str) -> PlatformPerson:
        person = self.people[row]
        id_ = person.ids[0][1] if person.ids else ""
        mark = _cell(self.lines[row], self.column)

        def decide(_: float) -> tuple[Outcome, str]:
            if mark.upper() == "N/A":
                return "skipped", "Canvas does not assign this assignment to them"
            if mark.upper() == "EX":
                reason = "they are excused in Canvas: end that there where the mark should count"
                return "skipped", reason
            return "gets", ""

        return PlatformPerson(f"{person.name} ({id_})", student, mark, number_in(mark), decide)


def _cell(line: Sequence[str], column: int | None) -> str:
    return line[column].strip() if column is not None and column < len(line) else ""


def read_gradebook(table: Table, separator: str, assignment: str, column: str = "") -> Gradebook:
    """Read a gradebook that Canvas exported.

    Args:
        column: the assignment's title there, with or without Canvas's number; default: its name
            here.

    Raises:
        ValueError: the table is no gradebook of Canvas's, has no such column, or nobody may write
            the column.
    """
    header = [cell.strip() for cell in table[0]] if table else []
    if "ID" not in header[:3] or not {"Student", "LastName"} & set(header[:1]):
        raise ValueError(
            "it is not a gradebook that Canvas exported: it has no columns Student and ID"
        )
    last_of_people = "Section" if "Section" in header else "ID"
    width = header.index(last_of_people) + 1
    place, notes = _find_column(header, width, column or assignment, bool(column))
    possible = posting = ""
    lines = {}
    for number, line in enumerate(table[1:], 1):
        if "Points Possible" in line[0]:
            possible = _cell(line, place)
        elif all(_HIDDEN.fullmatch(text) for text in line):
            posting = _cell(line, place)
        else:
            lines[number] = line
    title = header[place] if place is not None else column or assignment
    # "(read only)", in the language of whoever exported the gradebook
    if _CALCULATED.search(title) or possible.startswith("("):
        raise ValueError(f"Canvas does not let anybody write the column {title!r}")
    if "hidden" in posting:
        raise ValueError(
            f"Canvas hides who has which mark in {title!r} until they are posted, and imports "
            "none before: post the marks in Canvas, and export the gradebook again"
        )
    records = cells_by_title(table)
    people = {number: _identity(records[number]) for number in lines}
    return Gradebook(
        header, separator, width, place, title, possible, bool(posting), lines, people, notes
    )


def read_people(table: Table) -> dict[int, Identity]:
    """The number of a row in the table → the person in the row. Rows without an id are left out."""
    people = {number: _identity(cells) for number, cells in cells_by_title(table).items()}
    return {number: person for number, person in people.items() if person.ids}


def _identity(cells: Mapping[str, str]) -> Identity:
    id_ = cells.get("ID", "")
    full_name = f"{cells.get('FirstName', '')} {cells.get('LastName', '')}".strip()
    accounts = (cells.get(heading, "") for heading in _ACCOUNTS)
    return Identity(
        (("canvas", id_),) if id_ else (),
        tuple(filter(None, accounts)),
        cells.get("Student") or full_name,
    )


def canvas_csv(
    marks: Sequence[Mark], assignment: str, column: str = "", provisional: bool = False
) -> tuple[str, Difference]:
    """Make a file by Canvas's ids, or by logins where no id is known, where Canvas's gradebook was
    not given.
    """
    points = points_to_give(marks, provisional=provisional)
    rows = [
        [*_COLUMNS, safe_cell(column or assignment)],
        [_POINTS, "", "", "", "", points_cell(full_marks(marks))],
    ]
    changes = []
    for mark in marks:
        id_ = mark.platform_id("canvas")
        # Canvas's anonymous ids are of one assignment, and its gradebook does not know them.
        is_anonymous = ANONYMOUS in mark.ids and not id_
        if mark.student not in points or is_anonymous:
            continue
        name = one_line(mark.name)
        login = "" if id_ else mark.student
        section = mark.person.section if mark.person else ""
        cells = map(safe_cell, (name, id_, "", login, section))
        rows.append([*cells, points_cell(points[mark.student])])
        changes.append(Change(name, mark.student, "gets", "", points[mark.student]))
    note = (
        "what Canvas has is not known without `--roster`: it shows every change before it "
        "takes the file"
    )
    return write_table(rows), Difference((), missing_students(marks, points, changes), (note,))


def _find_column(
    header: list[str], width: int, name: str, is_asked: bool
) -> tuple[int | None, tuple[str, ...]]:
    """The place of the assignment's column, and notes about it. Its title is the assignment's in
    Canvas, with Canvas's number in brackets.
    """
    titles = {i: re.sub(r" \(\d+\)$", "", title) for i, title in enumerate(header) if i >= width}
    exact = [i for i in titles if header[i] == name]
    places = exact or [i for i, title in titles.items() if title == name]
    numbered = [header[i] for i in titles if header[i] != titles[i]]
    if len(places) > 1:
        raise ValueError(
            f"{len(places)} columns are called {name!r}: name one with its number, as `--column`"
        )
    if not places and is_asked:
        raise ValueError(f"it has no column {name!r}; there are: {', '.join(numbered) or 'none'}")
    if not places:
        choice = f"; `--column` names another of: {', '.join(numbered)}" if numbered else ""
        return None, (
            f"no column of Canvas is called {name}, so Canvas will offer to make one{choice}",
        )
    return places[0], ()


def feedback_name(mark: Mark, assignment: str) -> str:
    """The page's path in the zip: the name of the submitted file, since Canvas reads user and
    upload from the name.
    """
    if mark.arrival is None or mark.arrival.origin != "canvas":
        return ""
    handed_in = PurePosixPath(mark.arrival.file).name
    return f"{notebook_stem(handed_in) or archive_stem(handed_in)}.html"


def connect(url: str, course: str, title: str, token: str) -> Interface:
    """One assignment's marks through Canvas's REST API."""
    # imports canvasapi, which only `--push` needs
    from autograder.platforms.canvas_api import CanvasInterface

    return CanvasInterface(url, course, title, token)


PLATFORM = Platform(
    download=DownloadFormat(
        example="lastfirst_12345_67890_name.ipynb",
        find_owners=find_owners,
        calls_by_student=True,
    ),
    own_file=OwnFileFormat(
        read_people=read_people,
        read=read_gradebook,
        make=canvas_csv,
        name_of_group=(
            "Canvas gives a group's work the group's name, and the id of who handed it in; write "
            "a group's members into the column `group` of students.csv"
        ),
    ),
    feedback_name=feedback_name,
    interface=InterfaceFormat(connect=connect, knows_times=True),
)

"""Canvas's gradebook: read as Canvas exports it, and filled with marks.

`lib/gradebook_importer.rb` of canvas-lms reads the file of marks, and `lib/gradebook_exporter.rb`
writes it. Canvas finds a student by the id. Its importer ignores a column that says "(read only)"
below its title, and a row of nothing but "Manual Posting". `N/A` stands where the assignment is not
assigned to the student, and `EX` where the student is excused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from autograder.basics.points import format_points
from autograder.basics.tables import number_in, write_table
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
    Table,
    cells_by_title,
)

_ACCOUNTS = ("SIS Login ID", "SIS User ID", "Integration ID")
POINTS_TITLE = "    Points Possible"
_CALCULATED = re.compile(r"(Current|Final|Override) (Score|Points|Grade|Status)")
"""Titles that Canvas's importer leaves out, also where an assignment is called so."""
_HIDDEN = re.compile(r"\s*(Muted|Manual Posting.*)?\s*", re.IGNORECASE)
"""What stands in each cell of the row below the titles where Canvas posts marks by hand."""


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
        self,
        marks: Sequence[Mark],
        students: Mapping[int, str],
        *,
        provisional: bool = False,
    ) -> tuple[str, Difference]:
        """The rows that change, with the marks in them, and what Canvas will do with each row of
        the gradebook.

        Raises:
            ValueError: the assignment has other points in Canvas.
        """
        points = points_to_give(marks, provisional=provisional)
        full = full_marks(marks)
        possible = number_in(self.possible)
        if full and possible is not None and has_other_maximum(possible, full):
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
        table = [
            [*self.header[: self.width], self.title],
            [POINTS_TITLE, *blank, worth],
        ]
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
        return write_table(table, self.separator), replace(
            difference, notes=tuple(notes)
        )

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

        return PlatformPerson(
            f"{person.name} ({id_})",
            student,
            mark,
            number_in(mark),
            decide,
        )


def _cell(line: Sequence[str], column: int | None) -> str:
    return line[column].strip() if column is not None and column < len(line) else ""


def read_gradebook(
    table: Table,
    separator: str,
    assignment: str,
    column: str = "",
) -> Gradebook:
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
        header,
        separator,
        width,
        place,
        title,
        possible,
        bool(posting),
        lines,
        people,
        notes,
    )


def read_people(table: Table) -> dict[int, Identity]:
    """The number of a row in the table → the person in the row. Rows without an id are left out."""
    people = {
        number: _identity(cells) for number, cells in cells_by_title(table).items()
    }
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


def _find_column(
    header: list[str], width: int, name: str, is_asked: bool
) -> tuple[int | None, tuple[str, ...]]:
    """The place of the assignment's column, and notes about it. Its title is the assignment's in
    Canvas, with Canvas's number in brackets.
    """
    titles = {
        i: re.sub(r" \(\d+\)$", "", title)
        for i, title in enumerate(header)
        if i >= width
    }
    exact = [i for i in titles if header[i] == name]
    places = exact or [i for i, title in titles.items() if title == name]
    numbered = [header[i] for i in titles if header[i] != titles[i]]
    if len(places) > 1:
        raise ValueError(
            f"{len(places)} columns are called {name!r}: name one with its number, as `--column`"
        )
    if not places and is_asked:
        raise ValueError(
            f"it has no column {name!r}; there are: {', '.join(numbered) or 'none'}"
        )
    if not places:
        choice = (
            f"; `--column` names another of: {', '.join(numbered)}" if numbered else ""
        )
        return None, (
            f"no column of Canvas is called {name}, so Canvas will offer to make one{choice}",
        )
    return places[0], ()

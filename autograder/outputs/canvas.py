"""Marks for Canvas: the file that its gradebook imports, and what Canvas will do with each row.

What Canvas asks for stands in canvas-lms: `lib/gradebook_importer.rb` reads the file, `lib/gradebook_exporter.rb`
writes it. A student is told by the id; a column that says "(read only)" below its title is ignored, and so is a row of
nothing but "Manual Posting"; `N/A` is somebody to whom the assignment is not assigned, `EX` somebody who is excused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
from autograder.text import one_line

_COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
_POINTS = "    Points Possible"
_CALCULATED = re.compile(r"(Current|Final|Override) (Score|Points|Grade|Status)")
"""Titles that Canvas's importer leaves out, also where an assignment is called so."""
_HIDDEN = re.compile(r"\s*(Muted|Manual Posting.*)?\s*", re.IGNORECASE)
"""What stands in each cell of the row below the titles where Canvas posts marks by hand."""


@dataclass(frozen=True, slots=True)
class Gradebook:
    """A gradebook that Canvas exported, read.

    Attributes:
        header: the titles of its columns.
        width: how many columns about people it has; those of assignments follow.
        column: the place of the assignment's column; None for none: Canvas makes a column then.
        title: the title of the column.
        possible: the points that the assignment has in Canvas, as written there.
        posting: "Manual Posting" where Canvas shows marks to students only when somebody posts them.
        people: the number of a row in the file → its cells, for the rows that are somebody's.
        notes: what to say of the column.
    """

    header: list[str]
    separator: str
    width: int
    column: int | None
    title: str
    possible: str
    posting: str
    people: Mapping[int, list[str]]
    notes: tuple[str, ...] = ()

    def cell(self, row: int, title: str) -> str:
        """One cell about a person, by the title of its column."""
        line, place = self.people[row], self.header.index(title) if title in self.header else -1
        return line[place].strip() if 0 <= place < len(line) else ""

    def mark(self, row: int) -> str:
        """The mark that the person has in Canvas, as written there."""
        line = self.people[row]
        return line[self.column].strip() if self.column is not None and self.column < len(line) else ""


def read_gradebook(table: Sequence[list[str]], separator: str, assignment: str, column: str = "") -> Gradebook:
    """Read a gradebook that Canvas exported.

    Args:
        column: the assignment's title there, with or without Canvas's number; default: its name here.

    Raises:
        ValueError: it is no gradebook of Canvas's, has no such column, or nobody may write the column.
    """
    header = [cell.strip() for cell in table[0]] if table else []
    if "ID" not in header[:3] or not {"Student", "LastName"} & set(header[:1]):
        raise ValueError("it is not a gradebook that Canvas exported: it has no columns Student and ID")
    width = header.index("Section") + 1 if "Section" in header else header.index("ID") + 1
    place, notes = _column(header, width, column or assignment, bool(column))
    possible = posting = ""
    people = {}
    for number, line in enumerate(table[1:], 1):
        cell = line[place].strip() if place is not None and place < len(line) else ""
        if "Points Possible" in line[0]:
            possible = cell
        elif all(_HIDDEN.fullmatch(text) for text in line):
            posting = cell
        else:
            people[number] = line
    title = header[place] if place is not None else column or assignment
    if _CALCULATED.search(title) or possible.startswith("("):  # "(read only)", in the language of whoever exported it
        raise ValueError(f"Canvas does not let anybody write the column {title!r}")
    if "hidden" in posting:
        raise ValueError(
            f"Canvas hides who has which mark in {title!r} until they are posted, and imports none before: "
            "post the marks in Canvas, and export the gradebook again"
        )
    return Gradebook(header, separator, width, place, title, possible, posting, people, notes)


def canvas_csv(
    marks: Sequence[Mark], assignment: str, *, column: str = "", provisional: bool = False
) -> tuple[str, Difference]:
    """A file of our own by Canvas's ids, where there is no gradebook of Canvas's; by the login where no id is known."""
    points = points_to_give(marks, provisional=provisional)
    rows = [[*_COLUMNS, safe_cell(column or assignment)], [_POINTS, "", "", "", "", points_cell(full_marks(marks))]]
    changes = []
    for mark in marks:
        if mark.student in points and not _is_anonymous(mark):
            id_ = mark.platform_id("canvas")
            name, section = one_line(mark.name), mark.person.section if mark.person else ""
            cells = (name, id_, "", "" if id_ else mark.student, section)
            rows.append([*map(safe_cell, cells), points_cell(points[mark.student])])
            changes.append(Change(name, mark.student, "gets", "", points[mark.student]))
    note = "what Canvas has is not known without `--roster`: it shows every change before it takes the file"
    return write_table(rows), Difference((), missing_students(marks, points, changes), (note,))


def fill_gradebook(
    marks: Sequence[Mark], gradebook: Gradebook, students: Mapping[int, str], *, provisional: bool = False
) -> tuple[str, Difference]:
    """The rows of Canvas's own gradebook with the marks in them, and what Canvas will do with each.

    Args:
        students: the number of a row in the file → whose it is; rows of nobody are not in it.

    Raises:
        ValueError: the assignment has other points in Canvas.
    """
    points, full = points_to_give(marks, provisional=provisional), full_marks(marks)
    possible = number_in(gradebook.possible)
    if full and possible is not None and abs(possible - full) > SAME:
        raise ValueError(
            f"{gradebook.title!r} has {shown(possible)} points in Canvas, and the marks here are out of {shown(full)}: "
            f"give it {shown(full)} points in Canvas, and export the gradebook again"
        )
    by_student = {mark.student: mark for mark in marks}
    width = gradebook.width
    worth = points_cell(full) if gradebook.column is None else gradebook.possible  # Canvas takes it over
    rows = [[*gradebook.header[:width], gradebook.title], [_POINTS, *[""] * (width - 1), worth]]
    changes = []
    for number, line in gradebook.people.items():
        mark = by_student.get(students.get(number, ""))
        change = _change(gradebook, number, mark, points)
        changes.append(change)
        if change.mark is not None and change.outcome != "skipped":
            person = [safe_cell(cell.strip()) for cell in line[:width]]
            rows.append([*person, *[""] * (width - len(person)), points_cell(change.mark)])
    missing = missing_students(marks, points, changes)
    notes = _notes(gradebook, changes)
    if full and possible is None and gradebook.column is not None:
        notes += (f"{gradebook.title!r} has no points in Canvas, and the marks here are out of {shown(full)}",)
    return write_table(rows, gradebook.separator), Difference(tuple(changes), missing, notes)


def _change(gradebook: Gradebook, row: int, mark: Mark | None, points: Mapping[str, float]) -> Change:
    """What Canvas will do with one row."""
    name = gradebook.cell(row, "Student")
    if not name:
        name = f"{gradebook.cell(row, 'FirstName')} {gradebook.cell(row, 'LastName')}".strip()
    person, had = f"{name} ({gradebook.cell(row, 'ID')})", gradebook.mark(row)

    def decide(_: float) -> tuple[Outcome, str]:
        if had.upper() == "N/A":
            return "skipped", "Canvas does not assign this assignment to them"
        if had.upper() == "EX":
            return "skipped", "they are excused in Canvas: end that there where the mark should count"
        return "gets", ""

    return change_of(person, mark, points, had, number_in(had), decide)


def _notes(gradebook: Gradebook, changes: Sequence[Change]) -> tuple[str, ...]:
    notes = list(gradebook.notes)
    if gradebook.posting and any(change.outcome == "gets" for change in changes):
        notes.append(f"students see the marks in {gradebook.title!r} only when you post them in Canvas")
    return tuple(notes)


def _column(header: list[str], width: int, name: str, is_asked: bool) -> tuple[int | None, tuple[str, ...]]:
    """The place of the column: its title is that of the assignment there, with Canvas's number in brackets."""
    titles = {i: re.sub(r" \(\d+\)$", "", title) for i, title in enumerate(header) if i >= width}
    exact = [i for i in titles if header[i] == name]
    places = exact or [i for i, title in titles.items() if title == name]
    numbered = [header[i] for i in titles if header[i] != titles[i]]
    if len(places) > 1:
        raise ValueError(f"{len(places)} columns are called {name!r}: name one with its number, as `--column`")
    if not places and is_asked:
        raise ValueError(f"it has no column {name!r}; there are: {', '.join(numbered) or 'none'}")
    if not places:
        choice = f"; `--column` names another of: {', '.join(numbered)}" if numbered else ""
        return None, (f"no column of Canvas is called {name}, so Canvas will offer to make one{choice}",)
    return places[0], ()


def _is_anonymous(mark: Mark) -> bool:
    """Canvas's anonymous ids are of one assignment; its gradebook does not know them."""
    return "canvas-anonymous" in mark.ids and not mark.platform_id("canvas")

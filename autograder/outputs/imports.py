"""The files that Canvas and Moodle import.

What they ask for stands in their own importers: canvas-lms, `lib/gradebook_importer.rb`; moodle,
`mod/assign/feedback/offline/importgradeslib.php`. Both tell people by a number, so a row is written only of whom they
know by one. A file of theirs that is given is filled in: what it says of people and columns stays.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from autograder.outputs.export import points_cell, safe_cell
from autograder.outputs.marks import Mark
from autograder.points import shown
from autograder.roster import same
from autograder.tables import read_table, write_table
from autograder.text import one_line

_CANVAS_COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
_POINTS = "    Points Possible"
_MOODLE_COLUMNS = ("Identifier", "Full name", "Email address", "Grade", "Last modified (grade)")


@dataclass(frozen=True, slots=True)
class Import:
    """The file's text, those with a mark who are not in it, and what else there is to say."""

    text: str
    missing: tuple[str, ...] = ()
    said: tuple[str, ...] = ()


def canvas_csv(
    marks: Sequence[Mark], assignment: str, roster: bytes | None = None, *, column: str = "", provisional: bool = False
) -> Import:
    """What Canvas imports into its gradebook.

    Args:
        roster: the gradebook that Canvas exports. Without it the student's name here is taken for the login where no
            id is known.
        column: the assignment's title there, with or without Canvas's number; default: its name here.

    Raises:
        ValueError: the roster is not Canvas's, has no such column, or the column cannot take these marks.
    """
    given = {mark.student: points for mark in marks if (points := mark.final(provisional=provisional)) is not None}
    full = max((mark.max_score for mark in marks), default=0.0)
    if roster is not None:
        return _into_canvas(marks, given, full, assignment, roster, column)
    rows = [[*_CANVAS_COLUMNS, safe_cell(column or assignment)], [_POINTS, "", "", "", "", points_cell(full)]]
    for mark in marks:
        if mark.student in given and not _is_anonymous(mark):
            id_ = mark.platform_id("canvas")
            name, section = one_line(mark.name), mark.person.section if mark.person else ""
            cells = (name, id_, "", "" if id_ else mark.student, section)
            rows.append([*map(safe_cell, cells), points_cell(given[mark.student])])
    return Import(write_table(rows), _missing(marks, {m.student for m in marks if not _is_anonymous(m)}, given))


def _is_anonymous(mark: Mark) -> bool:
    """Canvas's anonymous ids are of one assignment; its gradebook does not know them."""
    return mark.arrival is not None and mark.arrival.origin == "canvas" and not mark.arrival.id.isdigit()


def _into_canvas(
    marks: Sequence[Mark], given: dict[str, float], full: float, assignment: str, roster: bytes, column: str
) -> Import:
    lines, separator = read_table(roster)
    header = [cell.strip() for cell in lines[0]] if lines else []
    if "ID" not in header[:3] or not {"Student", "LastName"} & set(header[:1]):
        raise ValueError("it is not a gradebook that Canvas exported: it has no columns Student and ID")
    width = header.index("Section") + 1 if "Section" in header else header.index("ID") + 1
    place, said = _canvas_column(header, width, column or assignment, bool(column))
    possible = next((line for line in lines[1:] if "Points Possible" in line[0]), [])
    if place is not None and place < len(possible):
        _check_canvas_points(header[place], possible[place].strip(), full)
    title = header[place] if place is not None else column or assignment
    rows = [[*header[:width], title], [_POINTS, *[""] * (width - 1), points_cell(full)]]
    by_name = _unmistakable((name, mark) for mark in marks if not mark.platform_id("canvas") for name in _called(mark))
    by_id = {id_: mark for mark in marks if (id_ := mark.platform_id("canvas") or mark.number)}
    found = set()
    for line in lines[1:]:
        cells = {name: line[i].strip() for i, name in enumerate(header[:width]) if i < len(line)}
        names = (
            cells.get("SIS Login ID", ""),
            cells.get("SIS User ID", ""),
            cells.get("ID", ""),
            cells.get("Student", ""),
        )
        mark = by_id.get(cells.get("ID", "")) or next(
            (by_name[same(name)] for name in names if name and same(name) in by_name), None
        )
        if mark is not None and mark.student in given:
            found.add(mark.student)
            person = [safe_cell(cell.strip()) for cell in line[:width]]
            rows.append([*person, *[""] * (width - len(person)), points_cell(given[mark.student])])
    return Import(write_table(rows, separator), _missing(marks, found, given), said)


def _canvas_column(header: list[str], width: int, wanted: str, asked: bool) -> tuple[int | None, tuple[str, ...]]:
    """The place of the column: its title is that of the assignment there, with Canvas's number in brackets."""
    titles = {i: re.sub(r" \(\d+\)$", "", name) for i, name in enumerate(header) if i >= width}
    exact = [i for i in titles if header[i] == wanted]
    found = exact or [i for i, title in titles.items() if title == wanted]
    numbered = [header[i] for i in titles if header[i] != titles[i]]
    if len(found) > 1:
        raise ValueError(f"{len(found)} columns are called {wanted!r}: name one with its number, as `--column`")
    if not found and asked:
        raise ValueError(f"it has no column {wanted!r}; there are: {', '.join(numbered) or 'none'}")
    if not found:
        others = f"; `--column` names another of: {', '.join(numbered)}" if numbered else ""
        return None, (f"no column of Canvas is called {wanted}, so Canvas will offer to make one{others}",)
    return found[0], ()


def _check_canvas_points(title: str, possible: str, full: float) -> None:
    if "read only" in possible:
        raise ValueError(f"Canvas does not let anybody write the column {title!r}")
    try:
        points = float(possible.replace(",", ".") or "nan")
    except ValueError:
        return
    if full and points == points and abs(points - full) > 1e-6:
        raise ValueError(
            f"{title!r} has {shown(points)} points in Canvas, and the marks here are out of {shown(full)}: "
            f"give it {shown(full)} points in Canvas, and export the gradebook again"
        )


def moodle_csv(
    marks: Sequence[Mark], roster: bytes | None = None, *, column: str = "", provisional: bool = False
) -> Import:
    """Moodle's offline grading worksheet. It is refused without Identifier, Grade and Last modified (grade).

    Args:
        roster: the worksheet that Moodle lets one download; its grades are filled in. Without it the last column says
            that nothing was modified, and Moodle replaces a grade that it has only where it is told to.
        column: the heading of the grades in a worksheet that is not in English.

    Raises:
        ValueError: the roster is not such a worksheet, or it has another maximum.
    """
    given = {mark.student: points for mark in marks if (points := mark.final(provisional=provisional)) is not None}
    numbers = {mark.student: number for mark in marks if (number := mark.platform_id("moodle") or mark.number)}
    if roster is not None:
        return _into_moodle(marks, given, numbers, roster, column or "Grade")
    listed = any(mark.person and mark.person.email for mark in marks)
    header = [name for name in _MOODLE_COLUMNS if listed or name != "Email address"]
    rows = [header]
    for mark in marks:
        if mark.student in given and mark.student in numbers:
            email = [safe_cell(mark.person.email if mark.person else "")] if listed else []
            number = numbers[mark.student]
            name = safe_cell(mark.name.removesuffix(f"_{number}"))
            rows.append([f"Participant {number}", name, *email, points_cell(given[mark.student]), "-"])
    return Import(write_table(rows), _missing(marks, numbers, given))


def _into_moodle(
    marks: Sequence[Mark], given: dict[str, float], numbers: dict[str, str], roster: bytes, column: str
) -> Import:
    rows, separator = read_table(roster)
    header = [cell.strip() for cell in rows[0]] if rows else []
    if column not in header or len(header) < 3:
        raise ValueError(
            f"it is not a grading worksheet of Moodle's: it has no column {column!r}; where it is not in English, "
            f"`--column` names the one with the grades, of: {', '.join(header)}"
        )
    place, highest = header.index(column), header.index("Maximum grade") if "Maximum grade" in header else None
    full = max((mark.max_score for mark in marks), default=0.0)
    by_number = {number: mark for mark in marks if (number := numbers.get(mark.student))}
    by_name = _unmistakable((n, mark) for mark in marks if not numbers.get(mark.student) for n in _called(mark))
    found = set()
    for row in rows[1:]:
        participant = re.search(r"(\d+)\s*$", row[0])
        mark = by_number.get(participant[1]) if participant else None
        mark = mark or next((by_name[same(cell)] for cell in row[1:4] if cell and same(cell) in by_name), None)
        if mark is None or mark.student not in given or place >= len(row):
            continue
        if highest is not None and highest < len(row) and _differs(row[highest], full):
            raise ValueError(
                f"the maximum grade in Moodle is {row[highest]}, and the marks here are out of {shown(full)}: "
                "change it in Moodle, and download the worksheet again"
            )
        row[place] = points_cell(given[mark.student])
        found.add(mark.student)
    return Import(write_table(rows, separator), _missing(marks, found, given))


def _called(mark: Mark) -> tuple[str, ...]:
    """What the student is called, here, in the class list and where the submission came from."""
    person, arrival = mark.person, mark.arrival
    names = (mark.student, *((person.name, person.email) if person else ()), arrival.name if arrival else "")
    return tuple(name for name in names if name)


def _differs(cell: str, full: float) -> bool:
    try:
        return abs(float(cell.replace(",", ".")) - full) > 1e-6
    except ValueError:
        return False


def _unmistakable(named: Iterable[tuple[str, Mark]]) -> dict[str, Mark]:
    """Name → mark, without the names that two people share."""
    found: dict[str, Mark | None] = {}
    for name, mark in named:
        found[same(name)] = mark if found.get(same(name), mark) is mark else None
    return {name: mark for name, mark in found.items() if mark is not None}


def _missing(marks: Sequence[Mark], found: Collection[str], given: dict[str, float]) -> tuple[str, ...]:
    return tuple(mark.student for mark in marks if mark.student in given and mark.student not in found)

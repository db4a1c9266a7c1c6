"""Marks by hand as a CSV table: written from the gradebook, filled in by graders, and read back.

The table has a row for each student and question. Several graders can each have a part of it, or a
copy: only cells that are filled in change a mark. Refused are marks that somebody else has changed
since the table was written, and marks for an answer that the student has replaced since.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from autograder.basics.errors import KitError
from autograder.basics.points import format_points
from autograder.basics.safe_text import one_line
from autograder.basics.tables import read_table, write_table
from autograder.basics.whole_files import write_whole
from autograder.course import Assignment, Course
from autograder.marks.rubric import RubricItem, find_items, read_rubrics, sum_points
from autograder.nbgrader.manual_grades import (
    HandMark,
    Key,
    read_hand_marks,
    write_hand_marks,
)
from autograder.outputs.export import points_cell, safe_cell

COLUMNS = (
    "student",
    "question",
    "max",
    "tests",
    "points",
    "items",
    "extra_credit",
    "comment",
    "waits",
    "points_before",
    "answer",
)
_SHOWN = 20
_HASH = 12
"""Letters of an answer's hash in the table: they tell two answers of one student apart."""
_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)?|[+-]?[.,]\d+")

Rubrics = Mapping[str, Sequence[RubricItem]]


def marks_command(
    course: Course,
    assignment: Assignment,
    *,
    to: Path | None,
    back: Path | None,
    question: str,
    apply: bool,
) -> Iterator[str]:
    """Write the table, or read one back; yields lines for the terminal.

    Args:
        to, back: the table to write, or to read; one of both.
        question: the only question in a table that is written; "" for all.
        apply: whether changes are stored. They are shown in any case.

    Raises:
        KitError: there is nothing to mark, or the table has mistakes. Nothing is changed then.
    """
    marks, rubrics = read_hand_marks(course, assignment), read_rubrics(assignment)
    if to is not None:
        chosen = [mark for mark in marks.values() if question in ("", mark.question)]
        if not chosen:
            names = _question_names(marks)
            raise KitError(f"{assignment.name} has no question {question!r}: {names}")
        write_whole(to, marks_csv(chosen, rubrics))
        students = len({mark.student for mark in chosen})
        yield (
            f"marks of {students} students in {to}: fill in points (or items), "
            "extra_credit and comment"
        )
    if back is not None:
        changed = changed_marks(back, marks, rubrics)
        for mark in changed:
            yield one_line(_describe_change(marks[mark.student, mark.question], mark))
        if not changed:
            yield "nothing differs"
        elif not apply:
            yield "nothing has changed yet; `--apply` stores these marks"
        else:
            write_hand_marks(course, assignment, changed)
            yield f"{len(changed)} marks stored in the gradebook; write pages and exports anew"


def marks_csv(marks: Iterable[HandMark], rubrics: Rubrics) -> str:
    """The table as text. Its last two columns identify the mark that a row was written from."""
    rows = [list(COLUMNS)]
    for mark in marks:
        items = find_items(mark.comment, rubrics.get(mark.question, ()))
        rows.append(
            [
                safe_cell(mark.student),
                safe_cell(mark.question),
                points_cell(mark.max_points),
                points_cell(None if mark.written else mark.tests),
                # a mark that waits stays empty here: filling it in ends the waiting
                points_cell(None if mark.waits else mark.points),
                " ".join(str(item.number) for item in items),
                points_cell(mark.extra_credit or None),
                safe_cell(mark.comment),
                "yes" if mark.waits else "",
                points_cell(mark.points),
                mark.answer[:_HASH],
            ]
        )
    return write_table(rows)


def changed_marks(
    file: Path,
    marks: Mapping[Key, HandMark],
    rubrics: Rubrics,
) -> list[HandMark]:
    """The marks that a filled-in table changes, in the order of its rows.

    Raises:
        KitError: names the rows with mistakes, up to twenty.
    """
    changed: list[HandMark] = []
    problems: list[str] = []
    seen: set[Key] = set()
    for number, row in enumerate(_read_rows(file), start=2):
        key = (row.get("student", ""), row.get("question", ""))
        try:
            mark = _find_mark(key, marks)
            if key in seen:
                raise ValueError(f"{key[0]} and {key[1]} stand in two rows")
            seen.add(key)
            new = _apply_row(mark, row, rubrics.get(mark.question, ()))
        except ValueError as error:
            problems.append(f"row {number}: {one_line(str(error))}")
        else:
            if new != mark:
                changed.append(new)
    if problems:
        lines = [f"{file}: nothing was changed", *problems[:_SHOWN]]
        if len(problems) > _SHOWN:
            lines.append(f"and {len(problems) - _SHOWN} more rows")
        raise KitError("\n".join(lines))
    return changed


def _read_rows(file: Path) -> list[dict[str, str]]:
    """The rows of a table, by column."""
    try:
        (header, *rows), _ = read_table(file.read_bytes())
    except ValueError as error:
        raise KitError(
            f"{file}: {error}" if str(error) else f"{file}: it is empty"
        ) from error
    columns = [name.strip().casefold() for name in header]
    for name in ("student", "question"):
        if name not in columns:
            raise KitError(
                f"{file}: there is no column {name!r}; `autograder marks --to` writes a "
                "table to fill in"
            )
    for name in COLUMNS:
        if columns.count(name) > 1:
            raise KitError(f"{file}: there are two columns {name!r}")
    by_column = []
    for row in rows:
        cells = map(_plain_cell, row)
        by_column.append(dict(zip(columns, cells, strict=False)))
    return by_column


def _find_mark(key: Key, marks: Mapping[Key, HandMark]) -> HandMark:
    """The gradebook's mark of a row.

    Raises:
        ValueError: the gradebook knows no such student, or no such question.
    """
    if key in marks:
        return marks[key]
    student, question = key
    if all(student != listed for listed, _ in marks):
        raise ValueError(f"nobody called {student!r} has a submission in the gradebook")
    raise ValueError(
        f"there is no question {question!r}; there are: {_question_names(marks)}"
    )


def _apply_row(
    mark: HandMark,
    row: Mapping[str, str],
    items: Sequence[RubricItem],
) -> HandMark:
    """The mark after a row of the table. An empty cell changes nothing; "none" removes points.

    Raises:
        ValueError: the row has a mistake.
    """
    place = f"{mark.student}, {mark.question}"
    comment = row.get("comment", "") or mark.comment
    if comment == _plain_cell(safe_cell(mark.comment)):
        comment = mark.comment
    cell = row.get("points", "")
    if numbers := row.get("items", ""):
        comment, cell = _apply_items(place, mark, numbers, comment, cell, items)
    points = mark.points
    if cell.casefold() == "none":
        points = None
    elif cell:
        points = _parse_points(place, cell, mark.max_points)
    extra_credit = mark.extra_credit
    if row.get("extra_credit"):
        extra_credit = _parse_number(place, row["extra_credit"])
    new = dataclasses.replace(
        mark, points=points, extra_credit=extra_credit, comment=comment
    )
    ends_waiting = bool(cell) and mark.waits
    if ends_waiting or new != mark:
        _refuse_outdated(place, mark, row)
    if ends_waiting or points != mark.points:
        new = dataclasses.replace(new, waits=mark.written and points is None)
    return new


def _refuse_outdated(place: str, mark: HandMark, row: Mapping[str, str]) -> None:
    """Raises: ValueError, where the mark or the answer has changed since the row was written."""
    if "points_before" in row and row["points_before"] != points_cell(mark.points):
        now = "nobody has given any"
        if mark.points is not None:
            now = f"there are {format_points(mark.points)} points now"
        raise ValueError(
            f"{place}: changed since the table was written ({now}); write it anew"
        )
    if row.get("answer") and mark.answer and row["answer"] != mark.answer[:_HASH]:
        raise ValueError(
            f"{place}: the student has handed in another answer since; write the table anew"
        )


def _apply_items(
    place: str,
    mark: HandMark,
    numbers: str,
    comment: str,
    cell: str,
    items: Sequence[RubricItem],
) -> tuple[str, str]:
    """The comment and the points of a row that gives rubric items by number, like "1 3".

    Points that stand in the row and differ from the mark's count before those of the items.
    """
    chosen = sorted({int(number) for number in re.findall(r"\d+", numbers)})
    by_number = {item.number: item for item in items}
    for number in chosen:
        if number not in by_number:
            raise ValueError(
                f"{place}: there is no item {number}; its marking scheme has {len(items)} "
                "lines with points"
            )
    if chosen == [item.number for item in find_items(mark.comment, items)]:
        return comment, cell
    words = re.sub(r"^(?:#\d+ ?)+", "", comment).strip()
    codes = " ".join(f"#{number}" for number in chosen)
    if cell in ("", points_cell(mark.points)):
        cell = points_cell(sum_points([by_number[number] for number in chosen]))
    return f"{codes} {words}".strip(), cell


def _parse_points(place: str, cell: str, max_points: float) -> float:
    points = _parse_number(place, cell)
    if not 0 <= points <= max_points:
        raise ValueError(
            f"{place}: {format_points(points)} points of {format_points(max_points)}; "
            "more than that is extra_credit"
        )
    return points


def _parse_number(place: str, cell: str) -> float:
    number = float(cell.replace(",", ".")) if _NUMBER.fullmatch(cell) else math.nan
    if not math.isfinite(number):
        raise ValueError(f"{place}: {cell!r} is no number")
    return round(number, 6)


def _plain_cell(text: str) -> str:
    """A cell without the apostrophe that keeps a spreadsheet from calculating it."""
    stripped = text.strip()
    if stripped.startswith("'") and safe_cell(stripped[1:]) == stripped:
        return stripped[1:]
    return stripped


def _describe_change(old: HandMark, new: HandMark) -> str:
    parts = []
    if old.points != new.points:
        old_text, new_text = _describe_points(old), _describe_points(new)
        parts.append(f"{old_text} → {new_text} of {format_points(new.max_points)}")
    if old.extra_credit != new.extra_credit:
        old_text, new_text = (
            format_points(old.extra_credit),
            format_points(new.extra_credit),
        )
        parts.append(f"extra credit {old_text} → {new_text}")
    if old.comment != new.comment:
        parts.append("comment replaced" if old.comment else "a comment")
    if old.waits and not new.waits:
        parts.append("looked at")
    return f"{new.student}, {new.question}: {', '.join(parts)}"


def _describe_points(mark: HandMark) -> str:
    if mark.points is not None:
        return format_points(mark.points)
    return (
        "waits" if mark.written else f"{format_points(mark.tests or 0.0)} by the tests"
    )


def _question_names(marks: Mapping[Key, HandMark]) -> str:
    return ", ".join(dict.fromkeys(question for _, question in marks))

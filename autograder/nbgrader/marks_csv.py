"""Marks by hand as a table that graders fill in: out of the gradebook, and back as a difference
that is shown first.

A row a student and question. Several graders can each have a part of the table, or a copy: only
what is filled in changes, and a mark that somebody else has changed since the table was written is
refused, as is one for an answer that the student has replaced since.
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
from autograder.nbgrader.manual_grades import HandMark, Key, read_hand_marks, write_hand_marks
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
"""Letters of the answer's hash: enough to tell two answers of one student apart."""
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
    """Write the table, or take one in; yields what to tell.

    Args:
        to, back: the table to write, or to take in; one of both.
        question: only this one, in a table that is written; "" for all.
        apply: whether the difference is stored; it is shown in any case.

    Raises:
        KitError: there is nothing to mark, or the table has mistakes. Nothing is changed then.
    """
    marks, rubrics = read_hand_marks(course, assignment), read_rubrics(assignment)
    if to is not None:
        chosen = [mark for mark in marks.values() if question in ("", mark.question)]
        if not chosen:
            raise KitError(f"{assignment.name} has no question {question!r}: {_names(marks)}")
        write_whole(to, marks_csv(chosen, rubrics))
        students = len({mark.student for mark in chosen})
        yield (
            f"marks of {students} students in {to}: fill in points (or items), "
            "extra_credit and comment"
        )
    if back is not None:
        new = changed_marks(back, marks, rubrics)
        for mark in new:
            yield one_line(_difference(marks[mark.student, mark.question], mark))
        if apply and new:
            write_hand_marks(course, assignment, new)
            yield f"{len(new)} marks stored in the gradebook; write pages and exports anew"
        else:
            yield (
                "nothing differs"
                if not new
                else "nothing has changed yet; `--apply` stores these marks"
            )


def marks_csv(marks: Iterable[HandMark], rubrics: Rubrics) -> str:
    """The table as text. Its last two columns say what the row was written from; leave them as they
    are.
    """
    rows = [list(COLUMNS)]
    for mark in marks:
        given = find_items(mark.comment, rubrics.get(mark.question, ()))
        rows.append(
            [
                safe_cell(mark.student),
                safe_cell(mark.question),
                points_cell(mark.max_points),
                points_cell(None if mark.written else mark.tests),
                # who waits is looked at by filling it in
                points_cell(None if mark.waits else mark.points),
                " ".join(str(item.number) for item in given),
                points_cell(mark.extra_credit or None),
                safe_cell(mark.comment),
                "yes" if mark.waits else "",
                points_cell(mark.points),
                mark.answer[:_HASH],
            ]
        )
    return write_table(rows)


def changed_marks(file: Path, marks: Mapping[Key, HandMark], rubrics: Rubrics) -> list[HandMark]:
    """The marks that a filled-in table changes, in its order.

    Raises:
        KitError: names every row that cannot be taken, up to twenty.
    """
    try:
        (header, *rows), _ = read_table(file.read_bytes())
    except ValueError as error:
        raise KitError(f"{file}: {error}" if str(error) else f"{file}: it is empty") from error
    columns = [name.strip().casefold() for name in header]
    if missing := [name for name in ("student", "question") if name not in columns]:
        raise KitError(
            f"{file}: there is no column {missing[0]!r}; `autograder marks --to` writes a "
            "table to fill in"
        )
    if twice := [name for name in COLUMNS if columns.count(name) > 1]:
        raise KitError(f"{file}: there are two columns {twice[0]!r}")
    changed: list[HandMark] = []
    problems: list[str] = []
    seen: set[Key] = set()
    for number, cells in enumerate(rows, start=2):
        row = {name: _cell(cell) for name, cell in zip(columns, cells, strict=False)}
        key = (row.get("student", ""), row.get("question", ""))
        try:
            mark = _known(key, marks)
            if key in seen:
                raise ValueError(f"{key[0]} and {key[1]} stand in two rows")
            seen.add(key)
            if (new := _marked(mark, row, rubrics.get(mark.question, ()))) != mark:
                changed.append(new)
        except ValueError as error:
            problems.append(f"row {number}: {one_line(str(error))}")
    if problems:
        more = [f"and {len(problems) - _SHOWN} more rows"] if len(problems) > _SHOWN else []
        raise KitError("\n".join([f"{file}: nothing was changed", *problems[:_SHOWN], *more]))
    return changed


def _known(key: Key, marks: Mapping[Key, HandMark]) -> HandMark:
    """The gradebook's mark of a row. Raises: ValueError, where it knows no such student, or no such
    question.
    """
    student, question = key
    if key in marks:
        return marks[key]
    if all(student != other for other, _ in marks):
        raise ValueError(f"nobody called {student!r} has a submission in the gradebook")
    raise ValueError(f"there is no question {question!r}; there are: {_names(marks)}")


def _marked(mark: HandMark, row: Mapping[str, str], items: Sequence[RubricItem]) -> HandMark:
    """The mark with what the row gives. An empty cell changes nothing; "none" takes points back.

    Raises:
        ValueError: says what cannot be taken.
    """
    who = f"{mark.student}, {mark.question}"
    comment = row.get("comment", "") or mark.comment
    if comment == _cell(safe_cell(mark.comment)):
        comment = mark.comment
    given, before = row.get("points", ""), row.get("points_before", "")
    if numbers := row.get("items", ""):
        comment, given = _with_items(who, mark, numbers, comment, given, items)
    points = mark.points
    if given:
        points = None if given.casefold() == "none" else _points(who, given, mark.max_points)
    extra = _number(who, row["extra_credit"]) if row.get("extra_credit") else mark.extra_credit
    is_looked_at = bool(given) and mark.waits
    is_new = is_looked_at or (points, extra, comment) != (
        mark.points,
        mark.extra_credit,
        mark.comment,
    )
    if is_new and "points_before" in row and before != points_cell(mark.points):
        somebody = (
            "nobody has given any"
            if mark.points is None
            else f"there are {format_points(mark.points)} points now"
        )
        raise ValueError(f"{who}: changed since the table was written ({somebody}); write it anew")
    if is_new and row.get("answer") and mark.answer and row["answer"] != mark.answer[:_HASH]:
        raise ValueError(
            f"{who}: the student has handed in another answer since; write the table anew"
        )
    waits = mark.waits
    if is_looked_at or points != mark.points:
        waits = mark.written and points is None
    return dataclasses.replace(
        mark, points=points, extra_credit=extra, comment=comment, waits=waits
    )


def _with_items(
    who: str, mark: HandMark, numbers: str, comment: str, given: str, items: Sequence[RubricItem]
) -> tuple[str, str]:
    """The comment and the points of a row that gives rubric items by their numbers, like "1 3".

    Points that stand in the row and differ from what they were count before those of the items.
    """
    wanted = [int(number) for number in re.findall(r"\d+", numbers)]
    by_number = {item.number: item for item in items}
    if unknown := [number for number in wanted if number not in by_number]:
        raise ValueError(
            f"{who}: there is no item {unknown[0]}; its marking scheme has {len(items)} "
            "lines with points"
        )
    old = {item.number for item in find_items(mark.comment, items)}
    if set(wanted) == old:
        return comment, given
    own = re.sub(r"^(?:#\d+ ?)+", "", comment).strip()
    codes = " ".join(f"#{number}" for number in sorted(set(wanted)))
    if given in ("", points_cell(mark.points)):
        given = points_cell(sum_points([by_number[number] for number in sorted(set(wanted))]))
    return f"{codes} {own}".strip(), given


def _points(who: str, cell: str, most: float) -> float:
    points = _number(who, cell)
    if points < 0 or points > most:
        raise ValueError(
            f"{who}: {format_points(points)} points of {format_points(most)}; more than that is "
            "extra_credit"
        )
    return points


def _number(who: str, cell: str) -> float:
    if not _NUMBER.fullmatch(cell) or not math.isfinite(number := float(cell.replace(",", "."))):
        raise ValueError(f"{who}: {cell!r} is no number")
    return round(number, 6)


def _cell(text: str) -> str:
    """A cell without the sign that keeps a spreadsheet from calculating it."""
    stripped = text.strip()
    return (
        stripped[1:]
        if safe_cell(stripped[1:]) == stripped and stripped.startswith("'")
        else stripped
    )


def _difference(old: HandMark, new: HandMark) -> str:
    parts = []
    if old.points != new.points:
        parts.append(f"{_shown(old)} → {_shown(new)} of {format_points(new.max_points)}")
    if old.extra_credit != new.extra_credit:
        parts.append(
            f"extra credit {format_points(old.extra_credit)} → {format_points(new.extra_credit)}"
        )
    if old.comment != new.comment:
        parts.append("comment replaced" if old.comment else "a comment")
    if old.waits and not new.waits:
        parts.append("looked at")
    return f"{new.student}, {new.question}: {', '.join(parts)}"


def _shown(mark: HandMark) -> str:
    if mark.points is not None:
        return format_points(mark.points)
    return "waits" if mark.written else f"{format_points(mark.tests or 0.0)} by the tests"


def _names(marks: Mapping[Key, HandMark]) -> str:
    return ", ".join(dict.fromkeys(question for _, question in marks))

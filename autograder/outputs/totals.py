"""The course's mark: everybody's assignments together, each counting as much as any other, without the lowest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autograder.outputs.export import points_cell, safe_cell
from autograder.outputs.marks import Mark, Status
from autograder.points import total
from autograder.roster import same
from autograder.tables import write_table

_NOTHING: tuple[Status, ...] = ("handed in nothing", "no notebook", "withdrawn")
"""Where there is nothing to grade, the assignment counts as 0."""


@dataclass(frozen=True, slots=True)
class Total:
    """One student's assignments.

    Attributes:
        marks: by assignment.
        percents: the share of the points by assignment, of 100; None where it is not known yet.
        dropped: the assignments that do not count: the lowest.
        total: the mean of the others, of 100; None while one of all is not known.
    """

    marks: Mapping[str, Mark]
    percents: Mapping[str, float | None]
    dropped: tuple[str, ...]
    total: float | None


def totals(by_assignment: Mapping[str, Sequence[Mark]], drop_lowest: int, *, provisional: bool = False) -> list[Total]:
    """Everybody's total, in the order of their names here.

    Args:
        by_assignment: the marks of each assignment that counts.
        drop_lowest: how many of the lowest do not count; one always does.
        provisional: whether somebody who waits for a person's points counts with those that there are.
    """
    people: dict[str, dict[str, Mark]] = {}
    for name, marks in by_assignment.items():
        for mark in marks:
            people.setdefault(same(mark.person.id if mark.person else mark.joined or mark.student), {})[name] = mark
    return [_total(people[key], tuple(by_assignment), drop_lowest, provisional) for key in sorted(people)]


def _total(marks: Mapping[str, Mark], names: Sequence[str], drop_lowest: int, provisional: bool) -> Total:
    percents = {name: _percent(marks.get(name), provisional) for name in names}
    known = [(percent, name) for name, percent in percents.items() if percent is not None]
    if len(known) < len(names):  # which one is lowest is not known either
        return Total(marks, percents, (), None)
    dropped = [name for _, name in sorted(known)[: min(drop_lowest, len(names) - 1)]]
    counted = [percent for percent, name in known if name not in dropped]
    return Total(marks, percents, tuple(n for n in names if n in dropped), round(total(counted) / len(counted), 6))


def _percent(mark: Mark | None, provisional: bool) -> float | None:
    if mark is None or mark.status in _NOTHING:
        return 0.0
    points = mark.final(provisional=provisional)
    return None if points is None or not mark.max_score else round(100 * points / mark.max_score, 6)


def totals_csv(rows: Sequence[Total], names: Sequence[str]) -> str:
    """A row a student, a column an assignment, of 100 each; `note` says what is not known yet, and why."""
    table = [["student", "name", "email", "section", *map(safe_cell, names), "dropped", "total", "note"]]
    for row in rows:
        mark = next(iter(row.marks.values()))
        person = next((m.person for m in row.marks.values() if m.person), None)
        notes = [f"{name}: {m.status}" for name, m in row.marks.items() if m.status != "graded"]
        notes += [f"{name}: handed in nothing" for name in names if name not in row.marks]
        table.append(
            [
                safe_cell(person.id if person else mark.student),
                *(safe_cell(text) for text in ((person.name, person.email, person.section) if person else ("",) * 3)),
                *(points_cell(row.percents[name]) for name in names),
                safe_cell(" ".join(row.dropped)),
                points_cell(None if row.total is None else round(row.total, 2)),
                safe_cell("; ".join(notes)),
            ]
        )
    return write_table(table)


def split_by_moodle(rows: Sequence[Total], names: Sequence[str]) -> list[str]:
    """Students who may stand here once for each assignment: of Moodle, which numbers people anew in each, and known
    by nothing else."""
    return [
        mark.student
        for row in rows
        for mark in list(row.marks.values())[:1]
        if len(names) > 1 and len(row.marks) < len(names) and mark.person is None and mark.ids.get("moodle")
    ]

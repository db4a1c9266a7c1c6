"""The course's mark: everybody's assignments together, by weights and categories, without the
lowest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from autograder.basics.errors import KitError
from autograder.basics.points import total
from autograder.basics.tables import write_table
from autograder.course import Course
from autograder.course.platform_names import NAMES, PER_ASSIGNMENT
from autograder.course.roster import same
from autograder.course.weights import Category, Weights
from autograder.marks.marks import Mark, Status
from autograder.outputs.export import points_cell, safe_cell
from autograder.records.results import Tell

_NOTHING: tuple[Status, ...] = ("handed in nothing", "no notebook", "withdrawn")
"""Where there is nothing to grade, the assignment counts as 0."""


@dataclass(frozen=True, slots=True)
class Total:
    """One student's assignments.

    Attributes:
        marks: by assignment.
        percents: the share of the points by assignment, of 100; None where it is not known yet.
        dropped: the assignments that do not count: the lowest of each category.
        total: the mean of the others by their weights, of 100; None while one of all is not known.
        categories: the same of each category of the course; none where it has none.
    """

    marks: Mapping[str, Mark]
    percents: Mapping[str, float | None]
    dropped: tuple[str, ...]
    total: float | None
    categories: Mapping[str, float | None] = field(default_factory=dict)


def totals(
    by_assignment: Mapping[str, Sequence[Mark]],
    drop_lowest: int,
    weights: Weights = Weights(),
    *,
    provisional: bool = False,
) -> list[Total]:
    """Everybody's total, in the order of their names here.

    Args:
        by_assignment: the marks of each assignment that counts.
        drop_lowest: how many of the lowest do not count, where there are no categories; one always
            does.
        weights: how much assignments and categories count. A category without marks yet does not.
        provisional: whether somebody who waits for a person's points counts with those that there
            are.

    Raises:
        ValueError: an assignment is in no category, and the course has some.
    """
    categories = weights.categories_of(by_assignment, drop_lowest)
    people: dict[str, dict[str, Mark]] = {}
    for name, marks in by_assignment.items():
        for mark in marks:
            people.setdefault(
                same(mark.person.id if mark.person else mark.joined or mark.student), {}
            )[name] = mark
    names = tuple(by_assignment)
    return [_total(people[key], names, categories, weights, provisional) for key in sorted(people)]


def _total(
    marks: Mapping[str, Mark],
    names: Sequence[str],
    categories: Sequence[Category],
    weights: Weights,
    provisional: bool,
) -> Total:
    percents = {name: _percent(marks.get(name), provisional) for name in names}
    dropped: set[str] = set()
    means: dict[str, float | None] = {}
    for category in categories:
        lowest, means[category.name] = _category_mean(category, percents, weights)
        dropped |= lowest
    weighed = [
        (means[category.name], category.weight) for category in categories if category.weight
    ]
    named = {name: mean for name, mean in means.items() if name}
    return Total(
        marks, percents, tuple(name for name in names if name in dropped), _mean(weighed), named
    )


def _category_mean(
    category: Category, percents: Mapping[str, float | None], weights: Weights
) -> tuple[set[str], float | None]:
    """The assignments of a category that do not count, and the mean of the others."""
    known = sorted(
        (percent, name) for name in category.assignments if (percent := percents[name]) is not None
    )
    if len(known) < len(category.assignments):  # which one is lowest is not known either
        return set(), None
    lowest = {name for _, name in known[: min(category.drop_lowest, len(known) - 1)]}
    return lowest, _mean(
        [(percent, weights.of(name)) for percent, name in known if name not in lowest]
    )


def _mean(weighed: Sequence[tuple[float | None, float]]) -> float | None:
    """The mean of numbers by their weights, alike where all of these are 0; None where one is not
    known.
    """
    numbers = [number for number, _ in weighed if number is not None]
    if len(numbers) < len(weighed) or not weighed:
        return None
    shares = [weight for _, weight in weighed]
    if not any(shares):
        shares = [1.0] * len(weighed)
    parts = [number * share for number, share in zip(numbers, shares, strict=True)]
    return round(total(parts) / total(shares), 6)


def _percent(mark: Mark | None, provisional: bool) -> float | None:
    if mark is None or mark.status in _NOTHING:
        return 0.0
    points = mark.final(provisional=provisional)
    return None if points is None or not mark.max_score else round(100 * points / mark.max_score, 6)


def course_totals(
    course: Course, by_assignment: Mapping[str, Sequence[Mark]], tell: Tell, *, provisional: bool
) -> list[Total]:
    """Everybody's total by the weights of course.toml; says which categories have no marks yet.

    Raises:
        KitError: a weight or a category names an assignment that there is none of, or one is in no
            category.
    """
    there = [assignment.name for assignment in course.assignments()]
    if unknown := sorted(course.weights.named().difference(there)):
        raise KitError(
            f"[totals] names {unknown[0]!r}, and there is no such assignment; there are: "
            f"{', '.join(there)}"
        )
    for category in course.weights.categories:
        if not any(name in by_assignment for name in category.assignments):
            tell(f"no results yet, so the category does not count: {category.name}")
    try:
        return totals(
            by_assignment, course.totals.drop_lowest, course.weights, provisional=provisional
        )
    except ValueError as error:
        raise KitError(str(error)) from error


def totals_csv(rows: Sequence[Total], names: Sequence[str]) -> str:
    """A row a student, a column an assignment and a category, of 100 each; `note` says what is not
    known, and why.
    """
    categories = list(rows[0].categories) if rows else []
    columns = [*names, *(f"category {name}" for name in categories)]
    table = [
        [
            "student",
            "name",
            "email",
            "section",
            *map(safe_cell, columns),
            "dropped",
            "total",
            "note",
        ]
    ]
    for row in rows:
        mark = next(iter(row.marks.values()))
        person = next((m.person for m in row.marks.values() if m.person), None)
        notes = [f"{name}: {m.status}" for name, m in row.marks.items() if m.status != "graded"]
        notes += [f"{name}: handed in nothing" for name in names if name not in row.marks]
        table.append(
            [
                safe_cell(person.id if person else mark.student),
                *(
                    safe_cell(text)
                    for text in (
                        (person.name, person.email, person.section) if person else ("",) * 3
                    )
                ),
                *(points_cell(row.percents[name]) for name in names),
                *(points_cell(row.categories[name]) for name in categories),
                safe_cell(" ".join(row.dropped)),
                points_cell(None if row.total is None else round(row.total, 2)),
                safe_cell("; ".join(notes)),
            ]
        )
    return write_table(table)


def find_split_students(rows: Sequence[Total], names: Sequence[str]) -> dict[str, str]:
    """Students who may stand here once for each assignment, and the platform that numbers people
    anew in each: they are known by nothing else.
    """
    return {
        mark.student: platform
        for row in rows
        for mark in list(row.marks.values())[:1]
        for platform in PER_ASSIGNMENT & NAMES.keys()
        if len(names) > 1
        and len(row.marks) < len(names)
        and mark.person is None
        and mark.ids.get(platform)
    }

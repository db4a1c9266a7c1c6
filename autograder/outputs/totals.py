"""The mark of the course: all assignments by weights and categories, without the lowest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from autograder.basics.errors import KitError
from autograder.basics.points import total
from autograder.basics.tables import write_table
from autograder.course import Course
from autograder.course.platform_names import NAMES, PER_ASSIGNMENT
from autograder.course.roster import fold_text
from autograder.course.weights import Category, Weights
from autograder.marks.marks import Mark, Status
from autograder.outputs.export import (
    PERSON_COLUMNS,
    person_cells,
    points_cell,
    safe_cell,
)
from autograder.records.results import Tell

_NOTHING: tuple[Status, ...] = ("handed in nothing", "no notebook", "withdrawn")
"""Without a submission the assignment counts as 0."""


@dataclass(frozen=True, slots=True)
class Total:
    """One student's assignments.

    Attributes:
        marks: by assignment.
        percents: the share of the points by assignment, of 100; None where it is not known yet.
        dropped: the assignments that do not count: the lowest of each category.
        total: the weighted mean of the other assignments, of 100; None while one is not known.
        categories: the mean of each category; empty for a course without categories.
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
    """Add up everybody's assignments, in the order of names.

    Args:
        by_assignment: the marks of each assignment that counts.
        drop_lowest: how many of the lowest do not count in a course without categories; one
            always counts.
        weights: of assignments and categories. A category without marks yet does not count.
        provisional: whether the points so far count for students who wait for a person.

    Raises:
        ValueError: an assignment is in no category, and the course has some.
    """
    categories = weights.categories_for(by_assignment, drop_lowest)
    people: dict[str, dict[str, Mark]] = {}
    for name, marks in by_assignment.items():
        for mark in marks:
            person = mark.person.id if mark.person else mark.joined or mark.student
            marks_of_person = people.setdefault(fold_text(person), {})
            marks_of_person[name] = mark
    rows = []
    for _, marks_of_person in sorted(people.items()):
        percents = {}
        for name in by_assignment:
            percents[name] = _percent(marks_of_person.get(name), provisional)
        rows.append(_total(marks_of_person, percents, categories, weights))
    return rows


def _total(
    marks: Mapping[str, Mark],
    percents: Mapping[str, float | None],
    categories: Sequence[Category],
    weights: Weights,
) -> Total:
    dropped: set[str] = set()
    weighted_means = []
    named_means = {}
    for category in categories:
        lowest, mean = _category_mean(category, percents, weights)
        dropped |= lowest
        if category.weight:
            weighted_means.append((mean, category.weight))
        if category.name:
            named_means[category.name] = mean
    return Total(
        marks,
        percents,
        dropped=tuple(name for name in percents if name in dropped),
        total=_mean(weighted_means),
        categories=named_means,
    )


def _category_mean(
    category: Category, percents: Mapping[str, float | None], weights: Weights
) -> tuple[set[str], float | None]:
    """The assignments of a category that do not count, and the mean of the others."""
    graded = []
    for name in category.assignments:
        percent = percents[name]
        if percent is None:  # an unknown mark may be the lowest
            return set(), None
        graded.append((percent, name))
    graded.sort()
    drop = min(category.drop_lowest, len(graded) - 1)
    lowest = {name for _, name in graded[:drop]}
    weighted = [(percent, weights.weight(name)) for percent, name in graded[drop:]]
    return lowest, _mean(weighted)


def _mean(weighted: Sequence[tuple[float | None, float]]) -> float | None:
    """The weighted mean, unweighted if all weights are 0; None while a number is not known."""
    numbers = [number for number, _ in weighted if number is not None]
    if len(numbers) < len(weighted) or not weighted:
        return None
    weights = [weight for _, weight in weighted]
    if not any(weights):
        weights = [1.0] * len(weighted)
    parts = [number * weight for number, weight in zip(numbers, weights, strict=True)]
    mean = total(parts) / total(weights)
    return round(mean, 6)


def _percent(mark: Mark | None, provisional: bool) -> float | None:
    if mark is None or mark.status in _NOTHING:
        return 0.0
    points = mark.final(provisional=provisional)
    if points is None or not mark.max_score:
        return None
    return round(100 * points / mark.max_score, 6)


def course_totals(
    course: Course,
    by_assignment: Mapping[str, Sequence[Mark]],
    tell: Tell,
    *,
    provisional: bool,
) -> list[Total]:
    """Everybody's total by the weights of course.toml; tells of categories without marks.

    Raises:
        KitError: course.toml names an unknown assignment, or leaves one without a category.
    """
    names = [assignment.name for assignment in course.assignments()]
    unknown = course.weights.assignments().difference(names)
    if unknown:
        raise KitError(
            f"[totals] names {min(unknown)!r}, and there is no such assignment; there are: "
            f"{', '.join(names)}"
        )
    for category in course.weights.categories:
        if by_assignment.keys().isdisjoint(category.assignments):
            tell(f"no results yet, so the category does not count: {category.name}")
    try:
        return totals(
            by_assignment,
            course.totals.drop_lowest,
            course.weights,
            provisional=provisional,
        )
    except ValueError as error:
        raise KitError(str(error)) from error


def totals_csv(rows: Sequence[Total], names: Sequence[str]) -> str:
    """A row for each student, with a column for each assignment and category, of 100 each.

    The column `note` says which marks are missing, and why.
    """
    categories = list(rows[0].categories) if rows else []
    columns = [*names, *(f"category {name}" for name in categories)]
    header = [
        "student",
        *PERSON_COLUMNS,
        *map(safe_cell, columns),
        "dropped",
        "total",
        "note",
    ]
    table = [header]
    for row in rows:
        marks = list(row.marks.values())
        person = next((mark.person for mark in marks if mark.person), None)
        student = person.id if person else marks[0].student
        percents = [row.percents[name] for name in names]
        percents += [row.categories[name] for name in categories]
        rounded_total = None if row.total is None else round(row.total, 2)
        dropped = " ".join(row.dropped)
        note = "; ".join(_missing_marks(row, names))
        table.append(
            [
                safe_cell(student),
                *person_cells(person),
                *map(points_cell, percents),
                safe_cell(dropped),
                points_cell(rounded_total),
                safe_cell(note),
            ]
        )
    return write_table(table)


def _missing_marks(row: Total, names: Sequence[str]) -> list[str]:
    """The assignments without a mark, each with the reason."""
    missing = []
    for name, mark in row.marks.items():
        if mark.status != "graded":
            missing.append(f"{name}: {mark.status}")
    for name in names:
        if name not in row.marks:
            missing.append(f"{name}: handed in nothing")
    return missing


def find_split_students(rows: Sequence[Total], names: Sequence[str]) -> dict[str, str]:
    """Students who may have a row for each assignment → the platform that numbers people anew in
    each assignment, and gave nothing else to know them by.
    """
    split = {}
    for row in rows:
        mark = next(iter(row.marks.values()))
        if mark.person is not None or len(row.marks) == len(names):
            continue
        for platform in PER_ASSIGNMENT & NAMES.keys():
            if mark.ids.get(platform):
                split[mark.student] = platform
    return split

"""How much each assignment counts in the mark of the course: weights, and categories such as homework and projects.

They stand in course.toml:

    [totals.weights]
    a9_language_model = 2

    [totals.categories]
    homework = { weight = 60, assignments = ["a1_word_vectors", "a2_attention"], drop_lowest = 1 }
    project = { weight = 40, assignments = ["a9_language_model"] }
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class Category:
    """Assignments that make one part of the course's mark.

    Attributes:
        weight: how much the category counts, beside the other categories.
        assignments: their names.
        drop_lowest: how many of its lowest assignments do not count.
    """

    name: str
    weight: float
    assignments: tuple[str, ...]
    drop_lowest: int = 0


@dataclass(frozen=True, slots=True)
class Weights:
    """How the assignments of a course make one mark.

    Attributes:
        of_assignments: how much an assignment counts beside the others of its category; 1 for those that are not in it.
        categories: none where all assignments count together.
    """

    of_assignments: Mapping[str, float] = field(default_factory=dict)
    categories: tuple[Category, ...] = ()

    def of(self, assignment: str) -> float:
        """How much the assignment counts beside the others of its category."""
        return self.of_assignments.get(assignment, 1.0)

    def named(self) -> set[str]:
        """Every assignment that a weight or a category names."""
        return {*self.of_assignments, *(name for category in self.categories for name in category.assignments)}

    def categories_of(self, assignments: Iterable[str], drop_lowest: int) -> tuple[Category, ...]:
        """The categories with the given assignments alone; one without a name where the course has none.

        Args:
            drop_lowest: for a course without categories.

        Raises:
            ValueError: an assignment is in no category, so that nobody knows how much it counts.
        """
        assignments = tuple(assignments)
        if not self.categories:
            return (Category("", 1.0, assignments, drop_lowest),)
        if outside := [name for name in assignments if all(name not in each.assignments for each in self.categories)]:
            raise ValueError(
                f"{outside[0]} is in no category of [totals.categories]; with weight = 0 one counts nothing"
            )
        parts = []
        for category in self.categories:
            names = tuple(name for name in assignments if name in category.assignments)
            parts += [Category(category.name, category.weight, names, category.drop_lowest)] if names else []
        return tuple(parts)


def read_weights(weights: object, categories: object) -> Weights:
    """The tables [totals.weights] and [totals.categories] as they stand in the file.

    Raises:
        ValueError: names the entry and what it may be.
    """
    of_assignments = {
        name: _number(f"totals.weights.{name}", value) for name, value in _table("totals.weights", weights).items()
    }
    made = tuple(_category(name, value) for name, value in _table("totals.categories", categories).items())
    seen: dict[str, str] = {}
    for category in made:
        for name in category.assignments:
            if name in seen:
                raise ValueError(f"totals.categories: {name} is in {seen[name]} and in {category.name}; name it once")
            seen[name] = category.name
    if made and not any(category.weight for category in made):
        raise ValueError("totals.categories: every weight is 0; one must be above it")
    return Weights(of_assignments, made)


def _category(name: str, value: object) -> Category:
    place = f"totals.categories.{name}"
    table = _table(place, value)
    if unknown := [key for key in table if key not in ("weight", "assignments", "drop_lowest")]:
        raise ValueError(f"unknown setting {place}.{unknown[0]!r}; there are: weight, assignments, drop_lowest")
    if "weight" not in table:
        raise ValueError(f"{place} needs a weight")
    names = table.get("assignments")
    if not isinstance(names, list) or not names or not all(isinstance(each, str) for each in names):
        raise ValueError(f'{place}.assignments must be a list of names of assignments, like ["a2_attention"]')
    lowest = table.get("drop_lowest", 0)
    if not isinstance(lowest, int) or isinstance(lowest, bool) or not 0 <= lowest <= 1000:
        raise ValueError(f"{place}.drop_lowest must be a whole number from 0 to 1000")
    return Category(name, _number(f"{place}.weight", table["weight"]), tuple(names), lowest)


def _number(place: str, value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and 0 <= value <= MOST:
        return float(value)
    raise ValueError(f"{place} must be a number from 0 to {MOST}")


def _table(place: str, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ValueError(f"[{place}] must be one table")
    return value

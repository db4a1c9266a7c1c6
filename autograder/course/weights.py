"""How much each assignment counts in the mark of the course: weights, and categories such as
homework and projects.

They stand in course.toml:

    [totals.weights]
    a9_language_model = 2

    [totals.categories]
    homework = { weight = 60, assignments = ["a1_word_vectors", "a2_attention"], drop_lowest = 1 }
    project = { weight = 40, assignments = ["a9_language_model"] }
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

from autograder.course.allowed import between, read_setting, read_settings, read_table

Weight = Annotated[float, between(0, 1_000_000)]
Names = Annotated[
    tuple[str, ...], Meta(min_length=1, description='a list of names, like ["a2_attention"]')
]


@dataclass(frozen=True, slots=True)
class Category:
    """Assignments that make one part of the course's mark.

    Attributes:
        weight: how much the category counts, beside the other categories.
        assignments: their names.
        drop_lowest: how many of its lowest assignments do not count.
    """

    name: str
    weight: Weight
    assignments: Names
    drop_lowest: Annotated[int, between(0, 1000)] = 0


@dataclass(frozen=True, slots=True)
class Weights:
    """How the assignments of a course make one mark.

    Attributes:
        of_assignments: how much an assignment counts beside the others of its category; 1 for those
            that are not in it.
        categories: none where all assignments count together.
    """

    of_assignments: Mapping[str, float] = field(default_factory=dict)
    categories: tuple[Category, ...] = ()

    def of(self, assignment: str) -> float:
        """How much the assignment counts beside the others of its category."""
        return self.of_assignments.get(assignment, 1.0)

    def named(self) -> set[str]:
        """Every assignment that a weight or a category names."""
        return {
            *self.of_assignments,
            *(name for category in self.categories for name in category.assignments),
        }

    def categories_of(self, assignments: Iterable[str], drop_lowest: int) -> tuple[Category, ...]:
        """The categories with the given assignments alone; one without a name where the course has
        none.

        Args:
            drop_lowest: for a course without categories.

        Raises:
            ValueError: an assignment is in no category, so that nobody knows how much it counts.
        """
        assignments = tuple(assignments)
        if not self.categories:
            return (Category("", 1.0, assignments, drop_lowest),)
        if outside := [
            name
            for name in assignments
            if all(name not in each.assignments for each in self.categories)
        ]:
            raise ValueError(
                f"{outside[0]} is in no category of [totals.categories]; with weight = 0 one "
                "counts nothing"
            )
        parts = []
        for category in self.categories:
            names = tuple(name for name in assignments if name in category.assignments)
            parts += (
                [Category(category.name, category.weight, names, category.drop_lowest)]
                if names
                else []
            )
        return tuple(parts)


def read_weights(weights: object, categories: object) -> Weights:
    """The tables [totals.weights] and [totals.categories] as they stand in the file.

    Raises:
        ValueError: names the entry and what it may be.
    """
    of_assignments = {
        name: read_setting(f"totals.weights.{name}", Weight, value)
        for name, value in read_table("totals.weights", weights).items()
    }
    made = tuple(
        read_settings(Category, f"totals.categories.{name}", table, name=name)
        for name, table in read_table("totals.categories", categories).items()
    )
    seen: dict[str, str] = {}
    for category in made:
        for name in category.assignments:
            if name in seen:
                raise ValueError(
                    f"totals.categories: {name} is in {seen[name]} and in {category.name}; "
                    "name it once"
                )
            seen[name] = category.name
    if made and not any(category.weight for category in made):
        raise ValueError("totals.categories: every weight is 0; one must be above it")
    return Weights(of_assignments, made)

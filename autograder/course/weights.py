"""Weights of assignments in the mark of the course, and categories such as homework and projects.

The section in course.toml:

    [totals.weights]
    a9_language_model = 2

    [totals.categories]
    homework = { weight = 60, assignments = ["a1_word_vectors", "a2_attention"], drop_lowest = 1 }
    project = { weight = 40, assignments = ["a9_language_model"] }
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from msgspec import Meta

from autograder.course.allowed import between, read_setting, read_settings, read_table

Weight = Annotated[float, between(0, 1_000_000)]
Names = Annotated[
    tuple[str, ...],
    Meta(min_length=1, description='a list of names, like ["a2_attention"]'),
]


@dataclass(frozen=True, slots=True)
class Category:
    """Assignments that make one part of the course's mark.

    Attributes:
        weight: how much the category counts, beside the other categories.
        drop_lowest: how many of the category's lowest assignments do not count.
    """

    name: str
    weight: Weight
    assignments: Names
    drop_lowest: Annotated[int, between(0, 1000)] = 0


@dataclass(frozen=True, slots=True)
class Weights:
    """How the assignments of a course make one mark.

    Attributes:
        by_assignment: the weights that course.toml lists; 1 for other assignments.
        categories: none where all assignments count together.
    """

    by_assignment: Mapping[str, float] = field(default_factory=dict)
    categories: tuple[Category, ...] = ()

    def weight(self, assignment: str) -> float:
        """How much the assignment counts beside the others of its category."""
        return self.by_assignment.get(assignment, 1.0)

    def assignments(self) -> set[str]:
        """Every assignment that a weight or a category names."""
        names = set(self.by_assignment)
        return names.union(*(category.assignments for category in self.categories))

    def categories_for(
        self, assignments: Collection[str], drop_lowest: int
    ) -> list[Category]:
        """The categories, reduced to the given assignments; one without a name where the course has
        no categories.

        Args:
            drop_lowest: for a course without categories.

        Raises:
            ValueError: an assignment is in no category, so that nobody knows how much it counts.
        """
        if not self.categories:
            return [Category("", 1.0, tuple(assignments), drop_lowest)]
        categorized = {
            name for category in self.categories for name in category.assignments
        }
        for name in assignments:
            if name not in categorized:
                raise ValueError(
                    f"{name} is in no category of [totals.categories]; with weight = 0 one counts "
                    "nothing"
                )
        reduced = []
        for category in self.categories:
            names = tuple(name for name in assignments if name in category.assignments)
            if names:
                reduced.append(replace(category, assignments=names))
        return reduced


def read_weights(weights: object, categories: object) -> Weights:
    """The tables [totals.weights] and [totals.categories] as they stand in the file.

    Raises:
        ValueError: an entry is not what it may be.
    """
    by_assignment = {
        name: read_setting(f"totals.weights.{name}", Weight, value)
        for name, value in read_table("totals.weights", weights).items()
    }
    listed = tuple(
        read_settings(Category, f"totals.categories.{name}", table, name=name)
        for name, table in read_table("totals.categories", categories).items()
    )
    category_of: dict[str, str] = {}
    for category in listed:
        for name in category.assignments:
            if name in category_of:
                raise ValueError(
                    f"totals.categories: {name} is in {category_of[name]} and in {category.name}; "
                    "name it once"
                )
            category_of[name] = category.name
    if listed and not any(category.weight for category in listed):
        raise ValueError("totals.categories: every weight is 0; one must be above it")
    return Weights(by_assignment, listed)

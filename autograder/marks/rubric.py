"""Rubric items of written answers: the lines of a marking scheme, which graders give by their
numbers.

A marking scheme in a source notebook has a line for each thing that points are given for:

    ### BEGIN MARK SCHEME
    - 2 points: the mean of the products is 0, and their variances add up.
    - 1 point: so the standard deviation grows like the square root of the width.
    ### END MARK SCHEME

They are numbered from 1. A grader who writes "#1 #2" in a comment, in the formgrader or in a table
of marks, gives both: the student reads what they say, and the class report counts them.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from autograder.basics.points import format_points, total
from autograder.course import Assignment
from autograder.intake.released_notebook import read_built_json
from autograder.marks.marks import Mark
from autograder.records.model import ManualGrades, ManualScore

_ITEM = re.compile(r"(?m)^[-*] +(\d+(?:\.\d+)?) +points?:[ \t]*")
_GIVEN = re.compile(r"(?<![\w&#/])#(\d{1,2})(?!\w)")
GUIDE = "guide"
"""The role of a cell that only graders see: the marking scheme of a written answer."""


@dataclass(frozen=True, slots=True)
class RubricItem:
    """One line of a marking scheme: what it gives points for, and how many."""

    number: int
    points: float
    text: str

    def __str__(self) -> str:
        return f"{self.text} ({format_points(self.points)} point{'s' * (self.points != 1)})"


def rubric_items(scheme: str) -> tuple[RubricItem, ...]:
    """The items of a marking scheme, in their order; none where its lines do not begin with
    points.
    """
    parts = _ITEM.split(scheme)[1:]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return tuple(
        RubricItem(number, float(points), " ".join(text.partition("\n\n")[0].split()))
        for number, (points, text) in enumerate(pairs, start=1)
    )


def numbered(scheme: str) -> str:
    """The marking scheme with the number of each item in front of it, as a grader reads it."""
    numbers = itertools.count(1)
    return _ITEM.sub(lambda match: f"- **#{next(numbers)}** {match[0].lstrip('-* ')}", scheme)


def read_rubrics(assignment: Assignment) -> dict[str, tuple[RubricItem, ...]]:
    """The items of every written answer of a built assignment, by its name; none where nothing is
    built.
    """
    try:
        cells = read_built_json(assignment.solution)["cells"]
    except (OSError, ValueError):
        return {}
    tagged = [(cell["metadata"].get("attention_kit", {}), cell["source"]) for cell in cells]
    return {tag["name"]: rubric_items(source) for tag, source in tagged if tag.get("role") == GUIDE}


def items_given(comment: str, items: Sequence[RubricItem]) -> tuple[RubricItem, ...]:
    """The items that a grader's comment gives by their numbers, each once, in the order of the
    scheme.
    """
    numbers = {int(number) for number in _GIVEN.findall(comment)}
    return tuple(item for item in items if item.number in numbers)


def points_of(items: Sequence[RubricItem]) -> float:
    """What the items give together."""
    return total([item.points for item in items])


def comment_with_texts(comment: str, items: Sequence[RubricItem]) -> str:
    """A grader's comment as the student reads it: for the number of an item stands what it says."""
    texts = {item.number: str(item) for item in items}
    return _GIVEN.sub(lambda match: texts.get(int(match[1]), match[0]), comment)


@dataclass(frozen=True, slots=True)
class WrittenStatistics:
    """One written answer over the class.

    Attributes:
        marked: how many a person has given points for.
        mean: of their points.
        items: each item of the marking scheme, and how many were given it.
        other_points: students whose points are not those of their items together.
    """

    name: str
    max_points: float
    marked: int
    mean: float
    items: tuple[tuple[RubricItem, int], ...]
    other_points: tuple[str, ...]


def written_statistics(
    by_hand: Iterable[ManualGrades], rubrics: Mapping[str, Sequence[RubricItem]]
) -> tuple[WrittenStatistics, ...]:
    """Every written answer that a person has marked in somebody's submission."""
    marked: dict[str, list[tuple[str, ManualScore]]] = {}
    for hand in by_hand:
        for score in hand.written:
            if score.points is not None and not score.waits:
                marked.setdefault(score.name, []).append((hand.student, score))
    return tuple(
        _statistics(name, scores, rubrics.get(name, ())) for name, scores in marked.items()
    )


def _statistics(
    name: str, scores: Sequence[tuple[str, ManualScore]], items: Sequence[RubricItem]
) -> WrittenStatistics:
    other = []
    for student, score in scores:
        given = items_given(score.comment, items)
        if given and abs(points_of(given) - (score.points or 0.0)) > 1e-6:
            other.append(student)
    points = [score.points or 0.0 for _, score in scores]
    return WrittenStatistics(
        name,
        scores[0][1].max_points,
        len(points),
        total(points) / len(points),
        counted([score.comment for _, score in scores], items),
        tuple(other),
    )


def as_students_read(
    marks: Iterable[Mark], rubrics: Mapping[str, Sequence[RubricItem]]
) -> Iterator[Mark]:
    """The marks, with what the items say in place of their numbers in comments."""
    for mark in marks:
        hand = mark.by_hand
        if hand is not None:
            written = [
                dataclasses.replace(
                    score, comment=comment_with_texts(score.comment, rubrics.get(score.name, ()))
                )
                for score in hand.written
            ]
            hand = dataclasses.replace(hand, written=tuple(written))
        yield dataclasses.replace(mark, by_hand=hand)


def counted(
    comments: Sequence[str], items: Sequence[RubricItem]
) -> tuple[tuple[RubricItem, int], ...]:
    """How many of the comments give each item."""
    given = [items_given(comment, items) for comment in comments]
    return tuple((item, sum(item in each for each in given)) for item in items)

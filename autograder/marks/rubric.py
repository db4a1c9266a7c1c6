"""Rubric items of written answers: lines of a marking scheme, which graders give by number.

A marking scheme in a source notebook has a line for each thing that points are given for:

    ### BEGIN MARK SCHEME
    - 2 points: the mean of the products is 0, and their variances add up.
    - 1 point: so the standard deviation grows like the square root of the width.
    ### END MARK SCHEME

Items are numbered from 1. A grader gives two of them by "#1 #2" in a comment, in the formgrader or
in a table of marks: the student reads their texts, and the class report counts them.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from autograder.basics.points import format_points, total
from autograder.course import Assignment
from autograder.intake.built_json import read_built_json
from autograder.marks.marks import Mark
from autograder.records.model import ManualGrades, ManualScore

_ITEM = re.compile(r"(?m)^[-*] +(\d+(?:\.\d+)?) +points?:[ \t]*")
_REFERENCE = re.compile(r"(?<![\w&#/])#(\d{1,2})(?!\w)")
GUIDE = "guide"
"""The role of a cell that only graders see: the marking scheme of a written answer."""


@dataclass(frozen=True, slots=True)
class RubricItem:
    """One line of a marking scheme: the points, and the reason for them."""

    number: int
    points: float
    text: str

    def __str__(self) -> str:
        return f"{self.text} ({format_points(self.points)} point{'s' * (self.points != 1)})"


def rubric_items(scheme: str) -> tuple[RubricItem, ...]:
    """Parse the items of a marking scheme; none where its lines do not begin with points."""
    parts = _ITEM.split(scheme)[1:]
    items: list[RubricItem] = []
    for points, text in zip(parts[::2], parts[1::2], strict=True):
        paragraph = text.partition("\n\n")[0]
        words = " ".join(paragraph.split())
        items.append(RubricItem(len(items) + 1, float(points), words))
    return tuple(items)


def number_items(scheme: str) -> str:
    """Put the number of each item in front of it, for graders to read."""
    numbers = itertools.count(1)
    return _ITEM.sub(
        lambda match: f"- **#{next(numbers)}** {match[0].lstrip('-* ')}", scheme
    )


def read_rubrics(assignment: Assignment) -> dict[str, tuple[RubricItem, ...]]:
    """The items of each written answer, by its name; none where the assignment is not built."""
    try:
        cells = read_built_json(assignment.solution)["cells"]
    except (OSError, ValueError):
        return {}
    rubrics = {}
    for cell in cells:
        tag = cell["metadata"].get("attention_kit", {})
        if tag.get("role") == GUIDE:
            rubrics[tag["name"]] = rubric_items(cell["source"])
    return rubrics


def find_items(comment: str, items: Sequence[RubricItem]) -> tuple[RubricItem, ...]:
    """The items whose numbers stand in a grader's comment, in the order of the scheme."""
    numbers = {int(number) for number in _REFERENCE.findall(comment)}
    return tuple(item for item in items if item.number in numbers)


def sum_points(items: Sequence[RubricItem]) -> float:
    """Points of the items together."""
    return total([item.points for item in items])


def expand_items(comment: str, items: Sequence[RubricItem]) -> str:
    """Replace the numbers of items in a grader's comment by their texts, for the student."""
    texts = {item.number: str(item) for item in items}

    def expand(reference: re.Match[str]) -> str:
        return texts.get(int(reference[1]), reference[0])

    return _REFERENCE.sub(expand, comment)


@dataclass(frozen=True, slots=True)
class WrittenStatistics:
    """One written answer over the class.

    Attributes:
        marked: number of students with points by hand.
        mean: of their points.
        items: each item of the marking scheme, and how many comments give it.
        other_points: students whose points differ from those of their items together.
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
    """Statistics of each written answer that a person has marked for at least one student."""
    marked: dict[str, list[tuple[str, ManualScore]]] = {}
    for grades in by_hand:
        for score in grades.written:
            if score.points is not None and not score.waits:
                marked.setdefault(score.name, []).append((grades.student, score))
    statistics = []
    for name, scores in marked.items():
        items = rubrics.get(name, ())
        statistics.append(_statistics(name, scores, items))
    return tuple(statistics)


def _statistics(
    name: str, scores: Sequence[tuple[str, ManualScore]], items: Sequence[RubricItem]
) -> WrittenStatistics:
    differing = []
    for student, score in scores:
        student_items = find_items(score.comment, items)
        if (
            student_items
            and abs(sum_points(student_items) - (score.points or 0.0)) > 1e-6
        ):
            differing.append(student)
    points = [score.points or 0.0 for _, score in scores]
    return WrittenStatistics(
        name,
        scores[0][1].max_points,
        len(points),
        total(points) / len(points),
        count_items([score.comment for _, score in scores], items),
        tuple(differing),
    )


def expand_comments(
    marks: Iterable[Mark], rubrics: Mapping[str, Sequence[RubricItem]]
) -> Iterator[Mark]:
    """The marks with the texts of items in place of their numbers in comments."""
    for mark in marks:
        grades = mark.by_hand
        if grades is None:
            yield mark
            continue
        written = []
        for score in grades.written:
            comment = expand_items(score.comment, rubrics.get(score.name, ()))
            written.append(dataclasses.replace(score, comment=comment))
        grades = dataclasses.replace(grades, written=tuple(written))
        yield dataclasses.replace(mark, by_hand=grades)


def count_items(
    comments: Sequence[str], items: Sequence[RubricItem]
) -> tuple[tuple[RubricItem, int], ...]:
    """How many of the comments give each item."""
    counts = Counter(
        item for comment in comments for item in find_items(comment, items)
    )
    return tuple((item, counts[item]) for item in items)

"""Marks of 11 of 20 points for the tests of the platforms' files."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

from autograder.course.roster import Person
from autograder.marks.marks import Mark

NOTHING = Mark(
    "bob",
    "handed in nothing",
    person=Person("bob", "Bob Roe", "bob@example.org", "B", {}),
)


def rows(text: str) -> list[list[str]]:
    """The cells of a CSV file."""
    return list(csv.reader(io.StringIO(text)))


def called(mark: Mark, student: str, total: float = 11.0) -> Mark:
    """The mark as another student's, with other points."""
    return replace(mark, student=student, total=total)


def arrived(mark: Mark, platform: str, number: str, name: str) -> Mark:
    """The mark of somebody whom the platform knows by the number."""
    return replace(
        mark, student=f"{name}_{number}", called=name, ids={platform: number}
    )

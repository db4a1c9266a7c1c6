"""A platform's own file, filled in: the ledger says whose each row is, the platform's module what becomes of it.

Nothing is written where it is not certain whose a row is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from autograder.course import Course
from autograder.intake.moodle_worksheet import Worksheet, read_worksheet
from autograder.ledger import Conflict, Identity, assert_certain, read_ledger
from autograder.ledger.rows import canvas_rows, moodle_rows
from autograder.outputs.canvas import Gradebook, canvas_csv, fill_gradebook, read_gradebook
from autograder.outputs.difference import Difference, points_to_give
from autograder.outputs.marks import Mark
from autograder.outputs.moodle import fill_worksheet, moodle_csv
from autograder.results import Tell
from autograder.tables import read_table


@dataclass(frozen=True, slots=True)
class Filled:
    """The text of the file to upload, and what it changes on the platform."""

    text: str
    difference: Difference


@dataclass(frozen=True, slots=True)
class PlatformFile:
    """Canvas's gradebook or Moodle's grading worksheet, read.

    Attributes:
        rows: the number of a row in the file → who the platform says it is of.
    """

    platform: str
    content: Gradebook | Worksheet
    rows: Mapping[int, Identity]

    def students(
        self, course: Course, assignment: str, students: Collection[str]
    ) -> tuple[dict[int, str], list[Conflict]]:
        """The number of a row → whose it is, and the rows of which that is not certain."""
        matches, conflicts = read_ledger(course).match_rows(
            self.platform, assignment, list(self.rows.values()), students
        )
        numbered = zip(self.rows, matches, strict=True)
        return {number: match.key for number, match in numbered if match.key is not None}, conflicts

    def hand_in_times(
        self, course: Course, assignment: str, students: Collection[str], tell: Tell
    ) -> dict[str, datetime | str]:
        """Student → when they handed in, or why that cannot be read; only Moodle's worksheet says so."""
        if not isinstance(self.content, Worksheet) or course.late.policy == "none":
            return {}
        times, unread = self.content.hand_in_times(course.about.timezone)
        students_of_rows, _ = self.students(course, assignment, students)
        if unread:
            number, reason = next(iter(unread.items()))
            tell(f"hand-in times of {len(unread)} in the worksheet cannot be read: Participant {number}: {reason}")
        numbers = {row.line: row.number for row in self.content.rows}
        by_number: dict[str, datetime | str] = {**times, **unread}
        return {
            student: by_number[numbers[line]]
            for line, student in students_of_rows.items()
            if numbers.get(line) in by_number
        }


def read_platform_file(platform: str, data: bytes, assignment: str, column: str) -> PlatformFile:
    """Read the file that is to be filled in.

    Raises:
        ValueError: it is not what the platform writes, or has no such column.
    """
    table, separator = read_table(data)
    if platform == "canvas":
        gradebook = read_gradebook(table, separator, assignment, column)
        identities = canvas_rows(table)
        return PlatformFile(platform, gradebook, {n: identities[n] for n in gradebook.people if n in identities})
    worksheet = read_worksheet(table, separator, column)
    return PlatformFile(platform, worksheet, moodle_rows(table))


def fill(
    course: Course,
    assignment: str,
    marks: Sequence[Mark],
    platform: str,
    file: PlatformFile | None,
    *,
    column: str = "",
    provisional: bool = False,
) -> Filled:
    """The file to upload.

    Raises:
        ValueError: the platform cannot take these marks.
        KitError: a row could be that of several people, or several rows that of one.
    """
    if file is None and platform == "canvas":
        return Filled(*canvas_csv(marks, assignment, column=column, provisional=provisional))
    if file is None:
        return Filled(*moodle_csv(marks, provisional=provisional))
    students, conflicts = file.students(course, assignment, [mark.student for mark in marks])
    points = points_to_give(marks, provisional=provisional)
    assert_certain(conflicts, points, platform)
    if isinstance(file.content, Gradebook):
        return Filled(*fill_gradebook(marks, file.content, students, provisional=provisional))
    return Filled(*fill_worksheet(marks, file.content, students, provisional=provisional))

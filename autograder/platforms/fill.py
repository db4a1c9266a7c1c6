"""A platform's own file, filled with marks: the ledger tells the student of each row, and the
platform's module fills the row.

Nothing is written where it is not certain whose a row is.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from autograder.basics.errors import KitError
from autograder.basics.tables import read_table, table_bytes
from autograder.course import Course
from autograder.course.platform_names import NAMES
from autograder.ledger import (
    Conflict,
    assert_certain,
    learn_rows,
    match_rows,
    read_ledger,
)
from autograder.marks.marks import Mark
from autograder.outputs.difference import Difference, points_to_give
from autograder.platforms.platform import OwnFile, Table
from autograder.platforms.registry import platforms
from autograder.records.results import Tell


@dataclass(frozen=True, slots=True)
class PlatformFile:
    """A platform's own file, read."""

    platform: str
    content: OwnFile

    def students(
        self, course: Course, assignment: str, students: Collection[str]
    ) -> tuple[dict[int, str], list[Conflict]]:
        """The number of a row → the student, and the rows of which the student is not certain."""
        rows = self.content.rows
        matches, conflicts = match_rows(
            read_ledger(course),
            self.platform,
            assignment,
            list(rows.values()),
            students,
        )
        numbered = zip(rows, matches, strict=True)
        return {
            number: match.key for number, match in numbered if match.key is not None
        }, conflicts

    def hand_in_times(
        self, course: Course, assignment: str, students: Collection[str], tell: Tell
    ) -> dict[str, datetime | str]:
        """Student → hand-in time, or why that time cannot be read."""
        times = (
            self.content.hand_in_times(course.about.timezone)
            if course.late.policy != "none"
            else {}
        )
        if not times:
            return {}
        if unread := {
            row: reason for row, reason in times.items() if isinstance(reason, str)
        }:
            row, reason = next(iter(unread.items()))
            own_file, person = NAMES[self.platform].own_file, self.content.rows[row]
            tell(
                f"hand-in times of {len(unread)} in the {own_file} cannot be read: "
                f"{person}: {reason}"
            )
        students_of_rows, _ = self.students(course, assignment, students)
        return {
            student: times[row]
            for row, student in students_of_rows.items()
            if row in times
        }


def read_own_table(roster: Path) -> tuple[Table, str]:
    """The lines of a platform's own file, and the separator of their cells.

    Raises:
        KitError: the file is no table.
    """
    try:
        return read_table(table_bytes(roster))
    except ValueError as error:
        raise KitError(f"{roster}: {error}") from error


def read_platform_file(
    platform: str, roster: Path, assignment: str, column: str
) -> PlatformFile | None:
    """Read the file that is to be filled in; None where the platform has none.

    Raises:
        KitError: it is not what the platform writes, or has no such column.
    """
    own_file = platforms()[platform].own_file
    if own_file is None:
        return None
    table, separator = read_own_table(roster)
    try:
        return PlatformFile(
            platform, own_file.read(table, separator, assignment, column)
        )
    except ValueError as error:
        raise KitError(f"{roster}: {error}") from error


def fill(
    course: Course,
    assignment: str,
    marks: Sequence[Mark],
    file: PlatformFile,
    *,
    provisional: bool = False,
) -> tuple[str, Difference]:
    """The text of the file to upload, and what it changes on the platform.

    Raises:
        ValueError: the platform cannot take these marks.
        KitError: a row could be that of several people, or several rows that of one.
    """
    students, conflicts = file.students(
        course, assignment, [mark.student for mark in marks]
    )
    assert_certain(
        conflicts, points_to_give(marks, provisional=provisional), file.platform
    )
    return file.content.fill(marks, students, provisional=provisional)


def learn_people(
    course: Course,
    assignment: str,
    platform: str,
    roster: Path,
    tell: Tell,
) -> None:
    """Take ids and groups from the platform's own file, so that each member of a group has a mark.

    Raises:
        KitError: it is no table, or the platform has no such file.
    """
    own_file = platforms()[platform].own_file
    if own_file is None:
        return
    table, _ = read_own_table(roster)
    rows = list(own_file.read_people(table).values())
    ledger = read_ledger(course)
    for row in rows if own_file.name_of_group else ():
        if other := ledger.name_in_download(row):
            tell(f"the download calls {row} {other}: {own_file.name_of_group}")
    learn_rows(
        ledger,
        platform,
        assignment,
        rows,
        ledger.students_with_notebooks(assignment),
        roster.name,
    )
    ledger.save()

"""Moodle: downloaded submissions, the offline grading worksheet, and feedback files.

    First Last_12345_assignsubmission_file/name.ipynb  before 4.1 with `_` at the end, or flat
    Group A_17_assignsubmission_file/name.ipynb        the group's number
    Default group_assignsubmission_file/name.ipynb     people in no group

The names are those of moodle, `mod/assign/classes/downloader.php`; feedback files go back under the
same ones (`mod/assign/feedback/file/importziplib.php`), where no name may hold a `_`.

The worksheet has a module of its own, `moodle_worksheet.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from autograder.basics.tables import write_table
from autograder.intake.archives import UploadedFile
from autograder.intake.owners import FindOwner, FindTime, Owner, add_times, inner_stem
from autograder.ledger import Identity
from autograder.ledger.identity_matching import name_key
from autograder.marks.marks import Mark
from autograder.outputs.difference import (
    Change,
    Difference,
    missing_students,
    points_to_give,
)
from autograder.outputs.export import points_cell, safe_cell
from autograder.platforms.moodle_worksheet import (
    TICK,
    Worksheet,
    read_people,
    read_worksheet,
)
from autograder.platforms.platform import (
    Download,
    DownloadFormat,
    Interface,
    InterfaceFormat,
    OwnFileFormat,
    Platform,
)

_FILE = re.compile(
    r"(?P<who>.+?)(?:_(?P<user>\d+))?_assignsubmission_[a-z]+(?:_(?P<name>.*))?",
    re.DOTALL,
)
_COLUMNS = (
    "Identifier",
    "Full name",
    "Email address",
    "Grade",
    "Last modified (grade)",
)


def find_owners(download: Download) -> FindOwner:
    """A function that tells each file's owner, with hand-in times from the worksheet."""
    if download.roster is None:
        return find_owner
    try:
        return add_times(
            find_owner, _times_of(read_worksheet(*download.roster), download.zone)
        )
    except ValueError:
        # The worksheet's language is not known, so its times cannot be read; its people can.
        return find_owner


def find_owner(file: UploadedFile) -> Owner | None:
    """The owner of a file. A group's folder is named like a person's, with the group's number, or
    with no number for people in no group.
    """
    for part in file.parts:
        match = _FILE.fullmatch(part)
        if match is None:
            continue
        name, number = match["who"], match["user"]
        return Owner(
            f"{name}_{number}" if number else name,
            Identity((("moodle", number),) if number else (), (), name),
            inner_stem(file, match["name"] or file.parts[-1]),
        )
    return None


def _times_of(worksheet: Worksheet, zone: str) -> FindTime:
    """A function that finds an owner's hand-in time in the worksheet; all members of a group have
    the same time.
    """
    times = worksheet.hand_in_times(zone)
    rows_of_groups: dict[str, int] = {}
    rows_of_numbers: dict[str, int] = {}
    for row, person in worksheet.rows.items():
        rows_of_numbers[person.ids[0][1]] = row
        if person.group:
            rows_of_groups.setdefault(name_key(person.group), row)

    def find_time(_: UploadedFile, owner: Owner) -> tuple[datetime | None, str]:
        row = rows_of_groups.get(name_key(owner.identity.name), 0)
        for platform, number in owner.identity.ids:
            if platform == "moodle":
                row = row or rows_of_numbers.get(number, 0)
        time = times.get(row)
        return (None, time) if isinstance(time, str) else (time, "")

    return find_time


def new_worksheet(
    marks: Sequence[Mark], assignment: str, column: str = "", provisional: bool = False
) -> tuple[str, Difference]:
    """Make a worksheet by the numbers that Moodle gave people, where Moodle's worksheet was not
    given.
    """
    points = points_to_give(marks, provisional=provisional)
    has_emails = any(mark.person and mark.person.email for mark in marks)
    table = [[name for name in _COLUMNS if has_emails or name != "Email address"]]
    changes = []
    for mark in marks:
        number = _number(mark)
        if mark.student not in points or not number:
            continue
        participant = f"Participant {number}"
        name = safe_cell(mark.name.removesuffix(f"_{number}"))
        row = [participant, name]
        if has_emails:
            row.append(safe_cell(mark.person.email if mark.person else ""))
        mark_points = points[mark.student]
        table.append([*row, points_cell(mark_points), "-"])
        changes.append(
            Change(
                f"{name} ({participant})",
                mark.student,
                "gets",
                "",
                mark_points,
            )
        )
    note = (
        "what Moodle has is not known without `--roster`; it replaces grades only where you "
        f"tick {TICK}"
    )
    return write_table(table), Difference(
        (), missing_students(marks, points, changes), (note,)
    )


def _number(mark: Mark) -> str:
    """Moodle's number of the student for this assignment; "" where nobody knows."""
    return mark.platform_id("moodle") or mark.number


def feedback_name(mark: Mark, assignment: str) -> str:
    """The page's path in the zip: a folder like those of the download."""
    number = _number(mark)
    who = mark.name.removesuffix(f"_{number}").replace("_", " ").replace("/", " ")
    return f"{who}_{number}_assignsubmission_file_/{assignment}.html" if number else ""


def connect(
    url: str,
    course: str,
    title: str,
    token: str,
) -> Interface:
    """One assignment's marks through Moodle's web services."""
    # imports httpx, which only `--push` needs
    from autograder.platforms.moodle_api import MoodleInterface

    return MoodleInterface(url, course, title, token)


PLATFORM = Platform(
    download=DownloadFormat(
        example="First Last_12345_assignsubmission_file_/name.ipynb",
        find_owners=find_owners,
        recognises=lambda file: any(_FILE.fullmatch(part) for part in file.parts),
    ),
    own_file=OwnFileFormat(
        read_people=read_people, read=read_worksheet, make=new_worksheet
    ),
    feedback_name=feedback_name,
    interface=InterfaceFormat(connect=connect),
)

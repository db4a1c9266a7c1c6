"""The record `PLATFORM` of a platform's module, and the types of the functions in it.

Each function does one thing that only the platform's own format decides. A platform leaves out what
it cannot do, and the command line does not offer that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

from autograder.course import Assignment, Course
from autograder.intake.archives import UploadedFile
from autograder.intake.owners import FindOwner, KnowsId
from autograder.ledger import Identity
from autograder.marks.marks import Mark
from autograder.outputs.difference import Difference

Table = list[list[str]]


def cells_by_title(table: Table) -> dict[int, dict[str, str]]:
    """The number of a line below the titles → the line's cells by the titles of their columns.

    Where two columns have one title the first counts: people's columns stand before those of
    assignments, and an assignment may be called "ID".
    """
    titles = [title.strip() for title in table[0]] if table else []
    records = {}
    for number, line in enumerate(table[1:], 1):
        cells: dict[str, str] = {}
        for title, cell in zip(titles, line, strict=False):
            cells.setdefault(title, cell.strip())
        records[number] = cells
    return records


@dataclass(frozen=True, slots=True)
class Download:
    """A platform's download, unpacked.

    Attributes:
        files: the notebooks, and the files that name people and times.
        assignment: the assignment's name in this course.
        is_known_id: whether the class list, the platform's own file or an earlier download has an
            id: tells ids from other numbers in a file's name.
        is_listed_id: whether the class list has an id.
        zone: the course's time zone, for platforms that write times without a zone.
        source: the archive or the folder.
        scratch: a folder for temporary files.
        roster: the platform's own file as a table, with the separator of its cells; None where
            `--roster` was not given.
    """

    files: Sequence[UploadedFile]
    assignment: str
    is_known_id: KnowsId
    is_listed_id: KnowsId
    zone: str
    source: Path
    scratch: Path
    roster: tuple[Table, str] | None = None


def _matches_nothing(_: object) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class DownloadFormat:
    """A platform's way of packing submissions for download.

    Attributes:
        example: the path of a notebook in a download, for messages.
        find_owners: reads a download; returns a function that tells each file's owner.
        recognises: whether a file has a path that no other platform writes.
        describes: whether a file, by its name, says whose notebooks are or when they were handed
            in.
        description_is_hand_in: whether such a file proves that somebody handed in something.
        holds_only_work: whether every file in a person's folder was handed in.
        own_files: names of files that the platform writes beside the files that were handed in.
        tells_groups: whether each download says of every submission whether a group handed it in.
        calls_by_student: whether the platform's name for a person is the student's name here.
    """

    example: str
    find_owners: Callable[[Download], FindOwner]
    recognises: Callable[[UploadedFile], bool] = _matches_nothing
    describes: Callable[[str], bool] = _matches_nothing
    description_is_hand_in: bool = False
    holds_only_work: bool = True
    own_files: Collection[str] = ()
    tells_groups: bool = False
    calls_by_student: bool = False


class OwnFile(Protocol):
    """A platform's own file of marks, read: everybody in the course, and the column of marks to
    fill.
    """

    @property
    def rows(self) -> Mapping[int, Identity]:
        """The number of a row in the file → the person in the row, as the platform calls them."""

    def fill(
        self,
        marks: Sequence[Mark],
        students: Mapping[int, str],
        *,
        provisional: bool = False,
    ) -> tuple[str, Difference]:
        """The text to upload, and what the platform will do with each row.

        Args:
            students: the number of a row → the student. Rows of people who are no students here are
                left out.

        Raises:
            ValueError: the platform cannot take these marks.
        """

    def hand_in_times(self, zone: str) -> Mapping[int, datetime | str]:
        """The number of a row → the hand-in time, or why that time cannot be read."""


@dataclass(frozen=True, slots=True)
class OwnFileFormat:
    """A platform's own file of people and marks.

    Attributes:
        read_people: the people in the file, by the number of the row.
        read: reads the file for filling. Arguments: the table, the separator of its cells, the
            assignment, and `--column`.
        make: makes a file that the platform takes where no `--roster` was given, and the
            difference; None where the platform takes only a file of its own. Arguments: the marks,
            the assignment, `--column`, and whether marks that wait for a person are exported.
        name_of_group: a hint for the case that the file and the download give one id two names; ""
            where that cannot be.
    """

    read_people: Callable[[Table], dict[int, Identity]]
    read: Callable[[Table, str, str, str], OwnFile]
    make: Callable[[Sequence[Mark], str, str, bool], tuple[str, Difference]] | None = (
        None
    )
    name_of_group: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """One person on the platform.

    Attributes:
        id: the interface's id of the person.
        identity: the person, for the ledger.
        mark: the mark on the platform; None for no mark.
        refused: why the platform will not take a mark of this person, or "".
        handed_in: the hand-in time, where the platform's interface has it.
    """

    id: str
    identity: Identity
    mark: float | None = None
    refused: str = ""
    handed_in: datetime | None = None


@dataclass(frozen=True, slots=True)
class Standings:
    """An assignment as the platform has it.

    Attributes:
        maximum: the assignment's points on the platform; None where it does not say.
        extra: whether the platform takes marks above the maximum.
        notes: further lines for the instructor, before the marks are sent.
    """

    title: str
    maximum: float | None
    people: tuple[Standing, ...]
    extra: bool = False
    notes: tuple[str, ...] = ()


class Interface(Protocol):
    """A platform's interface, opened for one assignment."""

    def read(self) -> Standings:
        """Read the assignment and everybody's mark.

        Raises:
            PlatformUnavailable: the platform does not answer, or does not let marks be written
                there.
        """

    def send(self, marks: Mapping[str, float]) -> None:
        """Send marks: the interface's id of a person → points.

        Raises:
            PlatformUnavailable: the platform did not take them.
        """


@dataclass(frozen=True, slots=True)
class InterfaceFormat:
    """The way to a platform's interface.

    Attributes:
        connect: opens the interface. Arguments: the address, the course's id, the assignment's
            title on the platform, and a token.
        address: the interface's address, for platforms that have one address for all courses.
        knows_times: whether the interface says when everybody handed in.
    """

    connect: Callable[[str, str, str, str], Interface]
    address: str = ""
    knows_times: bool = False


@dataclass(frozen=True, slots=True)
class Bundle:
    """A way to pack the autograder of one assignment for a platform.

    Attributes:
        write: writes the bundle to a path, with the files that students get beside the notebook,
            and returns its place.
        is_for_students: whether students get the bundle.
        installs_wheel: whether the kit is installed there from a wheel in the course's own
            repository.
    """

    write: Callable[[Course, Assignment, Path, Mapping[str, bytes]], Path]
    is_for_students: bool = False
    installs_wheel: bool = False


@dataclass(frozen=True, slots=True)
class Platform:
    """One learning platform; None stands for what the platform cannot do.

    Attributes:
        feedback_name: a feedback page's path in the zip that the platform takes; "" where the
            platform could not tell whose page it is.
        bundles: autograders of one assignment for this platform, by the word of `bundle --for`.
    """

    download: DownloadFormat | None = None
    own_file: OwnFileFormat | None = None
    feedback_name: Callable[[Mark, str], str] | None = None
    interface: InterfaceFormat | None = None
    bundles: Mapping[str, Bundle] = field(default_factory=dict)

"""What a platform's module tells the kit: a `PLATFORM`, which is a record of functions.

Each function is one thing that only the platform's own format can say. A platform that cannot do a
thing leaves its function out, and the command line does not offer it.
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


@dataclass(frozen=True, slots=True)
class Download:
    """What a platform let somebody download, unpacked.

    Attributes:
        files: what was taken of it: notebooks, and the files that name people and times.
        assignment: what the assignment is called here.
        knows: tells numbers that are ids from those that stand where an id could stand.
        lists: tells numbers that the class list has as ids of the platform.
        zone: the course's time zone, for platforms that write times without a zone.
        source: the archive or the folder.
        scratch: a folder for temporary files.
        roster: the platform's own file as a table, and what separates its cells; None where
            `--roster` was not given.
    """

    files: Sequence[UploadedFile]
    assignment: str
    knows: KnowsId
    lists: KnowsId
    zone: str
    source: Path
    scratch: Path
    roster: tuple[Table, str] | None = None


class OwnFile(Protocol):
    """A platform's own file of marks, read: everybody in the course, and the column that is to be
    filled.
    """

    @property
    def rows(self) -> Mapping[int, Identity]:
        """The number of a row in the file → the person in the row, as the platform calls them."""

    def fill(
        self, marks: Sequence[Mark], students: Mapping[int, str], *, provisional: bool = False
    ) -> tuple[str, Difference]:
        """The text to upload, and what the platform will do with each row.

        Args:
            students: the number of a row → the student; rows of people who are nobody here are left
                out.

        Raises:
            ValueError: the platform cannot take these marks.
        """

    def hand_in_times(self, zone: str) -> Mapping[int, datetime | str]:
        """The number of a row → when something was handed in, or why that time cannot be read."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One person on the platform.

    Attributes:
        id: what the interface calls the person.
        identity: what the ledger knows the person by.
        mark: the mark that the platform has; None for none.
        refused: why the platform will not take a mark of this person, or "".
        handed_in: when they handed in, where that was asked for and the platform says so.
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
        maximum: the points that it has there; None where the platform does not say.
        extra: whether the platform takes marks above that.
        notes: what else to know before the marks are sent.
    """

    title: str
    maximum: float | None
    people: tuple[Standing, ...]
    extra: bool = False
    notes: tuple[str, ...] = ()


class Interface(Protocol):
    """A platform's interface, opened for one assignment."""

    def read(self) -> Standings:
        """The assignment and everybody's mark.

        Raises:
            PlatformUnavailable: the platform does not answer, or does not let marks be written
                there.
        """

    def give(self, marks: Mapping[str, float]) -> None:
        """Send marks: the person's id there → points.

        Raises:
            PlatformUnavailable: the platform did not take them.
        """


@dataclass(frozen=True, slots=True)
class Bundle:
    """An autograder of one assignment, packed for a platform.

    Attributes:
        write: writes it to a path, with the files that students get beside the notebook, and
            returns where it lies.
        is_for_students: whether students get it.
        installs_wheel: whether the kit is installed there from a wheel in the course's own
            repository.
    """

    write: Callable[[Course, Assignment, Path, Mapping[str, bytes]], Path]
    is_for_students: bool = False
    installs_wheel: bool = False


@dataclass(frozen=True, slots=True)
class Platform:
    """One learning platform.

    Attributes:
        example: how a notebook is called in its download.
        find_owners: tells whose each file of a download is.
        recognises: whether a file has a name that no other platform writes.
        describes: whether a file, by its name, says whose notebooks are or when they were handed
            in.
        proves_hand_in: whether a file, by its name, says that somebody handed in something.
        holds_only_work: whether every file in somebody's folder of a download was handed in.
        own_files: names of files that the platform writes beside what students handed in.
        says_whose: whether each download says of every submission whether it is a group's.
        called_as_student: whether the student's name here is also what the platform calls the
            person.
        read_people: the people in the platform's own file, by the number of the row.
        read_file: reads the platform's own file. Arguments: the table, the separator of its cells,
            the assignment, and `--column`.
        new_file: makes a file that the platform takes where no `--roster` was given, and the
            difference. Arguments: the marks, the assignment, `--column`, and whether marks that
                wait for a person are exported.
        name_of_group: a hint for the case that the platform's file and its download give one id two
            names; "" for none.
        feedback_name: a feedback page's path in the zip that the platform takes; "" where it could
            not tell whose.
        connect: opens the platform's interface. Arguments: the address, the course's id, the
            assignment's title on the platform, and a token.
        address: the interface's address, for platforms that have a single address for all courses.
        knows_times: whether the interface says when everybody handed in.
        bundles: autograders of one assignment for this platform, by the word of `bundle --for`.
    """

    example: str = ""
    find_owners: Callable[[Download], FindOwner] | None = None
    recognises: Callable[[UploadedFile], bool] | None = None
    describes: Callable[[str], bool] | None = None
    proves_hand_in: Callable[[str], bool] | None = None
    holds_only_work: bool = True
    own_files: Collection[str] = ()
    says_whose: bool = False
    called_as_student: bool = False
    read_people: Callable[[Table], dict[int, Identity]] | None = None
    read_file: Callable[[Table, str, str, str], OwnFile] | None = None
    new_file: Callable[[Sequence[Mark], str, str, bool], tuple[str, Difference]] | None = None
    name_of_group: str = ""
    feedback_name: Callable[[Mark, str], str] | None = None
    connect: Callable[[str, str, str, str], Interface] | None = None
    address: str = ""
    knows_times: bool = False
    bundles: Mapping[str, Bundle] = field(default_factory=dict)

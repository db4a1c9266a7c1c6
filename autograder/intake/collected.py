"""The record of `collect`, in `submitted/.collected/<assignment>.json`: each student's file in the
download, and the files that were left out.

The report shows the record, and feedback goes back to a platform by it. The ledger says who is who.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from autograder.basics.errors import KitError
from autograder.basics.safe_text import one_line
from autograder.basics.stored_json import encode_stored, read_stored
from autograder.course.platform_names import ANONYMOUS
from autograder.ledger.ledger_file import COLLECTED


@dataclass(frozen=True, slots=True)
class Arrival:
    """The origin of a student's submission.

    Attributes:
        origin: the platform.
        id: the person's id on the platform.
        name: the person's name on the platform.
        file: the file's path in the download, by which the platform takes feedback back.
        late: whether the platform marks the file as late; None where the platform does not say.
        unread: why the time of the file could not be read, or "".
        anonymous: whether the id belongs to a submission that was graded anonymously.
    """

    origin: str
    id: str
    name: str
    file: str
    late: bool | None = None
    unread: str = ""
    anonymous: bool = False

    @property
    def platform(self) -> str:
        """The platform's name in the ledger: Canvas's anonymous ids are ids of their own."""
        return ANONYMOUS if self.anonymous else self.origin


@dataclass(frozen=True, slots=True)
class NotTaken:
    """A student with a file on the platform, but no notebook that could be graded."""

    student: str
    arrival: Arrival
    reason: str


@dataclass(frozen=True, slots=True)
class Collected:
    """Everything that was collected of one assignment.

    Attributes:
        students: students whose notebook was collected, now or earlier, by the course's name.
        not_taken: students without a notebook, by the course's name.
        absent: students of an earlier download who were not in the last download.
        source: the last download.
        said: the lines that the last `collect` printed.
    """

    students: Mapping[str, Arrival] = field(default_factory=dict)
    not_taken: Mapping[str, NotTaken] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    source: str = ""
    said: tuple[str, ...] = ()

    def to_json(self) -> str:
        """The text of the record."""
        return encode_stored(self)


def record_path(submitted: Path, assignment: str) -> Path:
    """The path of the record: no student's folder begins with a dot."""
    return submitted / COLLECTED / f"{assignment}.json"


def read_collected(submitted: Path, assignment: str) -> Collected:
    """The record; an empty one where nothing was collected.

    Raises:
        KitError: the file is broken. Without the record nobody knows who was late, so the command
            ends.
    """
    path = record_path(submitted, assignment)
    try:
        return read_stored(path, Collected)
    except (FileNotFoundError, NotADirectoryError):
        return Collected()
    except ValueError as error:
        raise KitError(
            f"{path}: {one_line(str(error))}; put the file back, or move it away and collect "
            f"{assignment} again"
        ) from error

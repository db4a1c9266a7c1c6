"""What `collect` did, in `submitted/.collected/<assignment>.json`: which file came from where, and
what was left out.

The report shows it, and feedback goes back to a platform by it. Who is who stands in the ledger.
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
    """Where a student's submission came from.

    Attributes:
        origin: the platform.
        id: what the platform knows the person by.
        name: what it calls them.
        file: the file's path in the download, by which the platform takes feedback back.
        late: whether the platform marks it as late; None where it says nothing of that.
        unread: why the time that came with it could not be read, or "".
        anonymous: whether the id is one of a submission that was graded anonymously.
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
        """The platform as the ledger has it: Canvas's anonymous ids are ids of their own."""
        return ANONYMOUS if self.anonymous else self.origin


@dataclass(frozen=True, slots=True)
class NotTaken:
    """A student of whom the platform had something, but no notebook that could be taken."""

    student: str
    arrival: Arrival
    reason: str


@dataclass(frozen=True, slots=True)
class Collected:
    """Everything that was collected of one assignment.

    Attributes:
        students: by their name here; those whose notebook was taken, now or earlier.
        not_taken: by their name here.
        absent: whom an earlier download had and the last one had not.
        source: the last download.
        said: what the last `collect` printed.
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
    """Where the record lies: no student's folder begins with a dot."""
    return submitted / COLLECTED / f"{assignment}.json"


def read_collected(submitted: Path, assignment: str) -> Collected:
    """The record; an empty one where nothing was collected.

    Raises:
        KitError: the file is broken. It says who is who and who was late, so nothing goes on
            without it.
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

"""What `collect` did, in `submitted/.collected/<assignment>.json`: who came from where, and what was left out.

The report shows it, exports find people on their platform by it, and the next `collect` knows a person again whose name
has changed.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from autograder.errors import KitError
from autograder.roster import Person, Roster
from autograder.stored_json import read_stored
from autograder.text import one_line

FOLDER = ".collected"


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
    """

    origin: str
    id: str
    name: str
    file: str
    late: bool | None = None
    unread: str = ""


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
        return json.dumps(dataclasses.asdict(self), indent=1, ensure_ascii=False) + "\n"


def record_path(submitted: Path, assignment: str) -> Path:
    """Where the record lies: no student's folder begins with a dot."""
    return submitted / FOLDER / f"{assignment}.json"


def read_collected(submitted: Path, assignment: str) -> Collected:
    """The record; an empty one where nothing was collected.

    Raises:
        KitError: the file is broken. It says who is who and who was late, so nothing goes on without it.
    """
    path = record_path(submitted, assignment)
    try:
        return read_stored(path, Collected)
    except (FileNotFoundError, NotADirectoryError):
        return Collected()
    except ValueError as error:
        raise KitError(
            f"{path}: {one_line(str(error))}; put the file back, or move it away and collect {assignment} again"
        ) from error


def person_called(roster: Roster | None, student: str, arrival: Arrival | None) -> Person | None:
    """Who in the class list a student is, by the platform's id or by any of their names."""
    if roster is None:
        return None
    if arrival is None:
        return roster.find((student,))
    return roster.find((student, arrival.name), arrival.origin, arrival.id)


def known_people(submitted: Path, assignment: str, origin: str) -> dict[str, str]:
    """Platform's id → student, of everybody who was ever collected from there.

    Moodle numbers its participants anew in each assignment; elsewhere an id is the person's in all of them.
    """
    records = sorted((submitted / FOLDER).glob("*.json"))
    names = [assignment] if origin == "moodle" else [path.stem for path in records if path.stem != assignment]
    found = {}
    for name in names if assignment in names else [*names, assignment]:
        record = read_collected(submitted, name)
        arrivals = [*((one.student, one.arrival) for one in record.not_taken.values()), *record.students.items()]
        found.update({arrival.id: student for student, arrival in arrivals if arrival.origin == origin})
    return found

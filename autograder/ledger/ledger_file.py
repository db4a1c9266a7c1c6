"""What the ledger holds, and its file, `ledger.json` beside course.toml.

students   student → folder, name, accounts, and links: what each platform knows the student by
groups     assignment → the student in whose folder a group's work lies → the members
history    who was linked to what, when, by which download, and what it was concluded from
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from autograder.basics.errors import KitError
from autograder.basics.file_transaction import FileTransaction
from autograder.basics.stored_json import encode_stored, read_stored
from autograder.basics.whole_files import write_whole
from autograder.course.folders import LEDGER_FILE
from autograder.ledger.identity_matching import Evidence, id_key

SCHEMA = 1
COLLECTED = ".collected"
"""The folder of the records of downloads, below submitted/."""

NO_STUDENTS = (COLLECTED, ".collecting-")
"""How folders in submitted/ begin that are no student's."""


@dataclass(frozen=True, slots=True)
class Link:
    """What a platform knows a student by.

    Attributes:
        assignment: where the id holds, if not in the whole course.
        sure: False where only a name linked the id to somebody of the class list.
    """

    platform: str
    id: str
    assignment: str = ""
    sure: bool = True


@dataclass(frozen=True, slots=True)
class Record:
    """One student, as results and exports call them.

    Attributes:
        folder: in submitted/, which is also nbgrader's id.
        name: as a platform writes it.
        accounts: emails, logins and student numbers that were seen.
        namesake: whether somebody else on the platform has the name too, so that it says nothing.
    """

    student: str = ""
    folder: str = ""
    name: str = ""
    accounts: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    namesake: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the history: a link, or, with `members`, a group."""

    when: str
    source: str
    assignment: str
    student: str
    evidence: Evidence
    platform: str = ""
    id: str = ""
    members: tuple[str, ...] = ()


@dataclass(slots=True)
class Records:
    """The content of the file, where a record leaves out what is empty, or as its key says."""

    schema: int = 0
    students: dict[str, Record] = field(default_factory=dict)
    groups: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    history: list[Event] = field(default_factory=list)


def read_records(root: Path) -> Records:
    """Read the course's ledger; empty records where there is no file.

    Raises:
        KitError: the file is broken.
    """
    path = root / LEDGER_FILE
    records = Records()
    try:
        if path.exists():
            records = read_stored(path, Records)
            if records.schema != SCHEMA:
                raise ValueError(f"schema {records.schema!r}, expected {SCHEMA}")
            for student, record in records.students.items():
                records.students[student] = dataclasses.replace(
                    record, student=student, folder=record.folder or student
                )
    except (OSError, ValueError) as error:
        raise KitError(
            f"{path}: cannot be read ({error}): put a copy of it back; without one move it away "
            "and collect every assignment again"
        ) from error
    return records


def link_key(link: Link) -> tuple[str, str, str]:
    """What tells a link from any other."""
    return *id_key((link.platform, link.id)), link.assignment


def write_records(root: Path, records: Records, files: FileTransaction | None = None) -> None:
    """Write the ledger, whole or not at all; nothing happens where it stands there already.

    Args:
        files: what it is to change together with; None where it changes by itself.
    """
    raw = {
        "schema": SCHEMA,
        "students": {key: _sparse(record) for key, record in sorted(records.students.items())},
        "groups": {
            name: dict(sorted(groups.items())) for name, groups in sorted(records.groups.items())
        },
        "history": [_sparse(event) for event in records.history],
    }
    text = encode_stored(raw)
    path = root / LEDGER_FILE
    if not path.exists() or path.read_bytes() != text.encode("utf-8", "backslashreplace"):
        (files.write if files else write_whole)(path, text)


def _sparse(record: Record | Event) -> dict[str, Any]:
    """The record without what is empty, so that a person can read the file."""
    raw = {
        name: value
        for name, value in msgspec.to_builtins(record).items()
        if value not in ("", (), False)
    }
    if isinstance(record, Record):
        raw.pop("student")
        if record.folder == record.student:
            raw.pop("folder")
        if record.links:
            links = map(msgspec.to_builtins, record.links)
            raw["links"] = [
                {name: value for name, value in link.items() if value not in ("", True)}
                for link in links
            ]
    return raw

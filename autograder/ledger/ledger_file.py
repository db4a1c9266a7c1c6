"""The ledger's file, `ledger.json` beside course.toml, and the records in it.

students   student → folder, name, accounts, and links: what each platform knows the student by
groups     assignment → the student in whose folder a group's work lies → the members
history    who was linked to what, when, by which download, and on what evidence
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from autograder.basics.errors import KitError
from autograder.basics.file_transaction import FileTransaction
from autograder.basics.stored_json import encode_stored, read_stored
from autograder.basics.whole_files import write_whole
from autograder.course.folders import LEDGER_FILE
from autograder.ledger.identity_matching import Evidence, Id, id_key

SCHEMA = 1
COLLECTED = ".collected"
"""The folder of the records of downloads, below submitted/."""

Groups = dict[str, tuple[str, ...]]
"""The student in whose folder a group's work lies → the members."""

NO_STUDENTS = (COLLECTED, ".collecting-")
"""Beginnings of names of folders in submitted/ that belong to no student."""


class Link(Struct, frozen=True, omit_defaults=True):
    """An id by which a platform knows a student.

    Attributes:
        assignment: the assignment in which the id holds; "" for the whole course.
        sure: False where only a name linked the id to a person of the class list.
    """

    platform: str
    id: str
    assignment: str = ""
    sure: bool = True

    @property
    def platform_id(self) -> Id:
        """The id with its platform, as an `Identity` has it."""
        return self.platform, self.id

    @property
    def key(self) -> tuple[str, str, str]:
        """The link's identity: two links with one key are the same link."""
        return *id_key(self.platform_id), self.assignment


class StudentRecord(Struct, frozen=True, omit_defaults=True):
    """The facts that the ledger remembers of one student.

    Attributes:
        student: the name in results and exports; in the file it is the record's key.
        folder: the folder's name in submitted/, which is also nbgrader's id. The file leaves it out
            where it equals the student's name.
        name: the person's name, as a platform writes it.
        accounts: emails, logins and student numbers that downloads and platforms' files had.
        namesake: whether another person on the platform has the same name, which then is no
            evidence.
    """

    student: str = ""
    folder: str = ""
    name: str = ""
    accounts: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    namesake: bool = False

    def links_in(self, assignment: str) -> list[Link]:
        """The links that hold for the assignment."""
        return [link for link in self.links if link.assignment in ("", assignment)]


class Event(Struct, frozen=True, omit_defaults=True):
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
class LedgerContent:
    """The content of the file."""

    schema: int
    students: dict[str, StudentRecord] = field(default_factory=dict)
    groups: dict[str, Groups] = field(default_factory=dict)
    history: list[Event] = field(default_factory=list)


def read_content(root: Path) -> LedgerContent:
    """Read the ledger's file in a course's folder; empty content where there is no file.

    Raises:
        KitError: the file is broken.
    """
    path = root / LEDGER_FILE
    if not path.exists():
        return LedgerContent(SCHEMA)
    try:
        content = read_stored(path, LedgerContent)
        if content.schema != SCHEMA:
            raise ValueError(f"schema {content.schema!r}, expected {SCHEMA}")
    except (OSError, ValueError) as error:
        raise KitError(
            f"{path}: cannot be read ({error}): put a copy of it back; without one move it away "
            "and collect every assignment again"
        ) from error
    for student, record in content.students.items():
        folder = record.folder or student
        content.students[student] = replace(record, student=student, folder=folder)
    return content


def write_content(
    root: Path, content: LedgerContent, files: FileTransaction | None = None
) -> None:
    """Write the ledger's file whole, or leave it alone where it has this content already.

    Args:
        files: the transaction of which the file is a part; None where it is written by itself.
    """
    stored = LedgerContent(SCHEMA, history=content.history)
    for student, record in sorted(content.students.items()):
        folder = "" if record.folder == student else record.folder
        stored.students[student] = replace(record, student="", folder=folder)
    for assignment, groups in sorted(content.groups.items()):
        stored.groups[assignment] = dict(sorted(groups.items()))
    text = encode_stored(stored)
    path = root / LEDGER_FILE
    if path.exists() and path.read_bytes() == text.encode("utf-8", "backslashreplace"):
        return
    write = files.write if files else write_whole
    write(path, text)

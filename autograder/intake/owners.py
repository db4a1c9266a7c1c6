"""Whose a file of a download is: the record that every platform's reader of names makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from autograder.basics.errors import UnreadableSubmission
from autograder.basics.handed_in import MAX_TIMESTAMP, read_handed_in
from autograder.basics.times import read_time
from autograder.intake.archives import UploadedFile, notebook_stem
from autograder.ledger.identity_matching import Identity


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a file is, as the platform names it.

    Attributes:
        student: what somebody new is called here.
        identity: by what the ledger knows the person again.
        stem: the file's own name, without what the platform added and without the ending.
        members: where a group handed the file in: everybody in it, the person themselves included.
        rank: orders the files of one attempt; the largest is preferred.
        attempt: orders the attempts of one student, where the platform keeps several; the largest
            is the latest.
        handed_in: when, where the platform says so.
        unread: why that time could not be read; "" where it could, or there is none.
        late: whether the platform marks it as late; None where it says nothing of that.
        place: the folder of the download whose files are one person's.
        doubt: what else the file's name could mean; "" where it means one thing.
    """

    student: str
    identity: Identity
    stem: str
    members: tuple[Identity, ...] = ()
    rank: tuple[float, ...] = ()
    attempt: tuple[float, ...] = ()
    handed_in: datetime | None = None
    unread: str = ""
    late: bool | None = None
    place: tuple[str, ...] = ()
    doubt: str = ""


FindOwner = Callable[[UploadedFile], Owner | None]
"""The owner of a file; None where it is not named as the platform names files."""

FindTime = Callable[[UploadedFile, Owner], tuple[datetime | None, str]]
"""When a file was handed in, None where nobody knows; and why its time cannot be read, or ""."""

KnowsId = Callable[[str, str], bool]
"""Whether the class list or an earlier download has this id of the platform."""


def timestamp(moment: datetime | None) -> float:
    """A time as a number to order by."""
    return moment.timestamp() if moment else 0.0


def file_stem(name: str) -> str:
    """A notebook's name, or that of any other file, without its ending."""
    return notebook_stem(name) or Path(name).stem


def inner_stem(file: UploadedFile, name: str) -> str:
    """The stem of the notebook itself: in an archive that a student handed in, its name there."""
    return file_stem(file.name if file.inside else name)


def time_or_reason(text: str | None, zone: str, unnamed: str = "") -> tuple[datetime | None, str]:
    """The time that a text tells, or None and why it cannot be read; None and "" where there is no
    text.

    Args:
        zone: the course's own time zone.
        unnamed: the zone of a time that names none, if that is not the course's.
    """
    if text is None:
        return None, ""
    try:
        return read_time(text, zone, unnamed=unnamed), ""
    except ValueError as error:
        return None, str(error)


def read_note(note: UploadedFile | None) -> tuple[str | None, str]:
    """The text of a small file that holds a time, or None and why it cannot be read; None and ""
    for no file.
    """
    if note is None:
        return None, ""
    try:
        return read_handed_in(note.file, MAX_TIMESTAMP).decode("utf-8", "replace").strip(), ""
    except UnreadableSubmission as error:
        return None, str(error)


def add_times(find_owner: FindOwner, find_time: FindTime) -> FindOwner:
    """Owners of notebooks with the times that the download's own names do not tell."""

    def find(file: UploadedFile) -> Owner | None:
        owner = find_owner(file)
        if (
            owner is None
            or owner.handed_in is not None
            or owner.unread
            or notebook_stem(file.name) is None
        ):
            return owner
        moment, unread = find_time(file, owner)
        return replace(owner, handed_in=moment, unread=unread)

    return find

"""The owner of a file of a download: the record that every platform's reader of names makes."""

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
    """The owner of a file, as the platform names the file.

    Attributes:
        student: the course's name for a person who is new to the ledger.
        identity: the person's ids and names, by which the ledger recognises the person.
        stem: the file's name, without the platform's additions and without the ending.
        members: everybody in the group that handed the file in, the owner included.
        rank: orders the files of one attempt; the largest is preferred. Without a rank the times of
            the files order them.
        attempt: orders the attempts of one student, where the platform keeps several; the largest
            is the latest.
        handed_in: the time of the hand-in, where the platform states it.
        unread: why that time could not be read, or "".
        late: whether the platform marks the file as late; None where the platform does not say.
        place: the folder of the download whose files are one person's.
        doubt: another meaning of the file's name; "" where there is one meaning.
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
"""Finds the owner of a file; None for a file that is not named as the platform names files."""

FindTime = Callable[[UploadedFile, Owner], tuple[datetime | None, str]]
"""Finds the time of a file's hand-in, None where nobody knows, and why it cannot be read, or ""."""

KnowsId = Callable[[str, str], bool]
"""Says whether the class list or an earlier download has an id of the platform."""


def timestamp(moment: datetime | None) -> float:
    """A time as a number to order by."""
    return moment.timestamp() if moment else 0.0


def file_stem(name: str) -> str:
    """The name of a file without its ending; a notebook may have two."""
    return notebook_stem(name) or Path(name).stem


def inner_stem(file: UploadedFile, name: str) -> str:
    """The stem of the notebook itself: for a notebook in a student's archive, the name in there."""
    return file_stem(file.name if file.inside else name)


def time_or_reason(
    text: str | None,
    zone: str,
    unnamed: str = "",
) -> tuple[datetime | None, str]:
    """Read the time in a text, or None and why it cannot be read; None and "" for no text.

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
    """Read a small file that holds a time: its text, or None and why it cannot be read; None and ""
    for no file.
    """
    if note is None:
        return None, ""
    try:
        return read_handed_in(note.file, MAX_TIMESTAMP).decode(
            "utf-8", "replace"
        ).strip(), ""
    except UnreadableSubmission as error:
        return None, str(error)


def add_times(find_owner: FindOwner, find_time: FindTime) -> FindOwner:
    """Find owners of notebooks with the times that names in the download do not tell."""

    def find(file: UploadedFile) -> Owner | None:
        owner = find_owner(file)
        if owner is None or notebook_stem(file.name) is None:
            return owner
        if owner.handed_in is not None or owner.unread:
            return owner
        moment, unread = find_time(file, owner)
        return replace(owner, handed_in=moment, unread=unread)

    return find

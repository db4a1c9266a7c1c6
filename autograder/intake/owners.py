"""Whose a file of a download is: the record that every platform's reader of names makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from autograder.intake.archives import Incoming, notebook_stem
from autograder.ledger.matching import Identity


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a file is, as the platform names it.

    Attributes:
        student: what somebody new is called here.
        identity: by what the ledger knows the person again.
        stem: the file's own name, without what the platform added and without the ending.
        members: where a group handed the file in: everybody in it, the person themselves included.
        rank: orders the files of one attempt; the largest is preferred.
        attempt: orders the attempts of one student, where the platform keeps several; the largest is the latest.
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


FindOwner = Callable[[Incoming], Owner | None]
"""The owner of a file; None where it is not named as the platform names files."""

KnowsId = Callable[[str, str], bool]
"""Whether the class list or an earlier download has this id of the platform."""


def seconds(moment: datetime | None) -> float:
    """A time as a number to order by."""
    return moment.timestamp() if moment else 0.0


def file_stem(name: str) -> str:
    """A notebook's name, or that of any other file, without its ending."""
    return notebook_stem(name) or Path(name).stem


def own_stem(file: Incoming, name: str) -> str:
    """The stem of the notebook itself: in an archive that a student handed in, its name there."""
    return file_stem(file.name if file.inside else name)

"""A plain folder: nbgrader's layout, a folder for each student, or a notebook for each.

student/assignment/name.ipynb, with nbgrader's timestamp.txt beside it
student/name.ipynb
student.ipynb
"""

from __future__ import annotations

import unicodedata

from autograder.basics.errors import KitError
from autograder.basics.handed_in import printable_name
from autograder.course.platform_names import NAMES
from autograder.intake.archives import UploadedFile, notebook_stem
from autograder.intake.owners import (
    FindOwner,
    Owner,
    file_stem,
    read_note,
    time_or_reason,
    timestamp,
)
from autograder.ledger.identity_matching import Identity
from autograder.platforms.platform import Download, DownloadFormat, Platform

_NOTE = "timestamp.txt"


def find_owners(download: Download) -> FindOwner:
    """A function that tells the owner of each file.

    Raises:
        KitError: several people's work would be one student's.
    """
    assignment = download.assignment
    notes = {
        file.parts[:-1]: file for file in download.files if file.parts[-1] == _NOTE
    }

    def find_owner(file: UploadedFile) -> Owner | None:
        folders = file.folders
        other = folders[-1] != assignment if len(folders) >= 2 else False
        if "previous" in folders or (other and assignment in folders[1:]):
            return None
        if len(folders) >= 2 and folders[-1] == assignment:
            student, place = folders[-2], folders[:-1]
        elif folders and folders[-1] != assignment:
            student, place = folders[-1], folders
        else:
            student, place = file_stem(file.name), file.parts
        text, unread = read_note(notes.get(file.parts[:-1]))
        moment, unreadable = time_or_reason(text, download.zone, unnamed="UTC")
        return Owner(
            student,
            Identity((), (student,), student),
            file_stem(file.name),
            attempt=(timestamp(moment),),
            handed_in=moment,
            unread=unread or unreadable,
            place=place,
        )

    _assert_one_folder_each(download, find_owner)
    return find_owner


def _assert_one_folder_each(download: Download, find_owner: FindOwner) -> None:
    """A folder that is one platform's download is none with a folder for each student.

    Raises:
        KitError: several people's work would be one student's.
    """
    notebooks = [
        file for file in download.files if notebook_stem(file.name) is not None
    ]
    owners = [(file, owner) for file in notebooks if (owner := find_owner(file))]
    for file, _ in owners:
        platform = _named_by(file)
        if platform and file.folders[-1:] != (download.assignment,):
            raise KitError(
                f"{file.display_path}: {NAMES[platform].title} names files like this, and a folder "
                f"there is no student: collect it with --from {platform}"
            )
    places: dict[str, set[tuple[str, ...]]] = {}
    for _, owner in owners:
        student = unicodedata.normalize("NFC", owner.student)
        places.setdefault(student, set()).add(owner.place)
    for student, folders in places.items():
        if len(folders) > 1:
            some = ", ".join(
                printable_name("/".join(place)) for place in sorted(folders)[:3]
            )
            raise KitError(
                f"{printable_name(student)} would be one student with notebooks from "
                f"{len(folders)} places: {some}. A student is the folder in which a notebook lies: "
                "give each a folder of their own, or name the platform that the download is from"
            )


def _named_by(file: UploadedFile) -> str | None:
    """The platform whose download a file is of, by a name that no other platform writes."""
    from autograder.platforms.registry import platforms  # which imports this module

    return next(
        (
            name
            for name, other in platforms().items()
            if other.download and other.download.recognises(file)
        ),
        None,
    )


PLATFORM = Platform(
    download=DownloadFormat(
        example="student/name.ipynb or student.ipynb",
        find_owners=find_owners,
        describes=lambda name: name == _NOTE,
        holds_only_work=False,
    )
)

"""Sakai's downloads. The layout is known from downloads, and from scripts that people wrote to read
them.

<title>/Last, First(eid)/Submission attachment(s)/name.ipynb
<title>/Last, First(eid)/timestamp.txt
"""

from __future__ import annotations

import re

from autograder.intake.archives import UploadedFile
from autograder.intake.owners import (
    FindOwner,
    Owner,
    inner_stem,
    read_note,
    time_or_reason,
)
from autograder.ledger.identity_matching import Identity
from autograder.platforms.platform import Download, DownloadFormat, Platform

_PERSON = re.compile(r"(?P<last>[^,]*), (?P<first>.*)\((?P<eid>[^()]+)\)", re.DOTALL)
_ATTACHMENTS = "Submission attachment(s)"
_NOTE = "timestamp.txt"


def find_owners(download: Download) -> FindOwner:
    """A function that tells each file's owner; the note of the time lies in the person's folder."""
    notes = {
        file.parts[:-1]: file
        for file in download.files
        if file.parts[-1] == _NOTE and not file.inside
    }

    def find_owner(file: UploadedFile) -> Owner | None:
        for depth, part in enumerate(file.parts[:-1], 1):
            if match := _PERSON.fullmatch(part):
                if file.parts[depth : depth + 1] != (_ATTACHMENTS,):
                    return None  # feedback, or what the platform writes beside
                text, unread = read_note(notes.get(file.parts[:depth]))
                moment, unreadable = time_or_reason(_spelled_out(text), download.zone)
                name = f"{match['first']} {match['last']}".strip()
                return Owner(
                    match["eid"],
                    Identity((("sakai", match["eid"]),), (match["eid"],), name),
                    inner_stem(file, file.parts[-1]),
                    handed_in=moment,
                    unread=unread or unreadable,
                    place=file.parts[:depth],
                )
        return None

    return find_owner


def _spelled_out(text: str | None) -> str | None:
    """Sakai writes 17 digits, from the year to the milliseconds, in UTC; other versions a time in
    ISO's form.
    """
    digits = re.fullmatch(r"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d{3})", text or "")
    return "{}-{}-{} {}:{}:{}.{} UTC".format(*digits.groups()) if digits else text


PLATFORM = Platform(
    download=DownloadFormat(
        example="Last, First(eid)/Submission attachment(s)/name.ipynb",
        find_owners=find_owners,
        recognises=lambda file: _ATTACHMENTS in file.parts,
        describes=lambda name: name == _NOTE,
        own_files={
            "comments.txt",
            "feedbackText.html",
            "grades.csv",
            "grades.xls",
            "grades.xlsx",
        },
    )
)

"""Whose a file of a download from Brightspace, Sakai or Open edX is.

| platform | a file in the download | where that is read |
| --- | --- | --- |
| brightspace | `12345-67890 - First Last - Oct 1, 2026 1015 PM/name.ipynb`: user 12345, assignment folder 67890; each attempt has a folder of its own | downloads, and scripts that people wrote for them: the source is not public |
| sakai | `<title>/Last, First(eid)/Submission attachment(s)/name.ipynb`, with `timestamp.txt` beside the folder | downloads, and scripts that people wrote for them |
| edx | `[1]Section, [1]Subsection, [1]Unit/[1] - username - name.ipynb` | edx-ora2, `openassessment/data.py` |
"""  # noqa: E501 - a table

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from autograder.errors import UnreadableSubmission
from autograder.handed_in import MAX_TIMESTAMP, read_handed_in
from autograder.intake.archives import Incoming
from autograder.intake.owners import FindOwner, Owner, own_stem, seconds
from autograder.ledger.matching import Identity
from autograder.times import read_time

BRIGHTSPACE = re.compile(
    r"(?P<user>\d+)-\d+ - (?P<who>.+) - (?P<day>\S+ \d{1,2}, \d{4}) (?P<hour>\d{1,2})(?P<minute>\d\d) (?P<half>[AP]M)"
    r"(?: - (?P<name>.+))?",
    re.DOTALL,
)
SAKAI = re.compile(r"(?P<last>[^,]*), (?P<first>.*)\((?P<eid>[^()]+)\)", re.DOTALL)
ATTACHMENTS = "Submission attachment(s)"
EDX = re.compile(r"\[(?:\d+|x)\] - (?P<user>\S+) - (?P<name>.+)", re.DOTALL)


def brightspace(zone: str) -> FindOwner:
    """How to tell whose each file is; times are the platform's own, in the course's zone."""

    def find_owner(file: Incoming) -> Owner | None:
        for part in file.parts:
            if match := BRIGHTSPACE.fullmatch(part):
                clock = f"{match['day']} {match['hour']}:{match['minute']} {match['half']}"
                moment, unread = _time(clock, zone)
                try:
                    order = datetime.strptime(clock, "%b %d, %Y %I:%M %p").timestamp()
                except ValueError:
                    order = 0.0
                identity = Identity((("brightspace", match["user"]),), (), match["who"])
                student = f"{match['who']}_{match['user']}"
                stem = own_stem(file, match["name"] or file.parts[-1])
                return Owner(
                    student, identity, stem, rank=(seconds(file.modified),), attempt=(order,), handed_in=moment,
                    unread=unread, place=(part,),
                )  # fmt: skip
        return None

    return find_owner


def sakai(files: Sequence[Incoming], zone: str) -> FindOwner:
    """How to tell whose each file is; the note of the time lies in the person's folder."""
    notes = {file.parts[:-1]: file for file in files if file.parts[-1] == "timestamp.txt" and not file.inside}

    def find_owner(file: Incoming) -> Owner | None:
        for depth, part in enumerate(file.parts[:-1], 1):
            if match := SAKAI.fullmatch(part):
                if file.parts[depth : depth + 1] != (ATTACHMENTS,):
                    return None  # feedback, or what the platform writes beside
                note = notes.get(file.parts[:depth])
                moment, unread = _noted(note, zone) if note else (None, "")
                name = f"{match['first']} {match['last']}".strip()
                identity = Identity((("sakai", match["eid"]),), (match["eid"],), name)
                rank = (seconds(file.modified),)
                return Owner(
                    match["eid"], identity, own_stem(file, file.parts[-1]), rank=rank, handed_in=moment, unread=unread,
                    place=file.parts[:depth],
                )  # fmt: skip
        return None

    return find_owner


def edx(file: Incoming) -> Owner | None:
    """The owner of a file; the username is an external or an anonymous id where the platform was told so."""
    if match := EDX.fullmatch(file.parts[-1]):
        identity = Identity((("edx", match["user"]),), (match["user"],), match["user"])
        rank = (seconds(file.modified),)
        return Owner(match["user"], identity, own_stem(file, match["name"]), rank=rank, place=(match["user"],))
    return None


def _noted(note: Incoming, zone: str) -> tuple[datetime | None, str]:
    """Sakai writes 17 digits, from the year to the milliseconds, in UTC; other versions a time in ISO's form."""
    try:
        text = read_handed_in(note.file, MAX_TIMESTAMP).decode("utf-8", "replace").strip()
    except UnreadableSubmission as error:
        return None, str(error)
    if digits := re.fullmatch(r"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d{3})", text):
        text = "{}-{}-{} {}:{}:{}.{} UTC".format(*digits.groups())
    return _time(text, zone)


def _time(text: str, zone: str) -> tuple[datetime | None, str]:
    try:
        return read_time(text, zone), ""
    except ValueError as error:
        return None, str(error)

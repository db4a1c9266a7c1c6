"""Whose is a file? How each system names what it lets instructors download.

| origin | a file in the download | the rule stands in |
| --- | --- | --- |
| canvas | `lastfirst_LATE_12345_67890_name-2.ipynb`: user 12345, upload 67890, late, second of that name; `anon_Ab3dE_67890_name.ipynb` where grading is anonymous; `lastfirst_12345_text.html` | canvas-lms, `lib/content_zipper.rb` |
| moodle | `First Last_12345_assignsubmission_file/name.ipynb` (before 4.1 with `_` at the end), or one flat name; `Group A_17_assignsubmission_file` with the group's number, `Default group_assignsubmission_file` | moodle, `mod/assign/classes/downloader.php` |
| gradescope | `submission_123/name.ipynb`, people and times in `submission_metadata.yml` | |
| github | `assignment-username/name.ipynb`, one folder for each repository | `repositories.py` |
| brightspace, sakai, edx | | `attempts.py` |
| blackboard | `Assignment_username_attempt_2026-03-01-23-59-59_name.ipynb`, and a receipt without the last part, `.txt` | |
| ilias | `…/Last_First_login_12345/name.ipynb`; `Late Submission - name.ipynb` where it is | ILIAS, `class.ilExSubmission.php` |
| folder | `student/assignment/name.ipynb`, `student/name.ipynb` or `student.ipynb` | |

A student chooses the end of such a name and what an archive of theirs holds, so whatever says who it is must stand
first: no name that a student can choose makes the file somebody else's.
"""  # noqa: E501 - a table

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Literal, get_args

from autograder.errors import KitError, UnreadableSubmission
from autograder.handed_in import MAX_TIMESTAMP, read_handed_in, shown
from autograder.intake import attempts
from autograder.intake.archives import Incoming, notebook_stem
from autograder.intake.lists import Submitter, receipts, submissions_on_gradescope
from autograder.intake.owners import FindOwner, KnowsId, Owner, file_stem, own_stem, seconds
from autograder.intake.repositories import owners_of_repositories
from autograder.ledger.matching import Identity
from autograder.times import read_time

Origin = Literal[
    "canvas", "moodle", "gradescope", "github", "blackboard", "brightspace", "sakai", "edx", "ilias", "folder"
]
ORIGINS: tuple[Origin, ...] = get_args(Origin)
EXPECTED: dict[Origin, str] = {
    "canvas": "lastfirst_12345_67890_name.ipynb",
    "moodle": "First Last_12345_assignsubmission_file_/name.ipynb",
    "gradescope": "submission_123/name.ipynb",
    "github": "assignment-username/name.ipynb",
    "blackboard": "Assignment_username_attempt_2026-03-01-23-59-59_name.ipynb",
    "brightspace": "12345-67890 - First Last - Oct 1, 2026 1015 PM/name.ipynb",
    "sakai": "Last, First(eid)/Submission attachment(s)/name.ipynb",
    "edx": "[1] - username - name.ipynb",
    "ilias": "Last_First_login_12345/name.ipynb",
    "folder": "student/name.ipynb or student.ipynb",
}

_CANVAS_FILE = r"(?:(?P<upload>\d+)_(?P<name>.+)|(?:text|link)\.html)"
_ANONYMOUS = re.compile(rf"(?P<late>LATE_)?anon_(?P<user>[^_]+)_(?P<late_too>LATE_)?{_CANVAS_FILE}", re.DOTALL)
_CANVAS = (
    re.compile(rf"(?P<who>.+?)(?P<late>_LATE)?_(?P<user>\d+)_{_CANVAS_FILE}", re.DOTALL),
    re.compile(rf"(?P<who>[^_]*_\d+)(?P<late>)_(?P<user>\d+)_{_CANVAS_FILE}", re.DOTALL),
)
_AGAIN = re.compile(r"-\d+$")
_MOODLE = re.compile(r"(?P<who>.+?)(?:_(?P<user>\d+))?_assignsubmission_[a-z]+(?:_(?P<name>.*))?", re.DOTALL)
_GRADESCOPE = re.compile(r"submission_(\d+)")
_BLACKBOARD = re.compile(
    r".+?_(?P<user>[^_]+)_attempt_(?P<day>\d{4}-\d\d-\d\d)-(?P<clock>\d\d-\d\d-\d\d)(?:_(?P<name>.+)|\.txt)", re.DOTALL
)
_ILIAS = re.compile(r"(?P<last>[^_]+)_(?P<first>[^_]*)_(?P<login>.+)_(?P<user>\d+)", re.DOTALL)
_ILIAS_LATE = re.compile(r"(?:late submission|versp(?:ae|ä)tete abgabe) - ", re.IGNORECASE)


def find_owners(
    origin: Origin, files: Sequence[Incoming], assignment: str, knows: KnowsId, zone: str = ""
) -> FindOwner:
    """How to tell whose each file of the upload is.

    Args:
        files: what was taken of the upload, the files that name people and times among them.
        knows: tells numbers that are ids from those that stand where an id could stand.
        zone: the course's own time zone, for systems that write times without one.
    """
    if origin not in ORIGINS:
        raise KitError(f"unknown origin {origin!r}: it is one of {', '.join(ORIGINS)}")
    if origin == "canvas":
        return _canvas(files, assignment, knows)
    if origin == "gradescope":
        return _gradescope(files, zone)
    if origin == "github":
        return owners_of_repositories(files, assignment, knows)
    if origin == "blackboard":
        return _blackboard(files, zone)
    if origin == "brightspace":
        return attempts.brightspace(zone)
    if origin == "sakai":
        return attempts.sakai(files, zone)
    if origin == "folder":
        return _folder(files, assignment, zone)
    return {"moodle": _moodle, "ilias": _ilias, "edx": attempts.edx}[origin]


def looks_like(file: Incoming) -> Origin | None:
    """The platform whose download a file is of, by what no other platform writes."""
    if any(attempts.BRIGHTSPACE.fullmatch(part) for part in file.parts):
        return "brightspace"
    if attempts.ATTACHMENTS in file.parts:
        return "sakai"
    if attempts.EDX.fullmatch(file.parts[-1]):
        return "edx"
    if any(_MOODLE.fullmatch(part) for part in file.parts):
        return "moodle"
    return "blackboard" if _BLACKBOARD.fullmatch(file.parts[-1]) else None


def _canvas(files: Sequence[Incoming], assignment: str, knows: KnowsId) -> FindOwner:
    """Canvas takes numbers between underscores out of a name, but not one at its end: `doejane_777_101_9001_m1.ipynb`
    is user 777's file `9001_m1.ipynb`, or user 101's `m1.ipynb` whose name ends in `_777`."""
    names = [file.parts[-1] for file in files if notebook_stem(file.name)]
    anonymous = all(_ANONYMOUS.fullmatch(name) for name in names)  # somebody may be called Anon
    plainly = (readings[0] for name in names if len(readings := _readings(name)) == 1)
    called = {reading["user"]: reading["who"] for reading in plainly}

    def find_owner(file: Incoming) -> Owner | None:
        name = file.parts[-1]
        if anonymous and (reading := _ANONYMOUS.fullmatch(name)):
            late = "LATE_" in (reading["late"] or "") + (reading["late_too"] or "")
            identity = Identity((("canvas-anonymous", reading["user"]),))
            student = f"anon_{reading['user']}"
            return _handed_in(file, student, identity, reading["upload"], reading["name"], late)
        readings = _readings(name)
        if not readings:
            return None
        possible = [r for r in readings if called.get(r["user"], r["who"]) == r["who"]] or readings
        reading = _likeliest(possible, file, assignment, knows)
        rejected = [candidate["user"] for candidate in possible if candidate["user"] != reading["user"]]
        doubtful = rejected and not knows("canvas", reading["user"])
        doubt = f"user {reading['user']}, or {rejected[0]}" if doubtful else ""
        identity = Identity((("canvas", reading["user"]),), (), reading["who"])
        owner = _handed_in(
            file,
            f"{reading['who']}_{reading['user']}",
            identity,
            reading["upload"],
            reading["name"],
            bool(reading["late"]),
        )
        return replace(owner, doubt=doubt)

    return find_owner


def _readings(name: str) -> list[re.Match[str]]:
    return [match for form in _CANVAS if (match := form.fullmatch(name))]


def _likeliest(readings: Sequence[re.Match[str]], file: Incoming, assignment: str, knows: KnowsId) -> re.Match[str]:
    """The reading with an id that is known; else one in which the upload has the larger number, since Canvas has fewer
    users than uploads; else one in which the file is called like the assignment."""
    known_readings = [reading for reading in readings if knows("canvas", reading["user"])]
    if len(known_readings) == 1:
        return known_readings[0]
    likely = [r for r in readings if r["upload"] is None or int(r["user"]) < int(r["upload"])] or list(readings)
    plain = [r for r in likely if r["name"] and _AGAIN.sub("", own_stem(file, r["name"])) == assignment]
    return likely[0] if known_readings else (plain or likely)[0]


def _handed_in(
    file: Incoming, student: str, identity: Identity, upload: str | None, name: str | None, late: bool
) -> Owner:
    stem = _AGAIN.sub("", own_stem(file, name or ""))
    return Owner(student, identity, stem, rank=(float(upload or 0),), late=late)


def _moodle(file: Incoming) -> Owner | None:
    """A group's folder is named in the same way, with the group's number, or with none for whoever is in no group."""
    for part in file.parts:
        if found := _MOODLE.fullmatch(part):
            who, user = found["who"], found["user"]
            stem = own_stem(file, found["name"] or file.parts[-1])
            ids = (("moodle", user),) if user else ()
            return Owner(f"{who}_{user}" if user else who, Identity(ids, (), who), stem, rank=(seconds(file.modified),))
    return None


def _ilias(file: Incoming) -> Owner | None:
    """The person's folder holds files and no folders; what peers wrote of each other lies deeper, and is none."""
    found = _ILIAS.fullmatch(file.parts[-2]) if len(file.parts) > 1 and "Feedback_files" not in file.parts else None
    if found is None:
        return None
    name = _ILIAS_LATE.sub("", file.parts[-1], count=1)
    identity = Identity((("ilias", found["user"]),), (found["login"],), f"{found['first']} {found['last']}")
    late = name != file.parts[-1]
    return Owner(file.parts[-2], identity, own_stem(file, name), rank=(seconds(file.modified),), late=late)


def _gradescope(files: Sequence[Incoming], zone: str) -> FindOwner:
    """A list of that name inside a submission is the student's, and is none."""
    lists = [f for f in files if f.parts[-1] == "submission_metadata.yml"]
    lists = [f for f in lists if not any(_GRADESCOPE.fullmatch(part) for part in f.parts[:-1])]
    text = min(lists, key=lambda f: len(f.parts)).file.read_text(encoding="utf-8", errors="replace") if lists else ""
    listed = submissions_on_gradescope(text, zone)
    nameless = Counter(
        person.name for entry in listed.values() for person in entry.people if not person.sid and not person.email
    )
    if twice := [name for name, count in nameless.items() if count > 1]:
        raise KitError(
            f"{shown(twice[0])} stands in several of Gradescope's submissions without student id or email, and may be "
            "several people: add these to the roster there, and export again"
        )

    def find_owner(file: Incoming) -> Owner | None:
        for depth, part in enumerate(file.parts[:-1]):
            if number := _GRADESCOPE.fullmatch(part):
                entry = listed.get(part)
                people = entry.people if entry and entry.people else (Submitter(name=part),)
                moment = entry.created if entry else None
                members = tuple(map(_submitter, people))
                return Owner(
                    people[0].sid or people[0].email or people[0].name,
                    members[0],
                    file_stem(file.name),
                    members=members if len(members) > 1 else (),
                    rank=(-float(len(file.parts) - depth), seconds(file.modified)),
                    attempt=(seconds(moment), float(number[1])),
                    handed_in=moment,
                    unread=entry.unread if entry else "",
                )
        return None

    return find_owner


def _submitter(person: Submitter) -> Identity:
    ids = (("gradescope", person.sid),) if person.sid else ()
    return Identity(ids, tuple(filter(None, (person.sid, person.email))), person.name)


def _blackboard(files: Sequence[Incoming], zone: str) -> FindOwner:
    """Usernames may hold an underscore, and the name's time has no zone: the receipts know better."""
    noted = receipts(files, zone)

    def find_owner(file: Incoming) -> Owner | None:
        name = file.parts[-1]
        receipt = next((r for prefix, r in noted.items() if name.startswith((f"{prefix}_", f"{prefix}.txt"))), None)
        found = _BLACKBOARD.fullmatch(name)
        if found is None:
            return None
        user = (receipt and receipt.user) or found["user"]
        moment, unread = (receipt.handed_in, receipt.unread) if receipt else (None, "")
        if moment is None:
            try:
                moment, unread = read_time(f"{found['day']} {found['clock'].replace('-', ':')}", zone), ""
            except ValueError as error:
                unread = unread or str(error)
        order = (float(found["day"].replace("-", "") + found["clock"].replace("-", "")),)
        return Owner(
            user, Identity((("blackboard", user),), (user,), (receipt.name if receipt else "") or user),
            own_stem(file, found["name"] or ""), rank=(seconds(file.modified),), attempt=order, handed_in=moment,
            unread=unread,
        )  # fmt: skip

    return find_owner


def _folder(files: Sequence[Incoming], assignment: str, zone: str) -> FindOwner:
    """nbgrader's layout, a folder for each student, or a notebook for each."""
    notes = {file.parts[:-1]: file for file in files if file.parts[-1] == "timestamp.txt"}

    def find_owner(file: Incoming) -> Owner | None:
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
        moment, unread = _noted(notes.get(file.parts[:-1]), zone)
        return Owner(
            student, Identity((), (student,), student), file_stem(file.name), rank=(seconds(file.modified),),
            attempt=(seconds(moment),), handed_in=moment, unread=unread, place=place,
        )  # fmt: skip

    return find_owner


def _noted(note: Incoming | None, zone: str) -> tuple[datetime | None, str]:
    """The time in a note of nbgrader's, or why it cannot be read."""
    if note is None:
        return None, ""
    try:
        text = read_handed_in(note.file, MAX_TIMESTAMP).decode("utf-8", "replace")
        return read_time(text, zone, unnamed="UTC"), ""
    except UnreadableSubmission as error:
        return None, str(error)
    except ValueError as error:
        return None, str(error)

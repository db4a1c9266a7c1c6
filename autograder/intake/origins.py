"""Whose is a file? How each system names what it lets instructors download.

| origin | a file in the download | the rule stands in |
| --- | --- | --- |
| canvas | `lastfirst_LATE_12345_67890_name-2.ipynb`: user 12345, upload 67890, late, second of that name; `anon_Ab3dE_67890_name.ipynb` where grading is anonymous; `lastfirst_12345_text.html` | canvas-lms, `lib/content_zipper.rb` |
| moodle | `First Last_12345_assignsubmission_file/name.ipynb` (before 4.1 with `_` at the end), or one flat name | moodle, `mod/assign/classes/downloader.php` |
| gradescope | `submission_123/name.ipynb`, people and times in `submission_metadata.yml` | |
| github | `assignment-username/name.ipynb`, one folder for each repository | |
| blackboard | `Assignment_username_attempt_2026-03-01-23-59-59_name.ipynb`, and a receipt without the last part, `.txt` | |
| ilias | `…/Last_First_login_12345/name.ipynb`; `Late Submission - name.ipynb` where it is | ILIAS, `class.ilExSubmission.php` |
| folder | `student/assignment/name.ipynb`, `student/name.ipynb` or `student.ipynb` | |

A student chooses the end of such a name and what an archive of theirs holds, so whatever says who it is must stand
first: no name that a student can choose makes the file somebody else's.
"""  # noqa: E501 - a table

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, get_args

from autograder.errors import KitError, UnreadableSubmission
from autograder.handed_in import MAX_TIMESTAMP, read_handed_in
from autograder.intake.archives import Incoming, notebook_stem
from autograder.intake.lists import receipts, submissions_on_gradescope
from autograder.times import read_time

Origin = Literal["canvas", "moodle", "gradescope", "github", "blackboard", "ilias", "folder"]
ORIGINS: tuple[Origin, ...] = get_args(Origin)
EXPECTED: dict[Origin, str] = {
    "canvas": "lastfirst_12345_67890_name.ipynb",
    "moodle": "First Last_12345_assignsubmission_file_/name.ipynb",
    "gradescope": "submission_123/name.ipynb",
    "github": "assignment-username/name.ipynb",
    "blackboard": "Assignment_username_attempt_2026-03-01-23-59-59_name.ipynb",
    "ilias": "Last_First_login_12345/name.ipynb",
    "folder": "student/name.ipynb or student.ipynb",
}

_CANVAS_FILE = r"(?:(?P<upload>\d+)_(?P<name>.+)|(?:text|link)\.html)"
_CANVAS = (
    re.compile(rf"(?P<late>LATE_)?anon_(?P<user>[^_]+)_(?:LATE_)?{_CANVAS_FILE}", re.DOTALL),
    re.compile(rf"(?P<who>.+?)(?P<late>_LATE)?_(?P<user>\d+)_{_CANVAS_FILE}", re.DOTALL),
)
_AGAIN = re.compile(r"-\d+$")
_MOODLE = re.compile(r"(?P<who>.+?)_(?P<user>\d+)_assignsubmission_[a-z]+(?:_(?P<name>.*))?", re.DOTALL)
_GRADESCOPE = re.compile(r"submission_(\d+)")
_BLACKBOARD = re.compile(
    r".+?_(?P<user>[^_]+)_attempt_(?P<day>\d{4}-\d\d-\d\d)-(?P<clock>\d\d-\d\d-\d\d)(?:_(?P<name>.+)|\.txt)", re.DOTALL
)
_ILIAS = re.compile(r"(?P<last>[^_]+)_(?P<first>[^_]*)_(?P<login>.+)_(?P<user>\d+)", re.DOTALL)
_ILIAS_LATE = re.compile(r"(?:late submission|versp(?:ae|ä)tete abgabe) - ", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a file is, as the system names it.

    Attributes:
        student: the name as the system gives it, not yet safe.
        id: what the system knows the person by; stays when the name changes.
        stem: the file's own name, without what the system added and without the ending.
        aliases: other names of the person: full name, login, address.
        rank: orders the files of one attempt; the largest is preferred.
        attempt: orders the attempts of one student, where the system keeps several; the largest is the latest.
        handed_in: when, where the system says so.
        unread: why that time could not be read; "" where it could, or there is none.
        late: whether the system marks it as late; None where it says nothing of that.
    """

    student: str
    id: str
    stem: str
    aliases: tuple[str, ...] = ()
    rank: tuple[float, ...] = ()
    attempt: tuple[float, ...] = ()
    handed_in: datetime | None = None
    unread: str = ""
    late: bool | None = None


Whose = Callable[[Incoming], list[Owner]]
"""The owners of a file, several where a group handed it in, and nobody where it is not named as expected."""


def whose(origin: Origin, files: Sequence[Incoming], assignment: str, zone: str = "") -> Whose:
    """How to tell whose each file of the upload is.

    Args:
        files: what was taken of the upload, the files that name people and times among them.
        zone: the course's own time zone, for systems that write times without one.
    """
    if origin not in ORIGINS:
        raise KitError(f"unknown origin {origin!r}: it is one of {', '.join(ORIGINS)}")
    if origin == "gradescope":
        return _gradescope(files, zone)
    if origin == "github":
        return _github(files, assignment)
    if origin == "blackboard":
        return _blackboard(files, zone)
    if origin == "folder":
        return _folder(files, assignment, zone)
    return {"canvas": _canvas, "moodle": _moodle, "ilias": _ilias}[origin]


def _seconds(moment: datetime | None) -> float:
    return moment.timestamp() if moment else 0.0


def _stem(name: str) -> str:
    """A notebook's name, or that of any other file, without its ending."""
    return notebook_stem(name) or Path(name).stem


def _own(file: Incoming, name: str) -> str:
    """The stem of the notebook itself: in an archive that a student handed in, its name there."""
    return _stem(file.name if file.inside else name)


def _canvas(file: Incoming) -> list[Owner]:
    found = next((match for form in _CANVAS if (match := form.fullmatch(file.parts[-1]))), None)
    if found is None:
        return []
    parts = found.groupdict()
    late = bool(parts["late"]) or file.parts[-1].startswith(f"anon_{parts['user']}_LATE_")
    student = f"{parts.get('who') or 'anon'}_{parts['user']}"
    stem = _AGAIN.sub("", _own(file, parts["name"] or ""))
    return [Owner(student, parts["user"] or "", stem, rank=(float(parts["upload"] or 0),), late=late)]


def _moodle(file: Incoming) -> list[Owner]:
    for part in file.parts:
        if found := _MOODLE.fullmatch(part):
            stem = _own(file, found["name"] or file.parts[-1])
            who, user = found["who"], found["user"]
            return [Owner(f"{who}_{user}", user, stem, (who,), (_seconds(file.modified),))]
    return []


def _ilias(file: Incoming) -> list[Owner]:
    """The person's folder holds files and no folders; what peers wrote of each other lies deeper, and is none."""
    found = _ILIAS.fullmatch(file.parts[-2]) if len(file.parts) > 1 and "Feedback_files" not in file.parts else None
    if found is None:
        return []
    name = _ILIAS_LATE.sub("", file.parts[-1], count=1)
    aliases = (found["login"], f"{found['first']} {found['last']}")
    rank = (_seconds(file.modified),)
    return [Owner(file.parts[-2], found["user"], _own(file, name), aliases, rank, late=name != file.parts[-1])]


def _github(files: Sequence[Incoming], assignment: str) -> Whose:
    """The repository's folder is `<assignment>-<username>`, with the name that the assignment has at GitHub."""
    usual = repository_prefix(assignment)
    notebooks = [file for file in files if notebook_stem(file.name)]
    prefix = usual if any(_repository(file, usual) for file in notebooks) else _shared_prefix(notebooks)

    def of(file: Incoming) -> list[Owner]:
        folder = _repository(file, prefix) if prefix else None
        if folder is None:
            return []
        user, depth = folder[len(prefix) :], len(file.parts) - file.parts.index(folder)
        return [Owner(user, user.lower(), _stem(file.name), rank=(-float(depth), _seconds(file.modified)))]

    return of


def repository_prefix(assignment: str) -> str:
    """What GitHub Classroom puts before the username, where the assignment has the same title there."""
    return re.sub(r"[^a-z0-9]+", "-", assignment.lower()).strip("-") + "-"


def _repository(file: Incoming, prefix: str) -> str | None:
    for part in file.parts[:-1]:
        if re.sub("_", "-", part.lower()).startswith(prefix) and len(part) > len(prefix):
            if part.lower() == f"{prefix}submissions" and len(file.parts) - file.parts.index(part) > 2:
                continue  # the folder in which GitHub's tool puts all clones
            return part
    return None


def _shared_prefix(notebooks: Sequence[Incoming]) -> str:
    """What the folders' names have in common, up to a hyphen; "" where that is nothing."""
    for level in range(max((len(file.parts) for file in notebooks), default=1) - 1):
        names = sorted(
            {file.parts[level].lower().replace("_", "-") for file in notebooks if len(file.parts) > level + 1}
        )
        if len(names) > 1:
            first, last = names[0], names[-1]
            same = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
            return first[: first[:same].rfind("-") + 1]
    return ""


def _gradescope(files: Sequence[Incoming], zone: str) -> Whose:
    """A list of that name inside a submission is the student's, and is none."""
    lists = [f for f in files if f.parts[-1] == "submission_metadata.yml"]
    lists = [f for f in lists if not any(_GRADESCOPE.fullmatch(part) for part in f.parts[:-1])]
    text = min(lists, key=lambda f: len(f.parts)).file.read_text(encoding="utf-8", errors="replace") if lists else ""
    known = submissions_on_gradescope(text, zone)

    def of(file: Incoming) -> list[Owner]:
        for depth, part in enumerate(file.parts[:-1]):
            if number := _GRADESCOPE.fullmatch(part):
                entry = known.get(part)
                moment = entry.created if entry else None
                rank = (-float(len(file.parts) - depth), _seconds(file.modified))
                attempt = (_seconds(moment), float(number[1]))
                unread = entry.unread if entry else ""
                return [
                    Owner(who[0], who[0], _stem(file.name), who[1:], rank, attempt, moment, unread)
                    for who in (entry.people if entry else ((part,),))
                ]
        return []

    return of


def _blackboard(files: Sequence[Incoming], zone: str) -> Whose:
    """Usernames may hold an underscore, and the name's time has no zone: the receipts know better."""
    known = receipts(files, zone)

    def of(file: Incoming) -> list[Owner]:
        name = file.parts[-1]
        receipt = next((r for prefix, r in known.items() if name.startswith((f"{prefix}_", f"{prefix}.txt"))), None)
        found = _BLACKBOARD.fullmatch(name)
        if found is None:
            return []
        user = (receipt and receipt.user) or found["user"]
        aliases = (receipt.name,) if receipt and receipt.name else ()
        moment, unread = (receipt.handed_in, receipt.unread) if receipt else (None, "")
        if moment is None:
            try:
                moment, unread = read_time(f"{found['day']} {found['clock'].replace('-', ':')}", zone), ""
            except ValueError as error:
                unread = unread or str(error)
        order = (float(found["day"].replace("-", "") + found["clock"].replace("-", "")),)
        stem = _own(file, found["name"] or "")
        return [Owner(user, user.lower(), stem, aliases, (_seconds(file.modified),), order, moment, unread)]

    return of


def _folder(files: Sequence[Incoming], assignment: str, zone: str) -> Whose:
    """nbgrader's layout, a folder for each student, or a notebook for each."""
    notes = {file.parts[:-1]: file for file in files if file.parts[-1] == "timestamp.txt"}

    def of(file: Incoming) -> list[Owner]:
        folders = file.folders
        other = folders[-1] != assignment if len(folders) >= 2 else False
        if "previous" in folders or (other and assignment in folders[1:]):
            return []
        if len(folders) >= 2 and folders[-1] == assignment:
            student = folders[-2]
        else:
            student = folders[-1] if folders and folders[-1] != assignment else _stem(file.name)
        moment, unread = _noted(notes.get(file.parts[:-1]), zone)
        order = (_seconds(moment),)
        return [Owner(student, student, _stem(file.name), (), (_seconds(file.modified),), order, moment, unread)]

    return of


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

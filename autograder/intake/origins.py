"""Whose notebook is it? How each system names what it lets instructors download.

| origin | a file in the download |
| --- | --- |
| canvas | `lastfirst_LATE_12345_67890_name-2.ipynb`: user 12345, upload 67890, late, second of that name |
| moodle | `First Last_12345_assignsubmission_file_/name.ipynb`, or one flat name without the last slash |
| gradescope | `submission_123/name.ipynb`, people and times in `submission_metadata.yml` |
| github | `assignment-username/name.ipynb`, one folder for each repository |
| folder | `student/assignment/name.ipynb`, `student/name.ipynb` or `student.ipynb` |
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Literal, get_args

from autograder.errors import KitError
from autograder.handed_in import shown
from autograder.intake.archives import Incoming

Origin = Literal["canvas", "moodle", "gradescope", "github", "folder"]
ORIGINS: tuple[Origin, ...] = get_args(Origin)
EXPECTED: dict[Origin, str] = {
    "canvas": "lastfirst_12345_67890_name.ipynb",
    "moodle": "First Last_12345_assignsubmission_file_/name.ipynb",
    "gradescope": "submission_123/name.ipynb",
    "github": "assignment-username/name.ipynb",
    "folder": "student/name.ipynb or student.ipynb",
}

_CANVAS = re.compile(r"(?P<who>.+?)(?P<late>_LATE)?_(?P<user>\d+)_(?P<upload>\d+)_(?P<name>.+)\.ipynb", re.DOTALL)
_AGAIN = re.compile(r"-\d+$")
_MOODLE = re.compile(r"(?P<who>.+)_(?P<user>\d+)_assignsubmission_file(?:_(?P<name>.*\.ipynb)?)?", re.DOTALL)
_GRADESCOPE = re.compile(r"submission_(\d+)")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?\s*(Z|UTC|[+-]\d\d:?\d\d)?")


@dataclass(frozen=True, slots=True)
class Claimed:
    """A notebook and whose it is.

    Attributes:
        student: the name as the system gives it, not yet safe.
        stem: the notebook's own name, without what the system added.
        file: where its bytes lie.
        rank: orders the files of one attempt; the largest is preferred.
        attempt: orders the attempts of one student, where the system keeps several; the largest is the latest.
        handed_in: when, where the system says so.
        late: the system marks it as late.
    """

    student: str
    stem: str
    file: Incoming
    rank: tuple[float, ...]
    attempt: tuple[float, ...] = ()
    handed_in: datetime | None = None
    late: bool = False


def claim_files(files: Sequence[Incoming], origin: Origin, assignment: str) -> tuple[list[Claimed], list[str]]:
    """Whose each notebook is, and the files that do not follow the origin's naming, with the reason."""
    if origin not in ORIGINS:
        raise KitError(f"unknown origin {origin!r}: it is one of {', '.join(ORIGINS)}")
    notebooks = [file for file in files if file.parts[-1].endswith(".ipynb")]
    if origin == "canvas":
        pairs = [(file, _canvas(file)) for file in notebooks]
    elif origin == "moodle":
        pairs = [(file, _moodle(file)) for file in notebooks]
    elif origin == "gradescope":
        people = _gradescope_people(files)
        pairs = [(file, _gradescope(file, people)) for file in notebooks]
    elif origin == "github":
        pairs = _github(notebooks, assignment)
    else:
        pairs = _folder(files, notebooks, assignment)
    claimed = [claim for _, claims in pairs for claim in claims]
    odd = [
        f"{shown('/'.join(file.parts))}: not named like a {origin} download ({EXPECTED[origin]})"
        for file, claims in pairs
        if not claims
    ]
    return claimed, odd


def _seconds(moment: datetime | None) -> float:
    return moment.timestamp() if moment else 0.0


def _stem(file: Incoming) -> str:
    return file.parts[-1].removesuffix(".ipynb")


def _canvas(file: Incoming) -> list[Claimed]:
    match = _CANVAS.fullmatch(file.parts[-1])
    if match is None:
        return []
    student, stem = f"{match['who']}_{match['user']}", _AGAIN.sub("", match["name"])
    return [Claimed(student, stem, file, (float(match["upload"]),), late=bool(match["late"]))]


def _moodle(file: Incoming) -> list[Claimed]:
    for part in reversed(file.parts):
        match = _MOODLE.fullmatch(part)
        if match is not None:
            stem = match["name"].removesuffix(".ipynb") if match["name"] else _stem(file)
            return [Claimed(f"{match['who']}_{match['user']}", stem, file, (_seconds(file.modified),))]
    return []


# GitHub Classroom


def _github(notebooks: Sequence[Incoming], assignment: str) -> list[tuple[Incoming, list[Claimed]]]:
    """The repository's folder is `<assignment>-<username>`, with the name that the assignment has at GitHub."""
    slug = _slug(assignment)
    prefix = slug + "-" if any(_repository(file, slug + "-") for file in notebooks) else _shared_prefix(notebooks)
    pairs = []
    for file in notebooks:
        folder = _repository(file, prefix) if prefix else None
        claims = []
        if folder is not None:
            depth = len(file.parts) - file.parts.index(folder)
            claims = [Claimed(folder[len(prefix) :], _stem(file), file, (-float(depth), _seconds(file.modified)))]
        pairs.append((file, claims))
    return pairs


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


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


# Gradescope


@dataclass(frozen=True, slots=True)
class _Entry:
    """One submission in Gradescope's list."""

    people: tuple[str, ...]
    created: datetime | None


def _gradescope(file: Incoming, people: dict[str, _Entry]) -> list[Claimed]:
    for depth, part in enumerate(file.parts[:-1]):
        match = _GRADESCOPE.fullmatch(part)
        if match is not None:
            entry = people.get(part, _Entry((part,), None))
            attempt = (_seconds(entry.created), float(match[1]))
            rank = (-float(len(file.parts) - depth), _seconds(file.modified))
            return [Claimed(who, _stem(file), file, rank, attempt, entry.created) for who in entry.people]
    return []


def _gradescope_people(files: Sequence[Incoming]) -> dict[str, _Entry]:
    """Read the list of submissions. A file of that name inside a submission is the student's, and is no list."""
    lists = [f for f in files if f.parts[-1] == "submission_metadata.yml"]
    lists = [f for f in lists if not any(_GRADESCOPE.fullmatch(part) for part in f.parts[:-1])]
    if not lists:
        return {}
    text = min(lists, key=lambda f: len(f.parts)).file.read_text(encoding="utf-8", errors="replace")
    return read_gradescope_list(text)


def read_gradescope_list(text: str) -> dict[str, _Entry]:
    """People and times of each submission.

    A reader for the few lines that matter, at the indentation where Gradescope writes them: the file has Ruby
    tags that a YAML library refuses, and test output of students further in.
    """
    entries: dict[str, _Entry] = {}
    folder, section, people, created = "", "", [dict[str, str]()], ""

    def close() -> None:
        names = tuple(p.get("sid") or p.get("email") or p.get("name", "") for p in people)
        names = tuple(dict.fromkeys(name for name in names if name))
        if folder:
            entries[folder] = _Entry(names or (folder,), parse_time(created))

    for line in text.splitlines():
        if top := re.fullmatch(r"['\"]?(submission_\d+)['\"]?:\s*", line):
            close()
            folder, section, people, created = top[1], "", [], ""
        elif key := re.match(r"  :(\w+):(.*)", line):
            section = key[1]
            created = key[2] if section == "created_at" else created
        elif section == "submitters" and (item := re.match(r"  ([- ]) :?(\w+): (.*)|    :(\w+): (.*)", line)):
            if item[1] == "-":
                people.append({})
            name, value = (item[2], item[3]) if item[2] else (item[4], item[5])
            if people:
                people[-1][name] = _scalar(value)
        elif section == "created_at" and not parse_time(created) and (utc := re.match(r"    (?:utc|time): (.*)", line)):
            created = utc[1]
    close()
    return entries


def _scalar(text: str) -> str:
    """A YAML scalar on one line, as plain text."""
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return "" if text in ("null", "~") else text


def parse_time(text: str) -> datetime | None:
    """A time with its zone (UTC where none is given); None where there is none in the text."""
    match = _TIME.search(text)
    if match is None:
        return None
    day, clock, fraction, zone = match.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}.{(fraction or '0')[:6]:0<6}")
        offset = timedelta(0)
        if zone and zone[0] in "+-":
            offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:])) * (-1 if zone[0] == "-" else 1)
        return moment.replace(tzinfo=timezone(offset)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


# A folder


def _folder(
    files: Sequence[Incoming], notebooks: Sequence[Incoming], assignment: str
) -> list[tuple[Incoming, list[Claimed]]]:
    """nbgrader's layout, a folder for each student, or a notebook for each."""
    times = {f.parts[:-1]: f for f in files if f.parts[-1] == "timestamp.txt"}
    pairs = []
    for file in notebooks:
        folders = file.parts[:-1]
        other = folders[-1] != assignment if len(folders) >= 2 else False
        if "previous" in folders or (other and assignment in folders[1:]):
            pairs.append((file, list[Claimed]()))
            continue
        if len(folders) >= 2 and folders[-1] == assignment:
            student = folders[-2]
        else:
            student = folders[-1] if folders and folders[-1] != assignment else _stem(file)
        stated = times.get(folders)
        handed_in = parse_time(stated.file.read_text(encoding="utf-8", errors="replace")[:100]) if stated else None
        claim = Claimed(student, _stem(file), file, (_seconds(file.modified),), (_seconds(handed_in),), handed_in)
        pairs.append((file, [claim]))
    return pairs

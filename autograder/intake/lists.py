"""What a download says beside the notebooks: Gradescope's list of submissions, Blackboard's receipts."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from autograder.intake.archives import RECEIPT, Incoming
from autograder.times import read_time

_HEAD = 10_000
"""Bytes of a receipt that stand above the student's own text."""


@dataclass(frozen=True, slots=True)
class Submitter:
    """One person in Gradescope's list; the student id may be missing, and be there in a later export."""

    sid: str = ""
    email: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Listed:
    """One submission in Gradescope's list.

    Attributes:
        people: whoever handed it in: one, or a group.
        created: when it was handed in.
        unread: why that time cannot be read, or "".
    """

    people: tuple[Submitter, ...]
    created: datetime | None
    unread: str = ""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What Blackboard notes of one attempt."""

    user: str
    name: str
    handed_in: datetime | None
    unread: str = ""


def submissions_on_gradescope(text: str, zone: str = "") -> dict[str, Listed]:
    """People and times of each submission, by its folder.

    A reader for the few lines that matter, at the indentation where Gradescope writes them: the file has Ruby
    tags that a YAML library refuses, and test output of students further in.
    """
    entries: dict[str, Listed] = {}
    folder, section, people, created = "", "", [dict[str, str]()], ""

    def close() -> None:
        named = (Submitter(p.get("sid", ""), p.get("email", ""), p.get("name", "")) for p in people if any(p.values()))
        if folder:
            entries[folder] = Listed(tuple(dict.fromkeys(named)), *_read(created, zone))

    for line in text.splitlines():
        if top := re.fullmatch(r"['\"]?(submission_\d+)['\"]?:\s*", line):
            close()
            folder, section, people, created = top[1], "", [], ""
        elif key := re.match(r"  :(\w+):(.*)", line):
            section = key[1]
            created = _scalar(key[2]) if section == "created_at" else created
        elif section == "submitters" and (item := re.match(r"  ([- ]) :?(\w+): (.*)|    :(\w+): (.*)", line)):
            if item[1] == "-":
                people.append({})
            name, value = (item[2], item[3]) if item[2] else (item[4], item[5])
            if people:
                people[-1][name] = _scalar(value)
        elif section == "created_at" and (utc := re.match(r"    (utc|time): (.*)", line)):
            created = utc[2] if utc[1] == "utc" or not created or created.startswith("!") else created
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


def receipts(files: Sequence[Incoming], zone: str = "") -> dict[str, Receipt]:
    """Blackboard's receipts by what the names of the attempt's files begin with.

    Only the lines above the student's own text count, and a name in them counts only where it stands in the file's
    name too: a student may hand in a file that looks like a receipt.
    """
    found = {}
    for file in files:
        name = file.parts[-1]
        if file.inside or RECEIPT.search(name) is None or name.count("_attempt_") > 1:
            continue
        with file.file.open("rb") as receipt:
            head = receipt.read(_HEAD).decode("utf-8", "replace").lstrip("\ufeff").splitlines()
        above = itertools.takewhile(str.strip, head)
        fields = dict(line.split(":", 1) for line in above if ":" in line)
        person = re.fullmatch(r"\s*(.*?)\s*\(([^()]+)\)\s*", fields.get("Name", ""))
        user = person[2] if person and f"_{person[2]}_attempt_" in name else ""
        moment, unread = _read(fields.get("Date Submitted", ""), zone)
        found[name.removesuffix(".txt")] = Receipt(user, person[1] if person and user else "", moment, unread)
    return found


def _read(text: str, zone: str) -> tuple[datetime | None, str]:
    try:
        return (read_time(text, zone), "") if text.strip() else (None, "")
    except ValueError as error:
        return None, str(error)

"""Blackboard's downloads: notebooks, and a receipt beside those of each attempt.

Assignment_username_attempt_2026-03-01-23-59-59_name.ipynb
Assignment_username_attempt_2026-03-01-23-59-59.txt
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from autograder.intake.archives import UploadedFile
from autograder.intake.owners import FindOwner, Owner, inner_stem, time_or_reason
from autograder.ledger.identity_matching import Identity
from autograder.platforms.platform import Download, DownloadFormat, Platform

_FILE = re.compile(
    r".+?_(?P<user>[^_]+)_attempt_(?P<day>\d{4}-\d\d-\d\d)-(?P<clock>\d\d-\d\d-\d\d)(?:_(?P<name>.+)|\.txt)",
    re.DOTALL,
)
_RECEIPT = re.compile(r"_attempt_\d{4}(?:-\d\d){5}\.txt$")
_HEAD = 10_000
"""Bytes of a receipt that stand above the student's own text."""


@dataclass(frozen=True, slots=True)
class _Receipt:
    """Blackboard's receipt of one attempt."""

    user: str
    name: str
    handed_in: datetime | None
    unread: str = ""


def find_owners(download: Download) -> FindOwner:
    """A function that tells the owner of each file. Receipts are read where they are there, since
    a username may have an underscore, and the time in a file's name has no zone.
    """
    receipts = _receipts(download.files, download.zone)

    def find_owner(file: UploadedFile) -> Owner | None:
        name = file.parts[-1]
        match = _FILE.fullmatch(name)
        if match is None:
            return None
        receipt = _Receipt("", "", None)
        for prefix, of_attempt in receipts.items():
            if name.startswith((f"{prefix}_", f"{prefix}.txt")):
                receipt = of_attempt
                break
        user = receipt.user or match["user"]
        day, clock = match["day"], match["clock"]
        moment, unread = receipt.handed_in, receipt.unread
        if moment is None:
            time_in_name = f"{day} {clock.replace('-', ':')}"
            moment, reason = time_or_reason(time_in_name, download.zone)
            unread = "" if moment else unread or reason
        digits = f"{day}{clock}".replace("-", "")
        return Owner(
            user,
            Identity((("blackboard", user),), (user,), receipt.name or user),
            inner_stem(file, match["name"] or ""),
            attempt=(float(digits),),
            handed_in=moment,
            unread=unread,
        )

    return find_owner


def _receipts(files: Sequence[UploadedFile], zone: str) -> dict[str, _Receipt]:
    """Receipts by what the names of the attempt's files begin with.

    Only the lines above the student's own text count, and a name in them counts only where it
    stands in the file's name too: a student may hand in a file that looks like a receipt.
    """
    receipts = {}
    for file in files:
        name = file.parts[-1]
        if file.inside or _RECEIPT.search(name) is None or name.count("_attempt_") > 1:
            continue
        with file.file.open("rb") as receipt:
            head = (
                receipt.read(_HEAD)
                .decode("utf-8", "replace")
                .lstrip("\ufeff")
                .splitlines()
            )
        above = itertools.takewhile(str.strip, head)
        fields = dict(line.split(":", 1) for line in above if ":" in line)
        person = re.fullmatch(r"\s*(.*?)\s*\(([^()]+)\)\s*", fields.get("Name", ""))
        user = person[2] if person and f"_{person[2]}_attempt_" in name else ""
        moment, unread = time_or_reason(
            fields.get("Date Submitted", "").strip() or None, zone
        )
        receipts[name.removesuffix(".txt")] = _Receipt(
            user, person[1] if person and user else "", moment, unread
        )
    return receipts


def _is_receipt(name: str) -> bool:
    return _RECEIPT.search(name) is not None


PLATFORM = Platform(
    download=DownloadFormat(
        example="Assignment_username_attempt_2026-03-01-23-59-59_name.ipynb",
        find_owners=find_owners,
        recognises=lambda file: _FILE.fullmatch(file.parts[-1]) is not None,
        describes=_is_receipt,
        description_is_hand_in=True,
    )
)

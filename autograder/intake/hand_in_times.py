"""Hand-in times that no name in a download tells: from Moodle's worksheet, commits in clones, Canvas's interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from autograder.intake.archives import Incoming, notebook_stem
from autograder.intake.commits import CommitTimes
from autograder.intake.moodle_worksheet import Worksheet
from autograder.intake.owners import FindOwner, Owner
from autograder.ledger.matching import name_key

FindTime = Callable[[Incoming, Owner], tuple[datetime | None, str]]
"""When a file was handed in, None where nobody knows; and why its time cannot be read, or ""."""


def with_times(find_owner: FindOwner, find_time: FindTime) -> FindOwner:
    """Owners of notebooks with the times that the platform's own names do not tell."""

    def find(file: Incoming) -> Owner | None:
        owner = find_owner(file)
        if owner is None or owner.handed_in is not None or owner.unread or notebook_stem(file.name) is None:
            return owner
        moment, unread = find_time(file, owner)
        return replace(owner, handed_in=moment, unread=unread)

    return find


def times_of_commits(source: Path, scratch: Path) -> FindTime:
    """When each notebook in a folder of clones was committed last. An archive has no clones: hidden folders stay in it.

    A student's clone is the folder that gave the student's name. A repository around all clones is somebody else's: its
    commits say when the instructor stored what was handed in.

    Args:
        source: the folder with the clones.
        scratch: an empty folder to work in.
    """
    commits = CommitTimes(scratch)

    def find(file: Incoming, owner: Owner) -> tuple[datetime | None, str]:
        clone = source.joinpath(*owner.place)
        if not owner.place or not (clone / ".git").is_dir():
            return None, ""
        return commits.last_commit(clone, "/".join(file.parts[len(owner.place) :]))

    return find


def times_by_id(platform: str, times: Mapping[str, datetime]) -> FindTime:
    """When each person handed in, by what the platform knows them by."""

    def find(file: Incoming, owner: Owner) -> tuple[datetime | None, str]:
        ids = [id_ for owner_platform, id_ in owner.identity.ids if owner_platform == platform]
        return next((times[id_] for id_ in ids if id_ in times), None), ""

    return find


def times_of_worksheet(worksheet: Worksheet, zone: str) -> FindTime:
    """When each participant handed in, as Moodle's worksheet says; of a group all members have the same time."""
    times, unread = worksheet.hand_in_times(zone)
    groups: dict[str, str] = {}
    for row in worksheet.rows:
        if row.group and row.number:
            groups.setdefault(name_key(row.group), row.number)

    def find(file: Incoming, owner: Owner) -> tuple[datetime | None, str]:
        identity = owner.identity
        numbers = [number for platform, number in identity.ids if platform == "moodle"]
        number = groups.get(name_key(identity.name)) or next(iter(numbers), "")
        return times.get(number), unread.get(number, "")

    return find

"""What handing in late costs, from the submission's own time: a regrade next year gives the same score."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from autograder.course import Late
from autograder.errors import UnreadableSubmission
from autograder.handed_in import MAX_TIMESTAMP, read_handed_in
from autograder.times import read_time

TIMESTAMP_FILE = "timestamp.txt"
"""nbgrader's note of when a submission arrived, beside the notebook."""

MINUTES_A_DAY = 24 * 60
UNKNOWN = "no hand-in time is known: nothing is taken off"
"""What is said of a submission of which nobody knows when it came."""


@dataclass(frozen=True, slots=True)
class Lateness:
    """How late a submission is.

    Attributes:
        minutes: after the student's own due time; 0 in time; None where nobody knows.
        note: what it was concluded from, or why nobody knows; "" where there is nothing to say.
        unreadable: whether there is a time, and it cannot be read: no total may come of it.
        days_used: late days of the student's own that cover a part of it, which `minutes` is without.
    """

    minutes: float | None
    note: str = ""
    unreadable: bool = False
    days_used: int = 0


def apply_late(score: float, max_score: float, minutes_late: float, late: Late) -> float:
    """The score after the course's late policy.

    Args:
        score: points before it.
        max_score: points that there are; "per_day" takes its share of these.
        minutes_late: from the due time to the submission's own time; 0 or less is in time.
        late: the policy. Within the grace nothing is lost; days are counted from the end of the grace.

    Returns:
        Never below 0 and never above `score`.
    """
    days = days_begun(minutes_late, late)
    if late.policy == "none" or not days:
        return score
    if late.policy == "zero":
        return 0.0
    return max(0.0, round(score - days * late.penalty_per_day * max_score, 6))


def days_begun(minutes_late: float, late: Late) -> int:
    """How many days beyond the grace were begun."""
    return max(0, math.ceil((minutes_late - late.grace_minutes) / MINUTES_A_DAY))


def submitted_at(submission_folder: Path, zone: str = "") -> datetime | None:
    """When the submission in this folder arrived, by its timestamp file, in UTC; None where there is none.

    Args:
        zone: the course's own time zone, which explains abbreviations.

    Raises:
        ValueError: the file holds no time that can be read.
    """
    path = submission_folder / TIMESTAMP_FILE
    if not path.exists() and not path.is_symlink():
        return None
    try:
        return read_time(read_handed_in(path, MAX_TIMESTAMP).decode("utf-8", "replace"), zone, unnamed="UTC")
    except UnreadableSubmission as error:
        raise ValueError(str(error)) from error


def lateness(
    folder: Path,
    due: datetime,
    extension: timedelta | datetime | None = None,
    *,
    zone: str = "",
    marked: bool | None = None,
    unread: str = "",
    grace_minutes: int = 0,
    platform_time: datetime | None = None,
) -> Lateness:
    """How late the submission in the folder is.

    Args:
        due: when everybody's was due.
        extension: how much longer this student had, or until when.
        zone: the course's own time zone.
        marked: what the platform says that gave no time, against its own due time; None where it says nothing.
        unread: why the time that the platform gave could not be read, or "".
        grace_minutes: those of the late policy, which a mark is taken to be beyond.
        platform_time: the hand-in time in the platform's own file, for a submission without a timestamp file.
    """
    own = extension if isinstance(extension, datetime) else due + (extension or timedelta())
    try:
        moment = submitted_at(folder, zone)
    except ValueError as error:
        return Lateness(None, f"when it was handed in is not known: {error}", unreadable=True)
    moment = moment or platform_time
    if moment is not None:
        return Lateness(max(0.0, (moment - own).total_seconds() / 60))
    if unread:
        return Lateness(None, f"when it was handed in is not known: {unread}", unreadable=True)
    if marked is None:
        return Lateness(None, UNKNOWN)
    if not marked:
        return Lateness(0.0)
    if extension is not None:
        return Lateness(None, "marked as late by the platform, which may not know of the extension", unreadable=True)
    note = "marked as late by the platform, which does not say by how much: counted as one day begun"
    return Lateness(grace_minutes + 1.0, note)


def with_late_days(in_order: Iterable[Lateness], late: Late) -> Sequence[Lateness]:
    """One student's submissions in the order of their due times, with the late days of the course spent on them.

    A day covers 24 hours begun, beyond the grace. Where late is 0, days that do not cover all of it are kept.
    """
    left, covered = late.late_days, []
    for one in in_order:
        begun = days_begun(one.minutes, late) if one.minutes is not None else 0
        used = min(begun, left) if late.policy == "per_day" or begun <= left else 0
        left -= used
        minutes = None if one.minutes is None else max(0.0, one.minutes - used * MINUTES_A_DAY) if used else one.minutes
        covered.append(replace(one, minutes=minutes, days_used=used))
    return covered

"""When assignments are due, and who has longer: the sections [due] and [extensions] of
course.toml.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Annotated

from autograder.basics.times import find_zone, read_time
from autograder.course.allowed import between, read_setting, read_table
from autograder.course.roster import same

Days = Annotated[float, between(0, 1000, "of days from 0 to 1000, or a time")]


@dataclass(frozen=True, slots=True)
class DueTimes:
    """Due times by assignment, in UTC.

    Attributes:
        extensions: by assignment and student: how much longer the student has, or until when.
    """

    due: Mapping[str, datetime] = field(default_factory=dict)
    extensions: Mapping[str, Mapping[str, timedelta | datetime]] = field(default_factory=dict)


def extension_for(
    extensions: Mapping[str, timedelta | datetime], names: Iterable[str]
) -> timedelta | datetime | None:
    """The extension of the student who is called by these names, however they are spelled: the
    first one found.
    """
    spelled = {same(name): longer for name, longer in extensions.items()}
    return next((spelled[same(name)] for name in names if same(name) in spelled), None)


def as_span(longer: timedelta | datetime, due: datetime) -> timedelta:
    """How much longer a student has than the due time says."""
    return max(longer - due, timedelta()) if isinstance(longer, datetime) else longer


def due_times(due: object, extensions: object, zone: str) -> DueTimes:
    """The two sections as they stand in the file. Whether there are such assignments and students
    is not looked at.

    Args:
        zone: the course's own time zone, for times that name none.

    Raises:
        ValueError: names the entry and what it may be.
    """
    times = {
        name: _time(f"due.{name}", value, zone) for name, value in read_table("due", due).items()
    }
    longer = {
        assignment: {
            student: _extension(f"extensions.{assignment}.{student}", value, zone)
            for student, value in read_table(f"extensions.{assignment}", students).items()
        }
        for assignment, students in read_table("extensions", extensions).items()
    }
    return DueTimes(times, longer)


def _extension(name: str, value: object, zone: str) -> timedelta | datetime:
    if isinstance(value, (int, float)):
        return timedelta(days=read_setting(name, Days, value))
    return _time(name, value, zone)


def _time(name: str, value: object, zone: str) -> datetime:
    """A text, or a time as TOML writes one."""
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            return value.astimezone(UTC)
        if at_home := find_zone(zone) if zone else None:
            return value.replace(tzinfo=at_home).astimezone(UTC)
        raise ValueError(f"{name} = {value}: it has no time zone; set `timezone` under [course]")
    if isinstance(value, date) or not isinstance(value, str):
        raise ValueError(
            f'{name} = {str(value)[:60]}: it must be a time like "2026-10-02 23:59 Europe/Berlin"'
        )
    try:
        return read_time(value, zone)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error

"""Due times and extensions: the sections [due] and [extensions] of course.toml."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Annotated

from autograder.basics.times import find_zone, read_time
from autograder.course.allowed import between, read_setting, read_table
from autograder.course.roster import fold_text

Days = Annotated[float, between(0, 1000, "of days from 0 to 1000, or a time")]
Extension = timedelta | datetime
"""How much longer a student has, or until when."""


def find_extension(
    extensions: Mapping[str, Extension], names: Iterable[str]
) -> Extension | None:
    """The extension of a student with several names: the first name that has one counts, in any
    spelling.
    """
    by_name = {fold_text(name): extension for name, extension in extensions.items()}
    for name in names:
        if fold_text(name) in by_name:
            return by_name[fold_text(name)]
    return None


def extension_length(extension: Extension, due: datetime) -> timedelta:
    """The time between the due time and the student's own."""
    if isinstance(extension, datetime):
        return max(extension - due, timedelta())
    return extension


def read_due_times(due: object, zone: str) -> dict[str, datetime]:
    """The section [due]: due times in UTC, by assignment. Whether there are such assignments is not
    checked.

    Args:
        zone: the course's own time zone, for times that name none.

    Raises:
        ValueError: an entry is no time.
    """
    return {
        name: _read_moment(f"due.{name}", value, zone)
        for name, value in read_table("due", due).items()
    }


def read_extensions(extensions: object, zone: str) -> dict[str, dict[str, Extension]]:
    """The section [extensions], by assignment and student.

    Raises:
        ValueError: an entry is neither a number of days nor a time.
    """
    by_assignment: dict[str, dict[str, Extension]] = {}
    for assignment, table in read_table("extensions", extensions).items():
        place = f"extensions.{assignment}"
        by_assignment[assignment] = {
            student: _read_extension(f"{place}.{student}", value, zone)
            for student, value in read_table(place, table).items()
        }
    return by_assignment


def _read_extension(name: str, value: object, zone: str) -> Extension:
    if isinstance(value, (int, float)):
        return timedelta(days=read_setting(name, Days, value))
    return _read_moment(name, value, zone)


def _read_moment(name: str, value: object, zone: str) -> datetime:
    """A text, or a time as TOML writes one."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            course_zone = find_zone(zone) if zone else None
            if course_zone is None:
                raise ValueError(
                    f"{name} = {value}: it has no time zone; set `timezone` under [course]"
                )
            value = value.replace(tzinfo=course_zone)
        return value.astimezone(UTC)
    if isinstance(value, date) or not isinstance(value, str):
        raise ValueError(
            f'{name} = {str(value)[:60]}: it must be a time like "2026-10-02 23:59 Europe/Berlin"'
        )
    try:
        return read_time(value, zone)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error

"""What a setting in `course.toml` may be: msgspec's constraints, whose descriptions are the words
of messages.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, get_args, get_type_hints

from msgspec import Meta, ValidationError, convert

from autograder.basics.times import find_zone

_NOUNS = {float: "a number ", int: "a whole number ", str: "a text "}
_Settings = TypeVar("_Settings")


# what may stand in Annotated[float, …]; upper ends keep sums within what an operating system takes


def between(least: float, most: float, words: str = "") -> Meta:
    """A number that may be either end."""
    return Meta(ge=least, le=most, description=words or f"from {least:.10g} to {most:.10g}")


def above(least: float, most: float) -> Meta:
    """A number that is more than `least`."""
    return Meta(gt=least, le=most, description=f"above {least:.10g}, up to {most:.10g}")


def one_of(*words: str) -> Meta:
    """One of these texts."""
    quoted = " or ".join(f'"{word}"' for word in words)
    return _text(quoted, lambda value: value in words)


def one_line(longest: int) -> Meta:
    """A text that can be read out."""
    return _text(
        f"of one line that is not empty, with up to {longest} characters",
        lambda value: bool(value.strip()) and value.isprintable() and len(value) <= longest,
    )


def _text(words: str, allows: Callable[[str], bool]) -> Meta:
    return Meta(description=words, extra={"allows": allows})


def _matching(words: str, pattern: str) -> Meta:
    return _text(
        words, lambda value: value.isprintable() and re.fullmatch(pattern, value) is not None
    )


ZONE_NAME = _text(
    "that names a time zone, such as Europe/Berlin, or is empty",
    lambda zone: not zone or find_zone(zone) is not None,
)
SERVERS_ADDRESS = _matching(
    "that is the address of a database, such as postgresql+psycopg://host/course, or is empty",
    r"(postgresql(\+psycopg)?://\S+)?",
)
WEB_ADDRESS = _matching(  # a token goes there: https alone, but on this machine
    "that is the address of a platform, such as https://canvas.example.org, or is empty",
    r"(https://[^\s/?#@]+(/[^\s?#@]*)?|http://(127\.0\.0\.1|localhost)(:\d+)?(/[^\s?#@]*)?)?",
)
COURSE_ID = _matching(
    "that is the course's number on the platform, or is empty", r"[A-Za-z0-9:_.-]{0,100}"
)


def read_settings(kind: type[_Settings], place: str, table: object, **fields: object) -> _Settings:
    """The table as a record of settings.

    Args:
        kind: a dataclass whose annotations say what each setting may be.
        place: the table's name in the file.
        fields: fields of the record that do not stand in the table.

    Raises:
        ValueError: a setting is unknown, missing, or not what is allowed.
    """
    settings = read_table(place, table)
    hints = {
        key: hint
        for key, hint in get_type_hints(kind, include_extras=True).items()
        if key not in fields
    }
    for key in settings:
        if key not in hints:
            raise ValueError(f"unknown setting {place}.{repr(key)[1:-1]}{among(key, hints)}")
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        if (
            field.name in hints
            and field.name not in settings
            and field.default is dataclasses.MISSING
        ):
            raise ValueError(f"{place} needs {field.name}: {_words(hints[field.name])}")
    read = {
        key: read_setting(f"{place}.{key}", hints[key], value) for key, value in settings.items()
    }
    return kind(**fields, **read)


def among(unknown: str, names: Iterable[str]) -> str:
    """The end of a message on an unknown name: the nearest that there is, and all of them."""
    names = list(names)
    near = "".join(f", perhaps {name}" for name in difflib.get_close_matches(unknown, names, 1))
    return f"{near}; there are: {', '.join(names)}"


def read_setting(name: str, hint: Any, value: object) -> Any:
    """The value as the annotated type wants it.

    Raises:
        ValueError: it is of another type, or not what is allowed.
    """
    try:
        read = convert(value, hint)
        allows = (get_args(hint)[1].extra or {}).get("allows")
        if allows is None or allows(read):
            return read
    except ValidationError:
        pass
    raise ValueError(f"{name} = {_shortly(value)}: it must be {_words(hint)}")


def read_table(place: str, value: object) -> dict[str, Any]:
    """Raises: ValueError, where the value is no table."""
    if not isinstance(value, dict):
        raise ValueError(f"[{place}] must be one table of settings, not {_shortly(value)}")
    return value


def _words(hint: Any) -> str:
    kind, allowed = get_args(hint)
    return f"{_NOUNS.get(kind, '')}{allowed.description}"


def _shortly(value: object) -> str:
    """A value as TOML may have had it, on one line."""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else text[:60] + "…"

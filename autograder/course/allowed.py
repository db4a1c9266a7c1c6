"""Constraints on the settings in `course.toml`, as msgspec has them; their descriptions are the
words of messages.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, get_args, get_type_hints

from msgspec import Meta, ValidationError, convert

from autograder.basics.times import find_zone

_NOUNS = {float: "a number ", int: "a whole number ", str: "a text "}
_Settings = TypeVar("_Settings")


# for Annotated[float, …]; upper ends keep sums within the numbers that an operating system takes


def between(least: float, most: float, words: str = "") -> Meta:
    """A number from `least` to `most`, both included."""
    return Meta(
        ge=least, le=most, description=words or f"from {least:.10g} to {most:.10g}"
    )


def above(least: float, most: float) -> Meta:
    """A number above `least`."""
    return Meta(gt=least, le=most, description=f"above {least:.10g}, up to {most:.10g}")


def one_of(*words: str) -> Meta:
    """One of these texts."""
    quoted = " or ".join(f'"{word}"' for word in words)
    return _text(quoted, lambda value: value in words)


def one_line(longest: int) -> Meta:
    """A text that can be read out."""
    return _text(
        f"of one line that is not empty, with up to {longest} characters",
        lambda value: (
            bool(value.strip()) and value.isprintable() and len(value) <= longest
        ),
    )


def _text(words: str, allows: Callable[[str], bool]) -> Meta:
    return Meta(description=words, extra={"allows": allows})


def _matching(words: str, pattern: str) -> Meta:
    return _text(
        words,
        lambda value: value.isprintable() and re.fullmatch(pattern, value) is not None,
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
    "that is the course's number on the platform, or is empty",
    r"[A-Za-z0-9:_.-]{0,100}",
)

NAMES_IN_A_LINE = _text(
    "of names with spaces between, or is empty",
    lambda names: names.isprintable() and len(names) <= 10_000,
)


def read_settings(
    kind: type[_Settings], place: str, table: object, **fields: object
) -> _Settings:
    """The table as a record of settings.

    Args:
        kind: a dataclass; each annotation has the setting's constraint.
        place: the table's name in the file.
        fields: fields of the record without a setting in the table.

    Raises:
        ValueError: a setting is unknown, missing, or breaks its constraint.
    """
    settings = read_table(place, table)
    hints = get_type_hints(kind, include_extras=True)
    for name in fields:
        del hints[name]
    for key in settings:
        if key not in hints:
            raise ValueError(
                f"unknown setting {place}.{repr(key)[1:-1]}{suggest(key, hints)}"
            )
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        is_missing = field.name in hints and field.name not in settings
        if is_missing and field.default is dataclasses.MISSING:
            raise ValueError(
                f"{place} needs {field.name}: {_describe(hints[field.name])}"
            )
    for key, value in settings.items():
        fields[key] = read_setting(f"{place}.{key}", hints[key], value)
    return kind(**fields)


def suggest(unknown: str, names: Iterable[str]) -> str:
    """The end of a message on an unknown name: the nearest name, and all names."""
    names = list(names)
    near = "".join(
        f", perhaps {name}" for name in difflib.get_close_matches(unknown, names, 1)
    )
    return f"{near}; there are: {', '.join(names)}"


def read_setting(name: str, hint: Any, value: object) -> Any:
    """The value as the annotated type has it.

    Raises:
        ValueError: the value is of another type, or breaks the constraint.
    """
    extra = get_args(hint)[1].extra or {}
    with contextlib.suppress(ValidationError):
        setting = convert(value, hint)
        if "allows" not in extra or extra["allows"](setting):
            return setting
    raise ValueError(f"{name} = {_shorten(value)}: it must be {_describe(hint)}")


def read_table(place: str, value: object) -> dict[str, Any]:
    """Raises: ValueError, where the value is no table."""
    if not isinstance(value, dict):
        raise ValueError(
            f"[{place}] must be one table of settings, not {_shorten(value)}"
        )
    return value


def _describe(hint: Any) -> str:
    kind, constraint = get_args(hint)
    return f"{_NOUNS.get(kind, '')}{constraint.description}"


def _shorten(value: object) -> str:
    """A value as TOML writes it, on one line."""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else text[:60] + "…"

"""What a setting in `course.toml` may be: each says whether it allows a value, and, as text, what it allows."""

from __future__ import annotations

import re
from dataclasses import dataclass

from autograder.times import known_zone


@dataclass(frozen=True, slots=True)
class Between:
    """What a number may be. The upper ends keep sums of times and sizes within what an operating system takes."""

    least: float
    most: float
    least_too: bool = True
    """Whether `least` itself is allowed."""

    def allows(self, value: float) -> bool:
        """Whether the value lies between the ends."""
        return self.least <= value <= self.most and (self.least_too or value != self.least)

    def __str__(self) -> str:
        return (
            f"from {self.least:g} to {self.most:g}" if self.least_too else f"above {self.least:g}, up to {self.most:g}"
        )


@dataclass(frozen=True, slots=True)
class OneOf:
    """The words that a text may be."""

    words: tuple[str, ...]

    def allows(self, value: str) -> bool:
        """Whether the value is one of the words."""
        return value in self.words

    def __str__(self) -> str:
        return " or ".join(f'"{word}"' for word in self.words)


@dataclass(frozen=True, slots=True)
class OneLine:
    """A text that can be read out."""

    longest: int

    def allows(self, value: str) -> bool:
        """Whether the value is one printable line, not blank, and not too long."""
        return bool(value.strip()) and value.isprintable() and len(value) <= self.longest

    def __str__(self) -> str:
        return f"of one line that is not empty, with up to {self.longest} characters"


@dataclass(frozen=True, slots=True)
class ZoneName:
    """A time zone of the IANA database, or "" for none."""

    def allows(self, value: str) -> bool:
        """Whether the value is empty or names a zone that this machine knows."""
        return not value or known_zone(value) is not None

    def __str__(self) -> str:
        return "that names a time zone, such as Europe/Berlin, or is empty"


@dataclass(frozen=True, slots=True)
class ServersAddress:
    """The address of a database of PostgreSQL, as SQLAlchemy and nbgrader write it, or "" for none."""

    def allows(self, value: str) -> bool:
        """Whether the value is empty or such an address."""
        return not value or re.fullmatch(r"postgresql(\+psycopg)?://\S+", value) is not None

    def __str__(self) -> str:
        return "that is the address of a database, such as postgresql+psycopg://host/course, or is empty"


@dataclass(frozen=True, slots=True)
class WebAddress:
    """The address of a learning platform, or "" for none. A token goes there: https alone, but on this machine."""

    def allows(self, value: str) -> bool:
        """Whether the value is empty, an address with https, or one of this machine, without a user or a query."""
        place = r"[^\s/?#@]+(/[^\s?#@]*)?"
        here = r"(127\.0\.0\.1|localhost)(:\d+)?(/[^\s?#@]*)?"
        return not value or re.fullmatch(rf"https://{place}|http://{here}", value) is not None

    def __str__(self) -> str:
        return "that is the address of a platform, such as https://canvas.example.org, or is empty"


@dataclass(frozen=True, slots=True)
class CourseId:
    """What a platform calls a course: a number or a word, or "" for none."""

    def allows(self, value: str) -> bool:
        """Whether the value is empty or can stand in an address."""
        return re.fullmatch(r"[A-Za-z0-9:_.-]{0,100}", value) is not None

    def __str__(self) -> str:
        return "that is the course's number on the platform, or is empty"

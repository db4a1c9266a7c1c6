"""The parts that the clients of platforms' interfaces share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from autograder.basics.errors import PlatformUnavailable
from autograder.ledger import Identity
from autograder.ledger.identity_matching import Id

_Entry = TypeVar("_Entry")


def find_titled(
    platform: str, noun: str, title: str, entries: Iterable[tuple[str, object, _Entry]]
) -> _Entry:
    """The assignment that has this title or number.

    Args:
        noun: the platform's word for an assignment.
        entries: title, number and record of each assignment in the course.

    Raises:
        PlatformUnavailable: no assignment has it, or several have.
    """
    labels = []
    matching = []
    for entry_title, number, entry in entries:
        label = f"{entry_title} ({number})"
        labels.append(label)
        if title in (entry_title, str(number), label):
            matching.append(entry)
    if len(matching) == 1:
        return matching[0]
    count = f"{len(matching)} {noun}s" if matching else f"no {noun}"
    names = ", ".join(labels) or "none that the token may see"
    raise PlatformUnavailable(
        f"{platform} has {count} {title!r}; `--column` names one of: {names}"
    )


def identity_from(
    ids: tuple[Id, ...],
    record: Mapping[str, object],
    accounts: Iterable[str],
    name: str,
) -> Identity:
    """The person in a platform's record.

    Args:
        accounts: the fields of the record that are one person's alone; empty ones are left out.
    """
    values = (record.get(field) for field in accounts)
    return Identity(ids, tuple(str(value) for value in values if value), name)

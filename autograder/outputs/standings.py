"""An assignment as a platform's interface describes it: its people and their marks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from autograder.ledger import Identity


@dataclass(frozen=True, slots=True)
class Standing:
    """One person on the platform.

    Attributes:
        id: what the interface calls the person.
        identity: what the ledger knows the person by.
        mark: the mark that the platform has; None for none.
        refused: why the platform will not take a mark of this person, or "".
        handed_in: when they handed in, where that was asked for and the platform says so.
    """

    id: str
    identity: Identity
    mark: float | None = None
    refused: str = ""
    handed_in: datetime | None = None


@dataclass(frozen=True, slots=True)
class Standings:
    """An assignment as the platform has it.

    Attributes:
        maximum: the points that it has there; None where the platform does not say.
        extra: whether the platform takes marks above that.
        notes: what else to know before the marks are sent.
    """

    title: str
    maximum: float | None
    people: tuple[Standing, ...]
    extra: bool = False
    notes: tuple[str, ...] = ()


class Interface(Protocol):
    """A platform's interface, opened for one assignment."""

    def read(self) -> Standings:
        """The assignment and everybody's mark.

        Raises:
            PlatformUnavailable: the platform does not answer, or does not let marks be written there.
        """

    def give(self, marks: Mapping[str, float]) -> None:
        """Send marks: the person's id there → points.

        Raises:
            PlatformUnavailable: the platform did not take them.
        """

"""Compare marks with a platform's: marks that an export gives, keeps and skips, with reasons.

A platform's module reads the marks there from the platform's file or through its API. The
`Difference` is printed before anything is uploaded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from autograder.basics.safe_text import one_line
from autograder.marks.marks import Mark
from autograder.outputs.export import points_cell

Outcome = Literal["gets", "keeps", "skipped"]
SAME = 0.005
"""Platforms show two decimals: marks that differ by less than half of the second are equal."""


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one person's mark on the platform.

    Attributes:
        person: the person's name on the platform.
        student: the student's id here; "" for nobody.
        outcome: "gets" the mark, "keeps" the mark on the platform, or "skipped", if the platform
            will refuse the mark.
        platform_mark: the mark on the platform, in the platform's writing; "" for none.
        mark: the mark here; None for none.
        reason: why the mark is kept or skipped, or the condition on which it is given.
    """

    person: str
    student: str
    outcome: Outcome
    platform_mark: str = ""
    mark: float | None = None
    reason: str = ""

    def __str__(self) -> str:
        had = self.platform_mark or "none"
        person = one_line(self.person)
        points = points_cell(self.mark)
        reason = f": {one_line(self.reason)}" if self.reason else ""
        if self.outcome == "gets":
            return f"{person} gets {points} (had {had}){reason}"
        if self.outcome == "skipped":
            return f"{person} will be skipped and keeps {had} (here {points}){reason}"
        return f"{person} keeps {had}{reason}"


@dataclass(frozen=True, slots=True)
class Difference:
    """The changes of a whole class.

    Attributes:
        changes: a change for each person on the platform.
        missing: students with a mark here who are not on the platform.
        notes: remarks for the person who uploads.
    """

    changes: tuple[Change, ...] = ()
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def lines(self, platform: str) -> list[str]:
        """The difference in lines: the counts, then each person, then the notes."""
        if not self.changes and not self.missing:
            return list(self.notes)
        order = ("skipped", "gets", "keeps")
        changes = sorted(self.changes, key=lambda change: order.index(change.outcome))
        counts = Counter(change.outcome for change in changes)
        return [
            f"{platform}: {counts['gets']} to get a mark, {counts['keeps']} to keep what is there, "
            f"{counts['skipped']} to be skipped there",
            *(f"  {change}" for change in changes),
            *(
                f"  {one_line(student)} has a mark and is not known there"
                for student in self.missing
            ),
            *self.notes,
        ]


def points_to_give(marks: Iterable[Mark], *, provisional: bool) -> dict[str, float]:
    """Student → the mark to export; students without a mark are left out."""
    finals = {mark.student: mark.final(provisional=provisional) for mark in marks}
    return {student: points for student, points in finals.items() if points is not None}


def full_marks(marks: Iterable[Mark]) -> float:
    """The points of the assignment; 0 without marks."""
    return max((mark.max_score for mark in marks), default=0.0)


def has_other_maximum(platform_points: float | None, points: float) -> bool:
    """Whether an assignment is out of other points on the platform than here; not where the
    platform does not say.
    """
    return platform_points is not None and abs(platform_points - points) > SAME


@dataclass(frozen=True, slots=True)
class PlatformPerson:
    """One person on the platform, with the platform's mark.

    Attributes:
        person: the person's name on the platform.
        student: the student's id here; "" for nobody.
        platform_mark: the mark on the platform, in the platform's writing; "" for none.
        platform_points: the same mark as a number; None if it is no number.
        decide: whether the platform takes a new mark in place of this one, and the reason.
    """

    person: str
    student: str
    platform_mark: str
    platform_points: float | None
    decide: Callable[[float], tuple[Outcome, str]]


def compare_marks(
    marks: Sequence[Mark],
    people: Iterable[PlatformPerson],
    points: Mapping[str, float],
    notes: Sequence[str] = (),
) -> Difference:
    """Decide about everybody's mark: without a new mark here, the platform's mark stays.

    Args:
        points: student → the mark to export.
    """
    by_student = {mark.student: mark for mark in marks}
    changes = tuple(
        _change(person, by_student.get(person.student), points) for person in people
    )
    return Difference(changes, missing_students(marks, points, changes), tuple(notes))


def _change(
    person: PlatformPerson, mark: Mark | None, points: Mapping[str, float]
) -> Change:
    student = mark.student if mark else ""
    new_mark = points.get(student)
    outcome: Outcome
    if new_mark is None:
        outcome, reason = "keeps", _reason_without_mark(mark)
    elif (
        person.platform_points is not None
        and abs(person.platform_points - new_mark) < SAME
    ):
        outcome, reason = "keeps", "the same as here"
    else:
        outcome, reason = person.decide(new_mark)
    return Change(
        person.person, student, outcome, person.platform_mark, new_mark, reason
    )


def missing_students(
    marks: Sequence[Mark], points: Mapping[str, float], changes: Iterable[Change]
) -> tuple[str, ...]:
    """Students with a mark who are not on the platform."""
    on_platform = {change.student for change in changes}
    missing = points.keys() - on_platform
    return tuple(mark.student for mark in marks if mark.student in missing)


def _reason_without_mark(mark: Mark | None) -> str:
    """Why a person on the platform gets no mark from here."""
    return "nobody here" if mark is None else mark.status

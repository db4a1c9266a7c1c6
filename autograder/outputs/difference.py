"""What an export changes on a platform: marks given, marks kept, people skipped, each with the
reason.

Each platform's module compares the marks with what the platform itself says, in a file that it
wrote or through its API, and makes a `Difference`. It is printed before anything is uploaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from autograder.basics.safe_text import one_line
from autograder.marks.marks import Mark
from autograder.outputs.export import points_cell

Outcome = Literal["gets", "keeps", "skipped"]
SAME = 0.005
"""Platforms show two decimals: marks that are nearer than half of the second are the same there."""


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one person's mark on the platform.

    Attributes:
        person: the person as the platform calls them.
        student: who that is here; "" for nobody.
        outcome: whether the mark is given, what is there stays, or the platform will not take the
            mark.
        mark_there: the mark on the platform, in the platform's writing; "" for none.
        mark: the mark here; None for none.
        reason: why the person keeps what they have or is skipped, or on what condition they get the
            mark.
    """

    person: str
    student: str
    outcome: Outcome
    mark_there: str = ""
    mark: float | None = None
    reason: str = ""

    def __str__(self) -> str:
        had = self.mark_there or "none"
        person, reason = one_line(self.person), f": {one_line(self.reason)}" if self.reason else ""
        if self.outcome == "gets":
            return f"{person} gets {points_cell(self.mark)} (had {had}){reason}"
        if self.outcome == "skipped":
            return (
                f"{person} will be skipped and keeps {had} (here {points_cell(self.mark)}){reason}"
            )
        return f"{person} keeps {had}{reason}"


@dataclass(frozen=True, slots=True)
class Difference:
    """Everybody whom the platform knows, and whom it does not know.

    Attributes:
        changes: a change for each person on the platform.
        missing: students with a mark here whom the platform's file does not have.
        notes: what else to know before the upload.
    """

    changes: tuple[Change, ...] = ()
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def lines(self, platform: str) -> list[str]:
        """The difference for people: how many of each kind, then a line for each person, then the
        notes.
        """
        count = {
            outcome: [c for c in self.changes if c.outcome == outcome]
            for outcome in ("gets", "keeps", "skipped")
        }
        counts = f"{len(count['gets'])} to get a mark, {len(count['keeps'])} to keep what is there"
        first = f"{platform}: {counts}, {len(count['skipped'])} to be skipped there"
        people = [f"  {change}" for kind in ("skipped", "gets", "keeps") for change in count[kind]]
        unknown = [
            f"  {one_line(student)} has a mark and is not known there" for student in self.missing
        ]
        return (
            [first, *people, *unknown, *self.notes]
            if self.changes or self.missing
            else list(self.notes)
        )


def points_to_give(marks: Iterable[Mark], *, provisional: bool) -> dict[str, float]:
    """Student → the mark to export, of everybody who has one."""
    return {
        mark.student: points
        for mark in marks
        if (points := mark.final(provisional=provisional)) is not None
    }


def full_marks(marks: Iterable[Mark]) -> float:
    """What the marks are out of; 0 where there are none."""
    return max((mark.max_score for mark in marks), default=0.0)


@dataclass(frozen=True, slots=True)
class PlatformPerson:
    """One person on the platform, with the mark that the platform has.

    Attributes:
        person: the person as the platform calls them.
        student: who that is here; "" for nobody.
        mark_there: the mark on the platform, in the platform's writing; "" for none.
        points_there: the same as a number; None where it is none.
        decide: whether the platform takes this mark from the person in place of theirs, and the
            reason.
    """

    person: str
    student: str
    mark_there: str
    points_there: float | None
    decide: Callable[[float], tuple[Outcome, str]]


def compare_marks(
    marks: Sequence[Mark],
    people: Iterable[PlatformPerson],
    points: Mapping[str, float],
    notes: Sequence[str] = (),
) -> Difference:
    """What becomes of everybody's mark: whoever has no mark here, or the same one there, keeps what
    is there.

    Args:
        points: student → the mark to export.
    """
    by_student = {mark.student: mark for mark in marks}
    changes = tuple(_change(person, by_student.get(person.student), points) for person in people)
    return Difference(changes, missing_students(marks, points, changes), tuple(notes))


def _change(there: PlatformPerson, mark: Mark | None, points: Mapping[str, float]) -> Change:
    if mark is None or mark.student not in points:
        student = mark.student if mark else ""
        return Change(there.person, student, "keeps", there.mark_there, None, _without_a_mark(mark))
    mark_here = points[mark.student]
    if there.points_there is not None and abs(there.points_there - mark_here) < SAME:
        return Change(
            there.person, mark.student, "keeps", there.mark_there, mark_here, "the same as here"
        )
    outcome, reason = there.decide(mark_here)
    return Change(there.person, mark.student, outcome, there.mark_there, mark_here, reason)


def missing_students(
    marks: Sequence[Mark], points: Mapping[str, float], changes: Iterable[Change]
) -> tuple[str, ...]:
    """Students with a mark who are nobody on the platform."""
    on_platform = {change.student for change in changes}
    return tuple(
        mark.student for mark in marks if mark.student in points and mark.student not in on_platform
    )


def _without_a_mark(mark: Mark | None) -> str:
    """Why somebody whom the platform knows gets no mark from here."""
    if mark is None:
        return "nobody here"
    return "no mark here" if mark.status == "graded" else mark.status

"""The course's rules for attempts: who may try again, which attempt counts, and what students see
of a result before the due time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from datetime import UTC, datetime, timedelta

from autograder.basics.times import shown_time
from autograder.course import Course
from autograder.ledger import Ledger
from autograder.marks.late_policy import (
    apply_late,
    due_time,
    listed_extension,
    measure_lateness,
    shown_now,
)
from autograder.records.model import Result
from autograder.server.attempts import Attempt


def is_group_name(ledger: Ledger, student: str) -> bool:
    """Whether this is the name of a group of the class list, under which nobody may sign in: the
    group's attempts would be theirs.
    """
    return student not in ledger.listed and bool(ledger.listed_group(student))


class AttemptRules:
    """The rules of [submit], [due], [extensions] and [late] for the students of a course."""

    def __init__(self, course: Course, ledger: Ledger) -> None:
        self._course = course
        self._ledger = ledger
        self._own_work: dict[str, Set[str]] = {}

    def owner(self, student: str, assignment: str) -> str:
        """Whose the student's attempts at an assignment are: those of the group with which the
        student hands in, under the group's name, or the student's own.
        """
        ledger = self._ledger
        holder = ledger.holder(student, assignment)
        person = ledger.listed.get(student)
        is_in_groups = assignment in self._course.submit.groups.split()
        if holder != student or person is None or not person.group or not is_in_groups:
            return holder
        group = ledger.listed[
            ledger.listed_group(person.group)[0]
        ].group  # as its first row has it
        is_alone = student in self._students_with_own_work(assignment)
        return student if is_alone or group in ledger.listed else group

    def members(self, owner: str, assignment: str) -> tuple[str, ...]:
        """The students to whom a group's attempts belong, or the student alone."""
        together = tuple(
            student
            for student in self._ledger.listed_group(owner)
            if self.owner(student, assignment) == owner
        )
        return together or self._ledger.members(owner, assignment)

    def _students_with_own_work(self, assignment: str) -> Set[str]:
        """Students in whose own folder a notebook lies: for them that counts, not a group's."""
        if assignment not in self._own_work:
            self._own_work[assignment] = self._ledger.students_with_notebooks(
                assignment
            )
        return self._own_work[assignment]

    def due(self, student: str, assignment: str) -> datetime | None:
        """When the assignment is due for this student; None where nobody says."""
        return due_time(
            self._course, assignment, student, self._ledger.listed.get(student)
        )

    def _extension(self, student: str, assignment: str) -> timedelta | datetime | None:
        person = self._ledger.listed.get(student)
        return listed_extension(self._course, assignment, student, person)

    def is_past_due(self, student: str, assignment: str) -> bool:
        """Whether the student's due time is over."""
        due = self.due(student, assignment)
        return due is not None and datetime.now(UTC) > due

    def shown_result(self, attempt: Attempt, result: Result) -> Result:
        """The result of an attempt as the student may see it now: with examples, or without."""
        person = self._ledger.listed.get(attempt.student)
        return shown_now(
            self._course, attempt.assignment, attempt.student, person, result
        )

    def why_not_now(self, attempts: Sequence[Attempt]) -> str:
        """Why the student may not hand in at this moment, for the student; "" where they may.

        Args:
            attempts: the student's at the assignment, the newest first.
        """
        submit = self._course.submit
        if submit.tries and len(attempts) >= submit.tries:
            noun = "attempt" if submit.tries == 1 else "attempts"
            return f"all {submit.tries} {noun} are used"
        if attempts and submit.pause_minutes:
            next_time = attempts[0].handed_in + timedelta(minutes=submit.pause_minutes)
            if datetime.now(UTC) < next_time:
                zone = self._course.about.timezone
                return f"the next attempt is possible from {shown_time(next_time, zone)} on"
        return ""

    def tries_left(self, attempts: Sequence[Attempt]) -> int | None:
        """How many attempts the student has left; None where there is no limit."""
        tries = self._course.submit.tries
        return max(0, tries - len(attempts)) if tries else None

    def counting(self, attempts: Sequence[Attempt]) -> Attempt | None:
        """The attempt that counts: the last one, or the one with the most points after the late
        penalty, and of equal ones the earliest. Attempts without a result count only where no other
        is there.
        """
        graded = [attempt for attempt in attempts if attempt.may_count]
        with_result = [attempt for attempt in graded if attempt.score is not None]
        if self._course.submit.counts == "last" or not with_result:
            return max(graded, key=lambda attempt: attempt.number, default=None)
        return max(
            with_result, key=lambda attempt: (self._total(attempt), -attempt.number)
        )

    def counting_by_student(self, attempts: Iterable[Attempt]) -> dict[str, Attempt]:
        """Of each student the attempt that counts, where one does, in the order of students."""
        by_student: dict[str, list[Attempt]] = {}
        for attempt in attempts:
            by_student.setdefault(attempt.student, []).append(attempt)
        chosen = {
            student: self.counting(by_student[student])
            for student in sorted(by_student)
        }
        return {
            student: attempt
            for student, attempt in chosen.items()
            if attempt is not None
        }

    def _total(self, attempt: Attempt) -> float:
        """The points of the tests after the late penalty, before late days."""
        score, max_score = attempt.score or 0.0, attempt.max_score or 0.0
        due = self._course.due.get(attempt.assignment)
        if due is None:
            return score
        extension = self._extension(attempt.student, attempt.assignment)
        lateness = measure_lateness(due, attempt.handed_in, extension)
        return apply_late(score, max_score, lateness.minutes or 0.0, self._course.late)

    def shown(self, attempt: Attempt) -> str:
        """How much of the attempt's result the student sees now: "all", "failed questions" or
        "score".
        """
        if self.is_past_due(attempt.student, attempt.assignment):
            return "all"
        return self._course.submit.show

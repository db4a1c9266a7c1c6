"""How late a submission is, and what lateness costs.

Lateness counts from the submission's own hand-in time, so a regrade next year gives the same mark.
Due times and extensions come from course.toml and from nbgrader's gradebook together. Reports,
exports and the penalties in the gradebook itself all take their lateness from `class_lateness`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from autograder.basics.errors import UnreadableSubmission
from autograder.basics.handed_in import MAX_TIMESTAMP, read_handed_in
from autograder.basics.natural_order import natural_order
from autograder.basics.points import format_points
from autograder.basics.times import read_time
from autograder.course import Course, Late
from autograder.course.due import extension_length, find_extension
from autograder.course.roster import Person
from autograder.intake.collected import Arrival, read_collected
from autograder.ledger import Ledger, find_in_class_list, read_ledger
from autograder.records.model import Result

TIMESTAMP_FILE = "timestamp.txt"
"""nbgrader's note of when a submission arrived, beside the notebook."""

MINUTES_A_DAY = 24 * 60
UNKNOWN = "no hand-in time is known: nothing is taken off"
"""The note of a submission whose hand-in time nobody knows."""

PlatformTimes = Mapping[str, datetime | str]
"""Student → hand-in time in a platform's own file, or why that time cannot be read."""


@dataclass(frozen=True, slots=True)
class Lateness:
    """How late a submission is.

    Attributes:
        minutes: after the student's own due time; 0 in time; None where the time is not known.
        note: why the minutes are what they are, for people; "" where nothing needs saying.
        unreadable: whether a time is there and cannot be read: the student gets no total then.
        days_used: the student's late days that were spent on the submission. Their minutes are
            already subtracted from `minutes`.
    """

    minutes: float | None
    note: str = ""
    unreadable: bool = False
    days_used: int = 0


@dataclass(frozen=True, slots=True)
class GradebookTimes:
    """Times of one assignment in nbgrader's gradebook. It knows students by their folders.

    Attributes:
        due: when the assignment is due; None where the gradebook has no due time.
        granted: extensions that a person granted in nbgrader, by folder. Extensions that the kit
            copied from course.toml are left out.
        handed_in: hand-in times by folder.
    """

    due: datetime | None = None
    granted: dict[str, timedelta] = field(default_factory=dict)
    handed_in: dict[str, datetime] = field(default_factory=dict)


def apply_late(
    score: float,
    max_score: float,
    minutes_late: float,
    late: Late,
) -> float:
    """Apply the course's late policy to a score.

    Args:
        score: points before the penalty.
        max_score: full points; "per_day" takes a share of these for each day.
        minutes_late: 0 or less is in time.
        late: the policy. Minutes within the grace cost nothing; days are counted from its end.

    Returns:
        The new score, never below 0 and never above `score`.
    """
    days = days_begun(minutes_late, late)
    if late.policy == "none" or not days:
        return score
    if late.policy == "zero":
        return 0.0
    return max(0.0, round(score - days * late.penalty_per_day * max_score, 6))


def days_begun(minutes_late: float, late: Late) -> int:
    """Count the days that were begun after the grace."""
    return max(0, math.ceil((minutes_late - late.grace_minutes) / MINUTES_A_DAY))


def read_timestamp(submission_folder: Path, zone: str = "") -> datetime | None:
    """Read the hand-in time, in UTC, from the timestamp file of a submission's folder.

    Args:
        zone: the course's own time zone, which explains abbreviations such as "CET".

    Returns:
        None where the folder has no timestamp file.

    Raises:
        ValueError: the file has no time that can be read.
    """
    path = submission_folder / TIMESTAMP_FILE
    if not path.exists() and not path.is_symlink():
        return None
    try:
        text = read_handed_in(path, MAX_TIMESTAMP).decode("utf-8", "replace")
    except UnreadableSubmission as error:
        raise ValueError(str(error)) from error
    return read_time(text, zone, unnamed="UTC")


def measure_lateness(
    due: datetime,
    handed_in: datetime | None,
    extension: timedelta | datetime | None = None,
    *,
    marked: bool | None = None,
    grace_minutes: int = 0,
) -> Lateness:
    """How late a submission is, before late days.

    Args:
        due: when the assignment is due for everybody.
        handed_in: the hand-in time; None where nobody knows.
        extension: how much longer the student has, or until when.
        marked: whether the platform marks the submission as late by its own due time; None where
            it has no such mark. Counts only where no hand-in time is known.
        grace_minutes: those of the late policy; a mark is taken to lie beyond them.
    """
    if handed_in is not None:
        own_due = (
            due + extension_length(extension, due) if extension is not None else due
        )
        return Lateness(max(0.0, (handed_in - own_due).total_seconds() / 60))
    if marked is None:
        return Lateness(None, UNKNOWN)
    if not marked:
        return Lateness(0.0)
    if extension is not None:
        note = "marked as late by the platform, which may not know of the extension"
        return Lateness(None, note, unreadable=True)
    note = (
        "marked as late by the platform, which does not say by how much: counted as one day "
        "begun"
    )
    return Lateness(grace_minutes + 1.0, note)


def spend_late_days(in_order: Iterable[Lateness], late: Late) -> list[Lateness]:
    """Spend one student's late days on their submissions, in the order of the due times.

    A late day covers 24 hours begun after the grace. Under the policy "zero", days are spent only
    where they cover all of the lateness: a part of them would save nothing.
    """
    remaining = late.late_days
    covered = []
    for lateness in in_order:
        if lateness.minutes is not None:
            needed = days_begun(lateness.minutes, late)
            used = min(needed, remaining)
            if late.policy == "zero" and used < needed:
                used = 0
            remaining -= used
            minutes = max(0.0, lateness.minutes - used * MINUTES_A_DAY)
            lateness = replace(lateness, minutes=minutes, days_used=used)
        covered.append(lateness)
    return covered


def listed_extension(
    course: Course, assignment: str, student: str, person: Person | None
) -> timedelta | datetime | None:
    """The student's extension in course.toml, listed by name or by the id of the class list."""
    names = (student, person.id) if person else (student,)
    return find_extension(course.extensions.get(assignment, {}), names)


def due_time(
    course: Course, assignment: str, student: str, person: Person | None
) -> datetime | None:
    """When an assignment is due for a student by course.toml; None where it does not say."""
    due = course.due.get(assignment)
    if due is None:
        return None
    extension = listed_extension(course, assignment, student, person)
    return due if extension is None else due + extension_length(extension, due)


def shown_now(
    course: Course, assignment: str, student: str, person: Person | None, result: Result
) -> Result:
    """The result as the student may see it now: with examples, or without."""
    examples = course.feedback_settings.examples
    due = due_time(course, assignment, student, person)
    is_past_due = due is not None and datetime.now(UTC) > due
    is_shown = examples == "always" or (examples == "after due" and is_past_due)
    return result if is_shown else result.without_examples()


def describe_conflicts(
    course: Course, assignment: str, gradebook: Mapping[str, GradebookTimes]
) -> list[str]:
    """A line for each time that differs between course.toml and nbgrader's gradebook."""
    times = gradebook.get(assignment)
    if times is None:
        return []
    due = course.due.get(assignment, times.due)
    if due is None:
        return []
    lines = []
    if times.due is not None and due != times.due:
        lines.append(
            f"{assignment} is due {_format_time(due)} in course.toml and "
            f"{_format_time(times.due)} in nbgrader's gradebook: course.toml's time counts"
        )
    ledger = read_ledger(course)
    people, _ = find_in_class_list(
        ledger, map(ledger.student_in, times.granted), assignment
    )
    for folder, span in sorted(times.granted.items()):
        student = ledger.student_in(folder)
        extension = listed_extension(course, assignment, student, people.get(student))
        listed_span = span if extension is None else extension_length(extension, due)
        if listed_span != span:
            lines.append(
                f"{student} has {_format_span(listed_span)} more for {assignment} in "
                f"course.toml and {_format_span(span)} in nbgrader's gradebook: course.toml's "
                "extension counts; take one of them out"
            )
    return lines


def _format_time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M UTC")


def _format_span(span: timedelta) -> str:
    days = span.total_seconds() / 86_400
    return f"{format_points(days)} day{'' if days == 1 else 's'}"


def class_lateness(
    course: Course,
    assignments: Collection[str],
    students: Collection[str],
    gradebook: Mapping[str, GradebookTimes],
    platform_times: Mapping[str, PlatformTimes] | None = None,
) -> dict[str, dict[str, Lateness]]:
    """How late each student's submissions are, after late days: assignment → student → lateness.

    An extension that a person granted in nbgrader counts where course.toml lists none for the
    student. `describe_conflicts` says where the two differ.

    Args:
        gradebook: the times of each assignment in nbgrader's gradebook.
        platform_times: assignment → the times in a platform's own file.

    Returns:
        Nothing where the course has no late policy; no assignment without a due time.
    """
    if course.late.policy == "none":
        return {}
    due_times = _merge_due_times(course, gradebook)
    wanted = [name for name in due_times if name in assignments]
    counted = wanted
    if wanted and course.late.late_days:  # earlier assignments may have used days up
        names = list(due_times)
        counted = names[: names.index(wanted[-1]) + 1]
    ledger = read_ledger(course)
    hand_ins = [
        _HandIns(
            course,
            ledger,
            name,
            due_times[name],
            find_in_class_list(ledger, students, name)[0],
            read_collected(course.submitted, name).students,
            gradebook.get(name, GradebookTimes()),
            (platform_times or {}).get(name, {}),
        )
        for name in counted
    ]
    by_assignment: dict[str, dict[str, Lateness]] = {}
    for name in wanted:
        by_assignment[name] = {}
    for student in students:
        in_order = [assignment.lateness(student) for assignment in hand_ins]
        covered = spend_late_days(in_order, course.late)
        for name, lateness in zip(counted, covered, strict=True):
            if name in by_assignment:
                by_assignment[name][student] = lateness
    return by_assignment


def _merge_due_times(
    course: Course, gradebook: Mapping[str, GradebookTimes]
) -> dict[str, datetime]:
    """When each assignment is due, the earliest first; [due] of course.toml wins."""
    due_times = dict(course.due)
    for name, times in gradebook.items():
        if times.due is not None:
            due_times.setdefault(name, times.due)
    order = sorted(due_times, key=lambda name: (due_times[name], natural_order(name)))
    return {name: due_times[name] for name in order}


@dataclass(frozen=True, slots=True)
class _HandIns:
    """The sources from which lateness in one assignment is measured."""

    course: Course
    ledger: Ledger
    assignment: str
    due: datetime
    people: Mapping[str, Person]
    arrivals: Mapping[str, Arrival]
    gradebook: GradebookTimes
    platform_times: PlatformTimes

    def lateness(self, student: str) -> Lateness:
        """The student's lateness, before late days."""
        holder = self.ledger.holder(student, self.assignment)
        arrival = self.arrivals.get(holder)
        marked = arrival.late if arrival else None
        try:
            handed_in = self._find_time(student, arrival)
        except ValueError as error:
            note = f"when it was handed in is not known: {error}"
            return Lateness(None, note, unreadable=True)
        folders = (self.ledger.folder(student), self.ledger.folder(holder))
        if handed_in is None and marked is None:
            handed_in = self.gradebook.handed_in.get(folders[1])
        extension = listed_extension(
            self.course, self.assignment, student, self.people.get(student)
        )
        if extension is None:
            extension = find_extension(self.gradebook.granted, folders)
        grace_minutes = self.course.late.grace_minutes
        return measure_lateness(
            self.due, handed_in, extension, marked=marked, grace_minutes=grace_minutes
        )

    def _find_time(self, student: str, arrival: Arrival | None) -> datetime | None:
        """The hand-in time: of the timestamp file, else of the platform's own file.

        Raises:
            ValueError: a time is there and cannot be read.
        """
        folder = self.ledger.submission(student, self.assignment)
        moment = read_timestamp(folder, self.course.about.timezone)
        if moment is not None:
            return moment
        platform_time = self.platform_times.get(student)
        if isinstance(platform_time, datetime):
            return platform_time
        unread = platform_time or (arrival.unread if arrival else "")
        if unread:
            raise ValueError(unread)
        return None

"""How late everybody is, and what that costs, by the submissions' own times: a regrade next year
gives the same score.

Due times and extensions are those of course.toml and of nbgrader's gradebook together.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from autograder.basics.errors import UnreadableSubmission
from autograder.basics.handed_in import MAX_TIMESTAMP, read_handed_in
from autograder.basics.points import format_points
from autograder.basics.times import read_time
from autograder.course import Course, Late
from autograder.course.due import as_span, extension_for
from autograder.course.roster import Person
from autograder.intake.collected import read_collected
from autograder.ledger import read_ledger

TIMESTAMP_FILE = "timestamp.txt"
"""nbgrader's note of when a submission arrived, beside the notebook."""

MINUTES_A_DAY = 24 * 60
UNKNOWN = "no hand-in time is known: nothing is taken off"
"""What is said of a submission of which nobody knows when it came."""


@dataclass(frozen=True, slots=True)
class Lateness:
    """How late a submission is.

    Attributes:
        minutes: after the student's own due time; 0 in time; None where nobody knows.
        note: what it was concluded from, or why nobody knows; "" where there is nothing to say.
        unreadable: whether there is a time, and it cannot be read: no total may come of it.
        days_used: late days of the student's own that cover a part of it, which `minutes` is
            without.
    """

    minutes: float | None
    note: str = ""
    unreadable: bool = False
    days_used: int = 0


def apply_late(score: float, max_score: float, minutes_late: float, late: Late) -> float:
    """The score after the course's late policy.

    Args:
        score: points before it.
        max_score: points that there are; "per_day" takes its share of these.
        minutes_late: from the due time to the submission's own time; 0 or less is in time.
        late: the policy. Within the grace nothing is lost; days are counted from the end of the
            grace.

    Returns:
        Never below 0 and never above `score`.
    """
    days = days_begun(minutes_late, late)
    if late.policy == "none" or not days:
        return score
    if late.policy == "zero":
        return 0.0
    return max(0.0, round(score - days * late.penalty_per_day * max_score, 6))


def days_begun(minutes_late: float, late: Late) -> int:
    """How many days beyond the grace were begun."""
    return max(0, math.ceil((minutes_late - late.grace_minutes) / MINUTES_A_DAY))


def submitted_at(submission_folder: Path, zone: str = "") -> datetime | None:
    """When the submission in this folder arrived, by its timestamp file, in UTC; None where there
    is none.

    Args:
        zone: the course's own time zone, which explains abbreviations.

    Raises:
        ValueError: the file holds no time that can be read.
    """
    path = submission_folder / TIMESTAMP_FILE
    if not path.exists() and not path.is_symlink():
        return None
    try:
        return read_time(
            read_handed_in(path, MAX_TIMESTAMP).decode("utf-8", "replace"), zone, unnamed="UTC"
        )
    except UnreadableSubmission as error:
        raise ValueError(str(error)) from error


def lateness(
    folder: Path,
    due: datetime,
    extension: timedelta | datetime | None = None,
    *,
    zone: str = "",
    marked: bool | None = None,
    unread: str = "",
    grace_minutes: int = 0,
    platform_time: datetime | None = None,
) -> Lateness:
    """How late the submission in the folder is.

    Args:
        due: when everybody's was due.
        extension: how much longer this student had, or until when.
        zone: the course's own time zone.
        marked: what the platform says that gave no time, against its own due time; None where it
            says nothing.
        unread: why the time that the platform gave could not be read, or "".
        grace_minutes: those of the late policy, which a mark is taken to be beyond.
        platform_time: the hand-in time in the platform's own file, for a submission without a
            timestamp file.
    """
    own = extension if isinstance(extension, datetime) else due + (extension or timedelta())
    try:
        moment = submitted_at(folder, zone)
    except ValueError as error:
        return Lateness(None, f"when it was handed in is not known: {error}", unreadable=True)
    moment = moment or platform_time
    if moment is not None:
        return Lateness(max(0.0, (moment - own).total_seconds() / 60))
    if unread:
        return Lateness(None, f"when it was handed in is not known: {unread}", unreadable=True)
    if marked is None:
        return Lateness(None, UNKNOWN)
    if not marked:
        return Lateness(0.0)
    if extension is not None:
        return Lateness(
            None,
            "marked as late by the platform, which may not know of the extension",
            unreadable=True,
        )
    note = (
        "marked as late by the platform, which does not say by how much: counted as one day begun"
    )
    return Lateness(grace_minutes + 1.0, note)


def with_late_days(in_order: Iterable[Lateness], late: Late) -> Sequence[Lateness]:
    """One student's submissions in the order of their due times, with the late days of the course
    spent on them.

    A day covers 24 hours begun, beyond the grace. Where late is 0, days that do not cover all of it
    are kept.
    """
    left, covered = late.late_days, []
    for one in in_order:
        begun = days_begun(one.minutes, late) if one.minutes is not None else 0
        used = min(begun, left) if late.policy == "per_day" or begun <= left else 0
        left -= used
        minutes = (
            None
            if one.minutes is None
            else max(0.0, one.minutes - used * MINUTES_A_DAY)
            if used
            else one.minutes
        )
        covered.append(replace(one, minutes=minutes, days_used=used))
    return covered


@dataclass(frozen=True, slots=True)
class InGradebook:
    """What nbgrader's gradebook says of an assignment: when it is due, if it says so, and who was
    given longer there.

    Attributes:
        granted: by the student's folder in submitted/; without what course.toml put there.
    """

    due: datetime | None
    granted: Mapping[str, timedelta] = field(default_factory=dict)


def listed_extension(
    course: Course, assignment: str, student: str, person: Person | None
) -> timedelta | datetime | None:
    """The extension that course.toml gives a student, by the name here or by the id in the class
    list.
    """
    names = (student, person.id) if person else (student,)
    return extension_for(course.due.extensions.get(assignment, {}), names)


def _due_times(course: Course, in_gradebook: Mapping[str, InGradebook]) -> dict[str, datetime]:
    """When each assignment is due, in the order of these times: [due] counts before nbgrader's
    gradebook.
    """
    of_gradebook = {
        name: stored.due for name, stored in in_gradebook.items() if stored.due is not None
    }
    merged = {**of_gradebook, **course.due.due}
    return dict(sorted(merged.items(), key=lambda entry: (entry[1], entry[0])))


def conflicts(
    course: Course, assignment: str, in_gradebook: Mapping[str, InGradebook]
) -> list[str]:
    """A line for each time that course.toml and nbgrader's gradebook give differently: which one
    counts.
    """
    in_nbgrader = in_gradebook.get(assignment)
    if in_nbgrader is None:
        return []
    due = course.due.due.get(assignment, in_nbgrader.due)
    if due is None:
        return []
    lines = []
    if in_nbgrader.due is not None and due != in_nbgrader.due:
        lines.append(
            f"{assignment} is due {_shown_time(due)} in course.toml and "
            f"{_shown_time(in_nbgrader.due)} in nbgrader's "
            "gradebook: course.toml's time counts"
        )
    ledger = read_ledger(course)
    people, _ = ledger.people(map(ledger.student_in, in_nbgrader.granted), assignment)
    for folder, span in sorted(in_nbgrader.granted.items()):
        student = ledger.student_in(folder)
        listed = listed_extension(course, assignment, student, people.get(student))
        if listed is not None and as_span(listed, due) != span:
            lines.append(
                f"{student} has {_shown_span(as_span(listed, due))} more for {assignment} in "
                "course.toml and "
                f"{_shown_span(span)} in nbgrader's gradebook: course.toml's extension counts; "
                "take one of them out"
            )
    return lines


def _shown_time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M UTC")


def _shown_span(span: timedelta) -> str:
    days = span.total_seconds() / 86_400
    return f"{format_points(days)} day{'' if days == 1 else 's'}"


def class_lateness(
    course: Course,
    assignment: str,
    students: Collection[str],
    in_gradebook: Mapping[str, InGradebook],
    platform_times: Mapping[str, datetime | str] | None = None,
) -> dict[str, Lateness] | None:
    """How late each student's submission of the assignment is, after their late days.

    An extension that a person granted in nbgrader counts where course.toml has none for the
    student. `conflicts` says where the two differ.

    Args:
        in_gradebook: what nbgrader's gradebook says of each assignment that it knows.
        platform_times: student → the hand-in time in a platform's own file, or why that time cannot
            be read.

    Returns:
        None where lateness costs nothing in this course, or nobody knows when the assignment was
        due.
    """
    if course.late.policy == "none":
        return None
    due_times = _due_times(course, in_gradebook)
    if assignment not in due_times:
        return None
    names = list(due_times) if course.late.late_days else [assignment]
    until = names[: names.index(assignment) + 1]
    arrivals = {name: read_collected(course.submitted, name).students for name in until}
    ledger = read_ledger(course)
    people = {name: ledger.people(students, name)[0] for name in until}
    found = {}
    for student in students:
        in_order = []
        for name in until:
            holder = ledger.holder(student, name)
            arrival = arrivals[name].get(holder)
            extension = listed_extension(course, name, student, people[name].get(student))
            if extension is None and name in in_gradebook:
                folders = (ledger.folder(student), ledger.folder(holder))  # nbgrader's ids of them
                extension = extension_for(in_gradebook[name].granted, folders)
            platform_time = (platform_times or {}).get(student) if name == assignment else None
            in_order.append(
                lateness(
                    ledger.submission(student, name),
                    due_times[name],
                    extension,
                    zone=course.about.timezone,
                    marked=arrival.late if arrival else None,
                    unread=(platform_time if isinstance(platform_time, str) else "")
                    or (arrival.unread if arrival else ""),
                    grace_minutes=course.late.grace_minutes,
                    platform_time=platform_time if isinstance(platform_time, datetime) else None,
                )
            )
        found[student] = with_late_days(in_order, course.late)[-1]
    return found

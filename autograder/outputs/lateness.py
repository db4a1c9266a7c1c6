"""How late everybody is, by the due times and extensions of course.toml and nbgrader's gradebook together."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from autograder.course import Course
from autograder.due import as_span, extension_for
from autograder.intake.collected import read_collected
from autograder.ledger import read_ledger
from autograder.outputs.late import Lateness, lateness, with_late_days
from autograder.points import shown
from autograder.roster import Person


@dataclass(frozen=True, slots=True)
class InGradebook:
    """What nbgrader's gradebook says of an assignment: when it is due, if it says so, and who was given longer there.

    Attributes:
        granted: by the student's folder in submitted/; without what course.toml put there.
    """

    due: datetime | None
    granted: Mapping[str, timedelta] = field(default_factory=dict)


def listed_extension(
    course: Course, assignment: str, student: str, person: Person | None
) -> timedelta | datetime | None:
    """The extension that course.toml gives a student, by the name here or by the id in the class list."""
    names = (student, person.id) if person else (student,)
    return extension_for(course.due.extensions.get(assignment, {}), names)


def _due_times(course: Course, in_gradebook: Mapping[str, InGradebook]) -> dict[str, datetime]:
    """When each assignment is due, in the order of these times: [due] counts before nbgrader's gradebook."""
    of_gradebook = {name: stored.due for name, stored in in_gradebook.items() if stored.due is not None}
    merged = {**of_gradebook, **course.due.due}
    return dict(sorted(merged.items(), key=lambda entry: (entry[1], entry[0])))


def conflicts(course: Course, assignment: str, in_gradebook: Mapping[str, InGradebook]) -> list[str]:
    """A line for each time that course.toml and nbgrader's gradebook give differently: which one counts."""
    in_nbgrader = in_gradebook.get(assignment)
    if in_nbgrader is None:
        return []
    due = course.due.due.get(assignment, in_nbgrader.due)
    if due is None:
        return []
    lines = []
    if in_nbgrader.due is not None and due != in_nbgrader.due:
        lines.append(
            f"{assignment} is due {_shown_time(due)} in course.toml and {_shown_time(in_nbgrader.due)} in nbgrader's "
            "gradebook: course.toml's time counts"
        )
    ledger = read_ledger(course)
    people, _ = ledger.people(map(ledger.student_in, in_nbgrader.granted), assignment)
    for folder, span in sorted(in_nbgrader.granted.items()):
        student = ledger.student_in(folder)
        listed = listed_extension(course, assignment, student, people.get(student))
        if listed is not None and as_span(listed, due) != span:
            lines.append(
                f"{student} has {_shown_span(as_span(listed, due))} more for {assignment} in course.toml and "
                f"{_shown_span(span)} in nbgrader's gradebook: course.toml's extension counts; take one of them out"
            )
    return lines


def _shown_time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M UTC")


def _shown_span(span: timedelta) -> str:
    days = span.total_seconds() / 86_400
    return f"{shown(days)} day{'' if days == 1 else 's'}"


def class_lateness(
    course: Course,
    assignment: str,
    students: Collection[str],
    in_gradebook: Mapping[str, InGradebook],
    platform_times: Mapping[str, datetime | str] | None = None,
) -> dict[str, Lateness] | None:
    """How late each student's submission of the assignment is, after their late days.

    An extension that a person granted in nbgrader counts where course.toml has none for the student. `conflicts` says
    where the two differ.

    Args:
        in_gradebook: what nbgrader's gradebook says of each assignment that it knows.
        platform_times: student → the hand-in time in a platform's own file, or why that time cannot be read.

    Returns:
        None where lateness costs nothing in this course, or nobody knows when the assignment was due.
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

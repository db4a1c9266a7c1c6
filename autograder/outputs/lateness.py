"""How late everybody is, by the due times and extensions of course.toml and nbgrader's gradebook together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from autograder.course import Course
from autograder.due import as_span, extension_for
from autograder.intake.collected import read_collected
from autograder.ledger import read_ledger
from autograder.outputs.late import Lateness, lateness, with_late_days
from autograder.points import shown


@dataclass(frozen=True, slots=True)
class InGradebook:
    """What nbgrader's gradebook says of an assignment: when it is due, if it says so, and who was given longer there.

    Attributes:
        granted: by the student's folder in submitted/; without what course.toml put there.
    """

    due: datetime | None
    granted: Mapping[str, timedelta] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Deadline:
    """When an assignment is due, and who has longer.

    Attributes:
        extensions: those of course.toml, by student: as in submitted/, or by the id in the class list.
        granted: those that a person gave in nbgrader, by the student's folder in submitted/.
    """

    due: datetime
    extensions: Mapping[str, timedelta | datetime] = field(default_factory=dict)
    granted: Mapping[str, timedelta] = field(default_factory=dict)

    def extension(self, names: Sequence[str], folders: Sequence[str]) -> timedelta | datetime | None:
        """A student's own extension. Where course.toml and nbgrader both have one, course.toml's counts.

        Args:
            names: what the student is called here and in the class list.
            folders: the student's folder, and the one in which the submission lies: nbgrader's ids of them.
        """
        longer = extension_for(self.extensions, names)
        return longer if longer is not None else extension_for(self.granted, folders)


def deadlines(course: Course, in_gradebook: Mapping[str, InGradebook]) -> dict[str, Deadline]:
    """By assignment, in the order of their due times: those of course.toml and of nbgrader's gradebook, merged.

    The due time in [due] counts before the gradebook's; an extension that a person granted in nbgrader counts where
    course.toml has none for the student. `conflicts` says where the two differ.
    """
    merged = {}
    for name in in_gradebook.keys() | course.due.due.keys():
        in_nbgrader = in_gradebook.get(name)
        due = course.due.due.get(name) or (in_nbgrader.due if in_nbgrader else None)
        if due is not None:
            merged[name] = Deadline(
                due, course.due.extensions.get(name, {}), in_nbgrader.granted if in_nbgrader else {}
            )
    return dict(sorted(merged.items(), key=lambda entry: (entry[1].due, entry[0])))


def conflicts(course: Course, assignment: str, in_gradebook: Mapping[str, InGradebook]) -> list[str]:
    """A line for each time that course.toml and nbgrader's gradebook give differently: which one counts."""
    in_nbgrader = in_gradebook.get(assignment)
    if in_nbgrader is None:
        return []
    due = course.due.due.get(assignment, in_nbgrader.due)
    lines = []
    if due is None:
        return []
    if in_nbgrader.due is not None and due != in_nbgrader.due:
        lines.append(
            f"{assignment} is due {_shown_time(due)} in course.toml and {_shown_time(in_nbgrader.due)} in nbgrader's "
            "gradebook: course.toml's time counts"
        )
    ledger = read_ledger(course)
    people, _ = ledger.people(map(ledger.student_in, in_nbgrader.granted), assignment)
    for folder, span in sorted(in_nbgrader.granted.items()):
        student = ledger.student_in(folder)
        names = (student, *([people[student].id] if student in people else []))
        listed = extension_for(course.due.extensions.get(assignment, {}), names)
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

    Args:
        in_gradebook: what nbgrader's gradebook says of each assignment that it knows.
        platform_times: student → the hand-in time in a platform's own file, or why that time cannot be read.

    Returns:
        None where lateness costs nothing in this course, or nobody knows when the assignment was due.
    """
    if course.late.policy == "none":
        return None
    dates = deadlines(course, in_gradebook)
    if assignment not in dates:
        return None
    names = list(dates) if course.late.late_days else [assignment]
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
            person = people[name].get(student)
            called = (student, *([person.id] if person else []))
            folders = (ledger.folder(student), ledger.folder(holder))
            platform_time = (platform_times or {}).get(student) if name == assignment else None
            in_order.append(
                lateness(
                    ledger.submission(student, name),
                    dates[name].due,
                    dates[name].extension(called, folders),
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

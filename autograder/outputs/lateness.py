"""How late everybody is, by due times and extensions in course.toml, or else in nbgrader's gradebook."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from autograder.course import Course
from autograder.intake.collected import read_collected
from autograder.ledger import read_ledger
from autograder.outputs.late import Lateness, lateness, with_late_days


@dataclass(frozen=True, slots=True)
class Deadline:
    """When an assignment is due; `longer` are extensions by student."""

    due: datetime
    longer: Mapping[str, timedelta | datetime] = field(default_factory=dict)


def deadlines(course: Course, in_gradebook: Mapping[str, Deadline]) -> dict[str, Deadline]:
    """By assignment, in the order of their due times. Where [due] names one, the gradebook's times do not count."""
    found = {
        name: Deadline(known.due, {**known.longer, **course.due.extensions.get(name, {})})
        for name, known in in_gradebook.items()
    }
    for name, due in course.due.due.items():
        found[name] = Deadline(due, course.due.extensions.get(name, {}))
    return dict(sorted(found.items(), key=lambda entry: (entry[1].due, entry[0])))


def class_lateness(
    course: Course, assignment: str, students: Collection[str], in_gradebook: Mapping[str, Deadline]
) -> dict[str, Lateness] | None:
    """How late each student's submission of the assignment is, after their late days.

    Args:
        in_gradebook: what nbgrader's gradebook says of each assignment that it knows.

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
            arrival = arrivals[name].get(ledger.holder(student, name))
            person = people[name].get(student)
            longer = dates[name].longer.get(student) or dates[name].longer.get(person.id if person else "")
            in_order.append(
                lateness(
                    ledger.submission(student, name),
                    dates[name].due,
                    longer,
                    zone=course.about.timezone,
                    marked=arrival.late if arrival else None,
                    unread=arrival.unread if arrival else "",
                    grace_minutes=course.late.grace_minutes,
                )
            )
        found[student] = with_late_days(in_order, course.late)[-1]
    return found

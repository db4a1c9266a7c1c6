"""Names in [due] and [extensions] of course.toml that nobody has: a typo there would cost a student
the extension.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence

from autograder.basics.errors import KitError
from autograder.course import Course
from autograder.course.roster import Person, fold_text
from autograder.ledger import read_ledger


def unknown_names(course: Course) -> list[str]:
    """A line for each section or entry of course.toml that names an assignment or a student that
    there is not.

    Students are known by the class list and by the folders in submitted/. Where there is neither,
    every name may be right: an extension can be granted before anybody hands in.
    """
    extensions = course.extensions
    if not course.due and not extensions:
        return []
    assignments = [assignment.name for assignment in course.assignments()]
    named = [
        (name, f"[due] names {name!r}, and there is no such assignment") for name in course.due
    ]
    named += [
        (name, f"[extensions.{name}]: there is no assignment {name!r}") for name in extensions
    ]
    lines = [
        f"course.toml: {text}{_meant(name, assignments)}"
        for name, text in named
        if name not in assignments
    ]
    if not any(extensions.values()):
        return lines
    try:
        ledger = read_ledger(course)
    except KitError:
        return lines  # the commands that need the class list say what is wrong with it
    roster = ledger.roster
    names = [person.id for person in roster or ()]
    folders = sorted(path.name for path in course.submitted.glob("[!.]*") if path.is_dir())
    names += [*folders, *map(ledger.student_in, folders)]
    if not names:
        return lines
    spelled = {fold_text(name) for name in names}
    nobody = "there is no student" if roster is not None else "nobody has handed in anything yet as"
    return lines + [
        f"course.toml: extensions.{assignment}: {nobody} {student!r}{_whom(student, names, roster)}"
        for assignment, students in extensions.items()
        for student in students
        if fold_text(student) not in spelled and not ledger.has_record(student)
    ]


def _meant(name: str, names: Collection[str]) -> str:
    """Which name may have been meant."""
    near = difflib.get_close_matches(name, names, n=1)
    return f"; is it {near[0]!r}?" if near else ""


def _whom(student: str, names: Sequence[str], roster: Sequence[Person] | None) -> str:
    """The student that may have been meant: one whom the class list knows by that name or address,
    or a near id.
    """
    called = [
        person.id
        for person in roster or ()
        if fold_text(student) in (fold_text(person.name), fold_text(person.email))
    ]
    if len(called) == 1:
        return f": the class list calls them {called[0]!r}, write that"
    return _meant(student, names)

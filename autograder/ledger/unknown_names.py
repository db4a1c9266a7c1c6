"""The check of [due] and [extensions] in course.toml for names that no assignment and no student
has: a typo there would cost a student the extension.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence

from autograder.basics.errors import KitError
from autograder.course import Course
from autograder.course.roster import Person, fold_text
from autograder.ledger import read_ledger


def unknown_names(course: Course) -> list[str]:
    """A line for each unknown assignment or student that course.toml names.

    Students are known by the class list and by the folders in submitted/. Where there is neither,
    every name may be right: an extension can be granted before anybody hands in.
    """
    extensions = course.extensions
    if not course.due and not extensions:
        return []
    assignments = [assignment.name for assignment in course.assignments()]
    lines = []
    for name in course.due:
        if name not in assignments:
            hint = _suggest(name, assignments)
            lines.append(
                f"course.toml: [due] names {name!r}, and there is no such assignment{hint}"
            )
    for name in extensions:
        if name not in assignments:
            hint = _suggest(name, assignments)
            lines.append(
                f"course.toml: [extensions.{name}]: there is no assignment {name!r}{hint}"
            )
    if not any(extensions.values()):
        return lines
    try:
        ledger = read_ledger(course)
    except KitError:
        return lines  # the commands that need the class list say what is wrong with it
    roster = ledger.roster
    folders = sorted(
        path.name for path in course.submitted.glob("[!.]*") if path.is_dir()
    )
    names = [person.id for person in roster or ()]
    names += folders
    names += map(ledger.student_in, folders)
    if not names:
        return lines
    folded_names = {fold_text(name) for name in names}
    nobody = "there is no student"
    if roster is None:
        nobody = "nobody has handed in anything yet as"
    for assignment, students in extensions.items():
        for student in students:
            if fold_text(student) in folded_names or ledger.has_record(student):
                continue
            hint = _suggest_student(student, names, roster)
            lines.append(
                f"course.toml: extensions.{assignment}: {nobody} {student!r}{hint}"
            )
    return lines


def _suggest(name: str, names: Collection[str]) -> str:
    """The end of a line, with the nearest name."""
    near = difflib.get_close_matches(name, names)
    return f"; is it {near[0]!r}?" if near else ""


def _suggest_student(
    student: str, names: Sequence[str], roster: Sequence[Person] | None
) -> str:
    """The end of a line, with the person of the class list who has that name or address, or with
    the nearest id.
    """
    key = fold_text(student)
    ids = []
    for person in roster or ():
        if key in (fold_text(person.name), fold_text(person.email)):
            ids.append(person.id)
    if len(ids) == 1:
        return f": the class list calls them {ids[0]!r}, write that"
    return _suggest(student, names)

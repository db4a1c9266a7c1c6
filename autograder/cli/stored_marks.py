"""Everybody's marks, from what results and gradebooks hold, and lines for whatever a person should
look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from autograder.basics.errors import NothingToGrade
from autograder.basics.safe_text import one_line
from autograder.course import Assignment, Course
from autograder.grading.staleness import misvalued, stale
from autograder.ledger import Ledger, read_ledger
from autograder.marks.late_policy import (
    TIMESTAMP_FILE,
    UNKNOWN,
    GradebookTimes,
    class_lateness,
    describe_conflicts,
    read_timestamp,
)
from autograder.marks.marks import Mark, class_marks
from autograder.platforms.fill import PlatformFile
from autograder.records.model import Graded, ManualGrades, Result
from autograder.records.results import Tell, read_results, result_path

_SHOWN = 20
"""How many students a line on the terminal names."""


def read_marks(
    course: Course,
    assignment: Assignment,
    results: Path,
    timing: list[Graded],
    tell: Tell,
    file: PlatformFile | None = None,
) -> list[Mark]:
    """Everybody; says which results are older than they should be, and of whom no hand-in time is
    known.

    Args:
        file: a platform's own file, which may say when people handed in.
    """
    ledger = read_ledger(course)
    graded = consistent_results(course, results, assignment, tell)
    if older := [entry.student for entry in timing if entry.older]:
        tell(f"results from before, to be graded again: {listing(older)}")
    assert_graded(course, assignment, results, graded, timing)
    hand = _by_hand(ledger, course, assignment, graded)
    in_gradebook = _times_in_gradebook(course)
    for line in describe_conflicts(course, assignment.name, in_gradebook):
        tell(line)
    students = sorted(
        {m for result in graded for m in ledger.members(result.student, assignment.name)}
    )
    platform_times = file.hand_in_times(course, assignment.name, students, tell) if file else {}
    folders = {student: ledger.submission(student, assignment.name) for student in platform_times}
    if new := [
        student for student, folder in folders.items() if not (folder / TIMESTAMP_FILE).exists()
    ]:
        tell(
            f"hand-in times of {len(new)} are this worksheet's: give it to `autograder collect` "
            "as `--roster` too, "
            "so that pages and totals know them"
        )
    late = class_lateness(
        course, [assignment.name], students, in_gradebook, {assignment.name: platform_times}
    ).get(assignment.name)
    if late is None and course.late.policy != "none":
        tell(
            f"marks are without late penalties: nobody says when {assignment.name} is due; write "
            "it under [due] in "
            "course.toml, or into nbgrader's gradebook"
        )
    if unknown := [
        student for student, lateness in (late or {}).items() if lateness.note == UNKNOWN
    ]:
        tell(
            f"no hand-in time is known, so nothing is taken off for lateness: {len(unknown)}: "
            f"{', '.join(map(one_line, unknown))}; write a timestamp.txt, or collect again with "
            "a file that has times"
        )
    if old := [
        r.student for r in graded if hand and r.student in hand and not hand[r.student].is_of(r)
    ]:
        tell(
            f"graded since gradebook.db was filled: {listing(old)}; fill it again with "
            f"`autograder export {assignment.name} --format gradebook`, so that a person sees "
            "what changed"
        )
    if earlier := [
        r.student for r in graded if hand and r.student in hand and hand[r.student].earlier
    ]:
        tell(
            f"points by hand are for an earlier answer and wait: {listing(earlier)}; fill the "
            "gradebook with "
            f"`autograder export {assignment.name} --format gradebook`, and look at the new answers"
        )
    own = results.resolve() == course.results.resolve()
    return class_marks(
        course,
        assignment,
        graded,
        timing,
        by_hand=hand,
        late=late,
        own_submissions=own,
        ledger=ledger,
    )


def consistent_results(
    course: Course, results: Path, assignment: Assignment, tell: Tell
) -> list[Result]:
    """The results that add up, by student; `tell` gets a line for each that does not."""
    stored = read_results(results, assignment.name, tell)
    wrong = misvalued(course, assignment, stored)
    for student, problem in wrong.items():
        path = result_path(results, assignment.name, student)
        tell(f"{path}: left out, {one_line(problem)}; grade this submission again")
    consistent = (result for result in stored if result.student not in wrong)
    return sorted(consistent, key=lambda result: result.student)


def assert_graded(
    course: Course,
    assignment: Assignment,
    results: Path,
    graded: Sequence[Result],
    timing: Sequence[Graded],
) -> None:
    """Raises: NothingToGrade, where nobody has a result, nor a reason why there is none."""
    if not graded and not any(entry.problem for entry in timing):
        raise NothingToGrade(
            f"no results in {results / assignment.name}: run `autograder grade "
            f"{assignment.name}` first"
        )


def tell_stale(
    course: Course, assignment: Assignment, results: Path, graded: Sequence[Result], tell: Tell
) -> dict[str, str]:
    """Whose result grading would replace, and why; says so."""
    own = results.resolve() == course.results.resolve()
    found = stale(course, assignment, graded, own_submissions=own)
    for reason in dict.fromkeys(found.values()):
        students = [student for student, why in found.items() if why == reason]
        tell(
            f"stale results: {reason}: {listing(students)}; see what would move with "
            f"`autograder regrade {assignment.name}`, or grade again"
        )
    return found


def _by_hand(
    ledger: Ledger, course: Course, assignment: Assignment, results: Sequence[Result]
) -> dict[str, ManualGrades] | None:
    """What people gave, by student; nbgrader knows the student's folder. Points for an earlier
    answer wait.
    """
    if not course.has_gradebook:
        return None
    from autograder.nbgrader.answers import with_earlier_answers
    from autograder.nbgrader.manual_grades import read_manual_grades

    by_folder = read_manual_grades(course.db_url, assignment.name)
    by_student = {}
    for folder, grades in by_folder.items():
        student = ledger.student_in(folder)
        by_student[student] = replace(grades, student=student)
    return with_earlier_answers(course, assignment, results, by_student)


def handed_in_at(
    ledger: Ledger, course: Course, assignment: Assignment, student: str, tell: Tell
) -> datetime | None:
    """When the student's submission was handed in; None where nothing says so, or what does cannot
    be read.
    """
    folder = ledger.submission(student, assignment.name)
    try:
        return read_timestamp(folder, course.about.timezone)
    except ValueError as error:
        tell(f"{folder}: no time of submission, {error}")
        return None


def _times_in_gradebook(course: Course) -> dict[str, GradebookTimes]:
    """Due times and extensions in the gradebook, where there is one and lateness costs anything."""
    if course.late.policy == "none" or not course.has_gradebook:
        return {}
    # imports nbgrader, which takes seconds
    from autograder.nbgrader.class_list import read_gradebook_times

    return read_gradebook_times(course)


def listing(students: Sequence[str]) -> str:
    """How many students, and the names of the first twenty of them."""
    shown = ", ".join(one_line(student) for student in students[:_SHOWN])
    more = f" and {len(students) - _SHOWN} more" if len(students) > _SHOWN else ""
    return f"{len(students)}: {shown}{more}"

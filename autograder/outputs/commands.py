"""What `autograder report` and `autograder export` do: read the stored results, write what was asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import cast

from autograder.course import Assignment, Course
from autograder.errors import BadSuite, KitError, NothingToGrade
from autograder.intake.release import written_points
from autograder.model import Graded, Result
from autograder.outputs.export import Format, UnmatchedStudents, export
from autograder.outputs.feedback import feedback_path, write_feedback
from autograder.outputs.junit import junit_xml
from autograder.outputs.late import submitted_at
from autograder.outputs.report import write_report
from autograder.outputs.speeds import in_words, speed_bonus
from autograder.outputs.store import Timed, path_name, read_results, read_timing
from autograder.outputs.text import one_line
from autograder.whole_files import write_whole


def report_command(course: Course, assignment: Assignment, results: Path) -> Iterator[str]:
    """Write every student's feedback page and the class report; yields what to tell the person.

    Raises:
        NothingToGrade: there are no results, and no submission that could not be graded.
    """
    timing = read_timing(results, assignment.name)
    graded = _results(results, assignment, timing, or_problems=True)
    uses, written = _uses(assignment), written_points(assignment)
    speeds = {entry.student: in_words(entry.speeds) for entry in timing}
    for result in graded:
        write_feedback(course.root / "feedback", result, uses, written, speeds.get(result.student, ""))
    for entry in timing:
        if entry.problem:  # a page of an earlier version would show a score that no longer holds
            feedback_path(course.root / "feedback", assignment.name, entry.student).unlink(missing_ok=True)
    if graded:
        yield f"{len(graded)} feedback pages in {course.root / 'feedback'}"
    yield f"class report: {write_report(results, assignment.name)}"


def export_command(
    course: Course,
    assignment: Assignment,
    results: Path,
    format_: str,
    to: Path | None = None,
    roster: Path | None = None,
) -> Iterator[str]:
    """Export the results; yields the text itself where it goes to no file.

    Raises:
        NothingToGrade: there are no results.
        KitError: the roster is not one.
    """
    timing = read_timing(results, assignment.name)
    graded = _results(results, assignment, timing, or_problems=format_ in ("gradebook", "junit"))
    problems = {entry.student: entry.problem for entry in timing if entry.problem}
    if format_ == "gradebook":
        yield _fill_gradebook(course, assignment, problems, graded, to)
        return
    if format_ == "junit":
        table = junit_xml(graded, [Graded(student, Path(), None, problem) for student, problem in problems.items()])
    else:
        table = _table(course, assignment, timing, graded, format_, roster)
    if to is None:
        yield table.removesuffix("\n")
    else:
        write_whole(to, table)
        yield f"{len(graded)} results of {assignment.name} in {to}"


def _table(
    course: Course, assignment: Assignment, timing: list[Timed], graded: list[Result], format_: str, roster: Path | None
) -> str:
    try:
        return export(
            graded,
            cast(Format, format_),
            minutes_late=_minutes_late(course, assignment),
            late=course.late,
            roster=roster.read_text(encoding="utf-8") if roster else None,
            bonus=_bonus(course, timing),
        )
    except ValueError as error:
        raise KitError(f"{roster}: {error}") from error
    except UnmatchedStudents as unmatched:
        print(f"left out: {unmatched} ({roster})", file=sys.stderr)
        return unmatched.text


def _results(results: Path, assignment: Assignment, timing: list[Timed], *, or_problems: bool) -> list[Result]:
    graded = read_results(results, assignment.name)
    if older := [one_line(entry.student) for entry in timing if entry.older]:
        print(f"results from before, to be graded again: {', '.join(older)}", file=sys.stderr)
    if graded or (or_problems and any(entry.problem for entry in timing)):
        return graded
    raise NothingToGrade(f"no results in {results / assignment.name}: run `autograder grade {assignment.name}` first")


def _uses(assignment: Assignment) -> dict[str, tuple[str, ...]]:
    """What each question builds on; without a suite that imports, the pages do without."""
    from autograder.suite.collect import collect_suite  # brings torch in

    try:
        return {question.name: question.uses for question in collect_suite(assignment.suite)}
    except BadSuite as error:
        print(f"pages do not say which question carried points come from: {error}", file=sys.stderr)
        return {}


def _bonus(course: Course, timing: list[Timed]) -> dict[str, float] | None:
    """Points for speed by student; None where the course gives none, or nothing of the assignment was timed."""
    timed = [entry for entry in timing if entry.speeds]
    if not course.grading.speed_bonus or not timed:
        return None
    return {entry.student: speed_bonus(entry.speeds, course.grading) for entry in timed}


def _minutes_late(course: Course, assignment: Assignment) -> dict[str, float] | None:
    """Lateness by student, from the gradebook: it knows due times, extensions and when each submission came."""
    if course.late.policy == "none":
        return None
    if not (course.root / "gradebook.db").is_file():
        print("scores are without late penalties: due times stand in gradebook.db, which is not there", file=sys.stderr)
        return None
    from autograder.nbgrader.gradebook import open_gradebook

    with open_gradebook(course) as gradebook:
        rows = gradebook.assignment_submissions(assignment.name)
        return {row.student_id: row.total_seconds_late / 60 for row in rows}


def _fill_gradebook(
    course: Course, assignment: Assignment, problems: dict[str, str], graded: list[Result], to: Path | None
) -> str:
    from autograder.nbgrader.gradebook import fill_gradebook
    from autograder.nbgrader.gradebook_file import gradebook_file

    students = [*(result.student for result in graded), *problems]
    times = {student: when for student in students if (when := _handed_in(course, assignment, student))}
    gradebook = to or course.root / "gradebook.db"
    with gradebook_file(gradebook):
        fill_gradebook(course, assignment, graded, times, problems, db_url=f"sqlite:///{gradebook.absolute()}")
    return f"{len(graded)} results of {assignment.name} in {gradebook}"


def _handed_in(course: Course, assignment: Assignment, student: str) -> datetime | None:
    folder = course.root / "submitted" / path_name(student) / assignment.name
    try:
        return submitted_at(folder)
    except ValueError as error:
        print(f"{folder}: no time of submission, {error}", file=sys.stderr)
        return None

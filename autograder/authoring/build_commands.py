"""The commands `autograder build`, `release` and `bundle`; they return lines to print."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.authoring.build import BuiltNotebooks, build_assignment, write_build
from autograder.authoring.build_check import check_assignment
from autograder.authoring.build_record import read_summary, remember_build
from autograder.authoring.programs import student_programs
from autograder.authoring.published_solutions import publish_solutions
from autograder.authoring.single_file import colab_badge
from autograder.authoring.source_notebook import read_source
from autograder.authoring.student_package import write_release
from autograder.basics.errors import BadSuite, KitError, StaleBuild
from autograder.course import ASSIGNMENT_NAME, Assignment, Course
from autograder.outputs.kit_wheel import KIT_FOLDER, write_kit_wheel
from autograder.platforms.registry import bundles

if TYPE_CHECKING:
    from autograder.suite.collection import SuiteQuestion


def build_command(course: Course, names: Sequence[str], check: bool) -> list[str]:
    """Build the named assignments, or all; with `check`, examine the built files instead.

    An assignment that cannot be built does not keep others from being built.

    Raises:
        UnknownAssignment: before anything is built.
        KitError: the problems of all assignments.
    """
    assignments = [
        course.assignment(name) for name in dict.fromkeys(names)
    ] or course.assignments()
    if check:
        outcomes = _check_all(course, assignments)
    else:
        outcomes = [_outcome(_build, course, assignment) for assignment in assignments]
    failures = [outcome for outcome in outcomes if isinstance(outcome, KitError)]
    if len(failures) == 1:
        raise failures[0]
    if failures:
        all_stale = all(isinstance(failure, StaleBuild) for failure in failures)
        kind = StaleBuild if all_stale else KitError
        raise kind("\n".join(str(failure) for failure in failures))
    return [outcome for outcome in outcomes if isinstance(outcome, str)]


def release_command(course: Course, name: str, to: Path, host: str = "") -> list[str]:
    """Write the release of one assignment into a folder, a .zip file, or one notebook."""
    assignment = course.assignment(name)
    files = write_release(course, assignment, suite_questions(assignment), to, host)
    if not host:
        return [f"{name}: {len(files)} files in {to}"]
    lines = [f"{name}: {to}, which carries all files"]
    if host == "colab":
        badge = colab_badge("OWNER/REPOSITORY", to.name)
        lines += ["for the README of a repository at GitHub that has it:", badge]
    return lines


def solutions_command(course: Course, name: str, to: Path, quick: bool) -> list[str]:
    """Publish the answer key of one assignment, with outputs."""
    files = publish_solutions(course, course.assignment(name), to, quick=quick)
    return [f"{name}: {len(files)} files in {to}; the page is {name}.html"]


def bundle_command(course: Course, name: str, target: str, to: Path) -> list[str]:
    """Pack an autograder of one assignment for another system, with programs for students.

    Raises:
        KitError: a file is missing that the bundle needs, or the assignment's name cannot stand in
            a script.
    """
    assignment, bundle = course.assignment(name), bundles()[target]
    if not ASSIGNMENT_NAME.fullmatch(assignment.name):
        raise KitError(
            f"{assignment.name!r} cannot stand in a script: use letters, digits, _ and - only"
        )
    programs = student_programs(course, assignment) if bundle.is_for_students else {}
    packed = bundle.write(course, assignment, to, programs)
    if not bundle.installs_wheel:
        return [str(packed)]
    wheel = write_kit_wheel(course, course.root / KIT_FOLDER)
    return [
        str(packed),
        f"{wheel}: commit it to the course's own repository, from which the workflow "
        "installs the kit",
    ]


def suite_questions(assignment: Assignment) -> dict[str, SuiteQuestion]:
    """The questions of the hidden suite, by name."""
    from autograder.suite.collection import (
        collect_suite,  # imports the suite, mostly with torch
    )

    return {
        question.name: question
        for question in collect_suite(assignment.suite).questions
    }


def _check_all(
    course: Course, assignments: Sequence[Assignment]
) -> list[str | KitError]:
    """Check assignments on every core: a check waits while a kernel runs two notebooks."""
    if len(assignments) < 2:
        return [_outcome(_check, course, assignment) for assignment in assignments]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as processes:
        checks = [
            processes.submit(_outcome, _check, course, assignment)
            for assignment in assignments
        ]
        return [check.result() for check in checks]


def _outcome(
    work: Callable[[Course, Assignment], str], course: Course, assignment: Assignment
) -> str | KitError:
    try:
        return work(course, assignment)
    except KitError as failure:
        return failure


def _checked_questions(assignment: Assignment) -> dict[str, SuiteQuestion]:
    """The questions of the hidden suite.

    Raises:
        BadSuite: suite and notebook do not fit together.
    """
    from autograder.authoring.suite_checks import find_suite_problems

    cells = {
        cell.name: cell.source for cell in read_source(assignment).of_kind("question")
    }
    questions = suite_questions(assignment)
    if problems := find_suite_problems(
        assignment.suite, list(questions.values()), cells
    ):
        raise BadSuite("\n".join(problems))
    return questions


def _build(course: Course, assignment: Assignment) -> str:
    if (summary := read_summary(course, assignment)) is not None:
        return f"{assignment.name}: up to date ({summary})"
    built = build_assignment(course, assignment, _checked_questions(assignment))
    changed = write_build(assignment, built)
    summary = _summarize(built)
    remember_build(course, assignment, summary)
    if not changed:
        return f"{assignment.name}: up to date ({summary})"
    files = f"{len(changed)} file{'s' * (len(changed) != 1)}"
    return f"{assignment.name}: {files} changed ({summary})"


def _check(course: Course, assignment: Assignment) -> str:
    built = check_assignment(course, assignment, _checked_questions(assignment))
    summary = _summarize(built)
    remember_build(course, assignment, summary)  # a build would make the same files
    return f"{assignment.name}: sound ({summary})"


def _summarize(built: BuiltNotebooks) -> str:
    count = len(built.notebook.questions)
    return f"{count} question{'s' * (count != 1)}, {built.points:g} points"

"""What `autograder build`, `release` and `bundle` do; the command line prints the lines that come
back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from autograder.authoring.build import Asked, BuiltNotebooks, build_assignment, write_build
from autograder.authoring.build_check import check_assignment
from autograder.authoring.build_record import remember_build, summary_of_last_build
from autograder.authoring.source_notebook import read_source
from autograder.authoring.student_package import programs, release
from autograder.basics.errors import BadSuite, KitError, StaleBuild
from autograder.course import NAME_OF_AN_ASSIGNMENT, Assignment, Course
from autograder.outputs.kit_wheel import KIT_FOLDER, write_kit_wheel
from autograder.platforms.registry import bundles


def build_command(course: Course, names: Sequence[str], check: bool) -> list[str]:
    """Build the named assignments, or all; with `check`, only look whether they are built and
    sound.

    One assignment that cannot be built keeps none of the others from it.

    Raises:
        UnknownAssignment: before anything is built.
        KitError: what is wrong, of all assignments together.
    """
    assignments = [course.assignment(name) for name in dict.fromkeys(names)] or course.assignments()
    done = (
        _check_all(course, assignments)
        if check
        else [_outcome(_build, course, each) for each in assignments]
    )
    lines = [line for line in done if isinstance(line, str)]
    failures = [failure for failure in done if isinstance(failure, KitError)]
    if len(failures) == 1:
        raise failures[0]
    if failures:
        kind = (
            StaleBuild if all(isinstance(failure, StaleBuild) for failure in failures) else KitError
        )
        raise kind("\n".join(str(failure) for failure in failures))
    return lines


def release_command(course: Course, name: str, to: Path) -> list[str]:
    """Put what students get of one assignment into a folder or a .zip file."""
    assignment = course.assignment(name)
    files = release(course, assignment, questions_asked(assignment), to)
    return [f"{name}: {len(files)} files in {to}"]


def bundle_command(course: Course, name: str, target: str, to: Path) -> list[str]:
    """Pack an autograder of one assignment for another system; students get their programs with it.

    Raises:
        KitError: a file is missing that the bundle needs, or the assignment's name cannot stand in
            a script.
    """
    assignment, bundle = course.assignment(name), bundles()[target]
    if not NAME_OF_AN_ASSIGNMENT.fullmatch(assignment.name):
        raise KitError(
            f"{assignment.name!r} cannot stand in a script: use letters, digits, _ and - only"
        )
    packed = bundle.write(
        course, assignment, to, programs(course, assignment) if bundle.is_for_students else {}
    )
    if not bundle.installs_wheel:
        return [str(packed)]
    wheel = write_kit_wheel(course, course.root / KIT_FOLDER)
    return [
        str(packed),
        f"{wheel}: commit it to the course's own repository, from which the workflow "
        "installs the kit",
    ]


def questions_asked(assignment: Assignment) -> dict[str, Asked]:
    """What the hidden suite says of each question that students are told."""
    # imports torch, through the suite's tests
    from autograder.suite.collection import collect_suite

    return {
        each.name: Asked(each.points, each.forbidden)
        for each in collect_suite(assignment.suite).questions
    }


def _check_all(course: Course, assignments: Sequence[Assignment]) -> list[str | KitError]:
    """Check on every core: a check runs two notebooks from top to bottom, and waits for their
    kernels.
    """
    if len(assignments) < 2:
        return [_outcome(_check, course, each) for each in assignments]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as processes:
        waiting = [processes.submit(_outcome, _check, course, each) for each in assignments]
        return [each.result() for each in waiting]


def _outcome(
    work: Callable[[Course, Assignment], str], course: Course, assignment: Assignment
) -> str | KitError:
    try:
        return work(course, assignment)
    except KitError as failure:
        return failure


def _fitting(assignment: Assignment) -> dict[str, Asked]:
    """As `questions_asked`. Raises: BadSuite where the suite and the notebook do not fit
    together.
    """
    from autograder.authoring.suite_checks import suite_problems
    from autograder.suite.collection import collect_suite

    cells = {cell.name: cell.source for cell in read_source(assignment).of_kind("question")}
    if problems := suite_problems(
        assignment.suite, collect_suite(assignment.suite).questions, cells
    ):
        raise BadSuite("\n".join(problems))
    return questions_asked(assignment)


def _build(course: Course, assignment: Assignment) -> str:
    if (summary := summary_of_last_build(course, assignment)) is not None:
        return f"{assignment.name}: up to date ({summary})"
    built = build_assignment(course, assignment, _fitting(assignment))
    changed = write_build(assignment, built)
    what = f"{len(changed)} file{'s' * (len(changed) != 1)} changed" if changed else "up to date"
    remember_build(course, assignment, _summary(built))
    return f"{assignment.name}: {what} ({_summary(built)})"


def _check(course: Course, assignment: Assignment) -> str:
    built = check_assignment(course, assignment, _fitting(assignment))
    # the files are those that a build would make
    remember_build(course, assignment, _summary(built))
    return f"{assignment.name}: sound ({_summary(built)})"


def _summary(built: BuiltNotebooks) -> str:
    count = len(built.questions)
    return f"{count} question{'s' * (count != 1)}, {built.points:g} points"

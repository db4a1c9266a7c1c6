"""The hook that `nbgrader autograde` calls before each submission."""

from __future__ import annotations

import os
import shutil
from collections.abc import MutableSequence
from pathlib import Path
from typing import Any

from nbgrader.api import MissingEntry
from traitlets.config import Application
from traitlets.log import get_logger

from autograder.basics.errors import KitError
from autograder.basics.handed_in import describe_non_file
from autograder.course import Assignment, Course, find_course
from autograder.nbgrader import warm_graders
from autograder.nbgrader.gradebook import (
    GradebookEntry,
    open_gradebook,
    write_gradebook,
)
from autograder.nbgrader.released_cells import read_release, suite_assignment


def before_autograde(
    assignment: str,
    student: str,
    notebooks: MutableSequence[str],
) -> None:
    """Start the grader, and register the assignment and the submission in the gradebook.

    nbgrader swallows exceptions of a hook. A problem of the whole batch ends the command instead:
    going on without a sandbox or a suite would score everybody wrongly.
    """
    course = find_course(Path.cwd())
    graded = suite_assignment(course, assignment, assignment)
    if graded is None or not notebooks:
        return
    folder = Path(notebooks[0]).parent
    _copy_to_expected_name(folder, assignment, notebooks)
    try:
        warm_graders.warm_up(course, graded)
        _prepare_gradebook(course, graded, folder)
    except KitError as problem:
        raise SystemExit(f"nbgrader autograde: {problem}") from problem


def _prepare_gradebook(course: Course, assignment: Assignment, folder: Path) -> None:
    """Register the release, and 0 points where there is nothing to grade, or nothing yet."""
    student, db_url = folder.parent.name, _db_url(course)
    problem = ""
    if not (folder / f"{assignment.name}.ipynb").exists():
        problem = f"there is no {assignment.name}.ipynb among the files"
    elif not _has_submission(course, assignment, student, db_url):
        problem = "grading did not finish"  # until it does
    entries = [GradebookEntry(student, problem=problem)] if problem else []
    release = read_release(assignment.release)
    write_gradebook(course, assignment.name, release, entries, db_url=db_url)


def _has_submission(
    course: Course,
    assignment: Assignment,
    student: str,
    db_url: str,
) -> bool:
    with open_gradebook(course, db_url) as gradebook:
        try:
            gradebook.find_submission(assignment.name, student)
        except MissingEntry:
            return False
    return True


def _copy_to_expected_name(
    folder: Path,
    assignment: str,
    notebooks: MutableSequence[str],
) -> None:
    """Copy a submission's only notebook to the expected name, by which nbgrader finds notebooks."""
    expected = folder / f"{assignment}.ipynb"
    if os.path.lexists(expected) or len(notebooks) != 1:
        return
    if describe_non_file(Path(notebooks[0])):
        return
    shutil.copyfile(notebooks[0], expected)
    get_logger().warning(
        "%s: %s graded as %s",
        folder.parent.name,
        Path(notebooks[0]).name,
        expected.name,
    )
    notebooks[:] = [str(expected)]


def _db_url(course: Course) -> str:
    """The database of the running nbgrader command (`--db`), else the course's own."""
    app: Any = Application.instance() if Application.initialized() else None
    url = course.db_url
    while app is not None:
        if getattr(app, "coursedir", None) is not None:
            url = str(app.coursedir.db_url)
        app = getattr(app, "subapp", None)
    return url

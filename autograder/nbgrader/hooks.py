"""What happens before `nbgrader autograde` takes up a submission."""

from __future__ import annotations

import os
import shutil
from collections.abc import MutableSequence
from pathlib import Path
from typing import Any

from nbgrader.api import SubmittedAssignment
from sqlalchemy import select
from sqlalchemy.orm import Session
from traitlets.config import Application
from traitlets.log import get_logger

from autograder.course import Assignment, Course, find_course
from autograder.errors import KitError
from autograder.handed_in import what_else
from autograder.nbgrader import graders
from autograder.nbgrader.gradebook import Entry, open_gradebook, write_entries
from autograder.nbgrader.registry import register_release
from autograder.nbgrader.release import read_release
from autograder.nbgrader.source import suite_assignment


def before_autograde(assignment: str, student: str, notebooks: MutableSequence[str]) -> None:
    """Make sure that this machine can grade and that the gradebook knows the assignment.

    nbgrader swallows exceptions of a hook. One that concerns the whole batch ends the command instead: grading on
    without a sandbox or a suite would score everybody wrongly.
    """
    course = find_course(Path.cwd())
    ours = suite_assignment(course, assignment, assignment)
    if ours is None or not notebooks:
        return
    folder = Path(notebooks[0]).parent
    _give_expected_name(folder, assignment, notebooks)
    try:
        graders.warm_up(course, ours)
        _prepare_gradebook(course, ours, folder)
    except KitError as problem:
        raise SystemExit(f"nbgrader autograde: {problem}") from problem


def _prepare_gradebook(course: Course, assignment: Assignment, folder: Path) -> None:
    student = folder.parent.name
    release = read_release(assignment.release)
    with open_gradebook(course, _db_url(course)) as gradebook:
        notebook = register_release(gradebook.db, gradebook.course_id, assignment.name, release)
        problem = ""
        if not (folder / f"{assignment.name}.ipynb").exists():
            problem = f"there is no {assignment.name}.ipynb among the files"
        elif not _is_known(gradebook.db, notebook.assignment_id, student):
            problem = "grading did not finish"  # until it does
        if problem:
            write_entries(gradebook.db, course, notebook, release, [Entry(student, problem=problem)])
        gradebook.db.commit()


def _is_known(db: Session, assignment_id: str, student: str) -> bool:
    where = (SubmittedAssignment.assignment_id == assignment_id, SubmittedAssignment.student_id == student)
    return db.scalars(select(SubmittedAssignment.id).where(*where)).one_or_none() is not None


def _give_expected_name(folder: Path, assignment: str, notebooks: MutableSequence[str]) -> None:
    """nbgrader knows a notebook by its name alone: the only one there is gets a copy under the right name."""
    expected = folder / f"{assignment}.ipynb"
    if os.path.lexists(expected) or len(notebooks) != 1 or what_else(Path(notebooks[0])):
        return
    shutil.copyfile(notebooks[0], expected)
    get_logger().warning("%s: %s graded as %s", folder.parent.name, Path(notebooks[0]).name, expected.name)
    notebooks[:] = [str(expected)]


def _db_url(course: Course) -> str:
    """The database of the running command (its `--db`), else the course's own."""
    app: Any = Application.instance() if Application.initialized() else None
    url = course.db_url
    while app is not None:
        if getattr(app, "coursedir", None) is not None:
            url = str(app.coursedir.db_url)
        app = getattr(app, "subapp", None)
    return url

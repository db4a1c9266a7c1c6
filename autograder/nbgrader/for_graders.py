"""`autograded/` for a whole class from stored results: what the formgrader shows, without grading anything again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from autograder.course import Assignment, Course
from autograder.errors import NothingToGrade, UnreadableSubmission
from autograder.intake.find import find_submissions
from autograder.intake.notebook import read_submission
from autograder.intake.release import load_release
from autograder.model import Result, Submission
from autograder.nbgrader.autograded import (
    made_whole,
    marking_guides,
    read_built,
    show_guides,
    show_problem,
    show_result,
)
from autograder.nbgrader.feedback_return import RECEIPTS
from autograder.results import path_name
from autograder.whole_files import write_whole

_SHIPPED = ("figures",)
"""What a notebook's text shows from beside it."""


def graded_submissions(course: Course, assignment: Assignment, results: Iterable[Result]) -> dict[str, Submission]:
    """Student → the submission in `submitted/` from which the result was made; without those that changed since.

    Raises:
        BadSource: the assignment is not built.
    """
    try:
        found = {one.student: one for one in find_submissions(course, assignment, [])}
    except NothingToGrade:
        return {}
    release = load_release(assignment)
    read = {}
    for result in results:
        if result.student not in found:
            continue
        try:
            submission = read_submission(found[result.student], release, course.limits)
        except UnreadableSubmission:
            continue
        if submission.sha256 == result.submission_sha256:
            read[result.student] = submission
    return read


def write_autograded(
    course: Course,
    assignment: Assignment,
    results: Sequence[Result],
    submissions: Mapping[str, Submission],
    problems: Mapping[str, str],
) -> int:
    """Write the notebooks that a person grades; of a submission that could not be graded, the release and why.

    Returns:
        How many were written.

    Raises:
        StaleBuild: the assignment is not built.
    """
    release = read_built(assignment.release)
    guides = marking_guides(release, assignment.solution)
    notebooks = {}
    for result in results:
        if result.student in submissions:
            notebooks[result.student] = made_whole(release, submissions[result.student])
            show_result(notebooks[result.student], result)
    for student, problem in problems.items():
        notebooks[student] = read_built(assignment.release)
        show_problem(notebooks[student], problem)
    for student, notebook in notebooks.items():
        show_guides(notebook, guides)
        folder = course.autograded / path_name(student) / assignment.name
        write_whole(folder / f"{assignment.name}.ipynb", json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
        _copy_beside(course, assignment, student, folder)
    return len(notebooks)


def _copy_beside(course: Course, assignment: Assignment, student: str, folder: Path) -> None:
    """Figures of the release, and nbgrader's receipts: when a submission came, and whose its feedback is."""
    for name in _SHIPPED:
        if (pictures := assignment.release.parent / name).is_dir():
            shutil.copytree(pictures, folder / name, dirs_exist_ok=True)
    for name in RECEIPTS:
        receipt = course.submitted / path_name(student) / assignment.name / name
        if receipt.is_file() and not receipt.is_symlink():
            shutil.copyfile(receipt, folder / name)
        else:
            (folder / name).unlink(missing_ok=True)

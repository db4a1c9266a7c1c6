"""`autograded/` for a whole class from stored results: what the formgrader shows, without grading
anything again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from autograder.basics.errors import NothingToGrade, UnreadableSubmission
from autograder.basics.file_transaction import FileTransaction
from autograder.course import Assignment, Course
from autograder.intake.find import find_submissions
from autograder.intake.notebook import read_submission
from autograder.intake.released_notebook import load_release
from autograder.ledger import read_ledger
from autograder.nbgrader.autograded import NotebooksForGraders
from autograder.nbgrader.feedback_return import RECEIPTS
from autograder.records.model import Result, Submission

_SHIPPED = ("figures",)
"""What a notebook's text shows from beside it."""


def graded_submissions(
    course: Course, assignment: Assignment, results: Iterable[Result]
) -> Iterator[tuple[Result, Submission | None]]:
    """Each result with the submission in `submitted/` from which it was made; None where that has
    changed since.

    They are read as they are asked for: all notebooks of a class are more than a memory holds.

    Raises:
        BadSource: the assignment is not built.
    """
    try:
        found = {one.student: one for one in find_submissions(course, assignment, [])}
    except NothingToGrade:
        found = {}
    release = load_release(assignment)
    for result in results:
        try:
            submission = read_submission(found[result.student], release, course.limits)
        except (KeyError, UnreadableSubmission):
            yield result, None
        else:
            yield result, submission if submission.sha256 == result.submission_sha256 else None


class AutogradedFolder:
    """Writes the notebooks that a person grades, one by one.

    Attributes:
        written: how many.

    Raises:
        StaleBuild: the assignment is not built.
    """

    def __init__(self, course: Course, assignment: Assignment, files: FileTransaction) -> None:
        self._files = files
        self._course, self._assignment, self._ledger = course, assignment, read_ledger(course)
        self._notebooks = NotebooksForGraders(assignment.release, assignment.solution)
        self.written = 0

    def write(self, result: Result, submission: Submission) -> None:
        """What was handed in, with what the tests said."""
        self._save(result.student, self._notebooks.graded(submission, result))

    def write_problem(self, student: str, problem: str) -> None:
        """Of a submission that could not be graded: the release, and why."""
        self._save(student, self._notebooks.problem(problem))

    def _save(self, student: str, notebook: str) -> None:
        name = self._assignment.name
        own = self._ledger.folder(student)
        folder = self._course.autograded / own / name
        # the next export writes it again
        self._files.write(folder / f"{name}.ipynb", notebook, to_disk=False)
        _copy_beside(self._files, self._course, self._assignment, own, folder)
        self.written += 1


def _copy_beside(
    files: FileTransaction, course: Course, assignment: Assignment, own: str, folder: Path
) -> None:
    """Figures of the release, and nbgrader's receipts: when a submission came, and whose its
    feedback is.
    """
    for name in _SHIPPED:
        if (pictures := assignment.release.parent / name).is_dir():
            for picture in sorted(path for path in pictures.rglob("*") if path.is_file()):
                _copy(files, picture, folder / name / picture.relative_to(pictures))
    for name in RECEIPTS:
        receipt = course.submitted / own / assignment.name / name
        if receipt.is_file() and not receipt.is_symlink():
            _copy(files, receipt, folder / name)
        elif (folder / name).exists():
            files.remove(folder / name)


def _copy(files: FileTransaction, path: Path, to: Path) -> None:
    content = path.read_bytes()
    if not to.is_file() or to.read_bytes() != content:
        files.write(to, content, to_disk=False)

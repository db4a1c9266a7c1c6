"""Writes `autograded/` for a whole class from stored results, for the formgrader to show."""

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
from autograder.records.model import Result
from autograder.records.submission import Submission

_SHIPPED = ("figures",)
"""Folders beside a release whose pictures its text shows."""


def graded_submissions(
    course: Course, assignment: Assignment, results: Iterable[Result]
) -> Iterator[tuple[Result, Submission | None]]:
    """Each result with its submission in `submitted/`; None where the submission has changed since.

    Submissions are read one by one, since all notebooks of a class are too large for memory.

    Raises:
        BadSource: the assignment is not built.
    """
    try:
        submissions = find_submissions(course, assignment, [])
        files = {submission.student: submission for submission in submissions}
    except NothingToGrade:
        files = {}
    release = load_release(assignment)
    for result in results:
        try:
            submission = read_submission(files[result.student], release, course.limits)
        except (KeyError, UnreadableSubmission):
            yield result, None
        else:
            yield (
                result,
                submission if submission.sha256 == result.submission_sha256 else None,
            )


class AutogradedFolder:
    """Writes notebooks for graders to `autograded/`.

    Attributes:
        written: the number of notebooks so far.

    Raises:
        StaleBuild: the assignment is not built.
    """

    def __init__(
        self,
        course: Course,
        assignment: Assignment,
        files: FileTransaction,
    ) -> None:
        self._files = files
        self._course, self._assignment, self._ledger = (
            course,
            assignment,
            read_ledger(course),
        )
        self._notebooks = NotebooksForGraders(assignment.release, assignment.solution)
        self.written = 0

    def write(self, result: Result, submission: Submission) -> None:
        """Write a graded submission, with the reports of its tests."""
        self._save(result.student, self._notebooks.graded(submission, result))

    def write_problem(self, student: str, problem: str) -> None:
        """Write the release and the reason for a submission that could not be graded."""
        self._save(student, self._notebooks.problem(problem))

    def _save(self, student: str, notebook: str) -> None:
        name = self._assignment.name
        student_folder = self._ledger.folder(student)
        folder = self._course.autograded / student_folder / name
        # not synced to disk: the next export writes the same file
        self._files.write(folder / f"{name}.ipynb", notebook, to_disk=False)
        _copy_beside(
            self._files, self._course, self._assignment, student_folder, folder
        )
        self.written += 1


def _copy_beside(
    files: FileTransaction,
    course: Course,
    assignment: Assignment,
    student_folder: str,
    folder: Path,
) -> None:
    """Copy the release's figures, and nbgrader's receipts of when and by whom it was handed in."""
    for name in _SHIPPED:
        if (pictures := assignment.release.parent / name).is_dir():
            for picture in sorted(filter(Path.is_file, pictures.rglob("*"))):
                _copy(files, picture, folder / name / picture.relative_to(pictures))
    for name in RECEIPTS:
        receipt = course.submitted / student_folder / assignment.name / name
        if receipt.is_file() and not receipt.is_symlink():
            _copy(files, receipt, folder / name)
        elif (folder / name).exists():
            files.remove(folder / name)


def _copy(files: FileTransaction, path: Path, to: Path) -> None:
    content = path.read_bytes()
    if not to.is_file() or to.read_bytes() != content:
        files.write(to, content, to_disk=False)

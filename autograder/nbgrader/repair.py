"""A submission as `nbgrader autograde` takes it up: the kit's own reading of the notebook, made
whole, and files alone.

nbgrader keeps the last of two copies, strips the other's metadata, and then ends the batch over
that; cells that are gone stay gone. Here every cell of the release is there once, with its
metadata, and locked cells have their source.

nbgrader would also open, follow and copy what is no file: a pipe that nobody writes to hangs it for
ever, a link to an endless device fills the disk, and a link to the answer key would end up in the
feedback.
"""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter

from autograder.basics.errors import UnreadableSubmission
from autograder.basics.handed_in import describe_non_file, printable_name
from autograder.course import Assignment, find_course
from autograder.intake.notebook import read_submission
from autograder.intake.released_notebook import read_release_cells
from autograder.marks.late_policy import TIMESTAMP_FILE
from autograder.nbgrader import warm_graders
from autograder.nbgrader.autograded import NotebooksForGraders, made_whole, release_with_problem
from autograder.nbgrader.gradebook import Entry, make_entry, write_gradebook
from autograder.nbgrader.released_cells import read_built, read_release, suite_assignment
from autograder.records.model import FoundSubmission, Submission


class HandedIn:
    """The notebook that nbgrader converts just now, by what nbgrader's resources say of it.

    Attributes:
        found: the file, with nbgrader's id of the student.
        release: what students got.
        suite: the assignment, where a hidden suite of ours grades this notebook of it.
    """

    def __init__(
        self, coursedir: Any, student: str, assignment: str, notebook: str, db_url: str
    ) -> None:
        folder = coursedir.format_path(coursedir.submitted_directory, student, assignment)
        release = coursedir.format_path(coursedir.release_directory, ".", assignment)
        self.found = FoundSubmission(student, Path(folder, f"{notebook}.ipynb"))
        self.release = Path(release, f"{notebook}.ipynb")
        self.course = find_course(Path.cwd())
        self.suite = suite_assignment(self.course, assignment, notebook)
        self._assignment, self._db_url = assignment, db_url

    def read(self) -> Submission:
        """The submission as the kit reads it.

        Raises:
            UnreadableSubmission: it cannot be read.
            BadSource: the assignment has no release that can be read.
        """
        key = self.suite.solution if self.suite else None
        return read_submission(
            self.found, read_release_cells(self.release, self._assignment, key), self.course.limits
        )

    def save(self, entry: Entry) -> None:
        """Put scores and comments into the gradebook."""
        release, has_suite = read_release(self.release), self.suite is not None
        write_gradebook(
            self.course,
            self._assignment,
            release,
            [entry],
            db_url=self._db_url,
            has_suite=has_suite,
        )

    def save_problem(self, problem: str) -> None:
        """Put 0 in place of whatever score the submission had, to wait for a person."""
        self.save(Entry(self.found.student, problem=problem))


class SubmissionExporter(NotebookExporter):  # type: ignore[misc]
    """Reads and grades what students hand in, and leaves no old score standing where that fails.

    nbgrader converts each notebook in two passes. One with a hidden suite is finished after the
    first; one without is only made whole then, and `grading.py` has the second. Where a file cannot
    be read, the release stands in for it and says why.
    """

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        # nbgrader makes its exporter when it has listed the submissions, and has opened and copied
        # nothing of them
        for folder in list(self.parent.assignments):
            self._leave_out_what_is_no_file(Path(folder))

    def _leave_out_what_is_no_file(self, folder: Path) -> None:
        odd = no_files(folder)
        if not odd:
            return
        student, coursedir = folder.parent.name, self.parent.coursedir
        coursedir.ignore = list(dict.fromkeys([*coursedir.ignore, *not_to_be_copied(folder, odd)]))
        self.log.warning("%s: left out, since only files are taken: %s", student, told(folder, odd))
        if folder / TIMESTAMP_FILE in odd:
            problem = (
                f"{TIMESTAMP_FILE} is {odd[folder / TIMESTAMP_FILE]}; put a file in its place, "
                "or remove it"
            )
            self.log.error("%s: %s", student, problem)
            del self.parent.assignments[str(folder)]
            submission = HandedIn(coursedir, student, folder.name, folder.name, coursedir.db_url)
            if submission.suite is not None:
                submission.save_problem(problem)

    def from_filename(
        self, filename: str, resources: Any = None, **keywords: Any
    ) -> tuple[Any, Any]:
        submission = HandedIn(self.parent.coursedir, **resources["nbgrader"])
        is_first_pass = Path(filename).parent.resolve() == submission.found.path.parent.resolve()
        try:
            if submission.suite is not None:
                text = (
                    self._graded(submission, submission.suite)
                    if is_first_pass
                    else Path(filename).read_text(encoding="utf-8")
                )
                return text, self._init_resources(resources)
            if is_first_pass:
                notebook = nbformat.from_dict(self._made_whole(submission))
                return self.from_notebook_node(notebook, resources, **keywords)  # type: ignore[no-any-return]
            return super().from_filename(filename, resources, **keywords)  # type: ignore[no-any-return]
        except Exception as error:
            submission.save_problem(f"grading ended with {_short(error)}")
            raise

    def _graded(self, submission: HandedIn, suite: Assignment) -> str:
        """Grade in the sandbox exactly as `autograder grade` does, and save the scores; the
        notebook for graders.
        """
        notebooks = NotebooksForGraders(submission.release, suite.solution)
        graded = warm_graders.grade(submission.course, suite, submission.found)
        problem = graded.problem
        if graded.result is not None:
            try:
                read = submission.read()
            except UnreadableSubmission as error:
                problem = str(error)
            else:
                submission.save(make_entry(read_release(submission.release), graded.result, read))
                return notebooks.graded(read, graded.result)
        self.log.error("%s could not be graded: %s", submission.found.student, problem)
        submission.save_problem(problem)
        return notebooks.problem(problem)

    def _made_whole(self, submission: HandedIn) -> dict[str, Any]:
        release = read_built(submission.release)
        try:
            return made_whole(release, submission.read())
        except UnreadableSubmission as problem:
            self.log.error("%s: %s", submission.found.student, problem)
            return release_with_problem(release, str(problem))


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".split("\n")[0][:120]


_FEW = 20


def no_files(folder: Path) -> dict[Path, str]:
    """Everything in a submission's folder, and below, that is neither a file nor a folder → what it
    is instead.
    """
    found = {}
    for inside, _, names in os.walk(folder):
        for name in names:
            path = Path(inside, name)
            if path.is_symlink() or not path.is_file():
                found[path] = describe_non_file(path)
    return dict(sorted(found.items()))


def not_to_be_copied(folder: Path, odd: dict[Path, str]) -> list[str]:
    """The patterns by which nbgrader leaves these out; it compares each with each file, so for
    many, the folder.
    """
    paths = odd if len(odd) <= _FEW else [folder]
    return [glob.escape(str(path)) for path in paths]


def told(folder: Path, odd: dict[Path, str]) -> str:
    """The first few, in words."""
    some = [
        f"{printable_name(path.relative_to(folder))} is {what}"
        for path, what in list(odd.items())[:3]
    ]
    return ", ".join(some) + (f", and {len(odd) - len(some)} more" if len(odd) > len(some) else "")

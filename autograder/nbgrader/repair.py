"""Grades submissions for `nbgrader autograde`, and repairs what nbgrader cannot read.

Of two copies of a cell nbgrader keeps the last, strips the metadata of the first, and then ends the
whole batch with an error; missing cells stay missing. Here each cell of the release stands in the
notebook once, with its metadata, and locked cells have their released source.

nbgrader would also open, follow and copy links, pipes and devices: a pipe without a writer hangs
nbgrader for ever, a link to an endless device fills the disk, and a link to the answer key would
end up in the feedback.
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
from autograder.nbgrader.autograded import (
    NotebooksForGraders,
    complete_notebook,
    release_with_problem,
)
from autograder.nbgrader.gradebook import GradebookEntry, make_entry, write_gradebook
from autograder.nbgrader.released_cells import (
    read_built,
    read_release,
    suite_assignment,
)
from autograder.records.submission import FoundSubmission, Submission


class HandedIn:
    """The submitted notebook that nbgrader is converting, by the values in nbgrader's resources.

    Attributes:
        found: the file, with nbgrader's id of the student.
        release: the released notebook.
        suite: the assignment, if a hidden suite grades this notebook; else None.
    """

    def __init__(
        self, coursedir: Any, student: str, assignment: str, notebook: str, db_url: str
    ) -> None:
        folder = coursedir.format_path(
            coursedir.submitted_directory, student, assignment
        )
        release = coursedir.format_path(coursedir.release_directory, ".", assignment)
        self.found = FoundSubmission(student, Path(folder, f"{notebook}.ipynb"))
        self.release = Path(release, f"{notebook}.ipynb")
        self.course = find_course(Path.cwd())
        self.suite = suite_assignment(self.course, assignment, notebook)
        self._assignment, self._db_url = assignment, db_url

    def read(self) -> Submission:
        """Read the submission with the kit's own reader.

        Raises:
            UnreadableSubmission: the notebook cannot be read.
            BadSource: the assignment has no readable release.
        """
        key = self.suite.solution if self.suite else None
        release = read_release_cells(self.release, self._assignment, key)
        return read_submission(self.found, release, self.course.limits)

    def save(self, entry: GradebookEntry) -> None:
        """Write scores and comments to the gradebook."""
        write_gradebook(
            self.course,
            self._assignment,
            read_release(self.release),
            [entry],
            db_url=self._db_url,
            has_suite=self.suite is not None,
        )

    def save_problem(self, problem: str) -> None:
        """Replace all scores of the submission by 0 and let them wait for a person."""
        self.save(GradebookEntry(self.found.student, problem=problem))


class SubmissionExporter(NotebookExporter):  # type: ignore[misc]
    """Reads, repairs and grades submissions; where that fails, no old score stays.

    nbgrader converts each notebook in two passes. With a hidden suite the first pass does all.
    Without a suite it only completes the notebook, and `grading_pass.py` has the second. In place
    of an unreadable file stands the release with the reason.
    """

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        # nbgrader makes its exporter after listing the submissions and before opening any file
        for folder in list(self.parent.assignments):
            self._exclude_special_files(Path(folder))

    def _exclude_special_files(self, folder: Path) -> None:
        special = find_special_files(folder)
        if not special:
            return
        student, coursedir = folder.parent.name, self.parent.coursedir
        patterns = [*coursedir.ignore, *ignore_patterns(folder, special)]
        coursedir.ignore = list(dict.fromkeys(patterns))
        listing = list_special_files(folder, special)
        self.log.warning(
            "%s: left out, since only files are taken: %s", student, listing
        )
        if kind := special.get(folder / TIMESTAMP_FILE):
            problem = (
                f"{TIMESTAMP_FILE} is {kind}; put a file in its place, or remove it"
            )
            self.log.error("%s: %s", student, problem)
            del self.parent.assignments[str(folder)]
            submission = HandedIn(
                coursedir, student, folder.name, folder.name, coursedir.db_url
            )
            if submission.suite is not None:
                submission.save_problem(problem)

    def from_filename(
        self, filename: str, resources: Any = None, **keywords: Any
    ) -> tuple[Any, Any]:
        submission = HandedIn(self.parent.coursedir, **resources["nbgrader"])
        submitted_folder = submission.found.path.parent.resolve()
        is_first_pass = Path(filename).parent.resolve() == submitted_folder
        try:
            if submission.suite is not None:
                if is_first_pass:
                    text = self._graded(submission, submission.suite)
                else:
                    text = Path(filename).read_text(encoding="utf-8")
                return text, self._init_resources(resources)
            if is_first_pass:
                notebook = nbformat.from_dict(self._complete(submission))
                return self.from_notebook_node(notebook, resources, **keywords)  # type: ignore[no-any-return]
            return super().from_filename(filename, resources, **keywords)  # type: ignore[no-any-return]
        except Exception as error:
            submission.save_problem(f"grading ended with {_short(error)}")
            raise

    def _graded(self, submission: HandedIn, suite: Assignment) -> str:
        """Grade in the sandbox like `autograder grade`, and save the scores.

        Returns:
            The notebook for graders.
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
                submission.save(
                    make_entry(read_release(submission.release), graded.result, read)
                )
                return notebooks.graded(read, graded.result)
        self.log.error("%s could not be graded: %s", submission.found.student, problem)
        submission.save_problem(problem)
        return notebooks.problem(problem)

    def _complete(self, submission: HandedIn) -> dict[str, Any]:
        release = read_built(submission.release)
        try:
            return complete_notebook(release, submission.read())
        except UnreadableSubmission as problem:
            self.log.error("%s: %s", submission.found.student, problem)
            return release_with_problem(release, str(problem))


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".split("\n")[0][:120]


_MOST_PATTERNS = 20
"""Ignore patterns of one folder. nbgrader compares each pattern with each file."""


def find_special_files(folder: Path) -> dict[Path, str]:
    """Links, pipes, sockets and devices in a submission's folder and below → their kind."""
    special = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            if path.is_symlink() or not path.is_file():
                special[path] = describe_non_file(path)
    return dict(sorted(special.items()))


def ignore_patterns(folder: Path, special: dict[Path, str]) -> list[str]:
    """Patterns by which nbgrader ignores special files; for many files, that of the folder."""
    paths = list(special) if len(special) <= _MOST_PATTERNS else [folder]
    return [glob.escape(str(path)) for path in paths]


def list_special_files(folder: Path, special: dict[Path, str]) -> str:
    """Names and kinds of the first three special files, for a message."""
    shown = [
        f"{printable_name(path.relative_to(folder))} is {kind}"
        for path, kind in list(special.items())[:3]
    ]
    if len(special) > len(shown):
        shown.append(f"and {len(special) - len(shown)} more")
    return ", ".join(shown)

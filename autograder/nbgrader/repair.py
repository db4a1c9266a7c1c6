"""A submission's notebook as `nbgrader autograde` takes it up: the kit's own reading of it, made whole.

nbgrader keeps the last of two copies, strips the other's metadata, and then ends the batch over that; cells that are
gone stay gone. Here every cell of the release is there once, with its metadata, and locked cells have their source.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter

from autograder.course import Assignment, Course, find_course
from autograder.errors import UnreadableSubmission
from autograder.intake.notebook import read_submission
from autograder.intake.release import read_release_cells
from autograder.model import FoundSubmission, Submission
from autograder.nbgrader.autograded import made_whole, show_problem
from autograder.nbgrader.gradebook import Entry, write_gradebook
from autograder.nbgrader.no_files import TIMESTAMP, no_files, not_to_be_copied, told
from autograder.nbgrader.release import read_built, read_release, suite_assignment


@dataclass(frozen=True, slots=True)
class HandedIn:
    """The notebook that nbgrader converts just now.

    Attributes:
        student: nbgrader's id of the student.
        path: where it was handed in.
        release: what students got.
        suite: the assignment, where a hidden suite of ours grades this notebook of it.
    """

    course: Course
    student: str
    assignment: str
    path: Path
    release: Path
    suite: Assignment | None
    db_url: str

    @property
    def found(self) -> FoundSubmission:
        """The same for the kit's own reader and grader."""
        return FoundSubmission(self.student, self.path)

    def read(self) -> Submission:
        """The submission as the kit reads it.

        Raises:
            UnreadableSubmission: it cannot be read.
            BadSource: the assignment has no release that can be read.
        """
        key = self.suite.solution if self.suite else None
        return read_submission(self.found, read_release_cells(self.release, self.assignment, key), self.course.limits)

    def save(self, entry: Entry) -> None:
        """Put scores and comments, or the problem, into the gradebook."""
        release = read_release(self.release)
        has_suite = self.suite is not None
        write_gradebook(self.course, self.assignment, release, [entry], db_url=self.db_url, has_suite=has_suite)


def handed_in(coursedir: Any, resources: Any) -> HandedIn:
    """What nbgrader's resources of a conversion say."""
    where = resources["nbgrader"]
    student, assignment, notebook = where["student"], where["assignment"], where["notebook"]
    course = find_course(Path.cwd())
    folder = coursedir.format_path(coursedir.submitted_directory, student, assignment)
    release = coursedir.format_path(coursedir.release_directory, ".", assignment)
    return HandedIn(
        course=course,
        student=student,
        assignment=assignment,
        path=Path(folder, f"{notebook}.ipynb"),
        release=Path(release, f"{notebook}.ipynb"),
        suite=suite_assignment(course, assignment, notebook),
        db_url=where["db_url"],
    )


class SubmissionExporter(NotebookExporter):  # type: ignore[misc]
    """Reads what students hand in, and leaves no old score standing where that fails.

    Where a file cannot be read, the release stands in for it and says why; grading finds the same and gives 0.
    """

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        # nbgrader makes its exporter when it has listed the submissions, and has opened and copied nothing of them
        for folder in list(self.parent.assignments):
            self._leave_out_what_is_no_file(Path(folder))

    def _leave_out_what_is_no_file(self, folder: Path) -> None:
        odd = no_files(folder)
        if not odd:
            return
        student, coursedir = folder.parent.name, self.parent.coursedir
        coursedir.ignore = list(dict.fromkeys([*coursedir.ignore, *not_to_be_copied(folder, odd)]))
        self.log.warning("%s: left out, since only files are taken: %s", student, told(folder, odd))
        if folder / TIMESTAMP in odd:
            problem = f"{TIMESTAMP} is {odd[folder / TIMESTAMP]}; put a file in its place, or remove it"
            self.log.error("%s: %s", student, problem)
            del self.parent.assignments[str(folder)]
            name = folder.name
            where = {"student": student, "assignment": name, "notebook": name, "db_url": coursedir.db_url}
            submission = handed_in(coursedir, {"nbgrader": where})
            if submission.suite is not None:
                submission.save(Entry(student, problem=problem))

    def from_filename(self, filename: str, resources: Any = None, **keywords: Any) -> tuple[Any, Any]:
        submission = handed_in(self.parent.coursedir, resources)
        try:
            if Path(filename).parent.resolve() == submission.path.parent.resolve():
                notebook = nbformat.from_dict(self._made_whole(submission))
                return self.from_notebook_node(notebook, resources, **keywords)  # type: ignore[no-any-return]
            return super().from_filename(filename, resources, **keywords)  # type: ignore[no-any-return]
        except Exception as error:
            submission.save(Entry(submission.student, problem=f"grading ended with {_short(error)}"))
            raise

    def _made_whole(self, submission: HandedIn) -> dict[str, Any]:
        release = read_built(submission.release)
        try:
            return made_whole(release, submission.read())
        except UnreadableSubmission as problem:
            self.log.error("%s: %s", submission.student, problem)
            show_problem(release, str(problem))
            return release


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".split("\n")[0][:120]

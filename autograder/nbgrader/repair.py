"""A submission's notebook as `nbgrader autograde` takes it up: the kit's own reading of it, made whole.

nbgrader keeps the last of two copies, strips the other's metadata, and then ends the batch over that; cells that are
gone stay gone. Here every cell of the release is there once, with its metadata, and locked cells have their source.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter

from autograder.course import Course, find_course
from autograder.errors import UnreadableSubmission
from autograder.intake.notebook import read_submission
from autograder.intake.release import read_release_cells
from autograder.model import FoundSubmission, Submission
from autograder.nbgrader.autograded import made_whole, read_built, show_problem
from autograder.nbgrader.gradebook import record_problem
from autograder.nbgrader.no_files import TIMESTAMP, no_files, not_to_be_copied, told
from autograder.nbgrader.source import suite_assignment


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
            course = find_course(Path(coursedir.root))
            if assignment := suite_assignment(course, folder.name, folder.name):
                record_problem(course, assignment.release, folder.name, student, problem, coursedir.db_url)

    def from_filename(self, filename: str, resources: Any = None, **keywords: Any) -> tuple[Any, Any]:
        try:
            if self._is_handed_in(Path(filename), resources):
                return self._made_whole(resources, **keywords)
            return super().from_filename(filename, resources, **keywords)  # type: ignore[no-any-return]
        except Exception as error:
            where = resources["nbgrader"]
            release = release_path(self.parent.coursedir, resources)
            problem = f"grading ended with {_short(error)}"
            record_problem(
                find_course(Path.cwd()), release, where["assignment"], where["student"], problem, where["db_url"]
            )
            raise

    def _is_handed_in(self, path: Path, resources: Any) -> bool:
        """Whether it lies among the submissions; else it is what this exporter made of one."""
        return path.parent.resolve() == submitted_folder(self.parent.coursedir, resources).resolve()

    def _made_whole(self, resources: Any, **keywords: Any) -> tuple[Any, Any]:
        release = read_built(release_path(self.parent.coursedir, resources))
        try:
            notebook = made_whole(release, handed_in(find_course(Path.cwd()), self.parent.coursedir, resources))
        except UnreadableSubmission as problem:
            self.log.error("%s: %s", resources["nbgrader"]["student"], problem)
            notebook = release
            show_problem(notebook, str(problem))
        return self.from_notebook_node(nbformat.from_dict(notebook), resources, **keywords)  # type: ignore[no-any-return]


def handed_in(course: Course, coursedir: Any, resources: Any) -> Submission:
    """The notebook that is being converted, as the kit reads it.

    Raises:
        UnreadableSubmission: it cannot be read.
        BadSource: the assignment has no release that can be read.
    """
    where = resources["nbgrader"]
    path = submitted_folder(coursedir, resources) / f"{where['notebook']}.ipynb"
    graded_here = suite_assignment(course, where["assignment"], where["notebook"])
    key = graded_here.solution if graded_here else None
    release = read_release_cells(release_path(coursedir, resources), where["assignment"], key)
    return read_submission(FoundSubmission(where["student"], path), release, course.limits)


def submitted_folder(coursedir: Any, resources: Any) -> Path:
    """Where the notebook that is being converted was handed in."""
    where = resources["nbgrader"]
    return Path(coursedir.format_path(coursedir.submitted_directory, where["student"], where["assignment"]))


def release_path(coursedir: Any, resources: Any) -> Path:
    """The release of the notebook that is being converted."""
    where = resources["nbgrader"]
    folder = coursedir.format_path(coursedir.release_directory, ".", where["assignment"])
    return Path(folder) / f"{where['notebook']}.ipynb"


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".split("\n")[0][:120]

"""Find the notebooks to grade: single files, flat folders, and nbgrader's `<student>/<assignment>/`
layout.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.basics.errors import KitError, NothingToGrade
from autograder.basics.handed_in import printable_name
from autograder.course import Assignment, Course
from autograder.intake.overlooked import PREVIOUS, find_overlooked
from autograder.ledger import Ledger, read_ledger
from autograder.records.submission import FoundSubmission

SUFFIX = ".ipynb"


def find_submissions(
    course: Course,
    assignment: Assignment,
    paths: Sequence[Path],
) -> list[FoundSubmission]:
    """Every submission in `paths` (default: the course's `submitted/`), by student.

    A student's folder without a notebook is found too, so that the reader can say what is missing.

    Raises:
        NothingToGrade: says which places were searched.
        KitError: a path does not exist, or two notebooks belong to one student.
    """
    name = assignment.name
    search = _Search(course, read_ledger(course), name)
    by_student: dict[str, FoundSubmission] = {}
    for submission in (
        search.search_paths(paths) if paths else search.search_submitted()
    ):
        earlier = by_student.setdefault(submission.student, submission)
        if earlier.path != submission.path:
            raise KitError(
                f"two notebooks belong to {printable_name(submission.student)}: "
                f"{printable_name(earlier.path)} and {printable_name(submission.path)}; "
                "grade one of them at a time, or rename one"
            )
    if not by_student:
        places = ", ".join(map(printable_name, paths or [course.submitted]))
        overlooked = find_overlooked(
            course,
            assignment,
            paths,
            [],
        )
        raise NothingToGrade(
            f"no submission of {name} in {places}: looked for "
            f"<student>/{name}/{name}{SUFFIX} and for notebooks directly in the folder, "
            "one a student" + (f"; there is {overlooked[0]}" if overlooked else "")
        )
    return [by_student[student] for student in sorted(by_student)]


@dataclass(frozen=True)
class _Search:
    """A search for the submissions of one assignment."""

    course: Course
    ledger: Ledger
    assignment: str

    def search_submitted(self) -> Iterator[FoundSubmission]:
        """The submissions in the course's `submitted/`, in which any link may be a student's."""
        folder = self.course.submitted.absolute()
        if folder.is_dir():
            for submission in self._search_folder(folder):
                yield dataclasses.replace(submission, below=folder)

    def search_paths(self, paths: Sequence[Path]) -> Iterator[FoundSubmission]:
        """The submissions in folders and files named on the command line."""
        for path in map(Path.absolute, paths):
            if path.is_dir():
                submissions = self._search_folder(path)
            elif not os.path.lexists(path):
                raise NothingToGrade(
                    f"{printable_name(path)} does not exist: name a notebook or a folder of "
                    "submissions"
                )
            elif path.suffix != SUFFIX:
                raise NothingToGrade(
                    f"{printable_name(path)} is not a notebook: name a {SUFFIX} file or a folder"
                )
            else:
                submissions = iter([self._single_notebook(path)])
            below = self._staff_part(path)
            for submission in submissions:
                yield dataclasses.replace(submission, below=below)

    def _staff_part(self, path: Path) -> Path:
        """The part of a named path that no student can have made a link: the path up to the
        course's `submitted/`.

        Elsewhere no part is safe: `../submission/a2.ipynb` may be a link to the answer key, or lie
        behind one, and so may any path that a shell makes of `*`.
        """
        submitted = self.course.submitted.resolve()
        for part in (*reversed(path.parents), path):
            if part.resolve() == submitted:
                return part
        return Path(path.anchor)

    def _single_notebook(self, path: Path) -> FoundSubmission:
        """A notebook named on the command line."""
        folder = path.parent
        student = path.stem
        if folder.name == self.assignment and folder.parent.name:
            is_chosen = (
                path.stem == self.assignment or (folder / self._file_name).exists()
            )
            if is_chosen or len(_list_notebooks(folder)) == 1:
                student = folder.parent.name
        return FoundSubmission(self.ledger.student_in(student), path)

    @property
    def _file_name(self) -> str:
        return f"{self.assignment}{SUFFIX}"

    def _search_folder(self, folder: Path) -> Iterator[FoundSubmission]:
        is_in_submitted = folder.parent.parent == self.course.submitted.absolute()
        is_named = folder.name == self.assignment
        if is_named and (is_in_submitted or (folder / self._file_name).exists()):
            yield self._student_notebook(folder)
            return
        student_folder = folder / self.assignment
        if _is_folder(student_folder) and _list_notebooks(student_folder):
            yield self._student_notebook(student_folder)
            return
        for path in sorted(folder.iterdir()):
            student_folder = path / self.assignment
            if _is_folder(student_folder) and not _is_put_aside(student_folder):
                yield self._student_notebook(student_folder)
            elif path.name.endswith(
                SUFFIX
            ):  # a folder of that name too: its reader says so
                yield FoundSubmission(self.ledger.student_in(path.stem), path)

    def _student_notebook(self, folder: Path) -> FoundSubmission:
        """The notebook in `<student>/<assignment>/`: the notebook of the right name, else the only
        one, else the newest.
        """
        expected = folder / self._file_name
        notebooks = [] if _is_link(folder) else _list_notebooks(folder)
        chosen = expected
        if notebooks and expected not in notebooks:
            chosen = max(
                notebooks, key=lambda path: (path.lstat().st_mtime_ns, path.name)
            )
        return FoundSubmission(self.ledger.student_in(folder.parent.name), chosen)


def _list_notebooks(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            names = [
                entry.name
                for entry in entries
                if not entry.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return []
    names = [
        name for name in names if name.endswith(SUFFIX) and not name.startswith(".")
    ]
    return [folder / name for name in sorted(names)]


def _is_folder(path: Path) -> bool:
    """Whether a path is a folder or a link: a link is found, and refused by name when it is
    read.
    """
    return os.path.isdir(path) or os.path.islink(path)  # noqa: PTH112, PTH114 - these never raise


def _is_put_aside(folder: Path) -> bool:
    """Whether a folder holds only a notebook that `collect` put aside, since it was somebody
    else's.
    """
    try:
        return not _is_link(folder) and os.listdir(folder) == [PREVIOUS]  # noqa: PTH208 - names
    except OSError:
        return False


def _is_link(folder: Path) -> bool:
    return folder.is_symlink() or folder.parent.is_symlink()

"""Find the notebooks to grade: single files, flat folders, and nbgrader's `<student>/<assignment>/`
layout.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from autograder.basics.errors import KitError, NothingToGrade
from autograder.basics.handed_in import printable_name
from autograder.course import Assignment, Course
from autograder.intake.overlooked import PREVIOUS, find_overlooked
from autograder.ledger import Ledger, read_ledger
from autograder.records.model import FoundSubmission

SUFFIX = ".ipynb"


def find_submissions(
    course: Course, assignment: Assignment, paths: Sequence[Path]
) -> list[FoundSubmission]:
    """Every submission in `paths` (default: the course's `submitted/`), by student.

    A student's folder without a notebook is found too, so that reading it says what is missing.

    Raises:
        NothingToGrade: says what was looked for.
        KitError: a path does not exist, or two notebooks belong to one student.
    """
    found: dict[str, FoundSubmission] = {}
    asked = [Path(path) for path in paths] or [course.submitted]
    ledger = read_ledger(course)
    for path in asked:
        for submission in _found_in(course, ledger, assignment.name, path, given=bool(paths)):
            other = found.setdefault(submission.student, submission)
            if other.path != submission.path:
                raise KitError(
                    f"two notebooks belong to {printable_name(submission.student)}: "
                    f"{printable_name(other.path)} and "
                    f"{printable_name(submission.path)}; grade one of them at a time, or rename one"
                )
    if not found:
        name = assignment.name
        there = find_overlooked(course, assignment, paths, [])
        raise NothingToGrade(
            f"no submission of {name} in {', '.join(printable_name(path) for path in asked)}: "
            "looked for "
            f"<student>/{name}/{name}{SUFFIX} and for notebooks directly in the folder, "
            "one a student" + (f"; there is {there[0]}" if there else "")
        )
    return [found[student] for student in sorted(found)]


def _found_in(
    course: Course, ledger: Ledger, assignment: str, path: Path, given: bool
) -> Iterator[FoundSubmission]:
    path = path.absolute()
    below = _ours(course, path) if given else path
    if path.is_dir():
        for submission in _in_folder(course, ledger, assignment, path):
            yield dataclasses.replace(submission, below=below)
    elif os.path.lexists(path):
        if path.suffix != SUFFIX:
            raise NothingToGrade(
                f"{printable_name(path)} is not a notebook: name a {SUFFIX} file or a folder"
            )
        yield dataclasses.replace(_single(ledger, assignment, path), below=below)
    elif given:
        raise NothingToGrade(
            f"{printable_name(path)} does not exist: name a notebook or a folder of submissions"
        )


def _ours(course: Course, path: Path) -> Path:
    """The part of a named path that no student can have made a link: what leads to the course's
    `submitted/`.

    Elsewhere there is none: `../submission/a2.ipynb` may be a link to the answer key, or lie behind
    one, and so may whatever a shell makes of `*`.
    """
    submitted = course.submitted.resolve()
    return next(
        (part for part in (*reversed(path.parents), path) if part.resolve() == submitted),
        Path(path.anchor),
    )


def _single(ledger: Ledger, assignment: str, path: Path) -> FoundSubmission:
    """A notebook named on the command line."""
    folder = path.parent
    laid_out = (
        folder.name == assignment
        and folder.parent.name != ""
        and (
            path.stem == assignment
            or (folder / f"{assignment}{SUFFIX}").exists()
            or len(_notebooks(folder)) == 1
        )
    )
    student = folder.parent.name if laid_out else path.stem
    return FoundSubmission(ledger.student_in(student), path)


def _in_folder(
    course: Course, ledger: Ledger, assignment: str, folder: Path
) -> Iterator[FoundSubmission]:
    expected = f"{assignment}{SUFFIX}"
    in_submitted = folder.parent.parent == course.submitted.absolute()
    if folder.name == assignment and ((folder / expected).exists() or in_submitted):
        yield _of_student(ledger, assignment, folder)
        return
    own = folder / assignment
    if _is_folder(own) and _notebooks(own):
        yield _of_student(ledger, assignment, own)
        return
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        path = folder / entry.name
        if _is_folder(path / assignment) and not _is_put_aside(path / assignment):
            yield _of_student(ledger, assignment, path / assignment)
        elif entry.name.endswith(SUFFIX):  # a folder of that name too: reading it says so
            yield FoundSubmission(ledger.student_in(path.stem), path)


def _of_student(ledger: Ledger, assignment: str, folder: Path) -> FoundSubmission:
    """The notebook in `<student>/<assignment>/`: the one of the right name, else the only one, else
    the newest.
    """
    expected = folder / f"{assignment}{SUFFIX}"
    there = [] if _is_link(folder) else _notebooks(folder)
    chosen = expected if expected in there or not there else max(there, key=_time_and_name)
    return FoundSubmission(ledger.student_in(folder.parent.name), chosen)


def _notebooks(folder: Path) -> list[Path]:
    try:
        names = sorted(
            entry.name for entry in os.scandir(folder) if not entry.is_dir(follow_symlinks=False)
        )
    except OSError:
        return []
    return [folder / name for name in names if name.endswith(SUFFIX) and not name.startswith(".")]


def _is_folder(path: Path) -> bool:
    """A link counts: it is found, and refused by name when it is read."""
    return os.path.isdir(path) or os.path.islink(path)  # noqa: PTH112, PTH114 - these never raise


def _is_put_aside(folder: Path) -> bool:
    """Whether there is nothing but what `collect` put aside: whose it was, somebody else's folder
    tells.
    """
    try:
        return not _is_link(folder) and [entry.name for entry in os.scandir(folder)] == [PREVIOUS]
    except OSError:
        return False


def _is_link(folder: Path) -> bool:
    return folder.is_symlink() or folder.parent.is_symlink()


def _time_and_name(path: Path) -> tuple[int, str]:
    return path.lstat().st_mtime_ns, path.name

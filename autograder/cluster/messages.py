"""What travels from the driver to a machine: the course, once, and submissions, as bytes."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

from autograder.basics.handed_in import read_handed_in
from autograder.course import COURSE_FILE, Assignment, Course, settings_without_people
from autograder.intake.find import SUFFIX
from autograder.intake.notebook import check_is_file, is_in_layout
from autograder.outputs.bundle import archive_entry, course_files, files_below
from autograder.records.model import FoundSubmission


@dataclass(frozen=True, slots=True)
class HandedIn:
    """A submission as a machine is given it.

    Attributes:
        place: the last parts of its path, the file's name at the end: what a result says of the
            name depends on them.
        beside: the name of another notebook in its folder, or "": a result says so.
    """

    student: str
    place: tuple[str, ...]
    data: bytes
    beside: str = ""

    def write_below(self, folder: Path) -> FoundSubmission:
        """Write the notebook to disk, at a path that a result describes as it would the original
        one.
        """
        path = folder.joinpath(*self.place)
        path.parent.mkdir(parents=True)
        path.write_bytes(self.data)
        if self.beside:
            (path.parent / self.beside).touch()
        return FoundSubmission(self.student, path)


def taken_in(submission: FoundSubmission, assignment: str, limit: int) -> HandedIn:
    """Read a submission for the journey: at most `limit` bytes.

    Raises:
        UnreadableSubmission: with the words that a grader on this machine would have.
    """
    path = submission.path
    check_is_file(submission, assignment)
    data = read_handed_in(path, limit)
    if not is_in_layout(path, submission.student, assignment):
        return HandedIn(submission.student, (path.name,), data)
    notebooks = {entry.name for entry in path.parent.iterdir() if entry.name.endswith(SUFFIX)}
    beside = min(notebooks - {path.name}, default="")
    return HandedIn(submission.student, (submission.student, assignment, path.name), data, beside)


def pack_course(course: Course, assignment: Assignment) -> bytes:
    """What a machine needs to grade one assignment, as a zip archive; equal courses give equal
    bytes.

    It holds the release, the answer key, the suite, the settings without the people in them, and
    what known mistakes answered.

    Raises:
        KitError: something that grading needs is not there.
    """
    answers = course.kept / "known" / assignment.name
    archived = io.BytesIO()
    with zipfile.ZipFile(archived, "w") as archive:
        for path in sorted([*course_files(course, assignment), *files_below(answers)]):
            archive.writestr(
                archive_entry(path.relative_to(course.root).as_posix(), 0o600), path.read_bytes()
            )
        archive.writestr(archive_entry(COURSE_FILE, 0o600), settings_without_people(course))
    return archived.getvalue()


def unpack_course(archived: bytes, to: Path) -> None:
    """Unpack into the new folder `to`. Where that fails, `to` does not exist afterwards.

    Raises:
        OSError: the disk is full, or the like.
    """
    part = to.with_name(f"{to.name}.part")
    with zipfile.ZipFile(io.BytesIO(archived)) as archive:
        archive.extractall(part)
    part.chmod(0o700)
    part.rename(to)

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
from autograder.records.submission import FoundSubmission


@dataclass(frozen=True, slots=True)
class PackedSubmission:
    """A submission on its way to a machine.

    Attributes:
        place: the last parts of its path, the file's name at the end: what a result says of the
            name depends on them.
        neighbour: the name of another notebook in the folder, which a result mentions, or "".
    """

    student: str
    place: tuple[str, ...]
    data: bytes
    neighbour: str = ""

    def unpack_below(self, folder: Path) -> FoundSubmission:
        """Write the notebook to disk, at a path that gives the same words in a result as the
        original path.
        """
        path = folder.joinpath(*self.place)
        path.parent.mkdir(parents=True)
        path.write_bytes(self.data)
        if self.neighbour:
            (path.parent / self.neighbour).touch()
        return FoundSubmission(self.student, path)


def pack_submission(submission: FoundSubmission, assignment: str, limit: int) -> PackedSubmission:
    """Read a submission for the journey: at most `limit` bytes.

    Raises:
        UnreadableSubmission: with the words that a grader on this machine would have.
    """
    path = submission.path
    check_is_file(submission, assignment)
    data = read_handed_in(path, limit)
    if not is_in_layout(path, submission.student, assignment):
        return PackedSubmission(submission.student, (path.name,), data)
    names = {entry.name for entry in path.parent.iterdir()} - {path.name}
    neighbour = min((name for name in names if name.endswith(SUFFIX)), default="")
    place = (submission.student, assignment, path.name)
    return PackedSubmission(submission.student, place, data, neighbour)


def pack_course(course: Course, assignment: Assignment) -> bytes:
    """What a machine needs to grade one assignment, as a zip archive; equal courses give equal
    bytes.

    It holds the release, the answer key, the suite, the settings without the people in them, and
    what known mistakes answered.

    Raises:
        KitError: something that grading needs is not there.
    """
    answers = course.kept / "known" / assignment.name
    paths = [*course_files(course, assignment), *files_below(answers)]
    archived = io.BytesIO()
    with zipfile.ZipFile(archived, "w") as archive:
        for path in sorted(paths):
            name = path.relative_to(course.root).as_posix()
            archive.writestr(archive_entry(name, 0o600), path.read_bytes())
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

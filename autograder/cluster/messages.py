"""What travels from the driver to a machine: the course, once, and submissions, as bytes."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from autograder.course import COURSE_FILE, Assignment, Course, settings_without_people
from autograder.outputs.bundle import archive_entry, course_files, files_below


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
        archive.writestr(
            archive_entry(COURSE_FILE, 0o600), settings_without_people(course)
        )
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

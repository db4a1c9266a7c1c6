"""What of a course a machine needs to grade one assignment, as one archive: equal courses give equal bytes.

The release, the answer key, the suite, the settings without the people in them, and what known mistakes answered.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from autograder.course import COURSE_FILE, Assignment, Course, settings_of_nobody
from autograder.outputs.bundle import archive_entry, course_files, files_below


def pack_course(course: Course, assignment: Assignment) -> bytes:
    """A zip archive.

    Raises:
        KitError: something that grading needs is not there.
    """
    known = course.kept / "known" / assignment.name
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in sorted([*course_files(course, assignment), *files_below(known)]):
            archive.writestr(archive_entry(path.relative_to(course.root).as_posix(), 0o600), path.read_bytes())
        archive.writestr(archive_entry(COURSE_FILE, 0o600), settings_of_nobody(course))
    return packed.getvalue()


def unpack_course(packed: bytes, to: Path) -> None:
    """Unpack into the folder `to`, which is not there yet: whole, or it is not there afterwards either.

    Raises:
        OSError: the disk is full, or the like.
    """
    part = to.with_name(f"{to.name}.part")
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        archive.extractall(part)
    part.chmod(0o700)
    part.rename(to)

"""What the last build of an assignment was made from, and what it made: where nothing changed there
is nothing to do, and nothing heavy to load for it.

    <course>/.autograder/built/<assignment>.json
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from autograder.basics.stored_json import encode_line, read_stored
from autograder.basics.whole_files import write_whole
from autograder.course import Assignment, Course
from autograder.course.fingerprint import files_sha256

_KIT = Path(__file__).resolve().parents[1]
_LIBRARIES = ("jupytext", "nbformat", "pytest")


@dataclass(frozen=True, slots=True)
class _LastBuild:
    """The record: a hash of everything that a build reads and writes, and what was said of it."""

    sha256: str
    summary: str


def summary_of_last_build(course: Course, assignment: Assignment) -> str | None:
    """What was said of the last build; None where it has to be made again."""
    try:
        record = read_stored(_path(course, assignment), _LastBuild)
        return record.summary if record.sha256 == _sha256(assignment) else None
    except (OSError, ValueError):
        return None


def remember_build(course: Course, assignment: Assignment, summary: str) -> None:
    """Keep it for the next time; where that cannot be written, the next time takes as long as this
    one.
    """
    with contextlib.suppress(OSError):
        line = encode_line(_LastBuild(_sha256(assignment), summary))
        write_whole(_path(course, assignment), line, to_disk=False)


def _path(course: Course, assignment: Assignment) -> Path:
    return course.kept / "built" / f"{assignment.name}.json"


def _sha256(assignment: Assignment) -> str:
    folders = [path.parent for path in (assignment.source, assignment.release, assignment.solution)]
    parts = [files_sha256(folder, "**/*") for folder in (*folders, assignment.suite)]
    parts += [files_sha256(_KIT, "**/*.py"), sys.version, *map(metadata.version, _LIBRARIES)]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()

"""The record of an assignment's last build: an unchanged assignment loads and builds nothing.

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
    """The record: a hash of everything that a build reads and writes, and the build's summary."""

    sha256: str
    summary: str


def read_summary(course: Course, assignment: Assignment) -> str | None:
    """The summary of the last build; None if the assignment must be built again."""
    try:
        record = read_stored(_path(course, assignment), _LastBuild)
        return record.summary if record.sha256 == _sha256(assignment) else None
    except (OSError, ValueError):
        return None


def remember_build(course: Course, assignment: Assignment, summary: str) -> None:
    """Record a build. Without a record (the disk may be full) the next build takes as long."""
    with contextlib.suppress(OSError):
        line = encode_line(_LastBuild(_sha256(assignment), summary))
        write_whole(_path(course, assignment), line, to_disk=False)


def _path(course: Course, assignment: Assignment) -> Path:
    return course.kept / "built" / f"{assignment.name}.json"


def _sha256(assignment: Assignment) -> str:
    notebooks = (assignment.source, assignment.release, assignment.solution)
    folders = [notebook.parent for notebook in notebooks]
    hashes = [files_sha256(folder, "**/*") for folder in (*folders, assignment.suite)]
    hashes.append(files_sha256(_KIT, "**/*.py"))
    versions = [sys.version, *map(metadata.version, _LIBRARIES)]
    return hashlib.sha256(" ".join(hashes + versions).encode()).hexdigest()

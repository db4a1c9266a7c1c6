"""Feedback pages as one zip, under the file names that a platform gives back to its students."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from autograder.marks.marks import Mark
from autograder.outputs.bundle import archive_entry
from autograder.outputs.feedback_page import feedback_path

_PIECE = 1 << 20  # bytes


def pack_feedback(
    marks: Sequence[Mark],
    assignment: str,
    folder: Path,
    name_of_page: Callable[[Mark, str], str],
) -> tuple[Iterator[bytes], tuple[str, ...]]:
    """Pack the pages in `folder` for a platform.

    Args:
        name_of_page: a page's path in the zip, from the mark and the assignment; "" where the
            platform cannot know the student.

    Returns:
        The zip in pieces, and the students with a page whom the platform does not know: their
        submissions were not collected there.
    """
    pages: dict[str, Path] = {}
    unknown = []
    for mark in marks:
        page = feedback_path(folder, assignment, mark.own_folder)
        if mark.result is None or not page.is_file():
            continue
        if name := name_of_page(mark, assignment):
            pages[name] = page  # Canvas takes a group's page once, under one name
        else:
            unknown.append(mark.student)
    return _pack(pages), tuple(unknown)


def _pack(pages: Mapping[str, Path]) -> Iterator[bytes]:
    with tempfile.TemporaryFile() as file:
        with zipfile.ZipFile(file, "w") as archive:
            for name, page in pages.items():
                archive.writestr(archive_entry(name, 0o644), page.read_bytes())
        file.seek(0)
        yield from iter(lambda: file.read(_PIECE), b"")

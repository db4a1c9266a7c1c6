"""Feedback pages as one zip, under the names by which a platform gives each student their own."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from autograder.marks.marks import Mark
from autograder.outputs.feedback_page import feedback_path

_WRITTEN = (1980, 1, 1, 0, 0, 0)
"""Every entry has the same time, so that the same pages are the same bytes."""


_PIECE = 1 << 20  # bytes


def pack_feedback(
    marks: Sequence[Mark], assignment: str, folder: Path, name_of_page: Callable[[Mark, str], str]
) -> tuple[Iterator[bytes], tuple[str, ...]]:
    """The pages in `folder` as a zip for a platform.

    Args:
        name_of_page: a page's path in the zip, from the mark and the assignment; "" where the
            platform could not tell whose it is.

    Returns:
        The zip in pieces, and the students who have a page that the platform could give to nobody:
        they were not collected there.
    """
    pages = {
        mark.student: (page, name_of_page(mark, assignment))
        for mark in marks
        if mark.result is not None
        and (page := feedback_path(folder, assignment, mark.own_folder)).is_file()
    }
    left_out = tuple(student for student, (_, name) in pages.items() if not name)
    # Canvas takes a group's page once, for all of it
    by_name = {name: page for page, name in pages.values() if name}
    return _packed((page, name) for name, page in by_name.items()), left_out


def _packed(pages: Iterable[tuple[Path, str]]) -> Iterator[bytes]:
    with tempfile.TemporaryFile() as packed:
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for page, name in pages:
                archive.writestr(
                    zipfile.ZipInfo(name, _WRITTEN), page.read_bytes(), zipfile.ZIP_DEFLATED
                )
        packed.seek(0)
        yield from iter(lambda: packed.read(_PIECE), b"")

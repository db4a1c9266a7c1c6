"""Feedback pages as one zip, under the names by which a platform gives each student their own.

| platform | the page's path in the zip | the rule stands in |
| --- | --- | --- |
| Canvas | the path of the file handed in, `.html` for its ending: user and upload tell whose it is | canvas-lms, `app/models/abstract_assignment.rb` |
| Moodle | `First Last_12345_assignsubmission_file_/assignment.html`; the name must hold no `_` | moodle, `mod/assign/feedback/file/importziplib.php` |
| ILIAS | `multi_feedback/Last_First_login_12345/assignment.html` | ILIAS, `class.ilExAssignment.php` |
"""  # noqa: E501 - a table

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from autograder.intake.archives import archive_stem, notebook_stem
from autograder.outputs.feedback import feedback_path
from autograder.outputs.marks import Mark

RETURNS = ("canvas", "moodle", "ilias")
_WRITTEN = (1980, 1, 1, 0, 0, 0)
"""Every entry has the same time, so that the same pages are the same bytes."""


_PIECE = 1 << 20  # bytes


def feedback_zip(
    marks: Sequence[Mark], assignment: str, folder: Path, platform: str
) -> tuple[Iterator[bytes], tuple[str, ...]]:
    """The pages in `folder` as a zip for the platform.

    Returns:
        The zip in pieces, and the students who have a page that the platform could give to nobody: they were not
        collected there.
    """
    pages = {
        mark.student: (page, _name(mark, assignment, platform))
        for mark in marks
        if mark.result is not None and (page := feedback_path(folder, assignment, mark.own_folder)).is_file()
    }
    left_out = tuple(student for student, (_, name) in pages.items() if not name)
    by_name = {name: page for page, name in pages.values() if name}  # Canvas takes a group's page once, for all of it
    return _packed((page, name) for name, page in by_name.items()), left_out


def _packed(pages: Iterable[tuple[Path, str]]) -> Iterator[bytes]:
    with tempfile.TemporaryFile() as packed:
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for page, name in pages:
                archive.writestr(zipfile.ZipInfo(name, _WRITTEN), page.read_bytes(), zipfile.ZIP_DEFLATED)
        packed.seek(0)
        yield from iter(lambda: packed.read(_PIECE), b"")


def _name(mark: Mark, assignment: str, platform: str) -> str:
    """The page's path in the zip; "" where the platform could not tell whose it is."""
    arrival = mark.arrival
    if platform == "moodle":
        number = mark.platform_id("moodle") or mark.number
        who = mark.name.removesuffix(f"_{number}").replace("_", " ").replace("/", " ")
        return f"{who}_{number}_assignsubmission_file_/{assignment}.html" if number else ""
    if arrival is None or arrival.origin != platform:
        return ""
    if platform == "canvas":
        handed_in = PurePosixPath(arrival.file).name
        return f"{notebook_stem(handed_in) or archive_stem(handed_in)}.html"
    return f"multi_feedback/{PurePosixPath(arrival.file).parent.name}/{assignment}.html"

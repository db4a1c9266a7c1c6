"""Parts of bundles for graders on other systems: the files of one assignment, and scripts from
templates.
"""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path

from autograder.basics.errors import KitError
from autograder.course import Assignment, Course

_SKIPPED = {"__pycache__", ".ipynb_checkpoints"}
# one time for every file, so that the same course gives the same bytes
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


def render_script(template: Path, **values: object) -> str:
    """A script, a workflow or a page from its template: `<< name >>` stands for a value, `<% … %>`
    for a statement.

    Shells and workflows have the usual braces themselves.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(template.parent),
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template.name).render(**values)


def archive_entry(name: str, mode: int) -> zipfile.ZipInfo:
    """A file of that name and mode in an archive: the same entry at any time."""
    entry = zipfile.ZipInfo(name, _LONG_AGO)
    entry.external_attr = (stat.S_IFREG | mode) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def course_files(course: Course, assignment: Assignment) -> Iterator[Path]:
    """The files of a course by which one assignment is graded elsewhere, but for its settings.

    Raises:
        KitError: one of them is not there.
    """
    for needed, command in (
        (assignment.release, "build"),
        (assignment.solution, "build"),
        (assignment.suite, "verify"),
    ):
        if not needed.exists():
            raise KitError(
                f"{needed} is not there: run `autograder {command} {assignment.name}` first"
            )
    settings = assignment.suite.parent / "pytest.ini"
    folders = [
        assignment.source.parent,
        assignment.release.parent,
        assignment.solution.parent,
        assignment.suite,
    ]
    if settings.is_file():
        yield settings
    for folder in folders:
        yield from files_below(folder)


def files_below(folder: Path) -> Iterator[Path]:
    """Regular files in a folder and below, without what Python and Jupyter put there."""
    for path in sorted(folder.rglob("*")):
        hidden = _SKIPPED.intersection(path.relative_to(folder).parts)
        if path.is_file() and not path.is_symlink() and not hidden and path.suffix != ".pyc":
            yield path

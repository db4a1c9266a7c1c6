"""Parts of bundles for other systems: an assignment's files, and scripts from templates."""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path

from autograder.basics.errors import KitError
from autograder.course import Assignment, Course

_SKIPPED = {"__pycache__", ".ipynb_checkpoints"}
# a constant time, so that equal files give equal bytes
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


def render_script(template: Path, **values: object) -> str:
    """Fill in the template of a script, a workflow or a page.

    `<< name >>` is a value and `<% … %>` a statement: shells and workflows use jinja's braces
    themselves.
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
    """The entry of a file in a zip archive: the same entry at any time."""
    entry = zipfile.ZipInfo(name, _LONG_AGO)
    entry.create_system = 3  # Unix, on any machine
    entry.external_attr = (stat.S_IFREG | mode) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def course_files(course: Course, assignment: Assignment) -> Iterator[Path]:
    """The files of a course that another machine needs to grade one assignment, but settings.

    Raises:
        KitError: one of these files is missing.
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
    """Regular files in a folder and below, without Python's and Jupyter's caches."""
    for path in sorted(folder.rglob("*")):
        hidden = _SKIPPED.intersection(path.relative_to(folder).parts)
        if (
            path.is_file()
            and not path.is_symlink()
            and not hidden
            and path.suffix != ".pyc"
        ):
            yield path

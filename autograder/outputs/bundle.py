"""Bundles for graders on other systems: the kit, the files of one assignment, and scripts from templates."""

from __future__ import annotations

import io
import json
import stat
import zipfile
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path

import autograder
from autograder.course import COURSE_FILE, Assignment, Course, settings_of_nobody
from autograder.errors import KitError
from autograder.together import Together

_DISTRIBUTION = "attention-kit"
_SKIPPED = {"__pycache__", ".ipynb_checkpoints"}
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # one time for every file, so that the same course gives the same bytes


def script(template: Path, **values: object) -> str:
    """A script, a workflow or a page from its template: `<< name >>` stands for a value, `<% … %>` for a statement.

    Shells and workflows have the usual braces themselves.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(template.parent),
        block_start_string="<%", block_end_string="%>",
        variable_start_string="<<", variable_end_string=">>",
        comment_start_string="<#", comment_end_string="#>",
        undefined=jinja2.StrictUndefined, trim_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    return environment.get_template(template.name).render(**values)


def write_course_and_kit(course: Course, assignment: Assignment, scripts: Mapping[str, str], to: Path) -> Path:
    """Write a zip with the kit and with what of the course one assignment is graded by, below these scripts.

    The kit and the course stay apart: workers may read the kit only. No other assignment's suite or answers are in it.

    Raises:
        KitError: a file is missing that the bundle needs.
    """
    package = Path(autograder.__file__).parent
    files = {f"kit/autograder/{path.relative_to(package).as_posix()}": path for path in files_below(package)}
    of_course = course_files(course, assignment)
    files |= {f"course/{path.relative_to(course.root).as_posix()}": path for path in of_course}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in scripts.items():
            archive.writestr(archive_entry(name, 0o755), text)
        for name in sorted(files):
            archive.writestr(archive_entry(name, 0o644), files[name].read_bytes())
        archive.writestr(archive_entry(f"course/{COURSE_FILE}", 0o644), settings_of_nobody(course))
        archive.writestr(archive_entry("kit/pyproject.toml", 0o644), kit_pyproject())
        archive.writestr(archive_entry("kit/README.md", 0o644), "The autograder, installed by setup.sh.\n")
    with Together(course.kept, f"`autograder bundle {assignment.name}`") as written:
        written.write(to, packed.getvalue())
    return to


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
            raise KitError(f"{needed} is not there: run `autograder {command} {assignment.name}` first")
    settings = assignment.suite.parent / "pytest.ini"
    folders = [assignment.source.parent, assignment.release.parent, assignment.solution.parent, assignment.suite]
    if settings.is_file():
        yield settings
    for folder in folders:
        yield from files_below(folder)


def kit_pyproject() -> str:
    """What the kit is installed by there: its own pyproject.toml, or for an installed copy, which has none, the same
    packages as here."""
    own = Path(autograder.__file__).parents[1] / "pyproject.toml"
    if own.is_file():
        return own.read_text(encoding="utf-8")
    kit = metadata.metadata(_DISTRIBUTION)
    needed = [line for line in metadata.requires(_DISTRIBUTION) or () if "extra ==" not in line]
    return script(
        Path(__file__).parent / "templates" / "kit_pyproject.toml",
        version=kit["Version"],
        python=kit["Requires-Python"],
        needed=[json.dumps(line) for line in needed],  # JSON's strings are TOML's
    )


def files_below(folder: Path) -> Iterator[Path]:
    """Regular files in a folder and below, without what Python and Jupyter put there."""
    for path in sorted(folder.rglob("*")):
        hidden = _SKIPPED.intersection(path.relative_to(folder).parts)
        if path.is_file() and not path.is_symlink() and not hidden and path.suffix != ".pyc":
            yield path

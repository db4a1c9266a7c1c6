"""Everything that a hosted grader needs, in one piece: a zip for Gradescope, a folder or a workflow for GitHub."""

from __future__ import annotations

import io
import json
import stat
import zipfile
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Literal

import autograder
from autograder.course import COURSE_FILE, NAME_OF_AN_ASSIGNMENT, Assignment, Course, settings_of_nobody
from autograder.errors import KitError
from autograder.intake.repositories import repository_prefix
from autograder.outputs.bundle_texts import (
    GITHUB_COURSE_WORKFLOW,
    GITHUB_README,
    GITHUB_WORKFLOW,
    RUN_AUTOGRADER,
    SETUP,
)
from autograder.together import Together
from autograder.whole_files import write_whole

Target = Literal["gradescope", "github", "github-course"]

_DISTRIBUTION = "attention-kit"
_PYPROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "attention-kit"
version = "{version}"
requires-python = "{python}"
dependencies = [
{needed}
]

[project.scripts]
autograder = "autograder.cli:main"

[tool.setuptools.packages.find]
include = ["autograder*"]

[tool.setuptools.package-data]
autograder = ["**/*"]
"""
_SKIPPED = {"__pycache__", ".ipynb_checkpoints"}
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # one time for every file, so that the same course gives the same bytes


def bundle(
    course: Course, assignment: Assignment, target: Target, to: Path, beside: Mapping[str, bytes] | None = None
) -> Path:
    """Make the bundle and return where it lies.

    Args:
        course: its settings go along.
        assignment: the one assignment that the bundle grades; no other's suite or answers are in it.
        target: "gradescope" makes the zip to upload as the autograder, "github" a folder that becomes the
            template of a classroom repository and holds nothing hidden, "github-course" a workflow for the course's
            own repository, which grades those of the students.
        to: the zip's path, or the folder: for the workflow, the course's own.
        beside: "github": files that students get beside the notebook, by name.

    Raises:
        KitError: something that the bundle needs is not there.
    """
    if not NAME_OF_AN_ASSIGNMENT.fullmatch(assignment.name):
        raise KitError(f"{assignment.name!r} cannot stand in a script: use letters, digits, _ and - only")
    if target == "gradescope":
        return _gradescope(course, assignment, to)
    if target == "github-course":
        return _github_course(assignment, to)
    return _github(course, assignment, to, beside or {})


def _gradescope(course: Course, assignment: Assignment, to: Path) -> Path:
    files = dict(_gradescope_files(course, assignment))
    scripts = {"setup.sh": SETUP, "run_autograder": RUN_AUTOGRADER.replace("ASSIGNMENT", assignment.name)}
    settings = settings_of_nobody(course)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in scripts.items():
            archive.writestr(archive_entry(name, 0o755), text)
        for name in sorted(files):
            archive.writestr(archive_entry(name, 0o644), files[name].read_bytes())
        archive.writestr(archive_entry(f"course/{COURSE_FILE}", 0o644), settings)
        archive.writestr(archive_entry("kit/pyproject.toml", 0o644), _pyproject())
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


def _gradescope_files(course: Course, assignment: Assignment) -> Iterator[tuple[str, Path]]:
    """Name in the archive, and the file. The kit and the course stay apart: workers may read the kit only."""
    package = Path(autograder.__file__).parent
    for path in files_below(package):
        yield f"kit/autograder/{path.relative_to(package).as_posix()}", path
    for path in course_files(course, assignment):
        yield f"course/{path.relative_to(course.root).as_posix()}", path


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


def _pyproject() -> str:
    """What the kit is installed by there: its own pyproject.toml, or for an installed copy, which has none, the same
    packages as here."""
    own = Path(autograder.__file__).parents[1] / "pyproject.toml"
    if own.is_file():
        return own.read_text(encoding="utf-8")
    kit = metadata.metadata(_DISTRIBUTION)
    needed = [line for line in metadata.requires(_DISTRIBUTION) or () if "extra ==" not in line]
    listed = "\n".join(f"    {json.dumps(line)}," for line in needed)  # JSON's strings are TOML's
    return _PYPROJECT.format(version=kit["Version"], python=kit["Requires-Python"], needed=listed)


def files_below(folder: Path) -> Iterator[Path]:
    """Regular files in a folder and below, without what Python and Jupyter put there."""
    for path in sorted(folder.rglob("*")):
        hidden = _SKIPPED.intersection(path.relative_to(folder).parts)
        if path.is_file() and not path.is_symlink() and not hidden and path.suffix != ".pyc":
            yield path


def _github(course: Course, assignment: Assignment, to: Path, beside: Mapping[str, bytes]) -> Path:
    release = assignment.release
    if not release.is_file():
        raise KitError(f"{release} is not there: run `autograder build {assignment.name}` first")
    shown = [release, *(p for part in ("figures", "data") for p in files_below(release.parent / part))]
    with Together(course.kept, f"`autograder bundle {assignment.name}`") as files:
        workflow = GITHUB_WORKFLOW.replace("ASSIGNMENT", assignment.name)
        files.write(to / ".github" / "workflows" / "classroom.yml", workflow)
        files.write(to / "GRADING.md", GITHUB_README.replace("ASSIGNMENT", assignment.name))
        for path in shown:
            files.write(to / path.relative_to(release.parent), path.read_bytes())
        for name, content in beside.items():
            files.write(to / name, content)
    return to


def _github_course(assignment: Assignment, to: Path) -> Path:
    text = GITHUB_COURSE_WORKFLOW.replace("ASSIGNMENT", assignment.name)
    path = to / ".github" / "workflows" / f"grade-{assignment.name}.yml"
    write_whole(path, text.replace("PREFIX-", repository_prefix(assignment.name).replace("_", "-")))
    return path

"""Pack a release for students: a folder, or a .zip file with the same bytes every time."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.authoring.build import build_assignment
from autograder.authoring.build_check import file_problems, leak_problems
from autograder.authoring.programs import student_programs
from autograder.authoring.single_file import make_single_file
from autograder.authoring.source_notebook import imported_libraries
from autograder.authoring.student_environment import environment_files
from autograder.basics.errors import KitError, StaleBuild
from autograder.basics.file_transaction import FileTransaction
from autograder.basics.whole_files import is_part
from autograder.course import Assignment, Course
from autograder.intake.handed_in_weights import weights_limit, weights_name
from autograder.intake.nicknames import NICKNAME_FILE, takes_nickname
from autograder.outputs.bundle import archive_entry
from autograder.student_tools.release_table import TABLE_SUFFIX

if TYPE_CHECKING:
    from autograder.suite.collection import SuiteQuestion

README = "README.md"
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>For students</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:auto;padding:1rem}}
pre{{overflow-x:auto}}table{{border-collapse:collapse;display:block;overflow-x:auto}}
td,th{{border:1px solid #8886;padding:.2rem .6rem;text-align:left}}</style></head>
<body>
{body}
</body></html>
"""

_VERSION = re.compile(r"(?m)^Release `([0-9a-f]{64})`\.?$")


def write_release(
    course: Course,
    assignment: Assignment,
    questions: Mapping[str, SuiteQuestion],
    to: Path,
    host: str = "",
) -> list[str]:
    """Write the release to `to`, a folder or a file ending in .zip; returns the file names in it.

    Args:
        host: one of `single_file.HOSTS`: then `to` is a single notebook, which carries all files.

    An untouched release of the same assignment at `to` is replaced; everything else stays.


    Raises:
        KitError: other files lie at `to`, or a release in which a student has worked.
        StaleBuild: the built files are not those of the source, or give something away.
    """
    to = to.resolve()
    built = build_assignment(course, assignment, questions)
    _assert_none(assignment, file_problems(assignment, built))
    files = {**dict(built.files), **student_programs(course, assignment)}
    # the table holds the notebook, which is searched for leaks cell by cell
    searched = tuple(
        (name, files[name]) for name in files if not name.endswith(TABLE_SUFFIX)
    )
    _assert_none(
        assignment,
        leak_problems(assignment, dataclasses.replace(built, files=searched)),
    )
    libraries = imported_libraries(built.release_bytes, built.companions)
    files |= environment_files(libraries) | _students_page(course)
    if host:
        return _write_single_file(
            course, assignment, built.release_bytes, files, to, host
        )
    files[f"{assignment.name}.ipynb"] = built.release_bytes
    files[README] = _readme(course, assignment, _version(files), libraries).encode()
    existing = _read_release(to, assignment.name)
    _assert_untouched(to, existing, assignment.name)
    with FileTransaction(
        course.kept, f"`autograder release {assignment.name}`"
    ) as written:
        if _is_zip(to):
            written.write(to, _zip(assignment.name, files))
        else:
            for name, content in files.items():
                written.write(to / name, content)
            for name in sorted(existing.keys() - files.keys()):
                written.remove(to / name)
    return sorted(files)


def _write_single_file(
    course: Course,
    assignment: Assignment,
    release: bytes,
    files: Mapping[str, bytes],
    to: Path,
    host: str,
) -> list[str]:
    """Write the one notebook.

    Raises:
        KitError: `to` is no name of a notebook, or is there already.
    """
    if to.suffix != ".ipynb":
        raise KitError(
            f"{to}: a release for {host} is one notebook: name a file ending in .ipynb"
        )
    content = make_single_file(release, files, host)
    if to.exists() and to.read_bytes() != content:
        raise KitError(
            f"{to} is there already: choose another place, or remove it first"
        )
    with FileTransaction(
        course.kept, f"`autograder release {assignment.name}`"
    ) as written:
        written.write(to, content)
    return [to.name]


def _students_page(course: Course) -> dict[str, bytes]:
    """The course's docs/students.md as a page, where it has one."""
    text = course.root / "docs" / "students.md"
    if not text.is_file():
        return {}
    from nbconvert.filters.markdown import markdown2html  # takes a second to import

    body = markdown2html(text.read_text(encoding="utf-8"))
    return {"students.html": _PAGE.format(body=body).encode()}


def _assert_none(assignment: Assignment, problems: list[str]) -> None:
    if problems:
        listed = "\n".join(f"  - {problem}" for problem in problems)
        raise StaleBuild(f"{assignment.name} is not ready to be released\n{listed}")


def _version(files: Mapping[str, bytes]) -> str:
    """Hash of a release without the README, which states the hash."""
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        if name != README:
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _readme(
    course: Course, assignment: Assignment, version: str, libraries: Sequence[str]
) -> str:
    name = assignment.name
    *first, last = libraries or [""]
    listed = f"{', '.join(first)} and {last}" if first else last
    beside = ""
    if weights := weights_limit(course, name):
        beside = (
            f" For the leaderboard hand in `{weights_name(name)}`\n  beside it,"
            f" at most {weights >> 20} MB, if you like."
        )
    if takes_nickname(course, assignment):
        beside += (
            f" What the leaderboard calls you\n  is the first line of `{NICKNAME_FILE}`, which you"
            " hand in beside it, if you like."
        )
    needed = f" with {listed}, and nothing else" if listed else ", and nothing else"
    return f"""# {course.about.name}: {name}

Open `{name}.ipynb` in JupyterLab (`jupyter lab {name}.ipynb`). It needs Python 3.11 or
later{needed}. `pip install -r requirements.txt` (or `conda env create -f environment.yml`) installs
that, in the versions with which it is graded.

- Write your answer where a cell says `raise NotImplementedError(...)`, and where it says *Your
  answer here.*
- Run the check below each answer. It is a first test; more tests run when your work is graded.
- Checks and given code are locked: what you change there is put back before grading.
  Cells of your own are welcome.
- Before you hand in, save, and run `python check.py {name}.ipynb`: it runs the notebook from
  top to bottom and says
  what is left to do.
- Hand in `{name}.ipynb`, under this name.{beside}

Release `{version}`
"""


def _assert_untouched(to: Path, existing: Mapping[str, bytes], name: str) -> None:
    if not existing:
        return
    stated = _VERSION.search(
        existing.get(README, b"").decode("utf-8", errors="replace")
    )
    if f"{name}.ipynb" not in existing or stated is None:
        raise KitError(
            f"{to} is there and is not a release of {name}: choose another place, or "
            "remove it first"
        )
    if stated[1] != _version(existing):
        raise KitError(
            f"{to} is a release of {name} in which somebody has worked: choose another place"
        )


def _is_zip(path: Path) -> bool:
    return path.suffix.lower() == ".zip"


def _read_release(to: Path, name: str) -> dict[str, bytes]:
    """The files in an earlier release at `to`, by name; {} if nothing lies there."""
    if not to.exists() and not to.is_symlink():
        return {}
    if not _is_zip(to):
        if not to.is_dir():
            raise KitError(
                f"{to} is a file: name a folder, or a file that ends in .zip"
            )
        paths = [
            path for path in to.rglob("*") if path.is_file() and not is_part(path.name)
        ]
        return {path.relative_to(to).as_posix(): path.read_bytes() for path in paths}
    try:
        with zipfile.ZipFile(to) as archive:
            return {
                info.filename.removeprefix(f"{name}/"): archive.read(info)
                for info in archive.infolist()
            }
    except (OSError, zipfile.BadZipFile) as error:
        raise KitError(
            f"{to} is there and is not a release of {name}: {error}"
        ) from error


def _zip(name: str, files: Mapping[str, bytes]) -> bytes:
    """Files are stored, not compressed: compressors differ from machine to machine."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for member, content in sorted(files.items()):
            entry = archive_entry(f"{name}/{member}", 0o644)
            archive.writestr(entry, content, zipfile.ZIP_STORED)
    return packed.getvalue()

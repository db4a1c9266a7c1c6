"""Pack what students get of one assignment: a folder, or a .zip with the same bytes every time."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from autograder.authoring.build import Asked, build_assignment
from autograder.authoring.build_check import file_problems, leak_problems
from autograder.authoring.check_names import names_of_checks
from autograder.authoring.programs import check_program, my_course_program
from autograder.authoring.source_notebook import imported_libraries
from autograder.basics.errors import KitError, StaleBuild
from autograder.basics.file_transaction import FileTransaction
from autograder.basics.whole_files import is_part
from autograder.course import Assignment, Course
from autograder.intake.released_notebook import load_release
from autograder.student_tools.release_table import TABLE_SUFFIX

README = "README.md"
CHECK, MAKE_MY_COURSE = "check.py", "make_my_course.py"
"""Programs that students get, made by `programs.py`."""
LIMITS = ("notebook_mb", "cell_seconds", "submission_seconds", "memory_mb", "file_mb")
"""The course's limits that `check.py` keeps to."""

_ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest that the format knows
_VERSION = re.compile(r"(?m)^Release `([0-9a-f]{64})`\.?$")


def release(
    course: Course, assignment: Assignment, asked: Mapping[str, Asked], to: Path
) -> list[str]:
    """Write the release to `to`, a folder or a file ending in .zip; returns the names of the files
    in it.

    A release of the same assignment that lies there untouched is replaced; anything else stays.

    Raises:
        KitError: something else is there, or a student's work in a release.
        StaleBuild: the built files are not those of the source, or give something away.
    """
    to = to.resolve()
    built = build_assignment(course, assignment, asked)
    _refuse(assignment, file_problems(assignment, built))
    beside = {**dict(built.files), **programs(course, assignment)}
    # the table holds the notebook itself, which is looked at cell by cell
    looked_at = tuple(
        (name, content) for name, content in beside.items() if not name.endswith(TABLE_SUFFIX)
    )
    _refuse(assignment, leak_problems(assignment, dataclasses.replace(built, files=looked_at)))
    files = {f"{assignment.name}.ipynb": built.release_bytes, **beside}
    files[README] = _readme(
        course, assignment, _version(files), imported_libraries(built.release_bytes)
    ).encode()
    _refuse_to_overwrite(to, assignment.name)
    if to.suffix.lower() == ".zip":
        packed = _zipped(assignment.name, files)
        with FileTransaction(course.kept, f"`autograder release {assignment.name}`") as written:
            written.write(to, packed)
    else:
        _write_folder(course, assignment, to, files)
    return sorted(files)


def _refuse(assignment: Assignment, problems: list[str]) -> None:
    if problems:
        listed = "\n".join(f"  - {problem}" for problem in problems)
        raise StaleBuild(f"{assignment.name} is not ready to be released\n{listed}")


def programs(course: Course, assignment: Assignment) -> dict[str, bytes]:
    """The programs that students get beside the built notebook, and the table that `check.py`
    reads, by name.

    The first assignment of a course has nothing before it that a student could go on with.
    """
    files = {
        CHECK: check_program(),
        f"{assignment.name}{TABLE_SUFFIX}": _table(course, assignment).encode(),
    }
    if assignment.name != course.assignments()[0].name:
        files[MAKE_MY_COURSE] = my_course_program()
    return files


def _table(course: Course, assignment: Assignment) -> str:
    """The notebook as it is given out, and what else `check.py` must know: nothing of the suite, no
    answer.
    """
    table = {
        "assignment": assignment.name,
        "limits": {name: getattr(course.limits, name) for name in LIMITS},
        "only_in_checks": names_of_checks(load_release(assignment)),
        "release": json.loads(assignment.release.read_bytes()),
    }
    return json.dumps(table, indent=1) + "\n"


def _version(files: Mapping[str, bytes]) -> str:
    """Hash of everything in a release but its README, which states it."""
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        if name != README:
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _readme(course: Course, assignment: Assignment, version: str, libraries: Sequence[str]) -> str:
    name = assignment.name
    listed = " and ".join(filter(None, (", ".join(libraries[:-1]), *libraries[-1:])))
    needed = f" with {listed}, and nothing else" if listed else ", and nothing else"
    return f"""# {course.about.name}: {name}

Open `{name}.ipynb` in JupyterLab (`jupyter lab {name}.ipynb`). It needs Python 3.11 or
later{needed}.

- Write your answer where a cell says `raise NotImplementedError(...)`, and where it says *Your
  answer here.*
- Run the check below each answer. It is a first test; more tests run when your work is graded.
- Checks and given code are locked: what you change there is put back before grading.
  Cells of your own are welcome.
- Before you hand in, save, and run `python check.py {name}.ipynb`: it runs the notebook from
  top to bottom and says
  what is left to do.
- Hand in `{name}.ipynb`, under this name.

Release `{version}`
"""


def _refuse_to_overwrite(to: Path, name: str) -> None:
    there = _lying(to, name)
    if not there:
        return
    stated = _VERSION.search(there.get(README, b"").decode("utf-8", errors="replace"))
    if f"{name}.ipynb" not in there or stated is None:
        raise KitError(
            f"{to} is there and is not a release of {name}: choose another place, or "
            "remove it first"
        )
    if stated[1] != _version(there):
        raise KitError(
            f"{to} is a release of {name} in which somebody has worked: choose another place"
        )


def _lying(to: Path, name: str) -> dict[str, bytes]:
    """The files that lie at `to`, by name; {} where nothing does."""
    if not to.exists() and not to.is_symlink():
        return {}
    if to.suffix.lower() != ".zip":
        if not to.is_dir():
            raise KitError(f"{to} is a file: name a folder, or a file that ends in .zip")
        files = [path for path in to.rglob("*") if path.is_file()]
        return {
            path.relative_to(to).as_posix(): path.read_bytes()
            for path in files
            if not is_part(path.name)
        }
    try:
        with zipfile.ZipFile(to) as archive:
            return {
                info.filename.removeprefix(f"{name}/"): archive.read(info)
                for info in archive.infolist()
            }
    except (OSError, zipfile.BadZipFile) as error:
        raise KitError(f"{to} is there and is not a release of {name}: {error}") from error


def _zipped(name: str, files: Mapping[str, bytes]) -> bytes:
    """Members are stored, not compressed: compressors differ from machine to machine."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for member, content in sorted(files.items()):
            info = zipfile.ZipInfo(f"{name}/{member}", _ZIP_TIME)
            info.create_system = 3  # Unix, wherever it is made
            info.external_attr = 0o100644 << 16
            archive.writestr(info, content)
    return packed.getvalue()


def _write_folder(
    course: Course, assignment: Assignment, to: Path, files: Mapping[str, bytes]
) -> None:
    with FileTransaction(course.kept, f"`autograder release {assignment.name}`") as written:
        for member, content in files.items():
            written.write(to / member, content)
        for member in sorted(_lying(to, assignment.name).keys() - files.keys()):
            written.remove(to / member)

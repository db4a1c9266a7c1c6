"""Write a new course (`autograder init`), with the assignments of an installed package where one is
named, or a new assignment that works (`autograder new`).
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

from autograder.basics.errors import KitError
from autograder.basics.file_transaction import FileTransaction
from autograder.basics.whole_files import Content
from autograder.course import ASSIGNMENT_NAME, COURSE_FILE, Assignment, Course
from autograder.course.folders import GRADEBOOK, LEDGER_FILE, Folder

_TEMPLATES = Path(__file__).with_name("templates")
_NEVER_COMMITTED = (
    f"/{GRADEBOOK}",
    f"/{GRADEBOOK}-journal",
    "/*.csv",
    "/*.zip",
    f"/{LEDGER_FILE}",
    "/.venv/",
    ".ipynb_checkpoints/",
)
"""Files of a course outside its folders with names, marks and answer keys."""


def new_course(root: Path, archive: Path | None = None) -> list[str]:
    """Write a course into a folder, and name it after the folder.

    Args:
        archive: sources and suites of assignments; None for a course without assignments.

    Raises:
        KitError: one of the files exists already; nothing is written then.
    """
    name = json.dumps(root.resolve().name, ensure_ascii=False)[
        1:-1
    ]  # JSON's escapes are TOML's
    course, suites = Course(root), Folder.TESTS.path
    contents: dict[Path, Content] = {
        root / COURSE_FILE: _template("course/course.toml").replace("COURSE", name),
        root / "README.md": _template("course/README.md").replace(
            "COURSE", root.resolve().name
        ),
        root / "nbgrader_config.py": _template("course/nbgrader_config.py"),
        root / ".gitignore": _gitignore(),
        course.suites / "pytest.ini": _template("course/pytest.ini"),
    }
    if archive is not None:
        with zipfile.ZipFile(archive) as files:
            contents |= {root / path: files.read(path) for path in files.namelist()}
    _write(course, "`autograder init`", contents, course.sources)
    next_command = "autograder new my_topic" if archive is None else "autograder build"
    return [
        f"a new course in {root}: settings in {COURSE_FILE}, suites in {suites}/hidden/",
        f"next, in that folder: `{next_command}`",
    ]


def new_assignment(course: Course, name: str) -> list[str]:
    """Write an assignment of one question: source, suite, a mistake with its cost, two alternates.

    Raises:
        KitError: the name cannot be an assignment's, or is taken.
    """
    if not ASSIGNMENT_NAME.fullmatch(name):
        raise KitError(
            f"an assignment cannot be called {name!r}: use letters, digits, _, - and . only"
        )
    assignment = Assignment(name, course.root)
    source = _template("assignment/source.py").replace("ASSIGNMENT", name)
    texts: dict[Path, Content] = {assignment.source.with_suffix(".py"): source}
    files = (
        "test_centered.py",
        "mistakes.py",
        "alternates.py",
        "contracts.py",
        "costs.toml",
    )
    for file in files:
        texts[assignment.suite / file] = _template(f"assignment/{file}")
    for folder in (assignment.source.parent, assignment.suite):
        if folder.exists():
            raise KitError(
                f"{folder} is there already: take another name, or remove it"
            )
    if not (settings := course.suites / "pytest.ini").exists():
        texts[settings] = _template("course/pytest.ini")
    _write(course, f"`autograder new {name}`", texts)
    return [
        *(f"wrote {path.relative_to(course.root)}" for path in texts),
        f"next: `autograder build {name}` and `autograder verify {name}`; the kit's "
        "docs/authoring.md has ten steps",
    ]


def _template(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _gitignore() -> str:
    folders = [f"/{folder.path}/" for folder in Folder if folder.working]
    comment = "# working data: made by the tools, never committed"
    return "\n".join((comment, *folders, *_NEVER_COMMITTED, ""))


def _write(
    course: Course, command: str, contents: Mapping[Path, Content], *folders: Path
) -> None:
    for path in contents:
        if path.exists():
            raise KitError(
                f"{path} is there already, and nothing was written: take another folder, or "
                "move it away"
            )
    with FileTransaction(course.kept, command) as files:
        for path, content in contents.items():
            files.write(path, content)
        for folder in folders:
            files.make_folder(folder)

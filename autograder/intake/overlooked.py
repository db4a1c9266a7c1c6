"""What lies among the submissions, looks like one, and is not where submissions are looked for:
nothing is skipped without a word.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from autograder.basics.handed_in import printable_name
from autograder.course import Assignment, Course
from autograder.ledger.ledger_file import COLLECTED
from autograder.records.model import FoundSubmission

DEEPEST = 8
MOST_ENTRIES = 50_000
"""Files and folders looked at below one path: a class of a thousand with fifty files each."""

_OF_TOOLS = re.compile(
    rf"\.ipynb_checkpoints|__MACOSX|__pycache__|\.git|{re.escape(COLLECTED)}|\.collecting-.*"
)
_LIKE_A_NOTEBOOK = re.compile(r"\.ipynb", re.IGNORECASE)
PREVIOUS = "previous"
"""The folder into which `collect` puts aside what it replaces."""


def find_overlooked(
    course: Course, assignment: Assignment, paths: Sequence[Path], found: Sequence[FoundSubmission]
) -> list[str]:
    """One line for each: what lies where, and why it was not taken as a submission.

    Other assignments' notebooks, and what lies beside or below a notebook that was found, are none.
    """
    asked = [Path(path).absolute() for path in paths] or [course.submitted]
    others = {other.name for other in course.assignments()} - {assignment.name}
    taken = {one.path for one in found}
    settled = {
        path.parent
        for path in taken
        if path.parent.name == assignment.name and os.path.lexists(path)
    }
    below = (
        _below(folder, assignment.name, others, settled, taken)
        for folder in asked
        if folder.is_dir()
    )
    return list(dict.fromkeys(itertools.chain.from_iterable(below)))


def _below(
    folder: Path, assignment: str, others: set[str], settled: set[Path], taken: set[Path]
) -> Iterator[str]:
    closed: list[str] = []
    seen = 0
    for here, folders, files in os.walk(
        folder, onerror=lambda error: closed.append(str(error.filename))
    ):
        at = Path(here)
        depth = len(at.relative_to(folder).parts)
        wanted = [name for name in folders if _is_searched(name, at, assignment, others)]
        folders[:] = [] if at in settled or depth >= DEEPEST else sorted(wanted)
        seen += len(files) + len(folders)
        if seen > MOST_ENTRIES:
            yield (
                f"{printable_name(folder)}: holds more than {MOST_ENTRIES} files; what lies "
                "beyond was "
                "not looked at"
            )
            return
        for name in sorted(files if at not in settled else ()):
            path = at / name
            if path not in taken and (reason := _why(path, depth, assignment)):
                yield f"{_place(path, folder)}: {reason}"
    for name in closed:
        yield f"{_place(Path(name), folder)}: the folder cannot be opened; change its permissions"


def _is_searched(name: str, parent: Path, assignment: str, others: set[str]) -> bool:
    return not (
        _OF_TOOLS.fullmatch(name)
        or name in others
        or (name == PREVIOUS and parent.name == assignment)
    )


def _why(path: Path, depth: int, assignment: str) -> str:
    """Why the file was not taken as a submission; "" where it does not look like one."""
    if depth == 0 and path.is_symlink() and not path.exists():
        return "a link that leads nowhere"
    if not _LIKE_A_NOTEBOOK.search(path.name) or path.name.startswith("._"):
        return ""
    if not path.name.endswith(".ipynb"):
        return "its name does not end in .ipynb; rename it, or let `autograder collect` take it in"
    return (
        f"it lies neither in <student>/{assignment}/ nor directly in the folder that is graded; "
        "move it there, or name "
        "the folder that it lies in"
    )


def _place(path: Path, folder: Path) -> str:
    return printable_name(path.relative_to(folder.parent) if path.is_relative_to(folder) else path)

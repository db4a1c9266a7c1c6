"""Files that look like submissions and lie where submissions are not searched: no file is skipped
without a message.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.basics.handed_in import printable_name
from autograder.course import Assignment, Course
from autograder.ledger.ledger_file import COLLECTED
from autograder.records.submission import FoundSubmission

DEEPEST = 8
MOST_ENTRIES = 50_000
"""Files and folders visited below one path: a class of a thousand with fifty files each."""

_TOOL_FOLDERS = re.compile(
    rf"\.ipynb_checkpoints|__MACOSX|__pycache__|\.git|{re.escape(COLLECTED)}|\.collecting-.*"
)
_LIKE_A_NOTEBOOK = re.compile(r"\.ipynb", re.IGNORECASE)
PREVIOUS = "previous"
"""The folder to which `collect` moves the files that it replaces."""


def find_overlooked(
    course: Course,
    assignment: Assignment,
    paths: Sequence[Path],
    found: Sequence[FoundSubmission],
) -> list[str]:
    """A message for each overlooked file: where it lies, and why it is not graded.

    Other assignments' notebooks are not overlooked, and neither are files beside or below a
    notebook that was found.
    """
    other_assignments = {entry.name for entry in course.assignments()} - {
        assignment.name
    }
    notebooks = {submission.path for submission in found}
    student_folders = {
        path.parent
        for path in notebooks
        if path.parent.name == assignment.name and os.path.lexists(path)
    }
    walk = _Walk(
        assignment.name,
        other_assignments,
        notebooks,
        student_folders,
    )
    messages: dict[str, None] = {}
    for folder in [Path(path).absolute() for path in paths] or [course.submitted]:
        if folder.is_dir():
            messages |= dict.fromkeys(walk.search(folder))
    return list(messages)


@dataclass(frozen=True)
class _Walk:
    """A walk through folders of submissions, past the notebooks that were found."""

    assignment: str
    other_assignments: set[str]
    notebooks: set[Path]
    student_folders: set[Path]

    def search(self, top: Path) -> Iterator[str]:
        closed: list[OSError] = []
        entries = 0
        for root, folders, files in os.walk(top, onerror=closed.append):
            parent = Path(root)
            depth = len(parent.relative_to(top).parts)
            is_student_folder = parent in self.student_folders
            searched = [name for name in folders if self._is_searched(name, parent)]
            folders[:] = (
                [] if is_student_folder or depth >= DEEPEST else sorted(searched)
            )
            entries += len(files) + len(folders)
            if entries > MOST_ENTRIES:
                yield (
                    f"{printable_name(top)}: holds more than {MOST_ENTRIES} files; what lies "
                    "beyond was not looked at"
                )
                return
            for name in [] if is_student_folder else sorted(files):
                path = parent / name
                reason = self._explain(path, depth)
                if reason and path not in self.notebooks:
                    yield f"{_place(path, top)}: {reason}"
        for error in closed:
            place = _place(Path(error.filename), top)
            yield f"{place}: the folder cannot be opened; change its permissions"

    def _is_searched(self, name: str, parent: Path) -> bool:
        if _TOOL_FOLDERS.fullmatch(name) or name in self.other_assignments:
            return False
        return name != PREVIOUS or parent.name != self.assignment

    def _explain(self, path: Path, depth: int) -> str:
        """Why a file is not graded; "" where the file does not look like a submission."""
        name = path.name
        if depth == 0 and not path.exists():
            return "a link that leads nowhere"
        if not _LIKE_A_NOTEBOOK.search(name) or name.startswith("._"):
            return ""
        if not name.endswith(".ipynb"):
            return (
                "its name does not end in .ipynb; rename it, or let `autograder collect` "
                "take it in"
            )
        return (
            f"it lies neither in <student>/{self.assignment}/ nor directly in the folder that is "
            "graded; move it there, or name the folder that it lies in"
        )


def _place(path: Path, top: Path) -> str:
    return printable_name(
        path.relative_to(top.parent) if path.is_relative_to(top) else path
    )

"""The folders of a course: their names, whether student code may see them, whether they are
committed.

The walls too ask this module, so that a new folder cannot be forgotten.
"""

from __future__ import annotations

from enum import Enum


class Folder(Enum):
    """A folder right below the course's own.

    Attributes:
        path: the name.
        hidden: whether no worker may see the folder.
        working: whether the tools make the folder; it is never committed then.
    """

    SOURCE = ("source", True, False)
    RELEASES = ("assignments", False, False)
    SOLUTIONS = ("solutions", True, False)
    TESTS = ("tests", True, False)
    SUBMITTED = ("submitted", True, True)
    RESULTS = ("results", True, True)
    AUTOGRADED = ("autograded", True, True)
    FEEDBACK = ("feedback", True, True)
    # locks, and the answers of known mistakes
    KEPT = (".autograder", True, True)
    BUILD = ("build", True, True)  # nbgrader's sources
    EXCHANGE = (
        "exchange",
        False,
        True,
    )  # nbgrader's, which every student's account reads
    GIT = (".git", True, False)

    def __init__(self, path: str, hidden: bool, working: bool) -> None:
        self.path = path
        self.hidden = hidden
        self.working = working


GRADEBOOK = "gradebook.db"
LEDGER_FILE = "ledger.json"
BUCKET_ADVICE = (
    "a bucket is mounted, or copied before and after: docs/instructors.md, Keep the "
    "class in a bucket"
)
"""Advice to people with an object store: the kit uses folders of this machine only."""

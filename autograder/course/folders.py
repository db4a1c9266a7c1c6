"""The folders of a course: what each is called, whether student code may see it, whether it is
committed.

All that goes by these, the walls too, asks here, so that a new folder cannot be forgotten.
"""

from __future__ import annotations

from enum import Enum


class Folder(Enum):
    """A folder right below the course's own.

    Attributes:
        path: its name.
        hidden: no worker may see it.
        working: the tools make it, and it is never committed.
    """

    SOURCE = ("source", True, False)
    RELEASES = ("assignments", False, False)
    SOLUTIONS = ("solutions", True, False)
    TESTS = ("tests", True, False)
    SUBMITTED = ("submitted", True, True)
    RESULTS = ("results", True, True)
    AUTOGRADED = ("autograded", True, True)
    FEEDBACK = ("feedback", True, True)
    # what the kit remembers: locks, what known mistakes answered
    KEPT = (".autograder", True, True)
    BUILD = ("build", True, True)  # nbgrader's sources
    EXCHANGE = ("exchange", False, True)  # nbgrader's, which every student's account reads
    GIT = (".git", True, False)

    def __init__(self, path: str, hidden: bool, working: bool) -> None:
        self.path = path
        self.hidden = hidden
        self.working = working


GRADEBOOK = "gradebook.db"
LEDGER_FILE = "ledger.json"
HOW_WITH_A_BUCKET = (
    "a bucket is mounted, or copied before and after: docs/instructors.md, Keep the "
    "class in a bucket"
)
"""What to do with submissions and results in an object store: the kit reads and writes folders of
this machine only.
"""

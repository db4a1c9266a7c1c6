"""`nbgrader release_feedback` for classes in which only some students use nbgrader's exchange."""

from __future__ import annotations

import glob
from pathlib import Path

from nbgrader.exchange.default import ExchangeReleaseFeedback

from autograder.marks.late_policy import TIMESTAMP_FILE

RECEIPTS = (TIMESTAMP_FILE, "submission_secret.txt")
"""Files that `nbgrader submit` writes beside a notebook. A student's nbgrader finds the feedback
page by the secret.
"""


class ReturnFeedback(ExchangeReleaseFeedback):  # type: ignore[misc]
    """Returns the pages of notebooks from the exchange, and names the students of other pages.

    nbgrader's own class ends in a traceback at the first page of another notebook.
    """

    def copy_files(self) -> None:
        assignment = self.coursedir.assignment_id
        pages = glob.glob(f"{self.src_path}/*.html")  # noqa: PTH207 - an absolute pattern, "*" for all students
        folders = {Path(page).parent for page in pages}
        if not folders:
            self.fail(
                f"no page at {self.src_path}; `nbgrader generate_feedback {assignment}` writes them"
            )
        elsewhere = set()
        for folder in folders:
            if not all((folder / name).is_file() for name in RECEIPTS):
                elsewhere.add(folder)
        names = sorted(folder.parent.name for folder in elsewhere)
        for name in names:
            self.log.error(
                "%s: not released, since the notebook did not come through nbgrader's exchange; "
                "`autograder export %s --format canvas-feedback` (or moodle-, ilias-) makes a "
                "zip of all pages",
                name,
                assignment,
            )
        if elsewhere == folders:
            self.fail(f"{assignment}: no feedback was released")
        excluded = self.coursedir.student_id_exclude
        self.coursedir.student_id_exclude = ",".join(
            [*filter(None, [excluded]), *names]
        )
        super().copy_files()

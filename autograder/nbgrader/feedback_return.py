"""`nbgrader release_feedback`: names those whose pages cannot go back through the exchange, and
returns the others'.
"""

from __future__ import annotations

import glob
from pathlib import Path

from nbgrader.exchange.default import ExchangeReleaseFeedback

from autograder.marks.late_policy import TIMESTAMP_FILE

RECEIPTS = (TIMESTAMP_FILE, "submission_secret.txt")
"""What `nbgrader submit` writes beside a notebook. A student's nbgrader finds the page by the
secret.
"""


class ReturnFeedback(ExchangeReleaseFeedback):  # type: ignore[misc]
    """nbgrader's own ends in a traceback at the first page whose notebook did not come through the
    exchange.
    """

    def copy_files(self) -> None:
        assignment = self.coursedir.assignment_id
        pages = glob.glob(f"{self.src_path}/*.html")  # noqa: PTH207 - an absolute pattern, "*" for all students
        folders = {Path(page).parent for page in pages}
        if not folders:
            self.fail(
                f"no page at {self.src_path}; `nbgrader generate_feedback {assignment}` writes them"
            )
        elsewhere = {
            folder for folder in folders if not all((folder / name).is_file() for name in RECEIPTS)
        }
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
        self.coursedir.student_id_exclude = ",".join([*filter(None, [excluded]), *names])
        super().copy_files()

"""`nbgrader export` as a CSV file that is safe to open in a spreadsheet."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from nbgrader.api import Assignment, Gradebook, SubmittedAssignment
from nbgrader.plugins import ExportPlugin

from autograder.basics.points import format_points
from autograder.course import find_course
from autograder.nbgrader.late_penalty import refresh_penalties, scored_notebooks
from autograder.outputs.export import safe_cell

COLUMNS = (
    "assignment",
    "duedate",
    "timestamp",
    "student_id",
    "last_name",
    "first_name",
    "email",
    "raw_score",
    "late_submission_penalty",
    "score",
    "max_score",
    "needs_manual_grade",
)
"""nbgrader's own columns, and whether a mark waits for a person."""


class SafeCsvExport(ExportPlugin):  # type: ignore[misc]
    """nbgrader's CSV columns, quoted, with current late penalties and without formulas."""

    def export(self, gradebook: Gradebook) -> None:
        refresh_penalties(gradebook.db, find_course(Path(self.parent.coursedir.root)))
        gradebook.db.commit()
        target = Path(self.to or "grades.csv")
        with target.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            for row in self._rows(gradebook):
                writer.writerow(map(plain, row))
        self.log.info("Exported grades to %s", target)

    def _rows(self, gradebook: Gradebook) -> Iterator[tuple[Any, ...]]:
        assignments = set(map(str, self.assignment))
        students = set(map(str, self.student))
        for assignment in gradebook.assignments:
            if assignments and assignment.name not in assignments:
                continue
            submissions = _sum_submissions(gradebook, assignment)
            for student in gradebook.students:
                if students and student.id not in students:
                    continue
                submission = submissions.get(student.id, _Submission())
                yield (
                    assignment.name,
                    assignment.duedate,
                    submission.timestamp,
                    student.id,
                    student.last_name,
                    student.first_name,
                    student.email,
                    submission.score,
                    submission.penalty,
                    max(0.0, submission.score - submission.penalty),
                    assignment.max_score,
                    "yes" if submission.waits else "no",
                )


def plain(value: Any) -> str:
    """A value as text that no spreadsheet evaluates."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return format_points(value, digits=6)
    return "" if value is None else safe_cell(str(value))


@dataclass
class _Submission:
    """Sums over the notebooks of one submission."""

    timestamp: datetime | None = None
    score: float = 0.0
    penalty: float = 0.0
    waits: bool = False


def _sum_submissions(
    gradebook: Gradebook,
    assignment: Assignment,
) -> dict[str, _Submission]:
    """The submissions of an assignment by student, by one query for the class."""
    submissions: dict[str, _Submission] = {}
    of_assignment = SubmittedAssignment.assignment_id == assignment.id
    for row in scored_notebooks(gradebook.db, of_assignment):
        submission = submissions.setdefault(row.student_id, _Submission(row.timestamp))
        submission.score += row.score
        submission.penalty += row.penalty or 0.0
        submission.waits |= bool(row.waiting)
    return submissions

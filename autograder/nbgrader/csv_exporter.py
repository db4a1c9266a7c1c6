"""`nbgrader export` as a CSV file that is safe to open in a spreadsheet."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nbgrader.api import Assignment, Gradebook, Student, SubmittedAssignment
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
            writer.writerows([plain(value) for value in row] for row in self._rows(gradebook))
        self.log.info("Exported grades to %s", target)

    def _rows(self, gradebook: Gradebook) -> Iterator[tuple[Any, ...]]:
        assignments, students = {str(a) for a in self.assignment}, {str(s) for s in self.student}
        for assignment in gradebook.assignments:
            if assignments and assignment.name not in assignments:
                continue
            handed_in = _submissions(gradebook, assignment)
            for student in gradebook.students:
                if students and student.id not in students:
                    continue
                yield _row(assignment, student, handed_in.get(student.id, ("", 0.0, 0.0, False)))


def plain(value: Any) -> str:
    """A value as text that no spreadsheet evaluates."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return format_points(value, digits=6)
    return "" if value is None else safe_cell(str(value))


def _row(
    assignment: Assignment, student: Student, handed_in: tuple[Any, float, float, bool]
) -> tuple[Any, ...]:
    timestamp, raw, penalty, waits = handed_in
    return (
        assignment.name,
        assignment.duedate,
        timestamp,
        student.id,
        student.last_name,
        student.first_name,
        student.email,
        raw,
        penalty,
        max(0.0, raw - penalty),
        assignment.max_score,
        "yes" if waits else "no",
    )


def _submissions(
    gradebook: Gradebook, assignment: Assignment
) -> dict[str, tuple[Any, float, float, bool]]:
    """Student → (timestamp, score, penalty, waits for a person), by one query for the class."""
    handed_in: dict[str, tuple[Any, float, float, bool]] = {}
    of_assignment = SubmittedAssignment.assignment_id == assignment.id
    for row in scored_notebooks(gradebook.db, of_assignment):
        _, raw, penalty, waits = handed_in.get(row.student_id, ("", 0.0, 0.0, False))
        handed_in[row.student_id] = (
            row.timestamp,
            raw + row.score,
            penalty + (row.penalty or 0.0),
            waits or bool(row.waiting),
        )
    return handed_in

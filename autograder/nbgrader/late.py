"""What handing in late costs, as `[late]` in course.toml says."""

from __future__ import annotations

from nbgrader.api import Assignment, Gradebook, SubmittedAssignment, SubmittedNotebook
from sqlalchemy import or_, select

from autograder.course import Late
from autograder.outputs.late import apply_late
from autograder.points import total


def late_penalty(late: Late, score: float, max_score: float, seconds_late: float) -> float:
    """Points taken off by the course's policy, never more than the score."""
    return total((score, -apply_late(score, max_score, seconds_late / 60, late)))


def refresh_penalty(notebook: SubmittedNotebook, late: Late) -> None:
    """Bring a stored penalty up to date: the due date, an extension or a manual score may have changed since."""
    penalty = late_penalty(late, notebook.score, notebook.max_score, notebook.assignment.total_seconds_late)
    if (notebook.late_submission_penalty or 0.0) != penalty:
        notebook.late_submission_penalty = penalty or None


def refresh_all_penalties(gradebook: Gradebook, late: Late) -> None:
    """Bring the penalties of every late submission up to date, in one transaction."""
    late_ones = (
        select(SubmittedNotebook)
        .join(SubmittedAssignment, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .join(Assignment, SubmittedAssignment.assignment_id == Assignment.id)
        .where(
            or_(
                SubmittedNotebook.late_submission_penalty.is_not(None),
                SubmittedAssignment.timestamp > Assignment.duedate,  # an extension makes fewer late, and no more
            )
        )
    )
    for notebook in gradebook.db.scalars(late_ones):
        refresh_penalty(notebook, late)
    gradebook.db.commit()

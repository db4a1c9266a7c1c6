"""What handing in late costs, from the submission's own time: a regrade next year gives the same score."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path

from autograder.course import Late
from autograder.errors import UnreadableSubmission
from autograder.handed_in import MAX_TIMESTAMP, read_handed_in

TIMESTAMP_FILE = "timestamp.txt"
"""nbgrader's note of when a submission arrived, beside the notebook."""

_MINUTES_A_DAY = 24 * 60


def apply_late(score: float, max_score: float, minutes_late: float, late: Late) -> float:
    """The score after the course's late policy.

    Args:
        score: points before it.
        max_score: points that there are; "per_day" takes its share of these.
        minutes_late: from the due time to the submission's own time; 0 or less is in time.
        late: the policy. Within the grace nothing is lost; days are counted from the end of the grace.

    Returns:
        Never below 0 and never above `score`.
    """
    beyond = minutes_late - late.grace_minutes
    if late.policy == "none" or beyond <= 0:
        return score
    if late.policy == "zero":
        return 0.0
    days = math.ceil(beyond / _MINUTES_A_DAY)
    return max(0.0, round(score - days * late.penalty_per_day * max_score, 6))


def minutes_late(submitted: datetime, due: datetime) -> float:
    """Minutes from `due` to `submitted`, 0 where it came in time.

    Raises:
        ValueError: one of the two has no time zone, so that the difference would depend on the machine.
    """
    if submitted.tzinfo is None or due.tzinfo is None:
        raise ValueError("a time without a time zone cannot decide what is late")
    return max(0.0, (submitted - due).total_seconds() / 60)


def submitted_at(submission_folder: Path) -> datetime | None:
    """When the submission in this folder arrived, by its timestamp file; None where there is none.

    Raises:
        ValueError: the file holds no time.
    """
    path = submission_folder / TIMESTAMP_FILE
    if not path.exists():
        return None
    try:
        note = read_handed_in(path, MAX_TIMESTAMP)
    except UnreadableSubmission as problem:
        raise ValueError(str(problem)) from None
    text = note.decode("utf-8").strip().removesuffix("UTC").strip()
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

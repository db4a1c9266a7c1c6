"""What is asked of a run of `autograder grade`, and what it says came of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from autograder.course import Assignment, Course
from autograder.model import Scored
from autograder.results import Timed


@dataclass(frozen=True, slots=True)
class GradeRequest:
    """What was asked for on the command line."""

    course: Course
    assignment: Assignment
    paths: tuple[Path, ...] = ()
    results: Path = Path("results")
    workers: int | None = None
    isolation: str = "auto"
    force: bool = False
    device: str = "cpu"


@dataclass(frozen=True, slots=True)
class GradeSummary:
    """What came of it: every submission found that has a result, and those that have none of this run or before.

    Attributes:
        results, problems: by student. The results themselves lie on disk.
        graded: how many results are this run's.
    """

    results: tuple[Scored, ...]
    problems: tuple[Scored, ...]
    graded: int
    seconds: float
    speeds: tuple[Timed, ...] = ()
    """Those of submissions that were graded on a device, and whose function the suite times."""
    overlooked: tuple[str, ...] = ()
    """What lies among the submissions and was not taken for one, and why."""

"""What is asked of a run of `autograder grade`, and what it says came of it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from autograder.course import Assignment, Course
from autograder.model import FoundSubmission, Graded, Result


class Elsewhere(Protocol):
    """Where a class is graded, if it is not by processes of this machine."""

    @property
    def refused(self) -> Mapping[str, str]:
        """Machine → why it graded nothing."""

    def grade(
        self,
        course: Course,
        assignment: Assignment,
        submissions: Sequence[FoundSubmission],
        isolation: str,
        warn: Callable[[str], None],
    ) -> Generator[tuple[Graded, bytes], None, None]:
        """As `grade_batch`."""


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
    elsewhere: Elsewhere | None = None


@dataclass(frozen=True, slots=True)
class GradeSummary:
    """What came of it: every submission found that has a result, and those that have none of this run or before.

    Attributes:
        results, problems: by student. Of the results only the headlines: all of each lies on disk.
        graded: how many results are this run's.
    """

    results: tuple[Result, ...]
    problems: tuple[Graded, ...]
    graded: int
    seconds: float
    speeds: tuple[Graded, ...] = ()
    """Those of submissions that were graded on a device, and whose function the suite times."""
    overlooked: tuple[str, ...] = ()
    """What lies among the submissions and was not taken for one, and why."""
    refused: tuple[str, ...] = ()
    """Machines that graded nothing, and why."""

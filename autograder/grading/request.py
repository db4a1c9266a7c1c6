"""What is asked of a run of `autograder grade`, who is told meanwhile, and what the run came to."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, TextIO

from autograder.course import Assignment, Course
from autograder.grading.share import Share
from autograder.records.model import FoundSubmission, Graded, Result


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
    share: Share | None = None


@dataclass(frozen=True, slots=True)
class GradeSummary:
    """What came of it: every submission found that has a result, and those that have none of this
    run or before.

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


class Watcher:
    """Takes warnings alone; a context manager around the submissions that are graded.

    Args:
        stream: where warnings are written; None for nowhere.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream

    def begin(self, assignment: str, total: int) -> None:
        """So many submissions will be graded."""

    def step(self, graded: Graded) -> None:
        """One of them has been."""

    def warn(self, line: str) -> None:
        """Something that must not be missed."""
        if self._stream is not None:
            print(f"autograder: {line}", file=self._stream)

    def __enter__(self) -> Watcher:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """No further one will be, however that came."""


class Progress(Watcher):
    """A person in front of a terminal, who sees a bar; where it is none, one line at the
    beginning.
    """

    _stream: TextIO

    def begin(self, assignment: str, total: int) -> None:
        """Show the bar, or say it in words."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        shown = self._stream.isatty()
        if not shown:
            what = "submission" if total == 1 else "submissions"
            print(f"grading {total} {what} of {assignment}", file=self._stream)
        columns = (TextColumn("grading"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        who = TextColumn("{task.fields[who]}")
        console = Console(file=self._stream)
        # no refresh thread: grader processes are forked from this one
        self._bar = Bar(
            *columns, who, console=console, auto_refresh=False, disable=not shown, transient=True
        )
        self._task = self._bar.add_task("grading", total=total, who="")
        self._bar.start()
        self._bar.refresh()

    def step(self, graded: Graded) -> None:
        """Count one submission and show whose it was."""
        from rich.markup import escape

        score = f"{graded.result.score:g}" if graded.result else "not graded"
        self._bar.update(self._task, advance=1, who=escape(f"{graded.student[:40]}: {score}"))
        self._bar.refresh()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

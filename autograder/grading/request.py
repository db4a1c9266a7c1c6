"""The request for a run of `autograder grade`, the watchers of the run, and its summary."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, TextIO

from autograder.course import Assignment, Course
from autograder.grading.share import Share
from autograder.records.model import Graded, Result
from autograder.records.submission import FoundSubmission


class OtherMachines(Protocol):
    """Machines that grade a class in the place of this machine's processes."""

    @property
    def refused(self) -> Mapping[str, str]:
        """Machine → why the machine graded nothing."""

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
    """The arguments and options of the command line."""

    course: Course
    assignment: Assignment
    paths: tuple[Path, ...] = ()
    results: Path = Path("results")
    workers: int | None = None
    isolation: str = "auto"
    force: bool = False
    device: str = "cpu"
    other_machines: OtherMachines | None = None
    share: Share | None = None


@dataclass(frozen=True, slots=True)
class GradeSummary:
    """The outcome of a run: submissions with a result, of this run or an earlier one, and others.

    Attributes:
        results, problems: sorted by student. Of the results only the headlines; the whole results
            are on disk.
        graded: how many results are this run's.
        speeds: records of submissions that were graded on a device, and whose function the suite
            times.
        overlooked: files that lie among the submissions and were not graded, and why.
        refused: machines that graded nothing, and why.
    """

    results: tuple[Result, ...]
    problems: tuple[Graded, ...]
    graded: int
    seconds: float
    speeds: tuple[Graded, ...] = ()
    overlooked: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


class Watcher:
    """Prints warnings alone; a context manager around the grading of submissions.

    Args:
        stream: the stream for warnings; None drops them.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream

    def begin(
        self,
        assignment: str,
        total: int,
    ) -> None:
        """Called before `total` submissions are graded."""

    def step(self, graded: Graded) -> None:
        """Called after each submission."""

    def warn(self, line: str) -> None:
        """Report a line that must not be missed."""
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
        """Called at the end, after an error too."""


class Progress(Watcher):
    """Shows a progress bar on a terminal; elsewhere a line at the beginning."""

    _stream: TextIO

    def begin(
        self,
        assignment: str,
        total: int,
    ) -> None:
        """Show the bar, or the line."""
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bar

        is_terminal = self._stream.isatty()
        if not is_terminal:
            noun = "submission" if total == 1 else "submissions"
            print(f"grading {total} {noun} of {assignment}", file=self._stream)
        columns = (
            TextColumn("grading"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[last]}"),
        )
        console = Console(file=self._stream)
        # no refresh thread: grader processes are forked from this one
        self._bar = Bar(
            *columns,
            console=console,
            auto_refresh=False,
            disable=not is_terminal,
            transient=True,
        )
        self._task = self._bar.add_task("grading", total=total, last="")
        self._bar.start()

    def step(self, graded: Graded) -> None:
        """Count one submission, and show its student and score."""
        from rich.markup import escape

        score = f"{graded.result.score:g}" if graded.result else "not graded"
        self._bar.update(
            self._task, advance=1, last=escape(f"{graded.student[:40]}: {score}")
        )
        self._bar.refresh()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

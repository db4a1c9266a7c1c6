"""One warm grader for the submissions of a batch: starting the sandbox host costs seconds, a submission does not."""

from __future__ import annotations

import atexit
import contextlib
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.course import Assignment, Course
from autograder.fingerprint import suite_sha256
from autograder.model import FoundSubmission, Graded

if TYPE_CHECKING:
    from autograder.grading.bench import Bench

IDLE_SECONDS = 30.0
"""How long a grader waits for the next submission: the formgrader's server lives on after a batch."""


def grade(course: Course, assignment: Assignment, found: FoundSubmission) -> Graded:
    """Grade one submission with the warm grader, started where there is none.

    Raises:
        KitError: the suite, the answer key or this machine cannot grade; no submission is to blame.
    """
    return _warm.grade(course, assignment, found)


def warm_up(course: Course, assignment: Assignment) -> None:
    """Start the grader, so that what is wrong with it shows before any submission is touched.

    Raises:
        KitError: as above.
    """
    _warm.start(course, assignment)


@dataclass(frozen=True, slots=True)
class _Key:
    """What a grader was started with; another suite, answer key or course setting needs another grader."""

    course: Course
    assignment: str
    suite: str
    solution: tuple[int, int]


class _Warm:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stack = contextlib.ExitStack()
        self._key: _Key | None = None
        self._bench: Bench | None = None
        self._timer: threading.Timer | None = None

    def grade(self, course: Course, assignment: Assignment, found: FoundSubmission) -> Graded:
        with self._lock:
            bench = self._started(course, assignment)
            try:
                return bench.grade(found)
            except BaseException:
                self._close()
                raise
            finally:
                self._wait()

    def start(self, course: Course, assignment: Assignment) -> None:
        with self._lock:
            self._started(course, assignment)
            self._wait()

    def close(self) -> None:
        with self._lock:
            self._close()

    def _started(self, course: Course, assignment: Assignment) -> Bench:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        key = _Key(course, assignment.name, suite_sha256(assignment.suite), _stamp(assignment.solution))
        if self._bench is None or key != self._key:
            from autograder.grading.bench import bench_for_any

            self._close()
            self._bench = self._stack.enter_context(bench_for_any(course, assignment))
            self._key = key
        return self._bench

    def _wait(self) -> None:
        if self._bench is not None:
            self._timer = threading.Timer(IDLE_SECONDS, self.close)
            self._timer.daemon = True
            self._timer.start()

    def _close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._bench = self._key = None
        self._stack.close()


def _stamp(path: Path) -> tuple[int, int]:
    if not path.exists():
        return (0, 0)
    stat = path.stat()
    return (stat.st_mtime_ns, stat.st_size)


_warm = _Warm()
atexit.register(_warm.close)

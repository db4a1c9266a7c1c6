"""Keeps one started grader for the submissions of a batch: starting it takes seconds."""

from __future__ import annotations

import atexit
import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from autograder.course import Assignment, Course
from autograder.course.fingerprint import suite_sha256
from autograder.records.model import Graded
from autograder.records.submission import FoundSubmission

if TYPE_CHECKING:
    from autograder.grading.bench import Bench

IDLE_SECONDS = 30.0
"""How long a grader waits for the next submission, since the formgrader's server does not end."""


def grade(course: Course, assignment: Assignment, found: FoundSubmission) -> Graded:
    """Grade one submission with the warm grader, which is started where there is none.

    Raises:
        KitError: the suite, the answer key or this machine cannot grade, whatever the submission.
    """
    with _warm.bench(course, assignment) as bench:
        return bench.grade(found)


def warm_up(course: Course, assignment: Assignment) -> None:
    """Start the grader, so that its problems show before the first submission.

    Raises:
        KitError: as for `grade`.
    """
    with _warm.bench(course, assignment):
        pass


class _Warm:
    """The grader of the last submission.

    The grader is closed when it idles or fails, and before another suite, answer key or course.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stack = contextlib.ExitStack()
        self._key: object = None
        self._bench: Bench | None = None
        self._timer = threading.Timer(IDLE_SECONDS, self.close)

    @contextlib.contextmanager
    def bench(self, course: Course, assignment: Assignment) -> Iterator[Bench]:
        """The grader, for one thread at a time."""
        with self._lock:
            self._timer.cancel()
            try:
                yield self._started(course, assignment)
            except BaseException:
                self._close()
                raise
            self._timer = threading.Timer(IDLE_SECONDS, self.close)
            self._timer.daemon = True
            self._timer.start()

    def close(self) -> None:
        with self._lock:
            self._timer.cancel()
            self._close()

    def _started(self, course: Course, assignment: Assignment) -> Bench:
        solution = assignment.solution
        stamp = solution.stat().st_mtime_ns if solution.exists() else 0
        key = (course, assignment.name, suite_sha256(assignment.suite), stamp)
        if self._bench is None or key != self._key:
            from autograder.grading.bench import start_bench

            self._close()
            self._bench = self._stack.enter_context(start_bench(course, assignment))
            self._key = key
        return self._bench

    def _close(self) -> None:
        self._bench = None
        self._stack.close()


_warm = _Warm()
atexit.register(_warm.close)

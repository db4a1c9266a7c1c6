"""A class of submissions on every core: one host, one loaded suite, and a forked grader process for each core.

The suite, the answer key and torch are loaded once, before the graders are forked; the host loads at the same time.
A grader that dies takes one submission with it, which is named; another takes its place.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from autograder.course import Assignment, Course
from autograder.errors import HostFailed
from autograder.model import FoundSubmission, Graded, Result
from autograder.sandbox.host import HostClient, HostProcess
from autograder.sandbox.tiers import isolation_name, launch_host, prove_host

if TYPE_CHECKING:
    from autograder.grading.grader import SuiteGrader

_EXTRAS = {"matplotlib": ("matplotlib", "plt."), "optim": ("optim",), "triton": ("triton",)}
_STEADY = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class Bench:
    """A proven host and a loaded suite: what grading needs, started once.

    A context manager. `clients` is how many processes will ask the host for workers.
    """

    def __init__(
        self,
        course: Course,
        assignment: Assignment,
        isolation: str = "auto",
        clients: int = 1,
        extras: tuple[str, ...] = (),
    ) -> None:
        self.course, self.assignment = course, assignment
        # one thread each: graders share the cores by processes, and a fork of a threaded torch hangs
        os.environ.update(_STEADY)
        self.host: HostProcess = launch_host(course, isolation, clients, extras)
        try:
            from autograder.grading.grader import SuiteGrader

            self.suite: SuiteGrader = SuiteGrader(course, assignment)
            self.host = prove_host(course, isolation, self.host)
        except BaseException:
            self.host.close()
            raise
        self.isolation = isolation_name(self.host.tier)

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.suite.close()
        self.host.close()


class Grader:
    """Grades submissions one at a time in this process; a context manager.

    Raises, when entered:
        KitError: the suite, the answer key or this machine cannot grade.
    """

    def __init__(self, course: Course, assignment: Assignment, isolation: str = "auto") -> None:
        self._course, self._assignment, self._isolation = course, assignment, isolation

    def __enter__(self) -> Grader:
        self._bench = Bench(self._course, self._assignment, self._isolation)
        return self

    def grade(self, found: FoundSubmission) -> Graded:
        """Grade one submission.

        Raises:
            HostFailed: no worker can be had; no submission is to blame.
        """
        return self._bench.suite.grade(self._bench.host.clients[0], self._bench.isolation, found)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bench.__exit__(kind, error, trace)


def grade_batch(
    course: Course,
    assignment: Assignment,
    submissions: Sequence[FoundSubmission],
    *,
    workers: int | None = None,
    isolation: str = "auto",
) -> Iterator[Graded]:
    """Grade submissions on `workers` processes (default: one a core); yields each as soon as it is done.

    Raises:
        KitError: the suite, the answer key or this machine cannot grade; nothing was graded.
    """
    count = max(1, min(workers or os.cpu_count() or 1, len(submissions)))
    with Bench(course, assignment, isolation, count, _extras(submissions, course)) as bench:
        yield from _Pool(bench, count).run(submissions)


class _Pool:
    """The grader processes of one batch."""

    def __init__(self, bench: Bench, count: int) -> None:
        self._bench = bench
        self._context = multiprocessing.get_context("fork")
        self._free = list(range(count))
        self._at_work: dict[Connection, tuple[int, FoundSubmission]] = {}
        self._pipes: dict[int, Connection] = {}

    def run(self, submissions: Sequence[FoundSubmission]) -> Iterator[Graded]:
        waiting = deque(submissions)
        try:
            while waiting or self._at_work:
                while waiting and self._free:
                    self._give(self._free.pop(), waiting.popleft())
                for pipe in wait(list(self._at_work)):
                    assert isinstance(pipe, Connection)
                    yield self._take(pipe)
        finally:
            for pipe in self._pipes.values():
                pipe.close()

    def _give(self, slot: int, found: FoundSubmission) -> None:
        if slot not in self._pipes:
            self._pipes[slot] = self._start(slot)
        pipe = self._pipes[slot]
        pipe.send_bytes(json.dumps([found.student, str(found.path)]).encode())
        self._at_work[pipe] = (slot, found)

    def _take(self, pipe: Connection) -> Graded:
        slot, found = self._at_work.pop(pipe)
        self._free.append(slot)
        try:
            return _from_wire(found, pipe.recv_bytes())
        except (EOFError, OSError):
            pipe.close()
            del self._pipes[slot]
            return Graded(
                found.student,
                found.path,
                None,
                f"{found.path.name}: the grader process ended while it graded this submission; grade it again alone",
            )

    def _start(self, slot: int) -> Connection:
        ours, theirs = self._context.Pipe()
        client = self._bench.host.clients[slot]
        others = [*self._pipes.values(), ours]
        process = self._context.Process(target=_serve, args=(self._bench, client, theirs, others), daemon=True)
        process.start()
        theirs.close()
        return ours


def _serve(bench: Bench, client: HostClient, pipe: Connection, others: list[Connection]) -> None:
    """A grader process: grades what comes through the pipe until it closes."""
    for other in others:
        other.close()
    while True:
        try:
            student, path = json.loads(pipe.recv_bytes())
        except EOFError:
            return
        found = FoundSubmission(student, Path(path))
        try:
            graded = bench.suite.grade(client, bench.isolation, found)
        except HostFailed as error:
            graded = Graded(student, found.path, None, f"{found.path.name}: {error}")
        pipe.send_bytes(_to_wire(graded))


def _to_wire(graded: Graded) -> bytes:
    result = graded.result.to_json() if graded.result else None
    return json.dumps([result, graded.problem, graded.seconds]).encode("utf-8", "surrogatepass")


def _from_wire(found: FoundSubmission, message: bytes) -> Graded:
    result, problem, seconds = json.loads(message)
    return Graded(found.student, found.path, Result.from_json(result) if result else None, problem, seconds)


def _extras(submissions: Sequence[FoundSubmission], course: Course) -> tuple[str, ...]:
    """Libraries that the host loads besides torch, where some submission mentions them: they cost a worker too much."""
    wanted: set[str] = set()
    for found in submissions:
        try:
            if found.path.stat().st_size > course.limits.notebook_mb << 20:
                continue
            text = found.path.read_text(encoding="utf-8", errors="ignore")
        except OSError:
            continue
        wanted |= {name for name, words in _EXTRAS.items() if any(word in text for word in words)}
        if len(wanted) == len(_EXTRAS):
            break
    return tuple(sorted(wanted))



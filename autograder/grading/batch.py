"""A class of submissions on every core: one host, one loaded suite, and a forked grader process for each core.

The suite, the answer key and torch are loaded once, before the graders are forked; the host loads at the same time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import itertools
import json
import math
import os
import re
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from autograder.course import Assignment, Course, Limits
from autograder.errors import HostFailed, SuiteFault, UnreadableSubmission
from autograder.grading.pool import Pool, interrupts_put_off
from autograder.handed_in import read_handed_in
from autograder.intake.release import load_release
from autograder.model import FoundSubmission, Graded, Result, Speed
from autograder.sandbox.device import Device, DeviceBench, graded_behind, open_device
from autograder.sandbox.host import HostClient, HostProcess
from autograder.sandbox.tiers import launch_host, prove_host

if TYPE_CHECKING:
    from autograder.grading.grader import SuiteGrader

EXTRAS = {
    "matplotlib": re.compile(r"matplotlib"),
    "dynamo": re.compile(r"\boptim\.|checkpoint|torch\.func\b|flex_attention"),
    "sympy": re.compile(r"\.backward\([^)]|autograd\.grad\(|gradcheck|testing\.assert_close"),
    "triton": re.compile(r"triton"),
}
"""What the host can load besides torch, and how a notebook looks that makes torch load it: a second or two each."""

GRADERS_A_HOST = 8
"""A host forks one worker after the other; so many graders it serves without letting them wait for each other."""


class Bench:
    """Proven hosts and a loaded suite: what grading needs, started once.

    A context manager. `clients` is how many processes will ask for workers. With a `device`, kernels run there too, in
    workers of a host of its own.
    """

    def __init__(
        self,
        course: Course,
        assignment: Assignment,
        isolation: str = "auto",
        clients: int = 1,
        extras: tuple[str, ...] = (),
        device: Device | None = None,
    ) -> None:
        self.device: DeviceBench | None = None
        self.course, self.assignment = course, assignment
        self.hosts = self._launch(isolation, clients, extras)
        try:
            gc.disable()  # nothing that is imported is ever freed
            with interrupts_put_off():  # torch swallows one while it loads
                import torch

                from autograder.grading.grader import SuiteGrader

            torch.set_num_threads(1)  # where somebody loaded torch before us
            self.suite: SuiteGrader = SuiteGrader(course, assignment)
            gc.enable()
            gc.freeze()
            self._prove(isolation)
            if device is not None:
                self.device = open_device(course, isolation, device)
                self.suite.use_device(self.device)
        except BaseException:
            self._close_hosts()
            raise
        self.isolation = graded_behind(self.host.tier, device)

    @property
    def host(self) -> HostProcess:
        """The first of them: what is true of its walls is true of all."""
        return self.hosts[0]

    @property
    def clients(self) -> Sequence[HostClient]:
        """The connections to the hosts, one for each grader."""
        return [client for host in self.hosts for client in host.clients]

    def _launch(self, isolation: str, clients: int, extras: tuple[str, ...]) -> list[HostProcess]:
        count = math.ceil(clients / GRADERS_A_HOST)
        shares = [clients // count + (number < clients % count) for number in range(count)]
        return [launch_host(self.course, isolation, share, extras) for share in shares]

    def _prove(self, isolation: str) -> None:
        """The first host takes the best walls that stand, and the others take the same."""
        for number, host in enumerate(self.hosts):
            asked = self.host.tier if number else isolation
            if number and host.tier != asked:
                host.close()
            self.hosts[number] = prove_host(self.course, asked, host)

    def renew(self) -> None:
        """Start the hosts anew behind the same walls: one has failed.

        Raises:
            KitError: that cannot be done; nothing can be graded any more.
        """
        self._close_hosts()
        tier, extras = self.host.tier, self.host.extras
        self.hosts = self._launch(tier, len(self.clients), extras)
        self._prove(tier)
        if self.device is not None:
            self.device = open_device(self.course, tier, self.device.device)
            self.suite.use_device(self.device)

    def __enter__(self) -> Bench:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.suite.close()
        self._close_hosts()

    def _close_hosts(self) -> None:
        for host in self.hosts:
            host.close()
        if self.device is not None:
            self.device.host.close()


class Grader:
    """Grades submissions one at a time in this process; a context manager.

    Raises, when entered:
        KitError: the suite, the answer key or this machine cannot grade.
    """

    def __init__(self, course: Course, assignment: Assignment, isolation: str = "auto") -> None:
        self._course, self._assignment, self._isolation = course, assignment, isolation

    def __enter__(self) -> Grader:
        # what comes is not known yet: be ready for plots and optimizers
        extras = {*extras_for(self._assignment, (), self._course.limits), "matplotlib", "dynamo"}
        self._bench = Bench(self._course, self._assignment, self._isolation, extras=tuple(sorted(extras)))
        return self

    def grade(self, found: FoundSubmission) -> Graded:
        """Grade one submission; where the machine fails, once more from its start, with a fresh host.

        Raises:
            HostFailed: it failed again; no submission is to blame.
        """
        bench = self._bench
        try:
            return bench.suite.grade(bench.clients[0], bench.isolation, found)
        except HostFailed:
            bench.renew()
            return bench.suite.grade(bench.clients[0], bench.isolation, found)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bench.__exit__(kind, error, trace)


def grade_batch(
    course: Course,
    assignment: Assignment,
    submissions: Sequence[FoundSubmission],
    *,
    workers: int | None = None,
    isolation: str = "auto",
    device: Device | None = None,
) -> Generator[Graded, None, None]:
    """Grade submissions on `workers` processes (default: one a core); yields each as soon as it is done.

    With a `device`, one submission at a time.

    What is not done within the course's `run_minutes` is yielded without a result; so is what a fault of the machine's
    kept from being graded twice.

    Raises:
        KitError: the suite, the answer key or this machine cannot grade; nothing was graded.
    """
    until = time.monotonic() + 60 * course.limits.run_minutes
    count = processes_for(len(submissions), workers if device is None else 1)
    extras = extras_for(assignment, submissions, course.limits)
    with Bench(course, assignment, isolation, count, extras, device) as bench:

        def grade(client: HostClient, found: FoundSubmission) -> bytes:
            try:
                return _to_wire(bench.suite.grade(client, bench.isolation, found))
            except SuiteFault as fault:
                return _to_wire(_untried(found, str(fault)))

        with contextlib.closing(Pool(bench, submissions, grade, until).run()) as done:
            for ended in done:
                if ended.answer is not None:
                    yield _from_wire(ended.job, ended.answer)
                else:
                    yield _untried(ended.job, ended.fault or _out_of_time(course.limits))


def processes_for(jobs: int, asked: int | None) -> int:
    """How many processes: as asked, or one a core; never more than there are jobs."""
    return max(1, min(asked or os.cpu_count() or 1, jobs))


def _untried(found: FoundSubmission, reason: str) -> Graded:
    """What the run or the machine kept from being graded: no result comes of it, and none is lost."""
    return Graded(found.student, found.path, None, f"{found.path.name}: {reason}", untried=True)


def _out_of_time(limits: Limits) -> str:
    return (
        f"the time of this run ([limits] run_minutes = {limits.run_minutes:g}) was up first; "
        "`autograder grade` again goes on with what is left"
    )


def _to_wire(graded: Graded) -> bytes:
    """A line with what stands beside the result, and the result's own text."""
    speeds = [dataclasses.asdict(speed) for speed in graded.speeds]
    beside = json.dumps([graded.problem, graded.seconds, graded.untried, speeds])
    return f"{beside}\n{graded.result.to_json() if graded.result else ''}".encode("utf-8", "surrogatepass")


def _from_wire(found: FoundSubmission, message: bytes) -> Graded:
    beside, _, text = message.decode("utf-8", "surrogatepass").partition("\n")
    problem, seconds, untried, speeds = json.loads(beside)
    result = Result.from_json(text) if text else None
    timed = tuple(Speed(**speed) for speed in speeds)
    return Graded(found.student, found.path, result, problem, seconds, untried, timed, text)


def extras_for(assignment: Assignment, submissions: Sequence[FoundSubmission], limits: Limits) -> tuple[str, ...]:
    """Libraries that the host loads besides torch, because a worker would pay for them again and again.

    Those that the assignment's own running cells or its known answers use, and those that the answer key or some
    submission names more often than the release does (whose demo cells, which do not run, name them too).
    """
    release = assignment.release.read_text(encoding="utf-8")
    running = "".join(cell.source for cell in load_release(assignment).cells if cell.role in ("given", "question"))
    for name in ("mistakes.py", "alternates.py"):
        known = assignment.suite / name
        running += known.read_text(encoding="utf-8") if known.exists() else ""
    wanted = {name for name, sign in EXTRAS.items() if sign.search(running)}
    notebooks = itertools.chain(
        [assignment.solution.read_text(encoding="utf-8") if assignment.solution.exists() else ""],
        (_text_of(found.path, limits) for found in submissions),
    )
    for text in notebooks:
        if len(wanted) == len(EXTRAS):
            break
        wanted |= {n for n, sign in EXTRAS.items() if len(sign.findall(text)) > len(sign.findall(release))}
    return tuple(sorted(wanted))


def _text_of(path: Path, limits: Limits) -> str:
    """ "" where the notebook cannot be read: the grader will say so."""
    try:
        return read_handed_in(path, limits.notebook_mb << 20).decode("utf-8", errors="ignore")
    except UnreadableSubmission:
        return ""

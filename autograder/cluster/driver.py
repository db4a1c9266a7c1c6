"""The driver: hands a class out to the machines of a Dask cluster, one submission a task, and takes
the results in.

Dask carries tasks and results, begins a task anew whose machine was lost or at fault, and gives up
what was begun four times. Of each submission one answer counts.

Which machine gets a task is not left to Dask: it would begin a machine's next task after one has
ended, and a grader would wait for it. At rest 89 % of the pool's throughput were measured with that
wait, and 106 % without. So each machine holds one submission more than it has graders. The machine
is a wish (`allow_other_workers`): Dask moves the tasks of one that is lost.
"""

from __future__ import annotations

import contextlib
import dataclasses
import queue
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field

from distributed import Client, Future, KilledWorker
from distributed.client import ClosedClientError

from autograder.basics.errors import (
    ClusterUnavailable,
    OutOfReach,
    UnreadableSubmission,
)
from autograder.cluster.machine import (
    CourseGone,
    CourseOnMachine,
    MachineRefuses,
    grade_on_machine,
)
from autograder.cluster.messages import pack_course
from autograder.cluster.scheduler import Connect, open_cluster
from autograder.course import Assignment, Course
from autograder.grading.batch import read_finished_job
from autograder.grading.extras import find_extras
from autograder.grading.graded_bytes import pack_graded
from autograder.grading.packed_submission import PackedSubmission, pack_submission
from autograder.grading.pool import FinishedJob
from autograder.grading.station import MachineFault
from autograder.records.model import Graded
from autograder.records.submission import FoundSubmission

RETRIES = 3
"""So often Dask begins a submission again after a fault of its machine; after the loss of one, as
often by default.
"""
CONNECT_SECONDS = 10.0
"""How long the first try to reach a scheduler takes."""
PATIENCE = 120.0
"""Seconds in which a scheduler that has gone may come back."""
TICK = 0.5
"""Seconds after which the machines are counted anew."""

MachineAnswer = tuple[FinishedJob[FoundSubmission], str]
"""A submission with its answer, and the name of the machine that graded it, or ""."""


class Cluster:
    """Grades a class on the machines behind a scheduler's address, or on `local:N`.

    Attributes:
        refused: machine → why it could grade nothing.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self.refused: dict[str, str] = {}

    def grade(
        self,
        course: Course,
        assignment: Assignment,
        submissions: Sequence[FoundSubmission],
        isolation: str,
        warn: Callable[[str], None],
    ) -> Generator[tuple[Graded, bytes], None, None]:
        """As `grade_batch`.

        Raises:
            ClusterUnavailable: no scheduler, or no machine that can grade; what was yielded before
                counts.
        """
        until = time.monotonic() + 60 * course.limits.run_minutes
        extras = find_extras(assignment, submissions, course.limits)
        plugin = CourseOnMachine(
            pack_course(course, assignment), assignment.name, isolation, extras
        )
        run = _Run(
            plugin, course, assignment, deque(submissions), until, self.refused, warn
        )
        with (
            open_cluster(self._address) as connect,
            contextlib.closing(run.answers(connect)) as answers,
        ):
            for ended, machine in answers:
                graded, content = read_finished_job(ended, course.limits)
                yield dataclasses.replace(graded, machine=machine), content


@dataclass
class _Run:
    """One class on one cluster.

    Attributes:
        waiting: submissions that no machine has.
        tasks: by key, the submissions that were handed out, each with the machine that it is meant
            for.
        done: keys of tasks, as they end.
        graders: how many each machine has.
        unfit: machines that refused.
    """

    plugin: CourseOnMachine
    course: Course
    assignment: Assignment
    waiting: deque[FoundSubmission]
    until: float
    refused: dict[str, str]
    warn: Callable[[str], None]
    tasks: dict[str, tuple[FoundSubmission, str, Future]] = field(default_factory=dict)
    done: queue.SimpleQueue[str] = field(default_factory=queue.SimpleQueue)
    graders: dict[str, int] = field(default_factory=dict)
    unfit: set[str] = field(default_factory=set)
    counted: float = 0.0
    has_warned: bool = False

    def answers(self, connect: Connect) -> Generator[MachineAnswer, None, None]:
        """Each submission with its answer. Where the scheduler is lost, the tasks that were under
        way are sent anew.

        Raises:
            ClusterUnavailable: no scheduler answers, or no machine can grade.
        """
        patience = CONNECT_SECONDS
        while self._is_at_work():
            client = connect(min(patience, max(TICK, self.until - time.monotonic())))
            try:
                self._tell_course(client)
                while self._is_at_work():
                    self._count_graders(client)
                    yield from self._hand_out(client)
                    yield from self._take_in(client)
            # Dask's own errors for a lost connection are among these
            except (OSError, ClosedClientError):
                self._take_back()
                patience = PATIENCE
                # a machine that is just dying can fail each new registration of the course
                time.sleep(TICK)
            finally:
                self._leave(client)
        self._take_back()
        for submission in self.waiting:
            yield FinishedJob(submission), ""

    def _take_back(self) -> None:
        """Let the submissions of all tasks wait again, before the others."""
        self.waiting.extendleft(submission for submission, _, _ in self.tasks.values())
        self.tasks.clear()

    def _is_at_work(self) -> bool:
        return bool(self.waiting or self.tasks) and time.monotonic() < self.until

    def _tell_course(self, client: Client) -> None:
        """Give the course to each machine that is there or joins later."""
        try:
            client.register_plugin(self.plugin)
        except OSError:
            raise
        except Exception:
            pass  # a machine without the kit: its tasks will say so, and the others have the course

    def _leave(self, client: Client) -> None:
        """Remove the course from the machines, which ends their graders."""
        with contextlib.suppress(
            Exception
        ):  # a lost connection raises many kinds of errors here
            if client.status == "running":
                client.unregister_worker_plugin(self.plugin.name)
        with contextlib.suppress(Exception):
            client.close(timeout=TICK)

    def _count_graders(self, client: Client) -> None:
        """Ask which machines are there. No submission depends on the answer: Dask notices lost
        machines by itself.

        Raises:
            ClusterUnavailable: there are machines, and none of them can grade.
            OSError: the connection is lost.
        """
        if client.status != "running":
            raise OSError("the connection to the scheduler is lost")
        if time.monotonic() < self.counted + TICK:
            return
        self.counted = time.monotonic()
        workers = client.scheduler_info()["workers"]
        self.unfit &= workers.keys()
        self.graders = {
            address: worker["nthreads"]
            for address, worker in workers.items()
            if address not in self.unfit
        }
        if workers and not self.graders and not self.tasks:
            refusals = sorted(self.refused.items())
            reasons = [f"{machine}: {reason}" for machine, reason in refusals]
            raise ClusterUnavailable(
                f"no machine of the cluster can grade: {'; '.join(reasons)}; what was graded is "
                "safe"
            )
        if not workers and not self.has_warned:
            self.has_warned = True
            self.warn("no machine is there yet; waiting for one")

    def _hand_out(self, client: Client) -> Iterator[MachineAnswer]:
        """Give each machine one submission more than it has graders."""
        pinned = Counter(address for _, address, _ in self.tasks.values())

        def load(address: str) -> float:
            return pinned[address] / self.graders[address]

        while self.waiting and self.graders:
            address = min(self.graders, key=load)
            if pinned[address] > self.graders[address]:
                return
            packed = self._read(self.waiting[0])
            if isinstance(packed, FinishedJob):
                yield packed, ""
            else:
                future = client.submit(
                    grade_on_machine,
                    self.plugin.name,
                    packed,
                    key=f"{self.plugin.name}-{secrets.token_hex(8)}",
                    workers=[address],
                    allow_other_workers=True,
                    retries=RETRIES,
                    pure=False,
                )
                self.tasks[future.key] = (self.waiting[0], address, future)
                future.add_done_callback(lambda future: self.done.put(future.key))
                pinned[address] += 1
            self.waiting.popleft()

    def _read(
        self, submission: FoundSubmission
    ) -> PackedSubmission | FinishedJob[FoundSubmission]:
        """Pack a submission for the journey. A submission that cannot be read has its answer at
        once.
        """
        most_bytes = self.course.limits.notebook_mb << 20
        try:
            return pack_submission(submission, self.assignment.name, most_bytes)
        except UnreadableSubmission as problem:
            is_away = isinstance(problem, OutOfReach)
            graded = Graded(submission.student, problem=str(problem), untried=is_away)
            return FinishedJob(submission, pack_graded(graded))
        except OSError as error:
            return FinishedJob(submission, fault=f"it cannot be read: {error}")

    def _take_in(self, client: Client) -> Iterator[MachineAnswer]:
        """Wait for tasks to end, `TICK` at most, and yield their answers."""
        keys = []
        with contextlib.suppress(queue.Empty):
            keys.append(self.done.get(timeout=TICK))
            while True:
                keys.append(self.done.get_nowait())
        done = {key: self.tasks[key] for key in keys if key in self.tasks}
        finished = [
            key for key, (_, _, future) in done.items() if future.status == "finished"
        ]
        answers = client.gather([done[key][2] for key in finished], errors="skip")
        if len(answers) < len(finished):
            raise OSError("an answer was lost on its way")
        for key, (machine, content) in zip(finished, answers, strict=True):
            yield FinishedJob(self.tasks.pop(key)[0], content), machine
        for key in done.keys() - finished:
            yield from self._failed(client, key)

    def _failed(self, client: Client, key: str) -> Iterator[MachineAnswer]:
        """A task that Dask has given up: its submission is named, or waits for another machine.

        Raises:
            OSError: the scheduler was lost.
        """
        submission, address, future = self.tasks[key]
        if future.status != "error":
            raise OSError("the connection to the scheduler is lost")
        del self.tasks[key]
        error = future.exception(timeout=TICK)
        if isinstance(error, KilledWorker):
            reason = (
                "the machine that had it was lost, and it was begun "
                f"{error.allowed_failures + 1} times"
            )
            yield FinishedJob(submission, fault=reason), ""
        elif isinstance(error, MachineFault):
            reason = f"{error}, and it was begun {RETRIES + 1} times"
            yield FinishedJob(submission, fault=reason), ""
        else:
            self.waiting.appendleft(submission)
            if isinstance(error, CourseGone):
                self._tell_course(client)
                return
            if not isinstance(error, MachineRefuses):
                error = MachineRefuses(
                    address, address, f"the kit does not run there: {error!r}"
                )
            machine, address, reason = error.args
            self.refused[machine] = reason
            self.unfit.add(address)
            self.graders.pop(address, None)

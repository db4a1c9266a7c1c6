"""The side of whoever grades: hands submissions out to the machines of a cluster and takes answers in.

They go in shares, of what a grader does in about two seconds: a message costs as much as some submissions do. Each
machine has a share more than it has graders, all of them at once, so that no grader waits and the driver holds few
notebooks. What a machine had that has gone is handed out again. Of each submission the first answer counts, and no
other is looked at.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import json
import queue
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from distributed import Future, KilledWorker
from distributed.client import ClosedClientError

from autograder.cluster.course_copy import pack_course
from autograder.cluster.machine import CourseThere, grade_there
from autograder.cluster.messages import HandedIn, Reply, taken_in
from autograder.cluster.scheduler import Connect, reaching
from autograder.course import Assignment, Course
from autograder.errors import ClusterUnavailable, OutOfReach, UnreadableSubmission
from autograder.fingerprint import software
from autograder.grading.batch import pack, unpack
from autograder.grading.extras import extras_for
from autograder.grading.pool import Ended
from autograder.model import FoundSubmission, Graded

MOST_TRIES = 4
"""So often a submission is begun whose machine was lost, or at fault; then it is named and left for the next run."""
PATIENCE = 120.0
"""Seconds in which a scheduler that has gone may come back."""
TICK = 0.5
"""Seconds after which the machines are counted anew."""
SHARE_SECONDS = 2.0
"""How long a share is to keep a grader: so far progress lags behind, and so much is done anew where one is lost."""
SHARE_MOST, SHARE_BYTES = 32, 4 << 20
"""A share has so many submissions at most, and is given no further one when it has so many bytes."""


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
            ClusterUnavailable: no scheduler, or no machine that can grade; what was yielded before counts.
        """
        until = time.monotonic() + 60 * course.limits.run_minutes
        there = _course_there(course, assignment, isolation, extras_for(assignment, submissions, course.limits))
        with reaching(self._address) as connect:
            run = _Run(connect, there, _Class(course, assignment, submissions), until, self.refused, warn)
            with contextlib.closing(run.run()) as ended:
                for one, machine in ended:
                    graded, content = unpack(one, course.limits)
                    if machine:
                        run.learn(sum(graded.seconds.values()))
                    yield dataclasses.replace(graded, machine=machine), content


def _course_there(course: Course, assignment: Assignment, isolation: str, extras: tuple[str, ...]) -> CourseThere:
    course_copy, wanted = pack_course(course, assignment), software()
    digest = hashlib.sha256(course_copy)
    digest.update(json.dumps([assignment.name, isolation, extras, wanted]).encode())
    name = f"attention-kit-{digest.hexdigest()}"
    return CourseThere(name, course_copy, assignment.name, isolation, extras, wanted)


@dataclass(frozen=True, slots=True)
class _Class:
    """The submissions, by number."""

    course: Course
    assignment: Assignment
    submissions: Sequence[FoundSubmission]


@dataclass(frozen=True, slots=True)
class _Flying:
    """A share that a machine has: the submissions' numbers."""

    numbers: tuple[int, ...]
    address: str
    future: Future


class _Run:
    """One class on one cluster."""

    def __init__(
        self,
        connect: Connect,
        there: CourseThere,
        its: _Class,
        until: float,
        refused: dict[str, str],
        warn: Callable[[str], None],
    ) -> None:
        self._connect, self._there, self._its, self._until = connect, there, its, until
        self._refused, self._warn = refused, warn
        self._waiting = deque(range(len(its.submissions)))
        self._flying: dict[str, _Flying] = {}
        self._landed: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._graded, self._seconds = 0, 0.0
        self._tries: Counter[int] = Counter()
        self._faults: dict[int, str] = {}
        self._machines: dict[str, int] = {}
        self._unfit: set[str] = set()
        self._counted = 0.0
        self._told_to_wait = False
        self._prefix, self._keys = secrets.token_hex(8), itertools.count()

    def run(self) -> Generator[tuple[Ended[FoundSubmission], str], None, None]:
        """Each submission with what came of it, and the machine's name."""
        self._client = self._connected(time.monotonic())
        try:
            while (self._waiting or self._flying) and time.monotonic() < self._until:
                try:
                    self._count_machines()
                    yield from self._hand_out()
                    yield from self._take_in()
                except OSError:  # of which Dask's own for a lost connection is one
                    self._reconnect()
            for number in [*(number for one in self._flying.values() for number in one.numbers), *self._waiting]:
                yield Ended(self._its.submissions[number]), ""
        finally:
            self._leave()

    def learn(self, seconds: float) -> None:
        """How long a grader took for a submission: from this the size of shares comes."""
        self._graded, self._seconds = self._graded + 1, self._seconds + seconds

    # the scheduler

    def _connected(self, until: float) -> Any:
        """A client, and the course on every machine.

        Raises:
            ClusterUnavailable: nobody answered before `until`.
        """
        while True:
            try:
                client = self._connect()
                self._tell_course(client)
                return client
            except (OSError, ValueError) as error:  # ValueError: no address
                if time.monotonic() >= until:
                    raise ClusterUnavailable(f"no scheduler answers: {error}; what was graded is safe") from error
            time.sleep(TICK)

    def _tell_course(self, client: Any) -> None:
        try:
            client.register_plugin(self._there)
        except OSError:
            raise
        except Exception:
            pass  # a machine without the kit, or with a full disk: its task will say so, and the others have the course

    def _reconnect(self) -> None:
        for key in list(self._flying):
            self._put_back(self._flying.pop(key))
        with contextlib.suppress(Exception):  # it is lost, whatever it says about it
            self._client.close(timeout=TICK)
        self._machines.clear()
        self._client = self._connected(min(self._until, time.monotonic() + PATIENCE))

    def _leave(self) -> None:
        """Take the course from the machines again, which ends what they are at."""
        with contextlib.suppress(Exception):
            self._client.unregister_worker_plugin(self._there.name)
        with contextlib.suppress(Exception):
            self._client.close()

    # the machines

    def _count_machines(self) -> None:
        """Who is there; what those had that are not, any more, waits again.

        Raises:
            ClusterUnavailable: there are machines, and none of them can grade.
            OSError: the scheduler does not answer.
        """
        if self._client.status != "running":
            raise OSError("the connection to the scheduler is lost")
        if time.monotonic() < self._counted + TICK:
            return
        self._counted = time.monotonic()
        there = self._client.scheduler_info()["workers"]
        self._machines = {
            address: its["nthreads"] for address, its in there.items() if its["status"] in ("running", "paused")
        }
        for key, one in list(self._flying.items()):
            if one.address not in self._machines:
                del self._flying[key]
                self._put_back(one)
                self._tries.update(one.numbers)
        self._unfit &= self._machines.keys()
        if self._machines and self._unfit == self._machines.keys() and not self._flying:
            why = "; ".join(f"{machine}: {reason}" for machine, reason in sorted(self._refused.items()))
            raise ClusterUnavailable(f"no machine of the cluster can grade: {why}; what was graded is safe")
        if not self._machines and not self._told_to_wait:
            self._told_to_wait = True
            self._warn("no machine is there yet; waiting for one")

    def _put_back(self, one: _Flying) -> None:
        self._waiting.extendleft(reversed(one.numbers))

    def _hand_out(self) -> Iterator[tuple[Ended[FoundSubmission], str]]:
        """Give each machine a share more than it has graders."""
        has = Counter(one.address for one in self._flying.values())
        for address, graders in self._machines.items():
            while self._waiting and address not in self._unfit and has[address] <= graders:
                if share := (yield from self._next_share()):
                    self._give(address, share)
                    has[address] += 1

    def _next_share(self) -> Generator[tuple[Ended[FoundSubmission], str], None, dict[int, HandedIn]]:
        """Submissions by number. What cannot be read, or was tried often enough, is answered here."""
        share: dict[int, HandedIn] = {}
        size, full = self._share_size(), 0
        while self._waiting and len(share) < size and full < SHARE_BYTES:
            if share and self._tries[self._waiting[0]]:
                break
            number = self._waiting.popleft()
            read = self._read(number)
            if isinstance(read, Ended):
                yield read, ""
                continue
            share[number] = read
            full += len(read.data)
            if self._tries[number]:  # what was lost once travels alone: it may be what brings machines down
                break
        return share

    def _share_size(self) -> int:
        """What a grader does in `SHARE_SECONDS`, as far as is known yet; at the end less, so that all end together."""
        in_time = int(SHARE_SECONDS * self._graded / self._seconds) if self._seconds else 1
        even = len(self._waiting) // (2 * sum(self._machines.values()))
        return max(1, min(in_time, even, SHARE_MOST))

    def _read(self, number: int) -> HandedIn | Ended[FoundSubmission]:
        found, limits = self._its.submissions[number], self._its.course.limits
        if self._tries[number] >= MOST_TRIES:
            why = self._faults.get(number, "the machine that had it was lost")
            return Ended(found, fault=f"{why}, and it was begun {MOST_TRIES} times")
        try:
            return taken_in(found, self._its.assignment.name, limits.notebook_mb << 20)
        except UnreadableSubmission as problem:
            away = isinstance(problem, OutOfReach)
            return Ended(found, pack(Graded(found.student, problem=str(problem), untried=away)))
        except OSError as error:
            return Ended(found, fault=f"it cannot be read: {error}")

    def _give(self, address: str, share: dict[int, HandedIn]) -> None:
        key = f"{self._there.name}-{self._prefix}-{next(self._keys)}"
        its = tuple(share.values())
        try:
            future = self._client.submit(grade_there, self._there.name, its, key=key, workers=[address], pure=False)
        except (OSError, ClosedClientError) as error:
            self._waiting.extendleft(reversed(share))
            raise OSError(f"the connection to the scheduler is lost: {error}") from error
        self._flying[key] = _Flying(tuple(share), address, future)
        future.add_done_callback(lambda done: self._landed.put(done.key))

    def _take_in(self) -> Iterator[tuple[Ended[FoundSubmission], str]]:
        """What has come, after a short while at most."""
        keys = []
        with contextlib.suppress(queue.Empty):
            keys.append(self._landed.get(timeout=TICK))
            while True:
                keys.append(self._landed.get_nowait())
        landed = {key: self._flying[key] for key in keys if key in self._flying}
        finished = {key: one for key, one in landed.items() if one.future.status == "finished"}
        replies = self._client.gather([one.future for one in finished.values()], errors="skip") if finished else []
        if len(replies) < len(finished):
            raise OSError("an answer was lost on its way")
        for key, reply in zip(finished, replies, strict=True):
            yield from self._replied(self._flying.pop(key), reply)
        for key in landed:
            if key not in finished:
                self._failed(self._flying.pop(key))

    def _replied(self, one: _Flying, reply: Reply) -> Iterator[tuple[Ended[FoundSubmission], str]]:
        if not reply.answers:
            self._put_back(one)
            if reply.refusal:
                self._unfit.add(one.address)
                self._refused[reply.machine] = reply.refusal
            else:  # another run that graded the same has taken the course along
                self._tell_course(self._client)
            return
        for number, answer in zip(one.numbers, reply.answers, strict=True):
            if answer.content is not None:
                yield Ended(self._its.submissions[number], answer.content), reply.machine
            else:
                self._waiting.appendleft(number)
                self._tries[number] += 1
                self._faults[number] = f"{reply.machine}: {answer.fault}"

    def _failed(self, one: _Flying) -> None:
        """The task did not run to its end: the machine died too often under it, or does not have the kit."""
        self._put_back(one)
        if one.future.status != "error":
            return  # the scheduler was lost, and says nothing of the machine
        error = one.future.exception(timeout=TICK)
        if isinstance(error, KilledWorker):
            self._tries.update(one.numbers)
        else:
            self._unfit.add(one.address)
            self._refused[one.address] = f"the kit does not run there: {error!r}"

"""The grading desk of one machine: threads that take attempts from the queue and have stations
grade them.

A station is a program that keeps the suite of one assignment loaded and grades on every core. The
desk starts the stations of assignments that are due next before anybody hands in, and others when
the first attempt at their assignment comes. Where there are too many stations, it ends the one that
was idle for longest.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlalchemy.exc import SQLAlchemyError

from autograder.basics.errors import KitError
from autograder.basics.safe_text import one_line
from autograder.course import Assignment, Course
from autograder.grading.bench import extras_for_any
from autograder.grading.packed_submission import PackedSubmission
from autograder.grading.station import MachineFault, Station
from autograder.ledger import read_ledger
from autograder.records.results import course_sha256
from autograder.server.attempts import LEASE_SECONDS, AttemptStore, Claim

MOST_STATIONS = 3
"""Each holds torch and a suite in memory: about half a gigabyte."""
POLL_SECONDS = 0.5
"""How long an idle desk waits before it looks again for attempts of other machines' students."""


def likely_assignments(course: Course, now: datetime) -> list[Assignment]:
    """The built assignments, the likeliest to be handed in first: those due soonest, then those
    without a due time, then those whose due time is over, the latest first.
    """
    built = [
        assignment for assignment in course.assignments() if assignment.release.exists()
    ]
    due = {name: time.timestamp() for name, time in course.due.items()}
    begin = now.timestamp()

    def rank(assignment: Assignment) -> tuple[int, float]:
        time = due.get(assignment.name)
        if time is None:
            return 1, 0.0
        return (0, time) if time >= begin else (2, -time)

    return sorted(built, key=rank)


@dataclass
class _OpenStation:
    """A running station, and for whom.

    Attributes:
        suite_sha256: hash of the suite and settings that it loaded.
        users: threads that wait for an answer of it.
    """

    station: Station
    suite_sha256: str
    users: int = 0
    last_use: float = field(default_factory=time.monotonic)


class GradingDesk:
    """Grades what waits, until it is closed. A context manager.

    Args:
        load_course: the course as its files are now.
        machine: this machine's name, which no other grading machine has.
        tell: prints a line for whoever runs the server.
    """

    def __init__(
        self,
        load_course: Callable[[], Course],
        store: AttemptStore,
        machine: str,
        graders: int,
        isolation: str,
        tell: Callable[[str], None],
    ) -> None:
        self._load_course = load_course
        self._store = store
        self.machine = machine
        self._graders = graders
        self._isolation = isolation
        self._tell = tell
        self._stations: dict[str, _OpenStation] = {}
        self._at_work: set[int] = set()
        self._table = threading.Lock()
        """Guards the stations and their users, and is held for moments: a station starts outside
        it, so that others grade meanwhile.
        """
        self._starting: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._has_work = threading.Condition()
        self._closed = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, name=f"grader-{number}")
            for number in range(graders)
        ]
        self._threads.append(threading.Thread(target=self._keep_leases, name="leases"))
        if graders:
            self._threads.append(
                threading.Thread(target=self._open_first, name="first stations")
            )

    def __enter__(self) -> GradingDesk:
        self._store.release(self.machine)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End the stations. What they were grading goes back into the queue."""
        self._closed.set()
        self.wake()
        with self._table:
            for open_station in self._stations.values():
                open_station.station.close()
        for thread in self._threads:
            thread.join()
        self._store.release(self.machine)

    def wake(self) -> None:
        """Say that an attempt has come."""
        with self._has_work:
            self._has_work.notify_all()

    def _work(self) -> None:
        while not self._closed.is_set():
            claim = None
            try:
                claim = self._store.claim(self.machine)
                if claim is not None:
                    self._at_work.add(claim.attempt.id)
                    self._grade(claim)
            except Exception as error:
                # whatever it is: a thread that ended would leave everybody waiting
                self._tell(f"tried again: {one_line(str(error))}")
                self._give_back(claim, error)
            finally:
                if claim is not None:
                    self._at_work.discard(claim.attempt.id)
            if claim is None and not self._closed.is_set():
                with self._has_work:
                    self._has_work.wait(POLL_SECONDS)

    def _open_first(self) -> None:
        """Start the stations of assignments at which people will hand in first."""
        course = self._load_course()
        for assignment in likely_assignments(course, datetime.now(UTC))[:MOST_STATIONS]:
            try:
                suite = course_sha256(course, assignment)
                with self._use_station(course, assignment, suite):
                    self._tell(f"graders are ready for {assignment.name}")
            except (KitError, OSError, MachineFault) as error:
                if not self._closed.is_set():
                    self._tell(f"{assignment.name}: {one_line(str(error))}")

    def _give_back(self, claim: Claim | None, error: Exception) -> None:
        """Have an attempt begun again later. Where the database does not answer, its lease ends."""
        self._closed.wait(POLL_SECONDS)
        if claim is not None:
            with contextlib.suppress(SQLAlchemyError):
                self._store.fail(claim, one_line(str(error)))

    def _keep_leases(self) -> None:
        while not self._closed.wait(LEASE_SECONDS / 3):
            with contextlib.suppress(SQLAlchemyError):
                self._store.renew(self.machine, tuple(self._at_work))

    def _grade(self, claim: Claim) -> None:
        """Grade one attempt and store the answer."""
        attempt = claim.attempt
        course = self._load_course()
        try:
            assignment = course.assignment(attempt.assignment)
            suite = course_sha256(course, assignment)
            # a regrade grades: the suite may be the same, and the kit or torch another one
            answer = None if attempt.aside else self._store.equal_answer(attempt, suite)
            if answer is None:
                answer = self._grade_at_station(course, assignment, suite, claim)
        except (KitError, OSError, MachineFault) as error:
            if self._closed.is_set():
                return  # this desk ends: the attempt goes back into the queue
            self._tell(f"{attempt.student}, {attempt.assignment}: {error}")
            # a suite that cannot grade now cannot grade in a second either
            self._store.fail(claim, str(error), is_final=isinstance(error, KitError))
            return
        self._store.finish(claim, answer)

    def _grade_at_station(
        self, course: Course, assignment: Assignment, suite: str, claim: Claim
    ) -> bytes:
        student = claim.attempt.student
        name = assignment.name
        folder = read_ledger(course).folder(student)
        packed = PackedSubmission(
            student, (folder, name, f"{name}.ipynb"), claim.notebook
        )
        with self._use_station(course, assignment, suite) as station:
            return station.grade(packed)

    @contextlib.contextmanager
    def _use_station(
        self, course: Course, assignment: Assignment, suite: str
    ) -> Iterator[Station]:
        """The station of an assignment, with the suite as it is now."""
        with self._starting[
            assignment.name
        ]:  # one thread starts it, the others wait for it
            open_station = self._find(assignment, suite)
            if open_station is None:
                open_station = self._open(course, assignment, suite)
        try:
            yield open_station.station
        finally:
            with self._table:
                open_station.users -= 1
                open_station.last_use = time.monotonic()

    def _find(self, assignment: Assignment, suite: str) -> _OpenStation | None:
        """The station that runs with this suite, with one user more; None where none does."""
        with self._table:
            open_station = self._stations.get(assignment.name)
            if open_station is None:
                return None
            if open_station.suite_sha256 == suite and not open_station.station.ended:
                open_station.users += 1
                return open_station
            # its suite is of yesterday, or it has ended: what it was grading begins again
            self._stations.pop(assignment.name).station.close()
            return None

    def _open(self, course: Course, assignment: Assignment, suite: str) -> _OpenStation:
        """Start a station, which takes seconds, for one user."""
        with self._table:
            self._make_room()
        station = Station(
            course.root,
            assignment.name,
            self._isolation,
            self._graders,
            extras_for_any(course, assignment),
        )
        with self._table:
            if self._closed.is_set():
                station.close()
                raise KitError("the server ends")
            open_station = _OpenStation(station, suite, users=1)
            self._stations[assignment.name] = open_station
        return open_station

    def _make_room(self) -> None:
        """End the station that was idle for longest, where there are too many."""
        idle = [name for name, entry in self._stations.items() if not entry.users]
        if len(self._stations) >= MOST_STATIONS and idle:
            oldest = min(idle, key=lambda name: self._stations[name].last_use)
            self._stations.pop(oldest).station.close()

"""The side of a machine: a plugin of its Dask worker, which holds the course, and the task that grades a share.

The course comes with the plugin, once for each Dask worker, whether it is there already or joins later. No student's
code and no suite is ever in the Dask worker itself: it starts a station, a program of its own, and hands submissions
on.
"""

from __future__ import annotations

import itertools
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

from distributed import Worker, WorkerPlugin, get_worker, secede

from autograder.cluster.course_copy import unpack_course
from autograder.cluster.messages import Answer, HandedIn, Order, Reply
from autograder.errors import KitError
from autograder.fingerprint import software
from autograder.sandbox.leftovers import ScratchFolder

_DIED = "the graders of this machine ended while they graded this submission"
_PATIENCE = 10.0
"""Seconds that a killed process may take to go."""


class Station:
    """The program that grades on this machine, and the way to it from any thread.

    Raises:
        KitError: it says that this machine cannot grade, or did not even start.
    """

    def __init__(self, order: Order) -> None:
        self._line, theirs = Pipe()
        program = [sys.executable, "-P", "-m", "autograder.cluster.station", str(theirs.fileno())]
        # in a session of its own: what a terminal sends to a Dask worker is not for it
        self._process = subprocess.Popen(
            program, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
        )
        theirs.close()
        try:
            self._line.send(order)
            refusal = self._line.recv()
        except (EOFError, OSError):
            refusal = f"its graders did not start (status {self._process.wait()}); the log of the Dask worker says why"
        if refusal:
            self.close()
            self._line.close()
            raise KitError(refusal)
        self._sending = threading.Lock()
        self._numbers = itertools.count()
        self._asked: dict[int, queue.SimpleQueue[Answer]] = {}
        self.ended = False
        threading.Thread(target=self._listen, daemon=True).start()

    def grade(self, share: Sequence[HandedIn]) -> tuple[Answer, ...]:
        """Have submissions graded, and wait for all of them; several threads may."""
        with self._sending:
            asked = [self._ask(handed_in) for handed_in in share]
        return tuple(answer.get() for answer in asked)

    def _ask(self, handed_in: HandedIn) -> queue.SimpleQueue[Answer]:
        number = next(self._numbers)
        answer = self._asked[number] = queue.SimpleQueue()
        try:
            self._line.send((number, handed_in))
        except OSError:
            answer.put(Answer(None, _DIED))
        if self.ended:  # nobody may be listening any more
            answer.put(Answer(None, _DIED))
        return answer

    def _listen(self) -> None:
        try:
            while True:
                number, answer, fault = self._line.recv()
                self._asked.pop(number).put(Answer(answer, fault))
        except (EOFError, OSError):
            pass
        with self._sending:
            self.ended = True
            for answer in self._asked.values():
                answer.put(Answer(None, _DIED))
            self._line.close()

    def close(self) -> None:
        """End it with everything that it started; its graders and hosts end with it."""
        self._process.kill()
        self._process.wait(_PATIENCE)


class CourseThere(WorkerPlugin):  # type: ignore[misc]
    """One assignment of a course on a machine of the cluster.

    Args:
        name: says by its hash what is in it: two that have one name are equal.
        software: the kit and the libraries of the driver; a machine with others could give other results.
    """

    idempotent = True

    def __init__(
        self, name: str, packed: bytes, assignment: str, isolation: str, extras: tuple[str, ...], wanted: dict[str, str]
    ) -> None:
        self.name = name
        self._packed, self._assignment, self._isolation = packed, assignment, isolation
        self._extras, self._software = extras, wanted

    def setup(self, worker: Worker) -> None:
        """Nothing is unpacked or started before the first submission comes: this runs in Dask's own thread."""
        if worker.nanny and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for its nanny, or the driver, which end it
        self._graders = worker.state.nthreads
        own_name = "" if worker.name == worker.address else f"/{worker.name}"
        self._machine = f"{socket.gethostname()}{own_name}"
        self._opening = threading.Lock()
        self._folder: ScratchFolder | None = None
        self._station: Station | None = None
        self._refusal = ""
        self._over = False

    def teardown(self, worker: Worker) -> None:
        """End the graders and remove the course from this machine."""
        self._over = True  # whoever is opening sees to it
        self._clear()

    def _clear(self) -> None:
        if self._station is not None:
            self._station.close()
        if self._folder is not None:
            self._folder.remove()

    def grade(self, share: Sequence[HandedIn]) -> Reply:
        """A share; called from a thread for each that is under way."""
        with self._opening:
            if not self._refusal and (self._station is None or self._station.ended):
                self._open()
        if self._refusal or self._station is None:
            return Reply(self._machine, refusal=self._refusal)
        return Reply(self._machine, self._station.grade(share))

    def _open(self) -> None:
        """The course unpacked, hosts started, walls proven; or a refusal."""
        try:
            if other := [f"{name} {software().get(name)}, not {its}" for name, its in self._software.items()
                         if software().get(name) != its]:  # fmt: skip
                raise KitError(f"it has another software than where the class is graded from: {', '.join(other)}")
            if self._folder is None:
                self._folder = ScratchFolder()
                unpack_course(self._packed, self._course)
            order = Order(self._course, self._assignment, self._isolation, self._graders, self._extras)
            self._station = Station(order)
        except (KitError, OSError) as error:
            self._refusal = str(error)
        if self._over:
            self._clear()

    @property
    def _course(self) -> Path:
        assert self._folder is not None
        return self._folder.path / "course"


def grade_there(course: str, share: Sequence[HandedIn]) -> Reply:
    """The task: grade a share on whichever machine this runs, with the course of that name."""
    secede()  # it takes no thread of the Dask worker's, so that the station has the next share before it ends this one
    there: Any = get_worker().plugins.get(course)
    return Reply(socket.gethostname()) if there is None else there.grade(share)

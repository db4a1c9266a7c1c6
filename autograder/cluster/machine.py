"""The side of a machine: a plugin of its Dask worker, which holds the course, and the task that
grades a submission.

The course comes with the plugin, once for each Dask worker, whether it is there already or joins
later. No student's code and no suite is ever in the Dask worker itself: it starts a station, a
program of its own, and hands submissions on.
"""

from __future__ import annotations

import hashlib
import json
import signal
import socket
import threading
from typing import Any

from distributed import Worker, WorkerPlugin, get_worker, secede

from autograder.basics.errors import KitError
from autograder.cluster.messages import unpack_course
from autograder.course.fingerprint import deciding_software
from autograder.grading.packed_submission import PackedSubmission
from autograder.grading.station import MachineFault, Station
from autograder.sandbox.leftovers import ScratchFolder


class MachineRefuses(Exception):
    """This machine can grade nothing: its name, the address of its Dask worker, and why."""


class CourseGone(Exception):
    """This machine does not have the course: another run of the course removed it at its end."""


class CourseOnMachine(WorkerPlugin):  # type: ignore[misc]
    """One assignment of a course on a machine of the cluster.

    Dask's own plugin for folders, `UploadDirectory`, needs a nanny, leaves out folders that are
    called `tests`, and leaves the copy behind where others may read it.
    """

    idempotent = True

    def __init__(
        self,
        packed_course: bytes,
        assignment: str,
        isolation: str,
        extras: tuple[str, ...],
    ) -> None:
        self._packed_course, self._assignment = packed_course, assignment
        self._isolation, self._extras = isolation, extras
        self._drivers_software = deciding_software()
        digest = hashlib.sha256(packed_course)
        digest.update(
            json.dumps([assignment, isolation, extras, self._drivers_software]).encode()
        )
        self.name = f"attention-kit-{digest.hexdigest()}"  # two of one name are equal

    def setup(self, worker: Worker) -> None:
        """Nothing is unpacked or started before the first submission comes: this runs in Dask's own
        thread.
        """
        if worker.nanny and threading.current_thread() is threading.main_thread():
            # on Ctrl-C the nanny or the driver ends the worker
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._graders, self._address = worker.state.nthreads, worker.address
        own_name = "" if worker.name == worker.address else f"/{worker.name}"
        self._machine = f"{socket.gethostname()}{own_name}"
        self._opening = threading.Lock()
        self._folder: ScratchFolder | None = None
        self._station: Station | None = None
        self._refusal = ""
        self._over = False

    def teardown(self, worker: Worker) -> None:
        """End the graders and remove the course from this machine."""
        self._over = True  # a thread that is in `_open` now clears up when it is done
        self._clear()

    def _clear(self) -> None:
        if self._station is not None:
            self._station.close()
        if self._folder is not None:
            self._folder.remove()

    def grade(self, packed: PackedSubmission) -> tuple[str, bytes]:
        """Grade a submission: the machine's name, and the packed answer. Dask calls it in a thread
        for each task.

        Raises:
            MachineRefuses, MachineFault: there is no answer.
        """
        with self._opening:
            if not self._refusal and (self._station is None or self._station.ended):
                self._open()
        if self._refusal or self._station is None:
            raise MachineRefuses(self._machine, self._address, self._refusal)
        try:
            return self._machine, self._station.grade(packed)
        except MachineFault as fault:
            raise MachineFault(f"{self._machine}: {fault}") from None

    def _open(self) -> None:
        """Unpack the course, start hosts, prove walls; or refuse."""
        try:
            refuse_other_software(self._drivers_software)
            if self._folder is None:
                self._folder = ScratchFolder()
                unpack_course(self._packed_course, self._folder.path / "course")
            root = self._folder.path / "course"
            self._station = Station(
                root, self._assignment, self._isolation, self._graders, self._extras
            )
        except (KitError, MachineFault, OSError) as error:
            self._refusal = str(error)
        if self._over:
            self._clear()


def refuse_other_software(drivers_software: dict[str, str]) -> None:
    """Compare this machine's software with the driver's.

    Raises:
        KitError: they differ; names each difference.
    """
    present = deciding_software()
    differing = [
        name for name, version in drivers_software.items() if present[name] != version
    ]
    if differing:
        differences = ", ".join(
            f"{name} {present[name]}, not {drivers_software[name]}"
            for name in differing
        )
        raise KitError(
            f"it has another software than where the class is graded from: {differences}"
        )


def grade_on_machine(course: str, packed: PackedSubmission) -> tuple[str, bytes]:
    """The task: grade a submission on whichever machine this runs, with the course of that name."""
    # takes no thread of the Dask worker's, so that the station has the next submission before this
    # one ends
    secede()
    plugin: Any = get_worker().plugins.get(course)
    if plugin is None:
        raise CourseGone
    answer: tuple[str, bytes] = plugin.grade(packed)
    return answer

"""A station: a program that grades what it is sent, and the way to it from any thread."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from concurrent.futures import Future
from multiprocessing import Pipe
from pathlib import Path

from autograder.basics.errors import KitError
from autograder.grading.packed_submission import PackedSubmission

_DIED = "the graders of this machine ended while they graded this submission"
_PATIENCE = 10.0
"""Seconds that a killed process may take to go."""


class MachineFault(Exception):
    """The machine, or the suite, is to blame that a submission has no result."""


class Station:
    """The program that grades on this machine, and the way to it from any thread.

    Args:
        order: the course's folder, the assignment's name, the walls, the number of graders, and
            what hosts load.

    Raises:
        KitError: this machine, or the suite, cannot grade.
        MachineFault: the program did not start.
    """

    def __init__(self, *order: Path | str | int | tuple[str, ...]) -> None:
        self._line, station_end = Pipe()
        program = [
            sys.executable,
            "-P",
            "-m",
            "autograder.grading.station_program",
            str(station_end.fileno()),
        ]
        # in a session of its own: what a terminal sends to a Dask worker is not for it
        self._process = subprocess.Popen(
            program,
            pass_fds=[station_end.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        station_end.close()
        try:
            self._line.send(order)
            refusal = self._line.recv()
        except (EOFError, OSError):
            raise MachineFault(
                f"its graders did not start (status {self._process.wait()}); the log of the "
                "process that started them says why"
            ) from None
        if refusal:
            self.close()
            raise KitError(refusal)
        self._sending = threading.Lock()
        self._numbers = itertools.count()
        self._answers: dict[int, Future[bytes]] = {}
        self.ended = False
        threading.Thread(target=self._listen, daemon=True).start()

    def grade(self, packed: PackedSubmission) -> bytes:
        """Have a submission graded, and wait for it; several threads may.

        Raises:
            MachineFault: there is no answer.
        """
        answer: Future[bytes] = Future()
        with self._sending:
            number = next(self._numbers)
            self._answers[number] = answer
            try:
                self._line.send((number, packed))
            except OSError:
                raise MachineFault(_DIED) from None
        return answer.result()

    def _listen(self) -> None:
        try:
            while True:
                number, content, fault = self._line.recv()
                if content is None:
                    self._answers.pop(number).set_exception(MachineFault(fault))
                else:
                    self._answers.pop(number).set_result(content)
        except (EOFError, OSError):
            pass
        with self._sending:
            self.ended = True
            self._line.close()
            for answer in self._answers.values():
                answer.set_exception(MachineFault(_DIED))

    def close(self) -> None:
        """End it with everything that it started; its graders and hosts end with it."""
        self._process.kill()
        self._process.wait(_PATIENCE)

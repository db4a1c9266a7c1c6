"""The process that grades on a machine, started as a program: one bench, and a pool of forked graders.

    python -m autograder.cluster.station DESCRIPTOR

It is a process of its own, since graders are forked from a process without threads and keep time by signals, and so
that no process of Dask's has the suite in it. It reads submissions from a connection, and ends when that does.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from autograder.cluster.messages import HandedIn, Order
from autograder.course import load_course
from autograder.errors import KitError
from autograder.grading.batch import graded_bytes
from autograder.grading.bench import Bench
from autograder.grading.pool import Pool
from autograder.model import FoundSubmission
from autograder.sandbox.host import HostClient


@dataclass(frozen=True, slots=True)
class Arrived:
    """A submission that has come, under the number by which it is answered."""

    number: int
    found: FoundSubmission
    folder: Path


class Line:
    """The connection to whoever started this process; submissions come by it while others are graded."""

    def __init__(self, connection: Connection, submitted: Path) -> None:
        self._connection, self._submitted = connection, submitted

    def fileno(self) -> int:
        """What there is to wait for."""
        return self._connection.fileno()

    def take(self) -> Arrived:
        """The next submission.

        Raises:
            EOFError: there is nobody any more.
        """
        number, handed_in = self._connection.recv()
        assert isinstance(handed_in, HandedIn)
        folder = self._submitted / str(number)
        return Arrived(number, handed_in.write_below(folder), folder)


def serve(connection: Connection, order: Order) -> None:
    """Grade what comes.

    Raises:
        KitError: this machine, or the suite, cannot grade.
        EOFError: nobody sends any more.
    """
    course = load_course(order.root)
    assignment = course.assignment(order.assignment)
    with Bench(course, assignment, order.isolation, order.graders, order.extras) as bench:
        connection.send("")

        def work(client: HostClient, arrived: Arrived) -> bytes:
            return graded_bytes(bench, client, arrived.found)

        for ended in Pool[HostClient, Arrived](bench, (), work, arrivals=Line(connection, course.submitted)).run():
            shutil.rmtree(ended.job.folder, ignore_errors=True)
            connection.send((ended.job.number, ended.answer, ended.fault))


def main() -> None:
    """Take the order, say whether it can be done, and do it. The connection is for this process alone."""
    descriptor = int(sys.argv[1])
    os.set_inheritable(descriptor, False)
    os.dup2(2, 1)  # what a suite prints is for nobody, or for a log
    connection = Connection(descriptor)
    try:
        serve(connection, connection.recv())
    except KitError as error:
        connection.send(str(error))
    except EOFError:
        pass


if __name__ == "__main__":
    main()

"""The process that grades on a machine, started as a program: one bench, and a pool of forked
graders.

    python -m autograder.grading.station_program DESCRIPTOR

It is a process of its own, since graders are forked from a process without threads and keep time by
signals, and so that no process of Dask's has the suite in it. It reads submissions from a
connection, and ends when that does.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from multiprocessing.connection import Connection
from pathlib import Path

from autograder.basics.errors import KitError
from autograder.course import load_course
from autograder.grading.bench import Bench
from autograder.grading.pool import Pool
from autograder.records.submission import FoundSubmission
from autograder.sandbox.host_process import HostClient
from autograder.sandbox.leftovers import ScratchFolder

Numbered = tuple[int, FoundSubmission]
"""A submission that has come, under the number by which it is answered."""


class Line:
    """The connection to a `Station`, which sends submissions while this process grades."""

    def __init__(self, connection: Connection, scratch: Path) -> None:
        self._connection = connection
        self._scratch = scratch

    def fileno(self) -> int:
        """What there is to wait for."""
        return self._connection.fileno()

    def receive(self) -> Numbered:
        """The next submission.

        Raises:
            EOFError: there is nobody any more.
        """
        number, packed = self._connection.recv()
        return number, packed.unpack_below(self._scratch / str(number))


def serve(connection: Connection) -> None:
    """Take the order, say whether it can be done, and grade what comes.

    Raises:
        KitError: this machine, or the suite, cannot grade.
        EOFError: nobody sends any more.
    """
    root, name, *options = connection.recv()
    course = load_course(root)
    scratch = ScratchFolder()
    with contextlib.ExitStack() as stack:
        stack.callback(scratch.remove)
        bench = stack.enter_context(Bench(course, course.assignment(name), *options))
        connection.send("")

        def work(client: HostClient, numbered: Numbered) -> bytes:
            return bench.grader.grade_to_bytes(client, numbered[1])

        line = Line(connection, scratch.path)
        for ended in Pool[Numbered](bench, (), work, arrivals=line).run():
            number, _ = ended.job
            shutil.rmtree(scratch.path / str(number), ignore_errors=True)
            connection.send((number, ended.answer, ended.fault))


def main() -> None:
    """Grade for whoever started this program. The connection is for this process alone."""
    descriptor = int(sys.argv[1])
    os.set_inheritable(descriptor, False)
    os.dup2(2, 1)  # what a suite prints is for nobody, or for a log
    connection = Connection(descriptor)
    try:
        serve(connection)
    except KitError as error:
        connection.send(str(error))
    except EOFError:
        pass


if __name__ == "__main__":
    main()

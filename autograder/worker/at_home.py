"""Runs a notebook's cells on its student's own machine, for `check.py`, as a worker runs them when
they are graded.

It is started as a program, with a JSON object on its standard input:

    {"cells": [{"id", "source", "is_check"}], "functions": [names], "folder": path, "limits": {...}}

It writes JSON lines: {"ready"}; {"cell", "error", "printed"} for each cell, or {"cell", "too_long"}
and nothing more; {"defined": [names]}, the functions that the notebook has defined at the end.

There are no walls here: what grading would refuse is refused by Python's audit events, which is
enough for somebody who checks their own work.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from autograder.worker.cells import run_cell
from autograder.worker.notebook_world import (
    fresh_seeds,
    install_colab,
    install_my_course,
    new_namespace,
    run_eagerly,
)

ASLEEP_TIMES = 2
"""A cell may sleep so many times as long as it may compute, as when it is graded."""
TICK = 0.05
"""Seconds between two looks at the clock."""
_LIBRARIES = ("numpy", "torch", "matplotlib.pyplot")
"""What a worker has loaded before the first cell, so that no cell is charged for it."""
_STARTS_A_PROCESS = {
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.spawn",
}
_OPENS_A_CONNECTION = {"socket.connect", "socket.getaddrinfo"}


class Clock(threading.Thread):
    """Ends this process where a cell, or all of them together, take longer than the course lets
    them.
    """

    def __init__(self, replies: Replies, cell_seconds: float, all_seconds: float) -> None:
        super().__init__(daemon=True)
        self._replies, self._cell_seconds, self._all_seconds = replies, cell_seconds, all_seconds
        self._cell = ""
        self._all_began = self._began = (0.0, 0.0)

    def begin(self, cell: str) -> None:
        """A cell begins now; "" where none does."""
        self._began = time.process_time(), time.monotonic()
        self._cell = cell

    def run(self) -> None:
        """Look at the clock again and again."""
        self._all_began = time.process_time(), time.monotonic()
        while True:
            time.sleep(TICK)
            if self._cell and (problem := self._problem()):
                self._replies.send({"cell": self._cell, "too_long": problem})
                os._exit(1)

    def _problem(self) -> str:
        for subject, (processor, wall), limit in (
            ("it", self._began, self._cell_seconds),
            ("the notebook", self._all_began, self._all_seconds),
        ):
            computed = time.process_time() - processor
            asleep = time.monotonic() - wall - computed
            if computed > limit or asleep > ASLEEP_TIMES * limit:
                return f"{subject} took longer than {limit:g} s, the most when it is graded"
        return ""


class Replies:
    """Where this program's answers go, apart from whatever cells print."""

    def __init__(self) -> None:
        self._file = os.fdopen(os.dup(1), "w", encoding="utf-8")
        nowhere = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1):
            os.dup2(nowhere, standard)

    def send(self, reply: dict[str, Any]) -> None:
        """Write one line."""
        self._file.write(json.dumps(reply) + "\n")
        self._file.flush()


class Namespaces:
    """The namespace of the graded cells, and a second one for checks: no graded cell sees a name of
    a check.
    """

    def __init__(self) -> None:
        self.graded = new_namespace()
        # name → the check's value, and the graded one below it
        self._of_checks: dict[str, tuple[Any, Any]] = {}

    def for_check(self) -> dict[str, Any]:
        """A copy of the graded names with the names of earlier checks, unless a graded cell has
        changed one since.
        """
        names = {
            name: value
            for name, (value, below) in self._of_checks.items()
            if self.graded.get(name) is below
        }
        return {**self.graded, **names}

    def keep(self, names: dict[str, Any]) -> None:
        """Keep the names of a check that has run, for later checks."""
        for name, value in names.items():
            if self.graded.get(name) is not value:
                self._of_checks[name] = value, self.graded.get(name)


def main() -> None:
    """Run the cells of the job on standard input."""
    job = json.loads(sys.stdin.buffer.read())
    replies = Replies()
    folder, limits = Path(job["folder"]), job["limits"]
    beside = {folder, Path(sys.argv[0]).resolve().parent}
    sys.path[:] = [entry for entry in sys.path if entry and Path(entry).resolve() not in beside]
    text = "\n".join(cell["source"] for cell in job["cells"])
    _load_libraries(text)
    sys.addaudithook(lambda event, arguments: _refuse(event, arguments, folder))
    _limit_memory_and_files(limits)
    spaces = Namespaces()
    install_colab()
    install_my_course(spaces.graded)
    clock = Clock(replies, limits["cell_seconds"], limits["submission_seconds"])
    clock.start()
    replies.send({"ready": True})
    for cell in job["cells"]:
        names = spaces.for_check() if cell["is_check"] else spaces.graded
        clock.begin(cell["id"])
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            error = run_cell(cell["id"], cell["source"], names)
        clock.begin("")
        if cell["is_check"]:
            spaces.keep(names)
        replies.send({"cell": cell["id"], "error": error, "printed": printed.getvalue()[:200]})
    replies.send({"defined": [name for name in job["functions"] if name in spaces.graded]})
    os._exit(0)  # threads of the notebook's do not keep it


def _load_libraries(text: str) -> None:
    """Load what the notebook names, and prepare it as a worker does. A notebook of plain Python
    needs none.
    """
    for library in _LIBRARIES:
        if library.partition(".")[0] in text:
            with contextlib.suppress(Exception):  # the cell that imports the library says so
                importlib.import_module(library)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
        run_eagerly()
        fresh_seeds()


def _limit_memory_and_files(limits: dict[str, Any]) -> None:
    # Windows has no such limits, macOS not all of them
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        memory = pages * resource.getpagesize() + (limits["memory_mb"] << 20)
        for resource_limit, most in (
            (resource.RLIMIT_AS, memory),
            (resource.RLIMIT_FSIZE, limits["file_mb"] << 20),
        ):
            resource.setrlimit(resource_limit, (most, resource.getrlimit(resource_limit)[1]))


def _refuse(event: str, arguments: tuple[Any, ...], folder: Path) -> None:
    """Raise for what a worker may not do either.

    Raises:
        PermissionError, FileNotFoundError: as the notebook would see it when it is graded.
    """
    if event in _STARTS_A_PROCESS:
        raise PermissionError(errno.EPERM, "no process can be started when this is graded")
    # as asyncio does on Windows
    to_itself = event == "socket.connect" and arguments[1][:1] == ("127.0.0.1",)
    if event in _OPENS_A_CONNECTION and not to_itself:
        raise PermissionError(errno.EPERM, "there is no network when this is graded")
    if (
        event == "open"
        and isinstance(arguments[0], str)
        and _lies_beside(Path(arguments[0]), folder)
    ):
        raise FileNotFoundError(
            errno.ENOENT, "only the notebook is there when it is graded", arguments[0]
        )


def _lies_beside(path: Path, folder: Path) -> bool:
    """Whether a file lies in the notebook's folder. Python's own may lie there too, and what
    libraries keep in hidden folders.
    """
    if not path.is_relative_to(folder) or path == folder:
        return False
    is_hidden = path.relative_to(folder).parts[0].startswith(".")
    return not is_hidden and not any(
        path.is_relative_to(prefix) for prefix in (sys.prefix, sys.base_prefix)
    )


if __name__ == "__main__":
    main()

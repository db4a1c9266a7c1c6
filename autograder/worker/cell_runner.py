"""The program with which `check.py` runs a notebook's cells on its student's own machine, as a
worker runs them when they are graded.

It reads a JSON object from its standard input:

    {"cells": [{"id", "source", "is_check"}], "companions": {path: text}, "functions": [names],
     "folder": path, "limits": {...}}

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
from autograder.worker.companion_modules import CompanionModules
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
"""Seconds between two readings of the clock."""
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


class Watchdog(threading.Thread):
    """Ends this process where a cell, or all cells together, take longer than the course lets
    them.
    """

    def __init__(self, replies: Replies, limits: dict[str, Any]) -> None:
        super().__init__(daemon=True)
        self._replies = replies
        self._limits = limits
        self._cell = ""
        self._cell_began = self._notebook_began = (0.0, 0.0)

    def begin(self, cell: str) -> None:
        """Start the time of a cell; "" where no cell runs."""
        self._cell_began = _times()
        self._cell = cell

    def run(self) -> None:
        """Read the clock again and again."""
        self._notebook_began = _times()
        while True:
            time.sleep(TICK)
            if self._cell and (problem := self._problem()):
                self._replies.send({"cell": self._cell, "too_long": problem})
                os._exit(1)

    def _problem(self) -> str:
        limits = self._limits
        if _is_over(self._cell_began, limits["cell_seconds"]):
            return f"it took longer than {limits['cell_seconds']:g} s, the most when it is graded"
        if _is_over(self._notebook_began, limits["submission_seconds"]):
            return (
                f"the notebook took longer than {limits['submission_seconds']:g} s, the most when "
                "it is graded"
            )
        return ""


def _times() -> tuple[float, float]:
    """Seconds of processor time, and of wall time."""
    return time.process_time(), time.monotonic()


def _is_over(began: tuple[float, float], limit: float) -> bool:
    processor, wall = _times()
    computed = processor - began[0]
    asleep = wall - began[1] - computed
    return computed > limit or asleep > ASLEEP_TIMES * limit


class Replies:
    """This program's standard output, kept apart from the cells' own."""

    def __init__(self) -> None:
        self._file = os.fdopen(os.dup(1), "w", encoding="utf-8")
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1):
            os.dup2(null, standard)

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
        # name → the check's value, and the graded cells' value at that time
        self._of_checks: dict[str, tuple[Any, Any]] = {}

    def for_check(self) -> dict[str, Any]:
        """A copy of the graded names with the names of earlier checks, unless a graded cell has
        changed one since.
        """
        names = dict(self.graded)
        for name, (value, graded) in self._of_checks.items():
            if self.graded.get(name) is graded:
                names[name] = value
        return names

    def keep(self, names: dict[str, Any]) -> None:
        """Keep the names of a check that has run, for later checks."""
        for name, value in names.items():
            graded = self.graded.get(name)
            if graded is not value:
                self._of_checks[name] = value, graded


def main() -> None:
    """Run the cells of the job on standard input."""
    job = json.loads(sys.stdin.buffer.read())
    replies = Replies()
    folder = Path(job["folder"])
    limits = job["limits"]
    _remove_from_path(folder, Path(sys.argv[0]).resolve().parent)
    texts = [cell["source"] for cell in job["cells"]]
    _load_libraries("\n".join([*texts, *job["companions"].values()]))
    sys.addaudithook(lambda event, arguments: _refuse(event, arguments, folder))
    _limit_memory_and_files(limits)
    namespaces = Namespaces()
    install_colab()
    install_my_course(namespaces.graded)
    watchdog = Watchdog(replies, limits)
    watchdog.start()
    replies.send({"ready": True})
    companions = CompanionModules(job["companions"])
    for cell in job["cells"]:
        companions.restore()
        names = namespaces.for_check() if cell["is_check"] else namespaces.graded
        watchdog.begin(cell["id"])
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            error = run_cell(cell["id"], cell["source"], names)
        watchdog.begin("")
        if cell["is_check"]:
            namespaces.keep(names)
        text = printed.getvalue()[:200]
        replies.send({"cell": cell["id"], "error": error, "printed": text})
    defined = [name for name in job["functions"] if name in namespaces.graded]
    replies.send({"defined": defined})
    os._exit(0)  # does not wait for threads of the notebook's


def _remove_from_path(*folders: Path) -> None:
    """Let no cell import what lies in these folders: grading has neither."""
    sys.path[:] = [
        entry for entry in sys.path if entry and Path(entry).resolve() not in folders
    ]


def _load_libraries(text: str) -> None:
    """Load the libraries that the notebook names, and prepare them as a worker does. A notebook of
    plain Python needs none.
    """
    for library in _LIBRARIES:
        if library.partition(".")[0] in text:
            with contextlib.suppress(
                Exception
            ):  # the cell that imports the library reports it
                importlib.import_module(library)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
        run_eagerly()
        fresh_seeds()


def _limit_memory_and_files(limits: dict[str, Any]) -> None:
    # Windows has no such limits, macOS not all of them
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        statm = Path("/proc/self/statm").read_text(encoding="ascii")
        pages = int(statm.split()[0])
        memory = pages * resource.getpagesize() + (limits["memory_mb"] << 20)
        soft_limits = {
            resource.RLIMIT_AS: memory,
            resource.RLIMIT_FSIZE: limits["file_mb"] << 20,
        }
        for kind, soft_limit in soft_limits.items():
            _, hard_limit = resource.getrlimit(kind)
            resource.setrlimit(kind, (soft_limit, hard_limit))


def _refuse(event: str, arguments: tuple[Any, ...], folder: Path) -> None:
    """Raise where a worker would be refused too.

    Raises:
        PermissionError, FileNotFoundError: as the notebook would see it when it is graded.
    """
    if event in _STARTS_A_PROCESS:
        raise PermissionError(
            errno.EPERM, "no process can be started when this is graded"
        )
    if event in _OPENS_A_CONNECTION:
        # asyncio on Windows connects to this machine itself
        is_local = event == "socket.connect" and arguments[1][:1] == ("127.0.0.1",)
        if not is_local:
            raise PermissionError(
                errno.EPERM, "there is no network when this is graded"
            )
    if event == "open" and isinstance(arguments[0], str):
        path = arguments[0]
        if _lies_beside_notebook(Path(path), folder):
            raise FileNotFoundError(
                errno.ENOENT, "only the notebook is there when it is graded", path
            )


def _lies_beside_notebook(path: Path, folder: Path) -> bool:
    """Whether a file lies in the notebook's folder. Python's own files may lie there too, and
    hidden folders in which libraries keep files.
    """
    if not path.is_relative_to(folder) or path == folder:
        return False
    is_hidden = path.relative_to(folder).parts[0].startswith(".")
    prefixes = (sys.prefix, sys.base_prefix)
    is_of_python = any(path.is_relative_to(prefix) for prefix in prefixes)
    return not is_hidden and not is_of_python


if __name__ == "__main__":
    main()

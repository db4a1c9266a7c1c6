"""Runs as the cell of a worker, before any student's: tries what a hostile submission would try, reports what it got.

It is sent as text and runs inside the walls, so it imports what it needs in its functions.
"""

from __future__ import annotations

from collections.abc import Callable


def attempts(targets: str) -> list[tuple[str, bool, str]]:
    """One row an attempt: (what, whether it worked, what happened)."""
    import functools
    import json

    wanted = json.loads(targets)
    rows: list[tuple[str, bool, str]] = []

    def attempt(name: str, action: Callable[[], object]) -> None:
        try:
            rows.append((name, True, f"got {action()!r}"[:200]))
        except BaseException as error:
            rows.append((name, False, f"{type(error).__name__}: {error}"[:200]))

    for folder in wanted["folders"]:
        attempt(f"list {folder}", functools.partial(_list, folder))
    for file in wanted["files"]:
        attempt(f"read {file}", functools.partial(_read, file))
    attempt("signal the grader", lambda: _signal(wanted["grader"]))
    attempt("lower the grader's limits", lambda: _limit(wanted["grader"]))
    attempt("open an internet socket", _internet)
    attempt("open a Unix socket", _local)
    attempt("start a process", _start)
    attempt("read another process's memory", lambda: _memory(wanted["grader"]))
    attempt("become root", _root)
    return rows


def _list(folder: str) -> int:
    from pathlib import Path

    return len(list(Path(folder).iterdir()))


def _read(file: str) -> int:
    from pathlib import Path

    return len(Path(file).read_text())


def _signal(process: int) -> None:
    import os

    os.kill(process, 0)


def _limit(process: int) -> None:
    import os
    import resource

    if process in (0, os.getpid()):
        raise ProcessLookupError("it has the number of this process here")
    resource.prlimit(process, resource.RLIMIT_CPU)


def _internet() -> None:
    import socket

    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()


def _local() -> None:
    import socket

    socket.socket(socket.AF_UNIX).close()


def _start() -> None:
    import os

    if os.fork() == 0:
        os._exit(0)


def _memory(process: int) -> bytes:
    from pathlib import Path

    with Path(f"/proc/{process}/mem").open("rb") as memory:
        return memory.read(0)


def _root() -> None:
    import os

    os.setresuid(0, 0, 0)
    if os.getuid() != 0:
        raise PermissionError("still not root")
